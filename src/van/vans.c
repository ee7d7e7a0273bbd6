/* The vans between processes, by name. Not in van.c, so that a program with one van links no other. */
#include "van/van.h"

#include <string.h>

static const struct {
    const char *name;
    paramo_err (*create)(struct env *env, const struct van_config *config, struct van **van);
} vans[] = {
#define VAN_ENTRY(name) {#name, van_##name##_create},
    VANS(VAN_ENTRY)
#undef VAN_ENTRY
};
enum { VANS_COUNT = sizeof vans / sizeof *vans };

static unsigned van_index(const char *name)
{
    unsigned i = 0;
    while (i < VANS_COUNT && strcmp(vans[i].name, name) != 0)
        i++;
    return i;
}

bool van_exists(const char *name)
{
    return van_index(name) < VANS_COUNT;
}

paramo_err van_create(struct env *env, const char *name, const struct van_config *config, struct van **van)
{
    unsigned i = van_index(name);
    if (i == VANS_COUNT)
        return err_set(PARAMO_E_INVALID, "there is no van \"%s\" between processes; use tcp or ucx", name);
    return vans[i].create(env, config, van);
}
