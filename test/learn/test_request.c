/* Bodies of scoring requests: text, JSON, named fields, and what is wrong with them. */
#include "learn/data/columns.h"
#include "learn/serve/request.h"
#include "learn/support_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct request_model plain = {0}, fields = {.fields = 1}, hashed = {.hash_bits = 18};
static struct request_model table; /* its columns: table_columns */
static struct request request;
static struct request_error error;

static int parse(const struct request_model *model, const char *format, const char *body)
{
    memset(&error, 0, sizeof error);
    char *exact = malloc(strlen(body) + 1); /* a sanitizer sees a read beyond it */
    memcpy(exact, body, strlen(body) + 1);
    int done = request_parse(&request, model, format, exact, strlen(body), &error);
    free(exact);
    return done;
}

static int teardown(void **state)
{
    (void)state;
    request_free(&request);
    return 0;
}

static paramo_err no_bad_line(void *arg, uint64_t line, const char *what)
{
    (void)arg, (void)line, (void)what;
    return PARAMO_E_FORMAT;
}

/* The request has the features of these lines of a data file. */
static void same_rows(enum parse_format format, unsigned bits, const char *lines)
{
    struct parse_buffer want = {0};
    const struct parse_buffer *got = &request.buffer;
    char *text = text_padded(lines, strlen(lines));
    assert_int_equal(parse_text(&(struct parse_settings){.format = format,
                                                         .hash_bits = bits,
                                                         .label = {.kind = LABEL_NONE},
                                                         .columns = table.columns},
                                text, strlen(lines), &want, no_bad_line, NULL),
                     PARAMO_OK);
    assert_int_equal(got->rows, want.rows);
    assert_int_equal(got->features, want.features);
    assert_memory_equal(got->offset, want.offset, (want.rows + 1) * sizeof *want.offset);
    if (want.features > 0) {
        assert_memory_equal(got->key, want.key, want.features * sizeof *want.key);
        assert_memory_equal(got->value, want.value, want.features * sizeof *want.value);
    }
    parse_buffer_free(&want);
    free(text);
}

static void text_rows_are_as_in_a_file(void **state)
{
    (void)state;
    const char *lines = "1 3:1 9:0.5\n\n0 7:1 # why\n-1\n";
    assert_true(parse(&plain, NULL, lines));
    assert_false(request.json);
    same_rows(PARSE_LIBSVM, 0, lines);
    assert_true(parse(&hashed, "libsvm",
                      "\xef\xbb\xbf"
                      "3:1 9:0.5\r\n 7:1")); /* a mark, no labels, no end */
    same_rows(PARSE_LIBSVM, 18, "0 3:1 9:0.5\n0 7:1\n");
    assert_true(parse(&fields, NULL, "1 4:3:1\n5:3:1\n"));
    same_rows(PARSE_LIBFFM, 0, "0 4:3:1\n0 5:3:1\n");
}

static void json_rows_are_the_same(void **state)
{
    (void)state;
    assert_true(parse(&plain, NULL, " {\"rows\": [\"1 3:1 9:0.5\", \"\", \"# none\", \"7:1\"]}"));
    assert_true(request.json);
    same_rows(PARSE_LIBSVM, 0, "0 3:1 9:0.5\n0\n0\n0 7:1\n"); /* each row has its answer */
    assert_true(parse(&fields, NULL, "{\"format\": \"libffm\", \"rows\": [\"4:3:1\"]}"));
    same_rows(PARSE_LIBFFM, 0, "0 4:3:1\n");
}

static void named_fields_are_columns_of_criteo(void **state)
{
    (void)state;
    static char line[256] = "0\t5\t\t-3";
    for (int i = 3; i < 13 + 26; i++)
        strcat(line, i == 15 ? "\t68fd1e64" : i == 38 ? "\tlast" : "\t");
    strcat(line, "\n");
    assert_true(parse(&fields, NULL, "1 I1=5 C3=68fd1e64 C26=last  I3=-3\r\n"));
    assert_true(parse(&fields, NULL, "I1=5 C3=68fd1e64 C26=last I2= I3=-3"));
    same_rows(PARSE_CRITEO, 0, line);
    assert_true(parse(
        &hashed, NULL,
        "{\"rows\": [{\"C3\": \"68fd1e64\", \"I1\": 5, \"I3\": -3, \"C26\": \"last\", \"I9\": null}]}"));
    same_rows(PARSE_CRITEO, 18, line);
    assert_true(parse(&plain, NULL, line)); /* itself */
    same_rows(PARSE_CRITEO, 0, line);
    assert_true(parse(&plain, "fields", "{\"rows\": [{}, \"\", \"0\"]}"));
    assert_int_equal(request.buffer.rows, 3);
}

/* Objects of a model of a table, hashed or not, are its JSON lines. */
static void objects_are_rows_of_a_table(void **state)
{
    (void)state;
    struct columns *columns;
    assert_int_equal(columns_parse("label=click,weight=w,cat=site;app,num=age", &columns), PARAMO_OK);
    static const char lines[] =
        "{\"site\":\"a \\\"b\\\"\",\"app\":7,\"age\":0.1}\n{\"age\":null,\"app\":\"\"}\n"
        "{\"app\":0.25,\"age\":-3e10,\"site\":true}\n{}\n";
    for (unsigned bits = 0; bits <= 18; bits += 18) {
        table = (struct request_model){.hash_bits = bits, .fields = 1, .columns = columns};
        assert_true(
            parse(&table, NULL,
                  "{\"rows\": [{\"site\": \"a \\\"b\\\"\", \"app\": 7, \"click\": 1, \"age\": 0.1, \"w\": 2},"
                  "{\"age\": null, \"app\": \"\", \"more\": [1, {}]},"
                  "{\"app\": 0.25, \"age\": -3e10, \"site\": true}, {}]}"));
        assert_int_equal(request.buffer.rows, 4);
        assert_int_equal(request.buffer.features, 6);
        same_rows(PARSE_JSONL, bits, lines);
    }
    assert_false(parse(&table, NULL, "{\"rows\": [{}, {\"age\": \"old\"}]}"));
    assert_int_equal(error.row, 2);
    assert_non_null(strstr(error.message, "column 'age': expected a number, found 'old'"));
    assert_false(parse(&table, NULL, "{\"rows\": [{}, \"1 0:3:1\"]}"));
    assert_non_null(strstr(error.message, "before it are objects"));
    assert_false(parse(&table, NULL, "{\"rows\": [\"1 0:3:1\", {}]}"));
    assert_non_null(strstr(error.message, "before it are strings"));
    assert_true(parse(&table, "libffm", "{\"rows\": [\"1 0:3:1\"]}")); /* as data convert writes them */
    static const char *const others[] = {"0 3:1", "{\"rows\": [\"1 0:3:1\"]}", "I1=5", "a,7,0.1"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(parse(&table, NULL, others[i]));
        assert_int_equal(error.status, 400);
        assert_non_null(
            strstr(error.message, "the model learned a table: a row is an object of its columns"));
    }
    assert_false(parse(&table, "vw", "|a b"));
    assert_false(parse(&table, NULL, "{\"rows\": [{\"I1\": 5}], \"format\": \"fields\"}"));
    assert_non_null(strstr(error.message, "the model learned a table"));
    table = (struct request_model){0};
    columns_release(columns);
}

static void refused(const struct request_model *model, const char *format, const char *body, uint64_t row,
                    const char *field, const char *message)
{
    assert_false(parse(model, format, body));
    assert_int_equal(error.status, 400);
    assert_int_equal(error.row, row);
    assert_string_equal(error.field, field);
    if (strstr(error.message, message) == NULL)
        fail_msg("'%s' is not in '%s'", message, error.message);
}

static void errors_name_row_and_field(void **state)
{
    (void)state;
    refused(&plain, NULL, "", 0, "", "no row");
    refused(&plain, NULL, "# nothing\n", 0, "", "no row");
    refused(&plain, NULL, "{\"rows\": []}", 0, "", "no row");
    refused(&plain, NULL, "1 1:1\n\n1 x:1\n", 3, "", "expected an index, found 'x:1'");
    refused(&plain, "libsvm", "{\"rows\": [\"1:1\", \"1:1 2\"]}", 2, "", "expected ':'");
    refused(&plain, "csv", "1:1", 0, "", "format");
    refused(&plain, NULL, "{\"rows\": [\"1:1\"], \"format\": 3}", 0, "", "format");
    refused(&plain, NULL, "{\"rows\": 3}", 0, "", "expected {\"rows\": [...]}");
    refused(&plain, NULL, "{\"rows\": [\"1:1\"", 0, "", "not valid JSON: line 1");
    refused(&plain, NULL, "{\"rows\": [3]}", 1, "", "a string or an object");
    refused(&plain, NULL, "{\"rows\": [\"1:1\\n2:1\"]}", 1, "", "line break");
    refused(&plain, NULL, "{\"rows\": [\"1:1\", {\"I1\": 1}]}", 2, "", "before it are strings");
    refused(&fields, NULL, "1 3:1\n", 0, "", "libffm and criteo");
    refused(&plain, NULL, "I1=5\nI14=5\n", 2, "I14", "not a field");
    refused(&plain, NULL, "I1=5 C0=5\n", 1, "C0", "not a field");
    refused(&plain, NULL, "I1=5 I1=5\n", 1, "I1", "twice");
    refused(&plain, NULL, "I1=5 more\n", 1, "more", "name=value");
    refused(&plain, NULL, "I1=5 \rmore\n", 1, "", "carriage return");
    refused(&plain, NULL, "1 3:1\nI1=5\n", 2, "",
            "expected a label or a feature"); /* the first row decides */
    refused(&plain, NULL, "I2=1.5\n", 1, "I2", "integer");
    refused(&plain, NULL, "I2=-\n", 1, "I2", "integer");
    refused(&plain, NULL, "{\"rows\": [{\"I1\": 1}, {\"C1\": \"a b\"}]}", 2, "C1", "blank");
    refused(&plain, NULL, "{\"rows\": [{\"C1\": 1.5}]}", 1, "C1", "a string, an integer or null");
    refused(&plain, NULL, "{\"rows\": [{\"\\u00fc\": 1}]}", 1, "??", "not a field");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(text_rows_are_as_in_a_file, teardown),
        cmocka_unit_test_teardown(json_rows_are_the_same, teardown),
        cmocka_unit_test_teardown(named_fields_are_columns_of_criteo, teardown),
        cmocka_unit_test_teardown(objects_are_rows_of_a_table, teardown),
        cmocka_unit_test_teardown(errors_name_row_and_field, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
