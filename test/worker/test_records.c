/* The records of many senders pass from one owner to another in turns, and what comes in the middle of it:
 * requests that are sent again, views, a customer that is closed, orders, the end of the shard. The test is the
 * scheduler. */
#include "server/replication/acks.h"
#include "server/replication/gate.h"
#include "server/replication/origins.h"
#include "server/replication/records.h"
#include "server/shard/peers.h"
#include "server/shard/senders.h"
#include "server/snapshot/loading.h"
#include "unit.h"

#include <string.h>

#include "worker/support_world.h"

/* Row i lies on partition i. LONG: at a record each millisecond, seconds. */
enum { ROWS = RING_PARTITIONS, MANY = 10000, LONG = 1500 };

/* A round of the lane has at most two turns: that of a view or message, and that of a timer. A turn may end with a
 * record that costs more than is left of it. */
enum { STEP = 2 * (RECORDS_TURN + RECORDS_COST + RECORDS_COST_NOTE) };

static struct world w;
static unsigned given_up;

static void failed(void *arg, paramo_err status)
{
    (void)arg;
    (void)status;
    given_up++;
}

/* All partitions have this chain in the next view. */
static void chain(uint16_t owner, uint16_t next, uint16_t last)
{
    for (unsigned a = 0; a < RING_PARTITIONS; a++) {
        w.ring.owner[a] = owner;
        w.follower[1].owner[a] = next;
        w.follower[2].owner[a] = last;
    }
    for (unsigned s = 0; s < w.servers_count; s++)
        w.partitions_changed[s] = w.chain_changed[s] = w.number + 1;
}

/* Server 0 owns all; servers 1 and 2 follow. */
static void begin(size_t turn_records)
{
    memset(&w, 0, sizeof w);
    given_up = 0;
    world_init(&w, true, 5);
    w.replicas = 2;
    w.migrations = true;
    w.timeout_ms = 60000;
    w.turn_records = turn_records;
    w.failed = failed;
    world_table(&w, PARAMO_TABLE_DENSE, 1)->rows = ROWS;
    world_start(&w, 3, 3, 3);
    world_pass(&w, ENV_SEC);
    chain(0, 1, 2);
    world_view(&w);
    world_all_view(&w);
    world_pass(&w, ENV_SEC);
}

static struct chain *chain_of(unsigned server)
{
    return w.servers[server].shard->chain;
}

/* Worker 2 has many customers. */
static struct sender_id many_id(uint32_t i)
{
    return (struct sender_id){
        .node = PARAMO_ID_WORKER(2), .customer = 100 + i, .incarnation = w.clients[2].incarnation};
}

/* The server's records of the first owner that it follows get this number of senders more. They are visited before
 * those that are there. */
static void followed(unsigned server, uint32_t senders)
{
    static const uint64_t partitions[PARTITION_WORDS] = {5};
    for (uint32_t i = 0; i < senders; i++) {
        struct sender_id id = many_id(i);
        struct chain_sender *x = origin_sender(chain_of(server)->origins, &id);
        assert_non_null(x);
        assert_int_equal(applied_window_note_number(&x->applied_window, 3, partitions), PARAMO_OK);
    }
}

static void push(unsigned client, uint64_t key)
{
    uint64_t ts;
    const float one = 1;
    assert_int_equal(world_push(&w, client, 0, &key, 1, &one, 1, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, client, ts), PARAMO_OK);
}

static float pulled(unsigned client, uint64_t key)
{
    uint64_t ts;
    float val = -1;
    assert_int_equal(world_pull(&w, client, 0, &key, 1, &val, 1, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, client, ts), PARAMO_OK);
    return val;
}

/* All members have the push; its answer is lost with the owner, server 0. Client 0 sends it again. */
static uint64_t pushed_and_owner_lost(void)
{
    static const uint64_t key = 7;
    static const float one = 1; /* they are read when it is sent again */
    uint64_t ts;
    world_link(&w, "s0", "w0")->cut = true;
    assert_int_equal(world_push(&w, 0, 0, &key, 1, &one, 1, &ts), PARAMO_OK);
    world_pass(&w, 100 * ENV_MS);
    world_server_stop(&w, 0);
    return ts;
}

static void owner_gone(void)
{
    world_server_gone(&w, 0);
    world_view(&w);
    world_all_view(&w);
}

/* ---- a turn is short ---- */

/* However many senders there are, no step visits more records than a turn may; nothing is served before all have
 * been visited. */
static void turns_are_short(void **state)
{
    (void)state;
    uint64_t seen[3] = {0};
    unsigned turns[3] = {0};
    begin(0);
    push(0, 7);
    followed(1, MANY);
    followed(2, MANY);
    world_server_stop(&w, 0);
    owner_gone();
    do {
        for (unsigned s = 1; s < 3; s++) {
            uint64_t spent = chain_of(s)->records.spent;
            assert_in_range(spent - seen[s], 0, STEP);
            turns[s] += spent > seen[s];
            seen[s] = spent;
            assert_false(records_pending(chain_of(s)) && chain_open(w.servers[s].shard));
        }
    } while (sim_step(w.sim) &&
             (records_pending(chain_of(1)) || chain_of(1)->streams->acked < chain_of(1)->streams->gate));
    for (unsigned s = 1; s < 3; s++) { /* each is imported, and forgotten where it was */
        assert_true(seen[s] >= 2 * MANY * RECORDS_COST);
        assert_in_range(turns[s], 2 * MANY * RECORDS_COST / STEP, 100);
    }
    push(0, 7);
    assert_true(pulled(1, 7) == 2);
    assert_int_equal(given_up, 0);
    world_fini(&w);
}

/* The same of an owner that becomes a replica. */
static void turns_of_a_demotion_are_short(void **state)
{
    (void)state;
    static const uint64_t partitions[PARTITION_WORDS] = {5};
    begin(0);
    push(0, 7);
    for (uint32_t i = 0; i < MANY; i++) {
        struct sender_id id = many_id(i);
        struct sender *x = shard_sender(w.servers[0].shard, &id);
        assert_non_null(x);
        assert_int_equal(applied_window_note_number(&x->applied_window, 3, partitions), PARAMO_OK);
    }
    chain(1, 0, 2);
    world_view(&w);
    uint64_t seen = 0;
    world_all_view(&w);
    for (bool more = true; more; more = sim_step(w.sim) && (!seen || records_pending(chain_of(0)))) {
        uint64_t spent = chain_of(0)->records.spent;
        assert_in_range(spent - seen, 0, STEP);
        seen = spent;
    }
    assert_true(seen >= 2 * MANY * RECORDS_COST);
    push(0, 7);
    assert_true(pulled(1, 7) == 2);
    world_fini(&w);
}

/* The server gets this number of senders more, which have no connections. */
static void senders_of(unsigned server, uint32_t senders)
{
    for (uint32_t i = 0; i < senders; i++) {
        struct sender_id id = many_id(i);
        assert_non_null(shard_sender(w.servers[server].shard, &id));
    }
}

/* However many senders there are, no step of a view's look at them is longer than a turn. At its end, those of
 * a dead worker are gone. */
static void looks_are_short(void **state)
{
    (void)state;
    begin(0);
    for (unsigned client = 0; client < 3; client++)
        push(client, 7);
    const struct shard *s = w.servers[0].shard;
    for (unsigned dead = 0; dead < 2; dead++) {
        senders_of(0, dead ? 0 : MANY);
        w.clients[2].dead = dead;
        world_view(&w);
        uint64_t seen = s->senders->check.spent, before = seen;
        unsigned turns = 0;
        world_all_view(&w);
        do {
            assert_in_range(s->senders->check.spent - seen, 0, 2 * (SHARD_CHECK_TURN + SHARD_CHECK_FREE));
            turns += s->senders->check.spent > seen;
            seen = s->senders->check.spent;
        } while (sim_step(w.sim) && (!turns || s->senders->check.on));
        assert_true(s->senders->check.spent - before >= (dead ? SHARD_CHECK_FREE : 1) * MANY);
        assert_true(turns > 1);
        assert_int_equal(s->senders->count, dead ? 2 : MANY + 3);
    }
    push(0, 7);
    assert_true(pulled(1, 7) == 4);
    world_fini(&w);
}

/* However many senders an origin has, one more moves a few buckets at most. Each sender is found at any time. */
static void buckets_grow_in_turns(void **state)
{
    (void)state;
    struct chain_origin *o = origin_make((struct chain_name){.node = 8});
    unsigned grown = 0;
    assert_non_null(o);
    w.clients[2].incarnation = 1;
    for (uint32_t i = 0; i < 3000; i++) {
        struct sender_id id = many_id(i), early = many_id(i / 2);
        uint32_t before = o->older ? o->older_count - o->moved : 0;
        assert_non_null(origin_sender(o, &id));
        uint32_t after = o->older ? o->older_count - o->moved : 0;
        grown += after > before;
        assert_true(after > before || before - after <= 2);
        uint32_t count = o->senders_count;
        struct chain_sender *x = origin_sender(o, &early);
        if (i / 2 % 3) /* the others were freed, and are made again */
            assert_int_equal(o->senders_count, count);
        else
            origin_sender_free(o, x);
    }
    assert_true(grown > 4);
    origin_fini(o);
}

/* ---- in the middle ---- */

/* A worker is declared dead, and a connection ends, when a look has come past them: the look begins again. */
static void looked_at_in_the_middle(void **state)
{
    (void)state;
    begin(1);
    for (unsigned client = 0; client < 3; client++)
        push(client, 7);
    const struct shard *s = w.servers[0].shard;
    senders_of(0, LONG);
    world_view(&w);
    world_all_view(&w);
    world_pass(&w, 100 * ENV_MS);
    assert_true(s->senders->check.on && !s->senders->check.peer);
    world_client_close(&w, 0);
    w.clients[1].dead = true;
    world_view(&w);
    world_all_view(&w);
    world_pass(&w, 100 * ENV_MS);
    assert_true(s->senders->check.on && !s->senders->check.peer);
    assert_non_null(s->peers->first->next);
    world_pass(&w, 4 * ENV_SEC);
    assert_false(s->senders->check.on);
    assert_null(s->peers->first->next);
    assert_ptr_equal(s->peers->first->sender,
                     shard_sender_find(s, &(struct sender_id){.node = PARAMO_ID_WORKER(2),
                                                              .customer = 3,
                                                              .incarnation = w.clients[2].incarnation}));
    world_client_open(&w, 0);
    push(0, 7);
    assert_true(pulled(2, 7) == 4);
    world_fini(&w);
}

/* A push that the dead owner made is sent again: it is made once, and answered when all records have passed. */
static void resent_in_the_middle(void **state)
{
    (void)state;
    for (unsigned held = 1; held < 3; held++) { /* the new owner, or the one that follows it */
        begin(1);
        push(1, 7);
        followed(held, LONG);
        uint64_t ts = pushed_and_owner_lost();
        owner_gone();
        world_pass(&w, ENV_SEC);
        assert_true(records_pending(chain_of(held)));
        int done;
        assert_int_equal(client_test(w.clients[0].client, ts, &done), PARAMO_OK);
        assert_false(done);
        assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
        assert_false(records_pending(chain_of(held)));
        assert_true(pulled(1, 7) == 2);
        push(2, 7);
        assert_true(pulled(0, 7) == 3);
        world_fini(&w);
    }
}

/* The shard answers beats, and has its own answered. */
static void leases_in_the_middle(void **state)
{
    (void)state;
    begin(1);
    push(0, 7);
    followed(2, 2 * LONG);
    world_server_stop(&w, 0);
    owner_gone();
    for (unsigned i = 0; i < 20; i++) {
        world_pass(&w, 100 * ENV_MS);
        assert_true(records_pending(chain_of(2)));
        assert_true(chain_leased(chain_of(1)->streams));
        assert_true(chain_of(1)->streams->acked < chain_of(1)->streams->gate);
    }
    push(0, 7);
    assert_true(pulled(1, 7) == 2);
    world_fini(&w);
}

/* Another view reverses the roles: the shard that is being promoted becomes a replica. */
static void reversed_in_the_middle(void **state)
{
    (void)state;
    begin(1);
    push(1, 7);
    followed(1, LONG);
    uint64_t ts = pushed_and_owner_lost();
    owner_gone();
    world_pass(&w, 100 * ENV_MS);
    assert_true(records_pending(chain_of(1)));
    chain(2, 1, RING_NONE);
    world_view(&w);
    world_all_view(&w);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    assert_true(pulled(1, 7) == 2);
    push(2, 7);
    world_pass(&w, 20 * ENV_SEC);
    world_server_stop(&w, 2); /* and back again */
    chain(1, RING_NONE, RING_NONE);
    w.servers[2].alive = false;
    world_view(&w);
    world_all_view(&w);
    push(1, 7);
    assert_true(pulled(0, 7) == 4);
    assert_int_equal(given_up, 0);
    world_fini(&w);
}

/* A customer is closed, another is opened: no record that is still to be visited goes. */
static void senders_in_the_middle(void **state)
{
    (void)state;
    begin(1);
    for (unsigned client = 0; client < 3; client++)
        push(client, 7);
    followed(1, LONG);
    world_server_stop(&w, 0);
    owner_gone();
    world_pass(&w, 100 * ENV_MS);
    world_client_close(&w, 0);
    w.clients[1].dead = true;
    world_view(&w);
    world_all_view(&w);
    world_pass(&w, 100 * ENV_MS);
    world_client_open(&w, 0);
    assert_true(records_pending(chain_of(1)));
    push(0, 7);
    push(2, 7);
    assert_true(pulled(2, 7) == 5);
    assert_null(
        shard_sender_find(w.servers[1].shard, &(struct sender_id){.node = PARAMO_ID_WORKER(1),
                                                                  .customer = 3,
                                                                  .incarnation = w.clients[1].incarnation}));
    world_fini(&w);
}

static void saved(void *arg, paramo_err status, const struct ckpt_file *file)
{
    (void)arg, (void)status, (void)file;
    fail();
}

static void save_refused(void *arg)
{
    const struct shard_save_config config = {.dir = "nowhere", .number = 1, .id = 1, .done = saved};
    *(paramo_err *)arg = shard_save(w.servers[1].shard, &config);
}

/* No checkpoint has records that are still to pass: a save that may not wait is refused. */
static void saved_in_the_middle(void **state)
{
    (void)state;
    paramo_err status = PARAMO_OK;
    begin(1);
    push(0, 7);
    followed(1, LONG);
    world_server_stop(&w, 0);
    owner_gone();
    world_pass(&w, 100 * ENV_MS);
    world_on_lane(w.servers[1].lane, save_refused, &status);
    assert_int_equal(status, PARAMO_E_AGAIN);
    push(0, 7);
    world_fini(&w);
}

static void saved_in_part(void *arg, paramo_err status, const struct ckpt_file *file)
{
    (void)file;
    *(paramo_err *)arg = status;
}

static void save_begins(void *arg)
{
    const struct shard_save_config config = {
        .dir = "nowhere", .number = 1, .id = 1, .arg = arg, .done = saved_in_part};
    assert_int_equal(shard_save(w.servers[1].shard, &config), PARAMO_OK);
}

/* Nor records that begin to pass while it copies them: it ends. */
static void passed_in_the_middle_of_a_save(void **state)
{
    (void)state;
    paramo_err status = PARAMO_OK;
    begin(1);
    push(0, 7);
    senders_of(1, LONG);
    world_on_lane(w.servers[1].lane, save_begins, &status);
    world_pass(&w, 10 * ENV_MS);
    world_server_stop(&w, 0);
    owner_gone();
    world_pass(&w, 100 * ENV_MS);
    assert_int_equal(status, PARAMO_E_AGAIN);
    push(0, 7);
    assert_true(pulled(1, 7) == 2);
    world_fini(&w);
}

static void load_ends(void *arg, paramo_err status, const struct ckpt_file *file)
{
    (void)file;
    *(paramo_err *)arg = status;
}

/* At server 1. *(paramo_err *)arg: what it reports, with a load of this id. */
static void load_holds(void *arg)
{
    const struct shard_save_config config = {
        .dir = "nowhere", .number = 1, .id = 3, .hold_ms = 60000, .arg = arg, .done = load_ends};
    assert_int_equal(shard_load_hold(w.servers[1].shard, &config), PARAMO_OK);
}

static void load_is_over(void *arg)
{
    (void)arg;
    assert_int_equal(shard_load_go(w.servers[1].shard, 3, 1), PARAMO_OK);
}

/* A load that is ordered in the middle is held when all have passed: it is not refused, for its next attempt might come
 * in the middle of others. */
static void load_ordered_in_the_middle(void **state)
{
    (void)state;
    paramo_err status = PARAMO_E_IN_CALLBACK; /* none of its own */
    begin(1);
    push(0, 7);
    followed(1, LONG);
    world_server_stop(&w, 0);
    owner_gone();
    world_pass(&w, 2 * ENV_SEC);
    assert_true(records_pending(chain_of(1)));
    assert_true(sim_now(w.sim) > chain_of(1)->wait_until); /* only the records are left to wait for */
    world_on_lane(w.servers[1].lane, load_holds, &status);
    world_pass(&w, 100 * ENV_MS);
    assert_true(records_pending(chain_of(1)));
    assert_int_equal(status, PARAMO_E_IN_CALLBACK);
    for (unsigned i = 0; i < 100 && records_pending(chain_of(1)); i++)
        world_pass(&w, ENV_SEC);
    world_pass(&w, ENV_SEC);
    assert_int_equal(status, PARAMO_OK);
    world_on_lane(w.servers[1].lane, load_is_over, NULL);
    push(0, 7);
    assert_true(pulled(1, 7) == 2);
    world_fini(&w);
}

/* The shard ends in the middle, and its next member takes its place. */
static void ended_in_the_middle(void **state)
{
    (void)state;
    begin(1);
    push(1, 7);
    followed(1, LONG);
    uint64_t ts = pushed_and_owner_lost();
    owner_gone();
    world_pass(&w, 100 * ENV_MS);
    assert_true(records_pending(chain_of(1)));
    world_server_stop(&w, 1);
    world_server_gone(&w, 1);
    world_view(&w);
    world_all_view(&w);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    assert_true(pulled(1, 7) == 2);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_short),
        cmocka_unit_test(turns_of_a_demotion_are_short),
        cmocka_unit_test(buckets_grow_in_turns),
        cmocka_unit_test(looks_are_short),
        cmocka_unit_test(looked_at_in_the_middle),
        cmocka_unit_test(resent_in_the_middle),
        cmocka_unit_test(leases_in_the_middle),
        cmocka_unit_test(reversed_in_the_middle),
        cmocka_unit_test(senders_in_the_middle),
        cmocka_unit_test(saved_in_the_middle),
        cmocka_unit_test(passed_in_the_middle_of_a_save),
        cmocka_unit_test(load_ordered_in_the_middle),
        cmocka_unit_test(ended_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
