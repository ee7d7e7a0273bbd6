/*
 * Checkpoints of the running job. Takes and loads them, one at a time, when a member, an admin client or the timer
 * asks for it. For sched_recovery.h it loads only the lost rows of one.
 * Must never know: rows; servers write and read them (src/server/snapshot/).
 * Tests: test/cluster/test_sched_ckpt.c, test_sched_lost.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_CKPT_H
#define CLUSTER_SCHEDULER_SCHED_CKPT_H

#include "cluster/scheduler/sched_calls.h"
#include "env/fs.h"

struct ckpt_manifest;
struct sched_peer;
struct status;

/* A checkpoint of which shards know what has changed since. */
struct ckpt_base {
    char dir[FS_PATH_MAX];
    uint64_t number, id; /* 0: there is none */
    uint32_t links;      /* it and those that it is based on */
};

/* What checkpoints ask of, and tell, the parts above (scheduler.c). */
struct sched_ckpt_ops {
    /* What a checkpoint keeps of the job beside its tables, as durable records (sched_save_copy_begin): back. */
    paramo_err (*restore_extra)(struct scheduler *s, const uint8_t *records, size_t bytes);
    /* A load of lost rows is open. OK: the checkpoint has them. */
    paramo_err (*lost_opened)(struct scheduler *s, const char *dir, const struct ckpt_manifest *m);
    /* ... has ended; on an error this thread's message says why. */
    void (*lost_ended)(struct scheduler *s, const char *dir, uint64_t number, paramo_err err);
    /* No checkpoint is taken or loaded any more. */
    void (*idle)(struct scheduler *s);
};

struct sched_ckpts {
    struct scheduler *sched; /* whose part it is */
    const struct sched_ckpt_ops *ops;
    struct sched_ckpt *current; /* NULL: none is taken or loaded */
    struct ckpt_base base;      /* of the next, perhaps */
    struct sched_call_queue calls;
    struct lane_timer timer;
    struct { /* the last that was taken */
        uint64_t number, at;
        char dir[FS_PATH_MAX];
    } last;
};

void sched_ckpt_init(struct scheduler *s, const struct sched_ckpt_ops *ops);
void sched_ckpt_call(struct sched_call *call, struct reader *body);
MUST_USE paramo_err sched_ckpt_admin_query(struct sched_peer *peer, const struct wire_call *call,
                                           struct reader *body);
/* The job is complete: begins to load what it starts with, and starts the clock of --checkpoint-every. */
MUST_USE paramo_err sched_ckpt_begin(struct scheduler *s);
/* The same under a new scheduler: loads only what is not loaded yet. */
MUST_USE paramo_err sched_ckpt_start(struct scheduler *s);
/* Loads what is lost, and nothing else, from the last checkpoint. lost_opened and lost_ended follow. */
MUST_USE paramo_err sched_ckpt_load_lost(struct scheduler *s);
/* The one that is taken or loaded fails, with this thread's message. */
void sched_ckpt_abandon(struct scheduler *s, paramo_err err);
/* One is taken or loaded now: nothing migrates. */
bool sched_ckpt_busy(const struct scheduler *s);
void sched_ckpt_fini(struct scheduler *s);
/* The checkpoint that servers take what is lost from at present; 0: none. */
uint64_t sched_ckpt_returns(const struct scheduler *s);
/* The checkpoint that servers load at present because the job begins with it; 0: none. */
uint64_t sched_ckpt_begins_with(const struct scheduler *s);
void sched_ckpt_status(const struct scheduler *s, struct status *m);

#endif
