/*
 * Which new features get rows on the servers (--admit). One worker's side, without a message: McMahan et al., "Ad Click
 * Prediction: a View from the Trenches", KDD 2013, section 4.1, "Probabilistic Feature Inclusion".
 *
 * A feature is in the model if its weight, as pulled, is not 0. Any other is new. It counts as absent, and no
 * gradient of it is pushed, until a worker admits it:
 *
 *     count:N   at the Nth sighting by this worker, as a sketch of fixed size counts it
 *     prob:P    at each sighting with probability P, by a hash of the seed, the feature and the batch's place
 *
 * Once it is pushed, all workers find it in the model. Sightings count in the first round only. A pull of rows that do
 * not exist takes no memory on the servers.
 *
 * With `most` a worker admits at most its share of the room that the table of weights had when the worker began. So the
 * table has at most `most` rows, however long the stream is, unless workers join. A feature whose weight returns to 0
 * may be taken for a new one, and then takes room twice.
 *
 * Owned by one thread. It never knows servers. Tests: test/learn/test_admission.c, test/e2e/admission.sh.
 */
#ifndef LEARN_TRAIN_ADMISSION_H
#define LEARN_TRAIN_ADMISSION_H

#include "learn/data/batch.h"
#include "learn/train/sketch.h"

enum admission_kind { ADMIT_ALL, ADMIT_COUNT, ADMIT_SHARE };

#define ADMISSION_WORDS  "count:N|prob:P"
#define ADMISSION_RECENT 65536 /* arbitrary */

/* All zeros: every feature is admitted. */
struct admission_rule {
    enum admission_kind kind;
    uint32_t count; /* 1 .. SKETCH_MOST */
    double share;   /* above 0, at most 1 */
    size_t bytes;   /* of a worker's sketch */
    uint64_t most;  /* features in the model; 0: any number */
};

/* Reads one of ADMISSION_WORDS into kind and count or share. Returns 0, or -1 if it is none of them. */
int admission_parse(const char *text, struct admission_rule *rule);

struct admission {
    struct admission_rule rule;
    uint64_t seed;
    struct sketch sketch;
    uint64_t *recent;  /* [ADMISSION_RECENT]: by hash of the key, the key that was admitted last */
    uint64_t left;     /* of rule.most */
    uint64_t admitted; /* so far */
};

/* The room is all of rule.most. The caller frees it. */
PARAMO_MUST_USE paramo_err admission_init(struct admission *a, const struct admission_rule *rule,
                                          uint64_t seed);
/* Sets the room: what `features`, the features in the model, leave of rule.most, divided among the workers. */
void admission_room(struct admission *a, uint64_t features, uint32_t workers);
void admission_free(struct admission *a);
/* Sets in[i]: feature i of the batch is in the model or admitted; the bias always is. w has `width` weights of each.
 * count: the batch's sightings count. place: a number that no other batch has. */
void admission_batch(struct admission *a, const struct batch *batch, const float *w, size_t width, int count,
                     uint64_t place, uint8_t *in);

#endif
