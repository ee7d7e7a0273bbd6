/* Pages give each key that is there throughout once, in order, while other keys come and go between their steps;
 * a count counts it once. Seeds draw the changes, and a plain list of keys is the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support_reference.h"
#include "table/table.h"
#include "table/table_options.h"
#include "table/table_page.h"

/* The linker gives us what this program asks for memory (CMakeLists.txt). */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
static unsigned fail_at; /* the number of the allocation that fails; 0: none */

void *__wrap_malloc(size_t size)
{
    return fail_at && --fail_at == 0 ? NULL : __real_malloc(size);
}

enum { KEYS = 3000, LIST = 40, DIM = 3 };

static struct {
    struct table *t;
    bool var;
    size_t dim;
    uint64_t seed;
    bool there[KEYS], always[KEYS], ever[KEYS]; /* the latter two: since the page, or count, began */
    unsigned given[KEYS];
    unsigned shrunk, cleared, failed;
} w;

/* Ascending, by all 64 bits or few. */
static unsigned spread;

static uint64_t key_of(size_t i)
{
    return i * ((UINT64_MAX >> spread) / KEYS);
}

static size_t index_of(uint64_t key)
{
    size_t low = 0, high = KEYS;
    while (low + 1 < high) {
        size_t middle = (low + high) / 2;
        if (key_of(middle) <= key)
            low = middle;
        else
            high = middle;
    }
    assert_true(key_of(low) == key);
    return low;
}

static void begin(void)
{
    memcpy(w.always, w.there, sizeof w.always);
    memcpy(w.ever, w.there, sizeof w.ever);
}

static void change(void)
{
    uint64_t keys[LIST];
    float vals[LIST * DIM];
    uint32_t lens[LIST];
    size_t n = 0;
    bool some_goes = draw(&w.seed) % 3 == 0;
    if (draw(&w.seed) % 200 == 0) {
        table_clear(w.t);
        memset(w.there, 0, sizeof w.there);
        memset(w.always, 0, sizeof w.always);
        w.cleared++;
    }
    for (size_t i = draw(&w.seed) % KEYS; n < LIST && i < KEYS; i += 1 + draw(&w.seed) % 8) {
        w.there[i] = !some_goes;
        w.always[i] &= !some_goes;
        w.ever[i] |= !some_goes;
        for (size_t k = 0; k < w.dim; k++)
            vals[n * w.dim + k] = (float)(i + 1 + k);
        lens[n] = (uint32_t)w.dim;
        keys[n++] = key_of(i);
    }
    if (some_goes)
        assert_int_equal(table_delete(w.t, keys, n, NULL), PARAMO_OK);
    else
        assert_int_equal(w.var ? table_var_put(w.t, keys, n, vals, lens)
                               : table_put_rows(w.t, keys, n, false, vals),
                         PARAMO_OK);
}

/* A part of the keys, as those of some partitions are. */
static bool wanted(void *arg, uint64_t key)
{
    unsigned share = *(unsigned *)arg;
    return (key * UINT64_C(0x9e3779b97f4a7c15)) >> 60 < share;
}

static void judge(const struct table_page *page, unsigned share)
{
    for (size_t i = 0; i < page->n; i++) {
        assert_true(page->keys[i] >= page->from && page->keys[i] <= page->to);
        assert_true(i == 0 || page->keys[i] > page->keys[i - 1]);
        assert_true(wanted(&share, page->keys[i]));
        size_t at = index_of(page->keys[i]);
        assert_true(w.ever[at]);
        w.given[at]++;
    }
    for (size_t i = 0; i < KEYS; i++) {
        bool in = key_of(i) >= page->from && key_of(i) <= page->to;
        assert_int_equal(w.given[i], w.given[i] ? 1 : in && w.always[i] && wanted(&share, key_of(i)));
    }
}

/* Those that have rows are read with what they hold. */
static void read_rows(const struct table_page *page)
{
    uint64_t keys[LIST];
    float vals[LIST * DIM] = {0};
    size_t n = page->n < LIST ? page->n : LIST, kept = 0;
    if (!n)
        return;
    memcpy(keys, page->keys + page->n - n, n * sizeof *keys);
    size_t found = table_scan_rows(w.t, keys, n, false, w.var ? NULL : vals);
    for (size_t i = page->n - n; i < page->n; i++) {
        size_t at = index_of(page->keys[i]);
        if (!w.there[at])
            continue;
        assert_true(kept < found && keys[kept] == page->keys[i]);
        for (size_t k = 0; k < w.dim && !w.var; k++)
            assert_true(vals[kept * w.dim + k] == (float)(at + 1 + k));
        kept++;
    }
    assert_int_equal(kept, found);
}

/* All pages of a table that changes all the time. False: memory failed, and the page was closed. */
static bool scan(size_t room, size_t step, unsigned share, bool changes)
{
    struct table_page page = {0};
    uint64_t from = 0;
    memset(w.given, 0, sizeof w.given);
    for (bool more = true; more;) {
        begin();
        bool done = false;
        paramo_err err = table_page_open(&page, w.t, from, room);
        while (!err && !done) {
            enum table_page_phase before = page.phase;
            err = table_page_step(&page, step, share == 16 ? NULL : wanted, &share, &done);
            assert_true(page.n <= room || page.phase == TABLE_PAGE_DONE);
            w.shrunk += before == TABLE_PAGE_SWEEP && page.phase == TABLE_PAGE_SHRINK;
            for (uint64_t i = draw(&w.seed) % 4; changes && !err && !done && i > 0; i--)
                change();
        }
        if (err) {
            assert_int_equal(err, PARAMO_E_MEMORY);
            table_page_close(&page);
            return false;
        }
        judge(&page, share);
        read_rows(&page);
        more = page.to != UINT64_MAX;
        assert_true(!more || page.to >= from);
        from = page.to + 1;
        table_page_close(&page);
        assert_int_equal(table_page_bytes(&page), 0);
    }
    return true;
}

static void count(size_t step, unsigned share, bool changes)
{
    struct table_count c = {0};
    uint64_t least = 0, most = 0;
    begin();
    while (!c.done) {
        table_count_step(w.t, &c, step, share == 16 ? NULL : wanted, &share);
        if (changes && !c.done)
            change();
    }
    for (size_t i = 0; i < KEYS; i++) {
        least += w.always[i] && wanted(&share, key_of(i));
        most += w.ever[i] && wanted(&share, key_of(i));
    }
    assert_true(c.rows >= least && c.rows <= most);
    assert_int_equal(c.nonzero, c.rows * w.dim);
}

static void table_open(uint64_t seed)
{
    paramo_table_options o;
    table_options_default(&o);
    w.var = seed % 3 == 2;
    o.kind = w.var ? PARAMO_TABLE_VAR : PARAMO_TABLE_SPARSE;
    o.optimizer = w.var ? PARAMO_OPT_ASSIGN : PARAMO_OPT_ADD;
    o.dim = (uint32_t)(w.dim = seed % 3 ? DIM : 1);
    w.seed = seed + 1;
    memset(w.there, 0, sizeof w.there);
    spread = draw(&w.seed) % 2 ? 0 : 40;
    assert_int_equal(table_create(&o, seed, NULL, &w.t), PARAMO_OK);
}

static void fill(void)
{
    for (uint64_t i = draw(&w.seed) % 300; i > 0; i--)
        change();
}

static void pages_under_change(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        table_open(seed);
        fill();
        size_t room = 1 + draw(&w.seed) % (draw(&w.seed) % 4 ? 2000 : 20), step = 1 + draw(&w.seed) % 500;
        unsigned share = draw(&w.seed) % 2 ? 16 : 1 + (unsigned)(draw(&w.seed) % 15);
        assert_true(scan(room + (draw(&w.seed) % 2 ? KEYS : 8), step, share, true));
        assert_true(scan(room + 8, step, share, false));
        count(1 + draw(&w.seed) % 2000, share, true);
        count(1 + draw(&w.seed) % 2000, share, false);
        table_destroy(w.t);
    }
    assert_true(w.shrunk > 200);
    assert_true(w.cleared > 50);
}

/* Each allocation fails once: the page ends with an error and leaves no memory. */
static void pages_without_memory(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 18; seed++) {
        table_open(seed);
        fill();
        for (unsigned at = 1; at < 40; at++) {
            fail_at = at;
            w.failed += !scan(100 + seed, 100, 16, false);
            fail_at = 0;
        }
        assert_true(scan(100, 100, 16, false));
        table_destroy(w.t);
    }
    assert_true(w.failed > 100);
}

/* The steps' work, not their time: 200,000 keys, pages of a tenth, no step of more than a few segments. */
static void steps_are_short(void **state)
{
    (void)state;
    enum { MANY = 200000, AT_ONCE = 1000 };
    paramo_table_options o;
    table_options_default(&o);
    struct table *t;
    assert_int_equal(table_create(&o, 5, NULL, &t), PARAMO_OK);
    uint64_t keys[AT_ONCE];
    float vals[AT_ONCE];
    for (uint64_t from = 0; from < MANY; from += AT_ONCE) {
        for (uint64_t i = 0; i < AT_ONCE; i++) {
            keys[i] = from + i;
            vals[i] = 1;
        }
        assert_int_equal(table_push(t, keys, AT_ONCE, vals), PARAMO_OK);
    }
    struct table_page page;
    uint64_t from = 0, pages = 0, steps = 0;
    do {
        bool done = false;
        assert_int_equal(table_page_open(&page, t, from, MANY / 10), PARAMO_OK);
        for (; !done; steps++)
            assert_int_equal(table_page_step(&page, 4096, NULL, NULL, &done), PARAMO_OK);
        assert_true(page.n > 0 && page.keys[0] == from && page.keys[page.n - 1] == from + page.n - 1);
        from += page.n;
        assert_true(page.to == UINT64_MAX || page.to == from - 1);
        table_page_close(&page);
        pages++;
    } while (from < MANY);
    assert_true(pages >= 10 && pages <= 20);
    assert_true(steps >= pages * (MANY / 4096 / 2));
    table_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pages_under_change),
                                       cmocka_unit_test(pages_without_memory),
                                       cmocka_unit_test(steps_are_short)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
