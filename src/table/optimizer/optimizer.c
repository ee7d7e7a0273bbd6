#include "table/optimizer/optimizer.h"

#include <float.h>
#include <math.h>
#include <string.h>

void optimizer_setup(struct optimizer *o, const paramo_table_options *options)
{
    const struct optimizer_def *def = optimizer_def(options->optimizer);
    const struct optimizer_kernel *kernel = &def->kernel[options->dtype];
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
        .span = kernel->span[cpu_level()],
        .rows = kernel->rows,
    };
}

/* The top bit is set if some |x| is above the limit, or is not a number. Bits of non-negative floats order as
 * integers, with infinity and NaN on top; one subtraction and one or per value, in integers, is cheap vector code on
 * every machine. */
static inline __attribute__((always_inline)) uint32_t outside_f32(const float *g, size_t n, float limit)
{
    uint32_t top;
    memcpy(&top, &limit, sizeof top);
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, g + i, sizeof bits);
        bad |= top - (bits & UINT32_C(0x7fffffff));
    }
    return bad;
}

static uint32_t outside_base(const float *g, size_t n, float limit)
{
    return outside_f32(g, n, limit);
}
CPU_TARGET_AVX2 static uint32_t outside_avx2(const float *g, size_t n, float limit)
{
    return outside_f32(g, n, limit);
}
CPU_TARGET_AVX512 static uint32_t outside_avx512(const float *g, size_t n, float limit)
{
    return outside_f32(g, n, limit);
}

/* Is every |x| <= limit, and a number? */
static bool within_f32(const float *g, size_t n, float limit)
{
    static uint32_t (*const outside[CPU_LEVELS])(const float *, size_t, float) = {outside_base, outside_avx2,
                                                                                  outside_avx512};
    return outside[cpu_level()](g, n, limit) >> 31 == 0;
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
    while (i < n && fabsf(g[i]) <= limit)
        i++;
    double x = i < n ? (double)g[i] : 0.0;
    return err_set(PARAMO_E_NUMERIC, "%s %zu of %zu is %g: %s", what, i, n, x,
                   isfinite(x) ? "the model has diverged" : "not a finite number");
}

paramo_err optimizer_check(const struct optimizer *o, const void *g, size_t n)
{
    if (optimizer_def(o->kind)->input == OPTIMIZER_ANY)
        return PARAMO_OK;
    if (o->dtype == PARAMO_F32) {
        float limit = optimizer_def(o->kind)->input == OPTIMIZER_FINITE ? FLT_MAX : OPTIMIZER_GRADIENT_MAX;
        return within_f32(g, n, limit) ? PARAMO_OK : refuse_f32(g, n, limit, "pushed value");
    }
    if (o->dtype == PARAMO_F64 && !within_f64(g, n, DBL_MAX))
        return err_set(PARAMO_E_NUMERIC, "a pushed value is not a finite number");
    return PARAMO_OK;
}

static bool none_negative(const float *x, size_t n)
{
    bool fine = true;
    for (size_t i = 0; i < n; i++)
        fine &= x[i] >= 0;
    return fine;
}

paramo_err optimizer_check_state(const struct optimizer *o, const float *w, const float *s0, const float *s1,
                                 float t, size_t n)
{
    const struct optimizer_def *def = optimizer_def(o->kind);
    if (def->input != OPTIMIZER_GRADIENT)
        return PARAMO_OK;
    if (!within_f32(w, n, FLT_MAX))
        return refuse_f32(w, n, FLT_MAX, "parameter");
    if (!s0)
        return PARAMO_OK;
    unsigned planes = def->planes;
    if (planes > 0 && !within_f32(s0, n, FLT_MAX))
        return refuse_f32(s0, n, FLT_MAX, "state");
    if (planes > 1 && !within_f32(s1, n, FLT_MAX))
        return refuse_f32(s1, n, FLT_MAX, "state");
    if (def->squares && !none_negative(planes > 1 ? s1 : s0, n))
        return err_set(PARAMO_E_NUMERIC, "state: a sum of squares is negative");
    if (def->counts && !(t >= 0 && t <= OPTIMIZER_STEPS_MAX && t == floorf(t)))
        return err_set(PARAMO_E_NUMERIC, "state: %g is not a count of steps", (double)t);
    return PARAMO_OK;
}

void optimizer_start(const struct optimizer *o, void *w, float *s0, float *s1, size_t n)
{
    const struct optimizer_def *def = optimizer_def(o->kind);
    if (def->start) {
        def->start(o, w, s0, s1, n);
        return;
    }
    if (s0 && def->planes > 0)
        memset(s0, 0, n * sizeof *s0);
    if (s0 && def->planes > 1)
        memset(s1, 0, n * sizeof *s1);
}
