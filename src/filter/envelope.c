#include "filter/envelope.h"

static bool spoken(const struct filter_ops *ops, uint64_t capabilities)
{
    return ops->capability && (ops->capability & capabilities) == ops->capability;
}

void filter_envelope_wants(struct writer *w, const struct filter_chain *wants, uint64_t capabilities)
{
    size_t at = w->len;
    unsigned count = 0;
    write_u8(w, 0);
    for (unsigned i = 0; wants && i < wants->count; i++) {
        const struct filter_ops *ops = wants->at[i].ops;
        if (!(ops->codes & FILTER_OF_ANSWER) || !spoken(ops, capabilities))
            continue;
        write_u8(w, ops->id);
        write_f32(w, wants->at[i].arg);
        count++;
    }
    if (!w->failed)
        w->data[at] = (uint8_t)count;
}

static bool takes(const struct filter_ops *ops, float arg)
{
    return ops->meta ? arg >= ops->min && arg <= ops->max && (!ops->whole || arg == (float)(int)arg)
                     : arg == 0;
}

/* Filters that this side does not know cannot be used for the answer, and are left out. */
static bool wants_decode(struct reader *r, struct filter_chain *wants)
{
    unsigned count = read_u8(r);
    if (count > FILTER_CHAIN_MAX)
        return false;
    for (unsigned i = 0; i < count; i++) {
        const struct filter_ops *ops = filter_of_id(read_u8(r));
        float arg = read_f32(r);
        if (!ops)
            continue;
        bool ascends = !wants->count || wants->at[wants->count - 1].ops->rank <= ops->rank;
        if (!ascends || !(ops->codes & FILTER_OF_ANSWER) || !takes(ops, arg))
            return false;
        wants->at[wants->count++] = (struct filter_setting){.ops = ops, .arg = arg};
    }
    return !r->failed;
}

static bool used_decode(struct reader *r, uint64_t capabilities, enum filter_use use,
                        struct filter_envelope *e)
{
    uint64_t seen = 0;
    e->count = read_u8(r);
    if (e->count > FILTER_CHAIN_MAX)
        return false;
    for (unsigned i = 0; i < e->count; i++) {
        unsigned id = read_u8(r), len = read_u8(r);
        const struct filter_ops *ops = filter_of_id(id);
        const uint8_t *params = read_span(r, len);
        if (r->failed || !ops || !(ops->codes & use) || !spoken(ops, capabilities) || seen >> id & 1)
            return false;
        seen |= UINT64_C(1) << id;
        e->used[i] = (struct filter_used){.ops = ops, .params = reader_over(params, len)};
    }
    return reader_done(r);
}

paramo_err filter_envelope_decode(const void *body, uint64_t len, uint64_t capabilities, enum filter_use use,
                                  struct filter_envelope *e)
{
    struct reader r = reader_over(body, (size_t)len);
    e->wants.count = e->count = 0;
    if (len <= FILTER_ENVELOPE_MAX && wants_decode(&r, &e->wants) &&
        (use != FILTER_OF_ANSWER || !e->wants.count) && used_decode(&r, capabilities, use, e))
        return PARAMO_OK;
    return err_set(PARAMO_E_PROTOCOL, "an envelope of %llu bytes does not name filters of this connection",
                   (unsigned long long)len);
}
