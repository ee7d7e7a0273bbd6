/* Rows that were lost with their owner: which requests end with DATA_LOST, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/shard/shard_tables.h"
#include "server/support_fake.h"

static const float one = 1;
static const uint64_t key = UINT64_C(0xf000000000000007), row = 4000;

static void test_lost_data(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, NULL, NULL);
    f.recovered = true;
    f.died[0] = f.died[1] = 1;
    fake_view(&f);
    struct fake_conn *c = fake_connect(&f, 0);
    struct wire_head h = fake_head(&f, WIRE_PUSH, 1, 1);
    assert_int_equal(fake_send(c, &h, &key, &one), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_E_DATA_LOST);
    h = fake_head(&f, WIRE_PUT, 1, 1); /* one row says nothing about the others */
    assert_int_equal(fake_send(c, &h, &key, &one), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_E_DATA_LOST);
    h = fake_head(&f, WIRE_PULL, 1, 1);
    assert_int_equal(fake_send(c, &h, &row, NULL), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_E_DATA_LOST);
    h = fake_head(&f, WIRE_CLEAR, 1, 2);
    h.count = 0;
    assert_int_equal(fake_send(c, &h, NULL, NULL), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
    h = fake_head(&f, WIRE_PUSH, 1, 1);
    assert_int_equal(fake_send(c, &h, &key, &one), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
    h = fake_head(&f, WIRE_PULL, 2, 3); /* each table by itself */
    assert_int_equal(fake_send(c, &h, &row, NULL), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_E_DATA_LOST);
    /* a table made after the node came back has lost nothing */
    f.options[3] = f.options[0];
    f.tables = 4;
    fake_view(&f);
    h = fake_head(&f, WIRE_PUSH, 4, 4);
    assert_int_equal(fake_send(c, &h, &key, &one), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
    fake_disconnect(c);
    fake_fini(&f);
}

/* A request for all rows of a table means the owner's rows. A shard does not answer for partitions that it only follows
 * or is about to get: their owner says which rows are lost. */
static void test_lost_of_others(void **state)
{
    (void)state;
    struct fake f;
    uint64_t others[RING_PARTITIONS / 64] = {3}, own[RING_PARTITIONS / 64] = {4};
    fake_init(&f, NULL, NULL);
    f.foreign = 2;
    fake_view(&f);
    struct fake_conn *c = fake_connect(&f, 0);
    struct shard_table *t = map_get(&f.shard->tables->by_id, 1);
    for (unsigned lost = 0; lost < 2; lost++) {
        shard_table_lose(t, lost ? own : others, true);
        struct wire_head h = fake_head(&f, WIRE_STAT, 1, 1 + lost);
        h.count = 0;
        assert_int_equal(fake_send(c, &h, NULL, NULL), PARAMO_OK);
        assert_int_equal(fake_last(c)->head.status, lost ? PARAMO_E_DATA_LOST : PARAMO_OK);
    }
    fake_disconnect(c);
    fake_fini(&f);
}

/* A table that was opened between the death and the return has lost nothing either, whichever view the node gets first.
 */
static void test_opened_after_the_death(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, NULL, NULL);
    f.recovered = true;
    f.number = 8;
    f.died[0] = f.died[1] = 5;
    f.since[0] = 5;
    f.since[1] = 4;
    fake_view(&f);
    struct fake_conn *c = fake_connect(&f, 0);
    struct wire_head h = fake_head(&f, WIRE_PUSH, 1, 1);
    assert_int_equal(fake_send(c, &h, &key, &one), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
    h = fake_head(&f, WIRE_PULL, 2, 2);
    assert_int_equal(fake_send(c, &h, &row, NULL), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_E_DATA_LOST);
    fake_disconnect(c);
    fake_fini(&f);
}

static paramo_err pulls(struct fake *f, struct fake_conn *c, uint32_t table, uint64_t number, uint64_t which)
{
    struct wire_head h = fake_head(f, WIRE_PULL, table, number);
    assert_int_equal(fake_send(c, &h, &which, NULL), PARAMO_OK);
    return fake_last(c)->head.status;
}

/* Tables without copies; the shard's first view comes after two deaths, and names tables that were opened
 * before, between and after them. The first death took the lower partitions, the second none, or the upper. */
static void test_first_view_after_deaths(void **state)
{
    (void)state;
    for (unsigned second = 0; second <= 8; second += 8) {
        static const uint64_t since[] = {3, 0, 5, 8};
        struct fake f;
        fake_init(&f, NULL, NULL);
        f.replicas = 1;
        f.number = 9;
        f.died[0] = 5;
        f.died[1] = second;
        f.partitions_changed = 9; /* by a migration */
        f.tables = 4;
        for (unsigned i = 0; i < 4; i += i ? 1 : 2) { /* not the dense one */
            f.options[i] = f.options[0];
            f.options[i].replicas = 0;
            f.since[i] = since[i];
        }
        fake_view(&f);
        struct fake_conn *c = fake_connect(&f, 0);
        for (unsigned i = 0; i < 4; i += i ? 1 : 2) {
            bool low = since[i] < 5, high = since[i] < second;
            assert_int_equal(pulls(&f, c, i + 1, 1 + 2 * i, 1), low ? PARAMO_E_DATA_LOST : PARAMO_OK);
            assert_int_equal(pulls(&f, c, i + 1, 2 + 2 * i, UINT64_MAX),
                             high ? PARAMO_E_DATA_LOST : PARAMO_OK);
        }
        fake_disconnect(c);
        fake_fini(&f);
    }
}

/* A shard that missed views: it owned the partitions before, and owns them now; another shard had them between,
 * and died. A death of an earlier view does not count again: rows that were cleared since are not lost. */
static void test_missed_views(void **state)
{
    (void)state;
    struct fake f;
    fake_init(&f, NULL, NULL);
    f.replicas = 1;
    f.options[0].replicas = 0;
    fake_view(&f);
    struct fake_conn *c = fake_connect(&f, 0);
    struct wire_head h = fake_head(&f, WIRE_PUSH, 1, 1);
    assert_int_equal(fake_send(c, &h, &key, &one), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
    f.number = 6;
    f.died[0] = 5;
    fake_view(&f);
    assert_int_equal(pulls(&f, c, 1, 2, 1), PARAMO_E_DATA_LOST);
    assert_int_equal(pulls(&f, c, 1, 3, UINT64_MAX), PARAMO_OK); /* the upper half was never another's */
    assert_int_equal(pulls(&f, c, 2, 4, 1), PARAMO_OK);          /* it has copies */
    h = fake_head(&f, WIRE_CLEAR, 1, 5);
    h.count = 0;
    assert_int_equal(fake_send(c, &h, NULL, NULL), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
    fake_view(&f);
    assert_int_equal(pulls(&f, c, 1, 6, 1), PARAMO_OK);
    assert_true(fake_last(c)->vals[0] == 0);
    fake_disconnect(c);
    fake_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost_data),
        cmocka_unit_test(test_lost_of_others),
        cmocka_unit_test(test_opened_after_the_death),
        cmocka_unit_test(test_first_view_after_deaths),
        cmocka_unit_test(test_missed_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
