/*
 * The states of the scheduler and its store, for the coverage (cover.h). It must never change them. Tests:
 * test/sim/test_cover.c.
 */
#ifndef SIM_COVER_SCHED_H
#define SIM_COVER_SCHED_H

struct watch;

void cover_watch_scheduler(struct watch *l);

#endif
