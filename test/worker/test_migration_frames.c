/* What a migration's target does with a message that says too little, or too much. */
#include "server/migration/target.h"
#include "server/shard/shard_tables.h"
#include "unit.h"

#include <string.h>

#include "wire/migration_step.h"
#include "wire/order.h"
#include "wire/partition_bits.h"
#include "worker/support_world.h"

static struct world w;

static const struct migration_order migration = {.id = (UINT64_C(1) << 32) + 1,
                                                 .partitions = 256,
                                                 .from = {.node = PARAMO_ID_SERVER(0)},
                                                 .to = {.node = PARAMO_ID_SERVER(1)},
                                                 .had = MIGRATION_NO_LEVEL};

static void answered(void *arg, paramo_err status)
{
    assert_null(arg);
    assert_int_equal(status, PARAMO_OK);
}

static void source_begins(void *arg)
{
    shard_migration_order(arg, ORDER_MIGRATION_SOURCE, &migration, answered, NULL);
}

static void target_begins(void *arg)
{
    shard_migration_order(arg, ORDER_MIGRATION_TARGET, &migration, answered, NULL);
}

static struct chain_source *source(void)
{
    struct chain_source *source = w.servers[1].shard->chain->sources;
    while (source && !source->for_migration)
        source = source->next;
    return source;
}

static bool is_full(void *arg)
{
    uint64_t id;
    (void)arg;
    return w.servers[1].shard->chain->migration_target && source() &&
           migration_target_state(w.servers[1].shard->chain->migration_target, &id) == MIGRATION_TARGET_FULL;
}

/* The source says which rows of a table are lost. Only a list of all partitions, and of nothing more, says that. */
static void takes_lists(void *arg)
{
    struct shard *s = arg;
    const struct shard_table *t = shard_table_find(s, w.tables[0].id);
    uint8_t list[PARTITION_BITS_BYTES + 8] = {1};
    assert_non_null(t);
    for (size_t bytes = 4; bytes <= sizeof list; bytes += 4) {
        bool whole = bytes == PARTITION_BITS_BYTES, after = bytes > PARTITION_BITS_BYTES;
        struct van_seg seg = {.data = list, .len = bytes};
        struct migration_message m = {.seq = source()->received + 1,
                                      .view = w.number,
                                      .what = MIGRATION_STEP_LOST,
                                      .id = migration.id,
                                      .table = t->id,
                                      .bytes = bytes};
        struct wire_head head;
        migration_head(&m, &head);
        paramo_err err = migration_target_frame(source(), &head, &seg, 1);
        assert_int_equal(err, whole ? PARAMO_OK : PARAMO_E_PROTOCOL);
        assert_int_equal(source()->received, m.seq - !whole); /* what it has received it acknowledges */
        assert_int_equal(partition_set_has(t->lost_partitions, 0), whole || after);
        assert_false(partition_set_has(t->lost_partitions, 1));
    }
}

static void a_list_of_lost_partitions_that_is_cut_off(void **state)
{
    (void)state;
    world_init(&w, true, 3);
    w.migrations = true;
    world_table(&w, PARAMO_TABLE_SPARSE, 1);
    world_start(&w, 2, 2, 1);
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        w.ring.owner[a] = a >= migration.partitions;
    for (unsigned i = 0; i < 2; i++)
        w.partitions_changed[i] = w.chain_changed[i] = w.number + 1;
    world_view(&w);
    world_all_view(&w);
    world_on_lane(w.servers[1].lane, target_begins, w.servers[1].shard);
    world_on_lane(w.servers[0].lane, source_begins, w.servers[0].shard);
    assert_true(sim_run(w.sim, is_full, NULL, sim_now(w.sim) + ENV_SEC));
    world_on_lane(w.servers[1].lane, takes_lists, w.servers[1].shard);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_list_of_lost_partitions_that_is_cut_off)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
