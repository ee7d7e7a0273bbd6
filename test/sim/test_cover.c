/* The count of transitions: what is seen is counted once, with the faults that came before it, and what no
 * table has is a violation. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cover.h"
#include "sim/play.h"
#include "sim/world.h"

/* Two processes that have a member_slot each, and nothing else. */
struct bed {
    struct world *w;
    struct member_slot member_slots[2];
    paramo_node *nodes[2];
};

static int set_up(void **state)
{
    struct bed *b = calloc(1, sizeof *b);
    b->w = calloc(1, sizeof *b->w);
    b->w->count = 2;
    for (uint32_t k = 0; k < 2; k++) {
        struct machine *m = &b->w->machines[k];
        b->nodes[k] = calloc(1, sizeof *b->nodes[k]);
        b->nodes[k]->own = &b->member_slots[k];
        atomic_store(&b->member_slots[k].state, MEMBER_SLOT_JOINING);
        *m = (struct machine){.world = b->w, .node = k, .up = true, .made = b->nodes[k]};
        (void)snprintf(m->name, sizeof m->name, "s%u", k);
        cover_make(m);
        cover_watch(m);
    }
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    struct bed *b = *state;
    for (uint32_t k = 0; k < 2; k++) {
        cover_free(&b->w->machines[k]);
        free(b->nodes[k]);
    }
    free(b->w);
    free(b);
    return 0;
}

static void goes(struct bed *b, unsigned k, enum member_slot_state state)
{
    atomic_store(&b->member_slots[k].state, (int)state);
    cover_watch(&b->w->machines[k]);
}

static void a_transition_is_counted_once(void **state)
{
    struct bed *b = *state;
    const struct coverage *c = &b->w->coverage;
    assert_int_equal(c->transitions[COVER_member_slot_none_joining], 2);
    goes(b, 0, MEMBER_SLOT_JOINED);
    goes(b, 0, MEMBER_SLOT_JOINED);
    assert_int_equal(c->transitions[COVER_member_slot_joining_joined], 1);
    goes(b, 1, MEMBER_SLOT_FAILED);
    assert_int_equal(c->transitions[COVER_member_slot_joining_failed], 1);
    assert_string_equal(b->w->broken, "");
}

static void a_fault_is_before_the_next_transition_only(void **state)
{
    struct bed *b = *state;
    const struct coverage *c = &b->w->coverage;
    cover_fault(b->w, FAULT_cut, 0, 0);
    cover_fault(b->w, FAULT_cut, 0, 0);
    cover_fault(b->w, FAULT_pause, 0, 0);
    goes(b, 1, MEMBER_SLOT_JOINED); /* nothing has struck it */
    assert_int_equal(c->pairs[COVER_member_slot_joining_joined][FAULT_cut], 0);
    goes(b, 0, MEMBER_SLOT_JOINED);
    assert_int_equal(c->pairs[COVER_member_slot_joining_joined][FAULT_cut], 1);
    assert_int_equal(c->pairs[COVER_member_slot_joining_joined][FAULT_pause], 1);
    goes(b, 0, MEMBER_SLOT_ENDED);
    assert_int_equal(c->transitions[COVER_member_slot_joined_ended], 1);
    assert_int_equal(c->pairs[COVER_member_slot_joined_ended][FAULT_cut], 0);
}

static void a_process_that_is_killed_ends_what_it_had(void **state)
{
    struct bed *b = *state;
    const struct coverage *c = &b->w->coverage;
    goes(b, 0, MEMBER_SLOT_JOINED);
    cover_fault(b->w, FAULT_crash, 0, 0);
    cover_dies(&b->w->machines[0], true);
    assert_int_equal(c->transitions[COVER_member_slot_joined_killed], 1);
    assert_int_equal(c->pairs[COVER_member_slot_joined_killed][FAULT_crash], 1);
    cover_dies(&b->w->machines[1], false); /* its job is over: nothing is struck down */
    assert_int_equal(c->transitions[COVER_member_slot_joining_killed], 0);
    goes(b, 1, MEMBER_SLOT_JOINING); /* the next process */
    assert_int_equal(c->transitions[COVER_member_slot_none_joining], 3);
    assert_string_equal(b->w->broken, "");
}

static void what_no_table_has_is_a_violation(void **state)
{
    struct bed *b = *state;
    goes(b, 0, MEMBER_SLOT_JOINED);
    goes(b, 0, MEMBER_SLOT_JOINING);
    assert_string_equal(b->w->broken,
                        "s0: a member_slot went from joined to joining, which is no transition of it");
}

static void a_play_has_them_all_again(void **state)
{
    (void)state;
    struct play_result *a = calloc(2, sizeof *a), *b = a + 1;
    struct schedule s;
    assert_int_equal(schedule_draw(3, &s), PARAMO_OK);
    play(&s, a);
    play(&s, b);
    assert_memory_equal(&a->coverage, &b->coverage, sizeof a->coverage);
    assert_true(a->coverage.transitions[COVER_member_joining_joined] > 0);
    assert_true(a->coverage.transitions[COVER_link_connecting_up] > 0);
    for (unsigned m = 0; m < COVER_TRANSITIONS_COUNT; m++)
        for (unsigned k = 0; k < FAULT_KINDS_COUNT; k++)
            assert_true(a->coverage.pairs[m][k] <= a->coverage.transitions[m]);
    schedule_fini(&s);
    free(a);
}

static void each_has_a_name_of_its_own(void **state)
{
    (void)state;
    unsigned machines = 0;
    for (unsigned m = 0; m < COVER_TRANSITIONS_COUNT; m++) {
        machines += coverage_machine_text((enum cover_transition)m) != NULL;
        for (unsigned other = 0; other < m; other++)
            assert_string_not_equal(coverage_transition_name((enum cover_transition)m),
                                    coverage_transition_name((enum cover_transition)other));
    }
    assert_int_equal(machines, 17);
    assert_string_equal(coverage_transition_name(COVER_migration_source_full_pausing),
                        "migration_source full pausing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_transition_is_counted_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_fault_is_before_the_next_transition_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_process_that_is_killed_ends_what_it_had, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_no_table_has_is_a_violation, set_up, tear_down),
        cmocka_unit_test(a_play_has_them_all_again),
        cmocka_unit_test(each_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
