#include "cmd/filter_lib.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/exitcode.h"
#include "paramo/filter.h"

static int fail(const struct options *o, const char *file, const char *why)
{
    (void)fprintf(stderr, "paramo %s: --filter-lib %s: %s\n", verb_name(o->verb), file, why);
    return CODE_DATA;
}

/* path: malloc'd; NULL: there is none. */
static int path_of(const struct options *o, char **path)
{
    const char *file = option_text(o, OPT_FILTER_LIB);
    *path = NULL;
    if (!file)
        return -1;
    *path = realpath(file, NULL);
    if (!*path)
        return fail(o, file, "there is no such file");
    (void)setenv("PARAMO_FILTER_LIB", *path, 1);
    return -1;
}

int filter_lib_export(const struct options *o)
{
    char *path;
    int code = path_of(o, &path);
    free(path);
    return code;
}

int filter_lib_load(const struct options *o)
{
    char *path;
    int code = path_of(o, &path);
    if (!path)
        return code;
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const paramo_filter *const *filters = lib ? dlsym(lib, "paramo_filters") : NULL;
    if (!filters)
        code = fail(o, path, lib ? "it has no array paramo_filters (paramo/filter_types.h)" : dlerror());
    for (size_t i = 0; filters && filters[i] && code < 0; i++)
        if (paramo_filter_register(filters[i]) != PARAMO_OK)
            code = fail(o, path, paramo_last_error());
    if (filters && !filters[0])
        code = fail(o, path, "its array paramo_filters is empty");
    free(path);
    return code;
}
