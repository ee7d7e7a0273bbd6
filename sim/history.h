/*
 * What the application has asked for, and what the rows may hold after it: requests, sums, cells, work units. Types
 * only; the modules that own them are ops.c, ledger.c, cells.c, deals.c, losses.c and script.c. It must never know
 * how a request travels. Tests: test/sim/.
 */
#ifndef SIM_HISTORY_H
#define SIM_HISTORY_H

#include "base/transform.h"
#include "paramo/paramo.h"
#include "paramo/task_types.h"
#include "ring/ring.h"
#include "sim/sizes.h"
#include "worker/client.h"

struct machine;
struct scan_batch;
struct page_op;
struct task_run;

/* In the order of play_counts.h. */
enum op_kind {
    OP_PUSH,
    OP_PULL,
    OP_PUSHPULL,
    OP_PUT,
    OP_DELETE,
    OP_CLEAR,
    OP_STAT,
    OP_SCAN,
    OP_REDUCE,
    OP_TRANSFORM,
    OP_FLUSH,
    OP_PAGE
};

/* One request of the application, its arrays, and what the model knew when it was issued. */
struct op {
    struct op *next;
    struct machine *machine;
    unsigned customer;
    uint32_t serial;
    enum op_kind kind;
    enum sim_table table;
    int32_t priority;
    bool patient;                /* the default timeout */
    bool range;                  /* its keys follow each other, and are asked for as a range */
    unsigned column, columns;    /* of each row; columns 0: all */
    bool has_failed;             /* another request was cancelled because it has */
    bool refused;                /* a change by a reader, which must have no effect */
    bool open, cancelled, again; /* again: a part of it was sent twice or sliced again */
    uint64_t issued_view;        /* the client's view when it was issued ... */
    uint64_t issued_partitions;  /* ... and the last view in which partitions changed owners */
    uint32_t saw_dead;           /* places of servers that were dead in that view, one bit each */
    uint64_t at_clock;           /* 0: it is held for none */
    uint64_t left_at; /* by its client's clock, when a part of it left for the first time; 0: never */
    bool clocked;     /* of SIM_SUMS: with its worker's clock (sums.h) */
    uint64_t clock;
    uint32_t workers; /* with which it was sent; 0: not yet */
    unsigned after_n; /* requests that it comes after: these, and all up to `after_all` */
    uint64_t after[2], after_all;
    bool issued;       /* its client has it */
    bool first_failed; /* one of these has failed, or may have: then it may be cancelled */
    uint64_t first;    /* one that has: then it may not be executed; 0: none */
    uint64_t ts, deadline;
    uint64_t from; /* the moment of its issue */
    unsigned n, vals_n;
    uint64_t only; /* keys that it may have, as bits; 0: any */
    uint64_t same; /* of an earlier request; it has these, as far as it may; 0: none */
    uint16_t index[SIM_OP_KEYS];
    uint64_t digit[SIM_OP_KEYS], must[SIM_OP_KEYS];
    uint32_t clears;
    bool certain;
    uint32_t deaths[SIM_SERVERS];
    uint64_t all_must[SIM_KEYS]; /* of a scan, of a stat */
    /* When the scan began that this batch belongs to, with the shard's view then; when what a flush waits for began. */
    uint64_t began, began_must[SIM_KEYS], began_view;
    unsigned shard;
    uint64_t shard_view; /* the shard's own view when a scan of it was issued */
    struct scan_batch *batch;
    struct client_stats stats;
    paramo_reduction reduction;
    struct page_op *page;
    struct task_run *run; /* it is a subtask of this task, ... */
    paramo_task *task;    /* ... and not of the application's; NULL: it is no subtask */
    uint64_t state[3];    /* of a function of the application: what it finds, or is given */
    const struct client_table *other;
    struct transform transform;
    uint64_t keys[SIM_OP_KEYS]; /* the caller's arrays */
    uint32_t lens[SIM_OP_KEYS];
    uint64_t vals[SIM_OP_VALS];
};

/* What a row holds in one of its states: it has all of `must`, and nothing of `gone`. */
struct ledger_state {
    uint64_t must, gone;
};

/* For a shard: the view since which it has owned a key, and the view since which it has not; 0: never. Kept
 * apart from the key, since it is read seldom. */
struct ledger_past {
    uint64_t before[SIM_SHARDS], left[SIM_SHARDS];
    /* The moments between which an owner had an overdue lease (overdue.h), and the key's `must` at the first. */
    uint64_t overdue_from, overdue_until, overdue_must;
    /* The last moment at which a server that is declared dead, and may not know it, owned the key by its own view; and
     * the same of servers that were declared dead before the last load ended, and before the loss before the key's last
     * one. 0: never. */
    uint64_t ghost_at, ghost_stale_at, ghost_older_at;
    struct ledger_state unloaded; /* before the last load ... */
    uint64_t unloaded_acked;      /* ... with all digits that were acknowledged then */
    struct ledger_state unlost;   /* before the key's last loss; the loss before that was at this moment */
    uint64_t lost_before;
};

/* The value of a key is a sum with one digit of two bits for each push: 0 is not applied, 1 is applied, more
 * is applied twice. */
struct ledger_key {
    uint64_t key;
    uint64_t sent, must; /* sets of digits */
    uint64_t acked;      /* of the sent ones: the push was acknowledged */
    uint64_t gone;       /* digits that a loaded checkpoint does not have */
    unsigned used;       /* digits given */
    unsigned partition;
    uint64_t died_at; /* the moment when its owner was last seen dead; 0: never */
    int shard;        /* the owner's index in the view; -1 before the first view */
    uint64_t came;    /* the view since which it is the owner */
    struct ledger_past *past;
    /* The key's last copy has died (losses.c): `lost` while a view says so. The moment and the view of the
     * last such death (0: never), the digits that were acknowledged then, and the checkpoint to which the key
     * returns (0: not known yet). `stays_lost`: no view says so any more, and the row may not have returned. */
    bool lost, stays_lost;
    uint64_t lost_at, lost_view, lost_acked, back;
};

/* A failed clear. A server that knows that the customer's numbers below `floor` are over does not carry it
 * out. */
struct late_clear {
    uint32_t node, customer;
    uint64_t incarnation, floor;
};

struct ledger_table {
    struct ledger_key keys[SIM_KEYS]; /* ascending */
    /* The digits of pushes that were not of this column. */
    uint64_t outside[SIM_KEYS][SIM_WIDE];
    struct ledger_past past[SIM_KEYS]; /* of the keys, in the same order */
    uint32_t clears, clears_open;
    bool tainted;                     /* a clear ended with an unknown result, and may still be carried out */
    struct late_clear late[SIM_LATE]; /* these clears, unless there were more at a time */
    unsigned late_count;
    uint64_t mended_from, mended_at; /* the last clear or load that succeeded: its beginning and end */
};

/* A cell is a register with concurrent writers and readers. A moment is a place in the order of beginnings
 * and ends of requests. A write that was acknowledged before another write began is gone when the other one
 * is acknowledged. A write with an unknown result may take effect at any time. A read must not return a value
 * that was gone when the read began (Lamport's regular register, "On interprocess communication", 1986). */
struct cell_value {
    uint64_t value; /* 0: none */
    uint64_t from, end, gone;
};

struct cell {
    struct cell_value values[SIM_CELL_VALUES];
    unsigned n;
    uint64_t any,
        any_end; /* as gone and end of a value: it may hold any, because not all had room. any 0: it may not */
    /* its row may have been missing until this moment, by values that are not kept any more */
    uint64_t missing;
};

struct cell_set {
    uint64_t value[SIM_CELL_VALUES];
    unsigned n;
    bool any;
};

struct deal {
    uint64_t holder; /* incarnation of the worker that got the work unit last; 0: none */
    uint32_t round;
    uint32_t sent[SIM_ROUNDS], done[SIM_ROUNDS]; /* reports that were sent, and that were accepted */
};

/* The state of a worker's place at the barrier. */
struct at_barrier {
    bool inside;
    bool ghost;        /* the worker inside died or gave up, and may still be released */
    uint64_t released; /* number of the barrier that it was last released from */
};

/* Owners that the scheduler has decided on, by a view that it has not announced yet. */
struct losses_untold {
    uint64_t view;
    uint16_t owner[RING_PARTITIONS], before[RING_PARTITIONS]; /* now; before its last change */
    /* Of each partition's rows: the last migration whose source was told to pause, and the shard that would own
     * them. */
    uint64_t pausing[RING_PARTITIONS];
    uint16_t target[RING_PARTITIONS];
};

/* What was known when the last load began: the first attempt, if it failed and others followed. */
struct load_begun {
    uint64_t before; /* the moment of the load before that */
    uint32_t clears[SIM_TABLES];
    bool sure[SIM_TABLES]; /* no clear was open */
};

/* What was known when a worker began to load a checkpoint. */
struct load_attempt {
    uint64_t from;
    uint32_t clears[SIM_TABLES];
    bool sure[SIM_TABLES]; /* no clear was open */
    uint64_t acked[SIM_TABLES][SIM_KEYS];
};

#endif
