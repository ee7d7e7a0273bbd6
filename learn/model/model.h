/*
 * What a model is to training, scoring and model files: one struct model_ops, which says which tables it needs, which
 * settings it has and how it computes margins from features. What margins are trained for is the objective
 * (learn/objective/objective.h): any model has any of them. Each model is one file, model_<name>.c, and one entry of
 * MODELS below. docs/EXTENDING.md shows how to add one.
 *
 * The computation goes over one batch. A table has a row for each feature, or a number of rows that follows from the
 * settings (`rows`), with keys 0, 1 .... param[t] holds the rows of table t, shape.dim values each: those of the
 * batch's unique keys, in the batch's order, or all rows. grad[t] has the same layout. A table of features without a
 * row for the bias has memory for one, too; its content is not used, and the model may set it to 0. Equal input gives
 * equal bits on every machine (ARCHITECTURE.md, "Same bits").
 *
 * If the objective has several outputs, a row on the servers has shape.dim values for each output in turn, and the
 * model computes each output by itself (learn/model/compute.h). A model never knows servers, files or threads. Tests:
 * test/learn/test_model.c, and those of each model.
 */
#ifndef LEARN_MODEL_MODEL_H
#define LEARN_MODEL_MODEL_H

#include "learn/data/batch.h"
#include "learn/data/columns.h"
#include "learn/data/interact.h"
#include "learn/model/optimizers.h"
#include "learn/model/scale.h"
#include "learn/objective/calibration.h"
#include "learn/objective/objective.h"

#include <stddef.h>
#include <stdint.h>

#define MODEL_MAX_TABLES   4
#define MODEL_MAX_SETTINGS 8
#define MODEL_NAME_MAX     31
#define MODEL_ROWS_MAX     4096 /* of a table whose rows are not features */
/* Features; measured on the data sets of bench/defaults.py: usual rates are too high for longer rows. */
#define MODEL_LONG_ROW 20
/* Features; measured: lower rates for longer rows are too low for text, and no better for ids. */
#define MODEL_LONG_ROW_MOST 40

/* What a setting has to do with the fields of the data (learn/train/rows.h). */
enum model_field_use {
    FIELD_UNUSED,
    FIELD_COUNT, /* N, for the fields 0 .. N - 1; 0: as many as the first rows have */
    FIELD_NUMBER /* the number of one field, which the first rows must have */
};

/* A number that a model is made with: an option of `paramo train`, and an entry of the manifest. Models that
 * have a setting of the same name share its definition, except the initial value. */
struct model_setting {
    const char *option;   /* without "--": "factor-init" */
    const char *manifest; /* "factor_init" */
    const char *meta;     /* what stands for the value in --help */
    const char *help;     /* without the initial value */
    int whole;            /* a whole number in min .. max; otherwise a real number greater than 0 */
    uint32_t min, max;    /* max at most UINT16_MAX */
    double initial;       /* where the option is not given */
    int fixed;            /* a trained model cannot get another value: rows have sizes that follow from it */
    enum model_field_use field;
};

/* A table of a model. The first is always "w": one weight for each feature and the bias. */
struct model_table_def {
    const char *name;      /* of the table on the servers, and of its file */
    const char *prefix;    /* of its optimizer's options: "factor-" gives --factor-alpha; w: "" */
    const char *what;      /* in help and messages: "the factors" */
    int bias;              /* has a row for the bias */
    const char *optimizer; /* where none is named */
    /* Rates of that optimizer where none are named; alpha 0: the optimizer's own. alpha is for up to two batches in
     * flight, n of them: alpha / sqrt(n / 2). */
    double alpha, beta, l2;
    /* in longer rows, alpha is multiplied by MODEL_LONG_ROW / features of a row to this power */
    unsigned long_rows;
};

/* What follows from the settings for one table. */
struct model_shape {
    uint32_t dim; /* values of a row */
    double init;  /* standard deviation of its first values; 0: they are all `mean` */
    double mean;  /* of its first values */
};

/* How one table was trained; what --model-in continues with. */
struct model_optimizer {
    char name[MODEL_NAME_MAX + 1]; /* learn/model/optimizers.h */
    double alpha, beta, l1, l2;    /* alpha 0: model_alpha(); beta, l2 below 0: model_beta(), model_l2() */
};

/* What a row's weight is multiplied by: that of its label. */
struct class_weights {
    uint32_t n; /* labels 0 .. n - 1; 0: all weigh the same */
    float weight[OBJECTIVE_CLASSES_MAX];
};

/* A model with its settings: what is computed with, and what a manifest says. */
struct model_info {
    const struct model_ops *ops;
    double setting[MODEL_MAX_SETTINGS];                 /* in the order of ops->setting */
    struct model_optimizer optimizer[MODEL_MAX_TABLES]; /* in the order of ops->table */
    struct objective objective;
    struct interactions interactions;     /* products of fields that are features, too */
    struct calibration calibration;       /* of the margins of a trained model */
    struct class_weights class_weight;    /* that it was trained with */
    enum scale_kind scale;                /* of the features */
    uint32_t factor_after;                /* sightings of a feature before it has factors; 0: it always has */
    uint32_t hash_bits;                   /* of the keys; 0: ids as they are */
    char data_format[MODEL_NAME_MAX + 1]; /* of the training data */
    struct columns *columns; /* of the data, or NULL; the functions that fill it say who releases it */
    uint64_t seed;
    uint64_t batch, epochs, rows; /* how it was trained; epochs and rows over all runs */
    /* mean number of features in a training row, which chooses rates and batches; 0: not known. Not saved. */
    double row_features;
};

/* Does the model use the field of each feature? */
enum model_fields { MODEL_NO_FIELDS, MODEL_NEEDS_FIELDS };

struct model_ops {
    const char *name; /* "fm": of --model, and in the manifest */
    const char *help; /* "a factorization machine" */
    enum model_fields fields;
    const struct model_setting *setting;
    size_t settings;
    const struct model_table_def *table;
    size_t tables;
    /* The most features that one product of the margin has: 1 is a sum over features, 2 has pairs. 0: as many as the
     * row has fields. No feature is squared, and a feature's parameters come with its value
     * (learn/explain/explain.h). */
    unsigned order;
    struct model_shape (*shape)(const struct model_info *info, size_t table);
    /* Rows of a table whose rows are not features, at most MODEL_ROWS_MAX; 0: a row for each feature. NULL: all tables
     * have a row for each feature. */
    size_t (*rows)(const struct model_info *info, size_t table);
    /* The margin of any row with a new model whose bias is 0; NULL: about 0. */
    double (*offset)(const struct model_info *info);
    /* Floats of scratch for a batch of `rows` rows; margins fills it for gradient. NULL: none. */
    size_t (*scratch)(const struct model_info *info, size_t rows);
    /* Changes pulled parameters before they are used. NULL: nothing to change. */
    void (*mask)(const struct model_info *info, const struct batch *batch, float *const *param);
    /* margin[r] of each row, one output. */
    void (*margins)(const struct model_info *info, const struct batch *batch, float *const *param,
                    float *scratch, float *margin);
    /* The gradients of the summed loss; residual[r] is its derivative by margin[r]. scratch is as margins left it,
     * and may be changed. */
    void (*gradient)(const struct model_info *info, const struct batch *batch, float *const *param,
                     float *scratch, const float *residual, float *const *grad);
};

/* All models, a line each: X(name), defined as model_<name> in model_<name>.c. */
#define MODELS(X)                                                                                            \
    X(lr)                                                                                                    \
    X(fm)                                                                                                    \
    X(ffm)                                                                                                   \
    X(fwfm)                                                                                                  \
    X(mvm)                                                                                                   \
    X(mf)

#define MODEL_DECLARE(name) extern const struct model_ops model_##name;
MODELS(MODEL_DECLARE)
#undef MODEL_DECLARE

/* Model number i, NULL after the last; and by its name, NULL if there is none. */
const struct model_ops *model_at(size_t i);
const struct model_ops *model_find(const char *name);

/* A new model's settings and optimizers, with their initial values. */
void model_info_init(struct model_info *info, const struct model_ops *ops);
/*
 * The learning rate of a table, where none is named. in_flight: batches that are pulled before the first is pushed.
 *
 * A step changes the margin of a row by a sum over its features, and an FM's by a sum over their pairs. So in rows of
 * L features, more than MODEL_LONG_ROW of them, the usual rate is multiplied by a power of MODEL_LONG_ROW / L. The
 * exponent for factors that meet in pairs is twice that for weights. (Juan et al., RecSys 2016, section 3.2, divide
 * each row by its norm for the same reason.) L counts as MODEL_LONG_ROW_MOST at most. The exponent 2 for weights is
 * measured: bench/defaults.py, Criteo. Rates of optimizers that are not the table's usual one stay as they are.
 */
double model_alpha(const struct model_info *info, size_t table, uint64_t in_flight);
/* Its smoothing and its L2 regularisation, where none is named. */
double model_beta(const struct model_info *info, size_t table);
double model_l2(const struct model_info *info, size_t table);
/* Writes the weights of n rows without the weights of their classes, which weight contains as a factor. NULL: all rows
 * weigh 1, and classes have no weights. */
void model_own_weights(const struct model_info *info, const float *label, const float *weight, size_t n,
                       float *own);
/* Margins that a row has. */
uint32_t model_outputs(const struct model_info *info);
/* ops->shape of one output, and values of a row on the servers, for all outputs. */
struct model_shape model_shape(const struct model_info *info, size_t table);
uint32_t model_row_values(const struct model_info *info, size_t table);
/* The value of its setting FIELD_COUNT; 0: it has none. */
uint32_t model_fields(const struct model_info *info);
/* ops->rows: the number of rows of a table whose rows are not features; 0: it has a row for each feature. */
size_t model_fixed_rows(const struct model_info *info, size_t table);
/* The rows that a batch needs: how many, and their keys, which are valid as long as the batch. */
size_t model_keys(const struct model_info *info, size_t table, const struct batch *batch,
                  const uint64_t **keys);

#endif
