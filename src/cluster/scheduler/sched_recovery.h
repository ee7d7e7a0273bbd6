/*
 * Recovery of lost rows: the job ends and names the lost rows. With --on-loss restore these rows, and no others, are
 * loaded from the last checkpoint instead.
 * Must never know: how a checkpoint is loaded (sched_ckpt.h).
 * Tests: test/cluster/test_sched_lost.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_RECOVERY_H
#define CLUSTER_SCHEDULER_SCHED_RECOVERY_H

#include "cluster/scheduler/sched_lost.h"
#include "env/fs.h"
#include "env/lane.h"

struct ckpt_manifest;
struct scheduler;
struct sched_node;

struct sched_recovery {
    struct scheduler *sched;      /* whose part it is */
    struct lane_timer timer;      /* the next try to restore what is lost is due */
    unsigned tries;               /* that have failed */
    bool said;                    /* the checkpoint to which these rows return was logged */
    char back[FS_PATH_MAX + 160]; /* that checkpoint, while it is loaded; "" */
};

void sched_recovery_init(struct scheduler *s);
/* A server is gone: shards with copies take over, and what is lost is noted. sched_recovery_check follows. */
void sched_recovery_server_gone(const struct sched_node *server);
/* Ends the job if rows are lost, or has them restored. Logs which servers are gone, and which keys of which tables
 * are lost with them. */
void sched_recovery_check(struct scheduler *s);
/* A view has been announced, and is durable. */
void sched_recovery_announced(struct scheduler *s);
/* Events of a checkpoint that lost rows are loaded from: it is open; it has ended. The third: no checkpoint is in
 * progress now. */
MUST_USE paramo_err sched_recovery_opened(struct scheduler *s, const char *dir,
                                          const struct ckpt_manifest *m);
void sched_recovery_ended(struct scheduler *s, const char *dir, uint64_t number, paramo_err err);
void sched_recovery_idle(struct scheduler *s);
void sched_recovery_fini(struct scheduler *s);

#endif
