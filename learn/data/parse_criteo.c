/*
 * Criteo's click log: a label, 13 integers, 26 categories of hexadecimal text, between tabs; any but the
 * label may be missing.
 *
 * Every row gives 39 features of value 1. An integer above 2 falls into the bucket floor(ln(v)^2), others
 * (zero, small, negative) each stand for themselves, and missing is a token of its own: the transformation of
 * "3 Idiots" (Juan, Zhuang and Chin), winners of Criteo's contest of 2014, which the published results on
 * this data follow.
 */
#include "learn/data/parse_line.h"

#include <math.h>

/* xxhash.h as inline functions: a call for each word would cost as much as the hash */
#define XXH_INLINE_ALL
#include <xxhash.h>

#define INTEGERS 13
#define MISSING  (UINT64_C(1) << 56) /* token * 64 + field below stays within 64 bits */
#define BUCKET   (UINT64_C(1) << 57)

/* The integer's token: a bucket, itself, or MISSING. Each kind has a range of its own. */
static uint64_t integer_token(int negative, uint64_t v)
{
    if (negative || v <= 2)
        return negative ? (uint64_t)0 - v : v;
    double l = log((double)v);
    return BUCKET | (uint64_t)(l * l);
}

/* A table of the buckets of small integers, which are most of a log's: without it, ln() takes half of the parsing
 * time. */
#define SMALL 1024
static uint16_t small_bucket[SMALL];

__attribute__((constructor)) static void fill_small_bucket(void)
{
    for (unsigned v = 3; v < SMALL; v++)
        small_bucket[v] = (uint16_t)(integer_token(0, v) & ~BUCKET);
}

static inline uint64_t hash_integer(uint64_t token, unsigned field)
{
    return parse_mix(token * 64 + field + 0x9e3779b97f4a7c15u);
}

/* The end of the run of bytes above ' ' that starts at p: a tab, newline or other control character, or a blank. */
static inline const char *word_end(const char *p)
{
    for (;; p += 8) {
        uint64_t x = number_load(p);
        uint64_t low = (x - 0x2121212121212121u) & ~x & 0x8080808080808080u;
        if (low != 0)
            return p + (__builtin_ctzll(low) >> 3);
    }
}

/* Does the line have one tab fewer than a row with a label? */
static int lacks_label(const char *p)
{
    size_t tabs = 0;
    for (; *p != '\n'; p++)
        tabs += *p == '\t';
    return tabs == PARSE_CRITEO_FIELDS - 1;
}

static paramo_err parse_criteo(const struct parse_job *job)
{
    struct parse_buffer *b = job->buffer;
    const uint64_t mask = parse_mask(job->settings->hash_bits);
    const struct label_rule *const rule = &job->settings->label;
    const char *p = job->text, *const end = job->end;
    size_t n = 0, rows = 0;
    uint64_t lines = 0;

    while (p < end) {
        const char *what = NULL, *at, *q;
        unsigned field = 0;
        uint64_t *const key = b->key + n;
        lines++;
        if (*p == '\n' || (*p == '\r' && p[1] == '\n'))
            goto next_line;
        q = parse_label(rule, p, &b->label[rows], &what);
        const int labelled = rule->kind != LABEL_NONE || !lacks_label(p);
        if (labelled && !q) {
            at = p;
            goto bad;
        }
        p = labelled ? q : p;
        for (; field < INTEGERS; field++) {
            at = p;
            if (labelled || field > 0) {
                if (*p != '\t')
                    goto bad_columns;
                at = ++p;
            }
            if (*p == '\t') {
                key[field] = hash_integer(MISSING, field) & mask;
                continue;
            }
            uint64_t v;
            int negative = *p == '-';
            p += negative;
            q = number_u64(p, &v);
            if (!q || v >> 53 != 0) {
                what = "expected an integer";
                goto bad;
            }
            p = q;
            uint64_t token =
                !negative && v > 2 && v < SMALL ? BUCKET | small_bucket[v] : integer_token(negative, v);
            key[field] = hash_integer(token, field) & mask;
        }
        for (; field < PARSE_CRITEO_FIELDS; field++) {
            at = p;
            if (*p != '\t')
                goto bad_columns;
            q = word_end(++p);
            key[field] = XXH3_64bits_withSeed(p, (size_t)(q - p), field + 1) & mask;
            p = q;
        }
        at = p;
        if (*p != '\n' && !(*p == '\r' && p[1] == '\n'))
            goto bad_columns;
        for (unsigned i = 0; i < PARSE_CRITEO_FIELDS; i++) {
            b->field[n + i] = (uint16_t)i;
            b->value[n + i] = 1.0f;
        }
        n += PARSE_CRITEO_FIELDS;
        b->offset[++rows] = (uint32_t)n;
    next_line:
        while (*p != '\n')
            p++;
        p++;
        continue;
    bad_columns:
        what = *at == '\n' || *at == '\r' ? "a line of fewer than 40 columns"
               : *at == '\t'              ? "a line of more than 40 columns"
                                          : "expected a tab after a column";
    bad:;
        paramo_err err = parse_bad_line(job, lines - 1, what, at);
        if (err != PARAMO_OK)
            return err;
        p = at;
        goto next_line;
    }
    b->rows = rows;
    b->features = n;
    b->lines = lines;
    return PARAMO_OK;
}

static enum judged judge_criteo(const char *line, const char *end)
{
    size_t tabs = 0;
    for (const char *p = line; p < end; p++)
        tabs += *p == '\t';
    if (tabs == PARSE_CRITEO_FIELDS - 1) /* without a label: the first word is an integer or missing */
        return *line == '-' || *line == '\t' || (*line >= '0' && *line <= '9') ? JUDGED_YES : JUDGED_NO;
    return tabs == PARSE_CRITEO_FIELDS && parse_judge_label(line, end) ? JUDGED_YES : JUDGED_NO;
}

/* A row has at least 39 bytes, its tabs. */
const struct format_ops format_criteo = {.name = "criteo",
                                         .line = "40 columns between tabs",
                                         .fields = 1,
                                         .feature_bytes = 1,
                                         .row_features = PARSE_CRITEO_FIELDS,
                                         .judge = judge_criteo,
                                         .parse = parse_criteo};
