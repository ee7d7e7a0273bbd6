/*
 * Memory that one process writes and another of the same host and user reads: a sealed memory file without a
 * name, found through /proc/PID/fd. Nothing is left behind, however either side ends.
 *
 * Opening it is also a proof. The area begins with random bytes that only a process with the right to
 * inspect this one can read. A peer that knows them could read and change this process in any case. The
 * description of a peer's area is checked (owner, kind, seals, size) before it is mapped. The peer may write
 * to it at any time, so its contents are never trusted. This module never knows transports. Tests:
 * test/van/test_area.c.
 */
#ifndef VAN_AREA_H
#define VAN_AREA_H

#include <stdint.h>

#include "base/err.h"

enum {
    AREA_BYTES = 4 << 20,  /* of data, after the first page; a power of two */
    AREA_HEAD_BYTES = 4096 /* the first page, which begins with the proof */
};

struct env;

struct area_place { /* where the peer finds an area */
    uint32_t pid, fd;
};

/* Zero-initialised: no area. */
struct area {
    uint8_t *head; /* mapped: AREA_HEAD_BYTES, then the data */
    uint8_t *data;
    int fd; /* in the owner's process */
    struct area_place place;
};

MUST_USE paramo_err area_create(struct env *env, struct area *area);
/* Maps a peer's area for reading. */
MUST_USE paramo_err area_open(const struct area_place *place, struct area *area);
/* The peer has opened it: no other process can find it from now on. */
void area_hide(struct area *area);
void area_close(struct area *area);

static inline uint64_t area_proof(const struct area *area)
{
    uint64_t proof;
    __builtin_memcpy(&proof, area->head, sizeof proof);
    return proof;
}

#endif
