/* The inside of a store in etcd, for store_etcd*.c only. */
#ifndef CLUSTER_META_STORE_ETCD_IMPL_H
#define CLUSTER_META_STORE_ETCD_IMPL_H

#include "base/queue.h"
#include "cluster/meta/etcd.h"
#include "cluster/meta/store_etcd.h"
#include "cluster/session/address.h"

/*
 * One request is on its way at a time, as a blocking job; `turn` chooses the next: the lease before saves,
 * since everything rests on it. A request that may have been done although its answer was lost leaves
 * `head_known` false: the next save asks for head's revision first, and compares that, too, so that an old
 * request that arrives late changes nothing.
 *
 *   OPEN --start--> ADMIN_VIEW --nobody leads--> GRANT --> CAMPAIGN --> READ --> READY
 *                     ^---- somebody does, or etcd does not answer ----'
 */
enum {
    ENDPOINTS_MAX = 8,
    JOB_MAX = 64,
    TTL_S = 5,
    PIECE = 512 << 10, /* etcd takes 1.5 MiB at a time, unless told otherwise */
    PIECES_A_PAGE = 8, /* that an answer may hold */
    ANSWER_MAX = 16 << 20,
    POLL_MS = 500,    /* between looks at who leads */
    AGAIN_MS = 200,   /* after an error */
    SILENT_MS = 2000, /* before it is said that etcd does not answer */
    SHORT_MS =
        1000, /* for an answer: a third of a lease, a short request and a long one are less than one lease */
    LONG_MS = 2000,
};
#define LOG_BYTES_MAX ((uint64_t)STORE_BYTES_MAX * 4)

enum phase { PHASE_OPEN, PHASE_WATCH, PHASE_GRANT, PHASE_CAMPAIGN, PHASE_READ, PHASE_READY };

/* What `head` says. first 0: nothing was ever saved. */
struct head {
    uint64_t first, last, pieces, bytes;
};

struct save {
    struct save *next;
    struct writer records;
    bool whole;
    uint64_t number; /* 0: not begun */
    uint32_t pieces; /* that are there */
    store_saved_fn *done;
    void *arg;
};

struct etcd_store {
    struct store store;
    struct store_etcd_config config;
    char endpoint[ENDPOINTS_MAX][ADDRESS_MAX];
    unsigned endpoints, endpoint_at;
    char prefix[16 + JOB_MAX], name[ADDRESS_MAX];
    enum phase phase;
    bool closed, inside; /* inside: a callback may be under way, so that it is not freed */
    bool fenced;         /* another has begun to lead */
    char fenced_by[ADDRESS_MAX + 32];
    struct lane_timer timer;

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
    uint64_t look_at, give_up_at; /* 0: never; it has answered */
    uint64_t silent_since;
    bool silent;         /* which was said */
    uint32_t waited_for; /* the term of whoever was seen to lead; 0: nobody */
    char told[ADDRESS_MAX];
    struct writer found;
    char read_from[ETCD_KEY_MAX];
    uint64_t pieces_found;

    uint32_t term;
    uint64_t fence; /* revision in which the term was raised */
    uint64_t lease; /* 0: none */
    bool leads;     /* the key of who leads is ours, as far as is known */
    uint64_t sure_until, lease_due, granted_at;
    uint32_t ttl_s;
    struct head head;
    uint64_t head_changed;   /* its revision; 0: it is not there */
    bool head_known, broken; /* a save has failed: nothing but a whole one is taken */
    uint32_t counter;
    struct save *first, *last;
};

static inline uint64_t meta_now(const struct etcd_store *s)
{
    return lane_now(s->config.lane);
}

/* The next request, if none is on its way (store_etcd.c). */
void meta_turn(struct etcd_store *s);

/* ---- store_etcd_ask.c ---- */

struct key {
    char text[ETCD_KEY_MAX];
};

struct key meta_key(const struct etcd_store *s, const char *name);
/* Of a piece; in order of numbers, then pieces, which end before the next number begins. */
struct key meta_record_key(const struct etcd_store *s, uint64_t number, uint32_t piece);
struct key meta_record_end(const struct etcd_store *s, uint64_t number);
/* What is asked is in s->body. then(s, err) is called on the lane, with s->answer; it asks nothing itself. */
void meta_call(struct etcd_store *s, const char *path, uint32_t timeout_ms,
               void (*then)(struct etcd_store *s, paramo_err err));
void meta_txn(struct etcd_store *s, struct etcd_txn *txn, uint32_t timeout_ms,
              void (*then)(struct etcd_store *s, paramo_err err));
/* Only while nobody else has begun to lead. */
void meta_compare_fence(const struct etcd_store *s, struct etcd_txn *txn);
/* Who leads, and what counts. */
void meta_range(const struct etcd_store *s, struct writer *list);
/* A value as text; empty if there is none. */
void meta_text(const struct etcd_kv *kv, char *text, size_t capacity);
/* False: it is none that a scheduler writes. */
bool meta_term_read(const struct etcd_answer *answer, const struct etcd_store *s, uint32_t *term);
bool meta_head_read(const struct etcd_answer *answer, const struct etcd_store *s, struct head *head,
                    uint64_t *changed);
/* A transaction did not hold: has somebody else begun to lead? Then this store is done, for good. */
bool meta_fenced(struct etcd_store *s, const struct etcd_answer *answer);
paramo_err meta_fenced_text(const struct etcd_store *s);

/* ---- store_etcd_start.c ---- */

void meta_watch_in(struct etcd_store *s, uint32_t ms);
void meta_watch(struct etcd_store *s);
void meta_granted(struct etcd_store *s, paramo_err err);
void meta_campaign(struct etcd_store *s);
void meta_read_page(struct etcd_store *s);

/* ---- store_etcd_lead.c ---- */

void meta_grant(struct etcd_store *s, void (*then)(struct etcd_store *s, paramo_err err));
/* From the moment at which it was asked for. */
void meta_lease_lasts(struct etcd_store *s, uint64_t asked_at, uint32_t ttl_s);
MUST_USE paramo_err meta_lease_taken(struct etcd_store *s, paramo_err err);
void meta_lease_call(struct etcd_store *s);
/* The first save's next request. */
void meta_save_call(struct etcd_store *s);
/* Ends saves that need not be tried. */
void meta_saves_fail(struct etcd_store *s);
paramo_err meta_broken_text(void);

#endif
