/* The counter of a table's memory, and its alignment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support_reference.h"
#include "table/tablemem.h"

static void bytes_are_counted_and_aligned(void **state)
{
    (void)state;
    struct tablemem m;
    tablemem_init(&m, NULL);
    size_t held = 0;
    void *blocks[7];
    for (size_t i = 0; i < 7; i++) {
        size_t align = (size_t)1 << i;
        blocks[i] = tablemem_get(&m, align, 100 + i);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % align, 0);
        memset(blocks[i], 1, 100 + i);
        held += 100 + i;
        assert_int_equal(m.bytes, held);
    }
    for (size_t i = 0; i < 7; i++) {
        tablemem_put(&m, blocks[i], 100 + i);
    }
    tablemem_put(&m, NULL, 50);
    assert_int_equal(m.bytes, 0);
    assert_null(tablemem_get(&m, 64, SIZE_MAX - 10));
    assert_int_equal(m.bytes, 0);
}

static void a_failed_request_is_not_counted(void **state)
{
    (void)state;
    struct failing_alloc f;
    failing_alloc_init(&f);
    struct tablemem m;
    tablemem_init(&m, &f.alloc);
    f.fail_at = 2;
    void *first = tablemem_get(&m, 8, 10);
    assert_non_null(first);
    assert_null(tablemem_get(&m, 8, 10));
    assert_int_equal(m.bytes, 10);
    tablemem_put(&m, first, 10);
    assert_int_equal(f.live_blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_counted_and_aligned),
        cmocka_unit_test(a_failed_request_is_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
