/*
 * A checkpoint that is taken or loaded: the structure that the files sched_ckpt*.c share.
 *
 *   sched_ckpt.h           callers, and the begin of a checkpoint
 *   sched_ckpt_save.h      a save until the servers are ordered
 *   sched_ckpt_servers.h   the orders to servers, and what they report
 *   sched_ckpt_manifest.h  what a save writes when all servers have written
 *   sched_ckpt_end.h       blocking jobs, failure, and the end
 *
 * Must never know: rows. Tests: test/cluster/test_sched_ckpt.c, test_sched_lost.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_CKPT_IMPL_H
#define CLUSTER_SCHEDULER_SCHED_CKPT_IMPL_H

#include "cluster/checkpoint/ckpt.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_orders.h"
#include "cluster/scheduler/sched_save.h"
#include "env/blocking_job.h"
#include "env/fs.h"
#include "wire/ckpt_order.h"

/* The checkpoint since which the shards know all changes. */
struct ckpt_base {
    char dir[FS_PATH_MAX];
    uint64_t number, id; /* 0: there is none */
    uint32_t links;      /* it and those that it is based on */
};

/* The functions of the parts above that checkpoints call (scheduler.c). */
struct sched_ckpt_ops {
    /* Restores the part of the job that a checkpoint has besides its tables: durable records (sched_save_copy_begin).
     * */
    paramo_err (*restore_extra)(struct scheduler *s, const uint8_t *records, size_t bytes);
    /* A load of lost rows is open. OK: the checkpoint has them. */
    paramo_err (*lost_opened)(struct scheduler *s, const char *dir, const struct ckpt_manifest *m);
    /* ... has ended; on an error this thread's message says why. */
    void (*lost_ended)(struct scheduler *s, const char *dir, uint64_t number, paramo_err err);
    /* The load that the job begins with has failed. */
    void (*begin_failed)(struct scheduler *s, paramo_err err, const char *text);
    /* No checkpoint is taken or loaded any more. */
    void (*idle)(struct scheduler *s);
};

/* The load that the job begins with, over all its tries. */
struct ckpt_begin {
    struct lane_timer timer; /* the next try is due */
    uint64_t until;          /* no try begins later */
    unsigned tries;          /* that have failed */
    uint64_t number, id;     /* the checkpoint; each try loads the same one. 0: none was open yet */
    bool records;            /* its durable records are restored: members may have changed them since */
    paramo_err err;          /* of the last try */
    char text[ERR_TEXT_MAX];
};

struct sched_ckpts {
    struct scheduler *sched; /* whose part it is */
    const struct sched_ckpt_ops *ops;
    struct sched_ckpt *current; /* NULL: none is taken or loaded */
    struct ckpt_base base;      /* of the next, perhaps */
    struct sched_call_queue calls;
    struct lane_timer timer; /* the next one by the clock */
    struct ckpt_begin begin;
    unsigned postponed; /* how often the timer's checkpoint has waited for a migration */
    struct {            /* the last that was taken */
        uint64_t number, at;
        char dir[FS_PATH_MAX];
    } last;
};

struct sched_ckpt {
    struct scheduler *sched; /* NULL: the scheduler is gone */
    bool load, restore;      /* restore: the job begins with this load */
    bool lost;               /* loads lost rows only */
    bool changes, unasked;   /* incremental only; taken by the clock */
    bool anywhere;           /* save: its folder is none that the operator has allowed */
    bool hold;               /* requests wait at all servers until the load is over */
    bool finished;           /* its callers have been answered */
    uint32_t what;           /* the order that is out */
    /* sched_ckpt_servers.h */
    void (*server_done)(void *arg, struct sched_node *node, paramo_err status, struct reader *result);
    struct ckpt_order order;
    struct ckpt_manifest manifest;                 /* save */
    uint64_t written[(VIEW_SHARDS_MAX + 63) / 64]; /* save: which shards' files are in it */
    struct ckpt_base base;                         /* the base that it may use */
    struct ckpt *opened;                           /* load */
    struct sched_save_copy copy;                   /* save: of values and pools, made in turns */
    struct lane_timer copy_turn;
    bool copying;
    uint32_t orders_out;            /* orders that are not answered */
    uint32_t untold;                /* servers that have not been sent the last order (GO, DROP) yet */
    struct lane_timer resend_timer; /* when it is sent to them again */
    uint64_t partitions_changed;
    struct lane_timer deadline;
    paramo_err err;
    char text[ERR_TEXT_MAX];
    /* owned by the blocking job while that is posted */
    struct blocking_job blocking_job;
    bool posted;
    void (*then)(struct sched_ckpt *c);
    struct fs *fs;
    paramo_err work_err;
    char work_text[ERR_TEXT_MAX];
    char full[ERR_TEXT_MAX]; /* why it is not incremental; "": it is, or need not be */
    size_t keep, removed;
    bool all_mine; /* checkpoints of earlier jobs count, too */
};

/* A load that failed for this may succeed when it is carried out again: a server died or was not ready, or memory was
 * short. */
bool sched_ckpt_may_pass(paramo_err err);

#endif
