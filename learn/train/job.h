/*
 * A training job within one process: what the files of learn/train that run it share, and learn/darlin with them. No
 * other folder sees it.
 *
 * Fields are written before the customers' threads start, or by customer 0 alone, except where a lock or an atomic says
 * otherwise. Tests: test/learn/test_train.c.
 */
#ifndef LEARN_TRAIN_JOB_H
#define LEARN_TRAIN_JOB_H

#include "learn/io/progress.h"
#include "learn/train/learner.h"
#include "learn/train/train_options.h"
#include "learn/train/train_result.h"

#include <pthread.h>
#include <stdatomic.h>

struct job;

struct customer {
    struct job *job;
    uint32_t id;
    pthread_t thread;
    paramo_worker *worker;
    paramo_table *table[MODEL_MAX_TABLES]; /* of the model, in its order */
    struct scaling scaling;
    struct sightings sightings;
    struct expiry expiry;
    struct filter_reported filtered;
    struct learner *learner;
    char pool[32]; /* name of the pool that deals its parts */
    double looked; /* the time of its last check of the leader */
};

struct centre;

struct job {
    const struct train_options *o;
    struct train_result *result;
    paramo_node *node;
    struct reader *reader, *valid;
    unsigned hold_out; /* percent of the rows that are held out; 0: none */
    uint64_t epochs;   /* at most */
    uint32_t customers;
    int embedded;
    int leads;        /* this process leads (lead.h); in one process: always */
    uint32_t leader;  /* the node that leads, as far as this process knows */
    uint32_t gave_up; /* of struct words */
    int finished;     /* every epoch was learned: a late Ctrl-C changes nothing */
    struct customer *customer;
    struct metrics *metrics;
    struct centre *centre;         /* columns to centre, owned by train_run; NULL: none */
    double bins[CALIBRATION_SUMS]; /* of the last measured epoch, if the model is calibrated */
    struct progress progress;
    double joined, started;
    struct model_info info;      /* as saved */
    double epoch_began, learned; /* when the round began, and when its rows were learned */
    size_t bad_epochs;           /* since the best loss on the rows that measure */
    size_t batch, first_batch;   /* rows, at most and at first */
    struct watch watch;
    atomic_int stop; /* tells the learners to end after the current batches */
    pthread_mutex_t lock;
    paramo_err err; /* the first failure, under lock */
    char message[PARAMO_ERROR_MAX];
};

/* Asks train_options.continues. An interrupt during that call finds no running job. */
int job_continues(struct job *job);

/* Is this the customer that validates and saves? */
static inline int leads(const struct customer *c)
{
    return c->id == 0 && c->job->leads;
}

#endif
