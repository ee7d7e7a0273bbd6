#include "base/transform.h"

#include <string.h>

/* Integers have all values of a up to here. */
#define INTEGERS 0x1p63

paramo_err transform_check(const struct transform *what, paramo_dtype dtype)
{
    bool floats = dtype == PARAMO_F32 || dtype == PARAMO_F64;
    double a = what->a;
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
    return bad ? err_set(PARAMO_E_NUMERIC, "a result is not finite; the rows of this part are as they were")
               : PARAMO_OK;
}
