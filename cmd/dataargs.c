#include "cmd/dataargs.h"

#include <stdio.h>

void data_args_apply(const struct options *o, struct reader_options *reader)
{
    reader_options_init(reader);
    reader->format = (enum parse_format)parse_format_find(option_text(o, OPT_FORMAT));
    reader->skip_bad = option_number(o, OPT_SKIP_BAD);
}

void data_args_report(const char *verb, uint64_t bad_lines, const char *first_bad)
{
    if (bad_lines > 0)
        (void)fprintf(stderr, "paramo %s: %llu bad line%s skipped; the first: %s\n", verb,
                      (unsigned long long)bad_lines, bad_lines == 1 ? "" : "s", first_bad);
}
