#include "server/shard/reply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

enum { REPLIES_CACHED = 4096 };

static void reply_done(struct van_frame *frame, paramo_err status)
{
    (void)status; /* the client asks again for a lost answer */
    reply_free(container_of(frame, struct reply, frame));
}

static void replies_count(struct shard *s, int change)
{
    size_t n = atomic_load_explicit(&s->replies->out, memory_order_relaxed) + (size_t)change;
    assert(n != SIZE_MAX); /* an answer that is freed was counted */
    atomic_store_explicit(&s->replies->out, n, memory_order_relaxed);
}

static void replies_check(const struct shard_replies *replies)
{
    assert(!replies->free == !replies->free_count && replies->free_count <= REPLIES_CACHED);
}

static struct reply *reply_get(struct shard *s)
{
    replies_check(s->replies);
    struct reply *r = s->replies->free;
    if (r) {
        s->replies->free = r->next;
        s->replies->free_count--;
    } else {
        r = malloc(sizeof *r);
        if (!r)
            return NULL;
        memset(r, 0, sizeof *r);
        r->shard = s;
        r->frame.class = VAN_ANSWER;
        r->frame.done = reply_done;
    }
    assert(r->shard == s && r->frame.done == reply_done);
    r->frame.nseg = 0;
    r->buffer = NULL;
    r->buffer_bytes = 0;
    r->lent = false;
    r->kept = NULL;
    r->coding = NULL;
    replies_count(s, 1);
    return r;
}

void reply_free(struct reply *r)
{
    struct shard *s = r->shard;
    replies_check(s->replies);
    replies_count(s, -1);
    if (r->buffer)
        bufpool_put(&s->pool, r->buffer, r->buffer_bytes);
    if (r->kept)
        kept_unref(r->kept);
    if (r->coding) {
        filter_memory_give(r->coding);
        bufpool_put(&s->pool, r->coding, sizeof *r->coding);
    }
    if (s->replies->free_count >= REPLIES_CACHED) {
        free(r);
        return;
    }
    assert(!s->replies->free == !s->replies->free_count);
    r->next = s->replies->free;
    s->replies->free = r;
    s->replies->free_count++;
}

void kept_unref(struct kept_answer *kept)
{
    assert(atomic_load(&kept->refs) > 0);
    if (atomic_fetch_sub(&kept->refs, 1) != 1)
        return;
    for (unsigned i = 0; i < VAN_SEGS; i++)
        array_unref(kept->array[i]);
    free(kept);
}

void reply_seg(struct reply *r, unsigned seg, size_t offset, size_t bytes)
{
    assert(seg < VAN_SEGS && !r->lent);
    for (; r->frame.nseg <= seg; r->frame.nseg++)
        r->frame.seg[r->frame.nseg] = (struct van_seg){0};
    assert(!bytes || offset + bytes <= r->buffer_bytes);
    r->frame.seg[seg] = (struct van_seg){.data = bytes ? (uint8_t *)r->buffer + offset : NULL, .len = bytes};
}

void reply_lend(struct reply *r, unsigned seg, const void *data, size_t bytes)
{
    assert(!r->lent);
    reply_seg(r, seg, 0, bytes);
    r->frame.seg[seg].data = (void *)(uintptr_t)data;
    assert(seg + 1U == r->frame.nseg);
    r->lent = true;
}

static void reply_head(struct reply *r, const struct wire_head *request, struct wire_head *head)
{
    assert(r->shard && r->frame.done == reply_done);
    assert(!r->coding); /* what is filtered has its head already */
    head->kind = head->kind ? head->kind : WIRE_ANSWER;
    head->table = request->table;
    head->number = request->number;
    head->ts = request->ts;
    head->attempt = request->attempt;
    head->slice = request->slice;
    wire_head_encode(head, r->frame.head);
}

void reply_own(struct reply *r)
{
    if (!r->lent)
        return;
    assert(r->frame.nseg > 0);
    struct van_seg *last = &r->frame.seg[r->frame.nseg - 1];
    assert(!last->len || (r->buffer && last->len <= r->buffer_bytes));
    memcpy(r->buffer, last->data, (size_t)last->len);
    last->data = r->buffer;
    r->lent = false;
}

void reply_leave(struct peer *peer, struct reply *r)
{
    assert(r->shard == peer->shard);
    assert(!peer->blocked || !queue_empty(&peer->backlog));
    if (peer->blocked) {
        reply_own(r);
        queue_push(&peer->backlog, &r->frame.node);
        return;
    }
    bool lent = r->lent;
    r->lent = false;
    paramo_err err = lent ? van_send_lent(peer->conn, &r->frame, r->buffer) : van_send(peer->conn, &r->frame);
    if (err == PARAMO_E_AGAIN) {
        assert(queue_empty(&peer->backlog));
        peer->blocked = true;
        queue_push(&peer->backlog, &r->frame.node);
    } else if (err) {
        /* the connection has ended, or the answer is too large: closed() follows, or the client asks again */
        reply_free(r);
    }
}

void reply_late(struct peer *peer, struct reply *r, const struct wire_head *request)
{
    struct wire_head head;
    if (wire_head_decode(r->frame.head, &head)) { /* it was encoded here */
        reply_free(r);
        return;
    }
    assert(r->shard == peer->shard && head.number == request->number);
    head.attempt = request->attempt;
    head.slice = request->slice;
    wire_head_encode(&head, r->frame.head);
    reply_leave(peer, r);
}

void reply_backlog(struct peer *peer)
{
    assert(peer->blocked == !queue_empty(&peer->backlog));
    struct queue backlog = peer->backlog;
    peer->backlog = (struct queue){0};
    peer->blocked = false;
    for (struct qnode *node; (node = queue_pop(&backlog));)
        reply_leave(peer, container_of(container_of(node, struct van_frame, node), struct reply, frame));
    assert(peer->blocked == !queue_empty(&peer->backlog));
}

static struct reply *reply_plain(struct shard *s, const struct wire_head *request, struct wire_head *head,
                                 const char *text)
{
    struct reply *r = reply_get(s);
    if (!r)
        return NULL; /* as if the answer was lost: the client asks again */
    size_t len = text ? strnlen(text, ERR_TEXT_MAX) : 0;
    if (len) {
        r->buffer = bufpool_get(&s->pool, len);
        r->buffer_bytes = len;
        if (r->buffer) {
            memcpy(r->buffer, text, len);
            reply_seg(r, WIRE_SEG_BODY, 0, len);
        }
    }
    reply_head(r, request, head);
    return r;
}

struct reply *reply_of_status(struct shard *s, const struct wire_head *request, paramo_err status,
                              const char *text)
{
    assert(s->view && status != PARAMO_E_AGAIN);
    struct wire_head head = {.status = (uint16_t)status, .view = s->view->number};
    return reply_plain(s, request, &head, status ? text : NULL);
}

void reply_status(struct peer *peer, const struct wire_head *request, paramo_err status, const char *text)
{
    struct reply *r = reply_of_status(peer->shard, request, status, text);
    if (r)
        reply_leave(peer, r);
}

void reply_moved(struct peer *peer, const struct wire_head *request)
{
    peer->shard->counters.moved++;
    reply_status(peer, request, PARAMO_E_MOVED, NULL);
}

void reply_probe(struct peer *peer, const struct wire_head *request, enum probe_found what)
{
    struct wire_head head = {.kind = WIRE_PROBE_ANSWER, .probed = {.found = what}};
    struct reply *r = reply_plain(peer->shard, request, &head, NULL);
    if (r)
        reply_leave(peer, r);
}

void reply_lacks(struct peer *peer, const struct wire_head *request, uint16_t epoch, unsigned why)
{
    struct wire_head head = {
        .kind = WIRE_PROBE_ANSWER, .probed = {.found = PROBE_LACKS, .full = why}, .filter_epoch = epoch};
    struct reply *r = reply_plain(peer->shard, request, &head, NULL);
    if (r)
        reply_leave(peer, r);
}

paramo_err reply_make(struct shard *s, size_t bytes, struct reply **reply)
{
    if (bytes > s->config.frame_bytes)
        return err_set(PARAMO_E_TOO_LARGE, "the answer has %zu bytes, but a message holds at most %llu",
                       bytes, (unsigned long long)s->config.frame_bytes);
    struct reply *r = reply_get(s);
    if (r && bytes) {
        r->buffer = bufpool_get(&s->pool, bytes);
        r->buffer_bytes = bytes;
        if (!r->buffer) {
            reply_free(r);
            r = NULL;
        }
    }
    if (!r)
        return err_set(PARAMO_E_MEMORY, "the server is out of memory for the answer");
    assert(!r->lent && r->buffer_bytes == bytes);
    assert(!r->kept && !r->coding && !r->frame.nseg);
    *reply = r;
    return PARAMO_OK;
}

struct reply *reply_begin(struct peer *peer, const struct wire_head *request, size_t bytes)
{
    struct reply *r = NULL;
    paramo_err err = reply_make(peer->shard, bytes, &r);
    if (err)
        reply_status(peer, request, err, err_text());
    return r;
}

void reply_finish(struct reply *r, const struct wire_head *request, bool lens, uint32_t count, bool more)
{
    struct wire_head head = {.flags = lens ? WIRE_LENS : 0,
                             .view = r->shard->view->number,
                             .count = count,
                             .batch = {.more = more}};
    reply_head(r, request, &head);
}

void reply_send(struct peer *peer, struct reply *r, const struct wire_head *request, bool lens,
                uint32_t count, bool more)
{
    reply_finish(r, request, lens, count, more);
    reply_leave(peer, r);
}

void reply_kept(struct peer *peer, const struct wire_head *request, paramo_err status,
                struct kept_answer *kept)
{
    struct reply *r = reply_get(peer->shard);
    if (!r)
        return;
    if (kept) {
        atomic_fetch_add(&kept->refs, 1);
        r->kept = kept;
        assert(kept->nseg <= VAN_SEGS);
        assert(!r->buffer && !r->lent); /* all segments are those of the kept answer */
        memcpy(r->frame.seg, kept->seg, sizeof r->frame.seg);
        r->frame.nseg = (uint8_t)kept->nseg;
    }
    struct wire_head head = {.status = (uint16_t)status,
                             .flags = kept && !status && kept->seg[WIRE_SEG_LENS].len ? WIRE_LENS : 0,
                             .view = peer->shard->view->number,
                             .count = request->count};
    reply_head(r, request, &head);
    reply_leave(peer, r);
}

size_t reply_out(const struct shard *s)
{
    return atomic_load_explicit(&s->replies->out, memory_order_relaxed);
}

void reply_fini(struct shard *s)
{
    assert(reply_out(s) == 0);
    while (s->replies->free) {
        struct reply *next = s->replies->free->next;
        free(s->replies->free);
        s->replies->free = next;
        s->replies->free_count--;
    }
    assert(s->replies->free_count == 0);
}
