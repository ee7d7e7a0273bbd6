/* Answers with lengths of one request are copied to their places in turns, and what comes in the middle of that: other
 * requests, a deadline, the end of the worker, too little room. */
#include "unit.h"
#include "worker/gather.h"

#include <string.h>

#include "worker/support_world.h"

/* Of each request. LONG: values of the longest row. A turn is TURN units (gather.c); one comes each millisecond. */
enum { N = 3000, LONG = 20000, TURN = 50, SLOTS = 20 * N + LONG };

static struct world w;
static uint64_t keys[N];
static uint32_t lens[N], got_lens[2][N];
static float vals[SLOTS], got[2][SLOTS];
static size_t total;

static uint64_t issued(enum request_kind kind, unsigned slot, size_t room, uint32_t timeout_ms)
{
    bool push = kind == REQUEST_PUSH;
    uint64_t ts;
    paramo_request_options options = {.size = sizeof options, .timeout_ms = timeout_ms};
    paramo_kv kv = {.size = sizeof kv,
                    .keys = keys,
                    .n = N,
                    .vals = push ? vals : got[slot],
                    .vals_len = room,
                    .lens = push ? lens : got_lens[slot]};
    struct client_call call = {.kind = kind, .table = &w.tables[0], .kv = &kv, .options = &options};
    memset(got[slot], 0, sizeof got[slot]);
    assert_int_equal(client_issue(w.clients[0].client, &call, &ts), PARAMO_OK);
    return ts;
}

static void begin(void)
{
    memset(&w, 0, sizeof w);
    world_init(&w, true, 5);
    w.timeout_ms = 60000;
    w.turn_keys = TURN;
    w.portion_keys = 500; /* a chunk stands for the rest of the keys until they are sliced */
    world_table(&w, PARAMO_TABLE_VAR, 1);
    world_start(&w, 3, 3, 1);
    world_pass(&w, ENV_SEC);
    total = 0;
    for (uint32_t i = 0; i < N; i++) {
        keys[i] = i * UINT64_C(1000003);
        lens[i] = i == N / 2 ? LONG : i % 20;
        for (uint32_t k = 0; k < lens[i]; k++)
            vals[total++] = (float)(i + k);
    }
    assert_int_equal(world_wait(&w, 0, issued(REQUEST_PUSH, 0, total, 0)), PARAMO_OK);
}

static const struct client_gathers *gathers(void)
{
    return w.clients[0].client->gathers;
}

static bool over(uint64_t ts)
{
    int done;
    assert_int_equal(client_test(w.clients[0].client, ts, &done), PARAMO_OK);
    return done;
}

static void check(unsigned slot)
{
    assert_memory_equal(lens, got_lens[slot], sizeof lens);
    assert_memory_equal(vals, got[slot], total * sizeof vals[0]);
}

static void until_spent(uint64_t units)
{
    while (gathers()->spent < units)
        assert_true(sim_step(w.sim));
    assert_non_null(gathers()->first);
}

static void turns_are_short(void **state)
{
    (void)state;
    uint64_t seen = 0;
    unsigned turns = 0;
    begin();
    uint64_t ts = issued(REQUEST_PULL, 0, SLOTS, 0);
    while (!over(ts)) {
        assert_true(sim_step(w.sim));
        assert_in_range(gathers()->spent - seen, 0, TURN + 1);
        turns += gathers()->spent > seen;
        seen = gathers()->spent;
    }
    assert_in_range(seen, 3 * N, 4 * N + SLOTS / 16); /* each key three times, and the long row */
    assert_true(turns >= 3 * N / TURN);
    check(0);
    assert_int_equal(w.clients[0].client->pool.out, 0);
    world_fini(&w);
}

/* Two requests take turns, and a small one is done before them. */
static void others_in_the_middle(void **state)
{
    (void)state;
    begin();
    uint64_t first = issued(REQUEST_PULL, 0, SLOTS, 0), second, small;
    until_spent(N);
    second = issued(REQUEST_PULL, 1, SLOTS, 0);
    paramo_kv kv = {.size = sizeof kv,
                    .keys = keys,
                    .n = 2,
                    .vals = (float[8]){0},
                    .vals_len = 8,
                    .lens = (uint32_t[2]){0}};
    struct client_call call = {.kind = REQUEST_PULL, .table = &w.tables[0], .kv = &kv};
    assert_int_equal(client_issue(w.clients[0].client, &call, &small), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, small), PARAMO_OK);
    assert_true(kv.lens[1] == 1 && *(const float *)kv.vals == 1);
    assert_false(over(first) || over(second));
    assert_int_equal(world_wait(&w, 0, second), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, first), PARAMO_OK);
    check(0);
    check(1);
    world_fini(&w);
}

static void deadline_in_the_middle(void **state)
{
    (void)state;
    begin();
    uint64_t late = issued(REQUEST_PULL, 0, SLOTS, 150), other = issued(REQUEST_PULL, 1, SLOTS, 0);
    until_spent(N);
    assert_int_equal(world_wait(&w, 0, late), PARAMO_E_TIMEOUT);
    assert_false(over(other));
    assert_int_equal(world_wait(&w, 0, other), PARAMO_OK);
    check(1);
    assert_int_equal(w.clients[0].client->pool.out, 0);
    world_fini(&w);
}

static void closed_in_the_middle(void **state)
{
    (void)state;
    begin();
    (void)issued(REQUEST_PULL, 0, SLOTS, 0);
    (void)issued(REQUEST_PULL, 1, SLOTS, 0);
    until_spent(N);
    world_client_close(&w, 0);
    world_fini(&w);
}

/* That is known in the middle. */
static void too_little_room(void **state)
{
    (void)state;
    begin();
    uint64_t ts = issued(REQUEST_PULL, 0, total - 1, 0), other = issued(REQUEST_PULL, 1, SLOTS, 0);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(world_wait(&w, 0, other), PARAMO_OK);
    check(1);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_short),        cmocka_unit_test(others_in_the_middle),
        cmocka_unit_test(deadline_in_the_middle), cmocka_unit_test(closed_in_the_middle),
        cmocka_unit_test(too_little_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
