/*
 * Lost rows: which rows of which tables have lost their last copy, and their names in messages.
 * Must never know: how they are recovered (sched_recovery.h).
 * Tests: test/cluster/test_sched_lost.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_LOST_H
#define CLUSTER_SCHEDULER_SCHED_LOST_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring.h"
#include "wire/calls.h"

struct scheduler;
struct view;
struct view_table;

struct sched_lost {
    uint8_t level[RING_PARTITIONS]; /* the levels whose rows are restored, as in struct view, and ... */
    uint64_t at;                    /* ... since which view; 0: nothing */
    bool more;                      /* rows were lost since the restore began */
};

/* Takes the lost rows from a saved view. */
void sched_lost_restore(struct scheduler *s, const struct view *view);
/* Rows are restored that are lost since this view; 0: none. Which, by partition, as in struct view. */
uint64_t sched_lost_since(const struct scheduler *s);
const uint8_t *sched_lost_levels(const struct scheduler *s);
/* Servers are gone and have left holes (sched_ring_lowest): notes what to restore, and gives partitions
 * without a member new owners. */
void sched_lost_note(struct scheduler *s);
/* Rows were lost since the restore began. */
bool sched_lost_grew(const struct scheduler *s);
/* The loss by the last deaths has been handled. */
void sched_lost_reported(struct scheduler *s);
/* The rows are restored, or will not be. */
void sched_lost_over(struct scheduler *s);
/* Are rows of this table among those that are restored? */
bool sched_lost_table(const struct scheduler *s, const struct view_table *table);
/* The partitions where the table's rows are restored; without a restore, those where the last deaths took them. */
uint32_t sched_lost_partitions(const struct scheduler *s, const struct view_table *table);
/* Names the servers that are gone and the keys of each table that went with them. False: no table had any. */
bool sched_lost_describe(const struct scheduler *s, char text[CALL_TEXT_MAX]);
/* Like sched_lost_describe(), for one table and without the servers. */
void sched_lost_describe_keys(const struct scheduler *s, const struct view_table *table,
                              char text[CALL_TEXT_MAX]);

#endif
