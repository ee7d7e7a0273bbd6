/* Rows that never move, are used again, and respect their alignment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support_reference.h"
#include "table/rowslab.h"

static void rows_stay_where_they_are(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 4, 12, 24, 200, 300000};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        struct tablemem mem;
        struct rowslab s;
        tablemem_init(&mem, NULL);
        rowslab_init(&s, &mem, sizes[k], 8);
        uint32_t rows = sizes[k] > 1000 ? 20 : 100000;
        static char *at[100000];
        for (uint32_t i = 0; i < rows; i++) {
            uint32_t row;
            assert_int_equal(rowslab_alloc(&s, &row), PARAMO_OK);
            assert_int_equal(row, i);
            at[i] = rowslab_row(&s, row);
            assert_int_equal((uintptr_t)at[i] % 8, 0);
            memset(at[i], (int)(i % 251), sizes[k]);
        }
        for (uint32_t i = 0; i < rows; i++) {
            assert_ptr_equal(rowslab_row(&s, i), at[i]);
            assert_int_equal((unsigned char)at[i][0], i % 251);
            assert_int_equal((unsigned char)at[i][sizes[k] - 1], i % 251);
        }
        rowslab_clear(&s);
        assert_int_equal(mem.bytes, 0);
    }
}

static void freed_rows_are_used_first(void **state)
{
    (void)state;
    struct tablemem mem;
    struct rowslab s;
    tablemem_init(&mem, NULL);
    rowslab_init(&s, &mem, 4, 4);
    uint32_t row;
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(rowslab_alloc(&s, &row), PARAMO_OK);
    }
    rowslab_free(&s, 3);
    rowslab_free(&s, 7);
    assert_int_equal(s.used, 8);
    assert_int_equal(rowslab_alloc(&s, &row), PARAMO_OK);
    assert_int_equal(row, 7);
    assert_int_equal(rowslab_alloc(&s, &row), PARAMO_OK);
    assert_int_equal(row, 3);
    assert_int_equal(rowslab_alloc(&s, &row), PARAMO_OK);
    assert_int_equal(row, 10);
    rowslab_clear(&s);
}

static void without_memory_nothing_changes(void **state)
{
    (void)state;
    struct failing_alloc f;
    failing_alloc_init(&f);
    struct tablemem mem;
    struct rowslab s;
    tablemem_init(&mem, &f.alloc);
    rowslab_init(&s, &mem, 100000, 4);
    uint32_t row = 0;
    for (uint32_t i = 0; i < 40; i++) {
        for (size_t at = 1;; at++) {
            f.fail_at = at;
            paramo_err err = rowslab_alloc(&s, &row);
            if (err == PARAMO_OK) {
                break;
            }
            assert_int_equal(err, PARAMO_E_MEMORY);
            assert_int_equal(s.used, i);
        }
        f.fail_at = 0;
        assert_int_equal(row, i);
    }
    rowslab_clear(&s);
    assert_int_equal(f.live_blocks, 0);
}

/* Rows are freed in any order, and with the last row of a slab its memory. The other rows stay where they were, and
 * numbers are used again. */
static void empty_slabs_give_memory_back(void **state)
{
    (void)state;
    enum { ROWS = 4000, BYTES = 4096, OF_SLAB = 64 };
    struct tablemem mem;
    struct rowslab s;
    static char *at[ROWS];
    tablemem_init(&mem, NULL);
    rowslab_init(&s, &mem, BYTES, 8);
    uint32_t row;
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_int_equal(rowslab_alloc(&s, &row), PARAMO_OK);
        at[i] = rowslab_row(&s, row);
        memcpy(at[i], &i, sizeof i);
    }
    size_t full = mem.bytes;
    for (uint32_t i = 0; i < ROWS; i++) { /* scattered; but each of the last slabs keeps a row */
        uint32_t gone = (uint32_t)((uint64_t)i * 2777 % ROWS);
        if (gone < ROWS / 2 || gone % OF_SLAB) {
            rowslab_free(&s, gone);
        }
    }
    assert_true(mem.bytes < full * 6 / 10);
    assert_true(mem.bytes > full * 4 / 10);
    for (uint32_t i = ROWS / 2 + OF_SLAB - ROWS / 2 % OF_SLAB; i < ROWS; i += OF_SLAB) {
        uint32_t value;
        assert_ptr_equal(rowslab_row(&s, i), at[i]);
        memcpy(&value, at[i], sizeof value);
        assert_int_equal(value, i);
    }
    uint32_t highest = 0;
    while (s.used < ROWS) {
        assert_int_equal(rowslab_alloc(&s, &row), PARAMO_OK);
        highest = row > highest ? row : highest;
        memset(rowslab_row(&s, row), 1, BYTES);
    }
    assert_true(highest < ROWS + OF_SLAB);
    assert_int_equal(mem.bytes, full);
    for (size_t i = 0; i < 1000; i++) { /* one that comes and goes takes none, and gives none */
        assert_int_equal(rowslab_alloc(&s, &row), PARAMO_OK);
        rowslab_free(&s, row);
    }
    rowslab_clear(&s);
    assert_int_equal(mem.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_stay_where_they_are),
        cmocka_unit_test(freed_rows_are_used_first),
        cmocka_unit_test(without_memory_nothing_changes),
        cmocka_unit_test(empty_slabs_give_memory_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
