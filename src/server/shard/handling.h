/*
 * Requests to USER tables and apps: handed to a handler once, answered by it later, the answer kept until the
 * sender's floor passes. It must never know what a request means. Tests: test/server/test_shard.c,
 * test/worker/test_app_request_sim.c.
 */
#ifndef SERVER_SHARD_HANDLING_H
#define SERVER_SHARD_HANDLING_H

#include "server/shard/examining.h"
#include "server/shard/shard_impl.h"

#define GATE_REF     UINT64_C(1)         /* a reference */
#define GATE_POSTING (UINT64_C(1) << 32) /* a thread that posts an answer, beside its reference */

/* The part of a shard that outlives it while handlers hold requests. */
struct gate {
    _Atomic uint64_t uses; /* the sum */
    atomic_bool closed;
    struct lane *lane;
};

struct shard_request {
    struct lane_task task;
    struct gate *gate;
    struct shard *shard;
    struct sender *sender; /* NULL: no sender waits for it any more */
    struct wire_head head; /* of the latest attempt */
    uint64_t keys_hash;
    struct shard_request_info info;
    char table[VIEW_NAME_MAX];
    struct van_hold *hold;
    size_t bytes;                      /* held */
    struct shard_request *prev, *next; /* shard->handling->first */
    bool answered;
    paramo_err status;
    struct kept_answer *answer;           /* the body is a text when status is an error */
    _Alignas(max_align_t) uint8_t room[]; /* the handler's */
};

struct shard_handling {
    struct shard *shard;
    struct shard_request *first;
    struct shard_request *free; /* by next */
    size_t free_count;
    struct gate *gate;
    size_t kept_bytes;                  /* of answers that are kept */
    size_t bytes;                       /* of requests that handlers have */
    const struct examination *examined; /* of the request that is being handled; NULL: not yet */
    struct lane_timer examining;        /* the next turn of a long request */
};

/* Memory: nothing is made. examine: the function of the timer. */
MUST_USE paramo_err handling_init(struct shard *s, void (*examine)(struct lane_timer *timer));
static inline size_t handling_kept_bytes(const struct shard *s)
{
    return s->handling->kept_bytes;
}

/* t NULL: a message. */
MUST_USE paramo_err handling_slice(struct peer *peer, struct shard_table *t, const struct wire_head *head,
                                   const struct van_seg *seg, unsigned nseg, struct van_hold **hold);
/* True: the number is a handler's, and the probe has been answered. */
bool handling_probe(struct peer *peer, const struct wire_head *head);
/* The sender's floor rose from `from` to its present value: frees kept answers below it. */
void handling_floor(struct shard *s, struct sender *sender, uint64_t from);
void handling_forget(struct shard *s, struct sender *sender);
/* Does a handler or a kept answer still refer to the sender? */
bool handling_any(const struct sender *sender);
void handling_close(struct shard *s);
/* After handling_close and handling_forget of all senders. */
void handling_fini(struct shard *s);

#endif
