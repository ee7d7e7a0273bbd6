#include "filter/keylists.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static size_t keys_bytes(const struct keylist *list)
{
    return sizeof *list + 8 * (size_t)list->n;
}

static uint64_t name_of(uint32_t table, const uint64_t signature[2])
{
    return signature[0] ^ mix64(table);
}

void keylists_sign(const uint64_t *keys, size_t n, uint64_t signature[2])
{
    XXH128_hash_t h = XXH3_128bits(keys, 8 * n);
    signature[0] = h.low64;
    signature[1] = h.high64;
}

void keylists_init(struct keylists *l, uint32_t least, size_t most, size_t *total, size_t total_most)
{
    *l = (struct keylists){
        .least = least ? least : KEYLISTS_KEYS_MIN, .most = most, .total = total, .total_most = total_most};
}

static void count_bytes(struct keylists *l, size_t more, size_t less)
{
    assert(l->bytes + more >= less && (!l->total || *l->total + more >= less));
    l->bytes = l->bytes + more - less;
    if (l->total)
        *l->total = *l->total + more - less;
}

static void drop(struct keylists *l, struct keylist *list)
{
    if (!list->keys)
        return;
    uint64_t name = name_of(list->table, list->signature);
    if (map_get(&l->by_name, name) == list)
        (void)map_remove(&l->by_name, name);
    count_bytes(l, 0, keys_bytes(list));
    free(list->keys);
    *list = (struct keylist){0};
    l->held--;
}

void keylists_clear(struct keylists *l)
{
    for (unsigned i = 0; i < l->count; i++)
        drop(l, &l->slots[i]);
    assert(!l->bytes && !l->held);
    map_fini(&l->by_name);
    free(l->slots);
    l->slots = NULL;
    l->count = 0;
    l->refused = false;
    l->generation++;
}

unsigned keylists_slot(const struct keylists *l, const struct keylist *list)
{
    return (unsigned)(list - l->slots);
}

static void use(struct keylists *l, struct keylist *list)
{
    unsigned slot = keylists_slot(l, list);
    list->used = ++l->uses;
    for (unsigned i = 0; i < KEYLISTS_RECENT; i++)
        if (l->recent[i] == slot)
            return;
    l->recent[l->recent_at++ % KEYLISTS_RECENT] = (uint16_t)slot;
}

struct keylist *keylists_find(struct keylists *l, uint32_t table, const uint64_t *keys, uint32_t n)
{
    if (!l->held || n < l->least)
        return NULL;
    uint64_t signature[2];
    keylists_sign(keys, n, signature);
    struct keylist *list = map_get(&l->by_name, name_of(table, signature));
    if (!list || list->table != table || list->n != n || list->signature[1] != signature[1] ||
        memcmp(list->keys, keys, 8 * (size_t)n) != 0)
        return NULL;
    use(l, list);
    return list;
}

/* All slots at once: pointers to lists stay valid. They have no value before slots_use: most connections use few. */
static bool slots_make(struct keylists *l)
{
    if (!l->slots)
        l->slots = malloc(KEYLISTS_SLOTS * sizeof *l->slots);
    return l->slots;
}

/* The first `count` slots are in use from now on, or are free. */
static void slots_use(struct keylists *l, unsigned count)
{
    while (l->count < count)
        l->slots[l->count++] = (struct keylist){0};
}

/* Puts a copy of the list into a free slot. */
static struct keylist *fill(struct keylists *l, struct keylist *list, uint32_t table, const uint64_t *keys,
                            uint32_t n, const uint64_t signature[2])
{
    uint64_t *copy = malloc(8 * (size_t)n);
    if (!copy)
        return NULL;
    if (map_put(&l->by_name, name_of(table, signature), list)) {
        free(copy);
        return NULL;
    }
    memcpy(copy, keys, 8 * (size_t)n);
    *list = (struct keylist){.keys = copy,
                             .table = table,
                             .n = n,
                             .signature = {signature[0], signature[1]},
                             .arrived = ++l->arrivals};
    count_bytes(l, keys_bytes(list), 0);
    l->held++;
    use(l, list);
    return list;
}

/* The list that makes room; NULL: none may. */
static struct keylist *victim(struct keylists *l)
{
    struct keylist *stale = NULL, *young = NULL;
    for (unsigned i = 0; i < l->count; i++) {
        struct keylist *list = &l->slots[i];
        if (!list->keys || list->refs)
            continue;
        if (!stale || list->used < stale->used)
            stale = list;
        if (list->arrived + KEYLISTS_YOUNG > l->arrivals && (!young || list->arrived < young->arrived))
            young = list;
    }
    bool unused = stale && l->uses - stale->used > (uint64_t)KEYLISTS_STALE * l->held;
    return unused ? stale : young;
}

static struct keylist *free_slot(struct keylists *l)
{
    if (l->count < KEYLISTS_SLOTS) {
        slots_use(l, l->count + 1);
        return &l->slots[l->count - 1];
    }
    for (unsigned i = 0; i < l->count; i++)
        if (!l->slots[i].keys)
            return &l->slots[i];
    return NULL;
}

struct keylist *keylists_admit(struct keylists *l, uint32_t table, const uint64_t *keys, uint32_t n)
{
    size_t bytes = sizeof(struct keylist) + 8 * (size_t)n;
    if (n < l->least || bytes > l->most / 4 || !slots_make(l))
        return NULL;
    while (l->bytes + bytes > l->most || l->held == KEYLISTS_SLOTS) {
        struct keylist *gone = victim(l);
        if (!gone)
            return NULL;
        drop(l, gone);
    }
    uint64_t signature[2];
    keylists_sign(keys, n, signature);
    struct keylist *list = free_slot(l);
    return list ? fill(l, list, table, keys, n, signature) : NULL;
}

static bool has(const struct keylist *list, uint64_t key)
{
    uint32_t low = 0, high = list->n;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        *(list->keys[middle] <= key ? &low : &high) = middle;
    }
    return list->keys[low] == key;
}

/* Both ascend. */
static bool has_all(const struct keylist *list, const uint64_t *keys, uint32_t n)
{
    uint32_t at = 0, found = 0;
    while (at < list->n && found < n)
        found += list->keys[at++] == keys[found];
    return found == n;
}

struct keylist *keylists_around(struct keylists *l, uint32_t table, const uint64_t *keys, uint32_t n)
{
    for (unsigned i = 0; l->held && i < KEYLISTS_RECENT; i++) {
        unsigned slot = l->recent[(l->recent_at + KEYLISTS_RECENT - 1 - i) % KEYLISTS_RECENT];
        struct keylist *list = &l->slots[slot];
        if (slot < l->count && list->keys && list->known && list->table == table && list->n > n &&
            has(list, keys[0]) && has(list, keys[n - 1]) && has(list, keys[n / 2]) &&
            has_all(list, keys, n)) {
            list->used = ++l->uses;
            return list;
        }
    }
    return NULL;
}

bool keylists_put(struct keylists *l, unsigned slot, uint32_t table, const uint64_t *keys, uint32_t n)
{
    size_t bytes = sizeof(struct keylist) + 8 * (size_t)n;
    if (slot >= KEYLISTS_SLOTS)
        return false;
    if (!slots_make(l)) {
        l->refused = true;
        return true;
    }
    slots_use(l, slot + 1);
    struct keylist *list = &l->slots[slot];
    drop(l, list);
    uint64_t signature[2];
    keylists_sign(keys, n, signature);
    bool room = l->bytes + bytes <= l->most && (!l->total || *l->total + bytes <= l->total_most);
    if (!room || !fill(l, list, table, keys, n, signature))
        l->refused = true;
    return true;
}

struct keylist *keylists_get(struct keylists *l, unsigned slot, uint32_t table, uint32_t n,
                             const uint64_t signature[2])
{
    struct keylist *list = slot < l->count ? &l->slots[slot] : NULL;
    if (!list || !list->keys || list->table != table || list->n != n || list->signature[0] != signature[0] ||
        list->signature[1] != signature[1])
        return NULL;
    use(l, list);
    return list;
}
