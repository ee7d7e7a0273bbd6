/* The index of keys against a plain array, its growth, its bounds, and what happens without memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "support_reference.h"
#include "table/keyindex.h"

/* Enters key -> row unless key is there; *found is its row after the call. */
static paramo_err insert(struct keyindex *x, uint64_t key, uint32_t row, uint32_t *found)
{
    void *payload;
    bool fresh;
    paramo_err err = keyindex_insert(x, key, &payload, &fresh);
    if (err) {
        return err;
    }
    if (fresh) {
        memcpy(payload, &row, sizeof row);
    }
    memcpy(found, payload, sizeof *found);
    return PARAMO_OK;
}

static void put(struct keyindex *x, uint64_t key, uint32_t row)
{
    uint32_t found;
    assert_int_equal(insert(x, key, row, &found), PARAMO_OK);
    assert_int_equal(found, row);
}

static uint32_t get(const struct keyindex *x, uint64_t key)
{
    uint32_t row;
    size_t found = keyindex_find(x, &key, 1, &row);
    assert_int_equal(found, row != KEYINDEX_NONE);
    uint32_t *payload = keyindex_payload(x, key);
    assert_int_equal(row, payload ? *payload : KEYINDEX_NONE);
    return row;
}

struct dump {
    uint64_t *keys;
    uint32_t *rows;
    size_t n;
};

static void dump_one(void *ctx, uint64_t key, void *payload)
{
    struct dump *d = ctx;
    d->keys[d->n] = key;
    memcpy(&d->rows[d->n++], payload, sizeof *d->rows);
}

static void every_key_is_possible(void **state)
{
    (void)state;
    struct tablemem mem;
    struct keyindex x;
    tablemem_init(&mem, NULL);
    keyindex_init(&x, &mem, 3, 4);
    static const uint64_t keys[] = {0, UINT64_MAX, 1, UINT64_MAX - 1, UINT64_C(1) << 63, 3};
    assert_false(keyindex_remove(&x, 0, NULL));
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(get(&x, keys[i]), KEYINDEX_NONE);
        put(&x, keys[i], i);
    }
    uint32_t found;
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(get(&x, keys[i]), i);
        assert_int_equal(insert(&x, keys[i], 99, &found), PARAMO_OK);
        assert_int_equal(found, i); /* the first stays */
    }
    assert_int_equal(x.count, 6);
    assert_true(keyindex_remove(&x, 0, &found));
    assert_int_equal(found, 0);
    assert_int_equal(get(&x, 0), KEYINDEX_NONE);
    assert_int_equal(get(&x, UINT64_MAX), 1);
    keyindex_clear(&x);
    assert_int_equal(mem.bytes, 0);
}

/* Inserts and removes at random among UNIVERSE keys; a plain array is the model. Removal is as frequent as
 * entry, so that `passed` counts come and go. */
static void behaves_like_an_array(void **state)
{
    (void)state;
    enum { UNIVERSE = 3000, STEPS = 200000 };
    for (uint64_t seed = 1; seed <= 3; seed++) {
        static uint32_t model[UNIVERSE];
        memset(model, 0xff, sizeof model);
        struct tablemem mem;
        struct keyindex x;
        tablemem_init(&mem, NULL);
        keyindex_init(&x, &mem, seed, 4);
        uint64_t random = seed;
        size_t count = 0;
        for (size_t step = 0; step < STEPS; step++) {
            uint64_t r = draw(&random);
            size_t which = r >> 32 & 0xffff;
            which %= UNIVERSE;
            uint64_t key = seed == 2 ? mix64(which) : which; /* hashes, or small numbers */
            uint32_t row;
            if (r & 1) {
                assert_int_equal(insert(&x, key, (uint32_t)step, &row), PARAMO_OK);
                if (model[which] == UINT32_MAX) {
                    model[which] = (uint32_t)step;
                    count++;
                }
                assert_int_equal(row, model[which]);
            } else {
                bool there = keyindex_remove(&x, key, &row);
                assert_int_equal(there, model[which] != UINT32_MAX);
                if (there) {
                    assert_int_equal(row, model[which]);
                    model[which] = UINT32_MAX;
                    count--;
                }
            }
            assert_int_equal(x.count, count);
        }
        static uint64_t keys[UNIVERSE];
        static uint32_t rows[UNIVERSE];
        for (size_t i = 0; i < UNIVERSE; i++) {
            keys[i] = seed == 2 ? mix64(i) : i;
        }
        assert_int_equal(keyindex_find(&x, keys, UNIVERSE, rows), count);
        assert_memory_equal(rows, model, sizeof model);
        struct dump dump = {.keys = keys, .rows = rows};
        keyindex_walk(&x, dump_one, &dump);
        assert_int_equal(dump.n, count);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(get(&x, keys[i]), rows[i]);
        }
        /* removed keys leave nothing: each search is as long as the present entries make it */
        uint64_t probes = keyindex_probes(&x);
        assert_true(probes < 2 * count);
        for (size_t i = 0; i < UNIVERSE; i++) {
            keyindex_remove(&x, seed == 2 ? mix64(i) : i, NULL);
        }
        assert_int_equal(keyindex_probes(&x), 0);
        keyindex_clear(&x);
        assert_int_equal(mem.bytes, 0);
    }
}

/* To 3 million keys, each entered and found; on the way the index never takes more than 24 bytes a key once
 * it is large, searches stay short, and no single allocation is large: growth is in small pieces. */
static size_t largest;

static void *watch_get(void *ctx, size_t align, size_t size)
{
    (void)ctx;
    largest = size > largest ? size : largest;
    return aligned_alloc(align < 16 ? 16 : align, (size + 63) & ~(size_t)63);
}

static void watch_put(void *ctx, void *memory, size_t size)
{
    (void)ctx;
    (void)size;
    free(memory);
}

static void grows_in_small_pieces(void **state)
{
    (void)state;
    enum { KEYS = 3000000, BLOCK = 1000 };
    static const struct table_alloc watch = {.alloc = watch_get, .release = watch_put};
    struct tablemem mem;
    struct keyindex x;
    largest = 0;
    tablemem_init(&mem, &watch);
    keyindex_init(&x, &mem, 77, 4);
    for (uint32_t i = 0; i < KEYS; i++) {
        put(&x, i * UINT64_C(64), i);
        if (i >= 100000 && i % 5000 == 0) {
            assert_true(mem.bytes <= (uint64_t)i * 24);
        }
    }
    assert_true(largest <= 128 << 10);
    assert_true(keyindex_probes(&x) < UINT64_C(2) * KEYS);
    static uint64_t keys[2 * BLOCK];
    static uint32_t rows[2 * BLOCK];
    for (uint32_t first = 0; first < KEYS; first += BLOCK) {
        for (uint32_t i = 0; i < BLOCK; i++) {
            keys[2 * i] = (first + i) * UINT64_C(64);
            keys[2 * i + 1] = keys[2 * i] + 1; /* not there */
        }
        assert_int_equal(keyindex_find(&x, keys, sizeof keys / sizeof *keys, rows), BLOCK);
        for (uint32_t i = 0; i < BLOCK; i++) {
            assert_int_equal(rows[2 * i], first + i);
            assert_int_equal(rows[2 * i + 1], KEYINDEX_NONE);
        }
    }
    keyindex_clear(&x);
    assert_int_equal(mem.bytes, 0);
}

static uint64_t unmix64(uint64_t x) /* the inverse of mix64 */
{
    x ^= x >> 31 ^ x >> 62;
    x *= UINT64_C(0x319642b2d24d8ec3);
    x ^= x >> 27 ^ x >> 54;
    x *= UINT64_C(0x96de1b173f119089);
    x ^= x >> 30 ^ x >> 60;
    return x;
}

/* Keys made for a known seed, whose hashes share their top 32 bits (no split tells them apart) or their low
 * bits (all have one home). The index may get slow, but stays right, in bounded memory. */
static void keys_against_the_hash_are_survived(void **state)
{
    (void)state;
    enum { KEYS_MOST = 1000000 };
    const uint64_t seed = 1234567;
    for (unsigned attack = 0; attack < 2; attack++) {
        struct tablemem mem;
        struct keyindex x;
        tablemem_init(&mem, NULL);
        keyindex_init(&x, &mem, seed, 4);
        static uint64_t keys[KEYS_MOST];
        const uint32_t count = attack == 0 ? KEYS_MOST : 12000;
        for (uint32_t i = 0; i < count; i++) {
            uint64_t hash = attack == 0 ? i * UINT32_C(2654435761) : (uint64_t)i << 48 | 5;
            keys[i] = unmix64(hash) ^ seed;
            assert_true(mix64(keys[i] ^ seed) == hash);
            put(&x, keys[i], i);
        }
        assert_true(mem.bytes < (size_t)count * 30 + (512 << 10));
        for (uint32_t i = 0; i < count; i += 17) {
            assert_int_equal(get(&x, keys[i]), i);
        }
        for (uint32_t i = 0; i < count; i += 2) {
            assert_true(keyindex_remove(&x, keys[i], NULL));
        }
        for (uint32_t i = 0; i < count; i += 13) {
            assert_int_equal(get(&x, keys[i]), i % 2 ? i : KEYINDEX_NONE);
        }
        keyindex_clear(&x);
        assert_int_equal(mem.bytes, 0);
    }
}

/* Payloads of 12 bytes, entered while a scan runs: its result is right at each step, also after growth. */
static void scans_see(bool deep)
{
    enum { KEYS = 60000 };
    struct tablemem mem;
    struct keyindex x;
    tablemem_init(&mem, NULL);
    keyindex_init(&x, &mem, 9, 12);
    static uint64_t keys[KEYS];
    uint64_t random = 4;
    for (size_t i = 0; i < KEYS; i++) {
        keys[i] = i >= 10 && i % 3 == 0 ? keys[i / 2] : draw(&random); /* some occur twice */
    }
    for (unsigned round = 0; round < 2; round++) {
        struct keyindex_scan scan;
        void **payload;
        size_t done = 0;
        keyindex_scan_start(&scan, &x, keys, KEYS);
        assert_false(scan.deep); /* that is for 40 M keys */
        scan.deep = deep;
        for (size_t m; (m = keyindex_scan_next(&scan, &payload)) > 0; done += m) {
            assert_true(done + m <= KEYS);
            for (size_t i = 0; i < m; i++) { /* before the first insertion: pointers are good */
                uint64_t *there = keyindex_payload(&x, keys[done + i]);
                assert_ptr_equal(payload[i], there);
                assert_true(round == 0 || there);
            }
            for (size_t i = 0; i < m; i++) {
                void *at;
                bool fresh;
                assert_int_equal(keyindex_insert(&x, keys[done + i], &at, &fresh), PARAMO_OK);
                uint32_t value[3] = {(uint32_t)keys[done + i], (uint32_t)(keys[done + i] >> 32), 77};
                if (fresh) {
                    memcpy(at, value, sizeof value);
                }
                assert_memory_equal(at, value, sizeof value);
            }
        }
        assert_int_equal(done, KEYS);
    }
    assert_true(x.segments > 4);
    for (size_t i = 0; i < KEYS; i++) {
        uint32_t *at = keyindex_payload(&x, keys[i]);
        assert_true(at && at[0] == (uint32_t)keys[i] && at[1] == keys[i] >> 32 && at[2] == 77);
    }
    keyindex_clear(&x);
    assert_int_equal(mem.bytes, 0);
}

static void scans_see_what_is_entered_on_the_way(void **state)
{
    (void)state;
    scans_see(false);
    scans_see(true);
}

/* Every allocation on the way to 80,000 keys fails once: the index is as it was, and the next try works. */
static void failing_memory_changes_nothing(void **state)
{
    (void)state;
    enum { KEYS = 80000 };
    struct failing_alloc f;
    failing_alloc_init(&f);
    struct tablemem mem;
    struct keyindex x;
    tablemem_init(&mem, &f.alloc);
    keyindex_init(&x, &mem, 5, 4);
    size_t failures = 0;
    for (uint32_t i = 0; i < KEYS; i++) {
        uint32_t found = 7;
        for (size_t at = 1;; at++) { /* the first, second, ... allocation of this insertion */
            size_t before = f.calls;
            f.fail_at = at;
            paramo_err err = insert(&x, i, i, &found);
            if (err == PARAMO_OK) {
                f.fail_at = 0;
                break;
            }
            assert_int_equal(err, PARAMO_E_MEMORY);
            assert_int_equal(f.calls - before, at);
            assert_int_equal(x.count, i);
            assert_int_equal(get(&x, i), KEYINDEX_NONE);
            assert_int_equal(get(&x, i / 2), i ? i / 2 : KEYINDEX_NONE);
            failures++;
        }
        assert_int_equal(found, i);
    }
    assert_true(failures > 50);
    for (uint32_t i = 0; i < KEYS; i++) {
        assert_int_equal(get(&x, i), i);
    }
    keyindex_clear(&x);
    assert_int_equal(f.live_bytes, 0);
    assert_int_equal(f.live_blocks, 0);
}

/* ---- marks ---- */

struct firsts {
    const struct keyindex *x;
    uint8_t *changes; /* by key */
};

static void count_first(void *arg, uint64_t key, const void *payload, unsigned was)
{
    struct firsts *f = arg;
    assert_ptr_equal(payload, keyindex_payload(f->x, key));
    assert_int_equal(keyindex_mark(f->x, payload), was);
    assert_int_not_equal(was, f->x->mark);
    f->changes[key]++;
}

static void mark_of_many(const struct keyindex *x, uint64_t keys, const uint8_t *mark)
{
    for (uint64_t key = 0; key < keys; key++) {
        const void *payload = keyindex_payload(x, key);
        assert_int_equal(payload ? keyindex_mark(x, payload) : 0, mark[key]);
    }
}

/* Each payload keeps its mark while others are entered and removed beside it. */
static void marks_go_with_payloads(unsigned bytes)
{
    enum { KEYS = 50000, SOME = 100 };
    static uint8_t mark[KEYS], changes[KEYS];
    struct tablemem mem;
    struct keyindex x;
    void *payload[SOME];
    uint64_t key[SOME];
    struct firsts f = {.x = &x, .changes = changes};
    memset(mark, 0, sizeof mark);
    memset(changes, 0, sizeof changes);
    tablemem_init(&mem, NULL);
    keyindex_init(&x, &mem, 5, bytes);
    for (uint64_t i = 0; i < KEYS; i++) { /* 0 to 3 in turn */
        x.mark = i % 4;
        assert_int_equal(keyindex_add(&x, i, payload), PARAMO_OK);
        mark[i] = i % 4;
    }
    assert_true(x.segments > 1);
    mark_of_many(&x, KEYS, mark);
    for (uint64_t i = 0; i < KEYS; i += 7) { /* a slot that is used again has no mark */
        assert_true(keyindex_remove(&x, i, NULL));
        x.mark = 0;
        if (i % 2)
            assert_int_equal(keyindex_add(&x, i, payload), PARAMO_OK);
        mark[i] = 0;
    }
    mark_of_many(&x, KEYS, mark);
    x.first = count_first;
    x.first_arg = &f;
    for (unsigned now = 0; now < 3; now++) { /* 0: changes are not reported */
        x.mark = now;
        for (size_t i = 0; i < SOME; i++) { /* each twice */
            key[i] = 7 * (i / 2) * 10 + 3;
            payload[i] = keyindex_payload(&x, key[i]);
        }
        keyindex_change(&x, key, payload, SOME);
        for (size_t i = 0; i < SOME; i += 2) {
            assert_int_equal(changes[key[i]], now && mark[key[i]] != now);
            changes[key[i]] = 0;
            mark[key[i]] = now ? (uint8_t)now : mark[key[i]];
        }
        mark_of_many(&x, KEYS, mark);
    }
    for (uint64_t i = 0; i < KEYS; i++)
        assert_int_equal(changes[i], 0);
    keyindex_set_mark(&x, payload[0], 3);
    assert_int_equal(keyindex_mark(&x, payload[0]), 3);
    uint64_t cursor = 0;
    size_t steps = 1;
    while (keyindex_clear_marks(&x, &cursor, KEYS / 10))
        steps++;
    assert_in_range(steps, 10, 100);
    memset(mark, 0, sizeof mark);
    mark_of_many(&x, KEYS, mark);
    keyindex_clear(&x);
    assert_int_equal(mem.bytes, 0);
}

/* against: keys made against the hash, so that their segment is one piece. */
static void places_name_payloads(unsigned bytes, bool against)
{
    enum { KEYS = 60000 };
    static uint64_t keys[KEYS];
    struct tablemem mem;
    struct keyindex x;
    struct keyindex_scan scan;
    void **payload, *at;
    uint32_t place[KEYINDEX_CHUNK];
    const uint64_t seed = 5;
    tablemem_init(&mem, NULL);
    keyindex_init(&x, &mem, seed, bytes);
    keyindex_scan_start(&scan, &x, keys, 1);
    assert_int_equal(keyindex_scan_next(&scan, &payload), 1);
    keyindex_scan_places(&scan, 1, place);
    assert_int_equal(place[0], KEYINDEX_NONE);
    for (uint32_t i = 0; i < KEYS; i++) {
        keys[i] = against ? unmix64(i * UINT32_C(2654435761)) ^ seed : i;
        if (i % 3)
            assert_int_equal(keyindex_add(&x, keys[i], &at), PARAMO_OK);
    }
    assert_true(against || x.segments > 1);
    keyindex_scan_start(&scan, &x, keys, KEYS);
    for (size_t done = 0, m; (m = keyindex_scan_next(&scan, &payload)) > 0; done += m) {
        keyindex_scan_places(&scan, m, place);
        for (size_t i = 0; i < m; i++)
            if ((done + i) % 3)
                assert_ptr_equal(keyindex_at(&x, x.slots, place[i]), payload[i]);
            else
                assert_int_equal(place[i], KEYINDEX_NONE);
    }
    keyindex_clear(&x);
    assert_int_equal(mem.bytes, 0);
}

static void payloads_have_places(void **state)
{
    (void)state;
    for (unsigned against = 0; against < 2; against++) {
        places_name_payloads(4, against);
        places_name_payloads(12, against);
    }
}

static void payloads_have_marks(void **state)
{
    (void)state;
    marks_go_with_payloads(4);
    marks_go_with_payloads(12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_possible),
        cmocka_unit_test(behaves_like_an_array),
        cmocka_unit_test(grows_in_small_pieces),
        cmocka_unit_test(keys_against_the_hash_are_survived),
        cmocka_unit_test(scans_see_what_is_entered_on_the_way),
        cmocka_unit_test(failing_memory_changes_nothing),
        cmocka_unit_test(payloads_have_marks),
        cmocka_unit_test(payloads_have_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
