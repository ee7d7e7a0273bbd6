/*
 * The inside of the simulator: a whole cluster in one thread. A machine is one process on a host of its own
 * (its clock, its pauses) with its own van; it is put together by src/node's seat from the product's own
 * scheduler, members, doors, shards and clients. Its worker's script plays the application.
 *
 *     play.c     one schedule from beginning to end: faults, steps, the calm that follows
 *     machine.c  processes: start, crash, restart
 *     script.c   what the workers' application does
 *     ledger.c   the model: what was pushed, acknowledged, cleared; what a pull may answer
 *     judge.c    invariants after each event, and the full look at all tables
 *
 * Everything aborts when memory runs out: a simulation's result would mean nothing. Tests:
 * test/sim/test_play.c.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "env/sim.h"
#include "node/node.h"
#include "sim/fault.h"
#include "sim/play.h"
#include "van/simvan.h"

enum {
    SIM_KEYS = 64,   /* of each table */
    SIM_OP_KEYS = 8, /* of a request */
    SIM_DIGITS = 31, /* pushes to a key: two bits each in a 64-bit sum */
    SIM_PRIORITIES = 2,
    SIM_CUSTOMERS = 2,
    SIM_SHARDS = 2 * SCHEDULE_SERVERS_MAX,
    SIM_OPEN = 6, /* requests in flight of a customer */
    SIM_SERIALS = 1024,
    SIM_QUARANTINE = 32 /* requests whose arrays are watched after their end */
};

enum sim_table { SIM_DENSE, SIM_SPARSE, SIM_VAR, SIM_USER, SIM_TABLES };

struct world;
struct machine;

/* ---- ledger.c ---- */

/* The value of a key is a sum of one digit of two bits per push: 0 not applied, 1 applied, more: twice. */
struct ledger_key {
    uint64_t key;
    uint64_t sent, must; /* digits: some of these, all of these */
    unsigned used;       /* digits given */
    int shard;           /* owner: index in the view, or -1 before there is one */
};

struct ledger_table {
    struct ledger_key keys[SIM_KEYS]; /* ascending */
    uint32_t clears, clears_open;
    bool tainted; /* a clear ended without saying whether it was done, and may yet be */
};

enum op_kind { OP_PUSH, OP_PULL, OP_PUSHPULL, OP_CLEAR };

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
    uint64_t ts, deadline;
    unsigned n;
    uint16_t index[SIM_OP_KEYS];
    uint64_t digit[SIM_OP_KEYS], must[SIM_OP_KEYS];
    uint32_t clears;
    bool certain;
    uint32_t deaths[SCHEDULE_SERVERS_MAX];
    uint64_t keys[SIM_OP_KEYS]; /* the caller's arrays */
    uint64_t vals[SIM_OP_KEYS];
    uint32_t lens[SIM_OP_KEYS];
};

void ledger_init(struct world *w);
/* Owners, once the ring is known. */
void ledger_owners(struct world *w, const struct view *view);
/* The shard that owns a key of the USER table; -1: there is no such key. */
int ledger_owner(const struct world *w, uint64_t key);
/* Its index; SIM_KEYS: there is no such key. */
unsigned ledger_index(const struct world *w, uint64_t key);
/* Fills keys, digits and what may be answered; false: nothing is left to push. */
bool ledger_issue(struct world *w, struct op *op, struct dice *dice);
void ledger_done(struct world *w, struct op *op, paramo_err status);
/* The process in this place is gone: its handler's sums are. */
void ledger_server_died(struct world *w, unsigned place);
/* Is a key's value possible? must: with all that was acknowledged. */
void ledger_look(struct world *w, const char *where, enum sim_table table, const struct ledger_key *key,
                 uint64_t value, uint64_t must);
/* The arrays belong to the caller again: he writes over them; the library may not any more. */
void ledger_poison(struct op *op);
void ledger_poisoned(struct world *w, const struct op *op);

/* ---- script.c ---- */

enum script_step {
    SCRIPT_JOIN,
    SCRIPT_TABLES,
    SCRIPT_ENTER,
    SCRIPT_WORK,
    SCRIPT_SUM,
    SCRIPT_BARRIER,
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
    bool lost; /* the last request found a server dead: no hurry with the next */
    double sum_at_least;
    struct sim_event tick;
};

void script_start(struct machine *m); /* the process is up */
void script_stop(
    struct machine *m); /* it is about to die: what its calls and requests answer counts no more */
void script_joined(struct machine *m);
void script_handler(void *arg, paramo_request *request, const paramo_request_info *info);
bool script_over(const struct machine *m);

/* ---- machine.c ---- */

struct late_answer {
    struct late_answer *next;
    struct sim_event event;
    struct machine *machine;
    paramo_request *request;
    const paramo_request_info *info;
};

struct customer {
    paramo_worker *worker; /* NULL: not open */
    unsigned open;
    uint64_t first_ts[SIM_SHARDS][SIM_PRIORITIES];   /* the last first transmission to a shard */
    uint64_t handled_ts[SIM_SHARDS][SIM_PRIORITIES]; /* the last that a handler was given */
    uint64_t view_seen;
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
    struct sim_event restart;
    enum seat_state seen;
    uint64_t view_seen, shard_view_seen[2];
    bool declared_dead, never_ended;
    uint64_t sums[SIM_KEYS]; /* the handler's */
    struct late_answer *late;
    struct script script; /* workers */
    struct customer customers[SIM_CUSTOMERS];
    struct client_table tables[SIM_TABLES];
};

void machine_start(struct machine *m);
/* As kill -9. again_ns 0: it does not come back. */
void machine_kill(struct machine *m, uint64_t again_ns);
/* After each event: joins and ends. */
void machine_tick(struct machine *m);
void machine_open_customers(struct machine *m);
struct member *machine_member(const struct machine *m);
bool machine_joined(const struct machine *m);

/* ---- judge.c ---- */

void judge_watch_leaves(void *arg, uint32_t from, uint32_t to, const struct van_frame *frame);
void judge_watch_arrives(void *arg, uint32_t from, uint32_t to, const uint8_t head[VAN_HEAD]);
void judge_handled(struct world *w, struct machine *server, const paramo_request_info *info);
void judge_step(struct world *w);
/* last: what is kept must be due. */
void judge_full(struct world *w, bool last);
void judge_barrier(struct machine *m, uint64_t number);
/* The value of a key in the table of the server that is up in its place; false: there is none to look at. */
bool judge_value(struct world *w, enum sim_table table, const struct ledger_key *key, uint64_t *value);
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
    struct simnet *net;
    struct machine machines[SCHEDULE_NODES_MAX];
    uint32_t count;
    struct machine *workers; /* the first */
    struct road links[SCHEDULE_NODES_MAX][SCHEDULE_NODES_MAX];
    struct simnet_node *nodes[SCHEDULE_NODES_MAX];
    struct dice dice; /* the application's */
    uint64_t step;
    size_t next_fault;
    size_t waiting; /* faults that wait for a packet */
    size_t struck;
    bool *hit; /* of each fault */
    struct pending *pending;
    bool calm, complete, scheduler_lost, over;
    bool scheduler_stood; /* its process was stopped, or its clock jumped */
    uint64_t calm_since;
    uint32_t jobs; /* begun */
    paramo_err over_status;

    struct ledger_table ledger[SIM_TABLES];
    uint32_t deaths[SCHEDULE_SERVERS_MAX]; /* of server processes */
    uint32_t ring_shards;
    struct op *free_ops, *ops; /* all that are open */
    struct op *quarantine[SIM_QUARANTINE];
    unsigned quarantine_at;
    uint32_t serial;
    struct op *by_serial[SIM_SERIALS];
    struct at_barrier barrier[SCHEDULE_WORKERS_MAX]; /* by place */
    uint64_t sums_sent, sums_acked;
    uint64_t newest_view, view_hash;
    uint64_t holder[SCHEDULE_SERVERS_MAX]; /* incarnations of the servers, in the newest view */
    bool recovered;                        /* some server has come back without its rows */

    char broken[512];
};

#define sim_must(err) ((void)((err) ? (abort(), 0) : 0))

#endif
