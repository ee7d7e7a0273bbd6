/* JSON lines: values, escapes, bad lines, keys, and the same keys of features as in CSV. */
#include "learn/data/columns.h"
#include "learn/data/parse.h"
#include "learn/data/parse_jsonl.h"
#include "learn/data/parse_line.h"
#include "learn/data/resolve_columns.h"
#include "learn/support_parse.h"
#include "learn/support_text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include <cmocka.h>

static void parse(const char *columns, enum label_kind kind, const char *text, size_t len)
{
    struct columns *c = columns_of(columns);
    const struct parse_settings settings = {.format = PARSE_JSONL, .label = {.kind = kind}, .columns = c};
    parse_with(&settings, text, len);
    columns_release(c);
}

static uint64_t key_of(const char *column, const char *value)
{
    return XXH3_64bits_withSeed(value, strlen(value), XXH3_64bits(column, strlen(column)));
}

static void rows(void **s)
{
    (void)s;
    static const char text[] =
        "{\"y\":1,\"a\":\"red\",\"n\":2.5e1,\"x\":{\"y\":[1,\"}\"]},\"w\":2}\r\n\n"
        " { \"n\" : -3 , \"y\" : \"0\" , \"a\" : null }\t\n"
        "{\"y\":true,\"a\":5,\"x\":[],\"n\":\"7\"}\n"
        "{\"a\":\"q\\\"\\\\\\/"
        "\\n\\u00e4\\ud83d\\ude00\",\"y\":false,\"n\":true,\"\\u0062\":\"\"}\n{\"y\":-1}";
    parse("label=y,cat=a;b,num=n,weight=w", LABEL_BINARY, text, sizeof text - 1);
    assert_int_equal(bads, 0);
    assert_int_equal(buffer.rows, 5);
    assert_int_equal(buffer.lines, 6);
    static const float labels[] = {1, 0, 1, 0, 0}, weights[] = {2, 1, 1, 1, 1},
                       values[] = {1, 25, -3, 1, 7, 1, 1};
    static const uint32_t offsets[] = {0, 2, 3, 5, 7, 7};
    static const uint16_t fields[] = {0, 2, 2, 0, 2, 0, 2};
    assert_memory_equal(buffer.label, labels, sizeof labels);
    assert_memory_equal(buffer.weight, weights, sizeof weights);
    assert_memory_equal(buffer.offset, offsets, sizeof offsets);
    assert_memory_equal(buffer.value, values, sizeof values);
    assert_memory_equal(buffer.field, fields, sizeof fields);
    assert_int_equal(buffer.key[0], key_of("a", "red"));
    assert_int_equal(buffer.key[3], key_of("a", "5"));
    assert_int_equal(buffer.key[5], key_of("a", "q\"\\/\n\xc3\xa4\xf0\x9f\x98\x80"));
    parse("label=y,cat=a", LABEL_NONE, "{\"a\":1}\n{}\n", 11);
    assert_true(buffer.rows == 2 && isnan(buffer.label[0]) && bads == 0);
}

static void bad_rows(void **s)
{
    (void)s;
    static const struct {
        const char *row, *what;
    } bad[] = {
        {"[1]", "expected '{', the start of an object, found '[1]'"},
        {"{\"y\":1", "expected ',' or '}' after the value"},
        {"{\"y\":1,}", "expected a key between quotes, found '}'"},
        {"{y:1}", "expected a key between quotes, found 'y:1}'"},
        {"{\"y\" 1}", "expected ':' after the key"},
        {"{\"y\":}", "expected a JSON value, found '}'"},
        {"{\"y\":yes}", "expected a JSON value, found 'yes}'"},
        {"{\"y\":1} 2", "expected the end of the line after the object, found '2'"},
        {"{\"y\":1,\"y\":1}", "key 'y' comes twice"},
        {"{\"a\":\"b\"}", "a row without a label"},
        {"{\"y\":2}", "column 'y': expected a label, 0 or 1 (or -1 or +1), found '2'"},
        {"{\"y\":1,\"n\":\"x\"}", "column 'n': expected a number, found 'x'"},
        {"{\"y\":1,\"n\":1.2.3}", "column 'n': expected a number, found '1.2.3'"},
        {"{\"y\":1,\"a\":[1]}", "column 'a': expected a string, a number, true, false or null, found '['"},
        {"{\"y\":1,\"a\":\"open}", "a string that is not closed"},
        {"{\"y\":1,\"a\":\"\x01\"}", "a control character in a string"},
        {"{\"y\":1,\"a\":\"\\x\"}", "expected a JSON escape after the backslash"},
        {"{\"y\":1,\"a\":\"\\ud800x\"}", "expected the second half of a surrogate pair"},
        {"{\"y\":1,\"z\":[{\"a\":1}", "an object or list that is not closed"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[160];
        (void)snprintf(text, sizeof text, "{\"y\":0,\"n\":2}\n%s\n{\"y\":0,\"a\":1}\n", bad[i].row);
        parse("label=y,cat=a,num=n", LABEL_BINARY, text, strlen(text));
        if (bads != 1 || strncmp(bad_text[0], bad[i].what, strlen(bad[i].what)) != 0)
            fail_msg("'%s' gives %d: '%s', not '%s'", bad[i].row, bads, bad_text[0], bad[i].what);
        assert_int_equal(bad_lines[0], 1);
        assert_int_equal(buffer.rows, 2);
        assert_int_equal(buffer.features, 2);
    }
}

/* Any bytes: never out of bounds (the sanitizers watch), and rows, features and lines stay consistent. */
static void noise(void **s)
{
    (void)s;
    static const char *const pieces[] = {"{",    "}",           "\"y\":",         "1",  "\"a\":", "\"b\"",
                                         ",",    "\\u",         "\\ud83d\\ude00", "\"", "[",      "]",
                                         "null", "true",        "-2.5",           "\n", " ",      "\\",
                                         "\r",   "{\"y\":1}\n", "\"n\":",         "e",  "\xff",   ":"};
    uint64_t x = 12345;
    for (int round = 0; round < 20000; round++) {
        char text[256] = "";
        size_t len = 0, lines = 0;
        for (int i = 0; i < round % 24; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            const char *piece = pieces[(x >> 33) % (sizeof pieces / sizeof *pieces)];
            memcpy(text + len, piece, strlen(piece));
            len += strlen(piece);
        }
        for (size_t i = 0; i < len; i++)
            lines += text[i] == '\n';
        lines += len > 0 && text[len - 1] != '\n';
        parse("label=y,num=n,cat=a", LABEL_BINARY, text, len);
        assert_int_equal(buffer.offset[buffer.rows], buffer.features);
        assert_int_equal(buffer.lines, lines);
        assert_true(buffer.rows + (size_t)bads <= lines);
        struct table_header keys;
        if (jsonl_keys(text, len, &keys) == PARAMO_OK)
            table_header_free(&keys);
    }
}

static void keys_and_format(void **s)
{
    (void)s;
    static const char text[] = "\n{\"b\\u0061\":1,\"n\":{\"x\":[]},\"c d\":\"v\"}\n{\"z\":1}\n";
    struct table_header keys;
    char list[TABLE_LIST_MAX];
    enum parse_format format;
    assert_int_equal(jsonl_keys(text, sizeof text - 1, &keys), PARAMO_OK);
    assert_string_equal(table_header_list(&keys, list), "ba, n, c d");
    table_header_free(&keys);
    assert_int_equal(parse_detect(text, sizeof text - 1, 1, &format), PARAMO_E_FORMAT);
    assert_non_null(strstr(paramo_last_error(), "looks like JSON lines: use --columns 'label"));
    assert_non_null(strstr(paramo_last_error(), "ba, n, c d"));
    assert_int_equal(parse_detect_columns(NULL, text, sizeof text - 1), PARSE_JSONL);
    assert_int_equal(parse_detect_columns("x.ndjson.gz", "a,b\n", 4), PARSE_JSONL);
    text_write_file(text_path("r.jsonl"), text, sizeof text - 1);
    const char *paths[] = {text_path("r.jsonl")};
    struct columns *c = columns_of("label=n,cat=*");
    assert_int_equal(columns_resolve(c, PARSE_AUTO, paths, 1), PARAMO_OK);
    assert_int_equal(columns_count(c), 3);
    assert_string_equal(columns_at(c, 2)->name, "c d");
    columns_release(c);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),
        cmocka_unit_test(bad_rows),
        cmocka_unit_test(noise),
        cmocka_unit_test(keys_and_format),
    };
    return cmocka_run_group_tests(tests, NULL, parse_teardown);
}
