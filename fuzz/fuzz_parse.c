/* Text to rows: every format, the detection of one, names of columns, and numbers against the C library's. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "learn/data/columns.h"
#include "learn/data/header.h"
#include "learn/data/number.h"
#include "learn/data/parse.h"

struct bad_lines {
    uint64_t count, last;
    bool stop;
};

static paramo_err bad_line(void *arg, uint64_t line, const char *what)
{
    struct bad_lines *bad = arg;
    CHECK(what[0] && (!bad->count || line > bad->last));
    bad->count++;
    bad->last = line;
    return bad->stop ? paramo_error_set(PARAMO_E_FORMAT, "line %llu: %s", (unsigned long long)line, what)
                     : PARAMO_OK;
}

/* The text with its newline and PARSE_PAD bytes, and no more. */
static char *padded(const uint8_t *text, size_t len, size_t *whole)
{
    char *copy = harness_alloc(len + 1 + PARSE_PAD);
    memcpy(copy, text, len);
    *whole = len;
    if (len && copy[len - 1] != '\n')
        copy[(*whole)++] = '\n';
    memset(copy + *whole, 0x5a, PARSE_PAD);
    copy[*whole] = '\n';
    return realloc(copy, *whole + PARSE_PAD);
}

static bool label_fits(const struct label_rule *rule, float label)
{
    switch (rule->kind) {
    case LABEL_BINARY:
        return label == 0 || label == 1;
    case LABEL_REAL:
        return isfinite(label);
    case LABEL_COUNT:
        return isfinite(label) && label >= 0;
    case LABEL_CLASS:
        return label >= 0 && label < (float)(rule->classes ? rule->classes : LABEL_CLASSES_MAX) &&
               label == floorf(label);
    default:
        return isnan(label);
    }
}

static void rows(const struct parse_settings *settings, bool stop, const uint8_t *text, size_t len)
{
    const unsigned hash_bits = settings->hash_bits;
    struct parse_buffer b = {0};
    struct bad_lines bad = {.stop = stop};
    struct block block;
    size_t whole, lines = 0;
    char *copy = padded(text, len, &whole);
    CHECK(copy);
    for (size_t i = 0; i < whole; i++)
        lines += copy[i] == '\n';
    for (int pass = 0; pass < 2; pass++) { /* the buffer is used again */
        bad.count = 0;
        paramo_err err = parse_text(settings, copy, whole, &b, bad_line, &bad);
        CHECK(err == PARAMO_OK || (stop && bad.count == 1));
        if (err)
            continue;
        CHECK(b.lines == lines && b.rows + bad.count <= lines);
        CHECK(b.rows <= b.row_cap && b.features <= b.feature_cap);
        CHECK(b.offset[0] == 0 && b.offset[b.rows] == b.features);
        for (size_t r = 0; r < b.rows; r++) {
            CHECK(label_fits(&settings->label, b.label[r]));
            CHECK(b.offset[r] <= b.offset[r + 1]);
        }
        int not_one = 0;
        for (size_t i = 0; i < b.features; i++) {
            CHECK(!hash_bits || b.key[i] < UINT64_C(1) << hash_bits);
            CHECK(isfinite(b.value[i]));
            not_one |= b.value[i] != 1;
        }
        CHECK(b.not_one || !not_one);
        CHECK(parse_block(&b, 1, &block) == PARAMO_OK);
        CHECK(block.rows == b.rows && block.features == b.features);
        block_free(&block);
    }
    parse_buffer_free(&b);
    free(copy);
}

static void number(const uint8_t *text, size_t len)
{
    size_t whole;
    char *copy = padded(text, len, &whole), *end;
    const char *what = NULL, *stop;
    float value;
    uint64_t integer;
    CHECK(copy);
    stop = number_float(copy, &value, &what);
    CHECK(stop || what);
    if (stop) {
        CHECK(stop > copy && stop <= copy + whole);
        char *alone = harness_alloc((size_t)(stop - copy) + 1);
        memcpy(alone, copy, (size_t)(stop - copy));
        alone[stop - copy] = '\0';
        float want = strtof(alone, &end);
        CHECK(*end == '\0' && memcmp(&want, &value, sizeof want) == 0);
        free(alone);
    }
    stop = number_u64(copy, &integer);
    if (stop) {
        CHECK(stop > copy && stop <= copy + whole);
        CHECK(integer == strtoull(copy, &end, 10) && end == stop);
    }
    free(copy);
}

static void detect(bool whole, const uint8_t *text, size_t len)
{
    enum parse_format format = PARSE_AUTO;
    char *copy = harness_alloc(len);
    memcpy(copy, text, len);
    if (parse_detect(copy, len, whole, &format) == PARAMO_OK) {
        CHECK(format > PARSE_AUTO && format < PARSE_FORMATS);
        CHECK(parse_format_find(parse_format_name(format)) == (int)format);
        rows(&(struct parse_settings){.format = format}, false, text, len);
    }
    free(copy);
}

/* The text begins with its header. */
static void table(struct parse_settings *settings, bool stop, bool cut, const uint8_t *text, size_t len)
{
    static const char *const specs[] = {"label=y,cat=a;b,num=n,weight=w", "label=y,cat=a", "label=y,num=n"};
    struct columns *columns;
    CHECK(columns_parse(specs[settings->hash_bits % 3], &columns) == PARAMO_OK);
    settings->columns = columns;
    if (parse_format_columns(settings->format) == COLUMNS_BY_HEADER) {
        struct table_header header;
        struct table_plan *plan;
        const char delimiter = settings->format == PARSE_TSV ? '\t' : 0;
        if (table_header_read((const char *)text, len, !cut, delimiter, &header) == PARAMO_OK) {
            char list[TABLE_LIST_MAX];
            CHECK(strlen(table_header_list(&header, list)) < TABLE_LIST_MAX && header.n > 0);
            if (table_plan_new(columns, &header, settings->label.kind != LABEL_NONE, &plan) == PARAMO_OK) {
                settings->plan = plan;
                settings->header = !cut;
                rows(settings, stop, text, len);
                free(plan);
            }
            table_header_free(&header);
        }
    } else {
        rows(settings, stop, text, len);
    }
    columns_release(columns);
}

static void names(const uint8_t *text, size_t len)
{
    char *copy = harness_alloc(len + 1);
    struct columns *columns;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (columns_parse(copy, &columns) == PARAMO_OK) {
        for (size_t i = 0; i < columns_count(columns); i++) {
            const struct column *c = columns_at(columns, i);
            CHECK(columns_find(columns, c->name, c->len) == c);
        }
        columns_release(columns);
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    uint8_t which = draw_u8(&s) % 16, how = draw_u8(&s);
    static const uint8_t bits[] = {0, 1, 20, 63};
    struct parse_settings settings = {.hash_bits = bits[how >> 4 & 3]};
    switch (which) {
    case 0:
        number(s.at, s.left);
        break;
    case 1:
        detect(how & 0x40, s.at, s.left);
        break;
    case 2:
        names(s.at, s.left);
        break;
    default:
        settings.format = (enum parse_format)(1 + (which - 3) % (PARSE_FORMATS - 1));
        settings.label =
            (struct label_rule){.kind = (how >> 2) % (LABEL_NONE + 1), .classes = how >> 7 ? 3 : 0};
        if (parse_format_columns(settings.format) == COLUMNS_NONE)
            rows(&settings, how & 0x40, s.at, s.left);
        else
            table(&settings, how & 0x40, how & 1, s.at, s.left);
    }
    return 0;
}
