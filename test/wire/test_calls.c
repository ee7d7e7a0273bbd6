/* The bodies of calls, orders and other control messages: there and back, their limits, and damaged bytes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "wire/barrier_call.h"
#include "wire/calls.h"
#include "wire/ckpt_order.h"
#include "wire/clock_calls.h"
#include "wire/end.h"
#include "wire/heartbeat.h"
#include "wire/kv_calls.h"
#include "wire/migration_order.h"
#include "wire/pool_calls.h"
#include "wire/register_call.h"
#include "wire/table_spec.h"

union any {
    struct register_call reg;
    struct register_result registered;
    struct barrier_call barrier;
    struct barrier_result released;
    struct table_open open;
    struct table_open_result opened;
    struct pool_open pool;
    struct pool_next next;
    struct pool_next_result unit;
    struct pool_report report;
    struct kv_put put;
    struct kv_get get;
    struct kv_delete del;
    struct clock_join clock_join;
    struct clock_joined clock_joined;
    struct clock_tell clock_tell;
    struct clock_wait clock_wait;
    struct clock_leave clock_leave;
    struct clock_result clock;
    struct heartbeat beat;
    struct migration_order migration;
    struct ckpt_order ckpt;
    struct ckpt_result taken;
    struct ckpt_written written;
    struct {
        paramo_err status;
        char text[CALL_TEXT_MAX];
    } end;
};

/* One adapter per message, so that one test holds all decoders to the same rules. */
#define ADAPT(name, field)                                                                                   \
    static paramo_err get_##name(struct reader *r, union any *m)                                             \
    {                                                                                                        \
        return name##_decode(r, &m->field);                                                                  \
    }                                                                                                        \
    static void put_##name(const union any *m, struct writer *w)                                             \
    {                                                                                                        \
        name##_encode(&m->field, w);                                                                         \
    }
ADAPT(register_call, reg)
ADAPT(register_result, registered)
ADAPT(barrier_call, barrier)
ADAPT(barrier_result, released)
ADAPT(table_open, open)
ADAPT(table_open_result, opened)
ADAPT(pool_open, pool)
ADAPT(pool_next, next)
ADAPT(pool_next_result, unit)
ADAPT(pool_report, report)
ADAPT(kv_put, put)
ADAPT(kv_get, get)
ADAPT(kv_delete, del)
ADAPT(clock_join, clock_join)
ADAPT(clock_joined, clock_joined)
ADAPT(clock_tell, clock_tell)
ADAPT(clock_wait, clock_wait)
ADAPT(clock_leave, clock_leave)
ADAPT(clock_result, clock)
ADAPT(heartbeat, beat)
ADAPT(migration_order, migration)
ADAPT(ckpt_order, ckpt)
ADAPT(ckpt_result, taken)
ADAPT(ckpt_written, written)

static paramo_err get_end(struct reader *r, union any *m)
{
    return end_decode(r, &m->end.status, m->end.text);
}

static void put_end(const union any *m, struct writer *w)
{
    end_encode(m->end.status, m->end.text, w);
}

static const paramo_table_options options = {.kind = PARAMO_TABLE_DENSE,
                                             .dim = 4,
                                             .rows = 100,
                                             .optimizer = PARAMO_OPT_FTRL,
                                             .alpha = 0.5f,
                                             .l1 = 1,
                                             .seed = 12345678901234567};

static struct {
    paramo_err (*get)(struct reader *r, union any *m);
    void (*put)(const union any *m, struct writer *w);
    union any m;
} messages[] = {
    {get_register_call,
     put_register_call,
     {.reg = {PARAMO_ROLE_SERVER, 0, 99, 2, -1, 5, "10.0.0.1", "a", 7, "rack"}}},
    {get_register_call, put_register_call, {.reg = {PARAMO_ROLE_WORKER, 11, 0, 0, 3, 5, "", "", 0, ""}}},
    {get_register_result, put_register_result, {.registered = {8, true, true}}},
    {get_barrier_call, put_barrier_call, {.barrier = {6, 1, 1000}}},
    {get_barrier_result, put_barrier_result, {.released = {7}}},
    {get_table_open, put_table_open, {.open = {"w", false, {0}}}},
    {get_table_open_result, put_table_open_result, {.opened = {1, 1}}},
    {get_pool_open, put_pool_open, {.pool = {"train", 3, 2}}},
    {get_pool_next, put_pool_next, {.next = {"train", 0, 1, 100}}},
    {get_pool_next_result, put_pool_next_result, {.unit = {POOL_GOT, {1, 2, 3, 4}, 5}}},
    {get_pool_report, put_pool_report, {.report = {"train", {1, 2, 3, 4}}}},
    {get_kv_put, put_kv_put, {.put = {"key", (const uint8_t *)"value", 5}}},
    {get_kv_get, put_kv_get, {.get = {"key", 100}}},
    {get_kv_delete, put_kv_delete, {.del = {"key"}}},
    {get_clock_join, put_clock_join, {.clock_join = {3}}},
    {get_clock_joined, put_clock_joined, {.clock_joined = {UINT64_C(9) << 32 | 5, 7, 0}}},
    {get_clock_tell, put_clock_tell, {.clock_tell = {UINT64_C(9) << 32 | 5, 8}}},
    {get_clock_wait, put_clock_wait, {.clock_wait = {UINT64_C(9) << 32 | 5, 8, 1000}}},
    {get_clock_leave, put_clock_leave, {.clock_leave = {UINT64_C(9) << 32 | 5}}},
    {get_clock_result, put_clock_result, {.clock = {8, 11, 1, 0}}},
    {get_heartbeat, put_heartbeat, {.beat = {2, {{5, true}, {6, false}}}}},
    {get_migration_order,
     put_migration_order,
     {.migration = {5, 4000, 96, {8, 1}, {8, 0}, 1, 3, 1000, true, true, true}}},
    {get_ckpt_order, put_ckpt_order, {.ckpt = {7, 8, 6, 5, 1000, true, "/var/ckpt"}}},
    {get_ckpt_result, put_ckpt_result, {.taken = {7}}},
    {get_ckpt_written, put_ckpt_written, {.written = {2, {{"blocks-0", 1, 2, 3}, {"blocks-1", 4, 5, 6}}}}},
    {get_end, put_end, {.end = {PARAMO_E_NODE_LOST, "worker 9 died"}}},
};

/* What goes in comes out; each shorter or longer message is refused; random damage never crashes. */
static void test_every_message(void **state)
{
    (void)state;
    static union any got;
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        struct writer w = {0}, again = {0};
        messages[i].put(&messages[i].m, &w);
        struct reader r = reader_over(w.data, w.len);
        assert_int_equal(messages[i].get(&r, &got), PARAMO_OK);
        messages[i].put(&got, &again);
        assert_int_equal(again.len, w.len);
        assert_memory_equal(again.data, w.data, w.len);
        for (size_t len = 0; len < w.len; len++) {
            uint8_t *cut = malloc(len ? len : 1);
            memcpy(cut, w.data, len);
            r = reader_over(cut, len);
            assert_int_equal(messages[i].get(&r, &got), PARAMO_E_PROTOCOL);
            free(cut);
        }
        write_u8(&w, 0);
        r = reader_over(w.data, w.len);
        assert_int_equal(messages[i].get(&r, &got), PARAMO_E_PROTOCOL);
        for (uint64_t seed = 0; seed < 2000; seed++) {
            uint8_t *damaged = malloc(w.len);
            memcpy(damaged, w.data, w.len);
            for (unsigned hits = 0; hits < 3; hits++)
                damaged[mix64(seed * 3 + hits) % w.len] = (uint8_t)mix64(~(seed * 3 + hits));
            r = reader_over(damaged, w.len - seed % 2);
            paramo_err err = messages[i].get(&r, &got);
            assert_true(err == PARAMO_OK || err == PARAMO_E_PROTOCOL || err == PARAMO_E_INVALID ||
                        err == PARAMO_E_TOO_LARGE);
            free(damaged);
        }
        writer_fini(&w);
        writer_fini(&again);
    }
}

static void test_limits(void **state)
{
    (void)state;
    const union any bad[] = {
        {.reg = {3, 0, 0, 0, -1, 0, "", "", 0, ""}},                  /* no role */
        {.reg = {PARAMO_ROLE_SERVER, 0, 1, 0, -1, 0, "", "", 1, ""}}, /* no shard */
        {.reg = {PARAMO_ROLE_SERVER, 0, 0, 1, -1, 0, "", "", 1, ""}}, /* no port */
        {.reg = {PARAMO_ROLE_SERVER, 0, 1, 1, -1, 0, "", "", 0, ""}}, /* no weight */
        {.reg = {PARAMO_ROLE_SERVER, 0, 1, 1, -1, 0, "", "", REGISTER_WEIGHT_MAX + 1, ""}},
        {.reg = {PARAMO_ROLE_WORKER, 0, 0, 0, -1, 0, "", "", 1, ""}}, /* workers have no weight */
        {.reg = {PARAMO_ROLE_WORKER, 0, 0, 0, -1, 0, "", "", 0, "rack"}},
        {.reg = {PARAMO_ROLE_WORKER, 0, 0, 1, -1, 0, "", "", 0, ""}},
        {.reg = {PARAMO_ROLE_WORKER, 0, 0, 0, -2, 0, "", "", 0, ""}},
    };
    uint8_t bytes[1024];
    union any got;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct writer w = writer_over(bytes, sizeof bytes);
        register_call_encode(&bad[i].reg, &w);
        struct reader r = reader_over(bytes, w.len);
        assert_int_equal(register_call_decode(&r, &got.reg), PARAMO_E_PROTOCOL);
    }
    const struct migration_order bad_migrations[] = {
        {0, 0, 1, {8, 0}, {10, 0}, 0, 4, 0, false, false, false}, /* no move */
        {1, 5, 0, {8, 0}, {10, 0}, 0, 4, 0, false, false, false}, /* no partitions */
        {1, 4095, 2, {8, 0}, {10, 0}, 0, 4, 0, false, false, false},
        {1, 0, 1, {8, 3}, {8, 3}, 0, 4, 0, false, false, false},  /* to itself */
        {1, 0, 1, {8, 0}, {10, 0}, 2, 2, 0, false, false, false}, /* it has all that it would get */
        {1, 0, 1, {8, 0}, {10, 0}, 0, 5, 0, false, false, false}, /* no such level */
        {1, 0, 1, {8, 0}, {10, 0}, 0, 4, 0, true, true, false},   /* no member, so it lacks something */
    };
    for (size_t i = 0; i < sizeof bad_migrations / sizeof *bad_migrations; i++) {
        struct writer w = writer_over(bytes, sizeof bytes);
        migration_order_encode(&bad_migrations[i], &w);
        struct reader r = reader_over(bytes, w.len);
        assert_int_equal(migration_order_decode(&r, &got.migration), PARAMO_E_PROTOCOL);
    }
    for (uint32_t group = 0; group < 10; group++) {
        struct writer w = writer_over(bytes, sizeof bytes);
        barrier_call_encode(&(struct barrier_call){group, 0, 1}, &w);
        struct reader r = reader_over(bytes, w.len);
        assert_int_equal(barrier_call_decode(&r, &got.barrier),
                         group >= 1 && group <= 7 ? PARAMO_OK : PARAMO_E_PROTOCOL);
    }
    static char value[KV_VALUE_MAX + 1];
    for (uint32_t len = KV_VALUE_MAX; len <= KV_VALUE_MAX + 1; len++) {
        struct writer w = {0};
        kv_put_encode(&(struct kv_put){"k", (const uint8_t *)value, len}, &w);
        struct reader r = reader_over(w.data, w.len);
        assert_int_equal(kv_put_decode(&r, &got.put), len == KV_VALUE_MAX ? PARAMO_OK : PARAMO_E_PROTOCOL);
        writer_fini(&w);
    }
}

/* The number of workers is there or not; a part of it is refused, and so is 0. */
static void test_clock_workers(void **state)
{
    (void)state;
    struct clock_joined joined = {UINT64_C(9) << 32 | 5, 7, 3}, got_joined;
    struct clock_result result = {8, 11, 1, 4}, got_result;
    uint8_t bytes[64];
    for (size_t less = 0; less <= 4; less++) {
        paramo_err want = less % 4 ? PARAMO_E_PROTOCOL : PARAMO_OK;
        struct writer w = writer_over(bytes, sizeof bytes);
        clock_joined_encode(&joined, &w);
        struct reader r = reader_over(bytes, w.len - less);
        assert_int_equal(clock_joined_decode(&r, &got_joined), want);
        assert_true(want || got_joined.workers == (less ? 0 : 3));
        w = writer_over(bytes, sizeof bytes);
        clock_result_encode(&result, &w);
        r = reader_over(bytes, w.len - less);
        assert_int_equal(clock_result_decode(&r, &got_result), want);
        assert_true(want || got_result.workers == (less ? 0 : 4));
        memset(bytes + w.len - 4, 0, 4);
        r = reader_over(bytes, w.len);
        assert_int_equal(clock_result_decode(&r, &got_result), PARAMO_E_PROTOCOL);
    }
}

static void test_table_spec(void **state)
{
    (void)state;
    uint8_t bytes[512];
    struct writer w = writer_over(bytes, sizeof bytes);
    struct table_open m = {.name = "w", .create = true, .options = options}, got;
    table_open_encode(&m, &w);
    struct reader r = reader_over(bytes, w.len);
    assert_int_equal(table_open_decode(&r, &got), PARAMO_OK);
    paramo_table_options a = table_spec_resolved(&options), b = table_spec_resolved(&got.options);
    assert_int_equal(a.placement, PARAMO_PLACE_DENSE);
    assert_int_equal(table_spec_same("w", &a, &b), PARAMO_OK);
    b.l1 = 2;
    assert_int_equal(table_spec_same("w", &a, &b), PARAMO_E_TABLE_EXISTS);
    assert_string_equal(err_text(), "table w exists with l1 1, not 2");
    b.dim = 5;
    assert_int_equal(table_spec_same("w", &a, &b), PARAMO_E_TABLE_EXISTS);
    assert_string_equal(err_text(), "table w exists with dim 4, not 5");

    /* An aggregation looks like an optimizer that an older node does not know. */
    m.options.kind = PARAMO_TABLE_SPARSE;
    m.options.aggregate = PARAMO_AGGREGATE_MEAN;
    w = writer_over(bytes, sizeof bytes);
    table_open_encode(&m, &w);
    r = reader_over(bytes, w.len);
    assert_int_equal(table_open_decode(&r, &got), PARAMO_OK);
    assert_int_equal(got.options.optimizer, PARAMO_OPT_FTRL);
    assert_int_equal(got.options.aggregate, PARAMO_AGGREGATE_MEAN);
    a = b = table_spec_resolved(&got.options);
    b.aggregate = PARAMO_AGGREGATE_SUM;
    assert_int_equal(table_spec_same("w", &a, &b), PARAMO_E_TABLE_EXISTS);
    b.aggregate = (paramo_aggregate)3;
    assert_int_equal(table_spec_check(&b), PARAMO_E_INVALID);
    b = a;
    b.kind = PARAMO_TABLE_VAR;
    assert_int_equal(table_spec_check(&b), PARAMO_E_INVALID);

    paramo_table_options bad = options;
    bad.alpha = NAN;
    assert_int_equal(table_spec_check(&bad), PARAMO_E_INVALID);
    bad = options;
    bad.replicas = TABLE_SPEC_REPLICAS_MAX + 1;
    assert_int_equal(table_spec_check(&bad), PARAMO_E_INVALID);
    bad.replicas = PARAMO_REPLICAS_OF_JOB;
    assert_int_equal(table_spec_check(&bad), PARAMO_OK);
    bad = options;
    bad.rows = 0;
    assert_int_equal(table_spec_check(&bad), PARAMO_E_INVALID);
    bad.rows = TABLE_SPEC_ROWS_MAX + 1;
    assert_int_equal(table_spec_check(&bad), PARAMO_E_TOO_LARGE);
    bad = options;
    bad.kind = PARAMO_TABLE_SPARSE;
    bad.placement = PARAMO_PLACE_DENSE;
    assert_int_equal(table_spec_check(&bad), PARAMO_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_message),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_clock_workers),
        cmocka_unit_test(test_table_spec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
