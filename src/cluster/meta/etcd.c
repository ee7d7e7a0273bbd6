#include "cluster/meta/etcd.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"

/* ---- writing ------------------------------------------------------------------------------------------ */

static void append_text(struct writer *w, const char *text)
{
    write_bytes(w, text, strlen(text));
}

static void append_number(struct writer *w, const char *name, uint64_t number)
{
    char text[64];
    (void)snprintf(text, sizeof text, "\"%s\":\"%" PRIu64 "\"", name, number);
    append_text(w, text);
}

static void append_bytes(struct writer *w, const char *name, const void *bytes, size_t len)
{
    append_text(w, "\"");
    append_text(w, name);
    append_text(w, "\":\"");
    base64_write(w, bytes, len);
    append_text(w, "\"");
}

static void next(struct writer *list)
{
    if (list->len)
        append_text(list, ",");
}

void etcd_compare(struct etcd_txn *txn, const char *key, uint64_t modified)
{
    struct writer *w = &txn->compare;
    next(w);
    append_text(w, "{");
    append_bytes(w, "key", key, strlen(key));
    append_text(w, ",\"target\":\"MOD\",\"result\":\"EQUAL\",");
    append_number(w, "mod_revision", modified);
    append_text(w, "}");
}

static void op_begin(struct writer *list, const char *what, const char *key, const char *end)
{
    next(list);
    append_text(list, "{\"");
    append_text(list, what);
    append_text(list, "\":{");
    append_bytes(list, "key", key, strlen(key));
    if (end) {
        append_text(list, ",");
        append_bytes(list, "range_end", end, strlen(end));
    }
}

void etcd_put(struct writer *list, const char *key, const void *value, size_t len, uint64_t lease)
{
    op_begin(list, "request_put", key, NULL);
    append_text(list, ",");
    append_bytes(list, "value", value, len);
    if (lease) {
        append_text(list, ",");
        append_number(list, "lease", lease);
    }
    append_text(list, "}}");
}

void etcd_range(struct writer *list, const char *key, const char *end, unsigned limit)
{
    op_begin(list, "request_range", key, end);
    if (limit) {
        append_text(list, ",");
        append_number(list, "limit", limit);
    }
    append_text(list, "}}");
}

void etcd_erase(struct writer *list, const char *key, const char *end)
{
    op_begin(list, "request_delete_range", key, end);
    append_text(list, "}}");
}

static void list_write(struct writer *list, const char *before, struct writer *body)
{
    assert(list != body && !list->fixed);
    append_text(body, before);
    if (list->len)
        write_bytes(body, list->data, list->len);
    body->failed = body->failed || list->failed;
    writer_fini(list);
    *list = (struct writer){0};
}

void etcd_txn_write(struct etcd_txn *txn, struct writer *body)
{
    list_write(&txn->compare, "{\"compare\":[", body);
    list_write(&txn->then, "],\"success\":[", body);
    list_write(&txn->otherwise, "],\"failure\":[", body);
    append_text(body, "]}");
}

void etcd_grant_write(uint32_t ttl_s, struct writer *body)
{
    append_text(body, "{");
    append_number(body, "TTL", ttl_s);
    append_text(body, "}");
}

void etcd_lease_write(uint64_t lease, struct writer *body)
{
    append_text(body, "{");
    append_number(body, "ID", lease);
    append_text(body, "}");
}

/* ---- reading ------------------------------------------------------------------------------------------ */

static paramo_err parse(const struct writer *json, json_t **root)
{
    json_error_t error;
    *root = json_loadb(json->len ? (const char *)json->data : "", json->len, JSON_REJECT_DUPLICATES, &error);
    if (!*root)
        return err_set(PARAMO_E_PROTOCOL, "etcd's answer is not JSON: %.80s", error.text);
    if (json_is_object(*root))
        return PARAMO_OK;
    json_decref(*root);
    return err_set(PARAMO_E_PROTOCOL, "etcd's answer is not a JSON object");
}

/* 0 if it is not there. */
static bool number_of(const json_t *object, const char *name, uint64_t *number)
{
    const json_t *field = json_object_get(object, name);
    *number = 0;
    if (!field)
        return true;
    if (json_is_integer(field)) {
        json_int_t value = json_integer_value(field);
        *number = (uint64_t)value;
        return value >= 0;
    }
    const char *text = json_string_value(field);
    if (!text || *text < '0' || *text > '9')
        return false;
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return !errno && !*end && *number <= INT64_MAX;
}

static bool bytes_of(const json_t *object, const char *name, struct writer *w)
{
    const json_t *field = json_object_get(object, name);
    if (!field)
        return true;
    return json_is_string(field) && base64_read(json_string_value(field), json_string_length(field), w);
}

static bool kv_read(const json_t *object, struct etcd_kv *kv)
{
    uint8_t key[ETCD_KEY_MAX];
    struct writer w = writer_over(key, sizeof key - 1);
    if (!json_is_object(object) || !bytes_of(object, "key", &w) || !w.len || memchr(key, '\0', w.len) ||
        !number_of(object, "mod_revision", &kv->modified) || !kv->modified)
        return false;
    memcpy(kv->key, key, w.len);
    kv->key[w.len] = '\0';
    return bytes_of(object, "value", &kv->value);
}

static bool kvs_read(const json_t *range, struct etcd_answer *answer)
{
    const json_t *kvs = json_object_get(range, "kvs");
    size_t n = json_array_size(kvs);
    if (!kvs || !n)
        return !kvs || json_is_array(kvs);
    if (n > ETCD_KVS_MAX - answer->count)
        return false;
    assert(answer->count <= ETCD_KVS_MAX && !answer->kv == !answer->count);
    struct etcd_kv *more = realloc(answer->kv, (answer->count + n) * sizeof *more);
    if (!more)
        return false;
    answer->kv = more;
    for (size_t i = 0; i < n; i++) {
        struct etcd_kv *kv = &answer->kv[answer->count++];
        *kv = (struct etcd_kv){0};
        if (!kv_read(json_array_get(kvs, i), kv))
            return false;
    }
    return true;
}

static bool txn_read(const json_t *root, struct etcd_answer *answer)
{
    const json_t *succeeded = json_object_get(root, "succeeded"), *responses, *header;
    header = json_object_get(root, "header");
    if (!json_is_object(header) || !number_of(header, "revision", &answer->revision) || !answer->revision ||
        (succeeded && !json_is_boolean(succeeded)))
        return false;
    answer->succeeded = json_is_true(succeeded);
    responses = json_object_get(root, "responses");
    if (responses && !json_is_array(responses))
        return false;
    for (size_t i = 0; i < json_array_size(responses); i++) {
        const json_t *range = json_object_get(json_array_get(responses, i), "response_range");
        if (range && (!json_is_object(range) || !kvs_read(range, answer)))
            return false;
    }
    return true;
}

paramo_err etcd_txn_read(const struct writer *json, struct etcd_answer *answer)
{
    json_t *root;
    *answer = (struct etcd_answer){0};
    paramo_err err = parse(json, &root);
    if (err)
        return err;
    if (!txn_read(root, answer)) {
        etcd_answer_fini(answer);
        err = err_set(PARAMO_E_PROTOCOL, "etcd's answer to a transaction is malformed");
    }
    json_decref(root);
    return err;
}

const struct etcd_kv *etcd_find(const struct etcd_answer *answer, const char *key)
{
    for (unsigned i = 0; i < answer->count; i++)
        if (strcmp(answer->kv[i].key, key) == 0)
            return &answer->kv[i];
    return NULL;
}

void etcd_answer_fini(struct etcd_answer *answer)
{
    for (unsigned i = 0; i < answer->count; i++)
        writer_fini(&answer->kv[i].value);
    free(answer->kv);
    *answer = (struct etcd_answer){0};
}

paramo_err etcd_lease_read(const struct writer *json, uint64_t *lease, uint32_t *ttl_s)
{
    json_t *root;
    uint64_t ttl;
    paramo_err err = parse(json, &root);
    if (err)
        return err;
    const json_t *result = json_object_get(root, "result"); /* keepalive's are of a stream */
    result = result ? result : root;
    if (!json_is_object(result) || !number_of(result, "ID", lease) || !number_of(result, "TTL", &ttl) ||
        ttl > UINT32_MAX || (ttl && !*lease))
        err = err_set(PARAMO_E_PROTOCOL, "etcd's answer about a lease is malformed");
    else
        *ttl_s = (uint32_t)ttl;
    json_decref(root);
    return err;
}

void etcd_error_text(const struct writer *json, char *text, size_t capacity)
{
    json_t *root = json_loadb(json->len ? (const char *)json->data : "", json->len, 0, NULL);
    const char *message = json_string_value(json_object_get(root, "error"));
    message = message ? message : json_string_value(json_object_get(root, "message"));
    size_t len = message ? strlen(message) : json->len, at = 0;
    for (; at < len && at + 1 < capacity; at++) {
        char c = message ? message[at] : (char)json->data[at];
        text[at] = c < ' ' || c > '~' ? ' ' : c;
    }
    text[at] = '\0';
    json_decref(root);
}
