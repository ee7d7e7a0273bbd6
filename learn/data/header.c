#include "learn/data/header.h"
#include "learn/data/parse_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUOTES UINT64_C(0x2222222222222222)
#define LOW7   UINT64_C(0x7f7f7f7f7f7f7f7f)

int table_quotes_odd(const char *p, const char *end)
{
    uint64_t sum = 0; /* the top bit of byte i: is the number of quotes at places i, i + 8 ... odd? */
    int odd = 0;
    for (; end - p >= 8; p += 8) {
        uint64_t x;
        memcpy(&x, p, sizeof x);
        x ^= QUOTES;
        sum ^= ~(((x & LOW7) + LOW7) | x | LOW7); /* 0x80 for each byte that is a quote, 0 for the others */
    }
    for (; p < end; p++)
        odd ^= *p == '"';
    return odd ^ (__builtin_popcountll(sum) & 1);
}

const char *table_record_end(const char *p, const char *end, int *odd)
{
    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        *odd ^= table_quotes_odd(p, nl ? nl : end);
        if (!nl || !*odd)
            return nl;
        p = nl + 1;
    }
    return NULL;
}

paramo_err table_text_check(const char *text, size_t len)
{
    const int mark = len >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0);
    if (mark || (len >= 4 && (text[0] == '\0') != (text[1] == '\0') &&
                 (text[2] == '\0') == (text[0] == '\0') && (text[3] == '\0') == (text[1] == '\0')))
        return paramo_error_set(PARAMO_E_FORMAT,
                                "UTF-16 text; convert it to UTF-8 (iconv -f UTF-16%s -t UTF-8)",
                                mark              ? ""
                                : text[0] == '\0' ? "BE"
                                                  : "LE");
    const char *p = text + parse_mark(text, len), *const end = text + len;
    for (int bracket = 0; p < end; p++)
        if (*p == '[' && !bracket)
            bracket = 1;
        else if (*p == '{' && bracket)
            return paramo_error_set(PARAMO_E_FORMAT,
                                    "a JSON array; write each object on a line of its own (jq -c "
                                    "'.[]' FILE > FILE.jsonl)");
        else if (*p != ' ' && *p != '\t' && *p != '\r' && *p != '\n')
            break;
    return PARAMO_OK;
}

size_t table_cells(const char *record, size_t len, char delimiter)
{
    size_t n = 1;
    int odd = 0;
    for (size_t i = 0; i < len; i++) {
        odd ^= record[i] == '"';
        n += record[i] == delimiter && !odd;
    }
    return n;
}

char table_sniff(const char *text, size_t len)
{
    static const char delimiters[] = ",;\t|";
    const char *p = text + parse_mark(text, len), *end = text + len;
    size_t count[sizeof delimiters] = {0};
    int odd = 0, best = 0;
    for (; p < end && (odd || *p != '\n'); p++) {
        const char *found = *p == '\0' || odd ? NULL : strchr(delimiters, *p);
        odd ^= *p == '"';
        if (found)
            count[found - delimiters]++;
    }
    for (int i = 1; delimiters[i]; i++)
        best = count[i] > count[best] ? i : best;
    return delimiters[best];
}

void table_header_free(struct table_header *h)
{
    for (size_t i = 0; i < h->n; i++)
        free(h->name[i]);
    free(h->name);
    free(h->len);
    *h = (struct table_header){0};
}

/* Copies the cell at p to name, which has room, without its quotes and the blanks around it. Returns the cell's end, or
 * NULL. */
static const char *take_cell(const char *p, const char *end, char delimiter, char *name, size_t *len)
{
    *len = 0;
    if (p < end && *p == '"') {
        for (p++; p < end && (*p != '"' || (p + 1 < end && p[1] == '"')); p++) {
            p += *p == '"';
            name[(*len)++] = *p;
        }
        if (p++ == end || (p < end && *p != delimiter))
            return NULL;
        return p;
    }
    while (p < end && (*p == ' ' || (*p == '\t' && delimiter != '\t')))
        p++;
    for (; p < end && *p != delimiter; p++) {
        if (*p == '"')
            return NULL;
        name[(*len)++] = *p;
    }
    while (*len > 0 && (name[*len - 1] == ' ' || name[*len - 1] == '\t'))
        (*len)--;
    return p;
}

static paramo_err no_memory(void)
{
    return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a header");
}

paramo_err table_header_add(struct table_header *h, const char *name, size_t len)
{
    if ((h->n & (h->n - 1)) == 0) { /* full: the capacity is a power of two */
        const size_t cap = h->n == 0 ? 1 : 2 * h->n;
        char **names = realloc(h->name, cap * sizeof *names);
        h->name = names ? names : h->name;
        size_t *lens = realloc(h->len, cap * sizeof *lens);
        h->len = lens ? lens : h->len;
        if (!names || !lens)
            return no_memory();
    }
    char *copy = malloc(len + 1);
    if (!copy)
        return no_memory();
    memcpy(copy, name, len);
    copy[len] = '\0';
    h->name[h->n] = copy;
    h->len[h->n++] = len;
    return PARAMO_OK;
}

paramo_err table_header_read(const char *text, size_t len, int whole, char delimiter,
                             struct table_header *header)
{
    paramo_err err = table_text_check(text, len);
    if (err != PARAMO_OK)
        return err;
    struct table_header h = {.delimiter = delimiter ? delimiter : table_sniff(text, len)};
    const char *p = text + parse_mark(text, len), *end = text + len;
    int odd = 0;
    const char *nl = table_record_end(p, end, &odd);
    if (!nl && (!whole || odd))
        return paramo_error_set(PARAMO_E_FORMAT, "its header has no end in the first %zu bytes%s", len,
                                odd ? ": a quote is not closed" : "");
    end = nl ? nl : end;
    end -= end > p && end[-1] == '\r';
    char *name = malloc((size_t)(end - p) + 1);
    err = name ? PARAMO_OK : no_memory();
    while (err == PARAMO_OK) {
        size_t n;
        p = take_cell(p, end, h.delimiter, name, &n);
        err = p ? table_header_add(&h, name, n)
                : paramo_error_set(
                      PARAMO_E_FORMAT,
                      "its header has a quote in the middle of column %zu (a name with quotes begins "
                      "and ends with one, and has two for each of its own)",
                      h.n + 1);
        if (err != PARAMO_OK || p++ == end)
            break;
    }
    free(name);
    if (err != PARAMO_OK) {
        table_header_free(&h);
        return err;
    }
    *header = h;
    return PARAMO_OK;
}

const char *table_header_list(const struct table_header *h, char out[TABLE_LIST_MAX])
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < h->n; i++) {
        char quote[PARSE_QUOTE_MAX];
        parse_quote(quote, h->name[i], h->name[i] + h->len[i]);
        if (len + strlen(quote) + sizeof ", , ..." > TABLE_LIST_MAX) {
            (void)snprintf(out + len, TABLE_LIST_MAX - len, ", ...");
            break;
        }
        len += (size_t)snprintf(out + len, TABLE_LIST_MAX - len, "%s%s", i == 0 ? "" : ", ", quote);
    }
    return out;
}

static paramo_err missing(const struct column *column, const struct table_header *h)
{
    char list[TABLE_LIST_MAX], quote[PARSE_QUOTE_MAX];
    if (h->n == 0 || (h->n == 1 && h->len[0] == 0))
        return paramo_error_set(PARAMO_E_FORMAT, "its first line is empty; it names the columns");
    return paramo_error_set(PARAMO_E_FORMAT, "has no column '%s' (%s); its columns: %s",
                            parse_quote(quote, column->name, column->name + column->len),
                            column_role_name(column->role), table_header_list(h, list));
}

paramo_err table_plan_new(const struct columns *columns, const struct table_header *h, int needed,
                          struct table_plan **plan)
{
    struct table_plan *p = calloc(1, sizeof *p + h->n * sizeof p->use[0]);
    const size_t n = columns_count(columns);
    uint8_t *seen = calloc(n + 1, 1);
    paramo_err err = p && seen ? PARAMO_OK : no_memory();
    for (size_t i = 0; err == PARAMO_OK && i < h->n; i++) {
        const struct column *column = columns_find(columns, h->name[i], h->len[i]);
        char quote[PARSE_QUOTE_MAX];
        if (column && seen[column - columns_at(columns, 0)]++)
            err = paramo_error_set(PARAMO_E_FORMAT, "has two columns '%s'",
                                   parse_quote(quote, column->name, column->name + column->len));
        p->use[i] = column && column->role != COLUMN_IGNORED ? column : NULL;
    }
    for (size_t i = 0; err == PARAMO_OK && i < n; i++) {
        const struct column *column = columns_at(columns, i);
        const int feature = column->role == COLUMN_CATEGORY || column->role == COLUMN_NUMBER;
        if (!seen[i] && column->role != COLUMN_IGNORED && (feature || needed))
            err = missing(column, h);
    }
    free(seen);
    if (err != PARAMO_OK) {
        free(p);
        return err;
    }
    p->delimiter = h->delimiter;
    p->n = h->n;
    *plan = p;
    return PARAMO_OK;
}
