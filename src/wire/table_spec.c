#include "wire/table_spec.h"

#include <inttypes.h>
#include <math.h>

#include "wire/calls.h"

/* Every option once: X(type, name). Order and types are the wire's: never change them, only add after them. */
#define TABLE_SPEC_FIELDS_1(X)                                                                               \
    X(enum, kind)                                                                                            \
    X(enum, dtype)                                                                                           \
    X(u32, dim)                                                                                              \
    X(u64, rows)                                                                                             \
    X(enum, placement)                                                                                       \
    X(enum, optimizer)                                                                                       \
    X(f32, alpha)                                                                                            \
    X(f32, beta)                                                                                             \
    X(f32, l1)                                                                                               \
    X(f32, l2)                                                                                               \
    X(f32, momentum)                                                                                         \
    X(f32, beta1)                                                                                            \
    X(f32, beta2)                                                                                            \
    X(f32, epsilon)                                                                                          \
    X(enum, init)                                                                                            \
    X(f32, init_a)                                                                                           \
    X(f32, init_b)                                                                                           \
    X(u64, seed)
#define TABLE_SPEC_FIELDS(X)                                                                                 \
    TABLE_SPEC_FIELDS_1(X)                                                                                   \
    X(enum, replicas)

/* The highest bits of the optimizer's byte hold the aggregation. An older node takes such a byte for an unknown
 * optimizer, and refuses the table. */
#define AGGREGATE_SHIFT 6

#define WRITE_enum(name) write_u8(w, (uint8_t)o->name);
#define WRITE_u32(name)  write_u32(w, o->name);
#define WRITE_u64(name)  write_u64(w, o->name);
#define WRITE_f32(name)  write_f32(w, o->name);
#define READ_enum(name)  o->name = read_u8(r);
#define READ_u32(name)   o->name = read_u32(r);
#define READ_u64(name)   o->name = read_u64(r);
#define READ_f32(name)   o->name = read_f32(r);

void table_spec_encode(const paramo_table_options *o, struct writer *w)
{
    paramo_table_options byte = *o;
    byte.optimizer = (paramo_optimizer)(o->optimizer | o->aggregate << AGGREGATE_SHIFT);
    o = &byte;
#define WRITE(type, name) WRITE_##type(name)
    TABLE_SPEC_FIELDS(WRITE)
}

static paramo_err decoded(const struct reader *r, paramo_table_options *o)
{
    o->aggregate = (paramo_aggregate)(o->optimizer >> AGGREGATE_SHIFT);
    o->optimizer = (paramo_optimizer)(o->optimizer & ((1U << AGGREGATE_SHIFT) - 1));
    return r->failed ? err_set(PARAMO_E_PROTOCOL, "table options are cut short") : table_spec_check(o);
}

paramo_err table_spec_decode(struct reader *r, paramo_table_options *o)
{
    *o = (paramo_table_options){.size = sizeof *o};
#define READ(type, name) READ_##type(name)
    TABLE_SPEC_FIELDS(READ)
    return decoded(r, o);
}

paramo_err table_spec_decode_1(struct reader *r, paramo_table_options *o)
{
    *o = (paramo_table_options){.size = sizeof *o, .replicas = PARAMO_REPLICAS_OF_JOB};
    TABLE_SPEC_FIELDS_1(READ)
    return decoded(r, o);
}

static bool out_of(unsigned value, unsigned last)
{
    return value > last;
}

paramo_err table_spec_check(const paramo_table_options *o)
{
    const char *field = NULL;
    if (out_of(o->kind, PARAMO_TABLE_USER))
        field = "kind";
    else if (out_of(o->dtype, PARAMO_U8))
        field = "dtype";
    else if (out_of(o->placement, PARAMO_PLACE_RANGE))
        field = "placement";
    else if (out_of(o->optimizer, PARAMO_OPTIMIZER_COUNT - 1))
        field = "optimizer";
    else if (out_of(o->init, PARAMO_INIT_NORMAL))
        field = "init";
    else if (out_of(o->aggregate, PARAMO_AGGREGATE_MEAN) || (o->aggregate && o->kind != PARAMO_TABLE_SPARSE))
        field = "aggregate";
    else if (o->kind == PARAMO_TABLE_DENSE && o->rows == 0)
        field = "rows";
    else if (o->kind != PARAMO_TABLE_DENSE && o->placement == PARAMO_PLACE_DENSE)
        field = "placement";
    else if (o->replicas != PARAMO_REPLICAS_OF_JOB && out_of(o->replicas, TABLE_SPEC_REPLICAS_MAX))
        field = "replicas";
    if (field)
        return err_set(PARAMO_E_INVALID, "table option %s is not valid", field);
    if (o->dim > TABLE_SPEC_DIM_MAX)
        return err_set(PARAMO_E_TOO_LARGE, "table option dim is %" PRIu32 ", at most %d", o->dim,
                       TABLE_SPEC_DIM_MAX);
    if (o->kind == PARAMO_TABLE_DENSE && o->rows > TABLE_SPEC_ROWS_MAX)
        return err_set(PARAMO_E_TOO_LARGE, "table option rows is %" PRIu64 ", at most %" PRIu64, o->rows,
                       TABLE_SPEC_ROWS_MAX);
#define FINITE_enum(name)
#define FINITE_u32(name)
#define FINITE_u64(name)
#define FINITE_f32(name)                                                                                     \
    if (!isfinite(o->name))                                                                                  \
        return err_set(PARAMO_E_INVALID, "table option " #name " is not a finite number");
#define FINITE(type, name) FINITE_##type(name)
    TABLE_SPEC_FIELDS(FINITE)
    return PARAMO_OK;
}

paramo_table_options table_spec_resolved(const paramo_table_options *o)
{
    paramo_table_options resolved = *o;
    resolved.size = sizeof resolved;
    if (o->placement == PARAMO_PLACE_AUTO)
        resolved.placement = o->kind == PARAMO_TABLE_DENSE ? PARAMO_PLACE_DENSE : PARAMO_PLACE_MIXED;
    return resolved;
}

/* Floats by their bits: what was sent is what was meant. */
static bool same_f32(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

paramo_err table_spec_same(const char *table, const paramo_table_options *have,
                           const paramo_table_options *want)
{
#define DIFFERS(name, format, type)                                                                          \
    return err_set(PARAMO_E_TABLE_EXISTS, "table %s exists with " #name " %" format ", not %" format, table, \
                   (type)have->name, (type)want->name);
#define SAME_enum(name)                                                                                      \
    if (have->name != want->name)                                                                            \
    DIFFERS(name, "u", unsigned)
#define SAME_u32(name)                                                                                       \
    if (have->name != want->name)                                                                            \
    DIFFERS(name, PRIu32, uint32_t)
#define SAME_u64(name)                                                                                       \
    if (have->name != want->name)                                                                            \
    DIFFERS(name, PRIu64, uint64_t)
#define SAME_f32(name)                                                                                       \
    if (!same_f32(have->name, want->name))                                                                   \
    DIFFERS(name, "g", double)
#define SAME(type, name) SAME_##type(name)
    TABLE_SPEC_FIELDS(SAME)
    SAME(enum, aggregate)
    return PARAMO_OK;
}

void table_open_encode(const struct table_open *m, struct writer *w)
{
    write_string(w, m->name);
    write_u8(w, m->create);
    if (m->create)
        table_spec_encode(&m->options, w);
}

paramo_err table_open_decode(struct reader *r, struct table_open *m)
{
    *m = (struct table_open){0};
    read_string(r, m->name, sizeof m->name);
    uint8_t create = read_u8(r);
    m->create = create == 1;
    if (m->create) {
        paramo_err err = table_spec_decode(r, &m->options);
        if (err)
            return err;
    }
    paramo_err err = call_body_end(r, "TABLE_OPEN");
    if (!err && (create > 1 || !m->name[0]))
        return err_set(PARAMO_E_PROTOCOL, "TABLE_OPEN: a field is not valid");
    return err;
}

void table_open_result_encode(const struct table_open_result *m, struct writer *w)
{
    write_u32(w, m->table);
    write_u64(w, m->view);
}

paramo_err table_open_result_decode(struct reader *r, struct table_open_result *m)
{
    m->table = read_u32(r);
    m->view = read_u64(r);
    return call_body_end(r, "TABLE_OPEN's answer");
}
