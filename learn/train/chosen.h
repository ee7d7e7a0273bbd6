/*
 * Some of a batch's rows: those that are pushed if not all features have rows on the servers. The keys and values of a
 * push belong to it until it ends, so each batch in flight has its own. Pure memory: it never knows of servers. Tests:
 * test/learn/test_sightings.c.
 */
#ifndef LEARN_TRAIN_CHOSEN_H
#define LEARN_TRAIN_CHOSEN_H

#include "paramo/paramo.h"

/* Zero it before first use. */
struct chosen {
    uint64_t *key;
    size_t n, cap;
};

void chosen_free(struct chosen *c);
#define CHOSEN_ALL SIZE_MAX

/* Copies to c those of key[0..n) with keep[i], in order. keep NULL: c->n is CHOSEN_ALL. MEMORY leaves it empty. */
PARAMO_MUST_USE paramo_err chosen_keys(struct chosen *c, const uint64_t *key, const uint8_t *keep, size_t n);
/* The same for rows of `width` values: the chosen ones move to the front. */
void chosen_rows(const uint8_t *keep, size_t n, size_t width, float *rows);

#endif
