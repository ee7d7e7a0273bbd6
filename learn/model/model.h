/*
 * What a model is to training, scoring and model files: one struct model_ops, which says which tables it needs, which
 * settings it has and how it computes. Each model is one file, model_<name>.c, and one entry of MODELS below.
 * docs/EXTENDING.md shows how to add one.
 *
 * The computation goes over one batch. param[t] holds the rows of table t for the batch's unique keys in its
 * order, shape.dim values each; grad[t] is laid out the same. A table without a row for the bias has memory for
 * one, too, and its content is not used: the model may set it to 0. Equal input gives equal bits on every machine
 * (ARCHITECTURE.md, "Same bits"). A model never knows servers, files or threads. Tests: test/learn/test_model.c, and
 * those of each model.
 */
#ifndef LEARN_MODEL_MODEL_H
#define LEARN_MODEL_MODEL_H

#include "learn/data/batch.h"
#include "learn/model/optimizers.h"
#include "learn/model/scale.h"

#include <stddef.h>
#include <stdint.h>

#define MODEL_MAX_TABLES   4
#define MODEL_MAX_SETTINGS 8
#define MODEL_NAME_MAX     31

/* A number that a model is made with: an option of `paramo train`, and an entry of the manifest. Models that
 * have a setting of the same name share its definition. */
struct model_setting {
    const char *option;   /* without "--": "factor-init" */
    const char *manifest; /* "factor_init" */
    const char *meta;     /* what stands for the value in --help */
    const char *help;
    int whole;         /* a whole number in min .. max; else a real number greater than 0 */
    uint32_t min, max; /* max at most UINT16_MAX */
    double initial;    /* where the option is not given */
    int fixed;         /* a trained model cannot get another value: rows have sizes that follow from it */
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
    double alpha, beta;
};

/* What follows from the settings for one table. */
struct model_shape {
    uint32_t dim; /* values of a row */
    double init;  /* standard deviation of its first values; 0: they are 0 */
};

/* How one table was trained; what --model-in continues with. */
struct model_optimizer {
    char name[MODEL_NAME_MAX + 1]; /* learn/model/optimizers.h */
    double alpha, beta, l1, l2;    /* alpha 0: model_alpha(); beta below 0: model_beta() */
};

/* A model with its settings: what is computed with, and what a manifest says. */
struct model_info {
    const struct model_ops *ops;
    double setting[MODEL_MAX_SETTINGS];                 /* in the order of ops->setting */
    struct model_optimizer optimizer[MODEL_MAX_TABLES]; /* in the order of ops->table */
    enum scale_kind scale;                              /* of the features */
    uint32_t hash_bits;                                 /* of the keys; 0: ids as they are */
    char data_format[MODEL_NAME_MAX + 1];               /* of the training data */
    uint64_t seed;
    uint64_t batch, epochs, rows; /* how it was trained; epochs and rows over all runs */
};

struct model_ops {
    const char *name; /* "fm": of --model, and in the manifest */
    const char *help; /* "a factorization machine" */
    int fields;       /* batches must have the field of each feature: libffm or criteo data only */
    const struct model_setting *setting;
    size_t settings;
    const struct model_table_def *table;
    size_t tables;
    struct model_shape (*shape)(const struct model_info *info, size_t table);
    /* Floats of scratch for a batch of that many rows, which margins leaves for gradient. NULL: none. */
    size_t (*scratch)(const struct model_info *info, size_t rows);
    /* Changes pulled parameters before they are used. NULL: nothing to change. */
    void (*mask)(const struct model_info *info, const struct batch *batch, float *const *param);
    /* margin[r], the score of row r before the logistic link. */
    void (*margins)(const struct model_info *info, const struct batch *batch, float *const *param,
                    float *scratch, float *margin);
    /* The gradients of the summed loss; residual[r] is its derivative by margin[r]. */
    void (*gradient)(const struct model_info *info, const struct batch *batch, float *const *param,
                     const float *scratch, const float *residual, float *const *grad);
};

/* All models, a line each: X(name), defined as model_<name> in model_<name>.c. */
#define MODELS(X)                                                                                            \
    X(lr)                                                                                                    \
    X(fm)

#define MODEL_DECLARE(name) extern const struct model_ops model_##name;
MODELS(MODEL_DECLARE)
#undef MODEL_DECLARE

/* Model number i, NULL after the last; and by its name, NULL if there is none. */
const struct model_ops *model_at(size_t i);
const struct model_ops *model_find(const char *name);

/* A new model's settings and optimizers, with their initial values. */
void model_info_init(struct model_info *info, const struct model_ops *ops);
/* The learning rate of a table, where none is named, if that many batches are pulled before the first is pushed. */
double model_alpha(const struct model_info *info, size_t table, uint64_t in_flight);
/* Its smoothing, where none is named. */
double model_beta(const struct model_info *info, size_t table);
/* Keys of a batch that the table has rows for. */
size_t model_keys(const struct model_info *info, size_t table, const struct batch *batch);

#endif
