/*
 * The state of a store in etcd, which store_etcd.c (the store), store_etcd_call.c (one request),
 * store_etcd_start.c and store_etcd_lead.c share. No other product code includes it.
 *
 * One request is on its way at a time, as a blocking job. `turn` chooses the next. The lease comes before saves,
 * because every save depends on it. After a request whose answer was lost, `head_known` is false: the next save reads
 * the revision of `head` first and compares it, so a lost request that arrives late changes nothing.
 *
 *   OPEN --start--> WATCH --no leader--> GRANT --> CAMPAIGN --> READ --> READY
 *                     ^                                |
 *                     '-- another leads, or no answer -'
 *
 * Tests: test/cluster/test_store_etcd.c, test/cluster/test_lead.c.
 */
#ifndef CLUSTER_META_STORE_ETCD_IMPL_H
#define CLUSTER_META_STORE_ETCD_IMPL_H

#include <assert.h>

#include "base/queue.h"
#include "cluster/meta/etcd.h"
#include "cluster/meta/store.h"
#include "cluster/session/address.h"
#include "env/blocking_job.h"
#include "env/http.h"

enum {
    ENDPOINTS_MAX = 8,
    JOB_MAX = 64,
    TTL_S = 5,
    PIECE = 512 << 10, /* etcd takes 1.5 MiB at a time by default */
    PIECES_A_PAGE = 8, /* in one answer */
    ANSWER_MAX = 16 << 20,
    POLL_MS = 500,    /* between checks of the leader */
    AGAIN_MS = 200,   /* after an error */
    SILENT_MS = 2000, /* until a warning that etcd does not answer */
    /* for an answer: a third of a lease; a short and a long request together take less than a lease */
    SHORT_MS = 1000,
    LONG_MS = 2000,
};
#define LOG_BYTES_MAX ((uint64_t)STORE_BYTES_MAX * 4)

enum phase { PHASE_OPEN, PHASE_WATCH, PHASE_GRANT, PHASE_CAMPAIGN, PHASE_READ, PHASE_READY };

/* The value of `head`. first 0: nothing was ever saved. */
struct head {
    uint64_t first, last, pieces, bytes;
};

struct save {
    struct save *next;
    struct writer records;
    bool whole;
    uint64_t number; /* 0: not begun */
    uint32_t pieces; /* stored so far */
    store_saved_fn *done;
    void *arg;
};

struct etcd_store {
    struct store store;
    struct lane *lane;
    struct blocking_jobs *blocking_jobs;
    struct http *http;
    uint32_t patience_ms; /* of store_start */
    char endpoint[ENDPOINTS_MAX][ADDRESS_MAX];
    unsigned endpoints, endpoint_at;
    char prefix[16 + JOB_MAX], name[ADDRESS_MAX];
    enum phase phase;
    bool closed, inside; /* inside: a callback may be running, so the store is not freed */
    bool fenced;         /* another scheduler has taken the lead */
    char fenced_by[ADDRESS_MAX + 32];
    struct lane_timer timer;
    void (*turn)(struct etcd_store *s); /* sends the next request, unless one is on its way; may free s */

    /* the request on its way */
    struct blocking_job blocking_job;
    bool asking;
    char url[ADDRESS_MAX + 64];
    struct writer body, answer;
    uint32_t timeout_ms;
    uint64_t asked_at;
    paramo_err status;
    char text[ERR_TEXT_MAX];
    void (*then)(struct etcd_store *s, paramo_err err);

    /* the start */
    store_started_fn *started;
    void *started_arg;
    uint64_t look_at, give_up_at; /* 0: never, since etcd has answered */
    uint64_t silent_since;
    bool silent;         /* the warning was logged */
    uint32_t waited_for; /* the term of the leader that was waited for; 0: none */
    char told[ADDRESS_MAX];
    struct writer found;
    char read_from[ETCD_KEY_MAX];
    uint64_t pieces_found;

    uint32_t term;
    uint64_t fence; /* revision in which the term was raised */
    uint64_t lease; /* 0: none */
    bool leads;     /* the key `leader` is ours, as far as is known */
    uint64_t sure_until, lease_due, granted_at;
    uint32_t ttl_s;
    struct head head;
    uint64_t head_changed;   /* its revision; 0: no such key */
    bool head_known, broken; /* broken: a save has failed: only a whole one is accepted */
    uint32_t counter;
    struct save *first, *last;
};

/* A scheduler that was fenced is never sure again. */
static inline void etcd_store_check(const struct etcd_store *s)
{
    assert(s->endpoint_at < s->endpoints && (!s->fenced || !s->sure_until));
    assert(s->phase != PHASE_READY || s->term);
}

static inline uint64_t meta_now(const struct etcd_store *s)
{
    return lane_now(s->lane);
}

#endif
