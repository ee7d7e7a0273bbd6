/* One ACK covers a full stream: its entries are released, and their answers leave, in turns. What comes in the middle
 * of it: a later ACK, connections that end, views, the end of the shard. The test is the scheduler. */
#include "server/replication/records.h"
#include "server/shard/shard_tables.h"
#include "table/table.h"
#include "unit.h"

#include <string.h>

#include "worker/support_world.h"

/* Row i lies on partition i. MANY: of each client; at one each millisecond. */
enum { ROWS = RING_PARTITIONS, CLIENTS = 3, MANY = 100, ALL = CLIENTS * MANY, ROW = 7 };

static struct world w;
static unsigned given_up;
static uint64_t pushes[CLIENTS][MANY];

static void failed(void *arg, paramo_err status)
{
    (void)arg, (void)status;
    given_up++;
}

static void next_view(uint16_t owner, uint16_t next)
{
    for (unsigned a = 0; a < RING_PARTITIONS; a++) {
        w.ring.owner[a] = owner;
        w.follower[1].owner[a] = next;
        w.follower[2].owner[a] = RING_NONE;
    }
    for (unsigned s = 0; s < w.servers_count; s++)
        w.partitions_changed[s] = w.chain_changed[s] = w.number + 1;
    world_view(&w);
    world_all_view(&w);
}

static void begin(void)
{
    memset(&w, 0, sizeof w);
    given_up = 0;
    world_init(&w, true, 5);
    w.replicas = 2;
    w.migrations = true;
    w.timeout_ms = 60000;
    w.turn_records = 1;
    w.failed = failed;
    world_table(&w, PARAMO_TABLE_DENSE, 1)->rows = ROWS;
    world_start(&w, 3, 3, CLIENTS);
    world_pass(&w, ENV_SEC);
    for (unsigned a = 0; a < RING_PARTITIONS; a++) {
        w.ring.owner[a] = 0;
        w.follower[1].owner[a] = 1;
        w.follower[2].owner[a] = 2;
    }
    for (unsigned s = 0; s < w.servers_count; s++)
        w.partitions_changed[s] = w.chain_changed[s] = w.number + 1;
    world_view(&w);
    world_all_view(&w);
    world_pass(&w, ENV_SEC);
}

static struct chain *chain_of(unsigned server)
{
    return w.servers[server].shard->chain;
}

static struct chain_stream *stream_of(unsigned server, unsigned next)
{
    struct chain_stream *st = chain_of(server)->streams;
    while (st->to.node != PARAMO_ID_SERVER(next))
        st = st->next;
    return st;
}

static void push_many(void)
{
    static const uint64_t key = ROW;
    static const float one = 1;
    for (unsigned i = 0; i < MANY; i++)
        for (unsigned client = 0; client < CLIENTS; client++)
            assert_int_equal(world_push(&w, client, 0, &key, 1, &one, 1, &pushes[client][i]), PARAMO_OK);
}

static float row_at(unsigned server)
{
    static const uint64_t key = ROW;
    float val = -1;
    assert_int_equal(
        table_get_rows(shard_table_find(w.servers[server].shard, 1)->table, &key, 1, false, &val), PARAMO_OK);
    return val;
}

/* Server 1 has all pushes, and server 2 as well; no ACK has come to server 0. */
static void all_but_acked(void)
{
    begin();
    world_link(&w, "s1", "s0")->cut = true;
    push_many();
    world_pass(&w, 400 * ENV_MS);
    assert_true(row_at(1) == ALL && row_at(2) == ALL);
    assert_int_equal(stream_of(0, 1)->count, ALL);
}

/* The ACK has come, and its first turns. */
static void in_the_middle(void)
{
    all_but_acked();
    world_link(&w, "s1", "s0")->cut = false;
    while (stream_of(0, 1)->count > ALL / 2)
        assert_true(sim_step(w.sim));
    assert_true(stream_of(0, 1)->release.timer.slot);
}

static void all_pushed(void)
{
    for (unsigned client = 0; client < CLIENTS; client++)
        for (unsigned i = 0; i < MANY; i++)
            assert_int_equal(world_wait(&w, client, pushes[client][i]), PARAMO_OK);
    assert_int_equal(given_up, 0);
}

static void server_gone(unsigned server)
{
    world_server_stop(&w, server);
    world_server_gone(&w, server);
}

static void turns_are_short(void **state)
{
    (void)state;
    unsigned turns = 0;
    all_but_acked();
    uint64_t seen = chain_of(0)->release_spent;
    world_link(&w, "s1", "s0")->cut = false;
    while (stream_of(0, 1)->count) {
        assert_true(sim_step(w.sim));
        uint64_t spent = chain_of(0)->release_spent;
        assert_in_range(spent - seen, 0, 4 * RECORDS_COST);
        turns += spent > seen;
        seen = spent;
    }
    assert_in_range(turns, ALL, 3 * ALL);
    all_pushed();
    world_pass(&w, 10 * ENV_MS);
    const struct chain_stream *st = stream_of(0, 1);
    assert_true(st->acked == st->seq && !st->entries.head && !st->bytes);
    assert_true(row_at(0) == ALL);
    world_fini(&w);
}

/* Others are pushed, and acknowledged one by one. */
static void later_acks(void **state)
{
    (void)state;
    in_the_middle();
    uint64_t before[CLIENTS][MANY];
    memcpy(before, pushes, sizeof before);
    push_many();
    world_pass(&w, 100 * ENV_MS);
    all_pushed();
    memcpy(pushes, before, sizeof before);
    all_pushed();
    assert_true(row_at(0) == 2 * ALL && row_at(1) == 2 * ALL && row_at(2) == 2 * ALL);
    world_fini(&w);
}

/* The connection ends: acknowledged entries are still released, and not sent again. */
static void connection_ends_in_the_middle(void **state)
{
    (void)state;
    in_the_middle();
    world_on_lane(w.servers[0].lane, world_stream_ends, stream_of(0, 1));
    world_link(&w, "s0", "s1")->cut = true;
    all_pushed();
    assert_null(stream_of(0, 1)->conn);
    world_fini(&w);
}

/* The next member dies: what is not released goes to the member after it, which has it. */
static void next_dies_in_the_middle(void **state)
{
    (void)state;
    in_the_middle();
    server_gone(1);
    next_view(0, 2);
    all_pushed();
    assert_true(row_at(0) == ALL && row_at(2) == ALL);
    world_fini(&w);
}

static void owner_ends_in_the_middle(void **state)
{
    (void)state;
    in_the_middle();
    server_gone(0);
    next_view(1, 2);
    all_pushed();
    assert_true(row_at(1) == ALL && row_at(2) == ALL);
    world_fini(&w);
}

/* A member in the middle of a chain gets the ACK, and acknowledges to the owner as it releases. */
static void member_acknowledges_in_turns(void **state)
{
    (void)state;
    begin();
    world_link(&w, "s2", "s1")->cut = true;
    push_many();
    world_pass(&w, 400 * ENV_MS);
    assert_int_equal(stream_of(1, 2)->count, ALL);
    world_link(&w, "s2", "s1")->cut = false;
    while (stream_of(1, 2)->count > ALL / 2)
        assert_true(sim_step(w.sim));
    world_pass(&w, 20 * ENV_MS);
    assert_in_range(stream_of(0, 1)->count, 1, ALL - 1);
    all_pushed();
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_short),
        cmocka_unit_test(later_acks),
        cmocka_unit_test(connection_ends_in_the_middle),
        cmocka_unit_test(next_dies_in_the_middle),
        cmocka_unit_test(owner_ends_in_the_middle),
        cmocka_unit_test(member_acknowledges_in_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
