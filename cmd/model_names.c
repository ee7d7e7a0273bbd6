#include "cmd/model_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

paramo_err model_names_open(const char *dir, struct names **names)
{
    char *path;
    if (asprintf(&path, "%s/" NAMES_FILE, dir) < 0)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory");
    paramo_err err = names_load(path, names);
    if (err == PARAMO_E_NOT_FOUND)
        err = paramo_error_set(err, "%s: has no names: train with --keep-names", dir);
    free(path);
    return err;
}

paramo_err model_names_try(const char *dir, struct names **names)
{
    *names = NULL;
    paramo_err err = model_names_open(dir, names);
    return err == PARAMO_E_NOT_FOUND ? PARAMO_OK : err;
}

/* Cuts a text of more than cap - 1 bytes, where a character of UTF-8 begins. */
static void cut(char *out, size_t cap)
{
    size_t end = cap - 1;
    while (end > 0 && ((unsigned char)out[end] & 0xc0) == 0x80)
        end--;
    out[end] = '\0';
}

char *model_names_text(const struct names *names, uint64_t key, int field, char *out, size_t cap)
{
    const char *name = names ? names_find(names, key) : NULL;
    if (!name && field >= 0)
        (void)snprintf(out, cap, "%d:%" PRIu64, field, key);
    if (!name && field < 0)
        (void)snprintf(out, cap, "%" PRIu64, key);
    if (!name)
        return out;
    const size_t len = strlen(name);
    memcpy(out, name, len < cap ? len + 1 : cap);
    if (len >= cap)
        cut(out, cap);
    char *tab = strchr(out, '\t');
    if (tab)
        *tab = '=';
    return out;
}
