/* A shard that cannot go on ends its node, and those who have copies take over. */
#include "unit.h"

#include <string.h>

#include "node/node.h"
#include "server/chained.h"
#include "support_cluster.h"

enum { KEYS = 1000 };

static void with_copies(paramo_config *config)
{
    config->replicas = 1;
}

static void give_up(void *shard)
{
    chain_fail(((struct shard *)shard)->chain);
}

static void its_replicas_take_over(void **state)
{
    (void)state;
    struct cluster c;
    paramo_worker *w = NULL;
    paramo_table *t = NULL;
    paramo_table_options o;
    uint64_t keys[KEYS], ts;
    float vals[KEYS];
    cluster_start_with(&c, 2, 1, with_copies);
    assert_int_equal(paramo_worker_open(c.workers[0].node, 0, &w), PARAMO_OK);
    paramo_table_options_init(&o);
    assert_int_equal(paramo_table_open(w, "t", &o, &t), PARAMO_OK);
    for (unsigned i = 0; i < KEYS; i++) {
        keys[i] = i;
        vals[i] = 1;
    }
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = keys;
    kv.vals = vals;
    kv.n = kv.vals_len = KEYS;
    assert_int_equal(paramo_push(w, t, &kv, NULL, &ts), PARAMO_OK);
    assert_int_equal(paramo_wait(w, ts, 0), PARAMO_OK);

    struct seat_shard *its = &c.servers[1].node->own->shards[0];
    assert_int_equal(node_run_on(its->lane, give_up, its->shard), PARAMO_OK);
    assert_int_equal(paramo_stop(c.servers[1].node), PARAMO_E_MEMORY); /* by itself */
    assert_non_null(strstr(paramo_last_error(), "no memory for what its chains must have"));

    assert_int_equal(paramo_push(w, t, &kv, NULL, &ts), PARAMO_OK);
    assert_int_equal(paramo_wait(w, ts, 0), PARAMO_OK);
    assert_int_equal(paramo_pull(w, t, &kv, NULL, &ts), PARAMO_OK);
    assert_int_equal(paramo_wait(w, ts, 0), PARAMO_OK);
    for (unsigned i = 0; i < KEYS; i++)
        assert_true(vals[i] == 2);
    paramo_table_close(t);
    paramo_worker_close(w);
    c.servers_count = 1;
    cluster_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(its_replicas_take_over)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
