/*
 * The views of the shard that fuzz_shard.c plays with: chains of blocks of partitions, deaths, and committed
 * migrations. It must never know what the shard does with a view.
 */
#ifndef FUZZ_SHARD_VIEWS_H
#define FUZZ_SHARD_VIEWS_H

#include "harness.h"
#include "server/shard/shard.h"
#include "wire/migration_order.h"

enum {
    SERVERS = 4,
    SELF = 1,
    WORKERS = 2,
    BLOCKS = 4, /* of partitions that have one chain */
    BLOCK_PARTITIONS = RING_PARTITIONS / BLOCKS,
    REPLICAS = 2,
    INCARNATION = 100
};

/* Ids; ALONE has no replicas. Requests with a clock alone are for AGGREGATED. */
enum { DENSE = 1, SPARSE, ALONE, VAR, TABLES = VAR, AGGREGATED, TABLES_ALL = AGGREGATED };

struct shard_views {
    struct shard *shard;
    struct view *view;              /* the newest */
    struct ring_chains chains, old; /* of the next view, and of the newest */
    uint64_t owner_gone[RING_PARTITIONS];
    uint64_t number, moved, changed_partitions, changed_chain;
    unsigned dead;                    /* bits: servers, then workers */
    struct migration_order migration; /* the last one ordered; id 0: none */
};

/* A server, or SERVERS and a worker's rank. */
bool shard_views_alive(const struct shard_views *x, unsigned bit);
/* The shard gets the next view; term: of another scheduler. */
void shard_views_next(struct shard_views *x, bool term);
/* The chain of one block: a draw of living servers, the first the owner. */
void shard_views_draw(struct shard_views *x, unsigned block, unsigned draw);
/* A node dies, or all live again. Dead servers leave every chain; the first that is left becomes the owner. */
void shard_views_deaths(struct shard_views *x, struct source *s);
/* The migration is committed: its target joins the chain at its end, or at its front. */
void shard_views_commit(struct shard_views *x, bool front);

#endif
