#include "cmd/dataargs.h"
#include "cmd/exitcode.h"
#include "cmd/plots.h"
#include "learn/data/resolve_columns.h"
#include "learn/io/input.h"

#include <stdio.h>

enum parse_format data_args_format(const struct options *o)
{
    const char *name = option_text(o, o->verb == VERB_DATA ? OPT_DATA_FORMAT : OPT_FORMAT);
    return name ? (enum parse_format)parse_format_find(name) : PARSE_AUTO;
}

void data_args_apply(const struct options *o, struct reader_options *reader)
{
    reader_options_init(reader);
    reader->format = data_args_format(o);
    reader->skip_bad = option_number(o, OPT_SKIP_BAD);
    reader->disk_cache = o->verb == VERB_DATA ? NULL : option_text(o, OPT_CACHE);
}

int data_args_columns(const struct options *o, struct columns **columns)
{
    const char *text = option_text(o, OPT_COLUMNS);
    const struct option_list *files = option_list(o, OPT_DATA);
    const enum parse_format format = data_args_format(o);
    *columns = NULL;
    if (!text)
        return -1;
    if (format != PARSE_AUTO && parse_format_columns(format) == COLUMNS_NONE)
        return options_wrong(o, "--columns: %s has no columns with names", parse_format_name(format));
    if (columns_parse(text, columns) != PARAMO_OK)
        return options_wrong(o, "--columns: %s", paramo_last_error());
    if (!columns_of_role(*columns, COLUMN_LABEL) && !(o->verb == VERB_DATA && option_flag(o, OPT_NO_LABELS)))
        return options_wrong(o, "--columns: label=NAME is missing");
    paramo_err err = columns_resolve(*columns, format, files->item, files->n);
    return err == PARAMO_OK ? -1 : code_fail(verb_name(o->verb), err, paramo_last_error());
}

paramo_err data_args_check_plot(const struct options *o)
{
    const char *path = option_text(o, OPT_PLOT);
    const struct option_list *data = option_list(o, OPT_DATA), *valid = option_list(o, OPT_VALID);
    paramo_err err = path ? input_refuse_output(data->item, data->n, path) : PARAMO_OK;
    if (err == PARAMO_OK && path)
        err = input_refuse_output(valid->item, valid->n, path);
    return err == PARAMO_OK && path ? plots_check(path) : err;
}

void data_args_report(const char *verb, const struct reader_stats *stats)
{
    if (stats->bad_lines > 0)
        (void)fprintf(stderr, "paramo %s: %llu bad line%s skipped; the first: %s\n", verb,
                      (unsigned long long)stats->bad_lines, stats->bad_lines == 1 ? "" : "s",
                      stats->first_bad);
    if (stats->disk_cache_note[0] != '\0')
        (void)fprintf(stderr, "paramo %s: --cache: %s\n", verb, stats->disk_cache_note);
    if (stats->no_pairs)
        (void)fprintf(
            stderr, "paramo %s: --interactions adds nothing: no row has features of both fields of a pair\n",
            verb);
}
