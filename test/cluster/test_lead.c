/* A scheduler whose state is in etcd, and what its members see when it cannot be sure that it leads. */
#include "unit.h"

#include <string.h>

#include "base/log.h"
#include "cluster/meta/store_etcd.h"
#include "cluster/support_simcluster.h"
#include "sim/env/simetcd.h"

static struct {
    struct cluster c;
    struct simetcd *etcd;
    struct blocking_jobs *blocking_jobs;
    struct http *http;
    bool told;
} t;

static void found(void *arg, paramo_err status, const struct store_state *state)
{
    (void)arg;
    assert_int_equal(status, PARAMO_OK);
    assert_int_equal(state->term, 1);
    assert_int_equal(state->bytes, 0);
    t.told = true;
}

static bool is_told(void *arg)
{
    (void)arg;
    return t.told;
}

static struct store *store_begin(const char *name, store_started_fn *done)
{
    struct store *store;
    struct http *http;
    assert_int_equal(simetcd_http(t.etcd, &http), PARAMO_OK);
    t.http = t.http ? t.http : http; /* the leader's */
    struct store_etcd_config config = {.lane = t.c.lane,
                                       .blocking_jobs = t.blocking_jobs,
                                       .http = http,
                                       .meta = "etcd://etcd:1",
                                       .name = name,
                                       .patience_ms = 1000};
    assert_int_equal(store_etcd_open(&config, &store), PARAMO_OK);
    assert_true(lane_enter(t.c.lane));
    assert_int_equal(store_start(store, done, NULL), PARAMO_OK);
    lane_leave(t.c.lane);
    return store;
}

static void on_without_nodes(void)
{
    static struct store_state nothing = {.term = 1};
    memset(&t, 0, sizeof t);
    cluster_init(&t.c, 1, 1, 1);
    assert_int_equal(simetcd_create(t.c.sim, &t.etcd), PARAMO_OK);
    assert_int_equal(blocking_jobs_create(sim_env(t.c.sim), "files", &t.blocking_jobs), PARAMO_OK);
    t.c.config.store = store_begin("scheduler:1", found);
    assert_true(cluster_run(&t.c, is_told, NULL, 5));
    t.c.config.found = &nothing;
    cluster_start_scheduler(&t.c);
}

static void on(void)
{
    on_without_nodes();
    for (size_t i = 0; i < 2; i++)
        cluster_start(&t.c, &t.c.nodes[i], i ? PARAMO_ROLE_WORKER : PARAMO_ROLE_SERVER);
    for (size_t i = 0; i < 2; i++)
        assert_true(cluster_run(&t.c, tnode_joined, &t.c.nodes[i], 5));
    cluster_pass(&t.c, 1);
}

static void off(void)
{
    for (size_t i = 0; i < 2; i++)
        cluster_kill(&t.c.nodes[i]);
    cluster_kill_scheduler(&t.c);
    blocking_jobs_destroy(t.blocking_jobs);
    cluster_pass(&t.c, 0.001);
    simetcd_destroy(t.etcd);
    cluster_fini(&t.c);
}

static void etcd_away(bool away)
{
    simetcd_fail(t.http, SIMETCD_LOST, 0, away ? 1000000 : 0, 0);
}

static void put_begin(struct tcall *call)
{
    struct tnode *node = &t.c.nodes[1];
    tcall_init(call);
    tnode_enter(node);
    assert_int_equal(member_kv_put(node->member, &call->call, "key", "value", 5, in_seconds(&t.c, 200)),
                     PARAMO_OK);
    tnode_leave(node);
}

static void get_begin(struct tcall *call)
{
    struct tnode *node = &t.c.nodes[1];
    tcall_init(call);
    tnode_enter(node);
    assert_int_equal(member_kv_get(node->member, &call->call, "key", in_seconds(&t.c, 200)), PARAMO_OK);
    tnode_leave(node);
}

/* What changes nothing is answered while the lease lasts, and then only when etcd confirms that no other scheduler
 * leads. */
static void reads_rest_on_the_lease(void **state)
{
    (void)state;
    struct tcall put, get;
    on();
    put_begin(&put);
    assert_true(cluster_run(&t.c, tcall_done, &put, 1));
    etcd_away(true);
    get_begin(&get);
    assert_true(cluster_run(&t.c, tcall_done, &get, 0.1));
    cluster_pass(&t.c, 5);
    get_begin(&get);
    assert_false(cluster_run(&t.c, tcall_done, &get, 20));
    etcd_away(false);
    assert_true(cluster_run(&t.c, tcall_done, &get, 1));
    assert_int_equal(get.status, PARAMO_OK);
    assert_int_equal(memcmp(get.value, "value", 5), 0);
    assert_false(t.c.over);
    off();
}

/* A scheduler that finds another leader answers no call, does not end the job, and ends itself. */
static void the_old_leader_is_silent(void **state)
{
    (void)state;
    struct tcall put;
    on();
    simetcd_put(t.etcd, "paramo/job/term", "2");
    put_begin(&put);
    assert_true(cluster_run(&t.c, cluster_over, &t.c, 1));
    assert_int_equal(t.c.over_status, PARAMO_E_FENCED);
    assert_non_null(strstr(t.c.over_text, "no longer leads the job"));
    assert_false(cluster_run(&t.c, tcall_done, &put, 60));
    assert_false(t.c.nodes[0].ended || t.c.nodes[1].ended); /* they look for the one that leads */
    off();
}

/* The same without a call: its own ticks find out, once the lease has ended. */
static void it_finds_out_by_itself(void **state)
{
    (void)state;
    on();
    etcd_away(true);
    cluster_pass(&t.c, 6);
    simetcd_put(t.etcd, "paramo/job/term", "2");
    cluster_pass(&t.c, 6);
    assert_false(t.c.over);
    etcd_away(false);
    assert_true(cluster_run(&t.c, cluster_over, &t.c, 2));
    assert_int_equal(t.c.over_status, PARAMO_E_FENCED);
    off();
}

static void end_now(void)
{
    assert_true(lane_enter(t.c.lane));
    scheduler_end(t.c.scheduler, PARAMO_E_SHUTDOWN, "enough");
    lane_leave(t.c.lane);
}

/* The end is told when it is durable, also while the lease lasts still. */
static void the_end_waits_for_etcd(void **state)
{
    (void)state;
    on();
    etcd_away(true);
    cluster_pass(&t.c, 6);
    end_now();
    cluster_pass(&t.c, 20);
    assert_false(t.c.over || t.c.nodes[0].ended || t.c.nodes[1].ended);
    etcd_away(false);
    assert_true(cluster_run(&t.c, tnode_ended, &t.c.nodes[0], 1));
    assert_int_equal(t.c.nodes[0].ended_status, PARAMO_E_SHUTDOWN);
    assert_true(cluster_run(&t.c, cluster_over, &t.c, 10));
    off();
    on();
    etcd_away(true);
    cluster_pass(&t.c, 6);
    end_now();
    assert_false(cluster_run(&t.c, cluster_over, &t.c, 24));
    assert_true(cluster_run(&t.c, cluster_over, &t.c, 3));
    assert_false(t.c.nodes[0].ended || t.c.nodes[1].ended);
    assert_non_null(strstr(t.c.over_text, "could not be saved"));
    off();
}

/* A node that registers while the end waits to be durable is told nothing: another scheduler leads, and the job goes
 * on. */
static void an_end_that_is_lost_refuses_none(void **state)
{
    (void)state;
    on();
    etcd_away(true);
    end_now();
    cluster_start(&t.c, &t.c.nodes[2], PARAMO_ROLE_WORKER);
    cluster_pass(&t.c, 3);
    simetcd_put(t.etcd, "paramo/job/term", "2");
    etcd_away(false);
    assert_true(cluster_run(&t.c, cluster_over, &t.c, 10));
    assert_int_equal(t.c.over_status, PARAMO_E_FENCED);
    assert_false(t.c.nodes[0].ended || t.c.nodes[1].ended || t.c.nodes[2].joined);
    cluster_kill(&t.c.nodes[2]);
    off();
}

/* All have gone to another scheduler, which leads: to this one, whose lease lasts still, they are dead, and
 * its job is over. It is no end of the job's. */
static void the_old_leader_has_lost_all(void **state)
{
    (void)state;
    on();
    simetcd_put(t.etcd, "paramo/job/term", "2");
    for (size_t i = 0; i < 2; i++)
        cluster_kill(&t.c.nodes[i]);
    assert_true(cluster_run(&t.c, cluster_over, &t.c, 30));
    assert_int_equal(t.c.over_status, PARAMO_E_FENCED);
    assert_non_null(strstr(t.c.over_text, "no longer leads the job"));
    off();
}

static void standby_ends(void *arg, paramo_err status, const struct store_state *state)
{
    (void)arg;
    (void)state;
    fail_msg("the standby ends with %s: %s", err_name(status), err_text());
}

/* A job that still waits for its nodes has no records; its scheduler still saves when it is asked. That is not the
 * end of the job: a standby scheduler keeps standing by. */
static void a_job_that_forms_is_not_over(void **state)
{
    (void)state;
    struct tcall put;
    on_without_nodes();
    struct store *standby = store_begin("scheduler:2", standby_ends);
    cluster_pass(&t.c, 3);
    cluster_start(&t.c, &t.c.nodes[0], PARAMO_ROLE_SERVER);
    cluster_pass(&t.c, 10);
    cluster_start(&t.c, &t.c.nodes[1], PARAMO_ROLE_WORKER);
    for (size_t i = 0; i < 2; i++)
        assert_true(cluster_run(&t.c, tnode_joined, &t.c.nodes[i], 5));
    put_begin(&put);
    assert_true(cluster_run(&t.c, tcall_done, &put, 1));
    assert_true(lane_enter(t.c.lane));
    store_close(standby);
    lane_leave(t.c.lane);
    off();
}

int main(void)
{
    log_set_level(LOG_ERROR - 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_rest_on_the_lease),          cmocka_unit_test(the_old_leader_is_silent),
        cmocka_unit_test(it_finds_out_by_itself),           cmocka_unit_test(the_end_waits_for_etcd),
        cmocka_unit_test(an_end_that_is_lost_refuses_none), cmocka_unit_test(the_old_leader_has_lost_all),
        cmocka_unit_test(a_job_that_forms_is_not_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
