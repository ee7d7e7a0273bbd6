/*
 * Features that no row has had for a long time leave the model (--expire N): one customer's side of the table "last" on
 * the servers, which has for each feature the time when it was learned last.
 *
 * Time is the number of parts of the data that the job's workers have begun, of all rounds (a value at the
 * scheduler). A worker pushes the time of its part for the features of each batch, after their gradients; the table
 * keeps the greatest. Whenever a quarter of N has passed, the first worker that begins a part sweeps the table:
 *
 *     idle for more than N parts      the feature's rows are deleted in all tables but this one
 *     idle for more than 2 N parts    its row here is deleted, and then once more the others
 *
 * The next sweep finds rows that another worker pushes during a sweep: the row here is written after the others, and
 * stays until they have been deleted several times. Deleting twice does no harm. So two workers may sweep at once, and
 * the next sweep does what a dead worker has left. A feature that comes back is a new one. The bias stays. It never
 * knows what is learned. Tests: test/learn/test_expiry.c, test/e2e/expiry.sh.
 */
#ifndef LEARN_TRAIN_EXPIRY_H
#define LEARN_TRAIN_EXPIRY_H

#include "learn/model/model.h"
#include "learn/train/scaling.h"
#include "learn/train/sightings.h"

#define EXPIRY_TABLE "last"
#define EXPIRY_MAX   (1 << 22) /* parts; floats count to four times as many */

struct expiry {
    paramo_node *node;
    paramo_worker *worker;
    const struct model_info *model;
    paramo_table *const *tables; /* of the model, in its order */
    const struct scaling *scaling;
    const struct sightings *sightings;
    uint32_t after;      /* N; 0: nothing expires, and nothing is done */
    paramo_table *table; /* NULL: not open */
    double time, turn;   /* parts begun, as far as this worker knows, and sweeps that were due by then */
};

/* Opens the table, if there is an N. */
PARAMO_MUST_USE paramo_err expiry_open(struct expiry *e);
/* Dates the features of a model that training continues from at time 0. n keys, ascending, perhaps with the bias. */
PARAMO_MUST_USE paramo_err expiry_put(struct expiry *e, const uint64_t *key, size_t n);
/* A part begins: advances the time, and sets e->time to it. Sweeps, if a sweep is due and no other worker does it. */
PARAMO_MUST_USE paramo_err expiry_begin_part(struct expiry *e);

/* Of a batch in flight. Zero it before first use. */
struct dated {
    float *time; /* [cap] */
    size_t cap;
    uint64_t push; /* timestamp; 0: there is none */
};
void dated_free(struct dated *d);
/* Pushes `time` for the features key[0..n). key must stay until the push has ended. */
PARAMO_MUST_USE paramo_err dated_push(struct expiry *e, const uint64_t *key, size_t n, double time,
                                      struct dated *d);
PARAMO_MUST_USE paramo_err dated_wait(struct expiry *e, struct dated *d);
/* Ends the push: its memory is the learner's again. */
void dated_cancel(struct expiry *e, struct dated *d);

#endif
