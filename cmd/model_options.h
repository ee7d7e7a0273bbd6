/*
 * The options of `paramo train` that come with the models (learn/model/model.h): --model, a model's settings such
 * as --dim, and an optimizer for each of its tables, such as --factor-alpha. It goes over the table of models and
 * knows none by name. The command line has them after its own table (options.h). Tests: test/cmd/test_options.c.
 */
#ifndef CMD_MODEL_OPTIONS_H
#define CMD_MODEL_OPTIONS_H

#include "learn/model/model.h"

#include "paramo/options.h"

enum { MODEL_OPTIONS_MAX = 64 };

enum model_option_kind { MODEL_CHOICE, MODEL_SETTING, MODEL_OPTIMIZER };

/* Options of an optimizer, in their order. */
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
    const struct model_setting *setting; /* models may share it */
    const struct model_table_def *table; /* of an optimizer; tables of several models may share the prefix */
    enum optimizer_option part;
    char initial[96]; /* of each model that has another than the first: "8; ffm: 4" */
    char name[32], meta[128], help[256];
};

/* The i-th, from 0; NULL after the last. Static. */
const struct model_option *model_options_at(size_t i);

#endif
