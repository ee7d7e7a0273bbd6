/*
 * Key lists that both ends of a connection remember, for the filter keycache. A list is named by its
 * table, its length, and a signature of 128 bits over all its keys. The sending end decides which list is in which
 * slot. The receiving end keeps the lists that it receives, within its bounds. The two ends may have different lists:
 * the receiver compares the whole name, so it may lack a list, but never takes another list for it. All lists end with
 * the connection.
 *
 *     sender    a list comes: keylists_admit finds a slot; its keys travel; once they are answered it is `known`
 *               and may be named instead
 *     receiver  keylists_put, keylists_get
 *
 * When the sender has no room, it drops the list that was unused longest, if that list has been unused for
 * KEYLISTS_STALE uses of each list. Otherwise it drops the oldest of the KEYLISTS_YOUNG newest. Lists that come in a
 * cycle may be more than there is room for: then most of the room still holds lists of the cycle. A list that is used
 * twice in a row (a pull and its push) is there the second time. It must never know messages. One owner, a lane.
 * Tests: test/filter/test_keylists.c.
 */
#ifndef FILTER_KEYLISTS_H
#define FILTER_KEYLISTS_H

#include <stdbool.h>

#include "base/map.h"

enum {
    KEYLISTS_SLOTS = 4096,
    KEYLISTS_BYTES = 32 << 20, /* of one connection, at the sender */
    /* The receiver has more, because a list that a lost message was to replace stays a while. */
    KEYLISTS_KEPT_BYTES = 40 << 20,
    KEYLISTS_KEYS_MIN = 8, /* a shorter list is not worth its name */
    KEYLISTS_STALE = 8,    /* arbitrary */
    KEYLISTS_YOUNG = 16,   /* as many pulls as may be ahead of their pushes; arbitrary */
    KEYLISTS_RECENT = 16   /* lists in which keylists_around looks */
};

struct keylist {
    uint64_t *keys; /* NULL: the slot is free */
    uint32_t table, n;
    uint64_t signature[2];
    uint64_t used, arrived; /* keylists.uses and .arrivals at its last use and at its arrival */
    /* sender */
    uint32_t refs; /* messages in flight that name or bring it */
    bool known;    /* the other end has it */
};

struct keylists {
    struct keylist *slots;
    unsigned count; /* slots in use or used before */
    unsigned held;  /* lists */
    struct map by_name;
    uint32_t least;
    size_t bytes, most;
    size_t *total; /* of all connections of a shard, at most total_most; NULL: no such limit */
    size_t total_most;
    uint64_t uses, arrivals;
    uint16_t recent[KEYLISTS_RECENT]; /* slots used last, in a circle */
    unsigned recent_at;
    uint32_t generation; /* rises when all are forgotten */
    bool off;            /* sender: the other end has no room */
    bool refused;        /* receiver: a list was not remembered for lack of room or memory */
};

/* least: keys of the shortest list; 0: KEYLISTS_KEYS_MIN. most: bytes. */
void keylists_init(struct keylists *l, uint32_t least, size_t most, size_t *total, size_t total_most);
/* Forgets all. */
void keylists_clear(struct keylists *l);
void keylists_sign(const uint64_t *keys, size_t n, uint64_t signature[2]);
/* The list of exactly these keys, which counts as used; NULL: there is none. */
struct keylist *keylists_find(struct keylists *l, uint32_t table, const uint64_t *keys, uint32_t n);
unsigned keylists_slot(const struct keylists *l, const struct keylist *list);

/* Sender. Copies a list that keylists_find does not find into a slot. NULL: it is not remembered. */
struct keylist *keylists_admit(struct keylists *l, uint32_t table, const uint64_t *keys, uint32_t n);
/* Sender. A known list of the table that has all of these keys, and more; NULL: none of the recent ones. */
struct keylist *keylists_around(struct keylists *l, uint32_t table, const uint64_t *keys, uint32_t n);

/* Receiver. Remembers the list in that slot, or does not, if there is no room; the slot's old list is gone in
 * any case. False: the slot does not exist. */
bool keylists_put(struct keylists *l, unsigned slot, uint32_t table, const uint64_t *keys, uint32_t n);
/* Receiver. The list of that name; NULL: it is not in that slot. */
struct keylist *keylists_get(struct keylists *l, unsigned slot, uint32_t table, uint32_t n,
                             const uint64_t signature[2]);

#endif
