/*
 * The forms in which `paramo export` writes a model for people and other programs, one file each. It never knows of
 * command lines. Tests: test/e2e/export.sh.
 */
#ifndef LEARN_EXPORT_FORMS_H
#define LEARN_EXPORT_FORMS_H

#include "learn/data/names.h"
#include "learn/io/output.h"
#include "learn/store/modelio.h"

/* X(name): export_<name>. */
#define EXPORT_FORMS(X)                                                                                      \
    X(text)                                                                                                  \
    X(libffm)                                                                                                \
    X(vw)                                                                                                    \
    X(c)
#define EXPORT_FORM_WORD(name) "|" #name
#define EXPORT_FORM_WORDS      (&EXPORT_FORMS(EXPORT_FORM_WORD)[1])

struct export_options {
    const struct names *names; /* of features, or NULL */
    int settings;              /* text: with all settings, so that import_text can read it */
};

/* Writes the model. UNSUPPORTED: the form cannot express the model; the message says why. */
typedef paramo_err export_fn(const struct model *model, const struct export_options *options,
                             struct output *out);

#define EXPORT_DECLARE(name) export_fn export_##name;
EXPORT_FORMS(EXPORT_DECLARE)
#undef EXPORT_DECLARE

/* The form of that name; NULL: there is none. */
export_fn *export_find(const char *name);

/* printf to an output. */
PARAMO_MUST_USE paramo_err export_print(struct output *out, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* For forms that cannot express calibration and features of pairs of fields: UNSUPPORTED if the model has them. */
PARAMO_MUST_USE paramo_err export_plain(const struct model *model);

/* Reads a text that export_text wrote, and saves the model to dir, without the state of optimizers. info: the settings,
 * for a text without settings, or NULL. path as in input_open. FORMAT with file and line. */
PARAMO_MUST_USE paramo_err import_text(const char *path, const struct model_info *info, const char *dir);

#endif
