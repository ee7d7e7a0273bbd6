/* A request with PARAMO_COPY of many bytes: they are copied before the lane is entered, and freed in turns. */
#include "unit.h"
#include "worker/client_impl.h"

#include <stdlib.h>
#include <string.h>

#include "worker/support_world.h"

/* The linker gives us what this program asks for memory (CMakeLists.txt). */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

enum { N = 4 << 20, COPY = 12 * N }; /* keys, and a float of each */

static struct world w;
static unsigned copies, on_lane; /* blocks of that size; those that were asked for on a lane */

void *__wrap_malloc(size_t size)
{
    copies += size == COPY;
    on_lane += size == COPY && lane_inside();
    return __real_malloc(size);
}

static void a_copy(void **state)
{
    (void)state;
    memset(&w, 0, sizeof w);
    world_init(&w, true, 5);
    w.timeout_ms = 60000;
    world_table(&w, PARAMO_TABLE_SPARSE, 1);
    world_start(&w, 1, 1, 1);
    world_pass(&w, ENV_SEC);
    struct client *c = w.clients[0].client;
    uint64_t *keys = malloc(N * sizeof *keys), ts;
    float *vals = calloc(N, sizeof *vals);
    assert_true(keys && vals);
    for (uint64_t i = 0; i < N; i++)
        keys[i] = i;
    world_link(&w, "w0", "s0")->cut = true;
    paramo_request_options options = {.size = sizeof options, .flags = PARAMO_COPY};
    paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = N, .vals = vals, .vals_len = N};
    struct client_call call = {.kind = REQUEST_PUSH, .table = &w.tables[0], .kv = &kv, .options = &options};
    assert_int_equal(client_issue(c, &call, &ts), PARAMO_OK);
    free(keys);
    free(vals);
    assert_int_equal(copies, 1);
    assert_int_equal(on_lane, 0);
    /* The request ends: each step frees no more than a turn may. */
    assert_int_equal(client_cancel(c, ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_CANCELLED);
    size_t left = 0, turns = 0;
    for (const struct bufpool_late *late = c->pool.late; late; late = late->next)
        left += late->bytes;
    assert_true(left > COPY - 2 * BUFPOOL_LATE_BYTES);
    while (c->pool.late) {
        size_t before = left;
        assert_true(sim_step(w.sim));
        left = 0;
        for (const struct bufpool_late *late = c->pool.late; late; late = late->next)
            left += late->bytes;
        assert_in_range(before - left, 0, BUFPOOL_LATE_BYTES + BUFPOOL_LATE_MIN);
        turns += left < before;
    }
    assert_in_range(turns, COPY / BUFPOOL_LATE_BYTES - 2, COPY / BUFPOOL_LATE_BYTES + 1);
    assert_int_equal(atomic_load(&c->shared->copied), 0);
    world_link(&w, "w0", "s0")->cut = false;
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_copy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
