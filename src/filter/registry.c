#include "filter/registry.h"

unsigned registry_count(void)
{
    return FILTER_COUNT + filter_users_count();
}

const struct filter_ops *registry_at(unsigned index)
{
    return index < FILTER_COUNT ? filter_at(index) : filter_users_at(index - FILTER_COUNT);
}

unsigned registry_index(const struct filter_ops *ops)
{
    unsigned i = 0;
    while (i < FILTER_SLOTS - 1 && registry_at(i) != ops)
        i++;
    return i;
}

const struct filter_ops *registry_of_name(const char *name, size_t len)
{
    for (unsigned i = 0, n = registry_count(); i < n; i++) {
        const char *other = registry_at(i)->name;
        if (strlen(other) == len && memcmp(other, name, len) == 0)
            return registry_at(i);
    }
    return NULL;
}

const struct filter_ops *registry_of_wire(unsigned id, uint64_t hash)
{
    if (id == FILTER_ID_USER)
        return filter_users_of_hash(hash);
    for (unsigned i = 0; i < FILTER_COUNT; i++)
        if (filter_at(i)->id == id)
            return filter_at(i);
    return NULL;
}
