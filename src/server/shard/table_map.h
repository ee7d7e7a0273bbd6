/*
 * The shard's tables by id. A table is added when a view first names it, and stays. This module never knows what a
 * table holds. Tests: test/server/test_shard.c.
 */
#ifndef SERVER_SHARD_TABLE_MAP_H
#define SERVER_SHARD_TABLE_MAP_H

#include "server/shard/shard_impl.h"

struct shard_tables {
    struct map by_id;
    struct shard_table *last; /* the table asked for last */
};

/* NULL: there is none. */
static inline struct shard_table *shard_table_get(const struct shard *s, uint32_t id)
{
    return map_get(&s->tables->by_id, id);
}

/* Like shard_table_get(), for a request. It remembers the table, because the next request most often names the same
 * one. */
static inline struct shard_table *shard_table_find(struct shard *s, uint32_t id)
{
    if (s->tables->last && s->tables->last->id == id)
        return s->tables->last;
    struct shard_table *t = shard_table_get(s, id);
    if (t)
        s->tables->last = t;
    return t;
}

/* Visits all tables: *at is 0 at first. NULL: that was all. */
struct shard_table *shard_table_next(const struct shard *s, size_t *at);
/* The map owns the table from now on. On an error it does not. */
MUST_USE paramo_err shard_table_add(struct shard *s, struct shard_table *t);
void shard_table_map_init(struct shard *s);
/* The tables have been freed. */
void shard_table_map_fini(struct shard *s);

#endif
