/* Keysets: rows are found when all of a part are known, for their owner and generation only. */
#include <stdlib.h>
#include <string.h>

#include "paramo/paramo.h"
#include "table/keyset.h"
#include "table/table.h"
#include "unit.h"

enum { N = 10 };

static uint64_t keys[N];

static paramo_keyset *keyset_of_keys(struct paramo_keyset *set)
{
    for (uint64_t i = 0; i < N; i++)
        keys[i] = 7 * i;
    *set = (struct paramo_keyset){.keys = keys, .n = N};
    return set;
}

static void rows_free(struct paramo_keyset *set)
{
    for (struct keyset_rows *r = set->first, *next; r; r = next) {
        next = r->next;
        free(r);
    }
}

static void test_known_rows_are_found(void **state)
{
    (void)state;
    struct paramo_keyset own, *set = keyset_of_keys(&own);
    const uint32_t some[] = {1, 4, 9}, other[] = {1, 5}, rows[] = {30, 20, 10}, none[] = {30, TABLE_NO_ROW};
    const struct keyset_part part = {set, some, 3}, two = {set, other, 2};
    const uint64_t a = keyset_owner_new(), b = keyset_owner_new();
    uint32_t got[3];
    assert_true(a != 0 && a != b);
    assert_false(keyset_find(&part, a, 1, got));
    keyset_note(&part, a, 1, rows);
    assert_true(keyset_find(&part, a, 1, got));
    assert_memory_equal(got, rows, sizeof rows);
    assert_false(keyset_find(&part, b, 1, got)); /* of another table */
    assert_false(keyset_find(&part, a, 2, got)); /* of another generation */
    assert_false(keyset_find(&two, a, 1, got));  /* 5 is not known */
    keyset_note(&two, a, 1, none);
    assert_false(keyset_find(&two, a, 1, got)); /* it has no row */
    assert_true(keyset_find(&part, a, 1, got));
    keyset_note(&two, a, 2, rows);
    assert_true(keyset_find(&two, a, 2, got));
    assert_false(keyset_find(&part, a, 2, got)); /* its rows were those of generation 1 */
    assert_false(keyset_find(&part, a, 1, got));
    rows_free(set);
}

static void test_places_beyond_the_set(void **state)
{
    (void)state;
    struct paramo_keyset own, *set = keyset_of_keys(&own);
    const uint32_t beyond[] = {2, N}, rows[] = {5, 6};
    const struct keyset_part part = {set, beyond, 2}, first = {set, beyond, 1};
    const uint64_t named[] = {14, 70}, wrong[] = {15};
    uint32_t got[2];
    keyset_note(&part, 1, 1, rows);
    assert_false(keyset_find(&part, 1, 1, got));
    assert_true(keyset_find(&first, 1, 1, got));
    assert_int_equal(got[0], 5);
    assert_false(keyset_part_fits(&part, named));
    assert_true(keyset_part_fits(&first, named));
    assert_false(keyset_part_fits(&first, wrong));
    rows_free(set);
}

static void test_more_tables_than_it_notes(void **state)
{
    (void)state;
    struct paramo_keyset own, *set = keyset_of_keys(&own);
    const uint32_t place[] = {3}, rows[] = {8};
    const struct keyset_part part = {set, place, 1};
    uint32_t got[1];
    for (uint64_t owner = 1; owner <= KEYSET_TABLES + 1; owner++)
        keyset_note(&part, owner, 1, rows);
    for (uint64_t owner = 1; owner <= KEYSET_TABLES; owner++)
        assert_true(keyset_find(&part, owner, 1, got));
    assert_false(keyset_find(&part, KEYSET_TABLES + 1, 1, got));
    rows_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_rows_are_found),
        cmocka_unit_test(test_places_beyond_the_set),
        cmocka_unit_test(test_more_tables_than_it_notes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
