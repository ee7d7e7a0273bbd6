/* Which reads of an owner that is declared dead may be old: of those partitions, and during that time, and no
 * others. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/view/view.h"
#include "env/lane.h"
#include "ring/partition_set.h"
#include "server/replication/chain_impl.h"
#include "sim/ledger.h"
#include "sim/overdue.h"
#include "sim/world.h"

enum { OWNER = 1, NEXT = 2 };

/* The owner of two keys, and the server that owns one of them by a newer view. */
struct pair {
    struct schedule schedule;
    struct world *w;
    struct view view[3];
    struct shard *shard[3];
    struct node_shard slot_shard[3];
    struct member_slot *slot[3];
    paramo_node *node[3];
    struct chain_stream stream;
    const struct ledger_key *lost, *kept;
};

static void *made(size_t size)
{
    void *p = calloc(1, size);
    assert_non_null(p);
    return p;
}

static void nothing(struct sim_event *event)
{
    (void)event;
}

static void time_passes(const struct pair *p, uint64_t ms)
{
    struct sim_event marker = {.fire = nothing};
    assert_int_equal(sim_schedule(p->w->sim, &marker, sim_now(p->w->sim) + ms * ENV_MS), PARAMO_OK);
    assert_true(sim_step(p->w->sim));
}

/* The owner has just got a lease, and the other server is about to become the owner of a key. */
static struct pair *pair_make(void)
{
    struct pair *p = made(sizeof *p);
    p->schedule = (struct schedule){.servers = 2, .replicas = 1};
    p->w = made(sizeof *p->w);
    p->w->schedule = &p->schedule;
    ledger_init(p->w);
    p->lost = &p->w->ledger[SIM_SPARSE].keys[7];
    p->kept = p->lost + 1;
    while (p->kept->partition == p->lost->partition)
        p->kept++;
    assert_int_equal(sim_create(1, &p->w->sim), PARAMO_OK);
    for (unsigned k = OWNER; k <= NEXT; k++) {
        struct machine *m = &p->w->machines[k];
        p->shard[k] = made(sizeof *p->shard[k]);
        p->slot[k] = made(sizeof *p->slot[k]);
        p->node[k] = made(sizeof *p->node[k]);
        p->shard[k]->chain = made(sizeof *p->shard[k]->chain);
        p->view[k].number = k;
        p->shard[k]->view = &p->view[k];
        p->slot_shard[k].shard = p->shard[k];
        p->slot[k]->shards = &p->slot_shard[k];
        p->slot[k]->shards_count = 1;
        p->node[k]->own = p->slot[k];
        *m = (struct machine){.world = p->w, .up = true, .made = p->node[k]};
        assert_int_equal(sim_host_create(p->w->sim, k, &m->host), PARAMO_OK);
        assert_int_equal(lane_create(sim_host_env(m->host), "lane", 0, &p->shard[k]->lane), PARAMO_OK);
    }
    struct chain *owner = p->shard[OWNER]->chain, *next = p->shard[NEXT]->chain;
    partition_set_add(owner->mine, p->lost->partition);
    partition_set_add(owner->mine, p->kept->partition);
    partition_set_add(next->mine, p->lost->partition);
    p->stream.heard_at = lane_now(p->shard[OWNER]->lane);
    owner->streams = &p->stream;
    next->leased_until = lane_now(p->shard[NEXT]->lane) + CHAIN_LEASE_WAIT_MS * ENV_MS;
    return p;
}

static void pair_free(struct pair *p)
{
    for (unsigned k = OWNER; k <= NEXT; k++) {
        lane_destroy(p->shard[k]->lane);
        free(p->shard[k]->chain);
        free(p->shard[k]);
        free(p->slot[k]);
        free(p->node[k]);
    }
    sim_destroy(p->w->sim);
    free(p->w);
    free(p);
}

/* An event, at the next moment. Is a read of the key that begins now judged as an old one? */
static bool excused(struct pair *p, const struct ledger_key *key)
{
    uint64_t from = ++p->w->moment, must = 0;
    overdue_watch(&p->w->machines[OWNER]);
    overdue_read(key, &from, &must);
    return from < p->w->moment;
}

static void jump(const struct pair *p, uint64_t ms)
{
    sim_host_jump(p->w->machines[NEXT].host, ms * ENV_MS);
}

/* The successor's clock jumps while it waits. It serves, so its keys may be old at the dead owner until that lease
 * ends, also when the successor dies before that. Keys that no other server owns are not old. */
static void a_successor_has_not_waited(void **state)
{
    (void)state;
    struct pair *p = pair_make();
    time_passes(p, 20);
    assert_false(excused(p, p->lost));
    jump(p, 22000);
    assert_false(excused(p, p->lost)); /* it began at that moment, when nothing new was acknowledged */
    assert_true(excused(p, p->lost));
    assert_false(excused(p, p->kept));
    p->w->machines[NEXT].up = false;
    time_passes(p, 480);
    assert_true(excused(p, p->lost));
    time_passes(p, 1);
    assert_false(excused(p, p->lost));
    pair_free(p);
}

/* A server that still waits, has waited, has no newer view, or gave the lease after the jump excuses nothing. */
static void a_jump_alone_excuses_nothing(void **state)
{
    (void)state;
    struct pair *p = pair_make();
    struct chain *next = p->shard[NEXT]->chain;
    time_passes(p, 20);
    jump(p, 504); /* 1 ms is left */
    assert_false(excused(p, p->lost) || excused(p, p->lost));
    p->view[NEXT].number = p->view[OWNER].number;
    jump(p, 1);
    assert_false(excused(p, p->lost) || excused(p, p->lost));
    p->view[NEXT].number++;
    next->leased_until = lane_now(p->shard[NEXT]->lane) + CHAIN_LEASE_WAIT_MS * ENV_MS;
    p->stream.heard_at = lane_now(p->shard[OWNER]->lane);
    time_passes(p, 1);
    assert_false(excused(p, p->lost) || excused(p, p->lost));
    time_passes(p, CHAIN_LEASE_WAIT_MS);
    p->stream.heard_at = lane_now(p->shard[OWNER]->lane);
    jump(p, 22000);
    assert_false(excused(p, p->lost) || excused(p, p->lost));
    pair_free(p);
}

/* The owner's clock stands still for longer than its lease: all its keys may be old, until the lease ends by its
 * clock. */
static void an_owner_stood_still(void **state)
{
    (void)state;
    struct pair *p = pair_make();
    sim_host_freeze(p->w->machines[OWNER].host, sim_now(p->w->sim) + 600 * ENV_MS);
    time_passes(p, 601);
    (void)excused(p, p->lost);
    assert_true(excused(p, p->lost) && excused(p, p->kept));
    time_passes(p, 500);
    assert_false(excused(p, p->lost) || excused(p, p->kept));
    pair_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_successor_has_not_waited),
        cmocka_unit_test(a_jump_alone_excuses_nothing),
        cmocka_unit_test(an_owner_stood_still),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
