#include "cmd/dataargs.h"

#include <stdio.h>

void data_args_apply(const struct data_args *data, struct reader_options *options)
{
    reader_options_init(options);
    if (data->format != NULL)
        options->format = (enum parse_format)parse_format_find(data->format);
    options->skip_bad = data->skip_bad;
}

void data_args_report(const char *verb, uint64_t bad_lines, const char *first_bad)
{
    if (bad_lines > 0)
        (void)fprintf(stderr, "paramo %s: %llu bad line%s skipped; the first: %s\n", verb,
                      (unsigned long long)bad_lines, bad_lines == 1 ? "" : "s", first_bad);
}
