/*
 * Applies the options of the models (model_options.h) to the model that is trained. It knows no model by name. Tests:
 * test/e2e/cli.sh, train.sh.
 */
#ifndef CMD_MODEL_ARGS_H
#define CMD_MODEL_ARGS_H

#include "cmd/options.h"
#include "learn/model/model.h"

/* --model; NULL: not given. */
const char *model_args_name(const struct options *o);
/* names: options without "--", up to a NULL. Returns one of them that was given; NULL: none was. */
const char *model_args_given(const struct options *o, const char *const *names);
/* Initialises a new model of the kind --model, which was given. Returns -1, or the exit code after a message. */
int model_args_begin(const struct options *o, struct model_info *info);
/* Changes the settings of the model of folder dir to those that were given, and refuses those that a trained model
 * cannot change. Returns -1, or the exit code after a message. */
int model_args_continue(const struct options *o, const char *dir, struct model_info *info);

#endif
