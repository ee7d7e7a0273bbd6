/*
 * The shard as its parts see it: its configuration, its view, where each part's state is, and the records that all
 * parts share: tables, senders, connections. Nothing outside src/server includes this, but tests and the simulator.
 * One lane owns everything here, unless a field says otherwise. Includes point down this list:
 *
 *     shard.c           life, connections, views
 *     adopting.c        views that name many new tables
 *     deferred_turn.c   turns of requests that take longer than a step of the lane
 *     collecting_turn.c the end of collections
 *     slice.c           one request from its arrival: defer, refuse, dedup, dispatch, probe
 *     senders.c         records of senders, and which are over
 *     apply.c           requests to built-in tables
 *     partial_apply.c   requests of which some keys were applied before
 *     apply_rows.c      checks and changes of rows
 *     handling.c        requests to USER tables and apps: hand over, keep answers
 *     examining.c       the keys of a request to a handler, in portions
 *     scanning.c        pages of rows, and counts of rows
 *     owned_keys.c      which keys of a table with copies are ours
 *     deferred.c        the list of requests that take longer than a step of the lane
 *     shard_tables.c    the memory of the shard's tables
 *     clearing.c        removal of many rows in steps
 *     collecting.c      pushes that wait to be one change with others of their clock
 *     kept.c            slices that cannot be handled yet
 *     filtered.c        filters of requests and answers
 *     reply.c           answers and their memory
 *     table_map.c       the shard's tables by id
 *     peers.c           the list of connections
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
#include "table/keyset.h"
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
    SHARD_REQUESTS_FREE = 256,      /* requests to handlers whose memory is kept */
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
    uint32_t stored_values;      /* of a row that moves or is saved: with what aggregate.h keeps */
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
    uint64_t clear_at; /* the removal's next position, in order of hashes (DENSE: of rows) */
    bool remains;      /* memory of removed rows is still to be freed */
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

/* What the present view says about this shard. shard.c writes it, all read it. */
struct shard_place {
    uint64_t partitions_changed, chain_changed;
    uint64_t view_before; /* number of the view before the present one; 0: none */
    bool owns_all;
    uint64_t runs[PARTITION_WORDS]; /* where runs of partitions begin that have the same chain in the view */
    /* The view is being adopted: what peers deferred comes after what waited for the view. */
    bool adopting;
};

/* Each part owns the state behind its pointer and has its own header: other parts call its functions. All run on the
 * shard's lane. shard.c makes the parts and sets the pointers. */
struct shard {
    struct shard_config config;
    struct lane *lane;
    struct view *view;
    int self; /* our index in the view, or -1 */
    struct shard_place *place;
    /* keys of the request that is being handled, if its worker is in this process */
    const struct keyset_part *part;
    struct chain *chain;                 /* replication/; NULL: an app endpoint, or no van to reach others */
    struct shard_adopting *adopting;     /* adopting.h */
    struct shard_tables *tables;         /* table_map.h */
    struct shard_upkeep *upkeep;         /* shard_tables.h */
    struct shard_senders *senders;       /* senders.h */
    struct shard_peers *peers;           /* peers.h */
    struct shard_kept *kept;             /* kept.h */
    struct shard_handling *handling;     /* handling.h */
    struct shard_scans *scans;           /* scanning.h */
    struct shard_deferred *deferred;     /* deferred.h */
    struct shard_saves *saves;           /* snapshot/saving.h */
    struct shard_loads *loads;           /* snapshot/loading.h */
    struct shard_clearing *clearing;     /* clearing.h */
    struct shard_collecting *collecting; /* collecting.h */
    struct shard_replies *replies;       /* reply.h */
    struct shard_filters *filters;       /* filtered.h */
    struct shard_housekeeping *housekeeping; /* housekeeping.h */
    struct bufpool pool;                     /* of answers, and of scratch within a step */
    size_t reducing_bytes;                   /* of deferred reductions (reducing_steps.h) */
    struct shard_counters counters;
    struct spread pauses; /* of partitions that migrated away: microseconds */
};

#endif
