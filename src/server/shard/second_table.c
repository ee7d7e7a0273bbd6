#include "server/shard/second_table.h"

#include "server/shard/apply_rows.h"
#include "server/shard/shard_tables.h"
#include "server/shard/table_map.h"

static bool same_placement(const struct shard_table *a, const struct shard_table *b)
{
    return a->placement.kind == b->placement.kind &&
           (a->placement.kind != PARAMO_PLACE_DENSE || a->placement.rows == b->placement.rows);
}

paramo_err second_table(struct shard *s, const struct shard_table *t, const struct wire_head *h,
                        const uint64_t *keys, uint32_t id, struct shard_table **other)
{
    struct shard_table *found = shard_table_get(s, id);
    if (!found && !view_table(s->view, id))
        return err_set(PARAMO_E_NO_TABLE, "the server has no table of this id");
    if (!found || found->lacks) {
        shard_table_again(s);
        return err_set(PARAMO_E_MEMORY, "the server is out of memory for the table");
    }
    if (!found->table || !same_placement(t, found))
        return err_set(PARAMO_E_SIZE_MISMATCH, "tables %s and %s do not keep the rows of a key together",
                       t->name, found->name);
    paramo_err err = apply_check_lost(s, found, h, keys);
    if (!err)
        *other = found;
    return err;
}
