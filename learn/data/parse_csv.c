/*
 * csv and tsv: RFC 4180 with a header and any delimiter. The plan of a file says what each column is (header.h).
 *
 * A cell that begins with a quote ends with one. It may contain delimiters and newlines, and has two quotes for each
 * quote of its text. A bad record ends at the first newline before which the number of quotes is even, as all records
 * do (header.h).
 */
#include "learn/data/header.h"
#include "learn/data/parse_cells.h"

#define HIGH UINT64_C(0x8080808080808080)
#define ONES UINT64_C(0x0101010101010101)

/* The first delimiter, newline or quote from p on. */
static inline const char *cell_end(const char *p, uint64_t delimiters)
{
    for (;; p += 8) {
        const uint64_t x = number_load(p), d = x ^ delimiters, nl = x ^ ONES * '\n', quote = x ^ ONES * '"';
        /* the lowest bit that is set is right; a borrow can make only higher ones wrong */
        const uint64_t found = (((d - ONES) & ~d) | ((nl - ONES) & ~nl) | ((quote - ONES) & ~quote)) & HIGH;
        if (found != 0)
            return p + (__builtin_ctzll(found) >> 3);
    }
}

/* Reads the cell that begins with the quote at p. Returns the place after its closing quote; NULL: c->what says what is
 * wrong. */
static const char *quoted_cell(struct cells *c, const char *p, const char *end, const char **text,
                               size_t *len)
{
    const char *close = memchr(p + 1, '"', (size_t)(end - p - 1));
    *text = p + 1;
    if (close && close[1] != '"') { /* there is no quote in its text */
        *len = (size_t)(close - p - 1);
        return close + 1;
    }
    size_t n = 0;
    for (p++; close; close = memchr(p, '"', (size_t)(end - p))) {
        const size_t piece = (size_t)(close - p);
        if (!cells_scratch(c, n + piece + 1))
            return NULL;
        memcpy(c->scratch + n, p, piece);
        n += piece;
        p = close + 1;
        if (*p != '"') {
            memset(c->scratch + n, '\n', PARSE_PAD);
            *text = c->scratch;
            *len = n;
            return p;
        }
        c->scratch[n++] = *p++;
    }
    (void)snprintf(c->what, sizeof c->what, "a quote that is not closed");
    return NULL;
}

static inline int line_ends(const char *p)
{
    return *p == '\n' || (*p == '\r' && p[1] == '\n');
}

/* The place after the record that begins at p. Adds its lines to *lines. */
static const char *skip_record(const char *p, const char *end, uint64_t *lines)
{
    int odd = 0;
    const char *nl = table_record_end(p, end, &odd), *stop = nl ? nl + 1 : end;
    for (const char *at = p; (at = memchr(at, '\n', (size_t)(stop - at))); at++)
        (*lines)++;
    *lines += stop > p && stop[-1] != '\n';
    return stop;
}

static int wrong_count(struct cells *c, size_t n, const struct table_plan *plan)
{
    (void)snprintf(c->what, sizeof c->what, "a row has %s columns than the header, which has %zu",
                   n < plan->n ? "fewer" : "more", plan->n);
    return 0;
}

/* The fast path for a number or label without quotes. Returns its end; NULL: it is not as simple, and nothing was
 * added. */
static inline const char *plain_cell(struct cells *c, const struct column *column, const char *p,
                                     char delimiter)
{
    const char *why;
    float v;
    if (column->role == COLUMN_NUMBER) {
        const char *q = number_float(p, &v, &why);
        if (!q || (*q != delimiter && *q != '\n'))
            return NULL;
        cells_put_number(c, column, v);
        return q;
    }
    if (column->role == COLUMN_LABEL && (*p == '0' || *p == '1') && p[1] == delimiter &&
        c->rule->kind <= LABEL_REAL) {
        c->b->label[c->rows] = (float)(*p - '0');
        c->labelled = 1;
        return p + 1;
    }
    return NULL;
}

/* Reads the row at p. Returns its newline, or NULL: it is bad. Adds the newlines within its quotes to *lines. */
static inline const char *take_row(struct cells *c, const struct table_plan *plan, const char *p,
                                   const char *end, uint64_t *lines)
{
    const char delimiter = plan->delimiter;
    const uint64_t delimiters = ONES * (unsigned char)delimiter;
    for (size_t i = 0;; p++) {
        if (__builtin_expect(i == plan->n, 0))
            return wrong_count(c, i + 1, plan) ? p : NULL;
        const struct column *column = plan->use[i++];
        const char *text = p, *q;
        size_t len;
        if (__builtin_expect(*p == '"', 0)) {
            q = quoted_cell(c, p, end, &text, &len);
            if (!q)
                return NULL;
            if (*q != delimiter && !line_ends(q)) {
                (void)snprintf(c->what, sizeof c->what,
                               "text after the closing quote of column %zu: a quote within quotes is two", i);
                return NULL;
            }
            for (const char *nl = p; (nl = memchr(nl, '\n', (size_t)(q - nl))); nl++)
                (*lines)++;
            p = q;
        } else if (column && column->role != COLUMN_CATEGORY &&
                   (q = plain_cell(c, column, p, delimiter)) != NULL) {
            p = q;
            column = NULL;
            len = 0;
        } else {
            p = cell_end(p, delimiters);
            if (__builtin_expect(*p == '"', 0)) {
                (void)snprintf(
                    c->what, sizeof c->what,
                    "a quote in column %zu, which does not begin with one: put the cell between quotes "
                    "and double it",
                    i);
                return NULL;
            }
            len = (size_t)(p - text);
            len -= *p == '\n' && len > 0 && p[-1] == '\r';
        }
        if (column && !cells_take(c, column, text, len))
            return NULL;
        if (*p == delimiter)
            continue;
        if (i < plan->n)
            return wrong_count(c, i, plan) ? p : NULL;
        return *p == '\r' ? p + 1 : p;
    }
}

static paramo_err parse_table(const struct parse_job *job)
{
    const struct table_plan *plan = job->settings->plan;
    const char *p = job->text, *const end = job->end;
    struct cells c;
    uint64_t lines = 0;
    paramo_err err = PARAMO_OK;
    cells_open(&c, job);
    if (job->settings->header && p < end)
        p = skip_record(p, end, &lines);
    while (p < end && err == PARAMO_OK) {
        if (line_ends(p)) {
            p += *p == '\r' ? 2 : 1;
            lines++;
            continue;
        }
        uint64_t inner = 0;
        cells_begin(&c);
        const char *q = take_row(&c, plan, p, end, &inner);
        if (q && cells_end(&c)) {
            p = q + 1;
            lines += inner + 1;
            continue;
        }
        cells_undo(&c);
        err = parse_bad_line(job, lines, c.what, NULL);
        p = skip_record(p, end, &lines);
    }
    cells_close(&c, lines);
    return err;
}

/* A line alone is never judged a table (parse_detect_file). */
static enum judged judge_none(const char *line, const char *end)
{
    (void)line;
    (void)end;
    return JUDGED_NO;
}

/* The shortest feature is "1,". */
const struct format_ops format_csv = {.name = "csv",
                                      .line = "a header and cells between commas",
                                      .fields = 1,
                                      .names = 1,
                                      .columns = COLUMNS_BY_HEADER,
                                      .feature_bytes = 2,
                                      .row_features = 1,
                                      .judge = judge_none,
                                      .parse = parse_table};

const struct format_ops format_tsv = {.name = "tsv",
                                      .line = "a header and cells between tabs",
                                      .fields = 1,
                                      .names = 1,
                                      .columns = COLUMNS_BY_HEADER,
                                      .feature_bytes = 2,
                                      .row_features = 1,
                                      .judge = judge_none,
                                      .parse = parse_table};
