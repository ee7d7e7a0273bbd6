#include "node/plugins.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/user_function.h"
#include "base/user_task.h"
#include "env/fs.h"
#include "env/library.h"
#include "env/process.h"
#include "filter/users.h"

static paramo_err take(struct library *library)
{
    const paramo_function *const *functions = library_find(library, "paramo_functions");
    const paramo_filter *const *filters = library_find(library, "paramo_filters");
    const paramo_task_function *const *tasks = library_find(library, "paramo_tasks");
    paramo_err err = PARAMO_OK;
    if (!functions && !filters && !tasks)
        return err_set(PARAMO_E_NOT_FOUND,
                       "it is no plugin: it has no array paramo_functions, paramo_filters or paramo_tasks");
    for (; functions && *functions && !err; functions++)
        err = user_function_register(*functions);
    for (; filters && *filters && !err; filters++)
        err = filter_users_register(*filters);
    for (; tasks && *tasks && !err; tasks++)
        err = user_task_register(*tasks);
    return err;
}

static paramo_err load(const char *name)
{
    char path[FS_PATH_MAX];
    paramo_err err =
        process_path(name, path, sizeof path); /* a name without a slash would be looked for elsewhere */
    if (!err)
        err = library_load(path, take);
    if (err)
        return err_prefix(err, "--plugin %s", name);
    log_info("plugin %s is loaded", path);
    return PARAMO_OK;
}

paramo_err plugins_load(const char *list)
{
    char name[FS_PATH_MAX];
    while (list && *list) {
        size_t len = strcspn(list, ":");
        if (len >= sizeof name)
            return err_set(PARAMO_E_TOO_LARGE,
                           "--plugin or PARAMO_PLUGIN: a path of %zu bytes; at most %zu are possible", len,
                           sizeof name - 1);
        (void)snprintf(name, sizeof name, "%.*s", (int)len, list);
        paramo_err err = len ? load(name) : PARAMO_OK;
        if (err)
            return err;
        list += len + (list[len] == ':');
    }
    return PARAMO_OK;
}
