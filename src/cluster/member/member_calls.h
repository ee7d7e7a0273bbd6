/*
 * A member's calls to the scheduler: barriers, tables, pools, small values, clocks, checkpoints. Each is done once,
 * although connections break and messages are repeated: calls have numbers, and are sent again on a new
 * connection. A call waits as long as its deadline allows.
 * Must never know: what the scheduler does with a call.
 * Tests: test/cluster/test_member.c.
 */
#ifndef CLUSTER_MEMBER_MEMBER_CALLS_H
#define CLUSTER_MEMBER_MEMBER_CALLS_H

#include "base/cursor.h"
#include "env/lane.h"
#include "paramo/types.h"
#include "wire/calls.h"
#include "wire/clock_calls.h"
#include "wire/head.h"
#include "wire/pool_calls.h"

struct member;

/* One call in flight. The caller's memory until done. Zero it, then set done and arg, before each use. */
struct member_call {
    /* Exactly once, if the function that began the call returned OK. On an error err_text() has the cause. */
    void (*done)(struct member_call *call, paramo_err status);
    void *arg;
    struct {
        uint64_t number;       /* barrier: which one was released; checkpoint: its number */
        uint32_t table;        /* table_open: the id; member_view() has it */
        enum pool_state state; /* pool_next */
        struct work_unit unit; /* pool_next with POOL_GOT */
        const void *value;     /* kv_get: valid during done */
        size_t value_len;
        uint64_t session;          /* clock_join */
        struct clock_result clock; /* clock_join: the minimum only; clock_tell, clock_wait */
    } result;                      /* set when the status is OK */
    /* the member's */
    struct member *member;
    struct member_call *newer, *older;
    uint64_t call_number;
    uint64_t sent_at;  /* 0: not on this connection */
    uint64_t min_view; /* answered; done waits for a view of at least this number */
    uint64_t deadline;
    uint32_t kind;
    bool finished; /* the call ends without an answer, by its timer */
    struct lane_timer timer;
    struct writer body;
};

/* All return INVALID, TOO_LARGE, CLOSED (not joined), the status that the member ended with, AGAIN (CALL_PLACES calls
 * are unanswered) or MEMORY at once. However long a call waits (a barrier, pool_next, kv_get), it holds no other one
 * up. deadline: lane_now's clock. TIMEOUT (or the scheduler's own error) comes within half a second of it. */
MUST_USE paramo_err member_barrier(struct member *m, struct member_call *call, uint32_t group,
                                   uint32_t customer, uint64_t deadline);
/* options NULL: it must exist. */
MUST_USE paramo_err member_table_open(struct member *m, struct member_call *call, const char *name,
                                      const paramo_table_options *options, uint64_t deadline);
MUST_USE paramo_err member_pool_open(struct member *m, struct member_call *call, const char *pool,
                                     uint32_t streams, uint32_t rounds, uint64_t deadline);
/* Waits up to timeout_ms for a work unit; then POOL_NONE_NOW. */
MUST_USE paramo_err member_pool_next(struct member *m, struct member_call *call, const char *pool,
                                     uint32_t customer, uint32_t round, uint32_t timeout_ms,
                                     uint64_t deadline);
/* NOT_FOUND: another worker has the work unit now. */
MUST_USE paramo_err member_pool_done(struct member *m, struct member_call *call, const char *pool,
                                     const struct work_unit *unit, uint64_t deadline);
MUST_USE paramo_err member_pool_end(struct member *m, struct member_call *call, const char *pool,
                                    const struct work_unit *unit, uint64_t deadline);
MUST_USE paramo_err member_kv_put(struct member *m, struct member_call *call, const char *key,
                                  const void *value, size_t len, uint64_t deadline);
/* Waits until the key exists, or TIMEOUT. */
MUST_USE paramo_err member_kv_get(struct member *m, struct member_call *call, const char *key,
                                  uint64_t deadline);
MUST_USE paramo_err member_kv_add(struct member *m, struct member_call *call, const char *key,
                                  const double *values, size_t n, uint64_t deadline);
/* Deleting a missing key is not an error. */
MUST_USE paramo_err member_kv_delete(struct member *m, struct member_call *call, const char *key,
                                     uint64_t deadline);
/* A customer's clock counts from here on, and begins with the minimum of all that count. */
MUST_USE paramo_err member_clock_join(struct member *m, struct member_call *call, uint32_t customer,
                                      uint64_t deadline);
/* The clock of the session has reached this number. NOT_FOUND: the session does not count; clock_wait answers that,
 * too. */
MUST_USE paramo_err member_clock_tell(struct member *m, struct member_call *call, uint64_t session,
                                      uint64_t clock, uint64_t deadline);
/* Waits until all clocks that count have reached this one, or TIMEOUT, which names the workers that have not. */
MUST_USE paramo_err member_clock_wait(struct member *m, struct member_call *call, uint64_t session,
                                      uint64_t clock, uint64_t deadline);
MUST_USE paramo_err member_clock_leave(struct member *m, struct member_call *call, uint64_t session,
                                       uint64_t deadline);
/* Saves a checkpoint of the whole job into dir (an absolute path, the same on every node); with `changes`,
 * only what changed since the last one there, if possible. Loads one (number 0: the last whole one) in place
 * of the present rows. result.number: its number. */
MUST_USE paramo_err member_ckpt_save(struct member *m, struct member_call *call, const char *dir,
                                     bool changes, uint64_t deadline);
MUST_USE paramo_err member_ckpt_load(struct member *m, struct member_call *call, const char *dir,
                                     uint64_t number, uint64_t deadline);
/* Asks the scheduler to end the job for all nodes. */
MUST_USE paramo_err member_shutdown(struct member *m, struct member_call *call, const char *reason,
                                    uint64_t deadline);
/* A server asks that others take its partitions; on_ended comes with OK when it has none. REFUSED: no other
 * server can take them. */
MUST_USE paramo_err member_drain(struct member *m, struct member_call *call, uint64_t deadline);
/* Says goodbye: this node has left when done comes with OK. Also allowed after on_ended (OK at once if the
 * scheduler is gone). */
MUST_USE paramo_err member_leave(struct member *m, struct member_call *call, uint64_t deadline);
/* Ends a call with CANCELLED; done is called from here. The scheduler may have carried it out. */
void member_cancel(struct member *m, struct member_call *call);

/* ---- for the other files of this folder ---------------------------------------------------------------- */

/* Begins a call whose body is written; after OK its done comes. */
MUST_USE paramo_err member_call_begin(struct member *m, struct member_call *call, enum call_kind kind,
                                      uint64_t deadline);
/* Sends one call over the present connection. False: its queue is full. */
bool member_call_send(struct member *m, struct member_call *call);
/* Sends the calls that were not sent on this connection, and those whose answer is overdue. Many of them are sent in
 * turns, by the timer. */
void member_calls_resend(struct member *m, uint64_t overdue);
void member_calls_resend_due(struct lane_timer *timer);
/* The connection is lost: all calls count as not sent. */
void member_calls_unsend(struct member *m);
MUST_USE paramo_err member_calls_reply(struct member *m, const struct wire_reply *head, struct reader *body);
/* A view has come: calls that waited for it end. */
void member_calls_viewed(struct member *m);
/* Ends every call but LEAVE (with_leave: that one too, as done) with this thread's message. */
void member_calls_fail(struct member *m, paramo_err status, bool with_leave);
/* The lowest unanswered call number. */
uint64_t member_calls_floor(const struct member *m);

#endif
