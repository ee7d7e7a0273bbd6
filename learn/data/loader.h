/*
 * From the scheduler's parts to batches: threads that lease parts, read them and cut them, ahead of one customer.
 *
 *     pool (scheduler) --lease--> loader threads: reader_part, batcher_cut --ring, in lease order--> learner
 *
 * Leases are taken one at a time. Parts are delivered in the order of the leases, not in that of the threads.
 * So with one worker the batches come in the order of the data in every run. The ring bounds how far the
 * threads run ahead.
 *
 * The first round keeps a part's rows in their order, unless told otherwise. In later rounds they are shuffled within a
 * window, by the seed, the round and the part, so that every worker would shuffle them in the same way.
 *
 * While other workers hold the round's last parts, the pool has no part to lease, and loader_next returns LOADER_IDLE.
 * The learner must then finish its own parts before it waits: the round ends only when every part is done. It never
 * knows of models. Tests: test/learn/test_train.c.
 */
#ifndef LEARN_DATA_LOADER_H
#define LEARN_DATA_LOADER_H

#include "learn/data/batch.h"
#include "learn/data/holdout.h"
#include "learn/data/reader.h"

#include "paramo/paramo.h"

#include <stdatomic.h>

struct loader;

/* A leased part, cut; the learner's until loader_release. */
struct loader_part {
    paramo_work_unit lease;
    struct batch_list list; /* n may be 0: a part without rows */
    size_t unlearned;       /* the learner's: batches whose push has not been answered */
    void *sums;             /* the learner's, too */
};

enum loader_state {
    LOADER_PART, /* there is a part */
    LOADER_IDLE, /* there is no part now */
    LOADER_END   /* the round is over */
};

struct loader_options {
    paramo_node *node;
    const char *pool;
    uint32_t customer;
    struct reader *reader;
    size_t batch_rows; /* rows to learn in a batch, at most; batches to measure are larger */
    size_t first_rows; /* rows of a batch in the first part; loader_batch_rows() */
    size_t shuffle;    /* rows in a window that is shuffled, from the second round on; 0: never */
    int shuffle_first; /* in the first round, too */
    double negatives;  /* share of the rows with label 0 that is learned, drawn for each round; 0: all */
    /* [classes]: factors of the weights of rows, by their label (label_weight()) */
    const float *class_weight;
    uint32_t classes; /* 0: there are no factors */
    uint64_t seed;    /* of the shuffles and of the negatives drawn */
    /* of each batch (batcher_cut_share), if the workers learn each batch together; shares 0: whole batches */
    uint32_t share, shares;
    size_t held; /* parts that the learner may hold at once */
    int alone;   /* no part can be dealt a second time: leases are not counted */
    unsigned threads;
    /* once set, loader_next ends with INTERRUPTED (within LEASE_WAIT_MS if it waits for work) */
    const atomic_int *stop;
};

/* Rows of a batch in a part: `first` in the data's first part, and twice as many whenever twice as many parts lie
 * before it, at most `most`. It depends on the part's place only, so it is the same for every worker and in every
 * run. */
size_t loader_batch_rows(size_t first, size_t most, uint32_t stream, uint64_t index);
/* The name of a value at the scheduler: the number of leases, in a round, of parts that exist. It is greater than the
 * number of parts done if parts were dealt again, because their worker died or gave up. */
void loader_leases_key(char *out, size_t cap, uint32_t round);
/* node, pool and reader must outlive the loader. */
PARAMO_MUST_USE paramo_err loader_new(const struct loader_options *options, struct loader **loader);
void loader_free(struct loader *loader);

/* Starts the threads on one round of the pool, for the rows of one side. loader_stop ends them, even if they have
 * leases. */
PARAMO_MUST_USE paramo_err loader_start(struct loader *loader, uint32_t round, enum holdout_side side);
void loader_stop(struct loader *loader);

/* Waits for the next part. With may_wait 0 it returns LOADER_IDLE when there is no work. One thread. */
PARAMO_MUST_USE paramo_err loader_next(struct loader *loader, int may_wait, enum loader_state *state,
                                       struct loader_part **part);
/* Does the learner have another part that it has not released, or is one ready for it? Then the round does not end
 * before the learner reports that part. */
int loader_holds_more(struct loader *loader, const struct loader_part *part);
/* The part has been learned. The caller reports its lease. */
void loader_release(struct loader *loader, struct loader_part *part);

#endif
