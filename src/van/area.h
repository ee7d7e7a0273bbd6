/*
 * Memory that one process writes and another of the same host and user reads: a sealed memory file without a
 * name, found through /proc/PID/fd. Nothing is left behind however either side ends.
 *
 * Opening it is also a proof: it begins with random bytes that only a process which the kernel lets look into
 * this one can read, so whoever can say them may do to us whatever it likes anyway. What a peer says of its
 * area is checked (owner, kind, seals, size) before it is mapped; what is in it is the peer's to write at any
 * time and never trusted. It knows no transport. Tests: test/van/test_area.c.
 */
#ifndef VAN_AREA_H
#define VAN_AREA_H

#include <stdint.h>

#include "base/err.h"

enum {
    AREA_BYTES = 4 << 20,  /* for data, after the first page; a power of two */
    AREA_HEAD_BYTES = 4096 /* begins with the proof */
};

struct env;

struct area_place { /* as it is told to the peer */
    uint32_t pid, fd;
};

/* Zero-initialised: none. */
struct area {
    uint8_t *head; /* mapped: AREA_HEAD_BYTES, then the data */
    uint8_t *data;
    int fd; /* the owner's */
    struct area_place place;
};

MUST_USE paramo_err area_create(struct env *env, struct area *area);
/* Maps a peer's for reading. */
MUST_USE paramo_err area_open(const struct area_place *place, struct area *area);
/* The peer has it: nobody else shall find it. */
void area_hide(struct area *area);
void area_close(struct area *area);

static inline uint64_t area_proof(const struct area *area)
{
    uint64_t proof;
    __builtin_memcpy(&proof, area->head, sizeof proof);
    return proof;
}

#endif
