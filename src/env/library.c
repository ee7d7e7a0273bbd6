#include "env/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

static void *loaded[LIBRARIES_MAX]; /* under the lock */

/* A file has one handle, by any path. */
static unsigned place_of(const void *handle)
{
    unsigned n = 0;
    while (n < LIBRARIES_MAX && loaded[n] && loaded[n] != handle)
        n++;
    return n;
}

paramo_err library_load(const char *path, paramo_err (*first)(struct library *library))
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    paramo_err err = PARAMO_OK;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return err_set(PARAMO_E_NOT_FOUND, "the plugin cannot be loaded: %s", dlerror());
    (void)pthread_mutex_lock(&one);
    unsigned n = place_of(handle);
    bool again = n < LIBRARIES_MAX && loaded[n];
    if (n == LIBRARIES_MAX)
        err = err_set(PARAMO_E_FULL, "%s: a process has at most %d plugins", path, LIBRARIES_MAX);
    else if (!again)
        err = first((struct library *)handle);
    /* The first handle is not closed, not even after an error of `first`, which may have left pointers to code. */
    if (!err && !again)
        loaded[n] = handle;
    else if (again || n == LIBRARIES_MAX)
        (void)dlclose(handle);
    (void)pthread_mutex_unlock(&one);
    return err;
}

const void *library_find(struct library *library, const char *name)
{
    return dlsym(library, name);
}
