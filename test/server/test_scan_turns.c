/* STAT and SCAN of a table with many rows take turns: none visits more keys than a turn may, and other requests are
 * answered between them. */
#include "server/support_fake.h"
#include "unit.h"

/* A turn has TURN keys of a page, and 4 TURN that are counted. */
enum { ROWS = 8000, BATCH = 500, TURN = 100, TABLE = 1 };

static struct fake f;
static struct fake_conn *c;
static uint64_t keys[BATCH];
static float ones[BATCH];

static void begin(void)
{
    fake_init(&f, NULL, NULL);
    f.shard->config.scan_keys = TURN;
    fake_view(&f);
    fake_pass(&f, ENV_SEC); /* the dense table is made, in turns */
    c = fake_connect(&f, 0);
    for (unsigned i = 0; i < ROWS; i += BATCH) {
        struct wire_head push = fake_head(&f, WIRE_PUSH, TABLE, 1 + i / BATCH);
        push.count = BATCH;
        for (unsigned k = 0; k < BATCH; k++) {
            keys[k] = (i + k) * (UINT64_MAX / ROWS);
            ones[k] = 1;
        }
        assert_int_equal(fake_send(c, &push, keys, ones), PARAMO_OK);
        assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
    }
}

static const struct fake_sent *answer_to(uint64_t number)
{
    for (unsigned i = 0; i < c->count; i++)
        if (c->sent[i].head.number == number && c->sent[i].head.kind == WIRE_ANSWER)
            return &c->sent[i];
    return NULL;
}

/* One event: at most one turn. */
static void pass(void)
{
    lane_leave(f.lane);
    assert_true(sim_step(f.sim));
    assert_true(lane_enter(f.lane));
}

/* The events until the answer, in each of which a pull is answered at once. */
static unsigned turns_until(uint64_t number)
{
    const uint64_t key = 0;
    unsigned turns = 0;
    for (; !answer_to(number); turns++) {
        struct wire_head pull = fake_head(&f, WIRE_PULL, TABLE, number + 1 + turns);
        assert_true(turns < ROWS);
        assert_int_equal(fake_send(c, &pull, &key, NULL), PARAMO_OK);
        assert_int_equal(fake_last(c)->head.number, pull.number);
        assert_true(fake_last(c)->vals[0] == 1);
        pass();
    }
    assert_int_equal(answer_to(number)->head.status, PARAMO_OK);
    return turns;
}

static void counts(void **state)
{
    (void)state;
    begin();
    struct wire_head stat = fake_head(&f, WIRE_STAT, TABLE, 100);
    stat.count = 0;
    assert_int_equal(fake_send(c, &stat, NULL, NULL), PARAMO_OK);
    assert_in_range(turns_until(stat.number), ROWS / (4 * TURN) / 2, ROWS);
    fake_disconnect(c);
    fake_fini(&f);
}

static void pages(void **state)
{
    (void)state;
    const uint64_t from = 0;
    begin();
    struct wire_head scan = fake_head(&f, WIRE_SCAN, TABLE, 100);
    assert_int_equal(fake_send(c, &scan, &from, NULL), PARAMO_OK);
    assert_in_range(turns_until(scan.number), ROWS / TURN / 2, ROWS);
    fake_disconnect(c);
    fake_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts), cmocka_unit_test(pages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
