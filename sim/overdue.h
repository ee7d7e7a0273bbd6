/*
 * Old reads of an owner that is declared dead, does not know of it, and has a lease that its successor does not wait
 * for, because of a clock that is worse than promised (FAULTS.md, section 2, "Clocks"):
 *
 * - The owner's clock stood still. It answers for as long as its clock lags.
 * - The successor's clock jumped forward, so it served before it had waited CHAIN_LEASE_WAIT_MS. The owner answers
 *   until its lease ends.
 *
 * The owner lacks what its successor has acknowledged since then. A read during that time is judged as one that began
 * when the lease should have ended, or when the successor stopped waiting. This must never excuse a change, or rows
 * in a table. Tests: test/sim/test_overdue.c; test/sim/test_play.c.
 */
#ifndef SIM_OVERDUE_H
#define SIM_OVERDUE_H

#include <stdint.h>

#include "ring/partition_set.h"

struct world;
struct machine;
struct ledger_key;

/* After each event, of a server that is declared dead and runs. */
void overdue_watch(struct machine *server);
/* A shard's lease is overdue on these partitions, and was not after the last event on those of them in `begins`. */
void overdue_mark(struct world *w, const uint64_t partitions[PARTITION_WORDS],
                  const uint64_t begins[PARTITION_WORDS]);
/* Of a read: the moment of its beginning, and what it must hold. Both change if it may be such a read. */
void overdue_read(const struct ledger_key *k, uint64_t *from, uint64_t *must);
/* No open read is judged as one that began before this moment, if the oldest of them began then. */
uint64_t overdue_oldest(const struct world *w, uint64_t oldest);

#endif
