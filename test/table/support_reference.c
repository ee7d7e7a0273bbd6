#include "support_reference.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static float soft_threshold(float x, float t)
{
    if (x > t) {
        return x - t;
    }
    if (x < -t) {
        return x + t;
    }
    return 0;
}

static float at_most_max(float x)
{
    return x > FLT_MAX ? FLT_MAX : x;
}

static float sign(float x)
{
    return x < 0 ? -1.0F : 1.0F;
}

static float ftrl_w(const paramo_table_options *o, float z, float n)
{
    if (fabsf(z) <= o->l1) {
        return 0;
    }
    return -(z - sign(z) * o->l1) / ((o->beta + sqrtf(n)) / o->alpha + o->l2);
}

static double to_the(double b, unsigned t)
{
    double y = 1;
    double square = b;
    while (t) {
        if (t % 2 == 1) {
            y = y * square;
        }
        square = square * square;
        t /= 2;
    }
    return y;
}

void reference_push(const paramo_table_options *o, float *row, const float *g)
{
    float *w = row;
    float *s0 = row + o->dim;
    float *s1 = row + 2 * (size_t)o->dim;
    float steps = 0;
    if (o->optimizer == PARAMO_OPT_ADAM) {
        float *t = row + 3 * (size_t)o->dim;
        if (*t < 16777216) {
            *t += 1;
        }
        steps = *t;
    }
    for (uint32_t i = 0; i < o->dim; i++) {
        float h = g[i] + o->l2 * w[i];
        switch (o->optimizer) {
        case PARAMO_OPT_ASSIGN:
            w[i] = g[i];
            break;
        case PARAMO_OPT_ADD:
            w[i] = w[i] + g[i];
            break;
        case PARAMO_OPT_SGD:
            w[i] = soft_threshold(w[i] - o->alpha * h, o->alpha * o->l1);
            break;
        case PARAMO_OPT_MOMENTUM:
            s0[i] = o->momentum * s0[i] + h;
            w[i] = soft_threshold(w[i] - o->alpha * s0[i], o->alpha * o->l1);
            break;
        case PARAMO_OPT_ADAGRAD: {
            s0[i] = at_most_max(s0[i] + h * h);
            float eta = o->alpha / (o->beta + sqrtf(s0[i]));
            w[i] = soft_threshold(w[i] - eta * h, eta * o->l1);
            break;
        }
        case PARAMO_OPT_FTRL: {
            float n = at_most_max(s1[i] + g[i] * g[i]);
            float sigma = (sqrtf(n) - sqrtf(s1[i])) / o->alpha;
            s0[i] = s0[i] + (g[i] - sigma * w[i]);
            s1[i] = n;
            w[i] = ftrl_w(o, s0[i], n);
            break;
        }
        case PARAMO_OPT_ADAM: {
            float c1 = (float)(1 / (1 - to_the((double)o->beta1, (unsigned)steps)));
            float c2 = (float)(1 / (1 - to_the((double)o->beta2, (unsigned)steps)));
            s0[i] = o->beta1 * s0[i] + (1 - o->beta1) * h;
            float v = o->beta2 * s1[i] + (1 - o->beta2) * (h * h);
            s1[i] = at_most_max(v);
            float eta = o->alpha / (sqrtf(at_most_max(v * c2)) + o->epsilon);
            w[i] = soft_threshold(w[i] - eta * (s0[i] * c1), eta * o->l1);
            break;
        }
        }
    }
}

void reference_start(const paramo_table_options *o, float *row)
{
    size_t dim = o->dim;
    switch (o->optimizer) {
    case PARAMO_OPT_ASSIGN:
    case PARAMO_OPT_ADD:
    case PARAMO_OPT_SGD:
        return;
    case PARAMO_OPT_MOMENTUM:
    case PARAMO_OPT_ADAGRAD:
        for (size_t i = 0; i < dim; i++) {
            row[dim + i] = 0;
        }
        return;
    case PARAMO_OPT_ADAM:
        for (size_t i = 0; i < 2 * dim + 1; i++) {
            row[dim + i] = 0;
        }
        return;
    case PARAMO_OPT_FTRL:
        for (size_t i = 0; i < dim; i++) {
            float w = row[i];
            float z = 0;
            if (w != 0) {
                z = -(w * (o->beta / o->alpha + o->l2) + sign(w) * o->l1);
            }
            row[dim + i] = z;
            row[2 * dim + i] = 0;
            row[i] = ftrl_w(o, z, 0);
        }
        return;
    }
}

uint64_t draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545f4914f6cdd1d);
}

float draw_float(uint64_t *state)
{
    return (float)(int32_t)(draw(state) >> 32) * 0x1p-31F;
}

static void *failing_get(void *ctx, size_t align, size_t size)
{
    struct failing_alloc *f = ctx;
    f->calls++;
    if (f->fail_at && --f->fail_at == 0) {
        return NULL;
    }
    void *memory = align <= _Alignof(max_align_t) ? malloc(size)
                                                  : aligned_alloc(align, (size + align - 1) / align * align);
    if (memory) {
        f->live_bytes += size;
        f->live_blocks++;
    }
    return memory;
}

static void failing_put(void *ctx, void *memory, size_t size)
{
    struct failing_alloc *f = ctx;
    f->live_bytes -= size;
    f->live_blocks--;
    free(memory);
}

void failing_alloc_init(struct failing_alloc *f)
{
    *f = (struct failing_alloc){.alloc = {.alloc = failing_get, .release = failing_put, .ctx = f}};
}

uint64_t count_nonzero(const struct table *t)
{
    struct table_count count = {0};
    while (!count.done)
        table_count_step(t, &count, SIZE_MAX / 2, NULL, NULL);
    return count.nonzero;
}
