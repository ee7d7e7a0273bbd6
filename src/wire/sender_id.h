/*
 * The name of a sender: one customer of one app in one process. Servers keep the applied window of each
 * sender under it, and chains, migrations and checkpoints carry it. A restarted process has another
 * incarnation, so it is another sender. It never knows what a sender sends. Tests: test/wire/test_sender_id.c.
 */
#ifndef WIRE_SENDER_ID_H
#define WIRE_SENDER_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/hash.h"

struct sender_id {
    uint32_t node, app, customer;
    uint64_t incarnation;
};

static inline bool sender_id_equal(const struct sender_id *a, const struct sender_id *b)
{
    return a->incarnation == b->incarnation && a->node == b->node && a->app == b->app &&
           a->customer == b->customer;
}

static inline uint64_t sender_id_hash(const struct sender_id *id)
{
    return mix64(id->incarnation ^ (uint64_t)id->node << 32 ^ (uint64_t)id->app << 16 ^ id->customer);
}

/* u32 node, u32 app, u32 customer, u64 incarnation. */
void sender_id_encode(const struct sender_id *id, struct writer *w);
struct sender_id sender_id_decode(struct reader *r);
/* The form that records of checkpoints have: a zero u32 precedes the incarnation. Decoding another value sets
 * r->failed. */
void sender_id_encode_aligned(const struct sender_id *id, struct writer *w);
struct sender_id sender_id_decode_aligned(struct reader *r);

#endif
