#include "learn/train/lead.h"
#include "paramo/paramo.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LEAD_POOL "train/lead"
#define READY_KEY "train/ready"
#define NOW_KEY   "train/now"
#define SAVED_KEY "train/saved"
#define POLL_MS   500 /* arbitrary: a value that exists is answered at once */
/* Seconds in the job before a worker other than 0 asks to lead; arbitrary, but longer than the silence that counts as
 * death. */
#define PATIENCE 15.0
#define DEAD_MAX 1024 /* arbitrary */

/* ---- a word as numbers ---- */

void lead_encode(const struct words *w, double out[WORDS])
{
    const struct train_epoch *e = &w->epoch;
    const double all[] = {
        w->round,
        w->workers,
        (double)w->rows,
        w->go_on,
        w->leader,
        (double)w->run_rows,
        (double)w->dealt_again,
        w->best_epoch,
        w->best_loss,
        w->bad_epochs,
        (double)e->rows,
        (double)e->positives,
        e->loss,
        e->guess_loss,
        e->seconds,
        e->valid_seconds,
        e->sent,
        e->received,
        (double)e->keys,
        (double)e->nonzero,
        e->has_valid,
        (double)e->valid.rows,
        (double)e->valid.positives,
        e->valid.loss,
        e->valid.value[METRIC_AUC],
        e->valid.value[METRIC_ACCURACY],
        e->valid.value[METRIC_CALIBRATION],
        w->gave_up,
        w->label_scale,
        e->mean_label,
        e->valid.mean_label,
        e->valid.base,
        e->valid.value[METRIC_RMSE],
        e->valid.value[METRIC_MAE],
        e->valid.value[METRIC_R2],
        e->valid.value[METRIC_COVERAGE],
    };
    static_assert(sizeof all == WORDS * sizeof *all, "every number has its place");
    memcpy(out, all, sizeof all);
}

/* A number from 0 to `most` as an integer; 0 if it is not one. */
static uint64_t whole(double w, double most)
{
    return w >= 0 && w <= most ? (uint64_t)w : 0;
}

void lead_decode(const double *in, size_t n, struct words *out)
{
    double w[WORDS] = {0};
    memcpy(w, in, (n < WORDS ? n : WORDS) * sizeof *w);
    *out = (struct words){
        .round = (uint32_t)whole(w[0], UINT32_MAX),
        .workers = (uint32_t)whole(w[1], UINT32_MAX),
        .rows = whole(w[2], 0x1p53),
        .go_on = (int)whole(w[3], INTERRUPTED),
        .leader = (uint32_t)whole(w[4], UINT32_MAX),
        .run_rows = whole(w[5], 0x1p53),
        .dealt_again = whole(w[6], 0x1p53),
        .best_epoch = (uint32_t)whole(w[7], UINT32_MAX),
        .best_loss = w[8],
        .bad_epochs = (uint32_t)whole(w[9], UINT32_MAX),
        .epoch =
            {
                .rows = whole(w[10], 0x1p53),
                .positives = whole(w[11], 0x1p53),
                .mean_label = w[29],
                .loss = w[12],
                .guess_loss = w[13],
                .seconds = w[14],
                .valid_seconds = w[15],
                .sent = w[16],
                .received = w[17],
                .keys = whole(w[18], 0x1p53),
                .nonzero = whole(w[19], 0x1p53),
                .has_valid = w[20] != 0,
                .valid = {.rows = whole(w[21], 0x1p53),
                          .positives = whole(w[22], 0x1p53),
                          .mean_label = w[30],
                          .loss = w[23],
                          .base = w[31],
                          .value = {[METRIC_AUC] = w[24],
                                    [METRIC_ACCURACY] = w[25],
                                    [METRIC_CALIBRATION] = w[26],
                                    [METRIC_RMSE] = w[32],
                                    [METRIC_MAE] = w[33],
                                    [METRIC_R2] = w[34],
                                    [METRIC_COVERAGE] = w[35]}},
            },
        .gave_up = (uint32_t)whole(w[27], UINT32_MAX),
        .label_scale = w[28] > 0 ? w[28] : 0,
    };
}

/* ---- at the scheduler ---- */

static void word_key(char *out, size_t cap, uint32_t round)
{
    (void)snprintf(out, cap, "train/word/%" PRIu32, round);
}

static paramo_err get(struct job *job, const char *key, uint32_t timeout_ms, struct words *words)
{
    double w[WORDS];
    size_t len = 0;
    paramo_err err = paramo_kv_get(job->node, key, w, sizeof w, &len, timeout_ms);
    if (err != PARAMO_OK)
        return err;
    if (len < WORDS_OLD * sizeof *w || len % sizeof *w != 0)
        return paramo_error_set(PARAMO_E_INTERNAL, "the value of %s has %zu bytes, which is not valid", key,
                                len);
    lead_decode(w, len / sizeof *w, words);
    if (job->embedded) /* job is shared by the customers, and its leader never changes */
        return PARAMO_OK;
    if (words->leader != 0)
        job->leader = words->leader;
    job->gave_up = words->gave_up;
    return PARAMO_OK;
}

static paramo_err put_as(struct job *job, const char *key, const struct words *words, uint32_t leader)
{
    double w[WORDS];
    struct words mine = *words;
    mine.leader = leader;
    mine.gave_up = job->gave_up;
    lead_encode(&mine, w);
    assert(job->leads);
    return paramo_kv_put(job->node, key, w, sizeof w);
}

static paramo_err put(struct job *job, const char *key, const struct words *words)
{
    return put_as(job, key, words, paramo_node_id(job->node));
}

/* Zeros are added first, so that there is a value: the read waits for the scheduler only. */
paramo_err lead_place(struct job *job, struct words *words)
{
    *words = (struct words){0};
    paramo_err err = paramo_kv_add(job->node, NOW_KEY, (double[WORDS]){0}, WORDS);
    if (err != PARAMO_OK && err != PARAMO_E_SIZE_MISMATCH) /* the value of an older program is there */
        return err;
    return get(job, NOW_KEY, 0, words);
}

paramo_err lead_now(struct job *job, struct words *words)
{
    return get(job, NOW_KEY, POLL_MS, words);
}

paramo_err lead_word(struct job *job, uint32_t round, uint32_t timeout_ms, struct words *words)
{
    char key[48];
    word_key(key, sizeof key, round);
    return get(job, key, timeout_ms, words);
}

paramo_err lead_ready(struct job *job, uint32_t timeout_ms, struct words *words)
{
    return get(job, READY_KEY, timeout_ms, words);
}

paramo_err lead_put_now(struct job *job, const struct words *words)
{
    return put(job, NOW_KEY, words);
}

paramo_err lead_put_ready(struct job *job, const struct words *words)
{
    paramo_err err = put(job, NOW_KEY, words);
    return err == PARAMO_OK ? put(job, READY_KEY, words) : err;
}

/* NOW decides; the round's own word wakes the workers that wait for it. The number of values is bounded: the word
 * before the last one is deleted, and a worker that misses it learns from NOW that the job has advanced. */
paramo_err lead_put_word(struct job *job, const struct words *words)
{
    char key[48];
    assert(words->round > 0);
    uint32_t over = words->round - 1;
    paramo_err err = put(job, NOW_KEY, words);
    word_key(key, sizeof key, over);
    if (err == PARAMO_OK)
        err = put(job, key, words);
    if (err == PARAMO_OK && over > 0) {
        word_key(key, sizeof key, over - 1);
        err = paramo_kv_delete(job->node, key);
    }
    return err;
}

paramo_err lead_put_interrupted(struct job *job, const struct words *words)
{
    char key[48];
    paramo_err err = put(job, NOW_KEY, words);
    word_key(key, sizeof key, words->round);
    return err == PARAMO_OK ? put(job, key, words) : err;
}

paramo_err lead_put_saved(struct job *job)
{
    return paramo_kv_put(job->node, SAVED_KEY, NULL, 0);
}

paramo_err lead_saved(struct job *job, uint32_t timeout_ms)
{
    size_t len;
    return paramo_kv_get(job->node, SAVED_KEY, NULL, 0, &len, timeout_ms);
}

paramo_err lead_forget_saved(struct job *job)
{
    return paramo_kv_delete(job->node, SAVED_KEY);
}

/* ---- the choice of the leader ---- */

paramo_err lead_open(struct job *job)
{
    job->leader = PARAMO_ID_WORKER(0);
    job->joined = progress_now();
    return job->embedded ? PARAMO_OK : paramo_pool_open(job->node, LEAD_POOL, 1, 1);
}

static int leader_gone(const struct job *job)
{
    uint32_t dead[DEAD_MAX];
    if (job->leader == LEAD_NONE)
        return 1;
    size_t n = paramo_dead_nodes(job->node, dead, DEAD_MAX);
    for (size_t i = 0; i < n && i < DEAD_MAX; i++)
        if (dead[i] == job->leader)
            return 1;
    return 0;
}

paramo_err lead_try(struct job *job)
{
    if (job->leads)
        return PARAMO_OK;
    int first = paramo_node_rank(job->node) == 0 || paramo_is_recovery(job->node);
    if (!first && !leader_gone(job) && progress_now() - job->joined < PATIENCE)
        return PARAMO_OK;
    for (;;) {
        paramo_work_unit part;
        int state;
        paramo_err err = paramo_pool_next(job->node, LEAD_POOL, 0, 0, 0, &part, &state);
        if (err != PARAMO_OK || state != 0)
            return err;
        if (part.index == 0) {
            job->leads = 1;
            return PARAMO_OK;
        }
        /* The number of a stream's parts is unknown until one is reported not to exist. */
        err = paramo_pool_end(job->node, LEAD_POOL, &part);
        if (err != PARAMO_OK)
            return err;
    }
}

/* A node that was declared dead gets no answer. A scheduler that is away for some seconds may come back, so this waits
 * for it. */
paramo_err lead_still(struct job *job)
{
    struct words words = {0};
    paramo_err err = get(job, NOW_KEY, 0, &words);
    if (err == PARAMO_OK && words.leader != paramo_node_id(job->node))
        return paramo_error_set(PARAMO_E_FENCED, "node %" PRIu32 " leads the job now", words.leader);
    return err;
}

paramo_err lead_put_none(struct job *job)
{
    struct words words = {0};
    paramo_err err = get(job, NOW_KEY, POLL_MS, &words);
    if (err == PARAMO_OK && words.workers == 0)
        return paramo_error_set(PARAMO_E_NOT_FOUND, "the workers of the job have not begun to train");
    if (err != PARAMO_OK)
        return err;
    job->gave_up++;
    return put_as(job, NOW_KEY, &words, LEAD_NONE);
}
