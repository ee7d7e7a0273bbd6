#include "cmd/data_files.h"
#include "cmd/dataargs.h"
#include "cmd/exitcode.h"
#include "learn/data/convert.h"
#include "learn/data/describe.h"
#include "learn/data/rearrange.h"
#include "learn/io/input.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define FIELDS_SHOWN 64 /* in text; arbitrary */

/* -1, or the exit code after a message that names the missing or wrong option. */
static int check(const struct options *o, int needs_out)
{
    const struct option_list *files = option_list(o, OPT_DATA);
    const char *const outs[] = {option_text(o, OPT_DATA_OUT), option_text(o, OPT_REST)};
    if (files->n == 0)
        return options_wrong(o, "--data is missing");
    if (needs_out && !outs[0])
        return options_wrong(o, "--out FILE is missing");
    for (size_t k = 0; k < 2; k++)
        if (outs[k] && input_refuse_output(files->item, files->n, outs[k]) != PARAMO_OK)
            return options_wrong(o, "%s", paramo_last_error());
    return -1;
}

static int fail(paramo_err err)
{
    return code_fail("data", err, paramo_last_error());
}

static struct rearrange_from from_of(const struct options *o)
{
    const struct option_list *files = option_list(o, OPT_DATA);
    return (struct rearrange_from){.format = data_args_format(o), .paths = files->item, .n = files->n};
}

/* Frees j. */
static int print_json(FILE *to, json_t *j)
{
    const int done = j && json_dumpf(j, to, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0 &&
                     fputc('\n', to) != EOF && fflush(to) == 0;
    json_decref(j);
    return done ? CODE_DONE : code_fail("data", PARAMO_E_IO, "cannot write the report");
}

/* Reports the files that were written: "out.csv: 20 rows". rest NULL: there is only one. */
static int print_written(const struct options *o, const char *out, uint64_t rows, const char *rest,
                         uint64_t others)
{
    const int to_stdout = strcmp(out, "-") == 0 || (rest && strcmp(rest, "-") == 0);
    FILE *to = to_stdout ? stderr : stdout;
    if (option_flag(o, OPT_JSON)) {
        json_t *j = json_pack("{s:s, s:I}", "out", out, "rows", (json_int_t)rows);
        if (j && rest)
            (void)json_object_update_missing_new(
                j, json_pack("{s:s, s:I}", "rest", rest, "rest_rows", (json_int_t)others));
        return print_json(to, j);
    }
    if (to_stdout)
        return CODE_DONE;
    int done = fprintf(to, "%s: %" PRIu64 " rows\n", out, rows) > 0;
    if (rest)
        done &= fprintf(to, "%s: %" PRIu64 " rows\n", rest, others) > 0;
    return done && fflush(to) == 0 ? CODE_DONE : code_fail("data", PARAMO_E_IO, "cannot write the report");
}

int data_head(const struct options *o)
{
    const struct rearrange_from from = from_of(o);
    const char *out = option_text(o, OPT_DATA_OUT) ? option_text(o, OPT_DATA_OUT) : "-";
    uint64_t rows = 0;
    int code = check(o, 0);
    if (code >= 0)
        return code;
    paramo_err err =
        rearrange_head(&from, option_given(o, OPT_ROWS) ? option_number(o, OPT_ROWS) : 10, out, &rows);
    return err == PARAMO_OK ? print_written(o, out, rows, NULL, 0) : fail(err);
}

int data_split(const struct options *o)
{
    const struct rearrange_from from = from_of(o);
    const char *out = option_text(o, OPT_DATA_OUT), *rest = option_text(o, OPT_REST);
    uint64_t rows[2] = {0, 0};
    int code = check(o, 1);
    if (code >= 0)
        return code;
    if (!option_given(o, OPT_SHARE) || option_real(o, OPT_SHARE) >= 1)
        return options_wrong(o, "--share P is missing: a number between 0 and 1");
    if (rest && strcmp(out, rest) == 0)
        return options_wrong(o, "--out and --rest are the same file");
    paramo_err err =
        rearrange_split(&from, option_real(o, OPT_SHARE), option_number(o, OPT_DATA_SEED), out, rest, rows);
    return err == PARAMO_OK ? print_written(o, out, rows[0], rest, rows[1]) : fail(err);
}

int data_shuffle(const struct options *o)
{
    const struct rearrange_from from = from_of(o);
    const char *out = option_text(o, OPT_DATA_OUT);
    uint64_t rows = 0;
    int code = check(o, 1);
    if (code >= 0)
        return code;
    paramo_err err = rearrange_shuffle(&from, option_number(o, OPT_MEMORY) << 20,
                                       option_number(o, OPT_DATA_SEED), out, &rows);
    return err == PARAMO_OK ? print_written(o, out, rows, NULL, 0) : fail(err);
}

/* Opens a reader of the files. Returns -1 or the exit code. */
static int open_reader(const struct options *o, enum reader_fields fields, struct columns **columns,
                       struct reader **reader)
{
    const struct option_list *files = option_list(o, OPT_DATA);
    struct reader_options options;
    int code = data_args_columns(o, columns);
    if (code >= 0)
        return code;
    data_args_apply(o, &options);
    options.columns = *columns;
    options.label.kind = option_flag(o, OPT_NO_LABELS) ? LABEL_NONE : LABEL_REAL;
    options.fields = fields;
    paramo_err err = reader_open(&options, files->item, files->n, reader);
    return err == PARAMO_OK ? -1 : fail(err);
}

static enum reader_fields convert_fields(enum parse_format to)
{
    return to == PARSE_LIBSVM ? READER_NO_FIELDS : to == PARSE_VW ? READER_FIELDS_IF_ANY : READER_FIELDS;
}

int data_convert(const struct options *o)
{
    struct columns *columns = NULL;
    struct reader *reader = NULL;
    uint64_t rows = 0;
    int code = check(o, 1);
    if (code < 0 && !option_text(o, OPT_TO))
        code = options_wrong(o, "--to is missing: " CONVERT_WORDS);
    const enum parse_format to =
        code < 0 ? (enum parse_format)parse_format_find(option_text(o, OPT_TO)) : PARSE_AUTO;
    if (code < 0)
        code = open_reader(o, convert_fields(to), &columns, &reader);
    if (code < 0) {
        const char *out = option_text(o, OPT_DATA_OUT);
        paramo_err err = convert_reader(reader, to, out, &rows);
        struct reader_stats stats;
        reader_get_stats(reader, &stats);
        data_args_report("data", &stats);
        code = err == PARAMO_OK ? print_written(o, out, rows, NULL, 0) : fail(err);
    }
    reader_close(reader);
    columns_release(columns);
    return code;
}

/* ---- stat ---- */

static const char *field_name(const struct columns *columns, size_t field)
{
    for (size_t i = 0; columns && i < columns_count(columns); i++) {
        const struct column *c = columns_at(columns, i);
        if ((c->role == COLUMN_CATEGORY || c->role == COLUMN_NUMBER) && c->field == field)
            return c->name;
    }
    return "";
}

static json_t *labels_json(const struct describe_result *r)
{
    json_t *list = json_array();
    for (size_t i = 0; r->labels <= DESCRIBE_LABELS && i < r->labels; i++)
        (void)json_array_append_new(list, json_pack("{s:f, s:I}", "label", (double)r->label[i], "rows",
                                                    (json_int_t)r->label_rows[i]));
    return list;
}

static json_t *fields_json(const struct describe_result *r, const struct columns *columns)
{
    json_t *list = json_array();
    for (size_t f = 0; f < r->fields; f++) {
        const struct describe_field *field = &r->field[f];
        if (field->features > 0)
            (void)json_array_append_new(list, json_pack("{s:I, s:s, s:I, s:I}", "field", (json_int_t)f,
                                                        "name", field_name(columns, f), "features",
                                                        (json_int_t)field->features, "different",
                                                        (json_int_t)(field->different + 0.5)));
    }
    return list;
}

static json_t *number_if(int known, double v)
{
    return known ? json_real(v) : json_null();
}

static int stat_json(const struct describe_result *r, const struct columns *columns)
{
    const int labelled = r->labelled > 0, any = r->features > 0;
    json_t *j = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:f}", "rows", (json_int_t)r->rows,
                          "labelled", (json_int_t)r->labelled, "empty_rows", (json_int_t)r->empty, "features",
                          (json_int_t)r->features, "row_min", (json_int_t)r->row_min, "row_max",
                          (json_int_t)r->row_max, "row_mean", (double)r->features / (double)r->rows,
                          "different", (json_int_t)(r->different + 0.5), "weights", r->weight_sum);
    json_t *rest = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I}", "label_min", number_if(labelled, (double)r->label_min),
        "label_max", number_if(labelled, (double)r->label_max), "label_mean",
        number_if(labelled, r->label_sum / (double)(r->labelled + !labelled)), "value_min",
        number_if(any, (double)r->value_min), "value_max", number_if(any, (double)r->value_max), "labels",
        labels_json(r), "fields", fields_json(r, columns), "bad_lines", (json_int_t)r->bad_lines);
    if (j && rest)
        (void)json_object_update(j, rest);
    json_decref(rest);
    return print_json(stdout, j);
}

static int stat_text(const struct describe_result *r, const struct columns *columns)
{
    (void)printf("%-12s %" PRIu64 "\n", "rows", r->rows);
    if (r->labelled > 0)
        (void)printf("%-12s %g to %g, mean %.6g\n", "labels", (double)r->label_min, (double)r->label_max,
                     r->label_sum / (double)r->labelled);
    for (size_t i = 0; r->labels <= DESCRIBE_LABELS && i < r->labels; i++)
        (void)printf("  %-10g %" PRIu64 " rows, %.2f %%\n", (double)r->label[i], r->label_rows[i],
                     100 * (double)r->label_rows[i] / (double)r->labelled);
    if (r->labels > DESCRIBE_LABELS)
        (void)printf("  more than %d different ones\n", DESCRIBE_LABELS);
    if (r->has_weight)
        (void)printf("%-12s sum %.6g, mean %.6g\n", "weights", r->weight_sum,
                     r->weight_sum / (double)r->rows);
    (void)printf("%-12s %" PRIu64 ", about %.3g different\n", "features", r->features, r->different);
    (void)printf("%-12s %" PRIu64 " to %" PRIu64 " features, mean %.2f; %" PRIu64 " without\n", "a row",
                 r->row_min, r->row_max, (double)r->features / (double)r->rows, r->empty);
    if (r->features > 0)
        (void)printf("%-12s %g to %g\n", "values", (double)r->value_min, (double)r->value_max);
    size_t shown = 0, fields = 0;
    for (size_t f = 0; f < r->fields; f++)
        fields += r->field[f].features > 0;
    if (r->has_field)
        (void)printf("%-12s %zu\n", "fields", fields);
    for (size_t f = 0; f < r->fields && shown < FIELDS_SHOWN; f++)
        if (r->field[f].features > 0 && ++shown)
            (void)printf("  %-5zu %10" PRIu64 " features, about %.3g different  %s\n", f,
                         r->field[f].features, r->field[f].different, field_name(columns, f));
    if (shown < fields)
        (void)printf("  ... (--json lists all)\n");
    return fflush(stdout) == 0 && !ferror(stdout) ? CODE_DONE
                                                  : code_fail("data", PARAMO_E_IO, "cannot write the report");
}

int data_stat(const struct options *o)
{
    struct columns *columns = NULL;
    struct reader *reader = NULL;
    struct describe_result result;
    int code = check(o, 0);
    if (code < 0)
        code = open_reader(o, READER_FIELDS_IF_ANY, &columns, &reader);
    if (code < 0) {
        paramo_err err = describe_reader(reader, &result);
        struct reader_stats stats;
        reader_get_stats(reader, &stats);
        data_args_report("data", &stats);
        if (err != PARAMO_OK) {
            code = fail(err);
        } else {
            code = option_flag(o, OPT_JSON) ? stat_json(&result, columns) : stat_text(&result, columns);
            describe_free(&result);
        }
    }
    reader_close(reader);
    columns_release(columns);
    return code;
}
