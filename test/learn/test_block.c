#include "learn/data/block.h"
#include "learn/support_learn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The keys of a block as its distinct keys and places, in no order. */
static struct block_keys *places_of(const struct block *b)
{
    uint32_t *place = calloc(b->features + 1, sizeof *place);
    struct block_keys *keys;
    for (size_t i = 0; i < b->features; i++)
        place[i] = (uint32_t)i;
    assert_int_equal(block_keys_new(b->key, b->features, place, b->features, &keys), PARAMO_OK);
    free(place);
    return keys;
}

/* The row of `from` that row r of `to` is, within [first, end); each row has a label of its own. */
static size_t find(const struct block *from, const struct block *to, size_t r, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        if (from->label[i] == to->label[r])
            return i;
    fail_msg("row %zu is not of its window", r);
    return 0;
}

static void check_row(const struct block *from, size_t i, const struct block *to, size_t r)
{
    const size_t a = from->offset[i], b = to->offset[r], n = from->offset[i + 1] - a;
    assert_int_equal(to->offset[r + 1] - b, n);
    for (size_t k = 0; k < n; k++)
        assert_true(from->key[a + k] ==
                    (to->place ? to->distinct[block_row_places(to, r)[k]] : to->key[b + k]));
    if (from->weight != NULL)
        assert_true(from->weight[i] == to->weight[r]);
    if (from->value != NULL)
        assert_memory_equal(from->value + a, to->value + b, n * sizeof *to->value);
    if (from->field != NULL)
        assert_memory_equal(from->field + a, to->field + b, n * sizeof *to->field);
}

static void test_rows_stay_whole_and_in_their_window(void **state)
{
    (void)state;
    uint64_t s = 1;
    for (unsigned i = 0; i < 100; i++) {
        const size_t rows = draw(&s) % 300, window = 1 + draw(&s) % 100;
        struct block from = random_block(draw(&s), rows, 8, 50, 1, i % 2), to;
        for (size_t r = 0; r < rows; r++)
            from.label[r] = (float)r;
        struct block_keys *keys = places_of(&from);
        const struct block with = block_with_keys(&from, keys);
        assert_int_equal(block_shuffle(i % 3 == 0 ? &with : &from, window, draw(&s), &to), PARAMO_OK);
        assert_true((to.key == NULL) == (i % 3 == 0) && (to.place == NULL) == (i % 3 != 0));
        assert_true((to.row_place == NULL) == (i % 3 != 0));
        assert_true(to.rows == rows && to.features == from.features && to.offset[0] == 0);
        assert_true((to.value != NULL) == (from.value != NULL) && to.stream == from.stream);
        assert_true((to.weight != NULL) == (from.weight != NULL));
        char *seen = calloc(rows + 1, 1);
        for (size_t r = 0; r < rows; r++) {
            const size_t first = r - r % window, end = first + window < rows ? first + window : rows;
            const size_t row = find(&from, &to, r, first, end);
            assert_false(seen[row]);
            seen[row] = 1;
            check_row(&from, row, &to, r);
        }
        free(seen);
        struct block weighed;
        const float ones[] = {1};
        for (size_t r = 0; r < rows; r++)
            to.label[r] = 0;
        assert_int_equal(block_weigh(&to, ones, 1, &weighed), PARAMO_OK);
        for (size_t r = 0; to.place && r < rows; r++)
            assert_memory_equal(block_row_places(&weighed, r), block_row_places(&to, r),
                                (to.offset[r + 1] - to.offset[r]) * sizeof *to.place);
        block_free(&weighed);
        block_keys_free(keys);
        block_free(&to);
        block_free(&from);
    }
}

static void test_the_order_depends_on_the_seed_only(void **state)
{
    (void)state;
    enum { ROWS = 200 };
    struct block from = random_block(1, ROWS, 3, 50, 1, 0), a, b, c;
    size_t moved = 0;
    for (size_t r = 0; r < ROWS; r++)
        from.label[r] = (float)r;
    assert_int_equal(block_shuffle(&from, ROWS, 7, &a), PARAMO_OK);
    assert_int_equal(block_shuffle(&from, ROWS, 7, &b), PARAMO_OK);
    assert_int_equal(block_shuffle(&from, ROWS, 8, &c), PARAMO_OK);
    assert_memory_equal(a.label, b.label, ROWS * sizeof *a.label);
    assert_memory_not_equal(a.label, c.label, ROWS * sizeof *a.label);
    for (size_t r = 0; r < ROWS; r++)
        moved += a.label[r] != (float)r;
    assert_true(moved > ROWS * 9 / 10);
    block_free(&a);
    block_free(&b);
    block_free(&c);
    block_free(&from);
}

/* Weights are times that of the label; the rest is the same. */
static void test_rows_weigh_as_their_class(void **state)
{
    (void)state;
    static const float class_weight[] = {0.5f, 3};
    for (int weighed = 0; weighed < 2; weighed++) {
        struct block from = random_block(5, 300, 6, 50, 1, 1), to;
        float *weight = calloc(from.rows, sizeof *weight), *own = from.weight;
        for (size_t r = 0; r < from.rows; r++) {
            from.label[r] = (float)(r % 3);
            weight[r] = (float)(r % 5);
        }
        from.weight = weighed ? weight : NULL;
        struct block_keys *keys = places_of(&from);
        const struct block with = block_with_keys(&from, keys);
        assert_int_equal(block_weigh(weighed ? &with : &from, class_weight, 2, &to), PARAMO_OK);
        for (size_t r = 0; r < from.rows; r++) {
            const float of_class = r % 3 == 0 ? 0.5f : r % 3 == 1 ? 3 : 1;
            assert_true(to.weight[r] == (weighed ? (float)(r % 5) : 1) * of_class);
            assert_true(to.label[r] == from.label[r]);
        }
        from.weight = NULL; /* check_row compares all but these */
        for (size_t r = 0; r < from.rows; r++)
            check_row(&from, r, &to, r);
        from.weight = own;
        free(weight);
        block_keys_free(keys);
        block_free(&from);
        block_free(&to);
    }
}

/* All rows of label 1, the share of the others, whole and in order; another seed takes others. */
static void test_negative_rows_are_thinned(void **state)
{
    (void)state;
    enum { ROWS = 4000 };
    for (int values = 0; values < 2; values++) {
        struct block from = random_block(4, ROWS, 6, 50, 1, values), a, b, c;
        uint16_t *field = calloc(from.features + 1, sizeof *field);
        size_t positives = 0, at = 0, differ = 0;
        for (size_t i = 0; i < from.features; i++)
            field[i] = (uint16_t)(i % 1000);
        from.field = field;
        for (size_t r = 0; r < ROWS; r++)
            positives += from.label[r] > 0.5f;
        assert_int_equal(block_thin(&from, 0.25, 7, &a), PARAMO_OK);
        assert_int_equal(block_thin(&from, 0.25, 7, &b), PARAMO_OK);
        assert_int_equal(block_thin(&from, 0.25, 8, &c), PARAMO_OK);
        const double kept = (double)(a.rows - positives) / (double)(ROWS - positives);
        assert_true(kept > 0.22 && kept < 0.28); /* three standard deviations */
        for (size_t r = 0; r < a.rows; r++, at++) {
            for (;; at++) { /* by its features' fields, which say where they were */
                const size_t n = from.offset[at + 1] - from.offset[at];
                if (from.label[at] == a.label[r] && n == a.offset[r + 1] - a.offset[r] &&
                    memcmp(from.field + from.offset[at], a.field + a.offset[r], n * sizeof *field) == 0)
                    break;
                assert_true(at + 1 < ROWS && from.label[at] <= 0.5f); /* that one was left out */
            }
            check_row(&from, at, &a, r);
        }
        assert_int_equal(a.offset[a.rows], a.features);
        assert_true(a.rows == b.rows && memcmp(a.offset, b.offset, (a.rows + 1) * sizeof *a.offset) == 0);
        for (size_t r = 0; r < a.rows && r < c.rows; r++)
            differ += a.offset[r] != c.offset[r];
        assert_true(differ > 100);
        block_free(&a);
        block_free(&b);
        block_free(&c);
        from.field = NULL;
        free(field);
        block_free(&from);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_stay_whole_and_in_their_window),
                                       cmocka_unit_test(test_the_order_depends_on_the_seed_only),
                                       cmocka_unit_test(test_rows_weigh_as_their_class),
                                       cmocka_unit_test(test_negative_rows_are_thinned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
