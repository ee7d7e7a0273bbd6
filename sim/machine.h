/*
 * Processes: start, crash, restart, drain; what a process has, and what outlives it. It must never judge.
 * Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include "node/node.h"
#include "sim/clocks.h"
#include "sim/memory.h"
#include "sim/overdue.h"
#include "sim/reals.h"
#include "sim/script.h"
#include "sim/sizes.h"

struct world;
struct scheduler;
struct http;
struct simfs;
struct disk;
struct cover;
struct client_task;

struct late_answer {
    struct late_answer *next;
    struct sim_event event;
    struct machine *machine;
    paramo_request *request;
    const paramo_request_info *info;
    const uint64_t *sums; /* of the shard that received it */
};

struct customer {
    paramo_worker *worker; /* NULL: not open */
    bool closing;          /* by the application: its requests in flight end */
    struct machine *machine;
    struct customer_clock clock;
    struct sim_event reopen;
    unsigned open;
    /* the last request whose first transmission went to a shard */
    uint64_t first_ts[SIM_SHARDS][SIM_PRIORITIES];
    uint64_t handled_ts[SIM_SHARDS][SIM_PRIORITIES]; /* the last request that a handler received */
    uint64_t view_seen;
    uint64_t last_ts;
    struct reals_error pushed_error, pulled_error;
    uint64_t last_keys[SIM_TABLES]; /* of the last request with keys, as bits */
    uint64_t failed[SIM_RECENT];    /* timestamps, by slot */
    struct {                        /* a scan that has more rows */
        bool more;
        enum sim_table table;
        unsigned shard;
        uint32_t id;
        uint64_t cursor, from, view, must[SIM_KEYS];
    } scan;
};

struct machine {
    struct world *world;
    uint32_t node;       /* in the schedule */
    uint32_t role, rank; /* among the machines of its role */
    int place;           /* the rank that the cluster gave it; -1 before; a latecomer may get another's */
    char name[8];
    struct sim_host *host;
    bool up, dying, gone; /* it will not be started again */
    struct van *van;
    paramo_node *made;
    struct memory memory;
    struct sim_event restart;
    enum member_slot_state seen;
    struct cover *cover; /* its state machines */
    uint64_t view_seen, shard_view_seen[2];
    bool declared_dead, never_ended;
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
    struct customer customers[SIM_CUSTOMERS];
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
    struct simfs *files; /* in a folder; else in etcd */
    struct http *http;   /* of the store */
    uint32_t term;       /* at its last start */
    /* The end of a job that it found at its start, and that job's view. */
    bool found_end;
    paramo_err found_status;
    uint64_t found_view;
    bool cannot_start; /* its store has failed */
    bool deposed;      /* another scheduler leads */
    bool disk_fails;
    uint64_t disk_takes, disk_slow_until;
    size_t disk_slow_by;
};

void machine_start(struct machine *m);
void machine_start_in(struct machine *m, uint64_t ns);
/* As kill -9. again_ns 0: it does not come back. */
void machine_kill(struct machine *m, uint64_t again_ns);
/* After each event: joins and ends. */
void machine_tick(struct machine *m);
/* The same for the scheduler: its power may have failed in the middle of a write. */
void machine_scheduler_tick(struct machine *m);
/* The newest view of a scheduler whose job ends or has ended; else 0. */
uint64_t machine_end_view(const struct machine *m);
/* The scheduler that leads, as far as the simulator can tell; NULL: none at present. */
struct scheduler *world_scheduler(const struct world *w);
void machine_open_customers(struct machine *m);
/* The application closes a customer, and opens it again after this time. False: it is not open, or busy with
 * a client task. */
bool machine_close_customer(struct machine *m, unsigned customer, uint64_t ns);
/* The server is drained, leaves, and returns after this time; 0: never. */
bool machine_drain(struct machine *m, uint64_t ns);
struct member *machine_member(const struct machine *m);
bool machine_joined(const struct machine *m);

#endif
