/*
 * The copies of rows as the shards have them: which process is a shard of the newest view, and what its tables hold.
 * It must never judge them. Tests: test/sim/test_play.c.
 */
#ifndef SIM_COPIES_H
#define SIM_COPIES_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/sizes.h"

struct world;
struct machine;
struct shard;
struct shard_table;
struct ledger_key;

/* The process of a shard of the newest view; NULL: it is not up. */
const struct machine *copies_machine(const struct world *w, unsigned shard);
const struct shard *copies_shard(const struct world *w, const struct machine *m, unsigned shard);
/* The view that a shard of the newest view has itself; 0: its process is not up. */
uint64_t copies_shard_view(const struct world *w, unsigned shard);
/* A shard's table; NULL: it has none. The second one leaves out tables that lack memory: no request to them is
 * answered. */
const struct shard_table *copies_any_table(struct world *w, const struct shard *shard, enum sim_table table);
const struct shard_table *copies_table(struct world *w, const struct shard *shard, enum sim_table table);
/* A shard that owns partitions of a table without copies since a death is not checked before it knows of it. */
bool copies_known(const struct shard *shard, const struct shard_table *st, const struct ledger_key *key);
/* Is the row gone, although it is not removed yet? No request reads it from then on. */
bool copies_cleared(const struct shard_table *st, const struct ledger_key *key);
/* The values of a row in the arrays that rows are read into. */
static inline unsigned copies_width(enum sim_table t)
{
    return t == SIM_VAR || t == SIM_ROWS ? SIM_WIDE : sim_row_values(t, 0);
}
/* Reads the rows of these keys, given by their places in the ledger. lens: the values of each row. vals:
 * copies_width(t) values of each. */
void copies_read(const struct world *w, const struct shard_table *st, enum sim_table t, const uint8_t *places,
                 unsigned count, uint32_t *lens, uint64_t *vals);
/* A key's row at the owner (level 0) or a replica of the newest view, if that process is up: at most SIM_WIDE
 * values, *n of them. False: there is no such copy. */
bool copies_row(struct world *w, enum sim_table table, unsigned index, unsigned level, uint64_t *vals,
                unsigned *n);

#endif
