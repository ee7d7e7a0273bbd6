/* libsvm and libffm, good and bad lines, and telling the format. */
#include "learn/data/parse.h"
#include "learn/data/parse_line.h"
#include "learn/support_parse.h"
#include "learn/support_text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void parse(enum parse_format format, unsigned bits, const char *text)
{
    parse_with(&(struct parse_settings){.format = format, .hash_bits = bits}, text, strlen(text));
}

static void libsvm_rows(void **s)
{
    (void)s;
    parse(PARSE_LIBSVM, 0,
          "1 3:1 18446744073709551615:0.5\n-1 qid:7 0:-2e1 # a comment 5:1\n\n# only a comment\n+1\n0\t7:1\t "
          "8:1 \r\n-1.0 9:1");
    assert_int_equal(bads, 0);
    assert_int_equal(buffer.rows, 5);
    assert_int_equal(buffer.lines, 7);
    assert_int_equal(buffer.features, 6);
    assert_false(buffer.has_field);
    assert_true(buffer.not_one);
    static const float labels[] = {1, 0, 1, 0, 0};
    static const uint32_t offsets[] = {0, 2, 3, 3, 5, 6};
    static const uint64_t keys[] = {3, UINT64_MAX, 0, 7, 8, 9};
    static const float values[] = {1, 0.5f, -20, 1, 1, 1};
    assert_memory_equal(buffer.label, labels, sizeof labels);
    assert_memory_equal(buffer.offset, offsets, sizeof offsets);
    assert_memory_equal(buffer.key, keys, sizeof keys);
    assert_memory_equal(buffer.value, values, sizeof values);
}

static void libffm_rows(void **s)
{
    (void)s;
    parse(PARSE_LIBFFM, 0, "1 0:62385:1 65535:123456789012:1\n0 3:5:1.0\n");
    assert_int_equal(bads, 0);
    assert_int_equal(buffer.rows, 2);
    assert_false(buffer.not_one);
    static const uint64_t keys[] = {62385, 123456789012, 5};
    static const uint16_t fields[] = {0, 65535, 3};
    assert_memory_equal(buffer.key, keys, sizeof keys);
    assert_memory_equal(buffer.field, fields, sizeof fields);

    struct block block;
    assert_int_equal(parse_block(&buffer, 1, &block), PARAMO_OK);
    assert_null(block.value);
    assert_int_equal(block.rows, 2);
    assert_int_equal(block.offset[2], 3);
    assert_memory_equal(block.key, keys, sizeof keys);
    assert_memory_equal(block.field, fields, sizeof fields);
    block_free(&block);
}

static void hashed_keys(void **s)
{
    (void)s;
    parse(PARSE_LIBFFM, 10, "1 0:1:1 1:2:1 2:1:1\n");
    assert_true(buffer.key[0] == parse_hash_id(1, 10));
    assert_true(buffer.key[1] == parse_hash_id(2, 10));
    assert_true(buffer.key[0] == buffer.key[2]);
    assert_true(buffer.key[0] < 1024 && buffer.key[1] < 1024);
    assert_true(parse_hash_id(1, 63) != parse_hash_id(2, 63));
}

/* A bad line names its place and cause and leaves nothing behind; the lines around it are kept. */
static void bad_line(enum parse_format format, const char *line, const char *what)
{
    char text[512], good[32];
    strcpy(good, format == PARSE_LIBFFM ? "1 1:2:1\n" : "1 2:1\n");
    strcpy(text, good);
    strcat(text, line);
    strcat(text, "\n");
    strcat(text, good);
    parse(format, 0, text);
    assert_int_equal(bads, 1);
    assert_int_equal(bad_lines[0], 1);
    if (strstr(bad_text[0], what) == NULL) {
        fail_msg("'%s' gives \"%s\", not \"%s\"", line, bad_text[0], what);
    }
    assert_int_equal(buffer.rows, 2);
    assert_int_equal(buffer.features, 2);
    assert_int_equal(buffer.offset[2], 2);
    assert_int_equal(buffer.key[1], 2);
    assert_false(buffer.not_one);
}

static void bad_lines_say_why(void **s)
{
    (void)s;
    bad_line(PARSE_LIBSVM, "2 1:1", "expected a label");
    bad_line(PARSE_LIBSVM, "x", "found 'x'");
    bad_line(PARSE_LIBSVM, "1 1:2 5", "expected ':' after the index, found the end of the line");
    bad_line(PARSE_LIBSVM, "1 1:2 :5", "expected an index, found ':5'");
    bad_line(PARSE_LIBSVM, "1 -1:2", "expected an index");
    bad_line(PARSE_LIBSVM, "1 18446744073709551616:2", "above 2^64-1");
    bad_line(PARSE_LIBSVM, "1 1:", "expected a number, found the end of the line");
    bad_line(PARSE_LIBSVM, "1 1:2x", "expected a space after the value");
    bad_line(PARSE_LIBSVM, "1 1:1\x80", "expected a space after the value");
    bad_line(PARSE_LIBSVM, "1 1:nan", "inf and nan");
    bad_line(PARSE_LIBSVM, "1 1:-inf", "inf and nan");
    bad_line(PARSE_LIBSVM, "1 1:1e99", "beyond the range");
    bad_line(PARSE_LIBSVM, "1 1:2:3", "expected a space after the value");
    bad_line(PARSE_LIBSVM, "1 qid:x 1:1", "expected an index");
    bad_line(PARSE_LIBSVM, "1,2,3", "expected a label");
    bad_line(PARSE_LIBFFM, "1 1:2", "expected ':' after the index");
    bad_line(PARSE_LIBFFM, "1 65536:2:1", "field number above 65535");
    bad_line(PARSE_LIBFFM, "1 99999999999999999999:2:1", "field number above 65535");
    bad_line(PARSE_LIBFFM, "1 1:1:5 1", "expected ':' after the field number");
    bad_line(PARSE_LIBFFM, "1 1:x:5", "expected an index, found 'x:5'");
    parse(PARSE_LIBSVM, 0, "");
    assert_int_equal(buffer.rows + buffer.lines, 0);

    char zero[] = "1 1:1\n1 2:\0001 3:1\n";
    parse_with(&(struct parse_settings){.format = PARSE_LIBSVM}, zero, sizeof zero - 1);
    assert_non_null(strstr(bad_text[0], "zero byte"));
    assert_int_equal(bad_lines[0], 1);
}

/* What is left of a bad row decides nothing about the rows after it. */
static void numbers_of_bad_rows(void **s)
{
    (void)s;
    parse(PARSE_LIBSVM, 0, "1 1:2 2:3 x\n0 3:1 4:1\n");
    assert_int_equal(bads, 1);
    assert_false(buffer.not_one);
    parse(PARSE_LIBSVM, 0, "1 1:2 2:3 x\n0 3:4 4:1\n");
    assert_true(buffer.not_one);
}

/* Rows of numbers, in the short forms that are read at once and in others, against strtof and strtoull. */
static void features_as_strtof(void **s)
{
    (void)s;
    enum { FEATURES = 40 };
    static const char *const forms[] = {"%.0f", "%.1f", "%.3f", "%.6f",  "%.7f", "%.8f", "%.9f",
                                        "%g",   "%e",   "%.9g", "%.17g", "+%g",  "0%g",  "%.0f."};
    uint64_t x = 99;
    for (int round = 0; round < 4000; round++) {
        char text[FEATURES * 64] = "1", *at = text + 1;
        char id[FEATURES][24], value[FEATURES][40];
        unsigned field[FEATURES];
        const int fields = round % 2;
        for (int i = 0; i < FEATURES; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            const unsigned any = (unsigned)(x >> 33);
            const double v = (any % 3 ? 1 : -1) * (double)(any / 3 % 1000003) / (any % 7 ? 1e6 : 3.0);
            (void)snprintf(id[i], sizeof id[i], "%llu", (unsigned long long)(x >> (any % 60)));
            (void)snprintf(value[i], sizeof value[i], forms[any / 7 % (sizeof forms / sizeof *forms)],
                           any / 128 % 4 ? (v < 0 && any % 5 ? -v : v) : 1.0);
            field[i] = any / 512 % (any % 2 ? 10 : 65536);
            at += fields ? sprintf(at, " %u:%s:%s", field[i], id[i], value[i])
                         : sprintf(at, " %s:%s", id[i], value[i]);
        }
        parse(fields ? PARSE_LIBFFM : PARSE_LIBSVM, 0, text);
        if (strstr(text, "+-") || strstr(text, "0-")) { /* "+%g" of a number below 0 is none */
            assert_int_equal(bads, 1);
            continue;
        }
        assert_int_equal(bads, 0);
        assert_int_equal(buffer.features, FEATURES);
        assert_true(buffer.not_one);
        for (int i = 0; i < FEATURES; i++) {
            const float want = strtof(value[i], NULL);
            assert_true(buffer.key[i] == strtoull(id[i], NULL, 10));
            assert_memory_equal(&buffer.value[i], &want, sizeof want);
            assert_true(!fields || buffer.field[i] == field[i]);
        }
    }
}

static paramo_err on_bad_stop(void *arg, uint64_t line, const char *what)
{
    return paramo_error_set(PARAMO_E_FORMAT, "%s%llu %s", (const char *)arg, (unsigned long long)line, what);
}

static void the_handler_can_stop(void **s)
{
    (void)s;
    static char text[] = "1 1:1\nbad\nworse\n\n\n\n\n\n\n\n\n\n";
    char name[] = "at ";
    assert_int_equal(parse_text(&(struct parse_settings){.format = PARSE_LIBSVM, .hash_bits = 0}, text, 16,
                                &buffer, on_bad_stop, name),
                     PARAMO_E_FORMAT);
    assert_non_null(strstr(paramo_last_error(), "at 1 expected a label"));
}

/* Any bytes: never out of bounds (the sanitizers watch), and rows and features stay consistent. */
static void noise(void **s)
{
    (void)s;
    static const char alphabet[] = "0123456789:,. \n\t\r#-+eqid1111:: \0\xff";
    uint64_t x = 12345;
    for (int round = 0; round < 20000; round++) {
        char text[96];
        size_t len = (size_t)(round % 96);
        for (size_t i = 0; i < len; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            text[i] = alphabet[(x >> 33) % (sizeof alphabet - 1)];
        }
        char *t = text_padded(text, len);
        for (int f = PARSE_LIBSVM; f < PARSE_FORMATS; f++) {
            struct parse_buffer b = {0};
            paramo_err err =
                parse_text(&(struct parse_settings){.format = (enum parse_format)f, .hash_bits = 0}, t, len,
                           &b, on_bad_stop, "");
            if (err == PARAMO_OK) {
                assert_int_equal(b.offset[b.rows], b.features);
            }
            parse_buffer_free(&b);
        }
        free(t);
    }
}

static void detect(const char *text, int whole, int want)
{
    enum parse_format format = PARSE_AUTO;
    paramo_err err = parse_detect(text, strlen(text), whole, &format);
    assert_int_equal(err, want < 0 ? PARAMO_E_FORMAT : PARAMO_OK);
    if (want >= 0) {
        assert_int_equal(format, want);
    }
}

static void formats_are_told(void **s)
{
    (void)s;
    detect("1 1:1\n", 1, PARSE_LIBSVM);
    detect("# a comment\n\n-1\n+1 qid:3 1:0.5", 1, PARSE_LIBSVM);
    detect("1 1:2:1\n", 1, PARSE_LIBFFM);
    detect("1 1:2:1 1:2", 0, PARSE_LIBFFM);
    detect("x\n1 1:2:1 1:2\n", 0, PARSE_LIBFFM);
    detect("1\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\tabc\r\n", 1,
           PARSE_CRITEO);
    detect("1\n0\n", 1, PARSE_LIBSVM);
    detect("a,b,c\n1,2,3\n", 1, -1);
    detect("{\"x\": 1}\n", 1, -1);
    detect("12 1:1\n", 1, PARSE_LIBSVM); /* a number to predict */
    detect("3:1 4:0.5\n", 1, PARSE_LIBSVM);
    detect("1:3:1\n", 1, PARSE_LIBFFM);
    detect("a:b\n", 1, -1);
    enum parse_format format;
    assert_int_equal(parse_detect("\x7f"
                                  "ELF\0\0\0",
                                  7, 0, &format),
                     PARAMO_E_FORMAT);
    assert_non_null(strstr(paramo_last_error(), "binary data"));
    assert_int_equal(parse_detect("\xff\xfe"
                                  "1\0 \0",
                                  6, 0, &format),
                     PARAMO_E_FORMAT);
    assert_non_null(strstr(paramo_last_error(), "UTF-16"));
    detect("\xef\xbb\xbf"
           "1 1:1\n",
           1, PARSE_LIBSVM);
    detect("yes 1:1\n", 1, -1);
    assert_non_null(strstr(paramo_last_error(), "its only line, 'yes 1:1', is not in"));
    detect("# names\nlabel,id,\x01\n1,2,3\n", 1, -1);
    assert_non_null(strstr(paramo_last_error(), "the first begins 'label,id,\\x01'"));
    detect("xxxxxxxxxxxxxxxxxxxxxxxxx", 0, -1);
    assert_non_null(strstr(paramo_last_error(), "no end in 25 bytes"));
    assert_int_equal(parse_format_find("LibFFM"), PARSE_LIBFFM);
    assert_int_equal(parse_format_find("excel"), -1);
}

/* text has one row of each label; NaN in want: none. */
static void labels(const struct label_rule *rule, enum parse_format format, const char *text,
                   const float *want, size_t n)
{
    const struct parse_settings settings = {.format = format, .label = *rule};
    parse_with(&settings, text, strlen(text));
    assert_int_equal(buffer.rows, n);
    for (size_t i = 0; i < n; i++)
        assert_true(isnan(want[i]) ? isnan(buffer.label[i]) : buffer.label[i] == want[i]);
}

static void labels_are_of_the_kind_asked_for(void **s)
{
    (void)s;
    static const char text[] =
        "1 1:1\n-1 1:1\n0\n2.5 1:1\n7\t1:1\n-0 2:1\n1e3\n65535\n65536\nyes 1:1\n1:1\n1e99 1:1\n";
    static const float binary[] = {1, 0, 0, 0}, real[] = {1, -1, 0, 2.5f, 7, 0, 1000, 65535, 65536};
    static const float classes[] = {1, 0, 7, 0, 1000, 65535}, few[] = {1, 0, 7, 0};
    labels(&(struct label_rule){.kind = LABEL_BINARY}, PARSE_LIBSVM, text, binary, 4);
    assert_int_equal(bads, 8);
    assert_string_equal(bad_text[0], "expected a label, 0 or 1 (or -1 or +1), found '2.5'");
    labels(&(struct label_rule){.kind = LABEL_REAL}, PARSE_LIBSVM, text, real, 9);
    assert_int_equal(bads, 3);
    assert_string_equal(bad_text[0], "expected a label, a number, found 'yes'");
    labels(&(struct label_rule){.kind = LABEL_CLASS}, PARSE_LIBSVM, text, classes, 6);
    assert_int_equal(bads, 6);
    labels(&(struct label_rule){.kind = LABEL_CLASS, .classes = 8}, PARSE_LIBSVM, text, few, 4);
    assert_string_equal(bad_text[2], "a class that the model does not have, found '1e3'");
}

static void rows_without_labels(void **s)
{
    (void)s;
    static const struct label_rule none = {.kind = LABEL_NONE};
    static const float want[] = {NAN, NAN, NAN};
    labels(&none, PARSE_LIBSVM, "1:2 3:1\n0.5 4:1\n 5:1\nyes 1:1\n", want, 3);
    static const uint64_t keys[] = {1, 3, 4, 5};
    assert_memory_equal(buffer.key, keys, sizeof keys);
    assert_true(bads == 1 && bad_lines[0] == 3 && strstr(bad_text[0], "'yes'") != NULL);
    labels(&none, PARSE_LIBFFM, "1:2:1\n1 2:3:1\n", want, 2);
    assert_true(bads == 0 && buffer.key[0] == 2 && buffer.key[1] == 3 && buffer.field[1] == 2);
    labels(&none, PARSE_LIBFFM, "1:2\n", want, 0);
    assert_int_equal(bads, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libsvm_rows),
        cmocka_unit_test(libffm_rows),
        cmocka_unit_test(hashed_keys),
        cmocka_unit_test(bad_lines_say_why),
        cmocka_unit_test(numbers_of_bad_rows),
        cmocka_unit_test(features_as_strtof),
        cmocka_unit_test(the_handler_can_stop),
        cmocka_unit_test(noise),
        cmocka_unit_test(labels_are_of_the_kind_asked_for),
        cmocka_unit_test(rows_without_labels),
        cmocka_unit_test(formats_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, parse_teardown);
}
