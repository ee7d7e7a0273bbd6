#include <assert.h>
#include <inttypes.h>

#include "worker/client_impl.h"
#include "worker/ending.h"
#include "worker/links.h"
#include "worker/requests.h"
#include "worker/waiting.h"

/* ---- cancelling, waiting ---- */

/* Ends one request, or all up to it, on the lane. */
struct canceller {
    struct lane_task task;
    struct client *client;
    uint64_t ts;
    bool earlier; /* all requests before it, too */
    bool found;   /* some had not completed */
    paramo_err status;
    const char *text;
    atomic_bool done;
};

static void cancel_task(struct lane_task *task)
{
    struct canceller *w = container_of(task, struct canceller, task);
    struct client *c = w->client;
    assert(lane_held(c->lane) && !atomic_load_explicit(&w->done, memory_order_relaxed));
    struct request *only = requests_of_slot(c, w->ts);
    for (struct request *r = w->earlier ? requests_first(c) : only; r; r = w->earlier ? r->next : NULL) {
        if (w->earlier ? !r->ts || r->ts > w->ts : r->ts != w->ts)
            continue;
        assert(r->client == c && r->ts && r->ts <= w->ts);
        request_end(r, w->status, w->text);
        w->found = true;
    }
    client_finish(c);
    lane_notify(c->lane);
    atomic_store_explicit(&w->done, true, memory_order_release);
}

static bool cancel_done(void *arg)
{
    struct canceller *w = arg;
    return atomic_load_explicit(&w->done, memory_order_acquire);
}

static paramo_err cancel(struct canceller *w)
{
    struct client *c = w->client;
    w->task.run = cancel_task;
    if (lane_held(c->lane)) {
        cancel_task(&w->task);
    } else if (lane_enter(c->lane)) {
        cancel_task(&w->task);
        lane_leave(c->lane);
    } else if (lane_inside()) {
        return err_set(PARAMO_E_IN_CALLBACK,
                       "another thread drives the worker: a callback cannot wait for it");
    } else {
        lane_post(c->lane, &w->task);
        return lane_wait(c->lane, cancel_done, w, UINT64_MAX);
    }
    return PARAMO_OK;
}

paramo_err client_cancel(struct client *c, uint64_t ts)
{
    struct canceller w = {
        .client = c, .ts = ts, .status = PARAMO_E_CANCELLED, .text = "the request was cancelled"};
    paramo_err err = cancel(&w);
    if (err)
        return err;
    return w.found ? PARAMO_OK : err_set(PARAMO_E_NOT_FOUND, "request %" PRIu64 " has completed", ts);
}

/* An interrupted wait ends the requests it waits for: the caller takes its arrays back, as after any wait. */
static paramo_err cancel_expired(struct client *c, uint64_t ts, bool earlier)
{
    struct canceller w = {.client = c,
                          .ts = ts,
                          .earlier = earlier,
                          .status = PARAMO_E_CLOSED,
                          .text = "the wait was interrupted"};
    return cancel(&w);
}

struct waiter {
    struct client *client;
    uint64_t ts;
};

static bool wait_done(void *arg)
{
    struct waiter *w = arg;
    return tracker_done(&w->client->tracker, w->ts) ||
           atomic_load_explicit(&w->client->life->interrupted, memory_order_relaxed);
}

static uint64_t wait_deadline(struct client *c, uint32_t timeout_ms)
{
    return timeout_ms ? lane_now(c->lane) + timeout_ms * ENV_MS : UINT64_MAX;
}

/* Sends the frames that the van gathers. If another thread drives the lane, its rounds do that. */
static void flush_links(struct client *c)
{
    if (!lane_enter(c->lane))
        return;
    for (size_t i = 0; i < links_count(c); i++) {
        const struct link *l = links_at(c, i);
        if (l->conn && l->sent.head)
            van_flush(l->conn);
    }
    lane_leave(c->lane);
}

paramo_err client_wait(struct client *c, uint64_t ts, uint32_t timeout_ms)
{
    struct waiter w = {.client = c, .ts = ts};
    if (!tracker_done(&c->tracker, ts)) {
        flush_links(c);
        paramo_err err = lane_wait(c->lane, wait_done, &w, wait_deadline(c, timeout_ms));
        if (err)
            return err == PARAMO_E_TIMEOUT
                       ? err_set(err, "request %" PRIu64 " has not completed in %u ms", ts, timeout_ms)
                       : err;
        err = tracker_done(&c->tracker, ts) ? PARAMO_OK : cancel_expired(c, ts, false);
        if (err)
            return err;
    }
    return tracker_result(&c->tracker, ts);
}

paramo_err client_wait_status(struct client *c, uint64_t ts, const paramo_err *status)
{
    paramo_err err = client_wait(c, ts, 0);
    assert(err || tracker_done(&c->tracker, ts));
    return err || !*status
               ? err
               : err_set(*status,
                         "request %" PRIu64 " failed (%s); later failures have displaced its message", ts,
                         err_name(*status));
}

struct waiter_all {
    struct client *client;
    struct tracker_all all;
};

static bool wait_all_done(void *arg)
{
    struct waiter_all *w = arg;
    return tracker_all_done(&w->all) ||
           atomic_load_explicit(&w->client->life->interrupted, memory_order_relaxed);
}

paramo_err client_wait_all(struct client *c, uint32_t timeout_ms)
{
    struct waiter_all w = {.client = c};
    tracker_all_begin(&c->tracker, &w.all);
    if (!tracker_all_done(&w.all))
        flush_links(c);
    paramo_err err = lane_wait(c->lane, wait_all_done, &w, wait_deadline(c, timeout_ms));
    if (err)
        return err == PARAMO_E_TIMEOUT ? err_set(err, "requests have not completed in %u ms", timeout_ms)
                                       : err;
    err = tracker_all_done(&w.all) ? PARAMO_OK : cancel_expired(c, w.all.upto, true);
    return err ? err : tracker_all_result(&w.all);
}

paramo_err client_test(struct client *c, uint64_t ts, int *done)
{
    if (ts == 0 || ts > atomic_load(&c->tracker.issued))
        return err_set(PARAMO_E_INVALID, "no request has timestamp %" PRIu64, ts);
    *done = tracker_done(&c->tracker, ts);
    return PARAMO_OK;
}

paramo_err client_answers(struct client *c, uint64_t ts, uint32_t *count)
{
    return tracker_answers(&c->tracker, ts, count);
}

void client_interrupt(struct client *c)
{
    atomic_store(&c->life->interrupted, true);
}

/* ---- counters ---- */

void client_publish(struct client *c)
{
    assert(lane_held(c->lane));
    struct van_counters sum = links_sum(c);
    atomic_store_explicit(&c->shared->published.bytes_sent, sum.bytes_sent, memory_order_relaxed);
    atomic_store_explicit(&c->shared->published.bytes_received, sum.bytes_received, memory_order_relaxed);
    atomic_store_explicit(&c->shared->published.frames_sent, sum.frames_sent, memory_order_relaxed);
    atomic_store_explicit(&c->shared->published.frames_received, sum.frames_received, memory_order_relaxed);
    atomic_store_explicit(&c->shared->published.requests, requests_total(c), memory_order_relaxed);
    atomic_store_explicit(&c->shared->published.retries, c->counts->retries, memory_order_relaxed);
    atomic_store_explicit(&c->shared->published.moved, c->counts->moved, memory_order_relaxed);
}

void client_get_counters(struct client *c, struct client_counters *out)
{
    if (lane_enter(c->lane)) {
        client_publish(c);
        lane_leave(c->lane);
    }
    *out = (struct client_counters){
        .bytes_sent = atomic_load_explicit(&c->shared->published.bytes_sent, memory_order_relaxed),
        .bytes_received = atomic_load_explicit(&c->shared->published.bytes_received, memory_order_relaxed),
        .frames_sent = atomic_load_explicit(&c->shared->published.frames_sent, memory_order_relaxed),
        .frames_received = atomic_load_explicit(&c->shared->published.frames_received, memory_order_relaxed),
        .requests = atomic_load_explicit(&c->shared->published.requests, memory_order_relaxed),
        .retries = atomic_load_explicit(&c->shared->published.retries, memory_order_relaxed),
        .moved = atomic_load_explicit(&c->shared->published.moved, memory_order_relaxed),
        .in_flight = atomic_load(&c->tracker.in_flight),
    };
}
