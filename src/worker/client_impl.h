/*
 * The inside of the client, for src/worker only: what a request is made of, and what owns it.
 *
 *     request --- chunk: some of its keys, one number forever
 *                   |--- slice: what one shard gets of the chunk in the present attempt; one frame
 *     link ------ the connection to one shard, with the slices that wait for it or for an answer over it
 *
 * All fields are the lane's, unless they say otherwise. A request that has ended stays in memory, with its
 * chunks, until client_finish at the end of the lane's entry, so that loops over them stay valid.
 *
 *     slice:  IDLE --> QUEUED --> SENT --> ANSWERED
 *                                 SENT --> RESEND --> SENT   (lost, or unknown to the shard)
 *     chunk:  waiting for a view <--> sliced --> finished
 *
 * Includes point down this list:
 *
 *     client.c       requests begin, end, and miss their deadlines; life
 *     route.c        which shard is reached over which link
 *     answer.c       what comes back over a link
 *     after.c        requests that wait for earlier ones
 *     clock_gate.c   requests that wait for the workers' clocks
 *     slicing.c      a request to a table becomes chunks, a chunk becomes slices
 *     app_request.c  messages to apps
 *     sending.c      a chunk's slices are made and given to links
 *     link.c         a connection: sends, measures, probes, connects again
 *     chunk.c        a chunk ends; chunks that wait for a view
 *     slices.c       the lists of a link, and the states of slices
 *     filtering.c    filters of frames
 *     carrying.c     rows that filters hold back, and the pushes that carry the others
 *     gather.c       answers to their places
 *     page_request.c  rows of several shards become a page
 *     reduction_request.c  results of reductions come together
 *     waiting.c      what other threads do: wait, cancel, read counters
 *     ending.c       a request is marked as ended
 *     floor.c        the floor is sent when no request carries it
 *     requests.c     the list of requests in flight
 *     links.c        the list of links
 *     numbers.c      the numbers of chunks, and the floor
 *     views.c        what the client knows of views that it does not have
 *     callbacks.c    callbacks that are out, or wait for the application
 *
 * It never knows what a server does with a slice. Tests: test/worker/.
 */
#ifndef WORKER_CLIENT_IMPL_H
#define WORKER_CLIENT_IMPL_H

#include "base/bufpool.h"
#include "cluster/session/address.h"
#include "cluster/session/connector.h"
#include "filter/keylists.h"
#include "table/keyset.h"
#include "wire/data.h"
#include "wire/transform_body.h"
#include "worker/client_types.h"
#include "worker/tracker.h"

enum {
    CHUNK_BYTES = 512 << 10, /* of keys and values; measured in docs/PERFORMANCE.md */
    REQUESTS_CACHED = TRACKER_LIMIT,
    REQUEST_INLINE = 160,         /* a copied request, or message, this small needs no memory of its own */
    CLIENT_COPIES_MAX = 64 << 20, /* of copied requests in flight (one may always be) */
    CLIENT_POOL_MAX = 64 << 20,   /* bytes of free buffers kept */
    LINK_NAME_MAX = VIEW_LABEL_MAX,
    /* how long after its last request a customer sends its floor, and how often; arbitrary */
    FLOOR_MS = 1000,
    PRIORITY_OVERTAKEN_MAX = 64 /* a slice that was overtaken this many times keeps its place */
};

/* A run of keys with their values and lengths. */
struct span {
    const uint64_t *keys; /* NULL: `begin`, begin + 1 ... */
    uint64_t begin;
    const uint32_t *lens;  /* of the values that are sent, or NULL */
    const uint8_t *src;    /* values that are sent */
    uint8_t *dst;          /* where the answer's values go; NULL: kept in the slice (lens) */
    const uint32_t *index; /* place of each key in the owner's keys; NULL: in order from `first` */
    size_t first;
    uint32_t count;
    uint32_t scan;               /* SCAN: its id */
    struct wire_columns columns; /* count > 0: a part of each row */
    uint64_t src_bytes, dst_bytes;
};

static inline uint64_t span_key(const struct span *s, size_t i)
{
    return s->keys ? s->keys[i] : s->begin + i;
}

enum slice_state { SLICE_IDLE, SLICE_QUEUED, SLICE_RESEND, SLICE_SENT, SLICE_ANSWERED };

struct slice {
    struct van_frame frame;
    struct chunk *chunk;
    struct link *link;
    const struct span *span;
    struct slice *prev, *next; /* in the link's list of its state */
    uint64_t sent_at, probe_at;
    uint8_t state;
    bool in_van;        /* the frame is the van's */
    bool placing;       /* an answer is on its way into slice->dst */
    bool resent;        /* its round trip is not measured (Karn and Partridge, SIGCOMM'87) */
    uint8_t probes;     /* since it was sent; each waits twice as long as the one before */
    uint8_t probes_out; /* unanswered: 0, 1, or 2 for more, when an answer cannot be matched to its probe */
    uint64_t probed_at; /* time of the last probe */
    uint32_t overtaken;
    /* an answer with lens, until the request is complete */
    uint32_t *lens;
    uint8_t *vals;
    uint64_t vals_bytes;
    /* filtering.c: the memory of a filtered frame; the key list that it names or brings */
    struct slice_coding *coding;
    uint32_t list_generation;
    uint16_t list;
    bool has_list, brings;
    bool plain;    /* its answer is not to be filtered */
    bool range;    /* its keys travel as a range */
    uint8_t *bits; /* these, if some are another shard's: key_range_bytes */
    size_t bits_bytes;
};

struct slice_list {
    struct slice *head, *tail;
};

struct split {
    struct slice slice;
    struct span span;
};

struct chunk {
    struct request *request;
    struct chunk *next;                  /* of the request */
    struct chunk *wait_prev, *wait_next; /* client->waiters */
    uint64_t number;                     /* 0: not sent yet */
    uint64_t view;                       /* number of the view by which it was sliced */
    uint64_t need;                       /* waiting: for a view of at least this number; 0: not waiting */
    uint32_t attempt;
    uint32_t count; /* slices of this attempt */
    uint32_t unanswered;
    int32_t target; /* the shard's index in the view; -1: by its keys; of a message: the node */
    const struct client_message *message;
    bool rest;       /* stands for the keys of the request that are not sliced yet, and waits for its turn */
    bool unsliced;   /* stands for the whole request, which waits until its partitions have an owner */
    bool everywhere; /* a CLEAR that goes to all shards, not to its target only */
    bool again;      /* it waits for some time, if no view comes before (slice_wait_again) */
    struct span span;
    struct slice one;    /* the slice when there is one */
    struct split *split; /* the slices when there are more, with their buffers after them */
    size_t split_bytes;
};

/* The head of a buffer of gathered keys and values. */
struct scatter {
    struct scatter *next;
    size_t bytes;
};

/* gather.c: how far answers with lens are copied. */
struct gather {
    enum { GATHER_LENS, GATHER_STARTS, GATHER_ROWS } pass;
    bool waits; /* for its next turn */
    struct request *next;
    uint64_t *at;  /* where each row begins; NULL: none is copied */
    size_t starts; /* how many of them are known; the values of these rows: */
    uint64_t total;
    const struct chunk *chunk; /* a slice of it, from this key on */
    uint32_t slice, key;
    const uint8_t *from; /* ROWS: its values there, after the bytes of the row that are copied */
    uint64_t copied;
};

/* carrying.c. A carrier is a push of the client's own: rows of a request of the application that a filter lets
 * travel, or of a flush. It has no timestamp, no deadline, and arrays of its own; it ends when all is acknowledged,
 * or with the client. */
struct carry {
    bool own;                    /* of the client: a carrier, or a flush when a chain changes */
    struct held_table *held;     /* carrier, flush */
    size_t bytes;                /* carrier: of its arrays */
    struct request *prev, *next; /* carriers of the table, in order of their numbers */
    struct request *parent;   /* carrier: the request that completes with it; NULL: none, or it has ended */
    struct request *sibling;  /* the next carrier of the parent */
    struct request *children; /* carriers of this request */
    uint32_t portions;        /* made of this request */
    /* flush */
    uint64_t stamp, upto; /* rows put before it; carriers up to this number */
    size_t cursor;
    bool waits;
    struct request *flush_next;
};

struct request {
    struct lane_task task; /* submission, later the callback, later its return */
    struct client *client;
    struct request *prev, *next; /* client->requests */
    struct request *ended_next;
    uint64_t ts;
    uint64_t number; /* of all requests of the client, in the order in which the lane was given them */
    const struct client_table *table;
    enum request_kind kind;
    uint8_t wire_kind;
    uint8_t flags; /* wire flags */
    bool ended;
    bool posted; /* made off the lane: goes back to malloc, so that the free list is no longer than needed */
    bool pulls_lens; /* answers have lengths, placed when all are there */
    bool first_used;
    bool range;   /* of keys that follow each other */
    bool expects; /* the lane's thread runs its callback */
    bool more;    /* the caller issues another one at once */
    paramo_err status;
    paramo_err *status_to; /* client_call.status */
    paramo_err error;      /* MESSAGE: the first failure of one of its nodes; the others are still asked */
    char *error_text;      /* of it, or for the callback; of malloc; NULL: there was no memory */
    int32_t priority, cmd;
    uint64_t deadline;
    /* the caller's arrays, or copies of what is only read */
    const uint64_t *keys; /* NULL: a range, from `begin` on */
    uint64_t begin;
    size_t n;
    struct wire_columns columns; /* count > 0: a part of each row */
    const uint8_t *src;
    uint8_t *dst;
    struct keyset_part part; /* its keys in a keyset; set NULL: in none */
    size_t src_len, dst_len; /* values; dst: capacity */
    const uint32_t *src_lens;
    uint32_t *dst_lens;
    struct gather gather;
    struct client_stats *stats;
    struct scan_batch *batch;
    struct reduction_request *reduction;
    struct page_request *page;
    uint64_t since;     /* number of the first view that has all its tables */
    uint8_t *transform; /* TRANSFORM: its body */
    uint32_t transform_bytes;
    bool user_function; /* a function of the application */
    paramo_callback callback;
    void *callback_arg;
    uint32_t unfinished;           /* chunks */
    uint32_t again;                /* how often it began again, with new chunks */
    struct table_filters *filters; /* filtering.c: NULL: it is not filtered */
    uint64_t draws_as;             /* seeds what filters draw: the same for each transmission */
    struct carry carry;
    const struct client_message *messages;
    size_t messages_count;
    client_reply_fn on_reply;
    void (*reply_to)(void);
    void *reply_arg;
    /* after.c: what it comes after, as given, and as long as that is not done */
    uint64_t *after;
    size_t after_count;
    uint64_t after_all;
    struct edge *edges;
    size_t edges_count, edges_open;
    struct edge *waiters; /* edges of those that wait for this one */
    /* clock_gate.c */
    uint64_t at_clock, clock_epoch; /* clock_epoch: the gate's when the request was issued */
    bool gated, clocked;
    uint64_t clock;   /* the worker's, of a clocked one ... */
    uint32_t workers; /* ... and how many count; 0: not known yet */
    struct request *gate_prev, *gate_next;
    struct chunk *chunks;
    void *copy; /* malloc'd copies */
    size_t copy_bytes;
    struct scatter *scatters; /* the client's pool: keys, values, index by shard */
    size_t sliced;            /* how many of its keys, in turns; the bytes of their values */
    uint64_t sliced_src;
    struct chunk first;
    _Alignas(8) uint8_t small[REQUEST_INLINE];
};

/* Jacobson and Karels, SIGCOMM'88; RFC 6298. */
struct link_rtt {
    uint64_t srtt, rttvar; /* srtt 0: nothing is known */
};

enum link_state { LINK_IDLE, LINK_CONNECTING, LINK_PAUSE, LINK_UP };

struct link {
    struct client *client;
    uint32_t node;
    uint16_t index;
    uint64_t incarnation;
    char address[ADDRESS_MAX];
    enum link_state state;
    bool stale;   /* no shard of the present view: being dropped */
    bool dead;    /* the view says its node is dead, and no node has its place */
    bool left;    /* its node has said goodbye; its earlier answers are still coming */
    bool blocked; /* the van said AGAIN */
    struct connector *connector;
    struct van_conn *conn;
    struct slice_list queue;  /* first transmissions, by priority, then order of issue */
    struct slice_list resend; /* by number; before the queue, so that the floor can move */
    struct slice_list sent;   /* by time of transmission */
    struct lane_timer pause;
    struct lane_timer retry;
    unsigned failures; /* failed connections in a row */
    /* Round trips of requests, which include the server's work, and of probes, which do not. The shorter of
     * the two says when a slice counts as lost. */
    struct link_rtt answered, probed;
    unsigned backoff; /* doublings since the last sign of life */
    unsigned samples;
    bool goodbye;  /* sent: it leaves before the connection ends */
    uint64_t told; /* the last floor that was sent; 0: none */
    uint64_t told_at;
    /* filtering.c */
    struct keylists lists;      /* of this connection */
    bool user_filters_off;      /* the shard lacks one of the application's filters */
    uint16_t filter_epoch;      /* how often its filters have begun again */
    uint64_t filtered_bytes;    /* in this step of the lane */
    struct lane_timer more;     /* the next step */
    char trouble[ERR_TEXT_MAX]; /* why the last connection failed; "" while all is well */
};

/* Whether the client still takes requests. client.c writes it, all read it. */
struct client_life {
    struct client *client;
    atomic_bool closed;      /* no new requests */
    atomic_bool interrupted; /* client_interrupt: waits end */
    atomic_bool down;        /* client_close runs on the lane, or has: requests end at once */
    atomic_bool gone; /* it has: the lane will not touch the client again, except in callbacks that are out */
    struct lane_task close_task;
    paramo_err failure; /* of client_fail; PARAMO_OK: not called */
    char failure_text[ERR_TEXT_MAX];
    struct lane_timer free_timer; /* the next turn of what the pool frees late */
    struct lane_timer deadline_timer;
    uint64_t deadline_at; /* when it fires; UINT64_MAX: not armed */
};

/* What other threads read and count. */
struct client_shared {
    atomic_uint shards;                        /* of the present view */
    atomic_uint scans;                         /* ids given */
    atomic_size_t copied;                      /* bytes of copies in flight */
    _Atomic uint32_t num_servers, num_workers; /* so far: others may join; written on the lane */
    struct {                                   /* waiting.c */
        _Atomic uint64_t bytes_sent, bytes_received, frames_sent, frames_received, requests, retries, moved;
    } published;
};

/* What happened so far. All files count; waiting.c publishes it. */
struct client_counts {
    uint64_t retries, moved;
    uint64_t filters_again; /* how often the filters of a connection began again */
};

/* Each part owns the state behind its pointer and has its own header: other parts call its functions. All run on the
 * client's lane. client.c makes the parts and sets the pointers. */
struct client {
    struct client_config config;
    void (*finish)(struct client *c); /* client_finish */
    const struct van_user *van_user;  /* of the links' connections */
    char token[HELLO_TOKEN_MAX];      /* of the config */
    char scheduler[ADDRESS_MAX];
    struct lane *lane;
    struct view *view;
    struct tracker tracker;
    struct client_life *life;
    struct client_shared *shared;
    struct client_counts *counts;
    struct client_callbacks *callbacks;   /* callbacks.h */
    struct client_requests *requests;     /* requests.h */
    struct client_clock_gate *clock_gate; /* clock_gate.h */
    struct client_numbers *numbers;       /* numbers.h */
    struct client_floor *floor;           /* floor.h */
    struct client_links *links;           /* links.h */
    struct client_probes *probes;         /* link.h */
    struct client_views *views;           /* views.h */
    struct client_waiters *waiters;       /* chunk.h */
    struct client_slicing *slicing;       /* slicing.h */
    struct client_turns *turns;           /* slicing_turns.h */
    struct client_gathers *gathers;       /* gather.h */
    struct filtering *filtering;          /* filtering.c; NULL: no table has filters */
    struct carrying *carrying;            /* carrying.c; NULL: nothing was held back */
    struct client_fence *fences;          /* fence.h */
    struct bufpool pool;                  /* of frames, gathered keys and answers */
};

/* It is a push of rows that filters let travel. */
static inline bool request_is_carrier(const struct request *r)
{
    return r->carry.own && r->kind == REQUEST_PUSH;
}

/* client_close runs on the lane, or has. Any thread. */
static inline bool client_is_down(const struct client *c)
{
    return atomic_load_explicit(&c->life->down, memory_order_relaxed);
}

/* Of a new scan: not 0. Any thread. */
static inline uint32_t client_scan_id(struct client *c)
{
    return atomic_fetch_add(&c->shared->scans, 1) | 1u << 31;
}

/* The last thing that an entry of the lane does: completes requests that have ended, sends what may be sent now. */
static inline void client_finish(struct client *c)
{
    c->finish(c);
}

#endif
