/* Rows that are moved as they stand (raw_rows.h, rearrange.h), counted (describe.h) and converted (convert.h). */
#include "learn/data/convert.h"
#include "learn/data/describe.h"
#include "learn/data/raw_rows.h"
#include "learn/data/rearrange.h"
#include "learn/support_text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 2000

/* The file's content; the caller frees it. */
static char *content(const char *path)
{
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    const size_t n = fread(text, 1, (1 << 20) - 1, f);
    assert_int_equal(ferror(f), 0);
    (void)fclose(f);
    text[n] = '\0';
    return text;
}

static void write_text(const char *name, const char *text)
{
    text_write_file(text_path(name), text, strlen(text));
}

static void expect_rows(enum parse_format format, const char *const *names, size_t n, const char *want)
{
    const char *paths[4], *text;
    char got[512] = "";
    size_t len, at = 0;
    struct raw_rows *r;
    for (size_t i = 0; i < n; i++)
        paths[i] = text_path(names[i]);
    assert_int_equal(raw_rows_open(format, paths, n, &r), PARAMO_OK);
    paramo_err err;
    while ((err = raw_rows_next(r, &text, &len)) == PARAMO_OK && text) {
        memcpy(got + at, text, len);
        at += len;
        got[at++] = '|';
    }
    if (err != PARAMO_OK)
        (void)snprintf(got + at, sizeof got - at, "%s",
                       strstr(paramo_last_error(), text_dir()) + strlen(text_dir()));
    got[err != PARAMO_OK && strlen(got) > strlen(want) ? strlen(want) : strlen(got)] = '\0';
    assert_string_equal(got, want);
    raw_rows_close(r);
}

static void rows_stand_as_they_are(void **s)
{
    (void)s;
    write_text("a.svm", "# one\n1 1:1\r\n\n  0 2:1 # x");
    write_text("b.svm", "1 3:1\n");
    expect_rows(PARSE_AUTO, (const char *const[]){"a.svm", "b.svm"}, 2, "1 1:1\r\n|  0 2:1 # x\n|1 3:1\n|");
    write_text("a.csv", "\xef\xbb\xbfy,\"a\nb\"\n1,#\n\n0,\"x\n\"\"\ny\"\n  ,\n");
    write_text("b.csv", "y,\"a\nb\"\n1,z");
    expect_rows(PARSE_AUTO, (const char *const[]){"a.csv", "b.csv"}, 2,
                "1,#\n|0,\"x\n\"\"\ny\"\n|  ,\n|1,z\n|");
    write_text("c.csv", "y,b\n1,z\n");
    expect_rows(PARSE_AUTO, (const char *const[]){"b.csv", "c.csv"}, 2,
                "1,z\n|/c.csv:1: the header differs from that of ");
    write_text("d.csv", "y,a\n1,z\n0,\"open\n1,x\n");
    expect_rows(PARSE_CSV, (const char *const[]){"d.csv"}, 1, "1,z\n|/d.csv:3: a quote that is not closed");
    write_text("e.jsonl", "{\"y\":1}\n#\n");
    expect_rows(PARSE_AUTO, (const char *const[]){"e.jsonl"}, 1, "{\"y\":1}\n|#\n|");
    write_text("f.csv", "y;a;b\n1;\"x;\n\";2\n0;1\n1;2;3\n");
    expect_rows(PARSE_AUTO, (const char *const[]){"f.csv"}, 1,
                "1;\"x;\n\";2\n|/f.csv:4: a row has fewer columns than the header, which has 3");
    write_text("f.tsv", "y\ta,b\n1\tx,y,z\n0\t1\t2\n");
    expect_rows(PARSE_AUTO, (const char *const[]){"f.tsv"}, 1,
                "1\tx,y,z\n|/f.tsv:3: a row has more columns than the header, which has 2");
    text_write_file(text_path("g.csv"), "y\0,\0a\0\n\0", 8);
    expect_rows(PARSE_AUTO, (const char *const[]){"g.csv"}, 1,
                "/g.csv: UTF-16 text; convert it to UTF-8 (iconv -f UTF-16LE ");
    text_write_file(text_path("g.csv"), "\xfe\xff\0y\0,\0a\0\n", 10);
    expect_rows(PARSE_CSV, (const char *const[]){"g.csv"}, 1,
                "/g.csv: UTF-16 text; convert it to UTF-8 (iconv -f UTF-16 ");
    write_text("g.json", " [\n  {\"y\": 1},\n {\"y\": 0}]\n");
    expect_rows(PARSE_AUTO, (const char *const[]){"g.json"}, 1,
                "/g.json: a JSON array; write each object on a line of its own (jq");
}

/* Numbers 0 .. ROWS - 1, a row each, with newlines in some. */
static void write_numbers(void)
{
    char *text = malloc(ROWS * 32), *at = text;
    assert_non_null(text);
    at += sprintf(at, "n,t\n");
    for (int i = 0; i < ROWS; i++)
        at += sprintf(at, "%d,%s\n", i, i % 3 == 0 ? "\"a\nb\"" : "c");
    text_write_file(text_path("n.csv"), text, (size_t)(at - text));
    text_write_gzip(text_path("n.csv.gz"), text, (size_t)(at - text), 1);
    free(text);
}

/* The numbers of the rows of a file that has the header, to numbers; returns how many. */
static size_t numbers_of(const char *name, int *numbers)
{
    char *text = content(text_path(name)), *p = text;
    size_t n = 0;
    assert_memory_equal(text, "n,t\n", 4);
    for (p += 4; *p != '\0';) {
        numbers[n] = (int)strtol(p, &p, 10);
        const char *rest = numbers[n] % 3 == 0 ? ",\"a\nb\"\n" : ",c\n";
        assert_memory_equal(p, rest, strlen(rest));
        p += strlen(rest);
        n++;
    }
    free(text);
    return n;
}

static void head_and_split(void **s)
{
    (void)s;
    static int a[ROWS], b[ROWS], again[ROWS];
    const char *path = text_path("n.csv");
    const struct rearrange_from from = {.paths = &path, .n = 1};
    uint64_t rows, both[2];
    char out[256], rest[256];
    (void)snprintf(out, sizeof out, "%s", text_path("out.csv"));
    (void)snprintf(rest, sizeof rest, "%s", text_path("rest.csv"));
    assert_int_equal(rearrange_head(&from, 7, out, &rows), PARAMO_OK);
    assert_int_equal(rows, 7);
    assert_int_equal(numbers_of("out.csv", a), 7);
    assert_int_equal(a[6], 6);
    assert_int_equal(rearrange_split(&from, 0.25, 3, out, rest, both), PARAMO_OK);
    assert_int_equal(both[0] + both[1], ROWS);
    assert_true(both[0] > ROWS / 4 - 100 && both[0] < ROWS / 4 + 100);
    assert_int_equal(numbers_of("out.csv", a), both[0]);
    assert_int_equal(numbers_of("rest.csv", b), both[1]);
    for (size_t i = 0, k = 0, n = 0; n < ROWS; n++) { /* both in order, and all */
        if (i < both[0] && a[i] == (int)n)
            i++;
        else
            assert_int_equal(b[k++], n);
    }
    path = text_path("n.csv.gz");
    assert_int_equal(rearrange_split(&from, 0.25, 3, out, NULL, both), PARAMO_OK);
    assert_int_equal(numbers_of("out.csv", again), both[0]);
    assert_memory_equal(a, again, both[0] * sizeof *a);
    assert_int_equal(rearrange_split(&from, 0.25, 4, out, NULL, both), PARAMO_OK);
    (void)numbers_of("out.csv", again);
    assert_memory_not_equal(a, again, 100 * sizeof *a);
}

/* Once in memory, once by way of temporary files. */
static void shuffles(void **s)
{
    (void)s;
    static const uint64_t memory[] = {1 << 20, 4096};
    static int a[ROWS], b[ROWS];
    for (size_t m = 0; m < 2; m++) {
        const char *path = text_path(m == 0 ? "n.csv" : "n.csv.gz");
        const struct rearrange_from from = {.paths = &path, .n = 1};
        uint64_t rows;
        static int seen[ROWS];
        memset(seen, 0, sizeof seen);
        assert_int_equal(rearrange_shuffle(&from, memory[m], 5, text_path("s.csv"), &rows), PARAMO_OK);
        assert_int_equal(rows, ROWS);
        assert_int_equal(numbers_of("s.csv", a), ROWS);
        double sum = 0; /* of first-half positions: about a quarter of all pairs if the order is random */
        int ascents = 0;
        for (int i = 0; i < ROWS; i++) {
            seen[a[i]]++;
            sum += i < ROWS / 2 ? a[i] : 0;
            ascents += i > 0 && a[i] > a[i - 1];
        }
        for (int i = 0; i < ROWS; i++)
            assert_int_equal(seen[i], 1);
        assert_true(fabs(sum / (ROWS / 2) - ROWS / 2) < 60);
        assert_true(abs(ascents - ROWS / 2) < 80);
        assert_int_equal(rearrange_shuffle(&from, memory[m], 5, text_path("s.csv"), &rows), PARAMO_OK);
        (void)numbers_of("s.csv", b);
        assert_memory_equal(a, b, sizeof a);
        assert_int_equal(rearrange_shuffle(&from, memory[m], 6, text_path("s.csv"), &rows), PARAMO_OK);
        (void)numbers_of("s.csv", b);
        assert_memory_not_equal(a, b, sizeof a);
    }
}

static struct reader *open_reader(const char *name, enum reader_fields fields, enum label_kind kind)
{
    struct reader_options o;
    struct reader *r;
    const char *paths[] = {text_path(name)};
    reader_options_init(&o);
    o.fields = fields;
    o.threads = 1;
    o.label.kind = kind;
    if (reader_open(&o, paths, 1, &r) != PARAMO_OK)
        fail_msg("%s", paramo_last_error());
    return r;
}

static void counts(void **s)
{
    (void)s;
    write_text("d.ffm", "1 0:7:0.5 2:8:1\n0 0:7:-3\n-1\n1 2:9:4 2:8:1 0:1:1\n");
    struct reader *r = open_reader("d.ffm", READER_FIELDS, LABEL_REAL);
    struct describe_result d;
    assert_int_equal(describe_reader(r, &d), PARAMO_OK);
    assert_int_equal(d.rows, 4);
    assert_int_equal(d.features, 6);
    assert_int_equal(d.empty, 1);
    assert_int_equal(d.row_min, 0);
    assert_int_equal(d.row_max, 3);
    assert_true(d.label_min == -1 && d.label_max == 1 && d.label_sum == 1 && d.value_min == -3 &&
                d.value_max == 4);
    assert_int_equal(d.labels, 3);
    assert_int_equal(d.label_rows[0], 2);
    assert_int_equal(d.fields, 3);
    assert_int_equal(d.field[0].features, 3);
    assert_int_equal(d.field[1].features, 0);
    assert_true(fabs(d.different - 4) < 0.1 && fabs(d.field[2].different - 2) < 0.1);
    describe_free(&d);
    reader_close(r);
    FILE *f = fopen(text_path("many.svm"), "we");
    assert_non_null(f);
    for (int i = 0; i < 50000; i++)
        (void)fprintf(f, "%d %d:1\n", i % 40, i / 2);
    assert_int_equal(fclose(f), 0);
    r = open_reader("many.svm", READER_FIELDS_IF_ANY, LABEL_REAL);
    assert_int_equal(describe_reader(r, &d), PARAMO_OK);
    assert_int_equal(d.labels, DESCRIBE_LABELS + 1);
    assert_true(fabs(d.different - 25000) < 1000);
    describe_free(&d);
    reader_close(r);
}

static void expect_converted(const char *name, enum label_kind kind, enum parse_format to, const char *want)
{
    uint64_t rows;
    struct reader *r = open_reader(name, to == PARSE_LIBSVM ? READER_NO_FIELDS : READER_FIELDS_IF_ANY, kind);
    char out[256];
    (void)snprintf(out, sizeof out, "%s", text_path("c.txt"));
    if (convert_reader(r, to, out, &rows) != PARAMO_OK)
        fail_msg("%s", paramo_last_error());
    reader_close(r);
    char *text = content(out);
    assert_string_equal(text, want);
    free(text);
}

static void converts(void **s)
{
    (void)s;
    write_text("c.ffm", "1 0:7:0.1 2:18446744073709551615:1\n-2.5 0:7:-3e10\n0\n3 2:0:0\n");
    expect_converted("c.ffm", LABEL_REAL, PARSE_LIBFFM,
                     "1 0:7:0.1 2:18446744073709551615:1\n-2.5 0:7:-3e+10\n0\n3 2:0:0\n");
    expect_converted("c.ffm", LABEL_REAL, PARSE_LIBSVM,
                     "1 7:0.1 18446744073709551615:1\n-2.5 7:-3e+10\n0\n3 0:0\n");
    expect_converted("c.ffm", LABEL_REAL, PARSE_VW,
                     "1 | 7:0.1 |b 18446744073709551615\n-2.5 | 7:-3e+10\n0 |\n3 |b 0:0\n");
    expect_converted("c.ffm", LABEL_NONE, PARSE_LIBFFM,
                     " 0:7:0.1 2:18446744073709551615:1\n 0:7:-3e+10\n\n 2:0:0\n");
    write_text("v.ffm", "1 0:1:1 1:2:1 26:3:1 27:4:1 53:5:1 62:6:1 63:7:1 100:8:1\n");
    expect_converted("v.ffm", LABEL_REAL, PARSE_VW, "1 | 1 |a 2 |z 3 |A 4 |0 5 |9 6 |_63 7 |_100 8\n");
    write_text("i.svm", "1 3:1 5:0.5\n0\n");
    expect_converted("i.svm", LABEL_REAL, PARSE_VW, "1 | 3 5:0.5\n0 |\n");
    write_text("w.vw", "1 2 |a b\n");
    struct reader *r = open_reader("w.vw", READER_NO_FIELDS, LABEL_REAL);
    uint64_t rows;
    assert_int_equal(convert_reader(r, PARSE_LIBSVM, text_path("c.txt"), &rows), PARAMO_E_INVALID);
    reader_close(r);
}

static int make_files(void **s)
{
    (void)s;
    write_numbers();
    return 0;
}

static int drop_files(void **s)
{
    (void)s;
    text_cleanup();
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_stand_as_they_are),
        cmocka_unit_test(head_and_split),
        cmocka_unit_test(shuffles),
        cmocka_unit_test(counts),
        cmocka_unit_test(converts),
    };
    return cmocka_run_group_tests(tests, make_files, drop_files);
}
