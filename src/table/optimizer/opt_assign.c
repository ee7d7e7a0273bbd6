/*
 * w = g, for every type of value. Without state or options; takes values that are not finite, too.
 */
#include <string.h>

#include "table/optimizer/optimizer.h"
#include "table/table_options.h"

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
    for (size_t i = 0; i < count; i++)
        memcpy(rows[i], from + i * bytes, bytes);
}

#define ASSIGN_FOR_ALL                                                                                       \
    {                                                                                                        \
        {assign_span, assign_span, assign_span}, assign_rows                                                 \
    }

const struct optimizer_def optimizer_assign = {
    .input = OPTIMIZER_ANY,
    .kernel = {[PARAMO_F32] = ASSIGN_FOR_ALL,
               [PARAMO_F64] = ASSIGN_FOR_ALL,
               [PARAMO_I32] = ASSIGN_FOR_ALL,
               [PARAMO_I64] = ASSIGN_FOR_ALL,
               [PARAMO_U8] = ASSIGN_FOR_ALL},
};
