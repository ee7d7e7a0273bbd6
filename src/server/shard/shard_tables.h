/*
 * The tables of a shard: their rows, their memory, and which of their rows are lost. A table without memory for its
 * rows tries again; freed memory goes back to the system in steps. This module never knows where a view comes from, nor
 * what a request does with a table. Tests: test/server/test_shard_tables.c, test_lost_rows.c,
 * test/worker/test_no_memory.c.
 */
#ifndef SERVER_SHARD_SHARD_TABLES_H
#define SERVER_SHARD_SHARD_TABLES_H

#include "server/shard/shard_impl.h"
#include "server/shard/table_map.h"

struct shard_upkeep {
    struct shard *shard;
    struct lane_timer trimming;   /* memory that tables have freed goes back */
    struct lane_timer furnishing; /* tables that lack memory try again */
};

void shard_tables_init(struct shard *s);
/* Frees all tables. */
void shard_tables_close(struct shard *s);
/* Marks rows of these partitions (NULL: of all) as lost, or, after a clear or a load, as not lost. */
void shard_table_lose(struct shard_table *t, const uint64_t *partitions, bool lost);
/* The table's memory, with what is freed but not returned yet. */
uint64_t shard_table_bytes(const struct shard_table *t);
/* Tables that lack memory try again now, or soon. Until they succeed, requests to them answer MEMORY, and members
 * before us wait. */
void shard_tables_furnish(struct shard *s);
void shard_table_again(struct shard *s);
/* DENSE: makes rows of partitions that are held now, or soon, and were not before. room: clearing_begin_some's. */
MUST_USE paramo_err shard_table_own(struct shard *s, struct shard_table *t, size_t *room);
/* A table without rows; the caller owns it. */
MUST_USE paramo_err shard_table_make(struct shard *s, const struct view_table *from,
                                     struct shard_table **made);
/* A table of a view that is not adopted yet, with room for the rows that the view gives this shard (self, runs: as in
 * the struct). Rows in t->clearing have no values yet. On an error nothing is made. */
MUST_USE paramo_err shard_table_prepare(struct shard *s, const struct view_table *from,
                                        const struct view *view, int self,
                                        const uint64_t runs[PARTITION_WORDS], size_t *room,
                                        struct shard_table **out);
void shard_table_free(struct shard_table *t);

#endif
