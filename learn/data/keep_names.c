#include "learn/data/keep_names.h"
#include "learn/data/parse.h"
#include "learn/io/input.h"

#include <stdio.h>
#include <stdlib.h>

/* Do the features of this file have names, or is that not known? If not, *format is its format. */
static int may_have_names(const struct reader_options *o, const char *path, enum parse_format *format)
{
    struct input *input = NULL;
    const char *text = NULL;
    size_t len = 0;
    int whole = 0;
    *format = o->format;
    paramo_err err = *format != PARSE_AUTO || o->columns ? PARAMO_OK : input_open(path, -1, &input);
    if (err == PARAMO_OK && input)
        err = input_head(input, &text, &len, &whole);
    if (err == PARAMO_OK && input)
        err = parse_detect_file(path, text, len, whole, format);
    input_close(input);
    return err != PARAMO_OK || *format == PARSE_AUTO || parse_format_names(*format);
}

paramo_err keep_names_check(const struct reader_options *o, const char *const *paths, size_t paths_n)
{
    char **file = NULL;
    size_t files = 0;
    enum parse_format format = PARSE_AUTO;
    int named = 0;
    if (input_expand(paths, paths_n, &file, &files) != PARAMO_OK)
        return PARAMO_OK;
    for (size_t i = 0; i < files && !named; i++)
        named = may_have_names(o, file[i], &format);
    paramo_err err =
        named ? PARAMO_OK
              : paramo_error_set(PARAMO_E_FORMAT, "%s: features of %s have no names: leave out --keep-names",
                                 file[0], parse_format_name(format));
    input_free_names(file, files);
    return err;
}

paramo_err keep_names(const struct reader_options *options, const char *const *paths, size_t paths_n,
                      const char *dir, size_t *n)
{
    struct reader_options o = *options;
    struct reader *reader = NULL;
    const struct block *block = NULL;
    char *path = NULL;
    o.cache = 0;
    o.hold_out = 0;
    paramo_err err = names_new(&o.names);
    if (err == PARAMO_OK)
        err = reader_open(&o, paths, paths_n, &reader);
    while (err == PARAMO_OK && (err = reader_next(reader, &block)) == PARAMO_OK && block)
        reader_release(reader, block);
    reader_close(reader);
    *n = err == PARAMO_OK ? names_count(o.names) : 0;
    if (*n > 0 && asprintf(&path, "%s/" NAMES_FILE, dir) < 0)
        err = paramo_error_set(PARAMO_E_MEMORY, "out of memory for names");
    else if (*n > 0)
        err = names_write(o.names, path);
    free(path);
    names_free(o.names);
    return err;
}
