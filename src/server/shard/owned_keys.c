#include "server/shard/owned_keys.h"

#include <assert.h>

#include "server/replication/chain_impl.h"

static bool is_owned(void *arg, uint64_t key)
{
    const struct owned_keys *keys = arg;
    return partition_set_has(keys->shard->chain->mine,
                             ring_partition(ring_position(&keys->table->placement, key)));
}

table_wants owned_keys_only(const struct owned_keys *keys)
{
    assert(keys->table->table);
    return chain_mixes(keys->shard, keys->table) ? is_owned : NULL;
}
