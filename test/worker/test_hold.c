/* HOLD where there are copies: it is done when those after have all that was done here, and not before. (On
 * one shard: test/server/test_loading.c.) */
#include "server/snapshot/loading.h"
#include "server/snapshot/saving.h"
#include "unit.h"

#include <string.h>

#include "worker/support_world.h"

enum { N = 64, LATE_MS = 300 /* less than a lease */ };

struct held {
    struct world w;
    bool done;
    paramo_err begun, status;
};

static void told(void *arg, paramo_err status, const struct ckpt_file *file)
{
    struct held *h = arg;
    (void)file;
    assert_false(h->done);
    h->done = true;
    h->status = status;
}

static void begin(void *arg)
{
    struct held *h = arg;
    struct shard_save_config config = {.number = 1, .id = 9, .hold_ms = 10000, .arg = h, .done = told};
    h->begun = shard_load_hold(h->w.servers[0].shard, &config);
}

static void go(void *arg)
{
    assert_int_equal(shard_load_go(((struct held *)arg)->w.servers[0].shard, 9, 0), PARAMO_OK);
}

static bool is_done(void *arg)
{
    return ((struct held *)arg)->done;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void pass(struct held *h, uint64_t ns)
{
    (void)sim_run(h->w.sim, never, NULL, sim_now(h->w.sim) + ns);
}

static void waits_for_those_behind(void **state)
{
    (void)state;
    struct held h;
    struct simnet_node *behind, *here;
    struct simnet_link *acks;
    uint64_t keys[N], first, second;
    float vals[N];
    int done;
    memset(&h, 0, sizeof h);
    for (unsigned i = 0; i < N; i++) {
        keys[i] = i + 1;
        vals[i] = 1;
    }
    world_init(&h.w, true, 1);
    h.w.replicas = 1;
    world_table(&h.w, PARAMO_TABLE_SPARSE, 1);
    world_start(&h.w, 2, 2, 1);
    pass(&h, ENV_SEC); /* the leases are there */
    assert_int_equal(simnet_node(h.w.net, "s1", &behind), PARAMO_OK);
    assert_int_equal(simnet_node(h.w.net, "s0", &here), PARAMO_OK);
    assert_int_equal(simnet_link(h.w.net, behind, here, &acks), PARAMO_OK);
    acks->late_ppm = 1000000;
    acks->late_ns = LATE_MS * ENV_MS;

    assert_int_equal(world_push(&h.w, 0, 0, keys, N, vals, N, &first), PARAMO_OK);
    pass(&h, 10 * ENV_MS); /* it is done here, and on its way to the other */
    world_on_lane(h.w.servers[0].lane, begin, &h);
    assert_int_equal(h.begun, PARAMO_OK);
    assert_false(h.done);
    assert_true(sim_run(h.w.sim, is_done, &h, sim_now(h.w.sim) + 3 * LATE_MS * ENV_MS));
    assert_int_equal(h.status, PARAMO_OK);
    acks->late_ppm = 0;
    assert_int_equal(world_wait(&h.w, 0, first), PARAMO_OK); /* that was before */

    assert_int_equal(world_push(&h.w, 0, 0, keys, N, vals, N, &second), PARAMO_OK);
    pass(&h, ENV_SEC);
    assert_int_equal(client_test(h.w.clients[0].client, second, &done), PARAMO_OK);
    assert_false(done);
    world_on_lane(h.w.servers[0].lane, go, &h);
    assert_int_equal(world_wait(&h.w, 0, second), PARAMO_OK);
    world_fini(&h.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(waits_for_those_behind)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
