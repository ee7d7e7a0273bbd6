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
            assert_int_equal(rowslab_take(&s, &row), PARAMO_OK);
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
        assert_int_equal(rowslab_take(&s, &row), PARAMO_OK);
    }
    rowslab_give(&s, 3);
    rowslab_give(&s, 7);
    assert_int_equal(s.free_count, 2);
    assert_int_equal(s.free_head, 7);
    assert_int_equal(rowslab_free_next(&s, 7), 3);
    assert_int_equal(rowslab_free_next(&s, 3), ROWSLAB_NONE);
    assert_int_equal(rowslab_take(&s, &row), PARAMO_OK);
    assert_int_equal(row, 7);
    assert_int_equal(rowslab_take(&s, &row), PARAMO_OK);
    assert_int_equal(row, 3);
    assert_int_equal(rowslab_take(&s, &row), PARAMO_OK);
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
            paramo_err err = rowslab_take(&s, &row);
            if (err == PARAMO_OK) {
                break;
            }
            assert_int_equal(err, PARAMO_E_MEMORY);
            assert_int_equal(s.top, i);
        }
        f.fail_at = 0;
        assert_int_equal(row, i);
    }
    rowslab_clear(&s);
    assert_int_equal(f.live_blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_stay_where_they_are),
        cmocka_unit_test(freed_rows_are_used_first),
        cmocka_unit_test(without_memory_nothing_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
