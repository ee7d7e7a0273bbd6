#include "base/map.h"

#include <stdlib.h>

#include "base/hash.h"

void map_init(struct map *m)
{
    *m = (struct map){0};
}

void map_fini(struct map *m)
{
    free(m->slots);
    *m = (struct map){0};
}

static size_t map_find(const struct map *m, uint64_t key)
{
    size_t mask = m->capacity - 1;
    size_t i = mix64(key) & mask;
    while (m->slots[i].value && m->slots[i].key != key)
        i = (i + 1) & mask;
    return i;
}

void *map_get(const struct map *m, uint64_t key)
{
    return m->count ? m->slots[map_find(m, key)].value : NULL;
}

static paramo_err map_grow(struct map *m)
{
    size_t capacity = m->capacity ? m->capacity * 2 : 16;
    struct map_slot *slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return err_memory(capacity * sizeof *slots);
    struct map grown = {.slots = slots, .capacity = capacity, .count = m->count};
    for (size_t i = 0; i < m->capacity; i++)
        if (m->slots[i].value)
            slots[map_find(&grown, m->slots[i].key)] = m->slots[i];
    free(m->slots);
    *m = grown;
    return PARAMO_OK;
}

paramo_err map_put(struct map *m, uint64_t key, void *value)
{
    size_t i = m->capacity ? map_find(m, key) : 0;
    bool there = m->capacity && m->slots[i].value;
    if (!there && m->count * 2 >= m->capacity) {
        paramo_err err = map_grow(m);
        if (err)
            return err;
        i = map_find(m, key);
    }
    m->count += !there;
    m->slots[i] = (struct map_slot){.key = key, .value = value};
    return PARAMO_OK;
}

void *map_remove(struct map *m, uint64_t key)
{
    if (!m->count)
        return NULL;
    size_t mask = m->capacity - 1;
    size_t hole = map_find(m, key);
    void *value = m->slots[hole].value;
    if (!value)
        return NULL;
    for (size_t i = (hole + 1) & mask; m->slots[i].value; i = (i + 1) & mask) {
        size_t home = mix64(m->slots[i].key) & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole] = (struct map_slot){0};
    m->count--;
    return value;
}

int map_next(const struct map *m, size_t *cursor, uint64_t *key, void **value)
{
    for (; *cursor < m->capacity; ++*cursor) {
        const struct map_slot *slot = &m->slots[*cursor];
        if (slot->value) {
            *key = slot->key;
            *value = slot->value;
            ++*cursor;
            return 1;
        }
    }
    return 0;
}

/* Between two turns the slot at scan->at is empty, so no entry behind it belongs before it: a removal moves entries back,
 * but never beyond the slot where they belong. A map that has grown has all of its entries in other places. */
bool map_scan(const struct map *m, struct map_scan *scan, size_t slots,
              void (*each)(void *arg, uint64_t key, void *value), void *arg)
{
    if (scan->capacity != m->capacity)
        *scan = (struct map_scan){.capacity = m->capacity};
    for (size_t n = 0; scan->at < m->capacity; scan->at++, n++) {
        const struct map_slot *slot = &m->slots[scan->at];
        if (slot->value)
            each(arg, slot->key, slot->value);
        else if (n && n >= slots)
            return true;
    }
    return false;
}
