/*
 * Turns the values of columns into features, for the parsers of tables (csv, tsv and jsonl) and of vw. It is inline
 * because it is their inner loop.
 *
 * A value is text[0..len) with PARSE_PAD readable bytes after it, and without quotes around it. An empty value is
 * missing. A wrong value leaves a message, and its row is bad. It never knows of delimiters. Tests:
 * test/learn/test_csv.c.
 */
#ifndef LEARN_DATA_PARSE_CELLS_H
#define LEARN_DATA_PARSE_CELLS_H

#include "learn/data/columns.h"
#include "learn/data/names.h"
#include "learn/data/parse_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* xxhash.h as inline functions: a call for each value would cost as much as the hash */
#define XXH_INLINE_ALL
#include <xxhash.h>

#define CELL_MESSAGE_MAX 160

/* One call of a parser: where rows go, and the row that is being read. */
struct cells {
    struct parse_buffer *b;
    uint64_t mask;
    const struct label_rule *rule;
    struct names *names;
    size_t n, rows; /* features and rows so far */
    int not_one, has_weight;
    /* of the row */
    size_t row_start;
    int row_not_one, labelled;
    float weight;
    char what[CELL_MESSAGE_MAX]; /* of a bad row */
    /* of the call: text with quotes or escapes taken out */
    char *scratch;
    size_t scratch_cap;
};

static inline void cells_open(struct cells *c, const struct parse_job *job)
{
    *c = (struct cells){.b = job->buffer,
                        .mask = parse_mask(job->settings->hash_bits),
                        .rule = &job->settings->label,
                        .names = job->settings->names};
}

static inline void cells_close(struct cells *c, uint64_t lines)
{
    c->b->rows = c->rows;
    c->b->features = c->n;
    c->b->lines = lines;
    c->b->not_one = c->not_one;
    c->b->has_weight = c->has_weight;
    free(c->scratch);
}

static inline void cells_begin(struct cells *c)
{
    c->row_start = c->n;
    c->row_not_one = c->not_one;
    c->labelled = 0;
    c->weight = 1.0f;
}

static inline void cells_undo(struct cells *c)
{
    c->n = c->row_start;
    c->not_one = c->row_not_one;
}

/* Returns 0 if the row has no label and must have one. */
static inline int cells_end(struct cells *c)
{
    if (!c->labelled) {
        if (c->rule->kind != LABEL_NONE) {
            (void)snprintf(c->what, sizeof c->what, "a row without a label");
            return 0;
        }
        c->b->label[c->rows] = __builtin_nanf("");
    }
    c->b->weight[c->rows] = c->weight;
    c->has_weight |= c->weight != 1.0f;
    c->b->offset[++c->rows] = (uint32_t)c->n;
    return 1;
}

static inline void cells_put_number(struct cells *c, const struct column *column, float v)
{
    c->b->key[c->n] = column->key & c->mask;
    if (__builtin_expect(c->names != NULL, 0))
        names_note(c->names, c->b->key[c->n], column->name, column->len, NULL, 0);
    c->b->value[c->n] = v;
    c->b->field[c->n] = column->field;
    c->not_one |= v != 1.0f;
    c->n++;
}

/* What the values of a category, or the features of a namespace, share. */
struct cells_group {
    uint64_t seed;
    uint16_t field;
    const char *name;
    size_t len;
};

static inline void cells_put_category(struct cells *c, const struct cells_group *group, const char *text,
                                      size_t len, float v)
{
    c->b->key[c->n] = XXH3_64bits_withSeed(text, len, group->seed) & c->mask;
    if (__builtin_expect(c->names != NULL, 0))
        names_note(c->names, c->b->key[c->n], group->name, group->len, text, len);
    c->b->value[c->n] = v;
    c->b->field[c->n] = group->field;
    c->n++;
}

/* Leaves the message "column 'age': expected a number, found 'old'". */
static __attribute__((noinline, cold)) int cells_wrong(struct cells *c, const struct column *column,
                                                       const char *what, const char *text, size_t len)
{
    char name[PARSE_QUOTE_MAX], word[PARSE_QUOTE_MAX];
    parse_quote(name, column->name, column->name + column->len);
    (void)snprintf(c->what, sizeof c->what, "column '%s': %s, found '%s'", name, what,
                   parse_quote(word, text, text + len));
    return 0;
}

/* A number with blanks around it, or true or false. Returns 1; 0 if it is missing (NA, NaN, null); -1: *why. */
static inline int cells_number(const char *text, size_t len, float *v, const char **why)
{
    while (len > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        len--;
    }
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        len--;
    *why = "expected a number";
    if (len == 0 || (len == 2 && strncasecmp(text, "NA", 2) == 0) ||
        (len == 3 && strncasecmp(text, "NaN", 3) == 0) || (len == 4 && strncasecmp(text, "null", 4) == 0))
        return 0;
    *v = len == 4 ? 1.0f : 0.0f;
    if ((len == 4 && strncasecmp(text, "true", 4) == 0) || (len == 5 && strncasecmp(text, "false", 5) == 0))
        return 1;
    return number_float(text, v, why) == text + len ? 1 : -1;
}

/* Numbers, labels and weights that are not plain. Returns 0 if the row is bad. */
static __attribute__((noinline)) int cells_take_slow(struct cells *c, const struct column *column,
                                                     const char *text, size_t len)
{
    char word[64];
    const char *why;
    float v;
    const int is = cells_number(text, len, &v, &why);
    switch (column->role) {
    case COLUMN_NUMBER:
        if (is > 0)
            cells_put_number(c, column, v);
        return is >= 0 || cells_wrong(c, column, why, text, len);
    case COLUMN_WEIGHT:
        if (is < 0 || (is > 0 && v < 0))
            return cells_wrong(c, column, is < 0 ? why : "expected a weight, at least 0", text, len);
        c->weight = is > 0 ? v : 1.0f;
        return 1;
    case COLUMN_LABEL:
        if (is == 0 || c->rule->kind == LABEL_NONE)
            return 1;
        if (is > 0) { /* v as text for label_read, which knows no "true" and no blanks */
            const int n = snprintf(word, sizeof word, "%.9g", (double)v);
            memset(word + n, '\n', PARSE_PAD);
            why = label_read(c->rule, word, (size_t)n, &c->b->label[c->rows]);
        } else {
            why = label_read(c->rule, text, len, &c->b->label[c->rows]);
            why = why ? why : "expected a label";
        }
        c->labelled = 1;
        return !why || cells_wrong(c, column, why, text, len);
    default:
        return 1;
    }
}

/* One value. Returns 0 if the row is bad, with the message in what. */
static inline __attribute__((always_inline)) int cells_take(struct cells *c, const struct column *column,
                                                            const char *text, size_t len)
{
    if (column->role != COLUMN_CATEGORY)
        return cells_take_slow(c, column, text, len);
    if (len > 0)
        cells_put_category(c, &(struct cells_group){column->seed, column->field, column->name, column->len},
                           text, len, 1.0f);
    return 1;
}

/* Makes room for len bytes and the pad in scratch. 0: no memory. */
static inline int cells_scratch(struct cells *c, size_t len)
{
    if (len + PARSE_PAD <= c->scratch_cap)
        return 1;
    const size_t cap = 2 * len + 256;
    char *scratch = realloc(c->scratch, cap);
    if (!scratch) {
        (void)snprintf(c->what, sizeof c->what, "out of memory for a value of %zu bytes", len);
        return 0;
    }
    c->scratch = scratch;
    c->scratch_cap = cap;
    return 1;
}

#endif
