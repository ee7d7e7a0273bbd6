#include "learn/train/chosen.h"

#include <stdlib.h>
#include <string.h>

void chosen_free(struct chosen *c)
{
    free(c->key);
    *c = (struct chosen){0};
}

paramo_err chosen_keys(struct chosen *c, const uint64_t *key, const uint8_t *keep, size_t n)
{
    if (!keep) {
        c->n = CHOSEN_ALL;
        return PARAMO_OK;
    }
    if (n > c->cap) {
        chosen_free(c);
        c->key = malloc((n + n / 4) * sizeof *c->key);
        if (!c->key)
            return paramo_error_set(PARAMO_E_MEMORY, "out of memory: a batch of %zu keys", n);
        c->cap = n + n / 4;
    }
    c->n = 0;
    for (size_t i = 0; i < n; i++)
        if (keep[i])
            c->key[c->n++] = key[i];
    return PARAMO_OK;
}

void chosen_rows(const uint8_t *keep, size_t n, size_t width, float *rows)
{
    size_t to = 0;
    for (size_t i = 0; i < n; i++) {
        if (!keep[i])
            continue;
        if (to < i)
            memcpy(rows + to * width, rows + i * width, width * sizeof *rows);
        to++;
    }
}
