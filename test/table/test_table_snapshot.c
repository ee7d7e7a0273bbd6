/* A snapshot gives out the table as it was, each row once, while the table changes. Snapshots of changes, laid over
 * the last whole one, give what a whole one would have given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "table/table.h"
#include "table/table_snapshot.h"

enum { KEYS = 12000, DENSE_ROWS = 6000, WIDTH = 40, LIST = 100, LISTS = 4, SNAPSHOTS = 9 };

/* Rows as they were at a time; values as bytes. */
struct copy {
    bool there[KEYS];
    uint32_t len[KEYS];
    float row[KEYS][WIDTH];
};

/* A list of keys that is remembered with its rows. */
struct list {
    uint64_t keys[LIST], generation, epoch;
    uint32_t rows[LIST];
};

static struct {
    struct table *t;
    bool var, dense;
    enum table_snapshot_kind kind;
    size_t row;        /* values of a row with state */
    bool exists[KEYS]; /* VAR: a row without values does, too */
    struct copy now;   /* at the opening */
    struct copy base;  /* what the snapshots until now gave */
    struct copy next;  /* with this one */
    unsigned given[KEYS];
    bool changed[KEYS], before[KEYS]; /* perhaps: since the opening; from the last one to this */
    struct list lists[LISTS];
    uint64_t random;
    unsigned grown, incremental, abandoned, cleared, remembered, erased; /* how often it happened */
} w;

static uint64_t draw(uint64_t below)
{
    w.random = w.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (w.random >> 33) % below;
}

static uint64_t key_of(size_t i)
{
    return w.dense ? i : i * UINT64_C(0x9e3779b97f4a7c15); /* 0 among them */
}

static size_t index_of_key(uint64_t key)
{
    return (size_t)(w.dense ? key : key * UINT64_C(0xf1de83e19937733d));
}

static size_t keys_count(void)
{
    return w.dense ? DENSE_ROWS : KEYS;
}

static bool held(size_t i)
{
    return !w.dense || (i >= 100 && i < 3100) || i >= 4000;
}

static void got(void *arg, uint64_t key, const void *row, uint32_t values)
{
    size_t i = index_of_key(key);
    (void)arg;
    assert_true(i < keys_count());
    assert_true(w.now.there[i]); /* otherwise it was created after the opening */
    assert_int_equal(w.given[i]++, 0);
    assert_int_equal(values, w.var ? w.now.len[i] : w.row);
    if (values)
        assert_memory_equal(row, w.now.row[i], values * sizeof(float));
    assert_true(w.kind == TABLE_SNAPSHOT_ALL || w.dense || w.before[i]); /* no more than changed */
    w.next.there[i] = true;
    w.next.len[i] = values;
    if (values)
        memcpy(w.next.row[i], row, values * sizeof(float));
}

static void push_list(const float *v)
{
    struct list *l = &w.lists[draw(LISTS)];
    float vals[LIST * WIDTH];
    for (size_t i = 0; i < LIST * WIDTH; i++)
        vals[i] = v[i % WIDTH];
    if (!l->generation || l->generation != table_generation(w.t)) {
        size_t first = (size_t)draw(keys_count() - LIST);
        for (size_t i = 0; i < LIST; i++)
            l->keys[i] = key_of(first + i);
        for (size_t i = 0; i < LIST; i++) /* ascending */
            for (size_t k = i; k > 0 && l->keys[k] < l->keys[k - 1]; k--) {
                uint64_t key = l->keys[k];
                l->keys[k] = l->keys[k - 1];
                l->keys[k - 1] = key;
            }
        assert_int_equal(table_resolve(w.t, l->keys, LIST, l->rows, draw(2)), PARAMO_OK);
        l->generation = table_generation(w.t);
        l->epoch = 0;
    } else {
        w.remembered++;
    }
    uint64_t generation = table_generation(w.t);
    assert_int_equal(table_push_rows(w.t, l->keys, l->rows, LIST, vals, &l->epoch), PARAMO_OK);
    if (generation != table_generation(w.t))
        l->generation = 0;
    for (size_t i = 0; i < LIST; i++)
        w.changed[index_of_key(l->keys[i])] = w.exists[index_of_key(l->keys[i])] = true;
}

/* Rows of several blocks. */
static void push_dense(size_t i)
{
    uint64_t keys[LIST];
    float vals[LIST * WIDTH] = {0};
    size_t n = 0;
    for (; n < LIST && i < keys_count(); i += 1 + (size_t)draw(20))
        if (held(i)) {
            w.changed[i] = true;
            vals[n] = (float)draw(1000);
            keys[n++] = i;
        }
    assert_int_equal(table_push(w.t, keys, n, vals), PARAMO_OK);
}

static void change(size_t i)
{
    unsigned what = (unsigned)draw(w.dense ? 8 : 9);
    uint64_t key = key_of(i);
    float v[WIDTH], bad[WIDTH];
    uint32_t len = (uint32_t)draw(4), row;
    for (size_t k = 0; k < WIDTH; k++) {
        v[k] = (float)draw(1000) / 8;
        bad[k] = __builtin_nanf("");
    }
    if (!w.dense && what == 8 && draw(3))
        what = 0; /* more come than go */
    w.changed[i] = true;
    w.exists[i] = what != 8;
    if (w.var && what < 8) {
        assert_int_equal(table_var_put(w.t, &key, 1, v, &len), PARAMO_OK);
        return;
    }
    switch (what) {
    case 0:
        assert_int_equal(table_push(w.t, &key, 1, v), PARAMO_OK);
        break;
    case 1:
        assert_int_equal(table_put_rows(w.t, &key, 1, false, v), PARAMO_OK);
        break;
    case 2:
        assert_int_equal(table_pull(w.t, &key, 1, v, true), PARAMO_OK);
        break;
    case 3:
        assert_int_equal(w.dense ? table_push(w.t, &key, 1, v) : table_push_noting(w.t, &key, 1, v, &row),
                         PARAMO_OK);
        break;
    case 4:
        assert_int_equal(table_resolve(w.t, &key, 1, &row, true), PARAMO_OK);
        assert_int_equal(table_push_rows(w.t, &key, &row, 1, v, NULL), PARAMO_OK);
        break;
    case 5:
        assert_int_equal(table_push(w.t, &key, 1, bad), PARAMO_E_NUMERIC);
        w.exists[i] = false; /* no caller asks */
        break;
    case 6:
        if (table_push_columns(w.t, &key, 1, 0, 1, v) != PARAMO_OK) /* not of every table */
            assert_int_equal(table_push(w.t, &key, 1, v), PARAMO_OK);
        break;
    case 7:
        w.dense ? push_dense(i) : push_list(v);
        break;
    default:
        assert_int_equal(table_delete(w.t, &key, 1, NULL), PARAMO_OK);
    }
}

static void change_some(size_t n)
{
    while (n--) {
        size_t i = (size_t)draw(keys_count());
        if (held(i))
            change(i);
    }
}

static void clear(void)
{
    table_clear(w.t);
    memset(w.exists, 0, sizeof w.exists);
    memset(w.changed, 1, sizeof w.changed);
    assert_false(table_changes_known(w.t));
    w.cleared++;
}

/* The rows of now are what the snapshot must give out, or what its changes must lead to. */
static void remember(void)
{
    memset(w.given, 0, sizeof w.given);
    memcpy(w.before, w.changed, sizeof w.before);
    memset(w.changed, 0, sizeof w.changed);
    for (size_t i = 0; i < keys_count(); i++) {
        uint64_t key = key_of(i);
        size_t total;
        if (w.var) {
            table_var_lens(w.t, &key, 1, &w.now.len[i], &total);
            table_var_pull(w.t, &key, 1, w.now.row[i]);
            w.now.there[i] = w.exists[i];
        } else {
            w.now.there[i] = table_get_rows(w.t, &key, 1, true, w.now.row[i]) == PARAMO_OK;
        }
    }
}

static struct table_snapshot *open(bool track)
{
    struct table_snapshot *snapshot, *second;
    remember();
    w.kind = table_changes_known(w.t) && draw(4) ? TABLE_SNAPSHOT_CHANGES : TABLE_SNAPSHOT_ALL;
    assert_int_equal(table_snapshot_open(w.t, w.kind, track, got, NULL, &snapshot), PARAMO_OK);
    assert_int_equal(table_snapshot_open(w.t, TABLE_SNAPSHOT_ALL, false, got, NULL, &second),
                     PARAMO_E_INVALID);
    assert_false(table_changes_known(w.t));
    size_t erased;
    const uint64_t *keys = table_snapshot_erased(snapshot, &erased);
    if (w.kind == TABLE_SNAPSHOT_ALL) {
        assert_int_equal(erased, 0);
        memset(&w.next, 0, sizeof w.next);
        return snapshot;
    }
    w.incremental++;
    w.erased += erased > 0;
    w.next = w.base;
    for (size_t k = 0; k < erased; k++) {
        assert_true(!k || keys[k] > keys[k - 1]);
        assert_false(w.now.there[index_of_key(keys[k])]);
        assert_true(w.before[index_of_key(keys[k])]);
        w.next.there[index_of_key(keys[k])] = false;
    }
    return snapshot;
}

/* The snapshots have led to the rows that were there. */
static void check_whole(void)
{
    w.base = w.next;
    for (size_t i = 0; i < keys_count(); i++) {
        assert_int_equal(w.base.there[i], w.now.there[i]);
        size_t values = w.var ? w.now.len[i] : w.row;
        if (w.now.there[i] && values)
            assert_memory_equal(w.base.row[i], w.now.row[i], values * sizeof(float));
        assert_true(w.kind == TABLE_SNAPSHOT_CHANGES || w.given[i] == w.now.there[i]);
    }
}

static void one_snapshot(void)
{
    bool track = draw(5) > 0, is_abandoned = draw(5) == 0, clears = draw(6) == 0, done = false,
         cleared = false;
    size_t step = 1000 + (size_t)draw(50000), most = 1 + (size_t)draw(400);
    struct table_snapshot *snapshot = open(track);
    uint64_t generation = table_generation(w.t);
    while (!done) {
        for (size_t n = draw(most); n--;) {
            size_t i = (size_t)draw(keys_count());
            uint64_t key = key_of(i);
            if (!held(i))
                continue;
            bool holds = table_snapshot_holds(snapshot, &key, 1);
            unsigned before = w.given[i];
            change(i);
            assert_true(holds || w.given[i] == before);
            assert_false(table_snapshot_holds(snapshot, &key, 1) && w.given[i]);
        }
        w.grown += generation != table_generation(w.t);
        if (is_abandoned && draw(3) == 0)
            break;
        if (clears && draw(5) == 0) {
            clear();
            cleared = true;
            assert_false(table_snapshot_holds(snapshot, NULL, 0));
        }
        assert_int_equal(table_snapshot_step(snapshot, step, &done), PARAMO_OK);
        assert_int_not_equal(table_snapshot_holds(snapshot, NULL, 0), done);
    }
    change_some(draw(30)); /* all has been given out */
    table_snapshot_close(snapshot);
    assert_int_equal(table_changes_known(w.t), done && track && !cleared);
    w.abandoned += !done;
    if (done)
        check_whole();
}

static void run(const paramo_table_options *options, uint64_t seed)
{
    memset(&w, 0, sizeof w);
    w.random = seed;
    w.var = options->kind == PARAMO_TABLE_VAR;
    w.dense = options->kind == PARAMO_TABLE_DENSE;
    w.row = w.var ? 0 : table_row_values(options, true);
    assert_true(w.row <= WIDTH);
    assert_int_equal(table_create(options, seed, NULL, &w.t), PARAMO_OK);
    size_t bytes = 0;
    if (w.dense) { /* with holes */
        assert_int_equal(table_dense_own(w.t, 100, 3000), PARAMO_OK);
        assert_int_equal(table_dense_own(w.t, 4000, 2000), PARAMO_OK);
    }
    assert_false(table_changes_known(w.t));
    change_some(draw(2000));
    for (unsigned snapshots = 0; snapshots < SNAPSHOTS; snapshots++) {
        one_snapshot();
        change_some(draw(4) ? draw(1500) : draw(20));
        if (draw(9) == 0)
            clear();
    }
    struct table_snapshot *snapshot; /* marks and lists go with the last one */
    assert_int_equal(table_snapshot_open(w.t, TABLE_SNAPSHOT_ALL, false, got, NULL, &snapshot), PARAMO_OK);
    bytes = table_get_stats(w.t).bytes;
    table_snapshot_close(snapshot);
    assert_true(table_get_stats(w.t).bytes <= bytes);
    table_destroy(w.t);
}

/* Some seeds together meet every case. */
static void runs(const paramo_table_options *options)
{
    unsigned incremental = 0, abandoned = 0, cleared = 0, grown = 0, erased = 0, remembered = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        run(options, seed);
        incremental += w.incremental;
        abandoned += w.abandoned;
        cleared += w.cleared;
        grown += w.grown;
        erased += w.erased;
        remembered += w.remembered;
    }
    assert_true(incremental > 5 && abandoned && cleared);
    assert_true(w.dense || (erased && grown));
    assert_true(w.dense || w.var || remembered > 20);
}

static void test_small(void **state)
{
    (void)state;
    runs(
        &(paramo_table_options){.size = sizeof(paramo_table_options), .dim = 1, .optimizer = PARAMO_OPT_ADD});
    runs(&(paramo_table_options){.size = sizeof(paramo_table_options),
                                 .dim = 1,
                                 .optimizer = PARAMO_OPT_FTRL,
                                 .alpha = 0.1F,
                                 .beta = 1});
}

static void test_slab(void **state)
{
    (void)state;
    runs(&(paramo_table_options){.size = sizeof(paramo_table_options),
                                 .dim = 9,
                                 .optimizer = PARAMO_OPT_ADAGRAD,
                                 .alpha = 0.1F,
                                 .beta = 1});
}

static void test_dense(void **state)
{
    (void)state;
    runs(&(paramo_table_options){.size = sizeof(paramo_table_options),
                                 .kind = PARAMO_TABLE_DENSE,
                                 .rows = DENSE_ROWS,
                                 .dim = 5,
                                 .optimizer = PARAMO_OPT_ADAGRAD,
                                 .alpha = 0.1F,
                                 .beta = 1});
}

static void test_var(void **state)
{
    (void)state;
    runs(&(paramo_table_options){.size = sizeof(paramo_table_options),
                                 .kind = PARAMO_TABLE_VAR,
                                 .dim = 1,
                                 .optimizer = PARAMO_OPT_ASSIGN});
}

/* ---- single things ------------------------------------------------------------------------------------- */

static const paramo_table_options small_rows = {.size = sizeof small_rows, .dim = 1},
                                  slab_rows = {.size = sizeof slab_rows, .dim = 5};

static void count(void *arg, uint64_t key, const void *row, uint32_t values)
{
    (void)key, (void)row, (void)values;
    ++*(size_t *)arg;
}

static void count_key(void *arg, uint64_t key, const void *row, uint32_t values)
{
    (void)row, (void)values;
    ((uint8_t *)arg)[key]++;
}

/* Walks a snapshot to its end. */
static void whole(struct table *t, enum table_snapshot_kind kind, table_snapshot_row row, void *arg)
{
    struct table_snapshot *snapshot;
    bool done = false;
    assert_int_equal(table_snapshot_open(t, kind, true, row, arg, &snapshot), PARAMO_OK);
    while (!done)
        assert_int_equal(table_snapshot_step(snapshot, 1 << 20, &done), PARAMO_OK);
    table_snapshot_close(snapshot);
}

static struct table *table_of(const paramo_table_options *options, const struct table_alloc *alloc, size_t n,
                              uint64_t **keys, float **vals)
{
    struct table *t;
    assert_int_equal(table_create(options, 1, alloc, &t), PARAMO_OK);
    *keys = malloc(n * sizeof **keys);
    *vals = calloc(n * options->dim, sizeof **vals);
    assert_true(*keys && *vals);
    for (size_t i = 0; i < n; i++)
        (*keys)[i] = i;
    assert_int_equal(table_push(t, *keys, n, *vals), PARAMO_OK);
    return t;
}

static void test_erased(void **state)
{
    (void)state;
    for (size_t extra = 0; extra < 2; extra++) {
        uint64_t *keys;
        float *vals;
        size_t given = 0, n = TABLE_SNAPSHOT_ERASED + extra, erased;
        struct table *t = table_of(extra ? &small_rows : &slab_rows, NULL, n + 10, &keys, &vals);
        struct table_snapshot *snapshot;
        whole(t, TABLE_SNAPSHOT_ALL, count, &given);
        assert_int_equal(given, n + 10);
        assert_int_equal(table_delete(t, keys, n, NULL), PARAMO_OK);
        assert_int_equal(table_changes_known(t), !extra); /* one too many */
        assert_int_equal(table_snapshot_open(t, TABLE_SNAPSHOT_CHANGES, true, count, &given, &snapshot),
                         extra ? PARAMO_E_INVALID : PARAMO_OK);
        if (!extra) {
            const uint64_t *list = table_snapshot_erased(snapshot, &erased);
            assert_int_equal(erased, n);
            assert_memory_equal(list, keys, n * sizeof *keys);
            table_snapshot_close(snapshot);
        }
        given = 0;
        whole(t, TABLE_SNAPSHOT_ALL, count, &given);
        assert_int_equal(given, 10);
        table_destroy(t);
        free(keys);
        free(vals);
    }
}

static long allocations; /* that succeed from here on */

static void *get(void *ctx, size_t align, size_t size)
{
    (void)ctx;
    if (allocations-- <= 0)
        return NULL;
    return aligned_alloc(align < 8 ? 8 : align, (size + align - 1) / align * align);
}

static void put(void *ctx, void *memory, size_t size)
{
    (void)ctx;
    (void)size;
    free(memory);
}

enum { N = 24000, SOME = 2000, FEW = 8 };

/* Removes some rows while a snapshot of removals only is open, and changes the others. */
static paramo_err with_snapshot(struct table *t, struct table_snapshot *snapshot, const uint64_t *keys,
                                const float *vals)
{
    uint32_t rows[SOME];
    size_t erased;
    bool done = false;
    paramo_err err = PARAMO_OK;
    (void)table_snapshot_erased(snapshot, &erased);
    assert_int_equal(erased, FEW);
    assert_int_equal(table_delete(t, keys + FEW, SOME - FEW, NULL), PARAMO_OK);
    for (size_t i = SOME; i < N; i += SOME) { /* that needs no memory */
        assert_int_equal(table_resolve(t, keys + i, SOME, rows, false), PARAMO_OK);
        assert_int_equal(table_push_rows(t, keys + i, rows, SOME, vals, NULL), PARAMO_OK);
    }
    while (!done && !err)
        err = table_snapshot_step(snapshot, 1 << 16, &done);
    table_snapshot_close(snapshot);
    return err;
}

/* Each allocation fails once: the snapshot fails or is right. The table continues, and the next snapshot is right. */
static void without_memory(const paramo_table_options *options)
{
    const struct table_alloc alloc = {.alloc = get, .release = put};
    static uint8_t given[N];
    unsigned unopened = 0, voids = 0, unknown = 0;
    bool all = false;
    for (long n = 0; !all; n++) {
        uint64_t *keys;
        float *vals;
        struct table_snapshot *snapshot;
        allocations = INT32_MAX;
        struct table *t = table_of(options, &alloc, N, &keys, &vals);
        whole(t, TABLE_SNAPSHOT_ALL, count_key, given);
        assert_int_equal(table_delete(t, keys, FEW, NULL), PARAMO_OK);
        assert_true(table_changes_known(t));
        allocations = n;
        paramo_err err = table_snapshot_open(t, TABLE_SNAPSHOT_CHANGES, true, count_key, given, &snapshot);
        if (err) { /* as if the snapshot had not been opened */
            assert_int_equal(err, PARAMO_E_MEMORY);
            unopened++;
            allocations = INT32_MAX;
            assert_int_equal(
                table_snapshot_open(t, TABLE_SNAPSHOT_CHANGES, true, count_key, given, &snapshot), PARAMO_OK);
        }
        memset(given, 0, sizeof given);
        err = with_snapshot(t, snapshot, keys, vals);
        all = allocations >= 0 && allocations < N;
        for (size_t i = 0; i < N; i++)
            assert_int_equal(given[i], 0);
        assert_true(!err || err == PARAMO_E_MEMORY);
        bool known = table_changes_known(t);
        assert_true(known ? !err : allocations < 0);
        voids += err != PARAMO_OK;
        unknown += !err && !known;
        allocations = INT32_MAX;
        whole(t, known ? TABLE_SNAPSHOT_CHANGES : TABLE_SNAPSHOT_ALL, count_key, given);
        for (size_t i = 0; i < N; i++)
            assert_int_equal(given[i], i >= SOME);
        assert_true(table_changes_known(t));
        table_destroy(t);
        free(keys);
        free(vals);
    }
    assert_true(unopened > 0);
    if (options == &slab_rows) /* there are marks to make room for */
        assert_true(voids > 1);
    else
        assert_true(voids == 0 && unknown > 1);
}

/* Between two snapshots; small rows have room for their marks. */
static void without_marks(const paramo_table_options *options)
{
    const struct table_alloc alloc = {.alloc = get, .release = put};
    static uint8_t given[N];
    uint64_t *keys;
    uint32_t row;
    float *vals;
    allocations = INT32_MAX;
    struct table *t = table_of(options, &alloc, N, &keys, &vals);
    memset(given, 0, sizeof given);
    whole(t, TABLE_SNAPSHOT_ALL, count_key, given);
    assert_int_equal(table_resolve(t, keys, 1, &row, false), PARAMO_OK);
    allocations = 0;
    assert_int_equal(table_push_rows(t, keys, &row, 1, vals, NULL), PARAMO_OK);
    assert_int_equal(table_changes_known(t), options == &small_rows);
    allocations = INT32_MAX;
    whole(t, TABLE_SNAPSHOT_ALL, count_key, given);
    assert_true(table_changes_known(t));
    for (size_t i = 0; i < N; i++)
        assert_int_equal(given[i], 2);
    table_destroy(t);
    free(keys);
    free(vals);
}

static void test_memory(void **state)
{
    (void)state;
    without_memory(&small_rows);
    without_memory(&slab_rows);
    without_marks(&small_rows);
    without_marks(&slab_rows);
}

/* Snapshots that are abandoned, one after the other, leave no marks that a later one takes for its own. */
static void test_abandoned(void **state)
{
    (void)state;
    for (unsigned slab = 0; slab < 2; slab++) {
        static uint8_t given[N];
        uint64_t *keys;
        float *vals;
        struct table *t = table_of(slab ? &slab_rows : &small_rows, NULL, N, &keys, &vals);
        for (unsigned snapshots = 0; snapshots < 7; snapshots++) {
            struct table_snapshot *snapshot;
            bool done;
            assert_int_equal(table_snapshot_open(t, TABLE_SNAPSHOT_ALL, true, count_key, given, &snapshot),
                             PARAMO_OK);
            assert_int_equal(table_push(t, keys, N / (snapshots + 1), vals), PARAMO_OK);
            assert_int_equal(table_snapshot_step(snapshot, 1 << 16, &done), PARAMO_OK);
            assert_false(done);
            table_snapshot_close(snapshot);
            memset(given, 0, sizeof given);
        }
        whole(t, TABLE_SNAPSHOT_ALL, count_key, given);
        for (size_t i = 0; i < N; i++)
            assert_int_equal(given[i], 1);
        table_destroy(t);
        free(keys);
        free(vals);
    }
}

/* The marks of small rows are cleared in steps, for any number of rows; rows change between the steps. */
static void test_abandoned_in_steps(void **state)
{
    enum { MANY = 5 * (1 << 16) };
    (void)state;
    static uint64_t keys[MANY];
    static float vals[MANY];
    struct table *t;
    assert_int_equal(table_create(&small_rows, 1, NULL, &t), PARAMO_OK);
    for (size_t i = 0; i < MANY; i++)
        keys[i] = i;
    assert_int_equal(table_push(t, keys, MANY, vals), PARAMO_OK);
    for (unsigned snapshots = 0; snapshots < 4; snapshots++) {
        static uint8_t given[MANY];
        struct table_snapshot *snapshot;
        unsigned steps = 1;
        bool done;
        memset(given, 0, sizeof given);
        assert_int_equal(table_snapshot_open(t, TABLE_SNAPSHOT_ALL, true, count_key, given, &snapshot),
                         PARAMO_OK);
        assert_int_equal(table_push(t, keys, MANY / (snapshots + 1), vals), PARAMO_OK);
        assert_int_equal(table_snapshot_step(snapshot, 1 << 12, &done), PARAMO_OK);
        assert_false(done);
        assert_false(table_clear_due(t));
        table_snapshot_close(snapshot);
        assert_true(table_clear_due(t));
        if (snapshots == 1) { /* the next finds marks of both */
            assert_int_equal(table_snapshot_open(t, TABLE_SNAPSHOT_ALL, true, count_key, given, &snapshot),
                             PARAMO_OK);
            assert_false(table_clear_due(t));
            assert_int_equal(table_push(t, keys, MANY / 3, vals), PARAMO_OK);
            table_snapshot_close(snapshot);
            assert_true(table_snapshot_must_wait(t));
        }
        for (; table_clear_step(t); steps++)
            assert_int_equal(table_push(t, keys, MANY / 2, vals), PARAMO_OK);
        assert_in_range(steps, 5, 50);
        assert_false(table_snapshot_must_wait(t));
        memset(given, 0, sizeof given);
        if (snapshots % 2 == 0)
            continue;
        whole(t, TABLE_SNAPSHOT_ALL, count_key, given);
        for (size_t i = 0; i < MANY; i++)
            assert_int_equal(given[i], 1);
    }
    table_destroy(t);
}

/* A list that is remembered is looked at once in each epoch. */
static void test_list(void **state)
{
    enum { ROWS = 1000 };
    (void)state;
    for (unsigned slab = 0; slab < 2; slab++) {
        uint64_t *keys, epoch = 0;
        uint32_t rows[ROWS];
        float *vals;
        struct table_snapshot *snapshot;
        struct table *t = table_of(slab ? &slab_rows : &small_rows, NULL, 2 * ROWS, &keys, &vals);
        assert_int_equal(table_resolve(t, keys, ROWS, rows, false), PARAMO_OK);
        for (unsigned snapshots = 0; snapshots < 5; snapshots++) {
            size_t given = 0;
            bool done = false;
            enum table_snapshot_kind kind =
                snapshots == 0 || snapshots == 3 ? TABLE_SNAPSHOT_ALL : TABLE_SNAPSHOT_CHANGES;
            assert_int_equal(table_push_rows(t, keys, rows, ROWS, vals, &epoch), PARAMO_OK);
            assert_int_equal(table_snapshot_open(t, kind, snapshots != 2, count, &given, &snapshot),
                             PARAMO_OK);
            assert_true(table_snapshot_holds(snapshot, keys, ROWS));
            for (unsigned pushes = 0; pushes < 3; pushes++) {
                assert_int_equal(table_push_rows(t, keys, rows, ROWS, vals, &epoch), PARAMO_OK);
                assert_int_equal(given, ROWS);
            }
            assert_false(table_snapshot_holds(snapshot, keys, ROWS));
            while (!done)
                assert_int_equal(table_snapshot_step(snapshot, 1000, &done), PARAMO_OK);
            assert_int_equal(given, kind == TABLE_SNAPSHOT_ALL ? 2 * ROWS : ROWS);
            table_snapshot_close(snapshot);
        }
        table_destroy(t);
        free(keys);
        free(vals);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_slab),
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_var),
        cmocka_unit_test(test_erased),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_abandoned),
        cmocka_unit_test(test_abandoned_in_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
