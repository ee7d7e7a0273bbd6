#include "wire/reduction_body.h"

#include <string.h>

#include "base/cursor.h"

size_t reduction_body_bytes(const struct reduction *what)
{
    return REDUCTION_BODY_BYTES + (what->function == PARAMO_REDUCE_USER ? user_body_bytes(&what->user) : 0);
}

void reduction_encode(const struct reduction *what, uint8_t *out)
{
    struct writer w = writer_over(out, reduction_body_bytes(what));
    write_u8(&w, what->function);
    write_u8(&w, what->two);
    write_u16(&w, 0);
    write_u32(&w, what->other);
    write_u64(&w, what->begin);
    write_u64(&w, what->last);
    write_u32(&w, what->most);
    write_u32(&w, 0);
    if (what->function == PARAMO_REDUCE_USER)
        user_body_encode(&w, &what->user);
}

paramo_err reduction_decode(const void *body, uint64_t len, struct reduction *what)
{
    struct reader r = reader_over(body, len);
    *what = (struct reduction){.function = read_u8(&r)};
    uint8_t two = read_u8(&r);
    what->two = two;
    uint16_t zero = read_u16(&r);
    what->other = read_u32(&r);
    what->begin = read_u64(&r);
    what->last = read_u64(&r);
    what->most = read_u32(&r);
    uint32_t zeros = read_u32(&r);
    if (what->function == PARAMO_REDUCE_USER)
        user_body_decode(&r, &what->user);
    if (!reader_done(&r) || zero || zeros || two > 1 || (!two && what->other) || what->begin > what->last)
        return err_set(PARAMO_E_PROTOCOL, "REDUCE: a field is not valid");
    return reduction_check(what)
               ? err_set(PARAMO_E_PROTOCOL, "REDUCE: no such function, or more entries than there may be")
               : PARAMO_OK;
}

bool reduction_other(const void *body, uint32_t *table)
{
    struct reader r = reader_over(body, REDUCTION_BODY_BYTES);
    (void)read_u8(&r);
    bool two = read_u8(&r);
    (void)read_u16(&r);
    *table = read_u32(&r);
    return two;
}

size_t reduced_body_bytes(const struct reduced *found)
{
    return (size_t)REDUCED_BODY_BYTES +
           (reduction_sums(found->of->function) ? (size_t)REDUCED_SUM_BYTES : 0) +
           reduced_state_bytes(found) + found->n * REDUCED_ENTRY_BYTES;
}

void reduced_encode(struct reduced *found, uint8_t *out)
{
    struct writer w = writer_over(out, reduced_body_bytes(found));
    write_u64(&w, found->rows);
    write_u64(&w, found->values);
    write_u64(&w, found->nans);
    write_u64(&w, found->sum.nans);
    write_u64(&w, found->sum.plus);
    write_u64(&w, found->sum.minus);
    if (reduction_sums(found->of->function)) {
        exactsum_carry(&found->sum);
        for (unsigned i = 0; i + 1 < EXACTSUM_CHUNKS; i++)
            write_u32(&w, (uint32_t)found->sum.chunk[i]);
        write_u64(&w, (uint64_t)found->sum.chunk[EXACTSUM_CHUNKS - 1]);
    }
    if (found->user)
        write_bytes(&w, found->own, reduced_state_bytes(found));
    for (size_t i = 0; i < found->n; i++) {
        write_u64(&w, found->entries[i].key);
        write_u32(&w, found->entries[i].column);
        write_u32(&w, 0);
        write_f64(&w, found->entries[i].value);
    }
}

static paramo_err wrong(void)
{
    return err_set(PARAMO_E_PROTOCOL, "the result of a reduction is not valid");
}

paramo_err reduced_decode(const void *body, uint64_t len, struct reduced *into)
{
    struct reader r = reader_over(body, len);
    const struct reduction *of = into->of;
    into->rows = read_u64(&r);
    into->values = read_u64(&r);
    into->nans = read_u64(&r);
    into->sum = (struct exactsum){0};
    into->sum.nans = read_u64(&r);
    into->sum.plus = read_u64(&r);
    into->sum.minus = read_u64(&r);
    if (reduction_sums(of->function)) {
        for (unsigned i = 0; i + 1 < EXACTSUM_CHUNKS; i++)
            into->sum.chunk[i] = read_u32(&r);
        into->sum.chunk[EXACTSUM_CHUNKS - 1] = (int64_t)(int32_t)read_u32(&r);
        int32_t high =
            (int32_t)read_u32(&r); /* counts of values are below 2^64: the upper half is the sign */
        if (high != (into->sum.chunk[EXACTSUM_CHUNKS - 1] < 0 ? -1 : 0))
            return wrong();
    }
    if (into->user) {
        const void *state = read_span(&r, reduced_state_bytes(into));
        if (!reader_done(&r))
            return wrong();
        memcpy(into->own, state, reduced_state_bytes(into));
        return PARAMO_OK;
    }
    into->n = r.left / REDUCED_ENTRY_BYTES;
    if (r.failed || r.left % REDUCED_ENTRY_BYTES || into->n > of->most)
        return wrong();
    for (size_t i = 0; i < into->n; i++) {
        paramo_entry *e = &into->entries[i];
        e->key = read_u64(&r);
        e->column = read_u32(&r);
        e->reserved = read_u32(&r);
        e->value = read_f64(&r);
        if (e->reserved || e->value != e->value || !reduction_has(of, e->key) ||
            (i && !reduced_before(of->function, &e[-1], e)))
            return wrong();
    }
    return reader_done(&r) ? PARAMO_OK : wrong();
}
