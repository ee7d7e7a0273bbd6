/*
 * The inside of the simulator: a whole cluster in one thread. A machine is one process on a host of its own,
 * with its own clock, pauses and van. src/node's member slot builds it from the product's own scheduler,
 * members, acceptors, shards and clients. The script of its worker plays the application.
 *
 *     play.c          one schedule from beginning to end: faults, steps, the calm period after them
 *     machine.c       processes: start, crash, restart
 *     script.c        the workers' application: its calls to the scheduler, and when it makes them
 *     ops.c           its requests, and the server's handler
 *     ledger.c        the model of sums: what was pushed, acknowledged, cleared; what a pull may return
 *     cells.c         the model of overwritten rows: which values a read may return
 *     deals.c         the model of the pool: which worker has which work unit
 *     sides.c         nodes that are cut off from the rest together
 *     memory.c        allocations of a process that fail
 *     assertion.c     assertions of the product that fail
 *     migrations.c    partitions without rows that get another owner
 *     client_tasks.c  what the application does on a thread of its own: it saves and loads tables
 *     ckpts.c         checkpoints of the job: who saves and loads them, and that the files are whole
 *     bounds.c        what a checkpoint must hold and may hold, and the model after it is loaded
 *     losses.c        rows whose last copy has died, and that return to a checkpoint
 *     cover.c         (cover_sched.c) transitions of the product's state machines, and the faults before them
 *     judge.c         invariants after each event, and the check of all tables
 *
 * When memory runs out the simulator aborts: a result would mean nothing. Tests: test/sim/test_play.c.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "node/node.h"
#include "sim/cover.h"
#include "sim/env/sim.h"
#include "sim/env/simetcd.h"
#include "sim/env/simfs.h"
#include "sim/fault.h"
#include "sim/play.h"
#include "sim/van/simvan.h"
#include "wire/pool_calls.h"
#include "worker/client.h"

enum {
    SIM_KEYS = 64,    /* rows of each table */
    SIM_OP_KEYS = 12, /* of a request */
    SIM_WIDE = 20,    /* values of a wide row */
    SIM_OP_VALS = SIM_OP_KEYS * SIM_WIDE,
    SIM_RECENT = 64,      /* requests of a customer whose ends are kept */
    SIM_CELL_VALUES = 40, /* values that one cell may hold, as far as is known */
    SIM_STREAMS = 2,      /* streams of the pool, of 3 and 2 work units */
    SIM_UNITS = 3,
    SIM_ROUNDS = 2,
    SIM_DIGITS = 31, /* pushes to a key: each has two bits of a 64-bit sum */
    SIM_PRIORITIES = 2,
    SIM_CUSTOMERS = 2,
    SIM_SERVERS = 2 * SCHEDULE_SERVERS_MAX, /* places: a server that returns may join as one more ... */
    SIM_SHARDS = 2 * SIM_SERVERS,
    SIM_PLACES = 16, /* ... and so may a worker whose death is not known yet */
    SIM_SERIALS = 4096,
    SIM_TERMS = 1024,   /* starts of schedulers */
    SIM_WEIGHT = 8,     /* the weight of a server, until a fault changes it a little */
    SIM_AMIDS = 4,      /* faults that wait for a migration */
    SIM_LATE = 8,       /* failed clears of a table that may still be carried out */
    SIM_QUARANTINE = 32 /* requests whose arrays are watched after their end */
};

/* Requests add to all tables but the last. In the last they overwrite and delete rows. */
enum sim_table { SIM_DENSE, SIM_SPARSE, SIM_VAR, SIM_USER, SIM_ROWS, SIM_CELLS, SIM_TABLES };

struct world;
struct machine;

/* ---- ledger.c ---- */

/* For a shard: the view since which it has owned a key, and the view since which it has not; 0: never. Kept
 * apart from the key, since it is read seldom. */
struct ledger_past {
    uint64_t before[SIM_SHARDS], left[SIM_SHARDS];
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
     * returns (0: not known yet). */
    bool lost;
    uint64_t lost_at, lost_view, lost_acked, back;
};

/* A failed clear. A server that knows that the customer's numbers below `floor` are over does not carry it
 * out. */
struct late_clear {
    uint32_t node, customer;
    uint64_t incarnation, floor;
};

struct ledger_table {
    struct ledger_key keys[SIM_KEYS];  /* ascending */
    struct ledger_past past[SIM_KEYS]; /* their values, in the same order */
    uint32_t clears, clears_open;
    bool tainted;                     /* a clear ended with an unknown result, and may still be carried out */
    struct late_clear late[SIM_LATE]; /* these clears, unless there were more at a time */
    unsigned late_count;
    uint64_t mended_from, mended_at; /* the last clear or load that succeeded: its beginning and end */
};

/* In the order of play.h's counts. */
enum op_kind { OP_PUSH, OP_PULL, OP_PUSHPULL, OP_PUT, OP_DELETE, OP_CLEAR, OP_STAT, OP_SCAN };

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
    bool open, cancelled, again; /* again: a part of it was sent twice or sliced again */
    uint64_t issued_view;        /* the client's view when it was issued ... */
    uint64_t issued_partitions;  /* ... and the last view in which partitions changed owners */
    uint32_t saw_dead;           /* places of servers that were dead in that view, one bit each */
    unsigned after_n;            /* requests that it comes after: these, and all up to `after_all` */
    uint64_t after[2], after_all;
    uint64_t ts, deadline;
    uint64_t from; /* the moment of its issue */
    unsigned n, vals_n;
    uint16_t index[SIM_OP_KEYS];
    uint64_t digit[SIM_OP_KEYS], must[SIM_OP_KEYS];
    uint32_t clears;
    bool certain;
    uint32_t deaths[SIM_SERVERS];
    uint64_t all_must[SIM_KEYS]; /* of a scan, of a stat */
    /* The client's and the shard's view when the scan began that this batch belongs to. */
    uint64_t began, began_must[SIM_KEYS], began_view;
    unsigned shard;
    uint64_t shard_view; /* the shard's own view when a scan of it was issued */
    struct scan_batch *batch;
    struct client_stats stats;
    uint64_t keys[SIM_OP_KEYS]; /* the caller's arrays */
    uint32_t lens[SIM_OP_KEYS];
    uint64_t vals[SIM_OP_VALS];
};

void ledger_init(struct world *w);
/* Sets the owners when the ring is first known, and when it changes. */
void ledger_owners(struct world *w, const struct view *view);
/* Was the shard the key's owner in that view? No, if that was before the key was last given back: then
 * nothing is known. */
bool ledger_owned(const struct ledger_key *key, unsigned shard, uint64_t view);
/* The index of a key; SIM_KEYS: unknown. */
unsigned ledger_index(const struct world *w, enum sim_table table, uint64_t key);
/* The number of values in a row; in SIM_VAR: in a row that exists. */
unsigned ledger_row(enum sim_table table, unsigned index);
/* Fills in keys, digits and the possible answers. False: no digit is left to push. */
bool ledger_issue(struct world *w, struct op *op, struct dice *dice);
void ledger_done(struct world *w, struct op *op, paramo_err status);
/* A checkpoint was loaded while the request was in flight. It may have read the rows before the load brought
 * back what was acknowledged earlier. */
bool ledger_load_between(const struct world *w, const struct op *op);
/* Is all that was written and acknowledged since then present, wherever the key is now? deaths: number of
 * servers that had died then. */
bool ledger_stays(const struct world *w, enum sim_table table, uint64_t from,
                  const uint32_t deaths[SIM_SERVERS]);
/* The process in this place has died, and the sums of its handler with it. */
void ledger_server_died(struct world *w, unsigned place);
/* Is the value possible? must: it has to contain all that was acknowledged. */
void ledger_check(struct world *w, const char *where, enum sim_table table, const struct ledger_key *key,
                  uint64_t value, uint64_t must);
/* A row; 0 values: it does not exist. from: a cell's value that was overwritten before that moment is wrong.
 */
void ledger_row_check(struct world *w, const char *where, enum sim_table table, unsigned index,
                      const uint64_t *vals, unsigned n, uint64_t must, uint64_t from);
/* The arrays belong to the caller again. The caller overwrites them; the library may not touch them. */
void ledger_poison(struct op *op);
void ledger_poisoned(struct world *w, const struct op *op);

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
    bool any; /* not all values had room: it may hold any value */
};

struct cell_set {
    uint64_t value[SIM_CELL_VALUES];
    unsigned n;
    bool any;
};

void cell_init(struct cell *cell);
/* Is there room for another write? */
bool cell_room(struct world *w, struct cell *cell);
void cell_write(struct cell *cell, uint64_t value, uint64_t from);
/* That write was acknowledged at this moment. */
void cell_written(struct cell *cell, uint64_t value, uint64_t from, uint64_t moment);
/* From now on the row may be missing: its server has died. */
void cell_lost(struct world *w, struct cell *cell);
bool cell_may_be(const struct cell *cell, uint64_t value, uint64_t from);
/* All values that it may have held since that moment. */
void cell_now(const struct cell *cell, uint64_t from, struct cell_set *set);
/* One of these values was written to it by a request that began then and has just ended. */
void cell_becomes(struct world *w, struct cell *cell, const struct cell_set *set, uint64_t from);

/* ---- deals.c ---- */

struct deal {
    uint64_t holder; /* incarnation of the worker that got the work unit last; 0: none */
    uint32_t round;
    uint32_t sent[SIM_ROUNDS], done[SIM_ROUNDS]; /* reports that were sent, and that were accepted */
};

/* Does such a work unit exist? */
bool deal_exists(const struct work_unit *unit);
void deal_got(struct machine *m, uint32_t round, const struct work_unit *unit);
void deal_finished(struct machine *m, uint32_t round);
/* A report for a lease that ended with its holder's process. */
void deal_stale(struct machine *m, paramo_err status);
void deal_reported(struct machine *m, const struct work_unit *unit, paramo_err status);

/* ---- sides.c ---- */

/* The machine is cut off from all others. */
void sides_vanish(struct world *w, const struct machine *m, uint64_t ns, size_t fault);
void sides_strike(struct world *w, const struct fault *f, size_t fault);
/* After each event. */
void sides_step(struct world *w);
/* Faults that wait for a migration no longer wait. */
void sides_heal(struct world *w);

/* ---- memory.c ---- */

/* Which allocations of a process fail. */
struct memory {
    uint64_t next; /* allocations until the first failure; 0: none fails */
    uint64_t row;  /* failures in a row from there on */
    size_t fault;
    bool struck;      /* an allocation has failed in this turn */
    uint32_t failed;  /* failures in this process */
    uint64_t last_at; /* the moment of the last failure; outlives the process */
};

/* From now on allocations count for this machine's process; NULL: for none. */
void memory_of(struct machine *m);
/* The product calls the simulator: allocations of the simulator, and of calls that it makes to the product,
 * do not fail. */
void memory_hold(void);
void memory_go_on(void);
void memory_strike(struct machine *m, size_t fault);
/* Has an allocation of this machine's process, or of a server's, failed since that moment? */
bool memory_failed(const struct machine *m, uint64_t from);

/* ---- moves.c ---- */

/* False: no partition can migrate now. */
bool migrations_strike(struct world *w, const struct fault *f);

/* ---- cover.c ---- */

struct cover;
void cover_make(struct machine *m);
void cover_free(struct machine *m);
/* The machine's process has handled an event. */
void cover_watch(struct machine *m);
/* A fault has struck machines a and b. */
void cover_fault(struct world *w, enum fault_kind kind, uint32_t a, uint32_t b);
/* The machine's process ends; killed: in the middle of its work. */
void cover_dies(struct machine *m, bool killed);

/* ---- bounds.c ---- */

struct bounds;
/* What was known when a worker began to load a checkpoint. */
struct load_attempt {
    uint64_t from;
    uint32_t clears[SIM_TABLES];
    bool sure[SIM_TABLES]; /* no clear was open */
    uint64_t acked[SIM_TABLES][SIM_KEYS];
};
/* A checkpoint begins. The caller frees the bounds. */
struct bounds *bounds_begin(struct world *w);
uint64_t bounds_from(const struct bounds *b);
/* Its manifest exists: adds what the checkpoint may hold, for the tables that it has. */
struct bounds *bounds_end(const struct world *w, const struct bounds *begun, const bool has[SIM_TABLES]);
/* From now on each row may hold anything, until a checkpoint is loaded. */
void bounds_load_begins(struct world *w, struct load_attempt *a);
void bounds_loaded(struct world *w, const struct bounds *b, const struct load_attempt *a);
/* The lost rows of a key return to this checkpoint. again: they may return to it a second time, or to another
 * one. */
void bounds_returned(struct world *w, const struct bounds *b, enum sim_table table, unsigned index,
                     bool again);
bool bounds_has(const struct bounds *b, unsigned table);
/* All processes have died, and the next job begins with this checkpoint. */
void bounds_restored(struct world *w, const struct bounds *b);

/* ---- losses.c ---- */

struct shard;
struct shard_table;
/* A view that is newer than any before. The world still has the chains of the view before. */
void losses_came(struct world *w, const struct view *view, uint64_t before);
/* Lost rows return to this checkpoint. */
void losses_back(struct world *w, uint64_t number, const struct bounds *b);
/* A request that began then may have read the key's rows before they were lost. */
bool losses_between(const struct world *w, const struct ledger_key *k, uint64_t from);
/* The key's rows are not restored in that table yet. */
bool losses_open(const struct ledger_key *k, const struct shard *shard, const struct shard_table *st);
/* Another job. */
void losses_forget(struct world *w);

/* ---- ckpts.c ---- */

struct ckpts;
struct scheduler_config;
/* Only if the schedule has checkpoints. */
void ckpts_make(struct world *w);
void ckpts_free(struct world *w);
/* The machine's process begins or ends; its scheduler begins. */
void ckpts_machine(struct machine *m);
void ckpts_machine_dies(struct machine *m);
void ckpts_scheduler(const struct machine *m, struct scheduler_config *config);
/* False: not now. */
bool ckpts_strike(struct machine *m, const struct fault *f);
/* A worker's turn: failed saves and loads are repeated. In the calm period a worker that is about to leave
 * has a checkpoint saved and loaded. True: the worker needs another turn. */
bool ckpts_turn(struct machine *m, bool leaving);
/* After each event. */
void ckpts_check(struct world *w);
/* The moment from which on earlier values of cells are still needed. */
uint64_t ckpts_oldest(const struct world *w);
/* Some rows may be lost since that moment, because a checkpoint was loaded only in part. */
bool ckpts_may_have_lost(const struct world *w, uint64_t from);
/* Is there a checkpoint to which lost rows may return? */
bool ckpts_there(const struct world *w);
/* A view says that the rows are restored. */
void ckpts_returned(struct world *w);
/* Will the restore succeed: is a server left to do it, and is the folder intact? */
bool ckpts_can_return(const struct world *w);
/* The job has begun with a checkpoint. */
bool ckpts_restored(const struct world *w);
/* The faults are over; all processes are about to end. */
void ckpts_calm(struct world *w);
void ckpts_end(struct world *w);
/* The next job. True: it begins with the last checkpoint, and the model becomes what that holds. */
bool ckpts_again(struct world *w, bool wanted);

/* ---- client tasks.c ---- */

struct client_task;

/* A new disk. */
void client_task_disk(struct machine *m, uint64_t seed);
/* Saves or loads a table, by the draw, while the machine does other work; one at a time. */
void client_task_start(struct machine *m, unsigned customer, uint64_t draw);
/* After each event. */
void client_task_step(struct machine *m);
/* The process is dead and its customer closed: the task ends here. */
void client_task_die(struct machine *m);
/* The power of its machine has failed. */
void client_task_power_fails(struct machine *m);
/* Are the files that must be there whole? */
void client_task_check_files(struct machine *m);

/* ---- ops.c ---- */

void op_issue(struct machine *m, unsigned customer);
/* The newest request, if this machine has issued it. */
void op_cancel(struct machine *m);
void op_handler(void *arg, paramo_request *request, const paramo_request_info *info);

/* ---- script.c ---- */

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

/* The state of a worker's place at the barrier. */
struct at_barrier {
    bool inside;
    bool ghost;        /* the worker inside died or gave up, and may still be released */
    uint64_t released; /* number of the barrier that it was last released from */
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
    struct sim_event tick;
};

void script_start(struct machine *m); /* the process is up */
void script_stop(
    struct machine *m); /* it is about to die: the results of its calls and requests no longer count */
void script_joined(struct machine *m);
/* A request has ended. */
void script_wake(struct machine *m);
bool script_over(const struct machine *m);

/* ---- machine.c ---- */

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
    struct sim_event reopen;
    unsigned open;
    /* the last request whose first transmission went to a shard */
    uint64_t first_ts[SIM_SHARDS][SIM_PRIORITIES];
    uint64_t handled_ts[SIM_SHARDS][SIM_PRIORITIES]; /* the last request that a handler received */
    uint64_t view_seen;
    uint64_t last_ts;
    uint64_t failed[SIM_RECENT]; /* timestamps, by slot */
    struct {                     /* a scan that has more rows */
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
    bool drains;         /* it is being drained */
    uint64_t drained_ns; /* ns until it returns after the drain; 0: never */
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

/* ---- judge.c ---- */

void judge_watch_leaves(void *arg, uint32_t from, uint32_t to, const struct van_frame *frame);
void judge_watch_arrives(void *arg, uint32_t from, uint32_t to, const uint8_t head[VAN_HEAD]);
/* The places of servers that are dead in the view, one bit each. */
uint32_t judge_sees_dead(const struct view *view);
/* A request has succeeded: have the requests before it, which it comes after? */
void judge_after(const struct op *op);
/* The request is handled by this shard of the server. */
void judge_handled(struct world *w, struct machine *server, unsigned index, const paramo_request_info *info);
/* first to end: the machines in which something may have run. */
void judge_step(struct world *w, uint32_t first, uint32_t end);
/* last: everything that is still kept must be needed. */
void judge_full(struct world *w, bool last);
void judge_barrier(struct machine *m, uint64_t number);
/* A key is written to etcd. */
void judge_etcd(void *arg, const char *key, const char *value);
extern const char *const sim_table_names[SIM_TABLES];
/* A key's row at the owner (level 0) or a replica of the newest view, if that process is up: at most SIM_WIDE
 * values, *n of them. False: there is no such copy. */
bool judge_row(struct world *w, enum sim_table table, unsigned index, unsigned level, uint64_t *vals,
               unsigned *n);
/* The view that a shard of the newest view has itself; 0: its process is not up. */
uint64_t judge_shard_view(const struct world *w, unsigned shard);
/* The number of members of a partition's chain, without the owner, that have rows of the table. */
unsigned judge_replicas(const struct world *w, enum sim_table table);
/* A server has died in a view, and its rows of this table had no copies. */
bool judge_bereft(const struct world *w, enum sim_table table);
/* The same, and no clear or load that began after it had succeeded when this request began. */
bool judge_may_be_lost(const struct world *w, enum sim_table table, uint64_t from);
/* Have more servers died since each partition had all its copies than the table with the fewest replicas
 * allows, so that rows are lost for good? If not, no chain has lost all its members: deaths make a chain
 * shorter, and a migration replaces one full member by another. */
bool judge_data_lost(const struct world *w);
/* May requests fail because a server is dead? They may if no other server has its rows and it does not
 * return. */
bool judge_may_refuse(const struct world *w);
/* May that many servers have died? */
bool judge_enough(const struct world *w, unsigned gone);
/* The machine may hold the last copy of some rows. */
bool judge_needs(const struct world *w, const struct machine *server);
/* A cell's row of two values: 0, or the value that was written. A torn row is a violation. */
uint64_t judge_cell(struct world *w, const char *where, const uint64_t vals[2]);
void play_hit(struct world *w, size_t fault);
void judge_status(struct op *op, paramo_err status);
/* The first violation counts. */
void judge_broken(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- the world ---- */

/* Faults that wait for a packet of a link, oldest first: indices into the schedule, linked by world.pending.
 */
struct line {
    size_t first, last; /* SIZE_MAX: none */
};

struct road {
    struct simnet_link *link;
    uint64_t packets, seed;
    struct line drop, repeat, late;
    uint64_t cut_until, lag_until, lag_ns, slow_until;
    size_t cut_by, lag_by, slow_by; /* which faults */
};

struct pending {
    size_t next;
    uint64_t left; /* packets, or ns */
};

struct world {
    const struct schedule *schedule;
    struct sim *sim;
    struct sim_turns turns;
    struct simnet *net;
    struct machine machines[SCHEDULE_NODES_MAX];
    uint32_t count;
    struct machine *workers;       /* the first */
    struct simetcd *etcd;          /* schedule.meta */
    uint32_t etcd_term;            /* the scheduler that began to lead last */
    bool term_told[SIM_TERMS];     /* a scheduler has started with this store */
    uint64_t term_view[SIM_TERMS]; /* the newest of its views that any node has seen */
    struct road links[SCHEDULE_NODES_MAX][SCHEDULE_NODES_MAX];
    struct simnet_node *nodes[SCHEDULE_NODES_MAX];
    struct dice dice; /* the application's */
    uint64_t events;
    uint64_t answers; /* frames that have arrived */
    uint64_t step;    /* the place in the list of faults (play.c) */
    size_t next_fault;
    size_t waiting; /* faults that wait for a packet */
    size_t struck;
    size_t amid[SIM_AMIDS]; /* faults that wait for a migration's pause */
    unsigned amid_count;
    uint32_t amid_source; /* step of the last fault that struck */
    bool *hit;            /* for each fault */
    struct pending *pending;
    bool calm, complete, scheduler_lost, over;
    bool gathered;        /* the workers of this job have met at their first barrier */
    bool scheduler_stood; /* a process was stopped, or a clock jumped */
    bool jumped;          /* a node's clock has jumped */
    uint64_t calm_since;
    uint32_t jobs, disks; /* jobs that have begun, and the room for them */
    paramo_err over_status;
    uint64_t over_view; /* the newest view of the scheduler that said so */
    bool emptying;      /* a scheduler has announced the end, and empties its store before it reports so */
    paramo_err emptying_status;
    /* The same of the job before this one, which the store may still hold. */
    uint64_t past_view;
    paramo_err past_status;

    struct ckpts *ckpts; /* NULL: the schedule has none */
    bool renew;          /* all processes are to die */
    /* a checkpoint is being loaded, or was loaded only in part: rows may hold anything */
    bool loading;
    /* the job begins with a checkpoint, and no worker has joined: servers may have no rows yet */
    bool restoring;
    uint64_t loaded_at; /* the moment of the last load */

    struct ledger_table ledger[SIM_TABLES];
    uint64_t moment;
    struct cell cells[SIM_KEYS];            /* of SIM_CELLS */
    struct cell values[SCHEDULE_NODES_MAX]; /* small values at the scheduler, one of each worker */
    uint64_t values_put;
    struct deal deals[SIM_STREAMS][SIM_UNITS];
    uint64_t death_view[SIM_SERVERS]; /* the last view in which the server of this place had died */
    uint64_t lost_at;    /* the last view in which a server had died, or another had come in its place */
    uint64_t loss_first; /* the first fault of the present burst */
    uint64_t loss_view;  /* lost_at of the newest view: lost rows are being restored */
    uint64_t given_up;   /* the moment since which some lost rows do not return */
    /* a server was alive that a view declared dead: it may not know, and acknowledge requests */
    uint64_t ghost_at;
    bool deaths_seen; /* a server was dead in a view */
    bool pool_leaks;  /* a failed call may have got a work unit */
    uint32_t migrations;
    uint32_t counts[PLAY_COUNTS_COUNT];
    struct coverage coverage;
    uint32_t deaths[SIM_SERVERS]; /* starts of server processes */
    uint32_t ring_shards;
    struct op *free_ops, *ops; /* all open ones */
    struct op *quarantine[SIM_QUARANTINE];
    unsigned quarantine_at;
    uint32_t serial;        /* numbers requests, in all jobs */
    uint32_t serial_before; /* the same, when this job began */
    struct op *by_serial[SIM_SERIALS];
    struct at_barrier barrier[SIM_PLACES]; /* by place */
    uint64_t sums_sent, sums_acked;
    uint64_t newest_view, view_hash;
    uint32_t looks; /* full checks that were due */
    bool stirred;   /* an event since the last check may have changed rows */
    uint32_t newest_tables;
    uint64_t holder[SIM_SERVERS];    /* incarnations of the servers, in the newest view */
    bool left[SIM_SERVERS];          /* the last server of this place had left without rows */
    bool recovered;                  /* a server has returned without its rows */
    uint64_t copies_at[SIM_SERVERS]; /* of the servers that are alive in it; 0: none */
    uint32_t gone;                   /* deaths since each partition had all its copies in a view */
    struct ring_chains chains;       /* of the newest view, as is ... */
    uint64_t owner_gone[RING_PARTITIONS];
    uint32_t successions; /* views in which partitions got another owner */

    char broken[512];
};

#define sim_must(err) ((void)((err) ? (abort(), 0) : 0))

#endif
