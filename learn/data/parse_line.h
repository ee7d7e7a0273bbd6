/*
 * Shared by the parsers: what a format defines, a line's label, and the report of a bad line. It never knows of files.
 * Tests: test/learn/test_parse_*.c.
 */
#ifndef LEARN_DATA_PARSE_LINE_H
#define LEARN_DATA_PARSE_LINE_H

#include "learn/data/formats.h"
#include "learn/data/number.h"

/* The arguments of one call of a parser. */
struct parse_job {
    const char *text, *end;
    const struct parse_settings *settings;
    struct parse_buffer *buffer;
    parse_bad_fn bad;
    void *arg;
};

/* Is a line in a format? JUDGED_EMPTY: it may be, but it does not show it. */
enum judged { JUDGED_NO, JUDGED_EMPTY, JUDGED_YES };

struct format_ops {
    const char *name;            /* the word after --format */
    const char *line;            /* what a line looks like, for messages */
    int fields;                  /* rows have the field of each feature */
    int names;                   /* keys are hashes of names, which settings.names gets */
    enum format_columns columns; /* does it need --columns? */
    /* For the sizes of arrays: a feature has at least feature_bytes of text, and at most row_features features of a bad
     * row are written. */
    size_t feature_bytes, row_features;
    /* line: without its end; not a comment, and not blank. */
    enum judged (*judge)(const char *line, const char *end);
    paramo_err (*parse)(const struct parse_job *job);
};

#define FORMAT_DECLARE(id, name) extern const struct format_ops format_##name;
FORMATS(FORMAT_DECLARE)
#undef FORMAT_DECLARE

#define PARSE_QUOTED    20 /* characters of the text in a message */
#define PARSE_QUOTE_MAX (4 * PARSE_QUOTED + 4)
/* Writes the first PARSE_QUOTED bytes of p .. end, unprintable ones as \xHH. */
const char *parse_quote(char out[PARSE_QUOTE_MAX], const char *p, const char *end);
/* Reports a bad line: what is wrong, and the word at `at` (NULL: without it). */
paramo_err parse_bad_line(const struct parse_job *job, uint64_t line, const char *what, const char *at);

/* As parse_label(), for any label. */
const char *parse_label_slow(const struct label_rule *rule, const char *p, float *label, const char **what);

/* For judge: the end of the label with which the line begins, after blanks. If the first word is not a label but may be
 * a feature of a row without a label, the begin of that word. Otherwise NULL. */
const char *parse_judge_label(const char *line, const char *end);

/* Reads the label at p, which must be followed by a blank or the end of the line. Returns its end; p: the row has no
 * label, as LABEL_NONE allows, because its first word has a colon; NULL: *what is wrong. */
static inline const char *parse_label(const struct label_rule *rule, const char *p, float *label,
                                      const char **what)
{
    if ((p[0] == '0' || p[0] == '1') && (p[1] == ' ' || p[1] == '\t') && rule->kind <= LABEL_REAL) {
        *label = (float)(p[0] - '0');
        return p + 1;
    }
    return parse_label_slow(rule, p, label, what);
}

/* 64 bits to 64 bits, one to one: Stafford's "Mix13" of the splitmix64 family. */
static inline uint64_t parse_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t parse_mask(unsigned hash_bits)
{
    return hash_bits == 0 || hash_bits >= 64 ? UINT64_MAX : (UINT64_C(1) << hash_bits) - 1;
}

/* The key of feature id with hash_bits > 0. */
uint64_t parse_hash_id(uint64_t id, unsigned hash_bits);

#endif
