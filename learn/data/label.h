/*
 * Which labels a row may have, and their numbers in a block.
 *
 * The objective of a model decides the kind. The parsers check each row against it, so a model never sees a label
 * that it cannot learn. It never knows of formats. Tests: test/learn/test_parse_sparse.c.
 */
#ifndef LEARN_DATA_LABEL_H
#define LEARN_DATA_LABEL_H

#include <stddef.h>
#include <stdint.h>

enum label_kind {
    LABEL_BINARY, /* 0 or 1; -1 counts as 0 */
    LABEL_REAL,   /* any finite number */
    LABEL_COUNT,  /* a finite number, at least 0 */
    LABEL_CLASS,  /* the number of a class, a whole number from 0 on */
    LABEL_NONE    /* a row may have any number as its label, or none; the block has NaN */
};

/* Arbitrary; a float is exact for whole numbers up to 2^24. */
#define LABEL_CLASSES_MAX 65536

/* How labels are read. */
struct label_rule {
    enum label_kind kind;
    uint32_t classes; /* LABEL_CLASS: labels are below this; 0: below LABEL_CLASSES_MAX */
};

/* The weight of a label that is the number of a class below n; 1 for other labels. */
static inline float label_weight(const float *class_weight, uint32_t n, float label)
{
    return label >= 0 && label < (float)n ? class_weight[(uint32_t)label] : 1.0f;
}

/* Reads the label word[0..len), which has no blanks and is followed by PARSE_PAD readable bytes (parse.h). Returns
 * NULL, or what is wrong: "expected a label, 0 or 1 (or -1 or +1)". */
const char *label_read(const struct label_rule *rule, const char *word, size_t len, float *label);

#endif
