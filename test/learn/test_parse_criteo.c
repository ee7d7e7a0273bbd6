/* Criteo TSV: columns, missing values, buckets, bad lines. */
#include "learn/data/parse.h"
#include "learn/support_parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void parse(unsigned bits, const char *text)
{
    parse_with(&(struct parse_settings){.format = PARSE_CRITEO, .hash_bits = bits}, text, strlen(text));
}

/* A row with these columns, the rest missing. */
static const char *row(const char *label, int column, const char *value)
{
    static char text[256];
    strcpy(text, label);
    for (int i = 0; i < PARSE_CRITEO_FIELDS; i++) {
        strcat(text, "\t");
        strcat(text, i == column ? value : "");
    }
    return text;
}

static uint64_t key_of(int column, const char *value)
{
    parse(0, row("1", column, value));
    assert_string_equal(bad_text[0], "");
    assert_int_equal(buffer.rows, 1);
    return buffer.key[column];
}

static void rows_have_39_features(void **s)
{
    (void)s;
    char text[1024] = "";
    strcat(text, row("0", 13, "68fd1e64"));
    strcat(text, "\r\n");
    strcat(text, row("1", 38, "3a171ecb"));
    strcat(text, "\n\n");
    strcat(text, row("-1", 0, "-1"));
    parse(0, text);
    assert_string_equal(bad_text[0], "");
    assert_int_equal(buffer.rows, 3);
    assert_int_equal(buffer.features, 3 * 39);
    assert_int_equal(buffer.lines, 4);
    assert_true(buffer.has_field && !buffer.not_one);
    assert_true(buffer.label[0] == 0 && buffer.label[1] == 1 && buffer.label[2] == 0);
    for (int i = 0; i < 39; i++) {
        assert_int_equal(buffer.field[39 + i], i);
        for (int k = 0; k < i; k++) { /* missing is its own token in each field */
            assert_true(buffer.key[i] != buffer.key[k]);
        }
    }
    assert_true(buffer.key[14] == buffer.key[39 + 14]);
    assert_true(buffer.key[13] != buffer.key[39 + 13]);
}

static void integers_fall_into_buckets(void **s)
{
    (void)s;
    /* floor(ln(v)^2): 3, 4 -> 1; 5 -> 2; 1023 and 1024 -> 48; 1100 -> 49; 1000000 -> 190 */
    assert_true(key_of(2, "3") == key_of(2, "4"));
    assert_true(key_of(2, "4") != key_of(2, "5"));
    assert_true(key_of(2, "1023") == key_of(2, "1024"));
    assert_true(key_of(2, "1024") != key_of(2, "1100"));
    assert_true(key_of(2, "1000000") == key_of(2, "1000001"));
    /* 0, 1, 2, negatives and missing stand for themselves, apart from the buckets 0, 1, 2 */
    static const char *const own[] = {"", "0", "1", "2", "3", "5", "-1", "-2", "-3", "1000000"};
    for (int i = 0; i < 10; i++) {
        for (int k = 0; k < i; k++) {
            assert_true(key_of(2, own[i]) != key_of(2, own[k]));
        }
        assert_true(key_of(2, own[i]) != key_of(3, own[i]));
    }
}

static void categories_are_hashed_with_their_field(void **s)
{
    (void)s;
    assert_true(key_of(13, "68fd1e64") == key_of(13, "68fd1e64"));
    assert_true(key_of(13, "68fd1e64") != key_of(14, "68fd1e64"));
    assert_true(key_of(13, "68fd1e64") != key_of(13, "68fd1e65"));
    assert_true(key_of(13, "a") != key_of(13, ""));
    uint64_t whole = key_of(20, "68fd1e64");
    parse(20, row("1", 20, "68fd1e64"));
    assert_true(buffer.key[20] == (whole & 0xfffff));
}

static void bad(const char *bad_row, const char *what)
{
    char text[1024], line[512];
    strcpy(line, bad_row); /* it may be row()'s own buffer */
    strcpy(text, row("1", 5, "7"));
    strcat(text, "\n");
    strcat(text, line);
    strcat(text, "\n");
    strcat(text, row("1", 5, "8"));
    parse(0, text);
    if (strstr(bad_text[0], what) == NULL) {
        fail_msg("\"%s\", not \"%s\"", bad_text[0], what);
    }
    assert_int_equal(bad_lines[0], 1);
    assert_int_equal(buffer.rows, 2);
    assert_int_equal(buffer.features, 78);
}

static void bad_lines_say_why(void **s)
{
    (void)s;
    char more[300];
    (void)snprintf(more, sizeof more, "%s\tx", row("1", 38, "abc"));
    bad("1\t2\t3", "fewer than 40 columns");
    bad(more, "more than 40 columns");
    bad(row("1", 3, "1x"), "expected a tab after a column, found 'x'");
    bad(row("1", 3, "x"), "expected an integer, found 'x'");
    bad(row("1", 3, "99999999999999999999"), "expected an integer");
    bad(row("2", 3, "1"), "expected a label");
    bad(row("", 3, "1"), "expected a label");
    bad(row("1", 20, "a b"), "expected a tab");
}

static void rows_without_labels_have_the_same_keys(void **s)
{
    (void)s;
    static const struct parse_settings none = {.format = PARSE_CRITEO, .label = {.kind = LABEL_NONE}};
    const char *labelled = row("1", 13, "68fd1e64");
    uint64_t want[PARSE_CRITEO_FIELDS];
    parse(0, labelled);
    memcpy(want, buffer.key, sizeof want);
    parse(0, labelled + 2);
    assert_string_equal(bad_text[0], "expected a label, 0 or 1 (or -1 or +1), found '\\x09'");
    for (int i = 0; i < 2; i++) { /* with the label, and without */
        const char *line = labelled + (i == 0 ? 0 : 2);
        parse_with(&none, line, strlen(line));
        assert_string_equal(bad_text[0], "");
        assert_true(buffer.rows == 1 && buffer.label[0] != buffer.label[0]);
        assert_memory_equal(buffer.key, want, sizeof want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_39_features),
        cmocka_unit_test(integers_fall_into_buckets),
        cmocka_unit_test(categories_are_hashed_with_their_field),
        cmocka_unit_test(bad_lines_say_why),
        cmocka_unit_test(rows_without_labels_have_the_same_keys),
    };
    return cmocka_run_group_tests(tests, NULL, parse_teardown);
}
