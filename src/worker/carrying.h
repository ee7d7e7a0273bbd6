/*
 * Rows that filters hold back (error feedback), and the carriers that bring the others.
 *
 *     push of the application --> + what was held back of its keys --> selected rows --> carrier --> shards
 *                                                                 `--> the others are held back
 *
 * Except in the case below, no row that is held back is lost or sent twice, however the application's request ends.
 * Therefore the rows travel in requests of the client itself, the carriers. A carrier has no deadline and cannot be
 * cancelled: when the application's request ends early, the carrier continues under the numbers of its chunks. So its
 * rows are applied exactly once. If a shard refuses a chunk, the carrier sends it again later. A carrier ends early
 * only if the client ends: client_close and a death lose the rows that the client holds back. A flush sends all rows
 * of a table that are held back.
 *
 * The exception: no server may take a carrier for as long as a request may last, for instance because its owner is
 * dead and has no copy. The carrier keeps its number, and 1,024 numbers later no request can be sent. Then the client
 * gives the carrier up with a warning, and requests that wait for it end with NODE_LOST.
 *
 * Bounded: CARRYING_HELD_MAX bytes of rows held back (then rows travel instead), and CARRYING_SENT_MAX bytes of rows in
 * carriers (then pushes wait). On the lane. Tests: test/worker/test_carrying.c, the simulator.
 */
#ifndef WORKER_CARRYING_H
#define WORKER_CARRYING_H

#include "worker/client_impl.h"

enum {
    CARRYING_HELD_MAX = 64 << 20,
    CARRYING_SENT_MAX = 64 << 20,
    CARRYING_KEYS = 1 << 14, /* of a carrier: with CARRYING_BYTES of values, 2 ms */
    CARRYING_BYTES = 512 << 10
};

/* Is it a push of the application whose chain holds rows back? */
bool carrying_selects(const struct request *r);
/* Selects among the keys of s, a part of the push r. *carrier: has the rows that travel; to be sliced by the caller;
 * NULL: none does. r completes when its carriers have. AGAIN: carriers in flight hold CARRYING_SENT_MAX bytes.
 * MEMORY. In both cases nothing has changed. */
MUST_USE paramo_err carrying_portion(struct client *c, struct request *r, const struct span *s,
                                     struct request **carrier);
/* The next turn of a flush. *more: there may be other rows. The rest as above. */
MUST_USE paramo_err carrying_flush(struct client *c, struct request *flush, struct request **carrier,
                                   bool *more);
/* All turns are over: the flush completes when all carriers up to now have. */
void carrying_flushed(struct request *flush);
/* The chain of this table is about to change: rows that the old chain holds back must be sent through it. *flush: a
 * request of the client's own, to be sliced by the caller; NULL: nothing is held back. MEMORY. */
MUST_USE paramo_err carrying_chain_changes(struct client *c, const struct client_table *table,
                                           struct request **flush);
/* A chunk of the carrier was refused, and will be tried again: the requests that wait for the carrier end with this. */
void carrying_refused(struct request *carrier, paramo_err status, const char *text);
/* The carrier's time has passed: it gets another second, or is given up because it blocks the floor. */
void carrying_late(struct request *carrier);
/* The request is over. It is a carrier, has carriers, is a flush, or is another request. */
void carrying_release(struct request *r);
void carrying_fini(struct client *c);

/* For observers: calls fn with each row of the key that is held back or in flight in a carrier. */
void carrying_each(const struct client *c, uint32_t table, uint64_t key,
                   void (*fn)(void *arg, const void *row), void *arg);
/* How many carriers were given up. */
uint64_t carrying_given_up(const struct client *c);
/* The numbers of the table's oldest carrier in flight, and of its newest; 0: there is none. */
uint64_t carrying_oldest(const struct client *c, uint32_t table, uint64_t *newest);
/* Are any rows held back, or in flight? */
bool carrying_any(const struct client *c);

#endif
