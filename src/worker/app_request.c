#include "worker/app_request.h"
#include "worker/chunk.h"
#include "worker/ending.h"
#include "worker/link.h"
#include "worker/links.h"
#include "worker/requests.h"
#include "worker/sending.h"
#include "worker/waiting.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the caller gives ---- */

static bool is_group(uint32_t to)
{
    return to <= PARAMO_GROUP_ALL;
}

static bool is_node(const struct client *c, uint32_t to)
{
    return to >= 8 && (to - 8) / 2 < atomic_load(to % 2 ? &c->shared->num_workers : &c->shared->num_servers);
}

static paramo_err message_check(const struct client *c, const struct client_message *m, size_t i)
{
    uint64_t bytes = 0;
    if (!m->to || (!is_group(m->to) && !is_node(c, m->to)))
        return err_set(PARAMO_E_INVALID,
                       "paramo_app_request: message %zu goes to %" PRIu32
                       ", which is not a node or a group of this job",
                       i, m->to);
    for (unsigned k = 0; k < VAN_SEGS; k++) {
        if (m->seg[k].len && !m->seg[k].data)
            return err_set(PARAMO_E_INVALID, "paramo_app_request: segment %u of message %zu is NULL", k, i);
        if (m->seg[k].len > c->config.frame_bytes - bytes)
            return err_set(PARAMO_E_TOO_LARGE,
                           "paramo_app_request: message %zu is longer than the %" PRIu64
                           " bytes that one may have",
                           i, c->config.frame_bytes);
        bytes += m->seg[k].len;
    }
    if (m->into && m->to != PARAMO_ID_SCHEDULER && is_group(m->to))
        return err_set(PARAMO_E_INVALID,
                       "paramo_app_request: the answers of a group cannot all be received in one place");
    return PARAMO_OK;
}

paramo_err app_request_check(const struct client *c, const struct client_call *call)
{
    if (!c->config.node)
        return err_set(PARAMO_E_REFUSED, "paramo_app_request: a reader sends no messages");
    if (call->messages_count && !call->messages)
        return err_set(PARAMO_E_INVALID, "paramo_app_request: messages is NULL");
    for (size_t i = 0; i < call->messages_count; i++) {
        paramo_err err = message_check(c, &call->messages[i], i);
        if (err)
            return err;
    }
    return PARAMO_OK;
}

/* Which segments of a message are copied: bits. */
static uint32_t copied(const struct client_call *call, size_t i)
{
    bool all = call->options && (call->options->flags & PARAMO_COPY);
    return all ? (1u << VAN_SEGS) - 1 : call->messages[i].copied;
}

paramo_err app_request_fill(struct request *r, const struct client_call *call)
{
    size_t n = call->messages_count, head = n * sizeof *call->messages, bytes = head;
    for (size_t i = 0; i < n; i++)
        for (unsigned k = 0; k < VAN_SEGS; k++)
            if (copied(call, i) & 1u << k)
                bytes += (size_t)(call->messages[i].seg[k].len + 7) & ~(size_t)7;
    struct client_message *to = request_copy_room(r, bytes);
    if (!to)
        return err_memory(bytes);
    if (n)
        memcpy(to, call->messages, head);
    uint8_t *at = (uint8_t *)to + head;
    for (size_t i = 0; i < n; i++) {
        for (unsigned k = 0; k < VAN_SEGS; k++) {
            struct van_seg *seg = &to[i].seg[k];
            if (!seg->len || !(copied(call, i) & 1u << k))
                continue;
            memcpy(at, seg->data, (size_t)seg->len);
            seg->data = at;
            at += (seg->len + 7) & ~(size_t)7;
        }
    }
    r->messages = to;
    r->messages_count = n;
    r->on_reply = call->on_reply;
    r->reply_to = call->reply_to;
    r->reply_arg = call->reply_arg;
    return PARAMO_OK;
}

/* ---- links to nodes ---- */

static struct link *app_endpoint_link(struct client *c, const struct view_node *node)
{
    assert(node->alive);
    for (size_t i = 0; i < links_count(c); i++) {
        struct link *l = links_at(c, i);
        if (l->index == HELLO_APP_ENDPOINT && l->node == node->id && l->incarnation == node->incarnation)
            return l;
    }
    struct link *l;
    if (links_make_room(c) || link_create(c, node, HELLO_APP_ENDPOINT, &l))
        return NULL;
    links_add(c, l);
    return l;
}

static paramo_err link_to(struct client *c, uint32_t id, struct link **link)
{
    const struct view_node *node = view_node(c->view, id);
    if (!node)
        return err_set(PARAMO_E_NODE_LOST, "the job has no node %" PRIu32, id);
    if (!node->alive)
        return err_set(PARAMO_E_NODE_LOST, "node %" PRIu32 " has %s", id, node->left ? "left" : "died");
    if (!node->port && !(node->role == PARAMO_ROLE_SCHEDULER && c->config.scheduler[0]))
        return err_set(PARAMO_E_UNSUPPORTED, "node %" PRIu32 " does not listen: it takes no requests", id);
    *link = app_endpoint_link(c, node);
    return *link ? PARAMO_OK : PARAMO_E_MEMORY;
}

/* ---- chunks ---- */

void app_request_slice(struct client *c, struct request *r)
{
    assert(!r->chunks && !r->unfinished);
    assert(r->kind == REQUEST_MESSAGE && r->client == c);
    r->unfinished++; /* keeps the request open until all nodes have been asked */
    for (size_t i = 0; i < r->messages_count && !r->ended; i++) {
        const struct client_message *m = &r->messages[i];
        for (uint32_t k = 0; k < c->view->nodes_count && !r->ended; k++) {
            const struct view_node *node = &c->view->nodes[k];
            if (is_group(m->to) ? !(node->role & m->to) : node->id != m->to)
                continue;
            struct span s = {.dst = m->into, .dst_bytes = m->into_len};
            struct link *l = NULL;
            paramo_err err = link_to(c, node->id, &l);
            if (err) {
                request_note(r, err, err_text());
                continue;
            }
            struct chunk *chunk = slice_chunk_add(c, r, &s, (int)node->id);
            if (!chunk)
                return;
            chunk->message = m;
            slice_chunk_whole(c, chunk, l);
        }
    }
    if (--r->unfinished == 0 && r->error)
        request_close(r);
}

void app_request_slice_again(struct client *c, struct chunk *chunk)
{
    assert(chunk->message && !chunk->split);
    const struct link *before = chunk->count ? chunk->one.link : NULL;
    bool sent = chunk->number != 0;
    assert(chunk->request->kind == REQUEST_MESSAGE && chunk->request->unfinished > 0);
    chunk_withdraw(chunk);
    chunk->attempt++;
    c->counts->retries++;
    struct link *l = NULL;
    paramo_err err = link_to(c, (uint32_t)chunk->target, &l);
    /* It is unknown whether the dead process has done it; the new one must not do it again. */
    if (!err && sent && before && l != before)
        err = err_set(PARAMO_E_NODE_LOST, "node %d died, another process has its place", chunk->target);
    if (err)
        chunk_failed(chunk, err, err_text());
    else
        slice_chunk_whole(c, chunk, l);
}

/* ---- answers ---- */

/* An answer on its way to the application. Its request completes after it, by the same way. */
struct note {
    struct lane_task task;
    struct request *request;
    struct client_reply reply;
};

static void note_run(struct lane_task *task)
{
    struct note *note = container_of(task, struct note, task);
    struct request *r = note->request;
    assert(r->on_reply && r->ts && note->reply.message < r->messages_count);
    r->on_reply(r->reply_to, r->reply_arg, r->ts, &note->reply);
    tracker_answered(&r->client->tracker, r->ts);
    van_release(note->reply.hold);
    free(note);
}

bool app_request_take_answer(struct client *c, struct slice *p, const struct van_seg *seg, unsigned nseg)
{
    struct chunk *chunk = p->chunk;
    struct request *r = chunk->request;
    const struct client_message *m = chunk->message;
    assert(m >= r->messages && m < r->messages + r->messages_count);
    assert(r->client == c && r->kind == REQUEST_MESSAGE && !r->ended);
    struct van_seg at[VAN_SEGS] = {{0}};
    struct van_seg *vals = &at[WIRE_SEG_VALS];
    if (nseg)
        memcpy(at, seg, nseg * sizeof *seg);
    bool fits = m->into && m->into_len && vals->len == m->into_len;
    if (fits && vals->data != m->into) {
        memcpy(m->into, vals->data, m->into_len);
        vals->data = m->into;
    }
    if (!r->on_reply)
        return true;
    struct note *note = malloc(sizeof *note);
    struct van_hold *hold = NULL;
    if (!note || van_keep(p->link->conn, at, nseg, &hold)) {
        free(note);
        request_end(r, err_memory(sizeof *note), err_text());
        return false;
    }
    if (fits)
        vals->data = m->into; /* van_keep may have copied the values */
    note->task.run = note_run;
    note->request = r;
    note->reply = (struct client_reply){.node = p->link->node,
                                        .message = (uint32_t)(m - r->messages),
                                        .head = m->head,
                                        .placed = fits,
                                        .hold = hold};
    memcpy(note->reply.seg, at, sizeof at);
    client_complete(c, &note->task);
    return true;
}
