#include "cluster/scheduler/sched_kv.h"

#include <assert.h>
#include <stdlib.h>

#include "base/assert_slow.h"
#include "base/hash.h"
#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_node.h"
#include "cluster/scheduler/sched_save.h"
#include "wire/kv_calls.h"

struct kv_value {
    struct kv_value *next; /* of one hash */
    uint8_t *data;
    size_t len;
    char key[];
};

/* There are at least as many values as there are hashes of them. */
static void values_check(const struct sched_values *values)
{
    assert(values->count <= SCHED_KV_MAX && values->bytes <= SCHED_KV_BYTES);
    assert(values->by_hash.count <= values->count && !values->by_hash.count == !values->count);
    assert(values->count || !values->bytes);
}

/* 56 bits: values of one hash are one durable record. */
static uint64_t kv_hash(const char *key)
{
    return hash_bytes(key, strlen(key)) >> 8;
}

static struct kv_value *value_find(const struct scheduler *s, const char *key)
{
    struct kv_value *value = map_get(&s->values->by_hash, kv_hash(key));
    while (value && strcmp(value->key, key) != 0)
        value = value->next;
    return value;
}

static paramo_err value_new(struct scheduler *s, const char *key, struct kv_value **out)
{
    values_check(s->values);
    if (s->values->count == SCHED_KV_MAX)
        return err_set(PARAMO_E_FULL, "the scheduler's limit of %d values is reached", SCHED_KV_MAX);
    uint64_t hash = kv_hash(key);
    assert_slow(!value_find(s, key));
    struct kv_value *value = calloc(1, sizeof *value + strlen(key) + 1);
    if (!value)
        return err_memory(sizeof *value);
    memcpy(value->key, key, strlen(key) + 1);
    value->next = map_get(&s->values->by_hash, hash);
    paramo_err err = map_put(&s->values->by_hash, hash, value);
    if (err) {
        free(value);
        return err;
    }
    s->values->count++;
    values_check(s->values);
    *out = value;
    return PARAMO_OK;
}

/* Gives the key a value of len bytes, zeroed if it is new or another length than before. */
static paramo_err value_resize(struct scheduler *s, const char *key, size_t len, struct kv_value **out)
{
    struct kv_value *value = value_find(s, key);
    size_t before = value ? value->len : 0;
    values_check(s->values);
    assert(s->values->bytes >= before);
    if (s->values->bytes - before + len > SCHED_KV_BYTES)
        return err_set(PARAMO_E_FULL, "the scheduler's limit of %d bytes of values is reached",
                       SCHED_KV_BYTES);
    if (!value || value->len != len || !value->data) {
        uint8_t *data = calloc(1, len ? len : 1);
        if (!data)
            return err_memory(len);
        paramo_err err = value ? PARAMO_OK : value_new(s, key, &value);
        if (err) {
            free(data);
            return err;
        }
        free(value->data);
        value->data = data;
        value->len = len;
        s->values->bytes = s->values->bytes - before + len;
    }
    assert(value->len == len && value->data);
    values_check(s->values);
    *out = value;
    return PARAMO_OK;
}

static void answer_value(struct sched_call *call, const uint8_t *data, size_t len)
{
    struct writer w = {0};
    write_bytes(&w, data, len);
    sched_call_answer(call, &w);
}

/* ---- GETs that wait ------------------------------------------------------------------------------------ */

/* The GETs of one key. */
struct kv_waiting {
    struct sched_call_group calls;
    struct scheduler *sched;
    struct kv_waiting *next; /* of one hash */
    bool failed;             /* released: there is no memory for a copy of the value, which is ... */
    uint8_t *data;
    size_t len;
    char key[];
};

static struct kv_waiting *waiting_find(const struct scheduler *s, const char *key)
{
    struct kv_waiting *waiting = map_get(&s->values->waiting, kv_hash(key));
    while (waiting && strcmp(waiting->key, key) != 0)
        waiting = waiting->next;
    return waiting;
}

/* It leaves the map. */
static void waiting_remove(struct kv_waiting *waiting)
{
    struct map *map = &waiting->sched->values->waiting;
    assert(!waiting->calls.released && map->count);
    uint64_t hash = kv_hash(waiting->key);
    struct kv_waiting *first = map_get(map, hash), **at = &first;
    while (*at != waiting) {
        assert(*at); /* it is in the map until here */
        at = &(*at)->next;
    }
    *at = waiting->next;
    if (!first)
        (void)map_remove(map, hash);
    else if (map_put(map, hash, first))
        log_error("scheduler: the map of waiting calls lost a list (a defect of Paramo)"); /* cannot be */
}

static void waiting_free(struct sched_call_group *calls)
{
    struct kv_waiting *waiting = container_of(calls, struct kv_waiting, calls);
    assert(!calls->queue.first);
    assert(calls->released || !waiting->data);
    free(waiting->data);
    free(waiting);
}

static void waiting_answer(struct sched_call *call)
{
    const struct kv_waiting *waiting = call->object;
    assert(waiting->calls.released && waiting->failed == !waiting->data);
    assert(!call->answered);
    if (waiting->failed)
        sched_call_fail(call, err_memory(waiting->len));
    else
        answer_value(call, waiting->data, waiting->len);
}

static paramo_err waiting_make(struct scheduler *s, const char *key, struct kv_waiting **out)
{
    size_t len = strlen(key) + 1;
    assert_slow(!waiting_find(s, key));
    struct kv_waiting *waiting = calloc(1, sizeof *waiting + len);
    if (!waiting)
        return err_memory(sizeof *waiting);
    *waiting = (struct kv_waiting){.calls = {.answer = waiting_answer, .free = waiting_free}, .sched = s};
    memcpy(waiting->key, key, len);
    waiting->next = map_get(&s->values->waiting, kv_hash(key));
    paramo_err err = map_put(&s->values->waiting, kv_hash(key), waiting);
    if (err) {
        free(waiting);
        return err;
    }
    *out = waiting;
    return PARAMO_OK;
}

/* The value is there: those that wait get it, and no later value. */
static void wake(struct scheduler *s, const struct kv_value *value)
{
    struct kv_waiting *waiting = waiting_find(s, value->key);
    if (!waiting)
        return;
    assert(waiting->calls.queue.first && !waiting->data); /* only calls keep it */
    waiting_remove(waiting);
    assert_slow(!waiting_find(s, value->key));
    waiting->data = malloc(value->len ? value->len : 1);
    waiting->failed = !waiting->data;
    waiting->len = value->len;
    if (waiting->data && value->len)
        memcpy(waiting->data, value->data, value->len);
    sched_calls_release(s, &waiting->calls);
}

/* ---- calls --------------------------------------------------------------------------------------------- */

void sched_kv_put(struct sched_call *call, struct reader *body)
{
    struct scheduler *s = call->node->sched;
    struct kv_put m;
    struct kv_value *value;
    paramo_err err = kv_put_decode(body, &m);
    if (!err)
        err = value_resize(s, m.key, m.len, &value);
    if (err) {
        sched_call_fail(call, err);
        return;
    }
    assert(value->len == m.len && s->values->bytes >= m.len);
    if (m.len)
        memcpy(value->data, m.value, m.len);
    sched_save_record_changed(s, RECORD_VALUES, kv_hash(m.key));
    sched_call_answer(call, NULL);
    wake(s, value);
    values_check(s->values);
}

void sched_kv_add(struct sched_call *call, struct reader *body)
{
    struct scheduler *s = call->node->sched;
    struct kv_put m;
    paramo_err err = kv_put_decode(body, &m);
    struct kv_value *value = err ? NULL : value_find(s, m.key);
    if (!err && (m.len == 0 || m.len % sizeof(double) || (value && value->len != m.len)))
        err = err_set(PARAMO_E_SIZE_MISMATCH,
                      "the value of %s has %zu bytes, but %u bytes of numbers were to be added", m.key,
                      value ? value->len : 0, m.len);
    if (!err)
        err = value_resize(s, m.key, m.len, &value);
    if (err) {
        sched_call_fail(call, err);
        return;
    }
    assert(value->len == m.len && s->values->bytes >= m.len);
    values_check(s->values);
    struct reader have = reader_over(value->data, m.len), more = reader_over(m.value, m.len);
    struct writer sum = writer_over(value->data, m.len);
    while (more.left)
        write_f64(&sum, read_f64(&have) + read_f64(&more));
    sched_save_record_changed(s, RECORD_VALUES, kv_hash(m.key));
    sched_call_answer(call, NULL);
    wake(s, value);
}

static void value_free(struct scheduler *s, struct kv_value *value)
{
    assert(s->values->count > 0 && s->values->bytes >= value->len);
    s->values->count--;
    s->values->bytes -= value->len;
    assert(s->values->count || !s->values->bytes);
    free(value->data);
    free(value);
}

void sched_kv_delete(struct sched_call *call, struct reader *body)
{
    struct scheduler *s = call->node->sched;
    struct kv_delete m;
    paramo_err err = kv_delete_decode(body, &m);
    struct kv_value *value = err ? NULL : value_find(s, m.key);
    if (value) {
        uint64_t hash = kv_hash(m.key);
        struct kv_value *first = map_get(&s->values->by_hash, hash), **at = &first;
        while (*at != value) {
            assert(*at); /* value_find() found it there */
            at = &(*at)->next;
        }
        *at = value->next;
        if (!first)
            (void)map_remove(&s->values->by_hash, hash);
        else if (map_put(&s->values->by_hash, hash, first))
            err = err_set(PARAMO_E_INTERNAL, "the map of values lost the chain of a value (a defect of "
                                             "Paramo)"); /* cannot be: it is there */
        value_free(s, value);
        values_check(s->values);
        sched_save_record_changed(s, RECORD_VALUES, hash);
    }
    if (err)
        sched_call_fail(call, err);
    else
        sched_call_answer(call, NULL);
}

static void get_timed_out(struct sched_call *call)
{
    const struct kv_waiting *waiting = call->object;
    assert(!call->answered && call->queue == &waiting->calls.queue);
    if (waiting->calls.released) /* its turn was about to come */
        waiting_answer(call);
    else
        sched_call_fail(call, err_set(PARAMO_E_TIMEOUT, "no node put a value at %s in time", waiting->key));
}

static void get_withdrawn(struct sched_call *call)
{
    struct kv_waiting *waiting = call->object;
    assert(!call->queue); /* it has left */
    assert(waiting->sched == call->node->sched);
    if (waiting->calls.released || waiting->calls.queue.first)
        return;
    waiting_remove(waiting);
    waiting_free(&waiting->calls);
}

void sched_kv_get(struct sched_call *call, struct reader *body)
{
    struct scheduler *s = call->node->sched;
    struct kv_get m;
    paramo_err err = kv_get_decode(body, &m);
    if (err) {
        sched_call_fail(call, err);
        return;
    }
    const struct kv_value *value = value_find(s, m.key);
    if (value) {
        answer_value(call, value->data, value->len);
        return;
    }
    assert(!call->answered && !call->withdrawn);
    assert(!call->queue && !call->object);
    struct kv_waiting *waiting = waiting_find(s, m.key);
    if (!waiting)
        err = waiting_make(s, m.key, &waiting);
    if (err) {
        sched_call_fail(call, err);
        return;
    }
    call->object = waiting;
    call->withdrawn = get_withdrawn;
    (void)sched_call_defer(call, &waiting->calls.queue, m.timeout_ms, get_timed_out);
}

/* ---- durable records ----------------------------------------------------------------------------------- */

static void values_write(const struct kv_value *first, struct writer *w)
{
    for (const struct kv_value *value = first; value; value = value->next) {
        assert(value->data && value->len <= SCHED_KV_BYTES);
        write_string(w, value->key);
        write_u32(w, (uint32_t)value->len);
        if (value->len)
            write_bytes(w, value->data, value->len);
    }
}

void sched_kv_record(const struct scheduler *s, uint64_t key, struct writer *w)
{
    values_write(map_get(&s->values->by_hash, key), w);
}

static void one_record(void *arg, uint64_t key, void *value)
{
    struct writer *w = arg;
    size_t mark;
    sched_save_record_begin(w, RECORD_VALUES, key, &mark);
    values_write(value, w);
    store_record_end(w, mark);
}

bool sched_kv_next_records(const struct scheduler *s, struct sched_save_cursor *cursor, struct writer *w)
{
    return map_scan(&s->values->by_hash, &cursor->map, 1, one_record, w);
}

paramo_err sched_kv_restore(struct scheduler *s, struct reader *record)
{
    char key[KV_KEY_MAX];
    struct kv_value *value;
    values_check(s->values);
    while (record->left) {
        read_string(record, key, sizeof key);
        uint32_t len = read_u32(record);
        const uint8_t *data = read_span(record, len);
        if (record->failed)
            return err_set(PARAMO_E_CORRUPT, "the durable record of a value is malformed");
        paramo_err err = value_resize(s, key, len, &value);
        if (err)
            return err;
        assert(value->len == len && s->values->bytes >= len);
        if (len)
            memcpy(value->data, data, len);
    }
    return PARAMO_OK;
}

void sched_kv_fini(struct scheduler *s)
{
    uint64_t key;
    void *first;
    values_check(s->values);
    for (size_t i = 0; map_next(&s->values->by_hash, &i, &key, &first);)
        for (struct kv_value *value = first, *next; value; value = next) {
            next = value->next;
            value_free(s, value);
        }
    assert(!s->values->count && !s->values->bytes);
    map_fini(&s->values->by_hash);
    map_init(&s->values->by_hash);
    if (!s->values->waiting.count) /* else a load replaces the values, and calls still wait */
        map_fini(&s->values->waiting);
}

size_t sched_kv_count(const struct scheduler *s)
{
    return s->values->count;
}
