#include "learn/data/parse.h"
#include "learn/data/header.h"
#include "learn/data/parse_jsonl.h"
#include "learn/data/parse_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define DETECT_LINES 100 /* arbitrary */

#define FORMAT_ENTRY(id, name) [PARSE_##id] = &format_##name,
static const struct format_ops *const formats[PARSE_FORMATS] = {FORMATS(FORMAT_ENTRY)};
#undef FORMAT_ENTRY

const char *parse_format_name(enum parse_format format)
{
    return format == PARSE_AUTO ? "auto" : formats[format]->name;
}

int parse_format_find(const char *name)
{
    for (int i = 0; i < PARSE_FORMATS; i++)
        if (strcasecmp(name, parse_format_name((enum parse_format)i)) == 0)
            return i;
    return -1;
}

int parse_format_fields(enum parse_format format)
{
    return formats[format]->fields;
}

int parse_format_names(enum parse_format format)
{
    return formats[format]->names;
}

enum format_columns parse_format_columns(enum parse_format format)
{
    return formats[format]->columns;
}

const char *parse_format_list(char out[PARSE_LIST_MAX], enum parse_list which)
{
    const struct format_ops *listed[PARSE_FORMATS];
    size_t n = 0, len = 0;
    for (int i = PARSE_AUTO + 1; i < PARSE_FORMATS; i++)
        if (which == PARSE_LIST_NAMES ||
            (formats[i]->columns == COLUMNS_NONE && (which == PARSE_LIST_LINES || formats[i]->fields)))
            listed[n++] = formats[i];
    out[0] = '\0';
    for (size_t i = 0; i < n && len < PARSE_LIST_MAX; i++) {
        const char *before = i == 0 ? "" : i + 1 < n ? ", " : which == PARSE_LIST_FIELDS ? " and " : " or ";
        int lines = which == PARSE_LIST_LINES;
        len += (size_t)snprintf(out + len, PARSE_LIST_MAX - len, "%s%s%s%s%s", before, listed[i]->name,
                                lines ? " (" : "", lines ? listed[i]->line : "", lines ? ")" : "");
    }
    return out;
}

void parse_buffer_free(struct parse_buffer *buffer)
{
    free(buffer->label);
    free(buffer->weight);
    free(buffer->offset);
    free(buffer->key);
    free(buffer->value);
    free(buffer->field);
    memset(buffer, 0, sizeof *buffer);
}

/* The arrays grow together. Their content is lost. */
static paramo_err buffer_reserve(struct parse_buffer *b, size_t rows, size_t features)
{
    if (rows <= b->row_cap && features <= b->feature_cap)
        return PARAMO_OK;
    rows = rows > b->row_cap ? rows + rows / 8 : b->row_cap;
    features = features > b->feature_cap ? features + features / 8 : b->feature_cap;
    parse_buffer_free(b);
    b->label = malloc(rows * sizeof *b->label);
    b->weight = malloc(rows * sizeof *b->weight);
    b->offset = malloc((rows + 1) * sizeof *b->offset);
    b->key = malloc(features * sizeof *b->key);
    b->value = malloc(features * sizeof *b->value);
    b->field = malloc(features * sizeof *b->field);
    if (!b->label || !b->weight || !b->offset || !b->key || !b->value || !b->field) {
        parse_buffer_free(b);
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for parsing %zu features", features);
    }
    b->row_cap = rows;
    b->feature_cap = features;
    return PARAMO_OK;
}

paramo_err parse_text(const struct parse_settings *settings, const char *text, size_t len,
                      struct parse_buffer *buffer, parse_bad_fn bad, void *arg)
{
    const struct parse_job job = {text, text + len, settings, buffer, bad, arg};
    const struct format_ops *ops = formats[settings->format];
    if ((ops->columns != COLUMNS_NONE && !settings->columns) ||
        (ops->columns == COLUMNS_BY_HEADER && !settings->plan))
        return paramo_error_set(PARAMO_E_INVALID, "%s needs --columns", ops->name);
    /* The shortest row is "1\n". One row more, because a part of a bad row may be written; and one more, because the
     * divisions round down. */
    size_t rows = len / 2 + 2;
    size_t features = len / ops->feature_bytes + 2 * ops->row_features;
    paramo_err err = buffer_reserve(buffer, rows, features);
    if (err != PARAMO_OK)
        return err;
    buffer->rows = buffer->features = 0;
    buffer->not_one = 0;
    buffer->lines = 0;
    buffer->has_field = ops->fields;
    buffer->has_weight = 0;
    buffer->offset[0] = 0;
    return ops->parse(&job);
}

/* Copies rows first .. end - 1 of the buffer to the block, after its first `row` rows with `at` features. */
static void copy_rows(const struct parse_buffer *b, size_t first, size_t end, struct block *block, size_t row,
                      size_t at)
{
    const size_t from = b->offset[first], features = b->offset[end] - from;
    memcpy(block->label + row, b->label + first, (end - first) * sizeof *b->label);
    if (block->weight)
        memcpy(block->weight + row, b->weight + first, (end - first) * sizeof *b->weight);
    for (size_t r = first; r < end; r++)
        block->offset[row + r - first] = (uint32_t)(b->offset[r] - from + at);
    memcpy(block->key + at, b->key + from, features * sizeof *b->key);
    if (block->value)
        memcpy(block->value + at, b->value + from, features * sizeof *b->value);
    if (block->field)
        memcpy(block->field + at, b->field + from, features * sizeof *b->field);
}

/* The first row from r on that is on side `want` (same 1), or is not (same 0). */
static size_t next_row(const struct parse_buffer *b, const uint8_t *side, uint8_t want, int same, size_t r)
{
    while (r < b->rows && (side[r] == want) != same)
        r++;
    return r;
}

static struct block_shape shape_of(const struct parse_buffer *b, int fields, size_t rows, size_t features)
{
    return (struct block_shape){.rows = rows,
                                .features = features,
                                .has_value = b->not_one,
                                .has_field = fields && b->has_field,
                                .has_weight = b->has_weight};
}

paramo_err parse_block_side(const struct parse_buffer *b, int fields, const uint8_t *side, uint8_t want,
                            struct block *block)
{
    size_t rows = 0, features = 0;
    for (size_t r = 0; r < b->rows; r++) {
        rows += side[r] == want;
        features += side[r] == want ? b->offset[r + 1] - b->offset[r] : 0;
    }
    const struct block_shape shape = shape_of(b, fields, rows, features);
    paramo_err err = block_alloc(block, &shape);
    if (err != PARAMO_OK)
        return err;
    size_t row = 0, at = 0;
    for (size_t first = next_row(b, side, want, 1, 0), end; first < b->rows;
         first = next_row(b, side, want, 1, end)) {
        end = next_row(b, side, want, 0, first);
        copy_rows(b, first, end, block, row, at);
        row += end - first;
        at += b->offset[end] - b->offset[first];
    }
    block->offset[rows] = (uint32_t)features;
    return PARAMO_OK;
}

paramo_err parse_block(const struct parse_buffer *b, int fields, struct block *block)
{
    const struct block_shape shape = shape_of(b, fields, b->rows, b->features);
    paramo_err err = block_alloc(block, &shape);
    if (err != PARAMO_OK)
        return err;
    copy_rows(b, 0, b->rows, block, 0, 0);
    block->offset[b->rows] = (uint32_t)b->features;
    return PARAMO_OK;
}

/* ---- which format -------------------------------------------------------------------------------------- */

/* The format of one line (without its end); PARSE_AUTO if the line does not show it, -1 if it is in no format. */
static int judge_line(const char *line, const char *end)
{
    const char *p = line;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    if (p == end || *p == '#')
        return PARSE_AUTO;
    int found = -1;
    for (int i = PARSE_FORMATS - 1; i > PARSE_AUTO; i--) {
        enum judged judged = formats[i]->judge(line, end);
        if (judged == JUDGED_YES)
            return i;
        if (judged == JUDGED_EMPTY)
            found = PARSE_AUTO;
    }
    return found;
}

/* Is each cell of a header a number? */
static int all_numbers(const struct table_header *h)
{
    for (size_t i = 0; i < h->n; i++) {
        char *end;
        (void)strtod(h->name[i], &end);
        if (end == h->name[i] || *end != '\0')
            return 0;
    }
    return 1;
}

/* FORMAT with what to do, if text looks like a table: it has JSON objects, or its first two lines have the same number
 * of cells, at least two. */
static paramo_err judge_table(const char *text, size_t len, int whole)
{
    struct table_header first = {0}, second = {0};
    if (jsonl_begins(text, len) && jsonl_keys(text, len, &first) == PARAMO_OK) {
        char keys[TABLE_LIST_MAX];
        paramo_err bad = paramo_error_set(
            PARAMO_E_FORMAT,
            "looks like JSON lines: use --columns 'label=NAME,cat=NAME;NAME,num=NAME' of train, "
            "tune or data (a model keeps them); the keys of its first line: %s",
            table_header_list(&first, keys));
        table_header_free(&first);
        return bad;
    }
    const char *nl = memchr(text, '\n', len);
    char list[TABLE_LIST_MAX];
    if (!nl || table_header_read(text, len, whole, 0, &first) != PARAMO_OK)
        return PARAMO_OK;
    nl++;
    paramo_err err = PARAMO_OK;
    if (first.n > 1 &&
        table_header_read(nl, (size_t)(text + len - nl), whole, first.delimiter, &second) == PARAMO_OK &&
        second.n == first.n && all_numbers(&first))
        err = paramo_error_set(
            PARAMO_E_FORMAT,
            "looks like CSV without a header: begin it with a line of names, and use --columns "
            "'label=NAME,cat=NAME;NAME,num=NAME' of train, tune or data (a model keeps them)");
    else if (first.n > 1 && second.n == first.n)
        err = paramo_error_set(PARAMO_E_FORMAT,
                               "looks like CSV with a header: use --columns "
                               "'label=NAME,cat=NAME;NAME,num=NAME' of train, tune or data (a model keeps "
                               "them); its columns: %s",
                               table_header_list(&first, list));
    table_header_free(&first);
    table_header_free(&second);
    return err;
}

/* The error if none of `lines` lines is in a format. The first of them is bad .. end; ended: its end is known. */
static paramo_err no_format(int lines, const char *bad, const char *end, int ended)
{
    char head[PARSE_QUOTE_MAX], list[PARSE_LIST_MAX];
    parse_format_list(list, PARSE_LIST_LINES);
    if (!ended) {
        return paramo_error_set(
            PARAMO_E_FORMAT,
            "its first line, which has no end in %td bytes and begins '%s', is not in %s format", end - bad,
            parse_quote(head, bad, end), list);
    }
    if (lines == 1) {
        return paramo_error_set(PARAMO_E_FORMAT, "its only line, '%s'%s, is not in %s format",
                                parse_quote(head, bad, end), end - bad > PARSE_QUOTED ? "..." : "", list);
    }
    return paramo_error_set(PARAMO_E_FORMAT,
                            "none of the first %d lines is in %s format; the first begins '%s'", lines, list,
                            parse_quote(head, bad, end));
}

static paramo_err binary(const char *text, const char *zero)
{
    char list[PARSE_LIST_MAX];
    return paramo_error_set(PARAMO_E_FORMAT, "binary data (a zero byte at offset %td), not %s text",
                            zero - text, parse_format_list(list, PARSE_LIST_NAMES));
}

paramo_err parse_detect(const char *text, size_t len, int whole, enum parse_format *format)
{
    const char *p = text + parse_mark(text, len), *end = text + len, *bad = NULL, *bad_end = NULL;
    int lines = 0, ended = 1;
    paramo_err err = table_text_check(text, len);
    if (err != PARAMO_OK)
        return err;
    while (p < end && lines < DETECT_LINES) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        const char *stop = nl ? nl : end;
        if (!nl && !whole && lines > 0)
            break;
        const char *zero = memchr(p, '\0', (size_t)(stop - p));
        if (zero)
            return binary(text, zero);
        lines++;
        if (stop > p && stop[-1] == '\r')
            stop--;
        int judged = judge_line(p, stop);
        if (judged > 0) {
            *format = (enum parse_format)judged;
            return PARAMO_OK;
        }
        if (judged < 0 && !bad) {
            bad = p;
            bad_end = stop;
            ended = nl || whole;
        }
        p = nl ? nl + 1 : end;
    }
    if (bad) {
        err = judge_table(text, len, whole);
        return err != PARAMO_OK ? err : no_format(lines, bad, bad_end, ended);
    }
    *format = PARSE_LIBSVM;
    return PARAMO_OK;
}

/* Does the name, without the ending of a compressed file, have this ending? */
static int ends_with(const char *name, const char *ending)
{
    size_t len = strlen(name), n = strlen(ending);
    len -= len > 3 && strcmp(name + len - 3, ".gz") == 0    ? 3
           : len > 4 && strcmp(name + len - 4, ".zst") == 0 ? 4
                                                            : 0;
    return len >= n && strncasecmp(name + len - n, ending, n) == 0;
}

enum parse_format parse_detect_columns(const char *name, const char *text, size_t len)
{
    if (name && (ends_with(name, ".tsv") || ends_with(name, ".tab")))
        return PARSE_TSV;
    if (name && ends_with(name, ".csv"))
        return PARSE_CSV;
    if ((name && (ends_with(name, ".jsonl") || ends_with(name, ".ndjson"))) || jsonl_begins(text, len))
        return PARSE_JSONL;
    return table_sniff(text, len) == '\t' ? PARSE_TSV : PARSE_CSV;
}

paramo_err parse_detect_file(const char *name, const char *text, size_t len, int whole,
                             enum parse_format *format)
{
    static const char *const endings[] = {".tsv", ".tab", ".csv", ".jsonl", ".ndjson"};
    int table = 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        table |= ends_with(name, endings[i]);
    paramo_err err = table ? PARAMO_OK : parse_detect(text, len, whole, format);
    if (table || (err != PARAMO_OK && judge_table(text, len, whole) != PARAMO_OK)) {
        *format = parse_detect_columns(name, text, len);
        return PARAMO_OK;
    }
    return err;
}
