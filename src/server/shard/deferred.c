#include "server/shard/deferred.h"

#include <assert.h>
#include <stdlib.h>

#include "server/shard/housekeeping.h"
#include "server/shard/reducing_steps.h"
#include "server/shard/reply.h"
#include "server/snapshot/load_state.h"

struct rows_epoch rows_epoch_now(const struct shard *s)
{
    return (struct rows_epoch){.partitions_changed = s->place->partitions_changed, .loads = s->loads->begun};
}

bool rows_epoch_is(const struct shard *s, struct rows_epoch epoch)
{
    struct rows_epoch now = rows_epoch_now(s);
    return epoch.partitions_changed == now.partitions_changed && epoch.loads == now.loads;
}

static void deferred_check(const struct shard_deferred *d)
{
    assert(d->count <= SHARD_DEFERRED_MAX);
    assert(d->count || (queue_empty(&d->turn) && queue_empty(&d->held) && !d->over));
}

void deferred_free(struct shard *s, struct deferred *d)
{
    assert(s->deferred->count > 0 && s->deferred->count <= SHARD_DEFERRED_MAX && s->deferred->over != d);
    deferred_check(s->deferred);
    s->deferred->count--;
    if (d->reducing)
        reducing_free(s, d->reducing);
    free(d);
}

static struct deferred *find_in(const struct queue *queue, const struct sender *sender, uint64_t number)
{
    for (const struct qnode *node = queue->head; node; node = node->next) {
        struct deferred *d = container_of(node, struct deferred, node);
        if (d->peer->sender == sender && d->head.number == number)
            return d;
    }
    return NULL;
}

static struct deferred *find(const struct shard *s, const struct sender *sender, uint64_t number)
{
    struct deferred *d = find_in(&s->deferred->turn, sender, number);
    return d ? d : find_in(&s->deferred->held, sender, number);
}

/* Its sender has not asked for it since then, and may not wait any more. */
static uint64_t deadline_of(const struct shard *s)
{
    return lane_now(s->lane) + SHARD_VIEW_DEFERRED_SECONDS * ENV_SEC;
}

bool deferred_asked(const struct shard *s, const struct sender *sender, uint64_t number)
{
    deferred_check(s->deferred);
    struct deferred *d = find(s, sender, number);
    if (d)
        d->deadline = deadline_of(s);
    return d;
}

void deferred_close_page(struct shard *s, struct session *x)
{
    deferred_check(s->deferred);
    assert(s->deferred->closing != x);
    x->next = s->deferred->closing;
    s->deferred->closing = x;
    deferred_go(s);
}

bool deferred_close_step(struct shard *s)
{
    struct session *x = s->deferred->closing;
    if (x && table_page_close_step(&x->page)) {
        s->deferred->closing = x->next;
        free(x);
    }
    return !s->deferred->closing;
}

void deferred_go(struct shard *s)
{
    if (s->deferred->timer.slot || (queue_empty(&s->deferred->turn) && !s->deferred->closing))
        return;
    assert(queue_empty(&s->deferred->turn) || s->deferred->count > 0);
    if (lane_timer_arm(s->lane, &s->deferred->timer, lane_now(s->lane))) { /* no memory for a timer */
        while (!deferred_close_step(s))
            ;
        while (!queue_empty(&s->deferred->turn)) {
            struct deferred *d = container_of(queue_pop(&s->deferred->turn), struct deferred, node);
            reply_status(d->peer, &d->head, PARAMO_E_MEMORY, "the server is out of memory for this request");
            deferred_free(s, d);
        }
    }
}

static void keys_set(struct deferred *d, const uint64_t *keys)
{
    for (uint32_t i = 0; i < d->head.count; i++)
        d->keys[i] = keys[i];
}

/* Its number has come with another request. What was found in one table is not looked for in another. */
static void begin_again(struct shard *s, struct deferred *d)
{
    if (d->reducing)
        reducing_free(s, d->reducing);
    d->reducing = NULL;
    d->count = (struct table_count){0};
    assert(d->peer->shard == s && s->deferred->count > 0);
    assert(s->deferred->over != d);
}

/* *at: where the request is deferred; NULL: there is no room, as if it had been lost on the way. */
static paramo_err add(struct peer *peer, const struct wire_head *h, const uint64_t *keys,
                      struct deferred **at)
{
    assert(h->count <= 2);
    struct shard *s = peer->shard;
    struct deferred *d = find(s, peer->sender, h->number);
    *at = d;
    if (d && (d->head.kind != h->kind || d->head.table != h->table)) /* no client sends that */
        begin_again(s, d);
    assert(!d || d->peer->shard == s);
    if (d) {
        d->peer = peer;
        d->head = *h;
        keys_set(d, keys);
        d->deadline = deadline_of(s);
        return PARAMO_OK;
    }
    if (s->deferred->count >= SHARD_DEFERRED_MAX) {
        s->counters.dropped++;
        return PARAMO_OK;
    }
    d = calloc(1, sizeof *d);
    if (!d)
        return err_memory(sizeof *d);
    d->peer = peer;
    d->head = *h;
    keys_set(d, keys);
    d->epoch = rows_epoch_now(s);
    d->deadline = deadline_of(s);
    assert(queue_empty(&s->deferred->turn) || s->deferred->count > 0);
    queue_push(&s->deferred->turn, &d->node);
    s->deferred->count++;
    *at = d;
    return PARAMO_OK;
}

static void begin(struct shard *s)
{
    deferred_go(s);
    housekeeping_schedule(s);
}

paramo_err deferred_add(struct peer *peer, const struct wire_head *h, const uint64_t *keys)
{
    struct deferred *d;
    paramo_err err = add(peer, h, keys, &d);
    if (!err)
        begin(peer->shard);
    return err;
}

paramo_err deferred_add_reducing(struct peer *peer, const struct wire_head *h, struct reducing *r)
{
    struct deferred *d;
    paramo_err err = add(peer, h, NULL, &d);
    if (!err && d && d->reducing && !reducing_same(d->reducing, r))
        begin_again(peer->shard, d);
    if (!err && d && !d->reducing)
        d->reducing = r;
    else
        reducing_free(peer->shard, r);
    deferred_check(peer->shard->deferred);
    if (!err)
        begin(peer->shard);
    return err;
}

const struct deferred *deferred_again(const struct peer *peer, const struct wire_head *h)
{
    const struct shard *s = peer->shard;
    const struct deferred *d = s->deferred->over;
    bool same = d && d->head.kind == h->kind && d->peer == peer && d->head.number == h->number &&
                rows_epoch_is(s, d->epoch);
    return same ? d : NULL;
}

bool deferred_count(const struct peer *peer, const struct wire_head *h, struct table_count *count)
{
    const struct deferred *d = deferred_again(peer, h);
    if (!d || h->kind != WIRE_STAT || !d->count.done)
        return false;
    *count = d->count;
    return true;
}

void deferred_resume(struct shard *s)
{
    for (struct qnode *node; (node = queue_pop(&s->deferred->held));)
        queue_push(&s->deferred->turn, node);
    deferred_go(s);
}

static void drop_from(struct shard *s, struct queue *queue, const struct peer *peer, uint64_t now)
{
    struct queue old = *queue;
    *queue = (struct queue){0};
    for (struct qnode *node; (node = queue_pop(&old));) {
        struct deferred *d = container_of(node, struct deferred, node);
        if (d->peer == peer || d->deadline <= now)
            deferred_free(s, d);
        else
            queue_push(queue, node);
    }
}

void deferred_drop(struct shard *s, const struct peer *peer, uint64_t now)
{
    drop_from(s, &s->deferred->turn, peer, now);
    drop_from(s, &s->deferred->held, peer, now);
    assert(s->deferred->count > 0 || (queue_empty(&s->deferred->turn) && queue_empty(&s->deferred->held)));
}

void deferred_init(struct shard *s, void (*turn)(struct lane_timer *timer))
{
    s->deferred->shard = s;
    s->deferred->timer.fire = turn;
}

void deferred_close(struct shard *s)
{
    while (!deferred_close_step(s))
        ;
    lane_timer_cancel(s->lane, &s->deferred->timer);
    assert(s->deferred->count == 0 && queue_empty(&s->deferred->turn) && queue_empty(&s->deferred->held));
}
