#include "learn/serve/service.h"
#include "learn/eval/prediction.h"
#include "learn/eval/score.h"
#include "learn/serve/request.h"

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEPT_TEXT (1 << 20) /* bytes; memory of a longer request is freed after it; arbitrary */

static const char json_media[] = "application/json", text_media[] = "text/plain";

/* The memory of one request. One thread has it while it is taken. */
struct scratch {
    struct scratch *next;
    struct request request;
    struct scorer *scorer; /* for the model of `version` */
    uint64_t version;
};

struct service {
    struct model_slot *slot;
    struct live *live; /* NULL: the model is in a folder that another process writes */
    struct stats stats;
    pthread_mutex_t lock; /* of the list */
    struct scratch *idle;
    char failure[1024]; /* why the last attempt to load a model failed; the refreshing thread's */
};

static void scratch_free(struct scratch *scratch)
{
    request_free(&scratch->request);
    scorer_free(scratch->scorer);
    free(scratch);
}

static struct scratch *scratch_take(struct service *s)
{
    (void)pthread_mutex_lock(&s->lock);
    struct scratch *scratch = s->idle;
    if (scratch)
        s->idle = scratch->next;
    (void)pthread_mutex_unlock(&s->lock);
    return scratch ? scratch : calloc(1, sizeof *scratch);
}

static void scratch_give(struct service *s, struct scratch *scratch)
{
    if (!scratch)
        return;
    if (scratch->request.cap > KEPT_TEXT) {
        scratch_free(scratch);
        return;
    }
    (void)pthread_mutex_lock(&s->lock);
    scratch->next = s->idle;
    s->idle = scratch;
    (void)pthread_mutex_unlock(&s->lock);
}

static paramo_err open_service(const char *dir, struct live *live, struct service **service)
{
    struct service *s = calloc(1, sizeof *s);
    if (!s)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the scoring service");
    paramo_err err = live ? model_slot_new(live_dir(live), &s->slot) : model_slot_open(dir, &s->slot);
    if (err != PARAMO_OK) {
        free(s);
        return err;
    }
    s->live = live;
    (void)pthread_mutex_init(&s->lock, NULL);
    *service = s;
    return PARAMO_OK;
}

paramo_err service_open(const char *dir, struct service **service)
{
    return open_service(dir, NULL, service);
}

paramo_err service_open_live(struct live *live, struct service **service)
{
    return open_service(NULL, live, service);
}

void service_close(struct service *s)
{
    if (!s)
        return;
    while (s->idle) {
        struct scratch *scratch = s->idle;
        s->idle = scratch->next;
        scratch_free(scratch);
    }
    model_slot_close(s->slot);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

struct stats *service_stats(struct service *s)
{
    return &s->stats;
}

int service_interrupt(struct service *s)
{
    if (s->live)
        live_interrupt(s->live);
    return s->live != NULL;
}

int service_has_model(struct service *s)
{
    struct slot_model *m = model_slot_take(s->slot);
    model_slot_give(s->slot, m);
    return m != NULL;
}

static enum slot_refresh refresh_live(struct service *s, int force)
{
    switch (live_copy(s->live, force)) {
    case LIVE_EARLY:
        return SLOT_UNCHANGED;
    case LIVE_FAILED:
        return SLOT_FAILED_AGAIN; /* printed if the cause is not that of the last failure */
    case LIVE_COPIED:
        break;
    }
    enum slot_refresh found = model_slot_refresh(s->slot, 1);
    if (found == SLOT_LOADED)
        s->failure[0] = '\0';
    live_discard(s->live);
    return found;
}

void service_refresh(struct service *s, int force)
{
    enum slot_refresh found = s->live ? refresh_live(s, force) : model_slot_refresh(s->slot, force);
    const char *why = paramo_last_error();
    switch (found) {
    case SLOT_UNCHANGED:
        return;
    case SLOT_LOADED:
        s->stats.reloads++;
        if (!s->live || s->stats.reloads == 1) /* of a job, only the first: there are many */
            (void)fprintf(stderr, "paramo serve: loaded the %s model\n", s->live ? "first" : "new");
        return;
    case SLOT_FAILED:
    case SLOT_FAILED_AGAIN:
        s->stats.reload_failures++;
        if (found == SLOT_FAILED || strncmp(why, s->failure, sizeof s->failure - 1) != 0)
            (void)fprintf(stderr, "paramo serve: %s: %s\n",
                          !s->live               ? "the new model is not used"
                          : service_has_model(s) ? "there is no newer model"
                                                 : "there is no model yet",
                          why);
        (void)snprintf(s->failure, sizeof s->failure, "%s", why);
    }
}

/* ---- answers ---- */

void answer_error(struct answer *answer, int status, uint64_t row, const char *field, const char *message)
{
    json_t *error = json_pack("{s:i, s:s}", "status", status, "message", message);
    if (row > 0)
        (void)json_object_set_new(error, "row", json_integer((json_int_t)row));
    if (field[0] != '\0')
        (void)json_object_set_new(error, "field", json_string(field));
    json_t *document = json_pack("{s:o}", "error", error);
    *answer = (struct answer){.status = status, .type = json_media};
    answer->text = document ? json_dumps(document, JSON_COMPACT) : NULL;
    answer->len = answer->text ? strlen(answer->text) : 0;
    json_decref(document);
}

struct writer {
    const struct objective *objective;
    struct answer *answer;
    int json;
    size_t rows; /* so far; there is memory for all */
};

/* score_rows_fn: writes rows as `paramo predict` does, or as JSON. */
static paramo_err write_rows(void *arg, const struct scored_rows *rows)
{
    struct writer *w = arg;
    struct answer *a = w->answer;
    for (size_t i = 0; i < rows->n; i++, w->rows++) {
        if (w->json && w->rows > 0)
            a->text[a->len++] = ',';
        a->len += prediction_text(w->objective, rows->margin, rows->stride, i, w->json, a->text + a->len);
        if (!w->json)
            a->text[a->len++] = '\n';
    }
    return PARAMO_OK;
}

static void append(struct answer *a, const char *text)
{
    memcpy(a->text + a->len, text, strlen(text));
    a->len += strlen(text);
}

static paramo_err score(struct scratch *scratch, const struct slot_model *m, const struct block *block,
                        struct answer *answer)
{
    struct score_lookup lookup = {.model = &m->model};
    struct score_source source = score_model(&lookup);
    const struct objective *objective = &m->model.info.objective;
    struct writer writer = {.objective = objective, .answer = answer, .json = scratch->request.json};
    if (scratch->version != m->version) {
        scorer_free(scratch->scorer);
        scratch->scorer = NULL;
        scratch->version = 0;
        paramo_err err = scorer_new(&scratch->scorer);
        if (err != PARAMO_OK)
            return err;
        scratch->version = m->version;
    }
    *answer = (struct answer){.status = 200, .type = writer.json ? json_media : text_media};
    answer->text = malloc(block->rows * prediction_max(objective) + 64);
    if (!answer->text)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the answer");
    if (writer.json)
        append(answer, "{\"predictions\":[");
    paramo_err err = scorer_block(scratch->scorer, &source, block, write_rows, &writer);
    if (err == PARAMO_OK && writer.json)
        append(answer, "]}\n");
    if (err != PARAMO_OK) {
        free(answer->text);
        answer->text = NULL;
        return err;
    }
    /* Frees the rest: the answer may wait long for its client. */
    char *whole = realloc(answer->text, answer->len + 1);
    answer->text = whole ? whole : answer->text;
    return PARAMO_OK;
}

/* *rows: the number of scored rows. */
static void score_request(struct scratch *scratch, const struct slot_model *m, const char *format,
                          const char *body, size_t len, struct answer *answer, size_t *rows)
{
    const struct model_info *info = &m->model.info;
    struct request_model needs = {.hash_bits = info->hash_bits,
                                  .fields =
                                      info->ops->fields == MODEL_NEEDS_FIELDS || info->interactions.n > 0,
                                  .columns = info->columns};
    struct request_error error;
    struct block block = {0};
    if (!request_parse(&scratch->request, &needs, format, body, len, &error)) {
        answer_error(answer, error.status, error.row, error.field, error.message);
        return;
    }
    paramo_err err = parse_block(&scratch->request.buffer, needs.fields, &block);
    if (err == PARAMO_OK && info->interactions.n > 0) {
        struct block alone = block;
        err = interact_block(&info->interactions, info->hash_bits, &alone, &block);
        block_free(&alone);
    }
    if (err == PARAMO_OK) {
        *rows = block.rows;
        err = score(scratch, m, &block, answer);
        block_free(&block);
    }
    if (err != PARAMO_OK) {
        *rows = 0;
        answer_error(answer, err == PARAMO_E_MEMORY ? 503 : 500, 0, "", paramo_last_error());
    }
}

void service_score(struct service *s, const char *format, const char *body, size_t len, struct answer *answer)
{
    struct scratch *scratch = scratch_take(s);
    size_t rows = 0;
    if (!scratch) {
        answer_error(answer, 503, 0, "", "the server is out of memory; try again later");
        return;
    }
    struct slot_model *m = model_slot_take(s->slot);
    if (m)
        score_request(scratch, m, format, body, len, answer, &rows);
    else
        answer_error(answer, 503, 0, "", "there is no model yet; try again later");
    model_slot_give(s->slot, m);
    scratch_give(s, scratch);
    s->stats.rows += rows;
}

void service_metrics(struct service *s, int ready, struct answer *answer)
{
    struct timespec now;
    struct slot_model *m = model_slot_take(s->slot);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    struct stats_gauges gauges = {.ready = ready && m};
    if (m) {
        gauges.model = m->model.info.ops->name;
        gauges.model_age_s = (double)now.tv_sec + (double)now.tv_nsec / 1e9 - m->saved_s;
    }
    *answer = (struct answer){.status = 200, .type = "text/plain; version=0.0.4"};
    FILE *out = open_memstream(&answer->text, &answer->len);
    if (out) {
        stats_write(&s->stats, &gauges, out);
        (void)fclose(out);
    }
    model_slot_give(s->slot, m);
}
