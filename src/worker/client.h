/*
 * The client: one customer's side of push and pull, a state machine on its own lane. It checks a request in
 * the caller's thread (check.h), slices it by the present view, sends the slices over connections that it
 * opens at first use, places answers into the caller's arrays, and sends again what was moved or lost. So a
 * push is applied exactly once (docs/ARCHITECTURE.md), and every request completes exactly once.
 *
 *     any thread   client_issue --> check --> tracker (timestamp)
 *                                                |
 *     the lane                                   v
 *                    slicing --> chunks --> links --> van
 *                                             ^
 *                    complete <-- answers, probes, deadlines
 *
 * It never knows what a server does with a push, which other nodes exist, or where views come from. Tests:
 * test/worker/, test/worker/test_exactly_once_sim.c.
 */
#ifndef WORKER_CLIENT_H
#define WORKER_CLIENT_H

#include <stdatomic.h>

#include "cluster/view/view.h"
#include "env/lane.h"
#include "filter/filter_chain.h"
#include "paramo/types.h"
#include "van/van.h"

struct client;
struct filter_counts;

/* What requests need to know of a table. Plain data; must stay until the client is freed. */
struct client_table {
    uint32_t id;
    uint64_t since;               /* number of the first view that has it */
    paramo_table_options options; /* placement resolved */
    struct ring_placement placement;
    uint32_t value_bytes; /* of one value */
    uint32_t row_values;  /* values of each key: dim; 0 if rows have their own lengths (VAR, USER) */
    uint32_t state_values;
    bool cuttable; /* rows may be split into columns */
    char name[VIEW_NAME_MAX];
};
void client_table_init(struct client_table *t, const struct view_table *from);

enum request_kind {
    REQUEST_PUSH,
    REQUEST_PULL,
    REQUEST_PUSHPULL,
    REQUEST_PUT,    /* kv holds whole rows: vals_len = n * (dim + state), or lens for VAR */
    REQUEST_DELETE, /* kv: keys only */
    REQUEST_CLEAR,  /* no kv; asks every shard */
    REQUEST_STAT,   /* no kv; client_call.stats */
    REQUEST_SCAN,   /* worker/scan.h only */
    REQUEST_MESSAGE /* no table, no kv; client_call.messages */
};

struct client_stats {
    uint64_t rows, nonzero, bytes, pushes, pulls;
};

struct scan_batch;

/* As paramo_message; app and customer are resolved. */
struct client_message {
    uint32_t to, app, customer, flags;
    int32_t head;
    struct van_seg seg[VAN_SEGS];
    void *into;
    size_t into_len;
};

struct client_reply {
    uint32_t node, message;
    int32_t head;
    bool placed;
    struct van_seg seg[VAN_SEGS];
    struct van_hold *hold; /* of the segments that were not placed */
};
/* As paramo_reply_fn; `to` is the application's function, whose type is not known here. */
typedef void (*client_reply_fn)(void (*to)(void), void *arg, uint64_t ts, const struct client_reply *reply);

struct client_call {
    enum request_kind kind;
    const struct client_table *table;
    const paramo_kv *kv;                   /* NULL for CLEAR, STAT */
    const paramo_request_options *options; /* NULL: defaults; whole (the API has completed a shorter one) */
    bool with_state;                       /* PUT */
    struct client_stats *stats;            /* STAT: the sum over shards, written before it completes */
    struct scan_batch *batch;              /* SCAN */
    /* MESSAGE */
    const struct client_message *messages;
    size_t messages_count;
    client_reply_fn on_reply; /* or NULL */
    void (*reply_to)(void);
    void *reply_arg;
};

struct client_config {
    struct lane *lane; /* the client's own */
    struct van *van;
    struct view *view; /* the present one; the client takes a reference of its own */
    uint32_t node;     /* this node's id and incarnation */
    uint64_t incarnation;
    uint32_t app, customer;
    const char *token;           /* copied */
    const char *scheduler;       /* copied; NULL: no messages to the scheduler */
    uint64_t frame_bytes;        /* the longest frame that is sent or received */
    uint32_t request_timeout_ms; /* default deadline */
    uint32_t connect_timeout_ms; /* of one attempt */
    uint32_t retry_ms;           /* when an unanswered slice is probed; 0: as measured */
    uint32_t chunk_bytes;        /* the approximate size of a chunk; 0: CHUNK_BYTES */
    uint32_t list_keys;          /* the shortest list of keys that is remembered; 0: KEYLISTS_KEYS_MIN */
    uint32_t list_bytes;         /* of the lists that a connection remembers; 0: KEYLISTS_BYTES */
    uint32_t drop_percent;       /* the share of received frames that is dropped, for tests */
    /* of all tables, as far as they fit them, unless client_filter says otherwise */
    struct filter_chain filters[FILTER_DIRECTIONS];
    /* On the lane, from a step: the client needs a view of at least this number. May be called more than once
     * for it. */
    void (*need_view)(void *arg, uint64_t number);
    /* Any thread: a callback waits in client_run_callbacks (only after client_defer_callbacks). */
    void (*callbacks_pending)(void *arg);
    void *arg;
};

/* ---- life ---- */

/* Not on the lane. */
MUST_USE paramo_err client_create(const struct client_config *config, struct client **client);
/* Any thread, not on a lane: ends requests in flight with CLOSED, runs or waits for their callbacks, closes
 * the connections. Later calls answer CLOSED. */
void client_close(struct client *client);
/* After client_close, when no thread is inside a call. */
void client_free(struct client *client);

/* On the lane. No server will answer this client again: requests in flight end with this status, and so does
 * each later one. The first call counts. */
void client_fail(struct client *client, paramo_err status, const char *text);

/* On the lane. Takes a reference of its own; a view that is not newer is ignored. */
void client_set_view(struct client *client, struct view *view);

/* ---- requests: any thread ---- */

/* Checks, takes a timestamp, and begins. When the queue is full: drives the lane until there is room, or the
 * request's timeout (TIMEOUT); AGAIN at once with PARAMO_NOWAIT, in a callback, or on a lane. */
MUST_USE paramo_err client_issue(struct client *client, const struct client_call *call, uint64_t *ts);
bool client_has_room(struct client *client);
/* As paramo_wait, paramo_wait_all, paramo_test, paramo_cancel. */
MUST_USE paramo_err client_wait(struct client *client, uint64_t ts, uint32_t timeout_ms);
MUST_USE paramo_err client_wait_all(struct client *client, uint32_t timeout_ms);
MUST_USE paramo_err client_test(struct client *client, uint64_t ts, int *done);
MUST_USE paramo_err client_cancel(struct client *client, uint64_t ts);
/* As paramo_answers. */
MUST_USE paramo_err client_answers(struct client *client, uint64_t ts, uint32_t *count);
/* Async-signal-safe: waits end with CLOSED when they next wake (the node posts to the lane). */
void client_interrupt(struct client *client);

/* From now on callbacks wait for client_run_callbacks, which runs them one at a time. */
void client_defer_callbacks(struct client *client);
void client_run_callbacks(struct client *client);

/* On the lane. Sets the chain of filters of a table and direction, for frames that leave from now on. MEMORY;
 * UNSUPPORTED: a filter does not fit the table. */
MUST_USE paramo_err client_filter(struct client *client, const struct client_table *table,
                                  enum filter_direction direction, const struct filter_chain *chain);

/* On the lane. Adds what the client's filters have done. */
void client_filter_counts(const struct client *client, struct filter_counts *sum);

struct client_counters {
    uint64_t bytes_sent, bytes_received, frames_sent, frames_received;
    uint64_t requests, retries, moved, in_flight;
};
/* Any thread; a snapshot as of the lane's last round. */
void client_get_counters(struct client *client, struct client_counters *counters);

#endif
