#include "learn/data/keep_names.h"

#include <stdio.h>
#include <stdlib.h>

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
