#include "learn/data/holdout.h"
#include "learn/data/reader.h"
#include "learn/support_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Row i of the text has the keys 2 i and 2 i + 1 and a value of its own. */
enum { ROWS = 3000, PART = 4096 };

static int make_text(void **state)
{
    (void)state;
    char *text = malloc(ROWS * 40);
    size_t len = 0;
    assert_non_null(text);
    for (unsigned i = 0; i < ROWS; i++)
        len += (size_t)sprintf(text + len, "%u %u:1 %u:%u\n", i % 3 == 0, 2 * i, 2 * i + 1, i + 2);
    text_write_file(text_path("plain"), text, len);
    text_write_gzip(text_path("gzip"), text, len, 3);
    free(text);
    return 0;
}

static int drop_text(void **state)
{
    (void)state;
    text_cleanup();
    return 0;
}

static size_t sides(uint32_t stream, uint64_t index, unsigned percent, uint8_t side[ROWS])
{
    size_t out = 0;
    holdout_sides(stream, index, percent, ROWS, side);
    for (size_t r = 0; r < ROWS; r++)
        out += side[r] == HOLDOUT_MEASURE;
    return out;
}

static void test_the_share_is_about_what_was_asked_for(void **state)
{
    (void)state;
    uint8_t a[ROWS], b[ROWS];
    assert_int_equal(sides(0, 0, 0, a), 0);
    for (unsigned percent = 1; percent <= HOLDOUT_PERCENT_MAX; percent++) {
        size_t want = ROWS * percent / 100, got = sides(3, 70, percent, a);
        assert_true(got + 100 > want && got < want + 100);
    }
    (void)sides(0, 0, 50, a);
    (void)sides(0, 0, 50, b);
    assert_memory_equal(a, b, sizeof a);
    (void)sides(0, 1, 50, b); /* another part, another file: other rows */
    assert_memory_not_equal(a, b, sizeof a);
    (void)sides(1, 0, 50, b);
    assert_memory_not_equal(a, b, sizeof a);
}

static struct reader *open_one(const char *name, int cache, unsigned percent)
{
    const char *path = text_path(name);
    struct reader_options o;
    struct reader *r;
    reader_options_init(&o);
    o.part_bytes = PART;
    o.hold_out = percent;
    o.cache = cache;
    assert_int_equal(reader_open(&o, &path, 1, &r), PARAMO_OK);
    return r;
}

/* Marks the rows of a block, which must be whole and in order. */
static void mark(const struct block *b, uint8_t side, uint8_t seen[ROWS])
{
    uint64_t before = 0;
    for (size_t r = 0; r < b->rows; r++) {
        const size_t at = b->offset[r];
        const uint64_t row = b->key[at] / 2;
        assert_int_equal(b->offset[r + 1], at + 2);
        assert_true(row < ROWS && (r == 0 || row > before) && seen[row] == 9);
        assert_true(b->key[at] == 2 * row && b->key[at + 1] == 2 * row + 1);
        assert_true(b->value[at] == 1 && b->value[at + 1] == (float)(row + 2));
        assert_true(b->label[r] == (float)(row % 3 == 0));
        seen[row] = side;
        before = row;
    }
    assert_int_equal(b->offset[b->rows], b->features);
}

/* Reads one side, or both in turn, and marks each row by its side. */
static void read_sides(struct reader *r, int first, int last, uint8_t seen[ROWS])
{
    for (uint64_t k = 0;; k++) {
        for (int side = first; side <= last; side++) {
            const struct block *b;
            int ended;
            assert_int_equal((side == HOLDOUT_LEARN ? reader_part : reader_held_out)(r, 0, k, &b, &ended),
                             PARAMO_OK);
            if (ended)
                return;
            mark(b, (uint8_t)side, seen);
            reader_release(r, b);
        }
    }
}

static void test_both_sides_are_the_data_however_it_is_read(void **state)
{
    (void)state;
    uint8_t want[ROWS], seen[ROWS];
    memset(want, 9, sizeof want);
    struct reader *r = open_one("plain", 1, 10);
    read_sides(r, HOLDOUT_LEARN, HOLDOUT_MEASURE, want);
    reader_close(r);
    size_t out = 0;
    for (size_t i = 0; i < ROWS; i++) {
        assert_true(want[i] == HOLDOUT_LEARN || want[i] == HOLDOUT_MEASURE);
        out += want[i] == HOLDOUT_MEASURE;
    }
    assert_true(out > 200 && out < 400);
    for (unsigned i = 0; i < 8; i++) { /* compressed or not, kept or not, the held-out side first or last */
        memset(seen, 9, sizeof seen);
        r = open_one(i & 1 ? "gzip" : "plain", i & 2 ? 1 : 0, 10);
        read_sides(r, i & 4 ? HOLDOUT_MEASURE : HOLDOUT_LEARN, i & 4 ? HOLDOUT_MEASURE : HOLDOUT_LEARN, seen);
        read_sides(r, i & 4 ? HOLDOUT_LEARN : HOLDOUT_MEASURE, i & 4 ? HOLDOUT_LEARN : HOLDOUT_MEASURE, seen);
        assert_memory_equal(seen, want, sizeof seen);
        reader_close(r);
    }
}

static void test_what_is_held_out_is_kept_without_a_cache(void **state)
{
    (void)state;
    uint8_t seen[ROWS];
    struct reader_stats before, after;
    struct reader *r = open_one("gzip", 0, 10);
    memset(seen, 9, sizeof seen);
    read_sides(r, HOLDOUT_LEARN, HOLDOUT_LEARN, seen);
    reader_get_stats(r, &before);
    read_sides(r, HOLDOUT_MEASURE, HOLDOUT_MEASURE, seen);
    reader_get_stats(r, &after);
    assert_int_equal(before.rows_parsed, ROWS);
    assert_int_equal(after.rows_parsed, ROWS);
    assert_true(before.cache_bytes > 0 && before.cache_bytes == after.cache_bytes);
    reader_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_share_is_about_what_was_asked_for),
                                       cmocka_unit_test(test_both_sides_are_the_data_however_it_is_read),
                                       cmocka_unit_test(test_what_is_held_out_is_kept_without_a_cache)};
    return cmocka_run_group_tests(tests, make_text, drop_text);
}
