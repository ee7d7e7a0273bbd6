/*
 * Administration of a running job, and of checkpoint folders: what `paramo status`, `drain`, `ring` and
 * `checkpoint` are made of. An admin handle is no member of the job: it holds no rank and the job does not
 * wait for it.
 *
 *     paramo_admin_options options;
 *     paramo_admin_options_init(&options);
 *     options.scheduler = "10.0.0.1:9000";
 *     options.token = getenv("PARAMO_TOKEN");
 *     paramo_admin *admin;      paramo_admin_open(&options, &admin);
 *     paramo_cluster *cluster;  paramo_admin_status(admin, &cluster);
 *     paramo_cluster_status status = {.size = sizeof status};
 *     paramo_cluster_status_get(cluster, &status);
 *     paramo_cluster_free(cluster);
 *     paramo_admin_close(admin);
 *
 * Threads: calls on one handle may come from several threads. A paramo_cluster and a paramo_ring do not
 * change once made; any number of threads may read them. Errors: as in paramo.h; each function names its own.
 * Output structs begin with `size`: set it to sizeof before the call. Strings in them belong to the object
 * that was read. Nothing here reads the environment. Tests: test/node/test_admin.c, test/e2e/status.sh,
 * ring.sh, migrations.sh, checkpoint.sh.
 */
#ifndef PARAMO_ADMIN_H
#define PARAMO_ADMIN_H

#include "paramo.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct paramo_admin paramo_admin;           /* where a job is, and how to ask it */
typedef struct paramo_cluster paramo_cluster;       /* a snapshot of a job */
typedef struct paramo_ring paramo_ring;             /* which shards hold each partition */
typedef struct paramo_checkpoint paramo_checkpoint; /* an open checkpoint of a folder */

#define PARAMO_PARTITIONS   4096u      /* of every ring */
#define PARAMO_REPLICAS_MAX 3u         /* copies of a partition beside its owner's */
#define PARAMO_WEIGHT_MAX   1000000u   /* of a shard */
#define PARAMO_NO_SHARD     UINT32_MAX /* no shard holds the partition at this level */
#define PARAMO_ALL_SHARDS   UINT32_MAX
#define PARAMO_NEVER        UINT32_MAX

/* ---- the handle ---- */

typedef struct paramo_admin_options {
    size_t size;
    const char *scheduler; /* as paramo_config.scheduler: "host:port", several with commas between */
    const char *token;     /* the job's secret; NULL: "" */
    uint32_t timeout_ms;   /* of each call; 10 s by default */
} paramo_admin_options;

PARAMO_API void paramo_admin_options_init(paramo_admin_options *options);
/* Starts a thread; each later call makes a connection of its own. INVALID: scheduler is missing. MEMORY,
 * SYSTEM. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_admin_open(const paramo_admin_options *options,
                                                        paramo_admin **admin);
/* No call may be in progress. NULL is allowed. In a callback and in a child of fork it does nothing. */
PARAMO_API void paramo_admin_close(paramo_admin *admin);

/* Every call below that takes a paramo_admin asks the scheduler and waits for the answer. Each may fail with
 *   INVALID                                an address or the token is malformed
 *   ADDRESS, CONNECT, CONNECTION_REFUSED   no scheduler was reached at any of the addresses
 *   DISCONNECTED, PROTOCOL, VERSION        the conversation broke
 *   TOKEN                                  the token is not the job's
 *   TIMEOUT                                no answer before the deadline
 *   IN_CALLBACK, FORKED, MEMORY, SYSTEM    as in paramo.h
 * beside what its own comment lists. */

/* The cluster as its last view has it: nodes, shards, tables, the owner of each partition. AGAIN: the job is not
 * complete yet. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_admin_cluster(paramo_admin *admin, paramo_cluster **cluster);
/* The same, with what the scheduler and the servers report: paramo_cluster_status_get, _report_get and
 * _migration_get answer. Servers have a second to report; the last report of one that does not is used.
 * AGAIN: the job is not complete yet. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_admin_status(paramo_admin *admin, paramo_cluster **cluster);
/* Asks a server (its node id) to migrate all its partitions to others and to leave. Returns when the
 * scheduler has begun; paramo_admin_cluster shows the progress. NOT_FOUND: there is no such server. REFUSED:
 * no other server can take its partitions. AGAIN. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_admin_drain(paramo_admin *admin, uint32_t node);
/* As paramo_checkpoint_save and paramo_checkpoint_load, with their errors. timeout_ms: how long the
 * checkpoint may take, 0 is 60 s; the call waits 5 s longer for the answer, independent of the handle's timeout.
 * number (may be NULL): which one it was. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_admin_checkpoint_save(paramo_admin *admin, const char *dir,
                                                                   uint32_t flags, uint32_t timeout_ms,
                                                                   uint64_t *number);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_admin_checkpoint_load(paramo_admin *admin, const char *dir,
                                                                   uint64_t number, uint32_t timeout_ms,
                                                                   uint64_t *loaded);

/* ---- a snapshot of a job ---- */

/* NULL is allowed. */
PARAMO_API void paramo_cluster_free(paramo_cluster *cluster);

typedef struct paramo_cluster_info {
    size_t size;
    uint64_t job;  /* random: tells jobs apart */
    uint64_t view; /* version: the scheduler's term in the upper 32 bits, then the epoch */
    uint32_t num_servers, num_workers; /* the job's size */
    uint32_t nodes, shards, tables;    /* how many there are to get */
    uint32_t replicas;                 /* levels of the chains beside the owners */
    int has_status;                    /* it came from paramo_admin_status */
} paramo_cluster_info;
/* INVALID. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_cluster_info_get(const paramo_cluster *cluster,
                                                              paramo_cluster_info *info);

typedef enum paramo_node_state {
    PARAMO_NODE_JOINED = 1,
    PARAMO_NODE_ABSENT = 2,  /* expected: it has not registered with this scheduler, which was restarted */
    PARAMO_NODE_DEAD = 3,    /* its connection broke, or it was silent for too long */
    PARAMO_NODE_LEFT = 4,    /* it left in order */
    PARAMO_NODE_DRAINING = 5 /* a server that migrates its partitions to others before it leaves */
} paramo_node_state;

typedef struct paramo_cluster_node {
    size_t size;
    uint32_t id, rank;
    paramo_role role;
    paramo_node_state state; /* without status: from the view alone, never ABSENT */
    uint64_t incarnation;    /* random, another one after each start of the process */
    const char *name;        /* "": none */
    const char *host;        /* "": not known */
    uint16_t port;           /* 0: it does not listen */
    uint16_t shards;         /* servers */
    const char *domain;      /* servers: failure domain */
    uint32_t weight;         /* servers: of each of its shards; 0 while it is drained */
    int alive, left;         /* as the view says */
    int recovered;           /* it took a dead node's rank, without that node's rows */
    uint32_t heard_ms;       /* since its last message; NEVER without status */
    /* Servers: partitions that it owns, that it keeps copies of, and that migrate to it. */
    uint32_t owns, copies, filling;
} paramo_cluster_node;
/* index: from 0, by ascending id. NOT_FOUND: there are fewer. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_cluster_node_get(const paramo_cluster *cluster, uint32_t index,
                                                              paramo_cluster_node *node);

typedef struct paramo_cluster_shard {
    size_t size;
    uint32_t node;               /* id of its server */
    uint32_t index;              /* which shard of that server */
    uint64_t partitions_changed; /* version that last changed which partitions it owns */
    uint64_t chain_changed;      /* version that last changed a chain it is part of */
} paramo_cluster_shard;
/* shard: its number in the ring, from 0. NOT_FOUND: there are fewer. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_cluster_shard_get(const paramo_cluster *cluster, uint32_t shard,
                                                               paramo_cluster_shard *out);
/* The number of the shard that owns a partition (level 0) or keeps its level-th copy, or PARAMO_NO_SHARD. */
PARAMO_API uint32_t paramo_cluster_holder(const paramo_cluster *cluster, uint32_t partition, uint32_t level);

typedef struct paramo_cluster_table {
    size_t size;
    uint32_t id;
    const char *name;
    uint64_t since;             /* version of the first view that has it */
    paramo_placement placement; /* never AUTO */
    paramo_table_kind kind;
    paramo_optimizer optimizer;
    uint32_t dim, replicas;
} paramo_cluster_table;
/* index: from 0, by ascending id. NOT_FOUND: there are fewer. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_cluster_table_get(const paramo_cluster *cluster, uint32_t index,
                                                               paramo_cluster_table *table);

/* How long writes to partitions were held while these migrated. Quantiles are at most an eighth too high. */
typedef struct paramo_pauses {
    uint64_t count, p50_us, p99_us, max_us;
} paramo_pauses;

typedef enum paramo_checkpoint_activity {
    PARAMO_CHECKPOINT_IDLE = 0,
    PARAMO_CHECKPOINT_SAVING = 1,
    PARAMO_CHECKPOINT_LOADING = 2
} paramo_checkpoint_activity;

typedef struct paramo_cluster_status {
    size_t size;
    uint32_t replicas; /* the job's setting */
    /* Every partition has its owner and all copies on servers that are registered, and nothing migrates or is
     * restored. */
    int converged;
    int restoring;                          /* lost rows come back from a checkpoint */
    uint32_t partitions_lacking;            /* partitions without their owner or a copy */
    uint32_t copies_missing, copies_absent; /* copies; of these, on servers that are ABSENT */
    uint32_t servers_missing;               /* how many more servers the copies need */
    uint32_t migrations;                    /* how many there are to get */
    paramo_pauses pauses;                   /* of all servers, those that have left included */
    paramo_checkpoint_activity checkpoint;
    uint64_t checkpoint_last;   /* number of the last one that this scheduler has taken; 0: none */
    uint64_t checkpoint_at;     /* when: seconds since 1970 */
    const char *checkpoint_dir; /* where */
} paramo_cluster_status;
/* NOT_FOUND: the snapshot is without status. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_cluster_status_get(const paramo_cluster *cluster,
                                                                paramo_cluster_status *status);

typedef struct paramo_cluster_report {
    size_t size;
    uint32_t reported_ms;                  /* since the report */
    uint64_t rows, bytes;                  /* of all tables; their memory */
    uint64_t senders;                      /* whose applied requests it remembers */
    uint64_t applied_notes, applied_bytes; /* requests applied on some partitions only; memory of all this */
    uint64_t requests, repeats; /* slices handled; of these, numbers that had been applied before */
    paramo_pauses pauses;
} paramo_cluster_report;
/* What a server (the index-th node) reported of one of its shards, or of PARAMO_ALL_SHARDS together.
 * NOT_FOUND: there is no such report. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_cluster_report_get(const paramo_cluster *cluster, uint32_t index,
                                                                uint32_t shard,
                                                                paramo_cluster_report *report);

/* The worker clocks of a node (docs/CONSISTENCY.md): its customers that count, and those of their waits that the
 * scheduler has not answered. If a member repeats a wait behind other calls, the time starts again. */
typedef struct paramo_cluster_clocks {
    size_t size;
    uint32_t workers;          /* that count, at least 1 */
    uint64_t lowest, highest;  /* their clocks */
    uint32_t waits, waited_ms; /* now; how long the oldest of them has lasted */
} paramo_cluster_clocks;
/* Of the index-th node. NOT_FOUND: none of its workers counts, or the snapshot is without status. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_cluster_clocks_get(const paramo_cluster *cluster, uint32_t index,
                                                                paramo_cluster_clocks *clocks);

typedef enum paramo_migration_state {
    PARAMO_MIGRATION_PLANNED = 1,
    PARAMO_MIGRATION_COPYING = 2,
    PARAMO_MIGRATION_FULL = 3,  /* all rows are copied, changes still follow */
    PARAMO_MIGRATION_PAUSED = 4 /* writes are held until the target takes over */
} paramo_migration_state;

typedef struct paramo_cluster_migration {
    size_t size;
    paramo_migration_state state;
    uint32_t first, partitions;    /* partitions first .. first + partitions - 1 */
    uint32_t source, target;       /* numbers of the shards */
    uint32_t source_id, target_id; /* node ids of their servers; 0: not in this view */
    int handover;                  /* the target has all rows already, as a copy */
} paramo_cluster_migration;
/* NOT_FOUND: there are fewer, or the snapshot is without status. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_cluster_migration_get(const paramo_cluster *cluster,
                                                                   uint32_t index,
                                                                   paramo_cluster_migration *migration);

/* ---- rings: which shard owns what, and what a change would move ---- */

/* A shard as placement sees it. It has no size, as callers pass arrays of it: it will get no further fields. */
typedef struct paramo_ring_shard {
    const char *domain; /* failure domain: copies of a partition are in different ones if there are enough */
    uint32_t server;    /* shards of one process have one number */
    uint32_t weight;    /* its share beside the others', to PARAMO_WEIGHT_MAX; 0: it holds nothing */
} paramo_ring_shard;

/* The placement that a scheduler would choose for these shards. before: the placement it starts from, in
 * which shard i is the same one, or NULL. Pure: no cluster is asked. INVALID: no shard has a weight, too many
 * shards or replicas, a weight or a domain that is not valid. MEMORY. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_ring_plan(const paramo_ring_shard *shards, size_t n,
                                                       uint32_t replicas, const paramo_ring *before,
                                                       paramo_ring **ring);
/* The ring of a snapshot. shards (or NULL: as the view has them) say which domains and servers its shards are
 * in; more shards than the view's are allowed. INVALID: fewer than the view's. MEMORY. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_cluster_ring(const paramo_cluster *cluster,
                                                          const paramo_ring_shard *shards, size_t n,
                                                          paramo_ring **ring);
/* NULL is allowed. */
PARAMO_API void paramo_ring_free(paramo_ring *ring);
/* As paramo_cluster_holder. */
PARAMO_API uint32_t paramo_ring_holder(const paramo_ring *ring, uint32_t partition, uint32_t level);

typedef struct paramo_ring_info {
    size_t size;
    uint32_t replicas; /* asked for */
    uint32_t apart;    /* the first `apart` copies of each partition are in different domains ... */
    uint32_t present;  /* ... and the first `present` in different processes; the others are missing */
} paramo_ring_info;
/* INVALID. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_ring_info_get(const paramo_ring *ring, paramo_ring_info *info);
/* Writes one line if copies are missing or share a domain, and returns 1. Otherwise returns 0. */
PARAMO_API int paramo_ring_warning(const paramo_ring *ring, char *text, size_t cap);

typedef struct paramo_ring_transfers {
    size_t size;
    uint32_t owners, owners_least; /* partitions that change owner, and the least that the weights allow */
    uint32_t copies, copies_least; /* partitions whose rows travel to a shard, and the least */
} paramo_ring_transfers;
/* INVALID, MEMORY. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_ring_compare(const paramo_ring *before, const paramo_ring *after,
                                                          paramo_ring_transfers *transfers);

/* ---- a folder of checkpoints, read without a cluster ---- */

typedef enum paramo_checkpoint_state {
    PARAMO_CHECKPOINT_WHOLE = 1,      /* has its manifest, and so have all it is based on */
    PARAMO_CHECKPOINT_UNFINISHED = 2, /* no manifest: being taken, or an attempt that failed */
    PARAMO_CHECKPOINT_DAMAGED = 3,    /* its manifest cannot be read */
    PARAMO_CHECKPOINT_NO_BASE = 4     /* one that it is based on is missing or not whole */
} paramo_checkpoint_state;

typedef struct paramo_checkpoint_info {
    size_t size;
    uint64_t number;
    paramo_checkpoint_state state;
    const char *cause; /* UNFINISHED, DAMAGED: in words, and the fields below are 0; otherwise "" */
    uint64_t base;     /* it contains the changes since this one; 0: it is full */
    uint64_t made_at;  /* seconds since 1970 */
    uint64_t job, view;
    uint32_t tables, files;
    uint64_t bytes; /* of all its files */
} paramo_checkpoint_info;

/* Calls fn for each checkpoint of the folder by ascending number; info is valid during the call. Reads
 * manifests only. NOT_FOUND: there is no such folder. IO, MEMORY. */
PARAMO_API PARAMO_MUST_USE paramo_err
paramo_checkpoint_list(const char *dir, void (*fn)(void *arg, const paramo_checkpoint_info *info), void *arg);
/* Opens one, and those it is based on. number 0: the last that has a manifest. NOT_FOUND; CORRUPT: a manifest
 * or a file's size is wrong; FORMAT, IO, MEMORY. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_checkpoint_open(const char *dir, uint64_t number,
                                                             paramo_checkpoint **checkpoint);
/* NULL is allowed. */
PARAMO_API void paramo_checkpoint_close(paramo_checkpoint *checkpoint);
/* link 0 is the checkpoint itself, 1 its base, and so on to a full one. NOT_FOUND: there are fewer. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_checkpoint_info_get(const paramo_checkpoint *checkpoint,
                                                                 uint32_t link, paramo_checkpoint_info *info);

typedef struct paramo_checkpoint_contents {
    size_t size;
    /* Blocks of rows, of keys that were deleted, of partitions that were cleared, and of senders' records. */
    uint64_t rows_blocks, erased_blocks, cleared_blocks, window_blocks;
    uint64_t bytes; /* in all blocks */
} paramo_checkpoint_contents;
/* Reads every byte of all links and checks it. CORRUPT names file and place. IO, MEMORY. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_checkpoint_verify(const paramo_checkpoint *checkpoint,
                                                               paramo_checkpoint_contents *contents);

#ifdef __cplusplus
}
#endif
#endif
