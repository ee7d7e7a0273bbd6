/*
 * The options that train, predict and eval share: which data, in which format. Included where a struct arg
 * table is written.
 */
#ifndef CMD_DATAARGS_H
#define CMD_DATAARGS_H

#include "cmd/args.h"
#include "learn/data/reader.h"

struct data_args {
    struct arg_list files;
    const char *format;
    uint64_t skip_bad;
};

/* clang-format off */
#define DATA_ARGS(d)                                                                                                     \
    {.name = "data", .kind = ARG_LIST, .out = &(d).files, .meta = "FILE...",                                            \
     .help = "files, globs in quotes, or - for standard input; .gz and .zst\nare read as they are"},                    \
    {.name = "format", .kind = ARG_CHOICE, .out = &(d).format, .meta = "auto|libsvm|libffm|criteo",                     \
     .help = "libsvm 'label id:value', libffm 'label field:id:value', Criteo\nTSV; auto looks at the first lines (auto)"}, \
    {.name = "skip-bad", .kind = ARG_INT, .out = &(d).skip_bad, .meta = "N", .max = UINT64_MAX,                         \
     .help = "skip and count up to N lines that cannot be read (0)"}
/* clang-format on */

/* Into options, which it initialises. */
void data_args_apply(const struct data_args *data, struct reader_options *options);
/* Says on standard error how many lines were skipped, if any were. */
void data_args_report(const char *verb, uint64_t bad_lines, const char *first_bad);

#endif
