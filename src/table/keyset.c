#include "table/keyset.h"

#include <stdlib.h>
#include <string.h>

#include "paramo/types.h"

uint64_t keyset_owner_new(void)
{
    static _Atomic uint64_t owners;
    return atomic_fetch_add_explicit(&owners, 1, memory_order_relaxed) + 1;
}

bool keyset_part_fits(const struct keyset_part *part, const uint64_t *keys)
{
    for (size_t i = 0; i < part->n; i++)
        if (part->places[i] >= part->set->n || part->set->keys[part->places[i]] != keys[i])
            return false;
    return true;
}

static struct keyset_rows *rows_of(const struct paramo_keyset *set, uint64_t owner)
{
    struct keyset_rows *r = atomic_load_explicit(&set->first, memory_order_acquire);
    while (r && r->owner != owner)
        r = r->next;
    return r;
}

bool keyset_find(const struct keyset_part *part, uint64_t owner, uint64_t generation, uint32_t *rows)
{
    const struct keyset_rows *known = rows_of(part->set, owner);
    const uint32_t n = (uint32_t)part->set->n;
    unsigned beyond = 0, missing = 0;
    if (!known || known->generation != generation)
        return false;
    for (size_t i = 0; i < part->n; i++) /* no early exit, so that it becomes vector code */
        beyond |= part->places[i] >= n;
    if (beyond)
        return false;
    for (size_t i = 0; i < part->n; i++)
        rows[i] = known->row[part->places[i]];
    for (size_t i = 0; i < part->n; i++)
        missing |= rows[i] == KEYSET_NO_ROW;
    return !missing;
}

static struct keyset_rows *rows_new(struct paramo_keyset *set, uint64_t owner, uint64_t generation)
{
    if (atomic_fetch_add_explicit(&set->count, 1, memory_order_relaxed) >= KEYSET_TABLES) {
        atomic_fetch_sub_explicit(&set->count, 1, memory_order_relaxed);
        return NULL;
    }
    struct keyset_rows *r = malloc(sizeof *r + set->n * sizeof *r->row);
    if (!r) {
        atomic_fetch_sub_explicit(&set->count, 1, memory_order_relaxed);
        return NULL;
    }
    memset(r->row, 0xff, set->n * sizeof *r->row); /* KEYSET_NO_ROW */
    r->owner = owner;
    r->generation = generation;
    r->next = atomic_load_explicit(&set->first, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&set->first, &r->next, r, memory_order_release,
                                                  memory_order_relaxed))
        ;
    return r;
}

void keyset_note(const struct keyset_part *part, uint64_t owner, uint64_t generation, const uint32_t *rows)
{
    struct keyset_rows *r = rows_of(part->set, owner);
    const size_t n = part->set->n;
    if (!r && !(r = rows_new(part->set, owner, generation)))
        return;
    else if (r->generation != generation)
        memset(r->row, 0xff, n * sizeof *r->row);
    r->generation = generation;
    for (size_t i = 0; i < part->n; i++)
        if (part->places[i] < n)
            r->row[part->places[i]] = rows[i];
}
