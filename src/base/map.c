#include "base/map.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"

enum {
    GROWS_AT_ONCE = 1 << 14, /* slots: a step of 0.3 ms */
    GROWS_BY = 32,       /* slots that a put empties; with 2 all would be empty before the map grows again */
    GIVEN_BACK = 1 << 18 /* slots whose memory is returned at a time: 4 MiB */
};

void map_init(struct map *m)
{
    *m = (struct map){0};
}

void map_fini(struct map *m)
{
    free(m->old);
    free(m->slots);
    *m = (struct map){0};
}

static struct map_slot *slot_of(struct map_slot *slots, size_t capacity, uint64_t key)
{
    size_t mask = capacity - 1;
    size_t i = mix64(key) & mask;
    while (slots[i].value && slots[i].key != key)
        i = (i + 1) & mask;
    return &slots[i];
}

/* The key's entry among those that have not moved yet; NULL: there is none. */
static struct map_slot *old_slot_of(const struct map *m, uint64_t key)
{
    if (!m->old || (mix64(key) & (m->old_capacity - 1)) >= m->old_count)
        return NULL;
    struct map_slot *slot = slot_of(m->old, m->old_capacity, key);
    return slot->value ? slot : NULL;
}

/* NULL: it is not there. */
static struct map_slot *entry_of(const struct map *m, uint64_t key)
{
    if (!m->count)
        return NULL;
    struct map_slot *slot = slot_of(m->slots, m->capacity, key);
    return slot->value ? slot : old_slot_of(m, key);
}

void *map_get(const struct map *m, uint64_t key)
{
    const struct map_slot *slot = entry_of(m, key);
    return slot ? slot->value : NULL;
}

static void slot_move(struct map *m, struct map_slot *from)
{
    *slot_of(m->slots, m->capacity, from->key) = *from;
    *from = (struct map_slot){0};
}

/* Frees memory of old slots. Those after the first old_count are empty. */
static void old_give_back(struct map *m)
{
    if (!m->old_count) {
        free(m->old);
        m->old = NULL;
        m->old_capacity = m->old_room = 0;
    } else if (m->old_room - m->old_count >= GIVEN_BACK) {
        struct map_slot *less = realloc(m->old, m->old_count * sizeof *less);
        m->old = less ? less : m->old;
        m->old_room = less ? m->old_count : m->old_room;
    }
}

/* Moves the entries of a few old slots, the last first. The last slot that is left is then empty, so each entry before
 * it is found without the slots after it. */
static void old_move(struct map *m)
{
    for (size_t n = 0; m->old_count; n++, m->old_count--) {
        struct map_slot *last = &m->old[m->old_count - 1];
        if (last->value)
            slot_move(m, last);
        if (n == GROWS_BY)
            break;
    }
    old_give_back(m);
}

static paramo_err map_grow(struct map *m)
{
    size_t capacity = m->capacity ? m->capacity * 2 : 16;
    assert(!m->old);
    struct map_slot *slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return err_memory(capacity * sizeof *slots);
    m->old = m->slots;
    m->old_capacity = m->old_room = m->old_count = m->capacity;
    m->slots = slots;
    m->capacity = capacity;
    bool at_once = m->old_capacity <= GROWS_AT_ONCE;
    /* If it grows in steps, only the run at the beginning moves now: its entries may belong to slots at the end. */
    for (size_t i = 0; i < m->old_count && (at_once || m->old[i].value); i++)
        if (m->old[i].value)
            slot_move(m, &m->old[i]);
    m->old_count = at_once ? 0 : m->old_count;
    old_give_back(m);
    return PARAMO_OK;
}

paramo_err map_put(struct map *m, uint64_t key, void *value)
{
    struct map_slot *slot = entry_of(m, key);
    if (slot) {
        slot->value = value;
        return PARAMO_OK;
    }
    if (m->old)
        old_move(m);
    if (m->count * 2 >= m->capacity) {
        paramo_err err = map_grow(m);
        if (err)
            return err;
    }
    *slot_of(m->slots, m->capacity, key) = (struct map_slot){.key = key, .value = value};
    m->count++;
    return PARAMO_OK;
}

/* Empties the slot. Entries after it that belong at or before it move back. */
static void slot_empty(struct map_slot *slots, size_t capacity, struct map_slot *slot)
{
    size_t mask = capacity - 1, hole = (size_t)(slot - slots);
    for (size_t i = (hole + 1) & mask; slots[i].value; i = (i + 1) & mask) {
        size_t home = mix64(slots[i].key) & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            slots[hole] = slots[i];
            hole = i;
        }
    }
    slots[hole] = (struct map_slot){0};
}

void *map_remove(struct map *m, uint64_t key)
{
    struct map_slot *slot = entry_of(m, key);
    if (!slot)
        return NULL;
    void *value = slot->value;
    bool old = m->old && slot >= m->old && slot < m->old + m->old_count;
    slot_empty(old ? m->old : m->slots, old ? m->old_capacity : m->capacity, slot);
    m->count--;
    return value;
}

int map_next(const struct map *m, size_t *cursor, uint64_t *key, void **value)
{
    for (; *cursor < m->capacity + m->old_count; ++*cursor) {
        const struct map_slot *slot =
            *cursor < m->capacity ? &m->slots[*cursor] : &m->old[*cursor - m->capacity];
        if (slot->value) {
            *key = slot->key;
            *value = slot->value;
            ++*cursor;
            return 1;
        }
    }
    return 0;
}

/* False: no slots are left. */
static bool scan_slots(const struct map_slot *all, size_t count, size_t *at, size_t *left,
                       void (*each)(void *arg, uint64_t key, void *value), void *arg)
{
    for (bool first = true; *at < count; ++*at, first = false) {
        const struct map_slot *slot = &all[*at];
        if (slot->value)
            each(arg, slot->key, slot->value);
        else if (!first && !*left)
            return true;
        *left -= *left > 0;
    }
    return false;
}

/* Between two turns the slot at scan->at is empty, so no entry after it belongs before it: a removal moves entries
 * back, but never beyond the slot where they belong. In a map that has grown all entries are in other places. While
 * they move, the old slots come first: an entry that leaves them before the scan reaches it is found in the new
 * slots. */
bool map_scan(const struct map *m, struct map_scan *scan, size_t slots,
              void (*each)(void *arg, uint64_t key, void *value), void *arg)
{
    if (scan->capacity != m->capacity)
        *scan = (struct map_scan){.capacity = m->capacity};
    if (!scan->moved) {
        if (scan_slots(m->old, m->old_count, &scan->at, &slots, each, arg))
            return true;
        scan->at = 0;
        scan->moved = true;
    }
    return scan_slots(m->slots, m->capacity, &scan->at, &slots, each, arg);
}
