#include "learn/train/learner.h"
#include "learn/model/compute.h"
#include "learn/objective/logistic.h"
#include "learn/train/chosen.h"
#include "learn/train/train_options.h"
#include "paramo/paramo.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_MS 500 /* arbitrary: a value that exists is answered at once */

/*
 *   slots, a ring:   [ pushed | pushed | pulled: compute next | pulling | pulling | free ]
 *                      ^acked             ^computed                                ^pulled
 *
 * acked <= computed <= pulled, each the number of batches of this round that have reached that point; pulled -
 * computed is at most ahead + 1 and pulled - acked at most the number of slots.
 */
struct slot {
    const struct batch *batch;
    struct loader_part *part;
    struct params param, grad;
    struct scaled scaled;
    struct sighted sighted;
    uint8_t *in; /* of admission_batch */
    size_t in_cap;
    struct dated dated;
    struct chosen weights, factors; /* the features whose weights and factors are pushed, if not all */
    uint64_t ts[MODEL_MAX_TABLES];  /* of the pulls, then of the pushes; 0: there was none */
};

/* Sums over a part's rows so far. */
struct part_sums {
    struct part_sums *next;   /* in the list of idle ones */
    struct part_sums *before; /* in the list of all: an interrupted round does not give its sums back */
    struct watch_order order;
    double measured[MSUMS];
    double from;      /* share of the data that lies before the part */
    double time;      /* of struct expiry */
    double *bins;     /* after learned[]: CALIBRATION_SUMS, if the model is calibrated */
    double learned[]; /* learner_sums() */
};

struct learner {
    struct learner_options o;
    struct loader *loader;
    size_t slots;
    struct slot *slot;
    struct part_sums *idle, *made;
    struct workspace work;  /* of one batch */
    struct sighted fetched; /* of learner_fetch */
    struct admission admission;
    float guess[OBJECTIVE_CLASSES_MAX]; /* of a round that measures: margins of the guess for all rows */
    uint32_t round;                     /* as the leader counts them */
    enum holdout_side side;
    uint64_t acked, computed, pulled;
    uint64_t parts;           /* of the data; 0: not known */
    struct loader_part *part; /* the part that batches are taken from, and the next one's number */
    size_t next;
    uint64_t pass; /* over its rows, from 0 */
    struct pace pace;
    struct watch_sums sums;                /* of the round */
    uint64_t sent, received;               /* counters when last reported */
    uint64_t sent_before, received_before; /* and when the round began */
};

/* Sets the room for new features: what is left now, divided among the workers. */
static paramo_err update_room(struct learner *l)
{
    paramo_table_stats stats = {.size = sizeof stats};
    if (l->o.admission.most == 0)
        return PARAMO_OK;
    paramo_err err = paramo_table_stat(l->o.worker, l->o.table[0], &stats);
    if (err == PARAMO_OK)
        /* without the bias */
        admission_room(&l->admission, stats.rows > 0 ? stats.rows - 1 : 0, l->o.workers);
    return err;
}

paramo_err learner_new(const struct learner_options *options, struct learner **learner)
{
    struct learner *l = calloc(1, sizeof *l);
    if (!l)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a worker's training loop");
    l->o = *options;
    l->parts = reader_parts(l->o.reader);
    l->slots = l->o.ahead + 3u;
    l->pace = (struct pace){.node = l->o.node,
                            .worker = l->o.worker,
                            .bound = l->o.bound,
                            .together = l->o.shares,
                            .slow = l->o.slow,
                            .arg = l->o.arg,
                            .embedded = l->o.alone,
                            .table = l->o.table,
                            .tables = l->o.model->ops->tables};
    l->slot = calloc(l->slots, sizeof *l->slot);
    struct loader_options loader = {.node = l->o.node,
                                    .pool = l->o.pool,
                                    .customer = l->o.customer,
                                    .reader = l->o.reader,
                                    .batch_rows = l->o.batch_rows,
                                    .first_rows = l->o.first_rows,
                                    .shuffle = l->o.shuffle,
                                    .shuffle_first = l->o.growing,
                                    .negatives = l->o.negatives,
                                    .class_weight = l->o.model->class_weight.weight,
                                    .classes = l->o.model->class_weight.n,
                                    .seed = l->o.model->seed,
                                    .share = l->o.share,
                                    .shares = l->o.shares,
                                    .held = l->slots,
                                    .stop = l->o.stop,
                                    .threads = l->o.threads,
                                    .alone = l->o.alone};
    paramo_err err = admission_init(&l->admission, &l->o.admission, l->o.model->seed);
    if (err == PARAMO_OK)
        err = update_room(l);
    if (err != PARAMO_OK) {
        learner_free(l);
        return err;
    }
    err = !l->slot ? paramo_error_set(PARAMO_E_MEMORY, "out of memory for a worker's batches in flight")
                   : loader_new(&loader, &l->loader);
    if (err != PARAMO_OK) {
        learner_free(l);
        return err;
    }
    *learner = l;
    return PARAMO_OK;
}

static void slot_free(struct slot *s)
{
    params_free(&s->param);
    params_free(&s->grad);
    scaled_free(&s->scaled);
    sighted_free(&s->sighted);
    dated_free(&s->dated);
    chosen_free(&s->weights);
    chosen_free(&s->factors);
    free(s->in);
}

void learner_free(struct learner *l)
{
    if (!l)
        return;
    loader_free(l->loader);
    for (size_t i = 0; l->slot && i < l->slots; i++)
        slot_free(&l->slot[i]);
    free(l->slot);
    while (l->made) {
        struct part_sums *s = l->made;
        l->made = s->before;
        free(s);
    }
    workspace_free(&l->work);
    sighted_free(&l->fetched);
    admission_free(&l->admission);
    free(l);
}

uint64_t learner_rows(const struct learner *l)
{
    return l->sums.rows;
}

void learner_bytes(const struct learner *l, double *sent, double *received)
{
    paramo_counters now = {.size = sizeof now};
    paramo_worker_counters(l->o.worker, &now);
    *sent = (double)(now.bytes_sent - l->sent_before);
    *received = (double)(now.bytes_received - l->received_before);
}

void learner_sums_key(char *out, size_t cap, uint32_t round)
{
    (void)snprintf(out, cap, "train/learned/%u", round);
}

void learner_held_out_key(char *out, size_t cap, uint32_t round)
{
    (void)snprintf(out, cap, "train/measured/%u", round);
}

void learner_calibration_key(char *out, size_t cap, uint32_t round)
{
    (void)snprintf(out, cap, "train/calibration/%u", round);
}

void learner_pace(struct learner *l, double sums[PACE_SUMS])
{
    pace_collect(&l->pace);
    for (size_t i = 0; i < PACE_SUMS; i++)
        sums[i] += l->pace.sum[i];
}

uint32_t learner_pool_round(uint32_t round, int held_out)
{
    return held_out ? 2 * round : round;
}

int learner_measures(const struct learner *l)
{
    return l->side == HOLDOUT_MEASURE;
}

/* Does the job have a rule of admission? */
static int admits(const struct learner *l)
{
    return l->o.admission.kind != ADMIT_ALL;
}

static paramo_err fit_admission(struct slot *s, size_t keys)
{
    if (keys <= s->in_cap)
        return PARAMO_OK;
    free(s->in);
    s->in_cap = keys + keys / 4;
    s->in = malloc(s->in_cap);
    if (s->in)
        return PARAMO_OK;
    s->in_cap = 0;
    return paramo_error_set(PARAMO_E_MEMORY, "out of memory: a batch of %zu keys", keys);
}

/* Gives the slot, which is not in use, memory for a batch. */
static paramo_err slot_fit(struct learner *l, struct slot *s, const struct batch *b)
{
    paramo_err err = params_fit(&s->param, l->o.model, b->unique);
    if (err == PARAMO_OK)
        err = params_fit(&s->grad, l->o.model, b->unique);
    if (err == PARAMO_OK && admits(l))
        err = fit_admission(s, b->unique);
    return err == PARAMO_OK ? workspace_fit(&l->work, l->o.model, b->rows, b->unique) : err;
}

size_t learner_sums(const struct model_info *model)
{
    return SUM_CONSTANTS + objective_constants(&model->objective);
}

void learner_guess(const struct model_info *model, const double *sums, double negatives, float *guess)
{
    model->objective.ops->constant(&model->objective, sums[SUM_WEIGHT], sums + SUM_CONSTANTS, guess);
    if (negatives > 0)
        guess[0] += (float)link_log(negatives);
}

static paramo_err add_learned(struct learner *l, struct part_sums *part)
{
    const size_t n = learner_sums(l->o.model);
    char key[48];
    paramo_counters now = {.size = sizeof now};
    paramo_worker_counters(l->o.worker, &now);
    part->learned[SUM_PARTS] = 1;
    part->learned[SUM_SENT] = (double)(now.bytes_sent - l->sent);
    part->learned[SUM_RECEIVED] = (double)(now.bytes_received - l->received);
    l->sent = now.bytes_sent;
    l->received = now.bytes_received;
    learner_sums_key(key, sizeof key, l->round);
    const double order[] = {part->order.turns, part->order.changes};
    paramo_err err = paramo_kv_add(l->o.node, key, part->learned, n);
    if (err == PARAMO_OK)
        err = pace_report(&l->pace);
    if (err == PARAMO_OK && l->o.filtered)
        err = filter_sums_add(l->o.filtered, l->o.node, l->o.worker);
    return err == PARAMO_OK && l->round == 0 ? paramo_kv_add(l->o.node, LEARNER_TURNS_KEY, order, 2) : err;
}

static paramo_err add_measured(struct learner *l, const struct part_sums *part)
{
    char key[48];
    if (part->measured[MSUM_ROWS] == 0 ||
        (l->o.shares && !l->o.leads(l->o.arg))) /* all measure the same rows */
        return PARAMO_OK;
    learner_held_out_key(key, sizeof key, l->round);
    paramo_err err = paramo_kv_add(l->o.node, key, part->measured, MSUMS);
    if (err != PARAMO_OK || !l->o.calibrate)
        return err;
    learner_calibration_key(key, sizeof key, l->round);
    return paramo_kv_add(l->o.node, key, part->bins, CALIBRATION_SUMS);
}

/* Waits for the request of each table (0: there is none). */
static paramo_err wait_for(struct learner *l, const uint64_t *ts)
{
    paramo_err err = PARAMO_OK;
    for (size_t t = 0; err == PARAMO_OK && t < l->o.model->ops->tables; t++)
        if (ts[t] > 0)
            err = paramo_wait(l->o.worker, ts[t], 0);
    return err;
}

/* Sends what filters hold back, and waits for the answers. */
static paramo_err flush(struct learner *l)
{
    uint64_t ts[MODEL_MAX_TABLES] = {0};
    paramo_err err = PARAMO_OK;
    for (size_t t = 0; err == PARAMO_OK && t < l->o.model->ops->tables; t++)
        err = paramo_filter_flush(l->o.worker, l->o.table[t], NULL, &ts[t]);
    return err == PARAMO_OK ? wait_for(l, ts) : err;
}

/* Do other workers have parts of the round, too? */
static int is_shared(const struct learner *l)
{
    return l->o.workers > 1 || paramo_num_workers(l->o.node) > 1;
}

/* All parts of the round are done. Flushes the filters, and adds the bytes to the round's. If other workers have parts,
 * too, part_done has flushed all of it, and the leader may have read the round's sums. */
static paramo_err flush_round(struct learner *l)
{
    double sums[SUMS_MAX] = {0};
    char key[48];
    paramo_counters before = {.size = sizeof before}, now = {.size = sizeof now};
    paramo_worker_counters(l->o.worker, &before);
    paramo_err err = flush(l);
    paramo_worker_counters(l->o.worker, &now);
    if (err != PARAMO_OK || is_shared(l) || now.bytes_sent == before.bytes_sent)
        return err;
    sums[SUM_SENT] = (double)(now.bytes_sent - l->sent);
    sums[SUM_RECEIVED] = (double)(now.bytes_received - l->received);
    l->sent = now.bytes_sent;
    l->received = now.bytes_received;
    learner_sums_key(key, sizeof key, l->round);
    return paramo_kv_add(l->o.node, key, sums, learner_sums(l->o.model));
}

/* All pushes of the part are answered: adds its sums to the job's, then reports the part done. */
static paramo_err part_done(struct learner *l, struct loader_part *part)
{
    struct part_sums *sums = part->sums;
    paramo_err err = PARAMO_OK;
    /* The round ends with its last part, and all pushes must have reached the servers by then. This worker does not
     * know which part is the last, but a part is not the last while the worker has another. A worker that is alone
     * flushes when the round has ended: whether it has another part depends on threads, and its model must not. */
    if (is_shared(l) && !learner_measures(l) && !loader_holds_more(l->loader, part))
        err = flush(l);
    if (err == PARAMO_OK)
        err = learner_measures(l) ? add_measured(l, sums) : add_learned(l, sums);
    if (err == PARAMO_OK)
        err = paramo_pool_done(l->o.node, l->o.pool, &part->lease);
    part->sums = NULL;
    sums->next = l->idle;
    l->idle = sums;
    loader_release(l->loader, part);
    return err;
}

/* Adds the labels and weights of these batches, whose rows lie one after the other. */
static paramo_err sum_labels_of(struct learner *l, const struct batch *batch, size_t batches,
                                struct part_sums *sums)
{
    const struct objective *o = &l->o.model->objective;
    const float *label = batch->label, *weight = batch->weight;
    struct label_sums labels = {0};
    size_t rows = 0, positives = 0;
    for (size_t i = 0; i < batches; i++)
        rows += batch[i].rows;
    for (size_t r = 0; r < rows; r++)
        positives += label[r] > 0.5f;
    objective_add_labels(&labels, label, weight, rows);
    sums->learned[SUM_POSITIVES] += (double)positives;
    sums->learned[SUM_WEIGHT] += labels.weight;
    sums->learned[SUM_LABEL] += labels.label;
    sums->learned[SUM_SQUARE] += labels.square;
    if (l->round == 0)
        watch_order_add(&sums->order, o, label, rows);
    return o->ops->tally(o, label, weight, rows, sums->learned + SUM_CONSTANTS)
               ? PARAMO_OK
               : paramo_error_set(PARAMO_E_MEMORY, "out of memory for a batch of %zu rows", rows);
}

/* Adds those of a part: in one call, unless its batches are shares, with rows of other workers between them. */
static paramo_err sum_labels(struct learner *l, const struct batch_list *list, struct part_sums *sums)
{
    const size_t step = l->o.shares ? 1 : list->n;
    paramo_err err = PARAMO_OK;
    for (size_t i = 0; err == PARAMO_OK && i < list->n; i += step)
        err = sum_labels_of(l, list->batch + i, step, sums);
    return err;
}

/* Refuses rows to learn that have a field beyond those of the model: their pairs would be left out silently. */
static paramo_err check_fields(const struct learner *l, const struct loader_part *part)
{
    const uint32_t fields = model_fields(l->o.model);
    uint16_t most = 0;
    for (size_t k = 0; fields > 0 && k < part->list.n; k++) {
        const struct batch *b = &part->list.batch[k];
        for (size_t i = 0, n = b->start[b->rows] - b->start[0]; i < n; i++)
            most = b->field[i] > most ? b->field[i] : most;
    }
    if (fields == 0 || most < fields)
        return PARAMO_OK;
    return paramo_error_set(PARAMO_E_FORMAT,
                            "%s: has field %u, and the model has the fields 0 to %u: train a new model with "
                            "--fields %u",
                            reader_stream_name(l->o.reader, part->lease.stream), (unsigned)most, fields - 1,
                            most + 1u);
}

/* A part begins, so the clock of expiry advances. After a sweep there may be more room for new features. */
static paramo_err advance_expiry(struct learner *l)
{
    const double before = l->o.expiry->turn;
    paramo_err err = expiry_begin_part(l->o.expiry);
    return err == PARAMO_OK && l->o.expiry->turn != before ? update_room(l) : err;
}

/* Passes over a part's rows in this round. */
static uint64_t passes(const struct learner *l)
{
    return l->o.growing && !learner_measures(l) ? train_passes(l->round) : 1;
}

/* Prepares a part that comes from the loader: its sums and their labels, its time, the check of its fields. */
static paramo_err begin_part(struct learner *l, struct loader_part *part)
{
    const size_t learned = learner_sums(l->o.model), n = learned + (l->o.calibrate ? CALIBRATION_SUMS : 0);
    struct part_sums *sums = l->idle;
    if (sums) {
        l->idle = sums->next;
    } else {
        sums = malloc(sizeof *sums + n * sizeof *sums->learned);
        if (!sums)
            return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the sums of a batch");
        sums->before = l->made;
        l->made = sums;
    }
    struct part_sums *const before = sums->before;
    memset(sums, 0, sizeof *sums + n * sizeof *sums->learned);
    sums->before = before;
    sums->bins = sums->learned + learned;
    if (l->parts > 0)
        sums->from =
            (double)reader_number(l->o.reader, part->lease.stream, part->lease.index) / (double)l->parts;
    part->sums = sums;
    part->unlearned = part->list.n * passes(l);
    if (part->list.n == 0 || learner_measures(l))
        return PARAMO_OK;
    paramo_err err = advance_expiry(l);
    sums->time = l->o.expiry->time;
    if (err == PARAMO_OK)
        err = check_fields(l, part);
    for (uint64_t i = 0; err == PARAMO_OK && i < passes(l); i++)
        err = sum_labels(l, &part->list, sums);
    return err;
}

/* Waits for the oldest push. */
static paramo_err receive_answer(struct learner *l)
{
    assert(l->slots > 0);
    struct slot *s = &l->slot[l->acked % l->slots];
    paramo_err err = learner_measures(l) ? PARAMO_OK : wait_for(l, s->ts);
    if (err == PARAMO_OK)
        err = scaled_wait(l->o.scaling, &s->scaled);
    if (err == PARAMO_OK)
        err = sighted_wait(l->o.sightings, &s->sighted);
    if (err == PARAMO_OK && !learner_measures(l))
        err = dated_wait(l->o.expiry, &s->dated);
    if (err != PARAMO_OK)
        return err;
    l->acked++;
    struct loader_part *part = s->part;
    assert(part->unlearned > 0);
    if (--part->unlearned > 0)
        return PARAMO_OK;
    if (l->part == part) { /* its batches are all taken, and the next part has not been requested yet */
        assert(l->next == part->list.n);
        l->part = NULL;
    }
    return part_done(l, part);
}

typedef paramo_err request_fn(paramo_worker *worker, paramo_table *table, const paramo_kv *kv,
                              const paramo_request_options *options, uint64_t *ts);

/* Pulls or pushes the values of each table that has keys of the batch. s: the slot with the chosen features; NULL: all.
 * more: another request follows at once. */
static paramo_err request(struct learner *l, request_fn *fn, const struct batch *b, const struct slot *s,
                          int more, float *const *values, uint64_t *ts)
{
    const struct model_info *model = l->o.model;
    paramo_request_options options;
    paramo_request_options_init(&options);
    paramo_err err = PARAMO_OK;
    for (size_t t = 0; err == PARAMO_OK && t < model->ops->tables; t++) {
        options.flags = PARAMO_TRUSTED | (more || t + 1 < model->ops->tables ? PARAMO_MORE : 0u);
        const struct chosen *some = !s ? NULL : t == 0 ? &s->weights : &s->factors;
        paramo_kv kv;
        paramo_kv_init(&kv);
        kv.n = model_keys(model, t, b, &kv.keys);
        if (some && some->n != CHOSEN_ALL && model_fixed_rows(model, t) == 0) {
            kv.keys = some->key;
            kv.n = some->n;
        }
        if (fn == paramo_pull && kv.keys == b->key) {
            kv.keyset = b->keyset;
            kv.places = b->places;
        }
        kv.vals = values[t];
        kv.vals_len = kv.n * model_row_values(model, t);
        if (kv.n > 0)
            err = fn(l->o.worker, l->o.table[t], &kv, &options, &ts[t]);
    }
    return err;
}

/* Pushes the gradients of a batch: those of admitted features; of factors, those of features that have factors. */
static paramo_err push(struct learner *l, struct slot *s, const struct batch *b)
{
    const struct model_info *model = l->o.model;
    const uint8_t *weights = admits(l) ? s->in : NULL,
                  *factors = l->o.sightings->table ? s->sighted.has : weights;
    for (size_t t = 0; t < model->ops->tables; t++) {
        const uint8_t *keep = t == 0 ? weights : factors;
        if (keep && model_fixed_rows(model, t) == 0)
            chosen_rows(keep, t == 0 ? b->unique : b->unique - 1, model_row_values(model, t),
                        s->grad.table[t]);
    }
    paramo_err err = chosen_keys(&s->weights, b->key, weights, b->unique);
    if (err == PARAMO_OK)
        err = chosen_keys(&s->factors, b->key, factors, b->unique - 1);
    /* The pull of a later batch follows, unless the pace holds it. */
    if (err == PARAMO_OK)
        err = request(l, paramo_push, b, s, l->pace.bound == PACE_FREE, s->grad.table, s->ts);
    if (err == PARAMO_OK)
        err = sighted_push(l->o.sightings, &s->sighted);
    const int all = s->weights.n == CHOSEN_ALL;
    const double time = ((const struct part_sums *)s->part->sums)->time;
    return err == PARAMO_OK ? dated_push(l->o.expiry, all ? b->key : s->weights.key,
                                         (all ? b->unique : s->weights.n) - 1, time, &s->dated)
                            : err;
}

/* Takes the next batch (*b), or returns LOADER_IDLE or LOADER_END in *state. */
static paramo_err next_batch(struct learner *l, int may_wait, enum loader_state *state,
                             const struct batch **b)
{
    if (l->part && l->next == l->part->list.n && l->pass + 1 < passes(l)) {
        l->next = 0;
        l->pass++;
    }
    while (!l->part || l->next == l->part->list.n) {
        paramo_err err = loader_next(l->loader, may_wait, state, &l->part);
        if (err != PARAMO_OK || *state != LOADER_PART) {
            l->part = NULL;
            return err;
        }
        l->next = 0;
        l->pass = 0;
        err = begin_part(l, l->part);
        if (err == PARAMO_OK && l->part->list.n == 0) {
            struct loader_part *empty = l->part;
            l->part = NULL;
            err = part_done(l, empty);
        }
        if (err == PARAMO_OK)
            err = scaling_glance(l->o.scaling);
        if (err != PARAMO_OK)
            return err;
    }
    *state = LOADER_PART;
    *b = &l->part->list.batch[l->next++];
    return PARAMO_OK;
}

/* Issues pulls until they are ahead + 1 batches ahead of the computation, the pace holds them, or no batch is left. */
static paramo_err fill(struct learner *l, enum loader_state *state)
{
    while (l->pulled - l->computed <= l->o.ahead && !atomic_load_explicit(l->o.stop, memory_order_relaxed)) {
        const struct batch *b;
        if (l->pulled - l->acked == l->slots) {
            paramo_err err = receive_answer(l);
            if (err != PARAMO_OK)
                return err;
        }
        if (pace_holds(&l->pace, l->pulled - l->acked))
            return PARAMO_OK;
        paramo_err err = next_batch(l, 0, state, &b);
        /* No batch in flight: wait. */
        if (err == PARAMO_OK && *state == LOADER_IDLE && l->pulled == l->acked) {
            err = pace_idle(&l->pace);
            if (err == PARAMO_OK)
                err = next_batch(l, 1, state, &b);
        }
        if (err == PARAMO_OK && *state == LOADER_PART && !learner_measures(l))
            err = pace_pull(&l->pace, l->o.stop);
        if (err != PARAMO_OK || *state != LOADER_PART)
            return err;
        struct slot *s = &l->slot[l->pulled % l->slots];
        err = slot_fit(l, s, b);
        if (err != PARAMO_OK)
            return err;
        s->batch = b;
        s->part = l->part;
        memset(s->ts, 0, sizeof s->ts);
        err = scaled_pull(l->o.scaling, b, !learner_measures(l), &s->scaled);
        if (err == PARAMO_OK)
            err = sighted_pull(l->o.sightings, b, &s->sighted);
        if (err == PARAMO_OK)
            err = request(l, paramo_pull, b, NULL, 0, s->param.table, s->ts);
        if (err != PARAMO_OK)
            return err;
        l->pulled++;
    }
    return PARAMO_OK;
}

/* Adds a batch that is scored and not learned to the sums of its part. */
static paramo_err measure(struct learner *l, struct slot *s, const struct batch *b)
{
    struct part_sums *sums = s->part->sums;
    memset(s->ts, 0, sizeof s->ts); /* there is no push */
    if (l->o.calibrate) {
        model_own_weights(l->o.model, b->label, b->weight, b->rows, l->work.residual);
        calibration_add(sums->bins, l->work.margin, b->label, l->work.residual, b->rows);
    }
    return metric_sums_add(&l->o.model->objective, sums->measured, l->work.margin, b->rows, b->label,
                           b->weight, l->guess, b->rows, l->work.residual);
}

/* What the gradient of a batch is multiplied by. */
static float rate(const struct learner *l, const struct slot *s)
{
    const struct batch_list *list = &s->part->list;
    const struct part_sums *sums = s->part->sums;
    double place = 0.5;
    if (l->parts > 0)
        place = sums->from + ((double)(s->batch - list->batch) + 0.5) / (double)list->n / (double)l->parts;
    return (float)rate_schedule_at(&l->o.schedule, (double)l->round + place, (double)l->o.epochs);
}

/* A number that follows from the batch's place in the data, for random draws. */
static uint64_t place_of(const struct slot *s)
{
    const paramo_work_unit *at = &s->part->lease;
    return holdout_mix(holdout_mix(at->stream) + at->index) + (uint64_t)(s->batch - s->part->list.batch);
}

static paramo_err compute(struct learner *l)
{
    struct slot *s = &l->slot[l->computed % l->slots];
    const struct batch *b = s->batch;
    const struct model_info *model = l->o.model;
    paramo_err err = wait_for(l, s->ts);
    const uint8_t *in = NULL;
    if (err == PARAMO_OK && admits(l) && !learner_measures(l)) {
        admission_batch(&l->admission, b, s->param.table[0], model_row_values(model, 0), l->round == 0,
                        place_of(s), s->in);
        in = s->in;
    }
    if (err == PARAMO_OK)
        err = scaled_batch(l->o.scaling, s->batch, in, &s->scaled, &b);
    if (err == PARAMO_OK)
        err = sighted_batch(l->o.sightings, b, !learner_measures(l), l->round == 0, in, s->param.table,
                            &s->sighted);
    if (err != PARAMO_OK)
        return err;
    compute_margins(model, b, s->param.table, &l->work);
    l->computed++;
    if (learner_measures(l))
        return measure(l, s, b);
    const float thinned = l->o.negatives > 0 ? (float)link_log(l->o.negatives) : 0;
    for (size_t r = 0; thinned < 0 && r < b->rows; r++)
        l->work.margin[r] -= thinned;
    double *sums = ((struct part_sums *)s->part->sums)->learned;
    double loss = objective_residuals(&model->objective, l->work.margin, b->rows, b->label, b->weight,
                                      b->rows, 0, l->work.residual);
    objective_add_labels(&l->sums.labels, b->label, b->weight, b->rows);
    l->sums.rows += b->rows;
    l->sums.loss += loss;
    sums[SUM_ROWS] += (double)b->rows;
    sums[SUM_LOSS] += loss;
    if (rate_schedule_varies(&l->o.schedule)) {
        const float times = rate(l, s);
        for (size_t i = 0, n = b->rows * model_outputs(model); i < n; i++)
            l->work.residual[i] *= times;
    }
    compute_gradient(model, b, s->param.table, &l->work, s->grad.table);
    err = push(l, s, b);
    return err == PARAMO_OK ? pace_pushed(&l->pace) : err;
}

/* Ends the requests (0: none), so that their arrays belong to the learner again. */
static void cancel(struct learner *l, const uint64_t *ts)
{
    for (size_t t = 0; t < MODEL_MAX_TABLES; t++) {
        paramo_err ended = ts[t] == 0 ? PARAMO_OK : paramo_cancel(l->o.worker, ts[t]);
        (void)ended; /* NOT_FOUND: it has completed */
    }
}

/* Ends a round that failed with err. When this returns, no request uses memory of the slots or batches. A wait is
 * not enough for that, because an interrupt ends it. */
static void abandon_round(struct learner *l, paramo_err err)
{
    char why[PARAMO_ERROR_MAX];
    (void)snprintf(why, sizeof why, "%s", paramo_last_error());
    paramo_err ignored = paramo_wait_all(l->o.worker, 0);
    (void)ignored; /* err came first */
    for (size_t i = 0; i < l->slots; i++) {
        cancel(l, l->slot[i].ts);
        scaled_cancel(l->o.scaling, &l->slot[i].scaled);
        sighted_cancel(l->o.sightings, &l->slot[i].sighted);
        dated_cancel(l->o.expiry, &l->slot[i].dated);
    }
    (void)paramo_error_set(err, "%s", why);
}

/* Learns or measures the rows of one side, batch after batch, until the loader has no more parts. */
static paramo_err run_side(struct learner *l, uint32_t round, enum holdout_side side)
{
    l->round = round;
    l->side = side;
    l->acked = l->computed = l->pulled = 0;
    l->part = NULL;
    enum loader_state state = LOADER_PART;
    paramo_err err = scaling_look(l->o.scaling);
    if (err == PARAMO_OK)
        err = loader_start(l->loader, learner_pool_round(round, l->o.held_out) + side, side);
    while (err == PARAMO_OK) {
        err = fill(l, &state);
        if (err != PARAMO_OK)
            break;
        if (l->computed < l->pulled) {
            paramo_work_unit at = l->slot[l->computed % l->slots].part->lease;
            at.round = round;
            err = compute(l);
            if (err == PARAMO_OK)
                err = l->o.tick(l->o.arg, &l->sums, &at);
        } else if (l->acked < l->computed) {
            err = receive_answer(l);
        } else if (state == LOADER_END || atomic_load_explicit(l->o.stop, memory_order_relaxed)) {
            break;
        }
    }
    if (err == PARAMO_OK && side == HOLDOUT_LEARN && state == LOADER_END)
        err = flush_round(l);
    if (err == PARAMO_OK)
        err = side == HOLDOUT_LEARN
                  ? pace_round_over(&l->pace, l->o.stop, l->o.shares && l->o.leads(l->o.arg))
                  : pace_idle(&l->pace);
    if (err != PARAMO_OK)
        abandon_round(l, err);
    loader_stop(l->loader);
    if (err == PARAMO_OK && state != LOADER_END)
        err = paramo_error_set(PARAMO_E_INTERRUPTED, "interrupted: the epoch has not ended");
    return err;
}

paramo_err learner_round(struct learner *l, uint32_t round)
{
    l->sums = (struct watch_sums){0};
    paramo_counters now = {.size = sizeof now};
    paramo_worker_counters(l->o.worker, &now); /* the pulls of validation do not count */
    l->sent = l->sent_before = now.bytes_sent;
    l->received = l->received_before = now.bytes_received;
    return run_side(l, round, HOLDOUT_LEARN);
}

/* All workers have learned the round's rows, so its sums are complete. */
paramo_err learner_measure(struct learner *l, uint32_t round)
{
    double sums[SUMS_MAX];
    char key[48];
    assert(l->o.held_out);
    size_t len = 0;
    memset(sums, 0, sizeof sums);
    learner_sums_key(key, sizeof key, round);
    paramo_err err = paramo_kv_get(l->o.node, key, sums, sizeof sums, &len, POLL_MS);
    if (err != PARAMO_OK && err != PARAMO_E_TIMEOUT) /* TIMEOUT: the leader has ended the round already */
        return err;
    learner_guess(l->o.model, sums, l->o.negatives, l->guess);
    return run_side(l, round, HOLDOUT_MEASURE);
}

paramo_err learner_fetch(void *learner, const struct batch *batch, float *const *param, float *scale)
{
    struct learner *l = learner;
    uint64_t ts[MODEL_MAX_TABLES] = {0};
    if (atomic_load_explicit(l->o.stop, memory_order_relaxed))
        return paramo_error_set(PARAMO_E_INTERRUPTED, "interrupted: the epoch has not ended");
    paramo_err err = sighted_pull(l->o.sightings, batch, &l->fetched);
    if (err == PARAMO_OK)
        err = request(l, paramo_pull, batch, NULL, 0, param, ts);
    if (err == PARAMO_OK)
        err = wait_for(l, ts);
    if (err == PARAMO_OK)
        err = sighted_batch(l->o.sightings, batch, 0, 0, NULL, param, &l->fetched);
    if (err != PARAMO_OK) { /* param belongs to the caller again */
        char why[PARAMO_ERROR_MAX];
        (void)snprintf(why, sizeof why, "%s", paramo_last_error());
        cancel(l, ts);
        sighted_cancel(l->o.sightings, &l->fetched);
        (void)paramo_error_set(err, "%s", why);
    }
    return err == PARAMO_OK && scale ? scaling_fetch(l->o.scaling, batch, scale) : err;
}
