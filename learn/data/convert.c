#include "learn/data/convert.h"
#include "learn/io/output.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define PIECE_MAX 96 /* characters of a label and weight, or of a feature */

/* Text of one block. */
struct lines {
    char *text;
    size_t len, cap;
};

/* Decimal digits of v. */
static size_t put_u64(char *out, uint64_t v)
{
    char digits[24];
    size_t n = sizeof digits;
    do
        digits[--n] = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    for (size_t i = n; i < sizeof digits; i++)
        out[i - n] = digits[i];
    return sizeof digits - n;
}

/* With 6 digits if they give back v, otherwise with 9. */
static size_t put_float(char *out, float v)
{
    if (v == 1.0f || v == 0.0f) {
        *out = v == 1.0f ? '1' : '0';
        return 1;
    }
    int n = snprintf(out, 32, "%.6g", (double)v);
    if (strtof(out, NULL) != v)
        n = snprintf(out, 32, "%.9g", (double)v);
    return (size_t)n;
}

/* A namespace whose first letter stands for the field (parse_vw.c). Field 0 has no name, and the fields from 63 on
 * share a letter. */
static size_t put_namespace(char *out, uint16_t field)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    if (field >= sizeof letters)
        return (size_t)snprintf(out, PIECE_MAX, " |_%u", (unsigned)field);
    if (field > 0)
        return (size_t)snprintf(out, PIECE_MAX, " |%c", letters[field - 1]);
    return (size_t)snprintf(out, PIECE_MAX, " |");
}

static size_t put_feature(char *out, const struct block *b, size_t i, enum parse_format to, long *field)
{
    const uint16_t of = b->field ? b->field[i] : 0;
    size_t n = 0;
    if (to == PARSE_VW && *field != (long)of) {
        *field = of;
        n += put_namespace(out, of);
    }
    out[n++] = ' ';
    if (to == PARSE_LIBFFM) {
        n += put_u64(out + n, of);
        out[n++] = ':';
    }
    n += put_u64(out + n, b->key[i]);
    if (to == PARSE_VW && (!b->value || b->value[i] == 1.0f))
        return n;
    out[n++] = ':';
    return n + put_float(out + n, b->value ? b->value[i] : 1.0f);
}

static size_t put_head(char *out, const struct block *b, size_t r, enum parse_format to)
{
    size_t n = isnan(b->label[r]) ? 0 : put_float(out, b->label[r]);
    if (to == PARSE_VW && n > 0 && b->weight && b->weight[r] != 1.0f) {
        out[n++] = ' ';
        n += put_float(out + n, b->weight[r]);
    }
    return n;
}

static paramo_err put_block(struct lines *l, const struct block *b, enum parse_format to)
{
    const size_t most = (b->rows * 2 + b->features) * PIECE_MAX;
    if (most > l->cap) {
        free(l->text);
        l->text = malloc(most);
        l->cap = l->text ? most : 0;
        if (!l->text)
            return paramo_error_set(PARAMO_E_MEMORY, "out of memory for text");
    }
    l->len = 0;
    for (size_t r = 0; r < b->rows; r++) {
        long field = -1;
        if (to != PARSE_VW && b->weight && b->weight[r] != 1.0f)
            return paramo_error_set(PARAMO_E_INVALID,
                                    "the rows have weights, which the format %s cannot hold: use --to vw",
                                    parse_format_name(to));
        l->len += put_head(l->text + l->len, b, r, to);
        for (size_t i = b->offset[r]; i < b->offset[r + 1]; i++)
            l->len += put_feature(l->text + l->len, b, i, to, &field);
        if (to == PARSE_VW && field < 0)
            l->len += (size_t)snprintf(l->text + l->len, PIECE_MAX, " |");
        l->text[l->len++] = '\n';
    }
    return PARAMO_OK;
}

paramo_err convert_reader(struct reader *reader, enum parse_format to, const char *path, uint64_t *rows)
{
    struct output *out = NULL;
    struct lines lines = {0};
    const struct block *b = NULL;
    *rows = 0;
    paramo_err err = output_open(path, &out);
    while (err == PARAMO_OK && (err = reader_next(reader, &b)) == PARAMO_OK && b) {
        err = put_block(&lines, b, to);
        *rows += b->rows;
        reader_release(reader, b);
        if (err == PARAMO_OK)
            err = output_write(out, lines.text, lines.len);
    }
    free(lines.text);
    if (err == PARAMO_OK)
        return output_commit(out);
    output_abort(out);
    return err;
}
