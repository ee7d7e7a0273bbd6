/*
 * A schedule: the seed, what is drawn from it (how large the cluster is, how its van behaves), and the
 * explicit list of faults, each with the step before which it strikes. The seed draws a whole schedule
 * (swarm: which kinds are on and how hard differs from seed to seed, Groce et al., ISSTA'12); a file holds
 * one; shrinking takes faults out and leaves the rest as it was.
 *
 * Knows nothing of how a fault is done (play.c). Tests: test/sim/test_play.c.
 */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* X(name, what the number is): the first seven strike the link from -> to, the rest the node `from` (a move:
 * two servers). */
#define FAULT_KINDS(X)                                                                                       \
    X(drop, packets)                                                                                         \
    X(repeat, packets)                                                                                       \
    X(late, ns) /* the next packet; those behind it overtake */                                              \
    X(cut, ns)  /* one way */                                                                                \
    X(lag, ns)  /* that much slower, for ten times as long */                                                \
    X(slow, ns) /* 100 kB/s for so long */                                                                   \
    X(reset, none)                                                                                           \
    X(pause, ns)                                                                                             \
    X(jump, ns)  /* its clock, forward */                                                                    \
    X(crash, ns) /* until it is started again; 0: never */                                                   \
    X(migrate,                                                                                               \
      draw) /* partitions that hold nothing go from one server to another; which, the number says */         \
    X(stall,                                                                                                 \
      ns) /* operations of its disk take so long, for twenty times as long; from another node than   \
                     `to`: of all servers' and schedulers' ways to the checkpoints */       \
    X(disk,                                                                                                  \
      draw) /* an operation of its disk fails, stops half-way, or the power does; or what it asks etcd \
                     is lost, or done and not answered, or done later; which, it says */     \
    X(save, draw)  /* a worker asks for a checkpoint */                                                      \
    X(load, draw)  /* a worker has one loaded: the last, or one before */                                    \
    X(renew, draw) /* everybody dies, and a new job begins with the last checkpoint */                       \
    X(close, draw) /* a worker closes a customer, and opens it again: which, and when, it says */            \
    X(idle, ns)    /* a worker's application issues nothing */                                               \
    X(vanish, ns)  /* a host is gone, without a word; ns until it is back with a new process; 0: never */    \
    X(drain, ns)   /* a server gives away what it has, and leaves; ns until it comes back; 0: never */       \
    X(split, ns)   /* `from` and `to` reach each other, and nobody else reaches them */                      \
    X(drift, ppm)  /* its clock runs faster; odd: slower */                                                  \
    X(freeze, ns)  /* its clock stands still, and its process with it: a machine that is suspended */        \
    X(netsplit,                                                                                              \
      draw) /* two sides do not reach each other: which nodes are on `from`'s, and how long, it says */      \
    X(lie,                                                                                                   \
      draw) /* a worker's disk, or the folder of checkpoints, says that it has synced, and has not: so  \
                    often, it says */    \
    X(amid, draw) /* the same when a migration pauses next: its source, and who else is with it, it says */  \
    X(memory, draw) /* its process gets no memory, once or some times in a row: which time, it says */

enum fault_kind {
#define FAULT_ENUM(name, number) FAULT_##name,
    FAULT_KINDS(FAULT_ENUM)
#undef FAULT_ENUM
        FAULT_KINDS_COUNT,
    FAULT_ANYWHERE =
        FAULT_disk + 1 /* those before are drawn by weight; the others with checkpoints, or apart */
};

struct fault {
    uint32_t step;
    enum fault_kind kind;
    uint32_t from, to; /* nodes: 0 the scheduler, then servers, then workers, then who stands by */
    uint64_t n;
};

enum {
    SCHEDULE_SERVERS_MAX = 8,
    SCHEDULE_WORKERS_MAX = 4,
    SCHEDULE_NODES_MAX = 1 + SCHEDULE_SERVERS_MAX + SCHEDULE_WORKERS_MAX + 1,
    SCHEDULE_FAULTS_MAX = 4096,
    MEMORY_ROW = 16,   /* allocations that fail in a row, at most */
    DRIFT_MOST = 50000 /* ppm: far beyond any clock; 200 is a bad one */
};

struct schedule {
    uint64_t seed;
    /* drawn from the seed */
    uint32_t servers, workers, shards, customers;
    uint32_t replicas;      /* fewer than servers */
    uint32_t fewer, fewest; /* a table (0: none) has so many of them */
    bool durable;           /* the scheduler keeps its state, and is started again */
    bool meta;              /* it keeps it in etcd, and a second one stands by: the last node */
    uint32_t extra;       /* of the workers: one more than the job is begun with, the last, who comes late */
    uint64_t extra_after; /* ns */
    uint32_t late;        /* of the servers: the last, one more than the job is begun with */
    uint64_t late_after;  /* ns */
    bool ckpt;            /* checkpoints are taken, in a folder that all servers and schedulers see */
    uint32_t ckpt_every;  /* ms; 0: only those that somebody asks for */
    uint32_t ckpt_full_every;  /* of these one is full, and the others what has changed; 1: all are full */
    uint32_t ckpt_keep;        /* of these so many stay; 0: all */
    uint32_t ckpt_queue_bytes; /* that wait for the disk; 1: each table waits for the one before; 0: as the
                                  product does */
    bool restores;             /* --on-loss restore: what nobody has any more goes back to the last */
    uint32_t recovery_ms;      /* so long the job waits when its last worker has died; 0: not at all */
    uint32_t chunk_bytes;      /* requests are cut into; 0: as the product does */
    uint32_t open_most;        /* requests in flight of a customer */
    uint32_t at_once;          /* requests that are issued one behind the other, at most */
    unsigned datagrams;   /* classes of frames that links may lose, repeat and reorder (van_sim_set_faulty) */
    struct fault *faults; /* by step */
    size_t count;
};

/* A generator of its own (SplitMix64), so that what is drawn here depends on nothing else. */
struct dice {
    uint64_t state;
};
struct dice dice_of(uint64_t seed, uint64_t stream);
uint64_t dice_draw(struct dice *d, uint64_t below);
/* Between least and most, every magnitude as likely. */
uint64_t dice_scale(struct dice *d, uint64_t least, uint64_t most);

uint32_t schedule_nodes(const struct schedule *s);
/* What a number says of two sides: how long they are apart, and a set of nodes. */
struct sides {
    uint64_t ns;
    uint32_t nodes;                 /* bits: those on the one side */
    bool scheduler, client, target; /* amid: who is on the source's side */
    uint32_t worker;                /* which client: among the workers */
};
struct sides sides_of(uint64_t draw);
const char *fault_name(enum fault_kind kind);
MUST_USE paramo_err schedule_draw(uint64_t seed, struct schedule *s);
void schedule_fini(struct schedule *s);
/* One line each, as in a file. */
size_t fault_print(const struct fault *f, char *line, size_t size);
/* A file's text: malloc'd. And back: FORMAT names the line. */
char *schedule_write(const struct schedule *s);
MUST_USE paramo_err schedule_read(const char *text, struct schedule *s);

#endif
