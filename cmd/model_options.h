/*
 * The options of `paramo train`, `tune` and `import` that the table of models (learn/model/model.h) defines: --model,
 * the settings of the models, such as --dim, and an optimizer for each of their tables, such as --factor-alpha. It
 * knows no model by name. On the command line their ids follow those of option_table.h. Tests:
 * test/cmd/test_options.c.
 */
#ifndef CMD_MODEL_OPTIONS_H
#define CMD_MODEL_OPTIONS_H

#include "learn/model/model.h"

#include "paramo/options.h"

enum { MODEL_OPTIONS_MAX = 64 }; /* arbitrary */

enum model_option_kind { MODEL_CHOICE, MODEL_SETTING, MODEL_OPTIMIZER };

/* The options of an optimizer, in the order of --help. */
enum optimizer_option {
    OPTIMIZER_NAME,
    OPTIMIZER_ALPHA,
    OPTIMIZER_BETA,
    OPTIMIZER_L1,
    OPTIMIZER_L2,
    OPTIMIZER_OPTIONS
};

struct model_option {
    paramo_option option; /* its texts are below */
    enum model_option_kind kind;
    /* Of the first model, or (an optimizer) the first table, that has the option; others may share it. */
    const struct model_setting *setting;
    const struct model_table_def *table;
    enum optimizer_option part; /* of an optimizer */
    char initial[96]; /* the initial values of models that have others than the first: "8; ffm: 4" */
    char name[32], meta[128], help[256];
};

/* The i-th option, from 0; NULL after the last. Owned by this module. The first call must not race with another. */
const struct model_option *model_options_at(size_t i);

#endif
