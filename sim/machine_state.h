/*
 * A machine as all modules see it: its process, what the application on it does, and what outlives the process.
 * Types, and what follows from them. machine.c starts and ends the process; script.c, ops.c, clocks.c, held.c,
 * memory.c, overdue.c and reals.c own their parts. It must never change the process. Tests: test/sim/test_play.c.
 */
#ifndef SIM_MACHINE_STATE_H
#define SIM_MACHINE_STATE_H

#include "cluster/member/member.h"
#include "cluster/member/member_calls.h"
#include "node/node.h"
#include "ring/partition_set.h"
#include "sim/env/sim.h"
#include "sim/sizes.h"

struct world;
struct scheduler;
struct observer;
struct view_feed;
struct http;
struct simfs;
struct disk;
struct cover;
struct client_task;
struct task_run;

enum { CLOCKS_KEPT = 64 };
enum clocks_state { CLOCKS_OUT, CLOCKS_JOINING, CLOCKS_IN, CLOCKS_WAITING, CLOCKS_LEAVING };

/* Which allocations of a process fail. */
struct memory {
    uint64_t next; /* allocations until the first failure; 0: none fails */
    uint64_t row;  /* failures in a row from there on */
    size_t fault;
    bool struck;      /* an allocation has failed in this turn */
    uint32_t failed;  /* failures in this process */
    uint64_t last_at; /* the moment of the last failure; outlives the process */
};

/* Of one shard of a server that is declared dead. */
struct overdue {
    uint64_t partitions[PARTITION_WORDS]; /* its lease is overdue on these; */
    uint64_t hasty[PARTITION_WORDS];      /* on these because their next owner has not waited */
};

/* How far filters of a chain move a value: `share` of the greatest value of the message, and `own` of the value, at
 * least `least`. */
struct reals_error {
    double share, own, least;
};

/* The clock of a customer, as the application has it. */
struct customer_clock {
    enum clocks_state state;
    struct member_call call;
    uint64_t begins;                         /* the clock that it joined with */
    uint64_t ends[CLOCKS_KEPT];              /* by clock: the last request before it was ended */
    uint64_t asked_at, deadline, asked_from; /* of the call: by the node's clock, and the moment */
    uint64_t demand;
    uint64_t seen; /* the highest minimum that any customer had heard of when the call began */
    uint64_t waits_since;
    bool patient;       /* the wait must succeed once all is well */
    bool stays;         /* it does not leave before its node does */
    uint64_t left_at;   /* the moment when it last stopped counting, ... */
    paramo_err left_by; /* ... and the failure that its clock had then; OK: it left by itself */
};

enum observing_state { OBSERVING_NONE, OBSERVING_SEEKING, OBSERVING_JOINED, OBSERVING_ENDED };

/* Where the reader of a worker's process has its views from. */
struct observing {
    struct observer *observer; /* NULL: none is running */
    enum observing_state state;
    paramo_err status;              /* ENDED: why */
    struct view_feed *feed;         /* the reader's; NULL: it is not open */
    struct sim_event due;           /* the reader is opened, or the observer begins again */
    uint64_t seen, told;            /* the number of its view; as the judge knows it */
    uint64_t answered, answered_at; /* its last query that was answered, and when by its clock */
    uint64_t clear_since, behind_since;
};

enum script_step {
    SCRIPT_JOIN,
    SCRIPT_TABLES,
    SCRIPT_POOL,
    SCRIPT_ENTER,
    SCRIPT_WORK,
    SCRIPT_SUM,
    SCRIPT_BARRIER,
    SCRIPT_NEXT,  /* work unit of the pool */
    SCRIPT_DONE,  /* with it */
    SCRIPT_STALE, /* the same for a unit that has passed to another worker */
    SCRIPT_PUT,   /* a small value at the scheduler */
    SCRIPT_GET,
    SCRIPT_READ,
    SCRIPT_LEAVE,
    SCRIPT_GONE
};

struct script {
    enum script_step step;
    struct member_call call;
    bool calling;
    unsigned tables; /* opened */
    unsigned ops;    /* issued */
    unsigned calm_ops;
    uint64_t silent_until;
    uint64_t idle; /* ns until the next attempt to issue a request: the last one could not; 0: it could */
    bool lost;     /* the last request found a server dead: the next one is not urgent */
    double sum_at_least;
    uint32_t pool_round;
    bool holds; /* a part */
    bool none_now;
    struct work_unit unit;
    unsigned kv_of; /* the worker whose value is read */
    uint64_t kv_value, kv_from;
    uint64_t asked_at, deadline; /* of the call, by the worker's clock */
    struct sim_event tick;
};

struct late_answer {
    struct late_answer *next;
    struct sim_event event;
    struct machine *machine;
    paramo_request *request;
    const paramo_request_info *info;
    const uint64_t *sums; /* of the shard that received it */
};

/* When the carriers were made that a customer has in flight (held.h): up to this number, at this moment or later. */
struct carriers {
    struct {
        uint64_t number, moment;
    } made[SIM_RECENT];
    unsigned count;
};

/* What filters hold back at a customer, for each key of SIM_REALS (held.h). */
struct held {
    uint64_t digits[SIM_KEYS]; /* acknowledged, and not in the table as far as is known */
    /* Of the oldest push among them: its moment (0: a clear or a load may have come between), and what the world
     * was. */
    uint64_t from[SIM_KEYS];
    uint32_t clears[SIM_KEYS], deaths[SIM_KEYS][SIM_SERVERS];
    bool gave_up; /* in the calm period: rows of the table are lost for good */
    struct carriers carriers;
};

struct customer {
    paramo_worker *worker; /* NULL: not open */
    bool closing;          /* by the application: its requests in flight end */
    bool reads;            /* it is a reader */
    struct machine *machine;
    struct customer_clock clock;
    struct sim_event reopen;
    unsigned open, afters; /* afters: those that come after others */
    unsigned calls;        /* of tasks, in flight */
    /* the last request whose first transmission went to a shard */
    uint64_t first_ts[SIM_SHARDS][SIM_PRIORITIES];
    uint64_t handled_ts[SIM_SHARDS][SIM_PRIORITIES]; /* the last request that a handler received */
    uint64_t view_seen;
    uint64_t last_ts;
    struct reals_error pushed_error[SIM_REAL_TABLES], pulled_error[SIM_REAL_TABLES]; /* from SIM_REALS on */
    struct held held;
    uint64_t held_at_end[SIM_KEYS]; /* the digits that it had when it began to close, or to die (held_ends) */
    uint64_t last_keys[SIM_TABLES]; /* of the last request with keys, as bits */
    uint64_t issued[SIM_RECENT], failed[SIM_RECENT]; /* timestamps, by slot */
    struct {                                         /* a scan that has more rows */
        bool more;
        enum sim_table table;
        unsigned shard;
        uint32_t id;
        uint64_t cursor, from, view, must[SIM_KEYS];
    } scan;
    struct { /* its last page, if there are more rows */
        bool more;
        enum sim_table table;
        uint32_t scan;
        uint64_t next, end, from, must[SIM_KEYS]; /* from: the moment when the first page was issued */
    } page;
};

struct machine {
    struct world *world;
    uint32_t node;       /* in the schedule */
    uint32_t role, rank; /* among the machines of its role */
    int place;           /* the rank that the cluster gave it; -1 before; a latecomer may get another's */
    char name[8];
    struct sim_host *host;
    bool up, dying, gone; /* it will not be started again */
    uint32_t terms;       /* the last term that a scheduler had begun when its process began */
    struct van *van;
    paramo_node *made;
    struct memory memory;
    struct sim_event restart;
    enum member_slot_state seen;
    struct cover *cover; /* its state machines */
    uint64_t view_seen, shard_view_seen[2];
    uint64_t combined_seen[2]; /* by shard: sums.h */
    bool declared_dead, never_ended;
    uint64_t dead_at;          /* the moment when the view came that declared it dead */
    uint64_t ghost_until;      /* the moment up to which its keys are marked (ledger_ghost) */
    struct overdue overdue[2]; /* by shard */
    bool drains;               /* it is being drained */
    uint64_t drained_ns;       /* ns until it returns after the drain; 0: never */
    struct member_call drain;
    /* The handler's sums, by shard: when the partitions of an unanswered push have moved, the new owner
     * handles it, too, which may be another shard of the same process. */
    uint64_t sums[2][SIM_KEYS];
    struct late_answer *late;
    struct script script; /* workers */
    bool has_stale;       /* the process before held a work unit when it died: that lease is void */
    struct work_unit stale;
    struct customer customers[SIM_CUSTOMERS + 1]; /* the last: that of tasks, also of a server */
    struct task_run *runs;                        /* tasks here that have begun and have not ended */
    bool tasks_ended;                             /* its node takes no more calls of tasks */
    struct observing observing;
    struct client_table tables[SIM_TABLES];
    struct client_task *client_task; /* NULL: none */
    unsigned client_task_customer;
    uint64_t client_task_from;
    struct disk *disk;   /* a worker's disk; it outlives the process */
    struct disk *folder; /* of other nodes: the way to the checkpoints; NULL: there are none */
    struct {
        bool begun, there;       /* a save was made; one was reported */
        uint64_t must[SIM_KEYS]; /* the value of each row in the file */
    } saved[SIM_TABLES];
    /* The scheduler's store, if it keeps its state. */
    struct simfs *files; /* in a folder; otherwise in etcd */
    struct http *http;   /* of the store */
    uint32_t term;       /* at its last start */
    /* The end of a job that it found at its start, and that job's view. */
    bool found_end;
    paramo_err found_status;
    uint64_t found_view;
    bool cannot_start; /* its store has failed */
    bool fenced;       /* another scheduler leads, or the end could not be saved */
    uint64_t disk_takes, disk_slow_until;
    size_t disk_slow_by;
};

struct member *machine_member(const struct machine *m);
bool machine_joined(const struct machine *m);

#endif
