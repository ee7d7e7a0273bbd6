/* The tables of a shard: memory that is freed goes back, and views may name thousands of tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/shard/adopting.h"
#include "server/shard/shard_tables.h"
#include "server/support_fake.h"

static const float one = 1;
static const uint64_t key = UINT64_C(0xf000000000000007), row = 4000;

/* A table that is cleared, or loses its rows one by one, first holds its memory, counts it, and returns it in small
 * steps. */
static void test_cleared_memory_goes_back(void **state)
{
    (void)state;
    enum { ROWS = 1 << 20, BATCH = 4096, STEP_CHUNKS = 8 };
    static uint64_t keys[BATCH];
    static float vals[BATCH];
    struct fake f;
    fake_init(&f, NULL, NULL);
    fake_view(&f);
    struct fake_conn *c = fake_connect(&f, 0);
    struct shard_table *t = shard_table_find(f.shard, 1);
    for (uint64_t at = 0; at < ROWS; at += BATCH) {
        for (unsigned i = 0; i < BATCH; i++)
            keys[i] = at + i;
        assert_int_equal(table_push(t->table, keys, BATCH, vals), PARAMO_OK);
    }
    uint64_t full = shard_table_bytes(t);
    size_t chunks = t->memory.chunks.count;
    assert_true(chunks > 4);
    struct wire_head clear = fake_head(&f, WIRE_CLEAR, 1, 1);
    clear.count = 0;
    assert_int_equal(fake_send(c, &clear, NULL, NULL), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
    assert_int_equal(t->memory.chunks.count, chunks);            /* not in that step */
    assert_true(shard_table_bytes(t) >= chunks * HUGEMEM_CHUNK); /* and STAT says so */
    fake_pass(&f, 100 * ENV_MS);
    assert_in_range(chunks - t->memory.chunks.count, 1, STEP_CHUNKS);
    fake_pass(&f, ENV_SEC);
    assert_int_equal(t->memory.chunks.count, HUGEMEM_KEPT);
    assert_in_range(shard_table_bytes(t), HUGEMEM_CHUNK, full / 4);
    fake_disconnect(c);
    fake_fini(&f);
}

struct order {
    struct lane_task task;
    struct shard *shard;
    unsigned runs;
    uint64_t view; /* that the shard had adopted then */
};

static void order_run(struct lane_task *task)
{
    struct order *o = container_of(task, struct order, task);
    o->runs++;
    o->view = o->shard->view->number;
}

/* A view that names thousands of tables is adopted when all of them are made, a few in each turn. */
static void test_many_new_tables(void **state)
{
    (void)state;
    enum { MANY = VIEW_TABLES_MAX - 3, TURN = 32 };
    struct fake f;
    fake_init(&f, NULL, NULL);
    fake_view(&f);
    struct shard *s = f.shard;
    assert_int_equal(s->view->number, 1); /* few tables: at once */
    struct order first = {.task.run = order_run, .shard = s}, last = first;
    assert_false(shard_defers(s, &first.task));
    s->config.turn_tables = TURN;
    f.more = MANY - 100;
    fake_view(&f);
    assert_int_equal(s->view->number, 1);
    assert_true(shard_defers(s, &first.task));
    for (unsigned turns = 1; turns <= MANY / TURN / 2; turns++) {
        assert_int_equal(s->adopting->tables.count, turns * TURN);
        assert_int_equal(s->tables->by_id.count, 3);
        fake_pass(&f, ENV_MS);
    }
    f.more = MANY; /* a newer view takes its place, and needs no table again */
    fake_view(&f);
    assert_int_equal(s->adopting->tables.count, (MANY / TURN / 2 + 1) * TURN);
    assert_true(shard_defers(s, &last.task));
    assert_int_equal(first.runs, 0);
    fake_pass(&f, (MANY / TURN + 1) / 2 * ENV_MS);
    assert_int_equal(s->view->number, 3);
    assert_int_equal(s->adopting->tables.count, 0);
    assert_int_equal(s->tables->by_id.count, VIEW_TABLES_MAX);
    fake_pass(&f, ENV_SEC); /* rows of some dense tables got no values with them */
    assert_int_equal(first.runs, 1);
    assert_int_equal(last.runs, 1);
    assert_int_equal(first.view, 3);
    struct fake_conn *c = fake_connect(&f, 0);
    uint64_t number = 0;
    for (uint32_t id = 4; id <= VIEW_TABLES_MAX; id += 251) {
        bool dense = shard_table_find(s, id)->options.kind == PARAMO_TABLE_DENSE;
        struct wire_head h = fake_head(&f, WIRE_PUSH, id, ++number);
        assert_int_equal(fake_send(c, &h, dense ? &row : &key, &one), PARAMO_OK);
        assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
        h = fake_head(&f, WIRE_PULL, id, ++number);
        assert_int_equal(fake_send(c, &h, dense ? &row : &key, NULL), PARAMO_OK);
        assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
        assert_true(fake_last(c)->vals[0] == 1);
    }
    fake_disconnect(c);
    fake_fini(&f);
}

/* A shard that is closed before it has adopted a view posts the orders again, and keeps nothing. */
static void test_closed_before_its_view(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, NULL, NULL);
    fake_view(&f);
    f.more = 1000;
    fake_view(&f);
    assert_int_equal(f.shard->view->number, 1); /* as without a bound for tests */
    assert_in_range(f.shard->adopting->tables.count, 1, 64);
    struct order order = {.task.run = order_run, .shard = f.shard};
    assert_true(shard_defers(f.shard, &order.task));
    struct shard other = {.view = f.view};
    order.shard = &other;
    shard_close(f.shard);
    f.shard = NULL;
    fake_pass(&f, ENV_SEC);
    assert_int_equal(order.runs, 1);
    fake_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cleared_memory_goes_back),
        cmocka_unit_test(test_many_new_tables),
        cmocka_unit_test(test_closed_before_its_view),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
