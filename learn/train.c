#include "learn/train.h"
#include "learn/learner.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POOL          "train/data"
#define READY_KEY     "train/ready"
#define LOOK_MS       500 /* how long a wait for the leader lasts before its health is looked at */
#define CUSTOMERS_MAX 1024
#define NODES_LOOKED  64

struct customer {
    struct job *job;
    uint32_t id;
    pthread_t thread;
    paramo_worker *worker;
    paramo_table *w, *v;
    struct learner *learner;
};

struct job {
    const struct train_options *o;
    struct train_result *result;
    paramo_node *node;
    struct reader *reader, *valid;
    uint32_t customers;
    int embedded;
    int made;     /* we made model_out's directory */
    int finished; /* every epoch was learned: a late Ctrl-C changes nothing */
    struct customer *customer;
    struct metrics *metrics;
    struct progress progress;
    double started;
    struct model_info info; /* as saved */
    double epoch_began;
    size_t bad_epochs; /* without a better validation */
    atomic_int stop;   /* to the learners: end after the current batches */
    pthread_mutex_t lock;
    paramo_err err; /* the first failure, under lock */
    char message[LERR_MAX];
};

/* What the signal handler may touch. */
static volatile sig_atomic_t interrupted, learning;
static struct job *volatile running;

int train_interrupt(void)
{
    interrupted = 1;
    struct job *job = running;
    if (job == NULL || !learning)
        return 0;
    atomic_store(&job->stop, 1);
    reader_interrupt(job->reader);
    if (job->valid != NULL)
        reader_interrupt(job->valid);
    return 1;
}

static paramo_err from_library(paramo_err err)
{
    return err == PARAMO_OK ? err : lerr(err, "%s", paramo_last_error());
}

static void fail(struct job *job, paramo_err err)
{
    (void)pthread_mutex_lock(&job->lock);
    if (job->err == PARAMO_OK) {
        job->err = err;
        (void)snprintf(job->message, sizeof job->message, "%s", lerr_text());
    }
    (void)pthread_mutex_unlock(&job->lock);
    atomic_store(&job->stop, 1);
}

static int leads(const struct customer *c)
{
    return c->id == 0 && paramo_node_rank(c->job->node) == 0;
}

/* ---- settings ---- */

paramo_err train_take_settings(const char *dir, struct model_info *info)
{
    struct model model;
    paramo_err err = modelio_open(dir, &model);
    if (err != PARAMO_OK)
        return err;
    for (size_t i = 0; err == PARAMO_OK && i < model.n; i++)
        if (model.table[i].state == 0 && model.table[i].n > 0 &&
            strcmp((i == 0 ? model.info.w : model.info.v).name, "sgd") != 0)
            err = lerr(PARAMO_E_UNSUPPORTED,
                       "%s: the model was saved without its optimizers' state; training can't go on from it",
                       dir);
    if (err == PARAMO_OK)
        *info = model.info;
    modelio_close(&model);
    return err;
}

static paramo_optimizer optimizer_code(const char *name)
{
    return strcmp(name, "ftrl") == 0      ? PARAMO_OPT_FTRL
           : strcmp(name, "adagrad") == 0 ? PARAMO_OPT_ADAGRAD
                                          : PARAMO_OPT_SGD;
}

static paramo_err open_table(struct customer *c, const char *name, uint32_t dim,
                             const struct model_optimizer *o, double init, paramo_table **table)
{
    paramo_table_options t;
    paramo_table_options_init(&t);
    t.kind = PARAMO_TABLE_SPARSE;
    t.dim = dim;
    t.optimizer = optimizer_code(o->name);
    t.alpha = (float)o->alpha;
    t.beta = (float)o->beta;
    t.l1 = (float)o->l1;
    t.l2 = (float)o->l2;
    t.seed = c->job->info.seed;
    if (init > 0) {
        t.init = PARAMO_INIT_NORMAL;
        t.init_b = (float)init;
    }
    return from_library(paramo_table_open(c->worker, name, &t, table));
}

static paramo_err open_tables(struct customer *c)
{
    const struct model_info *info = &c->job->info;
    paramo_err err = open_table(c, "w", 1, &info->w, 0, &c->w);
    if (err == PARAMO_OK && info->kind == MODEL_FM)
        err = open_table(c, "v", info->dim, &info->v, info->factor_init, &c->v);
    return err;
}

/* ---- between the customers ---- */

/* Waits for a value that the leader puts; it may be long at work, so only its death, or ours, ends the wait.
 */
static paramo_err wait_for_leader(struct customer *c, const char *key, unsigned char *value)
{
    struct job *job = c->job;
    for (;;) {
        size_t len = 0;
        paramo_err err = paramo_kv_get(job->node, key, value, 1, &len, LOOK_MS);
        if (err == PARAMO_OK)
            return len == 1 ? PARAMO_OK : lerr(PARAMO_E_INTERNAL, "%s has %zu bytes", key, len);
        if (err != PARAMO_E_TIMEOUT)
            return from_library(err);
        if (atomic_load(&job->stop))
            return lerr(PARAMO_E_INTERRUPTED, "interrupted");
        uint32_t dead[NODES_LOOKED];
        size_t n = paramo_dead_nodes(job->node, dead, NODES_LOOKED);
        for (size_t i = 0; i < n && i < NODES_LOOKED; i++)
            if (dead[i] == PARAMO_ID_WORKER(0))
                return lerr(PARAMO_E_NODE_LOST,
                            "worker 0 (node %u), which validates and saves the model, has died",
                            PARAMO_ID_WORKER(0));
    }
}

static void word_key(char *out, size_t cap, uint32_t round)
{
    (void)snprintf(out, cap, "train/word/%u", round);
}

static paramo_err put(struct job *job, const char *key, unsigned char value)
{
    return from_library(paramo_kv_put(job->node, key, &value, 1));
}

/* ---- the leader ---- */

static paramo_err load_model(struct customer *c)
{
    struct model model;
    paramo_err err = modelio_open(c->job->o->model_in, &model);
    if (err != PARAMO_OK)
        return err;
    err = from_library(paramo_table_load(c->worker, c->w, model.table[0].path));
    if (err == PARAMO_OK && c->v != NULL)
        err = from_library(paramo_table_load(c->worker, c->v, model.table[1].path));
    modelio_close(&model);
    return err;
}

static paramo_err write_table(void *arg, size_t table, const char *path)
{
    struct customer *c = arg;
    return from_library(paramo_table_save(c->worker, table == 0 ? c->w : c->v, path, !c->job->o->drop_state));
}

static paramo_err save_model(struct customer *c)
{
    struct job *job = c->job;
    if (job->o->model_out == NULL)
        return PARAMO_OK;
    paramo_err err = modelio_save(job->o->model_out, &job->info, write_table, c);
    job->result->saved |= err == PARAMO_OK;
    return err;
}

/* The job's sums of a round. */
static paramo_err get_sums(struct job *job, uint32_t round, double sums[SUM_N])
{
    char key[48];
    size_t len = 0;
    memset(sums, 0, SUM_N * sizeof *sums);
    learner_sums_key(key, sizeof key, round);
    paramo_err err = paramo_kv_get(job->node, key, sums, SUM_N * sizeof *sums, &len, LOOK_MS);
    return err == PARAMO_E_TIMEOUT ? PARAMO_OK : from_library(err); /* not there: no part had rows */
}

static paramo_err validate(struct customer *c, struct train_epoch *e)
{
    struct job *job = c->job;
    if (job->valid == NULL)
        return PARAMO_OK;
    double began = progress_now();
    struct score_source source = {
        .dim = c->v == NULL ? 0 : job->info.dim, .fetch = learner_fetch, .arg = c->learner};
    metrics_reset(job->metrics);
    paramo_err err = reader_rewind(job->valid);
    if (err == PARAMO_OK)
        err = score_reader(&source, job->valid, score_metrics, job->metrics);
    if (err == PARAMO_OK)
        err = metrics_finish(job->metrics, &e->valid);
    e->has_valid = err == PARAMO_OK;
    e->valid_seconds = progress_now() - began;
    return err;
}

static void show_epoch(struct job *job, uint32_t round)
{
    const struct train_epoch *e = &job->result->epoch[round];
    char rows[16], rate[16], nonzero[16], sent[16], received[16], valid[96] = "";
    if (e->has_valid)
        (void)snprintf(valid, sizeof valid, "  valid log-loss %.5f  AUC %.5f", e->valid.logloss,
                       e->valid.auc);
    progress_line(
        &job->progress,
        "epoch %u/%llu  %s rows in %.1f s (%s/s)  log-loss %.5f%s  %s weights  pushed %s  pulled %s",
        round + 1, (unsigned long long)job->o->epochs, progress_count(rows, sizeof rows, (double)e->rows),
        e->seconds, progress_count(rate, sizeof rate, e->seconds > 0 ? (double)e->rows / e->seconds : 0),
        e->logloss, valid, progress_count(nonzero, sizeof nonzero, (double)e->nonzero),
        progress_bytes(sent, sizeof sent, e->sent), progress_bytes(received, sizeof received, e->received));
}

/* After a round: measures it, saves if it is time to, and says whether to go on. Without early stopping the
 * model is saved once, at the end; with it, after each epoch that is better than all before, so that the best
 * one stays. */
static paramo_err lead(struct customer *c, uint32_t round, int *go_on)
{
    struct job *job = c->job;
    struct train_result *r = job->result;
    struct train_epoch *epochs = realloc(r->epoch, (round + 1) * sizeof *epochs);
    if (epochs == NULL)
        return lerr(PARAMO_E_MEMORY, "out of memory");
    r->epoch = epochs;
    struct train_epoch *e = &epochs[round];
    *e = (struct train_epoch){.seconds = progress_now() - job->epoch_began};
    double sums[SUM_N];
    paramo_table_stats stats = {.size = sizeof stats};
    paramo_err err = get_sums(job, round, sums);
    if (err == PARAMO_OK && sums[SUM_ROWS] == 0)
        err = lerr(PARAMO_E_FORMAT, "the training data has no rows");
    if (err == PARAMO_OK)
        err = from_library(paramo_table_stat(c->worker, c->w, &stats));
    if (err == PARAMO_OK)
        err = validate(c, e);
    if (err != PARAMO_OK)
        return err;
    e->rows = (uint64_t)sums[SUM_ROWS];
    e->logloss = sums[SUM_LOSS] / sums[SUM_ROWS];
    e->sent = sums[SUM_SENT];
    e->received = sums[SUM_RECEIVED];
    e->keys = stats.rows;
    e->nonzero = stats.nonzero;
    r->epochs = round + 1;
    r->rows += e->rows;
    r->seconds = progress_now() - job->started;
    job->info.epochs++;
    job->info.rows += e->rows;
    show_epoch(job, round);
    int better =
        e->has_valid && (r->best_epoch == 0 || e->valid.logloss < r->epoch[r->best_epoch - 1].valid.logloss);
    if (better)
        r->best_epoch = round + 1;
    job->bad_epochs = better ? 0 : job->bad_epochs + 1;
    int early = job->o->early_stop > 0 && e->has_valid;
    r->stopped_early = early && job->bad_epochs >= job->o->early_stop && round + 1 < job->o->epochs;
    *go_on = round + 1 < job->o->epochs && !r->stopped_early;
    if (early ? better : !*go_on)
        err = save_model(c);
    return err;
}

/* ---- progress ---- */

static void tick(void *arg, uint64_t rows, double loss, const paramo_part *at)
{
    struct customer *c = arg;
    struct job *job = c->job;
    double now = progress_now();
    if (!progress_due(&job->progress, now))
        return;
    uint64_t done, total;
    paramo_counters counters = {.size = sizeof counters};
    reader_progress(job->reader, at->stream, at->index, &done, &total);
    paramo_worker_counters(c->worker, &counters);
    /* The whole job's figures come with each epoch; in between this learner's stand for all of them, which
     * work at about the same pace. */
    uint32_t learners = job->embedded ? job->customers : paramo_num_workers(job->node);
    struct progress_state state = {
        .epoch = (uint32_t)job->result->epochs + 1,
        .epochs = (uint32_t)job->o->epochs,
        .part = total > 0 ? (double)done / (double)total : -1,
        .rows = rows * learners,
        .seconds = now - job->epoch_began,
        .logloss = rows > 0 ? loss / (double)rows : (double)NAN,
        .pushed = (double)(counters.bytes_sent * learners),
        .pulled = (double)(counters.bytes_received * learners),
    };
    progress_show(&job->progress, now, &state);
}

/* ---- one customer ---- */

static paramo_err prepare(struct customer *c)
{
    struct job *job = c->job;
    paramo_err err = from_library(paramo_worker_open(job->node, c->id, &c->worker));
    unsigned char ready;
    if (err == PARAMO_OK && !leads(c))
        err = wait_for_leader(c, READY_KEY, &ready);
    if (err == PARAMO_OK)
        err = open_tables(c);
    if (err == PARAMO_OK && leads(c) && job->o->model_in != NULL)
        err = load_model(c);
    if (err == PARAMO_OK)
        err = from_library(
            paramo_pool_open(job->node, POOL, reader_streams(job->reader), (uint32_t)job->o->epochs));
    if (err == PARAMO_OK && leads(c))
        err = put(job, READY_KEY, 1);
    if (err != PARAMO_OK)
        return err;
    /* readers beside each learner: what is left of the processors, at least one */
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned share = cores > 0 ? (unsigned)cores / job->customers : 1;
    struct learner_options options = {
        .node = job->node,
        .worker = c->worker,
        .w = c->w,
        .v = c->v,
        .dim = c->v == NULL ? 0 : job->info.dim,
        .who = c->id,
        .pool = POOL,
        .reader = job->reader,
        .batch_rows = (size_t)job->o->batch,
        .ahead = job->o->ahead,
        .threads = share > 4 ? 4 : share, /* four parse faster than one learner learns */
        .stop = &job->stop,
        .tick = leads(c) ? tick : NULL,
        .arg = c,
    };
    return learner_new(&options, &c->learner);
}

static paramo_err learn(struct customer *c)
{
    struct job *job = c->job;
    int go_on = 1;
    if (leads(c))
        job->started = progress_now();
    for (uint32_t round = 0; go_on; round++) {
        char key[48];
        word_key(key, sizeof key, round);
        if (leads(c))
            job->epoch_began = progress_now();
        paramo_err err = learner_round(c->learner, round);
        if (err != PARAMO_OK)
            return err;
        if (leads(c)) {
            err = lead(c, round, &go_on);
            if (err == PARAMO_OK)
                err = put(job, key, (unsigned char)go_on);
        } else {
            unsigned char word = 0;
            err = wait_for_leader(c, key, &word);
            go_on = word;
        }
        if (err != PARAMO_OK)
            return err;
    }
    if (c->id == 0)
        job->finished = 1;
    return PARAMO_OK;
}

static void *customer_main(void *arg)
{
    struct customer *c = arg;
    struct job *job = c->job;
    paramo_err err = prepare(c);
    if (err == PARAMO_OK)
        err = learn(c);
    if (err == PARAMO_E_CLOSED && atomic_load(&job->stop))
        err = PARAMO_E_INTERRUPTED;
    if (err != PARAMO_OK && err != PARAMO_E_INTERRUPTED)
        fail(job, err);
    if (err == PARAMO_E_INTERRUPTED)
        atomic_store(&job->stop, 1);
    return NULL;
}

/* Runs the customers: 0 on this thread, the others on their own. */
static void run_customers(struct job *job)
{
    uint32_t started = 1;
    for (uint32_t i = 1; i < job->customers; i++) {
        if (pthread_create(&job->customer[i].thread, NULL, customer_main, &job->customer[i]) != 0) {
            (void)lerr(PARAMO_E_SYSTEM, "a thread cannot be started");
            fail(job, PARAMO_E_SYSTEM);
            break;
        }
        started++;
    }
    (void)customer_main(&job->customer[0]);
    for (uint32_t i = 1; i < started; i++)
        (void)pthread_join(job->customer[i].thread, NULL);
}

/* ---- one process ---- */

static paramo_err open_readers(struct job *job)
{
    const struct train_options *o = job->o;
    struct reader_options options = o->reader;
    options.hash_bits = job->info.hash_bits;
    options.cache = o->epochs > 1;
    paramo_err err = reader_open(&options, o->data, o->data_n, &job->reader);
    if (err == PARAMO_OK && o->valid_n > 0) {
        options.cache = o->epochs > 1;
        options.cache_bytes = options.cache_bytes / 4;
        err = reader_open(&options, o->valid, o->valid_n, &job->valid);
        if (err == PARAMO_OK)
            err = metrics_new(&job->metrics);
    }
    return err;
}

/* The leader of an interrupted job. Nothing is saved if nothing was learned, so that an older model stays;
 * nor, with early stopping, once the best epoch's model is: what came since was never validated. */
static paramo_err save_interrupted(struct job *job)
{
    struct train_result *r = job->result;
    double sums[SUM_N];
    uint64_t rows = 0;
    for (uint32_t i = 0; i < job->customers; i++)
        rows += job->customer[i].learner == NULL ? 0 : learner_rows(job->customer[i].learner);
    if (job->customer[0].learner == NULL)
        return PARAMO_OK;
    paramo_err err = get_sums(job, (uint32_t)r->epochs, sums);
    if (err != PARAMO_OK)
        return err;
    rows = rows > (uint64_t)sums[SUM_ROWS] ? rows : (uint64_t)sums[SUM_ROWS];
    r->rows += rows;
    r->seconds = progress_now() - job->started;
    job->info.rows += rows;
    if (r->rows == 0 || (job->o->early_stop > 0 && r->saved))
        return PARAMO_OK;
    return save_model(&job->customer[0]);
}

static paramo_err run_worker(struct job *job, const paramo_config *config)
{
    struct train_result *r = job->result;
    paramo_err err = from_library(paramo_start(config, &job->node));
    if (err != PARAMO_OK)
        return err;
    r->leader = paramo_node_rank(job->node) == 0;
    r->num_servers = paramo_num_servers(job->node);
    r->num_workers = job->embedded ? job->customers : paramo_num_workers(job->node);
    progress_init(&job->progress, job->o->quiet || !r->leader);
    running = job;
    learning = 1;
    if (interrupted)
        (void)train_interrupt();
    run_customers(job);
    progress_end(&job->progress);
    err = job->err != PARAMO_OK                       ? lerr(job->err, "%s", job->message)
          : atomic_load(&job->stop) && !job->finished ? lerr(PARAMO_E_INTERRUPTED, "interrupted")
                                                      : PARAMO_OK;
    char why[LERR_MAX];
    (void)snprintf(why, sizeof why, "%s", lerr_text());
    if (err == PARAMO_E_INTERRUPTED) {
        r->interrupted = 1;
        paramo_err bad = r->leader ? save_interrupted(job) : PARAMO_OK;
        if (bad != PARAMO_OK) {
            err = bad;
            (void)snprintf(why, sizeof why, "%s", lerr_text());
        }
    }
    learning = 0;
    running = NULL;
    for (uint32_t i = 0; i < job->customers; i++) {
        learner_free(job->customer[i].learner);
        paramo_worker_close(job->customer[i].worker);
    }
    /* the rest of the cluster need not find out by waiting for us */
    if (err != PARAMO_OK && !job->embedded && (r->leader || err != PARAMO_E_INTERRUPTED)) {
        paramo_err ignored = paramo_shutdown(job->node, why);
        (void)ignored; /* err is what began it */
    }
    paramo_err stopped = paramo_stop(job->node);
    if (err == PARAMO_OK && stopped != PARAMO_OK)
        return from_library(stopped);
    return err == PARAMO_OK ? err : lerr(err, "%s", why);
}

static paramo_err prepare_job(struct job *job, const paramo_config *config)
{
    const struct train_options *o = job->o;
    job->embedded = config->roles == PARAMO_ROLE_ALL;
    job->customers = job->embedded ? o->workers : 1;
    if (job->customers > CUSTOMERS_MAX)
        return lerr(PARAMO_E_INVALID, "at most %d workers", CUSTOMERS_MAX);
    job->customer = calloc(job->customers, sizeof *job->customer);
    if (job->customer == NULL)
        return lerr(PARAMO_E_MEMORY, "out of memory");
    for (uint32_t i = 0; i < job->customers; i++)
        job->customer[i] = (struct customer){.job = job, .id = i};
    for (size_t i = 0; i < o->data_n; i++)
        if (strcmp(o->data[i], "-") == 0 && !job->embedded && config->num_workers > 1)
            return lerr(PARAMO_E_INVALID, "standard input can be shared by the workers of one process only");
    paramo_err err = o->model_out == NULL ? PARAMO_OK : modelio_prepare(o->model_out, &job->made);
    return err == PARAMO_OK ? open_readers(job) : err;
}

paramo_err train_run(const struct train_options *options, struct train_result *result)
{
    struct job job = {.o = options, .result = result, .info = options->model};
    paramo_config config;
    paramo_config_init(&config);
    config.roles = PARAMO_ROLE_ALL;
    config.num_servers = options->servers;
    config.num_workers = options->workers;
    *result = (struct train_result){0};
    paramo_err err = from_library(paramo_config_from_env(&config));
    if (err != PARAMO_OK)
        return err;
    if (config.roles == PARAMO_ROLE_ALL) { /* the job's size is ours, not a variable's left from elsewhere */
        config.num_servers = options->servers;
        config.num_workers = options->workers;
    }
    if (config.roles == PARAMO_ROLE_SCHEDULER || config.roles == PARAMO_ROLE_SERVER) {
        paramo_node *node;
        err = from_library(paramo_start(&config, &node));
        return err == PARAMO_OK ? from_library(paramo_stop(node)) : err;
    }
    (void)pthread_mutex_init(&job.lock, NULL);
    err = prepare_job(&job, &config);
    if (err == PARAMO_OK)
        err = run_worker(&job, &config);
    if (job.made && !result->saved)
        (void)rmdir(options->model_out);
    if (job.reader != NULL) {
        struct reader_stats stats;
        reader_get_stats(job.reader, &stats);
        result->bad_lines = stats.bad_lines;
        (void)snprintf(result->first_bad, sizeof result->first_bad, "%s", stats.first_bad);
    }
    char why[LERR_MAX];
    (void)snprintf(why, sizeof why, "%s", lerr_text());
    reader_close(job.reader);
    reader_close(job.valid);
    metrics_free(job.metrics);
    free(job.customer);
    (void)pthread_mutex_destroy(&job.lock);
    return err == PARAMO_OK ? err : lerr(err, "%s", why);
}

void train_result_free(struct train_result *result)
{
    free(result->epoch);
    *result = (struct train_result){0};
}
