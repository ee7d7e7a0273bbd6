/* What waited for a server that is gone is sliced again in turns, and what comes in the middle of it: later requests,
 * views, a deadline, the end of the customer. The test is the scheduler. */
#include "server/shard/shard_tables.h"
#include "table/table.h"
#include "unit.h"
#include "worker/chunk.h"

#include <string.h>

#include "worker/client_impl.h"
#include "worker/requests.h"
#include "worker/support_world.h"

/* Row i lies on partition i. A turn slices one request, and the next comes a millisecond later. */
enum { ROWS = RING_PARTITIONS, MANY = 200, ROW = 7 };

static struct world w;
static uint64_t pushes[MANY];

/* All partitions have this chain in the next view. */
static void chain(uint16_t owner, uint16_t next, uint16_t third)
{
    for (unsigned a = 0; a < RING_PARTITIONS; a++) {
        w.ring.owner[a] = owner;
        w.follower[1].owner[a] = next;
        w.follower[2].owner[a] = third;
    }
    for (unsigned s = 0; s < w.servers_count; s++)
        w.partitions_changed[s] = w.chain_changed[s] = w.number + 1;
}

static void next_view(void)
{
    world_view(&w);
    world_all_view(&w);
}

static void begin(uint32_t timeout_ms)
{
    memset(&w, 0, sizeof w);
    world_init(&w, true, 5);
    w.replicas = 2;
    w.migrations = true;
    w.timeout_ms = timeout_ms;
    w.turn_keys = 1;
    world_table(&w, PARAMO_TABLE_DENSE, 1)->rows = ROWS;
    world_start(&w, 3, 3, 2);
    world_pass(&w, ENV_SEC);
    chain(0, 1, 2);
    next_view();
    world_pass(&w, ENV_SEC);
}

static void push(unsigned client, uint64_t *ts)
{
    static const uint64_t key = ROW;
    static const float one = 1;
    assert_int_equal(world_push(&w, client, 0, &key, 1, &one, 1, ts), PARAMO_OK);
}

static const struct client *client(void)
{
    return w.clients[0].client;
}

static unsigned waiting(void)
{
    unsigned n = 0;
    for (const struct chunk *chunk = client()->waiters->first; chunk; chunk = chunk->wait_next)
        n++;
    return n;
}

/* Those that have a number come first, by their numbers: what the connection had no room for has none. */
static void check_order(void)
{
    uint64_t number = 0;
    for (const struct chunk *chunk = client()->waiters->first; chunk; chunk = chunk->wait_next) {
        uint64_t next = chunk->number ? chunk->number : UINT64_MAX;
        assert_true(next > number || next == UINT64_MAX);
        number = next;
    }
}

static void server_gone(unsigned server)
{
    world_server_stop(&w, server);
    world_server_gone(&w, server);
}

/* The client has pushed to the owner, which is gone without an answer. A view says so: some are sliced again. */
static void owner_gone(void)
{
    world_link(&w, "s0", "w0")->cut = true;
    for (unsigned i = 0; i < MANY; i++)
        push(0, &pushes[i]);
    world_pass(&w, 50 * ENV_MS); /* they are made */
    server_gone(0);
    next_view();
    world_pass(&w, 20 * ENV_MS);
    assert_in_range(waiting(), MANY / 2, MANY - 2);
}

static void all_pushed(void)
{
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(world_wait(&w, 0, pushes[i]), PARAMO_OK);
    assert_int_equal(waiting(), 0);
    assert_null(client()->waiters->resume_at);
}

static float row_at(unsigned server)
{
    static const uint64_t key = ROW;
    float val = -1;
    assert_int_equal(
        table_get_rows(shard_table_find(w.servers[server].shard, 1)->table, &key, 1, false, &val), PARAMO_OK);
    return val;
}

/* No step slices more than a turn; each push is made once. */
static void turns_are_short(void **state)
{
    (void)state;
    begin(60000);
    owner_gone();
    unsigned before = waiting(), turns = 0;
    while (waiting()) {
        assert_true(sim_step(w.sim));
        assert_in_range(before - waiting(), 0, 1);
        turns += before > waiting();
        before = waiting();
    }
    assert_true(turns >= MANY / 2);
    all_pushed();
    assert_true(row_at(1) == MANY && row_at(2) == MANY);
    world_fini(&w);
}

/* In order: those that have a number by their numbers, and a pull that comes later after all. */
static void later_requests_wait(void **state)
{
    (void)state;
    static const uint64_t key = ROW;
    begin(60000);
    owner_gone();
    uint64_t ts, last;
    check_order();
    float val = 0;
    assert_int_equal(world_pull(&w, 0, 0, &key, 1, &val, 1, &ts), PARAMO_OK);
    push(0, &last);
    assert_ptr_equal(client()->waiters->last->request, client()->requests->last);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    assert_true(val == MANY);
    assert_int_equal(world_wait(&w, 0, last), PARAMO_OK);
    all_pushed();
    assert_true(row_at(1) == MANY + 1 && row_at(2) == MANY + 1);
    world_fini(&w);
}

/* The new owner dies, too: those that it had got come before the others, by their numbers. */
static void a_view_in_the_middle(void **state)
{
    (void)state;
    begin(60000);
    owner_gone();
    world_link(&w, "s1", "w0")->cut = true;
    world_pass(&w, 20 * ENV_MS);
    unsigned before = waiting();
    server_gone(1);
    next_view();
    assert_true(waiting() > before);
    assert_true(client()->waiters->first->number);
    check_order();
    all_pushed();
    assert_true(row_at(2) == MANY);
    world_fini(&w);
}

/* A deadline passes: the others continue. */
static void deadlines_in_the_middle(void **state)
{
    (void)state;
    begin(160);
    owner_gone();
    unsigned made = 0, late = 0;
    for (unsigned i = 0; i < MANY; i++) {
        paramo_err err = world_wait(&w, 0, pushes[i]);
        assert_true(err == PARAMO_OK || err == PARAMO_E_TIMEOUT);
        *(err ? &late : &made) += 1;
    }
    assert_true(late > 0);
    assert_int_equal(waiting(), 0);
    world_pass(&w, ENV_SEC);
    float row = row_at(1); /* the first owner may have made those that are late */
    assert_true(row >= (float)made && row <= MANY);
    push(0, &pushes[0]);
    assert_int_equal(world_wait(&w, 0, pushes[0]), PARAMO_OK);
    assert_true(row_at(1) == row + 1 && row_at(2) == row + 1);
    world_fini(&w);
}

/* The customer is closed, and opened again. */
static void closed_in_the_middle(void **state)
{
    (void)state;
    begin(60000);
    owner_gone();
    world_client_close(&w, 0);
    world_pass(&w, ENV_SEC);
    float row = row_at(1);
    world_client_open(&w, 0);
    push(0, &pushes[0]);
    assert_int_equal(world_wait(&w, 0, pushes[0]), PARAMO_OK);
    push(1, &pushes[1]);
    assert_int_equal(world_wait(&w, 1, pushes[1]), PARAMO_OK);
    assert_true(row_at(1) == row + 2 && row_at(2) == row + 2);
    world_fini(&w);
}

/* Counts of rows begin again as a whole. */
static void counts_in_the_middle(void **state)
{
    (void)state;
    begin(60000);
    uint64_t ts, pushed;
    struct client_stats stats;
    push(0, &pushed);
    assert_int_equal(world_wait(&w, 0, pushed), PARAMO_OK);
    world_link(&w, "w0", "s0")->cut = true;
    for (unsigned i = 0; i < MANY; i++)
        push(0, &pushes[i]);
    struct client_call call = {.kind = REQUEST_STAT, .table = &w.tables[0], .stats = &stats};
    assert_int_equal(client_issue(w.clients[0].client, &call, &ts), PARAMO_OK);
    server_gone(0);
    next_view();
    assert_in_range(waiting(), MANY - 2, MANY + 1);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    assert_int_equal(stats.nonzero, 1);
    assert_int_equal(stats.pushes, MANY); /* those that the follower has made as the owner */
    all_pushed();
    assert_true(row_at(2) == MANY + 1);
    world_fini(&w);
}

/* ---- a request of many keys ---- */

enum { KEYS = 300, PORTION = 7 };

static uint64_t keys[KEYS];
static float ones[KEYS], read[KEYS];
static uint32_t lens[KEYS];

static void begin_portions(paramo_table_kind kind, uint32_t timeout_ms)
{
    memset(&w, 0, sizeof w);
    world_init(&w, true, 5);
    w.replicas = 2;
    w.migrations = true;
    w.timeout_ms = timeout_ms;
    w.turn_keys = 1;
    w.portion_keys = PORTION;
    world_table(&w, kind, 1);
    world_start(&w, 3, 3, 2);
    world_pass(&w, ENV_SEC);
    for (unsigned i = 0; i < KEYS; i++) {
        keys[i] = 5 * i;
        ones[i] = (float)(1 + i);
        lens[i] = 1;
    }
}

static uint64_t issue(enum request_kind kind, paramo_table_kind table)
{
    uint64_t ts;
    paramo_kv kv = {.size = sizeof kv,
                    .keys = keys,
                    .n = KEYS,
                    .vals = kind == REQUEST_PUSH ? ones : read,
                    .vals_len = KEYS,
                    .lens = table == PARAMO_TABLE_VAR ? lens : NULL};
    struct client_call call = {.kind = kind, .table = &w.tables[0], .kv = &kv};
    memset(read, 0, sizeof read);
    assert_int_equal(client_issue(w.clients[0].client, &call, &ts), PARAMO_OK);
    return ts;
}

static void all_read(unsigned times)
{
    for (unsigned i = 0; i < KEYS; i++)
        assert_true(read[i] == (float)(times * (1 + i)));
    assert_int_equal(waiting(), 0);
    assert_int_equal(client()->pool.out, 0);
}

/* No step slices more than a portion; a pull that comes in the middle reads all; values come to their places. */
static void many_keys_in_turns(void **state)
{
    (void)state;
    for (unsigned var = 0; var < 2; var++) {
        paramo_table_kind kind = var ? PARAMO_TABLE_VAR : PARAMO_TABLE_SPARSE;
        begin_portions(kind, 60000);
        uint64_t push_ts = issue(REQUEST_PUSH, kind);
        const struct request *r = client()->requests->first;
        size_t before = r->sliced;
        assert_int_equal(before, PORTION); /* the first turn is at once */
        uint64_t pull_ts = issue(REQUEST_PULL, kind);
        assert_int_equal(waiting(), 2);
        while (client()->waiters->first && client()->waiters->first->request == r) {
            assert_in_range(r->sliced - before, 0, PORTION);
            before = r->sliced;
            assert_true(sim_step(w.sim));
        }
        assert_int_equal(world_wait(&w, 0, push_ts), PARAMO_OK);
        assert_int_equal(world_wait(&w, 0, pull_ts), PARAMO_OK);
        all_read(1);
        world_fini(&w);
    }
}

/* An owner dies in the middle: the rest is sliced by the new view, and nothing is made twice. */
static void a_view_in_the_middle_of_a_request(void **state)
{
    (void)state;
    begin_portions(PARAMO_TABLE_SPARSE, 60000);
    uint64_t ts = issue(REQUEST_PUSH, PARAMO_TABLE_SPARSE);
    world_pass(&w, 10 * ENV_MS);
    assert_int_equal(waiting(), 1);
    server_gone(0);
    next_view();
    assert_true(waiting() > 1 || client()->waiters->first->rest);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, issue(REQUEST_PULL, PARAMO_TABLE_SPARSE)), PARAMO_OK);
    all_read(1);
    world_fini(&w);
}

/* Partitions have no owner for a while: the rest waits for a view in which they have one. */
static void no_owner_in_the_middle_of_a_request(void **state)
{
    (void)state;
    begin_portions(PARAMO_TABLE_SPARSE, 60000);
    struct ring ring = w.ring;
    uint64_t ts = issue(REQUEST_PUSH, PARAMO_TABLE_SPARSE);
    world_pass(&w, 10 * ENV_MS);
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        w.ring.owner[a] = a % 2 ? RING_NONE : ring.owner[a];
    world_view(&w);
    world_client_view(&w, 0);
    world_pass(&w, 100 * ENV_MS);
    assert_true(waiting() > 0);
    w.ring = ring;
    next_view();
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, issue(REQUEST_PULL, PARAMO_TABLE_SPARSE)), PARAMO_OK);
    all_read(1);
    world_fini(&w);
}

/* The deadline passes: nothing of the request is left, and later ones continue. */
static void a_deadline_in_the_middle_of_a_request(void **state)
{
    (void)state;
    begin_portions(PARAMO_TABLE_SPARSE, 20);
    uint64_t late = issue(REQUEST_PUSH, PARAMO_TABLE_SPARSE);
    assert_int_equal(world_wait(&w, 0, late), PARAMO_E_TIMEOUT);
    assert_int_equal(waiting(), 0);
    assert_null(client()->waiters->resume_at);
    assert_int_equal(client()->pool.out, 0);
    float one = 1;
    uint64_t ts;
    assert_int_equal(world_push(&w, 0, 0, keys, 1, &one, 1, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    world_fini(&w);
}

/* The customer is closed. */
static void closed_in_the_middle_of_a_request(void **state)
{
    (void)state;
    begin_portions(PARAMO_TABLE_SPARSE, 60000);
    (void)issue(REQUEST_PUSH, PARAMO_TABLE_SPARSE);
    (void)issue(REQUEST_PULL, PARAMO_TABLE_SPARSE);
    world_pass(&w, 5 * ENV_MS);
    assert_int_equal(waiting(), 2);
    world_client_close(&w, 0);
    world_pass(&w, ENV_SEC);
    world_client_open(&w, 0);
    assert_int_equal(world_wait(&w, 0, issue(REQUEST_PUSH, PARAMO_TABLE_SPARSE)), PARAMO_OK);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_short),
        cmocka_unit_test(later_requests_wait),
        cmocka_unit_test(a_view_in_the_middle),
        cmocka_unit_test(deadlines_in_the_middle),
        cmocka_unit_test(closed_in_the_middle),
        cmocka_unit_test(counts_in_the_middle),
        cmocka_unit_test(many_keys_in_turns),
        cmocka_unit_test(a_view_in_the_middle_of_a_request),
        cmocka_unit_test(no_owner_in_the_middle_of_a_request),
        cmocka_unit_test(a_deadline_in_the_middle_of_a_request),
        cmocka_unit_test(closed_in_the_middle_of_a_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
