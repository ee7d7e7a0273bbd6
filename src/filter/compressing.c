#include "filter/compressing.h"

/* Arbitrary: a shorter segment saves less than its place in the envelope, and what saves less than a sixteenth
 * is not worth its time. */
enum { LEAST = 64, PAYS = 16 };

static bool pack_segment(const struct compressor *c, int level, struct filter_message *m, unsigned i)
{
    struct van_seg *seg = &m->seg[i];
    if (seg->len < LEAST || seg->len > FILTER_MESSAGE_MAX)
        return false;
    size_t bytes = (size_t)seg->len, room = c->bound(bytes);
    void *to = filter_memory_take(&m->memory, room);
    size_t packed = to ? c->pack(m->tools, level, seg->data, bytes, to, room) : 0;
    if (!packed || packed > bytes - bytes / PAYS)
        return false;
    *seg = (struct van_seg){.data = to, .len = packed};
    return true;
}

bool compressing_encode(const struct compressor *c, int level, struct filter_message *m,
                        struct writer *params)
{
    unsigned mask = 0;
    uint32_t before[FILTER_SEGS];
    for (unsigned i = 0; i < FILTER_SEGS; i++) {
        before[i] = (uint32_t)m->seg[i].len;
        mask |= (unsigned)pack_segment(c, level, m, i) << i;
    }
    if (!mask)
        return false;
    write_u8(params, (uint8_t)mask);
    for (unsigned i = 0; i < FILTER_SEGS; i++)
        if (mask >> i & 1)
            write_u32(params, before[i]);
    return true;
}

paramo_err compressing_decode(const struct compressor *c, const char *name, struct reader *params,
                              struct filter_message *m)
{
    unsigned mask = read_u8(params);
    uint64_t before[FILTER_SEGS], sum = 0;
    for (unsigned i = 0; i < FILTER_SEGS; i++) {
        before[i] = mask >> i & 1 ? read_u32(params) : m->seg[i].len;
        sum += before[i];
    }
    if (!reader_done(params) || !mask || mask >= 1u << FILTER_SEGS || sum > FILTER_MESSAGE_MAX)
        return err_set(PARAMO_E_PROTOCOL, "%s: segments of %llu bytes are not valid", name,
                       (unsigned long long)sum);
    for (unsigned i = 0; i < FILTER_SEGS; i++) {
        if (!(mask >> i & 1))
            continue;
        void *to = filter_memory_take(&m->memory, (size_t)before[i]);
        if (!to)
            return err_memory((size_t)before[i]);
        if (!m->seg[i].len ||
            !c->unpack(m->tools, m->seg[i].data, (size_t)m->seg[i].len, to, (size_t)before[i]))
            return err_set(PARAMO_E_PROTOCOL, "%s: segment %u cannot be decompressed to %llu bytes", name, i,
                           (unsigned long long)before[i]);
        m->seg[i] = (struct van_seg){.data = before[i] ? to : NULL, .len = before[i]};
    }
    return PARAMO_OK;
}
