/* The cache of parsed blocks and the file that it spills to: whatever is put, got and put again, what comes
 * back is what was put, or nothing. The file system refuses writes from some size on, as a full disk does. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "harness.h"
#include "learn/data/cache.h"

enum { STREAMS = 3, PARTS = 12 };

/* A block's content is a function of its place, so that what comes back can be checked. */
static uint64_t content(unsigned stream, uint64_t index, size_t at)
{
    uint64_t x =
        (stream + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (index + 1) * UINT64_C(0xbf58476d1ce4e5b9) ^ at;
    x ^= x >> 31;
    return x * UINT64_C(0x94d049bb133111eb);
}

struct shape {
    size_t rows, features;
    bool value, field, weight, wide;
};

static struct shape shape_of(unsigned stream, uint64_t index)
{
    uint64_t draw = content(stream, index, 1U << 20);
    return (struct shape){.rows = draw % 7,
                          .features = draw / 7 % 9000,
                          .value = draw >> 40 & 1,
                          .field = draw >> 41 & 1,
                          .wide = draw >> 42 & 1,
                          .weight = draw >> 43 & 1};
}

static uint64_t key_of(unsigned stream, uint64_t index, size_t at, bool wide)
{
    uint64_t key = content(stream, index, at);
    return wide ? key : key & UINT32_MAX;
}

static struct held *block_make(unsigned stream, uint64_t index)
{
    struct shape shape = shape_of(stream, index);
    struct held *held = calloc(1, sizeof *held);
    CHECK(held);
    struct block *b = &held->block;
    const struct block_shape arrays = {.rows = shape.rows,
                                       .features = shape.features,
                                       .has_value = shape.value,
                                       .has_field = shape.field,
                                       .has_weight = shape.weight};
    CHECK(block_alloc(b, &arrays) == PARAMO_OK);
    held->bytes = block_bytes(&arrays);
    b->stream = stream;
    b->index = index;
    b->first_line = index * 10 + 1;
    for (size_t i = 0; i < shape.rows; i++) {
        b->label[i] = (float)(i & 1);
        if (shape.weight)
            b->weight[i] = (float)(i % 3);
    }
    for (size_t i = 0; i <= shape.rows; i++)
        b->offset[i] = (uint32_t)(shape.rows ? shape.features * i / shape.rows : 0);
    for (size_t i = 0; i < shape.features; i++) {
        b->key[i] = key_of(stream, index, i, shape.wide);
        if (shape.value)
            b->value[i] = (float)(i % 17);
        if (shape.field)
            b->field[i] = (uint16_t)(i % 1000);
    }
    atomic_init(&held->owners, 1);
    return held;
}

static void block_check(const struct block *b, unsigned stream, uint64_t index)
{
    struct shape shape = shape_of(stream, index);
    CHECK(b->stream == stream && b->index == index && b->first_line == index * 10 + 1);
    CHECK(b->rows == shape.rows && b->features == shape.features);
    CHECK((b->value != NULL) == shape.value && (b->field != NULL) == shape.field);
    CHECK((b->weight != NULL) == shape.weight);
    for (size_t i = 0; i < shape.rows; i++)
        CHECK(b->label[i] == (float)(i & 1) && (!shape.weight || b->weight[i] == (float)(i % 3)));
    for (size_t i = 0; i <= shape.rows; i++)
        CHECK(b->offset[i] == (uint32_t)(shape.rows ? shape.features * i / shape.rows : 0));
    for (size_t i = 0; i < shape.features; i++) {
        CHECK(b->key[i] == key_of(stream, index, i, shape.wide));
        CHECK(!shape.value || b->value[i] == (float)(i % 17));
        CHECK(!shape.field || b->field[i] == (uint16_t)(i % 1000));
    }
}

/* Writes beyond this number of bytes of a file fail (EFBIG; the signal is ignored). */
static void disk_holds(rlim_t bytes)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    struct cache *cache;
    bool put[STREAMS][PARTS] = {{false}};
    harness_quiet();
    (void)signal(SIGXFSZ, SIG_IGN);
    uint64_t limit = draw_u8(&s) % 4 * 40000;
    CHECK(cache_open(STREAMS, limit, "/tmp", &cache) == PARAMO_OK);
    for (unsigned n = 0; s.left && n < 100; n++) {
        unsigned op = draw_u8(&s), stream = op >> 2 & 3;
        uint64_t index = draw_below(&s, PARTS);
        if (stream == STREAMS)
            continue;
        if (op & 1) {
            struct held *held = block_make(stream, index);
            disk_holds(op & 128 ? (rlim_t)draw_u16(&s) * 8 : RLIM_INFINITY);
            CHECK(cache_put(cache, held, 1) == PARAMO_OK);
            disk_holds(RLIM_INFINITY);
            held_release(held);
            put[stream][index] = true;
            continue;
        }
        struct held *held;
        int seen;
        CHECK(cache_get(cache, stream, index, &held, &seen) == PARAMO_OK);
        CHECK(seen == put[stream][index] && !(held && (!seen || !limit)));
        if (held) {
            block_check(&held->block, stream, index);
            held_release(held);
        }
    }
    uint64_t memory, spilled;
    char error[256];
    cache_stats(cache, &memory, &spilled, error, sizeof error);
    CHECK(memory <= limit);
    cache_close(cache);
    return 0;
}
