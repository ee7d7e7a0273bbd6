#include "learn/train/leader.h"
#include "learn/store/shared_model.h"
#include "learn/train/lead.h"
#include "learn/train/summed.h"
#include "learn/train/watch.h"
#include "paramo/paramo.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEAD_MAX 1024 /* arbitrary */

static paramo_err write_table(void *arg, size_t table, const char *path)
{
    struct customer *c = arg;
    paramo_table *t = table < c->job->info.ops->tables ? c->table[table] : c->scaling.table;
    return paramo_table_save(c->worker, t, path, !c->job->o->drop_state);
}

static paramo_err still_leads(void *arg)
{
    struct customer *c = arg;
    return c->job->embedded ? PARAMO_OK : lead_still(c->job);
}

/* The model as it is saved: calibrated, if that was asked for, on the rows that were measured last. */
static struct model_info calibrated(struct job *job)
{
    struct train_result *r = job->result;
    struct model_info info = job->info;
    if (calibration_fit(job->o->calibrate, job->bins, &info.calibration)) {
        r->uncalibrated_loss = calibration_loss(NULL, job->bins);
        r->calibrated_loss = calibration_loss(&info.calibration, job->bins);
    }
    r->calibration = info.calibration;
    return info;
}

/* No other process can read the model of a job in one process. */
paramo_err leader_share(struct customer *c)
{
    const struct model_info info = calibrated(c->job);
    return c->job->embedded ? PARAMO_OK : shared_model_put(c->worker, &info);
}

/* No worker pushes: all wait for the leader's word. */
static paramo_err take_snapshot(struct customer *c)
{
    if (!c->job->o->snapshot)
        return PARAMO_OK;
    paramo_err err = scaling_look(&c->scaling);
    return err == PARAMO_OK ? shared_model_snapshot(c->worker, &c->job->info, c->scaling.table != NULL) : err;
}

paramo_err leader_save(struct customer *c)
{
    struct job *job = c->job;
    const struct model_info info = calibrated(job);
    if (!job->o->model_out)
        return PARAMO_OK;
    paramo_err err = scaling_look(&c->scaling);
    if (err != PARAMO_OK)
        return err;
    struct modelio_writer writer = {
        .table = write_table, .may_commit = still_leads, .arg = c, .scaled = c->scaling.table != NULL};
    err = modelio_save(job->o->model_out, &info, &writer);
    if (err != PARAMO_OK && !job->embedded) { /* perhaps another leader has removed this one's files */
        char why[PARAMO_ERROR_MAX];
        (void)snprintf(why, sizeof why, "%s", paramo_last_error());
        paramo_err still = lead_still(job);
        err = still == PARAMO_OK ? paramo_error_set(err, "%s", why) : still;
    }
    job->result->saved |= err == PARAMO_OK;
    return err;
}

/* The job's sums of a round; zeros if no part had rows. */
static paramo_err get_sums(struct job *job, uint32_t round, double sums[SUMS_MAX])
{
    char key[48];
    learner_sums_key(key, sizeof key, round);
    return summed_get(job->node, key, sums, learner_sums(&job->info));
}

paramo_err leader_forget_round(struct job *job, uint32_t round)
{
    char key[48];
    learner_sums_key(key, sizeof key, round);
    paramo_err err = paramo_kv_delete(job->node, key);
    learner_held_out_key(key, sizeof key, round);
    if (err == PARAMO_OK && job->hold_out > 0)
        err = paramo_kv_delete(job->node, key);
    learner_calibration_key(key, sizeof key, round);
    if (err == PARAMO_OK && job->hold_out > 0 && job->o->calibrate != CALIBRATION_NONE)
        err = paramo_kv_delete(job->node, key);
    if (err == PARAMO_OK && round == 0)
        err = paramo_kv_delete(job->node, LEARNER_TURNS_KEY);
    loader_leases_key(key, sizeof key, learner_pool_round(round, job->hold_out > 0));
    if (err == PARAMO_OK && !job->embedded)
        err = paramo_kv_delete(job->node, key);
    return err;
}

/* Counts the leases of parts that ended without the part being done. */
static paramo_err count_dealt_again(struct job *job, uint32_t round, const double *sums)
{
    char key[48];
    double leases;
    if (job->embedded)
        return PARAMO_OK;
    loader_leases_key(key, sizeof key, learner_pool_round(round, job->hold_out > 0));
    paramo_err err = summed_get(job->node, key, &leases, 1);
    if (err == PARAMO_OK && leases > sums[SUM_PARTS])
        job->result->dealt_again += (uint64_t)(leases - sums[SUM_PARTS]);
    return err;
}

void leader_count_dead(struct job *job)
{
    uint32_t dead[DEAD_MAX];
    size_t n = paramo_dead_nodes(job->node, dead, DEAD_MAX);
    for (size_t i = 0; i < n && i < DEAD_MAX; i++)
        job->result->dead_workers += dead[i] >= PARAMO_ID_WORKER(0) && dead[i] % 2 == PARAMO_ID_WORKER(0) % 2;
}

/* Shows the first warning of a job, and keeps it for the summary. */
static void warn(struct job *job, const struct watch_sums *sums, const char *at)
{
    struct train_result *r = job->result;
    if (r->warning[0] != '\0')
        return;
    watch_text(r->warning, sizeof r->warning, &job->info.objective, sums, at);
    progress_warn(&job->progress, "%s", r->warning);
}

/* After the last epoch, e: is the saved model better than the same guess for each row? Replaces earlier warnings. */
static void judge(struct job *job, const struct train_epoch *e)
{
    struct train_result *r = job->result;
    if (r->best_epoch == 0 || !e->has_valid)
        return;
    r->base_loss = e->valid.base;
    const struct watch_verdict verdict = {.first = r->epoch[r->first_epoch].valid.loss,
                                          .best = r->best_loss,
                                          .base = r->base_loss,
                                          /* later epochs were tried in cross-validation, and were worse */
                                          .epochs = job->o->measured ? 1 : r->epochs,
                                          .best_epoch = r->best_epoch,
                                          .rows = e->valid.rows};
    r->measured = e->valid.rows;
    int warned = r->warning[0] != '\0';
    watch_judge(r->warning, sizeof r->warning, &job->info.objective, &verdict,
                job->o->measured     ? "in cross-validation"
                : job->valid != NULL ? "on the validation data"
                                     : "on the held-out rows");
    if (!warned && r->warning[0] != '\0')
        progress_warn(&job->progress, "%s", r->warning);
}

/* What the workers measured on the rows that are held out. Rows of one class only measure nothing. */
static paramo_err held_out(struct customer *c, uint32_t round, struct train_epoch *e)
{
    struct job *job = c->job;
    const struct objective *o = &job->info.objective;
    double *sums = job->result->held_out;
    char key[48];
    learner_held_out_key(key, sizeof key, round);
    paramo_err err = summed_get(job->node, key, sums, MSUMS);
    if (err != PARAMO_OK)
        return err;
    if (job->o->calibrate != CALIBRATION_NONE) {
        learner_calibration_key(key, sizeof key, round);
        err = summed_get(job->node, key, job->bins, CALIBRATION_SUMS);
        if (err != PARAMO_OK)
            return err;
    }
    e->valid_seconds = progress_now() - job->learned;
    /* the sums of all folds are added, so a fold may have one class only */
    e->has_valid = job->o->reader.folds > 0 ? sums[MSUM_WEIGHT] > 0 : metric_sums_measure(o, sums);
    if (e->has_valid)
        metric_sums_finish(o, sums, &e->valid);
    else if (round == 0)
        progress_line(&job->progress,
                      o->ops->labels == LABEL_BINARY
                          ? "nothing is measured: the %.0f held-out rows do not have both classes"
                          : "nothing is measured: %.0f held-out rows are too few",
                      sums[MSUM_ROWS]);
    return PARAMO_OK;
}

/* score_rows_fn: measures rows of --valid. */
static paramo_err add_valid(void *arg, const struct scored_rows *r)
{
    struct job *job = arg;
    const struct class_weights *w = &job->info.class_weight;
    struct scored_rows weighed = *r;
    if (job->o->calibrate != CALIBRATION_NONE)
        calibration_add(job->bins, r->margin, r->label, r->weight, r->n);
    if (w->n == 0)
        return score_metrics(job->metrics, r);
    float *weight = malloc(r->n * sizeof *weight);
    if (!weight)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the weights of %zu rows", r->n);
    for (size_t i = 0; i < r->n; i++)
        weight[i] = (r->weight ? r->weight[i] : 1.0f) * label_weight(w->weight, w->n, r->label[i]);
    weighed.weight = weight;
    paramo_err err = score_metrics(job->metrics, &weighed);
    free(weight);
    return err;
}

/* guess: the margins of the best guess for all rows, by the rows that were learned. */
static paramo_err validate(struct customer *c, uint32_t round, const float *guess, struct train_epoch *e)
{
    struct job *job = c->job;
    memset(job->bins, 0, sizeof job->bins);
    if (job->o->measured) {
        e->valid = job->o->measured[round];
        e->has_valid = 1;
        return PARAMO_OK;
    }
    if (!job->valid)
        return job->hold_out > 0 ? held_out(c, round, e) : PARAMO_OK;
    double began = progress_now();
    paramo_err err = scaling_look(&c->scaling);
    struct score_source source = {
        .model = &job->info, .fetch = learner_fetch, .arg = c->learner, .scaled = c->scaling.table != NULL};
    metrics_reset(job->metrics, &job->info.objective, guess);
    if (err == PARAMO_OK)
        err = reader_rewind(job->valid);
    if (err == PARAMO_OK)
        err = score_reader(&source, job->valid, add_valid, job);
    if (err == PARAMO_OK)
        err = metrics_finish(job->metrics, &e->valid);
    e->has_valid = err == PARAMO_OK;
    e->valid_seconds = progress_now() - began;
    return err;
}

static void show_epoch(struct job *job, uint32_t round)
{
    const struct train_epoch *e = &job->result->epoch[round];
    const struct objective *o = &job->info.objective;
    const double auc = e->valid.value[METRIC_AUC];
    char rows[16], rate[16], nonzero[16], sent[16], received[16], valid[96] = "", more[32] = "";
    if (e->has_valid && isfinite(auc))
        (void)snprintf(more, sizeof more, "  AUC %.5f", auc);
    if (e->has_valid)
        (void)snprintf(valid, sizeof valid, "  %s %s %.5f%s",
                       job->o->measured ? "cross-validated"
                       : job->valid     ? "valid"
                                        : "held-out",
                       o->ops->loss, objective_shown(o, e->valid.loss), more);
    progress_line(
        &job->progress,
        "epoch %u/%llu  %s rows in %.1f s (%s/s)  %s %.5f%s  %s weights  pushed %s  pulled %s", round + 1,
        (unsigned long long)job->epochs, progress_count(rows, sizeof rows, (double)e->rows), e->seconds,
        progress_count(rate, sizeof rate, e->seconds > 0 ? (double)e->rows / e->seconds : 0), o->ops->loss,
        objective_shown(o, e->loss), valid, progress_count(nonzero, sizeof nonzero, (double)e->nonzero),
        progress_bytes(sent, sizeof sent, e->sent), progress_bytes(received, sizeof received, e->received));
}

/* ---- results of epochs ---- */

/* Epoch `number` (from 1) is over, with these figures. The epochs between the last known one and this one get rows 0
 * (not known): their words were not received. */
static paramo_err add_epoch(struct train_result *r, size_t number, const struct train_epoch *e)
{
    struct train_epoch *epochs = realloc(r->epoch, number * sizeof *epochs);
    if (!epochs)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the results of %zu epochs", number);
    r->epoch = epochs;
    size_t known = r->epochs;
    if (r->epochs == r->first_epoch) {
        r->first_epoch = number - 1;
        known = 0;
    }
    memset(epochs + known, 0, (number - 1 - known) * sizeof *epochs);
    epochs[number - 1] = *e;
    r->epochs = number;
    return PARAMO_OK;
}

paramo_err leader_hear(struct job *job, const struct words *words)
{
    struct train_result *r = job->result;
    if (words->round <= r->epochs)
        return PARAMO_OK;
    if (words->epoch.rows > 0)
        return add_epoch(r, words->round, &words->epoch);
    r->epochs = r->first_epoch = words->round; /* only when a job begins with a checkpoint */
    return PARAMO_OK;
}

static void adopt(struct job *job, const struct words *words)
{
    struct train_result *r = job->result;
    job->info.epochs = job->o->model.epochs + words->round;
    job->info.rows = words->rows;
    r->best_epoch = words->best_epoch;
    r->best_loss = words->best_loss;
    if (words->label_scale > 0)
        job->info.objective.label_scale = r->objective.label_scale = words->label_scale;
    job->bad_epochs = words->bad_epochs;
}

/* Takes over what the previous leader has done in this run. */
static void continue_run(struct job *job, const struct words *words)
{
    struct train_result *r = job->result;
    r->rows = words->run_rows;
    r->dealt_again = words->dealt_again;
    /* the best epoch's model was saved before its word was put; if none is measured, the last epoch's */
    r->saved = job->o->model_out && (words->go_on == ENDED || words->best_epoch > 0);
}

void leader_words(const struct job *job, uint32_t round, int go_on, struct words *words)
{
    const struct train_result *r = job->result;
    *words = (struct words){.round = round,
                            .workers = r->num_workers,
                            .rows = job->info.rows,
                            .go_on = go_on,
                            .run_rows = r->rows,
                            .dealt_again = r->dealt_again,
                            .best_epoch = (uint32_t)r->best_epoch,
                            .best_loss = r->best_loss,
                            .label_scale = job->info.objective.label_scale,
                            .bad_epochs = (uint32_t)job->bad_epochs};
    if (r->epochs > r->first_epoch && r->epochs == round)
        words->epoch = r->epoch[round - 1];
}

/* The job that is restored saved the model of its best epoch, perhaps in another folder. If it is not in --model-out,
 * it cannot be the result of this job. */
static void look_for_best(struct job *job)
{
    struct train_result *r = job->result;
    struct model m;
    if (!job->o->model_out || r->best_epoch == 0)
        return;
    if (modelio_open(job->o->model_out, &m) == PARAMO_OK) {
        r->saved = m.info.ops == job->info.ops && m.info.seed == job->info.seed &&
                   m.info.epochs == job->o->model.epochs + r->best_epoch;
        modelio_close(&m);
    }
    if (r->saved)
        return;
    progress_line(&job->progress, "the model of epoch %zu, the best so far, is not in %s; later epochs count",
                  r->best_epoch, job->o->model_out);
    r->best_epoch = 0;
    job->bad_epochs = 0;
}

paramo_err leader_begin(struct job *job, int *restored, int *go_on)
{
    struct words words;
    paramo_err err = lead_place(job, &words);
    *restored = words.workers > 0;
    *go_on = GOES_ON;
    if (err == PARAMO_OK && *restored)
        err = lead_forget_saved(job);
    if (err != PARAMO_OK || !*restored)
        return err;
    if (words.go_on == ENDED || words.round >= job->epochs)
        *go_on = ENDED;
    adopt(job, &words);
    job->result->epochs = job->result->first_epoch = words.round;
    if (paramo_is_recovery(job->node)) {
        continue_run(job, &words);
        return PARAMO_OK;
    }
    job->gave_up = 0; /* it counted workers of the job that is restored */
    look_for_best(job);
    return PARAMO_OK;
}

void leader_announce(struct job *job)
{
    progress_line(&job->progress, "worker %u leads the job now: it validates, and saves the model",
                  paramo_node_rank(job->node));
}

paramo_err leader_take_over(struct job *job, struct words *words)
{
    struct train_result *r = job->result;
    paramo_err err = lead_place(job, words);
    if (err == PARAMO_OK)
        err = leader_hear(job, words);
    if (err != PARAMO_OK)
        return err;
    adopt(job, words);
    continue_run(job, words);
    r->seconds = progress_now() - job->started;
    if (words->go_on != ENDED)
        leader_announce(job);
    if (words->round > 0 && words->go_on == GOES_ON)
        err = leader_forget_round(job, words->round - 1);
    return err == PARAMO_OK && words->go_on == GOES_ON ? lead_put_now(job, words) : err;
}

/* Says once, after the first epoch, that rows are sorted by label. */
static paramo_err look_at_order(struct job *job, const double *sums)
{
    double order[2], usual;
    paramo_err err = summed_get(job->node, LEARNER_TURNS_KEY, order, 2);
    if (err != PARAMO_OK)
        return err;
    job->result->sorted =
        watch_sorted(&job->info.objective, (uint64_t)sums[SUM_ROWS], (uint64_t)sums[SUM_POSITIVES],
                     sums + SUM_CONSTANTS, order[0], order[1], &usual);
    if (job->result->sorted)
        progress_warn(
            &job->progress,
            "the rows are sorted by label, or nearly: the label changes %.0f times from row to row, and "
            "%.0f times in shuffled rows; shuffle them ('paramo data shuffle') for a better model",
            order[0], usual);
    return PARAMO_OK;
}

/* Sums up the round and validates. */
static paramo_err measure(struct customer *c, uint32_t round, struct train_epoch *e,
                          struct watch_sums *learned)
{
    struct job *job = c->job;
    double sums[SUMS_MAX];
    float guess[OBJECTIVE_CLASSES_MAX];
    paramo_table_stats stats = {.size = sizeof stats};
    *e = (struct train_epoch){.seconds = job->learned - job->epoch_began};
    paramo_err err = get_sums(job, round, sums);
    if (err == PARAMO_OK && sums[SUM_ROWS] == 0)
        err = paramo_error_set(PARAMO_E_FORMAT, "%s%s: no rows, only empty, comment or bad lines",
                               job->o->data[0], job->o->data_n > 1 ? " and the other files" : "");
    if (err == PARAMO_OK)
        err = paramo_table_stat(c->worker, c->table[0], &stats);
    if (err == PARAMO_OK) {
        learner_guess(&job->info, sums, job->o->negatives, guess);
        err = validate(c, round, guess, e);
    }
    if (err == PARAMO_OK)
        err = count_dealt_again(job, round, sums);
    if (err != PARAMO_OK)
        return err;
    e->rows = (uint64_t)sums[SUM_ROWS];
    e->positives = (uint64_t)sums[SUM_POSITIVES];
    learned->rows = e->rows;
    learned->labels = (struct label_sums){sums[SUM_WEIGHT], sums[SUM_LABEL], sums[SUM_SQUARE]};
    learned->loss = sums[SUM_LOSS];
    e->mean_label = sums[SUM_LABEL] / sums[SUM_WEIGHT];
    e->guess_loss = objective_spread(&job->info.objective, &learned->labels);
    e->loss = sums[SUM_LOSS] / sums[SUM_WEIGHT];
    e->sent = sums[SUM_SENT];
    e->received = sums[SUM_RECEIVED];
    e->keys = stats.rows;
    e->nonzero = stats.nonzero;
    return round == 0 ? look_at_order(job, sums) : PARAMO_OK;
}

/* Is the epoch better than all before it? Notes it as the best one, or counts it as a bad one. */
static int is_better(struct job *job, size_t number, const struct train_epoch *e)
{
    struct train_result *r = job->result;
    if (!e->has_valid || (r->best_epoch > 0 && e->valid.loss >= r->best_loss)) {
        job->bad_epochs++;
        return 0;
    }
    r->best_epoch = number;
    r->best_loss = e->valid.loss;
    job->bad_epochs = 0;
    return 1;
}

/* Measures the model, saves it if a save is due, and decides whether to continue. If epochs are measured, the model is
 * saved after each epoch that is better than all before it, so that the best one stays. Otherwise it is saved once, at
 * the end. */
static paramo_err finish_round(struct customer *c, uint32_t round, int *go_on)
{
    struct job *job = c->job;
    struct train_result *r = job->result;
    struct train_epoch now;
    struct watch_sums learned;
    paramo_err err = measure(c, round, &now, &learned);
    if (err == PARAMO_OK)
        err = add_epoch(r, round + 1, &now);
    if (err != PARAMO_OK)
        return err;
    const struct train_epoch *e = &r->epoch[round];
    r->rows += e->rows;
    r->seconds = progress_now() - job->started;
    job->info.epochs++;
    job->info.rows += e->rows;
    show_epoch(job, round);
    if (watch_epoch(&job->info.objective, &learned))
        warn(job, &learned, "over the epoch");
    const int better = is_better(job, round + 1, e), last = round + 1 >= job->epochs;
    const uint32_t patience = job->o->patience;
    r->stopped_early = e->has_valid && patience > 0 && job->bad_epochs >= patience && !last;
    *go_on = !last && !r->stopped_early && (e->has_valid || job->o->epochs > 0) && job_continues(job);
    if (!*go_on)
        judge(job, e);
    return (e->has_valid && !job->o->measured ? better : !*go_on) ? leader_save(c) : PARAMO_OK;
}

paramo_err leader_end_round(struct customer *c, uint32_t round, int *go_on)
{
    struct words words;
    paramo_err err = finish_round(c, round, go_on);
    if (err == PARAMO_OK)
        err = leader_share(c);
    if (err == PARAMO_OK)
        err = take_snapshot(c);
    if (err != PARAMO_OK)
        return err;
    leader_words(c->job, round + 1, *go_on ? GOES_ON : ENDED, &words);
    err = lead_put_word(c->job, &words);
    return err == PARAMO_OK ? leader_forget_round(c->job, round) : err;
}

paramo_err leader_tick(void *arg, const struct watch_sums *sums, const paramo_work_unit *at)
{
    struct customer *c = arg;
    struct job *job = c->job;
    double now = progress_now();
    struct watch_sums window;
    if (watch_step(&job->watch, sums, &window))
        warn(job, &window, "over the last rows");
    if (!progress_due(&job->progress, now))
        return PARAMO_OK;
    uint64_t done, total;
    double sent, received;
    reader_progress(job->reader, at->stream, at->index, &done, &total);
    learner_bytes(c->learner, &sent, &received);
    /* The figures of the whole job are known after each epoch. Between two epochs they are estimated from this
     * learner, because all learners work at about the same pace. */
    uint32_t learners = job->embedded ? job->customers : paramo_num_workers(job->node);
    /* In the first round parts come in the order of the files, so the place in the files says how much is done. Later
     * each learner gets its own parts first, and the number of rows is known. */
    const struct train_result *r = job->result;
    double part = total > 0 ? (double)done / (double)total : -1;
    if (r->epochs > r->first_epoch && r->epoch[r->first_epoch].rows > 0)
        part = (double)(sums->rows * learners) / (double)r->epoch[r->first_epoch].rows;
    if (learner_measures(c->learner)) /* it has learned them */
        part = 1;
    struct progress_state state = {
        .epoch = (uint32_t)job->result->epochs + 1,
        .epochs = (uint32_t)job->epochs,
        .part = part > 1 ? 1 : part,
        .rows = sums->rows * learners,
        .seconds = now - job->epoch_began,
        .loss_name = job->info.objective.ops->loss,
        .loss = sums->rows > 0 ? objective_shown(&job->info.objective, sums->loss / sums->labels.weight)
                               : (double)NAN,
        .pushed = sent * learners,
        .pulled = received * learners,
    };
    progress_show(&job->progress, now, &state);
    return PARAMO_OK;
}

paramo_err leader_save_ended(struct customer *c)
{
    return c->job->result->best_epoch > 0 ? PARAMO_OK : leader_save(c);
}

paramo_err leader_save_interrupted(struct job *job)
{
    struct train_result *r = job->result;
    double sums[SUMS_MAX];
    uint64_t rows = 0;
    struct words words;
    leader_words(job, (uint32_t)r->epochs, INTERRUPTED, &words);
    paramo_err err = lead_put_interrupted(job, &words); /* so that the others do not finish the round */
    for (uint32_t i = 0; i < job->customers; i++)
        rows += !job->customer[i].learner ? 0 : learner_rows(job->customer[i].learner);
    if (err != PARAMO_OK || !job->customer[0].learner)
        return err;
    err = get_sums(job, (uint32_t)r->epochs, sums);
    if (err != PARAMO_OK)
        return err;
    rows = rows > (uint64_t)sums[SUM_ROWS] ? rows : (uint64_t)sums[SUM_ROWS];
    r->rows += rows;
    r->seconds = progress_now() - job->started;
    job->info.rows += rows;
    if (r->rows > 0 && !(r->best_epoch > 0 && r->saved))
        err = leader_save(&job->customer[0]);
    return err == PARAMO_OK && !job->embedded ? lead_put_saved(job) : err;
}
