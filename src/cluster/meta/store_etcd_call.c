#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "cluster/meta/store_etcd_call.h"
#include "cluster/meta/store_etcd_impl.h"

/* ---- names -------------------------------------------------------------------------------------------- */

struct key meta_key(const struct etcd_store *s, const char *name)
{
    struct key key;
    (void)snprintf(key.text, sizeof key.text, "%s%s", s->prefix, name);
    return key;
}

struct key meta_record_key(const struct etcd_store *s, uint64_t number, uint32_t piece)
{
    struct key key;
    (void)snprintf(key.text, sizeof key.text, "%srecord/%016" PRIx64 ".%08" PRIx32, s->prefix, number, piece);
    return key;
}

struct key meta_record_end(const struct etcd_store *s, uint64_t number)
{
    struct key key; /* '/' comes after '.' */
    (void)snprintf(key.text, sizeof key.text, "%srecord/%016" PRIx64 "/", s->prefix, number);
    return key;
}

/* ---- asking ------------------------------------------------------------------------------------------- */

static void call_work(struct blocking_job *blocking_job)
{
    struct etcd_store *s = container_of(blocking_job, struct etcd_store, blocking_job);
    struct http_request ask = {
        .url = s->url, .body = &s->body, .timeout_ms = s->timeout_ms, .answer_max = ANSWER_MAX};
    unsigned status = 0;
    assert(s->asking && !s->answer.data);
    s->status = s->body.failed ? err_memory(s->body.len) : http_post(s->http, &ask, &status, &s->answer);
    if (!s->status && status != 200) {
        char reason[120];
        etcd_error_text(&s->answer, reason, sizeof reason);
        s->status = err_set(PARAMO_E_IO, "%.150s: etcd answered %u: %s", s->url, status, reason);
    }
    if (s->status)
        err_text_copy(s->text);
}

static void call_done(struct blocking_job *blocking_job)
{
    struct etcd_store *s = container_of(blocking_job, struct etcd_store, blocking_job);
    etcd_store_check(s);
    assert(s->asking && !s->inside);
    s->asking = false;
    writer_fini(&s->body);
    s->body = (struct writer){0};
    if (s->status) {
        s->endpoint_at = (s->endpoint_at + 1) % s->endpoints;
        (void)err_set(s->status, "%s", s->text);
    }
    s->inside = true;
    if (!s->closed)
        s->then(s, s->status);
    s->inside = false;
    writer_fini(&s->answer);
    s->answer = (struct writer){0};
    s->turn(s);
}

void meta_call(struct etcd_store *s, const char *path, uint32_t timeout_ms,
               void (*then)(struct etcd_store *s, paramo_err err))
{
    etcd_store_check(s);
    assert(!s->asking && !s->closed);
    assert(s->phase != PHASE_OPEN);
    (void)snprintf(s->url, sizeof s->url, "http://%s/v3/%s", s->endpoint[s->endpoint_at], path);
    s->asking = true;
    s->timeout_ms = timeout_ms;
    s->asked_at = meta_now(s);
    s->then = then;
    s->blocking_job = (struct blocking_job){.lane = s->lane, .work = call_work, .done = call_done};
    blocking_jobs_post(s->blocking_jobs, &s->blocking_job);
}

void meta_txn(struct etcd_store *s, struct etcd_txn *txn, uint32_t timeout_ms,
              void (*then)(struct etcd_store *s, paramo_err err))
{
    assert(!s->asking && !s->body.data);
    etcd_txn_write(txn, &s->body);
    assert(s->started || s->phase == PHASE_READY);
    meta_call(s, "kv/txn", timeout_ms, then);
}

void meta_compare_fence(const struct etcd_store *s, struct etcd_txn *txn)
{
    etcd_compare(txn, meta_key(s, "term").text, s->fence);
}

void meta_range(const struct etcd_store *s, struct writer *list)
{
    etcd_range(list, meta_key(s, "term").text, NULL, 0);
    etcd_range(list, meta_key(s, "leader").text, NULL, 0);
    etcd_range(list, meta_key(s, "head").text, NULL, 0);
}

void meta_text(const struct etcd_kv *kv, char *text, size_t capacity)
{
    size_t len = kv ? kv->value.len : 0;
    len = len < capacity ? len : capacity - 1;
    for (size_t i = 0; i < len; i++)
        text[i] = kv->value.data[i] < ' ' || kv->value.data[i] > '~' ? '?' : (char)kv->value.data[i];
    text[len] = '\0';
}

bool meta_term_read(const struct etcd_answer *answer, const struct etcd_store *s, uint32_t *term)
{
    char text[16], end;
    const struct etcd_kv *kv = etcd_find(answer, meta_key(s, "term").text);
    *term = 0;
    meta_text(kv, text, sizeof text);
    return !kv || (sscanf(text, "%" SCNu32 "%c", term, &end) == 1 && *term && *term < INT32_MAX);
}

bool meta_head_read(const struct etcd_answer *answer, const struct etcd_store *s, struct head *head,
                    uint64_t *changed)
{
    char text[120], end;
    const struct etcd_kv *kv = etcd_find(answer, meta_key(s, "head").text);
    *head = (struct head){0};
    *changed = kv ? kv->modified : 0;
    meta_text(kv, text, sizeof text);
    return !kv || (sscanf(text, "1 %" SCNx64 " %" SCNx64 " %" SCNu64 " %" SCNu64 "%c", &head->first,
                          &head->last, &head->pieces, &head->bytes, &end) == 4 &&
                   head->first && head->first <= head->last && head->bytes <= LOG_BYTES_MAX &&
                   head->pieces <= head->bytes);
}

bool meta_fenced(struct etcd_store *s, const struct etcd_answer *answer)
{
    const struct etcd_kv *term = etcd_find(answer, meta_key(s, "term").text);
    char who[ADDRESS_MAX], number[16];
    if (term && term->modified == s->fence)
        return false;
    meta_text(etcd_find(answer, meta_key(s, "leader").text), who, sizeof who);
    meta_text(term, number, sizeof number);
    assert(s->term && !s->fenced);
    s->fenced = true;
    s->sure_until = 0;
    if (term)
        (void)snprintf(s->fenced_by, sizeof s->fenced_by, "%.100s leads it in term %s",
                       who[0] ? who : "no scheduler", number);
    else
        (void)snprintf(s->fenced_by, sizeof s->fenced_by, "its keys in etcd are gone");
    etcd_store_check(s);
    return true;
}

paramo_err meta_fenced_text(const struct etcd_store *s)
{
    assert(s->fenced && s->fenced_by[0]);
    return err_set(PARAMO_E_FENCED, "this scheduler no longer leads the job: %s", s->fenced_by);
}
