/*
 * What a request and a client are made from: plain data for client.h and for the parts of the client. It never knows
 * what a part does. Tests: test/worker/test_client.c.
 */
#ifndef WORKER_CLIENT_TYPES_H
#define WORKER_CLIENT_TYPES_H

#include "cluster/view/view.h"
#include "env/lane.h"
#include "filter/filter_chain.h"
#include "paramo/functions.h"
#include "paramo/range.h"
#include "van/van.h"
#include "wire/head.h"

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
    bool splittable; /* rows may be split into columns */
    char name[VIEW_NAME_MAX];
};
enum request_kind {
    REQUEST_PUSH,
    REQUEST_PULL,
    REQUEST_PUSHPULL,
    REQUEST_PUT,       /* kv holds whole rows: vals_len = n * (dim + state), or lens for VAR */
    REQUEST_DELETE,    /* kv: keys only */
    REQUEST_TRANSFORM, /* kv: keys only; client_call.transform, and perhaps other */
    REQUEST_CLEAR,     /* no kv; asks every shard */
    REQUEST_STAT,      /* no kv; client_call.stats */
    REQUEST_SCAN,      /* worker/scan.h only */
    REQUEST_REDUCE,    /* no kv; client_call.reduction */
    REQUEST_PAGE,      /* no kv; client_call.page */
    REQUEST_MESSAGE,   /* no table, no kv; client_call.messages */
    REQUEST_FLUSH      /* no kv: what filters hold back of the table is sent (carrying.h) */
};

struct client_stats {
    uint64_t rows, nonzero, bytes, pushes, pulls;
};

struct scan_batch;
struct transform;

/* As paramo_message; app and customer are resolved. */
struct client_message {
    uint32_t to, app, customer, flags;
    int32_t head;
    uint32_t copied; /* bits of the segments whose bytes are copied, even without PARAMO_COPY */
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
    /* PUSH, PULL, PUSHPULL: kv->keys is NULL; its n keys are those from `begin` on, without overflow */
    bool range;
    uint64_t begin;
    bool with_state; /* PUT */
    /* PUSH and PULL of an aggregated table: the worker's clock, and the number of workers that count when all have
     * reached it; 0: that is not known yet, and client_clock_reached says it. */
    bool clocked;
    uint64_t clock;
    uint32_t workers;
    struct client_stats *stats;        /* STAT: the sum over shards, written before it completes */
    struct scan_batch *batch;          /* SCAN */
    paramo_page *page;                 /* PAGE: written before it completes */
    const struct transform *transform; /* TRANSFORM; copied */
    paramo_reduction *reduction;       /* REDUCE: written before it completes, but for `other` ... */
    const struct client_table *other;  /* ... which is this, or NULL */
    paramo_err *status;                /* its status is written there before it completes; NULL: nowhere */
    /* MESSAGE */
    const struct client_message *messages;
    size_t messages_count;
    client_reply_fn on_reply; /* or NULL */
    void (*reply_to)(void);
    void *reply_arg;
};

/* Of each row of a PUSH, PULL or PUSHPULL; count 0: all. */
static inline struct wire_columns client_call_columns(const struct client_call *call)
{
    const paramo_request_options *o = call->options;
    return o ? (struct wire_columns){.first = o->column, .count = o->columns} : (struct wire_columns){0};
}

struct client_config {
    struct lane *lane; /* the client's own */
    struct van *van;
    struct view *view; /* the present one; the client takes a reference of its own */
    uint32_t node;     /* this node's id, 0 for a reader, and incarnation */
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
    uint32_t portion_keys; /* of a request are sliced in one turn; 0: a millisecond's worth. For tests */
    uint32_t turn_keys;    /* sliced again in one turn after a view; 0: a millisecond's worth. For tests */
    uint64_t held_bytes;   /* that filters may hold back; 0: CARRYING_HELD_MAX */
    uint32_t drop_percent; /* the share of received frames that is dropped, for tests */
    /* of all tables, as far as they fit them, unless client_filter says otherwise */
    struct filter_chain filters[FILTER_DIRECTIONS];
    /* On the lane, from a step: the client needs a view of at least this number. May be called more than once
     * for it. */
    void (*need_view)(void *arg, uint64_t number);
    /* On the lane, from a step: a request is held until all workers have reached this clock. client_clock_reached,
     * _behind or _lost must follow. NULL: no request has at_clock. */
    void (*need_clock)(void *arg, uint64_t clock);
    /* Any thread: a callback waits in client_run_callbacks (only after client_defer_callbacks). */
    void (*callbacks_pending)(void *arg);
    void *arg;
};

struct client_counters {
    uint64_t bytes_sent, bytes_received, frames_sent, frames_received;
    uint64_t requests, retries, moved, in_flight;
};

#endif
