/*
 * The answer to an admin client's call STATUS: the state of the job and its nodes. The view in it says which
 * nodes there are and what they own; the rest is here. It never knows views. Tests: test/wire/test_status.c,
 * test/cluster/test_sched_status.c.
 */
#ifndef WIRE_STATUS_H
#define WIRE_STATUS_H

#include <stdbool.h>

#include "wire/report.h"

enum {
    STATUS_NODES_MAX = 10000,   /* VIEW_NODES_MAX, and ... */
    STATUS_SHARDS_MAX = 4096,   /* ... VIEW_SHARDS_MAX */
    STATUS_MIGRATIONS_MAX = 64, /* MIGRATIONS_MAX */
    STATUS_DIR_MAX = 1024,
    STATUS_NEVER = UINT32_MAX
};

enum status_state { STATUS_JOINED = 1, STATUS_ABSENT, STATUS_DEAD, STATUS_LEFT };
enum status_ckpt { STATUS_NO_CKPT, STATUS_SAVING, STATUS_LOADING };

/* The workers of a node that count (docs/CONSISTENCY.md), and their waits that are deferred now. */
struct status_clocks {
    uint32_t workers; /* 0: none, and the rest is 0 */
    uint64_t lowest, highest;
    uint32_t waits, waited_ms; /* waited_ms: of the oldest; 0 without waits */
};

struct status_node {
    uint32_t id;
    enum status_state state;
    uint32_t heard_ms;    /* since it was heard */
    uint32_t reported_ms; /* since its report; NEVER: there is none */
    uint32_t shards;      /* of the report; 0: there is none */
    struct shard_report *shard;
    struct status_clocks clocks;
};

/* Partitions that move from one shard to another (cluster/scheduler/migrations.h). Shards have their numbers in the
 * view. */
struct status_migration {
    uint8_t state; /* 1 planned, 2 copying, 3 full, 4 paused */
    bool handover; /* `to` has all rows already */
    uint16_t first, partitions, from, to;
};

struct status {
    uint32_t replicas; /* wanted */
    bool converged;    /* rebalancing is complete: every key and all its copies are on registered servers */
    struct spread pauses; /* of all servers, those that have left included */
    struct {
        enum status_ckpt now;
        uint64_t last, at; /* the last that this scheduler has taken: number, seconds since 1970; 0: none */
        char dir[STATUS_DIR_MAX];
    } ckpt;
    uint32_t migrations_count;
    struct status_migration migration[STATUS_MIGRATIONS_MAX];
    uint32_t nodes_count;
    struct status_node *nodes;
    struct shard_report *shards; /* decoded: all of them; the nodes' point into it */
    const void *view;            /* encoded; last announced */
    size_t view_len;
};

void status_encode(const struct status *m, struct writer *w);
/* view points into what is read; the rest is status_fini's to free. */
MUST_USE paramo_err status_decode(struct reader *r, struct status *m);
void status_fini(struct status *m);

#endif
