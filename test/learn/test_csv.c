/*
 * csv and tsv: rows, quotes, bad rows, headers, and parts that are cut between rows. The reference of the parts is the
 * same file read as one part.
 */
#include "learn/data/header.h"
#include "learn/data/parse_jsonl.h"
#include "learn/data/parse_line.h"
#include "learn/data/reader.h"
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

/* The text begins with its header. */
static void parse(const char *columns, enum label_kind kind, unsigned bits, const char *text)
{
    struct columns *c = columns_of(columns);
    struct table_header h;
    struct table_plan *plan = NULL;
    const size_t len = strlen(text);
    if (table_header_read(text, len, 1, 0, &h) != PARAMO_OK ||
        table_plan_new(c, &h, kind != LABEL_NONE, &plan) != PARAMO_OK)
        fail_msg("%s", paramo_last_error());
    const struct parse_settings settings = {.format = PARSE_CSV,
                                            .hash_bits = bits,
                                            .label = {.kind = kind},
                                            .columns = c,
                                            .plan = plan,
                                            .header = 1};
    parse_with(&settings, text, len);
    table_header_free(&h);
    free(plan);
    columns_release(c);
}

static uint64_t key_of(const char *column, const char *value)
{
    return XXH3_64bits_withSeed(value, strlen(value), XXH3_64bits(column, strlen(column)));
}

static uint64_t number_key(const char *column)
{
    return parse_mix(XXH3_64bits(column, strlen(column)) + 0x9e3779b97f4a7c15u);
}

static void rows(void **s)
{
    (void)s;
    parse("label=y,cat=a;b,num=n", LABEL_BINARY, 0,
          "id,b,y,n,a\r\n1,red,1,2.5,x y\r\n\r\n2,,0,,\n3,\"a \"\"q\"\",\nz\",-1, 1 "
          ",\"\"\n4,\"s\",\"1\",\"-2e1\",t");
    assert_int_equal(bads, 0);
    assert_int_equal(buffer.rows, 4);
    assert_int_equal(buffer.lines, 7);
    static const float labels[] = {1, 0, 0, 1}, values[] = {1, 2.5f, 1, 1, 1, 1, -20, 1};
    static const uint32_t offsets[] = {0, 3, 3, 5, 8};
    static const uint16_t fields[] = {1, 2, 0, 1, 2, 1, 2, 0};
    const uint64_t keys[] = {
        key_of("b", "red"), number_key("n"),  key_of("a", "x y"), key_of("b", "a \"q\",\nz"),
        number_key("n"),    key_of("b", "s"), number_key("n"),    key_of("a", "t")};
    assert_memory_equal(buffer.label, labels, sizeof labels);
    assert_memory_equal(buffer.offset, offsets, sizeof offsets);
    assert_int_equal(buffer.features, 8);
    assert_memory_equal(buffer.key, keys, sizeof keys);
    assert_memory_equal(buffer.value, values, sizeof values);
    assert_memory_equal(buffer.field, fields, sizeof fields);
    assert_true(buffer.has_field && buffer.not_one && !buffer.has_weight);
    parse("label=y,cat=a", LABEL_BINARY, 10, "a,y\nsome,1\n");
    assert_int_equal(buffer.key[0], key_of("a", "some") & 1023);
    assert_false(buffer.not_one);
}

static void missing_values(void **s)
{
    (void)s;
    parse("label=y,num=n;m,weight=w", LABEL_REAL, 0,
          "y;n;m;w\n1.5;NA;nan;\n-2;null;7;0.5\ntrue;true;False;2\n");
    assert_int_equal(bads, 0);
    static const float labels[] = {1.5f, -2, 1}, weights[] = {1, 0.5f, 2}, values[] = {7, 1, 0};
    static const uint32_t offsets[] = {0, 0, 1, 3};
    assert_memory_equal(buffer.label, labels, sizeof labels);
    assert_memory_equal(buffer.weight, weights, sizeof weights);
    assert_memory_equal(buffer.offset, offsets, sizeof offsets);
    assert_memory_equal(buffer.value, values, sizeof values);
    assert_true(buffer.has_weight);
}

static void rows_without_label(void **s)
{
    (void)s;
    parse("label=y,cat=a,weight=w", LABEL_NONE, 0, "a\nx\n\ny\n");
    assert_int_equal(buffer.rows, 2);
    assert_true(isnan(buffer.label[0]) && isnan(buffer.label[1]));
    assert_int_equal(buffer.key[1], key_of("a", "y"));
    parse("label=y,cat=a", LABEL_NONE, 0, "a,y\nx,what\n");
    assert_int_equal(bads + (int)buffer.rows, 1);
    assert_true(isnan(buffer.label[0]));
}

static void bad_rows(void **s)
{
    (void)s;
    static const struct {
        const char *row, *what;
    } bad[] = {
        {"1,2", "a row has fewer columns than the header, which has 3"},
        {"1,2,x,4", "a row has more columns than the header, which has 3"},
        {"1,2,x,", "a row has more columns"},
        {",2,x", "a row without a label"},
        {"5,2,x", "column 'y': expected a label, 0 or 1 (or -1 or +1), found '5'"},
        {"yes,2,x", "column 'y': expected a label, 0 or 1 (or -1 or +1), found 'yes'"},
        {"1,inf,x", "column 'n': inf and nan are not valid values, found 'inf'"},
        {"1,n/a,x", "column 'n': expected a number, found 'n/a'"},
        {"1,-i,x", "column 'n': expected a number, found '-i'"},
        {"1,2 3,x", "column 'n': expected a number"},
        {"1,2x,x", "column 'n'"},
        {"1,2,x\"", "a quote in column 3"},
        {"1,2,\"x\"z", "text after the closing quote of column 3"},
        {"1,2,\"x", "a quote that is not closed"},
        {"1,2,\"x\"\"", "a quote that is not closed"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "y,n,a\n0,1,\"\n\"\n%s\n", bad[i].row);
        parse("label=y,num=n,cat=a", LABEL_BINARY, 0, text);
        assert_int_equal(bads, 1);
        assert_int_equal(bad_lines[0], 3);
        assert_int_equal(buffer.rows, 1);
        assert_int_equal(buffer.features, 2);
        bad_begins(bad[i].row, bad[i].what);
    }
    /* the next row is the next record */
    parse("label=y,cat=a", LABEL_BINARY, 0, "y,a\n1,b \"c\nd\" e\n0,x\n7,\"\n\n\"\n1,z\n");
    assert_int_equal(bads, 2);
    assert_int_equal(bad_lines[0], 1);
    assert_int_equal(bad_lines[1], 4);
    assert_int_equal(buffer.rows, 2);
    assert_int_equal(buffer.lines, 8);
}

/* Any bytes: never out of bounds (the sanitizers watch), and rows, features and lines stay consistent. */
static void noise(void **s)
{
    (void)s;
    static const char alphabet[] = "01,,,\"\"\n\n\r-.ena \0\xff";
    uint64_t x = 12345;
    for (int round = 0; round < 20000; round++) {
        char text[96] = "y,n,a\n";
        const size_t begin = 6, len = begin + (size_t)(round % 88);
        size_t lines = 1;
        for (size_t i = begin; i < len; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            text[i] = alphabet[(x >> 33) % (sizeof alphabet - 1)];
            lines += text[i] == '\n';
        }
        lines += text[len - 1] != '\n';
        text[len] = '\0';
        struct columns *c = columns_of("label=y,num=n,cat=a");
        struct table_header h;
        struct table_plan *plan;
        assert_int_equal(table_header_read(text, begin, 1, 0, &h), PARAMO_OK);
        assert_int_equal(table_plan_new(c, &h, 1, &plan), PARAMO_OK);
        char *t = text_padded(text, len);
        const struct parse_settings settings = {.format = PARSE_CSV, .columns = c, .plan = plan, .header = 1};
        struct parse_buffer b = {0};
        assert_int_equal(parse_text(&settings, t, len, &b, bad_any, NULL), PARAMO_OK);
        assert_int_equal(b.offset[b.rows], b.features);
        assert_int_equal(b.lines, lines);
        parse_buffer_free(&b);
        free(t);
        free(plan);
        table_header_free(&h);
        columns_release(c);
    }
}

static void headers(void **s)
{
    (void)s;
    struct table_header h;
    char list[TABLE_LIST_MAX];
    static const char text[] = "\xef\xbb\xbf"
                               " a ;\"b;\"\"c\n\";d,e;\r\n";
    assert_int_equal(table_header_read(text, sizeof text - 1, 0, 0, &h), PARAMO_OK);
    assert_int_equal(h.n, 4);
    assert_int_equal(h.delimiter, ';');
    assert_string_equal(table_header_list(&h, list), "a, b;\"c\\x0a, d,e, ");
    table_header_free(&h);
    static const char *const bad[][2] = {{"a,\"b", "a quote is not closed"},
                                         {"a,b\"\"c\n", "a quote in the middle of column 2"},
                                         {"a,\"b\"c\n", "a quote in the middle of column 2"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(table_header_read(bad[i][0], strlen(bad[i][0]), 1, 0, &h), PARAMO_E_FORMAT);
        assert_non_null(strstr(paramo_last_error(), bad[i][1]));
    }
    assert_int_equal(table_header_read("a,b", 3, 0, 0, &h), PARAMO_E_FORMAT);
    assert_non_null(strstr(paramo_last_error(), "no end"));
    assert_int_equal(table_header_read("\xff\xfe\x61\0", 4, 1, 0, &h), PARAMO_E_FORMAT);
    assert_non_null(strstr(paramo_last_error(), "UTF-16"));
    static const char *const arrays[] = {"[{\"y\":1,\"a\":2},{\"y\":0}]", "\xef\xbb\xbf [\r\n\t{"};
    enum parse_format format;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(table_header_read(arrays[i], strlen(arrays[i]), 1, 0, &h), PARAMO_E_FORMAT);
        assert_non_null(strstr(paramo_last_error(), "a JSON array; write each object on a line of its own"));
        assert_int_equal(jsonl_keys(arrays[i], strlen(arrays[i]), &h), PARAMO_E_FORMAT);
        assert_non_null(strstr(paramo_last_error(), "a JSON array"));
        assert_int_equal(parse_detect(arrays[i], strlen(arrays[i]), 1, &format), PARAMO_E_FORMAT);
        assert_non_null(strstr(paramo_last_error(), "a JSON array"));
    }
    assert_int_equal(table_header_read("[a,{b\n", 7, 1, 0, &h), PARAMO_OK);
    table_header_free(&h);
    assert_int_equal(table_header_read("a", 1, 1, 0, &h), PARAMO_OK);
    assert_int_equal(h.n, 1);
    table_header_free(&h);
    assert_int_equal(table_sniff("a|b|c,d\n,,,,", 12), '|');
    assert_int_equal(table_sniff("\"a;;;\"\tb", 8), '\t');

    struct columns *c = columns_of("label=y,cat=a;b");
    struct table_plan *plan;
    static const char *const files[][2] = {{"y,a,c", "has no column 'b' (cat); its columns: y, a, c"},
                                           {"a,b", "has no column 'y' (label)"},
                                           {"\n\n", "its first line is empty"},
                                           {"\xef\xbb\xbf", "its first line is empty"},
                                           {"a,b,y,a", "has two columns 'a'"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_int_equal(table_header_read(files[i][0], strlen(files[i][0]), 1, 0, &h), PARAMO_OK);
        assert_int_equal(table_plan_new(c, &h, 1, &plan), PARAMO_E_FORMAT);
        if (!strstr(paramo_last_error(), files[i][1]))
            fail_msg("%s", paramo_last_error());
        table_header_free(&h);
    }
    columns_release(c);
}

static void quotes(void **s)
{
    (void)s;
    char text[64];
    for (unsigned seed = 1; seed < 2000; seed++) {
        unsigned x = seed;
        size_t len = seed % 60;
        int odd = 0;
        const char *want = NULL;
        for (size_t i = 0; i < len; i++) {
            x = x * 1103515245 + 12345;
            text[i] = "\"\n#\x22\xa2!ab"[x >> 16 & 7];
            odd ^= text[i] == '"';
            if (!want && !odd && text[i] == '\n')
                want = text + i;
        }
        assert_int_equal(table_quotes_odd(text, text + len), odd);
        odd = 0;
        assert_ptr_equal(table_record_end(text, text + len, &odd), want);
        assert_true(!want || !odd);
    }
}

/* ---- files ---- */

#define ROWS 400

static char *table;
static size_t table_len;

/* Rows of very different lengths, with newlines and quotes within quotes; the number of row i is its one feature. */
static int make_table(void **s)
{
    (void)s;
    table = malloc(ROWS * 400);
    assert_non_null(table);
    table_len = (size_t)sprintf(table, "n,\"a\nb\",y\n");
    for (int i = 0; i < ROWS; i++) {
        table_len += (size_t)sprintf(table + table_len, "%d,", i);
        if (i % 3 == 0)
            table_len += (size_t)sprintf(table + table_len, "plain");
        else
            table_len += (size_t)sprintf(table + table_len, "\"%*s\n\n\"\"%*s\n\"\"\"", i % 7 * 11, "x",
                                         i % 5 * 20, "y\n0,y,1\n");
        table_len += (size_t)sprintf(table + table_len, ",%d%s\n", i % 2, i % 4 == 0 ? "\r" : "");
    }
    text_write_file(text_path("t.csv"), table, table_len);
    text_write_gzip(text_path("t.csv.gz"), table, table_len, 2);
    text_write_zstd(text_path("t.csv.zst"), table, table_len, 2);
    return 0;
}

static int drop_table(void **s)
{
    free(table);
    return parse_teardown(s);
}

static struct reader *open_table(const char *name, const char *columns, size_t part_bytes)
{
    struct reader_options o;
    struct reader *r;
    reader_options_init(&o);
    o.part_bytes = part_bytes;
    o.threads = 2;
    o.columns = columns_of(columns);
    const char *paths[] = {text_path(name)};
    if (reader_open(&o, paths, 1, &r) != PARAMO_OK)
        fail_msg("%s", paramo_last_error());
    columns_release(o.columns);
    return r;
}

/* The parts from the last to the first, so that nothing is known of those before. */
static void parts_hold_whole_rows(void **s)
{
    (void)s;
    static const char *const names[] = {"t.csv", "t.csv.gz", "t.csv.zst"};
    static const size_t sizes[] = {1, 7, 64, 333, 4096, 1 << 20};
    for (size_t f = 0; f < sizeof names / sizeof *names; f++)
        for (size_t z = f == 0 ? 0 : 2; z < sizeof sizes / sizeof *sizes; z++)
            for (int down = 0; down < (f == 0 ? 2 : 1); down++) {
                struct reader *r = open_table(names[f], "label=y,num=n", sizes[z]);
                const uint64_t parts = (table_len + sizes[z] - 1) / sizes[z];
                uint64_t rows_read = 0;
                for (uint64_t i = 0; i < parts; i++) {
                    const struct block *b;
                    int ended;
                    if (reader_part(r, 0, down ? parts - 1 - i : i, &b, &ended) != PARAMO_OK)
                        fail_msg("%s: %s", names[f], paramo_last_error());
                    assert_false(ended);
                    for (size_t k = 0; k < b->rows; k++) {
                        const uint64_t row = down ? ROWS - rows_read - b->rows + k : rows_read + k;
                        assert_true((b->value ? b->value[k] : 1.0f) == (float)row);
                        assert_true(b->label[k] == (float)(row % 2));
                    }
                    rows_read += b->rows;
                    reader_release(r, b);
                }
                assert_int_equal(rows_read, ROWS);
                reader_close(r);
            }
}

static void bad_rows_have_their_line(void **s)
{
    (void)s;
    char copy[128];
    const char *bad = "\n399,";
    char *at = memmem(table, table_len, bad, strlen(bad));
    assert_non_null(at);
    size_t line = 1;
    for (char *p = table; p <= at; p++)
        line += *p == '\n';
    at[1] = 'x';
    text_write_file(text_path("bad.csv"), table, table_len);
    text_write_gzip(text_path("bad.csv.gz"), table, table_len, 1);
    at[1] = '3';
    for (int i = 0; i < 4; i++) {
        const struct block *b = NULL;
        struct reader *r =
            open_table(i % 2 ? "bad.csv.gz" : "bad.csv", "label=y,num=n", i < 2 ? 100 : 1 << 20);
        paramo_err err;
        while ((err = reader_next(r, &b)) == PARAMO_OK && b)
            reader_release(r, b);
        assert_int_equal(err, PARAMO_E_FORMAT);
        (void)snprintf(copy, sizeof copy, ":%zu: column 'n': expected a number, found 'x99'", line);
        if (!strstr(paramo_last_error(), copy))
            fail_msg("%s, not %s", paramo_last_error(), copy);
        reader_close(r);
    }
}

static void the_star_takes_the_files_columns(void **s)
{
    (void)s;
    const char *paths[] = {text_path("t.csv.gz")};
    struct columns *c = columns_of("label=y,cat=*,ignore=n");
    assert_int_equal(columns_resolve(c, PARSE_AUTO, paths, 1), PARAMO_OK);
    assert_int_equal(columns_count(c), 3);
    assert_string_equal(columns_at(c, 2)->name, "a\nb");
    columns_release(c);
    c = columns_of("label=y,cat=*,ignore=m");
    assert_int_equal(columns_resolve(c, PARSE_AUTO, paths, 1), PARAMO_E_FORMAT);
    assert_non_null(strstr(paramo_last_error(), "has no column 'm', which --columns ignores"));
    columns_release(c);
    c = columns_of("label=y,cat=*");
    paths[0] = "-";
    assert_int_equal(columns_resolve(c, PARSE_AUTO, paths, 1), PARAMO_E_INVALID);
    columns_release(c);
}

static void which_format(void **s)
{
    (void)s;
    static const struct {
        const char *name, *text;
        enum parse_format format;
    } files[] = {{"x.csv", "a\tb\n", PARSE_CSV}, {"x.tsv.gz", "a,b\n", PARSE_TSV},
                 {"x.TAB", "a,b\n", PARSE_TSV},  {"x.CSV.zst", "a\tb\n", PARSE_CSV},
                 {"x", "a\tb\n", PARSE_TSV},     {NULL, "a;b\n", PARSE_CSV},
                 {"tsv", "a\n", PARSE_CSV}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_int_equal(parse_detect_columns(files[i].name, files[i].text, strlen(files[i].text)),
                         files[i].format);
    enum parse_format format;
    static const char *const like[][2] = {{"id,click\n1,0\n", "looks like CSV with a header"},
                                          {"id\tclick\nx\t0\n", "its columns: id, click"},
                                          {"1,2,3\n4,5,6\n", "looks like CSV without a header"},
                                          {"a,b\nc\n", "none of the first 2 lines"},
                                          {"a,b\n", "its only line"}};
    for (size_t i = 0; i < sizeof like / sizeof *like; i++) {
        assert_int_equal(parse_detect(like[i][0], strlen(like[i][0]), 1, &format), PARAMO_E_FORMAT);
        if (!strstr(paramo_last_error(), like[i][1]))
            fail_msg("%s, not %s", paramo_last_error(), like[i][1]);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),
        cmocka_unit_test(missing_values),
        cmocka_unit_test(rows_without_label),
        cmocka_unit_test(bad_rows),
        cmocka_unit_test(noise),
        cmocka_unit_test(headers),
        cmocka_unit_test(quotes),
        cmocka_unit_test(parts_hold_whole_rows),
        cmocka_unit_test(bad_rows_have_their_line),
        cmocka_unit_test(the_star_takes_the_files_columns),
        cmocka_unit_test(which_format),
    };
    return cmocka_run_group_tests(tests, make_table, drop_table);
}
