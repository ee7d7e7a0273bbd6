/* A round that an interrupt ends: no request has memory of it any more. */
#include "learn/model/factors.h"
#include "learn/support_learn.h"
#include "learn/support_text.h"
#include "learn/train/learner.h"
#include "paramo/paramo.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 400, DIM = 4 };
static const struct model_info fm = {.ops = &model_fm,
                                     .setting = {[FACTORS_DIM] = DIM},
                                     .objective = {.ops = &objective_logistic, .label_scale = 1}};

struct job {
    paramo_node *node;
    paramo_worker *worker;
    struct reader *reader;
    struct learner *learner;
    paramo_table *table[2];
    struct scaling scaling; /* none */
    struct sightings sightings;
    struct expiry expiry;
    atomic_int stop;
};

static paramo_err no_tick(void *arg, const struct watch_sums *sums, const paramo_work_unit *at)
{
    (void)arg;
    (void)sums;
    (void)at;
    return PARAMO_OK;
}

static uint64_t in_flight(paramo_worker *worker)
{
    paramo_counters now = {.size = sizeof now};
    paramo_worker_counters(worker, &now);
    return now.in_flight;
}

static paramo_table *open_table(paramo_worker *worker, const char *name, uint32_t dim)
{
    paramo_table *t;
    paramo_table_options o;
    paramo_table_options_init(&o);
    o.dim = dim;
    assert_int_equal(paramo_table_open(worker, name, &o, &t), PARAMO_OK);
    return t;
}

/* Nine of ten frames between worker and servers get lost, and nothing is sent again: requests stay in flight.
 */
static void begin(struct job *job)
{
    char text[ROWS * 32];
    size_t len = 0;
    for (unsigned i = 0; i < ROWS; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%u %u:1 %u:1\n", i % 2, i + 1, 2 * i + 1000);
    const char *path = text_path("log.svm");
    text_write_file(path, text, len);

    *job = (struct job){0};
    struct reader_options reading;
    reader_options_init(&reading);
    assert_int_equal(reader_open(&reading, &path, 1, &job->reader), PARAMO_OK);
    paramo_config config;
    paramo_config_init(&config);
    config.roles = PARAMO_ROLE_ALL;
    config.num_servers = 2;
    config.drop_percent = 90;
    config.retry_ms = 3600 * 1000;
    assert_int_equal(paramo_start(&config, &job->node), PARAMO_OK);
    assert_int_equal(paramo_worker_open(job->node, 0, &job->worker), PARAMO_OK);
    assert_int_equal(paramo_pool_open(job->node, "rows", 1, 1), PARAMO_OK);
    job->table[0] = open_table(job->worker, "w", 1);
    job->table[1] = open_table(job->worker, "v", DIM);
    struct learner_options options = {.node = job->node,
                                      .worker = job->worker,
                                      .model = &fm,
                                      .table = job->table,
                                      .scaling = &job->scaling,
                                      .sightings = &job->sightings,
                                      .expiry = &job->expiry,
                                      .pool = "rows",
                                      .reader = job->reader,
                                      .batch_rows = 4,
                                      .first_rows = 4,
                                      .ahead = 2,
                                      .threads = 1,
                                      .stop = &job->stop,
                                      .alone = 1,
                                      .tick = no_tick};
    assert_int_equal(learner_new(&options, &job->learner), PARAMO_OK);
}

static void end(struct job *job)
{
    paramo_worker_close(job->worker);
    learner_free(job->learner);
    assert_int_equal(paramo_stop(job->node), PARAMO_OK);
    reader_close(job->reader);
}

static void *interrupt_when_busy(void *arg)
{
    struct job *job = arg;
    while (in_flight(job->worker) == 0)
        (void)sched_yield();
    paramo_interrupt(job->node);
    return NULL;
}

static void an_interrupted_round_leaves_nothing_in_flight(void **state)
{
    (void)state;
    struct job job;
    pthread_t other;
    begin(&job);
    assert_int_equal(pthread_create(&other, NULL, interrupt_when_busy, &job), 0);
    assert_int_equal(learner_round(job.learner, 0), PARAMO_E_CLOSED);
    assert_string_equal(paramo_last_error(), "the wait was interrupted");
    assert_int_equal(in_flight(job.worker), 0);
    (void)pthread_join(other, NULL);
    end(&job);
}

static void an_interrupted_fetch_leaves_nothing_in_flight(void **state)
{
    (void)state;
    enum { KEYS = 64 };
    struct job job;
    pthread_t other;
    uint64_t key[KEYS];
    for (unsigned i = 0; i < KEYS; i++)
        key[i] = i * (UINT64_MAX / KEYS);
    struct batch batch = {.key = key, .unique = KEYS};
    begin(&job);
    float *w = calloc(KEYS, sizeof *w), *v = calloc((size_t)KEYS * DIM, sizeof *v);
    assert_true(w && v);
    assert_int_equal(pthread_create(&other, NULL, interrupt_when_busy, &job), 0);
    assert_int_equal(learner_fetch(job.learner, &batch, (float *[]){w, v}, NULL), PARAMO_E_CLOSED);
    assert_int_equal(in_flight(job.worker), 0);
    free(w);
    free(v);
    (void)pthread_join(other, NULL);
    end(&job);
}

static int cleanup(void **state)
{
    (void)state;
    text_cleanup();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_interrupted_round_leaves_nothing_in_flight),
                                       cmocka_unit_test(an_interrupted_fetch_leaves_nothing_in_flight)};
    return cmocka_run_group_tests(tests, NULL, cleanup);
}
