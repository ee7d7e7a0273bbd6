/*
 * Durable records: which part writes and reads which kind, for saves (sched_save.h) and for checkpoints.
 * Must never know: what is in a record, or when it is saved.
 * Tests: test/cluster/test_restart.c, test_sched_ckpt.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_RECORDS_H
#define CLUSTER_SCHEDULER_SCHED_RECORDS_H

#include "cluster/scheduler/sched_save.h"

extern const struct sched_save_ops sched_records_ops;

/* Passes the records that the store has read to their parts. */
MUST_USE paramo_err sched_records_restore(struct scheduler *s);
/* Restores what a checkpoint keeps of the job beside its tables, in place of the present values and pools (durable
 * records of sched_save_copy_begin). Work units that were leased are dealt again. */
MUST_USE paramo_err sched_records_restore_extra(struct scheduler *s, const uint8_t *records, size_t bytes);

#endif
