#include "server/shard/deferred_turn.h"

#include <assert.h>

#include "server/shard/deferred.h"
#include "server/shard/reducing_steps.h"
#include "server/shard/reply.h"
#include "server/shard/scanning.h"
#include "server/shard/shard_tables.h"
#include "server/shard/slice.h"
#include "server/snapshot/load_state.h"

/* Its result is there, or an error says why not. */
static void over(struct shard *s, struct deferred *d, paramo_err err)
{
    assert(s->deferred->count > 0 && d->peer->shard == s);
    struct van_seg seg[VAN_SEGS] = {{0}};
    unsigned nseg = 0;
    if (d->reducing) {
        seg[WIRE_SEG_BODY] = (struct van_seg){.data = d->reducing->body, .len = d->reducing->body_bytes};
        nseg = WIRE_SEG_BODY + 1;
    } else if (d->head.count) {
        seg[WIRE_SEG_KEYS] = (struct van_seg){.data = d->keys, .len = 8 * (uint64_t)d->head.count};
        nseg = 1;
    }
    if (err) {
        reply_status(d->peer, &d->head, err, err_text());
    } else if (!slice_may_read(d->peer, &d->head, seg)) {
        queue_push(&s->deferred->held, &d->node);
        return;
    } else {
        assert(!s->deferred->over);
        s->deferred->over = d;
        slice_handle_again(d->peer, &d->head, seg, nseg); /* the peer may be gone */
        s->deferred->over = NULL;
    }
    deferred_free(s, d);
}

/* STATs and REDUCEs take their turns together. */
static bool takes_turns(const struct qnode *node)
{
    return container_of(node, struct deferred, node)->head.kind != WIRE_SCAN;
}

/* The first request has had a step, and needs more. */
static void next_turn(struct shard *s)
{
    struct queue *q = &s->deferred->turn;
    assert(!queue_empty(q) && s->deferred->count > 0);
    if (takes_turns(q->head)) {
        queue_push(q, queue_pop(q));
        return;
    }
    struct qnode *before = q->head;
    while (before->next && !takes_turns(before->next))
        before = before->next;
    struct qnode *stat = before->next;
    if (!stat)
        return;
    before->next = stat->next;
    if (q->tail == stat)
        q->tail = before;
    stat->next = q->head;
    q->head = stat;
    assert(!q->tail->next);
}

/* One step of the first waiting request. */
static void step(struct shard *s)
{
    assert(s->deferred->count > 0 && !s->deferred->over && !queue_empty(&s->deferred->turn));
    struct deferred *d = container_of(s->deferred->turn.head, struct deferred, node);
    struct shard_table *t = shard_table_find(s, d->head.table);
    paramo_err err = PARAMO_OK;
    bool done = true;
    if (loading_holds(s)) { /* amid a load rows are old, cleared or new */
        queue_push(&s->deferred->held, queue_pop(&s->deferred->turn));
        return;
    }
    if (t && d->head.kind == WIRE_SCAN) {
        done = scanning_step(d->peer, t, &d->head, d->keys[0], &err);
    } else if (t) {
        if (!rows_epoch_is(s, d->epoch)) {
            d->epoch = rows_epoch_now(s);
            d->count = (struct table_count){0};
            if (d->reducing)
                reducing_restart(d->reducing);
        }
        if (d->reducing && reducing_waits(s, t, d->reducing)) {
            reducing_restart(d->reducing);
            queue_push(&s->deferred->held, queue_pop(&s->deferred->turn));
            return;
        }
        if (d->reducing)
            reducing_step(s, t, d->reducing);
        else
            counting_step(s, t, &d->count);
        done = d->reducing ? d->reducing->at.done : d->count.done;
    }
    if (!done) {
        next_turn(s);
        return;
    }
    assert(s->deferred->turn.head == &d->node); /* a step takes no request away */
    (void)queue_pop(&s->deferred->turn);
    over(s, d, err);
}

void deferred_turn(struct lane_timer *timer)
{
    struct shard *s = container_of(timer, struct shard_deferred, timer)->shard;
    (void)deferred_close_step(s);
    if (!queue_empty(&s->deferred->turn))
        step(s);
    deferred_go(s);
}
