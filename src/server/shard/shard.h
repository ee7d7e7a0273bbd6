/*
 * A shard: one thread's share of the key space, a state machine on its lane. It owns the partitions that the
 * view gives it, the rows of tables on them, and one record per sender of the numbered chunks that it has
 * applied (applied_window.h).
 *
 *     conn --> peer --> view (MOVED, defer) --> fence --> dedup --> table or handler --> answer --> conn
 *
 * An app endpoint is a shard without tables: it takes messages to the apps of its node, and is otherwise the
 * same.
 *
 * Everything that a peer sends is checked here. A request that is well-formed but wrong gets an error as its
 * answer. A breach of the protocol closes the connection with a reason. It must never know where views come
 * from, or what a value means. Tests: test/server/, test/worker/test_exactly_once_sim.c.
 */
#ifndef SERVER_SHARD_SHARD_H
#define SERVER_SHARD_SHARD_H

#include "base/array.h"
#include "cluster/view/view.h"
#include "env/lane.h"
#include "paramo/types.h"
#include "van/van.h"
#include "wire/hello.h"

struct shard;
struct shard_request; /* one request to a USER table, being handled */

struct shard_request_info {
    const char *table; /* NULL: a message to an app */
    paramo_dtype dtype;
    uint32_t to; /* the node that was asked: this one */
    uint32_t sender, customer, app;
    uint64_t ts;
    int32_t cmd;
    bool push, pull;
    const uint64_t *keys;
    size_t n;
    const void *vals;
    size_t vals_len;      /* values, not bytes (of a message: bytes) */
    const uint32_t *lens; /* or NULL */
    /* messages: app is the receiver's, customer the sender's */
    uint32_t for_customer, flags;
    struct van_seg seg[VAN_SEGS];
};

/* Called on the shard's lane for each new request to a USER table or an app. The handler answers exactly
 * once, now or later, from any thread. info and what it points to stay valid until then. */
typedef void (*shard_handler)(void *arg, struct shard_request *request,
                              const struct shard_request_info *info);

struct shard_config {
    struct lane *lane;
    uint32_t node; /* this node's id; 0: learned from the view, by incarnation */
    uint64_t incarnation;
    unsigned index;        /* which shard of the node */
    uint64_t frame_bytes;  /* the largest answer that is sent */
    uint32_t drop_percent; /* this share of received frames is dropped, for tests */
    struct van *van;       /* to reach other shards by; NULL: it has no part in chains */
    const char *token;     /* the job's; outlives the shard */
    size_t scan_keys; /* of a scan's page, and of a step; 0: as many as memory and time allow. For tests */
    /* senders whose records pass to another owner, or are checked, in one turn; 0: a millisecond's worth. For
     * tests */
    size_t turn_records;
    size_t
        turn_tables; /* new tables of a view that are made in one turn; 0: a millisecond's worth. For tests */
    bool app_endpoint;     /* no tables: messages to this node's apps; index is HELLO_APP_ENDPOINT */
    shard_handler handler; /* NULL: requests to USER tables fail with HANDLER */
    /* Called once, on the lane: the shard cannot continue (this thread's message says why). It stops serving;
     * its node should end, so that members with copies take over. May be NULL. */
    void (*failed)(void *arg, paramo_err status);
    void *arg;
};

MUST_USE paramo_err shard_create(const struct shard_config *config, struct shard **shard);
/* On the lane. An authenticated data connection that names this shard: takes it over, sets its user and frame
 * limit and sends WELCOME (or rejects it). */
void shard_accept(struct shard *shard, struct van_conn *conn, const struct hello *hello);
/* On the lane. Takes its own reference; a view that is not newer is ignored. If it names many new tables, they are made
 * in turns of the lane first; until then the shard has the view before. Without memory for a new table, requests to it
 * answer MEMORY until there is some. */
void shard_set_view(struct shard *shard, struct view *view);
/* On the lane. True: the shard has been given a view that it has not adopted yet, and posts the task again when it has, or
 * is closed. The scheduler's orders presume the views that it has sent before. */
MUST_USE bool shard_defers(struct shard *shard, struct lane_task *task);
/* Any thread: answers that have not left yet. */
size_t shard_unsent(const struct shard *shard);
/* On the lane: closes connections and frees the shard. Handlers may still answer requests that they hold;
 * that has no effect. */
void shard_close(struct shard *shard);

/* Any thread. Answer and free the request. vals and lens are copied; lens NULL or one length per key. */
MUST_USE paramo_err shard_answer(struct shard_request *request, const void *vals, size_t vals_len,
                                 const uint32_t *lens);
MUST_USE paramo_err shard_answer_error(struct shard_request *request, paramo_err status, const char *text);
/* Answers with any segments (to a USER table: lens and values only). Where array[i] is given, segment i is
 * the whole array, and the shard takes its own reference; otherwise seg[i] is copied. */
MUST_USE paramo_err shard_answer_segs(struct shard_request *request, const struct van_seg seg[VAN_SEGS],
                                      struct paramo_array *const array[VAN_SEGS]);
/* Before the answer: segment i of the request, as an array without a copy. */
MUST_USE paramo_err shard_request_keep(struct shard_request *request, unsigned i,
                                       struct paramo_array **array);

struct migration_order;
/* The result of a step of a migration; on an error this thread's message says why. */
typedef void (*shard_migration_done)(void *arg, paramo_err status);
/* On the lane. Carries out the scheduler's order (ORDER_MIGRATION_..., wire/migration_order.h), as far as it
 * concerns this shard. done is called once: from here, from a later round, or from shard_close. */
void shard_migration_order(struct shard *shard, uint32_t what, const struct migration_order *m,
                           shard_migration_done done, void *arg);

struct shard_counters {
    uint64_t slices, repeats, moved, deferred_for_view, dropped;
    uint64_t senders, kept_bytes, view_deferred_bytes, tables_bytes;
};
/* On the lane. */
void shard_get_counters(const struct shard *shard, struct shard_counters *counters);
struct shard_report;
/* On the lane: the report that the scheduler asks for (wire/report.h). Takes time proportional to the
 * senders. */
void shard_get_report(const struct shard *shard, struct shard_report *report);

#endif
