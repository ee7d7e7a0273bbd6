#include "filter/envelope.h"

#include "filter/registry.h"

static bool connection_has(const struct filter_ops *ops, uint64_t capabilities)
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
        if (!(ops->codes & FILTER_OF_ANSWER) || !connection_has(ops, capabilities))
            continue;
        write_u8(w, ops->id);
        write_f32(w, wants->at[i].arg);
        if (ops->id == FILTER_ID_USER)
            write_u64(w, ops->hash);
        count++;
    }
    if (!w->failed)
        w->data[at] = (uint8_t)count;
}

/* Leaves out filters that this side does not know: it cannot use them for the answer. */
static bool wants_decode(struct reader *r, struct filter_chain *wants)
{
    unsigned count = read_u8(r);
    if (count > FILTER_CHAIN_MAX)
        return false;
    for (unsigned i = 0; i < count; i++) {
        unsigned id = read_u8(r);
        float arg = read_f32(r);
        const struct filter_ops *ops = registry_of_wire(id, id == FILTER_ID_USER ? read_u64(r) : 0);
        if (!ops)
            continue;
        bool ascends = !wants->count || wants->at[wants->count - 1].ops->rank <= ops->rank;
        bool again = false;
        for (unsigned k = 0; k < wants->count; k++)
            again = again || wants->at[k].ops == ops;
        if (!ascends || again || !(ops->codes & FILTER_OF_ANSWER) || !filter_takes(ops, arg))
            return false;
        wants->at[wants->count++] = (struct filter_setting){.ops = ops, .arg = arg};
    }
    return !r->failed;
}

/* unknown: one is a filter of the application that this process does not have. */
static bool used_decode(struct reader *r, uint64_t capabilities, enum filter_use use,
                        struct filter_envelope *e, bool *unknown)
{
    e->count = read_u8(r);
    if (e->count > FILTER_CHAIN_MAX)
        return false;
    for (unsigned i = 0; i < e->count; i++) {
        unsigned id = read_u8(r), len = read_u8(r);
        const uint8_t *params = read_span(r, len);
        struct reader first = reader_over(params, r->failed ? 0 : len);
        const struct filter_ops *ops = registry_of_wire(id, id == FILTER_ID_USER ? read_u64(&first) : 0);
        if (!ops && id == FILTER_ID_USER && !first.failed) {
            *unknown = true;
            continue;
        }
        bool seen = false;
        for (unsigned k = 0; k < i; k++)
            seen = seen || e->used[k].ops == ops;
        if (r->failed || !ops || !ops->decode || !(ops->codes & use) || !connection_has(ops, capabilities) ||
            seen)
            return false;
        e->used[i] = (struct filter_used){.ops = ops, .params = reader_over(params, len)};
    }
    return reader_done(r);
}

paramo_err filter_envelope_decode(const void *body, uint64_t len, uint64_t capabilities, enum filter_use use,
                                  struct filter_envelope *e)
{
    struct reader r = reader_over(body, (size_t)len);
    bool unknown = false;
    *e = (struct filter_envelope){0};
    if (len <= FILTER_ENVELOPE_MAX && wants_decode(&r, &e->wants) &&
        (use != FILTER_OF_ANSWER || !e->wants.count) && used_decode(&r, capabilities, use, e, &unknown))
        return !unknown ? PARAMO_OK
                        : err_set(PARAMO_E_UNSUPPORTED, "a filter of the application is not registered here");
    return err_set(PARAMO_E_PROTOCOL,
                   "a filter envelope of %llu bytes is malformed, or a filter is not allowed",
                   (unsigned long long)len);
}
