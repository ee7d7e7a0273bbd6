/*
 * The inside of a shard, for src/server only: who owns what. Everything is the lane's, unless it says
 * otherwise.
 *
 *     shard.c     life, views, tables, senders, peers
 *     slice.c     one request from arrival to its fate: park, refuse, dedup, keep for later, probe
 *     apply.c     what built-in tables do with it
 *     parted.c    the same where part of its keys were done elsewhere before
 *     handling.c  requests to USER tables: handed over, answered later, answers kept
 *     scanning.c  batches of rows, and counts of them
 *     clearing.c  rows that go many at a time
 *     deferred.c  those that take longer than a step of the lane
 *     clocks.c    which chunks of a sender have been done, and on which partitions
 *     reply.c     answers and their memory
 *     saving.c    its part of a checkpoint; loading.c: and back, or only what is lost
 */
#ifndef SERVER_SHARD_SHARD_IMPL_H
#define SERVER_SHARD_SHARD_IMPL_H

#include <stdatomic.h>

#include "base/bufpool.h"
#include "base/map.h"
#include "base/mutant.h"
#include "base/spread.h"
#include "env/hugemem.h"
#include "ring/partition_set.h"
#include "server/shard/applied_window.h"
#include "server/shard/rowcache.h"
#include "server/shard/shard.h"
#include "table/table_page.h"
#include "wire/data.h"

/* Bounds; arbitrary where nothing else is said. */
enum {
    SHARD_SENDERS_MAX = 1 << 16,
    SHARD_SENDER_BUCKETS = 1 << 12,
    SHARD_VIEW_DEFERRED_MAX = 1 << 14, /* slices that wait for a view */
    SHARD_VIEW_DEFERRED_BYTES = 256 << 20,
    SHARD_VIEW_DEFERRED_SECONDS = 60,
    SHARD_UNKNOWN_SENDER_SECONDS = 60,   /* a connection of an incarnation that no view has had */
    PEER_DEFERRED_MAX = 2 * DATA_WINDOW, /* slices that wait for answers to leave */
    PEER_DEFERRED_BYTES = 64 << 20,
    SENDER_KEPT_BYTES = 256 << 20,  /* answers of handlers to one sender, until its floor passes */
    SHARD_HANDLING_BYTES = 1 << 30, /* of requests that handlers have; one may always be */
    SHARD_POOL_BYTES = 64 << 20,    /* free buffers kept */
    SCAN_SESSIONS_MAX = 64,
    SCAN_SESSION_SECONDS = 60,
    SCAN_BATCH_BYTES = 256 << 10,
    SCAN_BYTES = 256 << 20, /* of the keys of all scans */
    /* Looked at in one step. A page of new keys takes 0.1 to 1 ms for so many (bench/scan.sh). */
    SCAN_STEP_KEYS = 1 << 16,
    SHARD_DEFERRED_MAX = 1 << 12
};

struct shard_table {
    uint32_t id;
    char name[VIEW_NAME_MAX];
    paramo_table_options options;
    struct ring_placement placement;
    uint32_t value_bytes, row_values, state_values;
    struct hugemem memory;       /* of the table */
    struct table *table;         /* NULL: USER, or there was no memory yet */
    bool lacks;                  /* memory: for the table, or for rows of partitions that are ours by now */
    struct saving_table *saving; /* a checkpoint takes its rows */
    unsigned replicas;           /* members of a chain up to this level have its rows */
    bool known;                  /* by a view before the present one */
    bool lost;                   /* on any of these partitions ... */
    uint64_t lost_partitions[RING_PARTITIONS /
                             64]; /* ... rows pushed to whoever had them before are gone; until CLEAR */
    struct rowcache rows;         /* SPARSE: of the lists asked for last */
    uint64_t pushes, pulls;       /* keys */
    uint64_t held[RING_PARTITIONS / 64];     /* DENSE: partitions whose rows the table has */
    uint64_t returns[RING_PARTITIONS / 64];  /* of those lost: what is being restored (loading.c) */
    bool clears;                             /* on any of these partitions ... */
    uint64_t clearing[RING_PARTITIONS / 64]; /* ... all rows are gone, though not removed yet (clearing.c) */
    uint64_t clear_at; /* they are removed in order of their hashes, DENSE: of rows; so far */
    bool remains;      /* there is memory to be freed of what the table had */
};

struct chain;
struct chain_wait;

struct sender {
    struct sender *prev, *next;
    struct sender *bucket_next; /* of those in its bucket */
    uint32_t node, app, customer;
    uint64_t incarnation;
    uint64_t checked; /* number of the view by which `fenced` is right */
    bool fenced;      /* the view says that this incarnation is over */
    bool known;       /* a view has had this incarnation alive */
    unsigned peers;
    struct peer *peer;                    /* its latest connection, or NULL */
    struct applied_window applied_window; /* what of it has been applied */
    struct shard_request **handled;       /* DATA_WINDOW of them, by number; NULL until a handler is used */
    size_t kept_bytes;                    /* of its answers */
    struct chain_wait *pending;           /* changes that followers have not acknowledged yet */
    uint64_t over; /* a customer that gave out no number from this one on has been closed; 0: none has */
    bool behind;   /* followers may have records of it that say more than their floor */
    uint64_t told; /* the floor that they were told last */
};

struct peer {
    struct shard *shard;
    struct peer *prev, *next;
    struct van_conn *conn;
    struct sender *sender;
    uint64_t since;        /* its HELLO */
    struct queue backlog;  /* answers that the van refused */
    struct queue deferred; /* struct kept: slices that wait until the backlog is gone */
    struct queue behind;   /* the same, while slice_resume_view_deferred looks at those before them */
    size_t deferred_count, deferred_bytes;
    bool blocked;
    struct reply **capture; /* the next answer is not sent but put here */
    bool broken;            /* closed at the end of slice_resume_view_deferred */
};

/* A slice that could not be handled at once. */
struct kept {
    struct qnode node;
    struct peer *peer;
    struct wire_head head;
    struct van_seg seg[VAN_SEGS];
    unsigned nseg;
    struct van_hold *hold;
    size_t bytes;
    uint64_t deadline;
};

/* A handler's answer, shared by the record and the frames that carry it: segments lie in data, or in an
 * array. */
struct kept_answer {
    atomic_uint refs;
    size_t bytes; /* of all segments */
    unsigned nseg;
    struct van_seg seg[VAN_SEGS];
    struct paramo_array *array[VAN_SEGS];
    _Alignas(8) uint8_t data[];
};

struct reply {
    struct van_frame frame;
    struct shard *shard;
    struct reply *next;
    void *buffer; /* the shard's pool */
    size_t buffer_bytes;
    bool lent; /* the last segment is the table's; the buffer has room for it */
    struct kept_answer *kept;
};

/* What outlives the shard while handlers hold requests. */
struct gate {
    atomic_uint refs;
    atomic_uint posting;
    atomic_bool closed;
    struct lane *lane;
};

struct shard_request {
    struct lane_task task;
    struct gate *gate;
    struct shard *shard;
    struct sender *sender; /* NULL: nobody waits any more */
    struct wire_head head; /* of the latest attempt */
    uint64_t keys_hash;
    struct shard_request_info info;
    char table[VIEW_NAME_MAX];
    struct van_hold *hold;
    size_t bytes;                      /* held */
    struct shard_request *prev, *next; /* shard->handling */
    bool answered;
    paramo_err status;
    struct kept_answer *answer; /* the body is a text when status is an error */
};

struct session {
    struct session *next;
    uint32_t node, app, customer, id, table;
    uint64_t incarnation;
    uint64_t used_at;
    uint64_t partitions_changed; /* of the shard when the page was begun */
    struct table_page page;      /* being found, or there, or closed */
    uint64_t asked, past; /* of who asked from there all keys before `past` have turned out to have no row */
    bool over;            /* its last row has been given */
};

struct shard {
    struct shard_config config;
    struct lane *lane;
    struct view *view;
    int self; /* our index in the view, or -1 */
    uint64_t partitions_changed, chain_changed;
    struct chain *chain; /* NULL: a host, or a shard that has no van to reach others by */
    bool owns_all;
    uint64_t runs[PARTITION_WORDS]; /* where runs of partitions begin that have the same chain in the view */
    struct map tables;              /* by id */
    struct shard_table *last;       /* the table asked for last */
    struct sender *senders;
    struct sender *sender_buckets[SHARD_SENDER_BUCKETS]; /* the same, by name */
    size_t senders_count;
    struct peer *peers;
    struct queue deferred_for_view; /* struct kept */
    bool adopting_view;             /* a view is being taken: what waits comes behind what is parked */
    size_t view_deferred_count, view_deferred_bytes;
    struct shard_request *handling;
    struct gate *gate;
    size_t kept_bytes, handling_bytes;
    struct session *sessions, *closing; /* closing: their pages' memory is being let go */
    unsigned sessions_count;
    struct queue deferred, deferred_held; /* struct deferred: in turn; until they may be handled again */
    size_t deferred_count;
    const struct deferred *deferred_over; /* is being handled again */
    struct lane_timer deferring;
    struct saving *saving;      /* NULL: none goes on */
    struct saving *saving_left; /* given up, and the blocking job that removes the file is not over */
    uint64_t
        saved_id; /* the checkpoint since which changes are known, of all partitions that we own; 0: none */
    struct loading *loading; /* the same */
    uint64_t loads;          /* begun so far */
    uint64_t load_aborted;   /* id of the last that ended before GO came; 0: none, or one was loaded since */
    bool restoring;          /* rows of ours are lost, and about to be restored: requests wait */
    struct lane_timer clearing; /* the next step */
    unsigned clears;            /* tables of which rows are being removed */
    bool cleared;               /* of one they have been: what waits for it may go on */
    struct lane_timer housekeeping;
    struct lane_timer trimming;   /* memory that tables have freed goes back */
    struct lane_timer furnishing; /* tables that lack memory try again */
    struct bufpool pool;
    struct reply *free_replies;
    size_t free_replies_count;
    _Atomic size_t replies_out; /* written on the lane */
    struct shard_counters counters;
    struct spread pauses; /* of partitions that were being given away: microseconds */
};

/* ---- shard.c ---- */
void shard_keep_house(struct shard *s);
struct shard_table *shard_table_find(struct shard *s, uint32_t id);
/* What was pushed to these partitions (NULL: all) is gone, or is not any more: cleared, or loaded. */
void shard_table_lose(struct shard_table *t, const uint64_t *partitions, bool lost);
/* What its memory is, what it has freed and still holds included. */
uint64_t shard_table_bytes(const struct shard_table *t);
/* Soon, a table that lacks memory tries again. */
void shard_table_again(struct shard *s);
/* DENSE: rows of partitions that are held, or about to be, and were not before. */
MUST_USE paramo_err shard_table_own(struct shard *s, struct shard_table *t);
/* NULL: there is none. */
struct sender *shard_sender_find(const struct shard *s, uint32_t node, uint32_t app, uint32_t customer,
                                 uint64_t incarnation);
/* Found or made; NULL: no memory. */
struct sender *shard_sender(struct shard *s, uint32_t node, uint32_t app, uint32_t customer,
                            uint64_t incarnation);
/* The connection is closed already: frees the peer, and its sender when nothing is left of it. */
void shard_peer_forget(struct shard *s, struct peer *peer);

/* ---- slice.c ---- */
extern const struct van_user shard_van_user;
/* Whatever the sender has given out below this is over, wherever it was done. */
void shard_floor(struct shard *s, struct sender *sender, uint64_t floor);
/* What waited for a view is handled. */
void slice_resume_view_deferred(struct shard *s);
/* Parked slices of this peer (NULL: of all), or past their deadline, are let go. */
void slice_drop_view_deferred(struct shard *s, const struct peer *peer, uint64_t now);
void slice_drop_deferred(struct peer *peer);
/* The backlog has left: slices that waited are handled. An error closes the connection. */
MUST_USE paramo_err slice_resume(struct peer *peer);
void slice_resume_all(struct shard *s);
/* May a slice that reads be handled now? */
bool slice_may_read(const struct peer *peer, const struct wire_head *head, const struct van_seg *seg);
/* It is, once more; an error closes the connection. */
void slice_handle_again(struct peer *peer, const struct wire_head *head, const struct van_seg *seg,
                        unsigned nseg);

/* ---- saving.c, loading.c ---- */
/* A change that must wait: rows that it changes are to be saved, and the disk is behind. */
bool saving_holds(const struct shard *s, const struct wire_head *h, const struct van_seg *seg);
/* Rows of the table that are removed are to be saved first, and the disk is behind. */
bool saving_behind(const struct shard *s, const struct shard_table *t);
void saving_close(struct shard *s);
/* The shard has another view: what a scheduler of an earlier term has ordered is given up, and not in the way
 * of the next, although a blocking job may be at it still. */
void saving_new_view(struct shard *s);
/* CANCELLED: a scheduler of an earlier term has ordered it. */
MUST_USE paramo_err saving_check_term(const struct shard *s, uint32_t term);
/* What is under way to those who follow has to be acknowledged before the checkpoint is whole. */
void saving_mark(struct shard *s);
/* Something was acknowledged, or the view is another. */
void saving_check(struct shard *s);
void loading_close(struct shard *s);
/* Something was acknowledged, or the view is another. */
void loading_check(struct shard *s);
/* Sets s->restoring: by the view, and by what of it has not been done yet. */
void loading_update(struct shard *s);

/* ---- reply.c ---- */
/* Answers head with a status; text only for errors. */
void reply_status(struct peer *peer, const struct wire_head *head, paramo_err status, const char *text);
void reply_moved(struct peer *peer, const struct wire_head *head);
void reply_probe(struct peer *peer, const struct wire_head *head, uint32_t what);
/* A reply with room for the bytes in its buffer; NULL: an error has been answered. */
struct reply *reply_begin(struct peer *peer, const struct wire_head *head, size_t bytes);
void reply_seg(struct reply *reply, unsigned seg, size_t offset, size_t bytes);
/* Segment seg, the last, lies in memory that may change after reply_send; the buffer has room for it. */
void reply_lend(struct reply *reply, unsigned seg, const void *data, size_t bytes);
void reply_send(struct peer *peer, struct reply *reply, const struct wire_head *head, bool lens,
                uint32_t count, uint32_t column);
/* A captured answer, to the latest attempt. */
void reply_late(struct peer *peer, struct reply *reply, const struct wire_head *head);
void reply_kept(struct peer *peer, const struct wire_head *head, paramo_err status, struct kept_answer *kept);
void reply_free(struct reply *reply);
void reply_backlog(struct peer *peer);
void kept_unref(struct kept_answer *kept);

/* ---- apply.c ---- */
/* Applies or reads and answers; the record of the number is made with the update. An error closes the
 * connection. repeated: applied before, only the answer is wanted. */
MUST_USE paramo_err apply_slice(struct peer *peer, struct shard_table *t, const struct wire_head *head,
                                const struct van_seg *seg, unsigned nseg, bool repeated);
/* Does this shard own all of the keys? */
bool apply_owned(const struct shard *s, const struct ring_placement *placement, const uint64_t *keys,
                 size_t n);
#define APPLY_CHANGED "; leave a request's arrays as they are until it completes, or use PARAMO_COPY"
/* They ascend, and a dense table has them. */
MUST_USE paramo_err apply_check_order(const struct shard_table *t, const uint64_t *keys, size_t n);
MUST_USE paramo_err apply_check_keys(const struct shard *s, const struct shard_table *t, const uint64_t *keys,
                                     size_t n);

/* Does to the table what a checked request says, all of it or, with an error, nothing. known: the rows of its
 * keys, or NULL. */
MUST_USE paramo_err apply_change(struct shard_table *t, const struct wire_head *head,
                                 const struct van_seg *seg, struct rowcache_list *known);

/* Without regard to who owns them. */
MUST_USE paramo_err apply_check_rows(const struct shard_table *t, const struct wire_head *head,
                                     const struct van_seg *seg, unsigned nseg);

/* ---- parted.c ---- (partitions: one bit each) */
/* apply_change to those rows that lie on partitions. */
MUST_USE paramo_err partial_apply(struct shard *s, struct shard_table *t, const struct wire_head *head,
                                  const struct van_seg *seg, unsigned nseg,
                                  const uint64_t partitions[RING_PARTITIONS / 64]);
/* Those rows of a request that lie on partitions (NULL: all), gathered in a buffer: its size, and head and
 * segments of them. */
size_t rows_some_bytes(const struct wire_head *head, const struct van_seg *seg, unsigned nseg);
void rows_some(const struct shard_table *t, const struct wire_head *head, const struct van_seg *seg,
               const uint64_t *partitions, uint8_t *buffer, struct wire_head *some_head,
               struct van_seg some[3]);

/* ---- clearing.c ---- */
/* All rows of these partitions (NULL: of the table, which has no others) are gone from now on: dense ones are
 * what they were at first. Needs no memory. */
void clearing_begin(struct shard *s, struct shard_table *t, const uint64_t *partitions);
/* Are rows there on any of these partitions that are gone? Nothing may be read there, nor come. */
bool clearing_touches(const struct shard_table *t, const uint64_t *partitions);
/* Must the request wait for that? */
bool clearing_holds(struct shard *s, const struct wire_head *h, const struct van_seg *seg);
/* Rows were deleted: what they took may be freed. */
void clearing_update(struct shard *s, struct shard_table *t);
void clearing_fire(struct lane_timer *timer);

/* ---- handling.c ---- */
/* t NULL: a message. */
MUST_USE paramo_err handling_slice(struct peer *peer, struct shard_table *t, const struct wire_head *head,
                                   const struct van_seg *seg, unsigned nseg, struct van_hold **hold);
/* True if the number is a handler's business, and the probe has been answered. */
bool handling_probe(struct peer *peer, const struct wire_head *head);
/* The sender's floor has gone from `from` to its present place: answers below are let go. */
void handling_floor(struct shard *s, struct sender *sender, uint64_t from);
void handling_forget(struct shard *s, struct sender *sender);
/* Is there anything of it? */
bool handling_any(const struct sender *sender);
void handling_close(struct shard *s);

/* ---- scanning.c ---- */
MUST_USE paramo_err scanning_slice(struct peer *peer, struct shard_table *t, const struct wire_head *head,
                                   const struct van_seg *seg);
/* Lets go of some memory. True: of all. */
bool scanning_close_step(struct shard *s);
/* One step towards the page that a deferred SCAN goes on with. True: it is there, or an error says why not.
 */
bool scanning_step(struct peer *peer, struct shard_table *t, const struct wire_head *head, uint64_t cursor,
                   paramo_err *err);
/* Sessions older than this, or all of a sender. */
void scanning_expire(struct shard *s, uint64_t now);
void scanning_forget(struct shard *s, const struct sender *sender);
/* Rows that are ours, not copies of others', and their parameters that are not zero. False: the answer comes
 * later. */
bool counting_slice(struct peer *peer, struct shard_table *t, const struct wire_head *head,
                    struct table_count *count);
void counting_step(struct shard *s, struct shard_table *t, struct table_count *count);

/* ---- deferred.c ---- */
MUST_USE paramo_err deferred_add(struct peer *peer, const struct wire_head *head, uint64_t cursor);
/* Has it been deferred? It stays for as long as its sender asks for it, however long it takes. */
bool deferred_asked(const struct shard *s, const struct sender *sender, uint64_t number);
/* The count that a deferred STAT, which is handled again, has been waiting for. */
bool deferred_count(const struct peer *peer, const struct wire_head *head, struct table_count *count);
void deferred_fire(struct lane_timer *timer);
/* Steps are due: of what waits, or to let go of memory. */
void deferred_go(struct shard *s);
/* What shut the shard, or a connection, may be over. */
void deferred_resume(struct shard *s);
/* Those of a peer (NULL: of none), or past their deadline. */
void deferred_drop(struct shard *s, const struct peer *peer, uint64_t now);

#endif
