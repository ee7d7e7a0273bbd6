#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
#include "env/hugemem.h"

enum { BLOCKS = 2400 };

static const size_t sizes[] = {
    HUGEMEM_UNIT, HUGEMEM_BLOCK_MAX, HUGEMEM_UNIT + 1, 196608, 1, 100, 256, 2049, 5000, 40000,
    17,           HUGEMEM_UNIT - 1};

static size_t size_of(size_t i)
{
    return sizes[mix64(i) % (sizeof sizes / sizeof *sizes)];
}

static uint8_t mark_of(size_t i)
{
    return (uint8_t)mix64(i + 77);
}

static void *take(struct hugemem *m, size_t i)
{
    size_t align = size_of(i) < HUGEMEM_UNIT && i % 9 ? HUGEMEM_SPAN_ALIGN : 64;
    void *block = hugemem_alloc(m, align, size_of(i));
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % align, 0);
    memset(block, mark_of(i), size_of(i));
    return block;
}

static void check(const uint8_t *block, size_t i)
{
    assert_int_equal(block[0], mark_of(i));
    assert_int_equal(block[size_of(i) - 1], mark_of(i));
    assert_memory_equal(block, block + 1, size_of(i) - 1);
}

/* No two blocks share a byte, whatever was given back before. */
static void test_blocks(void **state)
{
    (void)state;
    static uint8_t *block[BLOCKS];
    struct hugemem m;
    hugemem_init(&m);
    for (size_t i = 0; i < BLOCKS; i++)
        block[i] = take(&m, i);
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = round; i < BLOCKS; i += 3) {
            check(block[i], i);
            hugemem_release(&m, block[i], size_of(i));
        }
        for (size_t i = round; i < BLOCKS; i += 3)
            block[i] = take(&m, i);
    }
    size_t chunks = m.chunks.count;
    assert_true(chunks > 10);
    for (size_t i = 0; i < BLOCKS; i++) {
        check(block[i], i);
        hugemem_release(&m, block[i], size_of(i));
    }
    assert_int_equal(m.small, 0);
    assert_int_equal(m.live, 0);
    assert_int_equal(m.span_idle, 0);
    for (size_t i = 0; i < BLOCKS; i++)
        block[i] = take(&m, i);
    assert_true(m.chunks.count <= chunks); /* what was given back is used again */
    for (size_t i = 0; i < BLOCKS; i++)
        hugemem_release(&m, block[i], size_of(i));
    hugemem_fini(&m);
}

static size_t resident(void)
{
    size_t size = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%zu %zu", &size, &pages), 2);
    (void)fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void count(void *ctx)
{
    ++*(size_t *)ctx;
}

/* Freed memory goes back to the system, in steps; until then it is reported as held. */
static void test_gives_back(void **state)
{
    (void)state;
    enum { N = 400, KEEP = 50 }; /* blocks of 256 KiB */
    static uint8_t *block[N];
    size_t told = 0, before = resident(), steps = 0;
    struct hugemem m;
    hugemem_init(&m);
    m.emptied = count;
    m.ctx = &told;
    for (size_t i = 0; i < N; i++) {
        block[i] = hugemem_alloc(&m, 64, HUGEMEM_BLOCK_MAX);
        assert_non_null(block[i]);
        memset(block[i], 1, HUGEMEM_BLOCK_MAX);
    }
    size_t full = resident() - before, chunks = m.chunks.count;
    assert_in_range(chunks, 48, 50); /* 100 MiB, less what comes from malloc */
    assert_in_range(hugemem_idle(&m), 0, HUGEMEM_CHUNK);
    assert_false(hugemem_trim(&m, 100));
    assert_int_equal(told, 0);
    for (size_t i = 0; i < N; i++)
        if (i % KEEP)
            hugemem_release(&m, block[i], HUGEMEM_BLOCK_MAX);
    assert_true(told > 0);
    assert_in_range(hugemem_idle(&m), 90 << 20, 100 << 20);
    assert_int_equal(m.chunks.count, chunks);
    while (hugemem_trim(&m, 4))
        steps++;
    assert_in_range(steps, 8, 12);
    assert_in_range(m.chunks.count, 1, N / KEEP + HUGEMEM_KEPT);
    (void)malloc_trim(0);
    size_t rest = resident() - before;
    (void)printf("resident: %zu KiB, after giving back %zu KiB\n", full >> 10, rest >> 10);
    assert_true(rest < full / 3);
    for (size_t i = 0; i < N; i += KEEP)
        hugemem_release(&m, block[i], HUGEMEM_BLOCK_MAX);
    assert_false(hugemem_trim(&m, 100));
    assert_int_equal(m.chunks.count, HUGEMEM_KEPT);
    assert_int_equal(hugemem_idle(&m), HUGEMEM_CHUNK);
    hugemem_fini(&m);
}

/* A block is as long as was asked for, and hardly longer. */
static void test_classes(void **state)
{
    (void)state;
    for (size_t size = 1; size <= HUGEMEM_SMALL_MAX; size++) {
        unsigned class = hugemem_class(size);
        size_t bytes = hugemem_class_bytes(class);
        assert_in_range(bytes, size, size + (size < 256 ? 15 : size / 8));
        assert_true(class == 0 || hugemem_class_bytes(class - 1) < size);
    }
    assert_int_equal(hugemem_class(HUGEMEM_SMALL_MAX), HUGEMEM_SPAN_CLASSES - 1);
}

/* So do small blocks, of many sizes, in any order; those that stay keep a span each at most. */
static void test_small_blocks_go_back(void **state)
{
    (void)state;
    enum { N = 200000, STAY = 5000, LEN = 400 };
    static uint8_t *block[N];
    size_t asked = 0;
    struct hugemem m;
    hugemem_init(&m);
    for (size_t i = 0; i < N; i++) {
        block[i] = hugemem_alloc(&m, 8, 1 + i % LEN);
        assert_non_null(block[i]);
        memset(block[i], 1, 1 + i % LEN);
        asked += 1 + i % LEN;
    }
    assert_in_range(m.chunks.count * HUGEMEM_CHUNK, asked - HUGEMEM_SMALL, asked + asked / 6);
    assert_in_range(hugemem_idle(&m), 0, asked / 8);
    for (size_t i = 0; i < N; i++) {
        size_t at = i * 7919 % N;
        if (at % STAY)
            hugemem_release(&m, block[at], 1 + at % LEN);
    }
    while (hugemem_trim(&m, 4)) {
    }
    assert_in_range(m.chunks.count, 1, N / STAY + HUGEMEM_KEPT);
    assert_in_range(m.live, 0, N / STAY);
    for (size_t i = 0; i < N; i += STAY)
        hugemem_release(&m, block[i], 1 + i % LEN);
    assert_int_equal(m.small + m.live + m.span_idle, 0);
    assert_false(hugemem_trim(&m, 1000));
    assert_int_equal(m.chunks.count, HUGEMEM_KEPT);
    hugemem_fini(&m);
}

static void test_small_table(void **state)
{
    (void)state;
    struct hugemem m;
    hugemem_init(&m);
    void *a = hugemem_alloc(&m, 64, HUGEMEM_BLOCK_MAX), *b = hugemem_alloc(&m, 8, 10);
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(m.chunks.count, 0);
    hugemem_release(&m, a, HUGEMEM_BLOCK_MAX);
    hugemem_release(&m, b, 10);
    hugemem_fini(&m);
}

static void test_mapping(void **state)
{
    (void)state;
    struct hugemem m;
    hugemem_init(&m);
    size_t size = HUGEMEM_MAPPED_MIN + 12345;
    uint8_t *a = hugemem_alloc(&m, 64, size), *b = hugemem_alloc(&m, 64, size);
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal((uintptr_t)a % HUGEMEM_CHUNK, 0);
    memset(a, 1, size);
    memset(b, 2, size);
    assert_int_equal(a[0] + a[size - 1], 2);
    hugemem_release(&m, a, size);
    hugemem_release(&m, b, size);
    assert_null(hugemem_alloc(&m, 64, SIZE_MAX - 100));
    assert_null(hugemem_alloc(&m, 64, SIZE_MAX / 2));
    hugemem_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),      cmocka_unit_test(test_gives_back),
        cmocka_unit_test(test_classes),     cmocka_unit_test(test_small_blocks_go_back),
        cmocka_unit_test(test_small_table), cmocka_unit_test(test_mapping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
