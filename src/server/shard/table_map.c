#include "server/shard/table_map.h"

#include <assert.h>

struct shard_table *shard_table_next(const struct shard *s, size_t *at)
{
    uint64_t id;
    void *value;
    if (!map_next(&s->tables->by_id, at, &id, &value))
        return NULL;
    struct shard_table *t = value;
    assert(t->id == id);
    return t;
}

paramo_err shard_table_add(struct shard *s, struct shard_table *t)
{
    assert(!shard_table_get(s, t->id)); /* an id is given once */
    return map_put(&s->tables->by_id, t->id, t);
}

void shard_table_map_init(struct shard *s)
{
    map_init(&s->tables->by_id);
}

void shard_table_map_fini(struct shard *s)
{
    map_fini(&s->tables->by_id);
    s->tables->last = NULL;
}
