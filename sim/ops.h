/*
 * The application's requests, and the servers' handler. It must never know which answer is right (ledger.h,
 * cells.h). Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_OPS_H
#define SIM_OPS_H

#include "base/transform.h"
#include "paramo/paramo.h"
#include "sim/sizes.h"
#include "worker/client.h"

struct machine;
struct scan_batch;

/* In the order of play.h's counts. */
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
    OP_TRANSFORM
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
    bool open, cancelled, again; /* again: a part of it was sent twice or sliced again */
    uint64_t issued_view;        /* the client's view when it was issued ... */
    uint64_t issued_partitions;  /* ... and the last view in which partitions changed owners */
    uint32_t saw_dead;           /* places of servers that were dead in that view, one bit each */
    uint64_t at_clock;           /* 0: it is held for none */
    unsigned after_n;            /* requests that it comes after: these, and all up to `after_all` */
    uint64_t after[2], after_all;
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
    /* The client's and the shard's view when the scan began that this batch belongs to. */
    uint64_t began, began_must[SIM_KEYS], began_view;
    unsigned shard;
    uint64_t shard_view; /* the shard's own view when a scan of it was issued */
    struct scan_batch *batch;
    struct client_stats stats;
    paramo_reduction reduction;
    const struct client_table *other;
    struct transform transform;
    uint64_t keys[SIM_OP_KEYS]; /* the caller's arrays */
    uint32_t lens[SIM_OP_KEYS];
    uint64_t vals[SIM_OP_VALS];
};

void op_issue(struct machine *m, unsigned customer);
/* The newest request, if this machine has issued it. */
void op_cancel(struct machine *m);
void op_handler(void *arg, paramo_request *request, const paramo_request_info *info);

#endif
