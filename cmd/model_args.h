/*
 * What the options of the models (model_options.h) say about the model to train. Tests: test/e2e/cli.sh, train.sh.
 */
#ifndef CMD_MODEL_ARGS_H
#define CMD_MODEL_ARGS_H

#include "cmd/options.h"
#include "learn/model/model.h"

/* --model; NULL: not given. */
const char *model_args_name(const struct options *o);
/* The first of these options, names without "--" up to a NULL, that was given; NULL: none. */
const char *model_args_given(const struct options *o, const char *const *names);
/* A new model of --model, which was given. Returns -1, or the exit code after a message. */
int model_args_begin(const struct options *o, struct model_info *info);
/* The model of folder dir, which has these settings: those that were given change, where they can. The same. */
int model_args_continue(const struct options *o, const char *dir, struct model_info *info);

#endif
