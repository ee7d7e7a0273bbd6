#include "learn/serve/live.h"
#include "learn/store/shared_model.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_MS 2000 /* arbitrary: the next attempt comes anyway */
#define RETRY_S    2.0  /* after a failure; arbitrary */
#define SHARE      9.0 /* a pause takes 9 times as long as a copy, at least, so that the job is not slowed down */

struct live {
    struct live_options options;
    char *dir;
    paramo_worker *reader; /* NULL: not connected */
    double due;            /* now() of the next copy or attempt */
    pthread_mutex_t lock;  /* of what follows, which live_interrupt uses */
    paramo_node *node;
    int interrupted;
};

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Sets the node, and returns the one before. If live_interrupt was called, the new node is interrupted, too. */
static paramo_node *replace(struct live *l, paramo_node *node)
{
    (void)pthread_mutex_lock(&l->lock);
    paramo_node *before = l->node;
    l->node = node;
    if (node && l->interrupted)
        paramo_interrupt(node);
    (void)pthread_mutex_unlock(&l->lock);
    return before;
}

void live_interrupt(struct live *l)
{
    (void)pthread_mutex_lock(&l->lock);
    l->interrupted = 1;
    if (l->node)
        paramo_interrupt(l->node);
    (void)pthread_mutex_unlock(&l->lock);
}

static void leave(struct live *l)
{
    paramo_worker_close(l->reader);
    l->reader = NULL;
    paramo_node *node = replace(l, NULL);
    if (node)
        (void)paramo_stop_now(node); /* its error does not matter */
}

void live_free(struct live *l)
{
    if (!l)
        return;
    leave(l);
    live_discard(l);
    (void)rmdir(l->dir);
    (void)pthread_mutex_destroy(&l->lock);
    free(l->dir);
    free(l);
}

const char *live_dir(const struct live *l)
{
    return l->dir;
}

void live_discard(struct live *l)
{
    DIR *d = opendir(l->dir);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            (void)unlinkat(dirfd(d), e->d_name, 0);
    (void)closedir(d);
}

/* Joins the job. connect_ms: how long to try if the scheduler does not answer. */
static paramo_err join(struct live *l, uint32_t connect_ms)
{
    paramo_config config;
    paramo_config_init(&config);
    config.roles = PARAMO_ROLE_READER;
    config.scheduler = l->options.scheduler;
    config.token = l->options.token;
    config.connect_timeout_ms = connect_ms;
    config.heartbeat_timeout_ms = CONNECT_MS;
    paramo_node *node;
    paramo_err err = paramo_create(&config, &node);
    if (err != PARAMO_OK)
        return err;
    (void)replace(l, node);
    err = paramo_join(node);
    if (err == PARAMO_OK)
        err = paramo_reader_open(l->node, 0, &l->reader);
    return err;
}

/* Sets the error that the server reports; the last error is its cause. */
static paramo_err explain(const struct live *l, paramo_err err)
{
    char why[PARAMO_ERROR_MAX];
    (void)snprintf(why, sizeof why, "%s", paramo_last_error());
    if (l->reader && (err == PARAMO_E_NO_TABLE || err == PARAMO_E_NOT_FOUND))
        return paramo_error_set(err, "the job at %s has no model yet (%s)", l->options.scheduler, why);
    return paramo_error_set(err, "the job at %s: %s", l->options.scheduler, why);
}

paramo_err live_new(const struct live_options *options, struct live **live)
{
    struct live *l = calloc(1, sizeof *l);
    const char *below = getenv("TMPDIR");
    if (!l || asprintf(&l->dir, "%s/paramo-serve-XXXXXX", below && *below ? below : "/tmp") < 0) {
        free(l);
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the model of a job");
    }
    l->options = *options;
    if (!mkdtemp(l->dir)) {
        paramo_err err = paramo_error_set(PARAMO_E_IO, "%s: cannot be created: %s (TMPDIR names its folder)",
                                          l->dir, strerror(errno));
        free(l->dir);
        free(l);
        return err;
    }
    (void)pthread_mutex_init(&l->lock, NULL);
    paramo_err err = join(l, 1);
    if (err == PARAMO_E_INVALID || err == PARAMO_E_TOKEN) {
        (void)explain(l, err);
        char why[PARAMO_ERROR_MAX];
        (void)snprintf(why, sizeof why, "%s", paramo_last_error());
        live_free(l);
        return paramo_error_set(err, "%s", why);
    }
    if (err != PARAMO_OK) /* the job may come later */
        leave(l);
    *live = l;
    return PARAMO_OK;
}

enum live_result live_copy(struct live *l, int force)
{
    if (now() < l->due && !force)
        return LIVE_EARLY;
    paramo_err err = l->reader ? paramo_job_status(l->node) : join(l, CONNECT_MS);
    double began = now();
    if (err == PARAMO_OK)
        err = shared_model_save(l->reader, l->dir);
    if (err != PARAMO_OK) {
        (void)explain(l, err);
        if (!l->reader || paramo_job_status(l->node) != PARAMO_OK) {
            char why[PARAMO_ERROR_MAX];
            (void)snprintf(why, sizeof why, "%s", paramo_last_error());
            leave(l);
            (void)paramo_error_set(err, "%s", why);
        }
        l->due = now() + RETRY_S;
        return LIVE_FAILED;
    }
    double took = now() - began, pause = (double)l->options.refresh_s;
    if (l->options.refresh_s == 0)
        pause = 1e9;
    else if (pause < SHARE * took)
        pause = SHARE * took;
    l->due = now() + pause;
    return LIVE_COPIED;
}
