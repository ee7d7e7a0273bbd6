/* Requests for some columns of rows, through clients and shards: those columns once and nothing else of a row, on every
 * number of servers, by keys and by ranges, when an owner dies in the middle; and only they travel. */
#include <stdlib.h>
#include <string.h>

#include "filter/filter_chain.h"
#include "unit.h"
#include "wire/capability.h"
#include "worker/client_impl.h"
#include "worker/support_world.h"
#include "worker/waiting.h"

enum {
    DENSE,
    SPARSE,
    STATE, /* with two values of state for each parameter */
    WHOLE, /* the same: pushed whole */
    LONG,
    ADAM,
    VAR,
    TABLES,
    ROWS = 20000,
    DIM = 8,
    LONG_DIM = 400000
};

static float vals[ROWS * DIM > 2 * LONG_DIM ? ROWS *DIM : 2 * LONG_DIM];
static float got[ROWS * DIM > 2 * LONG_DIM ? ROWS *DIM : 2 * LONG_DIM];
static uint64_t keys[ROWS];

static void world_make(struct world *w, unsigned servers, unsigned replicas, uint64_t capabilities)
{
    world_init(w, true, 13);
    w->replicas = replicas;
    w->migrations = true;
    w->capabilities = capabilities;
    world_table(w, PARAMO_TABLE_DENSE, DIM)->rows = ROWS;
    world_table(w, PARAMO_TABLE_SPARSE, DIM);
    world_table(w, PARAMO_TABLE_SPARSE, DIM)->optimizer = PARAMO_OPT_FTRL;
    world_table(w, PARAMO_TABLE_SPARSE, DIM)->optimizer = PARAMO_OPT_FTRL;
    world_table(w, PARAMO_TABLE_DENSE, LONG_DIM)->rows = 2;
    world_table(w, PARAMO_TABLE_SPARSE, DIM)->optimizer = PARAMO_OPT_ADAM;
    world_table(w, PARAMO_TABLE_VAR, 1);
    world_start(w, servers, servers, 1);
    for (size_t i = 0; i < ROWS; i++)
        keys[i] = i;
}

/* Columns first .. first+count-1 of the rows of keys[begin .. begin+n), as a range or not; count 0: all. */
static paramo_err request(struct world *w, enum request_kind kind, unsigned table, bool range, size_t begin,
                          size_t n, uint32_t first, uint32_t count, float *values)
{
    uint64_t ts;
    uint32_t lens = 1;
    uint32_t width = count ? count : w->tables[table].row_values ? w->tables[table].row_values : 1;
    paramo_request_options o = {.size = sizeof o, .column = first, .columns = count};
    paramo_kv kv = {.size = sizeof kv,
                    .keys = range ? NULL : keys + begin,
                    .n = n,
                    .vals = values,
                    .vals_len = n * width,
                    .lens = table == VAR ? &lens : NULL};
    struct client_call call = {.kind = kind,
                               .table = &w->tables[table],
                               .kv = kind == REQUEST_CLEAR ? NULL : &kv,
                               .range = range,
                               .begin = begin,
                               .options = &o};
    paramo_err err = client_issue(w->clients[0].client, &call, &ts);
    return err ? err : world_wait(w, 0, ts);
}

static void fill(size_t n)
{
    for (size_t i = 0; i < n; i++)
        vals[i] = (float)(1 + i % 1000);
}

static uint64_t sent(const struct world *w)
{
    struct client_counters c;
    client_get_counters(w->clients[0].client, &c);
    return c.bytes_sent + c.bytes_received;
}

static void of_keys_and_ranges(void **state)
{
    (void)state;
    for (unsigned servers = 1; servers <= 3; servers++) {
        struct world w;
        world_make(&w, servers, servers > 1, UINT64_MAX);
        for (unsigned how = 0; how < 4; how++) {
            unsigned table = how / 2 ? SPARSE : DENSE;
            bool range = how % 2;
            fill(ROWS * 3);
            assert_ok(request(&w, REQUEST_PUSH, table, range, 0, ROWS, 2, 3, vals));
            assert_ok(request(&w, REQUEST_PULL, table, range, 0, ROWS, 0, 0, got));
            float times = (float)(1 + how % 2);
            for (size_t i = 0; i < ROWS; i++)
                for (unsigned c = 0; c < DIM; c++)
                    if (got[i * DIM + c] != (c >= 2 && c < 5 ? times * vals[i * 3 + c - 2] : 0))
                        fail_msg("table %u, row %zu, column %u: %g", table, i, c, got[i * DIM + c]);
            assert_ok(request(&w, REQUEST_PULL, table, range, 7, 9000, 4, 2, got));
            for (size_t i = 0; i < 9000; i++)
                assert_true(got[2 * i] == times * vals[(i + 7) * 3 + 2] && got[2 * i + 1] == 0);
        }
        memcpy(got, vals, ROWS * sizeof *got);
        assert_ok(request(&w, REQUEST_PUSHPULL, DENSE, true, 0, ROWS, 7, 1, got));
        assert_memory_equal(got, vals, ROWS * sizeof *got);
        world_fini(&w);
    }
}

/* A row longer than a chunk: its columns are cut into chunks. */
static void long_rows(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 2, 1, UINT64_MAX);
    fill(2 * LONG_DIM);
    assert_ok(request(&w, REQUEST_PUSH, LONG, true, 0, 2, 1000, LONG_DIM - 2000, vals));
    assert_ok(request(&w, REQUEST_PULL, LONG, false, 0, 2, 0, 0, got));
    for (size_t i = 0; i < 2 * LONG_DIM; i++) {
        size_t row = i / LONG_DIM, c = i % LONG_DIM;
        bool in = c >= 1000 && c < LONG_DIM - 1000;
        assert_true(got[i] == (in ? vals[row * (LONG_DIM - 2000) + c - 1000] : 0));
    }
    assert_ok(request(&w, REQUEST_PULL, LONG, true, 0, 2, 5, LONG_DIM - 7, got));
    assert_true(got[995] == vals[0] && got[994] == 0);
    assert_true(got[LONG_DIM - 7 + 995] == vals[LONG_DIM - 2000]);
    world_fini(&w);
}

/* Column by column in any order is the same as whole rows, bit for bit: so a push leaves the other columns alone, and
 * their state. */
static void the_state_of_other_columns_stays(void **state)
{
    (void)state;
    static float part[ROWS * DIM], whole[ROWS * DIM];
    struct world w;
    world_make(&w, 3, 1, UINT64_MAX);
    for (unsigned round = 0; round < 4; round++) {
        for (size_t i = 0; i < ROWS * DIM; i++)
            whole[i] = (float)((i * 7919 + round * 104729) % 2003) / 1000 - 1;
        assert_ok(request(&w, REQUEST_PUSH, WHOLE, false, 0, ROWS, 0, 0, whole));
        static const uint32_t cuts[] = {5, 8, 0, 2, 2, 5}; /* the last columns first */
        for (unsigned k = 0; k < 6; k += 2) {
            uint32_t n = cuts[k + 1] - cuts[k];
            for (size_t i = 0; i < ROWS; i++)
                memcpy(part + i * n, whole + i * DIM + cuts[k], n * sizeof *part);
            assert_ok(request(&w, REQUEST_PUSH, STATE, k == 2, 0, ROWS, cuts[k], n, part));
        }
        assert_ok(request(&w, REQUEST_PULL, STATE, false, 0, ROWS, 0, 0, part));
        assert_ok(request(&w, REQUEST_PULL, WHOLE, false, 0, ROWS, 0, 0, whole));
        assert_memory_equal(part, whole, sizeof whole);
    }
    world_fini(&w);
}

static void only_they_travel(void **state)
{
    (void)state;
    for (unsigned servers = 1; servers <= 2; servers++) {
        struct world w;
        world_make(&w, servers, 0, UINT64_MAX);
        for (unsigned table = DENSE; table <= SPARSE; table++) {
            assert_ok(request(&w, REQUEST_PUSH, table, false, 0, ROWS, 0, 0, vals));
            uint64_t before = sent(&w), most = ROWS * (8 + 4) + 30 * 256;
            assert_ok(request(&w, REQUEST_PUSH, table, false, 0, ROWS, 3, 1, vals));
            assert_in_range(sent(&w) - before, ROWS * (8 + 4), most);
            before = sent(&w);
            assert_ok(request(&w, REQUEST_PULL, table, false, 0, ROWS, 3, 1, got));
            assert_in_range(sent(&w) - before, ROWS * (8 + 4), most);
            before = sent(&w);
            assert_ok(request(&w, REQUEST_PULL, table, true, 0, ROWS, 3, 1, got));
            assert_in_range(sent(&w) - before, ROWS * 4, ROWS * 4 + ROWS / 4 + 30 * 256);
        }
        world_fini(&w);
    }
}

/* Rows that exist, page by page. */
static void pages(void **state)
{
    (void)state;
    enum { MOST = 700, EACH = 3 };
    static uint64_t page_keys[MOST];
    for (unsigned servers = 1; servers <= 3; servers++) {
        struct world w;
        world_make(&w, servers, servers > 1, UINT64_MAX);
        fill(ROWS * EACH);
        for (unsigned table = DENSE; table <= STATE; table++) {
            size_t n = 0;
            uint64_t before = 0, step = table == DENSE ? 1 : 3;
            for (size_t i = 0; i < ROWS; i++)
                keys[i] = i * step;
            assert_ok(request(&w, REQUEST_PUSH, table, false, 0, ROWS, 4, EACH, vals));
            assert_ok(request(&w, REQUEST_PULL, table, false, 0, ROWS, 5, 1, vals + ROWS * EACH));
            before = sent(&w);
            paramo_page page = {
                .size = sizeof page, .keys = page_keys, .most = MOST, .vals = got, .vals_len = MOST};
            do {
                uint64_t ts;
                paramo_request_options o = {.size = sizeof o, .column = 5, .columns = 1};
                struct client_call call = {
                    .kind = REQUEST_PAGE, .table = &w.tables[table], .page = &page, .options = &o};
                assert_ok(client_issue(w.clients[0].client, &call, &ts));
                assert_ok(world_wait(&w, 0, ts));
                assert_true(page.n && page.vals_n == page.n);
                for (size_t i = 0; i < page.n; i++, n++) {
                    assert_int_equal(page_keys[i], n * step);
                    assert_true(got[i] == vals[ROWS * EACH + n]);
                }
                page.begin = page.next;
            } while (page.more);
            assert_int_equal(n, ROWS);
            if (servers ==
                1) /* a key and a value of each row; several servers are asked for more than fits */
                assert_in_range(sent(&w) - before, ROWS * 12, ROWS * 12 + 30 * 512);
        }
        world_fini(&w);
    }
}

static void refused(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 2, 0, UINT64_MAX);
    fill(ROWS);
    assert_int_equal(request(&w, REQUEST_PULL, DENSE, false, 0, 1, 7, 2, got), PARAMO_E_INVALID);
    assert_int_equal(request(&w, REQUEST_PULL, DENSE, false, 0, 1, 8, 1, got), PARAMO_E_INVALID);
    assert_int_equal(request(&w, REQUEST_PULL, DENSE, false, 0, 1, 1, 0, got), PARAMO_E_INVALID);
    assert_int_equal(request(&w, REQUEST_PULL, DENSE, false, 0, 1, 1, UINT32_MAX, got), PARAMO_E_INVALID);
    assert_int_equal(request(&w, REQUEST_PUT, DENSE, false, 0, 1, 1, 1, got), PARAMO_E_UNSUPPORTED);
    assert_int_equal(request(&w, REQUEST_CLEAR, DENSE, false, 0, 1, 1, 1, got), PARAMO_E_UNSUPPORTED);
    assert_int_equal(request(&w, REQUEST_PULL, VAR, false, 0, 1, 0, 1, got), PARAMO_E_UNSUPPORTED);
    /* the steps of adam count for a row; reading is another matter */
    assert_int_equal(request(&w, REQUEST_PUSH, ADAM, false, 0, 9, 1, 1, vals), PARAMO_E_UNSUPPORTED);
    assert_ok(request(&w, REQUEST_PUSH, ADAM, false, 0, 9, 0, 0, vals));
    assert_ok(request(&w, REQUEST_PULL, ADAM, false, 0, 9, 0, 0, vals));
    assert_ok(request(&w, REQUEST_PULL, ADAM, false, 0, 9, 3, 2, got));
    for (unsigned i = 0; i < 9; i++)
        assert_memory_equal(got + 2 * i, vals + i * DIM + 3, 2 * sizeof *got);
    world_fini(&w);
    world_make(&w, 2, 0, UINT64_MAX & ~CAPABILITY_COLUMNS);
    for (unsigned range = 0; range < 2; range++)
        assert_int_equal(request(&w, REQUEST_PUSH, DENSE, range, 0, 9, 1, 1, vals), PARAMO_E_UNSUPPORTED);
    assert_ok(request(&w, REQUEST_PULL, DENSE, false, 0, 9, 0, 0, got)); /* the connection stays open */
    for (unsigned i = 0; i < 9 * DIM; i++)
        assert_true(got[i] == 0);
    world_fini(&w);
}

/* A server that has copies must be able to read them as well. */
static void copies_of_an_older_version(void **state)
{
    (void)state;
    struct world w;
    fill(ROWS);
    world_init(&w, true, 13);
    w.replicas = 2;
    w.capabilities = UINT64_MAX;
    w.older[2] = CAPABILITY_COLUMNS;
    world_table(&w, PARAMO_TABLE_DENSE, DIM)->rows = ROWS;
    world_start(&w, 3, 3, 1);
    for (size_t i = 0; i < ROWS; i++)
        keys[i] = i;
    for (unsigned range = 0; range < 2; range++) { /* the first server owns these rows */
        assert_int_equal(request(&w, REQUEST_PUSH, DENSE, range, 0, 9, 1, 1, vals), PARAMO_E_UNSUPPORTED);
        assert_ok(request(&w, REQUEST_PULL, DENSE, range, 0, 9, 1, 1, got));
        for (size_t k = 0; k < 9; k++)
            assert_true(got[k] == 0);
    }
    assert_ok(request(&w, REQUEST_PUSH, DENSE, false, 0, 1, 1, 1, vals)); /* of one row all can read them */
    world_fini(&w);
}

static void filters(void **state)
{
    (void)state;
    static const char *const chains[] = {"keycache", "keycache,lz4", "fixed:2", "bf16", "topk:0.1"};
    for (unsigned i = 0; i < sizeof chains / sizeof *chains; i++) {
        struct world w;
        world_init(&w, true, 11);
        world_table(&w, PARAMO_TABLE_DENSE, DIM)->rows = ROWS;
        world_table(&w, PARAMO_TABLE_SPARSE, DIM);
        for (unsigned d = 0; d < (i < 4 ? 2 : 1); d++)
            assert_ok(filter_chain_parse(chains[i], (enum filter_direction)d, &w.filters[d]));
        w.capabilities = UINT64_MAX;
        world_start(&w, 3, 3, 1);
        fill(ROWS);
        for (unsigned table = DENSE; table <= SPARSE; table++)
            for (unsigned again = 1; again <= 2; again++) {
                assert_ok(request(&w, REQUEST_PUSH, table, again == 2, 0, ROWS, 3, 1, vals));
                assert_ok(request(&w, REQUEST_PULL, table, again == 2, 0, ROWS, 3, 2, got));
                for (size_t k = 0; k < ROWS; k++) {
                    float want = vals[k] * (float)again, slack = i == 2 || i == 3 ? 10 : 0;
                    assert_true(got[2 * k] >= want - slack && got[2 * k] <= want + slack);
                    assert_true(got[2 * k + 1] == 0);
                }
            }
        world_fini(&w);
    }
}

static void an_owner_dies_amid(void **state)
{
    (void)state;
    unsigned amid = 0;
    for (uint64_t wait = 0; wait < 8; wait++) {
        struct world w;
        struct world_death e;
        world_make(&w, 3, 1, UINT64_MAX);
        unsigned table = wait % 2 ? SPARSE : DENSE;
        fill(ROWS * 3);
        assert_ok(request(&w, REQUEST_PUSH, table, false, 0, ROWS, 0, 3, vals)); /* connections are up */
        uint64_t began = sim_now(w.sim);
        assert_ok(request(&w, REQUEST_PUSH, table, false, 0, ROWS, 2, 3, vals));
        uint64_t took = sim_now(w.sim) - began;
        world_dies_in(&w, &e, 1, took * wait / 8 + 1);
        memcpy(got, vals, ROWS * 3 * sizeof *got);
        assert_ok(request(&w, REQUEST_PUSHPULL, table, wait % 4 > 1, 0, ROWS, 2, 3, got));
        amid += e.over;
        assert_ok(request(&w, REQUEST_PULL, table, false, 0, ROWS, 0, 0, got));
        for (size_t i = 0; i < ROWS; i++)
            for (unsigned c = 0; c < DIM; c++) {
                float want = c < 3 ? vals[3 * i + c] : 0;
                want += c >= 2 && c < 5 ? 2 * vals[3 * i + c - 2] : 0;
                if (got[i * DIM + c] != want)
                    fail_msg("row %zu, column %u: %g, not %g", i, c, got[i * DIM + c], want);
            }
        world_pass(&w, ENV_SEC);
        world_fini(&w);
    }
    assert_true(amid > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_keys_and_ranges),
                                       cmocka_unit_test(long_rows),
                                       cmocka_unit_test(the_state_of_other_columns_stays),
                                       cmocka_unit_test(only_they_travel),
                                       cmocka_unit_test(pages),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(copies_of_an_older_version),
                                       cmocka_unit_test(filters),
                                       cmocka_unit_test(an_owner_dies_amid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
