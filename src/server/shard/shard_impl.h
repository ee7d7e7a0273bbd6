/*
 * The structures that all of src/server shares. Nothing outside src/server includes this, but tests and the simulator.
 * One lane owns everything here, unless a field says otherwise. Includes point down this list:
 *
 *     shard.c           life, connections, views
 *     adopting.c        views that name many new tables
 *     deferred_turn.c   turns of requests that take longer than a step of the lane
 *     slice.c           one request from its arrival: defer, refuse, dedup, dispatch, probe
 *     senders.c         records of senders, and which are over
 *     apply.c           requests to built-in tables
 *     partial_apply.c   requests of which some keys were applied before
 *     apply_rows.c      checks and changes of rows
 *     handling.c        requests to USER tables and apps: hand over, keep answers
 *     scanning.c        pages of rows, and counts of rows
 *     deferred.c        the list of requests that take longer than a step of the lane
 *     shard_tables.c    the shard's tables and their memory
 *     clearing.c        removal of many rows in steps
 *     kept.c            slices that cannot be handled yet
 *     filtered.c        filters of requests and answers
 *     reply.c           answers and their memory
 *     housekeeping.c    the timer that removes what no sender asks for again
 *     applied_window.c  which chunks of a sender are applied, and on which partitions
 *
 * It must never know how a chain, a migration or a checkpoint works: replication/, migration/ and snapshot/
 * own those. Tests: test/server/, test/worker/, the simulator.
 */
#ifndef SERVER_SHARD_SHARD_IMPL_H
#define SERVER_SHARD_SHARD_IMPL_H

#include <stdatomic.h>

#include "base/bufpool.h"
#include "base/map.h"
#include "base/spread.h"
#include "cluster/view/view.h"
#include "env/hugemem.h"
#include "filter/coding.h"
#include "ring/partition_set.h"
#include "server/shard/applied_window.h"
#include "server/shard/rowcache.h"
#include "server/shard/shard_config.h"
#include "table/table.h"
#include "table/table_page.h"
#include "wire/data.h"
#include "wire/sender_id.h"

/* Bounds; arbitrary where nothing else is said. */
enum {
    SHARD_SENDERS_MAX = 1 << 16,
    SHARD_SENDER_BUCKETS = 1 << 12,
    SHARD_VIEW_DEFERRED_MAX = 1 << 14, /* slices that wait for a view */
    SHARD_VIEW_DEFERRED_BYTES = 256 << 20,
    SHARD_VIEW_DEFERRED_SECONDS = 60,
    SHARD_UNKNOWN_SENDER_SECONDS = 60,   /* for a connection of an incarnation that no view has had */
    PEER_DEFERRED_MAX = 2 * DATA_WINDOW, /* slices that wait for answers to leave */
    PEER_DEFERRED_BYTES = 64 << 20,
    SENDER_KEPT_BYTES = 256 << 20,  /* answers of handlers to one sender, until its floor passes */
    SHARD_HANDLING_BYTES = 1 << 30, /* of requests that handlers have; one request is always allowed */
    SHARD_POOL_BYTES = 64 << 20,    /* free buffers kept */
    SCAN_SESSIONS_MAX = 64,
    SCAN_SESSION_SECONDS = 60,
    SCAN_BATCH_BYTES = 256 << 10,
    SCAN_BYTES = 256 << 20, /* of the keys of all scans */
    /* Keys examined in one step. A page of that many new keys takes 0.1 to 1 ms (bench/scan.sh). */
    SCAN_STEP_KEYS = 1 << 16,
    SHARD_DEFERRED_MAX = 1 << 12,
    /* What a turn of shard_senders_check may cost; a look at a connection or a record costs 1. Less than 1 ms
     * (bench/steps.sh). */
    SHARD_CHECK_TURN = 1 << 12,
    SHARD_CHECK_FREE = 8 /* to free a record */
};

struct shard_table {
    uint32_t id;
    char name[VIEW_NAME_MAX];
    paramo_table_options options;
    struct ring_placement placement;
    uint32_t value_bytes, row_values, state_values;
    struct hugemem memory;       /* of the table */
    struct table *table;         /* NULL: USER, or there was no memory yet */
    bool lacks;                  /* it lacks memory, for itself or for rows of partitions that are ours now */
    struct saving_table *saving; /* a checkpoint is saving its rows */
    unsigned replicas;           /* members of a chain up to this level have its rows */
    bool lost;                   /* on any of these partitions ... */
    uint64_t lost_partitions[RING_PARTITIONS /
                             64];            /* ... rows pushed to the previous owner are gone; until CLEAR */
    struct rowcache rows;                    /* SPARSE: of the key lists used last */
    uint64_t pushes, pulls;                  /* keys */
    uint64_t held[RING_PARTITIONS / 64];     /* DENSE: partitions whose rows the table has */
    uint64_t returns[RING_PARTITIONS / 64];  /* of the lost ones, those being restored (loading.c) */
    bool clears;                             /* on any of these partitions ... */
    uint64_t clearing[RING_PARTITIONS / 64]; /* ... all rows are gone, though not removed yet (clearing.c) */
    uint64_t clear_at;                       /* how far the removal is, in order of hashes (DENSE: of rows) */
    bool remains;                            /* memory of removed rows is still to be freed */
};

struct chain;
struct chain_wait;

struct sender {
    struct sender *prev, *next;
    struct sender *bucket_next; /* of those in its bucket */
    struct sender_id id;
    uint64_t checked; /* number of the view by which `fenced` is right */
    bool fenced;      /* the view says that this incarnation is over */
    bool known;       /* a view has had this incarnation alive */
    unsigned peers;
    struct peer *peer;                    /* where it asked last; NULL: that connection has ended */
    struct applied_window applied_window; /* its chunks that have been applied */
    struct shard_request **handled;       /* DATA_WINDOW of them, by number; NULL until a handler is used */
    size_t kept_bytes;                    /* of its answers */
    struct chain_wait *pending;           /* changes that followers have not acknowledged yet */
    uint64_t over; /* a customer that gave out no number from this one on has been closed; 0: none has */
    bool behind;   /* followers may have records of it above the floor that they know */
    uint64_t told; /* the floor that followers were told last */
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
    struct keylists lists;    /* filtered.c: what the connection's filters know, */
    uint16_t filter_epoch;    /* how often they have begun again, */
    struct peer_wants *wants; /* and which filters its answers are to have, by table */
    unsigned wants_count;
    bool blocked;
    bool broken; /* closed at the end of slice_resume_view_deferred */
};

/* A slice that cannot be handled yet. */
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
    struct filter_memory *coding; /* of a filtered answer, from the pool; NULL: it is not filtered */
};

/* The part of a shard that outlives it while handlers hold requests. */
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
    struct sender *sender; /* NULL: no sender waits for it any more */
    struct wire_head head; /* of the latest attempt */
    uint64_t keys_hash;
    struct shard_request_info info;
    char table[VIEW_NAME_MAX];
    struct van_hold *hold;
    size_t bytes;                      /* held */
    struct shard_request *prev, *next; /* shard->handling->first */
    bool answered;
    paramo_err status;
    struct kept_answer *answer; /* the body is a text when status is an error */
};

struct session {
    struct session *next;
    struct sender_id sender;
    uint32_t id, table;
    uint64_t number; /* of the sender's latest request for it */
    uint64_t used_at;
    uint64_t partitions_changed; /* of the shard when the page was begun */
    struct table_page page;      /* being found, or there, or closed */
    uint64_t asked, past;        /* a scan from `asked` found no row in any key before `past` */
    bool over;                   /* its last row has been sent */
};

/* ---- parts of the shard; each is owned by the file named above it, others call its functions ---- */

/* shard.c: what the present view says about this shard */
struct shard_place {
    uint64_t partitions_changed, chain_changed;
    uint64_t view_before; /* number of the view before the present one; 0: none */
    bool owns_all;
    uint64_t runs[PARTITION_WORDS]; /* where runs of partitions begin that have the same chain in the view */
};

/* adopting.c */
struct shard_adopting {
    struct shard *shard;
    void (*adopt)(struct shard *s, struct view *view);
    struct view *view; /* the newest one, which waits for its tables; NULL: none does */
    int self;          /* our index in it, or -1 */
    uint64_t runs[PARTITION_WORDS];
    uint32_t at;        /* which table is the next to be looked for */
    struct map tables;  /* by id: they have no view yet */
    struct queue tasks; /* of the lane, which came behind the view */
    struct lane_timer timer;
    /* a view is being adopted: what peers deferred comes behind what waited for the view */
    bool in_progress;
};

/* shard_tables.c */
struct shard_tables {
    struct shard *shard;
    struct map by_id;
    struct shard_table *last;     /* the table asked for last */
    struct lane_timer trimming;   /* memory that tables have freed goes back */
    struct lane_timer furnishing; /* tables that lack memory try again */
};

/* senders.c */
struct shard_senders {
    struct shard *shard;
    struct sender *first;
    struct sender *bucket[SHARD_SENDER_BUCKETS]; /* the same, by name */
    size_t count;
    struct { /* shard_senders_check, in turns: it holds nothing, both lists may change between them */
        bool on;
        bool again;            /* it restarts at its end: there is a newer view */
        struct peer *peer;     /* the next one, and behind the last ... */
        struct sender *sender; /* ... the next one of these */
        struct lane_timer timer;
        uint64_t spent; /* by all turns; for tests */
    } check;
};

/* senders.c: connections of senders */
struct shard_peers {
    struct peer *first;
    bool unknown; /* there may be connections of senders that no view has had */
};

/* kept.c: slices that wait for a view */
struct shard_kept {
    struct queue for_view; /* struct kept */
    size_t count, bytes;
};

/* handling.c */
struct shard_handling {
    struct shard_request *first;
    struct gate *gate;
    size_t kept_bytes, bytes;
};

/* scanning.c */
struct shard_scans {
    struct session *sessions, *closing; /* closing: their pages' memory is being freed in steps */
    unsigned count;
};

/* deferred.c */
struct shard_deferred {
    struct shard *shard;
    struct queue turn, held; /* struct deferred: in turn; until they may be handled again */
    size_t count;
    const struct deferred *over; /* is being handled again */
    struct lane_timer timer;
};

/* snapshot/saving.c */
struct shard_saves {
    struct saving *current; /* NULL: none is in progress */
    struct saving *left;    /* aborted; a blocking job still removes its file */
    uint64_t id;            /* the checkpoint since which changes of all our partitions are known; 0: none */
};

/* snapshot/loading.c */
struct shard_loads {
    struct loading *current; /* NULL: none is in progress */
    uint64_t begun;          /* so far */
    uint64_t spent;          /* by all turns with senders' records of loads; for tests */
    uint64_t over;           /* the number of the last GO order */
    uint64_t aborted; /* id of the last load that ended before GO; 0: none, or a later one was loaded */
    bool restoring;   /* lost rows of ours will be restored: requests wait */
};

/* clearing.c */
struct shard_clearing {
    struct shard *shard;
    struct lane_timer timer; /* the next step */
    unsigned tables;         /* of which rows are being removed */
    bool ended;              /* a removal has ended: what waited for it may go on */
};

/* reply.c */
struct shard_replies {
    struct bufpool pool;
    struct reply *free;
    size_t free_count;
    _Atomic size_t out; /* written on the lane */
};

/* filtered.c */
struct shard_filters {
    struct filter_counts counts;
    struct filter_tools tools;
    size_t lists_bytes; /* of all connections */
};

struct shard {
    struct shard_config config;
    struct lane *lane;
    struct view *view;
    int self;            /* our index in the view, or -1 */
    struct chain *chain; /* NULL: an app endpoint, or a shard without a van to reach others */
    struct shard_place *place;
    struct shard_adopting *adopting;
    struct shard_tables *tables;
    struct shard_senders *senders;
    struct shard_peers *peers;
    struct shard_kept *kept;
    struct shard_handling *handling;
    struct shard_scans *scans;
    struct shard_deferred *deferred;
    struct shard_saves *saves;
    struct shard_loads *loads;
    struct shard_clearing *clearing;
    struct shard_replies *replies;
    struct shard_filters *filters;
    struct lane_timer housekeeping;
    struct shard_counters counters;
    struct spread pauses; /* of partitions that migrated away: microseconds */
};

#endif
