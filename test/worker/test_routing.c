/* What a stream had not got acknowledged goes to the next members' streams in turns, and what comes in the middle of
 * it: views, connections that end, a customer that is closed, the end of the shard. The test is the scheduler. */
#include "server/replication/gate.h"
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

/* Partitions from `first` on and below `end` have this chain in the next view. */
static void chain_of_some(unsigned first, unsigned end, uint16_t owner, uint16_t next, uint16_t third,
                          uint16_t last)
{
    for (unsigned a = first; a < end; a++) {
        w.ring.owner[a] = owner;
        w.follower[1].owner[a] = next;
        w.follower[2].owner[a] = third;
        w.follower[3].owner[a] = last;
    }
    for (unsigned s = 0; s < w.servers_count; s++)
        w.partitions_changed[s] = w.chain_changed[s] = w.number + 1;
}

static void chain(uint16_t owner, uint16_t next, uint16_t third, uint16_t last)
{
    chain_of_some(0, RING_PARTITIONS, owner, next, third, last);
}

static void next_view(void)
{
    world_view(&w);
    world_all_view(&w);
}

/* Chains of servers 0 to 3. A turn routes one entry. */
static void begin(void)
{
    memset(&w, 0, sizeof w);
    given_up = 0;
    world_init(&w, true, 5);
    w.replicas = 3;
    w.migrations = true;
    w.timeout_ms = 60000;
    w.turn_records = 1;
    w.failed = failed;
    world_table(&w, PARAMO_TABLE_DENSE, 1)->rows = ROWS;
    world_start(&w, 4, 4, CLIENTS);
    world_pass(&w, ENV_SEC);
    chain(0, 1, 2, 3);
    next_view();
    world_pass(&w, ENV_SEC);
}

static struct chain *chain_of(unsigned server)
{
    return w.servers[server].shard->chain;
}

/* Each client pushes to the same row; no push is acknowledged: two members do not reach each other. */
static void push_many(const char *from, const char *to)
{
    static const uint64_t key = ROW;
    static const float one = 1;
    world_link(&w, from, to)->cut = true;
    for (unsigned i = 0; i < MANY; i++)
        for (unsigned client = 0; client < CLIENTS; client++)
            assert_int_equal(world_push(&w, client, 0, &key, 1, &one, 1, &pushes[client][i]), PARAMO_OK);
    world_pass(&w, 300 * ENV_MS);
}

static void server_gone(unsigned server)
{
    world_server_stop(&w, server);
    world_server_gone(&w, server);
}

/* Every push is acknowledged, except those of the clients below `first`. */
static void all_pushed(unsigned first)
{
    for (unsigned client = first; client < CLIENTS; client++)
        for (unsigned i = 0; i < MANY; i++)
            assert_int_equal(world_wait(&w, client, pushes[client][i]), PARAMO_OK);
    assert_int_equal(given_up, 0);
}

static float row_at(unsigned server)
{
    static const uint64_t key = ROW;
    float val = -1;
    assert_int_equal(
        table_get_rows(shard_table_find(w.servers[server].shard, 1)->table, &key, 1, false, &val), PARAMO_OK);
    return val;
}

/* Server 0's entries for server 1, which is dead, are on their way to server 2. */
static void routes_to_2(void)
{
    begin();
    push_many("s0", "s1");
    server_gone(1);
    next_view();
    world_pass(&w, 100 * ENV_MS);
    assert_true(chain_routes(chain_of(0)));
    assert_in_range(row_at(2), 1, ALL - 1); /* they leave before all are routed */
}

/* ---- a turn is short ---- */

static void turns_are_short(void **state)
{
    (void)state;
    uint64_t seen = 0;
    unsigned turns = 0;
    begin();
    push_many("s0", "s1");
    server_gone(1);
    next_view();
    do {
        uint64_t spent = chain_of(0)->records.spent;
        assert_in_range(spent - seen, 0, 4 * RECORDS_COST);
        turns += spent > seen;
        seen = spent;
        assert_false(chain_routes(chain_of(0)) && chain_open(w.servers[0].shard));
    } while (sim_step(w.sim) && chain_routes(chain_of(0)));
    assert_in_range(turns, ALL / 3, ALL);
    all_pushed(0);
    for (unsigned s = 0; s < 4; s++)
        assert_true(s == 1 || row_at(s) == ALL);
    world_fini(&w);
}

/* ---- in the middle ---- */

/* The next member dies, too: what it has got comes before the rest, so the last member drops none as old. */
static void next_dies_in_the_middle(void **state)
{
    (void)state;
    begin();
    world_link(&w, "s2", "s3")->cut = true; /* server 2 acknowledges nothing */
    push_many("s0", "s1");
    server_gone(1);
    next_view();
    world_pass(&w, 100 * ENV_MS);
    assert_true(chain_routes(chain_of(0)));
    assert_in_range(row_at(2), 1, ALL - 1);
    server_gone(2);
    next_view();
    assert_true(chain_routes(chain_of(0)));
    all_pushed(0);
    assert_true(row_at(0) == ALL && row_at(3) == ALL);
    world_fini(&w);
}

/* No member is left behind the owner: all are acknowledged. */
static void last_dies_in_the_middle(void **state)
{
    (void)state;
    routes_to_2();
    server_gone(2);
    server_gone(3);
    next_view();
    all_pushed(0);
    assert_true(row_at(0) == ALL);
    world_fini(&w);
}

/* The connection to the next member ends, and comes again. */
static void connection_ends_in_the_middle(void **state)
{
    (void)state;
    routes_to_2();
    world_link(&w, "s0", "s2")->cut = true;
    struct chain_stream *st = chain_of(0)->streams;
    while (st->to.node != PARAMO_ID_SERVER(2))
        st = st->next;
    world_on_lane(w.servers[0].lane, world_stream_ends, st);
    world_pass(&w, 600 * ENV_MS);
    assert_false(chain_routes(chain_of(0)));
    assert_true(row_at(2) < ALL);
    world_link(&w, "s0", "s2")->cut = false;
    all_pushed(0);
    assert_true(row_at(2) == ALL && row_at(3) == ALL);
    world_fini(&w);
}

/* A customer is closed: its floor comes after its changes. Those that it had are made, once. */
static void customer_closes_in_the_middle(void **state)
{
    (void)state;
    routes_to_2();
    world_client_close(&w, 0);
    world_pass(&w, 10 * ENV_MS);
    assert_true(chain_routes(chain_of(0)));
    all_pushed(1);
    world_pass(&w, 5 * ENV_SEC);
    assert_true(row_at(0) == ALL && row_at(2) == ALL && row_at(3) == ALL);
    world_client_open(&w, 0);
    push_many("s0", "s1"); /* which is dead */
    all_pushed(0);
    assert_true(row_at(0) == 2 * ALL && row_at(3) == 2 * ALL);
    world_fini(&w);
}

/* The owner ends: its successor gets again what it lacks, and makes nothing twice. */
static void owner_ends_in_the_middle(void **state)
{
    (void)state;
    routes_to_2();
    server_gone(0);
    next_view();
    all_pushed(0);
    assert_true(row_at(2) == ALL && row_at(3) == ALL);
    world_fini(&w);
}

/* The owner and the member after the next die together. The next is the owner: it says so after what it routes, and
 * serves when the last member has acknowledged that. */
static void promoted_in_the_middle(void **state)
{
    (void)state;
    begin();
    push_many("s1", "s2");
    server_gone(2);
    server_gone(0);
    next_view();
    world_pass(&w, 100 * ENV_MS);
    assert_true(chain_routes(chain_of(1)));
    assert_int_equal(chain_of(1)->streams->gate, 0);
    assert_false(chain_open(w.servers[1].shard));
    world_link(&w, "s3", "s1")->cut = true;
    world_pass(&w, 400 * ENV_MS);
    assert_false(records_pending(chain_of(1)));
    const struct chain_stream *st = chain_of(1)->streams;
    assert_int_equal(st->gate, st->seq);
    assert_true(st->acked < st->gate && !chain_open(w.servers[1].shard));
    world_link(&w, "s3", "s1")->cut = false;
    all_pushed(0);
    assert_true(row_at(1) == ALL && row_at(3) == ALL);
    server_gone(1);
    next_view();
    world_pass(&w, ENV_SEC);
    assert_true(row_at(3) == ALL);
    world_fini(&w);
}

/* A member leaves the chain, and dies in the middle: it has acknowledged to the member before none of what it has not
 * passed on. */
static void member_leaves_in_the_middle(void **state)
{
    (void)state;
    begin();
    push_many("s1", "s2");
    chain(0, 2, 3, RING_NONE);
    world_view(&w);
    world_server_view(&w, 1);
    world_pass(&w, 50 * ENV_MS);
    assert_true(row_at(2) == 0);
    world_server_stop(&w, 1);
    world_all_view(&w);
    all_pushed(0);
    assert_true(row_at(0) == ALL && row_at(2) == ALL && row_at(3) == ALL);
    world_fini(&w);
}

/* Server 3 becomes the owner of all, and one part of its takeover is not acknowledged: server 0 does not hear of it.
 * Server 1 becomes the owner of the other part, which is acknowledged. When server 1 routes what is left of the first
 * takeover, it has nothing of that part: server 2 would follow server 3 there again, and refuse what server 1 sends. */
static void a_takeover_does_not_come_back(void **state)
{
    (void)state;
    enum { HALF = RING_PARTITIONS / 2 };
    static const uint64_t key = ROW;
    static const float one = 1;
    uint64_t ts;
    begin();
    world_link(&w, "s2", "s0")->cut = true;
    chain_of_some(0, HALF, 3, 1, 2, RING_NONE);
    chain_of_some(HALF, RING_PARTITIONS, 3, 1, 2, 0);
    next_view();
    world_pass(&w, 100 * ENV_MS);
    chain_of_some(0, HALF, 1, 2, 3, RING_NONE);
    next_view();
    world_pass(&w, 100 * ENV_MS);
    const struct chain_stream *st = chain_of(1)->streams;
    while (st->to.node != PARAMO_ID_SERVER(2))
        st = st->next;
    const struct chain_entry *first = container_of(st->entries.head, const struct chain_entry, node);
    const struct chain_entry *second = container_of(st->entries.head->next, const struct chain_entry, node);
    assert_true(first->m.origin.node == PARAMO_ID_SERVER(3) && !first->acked);
    assert_true(second->m.origin.node == PARAMO_ID_SERVER(1) && second->acked);
    chain_of_some(HALF, RING_PARTITIONS, 3, 1, 0, RING_NONE);
    next_view();
    world_pass(&w, 100 * ENV_MS);
    assert_int_equal(world_push(&w, 0, 0, &key, 1, &one, 1, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    assert_true(row_at(1) == 1 && row_at(2) == 1 && row_at(3) == 1);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_short),
        cmocka_unit_test(next_dies_in_the_middle),
        cmocka_unit_test(last_dies_in_the_middle),
        cmocka_unit_test(connection_ends_in_the_middle),
        cmocka_unit_test(customer_closes_in_the_middle),
        cmocka_unit_test(owner_ends_in_the_middle),
        cmocka_unit_test(promoted_in_the_middle),
        cmocka_unit_test(member_leaves_in_the_middle),
        cmocka_unit_test(a_takeover_does_not_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
