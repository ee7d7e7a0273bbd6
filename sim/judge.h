/*
 * The invariants: after each event, and over all tables. It must never change the cluster. Tests:
 * test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_JUDGE_H
#define SIM_JUDGE_H

#include "paramo/app.h"
#include "sim/ops.h"
#include "sim/sizes.h"
#include "van/van.h"

struct world;
struct machine;
struct view;

void judge_watch_leaves(void *arg, uint32_t from, uint32_t to, const struct van_frame *frame);
void judge_watch_arrives(void *arg, uint32_t from, uint32_t to, const uint8_t head[VAN_HEAD]);
/* The places of servers that are dead in the view, one bit each. */
uint32_t judge_sees_dead(const struct view *view);
/* A request has succeeded: have the requests before it, which it comes after? */
void judge_after(const struct op *op);
/* The request is handled by this shard of the server. */
void judge_handled(struct world *w, struct machine *server, unsigned index, const paramo_request_info *info);
/* first to end: the machines in which something may have run. */
void judge_step(struct world *w, uint32_t first, uint32_t end);
/* last: everything that is still kept must be needed. */
void judge_full(struct world *w, bool last);
/* A view has declared the machine's process dead, or it is another process. */
void judge_dead(struct machine *m, bool dead);
void judge_barrier(struct machine *m, uint64_t number);
/* A key is written to etcd. */
void judge_etcd(void *arg, const char *key, const char *value);
extern const char *const sim_table_names[SIM_TABLES];
/* A key's row at the owner (level 0) or a replica of the newest view, if that process is up: at most SIM_WIDE
 * values, *n of them. False: there is no such copy. */
bool judge_row(struct world *w, enum sim_table table, unsigned index, unsigned level, uint64_t *vals,
               unsigned *n);
/* The view that a shard of the newest view has itself; 0: its process is not up. */
uint64_t judge_shard_view(const struct world *w, unsigned shard);
/* The number of members of a partition's chain, without the owner, that have rows of the table. */
unsigned judge_replicas(const struct world *w, enum sim_table table);
/* A server has died in a view, and its rows of this table had no copies. */
bool judge_bereft(const struct world *w, enum sim_table table);
/* The same, and no clear or load that began after it had succeeded when this request began. */
bool judge_may_be_lost(const struct world *w, enum sim_table table, uint64_t from);
/* Have more servers died since each partition had all its copies than the table with the fewest replicas
 * allows, so that rows are lost for good? If not, no chain has lost all its members: deaths make a chain
 * shorter, and a migration replaces one full member by another. */
bool judge_data_lost(const struct world *w);
/* May requests fail because a server is dead? They may if no other server has its rows and it does not
 * return. */
bool judge_may_refuse(const struct world *w);
/* How many servers may be gone: the replicas of the table that has the fewest, but has some. */
unsigned judge_spare(const struct world *w);
/* May that many servers have died? */
bool judge_enough(const struct world *w, unsigned gone);
/* The machine may hold the last copy of some rows. */
bool judge_needs(const struct world *w, const struct machine *server);
/* A cell's row of two values: 0, or the value that was written. A torn row is a violation. */
uint64_t judge_cell(struct world *w, const char *where, const uint64_t vals[2]);
void play_hit(struct world *w, size_t fault);
void judge_status(struct op *op, paramo_err status);
/* The first violation counts. */
void judge_broken(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
