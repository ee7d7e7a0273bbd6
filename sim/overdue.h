/*
 * Reads of an owner that is declared dead and whose clock stood still during its lease. It answers them for as long as
 * its clock lags, without what its successor has acknowledged since then (FAULTS.md, section 2, "Clocks"). Such a read is
 * judged as one that began when the lease ended by a clock that had not stood still. It must never excuse a change, or
 * rows in a table. Tests: test/sim/test_ledger.c; test/sim/test_play.c.
 */
#ifndef SIM_OVERDUE_H
#define SIM_OVERDUE_H

#include <stdbool.h>
#include <stdint.h>

struct world;
struct machine;
struct ledger_key;

/* After each event, of a server that is declared dead and runs. */
void overdue_watch(struct machine *server);
/* The server's shard still has an overdue lease for these partitions. begins: it had none after the last event. */
void overdue_mark(struct world *w, const uint64_t *partitions, bool begins);
/* Of a read: the moment of its beginning, and what it must hold. Both change if it may be such a read. */
void overdue_read(const struct ledger_key *k, uint64_t *from, uint64_t *must);
/* No open read is judged as one that began before this moment, if the oldest of them began then. */
uint64_t overdue_oldest(const struct world *w, uint64_t oldest);

#endif
