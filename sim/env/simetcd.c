#include "sim/env/simetcd.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/queue.h"
#include "env/env.h"

struct sim_kv {
    char *key;
    struct writer value; /* with room for a zero after it */
    uint64_t created, modified, lease;
};

struct sim_lease {
    uint64_t id, ttl_s, until; /* id 0: free */
};

struct late {
    struct late *next;
    struct sim_event event;
    struct simetcd *etcd;
    char *path;
    struct writer body;
};

struct simetcd {
    struct sim *sim;
    uint64_t revision, next_lease;
    struct sim_kv *kv; /* by key */
    size_t count, capacity;
    struct sim_lease lease[64]; /* far more than a test has at once */
    struct late *late;
    void (*put)(void *arg, const char *key, const char *value);
    void *arg;
};

struct sim_http {
    struct http http;
    struct simetcd *etcd;
    enum simetcd_fault fault;
    unsigned after, count;
    uint64_t late_ns;
};

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

/* ---- keys ---------------------------------------------------------------------------------------------- */

/* The first entry that is not before the key. */
static size_t place_of(const struct simetcd *e, const char *key)
{
    size_t at = 0;
    while (at < e->count && strcmp(e->kv[at].key, key) < 0)
        at++;
    return at;
}

static struct sim_kv *kv_find(struct simetcd *e, const char *key)
{
    size_t at = place_of(e, key);
    return at < e->count && strcmp(e->kv[at].key, key) == 0 ? &e->kv[at] : NULL;
}

static void kv_erase(struct simetcd *e, size_t at)
{
    free(e->kv[at].key);
    writer_fini(&e->kv[at].value);
    memmove(&e->kv[at], &e->kv[at + 1], (--e->count - at) * sizeof *e->kv);
}

/* Takes ownership of the value. */
static void kv_put(struct simetcd *e, const char *key, struct writer value, uint64_t lease)
{
    struct sim_kv *kv = kv_find(e, key);
    if (!kv) {
        size_t at = place_of(e, key);
        if (e->count == e->capacity) {
            e->capacity = e->capacity ? 2 * e->capacity : 16;
            e->kv = must(realloc(e->kv, e->capacity * sizeof *e->kv));
        }
        kv = &e->kv[at];
        memmove(kv + 1, kv, (e->count++ - at) * sizeof *kv);
        *kv = (struct sim_kv){.key = must(strdup(key)), .created = e->revision};
    }
    writer_fini(&kv->value);
    kv->value = value;
    write_u8(&kv->value, 0);
    kv->value.len--;
    kv->modified = e->revision;
    kv->lease = lease;
    if (e->put)
        e->put(e->arg, key, (const char *)kv->value.data);
}

static struct sim_lease *lease_find(struct simetcd *e, uint64_t id)
{
    for (size_t i = 0; i < sizeof e->lease / sizeof *e->lease; i++)
        if (e->lease[i].id == id)
            return &e->lease[i];
    return NULL;
}

static void lease_end(struct simetcd *e, struct sim_lease *lease)
{
    bool changed = false;
    for (size_t at = e->count; at-- > 0;)
        if (e->kv[at].lease == lease->id) {
            kv_erase(e, at);
            changed = true;
        }
    e->revision += changed;
    lease->id = 0;
}

static void leases_check(struct simetcd *e)
{
    for (size_t i = 0; i < sizeof e->lease / sizeof *e->lease; i++)
        if (e->lease[i].id && e->lease[i].until <= sim_now(e->sim))
            lease_end(e, &e->lease[i]);
}

/* ---- requests ------------------------------------------------------------------------------------------ */

static uint64_t number_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? strtoull(text, NULL, 10) : 0;
}

/* NULL: not found. The caller frees the result, which ends with a zero. */
static char *text_of(const json_t *object, const char *name)
{
    const json_t *field = json_object_get(object, name);
    struct writer w = {0};
    if (!field || !base64_read(json_string_value(field), json_string_length(field), &w))
        return NULL;
    write_u8(&w, 0);
    return (char *)w.data;
}

static json_t *bytes_json(const void *bytes, size_t len)
{
    struct writer w = {0};
    base64_write(&w, bytes, len);
    json_t *text = json_stringn(w.len ? (const char *)w.data : "", w.len);
    writer_fini(&w);
    return text;
}

static json_t *number_json(uint64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    return json_string(text);
}

static json_t *header_json(const struct simetcd *e)
{
    return json_pack("{s:o}", "revision", number_json(e->revision));
}

static bool holds(struct simetcd *e, const json_t *compare)
{
    char *key = text_of(compare, "key");
    const struct sim_kv *kv = key ? kv_find(e, key) : NULL;
    bool same = number_of(compare, "mod_revision") == (kv ? kv->modified : 0);
    free(key);
    return same;
}

static void put_do(struct simetcd *e, const json_t *put, const char *key)
{
    const json_t *field = json_object_get(put, "value");
    struct writer value = {0};
    if (!field || !base64_read(json_string_value(field), json_string_length(field), &value))
        abort();
    uint64_t lease = number_of(put, "lease");
    if (!lease || lease_find(e, lease))
        kv_put(e, key, value, lease);
    else
        writer_fini(&value);
}

static json_t *range_do(struct simetcd *e, const json_t *range, const char *key, const char *end)
{
    json_t *kvs = json_array();
    uint64_t limit = number_of(range, "limit"), found = 0;
    for (size_t at = place_of(e, key); at < e->count; at++) {
        const struct sim_kv *kv = &e->kv[at];
        if (end ? strcmp(kv->key, end) >= 0 : strcmp(kv->key, key) != 0)
            break;
        if (found++ && limit && found > limit)
            continue;
        json_array_append_new(kvs, json_pack("{s:o,s:o,s:o,s:o}", "key", bytes_json(kv->key, strlen(kv->key)),
                                             "create_revision", number_json(kv->created), "mod_revision",
                                             number_json(kv->modified), "value",
                                             bytes_json(kv->value.data, kv->value.len)));
    }
    json_t *answer = json_pack("{s:o}", "header", header_json(e));
    if (json_array_size(kvs))
        json_object_set(answer, "kvs", kvs);
    json_decref(kvs);
    if (found)
        json_object_set_new(answer, "count", number_json(found));
    return answer;
}

static json_t *op_do(struct simetcd *e, const json_t *op)
{
    const char *what = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)op));
    const json_t *fields = what ? json_object_get(op, what) : NULL;
    char *key = text_of(fields, "key"), *end = text_of(fields, "range_end");
    json_t *answer = json_object();
    if (!what || !key)
        abort();
    if (strcmp(what, "request_put") == 0) {
        put_do(e, fields, key);
        json_object_set_new(answer, "response_put", json_pack("{s:o}", "header", header_json(e)));
    } else if (strcmp(what, "request_range") == 0) {
        json_object_set_new(answer, "response_range", range_do(e, fields, key, end));
    } else {
        for (size_t at = place_of(e, key);
             at < e->count && (end ? strcmp(e->kv[at].key, end) < 0 : !strcmp(e->kv[at].key, key));)
            kv_erase(e, at);
        json_object_set_new(answer, "response_delete_range", json_pack("{s:o}", "header", header_json(e)));
    }
    free(key);
    free(end);
    return answer;
}

static json_t *txn_do(struct simetcd *e, const json_t *request)
{
    const json_t *compare = json_object_get(request, "compare"), *ops, *op;
    bool succeeded = true;
    size_t i;
    json_array_foreach(compare, i, op) succeeded = succeeded && holds(e, op);
    ops = json_object_get(request, succeeded ? "success" : "failure");
    bool changes = false;
    json_array_foreach(ops, i, op) changes = changes || !json_object_get(op, "request_range");
    e->revision += changes;
    json_t *responses = json_array(), *answer = json_object();
    json_array_foreach(ops, i, op) json_array_append_new(responses, op_do(e, op));
    json_object_set_new(answer, "header", header_json(e));
    if (succeeded)
        json_object_set_new(answer, "succeeded", json_true());
    json_object_set_new(answer, "responses", responses);
    return answer;
}

static json_t *grant_do(struct simetcd *e, const json_t *request)
{
    struct sim_lease *lease = must(lease_find(e, 0));
    uint64_t ttl = number_of(request, "TTL");
    *lease =
        (struct sim_lease){.id = ++e->next_lease, .ttl_s = ttl, .until = sim_now(e->sim) + ttl * ENV_SEC};
    return json_pack("{s:o,s:o,s:o}", "header", header_json(e), "ID", number_json(lease->id), "TTL",
                     number_json(ttl));
}

static json_t *keep_do(struct simetcd *e, const json_t *request)
{
    uint64_t id = number_of(request, "ID");
    struct sim_lease *lease = id ? lease_find(e, id) : NULL;
    json_t *result = json_pack("{s:o,s:o}", "header", header_json(e), "ID", number_json(id));
    if (lease) {
        lease->until = sim_now(e->sim) + lease->ttl_s * ENV_SEC;
        json_object_set_new(result, "TTL", number_json(lease->ttl_s));
    }
    return json_pack("{s:o}", "result", result);
}

/* Returns the status of the answer. */
static unsigned request_do(struct simetcd *e, const char *path, const struct writer *body,
                           struct writer *answer)
{
    json_t *request = json_loadb((const char *)body->data, body->len, 0, NULL), *reply = NULL;
    leases_check(e);
    if (request && strcmp(path, "/v3/kv/txn") == 0)
        reply = txn_do(e, request);
    else if (request && strcmp(path, "/v3/lease/grant") == 0)
        reply = grant_do(e, request);
    else if (request && strcmp(path, "/v3/lease/keepalive") == 0)
        reply = keep_do(e, request);
    unsigned status = reply ? 200 : 400;
    if (!reply)
        reply = json_pack("{s:s}", "error", "bad request");
    char *text = must(json_dumps(reply, JSON_COMPACT));
    if (answer)
        write_bytes(answer, text, strlen(text));
    free(text);
    json_decref(reply);
    json_decref(request);
    return status;
}

/* ---- what goes wrong ----------------------------------------------------------------------------------- */

static void late_free(struct late *late)
{
    struct late **at = &late->etcd->late;
    while (*at != late)
        at = &(*at)->next;
    *at = late->next;
    sim_cancel(late->etcd->sim, &late->event);
    writer_fini(&late->body);
    free(late->path);
    free(late);
}

static void late_due(struct sim_event *event)
{
    struct late *late = container_of(event, struct late, event);
    (void)request_do(late->etcd, late->path, &late->body, NULL);
    late_free(late);
}

static void do_later(struct sim_http *h, const char *path, const struct writer *body)
{
    struct late *late = must(calloc(1, sizeof *late));
    struct simetcd *e = h->etcd;
    *late = (struct late){.next = e->late, .etcd = e, .path = must(strdup(path))};
    write_bytes(&late->body, body->data, body->len);
    late->event.fire = late_due;
    late->event.tag = SIM_TAG(SIM_TAG_OTHER, 0);
    e->late = late;
    if (sim_schedule(e->sim, &late->event, sim_now(e->sim) + h->late_ns))
        abort();
}

static paramo_err answer_post(struct sim_http *h, const struct http_request *http_request, unsigned *status,
                              struct writer *answer)
{
    const char *path = strstr(http_request->url, "/v3/");
    bool wrong = h->count && !h->after;
    h->after -= h->after > 0;
    if (!path)
        return err_set(PARAMO_E_CONNECT, "%s: connection refused", http_request->url);
    if (!wrong) {
        *status = request_do(h->etcd, path, http_request->body, answer);
        return PARAMO_OK;
    }
    h->count--;
    switch (h->fault) {
    case SIMETCD_MUTE:
        (void)request_do(h->etcd, path, http_request->body, NULL);
        break;
    case SIMETCD_LATE:
        do_later(h, path, http_request->body);
        break;
    case SIMETCD_UPSET:
        write_bytes(answer, "{\"error\":\"etcdserver: no leader\"}", 33);
        *status = 503;
        return PARAMO_OK;
    default:
        return err_set(PARAMO_E_CONNECT, "%s: connection refused", http_request->url);
    }
    return err_set(PARAMO_E_TIMEOUT, "%s: no answer in %" PRIu32 " ms", http_request->url,
                   http_request->timeout_ms);
}

/* All of it happens elsewhere: the process that asks has no part in that memory. */
static paramo_err sim_post(struct http *http, const struct http_request *http_request, unsigned *status,
                           struct writer *answer)
{
    struct sim_http *h = (struct sim_http *)http;
    sim_hold(h->etcd->sim, true);
    paramo_err err = answer_post(h, http_request, status, answer);
    sim_hold(h->etcd->sim, false);
    return err;
}

static void sim_http_destroy(struct http *http)
{
    free(http);
}

void simetcd_fail(struct http *http, enum simetcd_fault fault, unsigned after, unsigned count,
                  uint64_t late_ns)
{
    struct sim_http *h = (struct sim_http *)http;
    h->fault = fault;
    h->after = after;
    h->count = count;
    h->late_ns = late_ns;
}

/* ---- life ---------------------------------------------------------------------------------------------- */

paramo_err simetcd_create(struct sim *sim, struct simetcd **etcd)
{
    struct simetcd *e = calloc(1, sizeof *e);
    if (!e)
        return err_memory(sizeof *e);
    e->sim = sim;
    e->revision = 1;
    *etcd = e;
    return PARAMO_OK;
}

void simetcd_destroy(struct simetcd *e)
{
    if (!e)
        return;
    while (e->late)
        late_free(e->late);
    while (e->count)
        kv_erase(e, e->count - 1);
    free(e->kv);
    free(e);
}

paramo_err simetcd_http(struct simetcd *etcd, struct http **http)
{
    static const struct http_ops ops = {.post = sim_post, .destroy = sim_http_destroy};
    struct sim_http *h = calloc(1, sizeof *h);
    if (!h)
        return err_memory(sizeof *h);
    *h = (struct sim_http){.http.ops = &ops, .etcd = etcd};
    *http = &h->http;
    return PARAMO_OK;
}

void simetcd_watch(struct simetcd *e, void (*put)(void *arg, const char *key, const char *value), void *arg)
{
    e->put = put;
    e->arg = arg;
}

const char *simetcd_value(struct simetcd *e, const char *key)
{
    leases_check(e);
    const struct sim_kv *kv = kv_find(e, key);
    return kv ? (const char *)kv->value.data : NULL;
}

size_t simetcd_keys(struct simetcd *e)
{
    leases_check(e);
    return e->count;
}

void simetcd_put(struct simetcd *e, const char *key, const char *value)
{
    struct writer w = {0};
    write_bytes(&w, value, strlen(value));
    e->revision++;
    kv_put(e, key, w, 0);
}
