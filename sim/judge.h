/*
 * What the judges of all parts share: the verdict, and what follows from the views that nodes have seen: which servers
 * are dead, and whether rows may be lost. invariants.c and row_checks.c have the invariants of the whole. It must never
 * change the cluster. Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_JUDGE_H
#define SIM_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/sizes.h"

struct world;
struct machine;
struct view;
struct scheduler;

/* The places of servers that are dead in the view, one bit each. */
uint32_t judge_sees_dead(const struct view *view);
/* A view has declared the machine's process dead, or it is another process. */
void judge_dead(struct machine *m, bool dead);
/* The number of members of a partition's chain, without the owner, that have rows of the table. */
unsigned judge_replicas(const struct world *w, enum sim_table table);
/* Has a server died in a view without copies of its rows of this table? */
bool judge_rows_lost(const struct world *w, enum sim_table table);
/* Like judge_rows_lost(), and no clear or load that began after the death had succeeded when this request began. */
bool judge_may_be_lost(const struct world *w, enum sim_table table, uint64_t from);
/* Have more servers died since each partition had all its copies than the table with the fewest replicas
 * allows, so that rows are lost for good? If not, no chain has lost all its members: deaths make a chain
 * shorter, and a migration replaces one full member by another. */
bool judge_data_lost(const struct world *w);
/* Is the end of the job in its store, or has it no store? Only then may a node, a call or a process learn of it. */
bool judge_end_durable(const struct world *w);
/* Like judge_end_durable(), for this scheduler. */
bool judge_scheduler_end_durable(const struct scheduler *s);
/* May requests fail because a server is dead? They may if no other server has its rows and it does not
 * return. */
bool judge_may_refuse(const struct world *w);
/* How many servers may be gone: the replicas of the table that has the fewest, but has some. */
unsigned judge_spare(const struct world *w);
/* May that many servers have died? */
bool judge_enough(const struct world *w, unsigned gone);
/* The machine may hold the last copy of some rows. */
bool judge_needs(const struct world *w, const struct machine *server);
/* Checks a row of two values: 0, or the value that was written. A torn row is a violation. */
uint64_t judge_row(struct world *w, const char *where, const uint64_t vals[2]);
/* The first violation counts. */
void judge_broken(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
