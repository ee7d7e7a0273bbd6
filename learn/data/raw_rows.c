#include "learn/data/raw_rows.h"
#include "learn/data/header.h"
#include "learn/data/parse.h"
#include "learn/data/reader.h"
#include "learn/io/input.h"

#include <stdlib.h>
#include <string.h>

#define READ_BYTES (256u << 10) /* arbitrary */

struct raw_rows {
    char **names;
    size_t count, file; /* file: the open one if input is not NULL, otherwise the next one */
    enum parse_format wanted, format;
    struct input *input;
    char *text; /* [len] of cap: text[at..] is not handed out yet */
    size_t at, len, cap;
    int end;       /* of the file */
    uint64_t line; /* of text[at], from 1 */
    char *header;
    size_t header_len, cells; /* of a table */
    char delimiter;
    uint64_t size;
};

static paramo_err no_memory(void)
{
    return paramo_error_set(PARAMO_E_MEMORY, "out of memory for rows");
}

/* Sums up the bytes of the files; 0 if one of them is not plain. */
static paramo_err add_sizes(struct raw_rows *r)
{
    for (size_t i = 0; i < r->count; i++) {
        struct input *in = NULL;
        paramo_err err = input_open(r->names[i], -1, &in);
        if (err != PARAMO_OK)
            return err;
        const uint64_t size = input_is_plain(in) ? input_size(in) : 0;
        r->size = size == 0 || (i > 0 && r->size == 0) ? 0 : r->size + size;
        input_close(in);
    }
    return PARAMO_OK;
}

paramo_err raw_rows_open(enum parse_format format, const char *const *paths, size_t n, struct raw_rows **rows)
{
    struct raw_rows *r = calloc(1, sizeof *r);
    if (!r)
        return no_memory();
    r->wanted = format;
    paramo_err err = input_expand(paths, n, &r->names, &r->count);
    if (err == PARAMO_OK)
        err = add_sizes(r);
    if (err != PARAMO_OK) {
        raw_rows_close(r);
        return err;
    }
    *rows = r;
    return PARAMO_OK;
}

void raw_rows_close(struct raw_rows *r)
{
    if (!r)
        return;
    input_close(r->input);
    input_free_names(r->names, r->count);
    free(r->text);
    free(r->header);
    free(r);
}

const char *raw_rows_header(const struct raw_rows *r, size_t *len)
{
    *len = r->header_len;
    return r->header;
}

uint64_t raw_rows_size(const struct raw_rows *r)
{
    return r->size;
}

static int is_table(const struct raw_rows *r)
{
    return parse_format_columns(r->format) == COLUMNS_BY_HEADER;
}

/* Reads more text. Keeps text[at..len), which moves to the front. */
static paramo_err fill(struct raw_rows *r)
{
    if (r->at > 0)
        memmove(r->text, r->text + r->at, r->len - r->at);
    r->len -= r->at;
    r->at = 0;
    if (r->len + READ_BYTES + 1 > r->cap) {
        const size_t cap = 2 * (r->len + READ_BYTES + 1);
        char *text = realloc(r->text, cap);
        if (!text)
            return no_memory();
        r->text = text;
        r->cap = cap;
    }
    size_t got = 0;
    paramo_err err = input_read(r->input, r->text + r->len, READ_BYTES, &got);
    if (err == PARAMO_OK && got == 0) {
        r->end = 1;
        if (r->len > 0 && r->text[r->len - 1] != '\n') /* the last line has none */
            r->text[r->len++] = '\n';
    }
    r->len += got;
    return err;
}

/* Takes the record at text[at..]. *len 0: the file has ended. */
static paramo_err take(struct raw_rows *r, const char **text, size_t *len)
{
    size_t seen = 0;
    int odd = 0;
    for (;;) {
        char *const from = r->text + r->at;
        const size_t have = r->len - r->at;
        const char *nl = have == seen  ? NULL
                         : is_table(r) ? table_record_end(from + seen, from + have, &odd)
                                       : memchr(from + seen, '\n', have - seen);
        if (nl) {
            *text = from;
            *len = (size_t)(nl + 1 - from);
            r->at += *len;
            return PARAMO_OK;
        }
        if (r->end && have == 0) {
            *len = 0;
            return PARAMO_OK;
        }
        if (r->end || have > READER_MAX_LINE)
            return paramo_error_set(PARAMO_E_FORMAT, "%s:%llu: %s", r->names[r->file],
                                    (unsigned long long)r->line,
                                    r->end ? "a quote that is not closed" : "a row longer than 16 MiB");
        seen = have;
        paramo_err err = fill(r);
        if (err != PARAMO_OK)
            return err;
    }
}

static paramo_err take_header(struct raw_rows *r)
{
    const char *text;
    size_t len;
    paramo_err err = take(r, &text, &len);
    if (err != PARAMO_OK)
        return err;
    for (size_t i = 0; i < len; i++)
        r->line += text[i] == '\n';
    if (r->header_len > 0 && (r->header_len != len || memcmp(r->header, text, len) != 0))
        return paramo_error_set(PARAMO_E_FORMAT, "%s:1: the header differs from that of %s",
                                r->names[r->file], r->names[0]);
    if (r->header_len == 0 && len > 0) {
        if (!(r->header = malloc(len)))
            return no_memory();
        memcpy(r->header, text, len);
        r->header_len = len;
    }
    r->delimiter = r->format == PARSE_TSV ? '\t' : table_sniff(text, len);
    r->cells = table_cells(text, len, r->delimiter);
    return PARAMO_OK;
}

static paramo_err open_file(struct raw_rows *r)
{
    const char *head, *name = r->names[r->file];
    size_t len;
    int whole;
    paramo_err err = input_open(name, -1, &r->input);
    if (err == PARAMO_OK)
        err = input_head(r->input, &head, &len, &whole);
    if (err != PARAMO_OK)
        return err;
    r->at = r->len = 0;
    r->end = 0;
    r->line = 1;
    r->format = r->wanted;
    if ((err = table_text_check(head, len)) != PARAMO_OK)
        return paramo_error_set(err, "%s: %s", name, paramo_last_error());
    if (r->format == PARSE_AUTO && (err = parse_detect_file(name, head, len, whole, &r->format)) != PARAMO_OK)
        return paramo_error_set(err, "%s: %s", name, paramo_last_error());
    const size_t mark = parse_mark(head, len);
    if ((err = fill(r)) != PARAMO_OK)
        return err;
    r->at = mark;
    return is_table(r) ? take_header(r) : PARAMO_OK;
}

/* A row of a table has as many cells as the header. */
static paramo_err check_cells(const struct raw_rows *r, const char *text, size_t len)
{
    const size_t n = is_table(r) ? table_cells(text, len, r->delimiter) : r->cells;
    return n == r->cells ? PARAMO_OK
                         : paramo_error_set(PARAMO_E_FORMAT,
                                            "%s:%llu: a row has %s columns than the header, which has %zu",
                                            r->names[r->file], (unsigned long long)r->line,
                                            n < r->cells ? "fewer" : "more", r->cells);
}

/* Is it an empty line, or a comment of a format of lines? */
static int is_no_row(const struct raw_rows *r, const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && (text[i] == ' ' || text[i] == '\t'))
        i++;
    if (i > 0 && (is_table(r) || r->format == PARSE_CRITEO)) /* the first cells are empty or blank */
        return 0;
    return text[i] == '\n' || (text[i] == '\r' && i + 2 == len) ||
           (text[i] == '#' && parse_format_columns(r->format) == COLUMNS_NONE && r->format != PARSE_CRITEO);
}

paramo_err raw_rows_next(struct raw_rows *r, const char **text, size_t *len)
{
    for (;;) {
        paramo_err err = PARAMO_OK;
        *text = NULL;
        if (!r->input && r->file == r->count)
            return PARAMO_OK;
        if (!r->input)
            err = open_file(r);
        if (err == PARAMO_OK)
            err = take(r, text, len);
        if (err != PARAMO_OK)
            return err;
        if (*len == 0) {
            input_close(r->input);
            r->input = NULL;
            r->file++;
            continue;
        }
        const int row = !is_no_row(r, *text, *len);
        if (row && (err = check_cells(r, *text, *len)) != PARAMO_OK)
            return err;
        for (size_t i = 0; i < *len; i++)
            r->line += (*text)[i] == '\n';
        if (row)
            return PARAMO_OK;
    }
}
