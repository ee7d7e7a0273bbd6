#include "unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "base/queue.h"

static void errors_carry_their_cause(void **state)
{
    (void)state;
    assert_int_equal(err_set(PARAMO_E_ADDRESS, "resolve %s", "x"), PARAMO_E_ADDRESS);
    assert_string_equal(err_text(), "resolve x");
    assert_int_equal(err_prefix(PARAMO_E_ADDRESS, "node %d", 8), PARAMO_E_ADDRESS);
    assert_string_equal(err_text(), "node 8: resolve x");
    assert_int_equal(err_set(PARAMO_E_IO, "again: %s", err_text()),
                     PARAMO_E_IO); /* its own text as an argument */
    assert_string_equal(err_text(), "again: node 8: resolve x");
    (void)err_errno(PARAMO_E_IO, 2, "open f");
    assert_string_equal(err_text(), "open f: No such file or directory");
    char longer[600];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    (void)err_set(PARAMO_E_IO, "%s", longer);
    assert_int_equal(strlen(err_text()), ERR_TEXT_MAX - 1);
    (void)err_prefix(PARAMO_E_IO, "p");
    assert_int_equal(strlen(err_text()), ERR_TEXT_MAX - 1);
    assert_int_equal(strncmp(err_text(), "p: aaa", 6), 0);
    assert_string_equal(err_name(PARAMO_E_TIMEOUT), "PARAMO_E_TIMEOUT");
    assert_int_equal(err_from_wire(PARAMO_E_TIMEOUT), PARAMO_E_TIMEOUT);
    assert_int_equal(err_from_wire(65535), PARAMO_E_INTERNAL);
}

static void keep_line(void *arg, int level, const char *line)
{
    (void)snprintf(arg, 128, "%d %s", level, line);
}

static void log_lines_reach_the_sink_by_level(void **state)
{
    (void)state;
    char got[128] = "";
    log_set_sink(keep_line, got);
    log_info("not shown at the default level");
    assert_string_equal(got, "");
    log_warn("shown %d", 1);
    assert_string_equal(got, "1 shown 1");
    log_set_level(LOG_INFO);
    log_info("now");
    assert_string_equal(got, "2 now");
    log_set_level(LOG_WARN);
    log_set_sink(NULL, NULL);
}

static void mix64_is_a_bijection_on_what_we_try(void **state)
{
    (void)state;
    struct map seen;
    map_init(&seen);
    for (uint64_t i = 0; i < 100000; i++) {
        assert_null(map_get(&seen, mix64(i)));
        assert_int_equal(map_put(&seen, mix64(i), &seen), PARAMO_OK);
    }
    map_fini(&seen);
    assert_true(bytes_equal_secret("abc", "abc", 3));
    assert_false(bytes_equal_secret("abc", "abd", 3));
}

static void map_behaves_like_an_array(void **state)
{
    (void)state;
    enum { KEYS = 512, STEPS = 40000 };
    static void *model[KEYS];
    struct map m;
    map_init(&m);
    assert_null(map_get(&m, 0));
    assert_null(map_remove(&m, 0));
    size_t count = 0;
    for (uint64_t step = 0; step < STEPS; step++) {
        uint64_t draw = mix64(step * 2 + 1);
        uint64_t slot = draw % KEYS;
        uint64_t key = slot == 0 ? UINT64_MAX : slot - 1; /* both ends of the range */
        if (draw >> 63) {
            count += model[slot] == NULL;
            model[slot] = &model[draw % 7];
            assert_int_equal(map_put(&m, key, model[slot]), PARAMO_OK);
        } else {
            assert_ptr_equal(map_remove(&m, key), model[slot]);
            count -= model[slot] != NULL;
            model[slot] = NULL;
        }
        assert_int_equal(m.count, count);
        assert_ptr_equal(map_get(&m, key), model[slot]);
    }
    size_t cursor = 0, found = 0;
    uint64_t key;
    void *value;
    while (map_next(&m, &cursor, &key, &value)) {
        assert_ptr_equal(value, model[key == UINT64_MAX ? 0 : key + 1]);
        found++;
    }
    assert_int_equal(found, count);
    map_fini(&m);
}

enum { SCAN_KEYS = 300 };

static void scanned(void *arg, uint64_t key, void *value)
{
    unsigned *seen = arg;
    assert_non_null(value);
    assert_true(key < SCAN_KEYS);
    seen[key]++;
    seen[SCAN_KEYS]++;
}

/* Entries come and go between the turns of a scan. Those that stay are visited, however others move. */
static void map_is_scanned_in_turns(void **state)
{
    (void)state;
    unsigned turns = 0, twice = 0;
    for (uint64_t round = 0; round < 300; round++) {
        struct map m;
        bool stays[SCAN_KEYS];
        unsigned seen[SCAN_KEYS + 1] = {0};
        map_init(&m);
        for (uint64_t key = 0; key < SCAN_KEYS; key++) {
            stays[key] = mix64(round << 32 | key) % 5 < 2;
            if (stays[key])
                assert_int_equal(map_put(&m, key, &m), PARAMO_OK);
        }
        struct map_scan scan = {0};
        for (uint64_t turn = 0, before = 0;; turn++, turns++, before = seen[SCAN_KEYS]) {
            bool more = map_scan(&m, &scan, round % 3, scanned, seen);
            assert_true(seen[SCAN_KEYS] - before <
                        60); /* a run of full slots of a map that is half full at most */
            if (!more)
                break;
            for (uint64_t i = 0; i < 3; i++) {
                uint64_t draw = mix64(round << 40 | turn << 8 | i), key = draw % (round % 5 ? SCAN_KEYS : 40);
                stays[key] = false;
                if (draw >> 63)
                    assert_int_equal(map_put(&m, key, &m), PARAMO_OK);
                else
                    map_remove(&m, key);
            }
        }
        for (uint64_t key = 0; key < SCAN_KEYS; key++) {
            assert_true(seen[key] || !stays[key]);
            twice += seen[key] > 1;
        }
        map_fini(&m);
    }
    assert_true(turns > 10000 && twice > 0);
}

static void cursor_gives_back_what_it_took(void **state)
{
    (void)state;
    struct writer w = {0};
    write_u8(&w, 0xab);
    write_u16(&w, 0x1234);
    write_u32(&w, 0xdeadbeef);
    write_u64(&w, UINT64_C(0x0123456789abcdef));
    write_f32(&w, -1.5f);
    write_f64(&w, 2.25);
    write_string(&w, "name");
    assert_false(w.failed);
    assert_int_equal(w.data[1], 0x34); /* little-endian */
    struct reader r = reader_over(w.data, w.len);
    char name[8];
    assert_int_equal(read_u8(&r), 0xab);
    assert_int_equal(read_u16(&r), 0x1234);
    assert_int_equal(read_u32(&r), 0xdeadbeef);
    assert_true(read_u64(&r) == UINT64_C(0x0123456789abcdef));
    assert_true(read_f32(&r) == -1.5f);
    assert_true(read_f64(&r) == 2.25);
    read_string(&r, name, sizeof name);
    assert_string_equal(name, "name");
    assert_true(reader_done(&r));
    for (size_t cut = 0; cut < w.len; cut++) { /* every shorter input fails, and stays failed */
        r = reader_over(w.data, cut);
        (void)read_u8(&r);
        (void)read_u16(&r);
        (void)read_u32(&r);
        (void)read_u64(&r);
        (void)read_f32(&r);
        (void)read_f64(&r);
        read_string(&r, name, sizeof name);
        assert_true(r.failed);
        assert_false(reader_done(&r));
        assert_int_equal(read_u8(&r), 0);
    }
    r = reader_over(w.data, w.len);
    (void)read_span(&r, w.len - 6);
    read_string(&r, name, 4); /* too small for "name" and its end */
    assert_true(r.failed);
    writer_fini(&w);
    uint8_t small[3];
    struct writer fixed = writer_over(small, sizeof small);
    write_u16(&fixed, 1);
    write_u16(&fixed, 2);
    assert_true(fixed.failed);
    assert_int_equal(fixed.len, 2);
}

struct mail {
    struct qnode node;
    unsigned sender, number;
};

enum { SENDERS = 3, MAILS = 20000 };
static struct mailbox box;
static struct mail mails[SENDERS][MAILS];

static void *send_mails(void *arg)
{
    struct mail *mine = arg;
    for (unsigned i = 0; i < MAILS; i++)
        mailbox_post(&box, &mine[i].node);
    return NULL;
}

static void mailbox_keeps_each_senders_order(void **state)
{
    (void)state;
    pthread_t threads[SENDERS];
    for (unsigned s = 0; s < SENDERS; s++) {
        for (unsigned i = 0; i < MAILS; i++)
            mails[s][i] = (struct mail){.sender = s, .number = i};
        assert_int_equal(pthread_create(&threads[s], NULL, send_mails, mails[s]), 0);
    }
    unsigned next[SENDERS] = {0};
    for (unsigned got = 0; got < SENDERS * MAILS;) {
        struct queue q = {0};
        mailbox_drain(&box, &q);
        for (struct qnode *n; (n = queue_pop(&q)); got++) {
            struct mail *m = container_of(n, struct mail, node);
            assert_int_equal(m->number, next[m->sender]++);
        }
    }
    for (unsigned s = 0; s < SENDERS; s++)
        assert_int_equal(pthread_join(threads[s], NULL), 0);
    assert_true(mailbox_empty(&box));
}

enum { MANY = 60000 }; /* entries; a map grows in steps from 16,384 on */

/* As an array, while it grows in steps: keys come, are replaced and go, before and after they have moved. A put moves
 * few. */
static void map_grows_in_steps(void **state)
{
    (void)state;
    static uint8_t model[MANY];
    struct map m;
    map_init(&m);
    size_t count = 0, growing = 0, most = 0;
    for (uint64_t step = 0; step < 4 * MANY; step++) {
        uint64_t draw = mix64(step), key = mix64(draw % (step / 4 + 1)), slot = draw % (step / 4 + 1);
        size_t left = m.old_count, capacity = m.capacity;
        if (draw >> 62) {
            count += !model[slot];
            model[slot] = (uint8_t)(1 + (draw >> 40) % 200);
            assert_int_equal(map_put(&m, key, &model[model[slot]]), PARAMO_OK);
        } else {
            assert_ptr_equal(map_remove(&m, key), model[slot] ? &model[model[slot]] : NULL);
            count -= model[slot] > 0;
            model[slot] = 0;
        }
        growing += m.old != NULL;
        if (m.capacity == capacity && left - m.old_count > most)
            most = left - m.old_count;
        assert_int_equal(m.count, count);
        slot = (draw >> 20) % (step / 4 + 1);
        assert_ptr_equal(map_get(&m, mix64(slot)), model[slot] ? &model[model[slot]] : NULL);
        if (step % 5000 == 0) {
            size_t cursor = 0, found = 0;
            void *value;
            while (map_next(&m, &cursor, &key, &value))
                found++;
            assert_int_equal(found, count);
        }
    }
    for (uint64_t slot = 0; slot < MANY; slot++)
        assert_ptr_equal(map_get(&m, mix64(slot)), model[slot] ? &model[model[slot]] : NULL);
    assert_true(growing > 500);
    assert_in_range(most, 32, 500);
    map_fini(&m);
}

struct growing {
    uint64_t base; /* keys are from here on */
    uint8_t seen[MANY];
};

static void seen_once_more(void *arg, uint64_t key, void *value)
{
    struct growing *g = arg;
    assert_non_null(value);
    assert_true(key - g->base < MANY);
    g->seen[key - g->base] = 1;
}

/* A scan in turns of a map whose entries move between them. All keys are found at each moment. */
static void a_growing_map_is_scanned(void **state)
{
    (void)state;
    static struct growing g;
    unsigned amid = 0;
    for (uint64_t begin = 16380; begin < 16480; begin += 2) {
        struct map m;
        struct map_scan scan = {0};
        uint64_t next = 0;
        map_init(&m);
        g = (struct growing){.base = begin << 32};
        for (; next < begin; next++)
            assert_int_equal(map_put(&m, g.base + next, &m), PARAMO_OK);
        bool more = true;
        for (uint64_t turn = 0; more; turn++) {
            more = map_scan(&m, &scan, 1000, seen_once_more, &g);
            for (unsigned i = 0; i < begin % 11 && next < MANY; i++)
                assert_int_equal(map_put(&m, g.base + next++, &m), PARAMO_OK);
            if (turn % 3 == 0 && next > begin) /* one that came in between goes again */
                assert_non_null(map_remove(&m, g.base + --next));
            amid += m.old != NULL;
            for (uint64_t key = turn == 5 ? 0 : begin; key < begin; key++)
                assert_non_null(map_get(&m, g.base + key));
        }
        for (uint64_t key = 0; key < begin; key++)
            assert_true(g.seen[key]);
        map_fini(&m);
    }
    assert_true(amid > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_carry_their_cause),
        cmocka_unit_test(log_lines_reach_the_sink_by_level),
        cmocka_unit_test(mix64_is_a_bijection_on_what_we_try),
        cmocka_unit_test(map_behaves_like_an_array),
        cmocka_unit_test(map_is_scanned_in_turns),
        cmocka_unit_test(map_grows_in_steps),
        cmocka_unit_test(a_growing_map_is_scanned),
        cmocka_unit_test(cursor_gives_back_what_it_took),
        cmocka_unit_test(mailbox_keeps_each_senders_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
