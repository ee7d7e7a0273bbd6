/*
 * Calls of members: each is done once, however often it arrives. Keeps answers until the caller has them, and
 * holds an answer back until what it rests on is durable. A call that must wait lies in one queue of the part
 * that will answer it.
 * Must never know: what a call means; the part that handles it decodes and answers it.
 * Tests: test/cluster/test_sched_calls.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_CALLS_H
#define CLUSTER_SCHEDULER_SCHED_CALLS_H

#include "base/cursor.h"
#include "base/err.h"
#include "env/lane.h"
#include "wire/calls.h"
#include "wire/head.h"

struct scheduler;
struct sched_node;
struct table_open;

/* Bytes of an answer that needs no memory: the longest are of POOL_NEXT and the text below. */
enum { SCHED_CALL_ROOM = 64 };

/* Lives from its first arrival until the caller's floor has passed it, or a later call has its place. */
struct sched_call {
    struct sched_node *node;
    uint64_t number;
    uint32_t kind;
    bool answered;
    paramo_err status;
    struct writer answer;
    uint8_t room[SCHED_CALL_ROOM]; /* for a short answer */
    uint64_t save;                 /* answered and held back: the save that it waits for */
    /* deferred, or held back */
    struct sched_call_queue *queue;
    struct sched_call *next, *prev;
    struct lane_timer timer;
    void (*timed_out)(struct sched_call *call); /* answers it */
    void (*withdrawn)(struct sched_call *call); /* it leaves the queue unanswered; NULL: nothing to do */
    void *object;                               /* the barrier, pool or value it waits for */
    union {
        struct {
            uint32_t who, round;
        } pool;
        char *kv_key;
        struct {
            uint64_t clock, since;
            bool workers; /* the caller knows that field of the answer */
        } clock;
        struct table_open *table;
    } u;
};

struct sched_call_queue {
    struct sched_call *first, *last;
};

struct sched_calls {
    struct sched_call_queue held; /* answers that wait for a save, by its number */
};

/* For a result of up to SCHED_CALL_ROOM bytes. It needs no memory: what the call has changed cannot be undone if
 * there is none for its answer. */
struct writer sched_call_result(struct sched_call *call);
/* Each answers the call (once) and takes it from its queue. */
void sched_call_answer(struct sched_call *call, struct writer *result); /* takes what result owns; or NULL */
void sched_call_fail(struct sched_call *call, paramo_err status);       /* with this thread's message */
/* Puts it last in the queue until it is answered, or timed_out at the end of timeout_ms. `withdrawn` is set
 * before. False: there is no memory; it has been withdrawn and answered. */
bool sched_call_defer(struct sched_call *call, struct sched_call_queue *queue, uint32_t timeout_ms,
                      void (*timed_out)(struct sched_call *call));

/* handle: for a call that is new. It answers or defers it. */
MUST_USE paramo_err sched_calls_received(struct sched_node *node, const struct wire_call *call,
                                         struct reader *body,
                                         void (*handle)(struct sched_call *call, struct reader *body));
MUST_USE paramo_err sched_calls_floor(struct sched_node *node, uint64_t floor);
/* The node is gone: its deferred calls are withdrawn. */
void sched_calls_drop(struct sched_node *node, bool keep_answered);

/* Durable records: one (empty: it is gone), all, and back. */
void sched_calls_record(const struct scheduler *s, uint64_t key, struct writer *w);
void sched_calls_records(const struct scheduler *s, struct writer *w);
MUST_USE paramo_err sched_calls_restore(struct scheduler *s, uint64_t key, struct reader *record);
/* Sends the answers that waited for saves up to this one. */
void sched_calls_saved(struct scheduler *s, uint64_t save);

#endif
