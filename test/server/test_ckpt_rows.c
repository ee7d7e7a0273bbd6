/* Tables through checkpoints: bit for bit, on any number of shards, from a base and deltas. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "server/snapshot/ckpt_rows.h"
#include "sim/env/simfs.h"

enum { SHARDS_MAX = 5, KEYS = 3000, DIM = 3, ROWS = 5000, KINDS = 3 };
enum { MIXED, DENSE, VAR };

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
    seed += UINT64_C(0x9e3779b97f4a7c15);
    return mix64(seed) % below;
}

/* A cluster: each shard's part of three tables. */
struct cluster {
    size_t shards;
    struct ring ring;
    struct table *table[SHARDS_MAX][KINDS];
};

static paramo_table_options options_of(unsigned kind)
{
    paramo_table_options o;
    table_options_default(&o);
    o.dim = kind == VAR ? 1 : DIM;
    o.kind = kind == MIXED ? PARAMO_TABLE_SPARSE : kind == DENSE ? PARAMO_TABLE_DENSE : PARAMO_TABLE_VAR;
    o.rows = kind == DENSE ? ROWS : 0;
    o.optimizer = kind == VAR ? PARAMO_OPT_ASSIGN : PARAMO_OPT_ADAM;
    o.alpha = 0.1F;
    o.placement = table_options_placement(&o);
    return o;
}

static struct ring_placement placement_of(unsigned kind)
{
    paramo_table_options o = options_of(kind);
    return (struct ring_placement){.kind = o.placement, .rows = o.rows};
}

static void cluster_open(struct cluster *c, size_t shards)
{
    c->shards = shards;
    assert_int_equal(ring_assign(NULL, shards, NULL, &c->ring), PARAMO_OK);
    struct ring_placement dense = placement_of(DENSE);
    for (size_t s = 0; s < shards; s++)
        for (unsigned kind = 0; kind < KINDS; kind++) {
            paramo_table_options o = options_of(kind);
            assert_int_equal(table_create(&o, 77, NULL, &c->table[s][kind]), PARAMO_OK);
            for (unsigned a = 0; kind == DENSE && a < RING_PARTITIONS; a++) {
                uint64_t first = ring_first_row(&dense, a), end = ring_first_row(&dense, a + 1);
                if (c->ring.owner[a] == s && end > first)
                    assert_int_equal(table_dense_own(c->table[s][kind], first, end - first), PARAMO_OK);
            }
        }
}

static void cluster_close(struct cluster *c)
{
    for (size_t s = 0; s < c->shards; s++)
        for (unsigned kind = 0; kind < KINDS; kind++)
            table_destroy(c->table[s][kind]);
}

static struct table *table_at(const struct cluster *c, unsigned kind, uint64_t key)
{
    struct ring_placement placement = placement_of(kind);
    return c->table[c->ring.owner[ring_partition(ring_position(&placement, key))]][kind];
}

static uint64_t key_of(unsigned kind, size_t i)
{
    return kind == DENSE ? i % ROWS : mix64(i + 1);
}

static void push_one(struct cluster *c, unsigned kind, size_t i)
{
    uint64_t key = key_of(kind, i);
    float values[8];
    for (size_t k = 0; k < 8; k++)
        values[k] = (float)draw(1000) / 64 - 7;
    uint32_t len = (uint32_t)draw(8);
    if (kind == VAR)
        assert_int_equal(table_var_push(table_at(c, kind, key), &key, 1, values, &len), PARAMO_OK);
    else
        assert_int_equal(table_push(table_at(c, kind, key), &key, 1, values), PARAMO_OK);
}

/* ---- saving as a shard would ---- */

static struct simfs *disk;

static void put_keys(struct ckpt_writer *w, const struct table *t, unsigned kind, const uint64_t *keys,
                     size_t n, bool erased)
{
    struct ring_placement placement = placement_of(kind);
    uint64_t *sorted = malloc((n + 1) * sizeof *sorted);
    assert_non_null(sorted);
    assert_int_equal(ckpt_by_partition(&placement, keys, n, sorted), PARAMO_OK);
    for (size_t at = 0, took; at < n; at += took) {
        struct writer payload = {0};
        struct ckpt_block block;
        if (erased)
            assert_int_equal(
                ckpt_erased_encode(kind + 1, &placement, sorted + at, n - at, &payload, &block, &took),
                PARAMO_OK);
        else
            assert_int_equal(
                ckpt_rows_encode(t, kind + 1, &placement, sorted + at, n - at, &payload, &block, &took),
                PARAMO_OK);
        assert_true(took > 0);
        assert_int_equal(ckpt_put(w, &block), PARAMO_OK);
        writer_fini(&payload);
    }
    free(sorted);
}

/* All rows, or those that changed since the base: changed[kind][i] 1 a row, 2 erased. */
static void save(const struct cluster *c, uint64_t number, uint64_t base, unsigned char (*changed)[KEYS],
                 bool var_cleared)
{
    struct ckpt_file files[SHARDS_MAX];
    struct fs *fs = simfs_fs(disk);
    for (size_t s = 0; s < c->shards; s++) {
        struct ckpt_writer *w;
        assert_int_equal(ckpt_begin(fs, "/var/ckpt", number, number + 100, (uint32_t)s, &w), PARAMO_OK);
        struct ckpt_block cleared = {
            .kind = CKPT_CLEARED, .table = VAR + 1, .partition = 0, .partitions = RING_PARTITIONS};
        if (var_cleared && !s)
            assert_int_equal(ckpt_put(w, &cleared), PARAMO_OK);
        for (unsigned kind = 0; kind < KINDS; kind++) {
            uint64_t *keys = NULL, gone[KEYS];
            size_t n = 0, erased = 0;
            if (!base) {
                assert_int_equal(table_sorted_keys(c->table[s][kind], &keys, &n), PARAMO_OK);
            } else {
                keys = malloc(KEYS * sizeof *keys);
                assert_non_null(keys);
                for (size_t i = 0; i < KEYS; i++) {
                    if (!changed[kind][i] || table_at(c, kind, key_of(kind, i)) != c->table[s][kind])
                        continue;
                    if (changed[kind][i] == 1)
                        keys[n++] = key_of(kind, i);
                    else
                        gone[erased++] = key_of(kind, i);
                }
            }
            put_keys(w, c->table[s][kind], kind, keys, n, false);
            put_keys(w, c->table[s][kind], kind, gone, erased, true);
            free(keys);
        }
        assert_int_equal(ckpt_end(w, &files[s]), PARAMO_OK);
    }
    struct view_table tables[KINDS];
    memset(tables, 0, sizeof tables);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        tables[kind].id = kind + 1;
        tables[kind].name[0] = (char)('a' + kind);
        tables[kind].options = options_of(kind);
    }
    struct ckpt_manifest m = {.number = number,
                              .id = number + 100,
                              .base = base,
                              .base_id = base ? base + 100 : 0,
                              .tables_count = KINDS,
                              .tables = tables,
                              .files_count = (uint32_t)c->shards,
                              .files = files};
    assert_int_equal(ckpt_commit(fs, "/var/ckpt", &m), PARAMO_OK);
}

/* ---- loading as a shard would ---- */

struct loading {
    struct cluster *c;
    size_t shard;
    bool mine[RING_PARTITIONS];
};

static bool wants(void *arg, const struct ckpt_block *b)
{
    const struct loading *l = arg;
    for (uint32_t a = b->partition; a < b->partition + b->partitions; a++)
        if (l->mine[a])
            return true;
    return false;
}

static void clear(struct table *t, const struct ring_placement *placement, const bool *mine,
                  const struct ckpt_block *b)
{
    uint64_t partitions[PARTITION_WORDS] = {0}, *keys;
    size_t n, gone = 0;
    assert_int_equal(ckpt_cleared(t, mine, b, partitions), PARAMO_OK);
    assert_int_equal(table_sorted_keys(t, &keys, &n), PARAMO_OK);
    for (size_t i = 0; i < n; i++)
        if (partition_set_has(partitions, ring_partition(ring_position(placement, keys[i]))))
            keys[gone++] = keys[i];
    assert_int_equal(table_delete(t, keys, gone, NULL), PARAMO_OK);
    free(keys);
}

static paramo_err take(void *arg, const struct ckpt_block *b)
{
    struct loading *l = arg;
    assert_in_range(b->table, 1, KINDS);
    struct ring_placement placement = placement_of(b->table - 1);
    struct table *t = l->c->table[l->shard][b->table - 1];
    if (b->kind != CKPT_CLEARED)
        return ckpt_rows_apply(t, &placement, l->mine, b);
    clear(t, &placement, l->mine, b);
    return PARAMO_OK;
}

static void load(struct cluster *c, uint64_t number)
{
    struct ckpt *ckpt;
    assert_int_equal(ckpt_open(simfs_fs(disk), "/var/ckpt", number, &ckpt), PARAMO_OK);
    for (size_t s = 0; s < c->shards; s++) {
        struct loading l = {.c = c, .shard = s};
        for (size_t a = 0; a < RING_PARTITIONS; a++)
            l.mine[a] = c->ring.owner[a] == s;
        assert_int_equal(ckpt_visit(ckpt, wants, take, &l), PARAMO_OK);
    }
    ckpt_close(ckpt);
}

/* The same rows with the same bits, each where it belongs and nowhere else. */
static void check_same(const struct cluster *a, const struct cluster *b)
{
    for (unsigned kind = 0; kind < KINDS; kind++) {
        uint64_t rows[2] = {0};
        for (size_t s = 0; s < a->shards; s++)
            rows[0] += table_rows(a->table[s][kind]);
        for (size_t s = 0; s < b->shards; s++)
            rows[1] += table_rows(b->table[s][kind]);
        assert_int_equal(rows[0], rows[1]);
        for (size_t i = 0; i < KEYS; i++) {
            uint64_t key = key_of(kind, i);
            const struct table *x = table_at(a, kind, key), *y = table_at(b, kind, key);
            float one[DIM * 3 + 8] = {0}, two[DIM * 3 + 8] = {0};
            if (kind == VAR) {
                uint32_t len[2];
                size_t total;
                table_var_lens(x, &key, 1, &len[0], &total);
                table_var_lens(y, &key, 1, &len[1], &total);
                assert_int_equal(len[0], len[1]);
                table_var_pull(x, &key, 1, one);
                table_var_pull(y, &key, 1, two);
            } else {
                assert_int_equal(table_get_rows(x, &key, 1, true, one),
                                 table_get_rows(y, &key, 1, true, two));
            }
            assert_memory_equal(one, two, sizeof one);
        }
    }
}

static void any_number_of_shards(void **state)
{
    (void)state;
    static struct cluster from, to;
    static unsigned char changed[2][KINDS][KEYS];
    seed = 3;
    memset(changed, 0, sizeof changed);
    assert_int_equal(simfs_create(1, &disk), PARAMO_OK);
    assert_int_equal(fs_make_dir(simfs_fs(disk), "/var"), PARAMO_OK);
    cluster_open(&from, 3);
    for (size_t i = 0; i < 3 * KEYS; i++)
        for (unsigned kind = 0; kind < KINDS; kind++)
            push_one(&from, kind, draw(KEYS));
    save(&from, 1, 0, NULL, false);
    for (size_t shards = 1; shards <= SHARDS_MAX; shards++) {
        cluster_open(&to, shards);
        load(&to, 1);
        check_same(&from, &to);
        cluster_close(&to);
    }
    for (uint64_t delta = 0; delta < 2; delta++) {
        if (delta) { /* a table is cleared, then filled a little */
            for (size_t s = 0; s < from.shards; s++)
                table_clear(from.table[s][VAR]);
        }
        for (size_t n = 0; n < 300; n++)
            for (unsigned kind = 0; kind < KINDS; kind++) {
                size_t i = draw(KEYS);
                uint64_t key = key_of(kind, i);
                if (kind != DENSE && draw(4) == 0) {
                    assert_int_equal(table_delete(table_at(&from, kind, key), &key, 1, NULL), PARAMO_OK);
                    changed[delta][kind][i] = 2;
                } else {
                    push_one(&from, kind, i);
                    changed[delta][kind][i] = 1;
                }
            }
        save(&from, 2 + delta, 1 + delta, changed[delta], delta == 1);
        for (size_t shards = 1; shards <= SHARDS_MAX; shards += 2) {
            cluster_open(&to, shards);
            load(&to, 2 + delta);
            check_same(&from, &to);
            cluster_close(&to);
        }
    }
    cluster_close(&from);
    simfs_destroy(disk);
}

/* A payload that its checksum would pass, but that is not right: an error, and the table is as it was. */
static void payloads_are_checked(void **state)
{
    (void)state;
    static struct cluster c;
    seed = 4;
    cluster_open(&c, 1);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct table *t = c.table[0][kind];
        struct ring_placement placement = placement_of(kind);
        for (size_t i = 0; i < 20; i++)
            push_one(&c, kind, i);
        uint64_t *keys, sorted[ROWS];
        size_t n, took;
        assert_int_equal(table_sorted_keys(t, &keys, &n), PARAMO_OK);
        assert_int_equal(ckpt_by_partition(&placement, keys, n, sorted), PARAMO_OK);
        struct writer w = {0};
        struct ckpt_block block;
        assert_int_equal(ckpt_rows_encode(t, 1, &placement, sorted, 11, &w, &block, &took), PARAMO_OK);
        assert_int_equal(took, 11);
        assert_int_equal(ckpt_rows_apply(t, &placement, NULL, &block), PARAMO_OK);
        struct ckpt_block bad = block;
        for (bad.bytes = 0; bad.bytes < block.bytes; bad.bytes++)
            assert_int_equal(ckpt_rows_apply(t, &placement, NULL, &bad), PARAMO_E_CORRUPT);
        for (size_t at = 0; at < 8; at++) { /* how many rows, and how wide */
            w.data[at] ^= 0x80;
            assert_int_not_equal(ckpt_rows_apply(t, &placement, NULL, &block), PARAMO_OK);
            w.data[at] ^= 0x80;
        }
        bad = block;
        bad.partitions = 1; /* not all its keys are of one partition */
        bad.partition = (block.partition + 1) % RING_PARTITIONS;
        assert_int_equal(ckpt_rows_apply(t, &placement, NULL, &bad), PARAMO_E_CORRUPT);
        bad = block;
        bad.kind = CKPT_WINDOWS;
        assert_int_equal(ckpt_rows_apply(t, &placement, NULL, &bad), PARAMO_E_CORRUPT);
        uint64_t none[PARTITION_WORDS] = {0};
        bad.kind = CKPT_CLEARED; /* with a payload, or of a table whose rows are all saved */
        assert_int_equal(ckpt_cleared(t, NULL, &bad, none), PARAMO_E_CORRUPT);
        bad.bytes = 0;
        assert_int_equal(ckpt_cleared(t, NULL, &bad, none), kind == DENSE ? PARAMO_E_CORRUPT : PARAMO_OK);
        assert_int_equal(table_rows(t), n);
        writer_fini(&w);
        free(keys);
    }
    cluster_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_shards),
        cmocka_unit_test(payloads_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
