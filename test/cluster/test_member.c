/* A member alone against what goes wrong: no scheduler, the wrong one, silence, being declared dead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "cluster/support_simcluster.h"

static struct cluster c;

static void start_pair(void)
{
    cluster_init(&c, 1, 0, 2);
    cluster_start_scheduler(&c);
    for (int i = 0; i < 2; i++)
        cluster_start(&c, &c.nodes[i], PARAMO_ROLE_WORKER);
    for (int i = 0; i < 2; i++)
        assert_true(cluster_run(&c, tnode_joined, &c.nodes[i], 5));
}

static void test_no_scheduler(void **state)
{
    (void)state;
    cluster_init(&c, 1, 0, 1);
    struct tnode *node = &c.nodes[0];
    struct member_config config = cluster_member_config(&c, node, PARAMO_ROLE_WORKER);
    config.connect_timeout_ms = 3000;
    cluster_start_config(node, &config);
    assert_false(cluster_run(&c, tnode_joined, node, 2.9));
    assert_true(cluster_run(&c, tnode_joined, node, 0.2));
    assert_int_equal(node->joined_status, PARAMO_E_NO_SCHEDULER);
    assert_non_null(strstr(node->joined_text, "scheduler:1"));
    cluster_fini(&c);
}

/* Another process has the port and sends nothing. */
static void test_mute_scheduler(void **state)
{
    (void)state;
    struct sim_host *host;
    cluster_init(&c, 1, 0, 1);
    lane_destroy(c.lane);
    assert_int_equal(sim_host_create(c.sim, 1, &host), PARAMO_OK);
    assert_int_equal(lane_create(sim_host_env(host), "scheduler", 0, &c.lane), PARAMO_OK);
    cluster_start_scheduler(&c);
    sim_host_pause(host, in_seconds(&c, 30));
    struct member_config config = cluster_member_config(&c, &c.nodes[0], PARAMO_ROLE_WORKER);
    config.connect_timeout_ms = 3000;
    cluster_start_config(&c.nodes[0], &config);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[0], 3.1));
    assert_int_equal(c.nodes[0].joined_status, PARAMO_E_NO_SCHEDULER);
    assert_non_null(strstr(c.nodes[0].joined_text, "scheduler:1 accepts the connection and sends nothing"));
    sim_host_pause(host, 0);
    cluster_fini(&c);
}

static void test_late_scheduler(void **state)
{
    (void)state;
    cluster_init(&c, 1, 0, 1);
    cluster_start(&c, &c.nodes[0], PARAMO_ROLE_WORKER);
    cluster_pass(&c, 10);
    cluster_start_scheduler(&c);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[0], 1));
    assert_int_equal(c.nodes[0].joined_status, PARAMO_OK);
    cluster_fini(&c);
}

/* Of several addresses one leads, and the others do not listen; later another does. */
static void test_one_of_several(void **state)
{
    (void)state;
    cluster_init(&c, 1, 0, 1);
    cluster_start_scheduler(&c);
    struct member_config config = cluster_member_config(&c, &c.nodes[0], PARAMO_ROLE_WORKER);
    config.scheduler = "elsewhere:1,scheduler:2,scheduler:1,nobody:1";
    config.scheduler_wait_ms = 5000;
    cluster_start_config(&c.nodes[0], &config);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[0], 2));
    assert_int_equal(c.nodes[0].joined_status, PARAMO_OK);
    assert_string_equal(member_scheduler(c.nodes[0].member), "scheduler:1");
    cluster_kill_scheduler(&c);
    assert_false(cluster_run(&c, tnode_ended, &c.nodes[0], 4));
    assert_true(cluster_run(&c, tnode_ended, &c.nodes[0], 8));
    assert_int_equal(c.nodes[0].ended_status, PARAMO_E_NO_SCHEDULER);
    cluster_fini(&c);
}

static void test_addresses_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"", ",", "a:1,,b:1", ",a:1", "1:1,2:1,3:1,4:1,5:1,6:1,7:1,8:1,9:1"};
    cluster_init(&c, 1, 0, 1);
    struct tnode *node = &c.nodes[0];
    struct member_config config = cluster_member_config(&c, node, PARAMO_ROLE_WORKER);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct member *member;
        config.scheduler = bad[i];
        tnode_enter(node);
        assert_int_equal(member_create(&config, &member), PARAMO_E_INVALID);
        tnode_leave(node);
    }
    cluster_start(&c, node, PARAMO_ROLE_WORKER);
    cluster_fini(&c);
}

static void test_wrong_token(void **state)
{
    (void)state;
    cluster_init(&c, 1, 0, 1);
    cluster_start_scheduler(&c);
    struct member_config config = cluster_member_config(&c, &c.nodes[0], PARAMO_ROLE_WORKER);
    config.token = "guess";
    cluster_start_config(&c.nodes[0], &config);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[0], 1));
    assert_int_equal(c.nodes[0].joined_status, PARAMO_E_TOKEN);
    cluster_fini(&c);
}

static void test_incomplete(void **state)
{
    (void)state;
    cluster_init(&c, 1, 2, 3);
    cluster_start_scheduler(&c);
    cluster_start(&c, &c.nodes[0], PARAMO_ROLE_WORKER);
    cluster_start(&c, &c.nodes[1], PARAMO_ROLE_SERVER);
    assert_false(cluster_run(&c, tnode_joined, &c.nodes[0], 19.9));
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[0], 0.6));
    assert_int_equal(c.nodes[0].joined_status, PARAMO_E_TIMEOUT);
    assert_non_null(strstr(c.nodes[0].joined_text, "1 of 2 servers and 1 of 3 workers"));
    cluster_fini(&c);
}

/* What is logged. */
static struct {
    unsigned lines;
    char last[512];
} warned;

static void warn(void *arg, int level, const char *line)
{
    (void)arg;
    if (level > LOG_WARN || !strstr(line, "lost the scheduler"))
        return;
    warned.lines++;
    snprintf(warned.last, sizeof warned.last, "%s", line);
}

/* Its process has died: its address refuses connections. */
static void test_scheduler_killed(void **state)
{
    (void)state;
    start_pair();
    struct tcall t;
    memset(&warned, 0, sizeof warned);
    log_set_sink(warn, NULL);
    tcall_init(&t);
    tnode_enter(&c.nodes[0]);
    assert_int_equal(member_barrier(c.nodes[0].member, &t.call, 4, 0, in_seconds(&c, 100)), PARAMO_OK);
    tnode_leave(&c.nodes[0]);
    cluster_pass(&c, 1);
    cluster_kill_scheduler(&c);
    cluster_pass(&c, 0.01);
    assert_int_equal(warned.lines, 2); /* at once, by each */
    assert_non_null(strstr(warned.last,
                           "lost the scheduler at scheduler:1: connection reset; trying to reach it "
                           "again for up to 10 s"));
    assert_false(cluster_run(&c, tnode_ended, &c.nodes[0], 0.99));
    assert_true(cluster_run(&c, tnode_ended, &c.nodes[0], 0.1));
    assert_int_equal(c.nodes[0].ended_status, PARAMO_E_NO_SCHEDULER);
    assert_string_equal(c.nodes[0].ended_text, "the scheduler at scheduler:1 is gone: connection refused");
    assert_true(t.done);
    assert_int_equal(t.status, PARAMO_E_NO_SCHEDULER);
    assert_int_equal(warned.lines, 2);
    log_set_sink(NULL, NULL);
    tcall_init(&t); /* and whatever is asked later */
    tnode_enter(&c.nodes[0]);
    assert_int_equal(member_kv_get(c.nodes[0].member, &t.call, "k", in_seconds(&c, 1)),
                     PARAMO_E_NO_SCHEDULER);
    tnode_leave(&c.nodes[0]);
    assert_string_equal(err_text(), c.nodes[0].ended_text);
    cluster_leave(&c.nodes[0]); /* no scheduler to say goodbye to */
    cluster_fini(&c);
}

/* The same before the cluster is complete; a member that has never reached a scheduler keeps waiting for one. */
static void test_scheduler_killed_while_gathering(void **state)
{
    (void)state;
    cluster_init(&c, 1, 0, 2);
    cluster_start_scheduler(&c);
    cluster_start(&c, &c.nodes[0], PARAMO_ROLE_WORKER);
    cluster_pass(&c, 1);
    cluster_kill_scheduler(&c);
    cluster_start(&c, &c.nodes[1], PARAMO_ROLE_WORKER);
    assert_false(cluster_run(&c, tnode_joined, &c.nodes[0], 0.99));
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[0], 0.2));
    assert_int_equal(c.nodes[0].joined_status, PARAMO_E_NO_SCHEDULER);
    assert_false(cluster_run(&c, tnode_joined, &c.nodes[1], 15));
    cluster_fini(&c);
}

/* One that ends in order tells those that have come why. */
static void test_scheduler_ends_while_gathering(void **state)
{
    (void)state;
    cluster_init(&c, 1, 0, 2);
    cluster_start_scheduler(&c);
    cluster_start(&c, &c.nodes[0], PARAMO_ROLE_WORKER);
    cluster_pass(&c, 1);
    assert_true(lane_enter(c.lane));
    scheduler_end(c.scheduler, PARAMO_E_TIMEOUT, "nobody else came");
    lane_leave(c.lane);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[0], 0.1));
    assert_int_equal(c.nodes[0].joined_status, PARAMO_E_SHUTDOWN);
    assert_string_equal(c.nodes[0].joined_text, "the job is over: nobody else came");
    cluster_fini(&c);
}

/* The setting for a scheduler that will be restarted; it may be longer than the allowed silence. */
static void test_scheduler_waited_for(void **state)
{
    (void)state;
    static const uint32_t wait_s[] = {5, 30};
    for (size_t i = 0; i < 2; i++) {
        cluster_init(&c, 1, 0, 1);
        cluster_start_scheduler(&c);
        struct member_config config = cluster_member_config(&c, &c.nodes[0], PARAMO_ROLE_WORKER);
        config.scheduler_wait_ms = wait_s[i] * 1000;
        cluster_start_config(&c.nodes[0], &config);
        assert_true(cluster_run(&c, tnode_joined, &c.nodes[0], 5));
        cluster_kill_scheduler(&c);
        assert_false(cluster_run(&c, tnode_ended, &c.nodes[0], wait_s[i] - 0.1));
        assert_true(cluster_run(&c, tnode_ended, &c.nodes[0], 0.2));
        cluster_fini(&c);
    }
}

/* A restarted scheduler without a store runs another job. */
static void test_another_job(void **state)
{
    (void)state;
    start_pair();
    cluster_kill_scheduler(&c);
    cluster_start_scheduler(&c);
    assert_true(cluster_run(&c, tnode_ended, &c.nodes[0], 2));
    assert_int_equal(c.nodes[0].ended_status, PARAMO_E_NO_SCHEDULER);
    assert_non_null(strstr(c.nodes[0].ended_text, "another job"));
    cluster_fini(&c);
}

static void test_calls_refused(void **state)
{
    (void)state;
    cluster_init(&c, 1, 0, 1);
    cluster_start(&c, &c.nodes[0], PARAMO_ROLE_WORKER);
    enum { MOST = 4096, STAY = 100 };
    static struct tcall calls[MOST + 1];
    struct member *m = c.nodes[0].member;
    tnode_enter(&c.nodes[0]);
    tcall_init(&calls[0]);
    assert_int_equal(member_kv_get(m, &calls[0].call, "k", UINT64_MAX), PARAMO_E_CLOSED);
    tnode_leave(&c.nodes[0]);
    cluster_start_scheduler(&c);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[0], 1));
    tnode_enter(&c.nodes[0]);
    char name[300];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(member_kv_get(m, &calls[0].call, name, UINT64_MAX), PARAMO_E_INVALID);
    assert_int_equal(member_kv_get(m, &calls[0].call, "", UINT64_MAX), PARAMO_E_INVALID);
    int i = 0;
    for (;; i++) {
        tcall_init(&calls[i]);
        paramo_err err = member_kv_get(m, &calls[i].call, "k", UINT64_MAX);
        if (err) {
            assert_int_equal(err, PARAMO_E_AGAIN);
            break;
        }
    }
    assert_int_equal(i, MOST);
    for (i = 0; i < MOST - STAY; i++) {
        member_cancel(m, &calls[i].call);
        assert_int_equal(calls[i].status, PARAMO_E_CANCELLED);
    }
    tcall_init(&calls[0]);
    assert_int_equal(member_kv_put(m, &calls[0].call, "k", "v", 1, UINT64_MAX), PARAMO_OK);
    tnode_leave(&c.nodes[0]);
    assert_true(cluster_run(&c, tcall_done, &calls[MOST - 1], 5));
    for (i = MOST - STAY; i < MOST; i++)
        assert_true(calls[i].done && calls[i].status == PARAMO_OK);
    tnode_enter(&c.nodes[0]);
    tcall_init(&calls[0]);
    assert_int_equal(member_kv_get(m, &calls[0].call, "z", UINT64_MAX), PARAMO_OK);
    tnode_leave(&c.nodes[0]);
    cluster_kill(&c.nodes[0]);
    assert_int_equal(calls[0].status, PARAMO_E_CLOSED);
    cluster_fini(&c);
}

/* When the job is over, nodes leave one by one. What changes with that is no view of those that are left. */
static void test_view_after_the_end(void **state)
{
    (void)state;
    cluster_start_all(&c, 2, 1);
    cluster_leave(&c.nodes[2]);
    assert_true(cluster_run(&c, tnode_ended, &c.nodes[0], 5));
    assert_true(cluster_run(&c, tnode_ended, &c.nodes[1], 5));
    cluster_leave(&c.nodes[1]);
    cluster_pass(&c, 2);
    assert_int_equal(member_view(c.nodes[0].member)->number, c.nodes[0].view_number);
    cluster_fini(&c);
}

/* ---- connections that break though both ends live ----------------------------------------------------- */

static struct simnet_link *link_between(const char *from, const char *to)
{
    struct simnet_node *a, *b;
    struct simnet_link *link;
    assert_int_equal(simnet_node(c.net, from, &a), PARAMO_OK);
    assert_int_equal(simnet_node(c.net, to, &b), PARAMO_OK);
    assert_int_equal(simnet_link(c.net, a, b, &link), PARAMO_OK);
    return link;
}

/* Two workers whose connections may break for long without anyone taking them for dead. */
static void start_patient(void)
{
    cluster_init(&c, 1, 0, 2);
    c.config.heartbeat_timeout_ms = 100000;
    c.config.rejoin_ms = 100000;
    cluster_start_scheduler(&c);
    for (int i = 0; i < 2; i++) {
        struct member_config config = cluster_member_config(&c, &c.nodes[i], PARAMO_ROLE_WORKER);
        config.heartbeat_timeout_ms = 100000;
        cluster_start_config(&c.nodes[i], &config);
    }
    for (int i = 0; i < 2; i++)
        assert_true(cluster_run(&c, tnode_joined, &c.nodes[i], 5));
}

/* The call is done, its answer is lost with the connection; asked for again, it is not done again. */
static void test_call_survives_connection(void **state)
{
    (void)state;
    start_patient();
    const double one = 1;
    struct tcall add, barrier, get;
    uint32_t id = member_id(c.nodes[0].member);
    tcall_init(&add);
    tcall_init(&barrier);
    tcall_init(&get);
    link_between("scheduler", "n0")->cut = true;
    tnode_enter(&c.nodes[0]);
    assert_int_equal(member_kv_add(c.nodes[0].member, &add.call, "sum", &one, 1, in_seconds(&c, 90)),
                     PARAMO_OK);
    assert_int_equal(member_barrier(c.nodes[0].member, &barrier.call, 4, 0, in_seconds(&c, 90)), PARAMO_OK);
    tnode_leave(&c.nodes[0]);
    cluster_pass(&c, 20); /* the connection has broken */
    assert_false(add.done);
    link_between("scheduler", "n0")->cut = false;
    assert_true(cluster_run(&c, tcall_done, &add, 20));
    assert_int_equal(add.status, PARAMO_OK);
    tnode_enter(&c.nodes[1]);
    assert_int_equal(member_kv_get(c.nodes[1].member, &get.call, "sum", in_seconds(&c, 5)), PARAMO_OK);
    tnode_leave(&c.nodes[1]);
    assert_true(cluster_run(&c, tcall_done, &get, 5));
    double sum;
    memcpy(&sum, get.value, sizeof sum);
    assert_true(sum == 1);
    assert_false(barrier.done);
    tcall_init(&get);
    tnode_enter(&c.nodes[1]);
    assert_int_equal(member_barrier(c.nodes[1].member, &get.call, 4, 0, in_seconds(&c, 5)), PARAMO_OK);
    tnode_leave(&c.nodes[1]);
    assert_true(cluster_run(&c, tcall_done, &barrier, 5));
    assert_int_equal(barrier.status, PARAMO_OK);
    assert_int_equal(member_id(c.nodes[0].member), id);
    assert_true(view_node(member_view(c.nodes[1].member), id)->alive);
    cluster_fini(&c);
}

static void test_goodbye_survives_connection(void **state)
{
    (void)state;
    start_patient();
    struct tcall leave;
    tcall_init(&leave);
    link_between("scheduler", "n0")->cut = true;
    tnode_enter(&c.nodes[0]);
    assert_int_equal(member_leave(c.nodes[0].member, &leave.call, in_seconds(&c, 90)), PARAMO_OK);
    tnode_leave(&c.nodes[0]);
    cluster_pass(&c, 20);
    assert_false(leave.done);
    link_between("scheduler", "n0")->cut = false;
    assert_true(cluster_run(&c, tcall_done, &leave, 20));
    assert_int_equal(leave.status, PARAMO_OK);
    cluster_pass(&c, 5);
    assert_false(c.nodes[0].ended); /* it knows */
    assert_true(view_node(member_view(c.nodes[1].member), member_id(c.nodes[0].member))->left);
    cluster_fini(&c);
}

/* Silence is not death: a stopped or overloaded scheduler has its time twice, once until it counts as silent
 * and once to be reached again. */
static void test_scheduler_silent(void **state)
{
    (void)state;
    start_pair();
    struct simnet_link *there = link_between("n0", "scheduler"), *back = link_between("scheduler", "n0");
    there->cut = back->cut = true;
    assert_false(cluster_run(&c, tnode_ended, &c.nodes[0], 18));
    there->cut = back->cut = false;
    cluster_pass(&c, 5);
    assert_true(c.nodes[0].ended); /* for the scheduler it was silent for too long, too */
    assert_int_equal(c.nodes[0].ended_status, PARAMO_E_FENCED);
    cluster_fini(&c);

    start_pair();
    there = link_between("n0", "scheduler"), back = link_between("scheduler", "n0");
    there->cut = back->cut = true;
    assert_true(cluster_run(&c, tnode_ended, &c.nodes[0], 25));
    assert_int_equal(c.nodes[0].ended_status, PARAMO_E_NO_SCHEDULER);
    assert_non_null(strstr(c.nodes[0].ended_text, "cannot reach the scheduler"));
    cluster_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_scheduler),
        cmocka_unit_test(test_mute_scheduler),
        cmocka_unit_test(test_late_scheduler),
        cmocka_unit_test(test_one_of_several),
        cmocka_unit_test(test_addresses_refused),
        cmocka_unit_test(test_wrong_token),
        cmocka_unit_test(test_incomplete),
        cmocka_unit_test(test_scheduler_killed),
        cmocka_unit_test(test_scheduler_killed_while_gathering),
        cmocka_unit_test(test_scheduler_ends_while_gathering),
        cmocka_unit_test(test_scheduler_waited_for),
        cmocka_unit_test(test_scheduler_silent),
        cmocka_unit_test(test_another_job),
        cmocka_unit_test(test_calls_refused),
        cmocka_unit_test(test_view_after_the_end),
        cmocka_unit_test(test_call_survives_connection),
        cmocka_unit_test(test_goodbye_survives_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
