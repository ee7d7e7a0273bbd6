/*
 * What files of rows contain: counts, labels, values, fields, and an estimate of the number of different features. It
 * never knows of formats. Tests: test/learn/test_raw_rows.c.
 */
#ifndef LEARN_DATA_DESCRIBE_H
#define LEARN_DATA_DESCRIBE_H

#include "learn/data/reader.h"

#define DESCRIBE_LABELS 32 /* different labels that are counted one by one; arbitrary */

struct describe_field {
    uint64_t features;
    double different; /* features, estimated by a HyperLogLog of 1,024 registers: standard error 3 % */
};

struct describe_result {
    uint64_t rows, labelled, empty, features, bad_lines;
    uint64_t row_min, row_max; /* features of a row */
    float label_min, label_max, value_min, value_max;
    double label_sum, weight_sum;
    int has_weight, has_field;
    size_t labels; /* different ones; DESCRIBE_LABELS + 1: more than are counted */
    float label[DESCRIBE_LABELS];
    uint64_t label_rows[DESCRIBE_LABELS];
    double different;             /* features, estimated: standard error 0.8 % */
    size_t fields;                /* the greatest number + 1 */
    struct describe_field *field; /* [fields] */
};

/* Reads all blocks. The caller calls describe_free if it returns OK. */
PARAMO_MUST_USE paramo_err describe_reader(struct reader *reader, struct describe_result *result);
void describe_free(struct describe_result *result);

#endif
