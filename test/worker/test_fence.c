/* Fences: each passes when the requests before it have ended, and not before; those after it do not matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/client_impl.h"
#include "worker/fence.h"
#include "worker/support_world.h"

enum { LATE_MS = 20 };

struct gate {
    struct client_fence fence;
    unsigned passed;
};

static void passed(struct client_fence *fence)
{
    container_of(fence, struct gate, fence)->passed++;
}

static void put_up(struct world *w, struct gate *gate)
{
    *gate = (struct gate){.fence.passed = passed};
    client_fence(w->clients[0].client, &gate->fence);
}

static void begin(struct world *w)
{
    world_init(w, true, 7);
    world_table(w, PARAMO_TABLE_SPARSE, 1);
    world_start(w, 1, 1, 1);
}

static uint64_t push(struct world *w)
{
    static const uint64_t key = 5;
    static const float one = 1;
    uint64_t ts;
    assert_int_equal(world_push(w, 0, 0, &key, 1, &one, 1, &ts), PARAMO_OK);
    return ts;
}

static void test_order(void **state)
{
    (void)state;
    struct world w;
    struct gate none, first, second, third;
    begin(&w);
    put_up(&w, &none); /* nothing is before it */
    assert_int_equal(none.passed, 1);
    assert_int_equal(world_wait(&w, 0, push(&w)), PARAMO_OK);
    struct simnet_link *answers = world_link(&w, "s0", "w0");
    answers->late_ppm = 1000000;
    answers->late_ns = LATE_MS * ENV_MS;
    uint64_t before = push(&w);
    put_up(&w, &first);
    uint64_t between = push(&w);
    put_up(&w, &second);
    put_up(&w, &third);
    assert_int_equal(first.passed + second.passed + third.passed, 0);
    assert_int_equal(world_wait(&w, 0, before), PARAMO_OK);
    assert_int_equal(first.passed, 1);
    assert_int_equal(world_wait(&w, 0, between), PARAMO_OK);
    assert_int_equal(second.passed, 1);
    assert_int_equal(third.passed, 1);
    assert_null(w.clients[0].client->fences);
    world_fini(&w);
}

/* Requests that fail, too, are over: one that is cancelled, and all when the client is closed. */
static void test_failures(void **state)
{
    (void)state;
    struct world w;
    struct gate gate, last;
    begin(&w);
    struct simnet_link *answers = world_link(&w, "s0", "w0");
    answers->late_ppm = 1000000;
    answers->late_ns = LATE_MS * ENV_MS;
    uint64_t ts = push(&w);
    put_up(&w, &gate);
    assert_int_equal(gate.passed, 0);
    assert_int_equal(client_cancel(w.clients[0].client, ts), PARAMO_OK);
    assert_int_equal(gate.passed, 1);
    (void)push(&w);
    put_up(&w, &last);
    assert_int_equal(last.passed, 0);
    world_client_close(&w, 0);
    assert_int_equal(last.passed, 1);
    world_client_open(&w, 0);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
