/* One thing at a time: registration and ranks, tables, barriers, pools, values, deaths, the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "post/support_cluster.h"

#define SERVER PARAMO_ROLE_SERVER
#define WORKER PARAMO_ROLE_WORKER

/* Starts servers, then workers, as nodes 0, 1, ..., and waits until all have joined. */
static void start_all(struct cluster *c, uint32_t servers, uint32_t workers)
{
    cluster_init(c, 1, servers, workers);
    cluster_start_scheduler(c);
    for (uint32_t i = 0; i < servers + workers; i++)
        cluster_start(c, &c->nodes[i], i < servers ? SERVER : WORKER);
    for (uint32_t i = 0; i < servers + workers; i++) {
        assert_true(cluster_run(c, tnode_joined, &c->nodes[i], 5));
        assert_int_equal(c->nodes[i].joined_status, PARAMO_OK);
    }
}

#define CALL(node, t, ...)                                                                                   \
    do {                                                                                                     \
        tcall_init(t);                                                                                       \
        tnode_enter(node);                                                                                   \
        assert_int_equal(__VA_ARGS__, PARAMO_OK);                                                            \
        tnode_leave(node);                                                                                   \
    } while (0)

static paramo_err wait_call(struct cluster *c, struct tcall *t)
{
    assert_true(cluster_run(c, tcall_done, t, 100));
    return t->status;
}

static void test_ids_and_ring(void **state)
{
    (void)state;
    struct cluster c;
    start_all(&c, 2, 3);
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
    for (size_t a = 0; a < RING_ARCS; a++)
        assert_int_equal(view->ring.owner[a], a / (RING_ARCS / 4));
    assert_int_equal(view_node(view, 8)->port, 1); /* by host and port */
    assert_int_equal(view_node(view, 10)->port, 2);
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

static void test_too_many(void **state)
{
    (void)state;
    struct cluster c;
    start_all(&c, 1, 2);
    cluster_start(&c, &c.nodes[5], WORKER);
    assert_true(cluster_run(&c, tnode_joined, &c.nodes[5], 5));
    assert_int_equal(c.nodes[5].joined_status, PARAMO_E_FULL);
    cluster_fini(&c);
}

static void test_restart_takes_dead_rank(void **state)
{
    (void)state;
    struct cluster c;
    start_all(&c, 2, 1);
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

static void test_tables(void **state)
{
    (void)state;
    struct cluster c;
    start_all(&c, 1, 2);
    struct tnode *a = &c.nodes[1], *b = &c.nodes[2];
    paramo_table_options options = {.size = sizeof options, .dim = 3};
    struct tcall t, u;
    CALL(a, &t, member_table_open(a->member, &t.call, "w", NULL, in_seconds(&c, 5)));
    assert_int_equal(wait_call(&c, &t), PARAMO_E_NO_TABLE);
    CALL(a, &t, member_table_open(a->member, &t.call, "w", &options, in_seconds(&c, 5)));
    CALL(b, &u, member_table_open(b->member, &u.call, "w", &options, in_seconds(&c, 5)));
    assert_int_equal(wait_call(&c, &t), PARAMO_OK);
    assert_int_equal(wait_call(&c, &u), PARAMO_OK);
    assert_int_equal(t.call.result.table, 1);
    assert_int_equal(u.call.result.table, 1);
    assert_int_equal(view_table(member_view(a->member), 1)->options.dim, 3);
    assert_int_equal(view_table(member_view(b->member), 1)->options.placement, PARAMO_PLACE_MIXED);
    options.dim = 4;
    CALL(b, &u, member_table_open(b->member, &u.call, "w", &options, in_seconds(&c, 5)));
    assert_int_equal(wait_call(&c, &u), PARAMO_E_TABLE_EXISTS);
    assert_string_equal(u.text, "table w exists with dim 3, not 4");
    cluster_pass(&c, 1);
    assert_int_equal(member_view(c.nodes[0].member)->tables_count, 1);
    cluster_fini(&c);
}

static void test_barriers(void **state)
{
    (void)state;
    struct cluster c;
    start_all(&c, 1, 2);
    struct tnode *s = &c.nodes[0], *a = &c.nodes[1], *b = &c.nodes[2];
    struct tcall t, u, v, again;
    tcall_init(&t);
    tnode_enter(s);
    assert_int_equal(member_barrier(s->member, &t.call, 4, 0, in_seconds(&c, 5)), PARAMO_E_INVALID);
    tnode_leave(s);
    /* A node counts once, however often it enters; all are released together, with one number. */
    for (uint64_t number = 1; number <= 3; number++) {
        CALL(a, &t, member_barrier(a->member, &t.call, 6, 0, in_seconds(&c, 50)));
        CALL(a, &again, member_barrier(a->member, &again.call, 6, 0, in_seconds(&c, 50)));
        CALL(b, &u, member_barrier(b->member, &u.call, 6, 0, in_seconds(&c, 50)));
        cluster_pass(&c, 5);
        assert_false(t.done || u.done || again.done);
        CALL(s, &v, member_barrier(s->member, &v.call, 6, 0, in_seconds(&c, 50)));
        assert_int_equal(wait_call(&c, &t), PARAMO_OK);
        assert_int_equal(wait_call(&c, &u), PARAMO_OK);
        assert_int_equal(wait_call(&c, &v), PARAMO_OK);
        assert_int_equal(wait_call(&c, &again), PARAMO_OK);
        assert_int_equal(t.call.result.number, number);
        assert_int_equal(v.call.result.number, number);
    }
    /* Another customer's and another group's barriers are others. */
    CALL(a, &t, member_barrier(a->member, &t.call, 4, 0, in_seconds(&c, 3)));
    CALL(b, &u, member_barrier(b->member, &u.call, 4, 1, in_seconds(&c, 3)));
    assert_int_equal(wait_call(&c, &t), PARAMO_E_TIMEOUT);
    assert_non_null(strstr(t.text, "worker 11"));
    assert_int_equal(wait_call(&c, &u), PARAMO_E_TIMEOUT);
    assert_non_null(strstr(u.text, "worker 9"));
    /* Who has timed out is not in it any more. */
    CALL(b, &u, member_barrier(b->member, &u.call, 4, 0, in_seconds(&c, 50)));
    cluster_pass(&c, 3);
    assert_false(u.done);
    /* A death is named, at once and later. */
    cluster_kill(a);
    assert_int_equal(wait_call(&c, &u), PARAMO_E_BARRIER);
    assert_non_null(strstr(u.text, "worker 9"));
    CALL(b, &u, member_barrier(b->member, &u.call, 4, 0, in_seconds(&c, 50)));
    assert_int_equal(wait_call(&c, &u), PARAMO_E_BARRIER);
    CALL(s, &t, member_barrier(s->member, &t.call, 2, 0, in_seconds(&c, 50)));
    assert_int_equal(wait_call(&c, &t), PARAMO_OK);
    cluster_fini(&c);
}

static void test_values(void **state)
{
    (void)state;
    struct cluster c;
    start_all(&c, 0, 2);
    struct tnode *a = &c.nodes[0], *b = &c.nodes[1];
    struct tcall t, u;
    CALL(a, &t, member_kv_get(a->member, &t.call, "lr", in_seconds(&c, 50)));
    CALL(b, &u, member_kv_put(b->member, &u.call, "other", "x", 1, in_seconds(&c, 5)));
    assert_int_equal(wait_call(&c, &u), PARAMO_OK);
    cluster_pass(&c, 1);
    assert_false(t.done);
    CALL(b, &u, member_kv_put(b->member, &u.call, "lr", "0.1", 4, in_seconds(&c, 5)));
    assert_int_equal(wait_call(&c, &t), PARAMO_OK);
    assert_string_equal(t.value, "0.1");
    CALL(a, &t, member_kv_get(a->member, &t.call, "none", in_seconds(&c, 2)));
    assert_int_equal(wait_call(&c, &t), PARAMO_E_TIMEOUT);
    const double one[] = {1.5, -2};
    for (int i = 0; i < 3; i++) {
        CALL(i % 2 ? a : b, &t,
             member_kv_add((i % 2 ? a : b)->member, &t.call, "sum", one, 2, in_seconds(&c, 5)));
        assert_int_equal(wait_call(&c, &t), PARAMO_OK);
    }
    CALL(a, &t, member_kv_get(a->member, &t.call, "sum", in_seconds(&c, 2)));
    assert_int_equal(wait_call(&c, &t), PARAMO_OK);
    double sum[2];
    memcpy(sum, t.value, sizeof sum);
    assert_true(sum[0] == 4.5 && sum[1] == -6);
    CALL(a, &t, member_kv_add(a->member, &t.call, "sum", one, 1, in_seconds(&c, 5)));
    assert_int_equal(wait_call(&c, &t), PARAMO_E_SIZE_MISMATCH);
    cluster_fini(&c);
}

/* The next part as 100 * stream + index, or -state. */
static int next_part(struct cluster *c, struct tnode *node, struct tcall *t, uint32_t round, uint32_t ms)
{
    CALL(node, t, member_pool_next(node->member, &t->call, "p", 0, round, ms, in_seconds(c, 60)));
    assert_int_equal(wait_call(c, t), PARAMO_OK);
    if (t->call.result.state != POOL_GOT)
        return -(int)t->call.result.state;
    assert_int_equal(t->call.result.part.round, round);
    return (int)(t->call.result.part.stream * 100 + t->call.result.part.index);
}

static paramo_err report(struct cluster *c, struct tnode *node, const struct pool_part *part, bool end)
{
    struct tcall t;
    if (end)
        CALL(node, &t, member_pool_end(node->member, &t.call, "p", part, in_seconds(c, 60)));
    else
        CALL(node, &t, member_pool_done(node->member, &t.call, "p", part, in_seconds(c, 60)));
    return wait_call(c, &t);
}

static void test_pool_order_and_affinity(void **state)
{
    (void)state;
    struct cluster c;
    start_all(&c, 0, 3);
    struct tnode *a = &c.nodes[0], *b = &c.nodes[1];
    struct tcall t, parts[6];
    CALL(a, &t, member_pool_open(a->member, &t.call, "p", 3, 2, in_seconds(&c, 5)));
    assert_int_equal(wait_call(&c, &t), PARAMO_OK);
    CALL(b, &t, member_pool_open(b->member, &t.call, "p", 3, 3, in_seconds(&c, 5)));
    assert_int_equal(wait_call(&c, &t), PARAMO_E_INVALID);
    /* Stream 0 has parts 0 1 2, stream 1 none, stream 2 part 0. */
    assert_int_equal(next_part(&c, a, &parts[0], 0, 0), 0);
    assert_int_equal(next_part(&c, b, &parts[1], 0, 0), 1);
    assert_int_equal(next_part(&c, a, &parts[2], 0, 0), 2);
    assert_int_equal(next_part(&c, b, &parts[3], 0, 0), 3);
    assert_int_equal(next_part(&c, a, &parts[4], 0, 0), 4);
    assert_int_equal(report(&c, a, &parts[4].call.result.part, true), PARAMO_OK);
    assert_int_equal(next_part(&c, a, &parts[5], 0, 0), 100);
    assert_int_equal(report(&c, b, &parts[3].call.result.part, true),
                     PARAMO_OK); /* the end is nearer still */
    assert_int_equal(report(&c, a, &parts[5].call.result.part, true), PARAMO_OK);
    assert_int_equal(next_part(&c, b, &parts[5], 0, 0), 200);
    assert_int_equal(next_part(&c, a, &parts[3], 0, 0), 201);
    assert_int_equal(report(&c, a, &parts[3].call.result.part, true), PARAMO_OK);
    assert_int_equal(next_part(&c, a, &t, 0, 500), -POOL_NONE_NOW);
    for (int i = 0; i < 3; i++)
        assert_int_equal(report(&c, i == 1 ? b : a, &parts[i].call.result.part, false), PARAMO_OK);
    assert_int_equal(report(&c, a, &parts[0].call.result.part, false), PARAMO_E_NOT_FOUND);
    CALL(a, &t, member_pool_next(a->member, &t.call, "p", 0, 1, 50000, in_seconds(&c, 60)));
    assert_int_equal(report(&c, b, &parts[5].call.result.part, false), PARAMO_OK);
    assert_int_equal(wait_call(&c, &t), PARAMO_OK); /* round 1 has begun */
    assert_int_equal(t.call.result.part.index, 0);
    assert_int_equal(next_part(&c, b, &parts[1], 0, 0), -POOL_FINISHED);
    /* Each gets its own first: a did 0 2, b did 1 200; then what is left of the others'. */
    assert_int_equal(next_part(&c, b, &parts[1], 1, 0), 1);
    assert_int_equal(next_part(&c, b, &parts[2], 1, 0), 200);
    assert_int_equal(next_part(&c, b, &parts[3], 1, 0), 2);
    assert_int_equal(next_part(&c, a, &parts[4], 1, 0), -POOL_NONE_NOW);
    /* What a dead worker held is dealt again, and what it says later does not count. */
    CALL(a, &parts[5], member_pool_next(a->member, &parts[5].call, "p", 0, 1, 50000, in_seconds(&c, 60)));
    cluster_kill(b);
    assert_int_equal(wait_call(&c, &parts[5]), PARAMO_OK);
    assert_int_equal(parts[5].call.result.part.index, 1);
    assert_int_equal(next_part(&c, a, &parts[2], 1, 0), 2);
    assert_int_equal(next_part(&c, a, &parts[3], 1, 0), 200);
    assert_int_equal(report(&c, a, &t.call.result.part, false), PARAMO_OK);
    assert_int_equal(report(&c, a, &parts[2].call.result.part, false), PARAMO_OK);
    assert_int_equal(report(&c, a, &parts[3].call.result.part, false), PARAMO_OK);
    assert_int_equal(next_part(&c, a, &t, 1, 0), -POOL_NONE_NOW);
    assert_int_equal(report(&c, a, &parts[5].call.result.part, false), PARAMO_OK);
    assert_int_equal(next_part(&c, a, &t, 1, 0), -POOL_FINISHED);
    cluster_fini(&c);
}

static void test_end(void **state)
{
    (void)state;
    struct cluster c;
    start_all(&c, 1, 2);
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

static void test_end_with_deaths(void **state)
{
    (void)state;
    struct cluster c;
    start_all(&c, 1, 2);
    cluster_kill(&c.nodes[1]);
    cluster_pass(&c, 1);
    assert_false(c.nodes[0].ended);
    cluster_leave(&c.nodes[2]);
    assert_true(cluster_run(&c, tnode_ended, &c.nodes[0], 1));
    assert_int_equal(c.nodes[0].ended_status, PARAMO_E_NODE_LOST);
    assert_non_null(strstr(c.nodes[0].ended_text, "worker 9"));
    assert_true(cluster_run(&c, cluster_over, &c, 6)); /* though the server never leaves */
    assert_int_equal(c.over_status, PARAMO_E_NODE_LOST);
    cluster_fini(&c);
}

static void test_shutdown(void **state)
{
    (void)state;
    struct cluster c;
    start_all(&c, 1, 2);
    struct tcall t, u;
    CALL(&c.nodes[2], &u, member_barrier(c.nodes[2].member, &u.call, 4, 0, in_seconds(&c, 50)));
    CALL(&c.nodes[0], &t, member_shutdown(c.nodes[0].member, &t.call, "enough", in_seconds(&c, 5)));
    assert_int_equal(wait_call(&c, &t), PARAMO_OK);
    for (int i = 0; i < 3; i++) {
        assert_true(cluster_run(&c, tnode_ended, &c.nodes[i], 1));
        assert_int_equal(c.nodes[i].ended_status, PARAMO_E_SHUTDOWN);
        assert_non_null(strstr(c.nodes[i].ended_text, "enough"));
    }
    assert_int_equal(wait_call(&c, &u), PARAMO_E_SHUTDOWN);
    for (int i = 0; i < 3; i++)
        cluster_leave(&c.nodes[i]);
    assert_true(cluster_run(&c, cluster_over, &c, 0.1));
    cluster_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_and_ring), cmocka_unit_test(test_wanted_ranks_and_names),
        cmocka_unit_test(test_too_many),     cmocka_unit_test(test_restart_takes_dead_rank),
        cmocka_unit_test(test_tables),       cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_values),       cmocka_unit_test(test_pool_order_and_affinity),
        cmocka_unit_test(test_end),          cmocka_unit_test(test_end_with_deaths),
        cmocka_unit_test(test_shutdown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
