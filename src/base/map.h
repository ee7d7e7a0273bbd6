/*
 * A map from 64-bit keys to pointers: open addressing, linear probing, backward-shift deletion. One owner. Iteration
 * order depends on the keys and the history of changes only, never on addresses. A large map grows in steps: each put
 * of a new key moves a few entries to slots that are twice as many, and until all have moved a look-up may look at
 * both. Tests: test/base/test_base.c.
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
    /* A map that grows: the slots before, whose entries move from the last one on; else NULL. */
    struct map_slot *old;
    size_t old_capacity, old_count, old_room; /* all; those that are left; those that memory is held for */
};

void map_init(struct map *m);
void map_fini(struct map *m);
void *map_get(const struct map *m, uint64_t key);
/* value is not NULL; it replaces the old value, which needs no memory. After MEMORY the map is unchanged. */
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
/* Calls `each` for the entries of about `slots` slots more, and stops at an empty slot. An entry that is there from the
 * first turn to the last is visited at least once. False: that was the last turn. */
bool map_scan(const struct map *m, struct map_scan *scan, size_t slots,
              void (*each)(void *arg, uint64_t key, void *value), void *arg);

#endif
