/*
 * Blocking jobs: functions that may block (an fsync). They run beside the lanes, one after the other, in the
 * order posted. The end of each is a task on the lane that it names. So a disk that hangs stops no state
 * machine. A real environment runs them on a thread; in a simulated one each is an event, some virtual
 * milliseconds later.
 *
 * The poster owns the memory of a blocking job, and must not touch it until done is called. This module never knows
 * what a job does. Tests: test/env/test_blocking_job.c.
 */
#ifndef ENV_BLOCKING_JOB_H
#define ENV_BLOCKING_JOB_H

#include "env/lane.h"

struct blocking_jobs;

/* The poster must not touch it between blocking_jobs_post and done. */
struct blocking_job {
    struct lane *lane; /* NULL: done is called off the lanes, right after work */
    void (*work)(struct blocking_job *blocking_job); /* off the lane; touches nothing that the lane touches */
    void (*done)(struct blocking_job *blocking_job); /* on the lane; may free it or post it again */
    struct lane_task end;                            /* private to env from here on */
    struct qnode node;
};

MUST_USE paramo_err blocking_jobs_create(struct env *env, const char *name,
                                         struct blocking_jobs **blocking_jobs);
/* Any thread. */
void blocking_jobs_post(struct blocking_jobs *blocking_jobs, struct blocking_job *blocking_job);
/* Waits until all posted jobs have run. On return their ends are in the lanes' inboxes. NULL is allowed. */
void blocking_jobs_destroy(struct blocking_jobs *blocking_jobs);

#endif
