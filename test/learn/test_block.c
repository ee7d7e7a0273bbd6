#include "learn/data/block.h"
#include "learn/support_learn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
    assert_memory_equal(from->key + a, to->key + b, n * sizeof *to->key);
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
        assert_int_equal(block_shuffle(&from, window, draw(&s), &to), PARAMO_OK);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_stay_whole_and_in_their_window),
                                       cmocka_unit_test(test_the_order_depends_on_the_seed_only)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
