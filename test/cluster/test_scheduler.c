/* One thing at a time: registration and ranks, copies, deaths, the end, abuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/session/connector.h"
#include "cluster/session/control_message.h"
#include "cluster/support_simcluster.h"
#include "wire/barrier_call.h"
#include "wire/calls.h"
#include "wire/kv_calls.h"
#include "wire/pool_calls.h"
#include "wire/register_call.h"
#include "wire/table_spec.h"

#define SERVER PARAMO_ROLE_SERVER
#define WORKER PARAMO_ROLE_WORKER

static void test_ids_and_ring(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 2, 3);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < 5; i++) {
        uint32_t id = member_id(c.nodes[i].member), rank = member_rank(c.nodes[i].member);
        assert_int_equal(id, i < 2 ? PARAMO_ID_SERVER(rank) : PARAMO_ID_WORKER(rank));
        assert_false(member_recovered(c.nodes[i].member));
        seen |= 1u << (i < 2 ? rank : 8 + rank);
    }
    assert_int_equal(seen, 0x703);
    const struct view *view = member_view(c.nodes[4].member);
    assert_int_equal(view->nodes_count, 6);
    assert_int_equal(view->shards_count, 4);
    assert_int_equal(view_node(view, 1)->role, PARAMO_ROLE_SCHEDULER);
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        assert_int_equal(view_ring(view)->owner[a], a / (RING_PARTITIONS / 4));
    assert_int_equal(view_node(view, 8)->port, 1); /* by host and port */
    assert_int_equal(view_node(view, 10)->port, 2);
    cluster_fini(&c);
}

static void test_weights_and_domains(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, 1, 2, 1);
    cluster_start_scheduler(&c);
    for (int i = 0; i < 3; i++) {
        struct member_config config = cluster_member_config(&c, &c.nodes[i], i < 2 ? SERVER : WORKER);
        if (i == 1) {
            config.weight = 3;
            config.domain = "rack";
        }
        cluster_start_config(&c.nodes[i], &config);
    }
    for (int i = 0; i < 3; i++)
        assert_true(cluster_run(&c, tnode_joined, &c.nodes[i], 5));
    const struct view *view = member_view(c.nodes[2].member);
    assert_int_equal(view_node(view, 8)->weight, 1);
    assert_int_equal(view_node(view, 10)->weight, 3);
    assert_string_equal(view_node(view, 8)->domain, "host");
    assert_string_equal(view_node(view, 10)->domain, "rack");
    uint32_t owns[4] = {0};
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        owns[view_ring(view)->owner[a]]++;
    assert_int_equal(owns[0], RING_PARTITIONS / 8);
    assert_int_equal(owns[1], RING_PARTITIONS / 8);
    assert_int_equal(owns[2], 3 * RING_PARTITIONS / 8);
    assert_int_equal(view->chains.replicas, 0);
    uint64_t alive = view->number;
    cluster_kill(&c.nodes[1]);
    cluster_start(&c, &c.nodes[1], SERVER); /* in its place, with its keys: their weight stays */
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[1], 5));
    view = member_view(c.nodes[1].member);
    for (uint32_t i = 0; i < view->shards_count; i++) /* when it died: which tables it had is known by that */
        assert_true((view->shards[i].chain_changed > alive) == (view->shards[i].node == 10));
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        bool gone = view->shards[view_ring(view)->owner[a]].node == 10;
        assert_true(gone ? view->owner_gone[a] > alive : !view->owner_gone[a]);
    }
    assert_true(member_recovered(c.nodes[1].member));
    assert_int_equal(view_node(view, 10)->weight, 3);
    assert_string_equal(view_node(view, 10)->domain, "host");
    cluster_fini(&c);
}

/* Chains as the view at a node has them: every partition has this number of living members, its owner first. */
static void check_chains(struct tnode *node, unsigned members)
{
    const struct view *view = member_view(node->member);
    assert_int_equal(view->chains.replicas, 2);
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        for (unsigned l = 0; l < RING_LEVELS; l++) {
            uint16_t shard = view->chains.level[l].owner[a];
            assert_int_equal(shard != RING_NONE, l < members);
            assert_true(l >= members || view_node(view, view->shards[shard].node)->alive);
        }
}

static void start_with_copies(struct cluster *c, uint32_t servers)
{
    cluster_init(c, 1, servers, 1);
    c->config.replicas = 2;
    cluster_start_scheduler(c);
    for (uint32_t i = 0; i <= servers; i++)
        cluster_start(c, &c->nodes[i], i < servers ? SERVER : WORKER);
    for (uint32_t i = 0; i <= servers; i++)
        assert_true(cluster_run(c, tnode_joined, &c->nodes[i], 5));
}

static void test_copies_take_over(void **state)
{
    (void)state;
    struct cluster c;
    struct tcall t;
    start_with_copies(&c, 3);
    struct tnode *worker = &c.nodes[3];
    paramo_table_options options = {.size = sizeof options, .dim = 1, .replicas = PARAMO_REPLICAS_OF_JOB};
    TCALL(worker, &t, member_table_open(worker->member, &t.call, "sparse", &options, in_seconds(&c, 10)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    options.kind = PARAMO_TABLE_DENSE;
    options.rows = 100;
    TCALL(worker, &t, member_table_open(worker->member, &t.call, "dense", &options, in_seconds(&c, 10)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    check_chains(worker, 3);
    struct view *before = view_ref(member_view(worker->member));
    uint32_t first = member_id(c.nodes[0].member);
    cluster_kill(&c.nodes[0]);
    cluster_pass(&c, 1);
    check_chains(worker, 2);
    const struct view *view = member_view(worker->member);
    assert_true(view->number > before->number);
    for (size_t a = 0; a < RING_PARTITIONS; a++) { /* the next in line, and no other member moves */
        uint16_t owner = before->chains.level[0].owner[a];
        bool died = before->shards[owner].node == first;
        assert_int_equal(view_ring(view)->owner[a], before->chains.level[died ? 1 : 0].owner[a]);
    }
    for (uint32_t i = 0; i < view->shards_count; i++) /* every shard had a chain with it */
        assert_int_equal(view->shards[i].chain_changed, view->number);
    view_unref(before);

    cluster_start(&c, &c.nodes[0], SERVER); /* takes the place, and none of the keys */
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[0], 5));
    assert_int_equal(member_id(c.nodes[0].member), first);
    cluster_pass(&c, 1);
    check_chains(worker, 2);
    view = member_view(worker->member);
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        assert_true(view->shards[view_ring(view)->owner[a]].node != first);
    cluster_kill(&c.nodes[1]);
    cluster_pass(&c, 1);
    check_chains(worker, 1);
    assert_false(c.over);
    cluster_kill(&c.nodes[2]); /* the last that had anything */
    assert_true(cluster_run(&c, tnode_ended, worker, 5));
    assert_int_equal(worker->ended_status, PARAMO_E_DATA_LOST);
    assert_non_null(
        strstr(worker->ended_text, "died): table sparse 100.0 % of the keys; table dense rows 0 to 99"));
    cluster_fini(&c);
}

/* Two die at a time of four: some partitions have no member left, others have. */
static void test_a_work_unit_is_lost(void **state)
{
    (void)state;
    struct cluster c;
    struct tcall t;
    start_with_copies(&c, 4);
    struct tnode *worker = &c.nodes[4];
    for (int i = 0; i < 2; i++) { /* no table yet: nothing can be lost */
        cluster_kill(&c.nodes[i]);
        cluster_pass(&c, 1);
        assert_false(c.over);
    }
    paramo_table_options options = {.size = sizeof options,
                                    .dim = 1,
                                    .placement = PARAMO_PLACE_UNIFORM,
                                    .replicas = PARAMO_REPLICAS_OF_JOB};
    TCALL(worker, &t, member_table_open(worker->member, &t.call, "w", &options, in_seconds(&c, 10)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    cluster_kill(&c.nodes[2]);
    assert_true(cluster_run(&c, tnode_ended, worker, 5));
    assert_int_equal(worker->ended_status, PARAMO_E_DATA_LOST);
    assert_non_null(strstr(worker->ended_text, "table w keys "));
    cluster_fini(&c);
}

/* True: servers that live own all partitions, and their owners were gone before the view of this number. */
static bool all_owned(const struct view *view, uint64_t before)
{
    bool all = true;
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        all = all && view_node(view, view->shards[view_ring(view)->owner[a]].node)->alive &&
              view->owner_gone[a] < before;
    return all;
}

static void tables_after_deaths(int killed)
{
    struct cluster c;
    struct tcall t;
    start_with_copies(&c, 4);
    struct tnode *worker = &c.nodes[4];
    for (int i = 0; i < killed; i++) { /* no table yet: nothing can be lost */
        cluster_kill(&c.nodes[i]);
        cluster_pass(&c, 1);
        assert_false(c.over);
    }
    paramo_table_options options = {.size = sizeof options, .dim = 1, .replicas = PARAMO_REPLICAS_OF_JOB};
    TCALL(worker, &t, member_table_open(worker->member, &t.call, "copied", &options, in_seconds(&c, 10)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    options.replicas = 0;
    TCALL(worker, &t, member_table_open(worker->member, &t.call, "alone", &options, in_seconds(&c, 10)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    cluster_pass(&c, 1);
    uint64_t since = view_table_named(member_view(worker->member), "copied")->since;
    assert_true(killed == 4 || all_owned(member_view(worker->member), since));
    for (int i = 0; i < 2; i++) { /* the second time it dies and has nothing */
        cluster_start(&c, &c.nodes[i], SERVER);
        assert_true(cluster_run(&c, tnode_joined, &c.nodes[i], 5));
        cluster_pass(&c, 1);
        assert_true(all_owned(member_view(worker->member), since));
    }
    cluster_kill(&c.nodes[1]);
    cluster_pass(&c, 1);
    assert_false(c.over);
    assert_true(all_owned(member_view(worker->member), UINT64_MAX));
    cluster_kill(&c.nodes[killed == 4 ? 0 : 3]); /* its rows are the only ones */
    assert_true(cluster_run(&c, tnode_ended, worker, 5));
    assert_int_equal(worker->ended_status, PARAMO_E_DATA_LOST);
    assert_non_null(strstr(worker->ended_text, "table copied 100.0 % of the keys"));
    cluster_fini(&c);
}

/* More servers die than there are replicas, and tables are opened then. The servers that are left, or the first
 * that comes, own all partitions, and the next death takes nothing of these tables. */
static void test_tables_after_deaths(void **state)
{
    (void)state;
    tables_after_deaths(3);
    tables_after_deaths(4);
}

static paramo_err open_with(struct cluster *c, struct tnode *worker, const char *name, uint32_t replicas)
{
    struct tcall t;
    paramo_table_options o = {.size = sizeof o, .dim = 1, .replicas = replicas};
    TCALL(worker, &t, member_table_open(worker->member, &t.call, name, &o, in_seconds(c, 10)));
    return tcall_wait(c, &t);
}

/* Tables with fewer replicas than the job. A death loses rows of a table without copies: the log names them, and the
 * job continues. Two deaths that lose rows of a table with one copy end the job; tables with more copies are not
 * named. The members that are left keep their level until they have the rows of a lower one. */
static void test_fewer_copies(void **state)
{
    (void)state;
    struct cluster c;
    start_with_copies(&c, 3);
    struct tnode *worker = &c.nodes[3];
    assert_int_equal(open_with(&c, worker, "none", 0), PARAMO_OK);
    assert_int_equal(open_with(&c, worker, "one", 1), PARAMO_OK);
    assert_int_equal(open_with(&c, worker, "many", 3), PARAMO_E_INVALID);
    assert_int_equal(open_with(&c, worker, "one", 0), PARAMO_E_TABLE_EXISTS);
    assert_int_equal(open_with(&c, worker, "two", 2), PARAMO_OK);
    assert_int_equal(open_with(&c, worker, "two", PARAMO_REPLICAS_OF_JOB), PARAMO_OK);
    const struct view *view = member_view(worker->member);
    assert_int_equal(view_table_named(view, "two")->options.replicas, PARAMO_REPLICAS_OF_JOB);
    assert_int_equal(view_table_named(view, "one")->options.replicas, 1);
    assert_true(view_table_named(view, "one")->since > view->shards[0].chain_changed);
    struct view *before = view_ref(member_view(worker->member));
    cluster_kill(&c.nodes[0]);
    cluster_pass(&c, 1);
    assert_false(c.over);
    view = member_view(worker->member);
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        unsigned dead = 0;
        while (before->shards[before->chains.level[dead].owner[a]].node != PARAMO_ID_SERVER(0))
            dead++;
        uint16_t chain[3] = {before->chains.level[0].owner[a], before->chains.level[1].owner[a],
                             before->chains.level[2].owner[a]};
        chain[dead] = RING_NONE;
        if (dead == 0) { /* there must be an owner; a member that lacks table "one" stays behind */
            chain[0] = chain[1];
            chain[1] = RING_NONE;
        }
        for (unsigned l = 0; l < 3; l++)
            assert_int_equal(view->chains.level[l].owner[a], chain[l]);
    }
    view_unref(before);
    cluster_kill(&c.nodes[1]);
    assert_true(cluster_run(&c, tnode_ended, worker, 5));
    assert_int_equal(worker->ended_status, PARAMO_E_DATA_LOST);
    assert_non_null(strstr(worker->ended_text, "table one "));
    assert_null(strstr(worker->ended_text, "table two"));
    cluster_fini(&c);
}

static void test_wanted_ranks_and_names(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, 1, 0, 4);
    cluster_start_scheduler(&c);
    for (int i = 0; i < 6; i++) {
        struct member_config config = cluster_member_config(&c, &c.nodes[i], WORKER);
        static const int ranks[] = {2, -1, -1, -1, 2, 9};
        static const char *const names[] = {"", "zoe", "ann", "", "", ""};
        config.rank = ranks[i];
        config.name = names[i];
        if (i == 3) { /* those that cannot be are refused before the last one comes */
            c.nodes[4].role = c.nodes[5].role = WORKER;
            continue;
        }
        cluster_start_config(&c.nodes[i], &config);
    }
    for (int i = 4; i < 6; i++) {
        assert_true(cluster_run(&c, tnode_joined, &c.nodes[i], 5));
        assert_int_equal(c.nodes[i].joined_status, PARAMO_E_INVALID);
        assert_non_null(strstr(c.nodes[i].joined_text, "rank"));
    }
    cluster_start(&c, &c.nodes[3], WORKER);
    for (int i = 0; i < 4; i++)
        assert_true(cluster_run(&c, tnode_joined, &c.nodes[i], 5));
    assert_int_equal(member_rank(c.nodes[0].member), 2);
    assert_int_equal(member_rank(c.nodes[1].member), 1); /* ann 0, zoe 1 */
    assert_int_equal(member_rank(c.nodes[2].member), 0);
    assert_int_equal(member_rank(c.nodes[3].member), 3);
    cluster_fini(&c);
}

/* A server that comes when the job has all it was begun with is one more: it has the next rank, and a shard
 * that gets its share. */
static void test_one_more_server(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 1, 2);
    cluster_start(&c, &c.nodes[5], SERVER);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[5], 5));
    assert_int_equal(c.nodes[5].joined_status, PARAMO_OK);
    assert_int_equal(member_rank(c.nodes[5].member), 1);
    const struct view *view = member_view(c.nodes[5].member);
    assert_int_equal(view->num_servers, 2);
    assert_int_equal(view->shards_count, 4);
    cluster_fini(&c);
}

/* A worker that comes when the job has all it was begun with is one more: it has the next rank, the others
 * see it, barriers do not wait for it and do not break with it, and the job goes on until it has left, too.
 */
static void test_extra_worker(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 1, 2);
    struct tnode *w0 = &c.nodes[1], *w1 = &c.nodes[2], *extra = &c.nodes[5];
    struct tcall t[3];
    cluster_start(&c, extra, WORKER);
    assert_true(cluster_run(&c, tnode_joined, extra, 5));
    assert_int_equal(extra->joined_status, PARAMO_OK);
    assert_int_equal(member_id(extra->member), PARAMO_ID_WORKER(2));
    assert_false(member_recovered(extra->member));
    cluster_pass(&c, 1);
    assert_int_equal(member_view(w0->member)->num_workers, 3);
    assert_true(view_node(member_view(w0->member), PARAMO_ID_WORKER(2))->alive);
    /* released with the others, not waited for */
    TCALL(extra, &t[2],
          member_barrier(extra->member, &t[2].call, PARAMO_GROUP_WORKERS, 0, in_seconds(&c, 30)));
    TCALL(w0, &t[0], member_barrier(w0->member, &t[0].call, PARAMO_GROUP_WORKERS, 0, in_seconds(&c, 30)));
    cluster_pass(&c, 1);
    assert_false(t[0].done || t[2].done);
    TCALL(w1, &t[1], member_barrier(w1->member, &t[1].call, PARAMO_GROUP_WORKERS, 0, in_seconds(&c, 30)));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tcall_wait(&c, &t[i]), PARAMO_OK);
        assert_int_equal(t[i].call.result.number, 1);
    }
    TCALL(w0, &t[0], member_barrier(w0->member, &t[0].call, PARAMO_GROUP_WORKERS, 0, in_seconds(&c, 30)));
    TCALL(w1, &t[1], member_barrier(w1->member, &t[1].call, PARAMO_GROUP_WORKERS, 0, in_seconds(&c, 30)));
    assert_int_equal(tcall_wait(&c, &t[0]), PARAMO_OK);
    assert_int_equal(tcall_wait(&c, &t[1]), PARAMO_OK);
    /* its death breaks none; the next that comes takes its place */
    TCALL(w0, &t[0], member_barrier(w0->member, &t[0].call, PARAMO_GROUP_WORKERS, 0, in_seconds(&c, 30)));
    cluster_kill(extra);
    cluster_pass(&c, 1);
    assert_false(view_node(member_view(w0->member), PARAMO_ID_WORKER(2))->alive);
    TCALL(w1, &t[1], member_barrier(w1->member, &t[1].call, PARAMO_GROUP_WORKERS, 0, in_seconds(&c, 30)));
    assert_int_equal(tcall_wait(&c, &t[0]), PARAMO_OK);
    assert_int_equal(tcall_wait(&c, &t[1]), PARAMO_OK);
    cluster_start(&c, extra, WORKER);
    assert_true(cluster_run(&c, tnode_joined, extra, 5));
    assert_int_equal(member_id(extra->member), PARAMO_ID_WORKER(2));
    assert_true(member_recovered(extra->member));
    /* the founders leave: the job is not over yet */
    TCALL(w0, &t[0], member_leave(w0->member, &t[0].call, in_seconds(&c, 5)));
    TCALL(w1, &t[1], member_leave(w1->member, &t[1].call, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &t[0]), PARAMO_OK);
    assert_int_equal(tcall_wait(&c, &t[1]), PARAMO_OK);
    cluster_pass(&c, 1);
    assert_false(c.over);
    TCALL(extra, &t[2], member_leave(extra->member, &t[2].call, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &t[2]), PARAMO_OK);
    assert_true(cluster_run(&c, cluster_over, &c, 10));
    cluster_fini(&c);
}

static void test_restart_takes_dead_rank(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 2, 1);
    uint32_t id = member_id(c.nodes[1].member);
    uint64_t before = c.nodes[0].view_number;
    cluster_kill(&c.nodes[1]);
    cluster_pass(&c, 1);
    const struct view_node *dead = view_node(member_view(c.nodes[0].member), id);
    assert_false(dead->alive || dead->left);
    assert_int_equal(c.nodes[0].view_number, before + 1);
    cluster_start(&c, &c.nodes[1], SERVER);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[1], 5));
    assert_int_equal(c.nodes[1].joined_status, PARAMO_OK);
    assert_int_equal(member_id(c.nodes[1].member), id);
    assert_true(member_recovered(c.nodes[1].member));
    cluster_pass(&c, 1);
    assert_true(view_node(member_view(c.nodes[0].member), id)->alive);
    assert_true(view_node(member_view(c.nodes[0].member), id)->recovered);

    /* At once, before the death is certain: it waits and then takes the place. */
    cluster_kill(&c.nodes[1]);
    cluster_start(&c, &c.nodes[1], SERVER);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[1], 5));
    assert_int_equal(c.nodes[1].joined_status, PARAMO_OK);
    assert_int_equal(member_id(c.nodes[1].member), id);
    cluster_fini(&c);
}

static void test_end(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 1, 2);
    cluster_leave(&c.nodes[1]);
    cluster_pass(&c, 20);
    assert_false(c.over || c.nodes[0].ended);
    cluster_leave(&c.nodes[2]);
    assert_true(cluster_run(&c, tnode_ended, &c.nodes[0], 1));
    assert_int_equal(c.nodes[0].ended_status, PARAMO_OK);
    assert_false(c.over);
    cluster_leave(&c.nodes[0]);
    assert_true(cluster_run(&c, cluster_over, &c, 0.1));
    assert_int_equal(c.over_status, PARAMO_OK);
    cluster_fini(&c);
}

/* With recovery_ms the death of the last worker is not the job's: a worker that takes its place continues. */
static void test_last_worker_comes_again(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, 1, 1, 1);
    c.config.recovery_ms = 3000;
    cluster_start_scheduler(&c);
    cluster_start(&c, &c.nodes[0], SERVER);
    cluster_start(&c, &c.nodes[1], WORKER);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[1], 5));
    for (int i = 0; i < 2; i++) { /* the second wait has its whole time */
        cluster_kill(&c.nodes[1]);
        cluster_pass(&c, 2);
        assert_false(c.nodes[0].ended);
        cluster_start(&c, &c.nodes[1], WORKER);
        assert_true(cluster_run(&c, tnode_joined, &c.nodes[1], 5));
        assert_true(member_recovered(c.nodes[1].member));
        assert_int_equal(member_rank(c.nodes[1].member), 0);
        cluster_pass(&c, 10); /* the wait is over with its cause */
        assert_false(c.nodes[0].ended);
    }
    cluster_leave(&c.nodes[1]);
    assert_true(cluster_run(&c, tnode_ended, &c.nodes[0], 1)); /* no barrier waits for a node that has left */
    assert_int_equal(c.nodes[0].ended_status, PARAMO_OK);
    cluster_fini(&c);
}

static void test_last_worker_stays_away(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, 1, 1, 1);
    c.config.recovery_ms = 3000;
    cluster_start_scheduler(&c);
    cluster_start(&c, &c.nodes[0], SERVER);
    cluster_start(&c, &c.nodes[1], WORKER);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[1], 5));
    cluster_kill(&c.nodes[1]);
    cluster_pass(&c, 2.5);
    assert_false(c.nodes[0].ended);
    assert_true(cluster_run(&c, tnode_ended, &c.nodes[0], 2));
    assert_int_equal(c.nodes[0].ended_status, PARAMO_E_NODE_LOST);
    assert_non_null(strstr(c.nodes[0].ended_text, "worker 0 (node 9, host)"));
    cluster_fini(&c);
}

static void test_end_with_deaths(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 1, 2);
    cluster_kill(&c.nodes[1]);
    cluster_pass(&c, 1);
    assert_false(c.nodes[0].ended);
    cluster_leave(&c.nodes[2]);
    assert_true(cluster_run(&c, tnode_ended, &c.nodes[0], 1));
    assert_int_equal(c.nodes[0].ended_status, PARAMO_E_NODE_LOST);
    assert_non_null(strstr(c.nodes[0].ended_text, "worker 0 (node 9, host)"));
    assert_true(cluster_run(&c, cluster_over, &c, 6)); /* though the server never leaves */
    assert_int_equal(c.over_status, PARAMO_E_NODE_LOST);
    cluster_fini(&c);
}

static void test_shutdown(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 1, 2);
    struct tcall t, u;
    TCALL(&c.nodes[2], &u, member_barrier(c.nodes[2].member, &u.call, 4, 0, in_seconds(&c, 50)));
    TCALL(&c.nodes[0], &t, member_shutdown(c.nodes[0].member, &t.call, "enough", in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    for (int i = 0; i < 3; i++) {
        assert_true(cluster_run(&c, tnode_ended, &c.nodes[i], 1));
        assert_int_equal(c.nodes[i].ended_status, PARAMO_E_SHUTDOWN);
        assert_non_null(strstr(c.nodes[i].ended_text, "enough"));
    }
    assert_int_equal(tcall_wait(&c, &u), PARAMO_E_SHUTDOWN);
    for (int i = 0; i < 3; i++)
        cluster_leave(&c.nodes[i]);
    assert_true(cluster_run(&c, cluster_over, &c, 0.1));
    cluster_fini(&c);
}

/* ---- silence ------------------------------------------------------------------------------------------ */

static void cut(struct cluster *c, const char *name, bool cut)
{
    struct simnet_node *node, *scheduler;
    struct simnet_link *link;
    assert_int_equal(simnet_node(c->net, name, &node), PARAMO_OK);
    assert_int_equal(simnet_node(c->net, "scheduler", &scheduler), PARAMO_OK);
    assert_int_equal(simnet_link(c->net, node, scheduler, &link), PARAMO_OK);
    link->cut = cut;
    assert_int_equal(simnet_link(c->net, scheduler, node, &link), PARAMO_OK);
    link->cut = cut;
}

/* Silence shorter than the timeout is nothing; longer is death, and the node is told as soon as it can be. */
static void test_silence(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 0, 2);
    cut(&c, "n1", true);
    cluster_pass(&c, 8);
    cut(&c, "n1", false);
    cluster_pass(&c, 20);
    assert_false(c.nodes[1].ended);
    assert_true(view_node(member_view(c.nodes[0].member), 11)->alive);
    cut(&c, "n1", true);
    cluster_pass(&c, 9);
    assert_true(view_node(member_view(c.nodes[0].member), 11)->alive);
    cluster_pass(&c, 3);
    assert_false(view_node(member_view(c.nodes[0].member), 11)->alive);
    cut(&c, "n1", false);
    assert_true(cluster_run(&c, tnode_ended, &c.nodes[1], 5));
    assert_int_equal(c.nodes[1].ended_status, PARAMO_E_FENCED);
    cluster_leave(&c.nodes[1]); /* nothing to leave any more */
    cluster_kill(&c.nodes[1]);
    cluster_start(&c, &c.nodes[1], WORKER);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[1], 5));
    assert_int_equal(member_id(c.nodes[1].member), 11);
    cluster_fini(&c);
}

/* A node that waits too long is told which nodes have registered, and that one has left again. */
static void test_gone_before_complete(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, 1, 0, 3);
    cluster_start_scheduler(&c);
    cluster_start(&c, &c.nodes[0], WORKER);
    cluster_start(&c, &c.nodes[1], WORKER);
    cluster_pass(&c, 1);
    cluster_kill(&c.nodes[1]);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[0], 21));
    assert_int_equal(c.nodes[0].joined_status, PARAMO_E_TIMEOUT);
    assert_non_null(
        strstr(c.nodes[0].joined_text, "2 of 3 workers have registered (1 of these have left again)"));
    cluster_fini(&c);
}

/* A scheduler that was stopped just after a member's connection broke finds its return, not its death. */
static void test_stopped_while_one_is_absent(void **state)
{
    (void)state;
    struct cluster c;
    struct sim_host *host;
    cluster_init(&c, 1, 0, 2);
    lane_destroy(c.lane);
    assert_int_equal(sim_host_create(c.sim, 1, &host), PARAMO_OK);
    assert_int_equal(lane_create(sim_host_env(host), "scheduler", 0, &c.lane), PARAMO_OK);
    cluster_start_scheduler(&c);
    for (int i = 0; i < 2; i++)
        cluster_start(&c, &c.nodes[i], WORKER);
    for (int i = 0; i < 2; i++)
        assert_true(cluster_run(&c, tnode_joined, &c.nodes[i], 5));
    van_sim_reset(c.nodes[0].van, UINT32_MAX);
    cluster_pass(&c, 0.015); /* it has been noticed, and the member has not connected again */
    sim_host_pause(host, in_seconds(&c, 3));
    cluster_pass(&c, 10);
    for (int i = 0; i < 2; i++) {
        assert_false(c.nodes[i].ended);
        assert_true(view_node(member_view(c.nodes[1].member), member_id(c.nodes[i].member))->alive);
    }
    uint32_t id = member_id(c.nodes[0].member);
    cluster_kill(&c.nodes[0]); /* and a death is still one */
    cluster_pass(&c, 1);
    assert_false(view_node(member_view(c.nodes[1].member), id)->alive);
    cluster_fini(&c);
}

static int still_level; /* of the line that says so; -1: there was none */

static void hear_still(int level, const char *line)
{
    if (strstr(line, "stood still"))
        still_level = level;
}

/* A process that was stopped warns, unless all members are in it. */
static void test_standing_still_is_logged(void **state)
{
    (void)state;
    for (int embedded = 0; embedded < 2; embedded++) {
        struct cluster c;
        struct sim_host *host;
        cluster_init(&c, 1, 0, 1);
        c.config.embedded = embedded;
        lane_destroy(c.lane);
        assert_int_equal(sim_host_create(c.sim, 1, &host), PARAMO_OK);
        assert_int_equal(lane_create(sim_host_env(host), "scheduler", 0, &c.lane), PARAMO_OK);
        cluster_start_scheduler(&c);
        still_level = -1;
        log_set_recorder(hear_still);
        sim_host_pause(host, in_seconds(&c, 3));
        cluster_pass(&c, 10);
        log_set_recorder(NULL);
        assert_int_equal(still_level, embedded ? LOG_INFO : LOG_WARN);
        cluster_fini(&c);
    }
}

/* A member that comes back after another took its place is told so, not given a place. */
static void test_fenced_after_replacement(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 0, 2);
    cut(&c, "n1", true);
    cluster_pass(&c, 11.5);
    cluster_start(&c, &c.nodes[2], WORKER);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[2], 1));
    assert_int_equal(member_id(c.nodes[2].member), 11);
    cut(&c, "n1", false);
    assert_true(cluster_run(&c, tnode_ended, &c.nodes[1], 20));
    assert_int_equal(c.nodes[1].ended_status, PARAMO_E_FENCED);
    assert_false(c.nodes[2].ended);
    cluster_fini(&c);
}

static unsigned warnings;

/* The same of one that never learned that it had a place. */
static void test_fenced_without_a_word(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_all(&c, 0, 2);
    struct tnode *node = &c.nodes[2];
    struct member_config config = cluster_member_config(&c, node, WORKER);
    config.connect_timeout_ms = 60000;
    cluster_start_config(node, &config);
    cluster_pass(&c, 0.5); /* it waits for a place */
    cut(&c, "n2", true);
    cluster_kill(&c.nodes[1]);
    cluster_pass(&c, 12);
    assert_false(node->joined);
    cluster_start(&c, &c.nodes[3], WORKER);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[3], 5));
    assert_int_equal(member_id(c.nodes[3].member), PARAMO_ID_WORKER(1));
    cut(&c, "n2", false);
    assert_true(cluster_run(&c, tnode_joined, node, 20));
    assert_int_equal(node->joined_status, PARAMO_E_FENCED);
    cluster_fini(&c);
}

static void count_warnings(void *arg, int level, const char *line)
{
    (void)arg;
    warnings += level == LOG_WARN && strstr(line, "lane 1") != NULL;
}

static void wedged(void *arg, struct heartbeat *beat)
{
    static uint64_t steps;
    (void)arg;
    beat->lanes = 3;
    beat->lane[0] = (struct heartbeat_lane){.steps = ++steps, .busy = true};
    beat->lane[1] = (struct heartbeat_lane){.steps = 7, .busy = true};
    beat->lane[2] = (struct heartbeat_lane){.steps = 7, .busy = false};
}

/* Busy is not dead, and wedged is seen: once. */
static void test_wedged_lane(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, 1, 0, 1);
    cluster_start_scheduler(&c);
    struct member_config config = cluster_member_config(&c, &c.nodes[0], WORKER);
    config.progress = wedged;
    cluster_start_config(&c.nodes[0], &config);
    warnings = 0;
    log_set_sink(count_warnings, NULL);
    cluster_pass(&c, 10);
    assert_int_equal(warnings, 0);
    cluster_pass(&c, 30);
    assert_int_equal(warnings, 1);
    log_set_sink(NULL, NULL);
    assert_false(c.nodes[0].ended);
    cluster_fini(&c);
}

/* The scheduler process's own member: number 1, part of groups 1, 3, 5 and 7, and not waited for at the end.
 */
static void test_own_member(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, 1, 0, 1);
    c.config.own_member = true;
    cluster_start_scheduler(&c);
    cluster_start(&c, &c.nodes[0], WORKER);
    cluster_pass(&c, 2);
    assert_false(c.nodes[0].joined);
    cluster_start(&c, &c.nodes[1], PARAMO_ROLE_SCHEDULER);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[0], 1));
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[1], 1));
    assert_int_equal(member_id(c.nodes[1].member), PARAMO_ID_SCHEDULER);
    struct tcall t, u;
    TCALL(&c.nodes[0], &t, member_barrier(c.nodes[0].member, &t.call, 7, 0, in_seconds(&c, 50)));
    cluster_pass(&c, 1);
    assert_false(t.done);
    TCALL(&c.nodes[1], &u, member_barrier(c.nodes[1].member, &u.call, 7, 0, in_seconds(&c, 50)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    assert_int_equal(tcall_wait(&c, &u), PARAMO_OK);
    cluster_leave(&c.nodes[0]);
    assert_true(cluster_run(&c, cluster_over, &c, 1));
    assert_int_equal(c.over_status, PARAMO_OK);
    cluster_fini(&c);
}

/* ---- a peer with the token and no manners ------------------------------------------------------------- */

static struct abuser {
    struct van_conn *conn;
    bool closed;
} abuser;

static paramo_err abuser_frame(void *user, struct van_conn *conn, const uint8_t head[VAN_HEAD],
                               const struct van_seg *seg, unsigned nseg)
{
    (void)user, (void)conn, (void)head, (void)seg, (void)nseg;
    return PARAMO_OK;
}

static void abuser_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    (void)user, (void)why, (void)text;
    van_close(conn, false);
    abuser.closed = true;
    abuser.conn = NULL;
}

static const struct van_user abuser_user = {.frame = abuser_frame, .closed = abuser_closed};

static void abuser_up(void *arg, struct van_conn *conn, const struct welcome *welcome)
{
    (void)arg, (void)welcome;
    abuser.conn = conn;
    van_set_user(conn, &abuser_user, NULL);
}

static void abuser_failed(void *arg, paramo_err code, const char *text)
{
    (void)arg, (void)code;
    fail_msg("%s", text);
}

static uint64_t abuser_number;

static void abuser_send(struct cluster *c, struct tnode *node, const struct wire_head *head, const void *body,
                        size_t len)
{
    if (!abuser.conn)
        return;
    tnode_enter(node);
    assert_int_equal(control_message_send(abuser.conn, head, body, len), PARAMO_OK);
    tnode_leave(node);
    cluster_pass(c, 0.002);
}

/* Comes as a worker in good standing, says a few things that are wrong in many ways, and is gone without a
 * word. Half of the bodies are valid ones with a few bytes changed. */
static void abuse(struct cluster *c, struct tnode *node, struct van *van, uint64_t seed)
{
    struct connector *connector;
    struct connector_config config = {
        .van = van,
        .lane = node->lane,
        .address = "scheduler:1",
        .hello = {.purpose = HELLO_CONTROL, .incarnation = 99, .token = "token"},
        .frame_bytes = 1 << 24,
        .deadline = in_seconds(c, 5),
        .up = abuser_up,
        .failed = abuser_failed};
    abuser = (struct abuser){0};
    tnode_enter(node);
    assert_int_equal(connector_start(&config, &connector), PARAMO_OK);
    tnode_leave(node);
    cluster_pass(c, 0.01);
    assert_non_null(abuser.conn);
    struct writer w = {0};
    register_call_encode(&(struct register_call){.role = WORKER, .rank = -1, .timeout_ms = 5000, .host = "x"},
                         &w);
    abuser_send(c, node, &(struct wire_head){.call = {.kind = WIRE_CALL, .what = CALL_REGISTER}}, w.data,
                w.len);
    writer_fini(&w);
    for (unsigned i = 0; i < 6; i++) {
        uint64_t r = mix64(seed * 100 + i);
        bool in_order = (r >> 16) % 16 != 0;
        abuser_number += in_order;
        struct wire_head head = {.call = {.kind = r % 16 ? WIRE_CALL : WIRE_HEARTBEAT,
                                          .what = (uint32_t)(r >> 8) % 14,
                                          .number = in_order ? abuser_number : r,
                                          .floor = (r >> 24) % 16 ? abuser_number : r >> 3}};
        if (head.call.what == CALL_LEAVE || head.call.what == CALL_SHUTDOWN)
            head.call.what = CALL_POOL_NEXT; /* it may say those, and then it is over */
        w = (struct writer){0};
        switch (head.call.what) {
        case CALL_TABLE_OPEN:
            table_open_encode(&(struct table_open){.name = "t", .create = true, .options = {.dim = 1}}, &w);
            break;
        case CALL_BARRIER:
            barrier_call_encode(&(struct barrier_call){.group = 4, .timeout_ms = 10}, &w);
            break;
        case CALL_POOL_OPEN:
            pool_open_encode(&(struct pool_open){.name = "p", .streams = 2, .rounds = 2}, &w);
            break;
        case CALL_POOL_NEXT:
            pool_next_encode(&(struct pool_next){.name = "p", .timeout_ms = 10}, &w);
            break;
        case CALL_POOL_DONE:
        case CALL_POOL_END:
            pool_report_encode(&(struct pool_report){.name = "p", .unit = {.token = (r >> 32) % 40}}, &w);
            break;
        default:
            kv_put_encode(&(struct kv_put){.key = "k", .value = (const uint8_t *)"12345678", .len = 8}, &w);
        }
        for (unsigned hits = (r >> 40) % 4; hits && w.len; hits--)
            w.data[mix64(r + hits) % w.len] = (uint8_t)mix64(r - hits);
        abuser_send(c, node, &head, w.data, (r >> 48) % 8 ? w.len : w.len / 2);
        writer_fini(&w);
    }
    if (abuser.conn) {
        tnode_enter(node);
        van_close(abuser.conn, false);
        tnode_leave(node);
    }
}

static void test_abuse(void **state)
{
    (void)state;
    struct cluster c;
    struct van *van;
    cluster_init(&c, 1, 1, 2);
    cluster_start_scheduler(&c);
    cluster_start(&c, &c.nodes[0], SERVER);
    cluster_start(&c, &c.nodes[1], WORKER);
    cluster_pass(&c, 0.1);
    assert_int_equal(van_sim_create(c.net, "abuser", &van), PARAMO_OK);
    abuser_number = 0;
    for (uint64_t seed = 1; seed <= 1000; seed++)
        abuse(&c, &c.nodes[9], van, seed);
    assert_true(c.nodes[1].joined && !c.nodes[1].ended);
    struct tcall t;
    TCALL(&c.nodes[1], &t, member_kv_put(c.nodes[1].member, &t.call, "fine", "x", 1, in_seconds(&c, 5)));
    assert_int_equal(tcall_wait(&c, &t), PARAMO_OK);
    cluster_leave(&c.nodes[1]);
    assert_true(cluster_run(&c, tnode_ended, &c.nodes[0], 1));
    assert_int_equal(c.nodes[0].ended_status, PARAMO_E_NODE_LOST); /* the abuser's silence */
    c.old_vans[c.old_count++] = van;
    cluster_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_and_ring),
        cmocka_unit_test(test_weights_and_domains),
        cmocka_unit_test(test_copies_take_over),
        cmocka_unit_test(test_a_work_unit_is_lost),
        cmocka_unit_test(test_tables_after_deaths),
        cmocka_unit_test(test_fewer_copies),
        cmocka_unit_test(test_wanted_ranks_and_names),
        cmocka_unit_test(test_one_more_server),
        cmocka_unit_test(test_extra_worker),
        cmocka_unit_test(test_restart_takes_dead_rank),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_end_with_deaths),
        cmocka_unit_test(test_last_worker_comes_again),
        cmocka_unit_test(test_last_worker_stays_away),
        cmocka_unit_test(test_shutdown),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_gone_before_complete),
        cmocka_unit_test(test_stopped_while_one_is_absent),
        cmocka_unit_test(test_standing_still_is_logged),
        cmocka_unit_test(test_fenced_after_replacement),
        cmocka_unit_test(test_fenced_without_a_word),
        cmocka_unit_test(test_wedged_lane),
        cmocka_unit_test(test_own_member),
        cmocka_unit_test(test_abuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
