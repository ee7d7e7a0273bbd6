/* Which rows filters hold back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "filter/filter_chain.h"
#include "filter/selecting.h"

enum { N = 2000, DIM = 2 };

static float vals[N * DIM];
static uint64_t keys[N];
static uint8_t waits[N];

static struct filter_rows rows_of(size_t n)
{
    for (size_t i = 0; i < N; i++)
        keys[i] = 7 * i;
    return (struct filter_rows){.dtype = PARAMO_F32,
                                .vals = vals,
                                .n = n * DIM,
                                .whole = vals,
                                .whole_n = n * DIM,
                                .keys = keys,
                                .count = (uint32_t)n,
                                .row_values = DIM,
                                .seed = 5};
}

static size_t select_by(const char *text, size_t n)
{
    struct filter_chain chain;
    struct filter_rows rows = rows_of(n);
    size_t waiting = 0;
    assert_false(filter_chain_parse(text, FILTER_PUSH, &chain));
    memset(waits, 0, sizeof waits);
    for (unsigned i = 0; i < chain.count; i++)
        chain.at[i].ops->select(&chain.at[i], &rows, waits);
    for (size_t i = 0; i < n; i++)
        waiting += waits[i];
    return waiting;
}

static void draw(uint64_t kinds)
{
    for (size_t i = 0; i < N; i++) {
        vals[2 * i] = (float)(mix64(i) % kinds) - (float)kinds / 2;
        vals[2 * i + 1] = 0;
    }
}

/* No row that waits is greater than one that travels, whatever rows are equal. */
static void topk_sends_the_greatest(void **state)
{
    static const uint64_t kinds[] = {1, 2, 10, 1 << 20};
    static const struct {
        const char *text;
        size_t n, sent;
    } cases[] = {{"topk:0.1", N, 200}, {"topk:0.5", N, 1000}, {"topk:1", N, N},     {"topk:0.001", 7, 1},
                 {"topk:0.5", 3, 2},   {"topk:0.5", 1, 1},    {"topk:0.9999", N, N}};
    (void)state;
    for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
            draw(kinds[k]);
            assert_int_equal(cases[c].n - select_by(cases[c].text, cases[c].n), cases[c].sent);
            double least = HUGE_VAL, most = 0;
            struct filter_rows rows = rows_of(cases[c].n);
            for (uint32_t i = 0; i < cases[c].n; i++) {
                double m = selecting_most(&rows, i);
                least = !waits[i] && m < least ? m : least;
                most = waits[i] && m > most ? m : most;
            }
            assert_true(most <= least);
        }
}

static void threshold_looks_at_each_row(void **state)
{
    (void)state;
    memset(vals, 0, sizeof vals);
    vals[2 * 3] = 0.5F;
    vals[2 * 5 + 1] = -0.75F;
    vals[2 * 8] = NAN;
    assert_int_equal(select_by("threshold:0.5", 10), 8);
    assert_true(waits[3] && !waits[5] && !waits[8]);
    assert_int_equal(select_by("threshold:0", 10), 7);
}

static void significant_looks_at_the_others(void **state)
{
    (void)state;
    for (size_t scale = 0; scale < 2; scale++) {
        memset(vals, 0, sizeof vals);
        for (size_t i = 0; i < 100; i++) /* 10 rows of 10, 90 of 1: root mean square 3.3 */
            vals[2 * i] = (i % 10 ? 1.F : -10.F) * (scale ? 1e30F : 1e-30F);
        vals[2 * 99] = NAN;
        assert_int_equal(select_by("significant:1", 100), 89);
        assert_true(!waits[0] && waits[1] && !waits[99]);
        assert_int_equal(select_by("significant:0.2", 100), 0);
    }
    memset(vals, 0, sizeof vals);
    assert_int_equal(select_by("significant:1", 100), 0); /* all are equal */
}

static void skip_is_a_draw(void **state)
{
    uint8_t first[N];
    (void)state;
    draw(10);
    vals[0] = INFINITY;
    size_t waiting = select_by("skip:0.7", N);
    assert_in_range(waiting, 1300, 1500);
    assert_false(waits[0]);
    memcpy(first, waits, sizeof first);
    assert_int_equal(select_by("skip:0.7", N), waiting);
    assert_memory_equal(first, waits, sizeof first);
    assert_int_equal(select_by("skip:0", N), 0);
}

static void they_fit_tables_that_add_up(void **state)
{
    struct filter_table t = {.dtype = PARAMO_F32, .optimizer = PARAMO_OPT_ADD, .row_values = 1};
    (void)state;
    assert_null(filter_topk.unfit(&t, FILTER_PUSH));
    t.optimizer = PARAMO_OPT_MAX;
    assert_non_null(filter_topk.unfit(&t, FILTER_PUSH));
    t.optimizer = PARAMO_OPT_ASSIGN;
    assert_non_null(filter_skip.unfit(&t, FILTER_PUSH));
    t.optimizer = PARAMO_OPT_FTRL;
    assert_null(filter_skip.unfit(&t, FILTER_PUSH));
    t.aggregates = true; /* each push belongs to its clock */
    assert_non_null(filter_skip.unfit(&t, FILTER_PUSH));
    t.aggregates = false;
    t.row_values = 0;
    assert_non_null(filter_threshold.unfit(&t, FILTER_PUSH));
    struct filter_chain chain;
    assert_int_equal(filter_chain_parse("topk:0.1", FILTER_PULL, &chain), PARAMO_E_INVALID);
    assert_int_equal(filter_chain_parse("fixed:2,topk:0.1", FILTER_PUSH, &chain), PARAMO_E_INVALID);
    assert_int_equal(filter_chain_parse("topk:0", FILTER_PUSH, &chain), PARAMO_E_INVALID);
    assert_int_equal(filter_chain_parse("skip:1", FILTER_PUSH, &chain), PARAMO_E_INVALID);
    assert_int_equal(filter_chain_parse("topk:0.1,skip:0.5,fixed:2,keycache,lz4", FILTER_PUSH, &chain),
                     PARAMO_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topk_sends_the_greatest), cmocka_unit_test(threshold_looks_at_each_row),
        cmocka_unit_test(significant_looks_at_the_others), cmocka_unit_test(skip_is_a_draw),
        cmocka_unit_test(they_fit_tables_that_add_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
