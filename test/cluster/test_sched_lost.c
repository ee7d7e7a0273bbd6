/* Rows whose last copy is lost go back to the last checkpoint (--on-loss restore), or the job ends and says
 * so. */
#include "cluster/member/member_orders.h"
#include "cluster/scheduler/sched_lost.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_view.h"
#include "cluster/support_ckpt_job.h"

#include <string.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"

static bool held_by_0(void *arg)
{
    (void)arg;
    return ckpt_job.held[0] != 0;
}

static const struct view *workers_view(void)
{
    return member_view(ckpt_worker()->member);
}

static bool lost_is_seen(void *arg)
{
    return (workers_view()->lost_at != 0) == *(bool *)arg;
}

/* Server 1 dies, and server 0 is told to restore what it had. */
static void server_1_dies(void)
{
    bool lost = true;
    ckpt_job.wait = true;
    cluster_kill(&ckpt_job.c.nodes[1]);
    assert_true(cluster_run(&ckpt_job.c, held_by_0, NULL, 60));
    assert_true(cluster_run(&ckpt_job.c, lost_is_seen, &lost, 5));
    assert_int_equal(ckpt_job.order.number, 1);
    assert_false(
        sched_migrations_converged(ckpt_job.c.scheduler)); /* each partition has an owner, which lacks rows */
}

static void restored(void)
{
    bool lost = false;
    tnode_enter(&ckpt_job.c.nodes[0]);
    member_order_done(ckpt_job.c.nodes[0].member, ckpt_job.held[0], PARAMO_OK, NULL);
    tnode_leave(&ckpt_job.c.nodes[0]);
    ckpt_job.held[0] = 0;
    ckpt_job.wait = false;
    assert_true(cluster_run(&ckpt_job.c, lost_is_seen, &lost, 5));
}

static void on_lossy(void)
{
    struct tcall call;
    ckpt_job.on_loss = true;
    ckpt_on_joined();
    ckpt_open_table("t");
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
}

static void over_with(const char *text)
{
    assert_true(cluster_run(&ckpt_job.c, cluster_over, &ckpt_job.c, 200));
    assert_int_equal(ckpt_job.c.over_status, PARAMO_E_DATA_LOST);
    assert_non_null(strstr(ckpt_job.c.over_text, "the last copy is lost (server "));
    assert_non_null(strstr(ckpt_job.c.over_text, text));
    ckpt_off();
    ckpt_disk_end();
}

static bool guest_is_dead(void *arg)
{
    (void)arg;
    return view_node(workers_view(), 11) && !view_node(workers_view(), 11)->alive;
}

/* The remaining servers own the partitions of the dead one, and are ordered to restore them; views say so until they
 * have. */
static void what_is_lost_is_restored(void **state)
{
    (void)state;
    struct tcall call;
    on_lossy();
    cluster_start(&ckpt_job.c, &ckpt_job.c.nodes[3], PARAMO_ROLE_WORKER);
    assert_true(cluster_run(&ckpt_job.c, tnode_joined, &ckpt_job.c.nodes[3], 5));
    uint64_t was[2] = {0}, lost = 0;
    const struct view *view = workers_view();
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        was[view->shards[view_ring(view)->owner[a]].node == 10]++;
    server_1_dies();
    view = workers_view();
    assert_false(view_node(view, 10)->alive);
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        assert_int_equal(view->shards[view_ring(view)->owner[a]].node, 8);
        lost += view->lost[a] == RING_LEVELS;
        assert_int_equal(view->owner_gone[a], view->lost[a] ? view->lost_at : 0);
    }
    assert_int_equal(lost, was[1]);
    assert_int_equal(ckpt_save(&call), PARAMO_E_AGAIN); /* there is nothing whole to be saved */
    paramo_table_options options = {.size = sizeof options, .dim = 1, .replicas = PARAMO_REPLICAS_OF_JOB};
    struct tcall opens; /* another loss now must not be its */
    tcall_init(&opens);
    tnode_enter(ckpt_worker());
    assert_int_equal(
        member_table_open(ckpt_worker()->member, &opens.call, "later", &options, in_seconds(&ckpt_job.c, 60)),
        PARAMO_OK);
    tnode_leave(ckpt_worker());
    ckpt_open_table("t"); /* that is there */
    cluster_kill(&ckpt_job.c.nodes[3]);
    assert_true(cluster_run(&ckpt_job.c, guest_is_dead, NULL, 60));
    assert_false(opens.done);
    restored();
    assert_int_equal(ckpt_job.restores, 1); /* no restore has begun again because a worker has gone */
    assert_int_equal(ckpt_answered(&opens), PARAMO_OK);
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    ckpt_start_server(4); /* another comes: it has its share, and no rows are lost */
    assert_true(cluster_run(&ckpt_job.c, tnode_joined, &ckpt_job.c.nodes[4], 20));
    ckpt_off();
    ckpt_disk_end();
}

static void nothing_to_restore_from(void **state)
{
    (void)state;
    ckpt_job.on_loss = true;
    ckpt_on_joined();
    ckpt_open_table("t");
    cluster_kill(&ckpt_job.c.nodes[1]);
    over_with("they cannot be restored: ");
    on_lossy();
    ckpt_open_table("since");
    cluster_kill(&ckpt_job.c.nodes[1]);
    over_with("has no table since");
    on_lossy(); /* damaged: no older one is taken instead */
    assert_true(simfs_flip(ckpt_job.disk, CKPT_DIR "/00000001/manifest", 30, 1));
    cluster_kill(&ckpt_job.c.nodes[1]);
    over_with("they cannot be restored: ");
    on_lossy();
    ckpt_job.on_loss = true;
    ckpt_off();
    ckpt_on_joined(); /* another job, of which there is none */
    ckpt_open_table("t");
    cluster_kill(&ckpt_job.c.nodes[1]);
    over_with("of another job");
}

/* One that dies in the middle; one that never can. */
static void restoring_fails(void **state)
{
    (void)state;
    on_lossy();
    server_1_dies();
    cluster_kill(&ckpt_job.c.nodes[0]);
    over_with("no server is left");
    on_lossy();
    ckpt_job.cannot = PARAMO_E_IO;
    cluster_kill(&ckpt_job.c.nodes[1]);
    over_with("so it is");
    on_lossy();
    ckpt_job.cannot = PARAMO_E_AGAIN;
    cluster_kill(&ckpt_job.c.nodes[1]);
    over_with("so it is");
    on_lossy();
    ckpt_job.cannot = PARAMO_E_AGAIN;
    cluster_kill(&ckpt_job.c.nodes[1]);
    assert_true(cluster_run(&ckpt_job.c, ckpt_one_is_dead, NULL, 60));
    cluster_pass(&ckpt_job.c, 2);
    ckpt_job.cannot = PARAMO_OK; /* now it can */
    bool lost = false;
    assert_true(cluster_run(&ckpt_job.c, lost_is_seen, &lost, 20));
    assert_true(ckpt_job.restores > 1);
    ckpt_off();
    ckpt_disk_end();
}

/* A table without copies, in a job that has some: it is restored, or the job continues without it. */
static void of_a_table_without_copies(void **state)
{
    (void)state;
    for (int saved = 0; saved < 2; saved++) {
        struct tcall call;
        bool lost = false;
        ckpt_job.on_loss = true;
        ckpt_job.replicas = 1;
        ckpt_on_joined();
        ckpt_open_table("t");
        ckpt_open_table_of("none", 0);
        if (saved) {
            assert_int_equal(ckpt_save(&call), PARAMO_OK);
            server_1_dies();
            for (size_t a = 0; a < RING_PARTITIONS; a++)
                assert_true(workers_view()->lost[a] <= 1);
            restored();
        } else {
            cluster_kill(&ckpt_job.c.nodes[1]);
            assert_true(cluster_run(&ckpt_job.c, ckpt_one_is_dead, NULL, 60));
            cluster_pass(&ckpt_job.c, 1);
            assert_true(cluster_run(&ckpt_job.c, lost_is_seen, &lost, 5));
        }
        assert_int_equal(ckpt_job.restores, saved);
        assert_int_equal(ckpt_save(&call), PARAMO_OK);
        assert_false(ckpt_job.c.over);
        ckpt_off();
        ckpt_disk_end();
    }
}

static bool held_by_both(void *arg)
{
    (void)arg;
    return ckpt_job.held[0] && ckpt_job.held[3];
}

static bool converged(void *arg)
{
    (void)arg;
    return sched_migrations_converged(ckpt_job.c.scheduler);
}

static void restore_ends(unsigned server, paramo_err status)
{
    struct tnode *node = &ckpt_job.c.nodes[server];
    tnode_enter(node);
    member_order_done(node->member, ckpt_job.held[server], status ? err_set(status, "so it is") : PARAMO_OK,
                      NULL);
    tnode_leave(node);
    ckpt_job.held[server] = 0;
}

/* One of two servers cannot restore its part of a table without copies: the job continues while the other one works. */
static void one_of_two_fails(void **state)
{
    (void)state;
    struct tcall call;
    bool lost = false;
    ckpt_job.on_loss = ckpt_job.migrates = true;
    ckpt_job.replicas = 1;
    ckpt_on_joined();
    ckpt_start_server(3);
    assert_true(cluster_run(&ckpt_job.c, tnode_joined, &ckpt_job.c.nodes[3], 20));
    assert_true(cluster_run(&ckpt_job.c, converged, NULL, 300));
    ckpt_open_table("t");
    ckpt_open_table_of("none", 0);
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    ckpt_job.wait = true;
    cluster_kill(&ckpt_job.c.nodes[1]);
    assert_true(cluster_run(&ckpt_job.c, held_by_both, NULL, 60));
    restore_ends(0, PARAMO_E_CORRUPT);
    assert_true(cluster_run(&ckpt_job.c, lost_is_seen, &lost, 5));
    restore_ends(3, PARAMO_OK);
    ckpt_job.wait = false;
    cluster_pass(&ckpt_job.c, 1);
    assert_false(ckpt_job.c.over);
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    ckpt_off();
    ckpt_disk_end();
    ckpt_job.migrates = false;
}

/* Each try fails, until there have been enough: the job continues without the rows of a table that has no copies. */
static void never_restored(void **state)
{
    (void)state;
    struct tcall call;
    bool lost = true;
    ckpt_job.on_loss = true;
    ckpt_job.replicas = 1;
    ckpt_on_joined();
    ckpt_open_table("t");
    ckpt_open_table_of("none", 0);
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    ckpt_job.cannot = PARAMO_E_AGAIN;
    cluster_kill(&ckpt_job.c.nodes[1]);
    assert_true(cluster_run(&ckpt_job.c, lost_is_seen, &lost, 60));
    lost = false;
    assert_true(cluster_run(&ckpt_job.c, lost_is_seen, &lost, 200));
    assert_true(ckpt_job.restores > 100);
    assert_false(ckpt_job.c.over);
    ckpt_job.cannot = PARAMO_OK;
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    ckpt_off();
    ckpt_disk_end();
}

/* What views say of it is durable: the next scheduler goes on with it, or without the option ends the job. */
static void killed_while_it_restores(void **state)
{
    (void)state;
    for (int without = 0; without < 2; without++) {
        ckpt_job.keeps = true;
        on_lossy();
        server_1_dies();
        ckpt_job.held[0] = 0;
        ckpt_scheduler_off();
        ckpt_job.on_loss = !without;
        ckpt_scheduler_on();
        if (without) {
            over_with("table t");
            continue;
        }
        assert_true(cluster_run(&ckpt_job.c, held_by_0, NULL, 60));
        restored();
        assert_int_equal(ckpt_job.restores, 2);
        ckpt_off();
        ckpt_disk_end();
    }
}

/* A server's keys were to wait until it comes back; the next scheduler is told to restore them. */
static void told_later(void **state)
{
    (void)state;
    struct tcall call;
    ckpt_job.keeps = true;
    ckpt_job.on_loss = false;
    ckpt_on_joined();
    ckpt_open_table("t");
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    cluster_kill(&ckpt_job.c.nodes[1]);
    assert_true(cluster_run(&ckpt_job.c, ckpt_one_is_dead, NULL, 60));
    cluster_pass(&ckpt_job.c, 1);
    assert_int_equal(ckpt_job.restores, 0);
    assert_false(ckpt_job.c.over);
    ckpt_scheduler_off();
    ckpt_job.on_loss = ckpt_job.wait = true;
    ckpt_scheduler_on();
    assert_true(cluster_run(&ckpt_job.c, held_by_0, NULL, 60));
    assert_true(cluster_run(&ckpt_job.c, lost_is_seen, &ckpt_job.wait, 5));
    const struct view *view = workers_view();
    for (size_t a = 0; a < RING_PARTITIONS; a++) /* another owner has these only now */
        assert_int_equal(view->owner_gone[a], view->lost[a] ? view->lost_at : 0);
    restored();
    assert_int_equal(ckpt_job.restores, 1);
    ckpt_off();
    ckpt_disk_end();
    ckpt_job.keeps = false;
}

static unsigned said, unsaved;

static void line(void *arg, int level, const char *text)
{
    const struct scheduler *s = ckpt_job.c.scheduler;
    (void)arg, (void)level;
    unsaved += strstr(text, "its state cannot be saved") != NULL;
    if (!strstr(text, "they go back to"))
        return;
    said++;
    assert_true(s->lost->at && s->view->announced >= s->lost->at);
}

/* The view that says which rows are lost cannot be saved at first, or the checkpoint cannot be opened: where
 * they go back to is said when the view is durable, and once. */
static void said_when_it_is_durable(void **state)
{
    (void)state;
    unsaved = 0;
    for (unsigned step = 0; step < 8; step++) {
        ckpt_job.keeps = true;
        on_lossy();
        ckpt_job.wait = true;
        said = 0;
        log_set_sink(line, NULL);
        simfs_plan(ckpt_job.disk, SIMFS_FAIL, simfs_steps(ckpt_job.disk) + step);
        cluster_kill(&ckpt_job.c.nodes[1]);
        assert_true(cluster_run(&ckpt_job.c, held_by_0, NULL, 60));
        restored();
        log_set_sink(NULL, NULL);
        assert_int_equal(said, 1);
        ckpt_off();
        ckpt_disk_end();
    }
    assert_true(unsaved > 0);
    ckpt_job.keeps = ckpt_job.on_loss = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_lost_is_restored), cmocka_unit_test(nothing_to_restore_from),
        cmocka_unit_test(restoring_fails),          cmocka_unit_test(of_a_table_without_copies),
        cmocka_unit_test(one_of_two_fails),         cmocka_unit_test(never_restored),
        cmocka_unit_test(killed_while_it_restores), cmocka_unit_test(told_later),
        cmocka_unit_test(said_when_it_is_durable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
