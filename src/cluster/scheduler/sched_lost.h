/*
 * Lost rows: partitions whose last copy is gone. The job ends and says what is lost; or (--on-loss restore)
 * those rows, and no others, return to the last checkpoint.
 * Must never know: how a checkpoint is loaded (sched_ckpt.h).
 * Tests: test/cluster/test_sched_lost.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_LOST_H
#define CLUSTER_SCHEDULER_SCHED_LOST_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring.h"

struct scheduler;
struct view;
struct view_table;

struct sched_lost {
    uint8_t lowest[RING_PARTITIONS]; /* of the last death, as ring_promote has it, until sched_lost_check */
    uint8_t level[RING_PARTITIONS];  /* what is restored, as in struct view, and ... */
    uint64_t at;                     /* ... since which view; 0: nothing */
    bool more;                       /* rows were lost since the restore began */
};

/* Do rows whose last copy is lost return to a checkpoint? */
bool sched_lost_restores(const struct scheduler *s);
/* Takes what is lost from a saved view. */
void sched_lost_restore(struct scheduler *s, const struct view *view);
/* Rows are restored that are lost since this view; 0: none. Which, by partition, as in struct view. */
uint64_t sched_lost_since(const struct scheduler *s);
const uint8_t *sched_lost_levels(const struct scheduler *s);
/* For ring_promote, which fills it. */
uint8_t *sched_lost_lowest(struct scheduler *s);
/* Servers are gone and have left holes (sched_lost_lowest): notes what to restore, and gives partitions
 * without a member new owners. */
void sched_lost_note(struct scheduler *s);
/* Ends the job if rows are lost, or has them restored. Says which servers are gone, and with them which keys
 * of which tables. */
void sched_lost_check(struct scheduler *s);
/* Of what is restored: has the table any of it? */
bool sched_lost_table(const struct scheduler *s, const struct view_table *table);
/* Warns which servers are gone, and which keys of which tables return to where `back` says. */
void sched_lost_warn(const struct scheduler *s, const char *back);
/* Ends the job: what is lost, and why it cannot be restored (or NULL). The job continues with a warning if it
 * would do so with nothing to restore. Does nothing if no table has lost any. */
void sched_lost_end(struct scheduler *s, const char *why);
/* The rows are restored, or will not be: views no longer say that they return. */
void sched_lost_restored(struct scheduler *s);

#endif
