#include "cmd/scoring.h"

#include <stdio.h>

#define KNOWN_LEAST 0.01 /* a warning if the model has a smaller share of the data's keys; arbitrary */

int scoring_check(const struct scoring *s)
{
    if (!option_text(s->options, OPT_MODEL_IN))
        return options_wrong(s->options, "--model-in is missing");
    if (option_list(s->options, OPT_DATA)->n == 0)
        return options_wrong(s->options, "--data is missing");
    return -1;
}

paramo_err scoring_open(struct scoring *s)
{
    struct reader_options options;
    const struct option_list *files = option_list(s->options, OPT_DATA);
    paramo_err err = modelio_open(option_text(s->options, OPT_MODEL_IN), &s->model);
    if (err != PARAMO_OK)
        return err;
    data_args_apply(s->options, &options);
    /* a table needs the model's columns; --format may name a format without columns */
    if (options.format == PARSE_AUTO || parse_format_columns(options.format) != COLUMNS_NONE)
        options.columns = s->model.info.columns;
    options.hash_bits = s->model.info.hash_bits;
    options.fields = s->model.info.ops->fields != MODEL_NO_FIELDS;
    options.interactions = &s->model.info.interactions;
    options.label = objective_label_rule(&s->model.info.objective);
    if (s->options->verb != VERB_EVAL)
        options.label.kind = LABEL_NONE;
    return reader_open(&options, files->item, files->n, &s->reader);
}

paramo_err scoring_run(struct scoring *s, score_rows_fn rows, void *arg)
{
    const char *verb = verb_name(s->options->verb);
    struct score_lookup lookup = {.model = &s->model};
    struct score_source source = score_model(&lookup);
    paramo_err err = score_reader(&source, s->reader, rows, arg);
    if (err != PARAMO_OK)
        return err;
    struct reader_stats stats;
    reader_get_stats(s->reader, &stats);
    data_args_report(verb, &stats);
    if ((double)lookup.known < KNOWN_LEAST * (double)lookup.asked)
        (void)fprintf(
            stderr,
            "paramo %s: warning: the model has %.2g %% of the features in %s: is that data like what "
            "it was trained on, in the same format?\n",
            verb, 100 * (double)lookup.known / (double)lookup.asked,
            option_list(s->options, OPT_DATA)->item[0]);
    return PARAMO_OK;
}

void scoring_close(struct scoring *s)
{
    reader_close(s->reader);
    modelio_close(&s->model);
}
