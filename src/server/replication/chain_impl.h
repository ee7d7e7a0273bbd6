/*
 * A shard's part in replication: the structures that src/server/replication and src/server/migration share.
 * Each partition has a chain of members in the view: its owner, then its replicas. A change goes from member
 * to member. The owner answers when the last member has it:
 *
 *     client ---> owner ---CHAIN---> replica ---CHAIN---> replica
 *        ^         | ^                |  ^                   |
 *        +-answer--+ +---CHAIN_ACK----+  +----CHAIN_ACK------+
 *
 *     origins.h     the owners that are followed, with their records of senders
 *     acks.h        acknowledgements to the member before
 *     forward.h     an owner's changes
 *     splitting.h   which rows of a change each next member has
 *     chain_stream.h streams to the next members; releasing.h: their entries end when they are acknowledged
 *     chain_wait.h  what waits for these acknowledgements
 *     routing.h     entries of streams that have ended go to other streams
 *     gate.h        may this shard serve?
 *     records.h     records of senders that pass from one owner to another, in turns
 *     follow.h      what comes from the member before
 *     combined.h    pushes of a clock that are one change
 *     succession.h  what a new view changes
 *     replication.h begin and end of all that; chain_tick.h: what happens each 100 ms
 *
 * - Order. The owner numbers its changes. The numbers of one partition ascend forever, whichever shard owns
 *   it. A member applies a change only to partitions whose last number is lower. So a change that is sent
 *   again is never applied twice, and copies are equal at equal numbers.
 * - Kept. A member keeps what it forwarded until it is acknowledged, and sends it to the next member of a new
 *   view.
 * - Levels. The member at level l of a partition has the rows of tables with l replicas or more. A level that
 *   a death has left empty stays empty until a migration has filled it. A change goes only as far as its
 *   table's rows do; the last member that has them is the tail for it. So the changes of a follower, and the
 *   numbers of a partition's last change, are a subset of those of the member before it.
 * - Records. A follower keeps the records of senders of each owner that it follows (an origin), and on which
 *   partitions it has applied what came since (shard/applied_window.h). When a partition's owner changes,
 *   TAKE says so in the stream. So records pass from one origin to the other at the same place on all
 *   members.
 * - Gate. A shard serves while each next member has room, and has what a promotion had to send again. Each
 *   member of a chain that it owns must have answered a CHAIN_BEAT that was sent less than CHAIN_LEASE_MS ago,
 *   because each may take its place. So it has a stream to each, on which the farther ones get beats only. The
 *   time of sending counts: an owner that was stopped does not take old answers for new ones. A member that
 *   takes a dead owner's place waits CHAIN_LEASE_WAIT_MS after the last answer that it gave to any member before
 *   it. Until then the dead owner may still answer pulls. The difference covers clocks that run at different speeds.
 *
 * It must never know how the scheduler forms chains (ring/chains.h), or what a row holds. One lane owns all
 * of it. Tests: test/worker/test_chain_sim.c, test/worker/test_succession.c, the simulator. docs/FAULTS.md
 * has the promises.
 */
#ifndef SERVER_REPLICATION_CHAIN_IMPL_H
#define SERVER_REPLICATION_CHAIN_IMPL_H

#include <assert.h>
#include <string.h>

#include "cluster/session/control_message.h"
#include "server/shard/shard_impl.h"
#include "wire/chain.h"
#include "wire/migration_step.h"

/* Arbitrary where nothing else is said. */
enum {
    CHAIN_STREAM_BYTES = 32 << 20, /* not acknowledged; beyond, requests wait */
    CHAIN_STREAM_ENTRIES = 1 << 14,
    CHAIN_TICK_MS = 100,
    CHAIN_LEASE_MS = 500, /* by the owner's clock */
    /* By the successor's. Each of both clocks may run 2 % too fast or too slow (1.02 / 0.98 = 1.041). */
    CHAIN_LEASE_WAIT_MS = 525,
    CHAIN_RETRY_MS = 1000,
    CHAIN_GRANTS = 2, /* arbitrary: nearly always the first is enough */
    CHAIN_CONNECT_MS = 5000,
    CHAIN_GUESTS_MAX = 1024, /* connections that sent nothing but HELLO; arbitrary, far beyond any job's */
    CHAIN_PLACE_MS = 1000,   /* how long a stream keeps its connection before an earlier one may come back */
    CHAIN_WORDS = PARTITION_WORDS
};
_Static_assert((int)PARTITION_BITS == (int)RING_PARTITIONS, "wire/partition_bits.h knows no ring");

/* What a turn may cost, and what a visit to a record costs. A turn takes at most about 1 ms (bench/steps.sh). */
enum { RECORDS_TURN = 4096, RECORDS_COST = 8, RECORDS_COST_NOTE = 4, RECORDS_COST_FREE = 1 };

struct chain_source;
struct migration_source;
struct migration_target;

/* A step that ends when all its entries are acknowledged: an owner's answer, or a follower's place in the
 * stream from its source. */
struct chain_wait {
    unsigned entries;
    struct chain_wait *prev, *next; /* of the sender */
    struct chain_wait *parts;       /* of several pushes: the answers, which end with it ... */
    struct chain_wait *next_part;   /* ... linked by this */
    struct sender *sender;          /* NULL: no answer is wanted */
    struct wire_head head;          /* of the latest attempt */
    struct reply *reply;            /* made already (values as they were), or NULL */
    struct queue made;              /* its entries, before chain_commit */
    struct chain_source *source;    /* or NULL */
    struct qnode node;              /* source->waits */
    uint64_t seq;
    /* not acknowledged by all, and the partition left this shard: the sender sends it elsewhere */
    bool elsewhere;
};

struct chain_entry {
    struct qnode node; /* of its stream */
    struct van_frame frame;
    struct chain_stream *to;
    struct chain_wait *wait; /* NULL: no step waits for it */
    struct chain_message m;
    /* if .what is not 0, the entry is this message, and m has only the seq */
    struct migration_message migration;
    bool out;   /* the frame is the van's, of the stream `to` */
    bool over;  /* freed when it comes back */
    bool next;  /* when it comes back, the stream sends it again */
    bool acked; /* by all members after this one, before entries that were sent earlier */
    size_t bytes;
    struct van_seg seg[WIRE_SEG_BODY]; /* in data */
    uint8_t body[CHAIN_BODY_MAX];
    _Alignas(8) uint8_t data[];
};

/* To the next member of some partitions, or to one after it on partitions that are ours. */
struct chain_stream {
    struct chain_stream *next;
    struct shard *shard;
    struct chain_name to;
    uint64_t incarnation;
    uint32_t generation;
    uint64_t partitions[CHAIN_WORDS];              /* of which it is the next member */
    uint64_t some[RING_REPLICAS_MAX][CHAIN_WORDS]; /* where it has tables of [index] replicas */
    struct connector *connector;
    struct van_conn *conn;
    bool met,
        takes_columns;    /* it had a connection; CAPABILITY_COLUMNS: all of them are to the same process */
    uint64_t connect_at;  /* not before */
    struct queue entries; /* not acknowledged, by seq */
    struct qnode *unsent; /* of these */
    struct lane_timer resume; /* sends in the next round: `unsent` has come back */
    size_t count, bytes;
    uint64_t seq, acked;      /* acked: these are released, too */
    struct {                  /* entries that are acknowledged are released in turns (releasing.c) */
        struct chain_ack ack; /* the latest, while a turn is left; its bits are in `beyond` */
        uint8_t *beyond;      /* CHAIN_BEYOND_MAX bytes, or NULL */
        struct qnode *at;     /* the next entry to look at; NULL: all were looked at */
        bool again;           /* a later ACK has come since: from the first entry */
        struct lane_timer timer;
    } release;
    uint64_t gate;          /* nothing is served before this is acknowledged */
    uint64_t heard_at;      /* when the last CHAIN_BEAT that was answered had been sent; 0: none was */
    uint64_t progressed_at; /* when `acked` last rose, or nothing was outstanding */
    uint64_t sent_at;       /* when all unacknowledged entries were last sent again */
    uint64_t lacked;        /* entries were refused because we lacked this view; 0: none were */
    uint64_t mended;        /* the last view for which entries were sent again */
    uint64_t resent_at;     /* when the next member last got again what it had asked for ... */
    uint64_t resent_after;  /* ... which came after this entry; ... */
    uint64_t asked_view;    /* ... its view then */
    unsigned grants;        /* how often it got them since it had news of a beat or a view */
    bool again;             /* it has asked since; ... */
    uint64_t asked_to;      /* ... the last entry then */
    bool blocked;
    bool combines; /* it is up, or was, and the next member reads CHAIN_COMBINED */
    /* the stream goes to the target of a migration, which is no member; or NULL */
    struct migration_source *migration_source;
    uint64_t mark;  /* what a pause waits for */
    uint64_t saved; /* what a checkpoint waits for */
};

/* A stream of a member before us. One of a member's streams has a connection. When another one takes its place, what
 * was received is kept (follow.c): only the number of a stream tells a late one from the member's present one, and
 * any process that has the token can send a number. */
struct chain_source {
    struct chain_source *next;
    struct shard *shard;
    struct chain_name from;
    uint64_t incarnation;
    uint32_t generation;
    struct van_conn *conn;
    uint64_t connected_at; /* when it last got a connection */
    struct queue waits;    /* forwarded, not acknowledged, by seq */
    uint64_t received, acked;
    uint64_t beat_clock; /* of the last CHAIN_BEAT of this connection; 0: none has come */
    uint64_t beat_at;    /* when the last CHAIN_BEAT came */
    bool again;          /* something was dropped since: the member before must send again */
    bool for_migration;  /* it migrates partitions to us; no chain has us for them yet */
    bool due;            /* an ACK at the end of this round */
    struct lane_task round;
};

struct chain_guest { /* it sent HELLO, but may mean another process that had this address */
    struct chain_guest *next;
    struct shard *shard;
    struct van_conn *conn;
    struct chain_name from;
    uint64_t incarnation;
    uint64_t accepted_at;
    uint32_t generation;
    bool for_migration;
};

struct chain_sender {
    struct chain_sender *prev, *next;
    struct chain_sender *bucket_next; /* of those in its bucket */
    struct sender_id id;
    /* the owner's record, and on which partitions later changes are applied */
    struct applied_window applied_window;
};

struct chain_origin { /* an owner whose partitions are followed */
    struct chain_origin *next;
    struct chain_name name;
    uint64_t incarnation; /* by the view that had it first; 0: no view has had it */
    unsigned partitions;
    struct chain_sender *senders;
    struct chain_sender **buckets; /* the same, by name; a power of two, about as many as senders */
    uint32_t senders_count, buckets_count;
    /* growing: the buckets before; those below `moved` are in `buckets` already. NULL: all are */
    struct chain_sender **older;
    uint32_t older_count, moved;
};

struct chain {
    struct shard *shard;
    struct chain_stream *streams;
    struct chain_source *sources;
    struct chain_guest *guests;
    struct chain_origin *origins;
    struct chain_origin *origin_of[RING_PARTITIONS]; /* NULL: not followed */
    uint64_t mine[CHAIN_WORDS];                      /* owned */
    int8_t level[RING_PARTITIONS];       /* our place in the chain, by the view; 0: owner, -1: none */
    uint16_t next[RING_PARTITIONS];      /* the member after us, by the view; or RING_NONE */
    uint8_t next_level[RING_PARTITIONS]; /* at this level */
    uint64_t runs[CHAIN_WORDS];          /* where these begin to differ: shard->place->runs of that view */
    uint64_t last[RING_PARTITIONS];      /* the number of its last change */
    uint64_t order;    /* the highest number assigned, or seen on a partition that is ours */
    uint64_t arrivals; /* counts imports of records */
    struct {
        struct queue jobs; /* records.c: not done */
        struct lane_timer timer;
        bool waits;     /* a turn has left some: the shard is held */
        unsigned tries; /* turns in a row that had no memory */
        uint64_t spent; /* by all turns; for tests */
    } records;
    uint64_t release_spent;         /* by all turns of streams that release entries; for tests */
    struct {                        /* records.c, before its jobs */
        struct queue entries;       /* of streams that have ended: each goes to the next members */
        uint64_t left[CHAIN_WORDS]; /* no chain has had us for these since */
        bool gated;                 /* all streams get a gate after them */
    } routing;
    uint32_t generations;
    uint64_t wait_until;   /* an owner that we followed may answer pulls until then; 0: none may */
    uint64_t leased_until; /* the same for members before us whose streams have ended */
    bool shut;             /* as chain_open found last */
    bool held;             /* requests wait for it to be open */
    bool failed;           /* chain_fail */
    /* entries that could not be sent on when the chain failed: their waits never end */
    struct queue stranded;
    struct lane_timer tick;
    struct migration_source *migration_source; /* migration/migration.h; one at a time */
    struct migration_target *migration_target;
    bool in_view;            /* the view before had us ... */
    uint64_t last_migration; /* ... and this as the last committed migration to us */
    uint64_t sources_over,
        targets_over; /* migrations from us and to us up to these ids are over: orders may come late */
};

/* What a turn of this shard may cost. */
static inline unsigned records_turn(const struct shard *s)
{
    size_t records = s->config.turn_records;
    return records ? (unsigned)records * RECORDS_COST : RECORDS_TURN;
}

/* Our level in a partition's chain, by the view. 0: owner; -1: no member. */
static inline int chain_level(const struct shard *s, unsigned partition)
{
    return s->chain->level[partition];
}

/* Does a member at this level (-1: no member) have rows of the table? */
static inline bool chain_has(const struct shard_table *t, int level)
{
    return level >= 0 && (unsigned)level <= t->replicas;
}

/* What has arrived is acknowledged in order, and never before it has arrived. */
static inline void chain_source_check(const struct chain_source *source)
{
    assert(source->acked <= source->received);
    assert(!source->waits.head || source->acked < source->received);
}

/* Do entries of streams that have ended wait for their way (records.h)? */
static inline bool chain_routes(const struct chain *c)
{
    return c->routing.entries.head;
}
/* Do these, or do records of senders pass from one owner to another? */
static inline bool records_pending(const struct chain *c)
{
    return c->records.jobs.head || chain_routes(c);
}
/* Must requests wait for that? */
static inline bool records_hold(const struct chain *c)
{
    return records_pending(c);
}
/* May the table have rows that this shard does not own? These are copies, or, in a dense table, rows of
 * partitions that have left. */
static inline bool chain_mixes(const struct shard *s, const struct shard_table *t)
{
    return s->chain && (s->chain->origins || (t->options.kind == PARAMO_TABLE_DENSE &&
                                              memcmp(t->held, s->chain->mine, sizeof t->held) != 0));
}

#endif
