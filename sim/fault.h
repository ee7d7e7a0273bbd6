/*
 * A schedule: the seed, what is drawn from it (the size of the cluster, the behaviour of its van), and the
 * explicit list of faults, each with the step before which it strikes. A seed draws a whole schedule (swarm
 * testing: which kinds are on, and how hard, differs between seeds; Groce et al., ISSTA'12). A file holds one
 * schedule. Shrinking removes faults and keeps the rest.
 *
 * It never knows how a fault is made (play.c). Tests: test/sim/test_play.c.
 */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The kinds of faults: X(name, meaning of the number). docs/SIMULATOR.md, "One schedule", describes each. The first
 * seven strike the link from -> to, the others the node `from` (migrate: two servers). */
/* clang-format off */
#define FAULT_KINDS(X) \
    X(drop, packets) \
    X(repeat, packets) \
    X(late, ns) \
    X(cut, ns) \
    X(lag, ns) \
    X(slow, ns) \
    X(reset, none) \
    X(pause, ns) \
    X(jump, ns) \
    X(crash, ns) \
    X(migrate, draw) \
    X(stall, ns) \
    X(disk, draw) \
    X(save, draw) \
    X(load, draw) \
    X(renew, draw) \
    X(close, draw) \
    X(idle, ns) \
    X(vanish, ns) \
    X(drain, ns) \
    X(split, ns) \
    X(drift, ppm) \
    X(freeze, ns) \
    X(netsplit, draw) \
    X(lie, draw) \
    X(amid, draw) \
    X(memory, draw) \
    X(island, draw)
/* clang-format on */

enum fault_kind {
#define FAULT_ENUM(name, number) FAULT_##name,
    FAULT_KINDS(FAULT_ENUM)
#undef FAULT_ENUM
        FAULT_KINDS_COUNT,
    /* The kinds before this one are drawn by weight; the others with checkpoints, or apart. */
    FAULT_ANYWHERE = FAULT_disk + 1
};

struct fault {
    uint32_t step;
    enum fault_kind kind;
    uint32_t from, to; /* nodes: 0 the scheduler, then servers, then workers, then a standby scheduler */
    uint64_t n;
};

enum {
    SCHEDULE_SERVERS_MAX = 8,
    SCHEDULE_WORKERS_MAX = 4,
    SCHEDULE_NODES_MAX = 1 + SCHEDULE_SERVERS_MAX + SCHEDULE_WORKERS_MAX + 1,
    SCHEDULE_FAULTS_MAX = 4096,
    MEMORY_ROW = 16,   /* most allocations that fail in a row */
    DRIFT_MOST = 20000 /* ppm: what FAULTS.md promises to withstand; 200 is a bad clock */
};

struct schedule {
    uint64_t seed;
    /* drawn from the seed */
    uint32_t servers, workers, shards, customers;
    uint32_t replicas;      /* fewer than servers */
    uint32_t fewer, fewest; /* this table (0: none) has this many of them */
    bool durable;           /* the scheduler keeps its state, and is restarted */
    bool meta;              /* it keeps its state in etcd, and a standby is the last node */
    uint32_t extra;       /* of the workers: one more than the job begins with, the last, which joins late */
    uint64_t extra_after; /* ns */
    uint32_t late;        /* of the servers: one more than the job begins with, the last */
    uint64_t late_after;  /* ns */
    bool ckpt;            /* checkpoints are saved, in a folder that all servers and schedulers see */
    uint32_t ckpt_every;  /* ms between checkpoints by the clock; 0: only on request */
    uint32_t ckpt_full_every; /* one in this many is full, the others are incremental; 1: all are full */
    uint32_t ckpt_keep;       /* this many are kept; 0: all */
    /* bytes that may wait for the disk; 1: each table waits for the one before; 0: the product's default */
    uint32_t ckpt_queue_bytes;
    /* most partitions of one migration: RING_PARTITIONS, so one may have all of its source; 0: the product's default */
    uint32_t migration_partitions;
    bool restores;        /* --on-loss restore: lost rows return to the last checkpoint */
    uint32_t recovery_ms; /* how long the job waits when its last worker has died; 0: not at all */
    uint32_t chunk_bytes; /* bytes of a chunk; 0: the product's default */
    uint32_t open_most;   /* requests in flight of a customer */
    uint32_t at_once;     /* most requests that are issued in a row */
    unsigned datagrams;   /* classes of frames that links may lose, repeat and reorder (van_sim_set_faulty) */
    struct fault *faults; /* by step */
    size_t count;
};

/* A generator of its own (SplitMix64), so that these draws depend on nothing else. */
struct dice {
    uint64_t state;
};
struct dice dice_of(uint64_t seed, uint64_t stream);
uint64_t dice_draw(struct dice *d, uint64_t below);
/* Between least and most; all magnitudes are equally likely. */
uint64_t dice_scale(struct dice *d, uint64_t least, uint64_t most);

uint32_t schedule_nodes(const struct schedule *s);
/* What the number of a netsplit says: how long it lasts, and a set of nodes. */
struct sides {
    uint64_t ns;
    uint32_t nodes;                 /* the nodes of one side, as bits */
    bool scheduler, client, target; /* amid: the nodes on the source's side */
    uint32_t worker;                /* the client, by its worker */
};
struct sides sides_of(uint64_t draw);
const char *fault_name(enum fault_kind kind);
MUST_USE paramo_err schedule_draw(uint64_t seed, struct schedule *s);
void schedule_fini(struct schedule *s);
/* Prints a fault as a line of a file. */
size_t fault_print(const struct fault *f, char *line, size_t size);
/* The text of a file, from malloc; and the schedule of a text: FORMAT names the line. */
char *schedule_write(const struct schedule *s);
MUST_USE paramo_err schedule_read(const char *text, struct schedule *s);

#endif
