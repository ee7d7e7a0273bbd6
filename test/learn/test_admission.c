/* Which new features are admitted: the sketch that counts them, both rules, and the room for them. */
#include "learn/support_learn.h"
#include "learn/train/admission.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void test_words(void **state)
{
    (void)state;
    static const char *const bad[] = {"",         "count",  "count:",   "count:0", "count:1.5", "count:256",
                                      "count:2x", "prob:0", "prob:1.1", "prob:-1", "prob",      "prob:nan",
                                      "Count:1",  "3",      "share:1",  ":1",      "count: 1"};
    struct admission_rule rule = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (admission_parse(bad[i], &rule) == 0)
            fail_msg("'%s' is taken", bad[i]);
    assert_int_equal(rule.kind, ADMIT_ALL);
    assert_int_equal(admission_parse("count:255", &rule), 0);
    assert_true(rule.kind == ADMIT_COUNT && rule.count == 255);
    assert_int_equal(admission_parse("prob:0.25", &rule), 0);
    assert_true(rule.kind == ADMIT_SHARE && rule.share == 0.25);
}

/* ---- the sketch ---- */

static void test_sketch(void **state)
{
    (void)state;
    enum { KEYS = 200 };
    struct sketch s;
    uint32_t count[KEYS] = {0};
    uint64_t seed = 1;
    assert_int_equal(sketch_init(&s, 1 << 14), PARAMO_OK);
    assert_int_equal(s.counters, 1 << 12);
    unsigned more = 0;
    for (unsigned i = 0; i < s.counters / 2 - 1; i++) {
        const unsigned k = (unsigned)(draw(&seed) % KEYS);
        count[k] = count[k] < 9 ? count[k] + 1 : 9;
        assert_true(sketch_add(&s, k * 1000003, 1, 9) >= count[k]);
    }
    for (unsigned k = 0; k < KEYS; k++) {
        const uint32_t is = sketch_count(&s, k * 1000003);
        assert_in_range(is, count[k], 9);
        more += is > count[k];
    }
    assert_true(more <= KEYS / 50);
    assert_int_equal(sketch_count(&s, 5), 0);
    assert_int_equal(sketch_add(&s, 5, 300, SKETCH_MOST), SKETCH_MOST);
    sketch_free(&s);
}

/* It is as good as said when it is full, and forgets. */
static void test_full_sketch(void **state)
{
    (void)state;
    struct sketch s;
    unsigned wrong = 0;
    assert_int_equal(sketch_init(&s, 0), PARAMO_OK);
    assert_int_equal(s.counters, 1024);
    assert_int_equal(sketch_add(&s, 7, 4, 9), 4);
    for (uint64_t k = 0; s.added < s.counters / 2 - 1; k++)
        (void)sketch_add(&s, 1000 + k, 1, 1);
    for (uint64_t k = 0; k < 10000; k++)
        wrong += sketch_count(&s, 1000000 + k) > 0;
    assert_in_range(wrong, 20, 300);
    const uint32_t before = sketch_count(&s, 7);
    for (uint64_t k = 0; s.added > 0; k++) /* the last addition halves */
        (void)sketch_add(&s, 2000000 + k, 1, 9);
    assert_int_equal(sketch_count(&s, 7), before / 2);
    sketch_free(&s);
}

/* ---- batches ---- */

enum { FEATURES = 64 };

/* A batch of one row for each feature that is shown, times[i] of feature i, whose key is 10 i. */
struct made {
    struct batch batch;
    uint64_t key[FEATURES + 1];
    uint32_t start[2], index[FEATURES * 8];
    float w[FEATURES + 1];
    uint8_t in[FEATURES + 1];
};

static void make(struct made *m, const uint8_t times[FEATURES])
{
    memset(m, 0, sizeof *m);
    for (uint32_t i = 0; i < FEATURES; i++) {
        m->key[i] = 10 * i;
        for (unsigned k = 0; k < times[i]; k++)
            m->index[m->start[1]++] = i;
    }
    m->key[FEATURES] = BATCH_BIAS_KEY;
    m->batch = (struct batch){
        .rows = 1, .unique = FEATURES + 1, .key = m->key, .start = m->start, .index = m->index};
}

static struct admission begin(const char *text, uint64_t most, uint64_t rows, uint32_t workers)
{
    struct admission a;
    struct admission_rule rule = {.bytes = 1 << 16, .most = most};
    assert_int_equal(admission_parse(text, &rule), 0);
    assert_int_equal(admission_init(&a, &rule, 3), PARAMO_OK);
    admission_room(&a, rows, workers);
    return a;
}

static void test_count(void **state)
{
    (void)state;
    struct admission a = begin("count:3", 0, 0, 1);
    struct made m;
    uint8_t times[FEATURES] = {[0] = 1, [1] = 2, [2] = 3, [3] = 4, [5] = 1};
    make(&m, times);
    m.w[5] = -0.5f; /* it is in the model */
    admission_batch(&a, &m.batch, m.w, 1, 1, 0, m.in);
    assert_memory_equal(m.in, ((const uint8_t[]){0, 0, 1, 1, 0, 1, 0}), 7);
    assert_int_equal(m.in[FEATURES], 1);
    admission_batch(&a, &m.batch, m.w, 1, 0, 1, m.in); /* counts nothing */
    assert_memory_equal(m.in, ((const uint8_t[]){0, 0, 1, 1, 0, 1, 0}), 7);
    admission_batch(&a, &m.batch, m.w, 1, 1, 2, m.in);
    assert_memory_equal(m.in, ((const uint8_t[]){0, 1, 1, 1, 0, 1, 0}), 7);
    admission_batch(&a, &m.batch, m.w, 1, 1, 3, m.in);
    assert_memory_equal(m.in, ((const uint8_t[]){1, 1, 1, 1, 0, 1, 0}), 7);
    assert_int_equal(a.admitted, 4); /* each once */
    admission_free(&a);
}

static void test_share(void **state)
{
    (void)state;
    struct admission a = begin("prob:0.1", 0, 0, 1), b = begin("prob:0.1", 0, 0, 1);
    struct made m, other;
    uint8_t times[FEATURES];
    unsigned once = 0, thrice = 0;
    for (unsigned i = 0; i < FEATURES; i++)
        times[i] = i % 2 ? 3 : 1;
    for (uint64_t place = 0; place < 300; place++) {
        make(&m, times);
        make(&other, times);
        admission_batch(&b, &other.batch, other.w, 1, 1, place, other.in);
        admission_batch(&a, &m.batch, m.w, 1, 1, place, m.in);
        assert_memory_equal(m.in, other.in, sizeof m.in); /* the place decides */
        for (unsigned i = 0; i < FEATURES; i++)
            *(i % 2 ? &thrice : &once) += m.in[i];
        memset(a.recent, 0xff, ADMISSION_RECENT * sizeof *a.recent); /* each place is the first */
        memset(b.recent, 0xff, ADMISSION_RECENT * sizeof *b.recent);
    }
    const double draws = 300 * FEATURES / 2;
    assert_true(fabs(once / draws - 0.1) < 0.015);
    assert_true(fabs(thrice / draws - (1 - 0.9 * 0.9 * 0.9)) < 0.02);
    make(&m, times);
    admission_batch(&a, &m.batch, m.w, 1, 0, 1, m.in);
    for (unsigned i = 0; i < FEATURES; i++)
        assert_int_equal(m.in[i], 0);
    admission_free(&a);
    admission_free(&b);
}

static void test_room(void **state)
{
    (void)state;
    static const char *const rules[] = {"count:1", "prob:1"};
    struct made m;
    uint8_t times[FEATURES];
    memset(times, 1, sizeof times);
    for (size_t r = 0; r < 2; r++) {
        struct admission a = begin(rules[r], 30, 10, 2); /* 10 of 20 */
        for (uint64_t place = 0; place < 4; place++) {
            unsigned in = 0;
            make(&m, times);
            admission_batch(&a, &m.batch, m.w, 1, 1, place, m.in);
            for (unsigned i = 0; i < FEATURES; i++)
                in += m.in[i];
            assert_int_equal(in, 10); /* the same ones, whose weights are not there yet */
        }
        m.w[FEATURES - 1] = 1;
        admission_batch(&a, &m.batch, m.w, 1, 1, 9, m.in);
        assert_int_equal(m.in[FEATURES - 1], 1);
        admission_free(&a);
        a = begin(rules[r], 30, 31, 1);
        admission_batch(&a, &m.batch, m.w, 1, 1, 9, m.in);
        assert_int_equal(m.in[0], 0);
        admission_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words),       cmocka_unit_test(test_sketch),
                                       cmocka_unit_test(test_full_sketch), cmocka_unit_test(test_count),
                                       cmocka_unit_test(test_share),       cmocka_unit_test(test_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
