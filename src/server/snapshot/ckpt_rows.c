#include "server/snapshot/ckpt_rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "table/keysort.h"
#include "wire/row_block.h"

static unsigned partition_of(const struct ring_placement *placement, uint64_t key)
{
    return ring_partition(ring_position(placement, key));
}

paramo_err ckpt_by_partition(const struct ring_placement *placement, const uint64_t *keys, size_t n,
                             uint64_t *out)
{
    size_t *at = calloc(RING_PARTITIONS + 1, sizeof *at);
    if (!at)
        return err_memory((RING_PARTITIONS + 1) * sizeof *at);
    for (size_t i = 0; i < n; i++)
        at[partition_of(placement, keys[i]) + 1]++;
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        at[a + 1] += at[a];
    for (size_t i = 0; i < n; i++)
        out[at[partition_of(placement, keys[i])]++] = keys[i];
    assert(at[RING_PARTITIONS - 1] == n && at[RING_PARTITIONS] == n);
    free(at);
    return PARAMO_OK;
}

static struct ckpt_block block_of(uint32_t kind, uint32_t table, const struct ring_placement *placement,
                                  const uint64_t *keys, size_t n, const struct writer *payload)
{
    unsigned first = partition_of(placement, keys[0]), last = partition_of(placement, keys[n - 1]);
    return (struct ckpt_block){.kind = kind,
                               .table = table,
                               .partition = first,
                               .partitions = last - first + 1,
                               .payload = payload->data,
                               .bytes = payload->len};
}

/* The keys of a block, ascending, as tables want them. */
static uint64_t *ascending(const uint64_t *keys, size_t n)
{
    uint64_t *sorted = malloc(2 * n * sizeof *sorted);
    if (sorted) {
        memcpy(sorted, keys, n * sizeof *sorted);
        keysort(sorted, sorted + n, n);
    }
    return sorted;
}

/* The number of rows of a VAR table that fill a block. */
static size_t var_fit(const struct table *t, const uint64_t *keys, size_t n)
{
    const size_t value = table_dtype_size(table_get_options(t)->dtype);
    size_t count = 0, total;
    for (size_t bytes = 0; count < n && bytes < CKPT_BLOCK_BYTES; count++) {
        uint32_t len;
        table_var_lens(t, &keys[count], 1, &len, &total);
        bytes += 12 + total * value;
    }
    return count;
}

static paramo_err var_encode(const struct table *t, const uint64_t *keys, size_t n, struct writer *w)
{
    size_t total;
    uint32_t *lens = malloc(n * sizeof *lens);
    if (!lens)
        return err_memory(n * sizeof *lens);
    table_var_lens(t, keys, n, lens, &total);
    row_block_lens_encode(lens, n, w);
    free(lens);
    total *= table_dtype_size(table_get_options(t)->dtype);
    void *room = row_block_values(w, total);
    if (!room)
        return err_memory(total);
    table_var_pull(t, keys, n, room);
    return PARAMO_OK;
}

static paramo_err fixed_encode(const struct table *t, const uint64_t *keys, size_t n, size_t row,
                               struct writer *w)
{
    void *room = row_block_values(w, n * row);
    return room ? table_get_stored(t, keys, n, room) : err_memory(n * row);
}

static size_t row_bytes_of(const struct table *t)
{
    const paramo_table_options *options = table_get_options(t);
    return table_stored_values(options) * table_dtype_size(options->dtype);
}

paramo_err ckpt_rows_encode(const struct table *t, uint32_t table, const struct ring_placement *placement,
                            const uint64_t *keys, size_t n, struct writer *w, struct ckpt_block *block,
                            size_t *took)
{
    bool var = table_get_options(t)->kind == PARAMO_TABLE_VAR;
    assert(n > 0 && !w->len);
    size_t row = var ? 0 : row_bytes_of(t);
    size_t fit = var ? var_fit(t, keys, n) : CKPT_BLOCK_BYTES / (row + 8) + 1;
    size_t count = fit < n ? fit : n;
    uint64_t *sorted = ascending(keys, count);
    if (!sorted)
        return err_memory(2 * count * sizeof *sorted);
    row_block_head_encode(count, row, sorted, w);
    paramo_err err = var ? var_encode(t, sorted, count, w) : fixed_encode(t, sorted, count, row, w);
    free(sorted);
    if (err)
        return err;
    assert(count > 0);
    *block = block_of(CKPT_ROWS, table, placement, keys, count, w);
    *took = count;
    return PARAMO_OK;
}

static size_t place_of(const uint64_t *sorted, size_t n, uint64_t key)
{
    size_t low = 0;
    while (n > 1) {
        size_t half = n / 2;
        low += sorted[low + half] <= key ? half : 0;
        n -= half;
    }
    return low;
}

/* Rows of different lengths: finds where each is, then writes them in order. */
static paramo_err var_pack(const uint64_t *keys, const uint64_t *sorted, const uint32_t *lens,
                           const uint8_t *rows, size_t n, size_t value, struct writer *w)
{
    size_t *from = malloc(n * (sizeof *from + sizeof *lens)), at = 0;
    if (!from)
        return err_memory(n * sizeof *from);
    uint32_t *len = (uint32_t *)(from + n);
    for (size_t i = 0; i < n; i++) {
        size_t place = place_of(sorted, n, keys[i]);
        from[place] = at;
        len[place] = lens[i];
        at += lens[i] * value;
    }
    row_block_lens_encode(len, n, w);
    for (size_t i = 0; i < n; i++)
        if (len[i])
            write_bytes(w, rows + from[i], len[i] * value);
    free(from);
    return w->failed ? err_memory(at) : PARAMO_OK;
}

static paramo_err fixed_pack(const uint64_t *keys, const uint64_t *sorted, const uint8_t *rows, size_t n,
                             size_t row, struct writer *w)
{
    uint8_t *room = row_block_values(w, n * row);
    for (size_t i = 0; room && i < n; i++)
        memcpy(room + place_of(sorted, n, keys[i]) * row, rows + i * row, row);
    return room ? PARAMO_OK : err_memory(n * row);
}

paramo_err ckpt_rows_pack(uint32_t table, const struct ring_placement *placement, const uint64_t *keys,
                          const uint32_t *lens, const void *rows, size_t n, size_t row_bytes,
                          struct writer *w, struct ckpt_block *block)
{
    assert(n > 0 && !w->len);
    uint64_t *sorted = ascending(keys, n);
    if (!sorted)
        return err_memory(2 * n * sizeof *sorted);
    row_block_head_encode(n, lens ? 0 : row_bytes, sorted, w);
    paramo_err err = lens ? var_pack(keys, sorted, lens, rows, n, row_bytes, w)
                          : fixed_pack(keys, sorted, rows, n, row_bytes, w);
    unsigned first = RING_PARTITIONS, last = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned partition = partition_of(placement, keys[i]);
        first = partition < first ? partition : first;
        last = partition > last ? partition : last;
    }
    assert(first <= last && last < RING_PARTITIONS);
    free(sorted);
    if (err)
        return err;
    *block = (struct ckpt_block){.kind = CKPT_ROWS,
                                 .table = table,
                                 .partition = first,
                                 .partitions = last - first + 1,
                                 .payload = w->data,
                                 .bytes = w->len};
    return PARAMO_OK;
}

paramo_err ckpt_erased_encode(uint32_t table, const struct ring_placement *placement, const uint64_t *keys,
                              size_t n, struct writer *w, struct ckpt_block *block, size_t *took)
{
    size_t count = n < CKPT_BLOCK_BYTES / 8 ? n : CKPT_BLOCK_BYTES / 8;
    assert(n > 0 && !w->len);
    uint64_t *sorted = ascending(keys, count);
    if (!sorted)
        return err_memory(2 * count * sizeof *sorted);
    row_block_head_encode(count, 0, sorted, w);
    free(sorted);
    if (w->failed)
        return err_memory(count * 8);
    *block = block_of(CKPT_ERASED, table, placement, keys, count, w);
    *took = count;
    return PARAMO_OK;
}

/* ---- taking back ---- */

static paramo_err wrong(const char *what)
{
    return err_set(PARAMO_E_CORRUPT, "a block of a checkpoint is not valid: %s", what);
}

/* A decoded payload, and those of its rows that are mine, in place. */
struct rows {
    struct row_block in;
    uint32_t *lens; /* VAR */
    uint8_t *kept;  /* the values of mine */
};

static void rows_fini(struct rows *r)
{
    free(r->in.keys);
    free(r->lens);
    free(r->kept);
}

static bool is_mine(const struct ring_placement *placement, const bool *mine, uint64_t key)
{
    return !mine || mine[partition_of(placement, key)];
}

/* Every key must fall on the block's partitions: otherwise the wrong shards would read it. */
static paramo_err check_partitions(const struct ring_placement *placement, const struct ckpt_block *block,
                                   const struct rows *r)
{
    for (uint32_t i = 0; i < r->in.count; i++)
        if (partition_of(placement, r->in.keys[i]) - block->partition >= block->partitions)
            return wrong("a key is not in its partitions");
    return PARAMO_OK;
}

static paramo_err apply_fixed(struct table *t, const struct ring_placement *placement, const bool *mine,
                              struct rows *r)
{
    size_t row = row_bytes_of(t), n = 0;
    assert(row > 0);
    assert(!r->kept);
    if (r->in.row_bytes != row || r->in.rest.left / row != r->in.count || r->in.rest.left % row)
        return wrong("its rows do not have the table's width");
    r->kept = malloc(r->in.rest.left + 1); /* as aligned as values must be; the payload is not */
    if (!r->kept)
        return err_memory(r->in.rest.left);
    for (uint32_t i = 0; i < r->in.count; i++)
        if (is_mine(placement, mine, r->in.keys[i])) {
            r->in.keys[n] = r->in.keys[i];
            memcpy(r->kept + n++ * row, r->in.rest.at + i * row, row);
        }
    return n ? table_put_stored(t, r->in.keys, n, r->kept) : PARAMO_OK;
}

static paramo_err apply_var(struct table *t, const struct ring_placement *placement, const bool *mine,
                            struct rows *r)
{
    const size_t value = table_dtype_size(table_get_options(t)->dtype);
    struct reader *in = &r->in.rest;
    size_t n = 0, bytes = 0;
    assert(!r->lens);
    assert(!r->kept);
    if (r->in.row_bytes)
        return wrong("its rows have a fixed length, but the table's do not");
    r->lens = malloc((r->in.count + 1) * sizeof *r->lens);
    r->kept = malloc(r->in.rest.left + 1);
    if (!r->lens || !r->kept)
        return err_memory(r->in.rest.left);
    row_block_lens_decode(&r->in, r->lens);
    for (uint32_t i = 0; i < r->in.count && !in->failed; i++) {
        size_t len = r->lens[i] * value;
        const uint8_t *from = read_span(in, len);
        if (in->failed || !is_mine(placement, mine, r->in.keys[i]))
            continue;
        r->in.keys[n] = r->in.keys[i];
        r->lens[n++] = r->lens[i];
        if (len)
            memcpy(r->kept + bytes, from, len);
        bytes += len;
    }
    if (!reader_done(in))
        return wrong("its lengths do not fit its bytes");
    return n ? table_var_put(t, r->in.keys, n, r->kept, r->lens) : PARAMO_OK;
}

static paramo_err apply_erased(struct table *t, const struct ring_placement *placement, const bool *mine,
                               struct rows *r)
{
    size_t n = 0;
    if (r->in.rest.left || r->in.row_bytes || table_get_options(t)->kind == PARAMO_TABLE_DENSE)
        return wrong("its list of erased rows is malformed");
    for (uint32_t i = 0; i < r->in.count; i++)
        if (is_mine(placement, mine, r->in.keys[i]))
            r->in.keys[n++] = r->in.keys[i];
    return n ? table_delete(t, r->in.keys, n, NULL) : PARAMO_OK;
}

paramo_err ckpt_cleared(const struct table *t, const bool *mine, const struct ckpt_block *block,
                        uint64_t partitions[PARTITION_WORDS])
{
    if (block->bytes || table_get_options(t)->kind == PARAMO_TABLE_DENSE)
        return wrong("its list of cleared partitions is malformed");
    for (unsigned a = block->partition; a < block->partition + block->partitions; a++)
        if (!mine || mine[a])
            partition_set_add(partitions, a);
    return PARAMO_OK;
}

paramo_err ckpt_rows_apply(struct table *t, const struct ring_placement *placement, const bool *mine,
                           const struct ckpt_block *block)
{
    struct rows r = {0};
    if (block->kind != CKPT_ROWS && block->kind != CKPT_ERASED)
        return wrong("it has no rows");
    paramo_err err = row_block_decode(block->payload, block->bytes, &r.in);
    if (!err)
        err = check_partitions(placement, block, &r);
    if (!err)
        err = block->kind == CKPT_ERASED                       ? apply_erased(t, placement, mine, &r)
              : table_get_options(t)->kind == PARAMO_TABLE_VAR ? apply_var(t, placement, mine, &r)
                                                               : apply_fixed(t, placement, mine, &r);
    rows_fini(&r);
    return err;
}
