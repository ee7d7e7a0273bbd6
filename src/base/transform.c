#include "base/transform.h"

#include <assert.h>
#include <string.h>

/* Integers of a smaller magnitude fit into 64 bits. */
#define INTEGERS 0x1p63

paramo_err transform_check(const struct transform *what, paramo_dtype dtype)
{
    bool floats = dtype == PARAMO_F32 || dtype == PARAMO_F64;
    double a = what->a;
    if (what->function == PARAMO_TRANSFORM_USER)
        return user_name_is_good(what->user.name) ? PARAMO_OK
                                                  : err_set(PARAMO_E_INVALID, "the function has no name");
    if (what->function >= PARAMO_TRANSFORM_FUNCTIONS)
        return err_set(PARAMO_E_INVALID, "there is no function %u", what->function);
    if (what->two != transform_takes_two(what->function))
        return err_set(PARAMO_E_INVALID, what->two ? "this function takes no second table"
                                                   : "this function needs a second table");
    if (!(a > -INTEGERS * INTEGERS && a < INTEGERS * INTEGERS) && !(floats && a - a == 0))
        return err_set(PARAMO_E_INVALID, "a is %g: it must be a number that the table's type can hold", a);
    if (!floats && !(a >= -INTEGERS && a < INTEGERS && (double)(int64_t)a == a))
        return err_set(PARAMO_E_INVALID, "a is %g, but the table holds integers", a);
    return PARAMO_OK;
}

/* The new value. a: of the function; y: of the row; x: of the second table's row. */
#define TRANSFORM_RESULT(name, type)                                                                         \
    static inline type name(unsigned function, type a, type y, type x)                                       \
    {                                                                                                        \
        switch (function) {                                                                                  \
        case PARAMO_TRANSFORM_FILL:                                                                          \
            return a;                                                                                        \
        case PARAMO_TRANSFORM_SCALE:                                                                         \
            return a * y;                                                                                    \
        case PARAMO_TRANSFORM_ADD:                                                                           \
            return y + a;                                                                                    \
        case PARAMO_TRANSFORM_AXPY:                                                                          \
            return y + a * x;                                                                                \
        default:                                                                                             \
            return x;                                                                                        \
        }                                                                                                    \
    }
TRANSFORM_RESULT(result, double)
TRANSFORM_RESULT(integer, uint64_t)

#define FLOATS(type)                                                                                         \
    for (size_t i = 0; i < n; i++) {                                                                         \
        type *v = (type *)y + i;                                                                             \
        *v = (type)result(what->function, what->a, (double)*v, x ? (double)((const type *)x)[i] : 0);        \
        bad |= !(*v - *v == 0); /* an infinity, or NaN */                                                    \
    }                                                                                                        \
    break

#define WHOLE(type)                                                                                          \
    for (size_t i = 0; i < n; i++) {                                                                         \
        type *v = (type *)y + i;                                                                             \
        *v = (type)integer(what->function, a, (uint64_t)*v, x ? (uint64_t)((const type *)x)[i] : 0);         \
    }                                                                                                        \
    break

static paramo_err not_finite(void)
{
    return err_set(PARAMO_E_NUMERIC, "a result is not finite; the rows of this part are as they were");
}

paramo_err transform_values(const struct transform *what, paramo_dtype dtype, void *y, const void *x,
                            size_t n)
{
    uint64_t a = dtype == PARAMO_F32 || dtype == PARAMO_F64 ? 0 : (uint64_t)(int64_t)what->a;
    bool bad = false;
    switch (dtype) {
    case PARAMO_F32:
        FLOATS(float);
    case PARAMO_F64:
        FLOATS(double);
    case PARAMO_I32:
        WHOLE(int32_t);
    case PARAMO_I64:
        WHOLE(int64_t);
    case PARAMO_U8:
        WHOLE(uint8_t);
    }
    return bad ? not_finite() : PARAMO_OK;
}

static bool all_finite(paramo_dtype dtype, const void *y, size_t n)
{
    bool bad = false;
    for (size_t i = 0; i < n && dtype == PARAMO_F32; i++)
        bad |= !(((const float *)y)[i] - ((const float *)y)[i] == 0);
    for (size_t i = 0; i < n && dtype == PARAMO_F64; i++)
        bad |= !(((const double *)y)[i] - ((const double *)y)[i] == 0);
    return !bad;
}

paramo_err transform_rows_user(const struct transform *what, paramo_dtype dtype, const uint64_t *keys,
                               size_t n, uint32_t columns, void *y, const void *x)
{
    uint64_t params[PARAMO_FUNCTION_PARAMS_MAX / 8]; /* aligned */
    const paramo_function *f;
    paramo_err err = user_call_find(&what->user, false, &f);
    if (err || !n)
        return err;
    assert(what->user.params_bytes <= sizeof params);
    if (what->user.params_bytes)
        memcpy(params, what->user.params, what->user.params_bytes);
    paramo_function_rows rows = {.size = sizeof rows,
                                 .params = params,
                                 .params_bytes = what->user.params_bytes,
                                 .keys = keys,
                                 .n = n,
                                 .columns = columns,
                                 .dtype = dtype,
                                 .vals = y,
                                 .other = x,
                                 .other_dtype = dtype};
    int failed = f->change(f->user, &rows);
    if (failed)
        return err_set(PARAMO_E_HANDLER,
                       "function \"%s\" returned %d; the rows of this part are as they were", f->name,
                       failed);
    return all_finite(dtype, y, n * columns) ? PARAMO_OK : not_finite();
}
