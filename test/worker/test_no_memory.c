/* Memory fails where a chain cannot do without it: the shard says so, once, and serves no more. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "server/chained.h"
#include "worker/support_world.h"

/* The linker gives us each calloc of this program (CMakeLists.txt). */
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

static size_t lacking; /* what is so large is not to be had; on the one thread of a simulation */

void *__wrap_calloc(size_t count, size_t size)
{
    return lacking && size == lacking ? NULL : __real_calloc(count, size);
}

struct told {
    unsigned times;
    paramo_err status;
    char text[512];
};

static void told(void *arg, paramo_err status)
{
    struct told *t = arg;
    t->times++;
    t->status = status;
    (void)strncpy(t->text, err_text(), sizeof t->text - 1);
}

static void follower_is(struct world *w, unsigned follower)
{
    for (unsigned a = 0; a < RING_ARCS; a++)
        if (w->ring.owner[a] == 0)
            w->follower[1].owner[a] = (uint16_t)follower;
    for (unsigned i = 0; i < 4; i++)
        w->chain_changed[i] = w->number + 1;
    world_view(w);
}

/* Server 0 has no memory for the connection to its new follower. */
static void no_memory_for_a_stream(void **state)
{
    (void)state;
    struct world w;
    struct told t = {0};
    const uint64_t keys[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    enum { N = sizeof keys / sizeof *keys };
    const float vals[N] = {0};
    uint64_t ts;
    world_init(&w, true, 1);
    w.replicas = 1;
    w.failed = told;
    w.handler_arg = &t;
    w.timeout_ms = 2000;
    world_table(&w, PARAMO_TABLE_SPARSE, 1);
    world_start(&w, 4, 3, 1);
    assert_int_equal(world_push(&w, 0, 0, keys, N, vals, N, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    assert_int_equal(t.times, 0);

    follower_is(&w, 3);
    lacking = sizeof(struct chain_stream);
    world_server_view(&w, 0);
    lacking = 0;
    assert_int_equal(t.times, 1);
    assert_int_equal(t.status, PARAMO_E_MEMORY);
    assert_non_null(strstr(t.text, "no memory for what its chains must have"));
    world_all_view(&w);

    /* Not answered, whatever the next view says: others may not have it. */
    assert_int_equal(world_push(&w, 0, 0, keys, N, vals, N, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_TIMEOUT);
    follower_is(&w, 1);
    world_all_view(&w);
    assert_int_equal(t.times, 1);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_memory_for_a_stream)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
