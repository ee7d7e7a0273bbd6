/*
 * paramo export: writes a model for people and other programs; import: makes a model from text. The forms are those of
 * learn/export/forms.h. Tests: test/e2e/export.sh, train.sh, cli.sh.
 */
#include "cmd/exitcode.h"
#include "cmd/model_args.h"
#include "cmd/model_names.h"
#include "cmd/options.h"
#include "cmd/train_args.h"
#include "cmd/verbs.h"
#include "learn/export/forms.h"
#include "learn/store/modelio.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: paramo export --model-in DIR --to text|libffm|vw|c [--out FILE|-]\n"
    "\n"
    "Writes a model for people and other programs.\n"
    "text (or --text): sorted by key, a line 'key<TAB>w' for each feature whose weight is not 0, for a\n"
    "factorization machine 'key<TAB>w<TAB>v1<TAB>...<TAB>vK' (ffm: K for each field in turn). The last key,\n"
    "18446744073709551615, is the bias. Rows that belong to fields follow, as 'r:3<TAB>...' for row 3 of\n"
    "table r. Numbers have nine digits, which is enough to read the same floats back. --names adds the "
    "feature's name:\n"
    "'<TAB>column<TAB>value', or '<TAB>column' for a number. Weights of scaled features (train --scale) are\n"
    "for the values in the data. They are not exact for values that std holds at four times their root\n"
    "mean square. --settings writes everything that 'paramo import' needs: a line of settings at the "
    "beginning,\n"
    "all rows as they are stored, a dash for a row that a table lacks, and the scales.\n"
    "libffm: libffm's text, for ffm, fm and lr. Rows need two more features for the weights and the bias:\n"
    "m-2:n-2:1 and m-1:n-1:1, where the first lines of the file have n and m.\n"
    "vw: Vowpal Wabbit's readable form, for lr; with --names like that of --invert_hash.\n"
    "c: a C file with the weights and a function that scores rows; with -DPARAMO_MAIN a program.\n";

static const char more[] = CODE_HELP "\n"
                                     "  paramo export --model-in model --to text --out weights.tsv.gz\n"
                                     "  paramo export --model-in model --to c --out model.c\n";

static paramo_err export_model(const struct options *o, export_fn *write, const char *dir)
{
    struct model model;
    struct output *out;
    struct names *names = NULL;
    paramo_err err = modelio_refuse_output(dir, option_text(o, OPT_EXPORT_OUT));
    if (err == PARAMO_OK)
        err = modelio_open(dir, &model);
    if (err != PARAMO_OK)
        return err;
    if (option_flag(o, OPT_EXPORT_NAMES))
        err = model_names_open(dir, &names);
    if (err == PARAMO_OK)
        err = output_open(option_text(o, OPT_EXPORT_OUT), &out);
    if (err == PARAMO_OK) {
        const struct export_options options = {.names = names,
                                               .settings = option_flag(o, OPT_EXPORT_SETTINGS)};
        err = write(&model, &options, out);
        if (err == PARAMO_OK)
            err = output_commit(out);
        else
            output_abort(out);
    }
    names_free(names);
    modelio_close(&model);
    return err;
}

/* Refuses options that the form does not have. Returns -1, or the exit code. */
static int check(const struct options *o, const char *form)
{
    const int text = strcmp(form, "text") == 0;
    if (option_flag(o, OPT_TEXT_FORM) && !text)
        return options_wrong(o, "--text and --to %s exclude each other", form);
    if (option_flag(o, OPT_EXPORT_SETTINGS) && !text)
        return options_wrong(o, "--settings needs --to text");
    if (option_flag(o, OPT_EXPORT_SETTINGS) && option_flag(o, OPT_EXPORT_NAMES))
        return options_wrong(o, "--settings and --names exclude each other: 'paramo import' reads no names");
    if (option_flag(o, OPT_EXPORT_NAMES) && !text && strcmp(form, "vw") != 0)
        return options_wrong(o, "--names needs --to text or vw");
    return -1;
}

int cmd_export(int argc, char **argv)
{
    struct options o;
    int code = options_parse(&o, VERB_EXPORT, argc, argv, usage, more);
    const char *model = option_text(&o, OPT_MODEL_IN), *form = option_text(&o, OPT_EXPORT_TO);
    if (code < 0 && !form && option_flag(&o, OPT_TEXT_FORM))
        form = "text";
    if (code < 0 && !model)
        code = options_wrong(&o, "--model-in is missing");
    if (code < 0 && !form)
        code = options_wrong(&o, "--to %s is missing", EXPORT_FORM_WORDS);
    if (code < 0)
        code = check(&o, form);
    if (code < 0) {
        paramo_err err = export_model(&o, export_find(form), model);
        code = err ? code_fail("export", err, paramo_last_error()) : CODE_DONE;
    }
    options_free(&o);
    return code;
}

/* ---- import ---- */

static const char import_usage[] =
    "usage: paramo import --data FILE|- --model-out DIR [--model MODEL ...]\n"
    "\n"
    "Makes a model from text that 'paramo export --to text --settings' wrote: the same model, bit for "
    "bit,\n"
    "without the state of its optimizers. If the text has no settings, such as 'key<TAB>weight' lines of\n"
    "another program, sorted by key, --model and the options below it give them.\n";

static const char import_more[] = CODE_HELP "\n"
                                            "  paramo import --data model.tsv.gz --model-out model\n"
                                            "  paramo import --data w.tsv --model lr --model-out model\n";

/* The settings of the model, from the options, for a text without settings. Returns -1, or the exit code. */
static int make_info(const struct options *o, struct model_info *info)
{
    int code = train_args_model(o, info);
    (void)snprintf(info->data_format, sizeof info->data_format, "auto");
    for (size_t t = 0; code < 0 && t < info->ops->tables; t++) {
        struct model_optimizer *optimizer = &info->optimizer[t];
        optimizer->alpha = optimizer->alpha > 0 ? optimizer->alpha : model_alpha(info, t, 1);
        optimizer->beta = optimizer->beta >= 0 ? optimizer->beta : model_beta(info, t);
        optimizer->l2 = optimizer->l2 >= 0 ? optimizer->l2 : model_l2(info, t);
    }
    if (code < 0 && info->ops->fields == MODEL_NEEDS_FIELDS && strcmp(info->ops->name, "mf") != 0 &&
        model_fields(info) == 0)
        code = options_wrong(o, "--fields is missing: how many fields the model has");
    return code;
}

int cmd_import(int argc, char **argv)
{
    struct options o;
    struct model_info info = {0};
    int code = options_parse(&o, VERB_IMPORT, argc, argv, import_usage, import_more);
    const struct option_list *data = option_list(&o, OPT_DATA);
    const char *out = option_text(&o, OPT_MODEL_OUT), *model = code < 0 ? model_args_name(&o) : NULL;
    if (code < 0 && data->n != 1)
        code = options_wrong(&o, data->n == 0 ? "--data is missing" : "--data takes one file");
    if (code < 0 && !out)
        code = options_wrong(&o, "--model-out is missing");
    if (code < 0 && model)
        code = make_info(&o, &info);
    if (code < 0) {
        paramo_err err = import_text(data->item[0], model ? &info : NULL, out);
        code = err ? code_fail("import", err, paramo_last_error()) : CODE_DONE;
    }
    options_free(&o);
    return code;
}
