/* Marks of rows: set, cleared, told once in an epoch, and invalid once memory fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "table/rowmarks.h"

enum { NUMBERS = 20000 };

static struct {
    struct tablemem mem;
    struct rowmarks m;
    unsigned told, was;
    uint64_t key, number;
    bool no_memory;
} w;

static void *get(void *ctx, size_t align, size_t size)
{
    (void)ctx;
    return w.no_memory ? NULL : aligned_alloc(align, (size + align - 1) / align * align);
}

static void put(void *ctx, void *memory, size_t size)
{
    (void)ctx;
    (void)size;
    free(memory);
}

static int begin(void **state)
{
    (void)state;
    memset(&w, 0, sizeof w);
    tablemem_init(&w.mem, &(struct table_alloc){.alloc = get, .release = put});
    rowmarks_init(&w.m, &w.mem);
    return 0;
}

static int end(void **state)
{
    (void)state;
    rowmarks_clear(&w.m);
    assert_int_equal(w.mem.bytes, 0);
    return 0;
}

static void told(void *arg, uint64_t key, uint64_t number, unsigned was)
{
    assert_ptr_equal(arg, &w);
    assert_int_equal(rowmarks_get(&w.m, number), was); /* not yet */
    w.told++;
    w.key = key;
    w.number = number;
    w.was = was;
}

static void test_set(void **state)
{
    static const uint64_t far[] = {0, 4095, 4096, UINT32_MAX - 1, UINT64_C(1) << 32};
    static uint8_t model[NUMBERS];
    (void)state;
    uint32_t random = 1;
    assert_int_equal(rowmarks_get(&w.m, 7), 0);
    rowmarks_set(&w.m, 7, 0);
    assert_int_equal(w.mem.bytes, 0); /* 0 costs nothing */
    for (size_t n = 0; n < 100000; n++) {
        random = random * 1664525 + 1013904223;
        uint32_t i = (random >> 8) % NUMBERS;
        model[i] = (uint8_t)(random >> 30);
        rowmarks_set(&w.m, i, model[i]);
        assert_int_equal(rowmarks_get(&w.m, i), model[i]);
    }
    for (uint32_t i = 0; i < NUMBERS; i++)
        assert_int_equal(rowmarks_get(&w.m, i), model[i]);
    rowmarks_clear(&w.m);
    assert_int_equal(w.mem.bytes, 0);
    for (unsigned i = 0; i < sizeof far / sizeof *far; i++)
        rowmarks_set(&w.m, far[i], 1 + i % 3);
    for (unsigned i = 0; i < sizeof far / sizeof *far; i++)
        assert_int_equal(rowmarks_get(&w.m, far[i]), 1 + i % 3);
}

static void test_change(void **state)
{
    (void)state;
    w.m.first = told;
    w.m.arg = &w;
    rowmarks_change(&w.m, 70, 7);
    assert_int_equal(w.told, 1);
    assert_int_equal(w.key, 70);
    assert_int_equal(w.number, 7);
    assert_int_equal(w.was, 0);
    rowmarks_change(&w.m, 70, 7);
    assert_int_equal(w.told, 1); /* once in an epoch */
    w.m.now = 2;
    rowmarks_change(&w.m, 70, 7);
    assert_int_equal(w.told, 2);
    assert_int_equal(w.was, 1);

    enum { N = 1000 };
    uint64_t keys[N];
    uint32_t numbers[N];
    for (uint32_t i = 0; i < N; i++) {
        keys[i] = 10 * (uint64_t)i;
        numbers[i] = i % 5 == 4 ? ROWMARKS_NONE : 13 * i;
    }
    numbers[3] = 7; /* has it already */
    w.told = 0;
    rowmarks_change_all(&w.m, keys, numbers, N);
    assert_int_equal(w.told, N - N / 5 - 1);
    rowmarks_change_all(&w.m, keys, numbers, N);
    assert_int_equal(w.told, N - N / 5 - 1);
    for (uint32_t i = 0; i < N; i++)
        assert_true(i % 5 == 4 || rowmarks_get(&w.m, numbers[i]) == 2);
    assert_int_equal(rowmarks_get(&w.m, ROWMARKS_NONE), 0);
    rowmarks_change_all(&w.m, keys, numbers, 0);
    uint64_t twice[2] = {5, 5};
    uint32_t same[2] = {100001, 100001};
    w.told = 0;
    rowmarks_change_all(&w.m, twice, same, 2);
    assert_int_equal(w.told, 1);
}

static void test_memory(void **state)
{
    (void)state;
    rowmarks_set(&w.m, 1, 3);
    w.no_memory = true;
    rowmarks_set(&w.m, 2, 1);    /* there is a chunk */
    rowmarks_set(&w.m, 5000, 0); /* nothing is needed */
    assert_false(w.m.failed);
    rowmarks_change(&w.m, 0, 5000);
    assert_true(w.m.failed);
    w.no_memory = false;
    rowmarks_set(&w.m, 5000, 1);
    assert_true(w.m.failed); /* it stays */
    assert_int_equal(rowmarks_get(&w.m, 5000), 0);
    rowmarks_clear(&w.m);
    assert_false(w.m.failed);
    assert_int_equal(rowmarks_get(&w.m, 1), 0);
    w.no_memory = true;
    rowmarks_set(&w.m, 1, 1); /* not even for the pointers */
    assert_true(w.m.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_set, begin, end),
        cmocka_unit_test_setup_teardown(test_change, begin, end),
        cmocka_unit_test_setup_teardown(test_memory, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
