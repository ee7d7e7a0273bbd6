#include "table/optimizer.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "table/table_options.h"

/*
 * Each float kernel is one function over a span, written without branches so that compilers turn it into
 * vector code. Rows of at least GATHER_BELOW columns are spans; shorter ones (linear models have rows of one)
 * are gathered into spans of up to GATHER values and put back, which costs less than a square root one at a
 * time.
 */
enum { GATHER = 64, GATHER_BELOW = 8 };

struct gathered {
    float w[GATHER], s0[GATHER], s1[GATHER];
};

static inline void copy_values(float *restrict to, const float *restrict from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = from[i];
    }
}

static void gather(struct gathered *to, void *const *rows, size_t count, size_t dim, unsigned planes)
{
    for (size_t i = 0; i < count; i++) {
        const float *row = rows[i];
        copy_values(to->w + i * dim, row, dim);
        if (planes > 0) {
            copy_values(to->s0 + i * dim, row + dim, dim);
        }
        if (planes > 1) {
            copy_values(to->s1 + i * dim, row + 2 * dim, dim);
        }
    }
}

static void scatter(const struct gathered *from, void *const *rows, size_t count, size_t dim, unsigned planes)
{
    for (size_t i = 0; i < count; i++) {
        float *row = rows[i];
        copy_values(row, from->w + i * dim, dim);
        if (planes > 0) {
            copy_values(row + dim, from->s0 + i * dim, dim);
        }
        if (planes > 1) {
            copy_values(row + 2 * dim, from->s1 + i * dim, dim);
        }
    }
}

/* rows of every kernel but Adam, assign and add. */
static void span_rows(const struct optimizer *o, void *const *rows, size_t count, size_t dim, const void *g)
{
    const float *values = g;
    if (dim >= GATHER_BELOW) {
        for (size_t i = 0; i < count; i++) {
            float *w = rows[i];
            o->span(o, w, w + dim, w + 2 * dim, 0, values + i * dim, dim);
        }
        return;
    }
    unsigned planes = optimizer_planes(o);
    size_t batch = GATHER / dim;
    struct gathered span;
    for (size_t done = 0, m; done < count; done += m) {
        m = count - done < batch ? count - done : batch;
        if (dim == 1) { /* said again for the compiler: copies of one value */
            gather(&span, rows + done, m, 1, planes);
            o->span(o, span.w, span.s0, span.s1, 0, values + done, m);
            scatter(&span, rows + done, m, 1, planes);
        } else {
            gather(&span, rows + done, m, dim, planes);
            o->span(o, span.w, span.s0, span.s1, 0, values + done * dim, m * dim);
            scatter(&span, rows + done, m, dim, planes);
        }
    }
}

/* restrict is true: w and the state are distinct, and g is the caller's. */
#define FLOAT_SPAN(name)                                                                                     \
    static inline __attribute__((always_inline)) void name(const struct optimizer *o, float *restrict w,     \
                                                           float *restrict s0, float *restrict s1, float t,  \
                                                           const float *restrict g, size_t n)

#define SPAN_AT(name, level, target)                                                                         \
    target static void name##_##level(const struct optimizer *o, void *w, float *s0, float *s1, float t,     \
                                      const void *g, size_t n)                                               \
    {                                                                                                        \
        const struct optimizer local = *o; /* in registers: stores to w cannot change it */                  \
        name(&local, w, s0, s1, t, g, n);                                                                    \
    }

/* One kernel, compiled for each level of vector instructions (base/cpu.h): the same bits, since columns do
 * not depend on each other and nothing is contracted. */
#if defined(__x86_64__)
#define SPAN_OF(name)                                                                                        \
    SPAN_AT(name, base, )                                                                                    \
    SPAN_AT(name, avx2, CPU_TARGET_AVX2)                                                                     \
    SPAN_AT(name, avx512, CPU_TARGET_AVX512)
#define LEVELS(name)                                                                                         \
    {                                                                                                        \
        name##_base, name##_avx2, name##_avx512                                                              \
    }
#else
#define SPAN_OF(name) SPAN_AT(name, base, )
#define LEVELS(name)                                                                                         \
    {                                                                                                        \
        name##_base, name##_base, name##_base                                                                \
    }
#endif

static inline float soft(float x, float threshold)
{
    float rest = fabsf(x) - threshold;
    return rest > 0 ? copysignf(rest, x) : 0.0F;
}

static inline float saturate(float x)
{
    return x < FLT_MAX ? x : FLT_MAX;
}

FLOAT_SPAN(sgd)
{
    (void)s0;
    (void)s1;
    (void)t;
    float threshold = o->alpha * o->l1;
    for (size_t i = 0; i < n; i++) {
        float h = g[i] + o->l2 * w[i];
        w[i] = soft(w[i] - o->alpha * h, threshold);
    }
}
SPAN_OF(sgd)

FLOAT_SPAN(momentum)
{
    (void)s1;
    (void)t;
    float threshold = o->alpha * o->l1;
    for (size_t i = 0; i < n; i++) {
        float h = g[i] + o->l2 * w[i];
        float v = o->momentum * s0[i] + h;
        s0[i] = v;
        w[i] = soft(w[i] - o->alpha * v, threshold);
    }
}
SPAN_OF(momentum)

FLOAT_SPAN(adagrad)
{
    (void)s1;
    (void)t;
    for (size_t i = 0; i < n; i++) {
        float h = g[i] + o->l2 * w[i];
        float sum = saturate(s0[i] + h * h);
        float eta = o->alpha / (o->beta + sqrtf(sum));
        s0[i] = sum;
        w[i] = soft(w[i] - eta * h, eta * o->l1);
    }
}
SPAN_OF(adagrad)

/* Algorithm 1's closed form; root is sqrt n. */
static inline float ftrl_weight(const struct optimizer *o, float z, float root)
{
    float rest = fabsf(z) - o->l1;
    float w = rest / ((o->beta + root) / o->alpha + o->l2);
    return rest > 0 ? copysignf(w, -z) : 0.0F;
}

FLOAT_SPAN(ftrl)
{
    (void)t;
    for (size_t i = 0; i < n; i++) {
        float sum = saturate(s1[i] + g[i] * g[i]);
        float root = sqrtf(sum);
        float sigma = (root - sqrtf(s1[i])) / o->alpha;
        float z = s0[i] + (g[i] - sigma * w[i]);
        s0[i] = z;
        s1[i] = sum;
        w[i] = ftrl_weight(o, z, root);
    }
}
SPAN_OF(ftrl)

/* b^t by squaring, in double: t < 2^25. */
static double power(double b, float t)
{
    double y = 1.0;
    for (uint32_t e = (uint32_t)t; e; e >>= 1) {
        if (e & 1) {
            y *= b;
        }
        b *= b;
    }
    return y;
}

FLOAT_SPAN(adam)
{
    float c1 = (float)(1.0 / (1.0 - power((double)o->beta1, t)));
    float c2 = (float)(1.0 / (1.0 - power((double)o->beta2, t)));
    for (size_t i = 0; i < n; i++) {
        float h = g[i] + o->l2 * w[i];
        float m = o->beta1 * s0[i] + (1.0F - o->beta1) * h;
        float v = o->beta2 * s1[i] + (1.0F - o->beta2) * (h * h);
        float eta = o->alpha / (sqrtf(saturate(v * c2)) + o->epsilon);
        s0[i] = m;
        s1[i] = saturate(v);
        w[i] = soft(w[i] - eta * (m * c1), eta * o->l1);
    }
}

SPAN_OF(adam)

static void adam_rows(const struct optimizer *o, void *const *rows, size_t count, size_t dim, const void *g)
{
    const float *values = g;
    for (size_t i = 0; i < count; i++) {
        float *w = rows[i];
        float t = optimizer_next_step(w[3 * dim]);
        w[3 * dim] = t;
        o->span(o, w, w + dim, w + 2 * dim, t, values + i * dim, dim);
    }
}

float optimizer_next_step(float t)
{
    return t < OPTIMIZER_STEPS_MAX ? t + 1.0F : OPTIMIZER_STEPS_MAX;
}

/* add for one type: unsigned arithmetic for the integers, which wrap. */
#define ADD_KERNEL(name, type)                                                                               \
    static void name##_span(const struct optimizer *o, void *w, float *s0, float *s1, float t,               \
                            const void *g, size_t n)                                                         \
    {                                                                                                        \
        (void)o;                                                                                             \
        (void)s0;                                                                                            \
        (void)s1;                                                                                            \
        (void)t;                                                                                             \
        type *restrict to = w;                                                                               \
        const type *restrict from = g;                                                                       \
        for (size_t i = 0; i < n; i++) {                                                                     \
            to[i] = (type)(to[i] + from[i]);                                                                 \
        }                                                                                                    \
    }                                                                                                        \
    static void name##_rows(const struct optimizer *o, void *const *rows, size_t count, size_t dim,          \
                            const void *g)                                                                   \
    {                                                                                                        \
        (void)o;                                                                                             \
        const type *restrict from = g;                                                                       \
        if (dim == 1) {                                                                                      \
            for (size_t i = 0; i < count; i++) {                                                             \
                type *to = rows[i];                                                                          \
                *to = (type)(*to + from[i]);                                                                 \
            }                                                                                                \
            return;                                                                                          \
        }                                                                                                    \
        for (size_t i = 0; i < count; i++) {                                                                 \
            type *restrict to = rows[i];                                                                     \
            for (size_t j = 0; j < dim; j++) {                                                               \
                to[j] = (type)(to[j] + from[i * dim + j]);                                                   \
            }                                                                                                \
        }                                                                                                    \
    }

ADD_KERNEL(add_f32, float)
ADD_KERNEL(add_f64, double)
ADD_KERNEL(add_u32, uint32_t)
ADD_KERNEL(add_u64, uint64_t)
ADD_KERNEL(add_u8, uint8_t)

static void assign_span(const struct optimizer *o, void *w, float *s0, float *s1, float t, const void *g,
                        size_t n)
{
    (void)s0;
    (void)s1;
    (void)t;
    memcpy(w, g, n * table_dtype_size(o->dtype));
}

static void assign_rows(const struct optimizer *o, void *const *rows, size_t count, size_t dim, const void *g)
{
    size_t bytes = dim * table_dtype_size(o->dtype);
    const char *from = g;
    for (size_t i = 0; i < count; i++) {
        memcpy(rows[i], from + i * bytes, bytes);
    }
}

void optimizer_setup(struct optimizer *o, const paramo_table_options *options)
{
    static const struct {
        optimizer_span_fn *span[CPU_LEVELS];
        optimizer_rows_fn *rows;
    } gradient[] =
        {
            [PARAMO_OPT_ASSIGN] = {{assign_span, assign_span, assign_span}, assign_rows},
            [PARAMO_OPT_SGD] = {LEVELS(sgd), span_rows},
            [PARAMO_OPT_MOMENTUM] = {LEVELS(momentum), span_rows},
            [PARAMO_OPT_ADAGRAD] = {LEVELS(adagrad), span_rows},
            [PARAMO_OPT_FTRL] = {LEVELS(ftrl), span_rows},
            [PARAMO_OPT_ADAM] = {LEVELS(adam), adam_rows},
        },
      add[] = {
          [PARAMO_F32] = {{add_f32_span, add_f32_span, add_f32_span}, add_f32_rows},
          [PARAMO_F64] = {{add_f64_span, add_f64_span, add_f64_span}, add_f64_rows},
          [PARAMO_I32] = {{add_u32_span, add_u32_span, add_u32_span}, add_u32_rows},
          [PARAMO_I64] = {{add_u64_span, add_u64_span, add_u64_span}, add_u64_rows},
          [PARAMO_U8] = {{add_u8_span, add_u8_span, add_u8_span}, add_u8_rows},
      };
    *o = (struct optimizer){
        .kind = options->optimizer,
        .dtype = options->dtype,
        .alpha = options->alpha,
        .beta = options->beta,
        .l1 = options->l1,
        .l2 = options->l2,
        .momentum = options->momentum,
        .beta1 = options->beta1,
        .beta2 = options->beta2,
        .epsilon = options->epsilon,
    };
    bool adds = o->kind == PARAMO_OPT_ADD;
    o->span = (adds ? add[o->dtype].span : gradient[o->kind].span)[cpu_level()];
    o->rows = adds ? add[o->dtype].rows : gradient[o->kind].rows;
}

unsigned optimizer_planes(const struct optimizer *o)
{
    switch (o->kind) {
    case PARAMO_OPT_ASSIGN:
    case PARAMO_OPT_ADD:
    case PARAMO_OPT_SGD:
        return 0;
    case PARAMO_OPT_MOMENTUM:
    case PARAMO_OPT_ADAGRAD:
        return 1;
    case PARAMO_OPT_FTRL:
    case PARAMO_OPT_ADAM:
        return 2;
    }
    return 0;
}

bool optimizer_counts(const struct optimizer *o)
{
    return o->kind == PARAMO_OPT_ADAM;
}

/* Is every |x| <= limit, and a number? Bits of non-negative floats order as integers, with infinity and NaN
 * on top; one subtraction and one or per value, in integers, is cheap vector code on every machine. */
static bool within_f32(const float *g, size_t n, float limit)
{
    uint32_t top;
    memcpy(&top, &limit, sizeof top);
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, g + i, sizeof bits);
        bad |= top - (bits & UINT32_C(0x7fffffff));
    }
    return bad >> 31 == 0;
}

static bool within_f64(const double *g, size_t n, double limit)
{
    uint64_t top;
    memcpy(&top, &limit, sizeof top);
    uint64_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, g + i, sizeof bits);
        bad |= top - (bits & UINT64_C(0x7fffffffffffffff));
    }
    return bad >> 63 == 0;
}

static paramo_err refuse_f32(const float *g, size_t n, float limit, const char *what)
{
    size_t i = 0;
    while (i < n && fabsf(g[i]) <= limit) {
        i++;
    }
    double x = i < n ? (double)g[i] : 0.0;
    return err_set(PARAMO_E_NUMERIC, "%s %zu of %zu is %g: %s", what, i, n, x,
                   isfinite(x) ? "the model has diverged" : "not a finite number");
}

paramo_err optimizer_check(const struct optimizer *o, const void *g, size_t n)
{
    if (o->kind == PARAMO_OPT_ASSIGN) {
        return PARAMO_OK;
    }
    if (o->dtype == PARAMO_F32) {
        float limit = o->kind == PARAMO_OPT_ADD ? FLT_MAX : OPTIMIZER_GRADIENT_MAX;
        return within_f32(g, n, limit) ? PARAMO_OK : refuse_f32(g, n, limit, "pushed value");
    }
    if (o->dtype == PARAMO_F64 && !within_f64(g, n, DBL_MAX)) {
        return err_set(PARAMO_E_NUMERIC, "a pushed value is not a finite number");
    }
    return PARAMO_OK;
}

static bool none_negative(const float *x, size_t n)
{
    bool fine = true;
    for (size_t i = 0; i < n; i++) {
        fine &= x[i] >= 0;
    }
    return fine;
}

paramo_err optimizer_check_state(const struct optimizer *o, const float *w, const float *s0, const float *s1,
                                 float t, size_t n)
{
    if (o->dtype != PARAMO_F32 || o->kind == PARAMO_OPT_ASSIGN || o->kind == PARAMO_OPT_ADD) {
        return PARAMO_OK;
    }
    if (!within_f32(w, n, FLT_MAX)) {
        return refuse_f32(w, n, FLT_MAX, "parameter");
    }
    if (!s0) {
        return PARAMO_OK;
    }
    unsigned planes = optimizer_planes(o);
    if (planes > 0 && !within_f32(s0, n, FLT_MAX)) {
        return refuse_f32(s0, n, FLT_MAX, "state");
    }
    if (planes > 1 && !within_f32(s1, n, FLT_MAX)) {
        return refuse_f32(s1, n, FLT_MAX, "state");
    }
    const float *squares = planes > 1 ? s1 : s0;
    bool has_squares = planes > 1 || o->kind == PARAMO_OPT_ADAGRAD;
    if (has_squares && !none_negative(squares, n)) {
        return err_set(PARAMO_E_NUMERIC, "state: a sum of squares is negative");
    }
    if (optimizer_counts(o) && !(t >= 0 && t <= OPTIMIZER_STEPS_MAX && t == floorf(t))) {
        return err_set(PARAMO_E_NUMERIC, "state: %g is no count of steps", (double)t);
    }
    return PARAMO_OK;
}

void optimizer_start(const struct optimizer *o, void *w, float *s0, float *s1, size_t n)
{
    unsigned planes = optimizer_planes(o);
    if (o->kind == PARAMO_OPT_FTRL) {
        float *weight = w;
        float slope = o->beta / o->alpha + o->l2;
        for (size_t i = 0; i < n; i++) {
            float x = weight[i];
            float z = x == 0 ? 0.0F : -(x * slope + copysignf(o->l1, x));
            weight[i] = ftrl_weight(o, z, 0.0F);
            if (s0) {
                s0[i] = z;
                s1[i] = 0.0F;
            }
        }
        return;
    }
    if (planes > 0 && s0) {
        memset(s0, 0, n * sizeof *s0);
        if (planes > 1) {
            memset(s1, 0, n * sizeof *s1);
        }
    }
}
