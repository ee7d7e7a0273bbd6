/* What comes back over a link: answers to slices and to probes. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "worker/answer.h"
#include "worker/app_request.h"
#include "worker/check.h"
#include "worker/chunk.h"
#include "worker/client_impl.h"
#include "worker/ending.h"
#include "worker/filtering.h"
#include "worker/link.h"
#include "worker/numbers.h"
#include "worker/page_request.h"
#include "worker/reduction_request.h"
#include "worker/reslicing.h"
#include "worker/scan_batch.h"
#include "worker/slices.h"

/* The slice that an answer is for, if it still waits. NULL: of an older attempt, or answered before. */
static struct slice *slice_of(struct link *l, const struct wire_head *h)
{
    struct chunk *chunk = numbers_chunk(l->client, h->number);
    if (!chunk || chunk->number != h->number || chunk->attempt != h->attempt || h->slice >= chunk->count)
        return NULL;
    struct slice *p = chunk->split ? &chunk->split[h->slice].slice : &chunk->one;
    assert(p->chunk == chunk && chunk->request->client == l->client);
    assert(!chunk->need); /* a chunk with slices waits for no view */
    bool waits = p->state == SLICE_SENT || p->state == SLICE_RESEND;
    return waits && p->link == l && !chunk->request->ended ? p : NULL;
}

static paramo_err on_place(void *user, struct van_conn *conn, const uint8_t head[VAN_HEAD],
                           const uint64_t *len, unsigned nseg, void *dst[])
{
    struct link *l = user;
    struct wire_head h;
    (void)conn;
    assert(l->conn == conn && l->state == LINK_UP);
    paramo_err err = wire_head_decode(head, &h);
    if (err)
        return err;
    if (h.kind != WIRE_ANSWER)
        return PARAMO_OK;
    struct slice *p = slice_of(l, &h);
    if (!p) {
        for (unsigned i = 0; i < nseg; i++)
            dst[i] = VAN_SINK;
        return PARAMO_OK;
    }
    if (!h.status && !(h.flags & WIRE_FILTERED) && nseg > WIRE_SEG_VALS && p->span->dst &&
        p->span->dst_bytes && len[WIRE_SEG_VALS] == p->span->dst_bytes) {
        assert(!p->placing);
        dst[WIRE_SEG_VALS] = p->span->dst;
        p->placing = true;
    }
    return PARAMO_OK;
}

/* Sets the error's text: the name of the server, then its words. */
static const char *in_words(struct link *l, paramo_err status, const char *text, size_t len)
{
    char name[LINK_NAME_MAX];
    link_name(l, name);
    (void)err_set(status, "%s: %.*s", name, (int)(len < ERR_TEXT_MAX ? len : ERR_TEXT_MAX),
                  len ? text : err_sentence(status));
    return err_text();
}

static void end_with(struct link *l, struct request *r, paramo_err status, const char *text, size_t len)
{
    assert(status && r->client == l->client);
    assert(!r->ended);
    request_end(r, status, in_words(l, status, text, len));
}

static void mismatch(struct link *l, struct request *r, uint64_t got, uint64_t want)
{
    assert(got != want);
    assert(r->kind == REQUEST_PULL || r->kind == REQUEST_PUSHPULL);
    char text[128];
    bool user = r->table->options.kind == PARAMO_TABLE_USER;
    int n = snprintf(text, sizeof text, "answered %" PRIu64 " bytes of values, %" PRIu64 " were expected",
                     got, want);
    end_with(l, r, user ? PARAMO_E_SIZE_MISMATCH : PARAMO_E_PROTOCOL, text, (size_t)n);
}

/* Keeps an answer with lengths until all have come. False: the request has ended. */
static bool place_lens(struct link *l, struct slice *p, const struct van_seg *seg, unsigned nseg)
{
    struct request *r = p->chunk->request;
    struct client *c = l->client;
    uint64_t lens = data_seg_len(seg, nseg, WIRE_SEG_LENS), vals = data_seg_len(seg, nseg, WIRE_SEG_VALS);
    uint64_t count = p->span->count, value = r->table->value_bytes, sum = 0;
    assert(!p->lens && !p->vals && count);
    assert(r->pulls_lens && !r->ended);
    if (lens && lens != 4 * count) {
        mismatch(l, r, lens, 4 * count);
        return false;
    }
    if (lens)
        check_sum(seg[WIRE_SEG_LENS].data, count, &sum);
    else
        sum = vals / value / count * count; /* a handler may give each key equally many */
    if (sum * value != vals) {
        mismatch(l, r, vals, sum * value);
        return false;
    }
    p->lens = bufpool_get(&c->pool, 4 * count);
    p->vals = vals ? bufpool_get(&c->pool, vals) : NULL;
    p->vals_bytes = vals;
    if (!p->lens || (vals && !p->vals)) {
        request_end(r, err_memory(vals + 4 * count), err_text());
        return false;
    }
    for (uint32_t i = 0; !lens && i < count; i++)
        p->lens[i] = (uint32_t)(sum / count);
    if (lens)
        memcpy(p->lens, seg[WIRE_SEG_LENS].data, lens);
    if (vals)
        memcpy(p->vals, seg[WIRE_SEG_VALS].data, vals);
    return true;
}

/* False: they were dropped, because nothing waited for them when they came. */
static bool bytes_came(const struct van_seg *seg, unsigned nseg)
{
    for (unsigned i = 0; i < nseg; i++)
        if (seg[i].len && !seg[i].data)
            return false;
    return true;
}

/* True if the slice has what it asked for. */
static bool place(struct link *l, struct slice *p, const struct wire_head *h, const struct van_seg *seg,
                  unsigned nseg)
{
    struct request *r = p->chunk->request;
    assert(!r->ended && p->chunk->unanswered > 0);
    assert(p->state == SLICE_SENT || p->state == SLICE_RESEND);
    if (!bytes_came(seg, nseg))
        return false; /* it is asked for again */
    if (r->kind == REQUEST_MESSAGE)
        return app_request_take_answer(l->client, p, seg, nseg);
    if (r->kind == REQUEST_PULL || r->kind == REQUEST_PUSHPULL) {
        if (r->pulls_lens)
            return place_lens(l, p, seg, nseg);
        uint64_t vals = data_seg_len(seg, nseg, WIRE_SEG_VALS), want = p->span->dst ? p->span->dst_bytes : 0;
        if (vals != want) {
            mismatch(l, r, vals, want);
            return false;
        }
        if (vals && seg[WIRE_SEG_VALS].data != p->span->dst)
            memcpy(p->span->dst, seg[WIRE_SEG_VALS].data, vals);
    } else if (r->kind == REQUEST_STAT) {
        struct data_stat s;
        const void *body = nseg > WIRE_SEG_BODY ? seg[WIRE_SEG_BODY].data : NULL;
        paramo_err err = data_stat_decode(body, data_seg_len(seg, nseg, WIRE_SEG_BODY), &s);
        if (err) {
            end_with(l, r, err, err_text(), strlen(err_text()));
            return false;
        }
        r->stats->rows += s.rows;
        r->stats->nonzero += s.nonzero;
        r->stats->bytes += s.bytes;
        r->stats->pushes += s.pushes;
        r->stats->pulls += s.pulls;
    } else if (r->kind == REQUEST_REDUCE) {
        const void *body = nseg > WIRE_SEG_BODY ? seg[WIRE_SEG_BODY].data : NULL;
        paramo_err err = reduction_request_take(r->reduction, body, data_seg_len(seg, nseg, WIRE_SEG_BODY));
        if (err) {
            end_with(l, r, err, err_text(), strlen(err_text()));
            return false;
        }
    } else if (r->kind == REQUEST_SCAN || r->kind == REQUEST_PAGE) {
        paramo_err err = r->page ? page_request_take(r->page, (uint32_t)p->chunk->target, h, seg, nseg)
                                 : scan_receive(r->batch, r->table, h, seg, nseg);
        if (err) {
            request_end(r, err, err_text());
            return false;
        }
    }
    return true;
}

static void on_moved(struct client *c, struct chunk *chunk, uint64_t number)
{
    assert(chunk->number && !chunk->request->ended);
    assert(!chunk->need && chunk->unanswered > 0);
    c->counts->moved++;
    /* The shard has no newer view than this client: only a newer view can help. */
    slice_chunk_by(c, chunk, number > chunk->view ? number : chunk->view + 1);
}

static void on_values(struct link *l, struct slice *p, const struct wire_head *h, const struct van_seg *seg,
                      unsigned nseg)
{
    struct client *c = l->client;
    struct chunk *chunk = p->chunk;
    assert(chunk->number && !chunk->need && !chunk->request->ended);
    if (!place(l, p, h, seg, nseg))
        return;
    link_forget(p);
    slice_move(p, SLICE_ANSWERED);
    assert(chunk->unanswered > 0 && chunk->unanswered <= chunk->count);
    if (--chunk->unanswered == 0) {
        if (chunk->request->expects && chunk->request->unfinished == 1)
            van_expect(l->conn); /* its callback is about to run */
        chunk_finished(c, chunk);
    }
}

static paramo_err on_filtered(struct link *l, struct slice *p, const struct wire_head *h,
                              const struct van_seg *seg, unsigned nseg)
{
    struct filtered_answer plain;
    assert(p->link == l && !p->placing);
    assert(!p->chunk->request->ended && p->chunk->unanswered > 0);
    if (!bytes_came(seg, nseg))
        return PARAMO_OK; /* it is asked for again */
    paramo_err err = filtering_in(l, p, h, seg, nseg, &plain);
    if (err == PARAMO_E_NOT_FOUND || err == PARAMO_E_MEMORY)
        link_again(l, p);
    if (err)
        return err == PARAMO_E_PROTOCOL ? err : PARAMO_OK;
    on_values(l, p, h, plain.seg, plain.nseg);
    filtering_done(&plain);
    return PARAMO_OK;
}

static paramo_err on_answer(struct link *l, struct slice *p, const struct wire_head *h,
                            const struct van_seg *seg, unsigned nseg)
{
    struct client *c = l->client;
    struct chunk *chunk = p->chunk;
    assert(p->link == l && p->chunk->number == h->number);
    assert(!chunk->request->ended && chunk->unanswered > 0);
    paramo_err status = h->status ? err_from_wire(h->status) : PARAMO_OK;
    filtering_answered(p);
    if (status == PARAMO_E_MOVED) {
        on_moved(c, chunk, h->view);
    } else if (status == PARAMO_E_AGAIN) {
        return PARAMO_OK; /* the retry timer sends it again */
    } else if (status) {
        bool text = nseg > WIRE_SEG_BODY && seg[WIRE_SEG_BODY].data;
        chunk_failed(
            chunk, status,
            in_words(l, status, text ? seg[WIRE_SEG_BODY].data : NULL, text ? seg[WIRE_SEG_BODY].len : 0));
    } else if (h->flags & WIRE_FILTERED) {
        return on_filtered(l, p, h, seg, nseg);
    } else {
        on_values(l, p, h, seg, nseg);
    }
    return PARAMO_OK;
}

static paramo_err on_frame(void *user, struct van_conn *conn, const uint8_t head[VAN_HEAD],
                           const struct van_seg *seg, unsigned nseg)
{
    struct link *l = user;
    struct client *c = l->client;
    struct wire_head h;
    (void)conn;
    assert(l->conn == conn && l->state == LINK_UP);
    paramo_err err = wire_open(head, seg, nseg, &h);
    if (err)
        return err;
    if (h.kind == WIRE_WELCOME)
        return PARAMO_OK; /* a second copy of the first */
    if (wire_messages[h.kind].class != WIRE_CLASS_ANSWER)
        return err_set(PARAMO_E_PROTOCOL, "unexpected message %s from a server", wire_kind_name(h.kind));
    if (h.kind == WIRE_PROBE_ANSWER && h.probed.found == PROBE_LACKS) {
        if (filtering_lacks(l, &h))
            link_restart(l);
        client_finish(c);
        return PARAMO_OK;
    }
    struct slice *p = slice_of(l, &h);
    if (!p)
        return PARAMO_OK; /* a repeat, or of an older attempt */
    p->placing = false;
    if (c->config.drop_percent && env_random(lane_env(c->lane)) % 100 < c->config.drop_percent)
        return PARAMO_OK;
    link_heard(l, p, h.kind == WIRE_PROBE_ANSWER);
    if (h.kind == WIRE_ANSWER)
        err = on_answer(l, p, &h, seg, nseg);
    else if (h.probed.found == PROBE_UNKNOWN)
        link_again(l, p);
    client_finish(c);
    return err;
}

static void on_writable(void *user, struct van_conn *conn)
{
    struct link *l = user;
    (void)conn;
    assert(l->conn == conn && l->state == LINK_UP);
    l->blocked = false;
    link_pump(l);
    client_finish(l->client);
}

static void on_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    struct link *l = user;
    assert(l->conn == conn && l->state == LINK_UP);
    (void)conn;
    (void)why;
    link_lost(l, text);
    client_finish(l->client);
}

const struct van_user client_van_user = {
    .place = on_place, .frame = on_frame, .writable = on_writable, .closed = on_closed};
