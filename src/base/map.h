/*
 * A map from 64-bit keys to pointers: open addressing, linear probing, backward-shift deletion. One owner. Iteration
 * order depends on the keys and the history of changes only, never on addresses. A large map grows in steps: each put
 * of a new key moves a few entries to slots that are twice as many, and until all have moved a look-up may look at
 * both. It never knows what a value points to. Tests: test/base/test_base.c.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct map_slot {
    uint64_t key;
    void *value; /* NULL: empty */
};

struct map {
    struct map_slot *slots;
    size_t capacity; /* 0 or a power of two */
    size_t count;
    /* While the map grows: the slots before, whose entries move to the new ones, the last first. Otherwise NULL. */
    struct map_slot *old;
    size_t old_capacity, old_count, old_room; /* slots in all; not emptied yet; with memory */
};

void map_init(struct map *m);
void map_fini(struct map *m);
void *map_get(const struct map *m, uint64_t key);
/* value must not be NULL. To replace the value of a key takes no memory. After MEMORY the map is unchanged. */
MUST_USE paramo_err map_put(struct map *m, uint64_t key, void *value);
/* The removed value, or NULL. */
void *map_remove(struct map *m, uint64_t key);
/* for (size_t i = 0; map_next(m, &i, &key, &value);) ... ; the map must not change in the loop. */
int map_next(const struct map *m, size_t *cursor, uint64_t *key, void **value);

/* A loop in turns, between which the map may change. Zeroed at first. */
struct map_scan {
    size_t at, capacity;
    bool moved; /* it has been through the slots before the map grew */
};
/* Calls `each` for the entries of about `slots` more slots, and stops at an empty slot. An entry that is in the map
 * from the first turn to the last is visited at least once. False: that was the last turn. */
bool map_scan(const struct map *m, struct map_scan *scan, size_t slots,
              void (*each)(void *arg, uint64_t key, void *value), void *arg);

#endif
