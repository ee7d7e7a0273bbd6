#include "server/replication/forward.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "server/replication/chain_stream.h"
#include "server/replication/chain_wait.h"
#include "server/replication/routing.h"
#include "server/replication/splitting.h"
#include "server/shard/reply.h"

/* Can each server that this shard passes changes to, or that another passes them to, read it? AGAIN: that is not
 * known of one yet. */
static paramo_err check_readable(const struct chain *c, const struct wire_head *h)
{
    char name[VIEW_LABEL_MAX];
    if (!(h->flags & WIRE_COLUMNS) || h->count == 1)
        return PARAMO_OK;
    for (const struct chain_stream *st = c->streams; st; st = st->next) {
        if (!st->met)
            return PARAMO_E_AGAIN;
        if (!st->takes_columns)
            return err_set(PARAMO_E_UNSUPPORTED,
                           "%s, which has copies, is of an older version, which has no "
                           "requests for columns",
                           view_id_label(st->to.node, name));
    }
    return PARAMO_OK;
}

paramo_err chain_prepare(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                         const struct van_seg *seg, unsigned nseg, const uint64_t *only,
                         struct chain_wait **wait)
{
    struct chain *c = peer->shard->chain;
    struct sender *sender = peer->sender;
    *wait = NULL;
    assert(!records_pending(c)); /* requests wait for that */
    paramo_err err = check_readable(c, h);
    if (err || !c->streams)
        return err;
    struct chain_wait *w = calloc(1, sizeof *w);
    if (!w)
        return err_memory(sizeof *w);
    struct chain_message m = {
        .what = CHAIN_UPDATE,
        .origin = {.node = c->shard->config.node, .shard = (uint16_t)c->shard->config.index},
        .order = c->order + 1,
        .sender = sender->id,
        .request = *h};
    m.request.kind = h->kind == WIRE_PUSHPULL ? WIRE_PUSH : h->kind;
    m.request.flags = h->flags & (uint8_t) ~(WIRE_CREATE | WIRE_RANGE);
    m.request.floor = sender->applied_window.own.floor;
    if (h->kind == WIRE_CLEAR)
        memcpy(m.partitions, c->mine, sizeof m.partitions);
    w->head = *h;
    err = chain_split(c, t, &m, seg, nseg, only, true, w, &w->made);
    if (err || (queue_empty(&w->made) && !chain_wait_find(sender, h->number))) {
        chain_abandon(w);
        return err;
    }
    assert(m.order > c->order && (!queue_empty(&w->made) || !w->entries));
    *wait = w;
    return PARAMO_OK;
}

uint64_t *chain_only_mine(const struct chain *c, const uint64_t *only, uint64_t partitions[CHAIN_WORDS])
{
    for (unsigned i = 0; i < CHAIN_WORDS; i++)
        partitions[i] = c->mine[i] & (only ? only[i] : UINT64_MAX);
    return partitions;
}

void chain_number(struct chain *c, const struct shard_table *t, const uint64_t *keys, size_t n,
                  const uint64_t *only)
{
    c->order++;
    /* A table without copies has no other member: its changes go at most to a migration's target. */
    for (size_t i = 0; i < n && t->replicas; i++) {
        unsigned partition = ring_partition(ring_position(&t->placement, keys[i]));
        if (only && !partition_set_has(only, partition))
            continue;
        assert(c->last[partition] <= c->order);
        assert(partition_set_has(c->mine, partition));
        c->last[partition] = c->order;
    }
}

static void append_all(struct chain_wait *w, struct queue *made)
{
    for (struct qnode *node; (node = queue_pop(made));) {
        struct chain_entry *e = container_of(node, struct chain_entry, node);
        assert(e->to);
        assert(!e->acked);
        e->wait = e->wait ? w : NULL;
        chain_append(e->to, e);
    }
}

void chain_wait_send(struct chain *c, struct chain_wait *w)
{
    assert(!w->source);
    assert(w->entries > 0);
    struct queue made = w->made;
    w->made = (struct queue){0};
    append_all(w, &made);
    chain_send_all(c);
}

void chain_commit(struct chain *c, const struct shard_table *t, struct chain_wait *w,
                  const struct van_seg *seg, struct sender *sender, const uint64_t *only)
{
    assert(!w->sender && !w->source);
    chain_number(c, t, w->head.count ? seg[WIRE_SEG_KEYS].data : NULL, w->head.count, only);
    for (unsigned a = 0; w->head.kind == WIRE_CLEAR && t->replicas && a < RING_PARTITIONS; a++)
        if (partition_set_has(c->mine, a) && (!only || partition_set_has(only, a)))
            c->last[a] = c->order;
    sender->behind = true;
    struct queue made = w->made;
    w->made = (struct queue){0};
    struct chain_wait *before = only ? chain_wait_find(sender, w->head.number) : NULL;
    if (before) { /* the rest of a chunk whose other keys were applied before: both get one answer */
        before->head = w->head;
        before->entries += w->entries;
        if (before->reply)
            reply_free(before->reply);
        before->reply = w->reply;
        free(w);
        w = before;
    } else {
        chain_wait_link(w, sender);
    }
    assert(w->sender == sender);
    append_all(w, &made);
    chain_send_all(c);
    if (!w->entries) { /* it goes only to a target that is not FULL yet */
        w->entries = 1;
        chain_wait_done(w);
    }
}

bool chain_sender_floor(struct shard *s, const struct sender *sender)
{
    struct chain *c = s->chain;
    struct queue entries = {0};
    struct chain_message m = {.what = CHAIN_FORGET,
                              .origin = {.node = s->config.node, .shard = (uint16_t)s->config.index},
                              .sender = sender->id,
                              .request = {.floor = sender->applied_window.own.floor}};
    assert(c->shard == s);
    assert(sender->behind && sender->told < sender->applied_window.own.floor);
    memcpy(m.partitions, c->mine, sizeof m.partitions);
    bool all = chain_routes(c) ? !chain_route_behind(c, &m)
                               : !chain_split(c, NULL, &m, NULL, 0, NULL, false, NULL, &entries);
    if (!all)
        log_debug("shard %u: cannot send a floor to followers: %s", s->config.index, err_text());
    for (struct qnode *node; (node = queue_pop(&entries));) {
        struct chain_entry *e = container_of(node, struct chain_entry, node);
        chain_append(e->to, e);
    }
    chain_send_all(c);
    return all;
}
