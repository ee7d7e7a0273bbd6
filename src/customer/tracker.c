#include "customer/tracker.h"

#include <stdio.h>
#include <stdlib.h>

paramo_err tracker_init(struct tracker *t)
{
    *t = (struct tracker){.failures_lock = ATOMIC_FLAG_INIT};
    t->slots = calloc(TRACKER_SLOTS, sizeof *t->slots);
    if (!t->slots)
        return err_memory(TRACKER_SLOTS * sizeof *t->slots);
    t->failures = calloc(TRACKER_FAILURES, sizeof *t->failures); /* pages untouched until something fails */
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
        return err_set(PARAMO_E_AGAIN, "%d requests are in flight", TRACKER_LIMIT);
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

void tracker_failed(struct tracker *t, uint64_t ts, paramo_err status, const char *text, bool told)
{
    failures_hold(t);
    struct tracker_failure *f = &t->failures[t->failures_next];
    t->failures_next = (t->failures_next + 1) % TRACKER_FAILURES;
    f->ts = ts;
    f->status = status;
    f->told = told;
    (void)snprintf(f->text, sizeof f->text, "%s", text);
    if (atomic_load(&t->failures_count) < TRACKER_FAILURES)
        atomic_fetch_add(&t->failures_count, 1);
    failures_release(t);
}

void tracker_complete(struct tracker *t, uint64_t ts)
{
    atomic_store_explicit(&t->slots[ts % TRACKER_SLOTS], 0, memory_order_release);
    atomic_fetch_sub(&t->in_flight, 1);
}

paramo_err tracker_result(struct tracker *t, uint64_t ts)
{
    if (ts == 0 || ts > atomic_load(&t->issued))
        return err_set(PARAMO_E_INVALID, "no request has timestamp %llu", (unsigned long long)ts);
    if (atomic_load_explicit(&t->failures_count, memory_order_acquire) == 0)
        return PARAMO_OK;
    struct tracker_failure found = {0};
    failures_hold(t);
    for (unsigned i = 0; i < TRACKER_FAILURES; i++) {
        if (t->failures[i].ts == ts) {
            t->failures[i].told = true;
            found = t->failures[i];
            break;
        }
    }
    failures_release(t);
    return found.status ? err_set(found.status, "%s", found.text) : PARAMO_OK;
}

paramo_err tracker_peek(struct tracker *t, uint64_t ts, char text[ERR_TEXT_MAX])
{
    paramo_err status = PARAMO_OK;
    if (atomic_load_explicit(&t->failures_count, memory_order_acquire) == 0)
        return PARAMO_OK;
    failures_hold(t);
    for (unsigned i = 0; i < TRACKER_FAILURES; i++) {
        if (t->failures[i].ts == ts) {
            status = t->failures[i].status;
            (void)snprintf(text, ERR_TEXT_MAX, "%s", t->failures[i].text);
            break;
        }
    }
    failures_release(t);
    return status;
}

void tracker_answered(struct tracker *t, uint64_t ts)
{
    _Atomic uint64_t *slot = &t->answers[ts % TRACKER_SLOTS]; /* its own while it is in flight */
    uint64_t have = atomic_load_explicit(slot, memory_order_relaxed);
    if ((have & 0xffff) < 0xffff)
        atomic_store_explicit(slot, have + 1, memory_order_release);
}

paramo_err tracker_answers(struct tracker *t, uint64_t ts, uint32_t *count)
{
    if (ts == 0 || ts > atomic_load(&t->issued))
        return err_set(PARAMO_E_INVALID, "no request has timestamp %llu", (unsigned long long)ts);
    uint64_t have = atomic_load_explicit(&t->answers[ts % TRACKER_SLOTS], memory_order_acquire);
    if (have >> 16 != (ts & (UINT64_MAX >> 16)))
        return err_set(PARAMO_E_NOT_FOUND, "request %llu was long ago", (unsigned long long)ts);
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
    if (atomic_load_explicit(&t->failures_count, memory_order_acquire) == 0)
        return PARAMO_OK;
    struct tracker_failure first = {.ts = UINT64_MAX};
    failures_hold(t);
    for (unsigned i = 0; i < TRACKER_FAILURES; i++) {
        struct tracker_failure *f = &t->failures[i];
        if (f->ts && !f->told && f->ts <= all->upto) {
            f->told = true;
            if (f->ts < first.ts)
                first = *f;
        }
    }
    failures_release(t);
    return first.status ? err_set(first.status, "%s", first.text) : PARAMO_OK;
}
