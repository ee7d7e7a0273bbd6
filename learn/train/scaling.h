/*
 * Scales of features in training (learn/model/scale.h): one customer's side of the table on the servers.
 *
 * A batch's magnitudes are pulled with its parameters and joined with those of its own values; the changes are pushed
 * with its gradient. `auto` begins without a table. The first learner that has a value other than 0 and 1 opens it and
 * puts "train/scale" at the scheduler. The others look there when they begin a part, at most once a second; mostly
 * their own values tell them earlier. Until then nothing is pulled or pushed. With one worker this depends on the data
 * alone. It never knows models. Tests: test/learn/test_scaling.c, test/e2e/scale.sh.
 */
#ifndef LEARN_TRAIN_SCALING_H
#define LEARN_TRAIN_SCALING_H

#include "learn/model/scale.h"
#include "paramo/paramo.h"

struct scaling {
    paramo_node *node;
    paramo_worker *worker;
    enum scale_kind kind;
    paramo_table *table; /* NULL: nothing is scaled so far */
    double looked;       /* the time of the last look at the scheduler */
};

/* Opens the table and tells the others, unless it is open. */
PARAMO_MUST_USE paramo_err scaling_turn_on(struct scaling *s);
/* Opens it if another worker has, or the kind is not auto. */
PARAMO_MUST_USE paramo_err scaling_look(struct scaling *s);
/* scaling_look(), at most once a second. */
PARAMO_MUST_USE paramo_err scaling_glance(struct scaling *s);

/* Of a batch in flight. Zero it before first use. */
struct scaled {
    struct batch batch;    /* the batch with divided values */
    size_t keys, features; /* room */
    int on, learn;         /* it is scaled; it is learned */
    uint64_t pull, push;   /* timestamps; 0: there is none */
    float *known, *own, *value;
    uint64_t *key; /* of the push; its values are in own */
    uint32_t *changed;
};

void scaled_free(struct scaled *b);
/* Pulls the magnitudes of a batch, if it is scaled. A batch that is not learned changes nothing. */
PARAMO_MUST_USE paramo_err scaled_pull(struct scaling *s, const struct batch *batch, int learn,
                                       struct scaled *b);
/* Waits for the pull. If the batch is learned, pushes what it adds for the features with in[i] (NULL: for all). *out:
 * the batch to compute with. */
PARAMO_MUST_USE paramo_err scaled_batch(struct scaling *s, const struct batch *batch, const uint8_t *in,
                                        struct scaled *b, const struct batch **out);
/* Waits for the push. */
PARAMO_MUST_USE paramo_err scaled_wait(struct scaling *s, struct scaled *b);
/* Ends the requests: their memory is the learner's again. */
void scaled_cancel(struct scaling *s, struct scaled *b);
/* Fetches the magnitudes of a batch that is only scored: known[], as scale_divide needs it. */
PARAMO_MUST_USE paramo_err scaling_fetch(struct scaling *s, const struct batch *batch, float *known);

#endif
