/*
 * A shard's part in chains, for src/server only (design, section 4). Each partition has a chain of members in
 * the view: its owner, then replicas. A change goes from member to member and is answered when the last has
 * it:
 *
 *     client --> owner --CHAIN--> replica --CHAIN--> replica        forward.c: streams to the next, what
 * waits for them ^          |  <--CHAIN_ACK-- | <--CHAIN_ACK--- |            follow.c:  what comes from the
 * one before
 *       +- answer -+                                                succession.c: what a new view changes
 *
 * - Order. The owner numbers its changes; the numbers of one partition ascend for ever, whoever owns it. A
 * member does a change to the partitions whose last number is lower, so what is sent again is never done
 * twice, and copies are equal at equal numbers.
 * - Kept. A member keeps what it forwarded until it is acknowledged, and sends it to whoever is next after a
 * new view.
 * - Tables of fewer replicas than the job. A member at level l of a partition has the rows of tables with l
 * replicas or more; a level that a death has left empty stays so until a move has filled it. A change goes on
 * only as far as its table's rows are, and the last member that has them is the tail for it. So a follower's
 * changes, and the numbers of a partition's last change, are some of those that the member before it has.
 * - Records. A follower has, for each owner that it follows (an origin), the records of senders that the
 * owner has for these partitions, and with them on which partitions it has done what came since (clocks.h).
 * When another becomes owner, TAKE says so in the stream, so that records pass from one origin to the other
 * at the same place everywhere.
 * - Gate. A shard serves while each next member has room, has what a promotion had to send again, and has
 * answered a CHAIN_BEAT that was sent less than CHAIN_LEASE_MS ago: when it was sent counts, so that an owner
 * that stood still does not take old answers for new ones. A member that is promoted in a dead owner's place
 * waits CHAIN_LEASE_WAIT_MS after the last answer that it gave to any member before it: until then the owner
 * before it may answer pulls. The difference is for clocks that do not run alike.
 * Everything is the lane's. Tests: test/worker/test_chain_sim.c, the simulator.
 */
#ifndef SERVER_REPLICATION_CHAINED_H
#define SERVER_REPLICATION_CHAINED_H

#include <string.h>

#include "cluster/session/control_message.h"
#include "server/shard/shard_impl.h"
#include "wire/chain.h"
#include "wire/migration.h"

/* Arbitrary where nothing else is said. */
enum {
    CHAIN_STREAM_BYTES = 32 << 20, /* not acknowledged; beyond, requests wait */
    CHAIN_STREAM_ENTRIES = 1 << 14,
    CHAIN_TICK_MS = 100,
    CHAIN_LEASE_MS = 500, /* design, section 4; by the owner's clock */
    /* By the successor's. Each of both clocks may run 2 % too fast or too slow (1.02 / 0.98 = 1.041). */
    CHAIN_LEASE_WAIT_MS = 525,
    CHAIN_RETRY_MS = 1000,
    CHAIN_CONNECT_MS = 5000,
    CHAIN_GUESTS_MAX = 1024, /* connections that have said nothing yet; arbitrary, far beyond any job's */
    CHAIN_WORDS = PARTITION_WORDS
};
_Static_assert((int)CHAIN_PARTITIONS == (int)RING_PARTITIONS, "wire/chain.h knows no ring");

struct chain_source;
struct migration_source;
struct migration_target;

/* A step that is over when all its entries are acknowledged: an owner's answer, or a follower's place in its
 * source. */
struct chain_wait {
    unsigned entries;
    struct chain_wait *prev, *next; /* of the sender */
    struct sender *sender;          /* NULL: nobody waits */
    struct wire_head head;          /* of the latest attempt */
    struct reply *reply;            /* made already (values as they were), or NULL */
    struct queue made;              /* its entries, before chain_commit */
    struct chain_source *source;    /* or NULL */
    struct qnode node;              /* source->waits */
    uint64_t seq;
    bool elsewhere; /* not acknowledged by all, and the partition is not ours any more: who sent it sends it
                       on */
};

struct chain_entry {
    struct qnode node; /* of its stream */
    struct van_frame frame;
    struct chain_stream *to;
    struct chain_wait *wait; /* NULL: nobody */
    struct chain_message m;
    struct migration_message migration; /* .what not 0: it is this, and m has the seq */
    bool out;                           /* the frame is the van's */
    bool over;                          /* freed when it comes back */
    bool acked;                         /* by all behind, before others that were sent before it */
    size_t bytes;
    struct van_seg seg[WIRE_SEG_BODY]; /* in data */
    uint8_t body[CHAIN_BODY_MAX];
    _Alignas(8) uint8_t data[];
};

struct chain_stream { /* to the next member of some partitions */
    struct chain_stream *next;
    struct shard *shard;
    struct chain_name to;
    uint64_t incarnation;
    uint32_t generation;
    uint64_t partitions[CHAIN_WORDS];
    uint64_t some[RING_REPLICAS_MAX][CHAIN_WORDS]; /* where it has tables of so many replicas */
    struct connector *connector;
    struct van_conn *conn;
    uint64_t connect_at;  /* not before */
    struct queue entries; /* not acknowledged, by seq */
    struct qnode *unsent; /* of these */
    size_t count, bytes;
    uint64_t seq, acked;
    uint64_t gate;          /* nothing is served before this is acknowledged */
    uint64_t heard_at;      /* when the last CHAIN_BEAT that was answered had been sent; 0: none was */
    uint64_t progressed_at; /* the acknowledged last rose, or there was nothing to acknowledge */
    uint64_t sent_at;       /* all that is not acknowledged was last sent again */
    uint64_t
        lacked; /* what was sent was refused for want of this view; 0: nothing is to be sent again for it */
    uint64_t mended; /* the last for want of which it was */
    bool blocked;
    struct migration_source
        *migration_source; /* it goes to the target of a move, which is no member; or NULL */
    uint64_t mark;         /* what a pause waits for */
    uint64_t saved;        /* what a checkpoint waits for */
};

struct chain_source { /* a member before us */
    struct chain_source *next;
    struct shard *shard;
    struct chain_name from;
    uint64_t incarnation;
    uint32_t generation;
    struct van_conn *conn;
    struct queue waits; /* forwarded, not acknowledged, by seq */
    uint64_t received, acked;
    uint64_t beat_clock; /* of its last CHAIN_BEAT ... */
    uint64_t beat_at;    /* ... which came then */
    bool again;          /* something was let go since */
    bool for_migration;  /* partitions that we are to get; no chain has us for them */
    bool due;            /* an ACK at the end of this round */
    struct lane_task round;
};

struct chain_guest { /* has said HELLO, and may mean another process that had this address */
    struct chain_guest *next;
    struct shard *shard;
    struct van_conn *conn;
    struct chain_name from;
    uint64_t incarnation;
    uint32_t generation;
    bool for_migration;
};

struct chain_sender {
    struct chain_sender *prev, *next;
    struct chain_sender *bucket_next; /* of those in its bucket */
    uint32_t node, app, customer;
    uint64_t incarnation;
    struct applied_window applied_window; /* what the owner's record says, and on which partitions what came
                                             from it since is done */
};

struct chain_origin { /* an owner whose partitions are followed */
    struct chain_origin *next;
    struct chain_name name;
    uint64_t incarnation; /* by the view in which it was met first; 0: in none */
    unsigned partitions;
    struct chain_sender *senders;
    struct chain_sender **buckets; /* the same, by name; a power of two, about as many as senders */
    uint32_t senders_count, buckets_count;
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
    uint64_t second_at[RING_PARTITIONS]; /* since when nobody is between the owner and us; 0: somebody is */
    uint16_t next[RING_PARTITIONS];      /* who comes after us, by the view; or RING_NONE */
    uint8_t next_level[RING_PARTITIONS]; /* at this level */
    uint64_t runs[CHAIN_WORDS];          /* where these begin to differ: shard->runs of that view */
    uint64_t brought[CHAIN_WORDS];       /* ours since this view, by a move: with all rows */
    uint64_t last[RING_PARTITIONS];      /* the number of its last change */
    uint64_t order;                      /* the highest given out, or seen on a partition that is ours */
    uint64_t arrivals;                   /* of records */
    uint32_t generations;
    uint64_t wait_until; /* an owner that we have followed may answer pulls until then; 0: none may */
    uint64_t
        leased_until; /* the same of members before us whose streams have ended: what was answered counts */
    bool shut;        /* as chain_open found last */
    bool held;        /* requests wait for it to be open */
    bool failed;      /* chain_fail */
    struct queue stranded; /* entries that could not be sent on when it failed: their waits are never done */
    struct lane_timer tick;
    struct migration_source *migration_source; /* moving.h; one at a time */
    struct migration_target *migration_target;
    bool in_view;                        /* the view before had us ... */
    uint64_t last_migration;             /* ... and this as the last move to us that was committed */
    uint64_t sources_over, targets_over; /* moves from us, and to us, up to these ids: orders may come late */
};

/* Our place in a partition's chain by the view: 0 owner; -1: none. */
static inline int chain_level(const struct shard *s, unsigned partition)
{
    return s->chain->level[partition];
}

/* Has a member at this level (-1: none) rows of the table? */
static inline bool chain_has(const struct shard_table *t, int level)
{
    return level >= 0 && (unsigned)level <= t->replicas;
}

/* May the table have rows that are not ours: copies, or, of a dense one, those of partitions that have left?
 */
static inline bool chain_mixes(const struct shard *s, const struct shard_table *t)
{
    return s->chain && (s->chain->origins || (t->options.kind == PARAMO_TABLE_DENSE &&
                                              memcmp(t->held, s->chain->mine, sizeof t->held) != 0));
}

/* ---- forward.c ---- */
MUST_USE paramo_err chain_create(struct shard *s, struct chain **chain);
void chain_destroy(struct chain *c);
/* What a chain must have cannot be (no memory, or FULL: too many records apart); err and this thread's
 * message say why. This shard serves no more, and who made it is told, once. */
void chain_fail(struct chain *c, paramo_err err);
/* True: the shard may serve. False: it is told by slice_resume_all when it may. */
bool chain_open(struct shard *s);
/* Has the other end answered a CHAIN_BEAT that was sent less than CHAIN_LEASE_MS ago? */
bool chain_leased(const struct chain_stream *st);
/* Without this it always may. */
static inline bool chain_guarded(const struct chain *c)
{
    return c && (c->streams || c->wait_until || c->failed);
}
/* Before an owner's change, on `only` (NULL: all its partitions): *wait is NULL if nobody follows. Nothing is
 * sent yet. */
MUST_USE paramo_err chain_prepare(struct peer *peer, struct shard_table *t, const struct wire_head *head,
                                  const struct van_seg *seg, unsigned nseg, const uint64_t *only,
                                  struct chain_wait **wait);
void chain_abandon(struct chain_wait *wait);
/* Our own partitions, of `only` if that is given; partitions may be only. */
uint64_t *chain_only_mine(const struct chain *c, const uint64_t *only, uint64_t partitions[CHAIN_WORDS]);
/* The change has been made and recorded: it is sent, and answered when it has been acknowledged. */
void chain_commit(struct chain *c, const struct shard_table *t, struct chain_wait *wait,
                  const struct van_seg *seg, struct sender *sender, const uint64_t *only);
/* A repeat of what is not acknowledged yet: it waits for the same. */
bool chain_pending(struct sender *sender, const struct wire_head *head);
void chain_sender_gone(struct sender *sender);
/* Its followers hear how far it has come. False: no memory. */
bool chain_sender_floor(struct shard *s, const struct sender *sender);
/* With room for data; NULL: no memory. */
struct chain_entry *chain_entry_new(size_t bytes);
/* The message m with those of the rows that lie on partitions; NULL: no memory. */
struct chain_entry *chain_entry_make(const struct shard_table *t, const struct chain_message *m,
                                     const struct van_seg *seg, unsigned nseg, const uint64_t *partitions);
void chain_entry_free(struct chain_entry *e);
/* To all next members that have partitions of the message, and to a move's target if `gives`; queues the
 * entries.
 */
MUST_USE paramo_err chain_split(struct chain *c, const struct shard_table *t, const struct chain_message *m,
                                const struct van_seg *seg, unsigned nseg, const uint64_t *only,
                                bool to_target, struct chain_wait *wait, struct queue *entries);
void chain_append(struct chain_stream *st, struct chain_entry *e);
/* Those that others have sent us for these partitions are not acknowledged to them any more. */
void chain_leave(struct chain *c, const struct queue *entries, const uint64_t partitions[CHAIN_WORDS]);
/* Gives each entry, in order, to the stream that has its partitions; what nobody follows is acknowledged. */
void chain_route(struct chain *c, struct queue *entries);
/* Nobody gets an answer. No source may be left that waits for one. */
void chain_cancel(struct queue *entries);
void chain_wait_done(struct chain_wait *wait);
void chain_tick_start(struct chain *c);
/* May serve again? Then what waited is handled. */
void chain_reopen(struct shard *s);
struct chain_stream *chain_stream_open(struct chain *c, const struct view_node *node, struct chain_name to);
/* The connection, if there is none yet. */
void chain_connect(struct chain *c);
/* Its entries go to the end of `entries`. */
void chain_stream_close(struct chain *c, struct chain_stream *st, struct queue *entries);
void chain_send_all(struct chain *c);

/* ---- follow.c ---- */
void follow_accept(struct shard *s, struct van_conn *conn, const struct hello *hello);
/* Ends the connections that have said nothing behind HELLO. */
void follow_guests_close(struct chain *c);
void follow_advance(struct chain_source *source);
void follow_ack(struct chain_source *source);
/* At the end of this round. */
void follow_ack_soon(struct chain_source *source);
void follow_forget(struct chain *c, struct chain_source *source);
/* What this source was answered last is remembered. */
void follow_lease(struct chain *c, const struct chain_source *source);
/* Records of senders that the view has no longer. */
void follow_senders_gone(struct chain *c, struct chain_origin *o);
/* Found or made; NULL: no memory. */
struct chain_sender *follow_sender(struct chain_origin *o, uint32_t node, uint32_t app, uint32_t customer,
                                   uint64_t incarnation);
/* The record that a FORGET speaks of: it is raised, and ends if nothing is left of it. */
void follow_sender_forget(struct chain_origin *o, const struct chain_message *m);
struct chain_origin *follow_origin(struct chain *c, struct chain_name name);
/* One that no chain has, and its end (NULL: nothing). */
struct chain_origin *follow_origin_make(struct chain_name name);
void follow_origin_fini(struct chain_origin *o);
void follow_origin_free(struct chain *c, struct chain_origin *o);
/* The partitions that we follow it on. */
void follow_partitions(const struct chain *c, const struct chain_origin *o, uint64_t partitions[CHAIN_WORDS]);
/* These partitions of an origin (NULL: our own) are another's (NULL: ours) now, with their records. */
MUST_USE paramo_err follow_reassign(struct chain *c, struct chain_origin *from, struct chain_origin *to,
                                    const uint64_t partitions[CHAIN_WORDS]);

/* ---- succession.c ---- */
/* The view has changed. */
void chain_succeed(struct chain *c);
/* These partitions are not ours, nor copied here, any more: their rows and records go. */
void chain_drop(struct chain *c, const uint64_t partitions[CHAIN_WORDS]);
/* The rows of tables that our level of these partitions has not. */
void chain_shed(struct chain *c, const uint64_t partitions[CHAIN_WORDS]);

#endif
