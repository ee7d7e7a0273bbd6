#include "learn/support_learn.h"

#include <stdlib.h>

uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

float draw_float(uint64_t *state)
{
    return (float)((double)(draw(state) >> 11) / 4503599627370496.0 - 1.0);
}

struct block random_block(uint64_t seed, size_t rows, size_t most, uint64_t keys, uint64_t stride, int values)
{
    uint64_t s = seed;
    struct block b = {0};
    size_t bytes;
    if (block_alloc(&b, rows, rows * most, values, 0, &bytes) != PARAMO_OK)
        abort();
    size_t at = 0;
    for (size_t r = 0; r < rows; r++) {
        b.label[r] = (float)(draw(&s) & 1);
        b.offset[r] = (uint32_t)at;
        for (size_t i = draw(&s) % (most + 1); i > 0; i--) {
            b.key[at] = draw(&s) % keys * stride;
            if (values)
                b.value[at] = draw_float(&s);
            at++;
        }
    }
    b.offset[rows] = (uint32_t)at;
    b.features = at;
    return b;
}
