/*
 * A member: a node's membership in a cluster. Dials the scheduler, registers, keeps the newest view, sends
 * heartbeats, and carries calls (barriers, tables, pools, small values) to the scheduler, each done once
 * although connections break and messages are repeated.
 *
 *   DIALING --welcome--> REGISTERING --id, complete view--> JOINED --END, fenced, scheduler lost--> ENDED
 *      ^                      |                               |
 *      +----- connection lost +-------------------------------+     (pace: 20 ms, doubling to 500 ms)
 *
 * A connection that was lost is said once, in the log, at once. How long it is dialled again depends on what
 * the address says: that nobody listens there is strong evidence of a dead process (scheduler_wait_ms),
 * anything else may be a stopped or overloaded one (heartbeat_timeout_ms). A scheduler that keeps its state
 * (it says so) is dialled for ten minutes, whatever its address says; calls wait meanwhile, for as long as
 * their deadlines allow, and are repeated. Several addresses are dialled in turn: whoever leads listens.
 *
 * Threading: one lane (the node's control lane); every function and callback on it; other threads post.
 * Callbacks come from the lane's rounds, never from inside a member_* function but member_destroy and
 * member_fail; a callback
 * may call any member_* function except member_destroy, and must not wait. Nothing here touches data
 * connections. Tests: test/cluster/test_member.c, test_cluster_sim.c.
 */
#ifndef CLUSTER_MEMBER_MEMBER_H
#define CLUSTER_MEMBER_MEMBER_H

#include "cluster/view/view.h"
#include "van/van.h"
#include "wire/heartbeat.h"
#include "wire/pool_calls.h"

struct member;

enum { MEMBER_SCHEDULERS_MAX = 8 };

/* Strings are copied. */
struct member_config {
    struct van *van;
    struct lane *lane;
    const char *scheduler; /* its address, or several with commas between: one of those leads, the others
                              stand by, and do not listen */
    const char *token;
    uint32_t role;        /* one paramo_role; SCHEDULER: the scheduler process's own member, id 1 */
    const char *host;     /* where others reach this node; "": the address that the scheduler sees */
    uint16_t port;        /* 0: does not listen */
    uint16_t shards;      /* servers */
    const char *name;     /* "": none */
    uint32_t weight;      /* servers: of each shard, 1 and more */
    const char *domain;   /* servers: what they fail together with; "": the host */
    int32_t rank;         /* wanted; -1: the scheduler's choice */
    uint64_t incarnation; /* random, not 0; the same that the node's acceptor uses */
    uint32_t connect_timeout_ms;
    uint32_t heartbeat_ms, heartbeat_timeout_ms;
    /* After the connection to the scheduler was lost: how long its address may say, without a break, that
     * nobody listens there before it is given up. Whatever says less (silence, no route, a connection that is
     * taken and not answered) is given heartbeat_timeout_ms, or this if it is longer. */
    uint32_t scheduler_wait_ms;
    uint64_t frame_bytes;
    void *arg;
    /* Once: OK (id, rank and a complete view are there; on_view was called with it before), or why not:
     * NO_SCHEDULER (names the address), TOKEN, VERSION, REFUSED, FULL, INVALID (rank), TIMEOUT (says who is
     * missing), SHUTDOWN. */
    void (*on_joined)(void *arg, paramo_err status, const char *text);
    /* Each newer view; take a reference to keep it. */
    void (*on_view)(void *arg, struct view *view);
    /* Once, after joining: the job is over (OK, NODE_LOST, SHUTDOWN), this node was declared dead (FENCED),
     * or the scheduler is gone for good (NO_SCHEDULER). Calls in flight have ended before with SHUTDOWN or
     * that code. */
    void (*on_ended)(void *arg, paramo_err status, const char *text);
    /* An order of the scheduler (wire/order.h), once; this side answers it by member_order_done, now or
     * later. NULL: orders are answered with UNSUPPORTED. */
    void (*on_order)(void *arg, uint64_t order, uint32_t what, struct reader *fields);
    /* Fills in the lanes' progress for a heartbeat; NULL: none. */
    void (*progress)(void *arg, struct heartbeat *heartbeat);
};

/* Begins to dial. */
MUST_USE paramo_err member_create(const struct member_config *config, struct member **member);
/* Closes the connection and ends calls in flight with CLOSED (their done is called from here); no other
 * callback comes any more. Without member_leave before, the scheduler takes it for a death. NULL is allowed.
 */
void member_destroy(struct member *member);

/* This node can go on no more; this thread's message says why. Its connection is closed, which the scheduler
 * takes for a death, and on_ended (or on_joined) comes, from here. Nothing if it has ended, or is leaving. */
void member_fail(struct member *member, paramo_err status);

/* The newest view, or NULL before the first; the caller takes its own reference to keep it. */
struct view *member_view(struct member *member);
uint32_t member_id(const struct member *member); /* 0 before joined */
uint32_t member_rank(const struct member *member);
bool member_recovered(const struct member *member);
/* The address of the scheduler that was reached last, or is dialled. */
const char *member_scheduler(const struct member *member);

/* One call in flight. The caller's memory until done; zeroed, then done and arg set, before each use. */
struct member_call {
    /* Exactly once, if the function that began the call returned OK. On an error err_text() has the cause. */
    void (*done)(struct member_call *call, paramo_err status);
    void *arg;
    struct {
        uint64_t number;       /* barrier: which one was released; a checkpoint's */
        uint32_t table;        /* table_open: the id; member_view() has it */
        enum pool_state state; /* pool_next */
        struct work_unit unit; /* pool_next with POOL_GOT */
        const void *value;     /* kv_get: valid during done */
        size_t value_len;
    } result; /* set when the status is OK */
    /* the member's */
    struct member *member;
    struct member_call *newer, *older;
    uint64_t call_number;
    uint64_t sent_at;  /* 0: not on this connection */
    uint64_t min_view; /* answered; done waits until the own view is at least this */
    uint64_t deadline;
    uint32_t kind;
    bool finished; /* by itself: the timer ends it */
    struct lane_timer timer;
    struct writer body;
};

/* All return INVALID, TOO_LARGE, CLOSED (not joined), what it has ended with, AGAIN (CALL_WINDOW in flight)
 * or MEMORY at once. deadline: lane_now's clock; TIMEOUT then (or BARRIER ... from the scheduler) comes
 * within half a second of it. */
MUST_USE paramo_err member_barrier(struct member *m, struct member_call *call, uint32_t group,
                                   uint32_t customer, uint64_t deadline);
/* options NULL: it must exist. */
MUST_USE paramo_err member_table_open(struct member *m, struct member_call *call, const char *name,
                                      const paramo_table_options *options, uint64_t deadline);
MUST_USE paramo_err member_pool_open(struct member *m, struct member_call *call, const char *pool,
                                     uint32_t streams, uint32_t rounds, uint64_t deadline);
/* Waits up to timeout_ms for a part; POOL_NONE_NOW then. */
MUST_USE paramo_err member_pool_next(struct member *m, struct member_call *call, const char *pool,
                                     uint32_t who, uint32_t round, uint32_t timeout_ms, uint64_t deadline);
/* NOT_FOUND: the part has passed to someone else. */
MUST_USE paramo_err member_pool_done(struct member *m, struct member_call *call, const char *pool,
                                     const struct work_unit *unit, uint64_t deadline);
MUST_USE paramo_err member_pool_end(struct member *m, struct member_call *call, const char *pool,
                                    const struct work_unit *unit, uint64_t deadline);
MUST_USE paramo_err member_kv_put(struct member *m, struct member_call *call, const char *key,
                                  const void *value, size_t len, uint64_t deadline);
/* Waits until the key is there, or TIMEOUT. */
MUST_USE paramo_err member_kv_get(struct member *m, struct member_call *call, const char *key,
                                  uint64_t deadline);
MUST_USE paramo_err member_kv_add(struct member *m, struct member_call *call, const char *key,
                                  const double *values, size_t n, uint64_t deadline);
/* A key that is not there is no error. */
MUST_USE paramo_err member_kv_delete(struct member *m, struct member_call *call, const char *key,
                                     uint64_t deadline);
/* A checkpoint of the whole job into dir (named from the root on, by every node the same), of what has
 * changed since the last there if that can be; loads one (number 0: the last whole one) in place of what
 * there is. result.number: its number. */
MUST_USE paramo_err member_ckpt_save(struct member *m, struct member_call *call, const char *dir,
                                     bool changes, uint64_t deadline);
MUST_USE paramo_err member_ckpt_load(struct member *m, struct member_call *call, const char *dir,
                                     uint64_t number, uint64_t deadline);
/* Asks the scheduler to end the job for all. */
MUST_USE paramo_err member_shutdown(struct member *m, struct member_call *call, const char *reason,
                                    uint64_t deadline);
/* A server asks that others take what it has; on_ended comes with OK when nothing is left. REFUSED: there is
 * nobody who could. */
MUST_USE paramo_err member_drain(struct member *m, struct member_call *call, uint64_t deadline);
/* Says goodbye: this node has left when done comes with OK. Also after on_ended (OK at once if the scheduler
 * is gone). */
MUST_USE paramo_err member_leave(struct member *m, struct member_call *call, uint64_t deadline);
/* An order has been carried out: its result (what it owns is taken), or why not, with this thread's message.
 * The scheduler hears of it although connections break. Nothing if the member has ended. */
void member_order_done(struct member *m, uint64_t order, paramo_err status, struct writer *result);
/* Nothing of it has been carried out, and it must be (there was no memory for it): it comes again, after a
 * heartbeat or later, as if it had been lost on the way. Nothing if the member has ended. */
void member_order_later(struct member *m, uint64_t order);
/* Ends a call with CANCELLED; done is called from here. The scheduler may or may not have done it. */
void member_cancel(struct member *m, struct member_call *call);

#endif
