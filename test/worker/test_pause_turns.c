/* At the pause of a migration the source sends the records of all its senders, in turns, and the target takes them:
 * what comes in the middle of it. The test is the scheduler. Row i lies on partition i; those below PARTITIONS go
 * from server 0 to server 1. */
#include "server/migration/source.h"
#include "server/migration/target.h"
#include "server/replication/gate.h"
#include "server/replication/origins.h"
#include "server/replication/records.h"
#include "server/shard/senders.h"
#include "server/shard/shard_tables.h"
#include "table/table.h"
#include "unit.h"

#include <string.h>

#include "wire/order.h"
#include "worker/support_world.h"

/* SOME: at a record each millisecond. NUMBER: of a chunk of each of many senders. */
enum { PARTITIONS = 256, ROW = 7, MANY = 10000, SOME = 200, NUMBER = 3 };

static struct {
    struct world w;
    struct migration_order migration;
    bool done[3];
    paramo_err status[3];
    unsigned given_up;
} t;

static void failed(void *arg, paramo_err status)
{
    (void)arg, (void)status;
    t.given_up++;
}

static struct shard *shard_of(unsigned server)
{
    return t.w.servers[server].shard;
}

static void next_view(void)
{
    for (unsigned s = 0; s < t.w.servers_count; s++)
        t.w.partitions_changed[s] = t.w.chain_changed[s] = t.w.number + 1;
    world_view(&t.w);
    world_all_view(&t.w);
}

/* ---- orders ---- */

static const uint32_t steps[] = {ORDER_MIGRATION_SOURCE, ORDER_MIGRATION_TARGET, ORDER_MIGRATION_PAUSE};

static void answered(void *arg, paramo_err status)
{
    t.done[(bool *)arg - t.done] = true;
    t.status[(bool *)arg - t.done] = status;
}

static void carry_out(void *arg)
{
    unsigned step = (unsigned)((bool *)arg - t.done);
    shard_migration_order(shard_of(step == 1), steps[step], &t.migration, answered, arg);
}

static void order(unsigned step)
{
    t.done[step] = false;
    world_on_lane(t.w.servers[step == 1].lane, carry_out, &t.done[step]);
}

static void must_end(unsigned step)
{
    for (unsigned i = 0; i < 100 && !t.done[step]; i++)
        world_pass(&t.w, 10 * ENV_MS);
    assert_true(t.done[step]);
    assert_int_equal(t.status[step], PARAMO_OK);
}

static void commit(void)
{
    for (unsigned a = 0; a < PARTITIONS; a++) {
        t.w.ring.owner[a] = 1;
        t.w.follower[1].owner[a] = t.w.follower[1].owner[a] == 1 ? RING_NONE : t.w.follower[1].owner[a];
    }
    t.w.moved[1] = t.migration.id;
    next_view();
}

/* ---- senders and rows ---- */

/* Worker 2 has many customers; each has a chunk that is applied everywhere, and one that is applied on partition 5. */
static struct sender_id many_id(uint32_t i)
{
    return (struct sender_id){
        .node = PARAMO_ID_WORKER(2), .customer = 100 + i, .incarnation = t.w.clients[2].incarnation};
}

static void many(uint32_t n)
{
    static const uint64_t partitions[PARTITION_WORDS] = {1 << 5};
    for (uint32_t i = 0; i < n; i++) {
        struct sender_id id = many_id(i);
        struct sender *x = shard_sender(shard_of(0), &id);
        assert_non_null(x);
        dedup_record(&x->applied_window.own, NUMBER);
        assert_int_equal(applied_window_note_number(&x->applied_window, NUMBER + 1, partitions), PARAMO_OK);
    }
}

/* The target has all of their records. */
static void many_came(uint32_t n)
{
    uint64_t five[PARTITION_WORDS] = {1 << 5}, six[PARTITION_WORDS] = {1 << 6};
    for (uint32_t i = 0; i < n; i++) {
        struct sender_id id = many_id(i);
        const struct sender *x = shard_sender_find(shard_of(1), &id);
        assert_non_null(x);
        struct dedup on_five = applied_window_extract(&x->applied_window, five),
                     on_six = applied_window_extract(&x->applied_window, six);
        assert_int_equal(dedup_check(&on_five, NUMBER), DEDUP_DONE);
        assert_int_equal(dedup_check(&on_six, NUMBER), DEDUP_DONE);
        assert_int_equal(dedup_check(&on_five, NUMBER + 1), DEDUP_DONE);
        assert_int_equal(dedup_check(&on_six, NUMBER + 1), DEDUP_NEW);
    }
}

static float row_at(unsigned server)
{
    static const uint64_t key = ROW;
    float val = -1;
    assert_int_equal(table_get_rows(shard_table_find(shard_of(server), 1)->table, &key, 1, false, &val),
                     PARAMO_OK);
    return val;
}

static uint64_t push_begun(unsigned client)
{
    static const uint64_t key = ROW;
    static const float one = 1;
    uint64_t ts;
    assert_int_equal(world_push(&t.w, client, 0, &key, 1, &one, 1, &ts), PARAMO_OK);
    return ts;
}

static void push(unsigned client)
{
    assert_int_equal(world_wait(&t.w, client, push_begun(client)), PARAMO_OK);
}

/* ---- */

/* All rows are at the target, which is new; or it follows the source with other partitions, or with all of them. */
enum target { TARGET_NEW, TARGET_FOLLOWS, TARGET_MEMBER };

static void begin(size_t turn_records, uint32_t senders, enum target target)
{
    memset(&t, 0, sizeof t);
    world_init(&t.w, true, 5);
    t.w.replicas = 1;
    t.w.migrations = true;
    t.w.timeout_ms = 60000;
    t.w.turn_records = turn_records;
    t.w.failed = failed;
    world_table(&t.w, PARAMO_TABLE_DENSE, 1)->rows = RING_PARTITIONS;
    world_start(&t.w, 3, 3, 3);
    world_pass(&t.w, ENV_SEC);
    for (unsigned a = 0; a < RING_PARTITIONS; a++) {
        t.w.ring.owner[a] = 0;
        bool follows = target == TARGET_MEMBER || (target == TARGET_FOLLOWS && a >= PARTITIONS);
        t.w.follower[1].owner[a] = follows ? 1 : 2;
    }
    next_view();
    world_pass(&t.w, ENV_SEC);
    push(0);
    push(1);
    many(senders);
    t.migration = (struct migration_order){
        .id = (UINT64_C(1) << 32) + 1,
        .partitions = PARTITIONS,
        .from = {.node = PARAMO_ID_SERVER(0)},
        .to = {.node = PARAMO_ID_SERVER(1)},
        .had = target == TARGET_MEMBER ? 1 : MIGRATION_NO_LEVEL,
        .takes_over = true,
    };
    order(0);
    order(1);
    must_end(0);
    must_end(1);
}

static uint64_t spent(void)
{
    const struct migration_source *g = shard_of(0)->chain->migration_source;
    return g ? migration_source_records_spent(g) : 0;
}

/* The source has sent some of the records. */
static void in_the_middle(enum target target)
{
    begin(1, SOME, target);
    order(2);
    for (unsigned i = 0; i < 10000 && spent() < SOME / 2 * RECORDS_COST; i++)
        (void)sim_step(t.w.sim);
    assert_true(spent() >= SOME / 2 * RECORDS_COST && !t.done[2]);
}

static void turns_are_short(void **state)
{
    (void)state;
    for (enum target target = TARGET_NEW; target <= TARGET_MEMBER; target++) {
        begin(0, MANY, target);
        uint64_t ts = push_begun(0), seen = 0;
        unsigned turns = 0;
        assert_int_equal(world_wait(&t.w, 0, ts), PARAMO_OK);
        order(2);
        while (!t.done[2]) {
            assert_true(sim_step(t.w.sim));
            assert_in_range(spent() - seen, 0, 2 * (RECORDS_TURN + RECORDS_COST + RECORDS_COST_NOTE));
            turns += spent() > seen;
            seen = spent();
        }
        assert_int_equal(t.status[2], PARAMO_OK);
        assert_in_range(turns, MANY * RECORDS_COST / RECORDS_TURN / 2, 100);
        commit();
        world_pass(&t.w, ENV_SEC);
        many_came(MANY);
        push(1);
        assert_true(row_at(1) == 4);
        world_fini(&t.w);
    }
}

/* What the target knew of other partitions of the source says nothing about these, whether the source knows the
 * sender or not: the records that come replace it. */
static void records_replace_what_was_known(void **state)
{
    (void)state;
    const uint64_t six[PARTITION_WORDS] = {1 << 6}, last[PARTITION_WORDS] = {[PARTITION_WORDS - 1] = 1};
    begin(1, SOME, TARGET_FOLLOWS);
    struct chain_origin *o = shard_of(1)->chain->origins;
    while (o->name.node != PARAMO_ID_SERVER(0))
        o = o->next;
    for (uint32_t i = SOME - 2; i < SOME + 2; i++) {
        struct sender_id id = many_id(i);
        struct chain_sender *x = origin_sender(o, &id);
        assert_non_null(x);
        dedup_record(&x->applied_window.own, NUMBER + 2);
    }
    order(2);
    must_end(2);
    commit();
    world_pass(&t.w, 2 * ENV_SEC);
    for (uint32_t i = SOME - 2; i < SOME + 2; i++) {
        struct sender_id id = many_id(i);
        const struct sender *mine = shard_sender_find(shard_of(1), &id);
        const struct chain_sender *theirs = origin_sender(o, &id);
        assert_non_null(mine);
        struct dedup on_six = applied_window_extract(&mine->applied_window, six),
                     on_last = applied_window_extract(&theirs->applied_window, last);
        assert_int_equal(dedup_check(&on_six, NUMBER + 2), DEDUP_NEW);
        assert_int_equal(dedup_check(&on_last, NUMBER + 2), DEDUP_DONE);
    }
    many_came(SOME);
    world_fini(&t.w);
}

/* A push that the source has made, whose answer was lost, is sent again to the target, and not made again. */
static void resent_after_it(void **state)
{
    (void)state;
    for (enum target target = TARGET_NEW; target <= TARGET_MEMBER; target++) {
        begin(1, SOME, target);
        world_link(&t.w, "s0", "w0")->cut = true;
        uint64_t ts = push_begun(0);
        world_pass(&t.w, 100 * ENV_MS);
        order(2);
        must_end(2);
        commit();
        world_pass(&t.w, ENV_SEC);
        world_server_stop(&t.w, 0);
        world_server_gone(&t.w, 0);
        next_view();
        assert_int_equal(world_wait(&t.w, 0, ts), PARAMO_OK);
        assert_true(row_at(1) == 3);
        many_came(SOME);
        world_fini(&t.w);
    }
}

/* Pushes come in the middle: to these partitions they wait, to others not. */
static void pushes_in_the_middle(void **state)
{
    (void)state;
    static const uint64_t other = PARTITIONS + 1;
    static const float one = 1;
    for (enum target target = TARGET_NEW; target <= TARGET_MEMBER; target++) {
        uint64_t ts, waits;
        in_the_middle(target);
        assert_int_equal(world_push(&t.w, 1, 0, &other, 1, &one, 1, &ts), PARAMO_OK);
        assert_int_equal(world_wait(&t.w, 1, ts), PARAMO_OK);
        assert_false(t.done[2]);
        waits = push_begun(0);
        must_end(2);
        int done;
        assert_int_equal(client_test(t.w.clients[0].client, waits, &done), PARAMO_OK);
        assert_false(done);
        commit();
        assert_int_equal(world_wait(&t.w, 0, waits), PARAMO_OK);
        assert_true(row_at(1) == 3);
        many_came(SOME);
        world_fini(&t.w);
    }
}

/* The worker of all these senders is declared dead: they are freed, and the turns continue with those that are left. */
static void senders_end_in_the_middle(void **state)
{
    (void)state;
    for (enum target target = TARGET_NEW; target <= TARGET_MEMBER; target++) {
        in_the_middle(target);
        t.w.clients[2].dead = true;
        world_view(&t.w);
        world_all_view(&t.w);
        must_end(2);
        commit();
        world_pass(&t.w, 2 * ENV_SEC);
        assert_int_equal(shard_of(0)->senders->count, 2);
        push(0);
        assert_true(row_at(1) == 3);
        world_fini(&t.w);
    }
}

static void other_records_pass(void *arg)
{
    static const uint64_t last[CHAIN_WORDS] = {[CHAIN_WORDS - 1] = 1};
    (void)arg;
    assert_int_equal(records_restart(shard_of(0)->chain, NULL, last), PARAMO_OK);
}

/* Records of other owners pass in the middle: the turns wait for that, and continue. */
static void records_pass_in_the_middle(void **state)
{
    (void)state;
    for (enum target target = TARGET_NEW; target <= TARGET_MEMBER; target++) {
        in_the_middle(target);
        world_on_lane(t.w.servers[0].lane, other_records_pass, NULL);
        world_pass(&t.w, 20 * ENV_MS);
        uint64_t before = spent();
        world_pass(&t.w, 20 * ENV_MS);
        assert_true(records_pending(shard_of(0)->chain) && spent() == before);
        must_end(2);
        commit();
        world_pass(&t.w, ENV_SEC);
        push(0);
        assert_true(row_at(1) == 3);
        many_came(SOME);
        world_fini(&t.w);
    }
}

/* The connection to the target ends, for longer than a pause may last: the source serves again. */
static void connection_ends_in_the_middle(void **state)
{
    (void)state;
    in_the_middle(TARGET_FOLLOWS);
    uint64_t ts = push_begun(0);
    van_sim_reset(t.w.servers[1].van, UINT32_MAX);
    world_link(&t.w, "s0", "s1")->cut = true;
    world_pass(&t.w, 2 * ENV_SEC);
    assert_true(t.done[2] && t.status[2] == PARAMO_E_TIMEOUT);
    world_link(&t.w, "s0", "s1")->cut = false;
    assert_int_equal(world_wait(&t.w, 0, ts), PARAMO_OK);
    assert_true(row_at(0) == 3);
    world_fini(&t.w);
}

/* The target ends, the source ends, or the scheduler gives the migration up: the source serves again. */
static void ends_in_the_middle(void **state)
{
    (void)state;
    in_the_middle(TARGET_NEW);
    world_server_stop(&t.w, 1);
    world_server_gone(&t.w, 1);
    next_view();
    push(0);
    assert_true(t.done[2] && t.status[2] == PARAMO_E_NOT_FOUND);
    assert_true(row_at(0) == 3);
    world_fini(&t.w);
    in_the_middle(TARGET_NEW);
    world_server_stop(&t.w, 0);
    world_fini(&t.w);
    in_the_middle(TARGET_MEMBER);
    world_server_stop(&t.w, 1);
    world_server_gone(&t.w, 1);
    next_view();
    push(0);
    assert_true(row_at(0) == 3);
    world_fini(&t.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_short),
        cmocka_unit_test(records_replace_what_was_known),
        cmocka_unit_test(resent_after_it),
        cmocka_unit_test(pushes_in_the_middle),
        cmocka_unit_test(senders_end_in_the_middle),
        cmocka_unit_test(records_pass_in_the_middle),
        cmocka_unit_test(connection_ends_in_the_middle),
        cmocka_unit_test(ends_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
