/*
 * keycache: of a list of keys that both ends remember only the name travels. Of a list whose keys are all in a
 * remembered list, that name and one bit for each of its keys travel (Li et al., OSDI'14, section 5.1, "key
 * caching"; NIPS'14, section 3.3). keylists.h has the memory of both ends.
 *
 *     params    u8 what, u16 slot; NAMED, PART: two u64 of the signature; PART: u32 keys of the whole list
 *     keys      BROUGHT: the keys, which go into that slot; NAMED: none; PART: bits, lowest first
 */
#include "filter/message.h"
#include "wire/capability.h"

enum { BROUGHT, NAMED, PART };

static void write_name(struct writer *w, unsigned what, unsigned slot, const struct keylist *list)
{
    write_u8(w, (uint8_t)what);
    write_u16(w, (uint16_t)slot);
    for (unsigned i = 0; i < 2 && what != BROUGHT; i++)
        write_u64(w, list->signature[i]);
}

static void set_keys(struct filter_message *m, void *data, uint64_t len)
{
    m->seg[WIRE_SEG_KEYS] = (struct van_seg){.data = len ? data : NULL, .len = len};
}

/* Encodes the keys as bits of a list that contains them. */
static bool part_encode(struct filter_message *m, struct keylist *list, struct writer *params)
{
    size_t bytes = (list->n + 7) / 8;
    uint8_t *bits = bytes < 8 * (size_t)m->count ? filter_memory_take(&m->memory, bytes) : NULL;
    if (!bits)
        return false;
    memset(bits, 0, bytes);
    uint32_t found = 0;
    for (uint32_t i = 0; i < list->n && found < m->count; i++) {
        bool there = list->keys[i] == m->keys[found];
        bits[i / 8] |= (uint8_t)(there << i % 8);
        found += there;
    }
    write_name(params, PART, keylists_slot(m->lists, list), list);
    write_u32(params, list->n);
    set_keys(m, bits, bytes);
    return true;
}

static bool keycache_encode(const struct filter_setting *setting, struct filter_message *m,
                            struct writer *params)
{
    (void)setting;
    if (!m->lists || m->lists->off || !m->keys || m->count < m->lists->least)
        return false;
    struct keylist *list = filter_message_list(m);
    if (!list && m->use == FILTER_OF_PUSH) {
        list = keylists_around(m->lists, m->table, m->keys, m->count);
        m->refers = list && part_encode(m, list, params);
        m->list = m->refers ? list : NULL;
        if (m->refers)
            return true;
    }
    m->list = m->list ? m->list : keylists_admit(m->lists, m->table, m->keys, m->count);
    if (!m->list || (!m->list->known && m->list->refs))
        return false; /* another message brings it */
    m->refers = true;
    m->brings = !m->list->known;
    write_name(params, m->brings ? BROUGHT : NAMED, keylists_slot(m->lists, m->list), m->list);
    if (!m->brings)
        set_keys(m, NULL, 0);
    return true;
}

/* Turns the message's bits for a whole list back into keys. */
static paramo_err part_decode(struct filter_message *m, const struct keylist *list)
{
    const uint8_t *bits = m->seg[WIRE_SEG_KEYS].data;
    uint32_t count = 0;
    if (m->count > list->n)
        return err_set(PARAMO_E_PROTOCOL, "keycache: %u of %u keys are marked", m->count, list->n);
    uint64_t *keys = filter_memory_take(&m->memory, 8 * (size_t)m->count);
    if (!keys)
        return err_memory(8 * (size_t)m->count);
    for (uint32_t i = 0; i < list->n && count <= m->count; i++)
        if (bits[i / 8] >> i % 8 & 1) {
            if (count < m->count)
                keys[count] = list->keys[i];
            count++;
        }
    if (count != m->count)
        return err_set(PARAMO_E_PROTOCOL, "keycache: %u keys are marked, not %u", count, m->count);
    set_keys(m, keys, 8 * (uint64_t)count);
    return PARAMO_OK;
}

static paramo_err keycache_decode(struct reader *params, struct filter_message *m)
{
    uint64_t signature[2] = {0}, have = m->seg[WIRE_SEG_KEYS].len;
    unsigned what = read_u8(params), slot = read_u16(params);
    for (unsigned i = 0; i < 2 && what != BROUGHT; i++)
        signature[i] = read_u64(params);
    uint32_t n = what == PART ? read_u32(params) : m->count;
    uint64_t want = what == BROUGHT ? 8 * (uint64_t)m->count : what == PART ? ((uint64_t)n + 7) / 8 : 0;
    if (!reader_done(params) || what > PART || have != want || !n || !m->lists)
        return err_set(PARAMO_E_PROTOCOL, "keycache: a list of %u keys is not valid", n);
    if (what == BROUGHT) {
        if (!keylists_put(m->lists, slot, m->table, m->seg[WIRE_SEG_KEYS].data, n))
            return err_set(PARAMO_E_PROTOCOL, "keycache: there is no slot %u", slot);
        m->list = keylists_get(m->lists, slot, m->table, n, signature);
        return PARAMO_OK;
    }
    struct keylist *list = keylists_get(m->lists, slot, m->table, n, signature);
    if (!list)
        return err_set(PARAMO_E_NOT_FOUND, "keycache: a list is not remembered");
    if (what == PART)
        return part_decode(m, list);
    m->list = list;
    set_keys(m, list->keys, 8 * (uint64_t)n);
    return PARAMO_OK;
}

const struct filter_ops filter_keycache = {
    .name = "keycache",
    .id = 1,
    .rank = FILTER_KEYS,
    .directions = 1 << FILTER_PUSH | 1 << FILTER_PULL,
    .codes = FILTER_OF_PUSH | FILTER_OF_ASK,
    .capability = CAPABILITY_KEYCACHE,
    .help = "a list of keys that both ends remember does not travel",
    .encode = keycache_encode,
    .decode = keycache_decode,
};
