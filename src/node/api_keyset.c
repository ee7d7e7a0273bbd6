/* Keysets: the public functions over table/keyset.h. */
#include <stdlib.h>

#include "node/node.h"
#include "table/keyset.h"

paramo_err paramo_keyset_new(const uint64_t *keys, size_t n, paramo_keyset **keyset)
{
    struct paramo_keyset *set = calloc(1, sizeof *set);
    if (!set)
        return err_memory(sizeof *set);
    set->keys = keys;
    set->n = n;
    *keyset = set;
    return PARAMO_OK;
}

void paramo_keyset_free(paramo_keyset *set)
{
    if (!set)
        return;
    for (struct keyset_rows *r = atomic_load_explicit(&set->first, memory_order_acquire), *next; r;
         r = next) {
        next = r->next;
        free(r);
    }
    free(set);
}
