#include "table/table_small.h"

#include <assert.h>
#include <string.h>

enum { ROW = 4, ROW_STATE = TABLE_SMALL_ROW }; /* sizes of keyindex' payloads */

static uint32_t row_bytes(const struct rowspec *spec)
{
    size_t bytes = spec->param_bytes + spec->state_values * sizeof(float);
    return bytes <= ROW ? ROW : (uint32_t)bytes;
}

bool table_small_fits(const struct rowspec *spec)
{
    size_t bytes = spec->param_bytes + spec->state_values * sizeof(float);
    return spec->value_bytes < 8 && !spec->aggregate && (bytes <= ROW || bytes == ROW_STATE);
}

static float *state_plane(const struct rowspec *spec, void *row, unsigned plane)
{
    return (float *)((char *)row + spec->param_bytes) + (size_t)plane * spec->dim;
}

/* Sets the state of a row that has its parameters. There is no count of steps: with Adam's a row has four values. */
static void start_row(const struct rowspec *spec, void *row)
{
    optimizer_start(&spec->optimizer, row, state_plane(spec, row, 0), state_plane(spec, row, 1), spec->dim);
}

static void fill_row(const struct rowspec *spec, uint64_t key, void *row)
{
    rowinit_fill(&spec->init, key, 0, spec->dim, row);
    start_row(spec, row);
}

void table_small_init(struct table_small *s, const struct rowspec *spec, struct tablemem *mem,
                      uint64_t hash_seed)
{
    *s = (struct table_small){.spec = spec, .mem = mem, .row_bytes = row_bytes(spec)};
    assert(s->row_bytes == ROW || s->row_bytes == ROW_STATE);
    keyindex_init(&s->index, mem, hash_seed, s->row_bytes);
    fill_row(spec, 0, s->initial);
}

void table_small_clear(struct table_small *s)
{
    keyindex_clear(&s->index);
}

static void new_row(const struct table_small *s, uint64_t key, void *row)
{
    if (s->row_bytes == ROW)
        memcpy(row, s->initial, ROW);
    else
        memcpy(row, s->initial, ROW_STATE);
    if (rowinit_varies(&s->spec->init))
        fill_row(s->spec, key, row);
}

/* ---- requests that may have to be undone ---- */

/* What a request has changed so far. A request does everything or nothing, but rows are pushed chunk by chunk,
 * and a later chunk may find no memory for its new rows. */
struct undo {
    uint8_t *created; /* n flags, then the n rows as they were */
    char *rows;
    size_t bytes, done;
    bool ascending; /* so far; then no key occurs twice */
};

static paramo_err undo_open(struct table_small *s, size_t n, struct undo *u)
{
    assert(n > 0);
    *u = (struct undo){.bytes = n * (1 + (size_t)s->row_bytes), .ascending = true};
    u->created = tablemem_get(s->mem, 1, u->bytes);
    if (!u->created)
        return err_memory(u->bytes);
    u->rows = (char *)u->created + n;
    return PARAMO_OK;
}

static void undo_all(struct table_small *s, const uint64_t *keys, struct undo *u)
{
    while (u->done-- > 0) {
        if (u->created[u->done]) {
            bool removed = keyindex_remove(&s->index, keys[u->done], NULL);
            assert(removed);
            (void)removed;
        } else {
            void *row = keyindex_payload(&s->index, keys[u->done]);
            assert(row); /* it was there before the request */
            memcpy(row, u->rows + u->done * s->row_bytes, s->row_bytes);
        }
    }
}

static void undo_close(struct table_small *s, struct undo *u)
{
    tablemem_put(s->mem, u->created, u->bytes);
}

/* Copies the rows of a chunk to u, if none is missing. */
static bool chunk_note(const struct table_small *s, const uint64_t *keys, size_t n, void *const *row,
                       struct undo *u)
{
    bool missing = false;
    for (size_t i = 0; i < n; i++)
        missing |= !row[i];
    if (missing)
        return false;
    bool ascending = u->done == 0 || keys[0] > *(keys - 1);
    for (size_t i = 1; i < n; i++)
        ascending &= keys[i] > keys[i - 1];
    u->ascending &= ascending;
    char *to = u->rows + u->done * s->row_bytes;
    if (s->row_bytes == ROW)
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * ROW, row[i], ROW);
    else
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * ROW_STATE, row[i], ROW_STATE);
    assert((u->done + n) * (1 + (size_t)s->row_bytes) <= u->bytes);
    memset(u->created + u->done, 0, n);
    u->done += n;
    return true;
}

/* Creates the missing rows of a chunk, and copies the others to u. After an error u->done is the number
 * of rows handled. */
static paramo_err chunk_create(struct table_small *s, const struct keyindex_scan *scan, const uint64_t *keys,
                               size_t n, void **row, struct undo *u)
{
    uint64_t moves = s->index.moves;
    paramo_err err = PARAMO_OK;
    if (chunk_note(s, keys, n, row, u))
        return PARAMO_OK;
    for (size_t i = 0; i < n; i++) {
        bool fresh = !row[i];
        u->ascending = u->ascending && (u->done == 0 || keys[i] > *(&keys[i] - 1));
        if (fresh && u->ascending)
            err = keyindex_scan_add(scan, &s->index, i, keys[i], &row[i]);
        else if (fresh || s->index.moves != moves)
            err = keyindex_insert(&s->index, keys[i], &row[i], &fresh);
        if (err)
            return err;
        if (fresh)
            new_row(s, keys[i], row[i]);
        else if (s->row_bytes == ROW)
            memcpy(u->rows + u->done * ROW, row[i], ROW);
        else
            memcpy(u->rows + u->done * ROW_STATE, row[i], ROW_STATE);
        u->created[u->done++] = fresh;
    }
    assert(u->done * (1 + (size_t)s->row_bytes) <= u->bytes);
    if (s->index.moves != moves) { /* payloads from before the last growth */
        for (size_t i = 0; i < n; i++) {
            row[i] = keyindex_payload(&s->index, keys[i]);
            assert(row[i]);
        }
    }
    return PARAMO_OK;
}

/* Pushes columns of rows that exist. */
static void chunk_push_columns(const struct rowspec *spec, void *const *rows, size_t n, uint32_t col,
                               uint32_t ncols, const char *in)
{
    for (size_t i = 0; i < n; i++, in += ncols * spec->value_bytes) {
        char *row = rows[i];
        spec->optimizer.span(&spec->optimizer, row + col * spec->value_bytes, state_plane(spec, row, 0) + col,
                             state_plane(spec, row, 1) + col, 0, in, ncols);
    }
}

/* bytes: of a row's parameters, a constant for the usual rows. */
static inline __attribute__((always_inline)) void read_rows(const struct rowspec *spec, const uint64_t *keys,
                                                            size_t n, void *const *row, size_t bytes,
                                                            char *out)
{
    for (size_t i = 0; i < n; i++, out += bytes)
        if (!row[i])
            rowspec_initial(spec, keys[i], 0, spec->dim, out);
        else
            memcpy(out, row[i], bytes);
}

static void chunk_read(const struct rowspec *spec, const uint64_t *keys, size_t n, void *const *row,
                       char *out)
{
    if (spec->param_bytes == ROW)
        read_rows(spec, keys, n, row, ROW, out);
    else
        read_rows(spec, keys, n, row, spec->param_bytes, out);
}

/* Finds all places again, because growth has ended those of earlier chunks. */
static void find_places(const struct table_small *s, const uint64_t *keys, size_t n, uint32_t *rows)
{
    struct keyindex_scan scan;
    void **row;
    keyindex_scan_start(&scan, &s->index, keys, n);
    for (size_t done = 0, m; (m = keyindex_scan_next(&scan, &row)) > 0; done += m)
        keyindex_scan_places(&scan, m, rows + done);
}

paramo_err table_small_visit(struct table_small *s, const uint64_t *keys, size_t n, const void *in, void *out,
                             bool create, uint32_t *rows)
{
    const struct rowspec *spec = s->spec;
    struct undo u = {0};
    paramo_err err = in ? optimizer_check(&spec->optimizer, in, n * spec->dim) : PARAMO_OK;
    bool changes = in || create;
    if (err || n == 0 || (changes && (err = undo_open(s, n, &u)) != PARAMO_OK))
        return err;
    uint64_t moves = s->index.moves;
    struct keyindex_scan scan;
    void **row;
    keyindex_scan_start(&scan, &s->index, keys, n);
    for (size_t done = 0, m; !err && (m = keyindex_scan_next(&scan, &row)) > 0; done += m) {
        if (changes && (err = chunk_create(s, &scan, keys + done, m, row, &u)) != PARAMO_OK)
            break;
        if (in) {
            keyindex_change(&s->index, keys + done, row, m);
            spec->optimizer.rows(&spec->optimizer, row, m, spec->dim,
                                 (const char *)in + done * spec->param_bytes);
        }
        if (out)
            chunk_read(spec, keys + done, m, row, (char *)out + done * spec->param_bytes);
        if (rows)
            keyindex_scan_places(&scan, m, rows + done);
    }
    if (err)
        undo_all(s, keys, &u);
    else if (rows && s->index.moves != moves)
        find_places(s, keys, n, rows);
    undo_close(s, &u);
    return err;
}

/* ---- by row numbers ---- */

enum { BATCH = 64 }; /* rows whose cache misses overlap */

/* slots: those of the index, a constant where this is inlined. */
static inline __attribute__((always_inline)) void fetch_rows(const struct keyindex *x, unsigned slots,
                                                             const uint32_t *rows, size_t m, void **row)
{
    for (size_t i = 0; i < m; i++) {
        row[i] = rows[i] == KEYINDEX_NONE ? NULL : keyindex_at(x, slots, rows[i]);
        __builtin_prefetch(row[i], 1);
    }
}

static size_t batch_rows(const struct table_small *s, const uint32_t *rows, size_t done, size_t n, void **row)
{
    const size_t m = n - done < BATCH ? n - done : BATCH;
    if (s->row_bytes == ROW)
        fetch_rows(&s->index, 5, rows + done, m, row);
    else
        fetch_rows(&s->index, 3, rows + done, m, row);
    return m;
}

paramo_err table_small_push_rows(struct table_small *s, const uint64_t *keys, const uint32_t *rows, size_t n,
                                 const void *vals, bool marked)
{
    const struct rowspec *spec = s->spec;
    paramo_err err = optimizer_check(&spec->optimizer, vals, n * spec->dim);
    if (err)
        return err;
    void *row[2][BATCH];
    size_t m = batch_rows(s, rows, 0, n, row[0]);
    for (size_t done = 0, batch = 0, next; done < n; done += m, m = next, batch ^= 1) {
        next = batch_rows(s, rows, done + m, n, row[batch ^ 1]);
        if (!marked)
            keyindex_change(&s->index, keys + done, row[batch], m);
        spec->optimizer.rows(&spec->optimizer, row[batch], m, spec->dim,
                             (const char *)vals + done * spec->param_bytes);
    }
    return PARAMO_OK;
}

void table_small_pull_rows(const struct table_small *s, const uint64_t *keys, const uint32_t *rows, size_t n,
                           void *vals)
{
    void *row[2][BATCH];
    size_t m = batch_rows(s, rows, 0, n, row[0]);
    for (size_t done = 0, batch = 0, next; done < n; done += m, m = next, batch ^= 1) {
        next = batch_rows(s, rows, done + m, n, row[batch ^ 1]);
        chunk_read(s->spec, keys + done, m, row[batch], (char *)vals + done * s->spec->param_bytes);
    }
}

paramo_err table_small_put(struct table_small *s, const uint64_t *keys, size_t n, bool with_state,
                           const void *in)
{
    const struct rowspec *spec = s->spec;
    size_t bytes = spec->param_bytes + (with_state ? spec->state_values * sizeof(float) : 0);
    const char *from = in;
    for (size_t i = 0; i < n; i++) {
        const float *w = (const float *)(const void *)(from + i * bytes);
        bool state = with_state && spec->state_values > 0;
        paramo_err err = optimizer_check_state(&spec->optimizer, w, state ? w + spec->dim : NULL,
                                               state ? w + 2 * (size_t)spec->dim : NULL, 0, spec->dim);
        if (err)
            return err_prefix(err, "key %llu", (unsigned long long)keys[i]);
    }
    struct undo u;
    paramo_err err = n == 0 ? PARAMO_OK : undo_open(s, n, &u);
    if (err || n == 0)
        return err;
    struct keyindex_scan scan;
    void **row;
    keyindex_scan_start(&scan, &s->index, keys, n);
    for (size_t m; (m = keyindex_scan_next(&scan, &row)) > 0; keys += m, from += m * bytes) {
        err = chunk_create(s, &scan, keys, m, row, &u);
        if (err)
            break;
        keyindex_change(&s->index, keys, row, m);
        for (size_t i = 0; i < m; i++) {
            memcpy(row[i], from + i * bytes, bytes);
            if (!with_state)
                start_row(spec, row[i]);
        }
    }
    if (err)
        undo_all(s, scan.keys, &u);
    undo_close(s, &u);
    return err;
}

/* ---- columns ---- */

paramo_err table_small_push_columns(struct table_small *s, const uint64_t *keys, size_t n, uint32_t col,
                                    uint32_t ncols, const void *vals)
{
    const struct rowspec *spec = s->spec;
    struct undo u = {0};
    paramo_err err = optimizer_check(&spec->optimizer, vals, n * ncols);
    if (err || (err = undo_open(s, n, &u)) != PARAMO_OK)
        return err;
    struct keyindex_scan scan;
    void **row;
    keyindex_scan_start(&scan, &s->index, keys, n);
    for (size_t done = 0, m; (m = keyindex_scan_next(&scan, &row)) > 0; done += m) {
        err = chunk_create(s, &scan, keys + done, m, row, &u);
        if (err)
            break;
        keyindex_change(&s->index, keys + done, row, m);
        chunk_push_columns(spec, row, m, col, ncols, (const char *)vals + done * ncols * spec->value_bytes);
    }
    if (err)
        undo_all(s, keys, &u);
    undo_close(s, &u);
    return err;
}

paramo_err table_small_pull_columns(struct table_small *s, const uint64_t *keys, size_t n, uint32_t col,
                                    uint32_t ncols, void *vals, bool create)
{
    const struct rowspec *spec = s->spec;
    struct keyindex_scan scan;
    void **row;
    char *out = vals;
    paramo_err err = create ? table_small_visit(s, keys, n, NULL, NULL, true, NULL) : PARAMO_OK;
    if (err)
        return err;
    keyindex_scan_start(&scan, &s->index, keys, n);
    for (size_t done = 0, m; (m = keyindex_scan_next(&scan, &row)) > 0; done += m) {
        for (size_t i = 0; i < m; i++, out += ncols * spec->value_bytes) {
            if (row[i])
                memcpy(out, (const char *)row[i] + col * spec->value_bytes, ncols * spec->value_bytes);
            else
                rowspec_initial(spec, keys[done + i], col, ncols, out);
        }
    }
    return PARAMO_OK;
}

/* ---- the rest ---- */

paramo_err table_small_get(const struct table_small *s, const uint64_t *keys, size_t n, bool with_state,
                           void *out)
{
    size_t bytes = s->spec->param_bytes + (with_state ? s->spec->state_values * sizeof(float) : 0);
    struct keyindex_scan scan;
    void **row;
    for (int copy = 0; copy < 2; copy++) { /* nothing is written if a key is missing */
        char *to = out;
        keyindex_scan_start(&scan, &s->index, keys, n);
        for (size_t done = 0, m; (m = keyindex_scan_next(&scan, &row)) > 0; done += m) {
            for (size_t i = 0; i < m; i++, to += bytes) {
                if (!row[i]) {
                    return err_set(PARAMO_E_NOT_FOUND, "the table has no row of key %llu",
                                   (unsigned long long)keys[done + i]);
                }
                if (copy)
                    memcpy(to, row[i], bytes);
            }
        }
    }
    return PARAMO_OK;
}

size_t table_small_scan(const struct table_small *s, uint64_t *keys, size_t n, size_t bytes, void *out)
{
    struct keyindex_scan scan;
    void **row;
    size_t kept = 0;
    char *to = out;
    keyindex_scan_start(&scan, &s->index, keys, n);
    for (size_t done = 0, m; (m = keyindex_scan_next(&scan, &row)) > 0; done += m) {
        for (size_t i = 0; i < m; i++) {
            if (row[i]) {
                memcpy(to, row[i], bytes);
                to += bytes;
                keys[kept++] = keys[done + i];
            }
        }
    }
    assert(kept <= n);
    return kept;
}

size_t table_small_delete(struct table_small *s, const uint64_t *keys, size_t n)
{
    size_t removed = 0;
    for (size_t i = 0; i < n; i++)
        removed += keyindex_remove(&s->index, keys[i], NULL);
    return removed;
}
