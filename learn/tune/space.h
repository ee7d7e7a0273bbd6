/*
 * The options of a model that tuning chooses, and their ranges: settings such as --dim, the rates and penalties of each
 * table's optimizer, and --batch. The ranges follow from the table of models (learn/model/model.h), so each model has
 * them. A point is a value for each option, with three significant digits: its text gives the same number.
 *
 * Random points depend only on the seed and on the number of the draw. It never knows of training. Tests:
 * test/learn/test_tune.c.
 */
#ifndef LEARN_TUNE_SPACE_H
#define LEARN_TUNE_SPACE_H

#include "learn/train/train_options.h"

#define TUNE_OPTIONS_MAX 24
#define TUNE_NAME_MAX    40

enum tune_kind { TUNE_SETTING, TUNE_ALPHA, TUNE_BETA, TUNE_L1, TUNE_L2, TUNE_BATCH };

struct tune_option {
    char name[TUNE_NAME_MAX]; /* without "--": "factor-alpha" */
    enum tune_kind kind;
    size_t place;     /* of the setting, or of the optimizer's table */
    double low, high; /* values are drawn between them, uniformly by their logarithm */
    double zero;      /* probability of 0 instead */
    int doubles;      /* values are low times powers of two; for --batch, 0 stands for "not given" */
    double usual;     /* the value if the option is not given */
    int ranged;       /* tune_space_range has set the range */
};

struct tune_space {
    size_t n;
    struct tune_option option[TUNE_OPTIONS_MAX];
};

/* All options of the model. */
void tune_space_init(struct tune_space *space, const struct model_info *info);
/* info->row_features is known now: usual rates become those of a job with these rows (model_alpha). A range that was
 * not given, and begins above the usual rate, begins at half of it. */
void tune_space_rows(struct tune_space *space, const struct model_info *info);
/* Removes an option, if it is there: it keeps the value that the model has. */
void tune_space_drop(struct tune_space *space, const char *name);
/* Sets a range, from "alpha=0.01:0.5". Returns NULL, or what is wrong with the text. */
const char *tune_space_range(struct tune_space *space, const char *text);

/* The usual values; a random point; and one near `from`. */
void tune_usual(const struct tune_space *space, double *point);
void tune_draw(const struct tune_space *space, uint64_t seed, uint64_t number, double *point);
void tune_near(const struct tune_space *space, const double *from, uint64_t seed, uint64_t number,
               double *point);

/* Sets the options of a job to the point. */
void tune_apply(const struct tune_space *space, const double *point, struct train_options *options);
/* Writes " --alpha 0.12 --beta 3", without --batch if it is 0. Returns the length; out has cap bytes. */
size_t tune_text(const struct tune_space *space, const double *point, char *out, size_t cap);

#endif
