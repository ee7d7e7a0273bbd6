/*
 * Checkpoints of the running job: takes and loads them, one at a time, for a member, an admin client or the
 * clock; and takes what is lost from the last one.
 * Must never know: rows; servers write and read them (src/server/snapshot/).
 * Tests: test/cluster/test_sched_ckpt.c, test_sched_lost.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_CKPT_H
#define CLUSTER_SCHEDULER_SCHED_CKPT_H

#include "cluster/scheduler/sched_calls.h"
#include "env/fs.h"

struct sched_peer;
struct status;

/* A checkpoint of which shards know what has changed since. */
struct ckpt_base {
    char dir[FS_PATH_MAX];
    uint64_t number, id; /* 0: there is none */
    uint32_t links;      /* it and those that it is based on */
};

struct sched_ckpts {
    struct scheduler *sched;    /* whose part it is */
    struct sched_ckpt *current; /* NULL: none is taken or loaded */
    struct ckpt_base base;      /* of the next, perhaps */
    struct sched_call_queue calls;
    struct lane_timer timer;
    bool restoring; /* the job begins with a checkpoint: workers get no view before it is loaded */
    struct lane_timer lost_timer; /* the next try to restore what is lost is due */
    unsigned lost_tries;          /* that have failed */
    bool lost_said;               /* to which checkpoint these rows return */
    struct {                      /* the last that was taken */
        uint64_t number, at;
        char dir[FS_PATH_MAX];
    } last;
};

void sched_ckpt_call(struct sched_call *call, struct reader *body);
MUST_USE paramo_err sched_ckpt_admin_query(struct sched_peer *peer, const struct wire_call *call,
                                           struct reader *body);
/* The job is complete: begins to load what it starts with, and starts the clock of --checkpoint-every. */
MUST_USE paramo_err sched_ckpt_begin(struct scheduler *s);
/* The same under a new scheduler: loads only what is not loaded yet. */
MUST_USE paramo_err sched_ckpt_start(struct scheduler *s);
/* Rows are lost: they are restored from the last checkpoint, in a moment. more: since the last
 * call; the one in progress ends. */
void sched_ckpt_lost(struct scheduler *s, bool more);
/* No rows are lost any more. */
void sched_ckpt_lost_ended(struct scheduler *s);
/* A view has been announced, and is durable. */
void sched_ckpt_announced(struct scheduler *s);
/* One is taken or loaded now: nothing migrates. */
bool sched_ckpt_busy(const struct scheduler *s);
/* The checkpoint that the job begins with is not loaded yet. */
bool sched_ckpt_restoring(const struct scheduler *s);
/* A durable record says so. */
void sched_ckpt_restoring_found(struct scheduler *s);
void sched_ckpt_fini(struct scheduler *s);
/* The checkpoint that servers take what is lost from at present; 0: none. */
uint64_t sched_ckpt_returns(const struct scheduler *s);
/* The checkpoint that servers load at present because the job begins with it; 0: none. */
uint64_t sched_ckpt_begins_with(const struct scheduler *s);
void sched_ckpt_status(const struct scheduler *s, struct status *m);

#endif
