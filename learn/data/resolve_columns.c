#include "learn/data/resolve_columns.h"
#include "learn/data/header.h"
#include "learn/data/parse.h"
#include "learn/data/parse_jsonl.h"
#include "learn/data/parse_line.h"
#include "learn/io/input.h"

#include <string.h>

/* Every column that --columns ignores must exist: with a wrong name, '*' would make it a feature. */
static paramo_err check_ignored(const struct columns *columns, const struct table_header *h)
{
    for (size_t c = 0; c < columns_count(columns); c++) {
        const struct column *column = columns_at(columns, c);
        char quote[PARSE_QUOTE_MAX];
        int found = column->role != COLUMN_IGNORED;
        for (size_t i = 0; i < h->n && !found; i++)
            found = h->len[i] == column->len && memcmp(h->name[i], column->name, column->len) == 0;
        if (!found)
            return paramo_error_set(PARAMO_E_FORMAT,
                                    "has no column '%s', which --columns ignores: check its name",
                                    parse_quote(quote, column->name, column->name + column->len));
    }
    return PARAMO_OK;
}

static paramo_err take_names(struct columns *columns, enum parse_format format, const char *name,
                             const char *text, size_t len, int whole)
{
    struct table_header header = {0};
    if (format == PARSE_AUTO)
        format = parse_detect_columns(name, text, len);
    paramo_err err = format == PARSE_JSONL
                         ? jsonl_keys(text, len, &header)
                         : table_header_read(text, len, whole, format == PARSE_TSV ? '\t' : 0, &header);
    for (size_t i = 0; err == PARAMO_OK && i < header.n; i++)
        err = columns_take_rest(columns, header.name[i], header.len[i]);
    if (err == PARAMO_OK && format != PARSE_JSONL) /* the first line of jsonl need not have all keys */
        err = check_ignored(columns, &header);
    table_header_free(&header);
    return err == PARAMO_OK ? columns_end_rest(columns) : err;
}

paramo_err columns_resolve(struct columns *columns, enum parse_format format, const char *const *paths,
                           size_t n)
{
    char **names = NULL;
    size_t count = 0, len = 0;
    struct input *input = NULL;
    const char *text = NULL;
    int whole = 0;
    if (!columns_has_rest(columns))
        return PARAMO_OK;
    paramo_err err = input_expand(paths, n, &names, &count);
    if (err == PARAMO_OK && strcmp(names[0], "-") == 0)
        err = paramo_error_set(PARAMO_E_INVALID,
                               "--columns: '*' needs a file; of standard input, name the columns");
    if (err == PARAMO_OK)
        err = input_open(names[0], -1, &input);
    if (err == PARAMO_OK)
        err = input_head(input, &text, &len, &whole);
    if (err == PARAMO_OK && (err = take_names(columns, format, names[0], text, len, whole)) != PARAMO_OK)
        err = paramo_error_set(err, "%s: %s", names[0], paramo_last_error());
    input_close(input);
    input_free_names(names, count);
    return err;
}
