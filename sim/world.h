/*
 * The inside of the simulator: a whole cluster in one thread. A machine is one process on a host of its own
 * (its clock, its pauses) with its own van; it is put together by src/node's member slot from the product's
 * own scheduler, members, acceptors, shards and clients. Its worker's script plays the application.
 *
 *     play.c     one schedule from beginning to end: faults, steps, the calm that follows
 *     machine.c  processes: start, crash, restart
 *     script.c   what the workers' application does: its calls to the scheduler, when it does what
 *     ops.c      its requests, and the server's handler
 *     ledger.c   the model of what is added: what was pushed, acknowledged, cleared; what a pull may answer
 *     cells.c    the model of what is overwritten: which values a read may answer
 *     deals.c    the model of the pool: which part is whose
 *     sides.c    nodes that are cut off from the rest together
 *     memory.c   allocations of a process that fail
 *     moves.c    partitions that hold nothing get another owner
 *     client tasks.c  what the application does on a thread of its own: it saves and loads tables
 *     ckpts.c    checkpoints of the job: who has them taken and loaded, and that what is there is whole
 *     bounds.c   what one must hold, and may, and what the model is when it is loaded
 *     losses.c   rows whose last copy has died, and that go back to one
 *     cover.c    (cover_sched.c) which transitions the product's state machines made, and after which faults
 *     judge.c    invariants after each event, and the full look at all tables
 *
 * Everything aborts when memory runs out: a simulation's result would mean nothing. Tests:
 * test/sim/test_play.c.
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
    SIM_KEYS = 64,    /* of each table */
    SIM_OP_KEYS = 12, /* of a request */
    SIM_WIDE = 20,    /* values of a wide row */
    SIM_OP_VALS = SIM_OP_KEYS * SIM_WIDE,
    SIM_RECENT = 64,      /* requests of a customer whose ends are remembered */
    SIM_CELL_VALUES = 40, /* that one cell may hold, as far as is known */
    SIM_STREAMS = 2,      /* of the pool, of 3 and 2 parts */
    SIM_UNITS = 3,
    SIM_ROUNDS = 2,
    SIM_DIGITS = 31, /* pushes to a key: two bits each in a 64-bit sum */
    SIM_PRIORITIES = 2,
    SIM_CUSTOMERS = 2,
    SIM_SERVERS = 2 * SCHEDULE_SERVERS_MAX, /* places: one that comes again may be one more ... */
    SIM_SHARDS = 2 * SIM_SERVERS,
    SIM_PLACES = 16, /* ... and so may a worker, while its death is not known */
    SIM_SERIALS = 4096,
    SIM_TERMS = 1024,   /* starts of schedulers */
    SIM_WEIGHT = 8,     /* of a server, until a fault changes it by a few */
    SIM_AMIDS = 4,      /* partitions that wait for a migration */
    SIM_LATE = 8,       /* failed clears of a table that may yet be done */
    SIM_QUARANTINE = 32 /* requests whose arrays are watched after their end */
};

/* To all but the last is added; in that one rows are overwritten and deleted. */
enum sim_table { SIM_DENSE, SIM_SPARSE, SIM_VAR, SIM_USER, SIM_ROWS, SIM_CELLS, SIM_TABLES };

struct world;
struct machine;

/* ---- ledger.c ---- */

/* The views since which a shard was the owner of a key until it was not any more, and since which it is not;
 * 0: it never was. Asked for seldom: beside the key it would part those that are looked at together. */
struct ledger_past {
    uint64_t before[SIM_SHARDS], left[SIM_SHARDS];
};

/* The value of a key is a sum of one digit of two bits per push: 0 not applied, 1 applied, more: twice. */
struct ledger_key {
    uint64_t key;
    uint64_t sent, must; /* digits: some of these, all of these */
    uint64_t acked;      /* of those sent: the push has ended well */
    uint64_t gone;       /* none of these any more: a checkpoint was loaded that has them not */
    unsigned used;       /* digits given */
    unsigned partition;
    uint64_t died_at; /* the moment that its owner was last seen dead; 0: never */
    int shard;        /* owner: index in the view, or -1 before there is one */
    uint64_t came;    /* ... the view since which it is */
    struct ledger_past *past;
    /* Its last copy has died (losses.c): a view says so still; the moment and the view in which it did last
     * (0: never), what was acknowledged then, and the checkpoint that it goes back to (0: none is known yet).
     */
    bool lost;
    uint64_t lost_at, lost_view, lost_acked, back;
};

/* A clear that failed: no server does it any more that knows that the customer's numbers below `floor` are
 * over. */
struct late_clear {
    uint32_t node, customer;
    uint64_t incarnation, floor;
};

struct ledger_table {
    struct ledger_key keys[SIM_KEYS];  /* ascending */
    struct ledger_past past[SIM_KEYS]; /* theirs, in some order */
    uint32_t clears, clears_open;
    bool tainted;                     /* a clear ended without saying whether it was done, and may yet be */
    struct late_clear late[SIM_LATE]; /* those, unless there have been more at a time */
    unsigned late_count;
    uint64_t mended_from, mended_at; /* the last clear, or load, that ended well: its beginning and end */
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
    bool open, cancelled, again; /* again: something of it was sent twice or cut anew */
    uint64_t issued_view;        /* its client's view when it was issued ... */
    uint64_t issued_partitions;  /* ... and the last in which partitions had changed hands */
    uint32_t saw_dead;           /* servers' places that were dead then in its client's view, a bit each */
    unsigned after_n;            /* requests that it comes after: these, and all up to that one */
    uint64_t after[2], after_all;
    uint64_t ts, deadline;
    uint64_t from; /* the moment it was issued */
    unsigned n, vals_n;
    uint16_t index[SIM_OP_KEYS];
    uint64_t digit[SIM_OP_KEYS], must[SIM_OP_KEYS];
    uint32_t clears;
    bool certain;
    uint32_t deaths[SIM_SERVERS];
    uint64_t all_must[SIM_KEYS]; /* a scan's, a stat's */
    /* The same, and the shard's view, when the scan began of which it asks for a batch. */
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
/* Owners, once the ring is known, and when it is another. */
void ledger_owners(struct world *w, const struct view *view);
/* Was the shard the key's owner by that view? Of what was before it was last given back nothing is known: no.
 */
bool ledger_owned(const struct ledger_key *key, unsigned shard, uint64_t view);
/* A key's index; SIM_KEYS: there is no such key. */
unsigned ledger_index(const struct world *w, enum sim_table table, uint64_t key);
/* How many values a row has; in SIM_VAR: once it is there. */
unsigned ledger_row(enum sim_table table, unsigned index);
/* Fills keys, digits and what may be answered; false: nothing is left to push. */
bool ledger_issue(struct world *w, struct op *op, struct dice *dice);
void ledger_done(struct world *w, struct op *op, paramo_err status);
/* While the request was out a checkpoint was loaded: it may have found the rows while they were taken out, of
 * which the checkpoint has brought back what was acknowledged before both. */
bool ledger_load_between(const struct world *w, const struct op *op);
/* Is what was written since then, and acknowledged, there, wherever its key is now? deaths: of servers, then.
 */
bool ledger_stays(const struct world *w, enum sim_table table, uint64_t from,
                  const uint32_t deaths[SIM_SERVERS]);
/* The process in this place is gone: its handler's sums are. */
void ledger_server_died(struct world *w, unsigned place);
/* Is a key's value possible? must: with all that was acknowledged. */
void ledger_check(struct world *w, const char *where, enum sim_table table, const struct ledger_key *key,
                  uint64_t value, uint64_t must);
/* A row, 0 values if it is not there; from: cells, what was written over before that moment is wrong. */
void ledger_row_check(struct world *w, const char *where, enum sim_table table, unsigned index,
                      const uint64_t *vals, unsigned n, uint64_t must, uint64_t from);
/* The arrays belong to the caller again: he writes over them; the library may not any more. */
void ledger_poison(struct op *op);
void ledger_poisoned(struct world *w, const struct op *op);

/* ---- cells.c ----
 * A cell is a register that several write and read at a time. A moment is a place in the order of beginnings
 * and ends. A write that ended well before another began is gone when that one has ended well; one whose end
 * is not known may come into force at any time. What a read answers must not have been gone when it began
 * (Lamport's regular register, "On interprocess communication", 1986). */

struct cell_value {
    uint64_t value; /* 0: none */
    uint64_t from, end, gone;
};

struct cell {
    struct cell_value values[SIM_CELL_VALUES];
    unsigned n;
    bool any; /* there was no room for all: it may have any */
};

struct cell_set {
    uint64_t value[SIM_CELL_VALUES];
    unsigned n;
    bool any;
};

void cell_init(struct cell *cell);
/* Is there room for one more write? */
bool cell_room(struct world *w, struct cell *cell);
void cell_write(struct cell *cell, uint64_t value, uint64_t from);
/* That write has ended well at this moment. */
void cell_written(struct cell *cell, uint64_t value, uint64_t from, uint64_t moment);
/* The value may be none from now on: its server has died. */
void cell_lost(struct world *w, struct cell *cell);
bool cell_may_be(const struct cell *cell, uint64_t value, uint64_t from);
/* All that it may have held since. */
void cell_now(const struct cell *cell, uint64_t from, struct cell_set *set);
/* One of these was written to it, by what began then and has just ended. */
void cell_becomes(struct world *w, struct cell *cell, const struct cell_set *set, uint64_t from);

/* ---- deals.c ---- */

struct deal {
    uint64_t holder; /* incarnation of who was dealt the part last; 0: nobody */
    uint32_t round;
    uint32_t sent[SIM_ROUNDS], done[SIM_ROUNDS]; /* reports that were made, and that were taken */
};

/* Is there such a part? */
bool deal_exists(const struct work_unit *unit);
void deal_got(struct machine *m, uint32_t round, const struct work_unit *unit);
void deal_finished(struct machine *m, uint32_t round);
/* A report of a lease that ended with the process that had it. */
void deal_stale(struct machine *m, paramo_err status);
void deal_reported(struct machine *m, const struct work_unit *unit, paramo_err status);

/* ---- sides.c ---- */

/* It reaches nobody, and nobody reaches it. */
void sides_vanish(struct world *w, const struct machine *m, uint64_t ns, size_t fault);
void sides_strike(struct world *w, const struct fault *f, size_t fault);
/* After each event. */
void sides_step(struct world *w);
/* Those that wait for a migration do so no more. */
void sides_heal(struct world *w);

/* ---- memory.c ---- */

/* A process's: which allocations of it fail. */
struct memory {
    uint64_t next; /* allocations until the first; 0: none is to fail */
    uint64_t row;  /* that fail from there on */
    size_t fault;
    bool struck;      /* one has failed in this turn */
    uint32_t failed;  /* of this process */
    uint64_t last_at; /* the moment of the last; it outlives the process */
};

/* From now on what is allocated is that of this machine's process; NULL: nobody's. */
void memory_of(struct machine *m);
/* The product calls the simulator: what that allocates, and asks of the product, does not fail. */
void memory_hold(void);
void memory_go_on(void);
void memory_strike(struct machine *m, size_t fault);
/* Of this machine's process, or of a server's, one has failed since. */
bool memory_failed(const struct machine *m, uint64_t from);

/* ---- moves.c ---- */

/* False: nothing can be moved now. */
bool migrations_strike(struct world *w, const struct fault *f);

/* ---- cover.c ---- */

struct cover;
void cover_make(struct machine *m);
void cover_free(struct machine *m);
/* Its process has had an event. */
void cover_watch(struct machine *m);
/* One has struck machine a, and b. */
void cover_fault(struct world *w, enum fault_kind kind, uint32_t a, uint32_t b);
/* Its process ends; killed: in the middle of what it does. */
void cover_dies(struct machine *m, bool killed);

/* ---- bounds.c ---- */

struct bounds;
/* What was known when somebody began to load one. */
struct load_attempt {
    uint64_t from;
    uint32_t clears[SIM_TABLES];
    bool sure[SIM_TABLES]; /* no clear was open */
    uint64_t acked[SIM_TABLES][SIM_KEYS];
};
/* A checkpoint begins; it is the caller's to free. */
struct bounds *bounds_begin(struct world *w);
uint64_t bounds_from(const struct bounds *b);
/* Its manifest is there: the same with what it may hold, of the tables that it has. */
struct bounds *bounds_end(const struct world *w, const struct bounds *begun, const bool has[SIM_TABLES]);
/* From now on any row may be any one's, until one has been loaded. */
void bounds_load_begins(struct world *w, struct load_attempt *a);
void bounds_loaded(struct world *w, const struct bounds *b, const struct load_attempt *a);
/* A key's rows, which are lost, go back to it; again: to this one or to another. */
void bounds_returned(struct world *w, const struct bounds *b, enum sim_table table, unsigned index,
                     bool again);
bool bounds_has(const struct bounds *b, unsigned table);
/* Everybody has died, and begins anew with it. */
void bounds_restored(struct world *w, const struct bounds *b);

/* ---- losses.c ---- */

struct shard;
struct shard_table;
/* A newer view than any before; the world still has that one's chains. */
void losses_came(struct world *w, const struct view *view, uint64_t before);
/* What is lost goes back to this checkpoint. */
void losses_back(struct world *w, uint64_t number, const struct bounds *b);
/* What began then may have met the key's rows as they were before they were lost. */
bool losses_between(const struct world *w, const struct ledger_key *k, uint64_t from);
/* The key's rows are not in that table yet. */
bool losses_open(const struct ledger_key *k, const struct shard *shard, const struct shard_table *st);
/* Another job. */
void losses_forget(struct world *w);

/* ---- ckpts.c ---- */

struct ckpts;
struct scheduler_config;
/* If the schedule has them. */
void ckpts_make(struct world *w);
void ckpts_free(struct world *w);
/* A machine's process begins, ends; its scheduler begins. */
void ckpts_machine(struct machine *m);
void ckpts_machine_dies(struct machine *m);
void ckpts_scheduler(const struct machine *m, struct scheduler_config *config);
/* False: not now. */
bool ckpts_strike(struct machine *m, const struct fault *f);
/* It is a worker's turn: what has failed is asked for again; one that is about to leave sees one taken and
 * loaded when it is calm. True: it is to come again. */
bool ckpts_turn(struct machine *m, bool leaving);
/* After each event. */
void ckpts_check(struct world *w);
/* The moment from which on what cells held is still asked for. */
uint64_t ckpts_oldest(const struct world *w);
/* Some rows may be lost, or may have been since, because a checkpoint was loaded in part. */
bool ckpts_may_have_lost(const struct world *w, uint64_t from);
/* Is there one to which what is lost may go back? */
bool ckpts_there(const struct world *w);
/* A view says that it has. */
void ckpts_returned(struct world *w);
/* Does it, whatever happens: is somebody left to have it, and the folder as it should be? */
bool ckpts_can_return(const struct world *w);
/* The job has begun with one. */
bool ckpts_restored(const struct world *w);
/* The faults are over; all is. */
void ckpts_calm(struct world *w);
void ckpts_end(struct world *w);
/* The next job; true: it begins with the last one, and the model is what that has. */
bool ckpts_again(struct world *w, bool wanted);

/* ---- client tasks.c ---- */

struct client_task;

/* A new disk. */
void client_task_disk(struct machine *m, uint64_t seed);
/* Saves or loads a table, by the draw, beside what else the machine does; one at a time. */
void client_task_start(struct machine *m, unsigned customer, uint64_t draw);
/* After each event. */
void client_task_step(struct machine *m);
/* Its process is dead, and its customer closed: what it did ends here. */
void client_task_die(struct machine *m);
/* Its machine's power has. */
void client_task_power_fails(struct machine *m);
/* Are the files that must be there whole? */
void client_task_check_files(struct machine *m);

/* ---- ops.c ---- */

void op_issue(struct machine *m, unsigned customer);
/* The newest request, if it is this machine's. */
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
    SCRIPT_NEXT,  /* part of the pool */
    SCRIPT_DONE,  /* with it */
    SCRIPT_STALE, /* the same, of a part that has passed to others */
    SCRIPT_PUT,   /* a value at the scheduler */
    SCRIPT_GET,
    SCRIPT_READ,
    SCRIPT_LEAVE,
    SCRIPT_GONE
};

/* What is known of a worker's place at the barrier. */
struct at_barrier {
    bool inside;
    bool ghost;        /* who was inside died or gave up, and may be released yet */
    uint64_t released; /* number of the last that it was released from */
};

struct script {
    enum script_step step;
    struct member_call call;
    bool calling;
    unsigned tables; /* opened */
    unsigned ops;    /* issued */
    unsigned calm_ops;
    uint64_t silent_until;
    uint64_t idle; /* ns until the next look whether a request may be issued: none could; 0: one was */
    bool lost;     /* the last request found a server dead: no hurry with the next */
    double sum_at_least;
    uint32_t pool_round;
    bool holds; /* a part */
    bool none_now;
    struct work_unit unit;
    unsigned kv_of; /* whose value is asked for */
    uint64_t kv_value, kv_from;
    struct sim_event tick;
};

void script_start(struct machine *m); /* the process is up */
void script_stop(
    struct machine *m); /* it is about to die: what its calls and requests answer counts no more */
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
    const uint64_t *sums; /* of the shard that was given it */
};

struct customer {
    paramo_worker *worker; /* NULL: not open */
    bool closing;          /* by the application: what is in flight ends */
    struct machine *machine;
    struct sim_event reopen;
    unsigned open;
    uint64_t first_ts[SIM_SHARDS][SIM_PRIORITIES];   /* the last first transmission to a shard */
    uint64_t handled_ts[SIM_SHARDS][SIM_PRIORITIES]; /* the last that a handler was given */
    uint64_t view_seen;
    uint64_t last_ts;
    uint64_t failed[SIM_RECENT]; /* timestamps, at their place */
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
    int place;           /* the rank that the cluster gave it, -1 before; a latecomer may get another's */
    char name[8];
    struct sim_host *host;
    bool up, dying, gone; /* gone: it will not be started again */
    struct van *van;
    paramo_node *made;
    struct memory memory;
    struct sim_event restart;
    enum member_slot_state seen;
    struct cover *cover; /* its state machines */
    uint64_t view_seen, shard_view_seen[2];
    bool declared_dead, never_ended;
    bool drains;         /* it was asked to give away what it has */
    uint64_t drained_ns; /* until it comes again then; 0: never */
    struct member_call drain;
    /* The handler's, by shard: a push without an answer yet whose partitions have moved is handled by their
     * new owner, too, which may be another shard of the same process. */
    uint64_t sums[2][SIM_KEYS];
    struct late_answer *late;
    struct script script; /* workers */
    bool has_stale;       /* the process before held a part when it died: its lease is worth nothing */
    struct work_unit stale;
    struct customer customers[SIM_CUSTOMERS];
    struct client_table tables[SIM_TABLES];
    struct client_task *client_task; /* NULL: none */
    unsigned client_task_customer;
    uint64_t client_task_from;
    struct disk *disk;   /* a worker's; it outlives the process */
    struct disk *folder; /* the others': its way to the checkpoints; NULL: there are none */
    struct {
        bool begun, there;       /* a save has been; one has been reported */
        uint64_t must[SIM_KEYS]; /* what each row has in the file */
    } saved[SIM_TABLES];
    /* The scheduler's, if it keeps its state. */
    struct simfs *files; /* a folder's; else in etcd */
    struct http *http;   /* the store's */
    uint32_t term;       /* of its last start */
    /* What it found when it started: the end of a job, and the view of then. */
    bool found_end;
    paramo_err found_status;
    uint64_t found_view;
    bool cannot_start; /* its store has not */
    bool deposed;      /* another leads */
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
/* A scheduler's newest view, if its job ends, or has ended; else 0. */
uint64_t machine_end_view(const struct machine *m);
/* The one that leads, as far as can be known; NULL: there is none at present. */
struct scheduler *world_scheduler(const struct world *w);
void machine_open_customers(struct machine *m);
/* The application closes one, and opens it again after this time. False: it is not open, or at a client task.
 */
bool machine_close_customer(struct machine *m, unsigned customer, uint64_t ns);
/* Others are to take what the server has; then it is gone for this time; 0: for good. */
bool machine_drain(struct machine *m, uint64_t ns);
struct member *machine_member(const struct machine *m);
bool machine_joined(const struct machine *m);

/* ---- judge.c ---- */

void judge_watch_leaves(void *arg, uint32_t from, uint32_t to, const struct van_frame *frame);
void judge_watch_arrives(void *arg, uint32_t from, uint32_t to, const uint8_t head[VAN_HEAD]);
/* The places of servers that are dead in it, a bit each. */
uint32_t judge_sees_dead(const struct view *view);
/* It has ended well: has what it comes after? */
void judge_after(const struct op *op);
/* By this shard of the server. */
void judge_handled(struct world *w, struct machine *server, unsigned index, const paramo_request_info *info);
/* first to end: the machines in which something may have run. */
void judge_step(struct world *w, uint32_t first, uint32_t end);
/* last: what is kept must be due. */
void judge_full(struct world *w, bool last);
void judge_barrier(struct machine *m, uint64_t number);
/* A key is put in etcd. */
void judge_etcd(void *arg, const char *key, const char *value);
extern const char *const sim_table_names[SIM_TABLES];
/* A key's row at the owner (level 0) or a replica of the newest view, if that process is up: SIM_WIDE values
 * at most, how many in *n; false: there is none to look at. */
bool judge_row(struct world *w, enum sim_table table, unsigned index, unsigned level, uint64_t *vals,
               unsigned *n);
/* The view that a shard of the newest view goes by itself; 0: its process is not up. */
uint64_t judge_shard_view(const struct world *w, unsigned shard);
/* Members of a partition's chain beside the owner that have rows of the table. */
unsigned judge_replicas(const struct world *w, enum sim_table table);
/* A server has died in a view, and what it had of this table had no copies. */
bool judge_bereft(const struct world *w, enum sim_table table);
/* The same, and since then no clear (nor load) that began behind it had ended well when this began. */
bool judge_may_be_lost(const struct world *w, enum sim_table table, uint64_t from);
/* More servers have died since each partition had all its copies than may: than a table that has any has
 * replicas; and what is lost with them does not come back. With no more of them no chain has lost all its
 * members: deaths alone make it shorter, a move only puts another full member in one's place. */
bool judge_data_lost(const struct world *w);
/* May requests end because a server is dead? Neither have others what it had, nor does it come back. */
bool judge_may_refuse(const struct world *w);
/* May so many have died? */
bool judge_enough(const struct world *w, unsigned gone);
/* It may have a copy, and when it dies too many may have died. */
bool judge_needs(const struct world *w, const struct machine *server);
/* A cell's row, which has two values: 0, or what was written; broken if it is torn. */
uint64_t judge_cell(struct world *w, const char *where, const uint64_t vals[2]);
void play_hit(struct world *w, size_t fault);
void judge_status(struct op *op, paramo_err status);
/* The first violation counts. */
void judge_broken(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- the world ---- */

/* Faults that each wait for a packet of a link, oldest first: indices into the schedule, linked by
 * world.pending. */
struct line {
    size_t first, last; /* SIZE_MAX: nobody */
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
    uint32_t etcd_term;            /* who has begun to lead last */
    bool term_told[SIM_TERMS];     /* a scheduler has started with it */
    uint64_t term_view[SIM_TERMS]; /* the newest of its views that anybody has seen */
    struct road links[SCHEDULE_NODES_MAX][SCHEDULE_NODES_MAX];
    struct simnet_node *nodes[SCHEDULE_NODES_MAX];
    struct dice dice; /* the application's */
    uint64_t events;
    uint64_t answers; /* that have arrived */
    uint64_t step;    /* where the list of faults is (play.c) */
    size_t next_fault;
    size_t waiting; /* faults that wait for a packet */
    size_t struck;
    size_t amid[SIM_AMIDS]; /* faults that wait for a migration's pause */
    unsigned amid_count;
    uint32_t amid_source; /* of the last that was struck in it */
    bool *hit;            /* of each fault */
    struct pending *pending;
    bool calm, complete, scheduler_lost, over;
    bool gathered;        /* the workers of this job have, at their first barrier */
    bool scheduler_stood; /* its process was stopped, or its clock jumped */
    bool jumped;          /* somebody's clock has */
    uint64_t calm_since;
    uint32_t jobs, disks; /* begun, and made for them */
    paramo_err over_status;
    uint64_t over_view; /* the newest of the scheduler that said so */
    bool emptying;      /* a scheduler has told all the end, and empties its store before it says so here */
    paramo_err emptying_status;
    /* The same of the job before this one, which may be in the store still. */
    uint64_t past_view;
    paramo_err past_status;

    struct ckpts *ckpts; /* NULL: none are taken */
    bool renew;          /* everybody is to die */
    bool loading;        /* one is being loaded, or was not loaded whole: rows are as they may be */
    bool restoring;      /* the job begins with one, and no worker has joined: servers may have no rows yet */
    uint64_t loaded_at;  /* the moment one was loaded last */

    struct ledger_table ledger[SIM_TABLES];
    uint64_t moment;
    struct cell cells[SIM_KEYS];            /* of SIM_CELLS */
    struct cell values[SCHEDULE_NODES_MAX]; /* at the scheduler, one of each worker */
    uint64_t values_put;
    struct deal deals[SIM_STREAMS][SIM_UNITS];
    uint64_t death_view[SIM_SERVERS]; /* the last view in which the one of this place had died */
    uint64_t lost_at;    /* ... in which one was dead that had not been, or another came in its place */
    uint64_t loss_first; /* the first of those that go on now */
    uint64_t loss_view;  /* what is lost is about to come back, says the newest view: its lost_at */
    uint64_t given_up;   /* the moment since which something that is lost does not come back */
    uint64_t ghost_at;   /* a server was up that a view had dead: it may not know, and acknowledge */
    bool deaths_seen;    /* some server was dead in a view */
    bool pool_leaks;     /* a call may have taken a part with it that nobody knows of */
    uint32_t migrations;
    uint32_t counts[PLAY_COUNTS_COUNT];
    struct coverage coverage;
    uint32_t deaths[SIM_SERVERS]; /* of server processes */
    uint32_t ring_shards;
    struct op *free_ops, *ops; /* all that are open */
    struct op *quarantine[SIM_QUARANTINE];
    unsigned quarantine_at;
    uint32_t serial;        /* of requests, in all jobs */
    uint32_t serial_before; /* the same, when this job began */
    struct op *by_serial[SIM_SERIALS];
    struct at_barrier barrier[SIM_PLACES]; /* by place */
    uint64_t sums_sent, sums_acked;
    uint64_t newest_view, view_hash;
    uint32_t looks; /* full ones that were due */
    bool stirred;   /* something came since the last that may change rows */
    uint32_t newest_tables;
    uint64_t holder[SIM_SERVERS];    /* incarnations of the servers, in the newest view */
    bool left[SIM_SERVERS];          /* the last of this place went when it had nothing */
    bool recovered;                  /* some server has come back without its rows */
    uint64_t copies_at[SIM_SERVERS]; /* of those that are alive in it; 0: none is */
    uint32_t gone;                   /* of these, since each partition had all its copies in a view */
    struct ring_chains chains;       /* of the newest view */
    uint32_t successions;            /* views in which partitions have got another owner */

    char broken[512];
};

#define sim_must(err) ((void)((err) ? (abort(), 0) : 0))

#endif
