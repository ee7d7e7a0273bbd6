/*
 * Calls of members: each is done once, however often it arrives. Keeps answers until the caller has them, and holds
 * an answer back until the state that it depends on is durable. A call that must wait is in one queue of the part
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
struct sched_save_cursor;
struct table_open;

enum {
    /* Bytes of an answer that needs no memory: the longest are of POOL_NEXT and the text below. */
    SCHED_CALL_ROOM = 64,
    /* Answers of a turn, and the bytes of a long answer that cost as much as one more. A turn takes about 1 ms. */
    SCHED_CALLS_TURN = 256,
    SCHED_CALLS_ANSWER_BYTES = 4096
};

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
            uint32_t customer, round;
        } pool;
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

/* Calls that wait for one event, such as those of a barrier. Its owner embeds it, and sets the functions. */
struct sched_call_group {
    struct sched_call_queue queue;
    bool released; /* the event has come: each call is answered in its turn, or when it times out */
    bool together; /* ... and one save has all of the answers: no save begins before the last one */
    void (*answer)(struct sched_call *call);
    void (*free)(struct sched_call_group *group); /* released, and no call is left */
    struct sched_call_group *next;
};

struct sched_calls {
    struct scheduler *sched;
    size_t most;                       /* answers of a turn: SCHED_CALLS_TURN, fewer in tests */
    uint64_t pause;                    /* nanoseconds between two turns: 0, more in tests */
    struct sched_call_queue held;      /* answers that wait for a save, by its number */
    uint64_t saved;                    /* the last save that succeeded: these may leave */
    struct sched_call_group *released; /* the oldest first */
    struct sched_call_group **released_end;
    size_t together;         /* of these groups */
    struct lane_timer timer; /* the next turn */
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

/* Durable records: writes one (empty: it is gone), writes the next of all (sched_save_ops.write_next), reads one
 * back. */
void sched_calls_record(const struct scheduler *s, uint64_t key, struct writer *w);
bool sched_calls_next_records(const struct scheduler *s, struct sched_save_cursor *cursor, struct writer *w);
MUST_USE paramo_err sched_calls_restore(struct scheduler *s, uint64_t key, struct reader *record);
/* Sends the answers that waited for saves up to this one, in turns. */
void sched_calls_saved(struct scheduler *s, uint64_t save);
/* Answers all calls of the group, in turns, and frees it then. The first turn is part of this step. Takes group. */
void sched_calls_release(struct scheduler *s, struct sched_call_group *group);
/* Must the next save wait, because some of its answers are not given yet? */
bool sched_calls_hold_save(const struct scheduler *s);
void sched_calls_init(struct scheduler *s);
/* No node has calls any more. */
void sched_calls_fini(struct scheduler *s);

#endif
