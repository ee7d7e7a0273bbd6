#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "server/shard/rowcache.h"

enum { N = 100 };

struct fix {
    struct bufpool pool;
    struct rowcache c;
};

static void open_cache(struct fix *f)
{
    bufpool_init(&f->pool, 1 << 20);
    rowcache_init(&f->c, &f->pool);
}

static void close_cache(struct fix *f)
{
    rowcache_fini(&f->c);
    assert_int_equal(f->pool.out, 0);
    assert_int_equal(f->c.bytes, 0);
    bufpool_fini(&f->pool);
}

static void list_keys(uint64_t id, uint64_t keys[N])
{
    for (uint64_t i = 0; i < N; i++)
        keys[i] = id * 1000 + i * 2;
}

static bool keep(struct fix *f, uint64_t id, uint64_t generation)
{
    uint64_t keys[N];
    list_keys(id, keys);
    uint32_t *rows = rowcache_offer(&f->c, keys, N);
    if (!rows)
        return false;
    for (uint32_t i = 0; i < N; i++)
        rows[i] = (uint32_t)id * N + i;
    rowcache_keep(&f->c, generation);
    return true;
}

static bool found(struct fix *f, uint64_t id, uint64_t generation)
{
    uint64_t keys[N];
    list_keys(id, keys);
    const struct rowcache_list *l = rowcache_find(&f->c, generation, keys, N);
    for (uint32_t i = 0; l && i < N; i++)
        assert_int_equal(l->rows[i], (uint32_t)id * N + i);
    return l != NULL;
}

static void test_find(void **state)
{
    (void)state;
    struct fix f;
    uint64_t keys[N];
    open_cache(&f);
    assert_false(found(&f, 1, 7));
    assert_true(keep(&f, 1, 7));
    assert_true(keep(&f, 2, 7));
    assert_true(found(&f, 1, 7));
    assert_true(found(&f, 2, 7));
    assert_false(found(&f, 3, 7));
    assert_false(found(&f, 1, 8)); /* rows were deleted in between */
    assert_false(found(&f, 1, 6));
    list_keys(1, keys);
    assert_null(rowcache_find(&f.c, 7, keys, N - 1));
    for (unsigned i = 0; i < N; i++) { /* any one key decides */
        keys[i]++;
        assert_null(rowcache_find(&f.c, 7, keys, N));
        keys[i]--;
    }
    assert_non_null(rowcache_find(&f.c, 7, keys, N));
    close_cache(&f);
}

static void test_dropped(void **state)
{
    (void)state;
    struct fix f;
    uint64_t keys[N];
    open_cache(&f);
    assert_true(keep(&f, 1, 7));
    list_keys(2, keys);
    uint32_t *rows = rowcache_offer(&f.c, keys, N);
    assert_non_null(rows);
    memset(rows, 0, N * sizeof *rows);
    rowcache_drop(&f.c);
    assert_false(found(&f, 2, 7));
    assert_true(found(&f, 1, 7));
    assert_null(rowcache_offer(&f.c, keys, ROWCACHE_KEYS_MIN - 1));
    assert_null(rowcache_find(&f.c, 7, keys, ROWCACHE_KEYS_MIN - 1));
    close_cache(&f);
}

/* The oldest go, by number and by bytes. */
static void test_bounds(void **state)
{
    (void)state;
    struct fix f;
    open_cache(&f);
    for (uint64_t id = 0; id < ROWCACHE_LISTS + 10; id++)
        assert_true(keep(&f, id, 1));
    assert_int_equal(f.c.count, ROWCACHE_LISTS);
    for (uint64_t id = 0; id < ROWCACHE_LISTS + 10; id++)
        assert_int_equal(found(&f, id, 1), id >= 10);
    static uint64_t keys[ROWCACHE_BYTES / 12 / 4];
    size_t n = sizeof keys / sizeof *keys;
    for (uint64_t round = 0; round < 10; round++) {
        for (size_t i = 0; i < n; i++)
            keys[i] = round + i * 16;
        uint32_t *rows = rowcache_offer(&f.c, keys, n);
        assert_non_null(rows);
        memset(rows, (int)round, n * sizeof *rows);
        rowcache_keep(&f.c, 1);
        assert_true(f.c.bytes <= ROWCACHE_BYTES);
        assert_ptr_equal(rowcache_find(&f.c, 1, keys, n)->rows, rows);
    }
    assert_null(rowcache_offer(&f.c, keys, n + 1));
    close_cache(&f);
}

/* Lists that never come again are hardly kept; the first that does changes it. */
static void test_in_vain(void **state)
{
    (void)state;
    struct fix f;
    open_cache(&f);
    unsigned kept = 0;
    uint64_t last = 0;
    for (uint64_t id = 1; id <= 1000; id++) {
        if (keep(&f, id, 1)) {
            kept++;
            last = id;
        }
    }
    assert_in_range(kept, ROWCACHE_IDLE, ROWCACHE_IDLE + (1000 / ROWCACHE_ROUND + 1) * ROWCACHE_TRY);
    assert_true(found(&f, last, 1));
    for (uint64_t id = 2000; id < 2000 + ROWCACHE_IDLE; id++)
        assert_true(keep(&f, id, 1));
    close_cache(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_in_vain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
