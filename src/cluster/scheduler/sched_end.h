/*
 * The end of the job: when it ends, with which status, how members learn of it, and when the scheduler itself ends.
 * Must never know: what the parts hold.
 * Tests: test/cluster/test_scheduler.c, test_job_end.c, test_lead.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_END_H
#define CLUSTER_SCHEDULER_SCHED_END_H

#include "base/cursor.h"
#include "base/err.h"
#include "env/lane.h"
#include "wire/calls.h"

struct scheduler;
struct sched_call;
struct sched_node;

struct sched_end {
    struct scheduler *sched; /* whose part it is */
    struct lane_timer timer;
    bool awaits_worker; /* RUNNING, and none is left: timer ends the wait for one (recovery_ms) */
    paramo_err status;
    char text[CALL_TEXT_MAX];
    bool told;      /* it is durable, or the job has no store */
    uint64_t since; /* it began; 0: it was found in the store */
};

void sched_end_init(struct scheduler *s);
/* The end is saved, and then told. If it cannot be saved in time, the scheduler leaves with the store's error, and
 * the job has not ended. */
void sched_end_begin(struct scheduler *s, paramo_err status, const char *text);
/* Ends the job with SHUTDOWN for this call, which is answered when the end is durable. The job runs. */
void sched_end_asked(struct sched_call *call, const char *text);
/* Ends the job if no worker is left, or begins to wait for one. */
void sched_end_check(struct scheduler *s);
/* ENDING: the scheduler is over as soon as no member is left, or after end_wait_ms; but not before the end is
 * durable. */
void sched_end_wait(struct scheduler *s);
/* The scheduler's clock: sets the timer of an end for which there was no memory. */
void sched_end_retry(struct scheduler *s);
/* A worker took a dead one's place: the job continues, if it waited for that. */
void sched_end_worker_joined(struct scheduler *s);
/* Another scheduler leads the job: this one sends nothing more. err_text() names it. */
void sched_end_fenced(struct scheduler *s);
/* Why the job ended; never empty. */
const char *sched_end_text(const struct scheduler *s);
/* It is durable, or the job has no store: members and nodes that wait for a place learn it now. */
void sched_end_tell(struct scheduler *s);
bool sched_end_is_told(const struct scheduler *s);
/* Sends the end again to a node that may have missed it. */
void sched_end_repeat(struct sched_node *node);
/* False: the message could not be sent to the node. */
bool sched_end_send(struct sched_node *node, paramo_err status, const char *text);
void sched_end_write(const struct scheduler *s, struct writer *w);
MUST_USE paramo_err sched_end_restore(struct scheduler *s, struct reader *record);
void sched_end_fini(struct scheduler *s);

#endif
