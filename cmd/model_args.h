/*
 * The options of `paramo train` that come with the models (learn/model/model.h): --model, a model's settings such
 * as --dim, and an optimizer for each of its tables, such as --factor-alpha. It goes over the table of models and
 * knows none by name. Tests: test/e2e/cli.sh, train.sh.
 */
#ifndef CMD_MODEL_ARGS_H
#define CMD_MODEL_ARGS_H

#include "cmd/args.h"
#include "learn/model/model.h"

enum { MODEL_ARGS_SETTINGS = 16, MODEL_ARGS_OPTIMIZERS = 8, OPTIMIZER_ARGS = 5 };

/* A setting; models may share it. */
struct setting_arg {
    const struct model_setting *def;
    uint64_t whole;
    double real;
    int given;
    char help[192];
};

/* The optimizer of a table; tables of several models may share the prefix. */
struct optimizer_arg {
    const struct model_table_def *table;
    const char *name;
    double alpha, beta, l1, l2;
    int has_name, has_alpha, has_beta, has_l1, has_l2;
    char option[OPTIMIZER_ARGS][32], help[2][96];
};

/* What the options below were given. Its arrays are pointed at by the options: it does not move. */
struct model_args {
    const char *model; /* NULL: not given */
    char models[128], model_help[256], optimizers[128];
    struct setting_arg setting[MODEL_ARGS_SETTINGS];
    size_t settings;
    struct optimizer_arg optimizer[MODEL_ARGS_OPTIMIZERS];
    size_t optimizers_n;
};

void model_args_init(struct model_args *a);
/* Writes options to out; each returns how many. */
struct arg model_args_model(struct model_args *a);
size_t model_args_settings(struct model_args *a, struct arg out[MODEL_ARGS_SETTINGS]);
size_t model_args_optimizers(struct model_args *a, struct arg out[MODEL_ARGS_OPTIMIZERS * OPTIMIZER_ARGS]);

/* A new model of a->model, which was given. Returns -1, or the exit code after a message. */
int model_args_begin(const struct model_args *a, struct model_info *info);
/* The model of folder dir, which has these settings: those that were given change, where they can. The same. */
int model_args_continue(const struct model_args *a, const char *dir, struct model_info *info);

#endif
