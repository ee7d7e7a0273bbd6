/*
 * Factors for features that were seen often enough (--factor-after N): one customer's side of the table "seen" on the
 * servers, which has a row for each feature. DiFacto's adaptive embedding (Li, Liu, Smola, Wang, WSDM 2016, section
 * 3.2).
 *
 * A row counts the sightings of its feature in the first round. With the batch that brings the Nth one the feature gets
 * factors: their gradients are pushed from then on, and SIGHTINGS_FACTORS is added to the row. So the row tells whether
 * there are rows of factors. Before that the factors count as zeros, no gradient of them is pushed, and they take no
 * memory on the servers. The table is as exact as any: pushes count once, and checkpoints and copies contain it.
 * Workers that learn at the same time lack each other's last sightings, as they lack each other's gradients. Without
 * the option nothing is pulled or pushed. It never knows how factors are learned. Tests: test/learn/test_sightings.c,
 * test/e2e/sightings.sh.
 */
#ifndef LEARN_TRAIN_SIGHTINGS_H
#define LEARN_TRAIN_SIGHTINGS_H

#include "learn/model/model.h"
#include "paramo/paramo.h"

#define SIGHTINGS_TABLE   "seen"
#define SIGHTINGS_MAX     65535
#define SIGHTINGS_FACTORS 65536.0f /* in the row of a feature with factors */

struct sightings {
    paramo_worker *worker;
    /* its factor_after is N; 0: all features have factors, and nothing is done */
    const struct model_info *model;
    paramo_table *table;
};

/* Opens the table, if there is an N. */
PARAMO_MUST_USE paramo_err sightings_open(struct sightings *s);
/* These features have factors: those of a model that training continues from. n keys, ascending. */
PARAMO_MUST_USE paramo_err sightings_put(struct sightings *s, const uint64_t *key, size_t n);

/* Of a batch in flight. Zero it before first use. */
struct sighted {
    size_t keys;         /* room */
    uint64_t pull, push; /* timestamps; 0: there is none */
    float *known, *add;  /* the rows as pulled; the values of the push */
    uint64_t *key;       /* of the push */
    size_t added;        /* keys of the push */
    uint8_t *has;        /* [unique]: the feature has factors; NULL: all have */
};

void sighted_free(struct sighted *b);
PARAMO_MUST_USE paramo_err sighted_pull(struct sightings *s, const struct batch *batch, struct sighted *b);
/* Waits for the rows, fills in b->has, and sets the factors of the other features in param to 0. A batch that is
 * learned may give features their factors. `count`: its sightings count, those of features with in[i] (NULL: of
 * all). */
PARAMO_MUST_USE paramo_err sighted_batch(struct sightings *s, const struct batch *batch, int learn, int count,
                                         const uint8_t *in, float *const *param, struct sighted *b);
/* Pushes what the batch adds, after the gradients of its factors. */
PARAMO_MUST_USE paramo_err sighted_push(struct sightings *s, struct sighted *b);
PARAMO_MUST_USE paramo_err sighted_wait(struct sightings *s, struct sighted *b);
/* Ends the requests: their memory is the learner's again. */
void sighted_cancel(struct sightings *s, struct sighted *b);

#endif
