#include "server/snapshot/ckpt_rows.h"

#include <stdlib.h>
#include <string.h>

#include "table/keysort.h"

enum {
    WINDOW_WORDS = DATA_WINDOW / 64,
    NOTE_WORDS = RING_PARTITIONS / 64,
    WINDOWS_MAX = 1 << 20,
    KEYS_MAX = 1 << 24
};

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

/* u32 rows, u32 bytes of each (0: their lengths follow the keys) | keys, ascending | values. Lengths are u32,
 * in values, padded to 8. */
static void rows_head(struct writer *w, size_t n, size_t row_bytes, const uint64_t *keys)
{
    write_u32(w, (uint32_t)n);
    write_u32(w, (uint32_t)row_bytes);
    for (size_t i = 0; i < n; i++)
        write_u64(w, keys[i]);
}

/* Room at the end of the payload; NULL without memory. */
static void *writer_room(struct writer *w, size_t len)
{
    if (w->failed || len > w->capacity - w->len) {
        size_t capacity = w->len + len;
        uint8_t *data = w->failed ? NULL : realloc(w->data, capacity);
        if (!data) {
            w->failed = true;
            return NULL;
        }
        w->data = data;
        w->capacity = capacity;
    }
    void *room = w->data + w->len;
    w->len += len;
    return room;
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
    for (size_t i = 0; i < n; i++)
        write_u32(w, lens[i]);
    if (n % 2)
        write_u32(w, 0);
    free(lens);
    total *= table_dtype_size(table_get_options(t)->dtype);
    void *room = writer_room(w, total);
    if (!room)
        return err_memory(total);
    table_var_pull(t, keys, n, room);
    return PARAMO_OK;
}

static paramo_err fixed_encode(const struct table *t, const uint64_t *keys, size_t n, size_t row,
                               struct writer *w)
{
    void *room = writer_room(w, n * row);
    return room ? table_get_rows(t, keys, n, true, room) : err_memory(n * row);
}

static size_t row_bytes_of(const struct table *t)
{
    const paramo_table_options *options = table_get_options(t);
    return table_row_values(options, true) * table_dtype_size(options->dtype);
}

paramo_err ckpt_rows_encode(const struct table *t, uint32_t table, const struct ring_placement *placement,
                            const uint64_t *keys, size_t n, struct writer *w, struct ckpt_block *block,
                            size_t *took)
{
    bool var = table_get_options(t)->kind == PARAMO_TABLE_VAR;
    size_t row = var ? 0 : row_bytes_of(t);
    size_t fit = var ? var_fit(t, keys, n) : CKPT_BLOCK_BYTES / (row + 8) + 1;
    size_t count = fit < n ? fit : n;
    uint64_t *sorted = ascending(keys, count);
    if (!sorted)
        return err_memory(2 * count * sizeof *sorted);
    rows_head(w, count, row, sorted);
    paramo_err err = var ? var_encode(t, sorted, count, w) : fixed_encode(t, sorted, count, row, w);
    free(sorted);
    if (err)
        return err;
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
    struct span {
        size_t at;
        uint32_t len;
    } *span = malloc(n * sizeof *span);
    if (!span)
        return err_memory(n * sizeof *span);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        span[place_of(sorted, n, keys[i])] = (struct span){.at = at, .len = lens[i]};
        at += lens[i] * value;
    }
    for (size_t i = 0; i < n; i++)
        write_u32(w, span[i].len);
    if (n % 2)
        write_u32(w, 0);
    for (size_t i = 0; i < n; i++)
        if (span[i].len)
            write_bytes(w, rows + span[i].at, span[i].len * value);
    free(span);
    return w->failed ? err_memory(at) : PARAMO_OK;
}

static paramo_err fixed_pack(const uint64_t *keys, const uint64_t *sorted, const uint8_t *rows, size_t n,
                             size_t row, struct writer *w)
{
    uint8_t *room = writer_room(w, n * row);
    for (size_t i = 0; room && i < n; i++)
        memcpy(room + place_of(sorted, n, keys[i]) * row, rows + i * row, row);
    return room ? PARAMO_OK : err_memory(n * row);
}

paramo_err ckpt_rows_pack(uint32_t table, const struct ring_placement *placement, const uint64_t *keys,
                          const uint32_t *lens, const void *rows, size_t n, size_t row_bytes,
                          struct writer *w, struct ckpt_block *block)
{
    uint64_t *sorted = ascending(keys, n);
    if (!sorted)
        return err_memory(2 * n * sizeof *sorted);
    rows_head(w, n, lens ? 0 : row_bytes, sorted);
    paramo_err err = lens ? var_pack(keys, sorted, lens, rows, n, row_bytes, w)
                          : fixed_pack(keys, sorted, rows, n, row_bytes, w);
    unsigned first = RING_PARTITIONS, last = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned partition = partition_of(placement, keys[i]);
        first = partition < first ? partition : first;
        last = partition > last ? partition : last;
    }
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
    uint64_t *sorted = ascending(keys, count);
    if (!sorted)
        return err_memory(2 * count * sizeof *sorted);
    rows_head(w, count, 0, sorted);
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
    return err_set(PARAMO_E_CORRUPT, "a block of a checkpoint: %s", what);
}

/* A decoded payload, and those of its rows that are mine, in place. */
struct rows {
    uint32_t count, row_bytes;
    uint64_t *keys;
    uint32_t *lens; /* VAR */
    const uint8_t *values;
    size_t values_bytes;
    uint8_t *kept; /* the values of mine */
};

static void rows_fini(struct rows *r)
{
    free(r->keys);
    free(r->lens);
    free(r->kept);
}

static paramo_err rows_decode(const struct ckpt_block *block, struct rows *r)
{
    struct reader in = reader_over(block->payload, block->bytes);
    r->count = read_u32(&in);
    r->row_bytes = read_u32(&in);
    if (in.failed || r->count > KEYS_MAX || in.left / 8 < r->count)
        return wrong("its number of rows");
    r->keys = malloc((r->count + 1) * sizeof *r->keys);
    if (!r->keys)
        return err_memory(r->count * sizeof *r->keys);
    for (uint32_t i = 0; i < r->count; i++)
        r->keys[i] = read_u64(&in);
    for (uint32_t i = 1; i < r->count; i++)
        if (r->keys[i] <= r->keys[i - 1])
            return wrong("its keys do not ascend");
    r->values = in.at;
    r->values_bytes = in.left;
    return PARAMO_OK;
}

static bool is_mine(const struct ring_placement *placement, const bool *mine, uint64_t key)
{
    return !mine || mine[partition_of(placement, key)];
}

/* Every key must fall on the block's partitions: otherwise the wrong shards would read it. */
static paramo_err check_partitions(const struct ring_placement *placement, const struct ckpt_block *block,
                                   const struct rows *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (partition_of(placement, r->keys[i]) - block->partition >= block->partitions)
            return wrong("a key is not of its partitions");
    return PARAMO_OK;
}

static paramo_err apply_fixed(struct table *t, const struct ring_placement *placement, const bool *mine,
                              struct rows *r)
{
    size_t row = row_bytes_of(t), n = 0;
    if (r->row_bytes != row || r->values_bytes / row != r->count || r->values_bytes % row)
        return wrong("its rows are not of the table's width");
    r->kept = malloc(r->values_bytes + 1); /* as aligned as values must be; the payload is not */
    if (!r->kept)
        return err_memory(r->values_bytes);
    for (uint32_t i = 0; i < r->count; i++)
        if (is_mine(placement, mine, r->keys[i])) {
            r->keys[n] = r->keys[i];
            memcpy(r->kept + n++ * row, r->values + i * row, row);
        }
    return n ? table_put_rows(t, r->keys, n, true, r->kept) : PARAMO_OK;
}

static paramo_err apply_var(struct table *t, const struct ring_placement *placement, const bool *mine,
                            struct rows *r)
{
    const size_t value = table_dtype_size(table_get_options(t)->dtype);
    struct reader in = reader_over(r->values, r->values_bytes);
    size_t n = 0, bytes = 0;
    if (r->row_bytes)
        return wrong("its rows are of one length");
    r->lens = malloc((r->count + 1) * sizeof *r->lens);
    r->kept = malloc(r->values_bytes + 1);
    if (!r->lens || !r->kept)
        return err_memory(r->values_bytes);
    for (uint32_t i = 0; i < r->count + r->count % 2; i++)
        r->lens[i] = read_u32(&in);
    for (uint32_t i = 0; i < r->count && !in.failed; i++) {
        size_t len = r->lens[i] * value;
        const uint8_t *from = read_span(&in, len);
        if (in.failed || !is_mine(placement, mine, r->keys[i]))
            continue;
        r->keys[n] = r->keys[i];
        r->lens[n++] = r->lens[i];
        if (len)
            memcpy(r->kept + bytes, from, len);
        bytes += len;
    }
    if (!reader_done(&in))
        return wrong("its lengths do not fit its bytes");
    return n ? table_var_put(t, r->keys, n, r->kept, r->lens) : PARAMO_OK;
}

static paramo_err apply_erased(struct table *t, const struct ring_placement *placement, const bool *mine,
                               struct rows *r)
{
    size_t n = 0;
    if (r->values_bytes || r->row_bytes || table_get_options(t)->kind == PARAMO_TABLE_DENSE)
        return wrong("what it erases");
    for (uint32_t i = 0; i < r->count; i++)
        if (is_mine(placement, mine, r->keys[i]))
            r->keys[n++] = r->keys[i];
    return n ? table_delete(t, r->keys, n, NULL) : PARAMO_OK;
}

/* Removes the rows of mine in the block's partitions. */
static paramo_err apply_cleared(struct table *t, const struct ring_placement *placement, const bool *mine,
                                const struct ckpt_block *block)
{
    uint64_t *keys;
    size_t n, gone = 0;
    if (block->bytes || table_get_options(t)->kind == PARAMO_TABLE_DENSE)
        return wrong("what it clears");
    paramo_err err = table_sorted_keys(t, &keys, &n);
    if (err)
        return err;
    for (size_t i = 0; i < n; i++)
        if (partition_of(placement, keys[i]) - block->partition < block->partitions &&
            is_mine(placement, mine, keys[i]))
            keys[gone++] = keys[i];
    if (gone == n)
        table_clear(t);
    else if (gone)
        err = table_delete(t, keys, gone, NULL);
    free(keys);
    return err;
}

paramo_err ckpt_rows_apply(struct table *t, const struct ring_placement *placement, const bool *mine,
                           const struct ckpt_block *block)
{
    struct rows r = {0};
    if (block->kind == CKPT_CLEARED)
        return apply_cleared(t, placement, mine, block);
    if (block->kind != CKPT_ROWS && block->kind != CKPT_ERASED)
        return wrong("it has no rows");
    paramo_err err = rows_decode(block, &r);
    if (!err)
        err = check_partitions(placement, block, &r);
    if (!err)
        err = block->kind == CKPT_ERASED                       ? apply_erased(t, placement, mine, &r)
              : table_get_options(t)->kind == PARAMO_TABLE_VAR ? apply_var(t, placement, mine, &r)
                                                               : apply_fixed(t, placement, mine, &r);
    rows_fini(&r);
    return err;
}

/* ---- clocks ---- */

void ckpt_windows_encode(const struct ckpt_window *windows, size_t n, struct writer *w)
{
    write_u32(w, (uint32_t)n);
    write_u32(w, WINDOW_WORDS);
    for (size_t i = 0; i < n; i++) {
        sender_id_encode_aligned(&windows[i].sender, w);
        write_u64(w, windows[i].dedup.floor);
        for (size_t k = 0; k < WINDOW_WORDS; k++)
            write_u64(w, windows[i].dedup.bits[k]);
    }
}

paramo_err ckpt_windows_decode(const struct ckpt_block *block, struct ckpt_window **windows, size_t *n)
{
    struct reader in = reader_over(block->payload, block->bytes);
    uint32_t count = read_u32(&in), words = read_u32(&in);
    if (in.failed || block->kind != CKPT_WINDOWS || words != WINDOW_WORDS || count > WINDOWS_MAX ||
        in.left != count * (32 + 8 * (size_t)WINDOW_WORDS))
        return wrong("its senders' records");
    struct ckpt_window *list = calloc(count + 1, sizeof *list);
    if (!list)
        return err_memory(count * sizeof *list);
    for (uint32_t i = 0; i < count; i++) {
        list[i].sender = sender_id_decode_aligned(&in);
        list[i].dedup.floor = read_u64(&in);
        for (size_t k = 0; k < WINDOW_WORDS; k++)
            list[i].dedup.bits[k] = read_u64(&in);
    }
    if (in.failed) {
        free(list);
        return wrong("its senders' records");
    }
    *windows = list;
    *n = count;
    return PARAMO_OK;
}

void ckpt_notes_encode(const struct ckpt_note *notes, size_t n, struct writer *w)
{
    write_u32(w, (uint32_t)n);
    write_u32(w, NOTE_WORDS);
    for (size_t i = 0; i < n; i++) {
        sender_id_encode_aligned(&notes[i].sender, w);
        write_u64(w, notes[i].number);
        for (size_t k = 0; k < NOTE_WORDS; k++)
            write_u64(w, notes[i].partitions[k]);
    }
}

paramo_err ckpt_notes_decode(const struct ckpt_block *block, struct ckpt_note **notes, size_t *n)
{
    struct reader in = reader_over(block->payload, block->bytes);
    uint32_t count = read_u32(&in), words = read_u32(&in);
    if (in.failed || block->kind != CKPT_NOTES || words != NOTE_WORDS || count > CKPT_NOTES_MAX ||
        in.left != count * (32 + 8 * (size_t)NOTE_WORDS))
        return wrong("its notes of what is done");
    struct ckpt_note *list = calloc(count + 1, sizeof *list);
    if (!list)
        return err_memory(count * sizeof *list);
    for (uint32_t i = 0; i < count; i++) {
        list[i].sender = sender_id_decode_aligned(&in);
        list[i].number = read_u64(&in);
        for (size_t k = 0; k < NOTE_WORDS; k++)
            list[i].partitions[k] = read_u64(&in);
    }
    if (in.failed) {
        free(list);
        return wrong("its notes of what is done");
    }
    *notes = list;
    *n = count;
    return PARAMO_OK;
}
