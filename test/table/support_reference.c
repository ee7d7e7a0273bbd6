#include "support_reference.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "table/optimizer/optimizer.h"
#include "table/optimizer/optimizer_def.h"
#include "table/table_options.h"

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

/* One column of a push; t counts this push already. h = g + l2 w. */
struct column {
    float *w, *s0, *s1, g, h, t;
};
typedef void reference_fn(const paramo_table_options *o, const struct column *c);

static void reference_assign(const paramo_table_options *o, const struct column *c)
{
    (void)o;
    *c->w = c->g;
}

static void reference_add(const paramo_table_options *o, const struct column *c)
{
    (void)o;
    *c->w = *c->w + c->g;
}

static void reference_sgd(const paramo_table_options *o, const struct column *c)
{
    *c->w = soft_threshold(*c->w - o->alpha * c->h, o->alpha * o->l1);
}

static void reference_momentum(const paramo_table_options *o, const struct column *c)
{
    *c->s0 = o->momentum * *c->s0 + c->h;
    *c->w = soft_threshold(*c->w - o->alpha * *c->s0, o->alpha * o->l1);
}

static void reference_adagrad(const paramo_table_options *o, const struct column *c)
{
    *c->s0 = at_most_max(*c->s0 + c->h * c->h);
    float eta = o->alpha / (o->beta + sqrtf(*c->s0));
    *c->w = soft_threshold(*c->w - eta * c->h, eta * o->l1);
}

static void reference_ftrl(const paramo_table_options *o, const struct column *c)
{
    float n = at_most_max(*c->s1 + c->g * c->g);
    float sigma = (sqrtf(n) - sqrtf(*c->s1)) / o->alpha;
    *c->s0 = *c->s0 + (c->g - sigma * *c->w);
    *c->s1 = n;
    *c->w = ftrl_w(o, *c->s0, n);
}

static void reference_adam(const paramo_table_options *o, const struct column *c)
{
    float c1 = (float)(1 / (1 - to_the((double)o->beta1, (unsigned)c->t)));
    float c2 = (float)(1 / (1 - to_the((double)o->beta2, (unsigned)c->t)));
    *c->s0 = o->beta1 * *c->s0 + (1 - o->beta1) * c->h;
    float v = o->beta2 * *c->s1 + (1 - o->beta2) * (c->h * c->h);
    *c->s1 = at_most_max(v);
    float eta = o->alpha / (sqrtf(at_most_max(v * c2)) + o->epsilon);
    *c->w = soft_threshold(*c->w - eta * (*c->s0 * c1), eta * o->l1);
}

static void reference_max(const paramo_table_options *o, const struct column *c)
{
    (void)o;
    if (c->g > *c->w)
        *c->w = c->g;
}

/* For optimizers whose columns do not begin with a state of zeros. */
static void reference_ftrl_start(const paramo_table_options *o, const struct column *c)
{
    float w = *c->w;
    *c->s0 = w == 0 ? 0 : -(w * (o->beta / o->alpha + o->l2) + sign(w) * o->l1);
    *c->w = ftrl_w(o, *c->s0, 0);
}

static reference_fn *const push[] = {
#define PUSH(number, NAME, name) [number] = reference_##name,
    PARAMO_OPTIMIZERS(PUSH)
#undef PUSH
};
static reference_fn *const start[PARAMO_OPTIMIZER_COUNT] = {[PARAMO_OPT_FTRL] = reference_ftrl_start};

/* The planes and the count of pushes are those of the definition. */
static struct column column_of(const paramo_table_options *o, float *row, size_t i)
{
    unsigned planes = optimizer_def(o->optimizer)->planes;
    return (struct column){.w = row + i,
                           .s0 = planes > 0 ? row + o->dim + i : NULL,
                           .s1 = planes > 1 ? row + 2 * (size_t)o->dim + i : NULL};
}

void reference_push(const paramo_table_options *o, float *row, const float *g)
{
    const struct optimizer_def *def = optimizer_def(o->optimizer);
    float *t = row + (1 + (size_t)def->planes) * o->dim;
    if (def->counts && *t < 16777216) {
        *t += 1;
    }
    for (uint32_t i = 0; i < o->dim; i++) {
        struct column c = column_of(o, row, i);
        c.g = g[i];
        c.h = g[i] + o->l2 * *c.w;
        c.t = def->counts ? *t : 0;
        push[o->optimizer](o, &c);
    }
}

void reference_start(const paramo_table_options *o, float *row)
{
    size_t values = table_row_values(o, true);
    for (size_t i = o->dim; i < values; i++) {
        row[i] = 0;
    }
    for (uint32_t i = 0; i < o->dim && start[o->optimizer]; i++) {
        struct column c = column_of(o, row, i);
        start[o->optimizer](o, &c);
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
