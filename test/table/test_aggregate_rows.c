/* Rows that collect the pushes of a clock: the optimizer is applied once to their exact sum, in any order of the
 * pushes, and reads, snapshots and copies of rows see what they should. */
#include <math.h>
#include <string.h>

#include "table/aggregate.h"
#include "table/optimizer/optimizer_def.h"
#include "table/table.h"
#include "table/table_page.h"
#include "table/table_snapshot.h"
#include "unit.h"

enum { KEYS = 3, DIM_MAX = 70, WORKERS = 5, CLOCKS = 4 };

static const uint64_t all[KEYS] = {2, 9, 77};

static struct table *make(paramo_optimizer optimizer, paramo_aggregate aggregate, uint32_t dim,
                          paramo_dtype dtype)
{
    paramo_table_options o;
    struct table *t;
    table_options_default(&o);
    o.optimizer = optimizer;
    o.aggregate = aggregate;
    o.dim = dim;
    o.dtype = dtype;
    o.init = PARAMO_INIT_UNIFORM;
    o.init_a = -1;
    o.init_b = 1;
    o.l1 = 0.01f;
    assert_int_equal(table_create(&o, 5, NULL, &t), PARAMO_OK);
    return t;
}

/* What one worker pushes: fractions whose sums are exact floats. */
static float pushed(unsigned clock, unsigned worker, size_t i)
{
    return (float)((int)((clock * 31 + worker * 17 + i * 7) % 64) - 31) / 64;
}

static void push_at(struct table *t, unsigned clock, unsigned worker, uint32_t workers, uint32_t dim)
{
    float vals[KEYS * DIM_MAX];
    for (size_t i = 0; i < (size_t)KEYS * dim; i++)
        vals[i] = pushed(clock, worker, i);
    table_at_clock(t, clock, workers);
    assert_int_equal(table_push(t, all, KEYS, vals), PARAMO_OK);
    table_at_clock(t, UINT64_MAX, 1);
}

static void pull_at(struct table *t, uint64_t clock, void *vals)
{
    table_at_clock(t, clock, 1);
    assert_int_equal(table_pull(t, all, KEYS, vals, false), PARAMO_OK);
    table_at_clock(t, UINT64_MAX, 1);
}

/* The same as one push of the sum to a table that does not aggregate, and the same bits in every order. */
static void once_each_clock(void **state)
{
    (void)state;
    static const uint32_t dims[] = {1, 3, DIM_MAX};
    for (unsigned kind = 0; kind < PARAMO_OPTIMIZER_COUNT; kind++) {
        const struct optimizer_def *def = optimizer_def((paramo_optimizer)kind);
        paramo_table_options bad;
        table_options_default(&bad);
        bad.optimizer = (paramo_optimizer)kind;
        bad.aggregate = PARAMO_AGGREGATE_SUM;
        if (kind == PARAMO_OPT_ASSIGN || kind == PARAMO_OPT_MAX) {
            assert_int_equal(table_options_check(&bad), PARAMO_E_INVALID);
            continue;
        }
        for (unsigned d = 0; d < 3 * 2; d++) {
            uint32_t dim = dims[d / 2];
            bool mean = d % 2;
            paramo_aggregate how = mean ? PARAMO_AGGREGATE_MEAN : PARAMO_AGGREGATE_SUM;
            struct table *up = make((paramo_optimizer)kind, how, dim, PARAMO_F32);
            struct table *down = make((paramo_optimizer)kind, how, dim, PARAMO_F32);
            struct table *plain = make((paramo_optimizer)kind, PARAMO_AGGREGATE_NONE, dim, PARAMO_F32);
            float before[KEYS * DIM_MAX], want[KEYS * DIM_MAX], got[KEYS * DIM_MAX], sums[KEYS * DIM_MAX];
            size_t n = (size_t)KEYS * dim;
            for (unsigned clock = 1; clock <= CLOCKS; clock++) {
                assert_int_equal(table_pull(plain, all, KEYS, before, false), PARAMO_OK);
                memset(sums, 0, sizeof sums);
                for (unsigned k = 0; k < WORKERS; k++) {
                    push_at(up, clock, k, k == 2 ? 4 : 3, dim); /* the mean is over the greatest */
                    push_at(down, clock, WORKERS - 1 - k, k == 0 ? 4 : 1, dim);
                    for (size_t i = 0; i < n; i++)
                        sums[i] += pushed(clock, k, i);
                }
                for (size_t i = 0; i < n && mean; i++)
                    sums[i] /= 4;
                pull_at(up, clock - 1, got); /* nothing of this clock is seen */
                assert_memory_equal(got, before, n * sizeof *got);
                assert_int_equal(table_push(plain, all, KEYS, sums), PARAMO_OK);
                assert_int_equal(table_pull(plain, all, KEYS, want, false), PARAMO_OK);
                for (unsigned again = 0; again < 2; again++) { /* a read changes nothing */
                    pull_at(up, clock, got);
                    assert_memory_equal(got, want, n * sizeof *got);
                    pull_at(down, clock + 9, got);
                    assert_memory_equal(got, want, n * sizeof *got);
                }
                assert_int_equal(table_get_rows(down, all, KEYS, false, got), PARAMO_OK);
                assert_memory_equal(got, want, n * sizeof *got);
            }
            /* The state is that of the plain table, and nothing is left to apply. */
            float rows[KEYS * 8 * DIM_MAX], plain_rows[KEYS * 4 * DIM_MAX];
            size_t state_n = (size_t)def->planes * dim + def->counts, width = dim + state_n;
            uint64_t keys[KEYS];
            memcpy(keys, all, sizeof keys);
            assert_int_equal(table_row_values(table_get_options(up), true), width);
            assert_int_equal(table_scan_rows(up, keys, KEYS, true, rows), KEYS);
            assert_int_equal(table_get_rows(plain, all, KEYS, true, plain_rows), PARAMO_OK);
            for (size_t k = 0; k < KEYS; k++) {
                assert_memory_equal(rows + k * width, plain_rows + k * (dim + state_n),
                                    (dim + state_n) * sizeof *rows);
            }
            table_destroy(up);
            table_destroy(down);
            table_destroy(plain);
        }
    }
}

/* A push of a clock that is over is refused, whole. */
static void late(void **state)
{
    (void)state;
    struct table *t = make(PARAMO_OPT_SGD, PARAMO_AGGREGATE_SUM, 1, PARAMO_F32);
    float one[KEYS] = {1, 1, 1}, before[KEYS], after[KEYS];
    table_at_clock(t, 5, 1);
    assert_int_equal(table_push(t, all + 1, 1, one), PARAMO_OK);
    assert_int_equal(table_pull(t, all, KEYS, before, false), PARAMO_OK);
    table_at_clock(t, 4, 1);
    assert_int_equal(table_push(t, all, KEYS, one), PARAMO_E_INVALID);
    assert_non_null(strstr(err_text(), "key 9 has pushes of later clocks than 4"));
    assert_int_equal(table_rows(t), 1);
    table_at_clock(t, 5, 1);
    assert_int_equal(table_pull(t, all, KEYS, after, false), PARAMO_OK);
    assert_memory_equal(before, after, sizeof before);
    table_at_clock(t, 4, 1); /* other keys have none of a later clock */
    assert_int_equal(table_push(t, all, 1, one), PARAMO_OK);
    float bad[2] = {1, 0x1p41f};
    assert_int_equal(table_push(t, all, 2, bad), PARAMO_E_NUMERIC);
    bad[1] = NAN;
    assert_int_equal(table_push(t, all, 2, bad), PARAMO_E_NUMERIC);
    table_destroy(t);
}

/* Sums are exact where floats would lose everything. */
static void exact(void **state)
{
    (void)state;
    static const double parts[] = {0x1p40, -0x1p-20, 0x1p-64, -0x1p40, 0x1p-20, 3, -3.5, -0x1p-65};
    for (unsigned first = 0; first < 8; first++) {
        struct table *t = make(PARAMO_OPT_ADD, PARAMO_AGGREGATE_SUM, 1, PARAMO_F64);
        double base, sum;
        assert_int_equal(table_pull(t, all, 1, &base, true), PARAMO_OK);
        for (unsigned i = 0; i < 8; i++) {
            table_at_clock(t, 1, 1);
            assert_int_equal(table_push(t, all, 1, &parts[(first + i) % 8]), PARAMO_OK);
        }
        assert_int_equal(table_pull(t, all, 1, &sum, false), PARAMO_OK);
        assert_true(sum == base + (0x1p-64 - 0.5));
        struct table_count count = {0};
        while (!count.done)
            table_count_step(t, &count, 100, NULL, NULL);
        assert_true(count.rows == 1 && count.nonzero == 1);
        table_destroy(t);
    }
}

struct seen {
    float rows[KEYS][64];
    uint32_t values;
    unsigned n;
};

static void see(void *arg, uint64_t key, const void *row, uint32_t values)
{
    struct seen *seen = arg;
    unsigned i = key == all[0] ? 0 : key == all[1] ? 1 : 2;
    memcpy(seen->rows[i], row, values * sizeof(float));
    seen->values = values;
    seen->n++;
}

/* A row that moves keeps its pending pushes. One that is saved, or put with state, has none. */
static void rows_move(void **state)
{
    (void)state;
    enum { DIM = 3, STATE = DIM * 3, WIDTH = STATE + 4 + 4 * DIM };
    struct table *from = make(PARAMO_OPT_FTRL, PARAMO_AGGREGATE_SUM, DIM, PARAMO_F32);
    struct table *to = make(PARAMO_OPT_FTRL, PARAMO_AGGREGATE_SUM, DIM, PARAMO_F32);
    float raw[KEYS * WIDTH], a[KEYS * DIM], b[KEYS * DIM], scanned[KEYS * STATE];
    push_at(from, 1, 0, 1, DIM);
    push_at(from, 2, 1, 2, DIM);
    assert_int_equal(table_stored_values(table_get_options(from)), WIDTH);
    assert_int_equal(table_get_stored(from, all, KEYS, raw), PARAMO_OK);
    assert_int_equal(table_put_stored(to, all, KEYS, raw), PARAMO_OK);
    push_at(from, 2, 2, 2, DIM);
    push_at(to, 2, 2, 2, DIM);
    pull_at(from, 2, a);
    pull_at(to, 2, b);
    assert_memory_equal(a, b, sizeof a);
    pull_at(from, 1, a);
    pull_at(to, 1, b);
    assert_memory_equal(a, b, sizeof a);

    struct table_snapshot *snapshot;
    struct seen seen = {.n = 0};
    assert_int_equal(table_snapshot_open(from, TABLE_SNAPSHOT_ALL, false, see, &seen, &snapshot), PARAMO_OK);
    push_at(from, 2, 3, 2, DIM); /* after the snapshot was opened: the rows are given out as they were */
    for (bool done = false; !done;)
        assert_int_equal(table_snapshot_step(snapshot, 1 << 20, &done), PARAMO_OK);
    table_snapshot_close(snapshot);
    uint64_t keys[KEYS];
    memcpy(keys, all, sizeof keys);
    assert_int_equal(table_scan_rows(to, keys, KEYS, true, scanned), KEYS);
    assert_int_equal(seen.n, KEYS);
    assert_int_equal(seen.values, WIDTH);
    for (unsigned i = 0; i < KEYS; i++)
        assert_memory_equal(seen.rows[i], scanned + (size_t)i * STATE, sizeof(float) * STATE);
    for (unsigned i = STATE; i < WIDTH; i++)
        assert_true(seen.rows[0][i] == 0);

    assert_int_equal(table_put_rows(to, all, KEYS, true, scanned), PARAMO_OK);
    pull_at(to, 1, a);
    pull_at(to, 2, b);
    assert_memory_equal(a, b, sizeof a);
    push_at(to, 1, 0, 1, DIM); /* its clock may begin again */
    table_destroy(from);
    table_destroy(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_each_clock),
        cmocka_unit_test(late),
        cmocka_unit_test(exact),
        cmocka_unit_test(rows_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
