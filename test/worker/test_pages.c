/* Pages of the rows of a range that exist, through clients and shards: each row once and in order, on every number of
 * servers, with little room, when an owner dies and when a page is asked for twice at a time. */
#include <stdlib.h>
#include <string.h>

#include "server/shard/scanning.h"
#include "server/shard/shard_impl.h"
#include "unit.h"
#include "wire/capability.h"
#include "worker/client_impl.h"
#include "worker/support_world.h"
#include "worker/waiting.h"

enum { SPARSE, DENSE, VAR, RANGE, TABLES, SOME = 9000, STEP = 977, DIM = 3, MOST = 700, ROOM = 3 * MOST };

static uint64_t keys[SOME], got_keys[MOST];
static float vals[SOME * DIM], got[ROOM];
static uint32_t lens[SOME], got_lens[MOST];

static void world_make(struct world *w, unsigned servers, unsigned replicas, uint64_t capabilities)
{
    world_init(w, true, 11);
    w->scan_keys =
        servers < 3 ? 999 : 0; /* few keys at a time: a shard sends fewer rows than it is asked for */
    w->replicas = replicas;
    w->migrations = true;
    w->capabilities = capabilities;
    world_table(w, PARAMO_TABLE_SPARSE, DIM);
    world_table(w, PARAMO_TABLE_DENSE, DIM)->rows = SOME;
    world_table(w, PARAMO_TABLE_VAR, 1);
    world_table(w, PARAMO_TABLE_SPARSE, DIM)->placement = PARAMO_PLACE_RANGE;
    world_start(w, servers, servers, 1);
}

static uint32_t row_of(unsigned table, size_t i)
{
    return table == VAR ? (uint32_t)(i % 5) + 1 : DIM;
}

/* Row i has key i * STEP (dense: i), and its values are i and the column. */
static void fill(struct world *w, unsigned table)
{
    uint64_t ts;
    size_t n = 0;
    for (size_t i = 0; i < SOME; i++) {
        keys[i] = table == DENSE ? i : table == RANGE ? i << 50 : i * STEP;
        lens[i] = row_of(table, i);
        for (uint32_t c = 0; c < lens[i]; c++)
            vals[n++] = (float)(i + c);
    }
    paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = SOME, .vals = vals, .vals_len = n};
    kv.lens = table == VAR ? lens : NULL;
    struct client_call call = {.kind = REQUEST_PUSH, .table = &w->tables[table], .kv = &kv};
    assert_ok(client_issue(w->clients[0].client, &call, &ts));
    assert_ok(world_wait(w, 0, ts));
}

static paramo_page page_of(unsigned table, uint64_t begin, uint64_t end, size_t most, size_t room)
{
    return (paramo_page){.size = sizeof(paramo_page),
                         .begin = begin,
                         .end = end,
                         .keys = got_keys,
                         .vals = got,
                         .lens = table == VAR ? got_lens : NULL,
                         .most = most,
                         .vals_len = room};
}

static paramo_err issue(struct world *w, unsigned table, paramo_page *page, uint64_t *ts)
{
    struct client_call call = {.kind = REQUEST_PAGE, .table = &w->tables[table], .page = page};
    return client_issue(w->clients[0].client, &call, ts);
}

static paramo_err pull(struct world *w, unsigned table, paramo_page *page)
{
    uint64_t ts;
    paramo_err err = issue(w, table, page, &ts);
    return err ? err : world_wait(w, 0, ts);
}

/* The second begins when the first has ended, while its request is still known; with a sanitizer this tells whether
 * the second looks at what the first has freed. */
static void a_page_after_another(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 2, 0, UINT64_MAX);
    fill(&w, SPARSE);
    uint64_t ts[2], more_keys[MOST];
    float more[ROOM];
    paramo_page page[2] = {page_of(SPARSE, 0, 0, 5, ROOM), page_of(SPARSE, 0, 0, 5, ROOM)};
    page[1].keys = more_keys;
    page[1].vals = more;
    assert_ok(issue(&w, SPARSE, &page[0], &ts[0]));
    paramo_request_options o = {.size = sizeof o, .after = &ts[0], .after_count = 1};
    struct client_call call = {
        .kind = REQUEST_PAGE, .table = &w.tables[SPARSE], .page = &page[1], .options = &o};
    assert_ok(client_issue(w.clients[0].client, &call, &ts[1]));
    for (unsigned i = 0; i < 2; i++) {
        assert_ok(world_wait(&w, 0, ts[i]));
        assert_int_equal(page[i].n, 5);
        for (unsigned k = 0; k < 5; k++)
            assert_true(page[i].keys[k] == keys[k]);
    }
    world_fini(&w);
}

/* The next rows are those from `at` on; *at moves after them. */
static void check_page(unsigned table, const paramo_page *page, size_t *at)
{
    size_t n = 0;
    assert_true(page->n <= page->most && page->vals_n <= page->vals_len);
    for (size_t i = 0; i < page->n; i++, ++*at) {
        assert_true(page->keys[i] == keys[*at]);
        uint32_t row = page->lens ? page->lens[i] : DIM;
        assert_int_equal(row, row_of(table, *at));
        for (uint32_t c = 0; c < row; c++)
            assert_true(((float *)page->vals)[n++] == (float)(*at + c));
    }
    assert_int_equal(n, page->vals_n);
    assert_true(!page->more || (page->n && page->next == page->keys[page->n - 1] + 1));
}

/* All rows from `first` to below `end`, and how many pages they were in. */
static unsigned all(struct world *w, unsigned table, size_t first, size_t end, size_t most, size_t room)
{
    size_t at = first;
    unsigned pages = 0;
    uint64_t last = end == SOME ? 0 : keys[end]; /* 0: the last key of all */
    paramo_page page = page_of(table, first ? keys[first - 1] + 1 : 0, last, most, room);
    do {
        assert_ok(pull(w, table, &page));
        check_page(table, &page, &at);
        pages++;
        page.begin = page.next;
    } while (page.more);
    assert_int_equal(at, end);
    return pages;
}

static void each_row_once(void **state)
{
    (void)state;
    for (unsigned servers = 1; servers <= 3; servers++) {
        struct world w;
        world_make(&w, servers, servers > 1, UINT64_MAX);
        for (unsigned table = 0; table < TABLES; table++) {
            fill(&w, table);
            unsigned pages = all(&w, table, 0, SOME, MOST, ROOM);
            assert_true(pages >= SOME / MOST);
            if (table == SPARSE && servers == 3) /* pages are nearly full */
                assert_true(pages <= 2 + SOME * 5 / 4 / MOST);
            if (table != DENSE)
                (void)all(&w, table, 1000, 1000, MOST, ROOM); /* none */
            assert_int_equal(all(&w, table, 1000, 1001, MOST, ROOM), 1);
            (void)all(&w, table, 1, 1500, 37, ROOM);
            (void)all(&w, table, SOME - 500, SOME, MOST, 7); /* room for one row or two */
        }
        for (unsigned s = 0; s < servers; s++) /* what a finished range has left at the shards is gone */
            assert_int_equal(scanning_sessions(w.servers[s].shard), 0);
        world_fini(&w);
    }
}

static void refused(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 2, 0, UINT64_MAX);
    fill(&w, SPARSE);
    paramo_page page = page_of(SPARSE, 5, 5, MOST, ROOM);
    assert_int_equal(pull(&w, SPARSE, &page), PARAMO_E_INVALID);
    page = page_of(SPARSE, 0, 0, 0, ROOM);
    assert_int_equal(pull(&w, SPARSE, &page), PARAMO_E_INVALID);
    page = page_of(SPARSE, 0, 0, PARAMO_PAGE_KEYS_MAX + 1, ROOM);
    assert_int_equal(pull(&w, SPARSE, &page), PARAMO_E_INVALID);
    page = page_of(SPARSE, 0, 0, MOST, DIM - 1);
    assert_int_equal(pull(&w, SPARSE, &page), PARAMO_E_SIZE_MISMATCH);
    page = page_of(VAR, 0, 0, MOST, ROOM);
    assert_int_equal(pull(&w, SPARSE, &page), PARAMO_E_SIZE_MISMATCH);
    fill(&w, VAR);
    page = page_of(VAR, keys[4], 0, MOST, 4); /* its first row has five values */
    assert_int_equal(pull(&w, VAR, &page), PARAMO_E_TOO_LARGE);
    assert_non_null(strstr(err_text(), "5 values"));
    world_fini(&w);
    world_make(&w, 2, 0, UINT64_MAX & ~CAPABILITY_RANGE);
    page = page_of(SPARSE, 0, 0, MOST, ROOM);
    assert_int_equal(pull(&w, SPARSE, &page), PARAMO_E_UNSUPPORTED);
    world_fini(&w);
}

/* A copy of a page that continues is one more scan. */
static void two_at_a_time(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 3, 0, UINT64_MAX);
    fill(&w, SPARSE);
    size_t at = 0;
    paramo_page page = page_of(SPARSE, 0, 0, 50, ROOM), other;
    assert_ok(pull(&w, SPARSE, &page));
    check_page(SPARSE, &page, &at);
    page.begin = page.next;
    other = page;
    static uint64_t other_keys[50];
    static float other_vals[50 * DIM];
    other.keys = other_keys;
    other.vals = other_vals;
    other.vals_len = 50 * DIM;
    uint64_t ts[2], began = sim_now(w.sim);
    assert_ok(issue(&w, SPARSE, &page, &ts[0]));
    assert_ok(issue(&w, SPARSE, &other, &ts[1]));
    assert_ok(world_wait(&w, 0, ts[0]));
    assert_ok(world_wait(&w, 0, ts[1]));
    assert_true(sim_now(w.sim) - began < ENV_SEC); /* none has waited for the end of the other */
    size_t same = at;
    check_page(SPARSE, &page, &at);
    check_page(SPARSE, &other, &same);
    world_fini(&w);
}

static void an_owner_dies_amid(void **state)
{
    (void)state;
    unsigned amid = 0;
    for (uint64_t wait = 0; wait < 8; wait++) {
        struct world w;
        unsigned table = wait % TABLES;
        world_make(&w, 3, 1, UINT64_MAX);
        fill(&w, table);
        struct world_death e;
        uint64_t began = sim_now(w.sim);
        (void)all(&w, table, 0, SOME, 300, ROOM);
        uint64_t took = sim_now(w.sim) - began;
        world_dies_in(&w, &e, 1, took * wait / 8 + 1);
        (void)all(&w, table, 0, SOME, 300, ROOM);
        amid += e.over;
        world_pass(&w, ENV_SEC);
        world_fini(&w);
    }
    assert_true(amid > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_page_after_another),
                                       cmocka_unit_test(each_row_once), cmocka_unit_test(refused),
                                       cmocka_unit_test(two_at_a_time), cmocka_unit_test(an_owner_dies_amid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
