/*
 * The invariants after each event: order, how requests may end, barriers, views. It must never change the cluster.
 * Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_INVARIANTS_H
#define SIM_INVARIANTS_H

#include "paramo/app.h"
#include "van/van.h"

struct world;
struct machine;
struct op;

void invariants_watch_leaves(void *arg, uint32_t from, uint32_t to, const struct van_frame *frame);
void invariants_watch_arrives(void *arg, uint32_t from, uint32_t to, const uint8_t head[VAN_HEAD]);
/* A request has succeeded: have the requests before it, which it comes after? */
void invariants_after(const struct op *op);
/* A request that comes after others is about to be issued. */
void invariants_after_issue(struct op *op);
/* The request of that number has failed. */
void invariants_failed(const struct op *op, uint64_t ts);
/* The request is handled by this shard of the server. */
void invariants_handled(struct world *w, struct machine *server, unsigned index,
                        const paramo_request_info *info);
/* first to end: the machines in which something may have run. */
void invariants_step(struct world *w, uint32_t first, uint32_t end);
void invariants_barrier(struct machine *m, uint64_t number);
/* A key is written to etcd. */
void invariants_etcd(void *arg, const char *key, const char *value);
void invariants_status(struct op *op, paramo_err status);

#endif
