/*
 * A member: a node's membership in a cluster. It connects to the scheduler, registers, keeps the newest view,
 * sends heartbeats, and carries calls (barriers, tables, pools, small values) to the scheduler. Each call is
 * done once although connections break and messages are repeated.
 *
 *   DIALING --welcome--> REGISTERING --id, complete view--> JOINED --END, fenced, scheduler lost--> ENDED
 *      ^                      |                               |
 *      +----- connection lost +-------------------------------+     (pace: 20 ms, doubling to 500 ms)
 *
 * A lost connection is logged once, at once. How long the member reconnects depends on the address. A refused
 * connection is strong evidence of a dead process (scheduler_wait_ms); anything else may be a stopped or
 * overloaded one (heartbeat_timeout_ms). A scheduler that keeps its state is tried for ten minutes in any
 * case. Calls wait as long as their deadlines allow, and are repeated. Several addresses are tried in turn:
 * only the leader listens.
 *
 * Threads: every function and callback runs on one lane (the node's control lane); other threads post.
 * Callbacks come from the lane's rounds, never from inside a member_* function but member_destroy and
 * member_fail. A callback may call any member_* function except member_destroy, and must not wait. A member
 * never touches data connections. Tests: test/cluster/test_member.c, test_cluster_sim.c.
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
    /* One address, or several with commas between: one scheduler leads, standby schedulers do not listen. */
    const char *scheduler;
    const char *token;
    uint32_t role;        /* one paramo_role; SCHEDULER: the scheduler process's own member, id 1 */
    const char *host;     /* where other nodes reach this one; "": the address that the scheduler sees */
    uint16_t port;        /* 0: does not listen */
    uint16_t shards;      /* servers */
    const char *name;     /* "": none */
    uint32_t weight;      /* servers: of each shard, 1 and more */
    const char *domain;   /* servers: the failure domain; "": the host */
    int32_t rank;         /* wanted; -1: the scheduler chooses */
    uint64_t incarnation; /* random, not 0; the same as the acceptor's */
    uint32_t connect_timeout_ms;
    uint32_t heartbeat_ms, heartbeat_timeout_ms;
    /* After the connection to the scheduler was lost: for how long in a row its address may refuse
     * connections before the scheduler counts as dead. Weaker evidence (silence, no route, a connection that
     * is accepted and not answered) gets heartbeat_timeout_ms, or this if it is longer. */
    uint32_t scheduler_wait_ms;
    uint64_t frame_bytes;
    void *arg;
    /* Once: OK (id, rank and a complete view are there; on_view was called with it before), or NO_SCHEDULER
     * (names the address), TOKEN, VERSION, REFUSED, FULL, INVALID (rank), TIMEOUT (names the missing nodes),
     * SHUTDOWN. */
    void (*on_joined)(void *arg, paramo_err status, const char *text);
    /* Each newer view; take a reference to keep it. */
    void (*on_view)(void *arg, struct view *view);
    /* Once, after joining: the job is over (OK, NODE_LOST, SHUTDOWN), this node was declared dead (FENCED),
     * or the scheduler is gone for good (NO_SCHEDULER). Calls in flight have ended before with SHUTDOWN or
     * that code. */
    void (*on_ended)(void *arg, paramo_err status, const char *text);
    /* An order of the scheduler (wire/order.h), once. The callee answers it by member_order_done, now or
     * later. NULL: orders are answered with UNSUPPORTED. */
    void (*on_order)(void *arg, uint64_t order, uint32_t what, struct reader *fields);
    /* Fills in the lanes' progress for a heartbeat; NULL: none. */
    void (*progress)(void *arg, struct heartbeat *heartbeat);
};

/* Begins to connect. */
MUST_USE paramo_err member_create(const struct member_config *config, struct member **member);
/* Closes the connection and ends calls in flight with CLOSED (their done is called from here); no other
 * callback comes. Without member_leave before, the scheduler counts it as a death. NULL is allowed. */
void member_destroy(struct member *member);

/* This node cannot continue; this thread's message says why. Closes the connection, which the scheduler
 * counts as a death, and calls on_ended (or on_joined) from here. Does nothing if the member has ended or is
 * leaving. */
void member_fail(struct member *member, paramo_err status);

/* The newest view, or NULL before the first; the caller takes its own reference to keep it. */
struct view *member_view(struct member *member);
uint32_t member_id(const struct member *member); /* 0 before joining */
uint32_t member_rank(const struct member *member);
bool member_recovered(const struct member *member);
/* The address of the scheduler that was reached last, or is being tried. */
const char *member_scheduler(const struct member *member);

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
    } result; /* set when the status is OK */
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

/* All return INVALID, TOO_LARGE, CLOSED (not joined), the status that the member ended with, AGAIN
 * (CALL_WINDOW in flight) or MEMORY at once. deadline: lane_now's clock. TIMEOUT (or the scheduler's own
 * error) comes within half a second of it. */
MUST_USE paramo_err member_barrier(struct member *m, struct member_call *call, uint32_t group,
                                   uint32_t customer, uint64_t deadline);
/* options NULL: it must exist. */
MUST_USE paramo_err member_table_open(struct member *m, struct member_call *call, const char *name,
                                      const paramo_table_options *options, uint64_t deadline);
MUST_USE paramo_err member_pool_open(struct member *m, struct member_call *call, const char *pool,
                                     uint32_t streams, uint32_t rounds, uint64_t deadline);
/* Waits up to timeout_ms for a work unit; then POOL_NONE_NOW. */
MUST_USE paramo_err member_pool_next(struct member *m, struct member_call *call, const char *pool,
                                     uint32_t who, uint32_t round, uint32_t timeout_ms, uint64_t deadline);
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
/* An order has been carried out: its result (what it owns is taken), or its failure, with this thread's
 * message. It reaches the scheduler although connections break. Does nothing if the member has ended. */
void member_order_done(struct member *m, uint64_t order, paramo_err status, struct writer *result);
/* Nothing of the order was carried out, for want of memory: the scheduler sends it again, after a heartbeat
 * or later. Does nothing if the member has ended. */
void member_order_later(struct member *m, uint64_t order);
/* Ends a call with CANCELLED; done is called from here. The scheduler may have done it. */
void member_cancel(struct member *m, struct member_call *call);

#endif
