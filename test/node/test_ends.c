/* How a server ends: by itself, when a shard cannot go on, and when it is to be drained and the job is over.
 */
#include "unit.h"

#include <stdatomic.h>
#include <string.h>

#include "base/log.h"
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
    chain_fail(((struct shard *)shard)->chain, err_memory(4711));
}

/* A shard that cannot go on ends its node, and those who have copies take over. */
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
    assert_non_null(
        strstr(paramo_last_error(), "cannot go on with its chains: out of memory (4711 bytes wanted)"));

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

static atomic_uint said;

static void hear(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    if (strstr(line, "leaves with what it has"))
        atomic_fetch_add(&said, 1);
}

static bool has_ended(void *arg)
{
    return atomic_load(&((struct seat *)arg)->state) == SEAT_ENDED;
}

static void *stop(void *arg)
{
    struct cluster_node *n = arg;
    n->stopped = paramo_stop(n->node);
    return NULL;
}

/* SIGTERM as the job ends: there is nobody to give anything to, and nothing to say of that. */
static void a_drain_when_the_job_is_over(void **state)
{
    (void)state;
    struct cluster c;
    log_set_sink(hear, NULL);
    cluster_start(&c, 1, 1, NULL);
    paramo_node *server = c.servers[0].node;
    assert_int_equal(pthread_create(&c.scheduler.thread, NULL, stop, &c.scheduler), 0);
    assert_int_equal(paramo_stop(c.workers[0].node), PARAMO_OK);
    assert_int_equal(lane_wait(server->control, has_ended, server->own, UINT64_MAX), PARAMO_OK);
    paramo_drain(server);
    assert_int_equal(paramo_stop(server), PARAMO_OK);
    assert_int_equal(pthread_join(c.scheduler.thread, NULL), 0);
    assert_int_equal(c.scheduler.stopped, PARAMO_OK);
    assert_int_equal(atomic_load(&said), 0);
    log_set_sink(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_replicas_take_over),
        cmocka_unit_test(a_drain_when_the_job_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
