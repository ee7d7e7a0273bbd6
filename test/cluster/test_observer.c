/* A node that is no member follows the views of a job: from before it is complete until it is over. */
#include "unit.h"

#include <string.h>

#include "cluster/member/observer.h"
#include "cluster/support_simcluster.h"

enum { PATIENCE_S = 4 };

struct sight {
    struct observer *observer;
    unsigned joins, ends, views;
    paramo_err joined, ended;
    char text[512];
    uint64_t number;
};

static struct cluster c;
static struct tnode *node; /* runs nothing else */
static struct sight sight;

static void on_joined(void *arg, paramo_err status, const char *text)
{
    struct sight *s = arg;
    s->joins++;
    s->joined = status;
    (void)strncpy(s->text, text ? text : "", sizeof s->text - 1);
    assert_int_equal(s->views, 0);
}

static void on_view(void *arg, struct view *view)
{
    struct sight *s = arg;
    assert_true(s->joins == 1 && s->joined == PARAMO_OK && s->ends == 0);
    assert_true(view->number > s->number && view == observer_view(s->observer));
    s->number = view->number;
    s->views++;
}

static void on_ended(void *arg, paramo_err status, const char *text)
{
    struct sight *s = arg;
    assert_true(s->joins == 1 && s->joined == PARAMO_OK);
    s->ends++;
    s->ended = status;
    (void)strncpy(s->text, text, sizeof s->text - 1);
}

static void observe(const char *token)
{
    struct van *van;
    node = &c.nodes[9];
    sight = (struct sight){0};
    assert_int_equal(van_sim_create(c.net, "reader", &van), PARAMO_OK);
    c.old_vans[c.old_count++] = van;
    struct observer_config config = {.van = van,
                                     .lane = node->lane,
                                     .scheduler = "scheduler:1",
                                     .token = token,
                                     .incarnation = 99,
                                     .connect_timeout_ms = 20000,
                                     .patience_ms = PATIENCE_S * 1000,
                                     .arg = &sight,
                                     .on_joined = on_joined,
                                     .on_view = on_view,
                                     .on_ended = on_ended};
    tnode_enter(node);
    assert_int_equal(observer_create(&config, &sight.observer), PARAMO_OK);
    tnode_leave(node);
}

static void off(void)
{
    tnode_enter(node);
    observer_destroy(sight.observer);
    tnode_leave(node);
    cluster_fini(&c);
}

static bool has_joined(void *arg)
{
    (void)arg;
    return sight.joins;
}

static bool has_ended(void *arg)
{
    (void)arg;
    return sight.ends;
}

static bool has_newer(void *arg)
{
    return sight.number >= *(const uint64_t *)arg;
}

static uint64_t number_of_members(void)
{
    return member_view(c.nodes[1].member)->number;
}

/* It comes first, waits for the scheduler and for a complete job, and learns of what changes within a second or so. */
static void follows(void **state)
{
    (void)state;
    cluster_init(&c, 1, 2, 2);
    observe("token");
    cluster_pass(&c, 3);
    assert_int_equal(sight.joins, 0);
    cluster_start_scheduler(&c);
    cluster_pass(&c, 3);
    assert_int_equal(sight.joins, 0);
    for (uint32_t i = 0; i < 4; i++)
        cluster_start(&c, &c.nodes[i], i < 2 ? PARAMO_ROLE_SERVER : PARAMO_ROLE_WORKER);
    assert_true(cluster_run(&c, has_joined, NULL, 2));
    assert_true(sight.joined == PARAMO_OK && sight.views == 1);
    cluster_pass(&c, 5);
    assert_int_equal(sight.number, number_of_members());
    unsigned views = sight.views;
    cluster_pass(&c, 10);
    assert_int_equal(sight.views, views); /* nothing has changed: it tells nothing */

    uint32_t id = member_id(c.nodes[2].member); /* a worker */
    cluster_kill(&c.nodes[2]);
    cluster_pass(&c, 20);
    assert_true(sight.number == number_of_members() && sight.views > views);
    assert_false(view_node(observer_view(sight.observer), id)->alive);
    assert_int_equal(sight.ends, 0);
    off();
}

/* What is needed is asked for at once, whatever the second says, and once: not in each round. */
static void asks_at_once(void **state)
{
    (void)state;
    struct tcall call;
    paramo_table_options options = {.size = sizeof options, .dim = 1, .optimizer = PARAMO_OPT_ADD};
    cluster_start_all(&c, 1, 1);
    observe("token");
    assert_true(cluster_run(&c, has_joined, NULL, 5));
    for (unsigned i = 0; i < 20; i++) {
        char name[] = "table-a";
        name[6] = (char)('a' + i);
        cluster_pass(&c, 0.3 + 0.037 * i);
        TCALL(&c.nodes[1], &call,
              member_table_open(c.nodes[1].member, &call.call, name, &options, in_seconds(&c, 10)));
        assert_int_equal(tcall_wait(&c, &call), PARAMO_OK);
        cluster_pass(&c, 0.06);
        uint64_t number = number_of_members();
        tnode_enter(node);
        uint64_t before = observer_answered(sight.observer), query = 0;
        if (i % 2)
            query = observer_ask(sight.observer);
        else
            observer_need(sight.observer, number);
        tnode_leave(node);
        assert_true(cluster_run(&c, has_newer, &number, 0.1));
        assert_non_null(view_table_named(observer_view(sight.observer), name));
        assert_true(observer_answered(sight.observer) >= query &&
                    observer_answered(sight.observer) <= before + 2);
    }
    off();
}

/* Without a scheduler it ends when its patience does, and not before. */
static void scheduler_goes(void **state)
{
    (void)state;
    cluster_start_all(&c, 1, 1);
    observe("token");
    assert_true(cluster_run(&c, has_joined, NULL, 5));
    cluster_pass(&c, 10 * PATIENCE_S);
    assert_int_equal(sight.ends, 0);
    cluster_kill_scheduler(&c);
    cluster_pass(&c, PATIENCE_S - 1.2);
    assert_int_equal(sight.ends, 0);
    assert_true(cluster_run(&c, has_ended, NULL, 8));
    assert_int_equal(sight.ended, PARAMO_E_CONNECTION_REFUSED);
    assert_non_null(strstr(sight.text, "scheduler:1"));
    cluster_pass(&c, 20);
    tnode_enter(node);
    observer_need(sight.observer, UINT64_MAX); /* nothing any more */
    tnode_leave(node);
    cluster_pass(&c, 20);
    assert_true(sight.ends == 1 && sight.joins == 1);
    off();
}

/* A job that another one replaces is over, although the address answers. */
static void another_job(void **state)
{
    (void)state;
    cluster_start_all(&c, 1, 1);
    observe("token");
    assert_true(cluster_run(&c, has_joined, NULL, 5));
    cluster_kill_scheduler(&c);
    cluster_kill(&c.nodes[0]);
    cluster_kill(&c.nodes[1]);
    cluster_start_scheduler(&c);
    cluster_start(&c, &c.nodes[2], PARAMO_ROLE_SERVER);
    cluster_start(&c, &c.nodes[3], PARAMO_ROLE_WORKER);
    assert_true(cluster_run(&c, has_ended, NULL, PATIENCE_S));
    assert_int_equal(sight.ended, PARAMO_E_SHUTDOWN);
    assert_non_null(strstr(sight.text, "another one runs at scheduler:1"));
    off();
}

static void never_joins(void **state)
{
    (void)state;
    cluster_init(&c, 5, 1, 1);
    observe("token");
    cluster_pass(&c, 19);
    assert_int_equal(sight.joins, 0);
    assert_true(cluster_run(&c, has_joined, NULL, 5));
    assert_int_equal(sight.joined, PARAMO_E_CONNECTION_REFUSED);
    off();

    cluster_init(&c, 6, 1, 1);
    cluster_start_scheduler(&c);
    observe("wrong");
    assert_true(cluster_run(&c, has_joined, NULL, 2));
    assert_int_equal(sight.joined, PARAMO_E_TOKEN);
    off();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(follows), cmocka_unit_test(asks_at_once),
                                       cmocka_unit_test(scheduler_goes), cmocka_unit_test(another_job),
                                       cmocka_unit_test(never_joins)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
