/* Lists of keys that both ends remember: names, bounds, and which list goes when there is no room. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "filter/keylists.h"
#include "unit.h"

enum { N = 16 };
#define LIST_BYTES (sizeof(struct keylist) + 8 * N)

/* The keys of list i. */
static const uint64_t *keys_of(unsigned i)
{
    static uint64_t keys[N];
    for (unsigned k = 0; k < N; k++)
        keys[k] = 1000 * (uint64_t)k + i;
    return keys;
}

static bool has(struct keylists *l, unsigned i)
{
    return keylists_find(l, 1, keys_of(i), N) != NULL;
}

static void use(struct keylists *l, unsigned i)
{
    if (!has(l, i))
        (void)keylists_admit(l, 1, keys_of(i), N);
}

static void lists_are_found_by_all_of_their_name(void **state)
{
    (void)state;
    struct keylists l;
    uint64_t other[N];
    keylists_init(&l, 0, KEYLISTS_BYTES, NULL, 0);
    assert_false(has(&l, 0));
    struct keylist *list = keylists_admit(&l, 1, keys_of(0), N);
    assert_non_null(list);
    assert_ptr_equal(keylists_find(&l, 1, keys_of(0), N), list);
    assert_null(keylists_find(&l, 2, keys_of(0), N)); /* another table */
    assert_null(keylists_find(&l, 1, keys_of(0), N - 1));
    memcpy(other, keys_of(0), sizeof other);
    other[N / 2]++;
    assert_null(keylists_find(&l, 1, other, N));
    assert_null(keylists_admit(&l, 1, keys_of(1), KEYLISTS_KEYS_MIN - 1)); /* too short */
    keylists_clear(&l);
    assert_int_equal(l.bytes, 0);
    assert_false(has(&l, 0));
}

static void a_receiver_compares_the_whole_name(void **state)
{
    (void)state;
    struct keylists l;
    uint64_t name[2], wrong[2];
    size_t total = 0;
    keylists_init(&l, 1, KEYLISTS_BYTES, &total, SIZE_MAX);
    keylists_sign(keys_of(0), N, name);
    assert_true(keylists_put(&l, 7, 1, keys_of(0), N));
    assert_int_equal(total, l.bytes);
    assert_non_null(keylists_get(&l, 7, 1, N, name));
    assert_null(keylists_get(&l, 6, 1, N, name));
    assert_null(keylists_get(&l, 7, 2, N, name));
    assert_null(keylists_get(&l, 7, 1, N - 1, name));
    for (unsigned bit = 0; bit < 128; bit++) {
        memcpy(wrong, name, sizeof wrong);
        wrong[bit / 64] ^= UINT64_C(1) << bit % 64;
        assert_null(keylists_get(&l, 7, 1, N, wrong));
    }
    assert_true(keylists_put(&l, 7, 1, keys_of(1), N)); /* the old one is gone */
    assert_null(keylists_get(&l, 7, 1, N, name));
    assert_false(keylists_put(&l, KEYLISTS_SLOTS, 1, keys_of(1), N));
    assert_null(keylists_get(&l, KEYLISTS_SLOTS, 1, N, name));
    assert_false(l.refused);
    keylists_clear(&l);
    assert_int_equal(total, 0);
}

static void a_receiver_has_bounds(void **state)
{
    (void)state;
    struct keylists a, b;
    size_t total = 0;
    uint64_t name[2];
    keylists_init(&a, 1, 3 * LIST_BYTES, &total, 4 * LIST_BYTES);
    keylists_init(&b, 1, 3 * LIST_BYTES, &total, 4 * LIST_BYTES);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(a.refused, false);
        assert_true(keylists_put(&a, i, 1, keys_of(i), N));
    }
    assert_true(a.refused); /* the fourth */
    keylists_sign(keys_of(3), N, name);
    assert_null(keylists_get(&a, 3, 1, N, name));
    assert_true(keylists_put(&b, 0, 1, keys_of(0), N));
    assert_false(b.refused);
    assert_true(keylists_put(&b, 1, 1, keys_of(1), N)); /* of both: five */
    assert_true(b.refused);
    assert_int_equal(total, 4 * LIST_BYTES);
    keylists_clear(&a);
    assert_false(a.refused);
    assert_int_equal(total, LIST_BYTES);
    keylists_clear(&b);
}

/* More lists than there is room for come round again and again: most of the room's worth is found. */
static void a_round_that_is_too_large_finds_most_of_the_room(void **state)
{
    (void)state;
    enum { ROOM = 100, ROUND = 200 };
    struct keylists l;
    unsigned found = 0;
    keylists_init(&l, 0, ROOM * LIST_BYTES, NULL, 0);
    for (unsigned round = 0; round < 4; round++) {
        found = 0;
        for (unsigned i = 0; i < ROUND; i++) {
            found += has(&l, i);
            use(&l, i);
        }
    }
    assert_in_range(found, ROOM - KEYLISTS_YOUNG - 1, ROOM);
    assert_true(l.bytes <= ROOM * LIST_BYTES);
    keylists_clear(&l);
}

/* Lists that never come again but right away: the second use is found, and old lists make room at last. */
static void new_lists_are_found_at_their_second_use(void **state)
{
    (void)state;
    enum { ROOM = 50 };
    struct keylists l;
    keylists_init(&l, 0, ROOM * LIST_BYTES, NULL, 0);
    for (unsigned i = 0; i < 20 * ROOM; i++) {
        use(&l, i);
        assert_true(has(&l, i));
    }
    assert_false(has(&l, 0));
    assert_int_equal(l.held, ROOM);
    keylists_clear(&l);
}

static void lists_of_messages_in_flight_stay(void **state)
{
    (void)state;
    struct keylists l;
    keylists_init(&l, 0, 4 * LIST_BYTES, NULL, 0);
    for (unsigned i = 0; i < 4; i++)
        keylists_admit(&l, 1, keys_of(i), N)->refs = 1;
    assert_null(keylists_admit(&l, 1, keys_of(4), N));
    keylists_find(&l, 1, keys_of(2), N)->refs = 0;
    assert_non_null(keylists_admit(&l, 1, keys_of(4), N));
    assert_false(has(&l, 2));
    assert_true(has(&l, 0) && has(&l, 1) && has(&l, 3));
    keylists_clear(&l);
}

static void a_subset_is_found_in_a_known_list(void **state)
{
    (void)state;
    struct keylists l;
    uint64_t some[4];
    keylists_init(&l, 0, KEYLISTS_BYTES, NULL, 0);
    struct keylist *list = keylists_admit(&l, 1, keys_of(0), N);
    some[0] = list->keys[0], some[1] = list->keys[3], some[2] = list->keys[4], some[3] = list->keys[N - 1];
    assert_null(keylists_around(&l, 1, some, 4)); /* the other end may not have it */
    list->known = true;
    assert_ptr_equal(keylists_around(&l, 1, some, 4), list);
    assert_null(keylists_around(&l, 2, some, 4));
    assert_null(keylists_around(&l, 1, keys_of(0), N)); /* all of them are no subset */
    some[1]++;
    assert_null(keylists_around(&l, 1, some, 4));
    keylists_clear(&l);
}

int main(void)
{
    (void)mallopt(M_PERTURB, 0x5a); /* slots that are not in use yet hold anything */
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists_are_found_by_all_of_their_name),
                                       cmocka_unit_test(a_receiver_compares_the_whole_name),
                                       cmocka_unit_test(a_receiver_has_bounds),
                                       cmocka_unit_test(a_round_that_is_too_large_finds_most_of_the_room),
                                       cmocka_unit_test(new_lists_are_found_at_their_second_use),
                                       cmocka_unit_test(lists_of_messages_in_flight_stay),
                                       cmocka_unit_test(a_subset_is_found_in_a_known_list)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
