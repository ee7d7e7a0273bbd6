/* What the vans share: the header, the queue of frames, the pool, the end of a flush. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "van/core.h"
#include "van/outq.h"
#include "van/pool.h"

#include "sim/env/sim.h"

/* ---- header -------------------------------------------------------------------------------------------- */

static void test_header(void **state)
{
    (void)state;
    struct van_frame frame = {
        .nseg = 3, .class = VAN_CHAIN, .seg = {{NULL, 0}, {NULL, 9}, {NULL, UINT64_C(1) << 40}}};
    uint8_t bytes[VAN_HEADER_BYTES];
    struct van_header h;
    for (unsigned i = 0; i < VAN_HEAD; i++)
        frame.head[i] = (uint8_t)(i * 7);
    van_header_encode(&frame, bytes);
    assert_memory_equal(bytes, "PRM1", 4);
    assert_int_equal(van_header_decode(bytes, UINT64_C(1) << 41, &h), PARAMO_OK);
    assert_memory_equal(h.head, frame.head, VAN_HEAD);
    assert_int_equal(h.nseg, 3);
    assert_int_equal(h.class, VAN_CHAIN);
    assert_int_equal(h.len[1], 9);
    assert_int_equal(h.len[2], UINT64_C(1) << 40);
    assert_int_equal(h.padded, (UINT64_C(1) << 40) + 16);
    /* the limit counts the segments, not their padding */
    assert_int_equal(van_header_decode(bytes, (UINT64_C(1) << 40) + 9, &h), PARAMO_OK);
    assert_int_equal(van_header_decode(bytes, (UINT64_C(1) << 40) + 8, &h), PARAMO_E_TOO_LARGE);
}

/* Any change of any bit is noticed. */
static void test_header_damage(void **state)
{
    (void)state;
    struct van_frame frame = {.nseg = 1, .seg = {{NULL, 100}}};
    uint8_t bytes[VAN_HEADER_BYTES];
    struct van_header h;
    van_header_encode(&frame, bytes);
    for (unsigned bit = 0; bit < 8 * VAN_HEADER_BYTES; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(van_header_decode(bytes, UINT64_MAX, &h), PARAMO_OK);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(van_header_decode(bytes, UINT64_MAX, &h), PARAMO_OK);
}

static void test_header_lengths_overflow(void **state)
{
    (void)state;
    struct van_frame frame = {.nseg = 4,
                              .seg = {{NULL, UINT64_MAX}, {NULL, 2}, {NULL, UINT64_MAX}, {NULL, 9}}};
    uint8_t bytes[VAN_HEADER_BYTES];
    struct van_header h;
    van_header_encode(&frame, bytes);
    assert_int_equal(van_header_decode(bytes, UINT64_MAX, &h), PARAMO_E_TOO_LARGE);
    frame.seg[0].len = frame.seg[2].len = UINT64_C(1) << 63;
    van_header_encode(&frame, bytes);
    assert_int_equal(van_header_decode(bytes, UINT64_MAX, &h), PARAMO_E_TOO_LARGE);
}

/* ---- queue --------------------------------------------------------------------------------------------- */

static const struct van_limits wide = {.queue_bytes = {1 << 30, 1 << 30, 1 << 30, 1 << 30}};

/* Against a sort: class, then rank; removal from anywhere. */
static void test_queue_against_a_sort(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    static struct van_frame frames[COUNT];
    static int64_t rank[COUNT];
    static bool in[COUNT];
    struct outq q = {0};
    uint64_t random = 1;
    int64_t arrivals[VAN_CLASSES] = {0};
    unsigned put = 0, taken = 0;
    memset(frames, 0, sizeof frames);
    while (taken < COUNT) {
        random = mix64(random + 1);
        if (put < COUNT && random % 3) {
            struct van_frame *f = &frames[put];
            f->class = (uint8_t)(random >> 8 & 3);
            f->priority = random >> 16 & 1 ? 0 : (int32_t)(random >> 20 & 15) - 8;
            assert_int_equal(outq_put(&q, &wide, f), PARAMO_OK);
            rank[put] = arrivals[f->class]++ - (int64_t)f->priority * OUTQ_AGE_FRAMES;
            in[put++] = true;
            continue;
        }
        unsigned best = COUNT;
        for (unsigned i = 0; i < put; i++)
            if (in[i] && (best == COUNT || frames[i].class < frames[best].class ||
                          (frames[i].class == frames[best].class && rank[i] < rank[best])))
                best = i;
        struct van_frame *next = outq_peek(&q);
        if (best == COUNT) {
            assert_null(next);
            continue;
        }
        assert_non_null(next);
        assert_int_equal(next->class, frames[best].class);
        assert_int_equal(rank[next - frames], rank[best]);
        if (random >> 30 & 1) { /* not the next, but any */
            unsigned any = (unsigned)(random >> 32) % put;
            while (!in[any])
                any = (any + 1) % put;
            next = &frames[any];
        }
        outq_remove(&q, next);
        outq_complete(&q, next);
        in[next - frames] = false;
        taken++;
    }
    assert_int_equal(q.frames, 0);
    assert_int_equal(q.bytes, 0);
    for (unsigned i = 0; i < VAN_CLASSES; i++)
        assert_int_equal(q.class[i].charged, 0);
}

/* A low priority is not overtaken forever. */
static void test_queue_ages(void **state)
{
    (void)state;
    struct outq q = {0};
    struct van_frame low = {.class = VAN_REQUEST, .priority = -2};
    struct van_frame high = {.class = VAN_REQUEST};
    assert_int_equal(outq_put(&q, &wide, &low), PARAMO_OK);
    unsigned overtook = 0;
    for (;; overtook++) {
        assert_int_equal(outq_put(&q, &wide, &high), PARAMO_OK);
        struct van_frame *next = outq_peek(&q);
        outq_remove(&q, next);
        if (next == &low)
            break;
        assert_true(overtook < 3 * OUTQ_AGE_FRAMES);
    }
    assert_in_range(overtook, 2 * OUTQ_AGE_FRAMES - 2, 2 * OUTQ_AGE_FRAMES + 2);
}

static void test_queue_bounds(void **state)
{
    (void)state;
    struct outq q = {0};
    struct van_limits limits = {.queue_bytes = {1000, 1000, 1000, 1000}};
    struct van_frame big = {.class = VAN_REQUEST, .nseg = 1, .seg = {{NULL, 5000}}};
    struct van_frame small[10] = {{.class = VAN_REQUEST}};
    assert_int_equal(outq_put(&q, &limits, &big), PARAMO_OK); /* one always fits */
    assert_int_equal(outq_put(&q, &limits, &small[0]), PARAMO_E_AGAIN);
    small[1].class = VAN_ANSWER;
    assert_int_equal(outq_put(&q, &limits, &small[1]), PARAMO_OK); /* another class has its own room */
    assert_false(outq_writable(&q, &limits));
    outq_remove(&q, &big);
    assert_false(outq_writable(&q, &limits)); /* taken is not settled */
    outq_complete(&q, &big);
    assert_true(outq_writable(&q, &limits));
    assert_false(outq_writable(&q, &limits)); /* once */

    struct van_frame bad = {.class = VAN_CLASSES};
    assert_int_equal(outq_put(&q, &limits, &bad), PARAMO_E_INVALID);
    bad = (struct van_frame){.nseg = VAN_SEGS + 1};
    assert_int_equal(outq_put(&q, &limits, &bad), PARAMO_E_INVALID);
    bad = (struct van_frame){.nseg = 2, .seg = {{NULL, UINT64_MAX}, {NULL, 2}}};
    assert_int_equal(outq_put(&q, &limits, &bad), PARAMO_E_TOO_LARGE);
}

/* ---- pool ---------------------------------------------------------------------------------------------- */

static void test_pool(void **state)
{
    (void)state;
    struct pool *pool;
    struct van_hold *a, *b;
    assert_int_equal(pool_create(&pool), PARAMO_OK);
    assert_int_equal(pool_get(pool, 300000, &a), PARAMO_OK);
    assert_int_equal((uintptr_t)hold_data(a) % 64, 0);
    memset(hold_data(a), 1, 300000);
    hold_ref(a);
    van_release(a);
    assert_int_equal(pool_free_bytes(pool), 0); /* one reference is left */
    van_release(a);
    assert_true(pool_free_bytes(pool) >= 300000);
    assert_int_equal(pool_get(pool, 290000, &b), PARAMO_OK);
    assert_ptr_equal(a, b); /* the same memory, still in cache */
    assert_int_equal(pool_free_bytes(pool), 0);
    van_release(NULL);
    pool_destroy(pool);
    memset(hold_data(b), 2, 290000); /* the pool waits for it */
    van_release(b);
}

static void test_pool_is_bounded(void **state)
{
    (void)state;
    enum { COUNT = 100, BYTES = 2 << 20 };
    struct pool *pool;
    struct van_hold *holds[COUNT];
    assert_int_equal(pool_create(&pool), PARAMO_OK);
    for (unsigned i = 0; i < COUNT; i++)
        assert_int_equal(pool_get(pool, BYTES, &holds[i]), PARAMO_OK);
    for (unsigned i = 0; i < COUNT; i++)
        van_release(holds[i]);
    assert_true(pool_free_bytes(pool) <= POOL_KEEP_BYTES);
    assert_true(pool_free_bytes(pool) > POOL_KEEP_BYTES / 2);
    struct van_hold *huge;
    assert_int_equal(pool_get(pool, UINT64_MAX, &huge), PARAMO_E_MEMORY);
    pool_destroy(pool);
}

/* ---- the flush of a closed connection ------------------------------------------------------------------ */

struct flush {
    struct van_conn conn;
    struct lane_task begin;
    struct lane_timer timer;
    unsigned turns; /* of the timer, with bytes that have left before */
    uint64_t ended;
};

static void flush_turn(struct lane_timer *timer)
{
    struct flush *f = container_of(timer, struct flush, timer);
    f->conn.counters.bytes_sent += f->turns > 0;
    f->turns -= f->turns > 0;
    if (!van_flush_wait(&f->conn, timer))
        f->ended = lane_now(f->conn.lane);
}

static void flush_begin(struct lane_task *task)
{
    struct flush *f = container_of(task, struct flush, begin);
    assert_true(van_flush_wait(&f->conn, &f->timer));
}

static void test_flush_ends(void **state)
{
    (void)state;
    static const unsigned turns[] = {0, 2, 1000}, seconds[] = {10, 30, 60};
    for (unsigned i = 0; i < 3; i++) {
        struct sim *sim;
        struct flush f = {.begin.run = flush_begin, .timer.fire = flush_turn, .turns = turns[i]};
        assert_int_equal(sim_create(1, &sim), PARAMO_OK);
        assert_int_equal(lane_create(sim_env(sim), "flush", 0, &f.conn.lane), PARAMO_OK);
        uint64_t begun = sim_now(sim);
        lane_post(f.conn.lane, &f.begin);
        while (sim_step(sim))
            ;
        assert_in_range(f.ended - begun, seconds[i] * ENV_SEC, seconds[i] * ENV_SEC + ENV_SEC / 10);
        lane_destroy(f.conn.lane);
        sim_destroy(sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flush_ends),           cmocka_unit_test(test_header),
        cmocka_unit_test(test_header_damage),        cmocka_unit_test(test_header_lengths_overflow),
        cmocka_unit_test(test_queue_against_a_sort), cmocka_unit_test(test_queue_ages),
        cmocka_unit_test(test_queue_bounds),         cmocka_unit_test(test_pool),
        cmocka_unit_test(test_pool_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
