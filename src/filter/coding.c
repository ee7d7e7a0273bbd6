#include "filter/coding.h"

#include "filter/registry.h"

/* A filter that has not paid this often in a row is tried at every PACE_WAIT-th message only. Arbitrary. */
enum { PACE_FAILED = 4, PACE_WAIT = 16 };

static enum filter_direction direction_of(enum filter_use use)
{
    return use == FILTER_OF_PUSH ? FILTER_PUSH : FILTER_PULL;
}

uint64_t filter_message_bytes(const struct filter_message *m)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < FILTER_SEGS; i++)
        sum += m->seg[i].len;
    return sum;
}

static bool its_turn(struct filter_pace *pace)
{
    if (pace->failed < PACE_FAILED)
        return true;
    pace->waits = (uint16_t)((pace->waits + 1) % PACE_WAIT);
    return !pace->waits;
}

bool filter_round(const struct filter_coder *c, const struct filter_chain *chain,
                  enum filter_direction direction, bool wire, struct filter_rows *rows)
{
    bool changed = false;
    for (unsigned i = 0; i < chain->count; i++) {
        const struct filter_ops *ops = chain->at[i].ops;
        if (!ops->round || !filter_rows_rounds(rows->dtype))
            continue;
        struct filter_count *count = &c->counts->of[registry_index(ops)][direction];
        uint64_t from = env_now(c->env), bytes = rows->n * (rows->dtype == PARAMO_F32 ? 4 : 8);
        bool done = ops->round(&chain->at[i], rows);
        count->time_ns += env_now(c->env) - from;
        changed = changed || done;
        if (done && !(wire && (ops->capability & c->capabilities) == ops->capability)) {
            count->messages++; /* no encode will count it */
            count->before += bytes;
            count->after += bytes;
        }
    }
    return changed;
}

void filter_select(const struct filter_coder *c, const struct filter_chain *chain,
                   const struct filter_rows *rows, uint8_t *waits)
{
    uint64_t row = 8 + (uint64_t)rows->row_values * (rows->dtype == PARAMO_F32 ? 4 : 8);
    uint32_t waited = 0;
    for (unsigned i = 0; i < chain->count; i++) {
        const struct filter_ops *ops = chain->at[i].ops;
        if (!ops->select)
            continue;
        struct filter_count *count = &c->counts->of[registry_index(ops)][FILTER_PUSH];
        uint64_t from = env_now(c->env), before = row * (rows->count - waited);
        ops->select(&chain->at[i], rows, waits);
        waited = 0;
        for (uint32_t k = 0; k < rows->count; k++)
            waited += waits[k];
        count->time_ns += env_now(c->env) - from;
        uint64_t after = row * (rows->count - waited);
        if (after == before) {
            count->skipped++;
            continue;
        }
        count->messages++;
        count->before += before;
        count->after += after;
    }
}

static bool encode_one(const struct filter_coder *c, const struct filter_setting *s, struct filter_pace *pace,
                       struct filter_message *m, struct writer *body)
{
    struct filter_count *count = &c->counts->of[registry_index(s->ops)][direction_of(m->use)];
    uint8_t bytes[FILTER_PARAMS_MAX];
    struct writer params = writer_over(bytes, sizeof bytes);
    uint64_t before = filter_message_bytes(m), from = env_now(c->env);
    const void *vals = m->seg[WIRE_SEG_VALS].data;
    bool done = its_turn(pace) && s->ops->encode(s, m, &params);
    m->coded = m->coded || m->seg[WIRE_SEG_VALS].data != vals;
    count->time_ns += env_now(c->env) - from;
    pace->failed = (uint16_t)(done ? 0 : pace->failed < PACE_FAILED ? pace->failed + 1 : pace->failed);
    if (!done) {
        count->skipped++;
        return false;
    }
    write_u8(body, s->ops->id);
    write_u8(body, (uint8_t)params.len);
    write_bytes(body, bytes, params.len);
    count->messages++;
    count->before += before;
    count->after += filter_message_bytes(m) + 2 + params.len;
    return true;
}

bool filter_encode(const struct filter_coder *c, struct filter_run *run, const struct filter_chain *wants,
                   struct filter_message *m, struct van_seg *body)
{
    const struct filter_chain *chain = &run->chain;
    uint8_t *bytes = NULL;
    if (filter_message_bytes(m) <= FILTER_MESSAGE_MAX)
        bytes = filter_memory_take(&m->memory, FILTER_ENVELOPE_MAX);
    if (!bytes)
        return false;
    struct writer w = writer_over(bytes, FILTER_ENVELOPE_MAX);
    filter_envelope_wants(&w, wants, c->capabilities);
    size_t at = w.len;
    unsigned used = 0;
    write_u8(&w, 0);
    for (unsigned i = 0; i < chain->count; i++) {
        const struct filter_ops *ops = chain->at[i].ops;
        if (ops->encode && ops->codes & m->use && (ops->capability & c->capabilities) == ops->capability)
            used += encode_one(c, &chain->at[i], &run->pace[i], m, &w);
    }
    bytes[at] = (uint8_t)used;
    *body = (struct van_seg){.data = bytes, .len = w.len};
    return wants || used;
}

paramo_err filter_decode(const struct filter_coder *c, const struct van_seg *body, struct filter_message *m,
                         struct filter_chain *wants)
{
    struct filter_envelope e;
    paramo_err err = filter_envelope_decode(body->data, body->len, c->capabilities, m->use, &e);
    if (!err && filter_message_bytes(m) > FILTER_MESSAGE_MAX && e.count)
        err = err_set(PARAMO_E_PROTOCOL, "a filtered message has %llu bytes, at most %d are possible",
                      (unsigned long long)filter_message_bytes(m), FILTER_MESSAGE_MAX);
    for (unsigned i = e.count; i-- > 0 && !err;) {
        const struct filter_ops *ops = e.used[i].ops;
        struct filter_count *count = &c->counts->of[registry_index(ops)][direction_of(m->use)];
        uint64_t from = env_now(c->env), arrived = filter_message_bytes(m) + 2 + e.used[i].params.left;
        m->by = ops;
        err = ops->decode(&e.used[i].params, m);
        count->time_ns += env_now(c->env) - from;
        if (err)
            break;
        count->received++;
        count->after += arrived;
        count->before += filter_message_bytes(m);
        if (filter_message_bytes(m) > FILTER_MESSAGE_MAX)
            err = err_set(PARAMO_E_PROTOCOL, "filter %s makes more than %d bytes", ops->name,
                          FILTER_MESSAGE_MAX);
    }
    if (!err && wants)
        *wants = e.wants;
    return err;
}

void filter_counts_add(struct filter_counts *sum, const struct filter_counts *counts)
{
    for (unsigned i = 0; i < FILTER_SLOTS; i++)
        for (unsigned d = 0; d < FILTER_DIRECTIONS; d++) {
            const struct filter_count *from = &counts->of[i][d];
            struct filter_count *to = &sum->of[i][d];
            to->messages += from->messages;
            to->skipped += from->skipped;
            to->before += from->before;
            to->after += from->after;
            to->received += from->received;
            to->time_ns += from->time_ns;
        }
}
