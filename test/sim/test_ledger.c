/* What the model knows of owners: by which views a shard had a key. */
#include "unit.h"

#include <stdlib.h>

#include "cluster/view/view.h"
#include "sim/world.h"

/* A view of two shards, in which one of them owns everything since view `since`. */
static struct view *view_make(struct view_shard *shards, uint64_t number, uint16_t owner, uint64_t since)
{
    struct view *view = calloc(1, sizeof *view);
    assert_non_null(view);
    view->number = number;
    view->shards = shards;
    view->shards_count = 2;
    shards[owner].partitions_changed = since;
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        view->chains.level[0].owner[a] = owner;
    return view;
}

static void becomes(struct world *w, struct view_shard *shards, uint64_t number, uint16_t owner,
                    uint64_t since)
{
    struct view *view = view_make(shards, number, owner, since);
    ledger_owners(w, view);
    free(view);
}

/* Nobody need have seen the view itself that gave it the key: the job's first that anybody sees is not its
 * first, and a customer says by which change of owners it was answered. */
static void an_owner_owns_since_the_change(void **state)
{
    (void)state;
    struct view_shard shards[2] = {{0}};
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    ledger_init(w);
    const struct ledger_key *key = &w->ledger[SIM_SPARSE].keys[7];
    assert_false(ledger_owned(key, 0, 9));
    becomes(w, shards, 5, 0, 3);
    assert_false(ledger_owned(key, 0, 2));
    assert_true(ledger_owned(key, 0, 3));
    assert_true(ledger_owned(key, 0, 5));
    assert_false(ledger_owned(key, 1, 5));
    free(w);
}

static void a_key_that_was_given_back_was_owned_before(void **state)
{
    (void)state;
    struct view_shard shards[2] = {{0}};
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    ledger_init(w);
    const struct ledger_key *key = &w->ledger[SIM_SPARSE].keys[7];
    becomes(w, shards, 3, 0, 3);
    becomes(w, shards, 12, 1, 10);
    assert_true(ledger_owned(key, 0, 9) && !ledger_owned(key, 1, 9));
    assert_true(!ledger_owned(key, 0, 10) && ledger_owned(key, 1, 10));
    becomes(w, shards, 22, 0, 20);
    assert_false(ledger_owned(key, 0, 2));
    assert_true(ledger_owned(key, 0, 9));
    assert_false(ledger_owned(key, 0, 10));
    assert_false(ledger_owned(key, 0, 19));
    assert_true(ledger_owned(key, 0, 20));
    assert_true(!ledger_owned(key, 1, 9) && ledger_owned(key, 1, 19) && !ledger_owned(key, 1, 20));
    free(w);
}

/* Without copies: what a server takes that has died since, or that is dead to all others and does not know
 * it, may be gone. */
static void what_a_dead_server_took_need_not_stay(void **state)
{
    (void)state;
    const struct schedule schedule = {0};
    const uint32_t deaths[SIM_SERVERS] = {0};
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->schedule = &schedule;
    assert_true(ledger_stays(w, SIM_CELLS, 5, deaths));
    w->ghost_at = 4;
    assert_true(ledger_stays(w, SIM_CELLS, 5, deaths));
    w->ghost_at = 5;
    assert_false(ledger_stays(w, SIM_CELLS, 5, deaths));
    w->ghost_at = 0;
    w->deaths[1] = 1;
    assert_false(ledger_stays(w, SIM_CELLS, 5, deaths));
    assert_true(ledger_stays(w, SIM_CELLS, 5, w->deaths));
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_owns_since_the_change),
        cmocka_unit_test(a_key_that_was_given_back_was_owned_before),
        cmocka_unit_test(what_a_dead_server_took_need_not_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
