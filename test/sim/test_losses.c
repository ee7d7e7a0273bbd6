/* The rows that the model counts as lost, by the chains of the view before and the dead of the new one. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/view/view.h"
#include "server/shard/shard_impl.h"
#include "sim/bounds.h"
#include "sim/ckpts.h"
#include "sim/ledger.h"
#include "sim/losses.h"
#include "sim/world.h"

enum { SERVERS = 2, BEFORE = 4 };

static struct schedule schedule;
static struct view_node nodes[SERVERS];
static struct view_table table;

/* Server 0 has the partitions below the middle, server 1 the others; no copies. */
static struct world *world_make(void)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    schedule = (struct schedule){.servers = SERVERS, .shards = 1, .restores = true, .ckpt = true};
    w->schedule = &schedule;
    w->ring_shards = SERVERS;
    ledger_init(w);
    ckpts_make(w);
    for (unsigned i = 0; i < SERVERS; i++)
        w->holder[i] = 100 + i;
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        w->chains.level[0].owner[a] = a >= RING_PARTITIONS / 2;
    return w;
}

static void world_free(struct world *w)
{
    ckpts_free(w);
    free(w);
}

/* Of a table that was opened in view `since`, and says that from the middle on all partitions are lost since
 * view lost_at (0: none is). */
static struct view *view_make(uint64_t number, bool alive, uint64_t lost_at, uint64_t since)
{
    struct view *view = calloc(1, sizeof *view);
    assert_non_null(view);
    for (unsigned i = 0; i < SERVERS; i++)
        nodes[i] =
            (struct view_node){.id = PARAMO_ID_SERVER(i), .incarnation = 100 + i, .alive = i == 0 || alive};
    table = (struct view_table){.id = 1, .since = since};
    (void)snprintf(table.name, sizeof table.name, "%s", sim_table_names[SIM_SPARSE]);
    view->number = number;
    view->nodes = nodes;
    view->nodes_count = SERVERS;
    view->tables = &table;
    view->tables_count = 1;
    view->lost_at = lost_at;
    for (unsigned a = RING_PARTITIONS / 2; a < RING_PARTITIONS && lost_at; a++)
        view->lost[a] = RING_LEVELS;
    return view;
}

static void comes(struct world *w, uint64_t number, bool alive, uint64_t lost_at, uint64_t since)
{
    struct view *view = view_make(number, alive, lost_at, since);
    losses_came(w, view, BEFORE);
    free(view);
}

static unsigned lost(const struct world *w, enum sim_table t, bool behind)
{
    unsigned n = 0;
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        const struct ledger_key *k = &w->ledger[t].keys[i];
        n += k->lost && (k->partition >= RING_PARTITIONS / 2) == behind;
    }
    return n;
}

static unsigned of_server_1(const struct world *w)
{
    unsigned n = 0;
    for (unsigned i = 0; i < SIM_KEYS; i++)
        n += w->ledger[SIM_SPARSE].keys[i].partition >= RING_PARTITIONS / 2;
    return n;
}

static void what_the_dead_had_is_lost(void **state)
{
    (void)state;
    struct world *w = world_make();
    comes(w, BEFORE + 1, false, BEFORE + 1, 1);
    assert_string_equal(w->broken, "");
    assert_in_range(of_server_1(w), 1, SIM_KEYS - 1);
    assert_int_equal(lost(w, SIM_SPARSE, true), of_server_1(w));
    assert_int_equal(lost(w, SIM_SPARSE, false), 0);
    assert_int_equal(lost(w, SIM_DENSE, true), 0); /* the view has no such table */
    assert_int_equal(w->loss_view, BEFORE + 1);
    world_free(w);
}

static void a_table_that_came_later_has_lost_nothing(void **state)
{
    (void)state;
    struct world *w = world_make();
    comes(w, BEFORE + 1, false, BEFORE + 1, BEFORE + 1);
    assert_string_equal(w->broken, "");
    assert_int_equal(lost(w, SIM_SPARSE, true), 0);
    world_free(w);
}

/* Between views that follow each other no other server can have died. */
static void who_is_alive_has_lost_nothing(void **state)
{
    (void)state;
    struct world *w = world_make();
    comes(w, BEFORE + 1, true, BEFORE + 1, 1);
    assert_non_null(strstr(w->broken, "a living server has it"));
    world_free(w);
    w = world_make();
    comes(w, BEFORE + 2, true, BEFORE + 2, 1);
    assert_string_equal(w->broken, "");
    assert_int_equal(lost(w, SIM_SPARSE, true), of_server_1(w));
    world_free(w);
}

/* The rows were given up before anybody saw a view that has them lost. */
static void a_death_of_which_no_view_speaks(void **state)
{
    (void)state;
    struct world *w = world_make();
    comes(w, BEFORE + 1, false, 0, 1);
    assert_int_equal(lost(w, SIM_SPARSE, true), 0);
    assert_true(w->given_up > 0);
    world_free(w);
}

/* A server that is dead to all others answers with a row of before the first loss. The read ends after the second. */
static void what_a_ghost_had_is_older_after_another_loss(void **state)
{
    (void)state;
    struct world *w = world_make();
    comes(w, BEFORE + 1, false, BEFORE + 1, 1);
    struct ledger_key *k = w->ledger[SIM_SPARSE].keys;
    while (!k->lost)
        k++;
    uint64_t first = k->lost_at;
    w->moment += 9;
    k->past->ghost_at = w->moment;
    assert_int_equal(k->past->ghost_older_at, 0);
    comes(w, BEFORE + 2, false, BEFORE + 2, 1);
    assert_int_equal(k->past->lost_before, first);
    assert_int_equal(k->past->ghost_older_at, k->past->ghost_at);
    assert_true(k->past->ghost_older_at > first && k->past->ghost_older_at < k->lost_at);
    world_free(w);
}

static void they_are_back_when_no_view_has_them_lost(void **state)
{
    (void)state;
    static const bool has[SIM_TABLES] = {[SIM_SPARSE] = true};
    for (unsigned chosen = 0; chosen < 2; chosen++) {
        struct world *w = world_make();
        struct bounds *begun = bounds_begin(w), *whole = bounds_end(w, begun, has);
        comes(w, BEFORE + 1, false, BEFORE + 1, 1);
        struct ledger_key *k = NULL;
        for (unsigned i = 0; i < SIM_KEYS && !k; i++)
            k = w->ledger[SIM_SPARSE].keys[i].lost ? &w->ledger[SIM_SPARSE].keys[i] : NULL;
        assert_non_null(k);
        struct view seen = {.number = BEFORE + 1}, unseen = {.number = BEFORE};
        struct shard shard = {.view = &unseen};
        struct shard_table rows = {0};
        assert_true(losses_open(k, &shard, &rows)); /* of that view it knows nothing */
        shard.view = &seen;
        assert_false(losses_open(k, &shard, &rows));
        partition_set_add(rows.lost_partitions, k->partition);
        assert_true(losses_open(k, &shard, &rows));
        assert_true(losses_between(k, k->lost_at));
        assert_false(losses_between(k, k->lost_at + 1));
        k->past->ghost_at = k->lost_at + 9;
        assert_true(losses_between(k, k->lost_at + 1));
        if (chosen)
            losses_back(w, 3, whole);
        assert_int_equal(k->back, chosen ? 3 : 0);
        comes(w, BEFORE + 3, true, 0, 1);
        assert_int_equal(lost(w, SIM_SPARSE, true), 0);
        assert_int_equal(w->counts[PLAY_returned], chosen);
        assert_true(w->given_up > 0); /* no server is up that could have them */
        losses_forget(w);
        assert_false(losses_between(k, 0));
        assert_true(!w->given_up && !w->loss_view);
        free(begun);
        free(whole);
        world_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_dead_had_is_lost),
        cmocka_unit_test(a_table_that_came_later_has_lost_nothing),
        cmocka_unit_test(who_is_alive_has_lost_nothing),
        cmocka_unit_test(a_death_of_which_no_view_speaks),
        cmocka_unit_test(what_a_ghost_had_is_older_after_another_loss),
        cmocka_unit_test(they_are_back_when_no_view_has_them_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
