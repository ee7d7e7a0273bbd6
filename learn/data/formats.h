/*
 * The list of formats, and the buffers that their parsers fill (parse.h). It never knows what a line looks like. Tests:
 * test/learn/test_parse_*.c.
 */
#ifndef LEARN_DATA_FORMATS_H
#define LEARN_DATA_FORMATS_H

#include <stddef.h>
#include <stdint.h>

#include "learn/data/label.h"
#include "paramo/errors.h"

struct columns;
struct names;
struct table_plan;

/* The formats. The format of a file is the last one here that fits its first lines, so a format that demands more of a
 * line stands below those that demand less. Tables need --columns. */
#define FORMATS(X)                                                                                           \
    LINE_FORMATS(X)                                                                                          \
    TABLE_FORMATS(X)
#define TABLE_FORMATS(X)                                                                                     \
    X(CSV, csv)                                                                                              \
    X(TSV, tsv)                                                                                              \
    X(JSONL, jsonl)
#define LINE_FORMATS(X)                                                                                      \
    X(LIBSVM, libsvm)                                                                                        \
    X(VW, vw)                                                                                                \
    X(LIBFFM, libffm)                                                                                        \
    X(CRITEO, criteo)

enum parse_format {
    PARSE_AUTO,
#define FORMAT_ENUM(id, name) PARSE_##id,
    FORMATS(FORMAT_ENUM)
#undef FORMAT_ENUM
        PARSE_FORMATS
};

/* The words of an option: "auto|libsvm|...". */
#define PARSE_FORMAT_WORD(id, name) "|" #name
#define PARSE_FORMAT_WORDS          "auto" FORMATS(PARSE_FORMAT_WORD)
#define PARSE_LINE_FORMAT_WORDS     "auto" LINE_FORMATS(PARSE_FORMAT_WORD)

/* Where the meaning of a value comes from. */
enum format_columns {
    COLUMNS_NONE,     /* the line itself */
    COLUMNS_BY_NAME,  /* struct columns; a name stands beside each value */
    COLUMNS_BY_HEADER /* struct columns; the file begins with the names */
};

#define PARSE_PAD           16
#define PARSE_MAX_FIELD     UINT16_MAX
#define PARSE_CRITEO_FIELDS 39 /* 13 integers, fields 0..12, and 26 categories, fields 13..38 */

/* Called for each bad line: line counts from 0 within the text. Returns PARAMO_OK to continue with the next line. */
typedef paramo_err (*parse_bad_fn)(void *arg, uint64_t line, const char *what);

/* Scratch of one parsing thread, used again and again. Zero it before first use. */
struct parse_buffer {
    size_t rows, features;
    size_t row_cap, feature_cap;
    int not_one;    /* some value differs from 1 */
    int has_field;  /* field[] is filled */
    int has_weight; /* weight[] is filled */
    uint64_t lines;
    float *label, *weight;
    uint32_t *offset;
    uint64_t *key;
    float *value;
    uint16_t *field;
};

/* How text is read. hash_bits 0: ids of libsvm and libffm are keys as they are, and all other keys are 64-bit hashes.
 * Otherwise every key is a hash of hash_bits bits. */
struct parse_settings {
    enum parse_format format;
    unsigned hash_bits;
    struct label_rule label;
    /* Of formats with columns (columns.h, header.h), borrowed. */
    const struct columns *columns;
    const struct table_plan *plan; /* of the file, if it has a header */
    int header;                    /* the text begins with the header */
    struct names *names;           /* gets the names of keys (names.h), or NULL */
};

/* Length of the UTF-8 byte order mark at a file's start: 3 or 0. It is no part of the first line. */
size_t parse_mark(const char *text, size_t len);

#endif
