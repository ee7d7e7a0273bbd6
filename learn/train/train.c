#include "learn/train/train.h"
#include "learn/darlin/darlin.h"
#include "learn/train/centre.h"
#include "learn/train/first_rows.h"
#include "learn/train/lead.h"
#include "learn/train/leader.h"
#include "learn/train/resume.h"
#include "learn/train/rows.h"
#include "learn/train/summed.h"
#include "paramo/paramo.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POOL          "train/data"
#define POLL_MS       500  /* how long a wait for the leader lasts before the worker checks that it lives */
#define POLL_PERIOD   1.0  /* seconds between two checks of the leader while learning */
#define CUSTOMERS_MAX 1024 /* arbitrary */

/* The signal handler uses these. `running` is never a fold of a cross-validation, because a fold saves nothing. */
static atomic_int interrupted, learning, preparing;
static _Atomic(struct job *) running;
static paramo_node *volatile serving; /* the node of a scheduler or server process */

int train_interrupt(void)
{
    interrupted = 1;
    struct job *job = running;
    if (serving) {
        paramo_interrupt(serving);
        return 2;
    }
    if (!job || !learning)
        return preparing ? 3 : 0;
    atomic_store(&job->stop, 1);
    reader_interrupt(job->reader);
    if (job->valid)
        reader_interrupt(job->valid);
    return 1;
}

void train_prepares(int prepares)
{
    preparing = prepares;
}

int train_interrupted(void)
{
    return interrupted;
}

int job_continues(struct job *job)
{
    const struct train_options *o = job->o;
    if (!o->continues)
        return 1;
    if (o->alone)
        return o->continues(o->continues_arg, job->result);
    learning = 0;
    running = NULL;
    const int on = o->continues(o->continues_arg, job->result);
    running = job;
    learning = 1;
    if (interrupted)
        (void)train_interrupt();
    return on;
}

static void fail(struct job *job, paramo_err err)
{
    (void)pthread_mutex_lock(&job->lock);
    if (job->err == PARAMO_OK) {
        job->err = err;
        (void)snprintf(job->message, sizeof job->message, "%s", paramo_last_error());
    }
    (void)pthread_mutex_unlock(&job->lock);
    atomic_store(&job->stop, 1);
}

/* ---- settings ---- */

/* Fills in the settings that the options leave open and that depend on the number of workers. */
static void fill_settings(struct job *job)
{
    struct train_result *r = job->result;
    const uint64_t first = train_first_batch(r->num_workers, job->o->ahead);
    const uint64_t most = train_batch_fitting(&job->info, train_batch(r->num_workers, job->o->ahead), first);
    job->batch = (size_t)(job->o->batch > 0 ? job->o->batch : most);
    job->first_batch = job->o->batch > 0 ? job->batch : (size_t)first;
    r->batch = job->info.batch = job->batch;
    r->objective = job->info.objective;
    for (size_t t = 0; t < job->info.ops->tables; t++) {
        double *alpha = &job->info.optimizer[t].alpha, *beta = &job->info.optimizer[t].beta,
               *l2 = &job->info.optimizer[t].l2;
        if (*alpha == 0)
            *alpha = model_alpha(&job->info, t, (uint64_t)r->num_workers * (job->o->ahead + 1));
        if (*beta < 0)
            *beta = model_beta(&job->info, t);
        if (*l2 < 0)
            *l2 = model_l2(&job->info, t);
        r->alpha[t] = *alpha;
    }
}

/* Puts names of the command line before the text of the last error. */
static paramo_err refused(const char *options)
{
    char why[PARAMO_ERROR_MAX];
    (void)snprintf(why, sizeof why, "%s", paramo_last_error());
    return paramo_error_set(PARAMO_E_INVALID, "%s: %s", options, why);
}

static paramo_err open_table(struct customer *c, size_t number)
{
    const struct model_info *info = &c->job->info;
    const struct model_optimizer *o = &info->optimizer[number];
    const struct optimizer_choice *choice = optimizers_find(o->name);
    struct model_shape shape = model_shape(info, number);
    paramo_table_options t;
    if (!choice && !c->job->o->darlin.on)
        return paramo_error_set(PARAMO_E_INVALID, "there is no optimizer '%s'", o->name);
    paramo_table_options_init(&t);
    t.kind = PARAMO_TABLE_SPARSE;
    t.dim = model_row_values(info, number);
    t.optimizer = c->job->o->darlin.on ? PARAMO_OPT_ASSIGN : choice->code;
    t.alpha = (float)o->alpha;
    t.beta = (float)o->beta;
    t.l1 = (float)o->l1;
    t.l2 = (float)o->l2;
    t.seed = info->seed;
    t.init = shape.init > 0 ? PARAMO_INIT_NORMAL : shape.mean != 0 ? PARAMO_INIT_CONSTANT : PARAMO_INIT_ZERO;
    t.init_a = (float)shape.mean;
    t.init_b = (float)shape.init;
    t.aggregate = c->job->o->aggregate;
    paramo_err err = paramo_table_open(c->worker, info->ops->table[number].name, &t, &c->table[number]);
    if (err != PARAMO_OK || t.aggregate == PARAMO_AGGREGATE_NONE || !c->job->o->push_filter)
        return err;
    /* PARAMO_FILTER silently leaves out a filter that does not fit. */
    err = paramo_table_filter(c->table[number], PARAMO_FILTER_PUSH, c->job->o->push_filter);
    if (err == PARAMO_E_UNSUPPORTED)
        return refused("--aggregate and --filter");
    return err;
}

static paramo_err open_tables(struct customer *c)
{
    paramo_err err = PARAMO_OK;
    for (size_t t = 0; err == PARAMO_OK && t < c->job->info.ops->tables; t++)
        err = open_table(c, t);
    return err;
}

/* ---- between the customers ---- */

/* Checks whether this process must lead. *took: it leads from now on, and *words is the newest word. */
static paramo_err check_lead(struct customer *c, int *took, struct words *words)
{
    struct job *job = c->job;
    *took = 0;
    if (leads(c) || job->embedded)
        return PARAMO_OK;
    paramo_err err = lead_try(job);
    if (err != PARAMO_OK || !leads(c))
        return err;
    *took = job->result->leader = 1;
    job->progress.quiet = job->o->quiet;
    return leader_take_over(job, words);
}

static paramo_err interrupted_by_stop(const struct job *job)
{
    return atomic_load(&job->stop)
               ? paramo_error_set(PARAMO_E_INTERRUPTED, "interrupted: the training has not ended")
               : PARAMO_OK;
}

/* Waits until the job is ready, or this process leads. The leader may take long, for example to load a model. */
static paramo_err wait_for_ready(struct customer *c, struct words *words)
{
    struct job *job = c->job;
    for (;;) {
        paramo_err err = job->embedded ? PARAMO_OK : lead_try(job);
        if (err != PARAMO_OK || leads(c))
            return err;
        err = lead_ready(job, POLL_MS, words);
        if (err == PARAMO_E_TIMEOUT)
            err = interrupted_by_stop(job);
        else
            return err;
        if (err != PARAMO_OK)
            return err;
    }
}

/* Waits until the round is over, or until this process leads and must end the round (*mine). *next: the round to learn
 * next, which may be several rounds later if this process was stopped for a time. */
static paramo_err wait_for_word(struct customer *c, uint32_t round, uint32_t *next, int *go_on, int *mine)
{
    struct job *job = c->job;
    struct words words;
    *mine = 0;
    for (;;) {
        int took;
        paramo_err err = check_lead(c, &took, &words);
        if (err == PARAMO_OK && took && words.go_on == GOES_ON && words.round <= round) {
            *mine = 1;
            return PARAMO_OK;
        }
        if (err == PARAMO_OK && !took)
            err = lead_now(job, &words);
        if (err == PARAMO_OK && words.go_on == GOES_ON && words.round <= round)
            err = lead_word(job, round, POLL_MS, &words);
        if (err == PARAMO_OK && words.go_on == INTERRUPTED)
            return paramo_error_set(PARAMO_E_INTERRUPTED,
                                    "interrupted: the worker that leads the job ended the training");
        if (err == PARAMO_OK) {
            *next = words.round;
            *go_on = words.go_on == GOES_ON;
            return job->embedded ? PARAMO_OK : leader_hear(job, &words);
        }
        if (err == PARAMO_E_TIMEOUT)
            err = interrupted_by_stop(job);
        if (err != PARAMO_OK)
            return err;
    }
}

/* Waits until the leader has saved the model of an interrupted job. If it dies first, another leads and saves. */
static paramo_err wait_for_save(struct customer *c)
{
    struct job *job = c->job;
    struct words words;
    char why[PARAMO_ERROR_MAX];
    (void)snprintf(why, sizeof why, "%s", paramo_last_error());
    paramo_err err = lead_now(job, &words);
    while (err == PARAMO_OK && words.go_on == INTERRUPTED && !leads(c)) {
        int took;
        err = check_lead(c, &took, &words);
        if (err == PARAMO_OK && !took && (err = lead_saved(job, POLL_MS)) == PARAMO_OK)
            break;
        err = err == PARAMO_E_TIMEOUT ? PARAMO_OK : err;
    }
    return paramo_error_set(PARAMO_E_INTERRUPTED, "%s", why);
}

/* A worker that does not lead checks from time to time whether the round continues, and whether there is a leader. */
static paramo_err other_tick(struct customer *c, const paramo_work_unit *at)
{
    struct job *job = c->job;
    double now = progress_now();
    if (job->embedded || now - c->looked < POLL_PERIOD)
        return PARAMO_OK;
    c->looked = now;
    struct words words;
    int took;
    paramo_err err = check_lead(c, &took, &words);
    if (err == PARAMO_OK && took)
        watch_begin(&job->watch, &job->info.objective, at->round == 0 && !job->o->model_in);
    else if (err == PARAMO_OK)
        err = lead_now(job, &words);
    if (err == PARAMO_OK && (words.round > at->round || words.go_on != GOES_ON))
        return paramo_error_set(PARAMO_E_INTERRUPTED, "the worker that leads the job ended the training");
    return err == PARAMO_E_TIMEOUT ? PARAMO_OK : err;
}

static paramo_err tick(void *arg, const struct watch_sums *sums, const paramo_work_unit *at)
{
    struct customer *c = arg;
    if (c->job->o->deadline > 0 && progress_now() > c->job->o->deadline)
        return paramo_error_set(PARAMO_E_INTERRUPTED, "the time of this training is over");
    return leads(c) ? leader_tick(c, sums, at) : other_tick(c, at);
}

static void other_is_slow(void *arg, unsigned seconds, const char *why)
{
    struct customer *c = arg;
    if (leads(c))
        progress_line(&c->job->progress, "waiting for %u s: %s", seconds, why);
}

/* ---- one customer ---- */

static int does_lead(void *arg)
{
    return leads(arg);
}

/* --deterministic: which share of each batch this customer learns. */
static uint32_t share_of(const struct customer *c)
{
    return c->job->embedded ? c->id : (uint32_t)paramo_node_rank(c->job->node);
}

static paramo_err open_pool(struct customer *c)
{
    const struct job *job = c->job;
    paramo_err err = paramo_pool_open(job->node, c->pool, reader_streams(job->reader),
                                      learner_pool_round((uint32_t)job->epochs, job->hold_out > 0));
    if (err == PARAMO_E_INVALID)
        return refused("--epochs, --hold-out and the files must be those that the job began with");
    return err;
}

static paramo_err prepare(struct customer *c)
{
    struct job *job = c->job;
    paramo_err err = paramo_worker_open(job->node, c->id, &c->worker);
    struct words words;
    if (err == PARAMO_OK && c->id == 0)
        err = lead_open(job);
    if (err == PARAMO_OK && !leads(c)) {
        err = wait_for_ready(c, &words);
        if (err == PARAMO_OK && leads(c)) {
            job->result->leader = 1;
            job->progress.quiet = job->o->quiet;
            if (paramo_node_rank(job->node) != 0 || paramo_is_recovery(job->node))
                leader_announce(job);
        } else if (err == PARAMO_OK && !job->embedded) {
            /* a worker that joins later has the settings of the others */
            job->result->num_workers = words.workers;
            if (words.label_scale > 0)
                job->info.objective.label_scale = words.label_scale;
            fill_settings(job);
            job->started = job->epoch_began = progress_now();
        }
    }
    if (err == PARAMO_OK)
        err = open_tables(c);
    c->scaling = (struct scaling){.node = job->node, .worker = c->worker, .kind = job->info.scale};
    c->sightings = (struct sightings){.worker = c->worker, .model = &job->info};
    if (err == PARAMO_OK)
        err = sightings_open(&c->sightings);
    c->expiry = (struct expiry){.node = job->node,
                                .worker = c->worker,
                                .model = &job->info,
                                .tables = c->table,
                                .scaling = &c->scaling,
                                .sightings = &c->sightings,
                                .after = job->o->expire};
    if (err == PARAMO_OK)
        err = expiry_open(&c->expiry);
    if (job->o->darlin.on) {
        job->result->objective = job->info.objective;
        return err;
    }
    int restored = 0, go_on = GOES_ON;
    if (err == PARAMO_OK && leads(c))
        err = leader_begin(job, &restored, &go_on);
    if (err == PARAMO_OK && leads(c))
        rows_tell(job);
    if (err == PARAMO_OK && leads(c) && !restored)
        err = job->o->model_in ? resume_model(c) : first_rows_begin(c);
    if (leads(c))
        job->result->objective = job->info.objective;
    if (job->o->deterministic) /* a pool for this customer alone, which learns its share of all parts */
        (void)snprintf(c->pool, sizeof c->pool, POOL "/%" PRIu32, share_of(c));
    else
        (void)snprintf(c->pool, sizeof c->pool, POOL);
    if (err == PARAMO_OK)
        err = open_pool(c);
    if (err == PARAMO_OK && leads(c)) {
        job->started = job->epoch_began = progress_now(); /* the others begin when they hear of it */
        leader_words(job, (uint32_t)job->result->first_epoch, go_on, &words);
        err = leader_share(c);
        if (err == PARAMO_OK)
            err = lead_put_ready(job, &words);
    }
    if (err != PARAMO_OK)
        return err;
    /* loader threads of each learner: a share of the processors, at least one */
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned share = cores > 0 ? (unsigned)cores / job->customers : 1;
    struct learner_options options = {
        .node = job->node,
        .worker = c->worker,
        .model = &job->info,
        .table = c->table,
        .scaling = &c->scaling,
        .sightings = &c->sightings,
        .expiry = &c->expiry,
        .customer = c->id,
        .pool = c->pool,
        .reader = job->reader,
        .batch_rows = job->batch,
        .first_rows = job->first_batch,
        .admission = job->o->admission,
        .workers = job->result->num_workers > 0 ? job->result->num_workers : 1,
        .schedule = job->o->schedule,
        .epochs = job->epochs,
        .shuffle = (size_t)job->o->shuffle,
        .negatives = job->o->negatives,
        .held_out = job->hold_out > 0,
        .calibrate = job->o->calibrate != CALIBRATION_NONE,
        .share = share_of(c),
        .shares = job->o->deterministic ? job->result->num_workers : 0,
        .alone = job->embedded || job->o->deterministic,
        .growing = job->o->growing,
        .ahead = job->o->ahead,
        .bound = job->o->bound,
        .filtered = &c->filtered,
        .threads = share > 4 ? 4 : share, /* four parse faster than a learner learns */
        .stop = &job->stop,
        .tick = tick,
        .leads = does_lead,
        .slow = other_is_slow,
        .arg = c,
    };
    return learner_new(&options, &c->learner);
}

static paramo_err learn(struct customer *c)
{
    struct job *job = c->job;
    struct words words;
    paramo_err err = lead_now(job, &words); /* a worker that joins later starts at the current round */
    int go_on = words.go_on == GOES_ON;
    if (err == PARAMO_OK && !leads(c) && !job->embedded)
        err = leader_hear(job, &words);
    if (err == PARAMO_OK && leads(c) && !go_on)
        err = leader_save_ended(c);
    if (err != PARAMO_OK)
        return err;
    for (uint32_t round = words.round, next; go_on; round = next) {
        int mine = leads(c);
        next = round + 1;
        if (mine)
            watch_begin(&job->watch, &job->info.objective, round == 0 && !job->o->model_in);
        err = learner_round(c->learner, round);
        if (c->id == 0)
            job->learned = progress_now();
        if (err == PARAMO_OK && job->hold_out > 0)
            err = learner_measure(c->learner, round);
        if (err == PARAMO_OK && !leads(c))
            err = wait_for_word(c, round, &next, &go_on, &mine);
        else
            mine = leads(c);
        if (err == PARAMO_OK && mine)
            err = leader_end_round(c, round, &go_on);
        if (err != PARAMO_OK)
            return err;
        if (c->id == 0)
            job->epoch_began = progress_now();
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
        err = job->o->darlin.on ? darlin_run(c) : learn(c);
    if (err == PARAMO_E_CLOSED && atomic_load(&job->stop))
        err = PARAMO_E_INTERRUPTED;
    if (err != PARAMO_OK && err != PARAMO_E_INTERRUPTED)
        fail(job, err);
    if (err == PARAMO_E_INTERRUPTED && !job->embedded && c->worker && !leads(c))
        err = wait_for_save(c);
    if (err == PARAMO_E_INTERRUPTED)
        atomic_store(&job->stop, 1);
    return NULL;
}

/* Closes the worker first: until then its requests use the learner's memory. */
static void customer_close(struct customer *c)
{
    paramo_worker_close(c->worker);
    c->worker = NULL;
    learner_free(c->learner);
    c->learner = NULL;
}

/* What the filters of the job's workers have done. After an interrupt, the counts that other processes have not added
 * are missing. */
static void count_filters(struct job *job, const char *chains)
{
    struct train_result *r = job->result;
    paramo_err err = PARAMO_OK;
    for (uint32_t i = 0; i < job->customers && err == PARAMO_OK; i++)
        if (job->customer[i].worker)
            err = filter_sums_add(&job->customer[i].filtered, job->node, job->customer[i].worker);
    r->filters = err == PARAMO_OK ? filter_sums_read(job->node, chains, r->filter) : 0;
}

/* How far apart the job's workers were. After an interrupt, the sums that other processes have not added are
 * missing. */
static void count_pace(const struct job *job)
{
    double *sums = job->result->pace;
    if (job->o->bound == PACE_FREE || summed_get(job->node, PACE_SUMS_KEY, sums, PACE_SUMS) != PARAMO_OK)
        return;
    for (uint32_t i = 0; i < job->customers; i++)
        if (job->customer[i].learner)
            learner_pace(job->customer[i].learner, sums);
}

static void count_all(struct job *job, const paramo_config *config)
{
    count_pace(job);
    if (config->filter)
        count_filters(job, config->filter);
}

/* Runs the customers: 0 on this thread, the others on their own. */
static void run_customers(struct job *job)
{
    uint32_t started = 1;
    for (uint32_t i = 1; i < job->customers; i++) {
        int failed = pthread_create(&job->customer[i].thread, NULL, customer_main, &job->customer[i]);
        if (failed != 0) {
            (void)paramo_error_set(PARAMO_E_SYSTEM, "the thread of worker %u cannot be started: %s", i,
                                   strerror(failed));
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

/* Does this error end the whole job? It does if every worker would fail in the same way. If only this worker cannot
 * continue (a file, memory), the others learn its parts. */
static int ends_the_job(const struct job *job, paramo_err err)
{
    switch (err) {
    case PARAMO_OK:
    case PARAMO_E_INTERRUPTED:
    case PARAMO_E_SHUTDOWN:
    case PARAMO_E_FENCED:
        return 0;
    case PARAMO_E_FORMAT:
    case PARAMO_E_CORRUPT:
    case PARAMO_E_NUMERIC:
    case PARAMO_E_NODE_LOST:
    case PARAMO_E_DATA_LOST:
        return 1;
    default:
        return job->result->leader;
    }
}

/* Does this leader leave the lead to another worker? It does if its own machine cannot save (a full disk, a missing
 * folder, no memory): the next leader saves on its machine. If there is no other worker, or the job has not begun to
 * learn, the job ends. */
static int hands_over(struct job *job, paramo_err err)
{
    const struct train_result *r = job->result;
    if (!r->leader || (err != PARAMO_E_IO && err != PARAMO_E_NOT_FOUND && err != PARAMO_E_MEMORY))
        return 0;
    size_t workers = paramo_node_ids(job->node, PARAMO_GROUP_WORKERS, NULL, 0);
    return workers > r->dead_workers + job->gave_up + 1 && lead_put_none(job) == PARAMO_OK;
}

static paramo_err run_worker(struct job *job, const paramo_config *config)
{
    struct train_result *r = job->result;
    paramo_err err = paramo_start(config, &job->node);
    if (err != PARAMO_OK)
        return err;
    r->leader = job->leads = job->embedded; /* with several processes, lead_try decides */
    r->hold_out = job->hold_out;
    r->num_servers = paramo_num_servers(job->node);
    r->num_workers = job->embedded ? job->customers : paramo_num_workers(job->node);
    fill_settings(job);
    progress_init(&job->progress, job->o->quiet > 0 ? job->o->quiet : !r->leader);
    const int fold = job->o->alone;
    if (!fold) {
        running = job;
        learning = 1;
    }
    if (interrupted && !fold)
        (void)train_interrupt();
    run_customers(job);
    progress_end(&job->progress);
    err = job->err != PARAMO_OK ? paramo_error_set(job->err, "%s", job->message)
          : atomic_load(&job->stop) && !job->finished
              ? paramo_error_set(PARAMO_E_INTERRUPTED, "interrupted: the training has not ended")
              : PARAMO_OK;
    char why[PARAMO_ERROR_MAX];
    (void)snprintf(why, sizeof why, "%s", paramo_last_error());
    if (err == PARAMO_E_INTERRUPTED) {
        r->interrupted = 1;
        paramo_err bad = PARAMO_OK;
        if (r->leader)
            bad = job->o->darlin.on ? darlin_save_interrupted(job) : leader_save_interrupted(job);
        if (bad != PARAMO_OK) {
            err = bad;
            (void)snprintf(why, sizeof why, "%s", paramo_last_error());
        }
    }
    if (r->leader)
        leader_count_dead(job);
    if (r->leader && (err == PARAMO_OK || err == PARAMO_E_INTERRUPTED))
        count_all(job, config);
    if (!fold) {
        learning = 0;
        running = NULL;
    }
    for (uint32_t i = 0; i < job->customers; i++)
        customer_close(&job->customer[i]);
    if (!job->embedded && hands_over(job, err)) {
        size_t length = strlen(why);
        (void)snprintf(why + length, sizeof why - length,
                       " (this worker ends; another leads from now on, and saves the model)");
    } else if (!job->embedded && ends_the_job(job, err)) {
        paramo_err ignored = paramo_shutdown(job->node, why);
        (void)ignored; /* err came first */
    }
    paramo_err stopped = paramo_stop(job->node);
    if (err == PARAMO_OK && stopped != PARAMO_OK)
        return stopped;
    return err == PARAMO_OK ? err : paramo_error_set(err, "%s", why);
}

/* Runs a scheduler or server until the job is over, or a signal makes it leave. */
static paramo_err serve(const paramo_config *config)
{
    paramo_node *node;
    char why[PARAMO_ERROR_MAX];
    paramo_err err = paramo_create(config, &node);
    if (err != PARAMO_OK)
        return err;
    serving = node;
    if (interrupted)
        paramo_interrupt(node);
    err = paramo_join(node);
    (void)snprintf(why, sizeof why, "%s", paramo_last_error());
    paramo_err stopped = paramo_stop(node);
    serving = NULL;
    if (interrupted)
        return paramo_error_set(PARAMO_E_INTERRUPTED, "interrupted: the training has not ended");
    return err == PARAMO_OK ? stopped : paramo_error_set(err, "%s", why);
}

static paramo_err prepare_job(struct job *job, const paramo_config *config)
{
    const struct train_options *o = job->o;
    job->embedded = config->roles == PARAMO_ROLE_ALL;
    job->customers = job->embedded ? o->workers : 1;
    if (o->snapshot && job->embedded)
        return paramo_error_set(PARAMO_E_INVALID,
                                "--snapshot: the job runs in one process, so no other can read its model; "
                                "start it under 'paramo run' or 'paramo worker'");
    if (job->customers > CUSTOMERS_MAX)
        return paramo_error_set(PARAMO_E_INVALID,
                                "one process can have at most %d workers, not %u; start more processes",
                                CUSTOMERS_MAX, job->customers);
    job->customer = calloc(job->customers, sizeof *job->customer);
    if (!job->customer)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for %u workers", job->customers);
    for (uint32_t i = 0; i < job->customers; i++)
        job->customer[i] = (struct customer){.job = job, .id = i};
    paramo_err err = !o->model_out ? PARAMO_OK : modelio_prepare(o->model_out);
    return err == PARAMO_OK ? rows_open(job) : err;
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
    paramo_err err = options->alone ? PARAMO_OK : paramo_config_from_env(&config);
    if (err != PARAMO_OK)
        return err;
    if (config.roles == PARAMO_ROLE_ALL) { /* the options say how large the job is, not the environment */
        config.num_servers = options->servers;
        config.num_workers = options->workers;
    }
    /* checked in every role, so that no node waits for a worker that refuses */
    for (size_t i = 0; i < options->data_n; i++)
        if (strcmp(options->data[i], "-") == 0 && config.roles != PARAMO_ROLE_ALL && config.num_workers > 1)
            return paramo_error_set(
                PARAMO_E_INVALID,
                "standard input cannot be shared by several worker processes: give files, or start "
                "one worker");
    if (config.roles == PARAMO_ROLE_SCHEDULER || config.roles == PARAMO_ROLE_SERVER)
        return serve(&config);
    (void)pthread_mutex_init(&job.lock, NULL);
    err = prepare_job(&job, &config);
    if (err == PARAMO_OK)
        err = run_worker(&job, &config);
    if (job.reader)
        reader_get_stats(job.reader, &result->read);
    char why[PARAMO_ERROR_MAX];
    (void)snprintf(why, sizeof why, "%s", paramo_last_error());
    if (!options->rows) {
        reader_close(job.reader);
        reader_close(job.valid);
    }
    metrics_free(job.metrics);
    centre_free(job.centre);
    free(job.customer);
    (void)pthread_mutex_destroy(&job.lock);
    return err == PARAMO_OK ? err : paramo_error_set(err, "%s", why);
}
