/*
 * What a scheduler is given: its world, the job's size, times and folders, and its callbacks.
 * Must never know: the parts of a scheduler; configuration files and the environment.
 * Tests: test/cluster/test_scheduler.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHEDULER_CONFIG_H
#define CLUSTER_SCHEDULER_SCHEDULER_CONFIG_H

#include <stdbool.h>

#include "cluster/meta/store.h"
#include "env/blocking_job.h"
#include "env/fs.h"
#include "van/van.h"
#include "wire/hello.h"

enum { SCHEDULER_ALLOW_MAX = 4 * FS_PATH_MAX };

/* Strings are copied. 0 means the default where one is named. */
struct scheduler_config {
    struct van *van;
    struct lane *lane;
    const char *address; /* to listen on */
    const char *token;
    uint32_t num_servers, num_workers;
    uint32_t migration_kib_per_s;  /* the most from each shard; 64 MiB/s */
    uint32_t migration_partitions; /* the most in one migration; 256. For tests */
    uint32_t replicas;             /* copies beside the owner, 0 to RING_REPLICAS_MAX */
    /* a member of role SCHEDULER will join too, and the cluster is not complete without it */
    bool own_member;
    bool embedded; /* all members are in this process, and stand still when it does */
    uint32_t heartbeat_ms, heartbeat_timeout_ms; /* 1 s, 10 s */
    uint32_t rejoin_ms;   /* how long a member may take to come back when its connection broke; 300 ms */
    uint32_t end_wait_ms; /* how long members may take to leave when the job is over; 5 s */
    /* When no worker is left, and some have died: how long the job waits for one that comes in a dead one's place;
     * 0: it ends at once. */
    uint32_t recovery_ms;
    uint64_t frame_bytes; /* 64 MiB */
    /* NULL: the job ends with this process. Else a store that has started (READY), on this lane, and what it
     * found (used until scheduler_create returns). It is the scheduler's from then on, which closes it. */
    struct store *store;
    const struct store_state *found;
    /* Checkpoints: the files, and the blocking jobs that read and write them; NULL: none are taken. Both outlive the
     * scheduler. */
    struct fs *fs;
    struct blocking_jobs *blocking_jobs;
    uint64_t (*unix_time)(void);    /* seconds, for the manifest; NULL: 0 */
    uint32_t checkpoint_every_ms;   /* 0: only when asked */
    uint32_t checkpoint_full_every; /* length of a series: one full, the rest incremental; 1 */
    uint32_t checkpoint_keep;       /* how many of the timer's checkpoints to keep; 0: all */
    char checkpoint_dir[FS_PATH_MAX], restore_dir[FS_PATH_MAX]; /* "": none; else from the root on */
    /* Folders, from the root on, ':' between, in or below which checkpoints may be asked for, too. Without
     * these and checkpoint_dir: any in which there is nothing else. */
    char checkpoint_allow[SCHEDULER_ALLOW_MAX];
    /* When the last copy of rows is lost these return to the last checkpoint in checkpoint_dir, if there is a
     * whole one of this job; else, or without this, the job ends with DATA_LOST. */
    bool on_loss_restore;
    void *arg;
    /* A data connection, which is not the scheduler's; as acceptor_config.accept. NULL: they are refused. */
    void (*accept_data)(void *arg, struct van_conn *conn, const struct hello *hello);
    /* Once: the job is over and its members have gone (or had their time). OK, NODE_LOST (names the nodes), DATA_LOST
     * (what), SHUTDOWN, or the error by which the checkpoint was not loaded that it begins with. Or the job continues,
     * under another scheduler: FENCED, that one leads; or the store's error, by which the end could not be saved. The
     * function may not destroy the scheduler. */
    void (*over)(void *arg, paramo_err status, const char *text);
};

#endif
