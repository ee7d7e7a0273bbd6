#include "learn/serve/request.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INTEGERS 13 /* of Criteo's columns; the others are categories */

/* A row of named fields: the value of each column. at NULL: missing. */
struct named_row {
    struct {
        const char *at;
        size_t len;
    } value[PARSE_CRITEO_FIELDS];
};

static void make_printable(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

int request_fail(struct request_error *error, int status, uint64_t row, const char *fmt, ...)
{
    va_list args;
    *error = (struct request_error){.status = status, .row = row};
    va_start(args, fmt);
    (void)vsnprintf(error->message, sizeof error->message, fmt, args);
    va_end(args);
    make_printable(error->message);
    return 0;
}

static int fail_field(struct request_error *error, uint64_t row, const char *name, size_t len,
                      const char *what)
{
    (void)request_fail(error, 400, row, "%s", what);
    (void)snprintf(error->field, sizeof error->field, "%.*s", (int)(len < 31 ? len : 31), name);
    make_printable(error->field);
    return 0;
}

/* ---- lines ---- */

/* Makes room for n more bytes and the pad. */
static int reserve(struct request *r, size_t n, struct request_error *error)
{
    size_t want = r->len + n + 1 + PARSE_PAD;
    if (want <= r->cap)
        return 1;
    want += want / 2;
    char *text = realloc(r->text, want);
    if (!text)
        return request_fail(error, 503, 0, "out of memory for a request of %zu bytes", r->len + n);
    r->text = text;
    r->cap = want;
    return 1;
}

static void put(struct request *r, const char *bytes, size_t n)
{
    memcpy(r->text + r->len, bytes, n);
    r->len += n;
}

static int is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The first word of a line, from *word to the returned end; empty if there is none. */
static const char *first_word(const char *line, const char *end, const char **word)
{
    while (line < end && is_blank(*line))
        line++;
    *word = line;
    while (line < end && !is_blank(*line) && *line != '\r')
        line++;
    return line;
}

static int has(const char *word, const char *end, char c)
{
    return memchr(word, c, (size_t)(end - word)) != NULL;
}

static int blank_or_comment(const char *line, const char *end)
{
    const char *word, *stop = first_word(line, end, &word);
    return word == stop || *word == '#';
}

/* Is it a row of named fields? Its first feature has a '='. Criteo's lines have tabs, and any text between them. */
static int is_named(const char *line, const char *end)
{
    const char *word, *stop = first_word(line, end, &word);
    if (!has(word, stop, '='))
        stop = first_word(stop, end, &word);
    return has(word, stop, '=') && !has(line, end, '\t');
}

/* Adds a line of a data file as it is. whole: it is a row, even if it is empty or looks like a comment. */
static int put_line(struct request *r, const char *line, const char *end, int whole,
                    struct request_error *error)
{
    if (!reserve(r, (size_t)(end - line) + 3, error))
        return 0;
    if (whole && blank_or_comment(line, end))
        put(r, "0 ", 2);
    put(r, line, (size_t)(end - line));
    put(r, "\n", 1);
    return 1;
}

/* ---- named fields ---- */

/* The column of "I1".."I13" or "C1".."C26"; -1 for other names. */
static int column_of(const char *name, size_t len)
{
    int number = 0;
    if (len < 2 || len > 3 || (name[0] != 'I' && name[0] != 'C') || name[1] == '0')
        return -1;
    for (size_t i = 1; i < len; i++) {
        if (name[i] < '0' || name[i] > '9')
            return -1;
        number = 10 * number + (name[i] - '0');
    }
    int first = name[0] == 'I' ? 0 : INTEGERS;
    int columns = name[0] == 'I' ? INTEGERS : PARSE_CRITEO_FIELDS - INTEGERS;
    return number <= columns ? first + number - 1 : -1;
}

static int is_integer(const char *text, size_t len)
{
    size_t from = len > 0 && text[0] == '-';
    if (len - from > 15) /* a Criteo integer is below 2^53 */
        return 0;
    for (size_t i = from; i < len; i++)
        if (text[i] < '0' || text[i] > '9')
            return 0;
    return len == 0 || len > from;
}

static int set_field(struct named_row *named, uint64_t row, const char *name, size_t name_len,
                     const char *value, size_t len, struct request_error *error)
{
    int column = column_of(name, name_len);
    if (column < 0)
        return fail_field(error, row, name, name_len, "not a field: the fields are I1 to I13 and C1 to C26");
    if (named->value[column].at)
        return fail_field(error, row, name, name_len, "the field is given twice");
    if (column < INTEGERS && !is_integer(value, len))
        return fail_field(error, row, name, name_len, "expected an integer of at most 15 digits");
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)value[i] <= ' ')
            return fail_field(error, row, name, name_len, "a value with a blank or a control character");
    named->value[column].at = value;
    named->value[column].len = len;
    return 1;
}

/* Adds the row as a line of Criteo's format. */
static int put_named(struct request *r, const struct named_row *named, struct request_error *error)
{
    size_t len = 0;
    for (int i = 0; i < PARSE_CRITEO_FIELDS; i++)
        len += 1 + named->value[i].len;
    if (!reserve(r, len + 2, error))
        return 0;
    put(r, "0", 1);
    for (int i = 0; i < PARSE_CRITEO_FIELDS; i++) {
        put(r, "\t", 1);
        if (named->value[i].len > 0)
            put(r, named->value[i].at, named->value[i].len);
    }
    put(r, "\n", 1);
    return 1;
}

static int put_named_line(struct request *r, uint64_t row, const char *line, const char *end,
                          struct request_error *error)
{
    struct named_row named = {0};
    const char *word, *stop = line;
    if (blank_or_comment(line, end)) /* an empty line, as in a data file: no row, but it counts as a line */
        return put_line(r, "", "", 0, error);
    for (int i = 0; (stop = first_word(stop, end, &word)) > word; i++) {
        const char *equals = memchr(word, '=', (size_t)(stop - word));
        if (!equals && i == 0)
            continue; /* the label */
        if (!equals)
            return fail_field(error, row, word, (size_t)(stop - word), "expected name=value");
        if (!set_field(&named, row, word, (size_t)(equals - word), equals + 1, (size_t)(stop - equals - 1),
                       error))
            return 0;
    }
    /* first_word stops at a carriage return, which may only be the last character of the line. */
    if (end - stop > 1)
        return fail_field(error, row, "", 0, "a carriage return in the row");
    return put_named(r, &named, error);
}

/* Adds an object. The values point to strings of `row`, or to `numbers`. */
static int put_named_object(struct request *r, uint64_t number, json_t *row, struct request_error *error)
{
    char numbers[PARSE_CRITEO_FIELDS][24];
    int n = 0;
    struct named_row named = {0};
    for (void *at = json_object_iter(row); at; at = json_object_iter_next(row, at)) {
        const char *name = json_object_iter_key(at);
        const json_t *value = json_object_iter_value(at);
        const char *text;
        size_t len;
        if (json_is_null(value)) { /* missing, but its name is checked */
            text = "";
            len = 0;
        } else if (json_is_string(value)) {
            text = json_string_value(value);
            len = json_string_length(value);
        } else if (json_is_integer(value) && n < PARSE_CRITEO_FIELDS) {
            len =
                (size_t)snprintf(numbers[n], sizeof numbers[n], "%lld", (long long)json_integer_value(value));
            text = numbers[n++];
        } else {
            return fail_field(error, number, name, strlen(name), "expected a string, an integer or null");
        }
        if (!set_field(&named, number, name, strlen(name), text, len, error))
            return 0;
    }
    return put_named(r, &named, error);
}

/* ---- tables ---- */

/* Adds the row as a line of JSON. A number is written with 15 digits: if its column is a category, this is the text of
 * the value. */
static int put_table_object(struct request *r, const json_t *row, struct request_error *error)
{
    char *line = json_dumps(row, JSON_COMPACT | JSON_REAL_PRECISION(15));
    const int done = line ? put_line(r, line, line + strlen(line), 0, error)
                          : request_fail(error, 503, 0, "out of memory for a row");
    free(line);
    return done;
}

/* ---- bodies ---- */

enum { FORMAT_NONE = -1, FORMAT_FIELDS = PARSE_FORMATS };

/* PARSE_AUTO, a format of files, FORMAT_FIELDS, or FORMAT_NONE. */
static int find_format(const char *name)
{
    if (!name)
        return PARSE_AUTO;
    const int format = strcmp(name, "fields") == 0 ? FORMAT_FIELDS : parse_format_find(name);
    /* the formats of tables are for files only */
    return format > PARSE_AUTO && format < FORMAT_FIELDS &&
                   parse_format_columns((enum parse_format)format) != COLUMNS_NONE
               ? FORMAT_NONE
               : format;
}

static int put_text(struct request *r, int *format, const char *body, size_t len, struct request_error *error)
{
    const char *p = body + parse_mark(body, len), *end = body + len;
    int first = *format == PARSE_AUTO; /* the first row decides, as in JSON */
    for (uint64_t row = 1; p < end; row++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        const char *stop = nl ? nl : end;
        if (first && !blank_or_comment(p, stop)) {
            *format = is_named(p, stop) ? FORMAT_FIELDS : PARSE_AUTO;
            first = 0;
        }
        if (!(*format == FORMAT_FIELDS ? put_named_line(r, row, p, stop, error)
                                       : put_line(r, p, stop, 0, error)))
            return 0;
        p = stop + 1;
    }
    return 1;
}

static int put_json_row(struct request *r, int format, uint64_t number, json_t *row,
                        struct request_error *error)
{
    const char *line = json_string_value(row), *end = line ? line + json_string_length(row) : NULL;
    const struct named_row none = {0};
    if (!line && !json_is_object(row))
        return request_fail(error, 400, number, "a row is a string or an object");
    if (line && memchr(line, '\n', (size_t)(end - line)) != NULL)
        return request_fail(error, 400, number, "a row with a line break in it");
    if (!line && format != FORMAT_FIELDS && format != PARSE_JSONL)
        return request_fail(error, 400, number, "an object, but the rows before it are strings");
    if (line && format == PARSE_JSONL)
        return request_fail(error, 400, number, "a string, but the rows before it are objects");
    if (!line)
        return format == PARSE_JSONL ? put_table_object(r, row, error)
                                     : put_named_object(r, number, row, error);
    if (format != FORMAT_FIELDS)
        return put_line(r, line, end, 1, error);
    return blank_or_comment(line, end) ? put_named(r, &none, error)
                                       : put_named_line(r, number, line, end, error);
}

/* The format of JSON rows without a "format": the first row decides. */
static int first_format(const struct request_model *model, const json_t *row)
{
    const char *line = json_string_value(row);
    if (line)
        return is_named(line, line + json_string_length(row)) ? FORMAT_FIELDS : PARSE_AUTO;
    return model->columns ? PARSE_JSONL : FORMAT_FIELDS;
}

static int put_json_rows(struct request *r, const struct request_model *model, int *format, json_t *rows,
                         struct request_error *error)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        if (i == 0 && *format == PARSE_AUTO)
            *format = first_format(model, row);
        if (!put_json_row(r, *format, i + 1, row, error))
            return 0;
    }
    return 1;
}

static int put_json(struct request *r, const struct request_model *model, int *format, const char *body,
                    size_t len, struct request_error *error)
{
    json_error_t where;
    json_t *document = json_loadb(body, len, JSON_REJECT_DUPLICATES, &where);
    int done = 0;
    if (!document)
        return request_fail(error, 400, 0, "not valid JSON: line %d, column %d: %s", where.line, where.column,
                            where.text);
    json_t *rows = json_object_get(document, "rows"), *name = json_object_get(document, "format");
    if (name)
        *format = json_is_string(name) ? find_format(json_string_value(name)) : FORMAT_NONE;
    if (*format == FORMAT_NONE)
        (void)request_fail(error, 400, 0, "\"format\" is not one of " REQUEST_FORMATS);
    else if (!json_is_array(rows))
        (void)request_fail(error, 400, 0, "expected {\"rows\": [...]}");
    else
        done = put_json_rows(r, model, format, rows, error);
    json_decref(document);
    return done;
}

static paramo_err on_bad_line(void *arg, uint64_t line, const char *what)
{
    (void)request_fail(arg, 400, line + 1, "%s", what);
    return PARAMO_E_FORMAT;
}

static int fail_cause(struct request_error *error, paramo_err err)
{
    return request_fail(error, err == PARAMO_E_MEMORY ? 503 : 400, 0, "%s", paramo_last_error());
}

/* Can rows of a format have the keys of a table? For lines, the request must name the format: ids of another origin
 * look like the keys that 'paramo data convert' writes. */
static int of_table(int wanted)
{
    return wanted == PARSE_JSONL || wanted == PARSE_LIBSVM || wanted == PARSE_LIBFFM;
}

/* Parses the lines of r->text into r->buffer. */
static int parse_lines(struct request *r, const struct request_model *model, int wanted,
                       struct request_error *error)
{
    char list[PARSE_LIST_MAX];
    enum parse_format format = wanted == FORMAT_FIELDS ? PARSE_CRITEO : (enum parse_format)wanted;
    if (r->len == 0)
        return request_fail(error, 400, 0, "the request has no row");
    if (model->columns && !of_table(wanted))
        return request_fail(
            error, 400, 0,
            "the model learned a table: a row is an object of its columns, {\"rows\": "
            "[{\"site\": \"a\"}]}; lines of 'paramo data convert' need format=libsvm or libffm");
    memset(r->text + r->len, 0, PARSE_PAD);
    r->text[r->len] = '\n';
    if (format == PARSE_AUTO) {
        paramo_err err = parse_detect(r->text, r->len, 1, &format);
        if (err != PARAMO_OK)
            return request_fail(error, 400, 0, "the rows: %s", paramo_last_error());
    }
    if (model->fields && !parse_format_fields(format))
        return request_fail(error, 400, 0, "the model needs the field of each feature, which %s has",
                            parse_format_list(list, PARSE_LIST_FIELDS));
    error->status = 0;
    const struct parse_settings settings = {.format = format,
                                            .hash_bits = model->hash_bits,
                                            .label = {.kind = LABEL_NONE},
                                            .columns = format == PARSE_JSONL ? model->columns : NULL};
    paramo_err err = parse_text(&settings, r->text, r->len, &r->buffer, on_bad_line, error);
    if (err != PARAMO_OK)
        return error->status != 0 ? 0 : fail_cause(error, err);
    return r->buffer.rows > 0 || request_fail(error, 400, 0, "the request has no row");
}

int request_parse(struct request *r, const struct request_model *model, const char *format, const char *body,
                  size_t len, struct request_error *error)
{
    int wanted = find_format(format);
    size_t first = 0;
    r->len = 0;
    while (first < len && (is_blank(body[first]) || body[first] == '\n' || body[first] == '\r'))
        first++;
    r->json = first < len && body[first] == '{';
    if (wanted == FORMAT_NONE)
        return request_fail(error, 400, 0, "the format is not one of " REQUEST_FORMATS);
    return reserve(r, len, error) &&
           (r->json ? put_json(r, model, &wanted, body, len, error)
                    : put_text(r, &wanted, body, len, error)) &&
           parse_lines(r, model, wanted, error);
}

void request_free(struct request *r)
{
    parse_buffer_free(&r->buffer);
    free(r->text);
    *r = (struct request){0};
}
