#include "table/rowspec.h"

#include <assert.h>

#include "table/optimizer/optimizer_def.h"
#include "table/table_options.h"

void rowspec_setup(struct rowspec *s, const paramo_table_options *o)
{
    const struct optimizer_def *def = optimizer_def(o->optimizer);
    optimizer_setup(&s->optimizer, o);
    rowinit_setup(&s->init, o);
    s->dim = o->dim;
    s->value_bytes = table_dtype_size(o->dtype);
    s->param_bytes = o->dim * s->value_bytes;
    s->state_values = table_state_values(o);
    s->state_bytes = (table_stored_values(o) - o->dim) * s->value_bytes;
    s->aggregate = o->aggregate;
    s->planes = def->planes;
    s->counts = def->counts;
    assert(s->planes <= 2 && s->state_values >= s->planes * (size_t)s->dim);
    assert(s->state_bytes >= s->state_values * sizeof(float));
}

void rowspec_initial(const struct rowspec *s, uint64_t key, uint32_t col, uint32_t ncols, void *out)
{
    rowinit_fill(&s->init, key, col, ncols, out);
    optimizer_start(&s->optimizer, out, NULL, NULL, ncols);
}

#define COUNT(type)                                                                                          \
    for (size_t i = 0; i < n; i++)                                                                           \
        count += ((const type *)values)[i] != 0;                                                             \
    return count

uint64_t rowspec_count_nonzero(const struct rowspec *s, const void *values, size_t n)
{
    uint64_t count = 0;
    switch (s->init.dtype) {
    case PARAMO_F32:
        COUNT(float);
    case PARAMO_F64:
        COUNT(double);
    case PARAMO_I32:
        COUNT(uint32_t);
    case PARAMO_I64:
        COUNT(uint64_t);
    case PARAMO_U8:
        COUNT(uint8_t);
    }
    return count;
}
