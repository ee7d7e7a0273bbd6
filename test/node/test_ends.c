/* How a server ends: by itself, when a shard cannot continue, and when it is being drained and the job ends.
 */
#include "server/replication/chain_impl.h"
#include "server/replication/gate.h"
#include "unit.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "node/node.h"
#include "paramo/app.h"
#include "support_cluster.h"

enum { KEYS = 1000, NOBODYS = 77 };

static void with_copies(paramo_config *config)
{
    config->replicas = 1;
}

static bool has_ended(void *arg)
{
    return atomic_load(&((struct member_slot *)arg)->state) == MEMBER_SLOT_ENDED;
}

static void give_up(void *shard)
{
    chain_fail(((struct shard *)shard)->chain, err_memory(4711));
}

/* A shard that cannot continue ends its node, and the servers with copies take over. */
static void its_replicas_are_promoted(void **state)
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

    struct node_shard *its = &c.servers[1].node->own->shards[0];
    assert_int_equal(node_run_on(its->lane, give_up, its->shard), PARAMO_OK);
    paramo_node *ended = c.servers[1].node;
    assert_int_equal(lane_wait(ended->control, has_ended, ended->own, UINT64_MAX), PARAMO_OK);
    assert_int_equal(paramo_job_status(ended), PARAMO_E_MEMORY);
    assert_non_null(strstr(paramo_last_error(), "cannot continue its chains"));
    assert_int_equal(paramo_job_status(c.servers[0].node), PARAMO_OK);
    assert_int_equal(paramo_stop(ended), PARAMO_E_MEMORY); /* by itself */
    assert_non_null(
        strstr(paramo_last_error(), "cannot continue its chains: out of memory (4711 bytes requested)"));

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
    if (strstr(line, "leaves without draining"))
        atomic_fetch_add(&said, 1);
}

static void *stop(void *arg)
{
    struct cluster_node *n = arg;
    n->stopped = paramo_stop(n->node);
    return NULL;
}

/* SIGTERM as the job ends: no server can take its partitions, and that is no error. */
static void a_drain_when_the_job_is_over(void **state)
{
    (void)state;
    struct cluster c;
    log_set_sink(hear, NULL);
    cluster_start(&c, 1, 1, NULL);
    paramo_node *server = c.servers[0].node;
    assert_int_equal(pthread_create(&c.scheduler.thread, NULL, stop, &c.scheduler), 0);
    assert_int_equal(paramo_stop(c.workers[0].node), PARAMO_OK);
    assert_int_equal(paramo_job_status(NULL), PARAMO_E_INVALID);
    assert_int_equal(lane_wait(server->control, has_ended, server->own, UINT64_MAX), PARAMO_OK);
    assert_int_equal(paramo_job_status(server), PARAMO_E_SHUTDOWN);
    paramo_drain(server);
    assert_int_equal(paramo_stop(server), PARAMO_OK);
    assert_int_equal(pthread_join(c.scheduler.thread, NULL), 0);
    assert_int_equal(c.scheduler.stopped, PARAMO_OK);
    assert_int_equal(atomic_load(&said), 0);
    log_set_sink(NULL, NULL);
}

/* ---- a worker that is declared dead ---- */

static void over_tcp(paramo_config *config)
{
    config->van = "tcp"; /* UCX has threads of its own */
}

static void declare_dead(void *node)
{
    member_fail(((paramo_node *)node)->own->member, err_set(PARAMO_E_FENCED, "it was silent"));
}

struct asker {
    paramo_worker *worker;
    uint32_t to;
    bool all;
    atomic_bool asked;
    paramo_err waited;
    int done;
    char why[256];
};

/* Sends a request that no server answers, with an array of its own, which it gets back after the wait. */
static void *ask(void *arg)
{
    struct asker *a = arg;
    char *body = calloc(1, 1000);
    uint64_t ts = 0;
    paramo_message m;
    paramo_message_init(&m, a->to);
    m.app = NOBODYS;
    m.seg[PARAMO_SEG_BODY] = (paramo_bytes){.data = body, .len = 1000};
    a->waited = paramo_app_request(a->worker, &m, 1, NULL, NULL, NULL, &ts);
    atomic_store(&a->asked, true);
    if (!a->waited)
        a->waited = a->all ? paramo_wait_all(a->worker, 0) : paramo_wait(a->worker, ts, 0);
    (void)snprintf(a->why, sizeof a->why, "%s", paramo_last_error());
    if (paramo_test(a->worker, ts, &a->done))
        a->done = -1;
    free(body);
    return NULL;
}

static void fenced(const struct asker *a)
{
    assert_int_equal(a->waited, PARAMO_E_FENCED);
    assert_non_null(strstr(a->why, "it was silent"));
    assert_int_equal(a->done, 1);
}

/* Its waits end with the cause, and their requests with them; so do those of a customer that it opens then. It
 * continues as another node. */
static void declared_dead_at_work(void **state)
{
    (void)state;
    struct cluster c;
    struct asker askers[2] = {{.all = false}, {.all = true}};
    pthread_t threads[2];
    cluster_start_with(&c, 1, 2, over_tcp);
    paramo_node *node = c.workers[0].node;
    for (unsigned i = 0; i < 2; i++) {
        askers[i].to = paramo_node_id(c.servers[0].node);
        assert_int_equal(paramo_worker_open(node, i, &askers[i].worker), PARAMO_OK);
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &askers[i]), 0);
    }
    while (!atomic_load(&askers[0].asked) || !atomic_load(&askers[1].asked))
        sched_yield();
    assert_int_equal(node_run_on(node->control, declare_dead, node), PARAMO_OK);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        fenced(&askers[i]);
    }
    struct asker late = {.to = askers[0].to};
    assert_int_equal(paramo_worker_open(node, 2, &late.worker), PARAMO_OK);
    (void)ask(&late);
    fenced(&late);
    paramo_worker_close(late.worker);
    for (unsigned i = 0; i < 2; i++)
        paramo_worker_close(askers[i].worker);
    assert_int_equal(paramo_stop(node), PARAMO_E_FENCED);
    assert_int_equal(paramo_start(&c.workers[0].config, &c.workers[0].node), PARAMO_OK);
    cluster_stop(&c);
}

static void called_back(void *arg, uint64_t ts, paramo_err status)
{
    struct asker *a = arg;
    (void)ts;
    a->waited = status;
    (void)snprintf(a->why, sizeof a->why, "%s", paramo_last_error());
    atomic_store(&a->asked, true);
}

/* Requests without a wait, one with a callback: issued before the node is declared dead, and after that. */
static void declared_dead_without_a_wait(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_with(&c, 1, 2, over_tcp);
    paramo_node *node = c.workers[0].node;
    paramo_worker *worker;
    assert_int_equal(paramo_worker_open(node, 0, &worker), PARAMO_OK);
    for (unsigned after = 0; after < 2; after++) {
        struct asker called = {.waited = PARAMO_OK}, tested = {.waited = PARAMO_OK};
        paramo_request_options options;
        paramo_request_options_init(&options);
        options.callback = called_back;
        options.callback_arg = &called;
        paramo_message m;
        uint64_t ts = 0;
        paramo_message_init(&m, paramo_node_id(c.servers[0].node));
        m.app = NOBODYS;
        assert_int_equal(paramo_app_request(worker, &m, 1, NULL, NULL, &options, NULL), PARAMO_OK);
        assert_int_equal(paramo_app_request(worker, &m, 1, NULL, NULL, NULL, &ts), PARAMO_OK);
        if (!after) {
            assert_int_equal(paramo_test(worker, ts, &tested.done), PARAMO_OK);
            assert_int_equal(tested.done, 0);
            assert_int_equal(node_run_on(node->control, declare_dead, node), PARAMO_OK);
        }
        while (!tested.done || !atomic_load(&called.asked)) {
            assert_int_equal(paramo_test(worker, ts, &tested.done), PARAMO_OK);
            sched_yield();
        }
        called.done = 1;
        fenced(&called);
        tested.waited = paramo_wait(worker, ts, 0);
        (void)snprintf(tested.why, sizeof tested.why, "%s", paramo_last_error());
        fenced(&tested);
    }
    paramo_worker_close(worker);
    assert_int_equal(paramo_stop(node), PARAMO_E_FENCED);
    assert_int_equal(paramo_start(&c.workers[0].config, &c.workers[0].node), PARAMO_OK);
    cluster_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_replicas_are_promoted),
        cmocka_unit_test(a_drain_when_the_job_is_over),
        cmocka_unit_test(declared_dead_at_work),
        cmocka_unit_test(declared_dead_without_a_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
