/*
 * The inside of a node: scheduler, shards, members and clients, which paramo.h hides. A node has one control
 * lane with its own thread (membership, heartbeats, the acceptor), one lane per shard, and one per worker.
 *
 * A member slot is one membership. A process with one role has one slot; an embedded node has one per server and one
 * for its workers, all on the same control lane and the inproc van. Each field says which lane or lock owns it. Only
 * this layer knows all others; it never holds their logic. create.c makes a node, join.c starts it, leave.c ends it,
 * interrupt.c wakes its waiters; node.c runs the calls of any thread on the node's lanes.
 * Tests: test/node/.
 */
#ifndef NODE_NODE_H
#define NODE_NODE_H

#include <stdatomic.h>

#include "cluster/member/member.h"
#include "cluster/member/member_calls.h"
#include "cluster/member/observer.h"
#include "cluster/scheduler/scheduler.h"
#include "cluster/session/acceptor.h"
#include "cluster/session/address.h"
#include "env/lane.h"
#include "node/clock_state.h"
#include "node/view_feed.h"
#include "paramo/paramo.h"
#include "server/shard/shard.h"
#include "worker/client.h"

/* Passes a shard's requests to handlers (serve.c). Owned by the shard's lane. */
struct dispatch {
    paramo_node *node;
    struct lane *lane;
    struct paramo_request *first, *last; /* those for which there is no handler yet */
    struct lane_timer expiry;
    struct lane_task retry; /* a handler has come, or the node closes */
    atomic_bool retry_posted;
};

struct node_shard {
    struct member_slot *member_slot; /* NULL: the scheduler's app endpoint */
    struct lane *lane;
    struct shard *shard; /* NULL: there is none */
    struct view_feed feed;
    struct dispatch dispatch;
};

enum member_slot_state {
    MEMBER_SLOT_NEW,
    MEMBER_SLOT_JOINING,
    MEMBER_SLOT_JOINED,
    MEMBER_SLOT_FAILED,
    MEMBER_SLOT_ENDED
};

struct member_slot {
    struct paramo_node *node;
    uint32_t role;
    uint64_t incarnation;
    int32_t rank;              /* wanted */
    struct member *member;     /* control lane */
    struct observer *observer; /* in place of a member, if the role is that of readers */
    struct acceptor *acceptor; /* NULL: does not listen; control lane */
    struct node_shard *shards; /* servers */
    unsigned shards_count;
    struct node_shard app_endpoint; /* of apps, on node->apps */
    atomic_int state;               /* enum member_slot_state: written on the control lane, read anywhere */
    paramo_err code;                /* why it failed or ended: whole before state says so */
    char text[ERR_TEXT_MAX];
    /* The first of its shards that cannot continue, with the reason. The member slot then ends. */
    struct lane_task failure;
    atomic_bool failing;
    paramo_err failure_code;
    char failure_text[ERR_TEXT_MAX];
};

enum handler_state { HANDLER_FREE, HANDLER_OPEN, HANDLER_CLOSING };

/* One table's or app's handler. All but state and queue change only while it is FREE. A lane that has seen it
 * OPEN may use it until the end of that step: closing an app waits for the lane of apps, and the handler of a table
 * is never closed. */
struct handler {
    atomic_int state;          /* enum handler_state */
    bool app;                  /* false: a table's */
    char table[VIEW_NAME_MAX]; /* "": every table without one of its own */
    uint32_t id, customer;     /* of an app */
    paramo_handler fn;         /* NULL: paramo_app_take */
    void *arg;
    atomic_flag lock; /* guards the queue; held for a few instructions */
    struct paramo_request *first, *last;
    atomic_size_t queued;
    atomic_uint takers; /* threads that take or close: while there are any, it is not FREE */
};

enum { HANDLERS_MAX = 64 + 1, EXITS_MAX = 64 }; /* one is that of tasks */

/* Where this process listens (empty: nowhere) and how other nodes reach it (empty: at the address that the scheduler
 * sees). */
struct place {
    char listen[ADDRESS_MAX];
    char advertise[VIEW_HOST_MAX];
};

/* A server's partitions in tables placed by range. */
struct server_range {
    uint32_t first_partition, partitions;
};

struct exit_call {
    void (*fn)(void *arg);
    void *arg;
};

struct paramo_node {
    unsigned generation;  /* of the creating process (fork) */
    paramo_config config; /* its strings are copies */
    struct env *env;
    struct van *van;
    struct lane *control;
    struct fs *fs;           /* where checkpoints are */
    size_t ckpt_queue_bytes; /* a checkpoint's bytes that may wait for the disk; 0: SAVE_QUEUE_BYTES */
    struct blocking_jobs *blocking_jobs; /* for files of checkpoints; NULL: none */
    struct lane *apps; /* for all app endpoints of this process; NULL: it serves no apps (the simulator) */
    struct place place;
    struct blocking_jobs *files;              /* for the store; NULL: the scheduler keeps no state */
    struct store *store;                      /* until the scheduler has it; control lane */
    struct scheduler *scheduler;              /* control lane */
    struct node_shard scheduler_app_endpoint; /* embedded: of the scheduler's apps */
    atomic_bool over; /* the scheduler's job is over; code and text are whole before */
    paramo_err over_code;
    char over_text[ERR_TEXT_MAX];
    struct member_slot *member_slots;
    unsigned member_slots_count;
    struct member_slot *own;       /* the slot whose id, calls and barriers the API uses */
    bool join_begun, joined;       /* the thread that starts and stops */
    struct paramo_worker *workers; /* control lane */
    struct tasks *tasks;           /* tasks.h; fixed until the node is freed */
    struct handler handlers[HANDLERS_MAX];
    atomic_uint handlers_used;   /* handlers from here on were never open */
    atomic_flag handlers_lock;   /* guards the choice of a free handler, and the takers of a chosen one */
    struct lane_task apps_nudge; /* threads that take check again */
    atomic_bool apps_nudge_posted;
    struct exit_call exits[EXITS_MAX];
    atomic_uint exits_count;
    atomic_bool interrupted;
    atomic_bool draining; /* its partitions go to other servers before it leaves */
    int interrupt_fd;
    /* of its shards (server/shard/shard.h); 0 except in a simulation */
    size_t scan_keys, turn_records, turn_tables;
    struct lane_source interrupt;
    /* fixed when joined */
    uint32_t id, rank, num_servers, num_workers; /* when it joined */
    _Atomic uint32_t servers_now, workers_now;   /* others may join; written on the control lane */
    bool recovered;
    char scheduler_address_used[ADDRESS_MAX];
    struct server_range *ranges; /* num_servers of them */
};

struct paramo_worker {
    struct paramo_node *node;
    struct lane *lane;
    struct client *client;
    struct view_feed feed;
    struct lane_task need; /* posted to the control lane: offer the view again */
    atomic_bool need_posted;
    _Atomic uint64_t needed; /* number of the view that the client needs */
    struct lane_task nudge;  /* posted to the client's lane: waiters check again (interrupt) */
    atomic_bool nudge_posted;
    _Atomic(paramo_table *) tables; /* pushed by any thread, freed with the worker */
    atomic_int event_fd;            /* -1: paramo_worker_fd was not called */
    uint32_t app, customer;
    uint64_t session;              /* random, not 0: names it in the order of tasks */
    _Atomic uint64_t task_numbers; /* the last number of its calls of tasks */
    bool reads;                    /* it is a reader */
    char space[VIEW_NAME_MAX];     /* the namespace of its tables; "": none */
    struct worker_clock clock;
    struct paramo_worker *next; /* control lane */
};

struct paramo_table {
    paramo_worker *worker;
    struct client_table spec;
    paramo_table_options options;
    atomic_uint users;                        /* 0: closed */
    _Atomic uint64_t ages[PARAMO_CLOCK_AGES]; /* of its pulls */
    paramo_table *next;
};

/* The view that the node's workers use; NULL: it has none. Borrowed. On the control lane. */
struct view *node_view(const paramo_node *node);
/* Runs fn(arg) on a lane and waits for it. IN_CALLBACK in a callback or handler. */
MUST_USE paramo_err node_run_on(struct lane *lane, void (*fn)(void *arg), void *arg);
/* FORKED in a child, INVALID for NULL. */
MUST_USE paramo_err node_check(const paramo_node *node);

/* node_check, and INVALID for the number of an app that the library has for itself. */
MUST_USE paramo_err app_check(const paramo_node *node, uint32_t app);

/* A call to the scheduler from any thread: begin starts it on the control lane, taken (may be NULL) copies
 * its result there, then the caller continues. Ends early with CLOSED when the node is interrupted. */
struct node_call {
    struct lane_task task;
    struct lane_task cancel;
    struct member_call call;
    struct member_slot *member_slot;
    paramo_err (*begin)(struct node_call *c, struct member *m, void *arg);
    void (*taken)(struct node_call *c, void *arg);
    void *arg;
    paramo_err status;
    char text[ERR_TEXT_MAX];
    atomic_bool done;
};
MUST_USE paramo_err node_call(struct member_slot *member_slot,
                              paramo_err (*begin)(struct node_call *c, struct member *m, void *arg),
                              void (*taken)(struct node_call *c, void *arg), void *arg);
/* Ends a lane (or NULL). Closed connections with queued frames get one second to send them. */
void node_lane_end(paramo_node *node, struct lane *lane);
/* lane_now's clock, ms from now; 0: 60 s. */
uint64_t node_deadline(const paramo_node *node, uint32_t ms);

/* The scheduler's state outlives it. */
static inline bool node_keeps_state(const paramo_node *node)
{
    return node->config.state || node->config.meta;
}

#endif
