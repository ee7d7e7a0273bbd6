/* What the model knows of owners: by which views a shard had a key. */
#include "unit.h"

#include <stdlib.h>

#include "cluster/view/view.h"
#include "ring/partition_set.h"
#include "sim/bounds.h"
#include "sim/cells.h"
#include "sim/ckpts_state.h"
#include "sim/ledger.h"
#include "sim/overdue.h"
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

/* It may be that no node has seen the view that gave it the key: the first view of the job that a node sees is not
 * the job's first, and a customer says by which change of owners it was answered. */
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

/* Without copies: what a server takes that has died since, or that is dead to all others and does not know it, may be
 * gone. Only of its own keys: another server's death, or another ghost, excuses nothing. */
static void what_a_dead_server_took_need_not_stay(void **state)
{
    (void)state;
    const struct schedule schedule = {.shards = 1};
    const uint32_t deaths[SIM_SERVERS] = {0};
    struct view_shard shards[2] = {{0}};
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->schedule = &schedule;
    ledger_init(w);
    becomes(w, shards, 5, 0, 3);
    struct ledger_key *key = &w->ledger[SIM_CELLS].keys[7];
    assert_true(ledger_stays(w, SIM_CELLS, 7, 5, deaths));
    key->past->ghost_at = 4;
    assert_true(ledger_stays(w, SIM_CELLS, 7, 5, deaths));
    key->past->ghost_at = 5;
    assert_false(ledger_stays(w, SIM_CELLS, 7, 5, deaths));
    assert_true(ledger_stays(w, SIM_CELLS, 8, 5, deaths));
    key->past->ghost_at = 0;
    w->ghost_at = 5; /* of other keys */
    w->deaths[1] = 1;
    assert_true(ledger_stays(w, SIM_CELLS, 7, 5, deaths));
    w->deaths[0] = 1;
    assert_false(ledger_stays(w, SIM_CELLS, 7, 5, deaths));
    assert_true(ledger_stays(w, SIM_CELLS, 7, 5, w->deaths));
    becomes(w, shards, 9, 1, 8);
    assert_false(ledger_stays(w, SIM_CELLS, 7, 5, deaths)); /* it had the key */
    free(w);
}

/* The same in a job with copies, of a table that has none: a death counts for the keys that the dead server owned. */
static void a_death_takes_the_dead_server_s_rows(void **state)
{
    (void)state;
    const struct schedule schedule = {.shards = 1, .replicas = 1, .fewer = SIM_SPARSE + 1};
    const uint32_t deaths[SIM_SERVERS] = {0};
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->schedule = &schedule;
    ledger_init(w);
    w->lost_at = 6;
    w->ledger[SIM_SPARSE].keys[7].died_at = 6;
    assert_false(ledger_stays(w, SIM_SPARSE, 7, 5, deaths));
    assert_true(ledger_stays(w, SIM_SPARSE, 7, 7, deaths));
    assert_true(ledger_stays(w, SIM_SPARSE, 8, 5, deaths));
    free(w);
}

/* Rows from before a load are answered only by a server that was declared dead before the load ended. */
static void a_ghost_of_after_a_load_has_loaded(void **state)
{
    (void)state;
    const struct schedule schedule = {.shards = 1};
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->schedule = &schedule;
    ledger_init(w);
    const struct ledger_key *key = &w->ledger[SIM_SPARSE].keys[7];
    w->loaded_at = 5;
    key->past->ghost_at = 9;
    assert_false(ledger_of_before_death(w, SIM_SPARSE, key, 8));
    key->past->ghost_stale_at = 9;
    assert_true(ledger_of_before_death(w, SIM_SPARSE, key, 8));
    assert_false(ledger_of_before_death(w, SIM_SPARSE, key, 10));
    assert_false(ledger_of_before_death(w, SIM_SPARSE, &w->ledger[SIM_SPARSE].keys[8], 8));
    free(w);
}

/* A read that began while a dead owner's lease was overdue may lack what was acknowledged since the lease should have
 * ended, of that owner's keys. It has all older changes; and no read that began earlier or later lacks anything. */
static void a_read_by_an_overdue_lease_is_old(void **state)
{
    (void)state;
    const struct schedule schedule = {.replicas = 1};
    uint64_t theirs[PARTITION_WORDS] = {0}, none[PARTITION_WORDS] = {0};
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->schedule = &schedule;
    ledger_init(w);
    struct ledger_key *key = &w->ledger[SIM_CELLS].keys[7], *other = &w->ledger[SIM_SPARSE].keys[7];
    partition_set_add(theirs, key->partition);
    if (other->partition == key->partition)
        other = &w->ledger[SIM_SPARSE].keys[8];
    w->moment = 10;
    key->must = other->must = 1;
    cell_write(&w->cells[7], 70, 5);
    cell_written(&w->cells[7], 70, 5, 8);
    overdue_mark(w, theirs, theirs);
    w->moment = 20;
    key->must = other->must = 5;
    cell_write(&w->cells[7], 71, 15);
    cell_written(&w->cells[7], 71, 15, 18);
    overdue_mark(w, theirs, none);
    const uint64_t begins[] = {10, 11, 20, 21}, must[] = {5, 1, 1, 5}, judged[] = {10, 10, 10, 21};
    for (unsigned i = 0; i < 4; i++) {
        uint64_t from = begins[i], least = 5;
        overdue_read(key, &from, &least);
        assert_int_equal(least, must[i]);
        assert_int_equal(from, judged[i]);
        assert_true(cell_may_be(&w->cells[7], 70, from) == (from < 18));
        assert_false(cell_may_be(&w->cells[7], 0, from));
        from = begins[i], least = 5;
        overdue_read(other, &from, &least);
        assert_int_equal(least, 5);
        assert_int_equal(from, begins[i]);
    }
    assert_int_equal(overdue_oldest(w, 20), 10);
    assert_int_equal(overdue_oldest(w, 21), 21);
    assert_int_equal(overdue_oldest(w, 9), 9);
    free(w);
}

/* A scan that began when a row was missing may leave it out at its end, although all reads that are open then are
 * younger than the row, and the model has forgotten what they cannot return. */
static void a_missing_row_is_not_forgotten(void **state)
{
    (void)state;
    struct schedule none = {0};
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->schedule = &none;
    ledger_init(w);
    struct cell *cell = &w->cells[7];
    for (uint64_t value = 1; value <= 2 * SIM_CELL_VALUES; value++) {
        assert_true(cell_room(w, cell));
        cell_write(cell, value, ++w->moment);
        cell_written(cell, value, w->moment, w->moment + 1);
        w->moment += 2;
    }
    assert_true(cell->n < SIM_CELL_VALUES);
    assert_true(cell_may_be(cell, 0, 1)); /* gone at 2, when the first value was there */
    assert_false(cell_may_be(cell, 0, 2));
    assert_true(cell_may_be(cell, 2 * SIM_CELL_VALUES, w->moment));
    free(w);
}

/* Does a read of the row that began before the load was tried give a violation? */
static bool is_wrong(struct world *w, uint64_t value, unsigned n, uint64_t from)
{
    const uint64_t vals[2] = {value, value};
    w->broken[0] = '\0';
    ledger_row_check(w, "a test", SIM_SPARSE, 7, vals, n, 5, from);
    return w->broken[0] != '\0';
}

/* While a checkpoint is loaded, a read finds what the row was or what the checkpoint has, and no mixture of both. */
static void a_read_amid_a_load_is_old_or_loaded(void **state)
{
    (void)state;
    const struct schedule schedule = {.shards = 1, .replicas = 1};
    const bool has[SIM_TABLES] = {[SIM_SPARSE] = true};
    struct world *w = calloc(1, sizeof *w);
    struct ckpts *c = calloc(1, sizeof *c);
    struct load_attempt *attempt = calloc(1, sizeof *attempt);
    assert_true(w && c && attempt);
    w->schedule = &schedule;
    w->ckpts = c;
    ledger_init(w);
    struct ledger_key *key = &w->ledger[SIM_SPARSE].keys[7];
    key->sent = key->acked = key->must = 1;
    struct bounds *begun = bounds_begin(w), *b = bounds_end(w, begun, has);
    key->sent = key->acked = key->must = 5;
    uint64_t from = ++w->moment;
    struct ckpt_seen seen = {.number = 1, .there = true, .until = UINT64_MAX, .bounds = b};
    c->seen = &seen;
    bounds_load_begins(w, attempt);
    assert_false(is_wrong(w, 5, 2, from));
    assert_false(is_wrong(w, 1, 2, from));
    assert_true(is_wrong(w, 4, 2, from));
    assert_true(is_wrong(w, 0, 0, from));
    assert_int_equal(ledger_least(w, SIM_SPARSE, 7, 5, from), 1);
    seen.until = 0; /* no load of it was tried */
    assert_true(is_wrong(w, 1, 2, from));
    w->broken[0] = '\0';
    ledger_memory_check(w, "a test", SIM_SPARSE, 7, NULL, 0, 0); /* it is being replaced */
    assert_int_equal(w->broken[0], '\0');
    assert_true(is_wrong(w, 0, 0, from));
    seen.until = UINT64_MAX;
    bounds_loaded(w, b, attempt);
    seen.until = w->loaded_at;
    assert_false(is_wrong(w, 5, 2, from)); /* it began before the load ended */
    assert_true(is_wrong(w, 5, 2, ++w->moment));
    assert_false(is_wrong(w, 1, 2, w->moment));
    free(begun);
    free(b);
    free(attempt);
    free(c);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_owns_since_the_change),
        cmocka_unit_test(a_key_that_was_given_back_was_owned_before),
        cmocka_unit_test(what_a_dead_server_took_need_not_stay),
        cmocka_unit_test(a_death_takes_the_dead_server_s_rows),
        cmocka_unit_test(a_ghost_of_after_a_load_has_loaded),
        cmocka_unit_test(a_read_by_an_overdue_lease_is_old),
        cmocka_unit_test(a_read_amid_a_load_is_old_or_loaded),
        cmocka_unit_test(a_missing_row_is_not_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
