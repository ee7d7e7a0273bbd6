/* Vowpal Wabbit's text format: good and bad lines, and telling it from others. */
#include "learn/data/parse.h"
#include "learn/data/parse_line.h"
#include "learn/support_parse.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include <cmocka.h>

static void parse(enum label_kind kind, unsigned bits, const char *text)
{
    const struct parse_settings settings = {.format = PARSE_VW, .hash_bits = bits, .label = {.kind = kind}};
    parse_with(&settings, text, strlen(text));
}

static uint64_t key_of(const char *space, const char *feature)
{
    const uint64_t seed = *space ? XXH3_64bits(space, strlen(space)) : 0;
    return XXH3_64bits_withSeed(feature, strlen(feature), seed);
}

static void rows(void **s)
{
    (void)s;
    parse(LABEL_BINARY, 0,
          "1 |user age:2.5 sex_m |Ad:0.5 price:-3 17\r\n\n-1 2 'tag one|\n"
          "0 0.25 second_tag| a  b:1 \t|\n# a comment\n  +1 1 0 't |9z x|user sex_m");
    assert_int_equal(bads, 1); /* "'tag one|": a word after the tag */
    assert_int_equal(bad_lines[0], 2);
    assert_int_equal(buffer.lines, 6);
    assert_int_equal(buffer.rows, 3);
    static const float labels[] = {1, 0, 1}, weights[] = {1, 0.25f, 1},
                       values[] = {2.5f, 1, -1.5f, 0.5f, 1, 1, 1, 1};
    static const uint32_t offsets[] = {0, 4, 6, 8};
    static const uint16_t fields[] = {21, 21, 27, 27, 0, 0, 62, 21};
    const uint64_t keys[] = {key_of("user", "age"), key_of("user", "sex_m"), key_of("Ad", "price"),
                             key_of("Ad", "17"),    key_of("", "a"),         key_of("", "b"),
                             key_of("9z", "x"),     key_of("user", "sex_m")};
    assert_memory_equal(buffer.label, labels, sizeof labels);
    assert_memory_equal(buffer.weight, weights, sizeof weights);
    assert_memory_equal(buffer.offset, offsets, sizeof offsets);
    assert_memory_equal(buffer.value, values, sizeof values);
    assert_memory_equal(buffer.field, fields, sizeof fields);
    assert_memory_equal(buffer.key, keys, sizeof keys);
    assert_true(buffer.has_weight && buffer.not_one && buffer.has_field);
    parse(LABEL_BINARY, 12, "1 |a b\n");
    assert_int_equal(buffer.key[0], key_of("a", "b") & 4095);
    assert_false(buffer.has_weight || buffer.not_one);
}

static void other_labels(void **s)
{
    (void)s;
    parse(LABEL_REAL, 0, "-2.5 |a b\n1e3 3 |a b\n");
    assert_true(bads == 0 && buffer.label[0] == -2.5f && buffer.label[1] == 1000 && buffer.weight[1] == 3);
    parse(LABEL_CLASS, 0, "7 |a b\n7.5 |a b\n");
    assert_true(bads == 1 && buffer.label[0] == 7);
    parse(LABEL_NONE, 0, "|a b\n'tag |a b\n5 |a b\nid| b\n");
    assert_int_equal(bads, 0);
    assert_int_equal(buffer.rows, 4);
    assert_true(isnan(buffer.label[0]) && isnan(buffer.label[2]));
}

static void bad_rows(void **s)
{
    (void)s;
    static const struct {
        const char *row, *what;
    } bad[] = {
        {"1", "expected a bar before the features, found the end of the line"},
        {"|a b", "a row without a label"},
        {"'t |a b", "a row without a label"},
        {"5 |a b", "expected a label, 0 or 1 (or -1 or +1), found '5'"},
        {"x |a b", "expected a label, an importance or a tag before the bar, found 'x'"},
        {"1 -1 |a b", "expected an importance, at least 0, found '-1'"},
        {"1 1 0.5 |a b",
         "initial predictions (a third number before the bar) are not supported, found '0.5'"},
        {"1:2 2:3 |a b", "labels of several parts (cost-sensitive, bandits) are not supported, found '1:2'"},
        {"shared |a b", "expected a label"},
        {"1 |a b:", "expected a number, found the end"},
        {"1 |a b:x", "expected a number, found 'x'"},
        {"1 |a b:1:2", "expected a blank after the name or value, found ':2'"},
        {"1 |a:2x b", "expected a blank after the name or value, found 'x'"},
        {"1 |a :3", "expected the name of a feature, found ':3'"},
        {"1 |:3 b", "expected the name of a namespace or a blank"},
        {"1 |a:1e38 b:1e38", "the value, times that of its namespace, is beyond the range of a float"},
        {"1 |a b\rc", "expected a blank after the name or value"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "0 |a b:2\n%s\n1 |a b\n", bad[i].row);
        parse(LABEL_BINARY, 0, text);
        assert_int_equal(bads, 1);
        assert_int_equal(bad_lines[0], 1);
        assert_int_equal(buffer.rows, 2);
        assert_int_equal(buffer.features, 2);
        bad_begins(bad[i].row, bad[i].what);
    }
}

static void is_told(void **s)
{
    (void)s;
    static const struct {
        const char *text;
        int format;
    } lines[] = {{"1 |a b", PARSE_VW},           {"|f x:1 y", PARSE_VW},
                 {"-1 2.5 'tag|f x", PARSE_VW},  {"1:2 2:0 |f x", PARSE_VW},
                 {"0 1 tag| x", PARSE_VW},       {"1 1:1 # |a b", PARSE_LIBSVM},
                 {"1 1:1:1 # |a", PARSE_LIBFFM}, {"id|click|site", -1},
                 {"some text | more", -1},       {"a,b|c d", -1}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        enum parse_format format = PARSE_AUTO;
        paramo_err err = parse_detect(lines[i].text, strlen(lines[i].text), 1, &format);
        if ((err == PARAMO_OK ? (int)format : -1) != lines[i].format)
            fail_msg("'%s' is format %d", lines[i].text, (int)format);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),
        cmocka_unit_test(other_labels),
        cmocka_unit_test(bad_rows),
        cmocka_unit_test(is_told),
    };
    return cmocka_run_group_tests(tests, NULL, parse_teardown);
}
