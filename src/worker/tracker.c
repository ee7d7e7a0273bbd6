#include "worker/tracker.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

paramo_err tracker_init(struct tracker *t)
{
    *t = (struct tracker){.failures_lock = ATOMIC_FLAG_INIT};
    t->slots = calloc(TRACKER_SLOTS, sizeof *t->slots);
    if (!t->slots)
        return err_memory(TRACKER_SLOTS * sizeof *t->slots);
    t->failures = malloc(TRACKER_FAILURES * sizeof *t->failures); /* pages untouched until something fails */
    if (!t->failures) {
        free(t->slots);
        return err_memory(TRACKER_FAILURES * sizeof *t->failures);
    }
    t->answers = calloc(TRACKER_SLOTS, sizeof *t->answers);
    if (!t->answers) {
        tracker_fini(t);
        return err_memory(TRACKER_SLOTS * sizeof *t->answers);
    }
    return PARAMO_OK;
}

void tracker_fini(struct tracker *t)
{
    free(t->slots);
    free(t->failures);
    free(t->answers);
}

paramo_err tracker_issue(struct tracker *t, uint64_t *ts)
{
    if (atomic_fetch_add(&t->in_flight, 1) >= TRACKER_LIMIT) {
        atomic_fetch_sub(&t->in_flight, 1);
        return err_set(PARAMO_E_AGAIN, "%d requests are in flight, which is the limit", TRACKER_LIMIT);
    }
    for (;;) {
        uint64_t next = atomic_fetch_add(&t->issued, 1) + 1;
        uint64_t empty = 0;
        if (atomic_compare_exchange_strong(&t->slots[next % TRACKER_SLOTS], &empty, next)) {
            atomic_store_explicit(&t->answers[next % TRACKER_SLOTS], next << 16, memory_order_relaxed);
            *ts = next;
            return PARAMO_OK;
        }
    }
}

static void failures_hold(struct tracker *t)
{
    while (atomic_flag_test_and_set_explicit(&t->failures_lock, memory_order_acquire))
        ;
}

static void failures_release(struct tracker *t)
{
    atomic_flag_clear_explicit(&t->failures_lock, memory_order_release);
}

/* Fibonacci hashing (Knuth, TAOCP 3, 6.4): timestamps at any distance from each other spread. */
static _Atomic uint16_t *bucket_of(struct tracker *t, uint64_t ts)
{
    return &t->bucket[(ts * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - TRACKER_FAILURES_BITS)];
}

/* The failure leaves its bucket; under the lock. */
static void failure_forget(struct tracker *t, struct tracker_failure *f)
{
    _Atomic uint16_t *bucket = bucket_of(t, f->ts);
    uint16_t me = (uint16_t)(f - t->failures + 1), at = atomic_load_explicit(bucket, memory_order_relaxed);
    assert(f->ts && me <= t->failures_count);
    if (at == me) {
        atomic_store_explicit(bucket, f->next, memory_order_relaxed);
    } else {
        while (t->failures[at - 1].next != me) {
            at = t->failures[at - 1].next;
            assert(at); /* the bucket has it */
        }
        t->failures[at - 1].next = f->next;
    }
    atomic_fetch_sub(&t->failures_untold, !f->told);
}

void tracker_failed(struct tracker *t, uint64_t ts, paramo_err status, const char *text, bool told)
{
    size_t len = strnlen(text, ERR_TEXT_MAX - 1);
    _Atomic uint16_t *bucket = bucket_of(t, ts);
    assert(status);
    failures_hold(t);
    assert(t->failures_next <= t->failures_count && t->failures_count <= TRACKER_FAILURES);
    struct tracker_failure *f = &t->failures[t->failures_next];
    if (t->failures_next < t->failures_count)
        failure_forget(t, f);
    else
        t->failures_count++;
    t->failures_next = (t->failures_next + 1) % TRACKER_FAILURES;
    f->ts = ts;
    f->status = status;
    f->told = told;
    memcpy(f->text, text, len);
    f->text[len] = '\0';
    f->next = atomic_load_explicit(bucket, memory_order_relaxed);
    atomic_fetch_add(&t->failures_untold, !told);
    atomic_store_explicit(bucket, (uint16_t)(f - t->failures + 1), memory_order_release);
    failures_release(t);
}

/* How ts failed, with its text; OK if it is not among the last failures. */
static paramo_err failure_find(struct tracker *t, uint64_t ts, bool tell, char text[ERR_TEXT_MAX])
{
    _Atomic uint16_t *bucket = bucket_of(t, ts);
    if (!atomic_load_explicit(bucket, memory_order_acquire))
        return PARAMO_OK;
    paramo_err status = PARAMO_OK;
    failures_hold(t);
    uint16_t at = atomic_load_explicit(bucket, memory_order_relaxed);
    while (at && t->failures[at - 1].ts != ts)
        at = t->failures[at - 1].next;
    if (at) {
        assert(at <= t->failures_count);
        struct tracker_failure *f = &t->failures[at - 1];
        status = f->status;
        memcpy(text, f->text, sizeof f->text);
        atomic_fetch_sub(&t->failures_untold, tell && !f->told);
        f->told |= tell;
    }
    failures_release(t);
    return status;
}

void tracker_complete(struct tracker *t, uint64_t ts)
{
    assert(atomic_load_explicit(&t->slots[ts % TRACKER_SLOTS], memory_order_relaxed) == ts);
    atomic_store_explicit(&t->slots[ts % TRACKER_SLOTS], 0, memory_order_release);
    size_t before = atomic_fetch_sub(&t->in_flight, 1);
    assert(before > 0);
    (void)before;
}

paramo_err tracker_result(struct tracker *t, uint64_t ts)
{
    if (ts == 0 || ts > atomic_load(&t->issued))
        return err_set(PARAMO_E_INVALID, "no request has timestamp %llu", (unsigned long long)ts);
    char text[ERR_TEXT_MAX];
    paramo_err status = failure_find(t, ts, true, text);
    return status ? err_set(status, "%s", text) : PARAMO_OK;
}

paramo_err tracker_peek(struct tracker *t, uint64_t ts, char text[ERR_TEXT_MAX])
{
    return failure_find(t, ts, false, text);
}

void tracker_answered(struct tracker *t, uint64_t ts)
{
    _Atomic uint64_t *slot = &t->answers[ts % TRACKER_SLOTS]; /* its own while it is in flight */
    uint64_t have = atomic_load_explicit(slot, memory_order_relaxed);
    assert(ts && have >> 16 == (ts & (UINT64_MAX >> 16)));
    if ((have & 0xffff) < 0xffff)
        atomic_store_explicit(slot, have + 1, memory_order_release);
}

paramo_err tracker_answers(struct tracker *t, uint64_t ts, uint32_t *count)
{
    if (ts == 0 || ts > atomic_load(&t->issued))
        return err_set(PARAMO_E_INVALID, "no request has timestamp %llu", (unsigned long long)ts);
    uint64_t have = atomic_load_explicit(&t->answers[ts % TRACKER_SLOTS], memory_order_acquire);
    if (have >> 16 != (ts & (UINT64_MAX >> 16)))
        return err_set(PARAMO_E_NOT_FOUND, "request %llu is too old: its answers are no longer counted",
                       (unsigned long long)ts);
    *count = (uint32_t)(have & 0xffff);
    return PARAMO_OK;
}

void tracker_all_begin(struct tracker *t, struct tracker_all *all)
{
    *all = (struct tracker_all){.tracker = t, .upto = atomic_load(&t->issued)};
}

bool tracker_all_done(struct tracker_all *all)
{
    struct tracker *t = all->tracker;
    if (atomic_load_explicit(&t->in_flight, memory_order_acquire) == 0)
        return true;
    for (; all->cursor < TRACKER_SLOTS; all->cursor++) {
        uint64_t ts = atomic_load_explicit(&t->slots[all->cursor], memory_order_acquire);
        if (ts && ts <= all->upto)
            return false;
    }
    return true;
}

paramo_err tracker_all_result(struct tracker_all *all)
{
    struct tracker *t = all->tracker;
    if (atomic_load_explicit(&t->failures_untold, memory_order_acquire) == 0)
        return PARAMO_OK;
    struct tracker_failure first = {.ts = UINT64_MAX};
    failures_hold(t);
    assert(t->failures_count <= TRACKER_FAILURES);
    for (unsigned i = 0; i < t->failures_count; i++) {
        struct tracker_failure *f = &t->failures[i];
        if (!f->told && f->ts <= all->upto) {
            f->told = true;
            atomic_fetch_sub(&t->failures_untold, 1);
            if (f->ts < first.ts)
                first = *f;
        }
    }
    failures_release(t);
    return first.status ? err_set(first.status, "%s", first.text) : PARAMO_OK;
}
