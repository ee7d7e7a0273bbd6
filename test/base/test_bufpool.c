#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bufpool.h"

static void test_sizes(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 255, 256, 257, 4096, 100000, (size_t)1 << 22, ((size_t)1 << 22) + 1};
    enum { N = sizeof sizes / sizeof sizes[0] };
    struct bufpool pool;
    void *got[N];
    bufpool_init(&pool, (size_t)8 << 20);
    for (unsigned i = 0; i < N; i++) {
        got[i] = bufpool_get(&pool, sizes[i]);
        assert_non_null(got[i]);
        assert_int_equal((uintptr_t)got[i] % 64, 0);
        memset(got[i], (int)i, sizes[i]);
    }
    for (unsigned i = 0; i < N; i++) {
        for (size_t k = 0; k < sizes[i]; k += 97)
            assert_int_equal(((uint8_t *)got[i])[k], i);
        bufpool_put(&pool, got[i], sizes[i]);
    }
    assert_int_equal(pool.out, 0);
    assert_true(pool.cached > 0 && pool.cached <= pool.cached_max);
    bufpool_put(&pool, NULL, 10);
    assert_null(bufpool_get(&pool, SIZE_MAX));
    bufpool_fini(&pool);
}

static void test_reuse(void **state)
{
    (void)state;
    struct bufpool pool;
    bufpool_init(&pool, 4096);
    void *a = bufpool_get(&pool, 1000);
    bufpool_put(&pool, a, 1000);
    assert_ptr_equal(bufpool_get(&pool, 600), a); /* the same class, the last in */
    bufpool_put(&pool, a, 600);
    void *many[8];
    for (unsigned i = 0; i < 8; i++)
        many[i] = bufpool_get(&pool, 1024);
    for (unsigned i = 0; i < 8; i++)
        bufpool_put(&pool, many[i], 1024);
    assert_int_equal(pool.cached, 4096); /* no more is kept than was allowed */
    bufpool_fini(&pool);
}

/* What is not kept is freed bit by bit: short ones at once, many together, a long one from its end on. */
static void test_late(void **state)
{
    (void)state;
    enum { BLOCK = 4 << 20, LONG = 3 * BUFPOOL_LATE_BYTES + BUFPOOL_LATE_MIN };
    struct bufpool pool;
    bufpool_init(&pool, BLOCK);
    void *blocks[9], *small = bufpool_get(&pool, 1000);
    for (unsigned i = 0; i < 9; i++)
        blocks[i] = bufpool_get(&pool, BLOCK);
    bufpool_put_late(&pool, NULL, 10);
    bufpool_put_late(&pool, blocks[0], BLOCK);
    assert_null(pool.late); /* it is kept */
    bufpool_put_late(&pool, small, 1000);
    assert_null(pool.late);
    for (unsigned i = 1; i < 9; i++)
        bufpool_put_late(&pool, blocks[i], BLOCK);
    assert_int_equal(pool.out, 0);
    bufpool_free_late(&pool);
    assert_ptr_equal(pool.late, blocks[4]);
    bufpool_free_late(&pool);
    assert_null(pool.late);
    bufpool_free_late(&pool);
    bufpool_drop_late(&pool, malloc(BUFPOOL_LATE_MIN - 1), BUFPOOL_LATE_MIN - 1);
    assert_null(pool.late);
    bufpool_drop_late(&pool, malloc(LONG), LONG);
    for (size_t bytes = LONG; bytes >= BUFPOOL_LATE_BYTES; bytes -= BUFPOOL_LATE_BYTES) {
        assert_int_equal(pool.late->bytes, bytes);
        bufpool_free_late(&pool);
    }
    assert_int_equal(pool.late->bytes, BUFPOOL_LATE_MIN);
    bufpool_free_late(&pool);
    assert_null(pool.late);
    bufpool_drop_late(&pool, malloc(LONG), LONG);
    bufpool_fini(&pool);
    assert_null(pool.late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_reuse),
                                       cmocka_unit_test(test_late)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
