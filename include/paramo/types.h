/*
 * Plain vocabulary of the public API: enumerations and option structs, no functions. Includes only
 * <stdint.h> and <stddef.h>, so every layer may use it.
 *
 * Each options struct begins with `size`: set it by the struct's _init function (or to sizeof). A library
 * newer than the caller takes the fields that the caller does not know at their defaults.
 */
#ifndef PARAMO_TYPES_H
#define PARAMO_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "errors.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum paramo_role {
    PARAMO_ROLE_SCHEDULER = 1,
    PARAMO_ROLE_SERVER = 2,
    PARAMO_ROLE_WORKER = 4,
    PARAMO_ROLE_ALL = 7 /* everything in one process: "embedded" */
} paramo_role;

/* Node ids and group ids are ps-lite's: scheduler 1; groups 1, 2, 4 and their sums; servers 8 + 2 rank,
 * workers 9 + 2 rank. */
#define PARAMO_ID_SCHEDULER    1u
#define PARAMO_GROUP_SCHEDULER 1u
#define PARAMO_GROUP_SERVERS   2u
#define PARAMO_GROUP_WORKERS   4u
#define PARAMO_GROUP_ALL       7u
#define PARAMO_ID_SERVER(rank) (8u + 2u * (uint32_t)(rank))
#define PARAMO_ID_WORKER(rank) (9u + 2u * (uint32_t)(rank))

typedef enum paramo_dtype {
    PARAMO_F32 = 0,
    PARAMO_F64 = 1,
    PARAMO_I32 = 2,
    PARAMO_I64 = 3,
    PARAMO_U8 = 4
} paramo_dtype;

/* How a table stores its rows. */
typedef enum paramo_table_kind {
    PARAMO_TABLE_SPARSE =
        0,                  /* any 64-bit keys; a row appears when it is first pushed or pulled with CREATE */
    PARAMO_TABLE_DENSE = 1, /* keys 0 .. rows-1, all there from the start */
    PARAMO_TABLE_VAR = 2,   /* any keys, rows of any length (lens); assign and add only */
    PARAMO_TABLE_USER = 3   /* no storage: a request handler on the servers answers */
} paramo_table_kind;

/* How keys fall on the ring, that is, on servers. */
typedef enum paramo_placement {
    PARAMO_PLACE_AUTO = 0,    /* dense tables: DENSE; all others: MIXED */
    PARAMO_PLACE_UNIFORM = 1, /* keys are hashes already: taken as they are */
    PARAMO_PLACE_DENSE = 2,   /* 0 .. rows-1 spread evenly and contiguously */
    PARAMO_PLACE_MIXED = 3,   /* any ids: through a bijection first */
    PARAMO_PLACE_RANGE = 4    /* contiguous equal ranges by server rank (ps-lite's rule, top key included) */
} paramo_placement;

/* What a push does to a row. w is the row's parameters, g what was pushed, t the row's count of pushes. */
typedef enum paramo_optimizer {
    PARAMO_OPT_ASSIGN = 0,   /* w = g */
    PARAMO_OPT_ADD = 1,      /* w += g */
    PARAMO_OPT_SGD = 2,      /* w -= alpha (g + l2 w), then soft threshold alpha l1 */
    PARAMO_OPT_MOMENTUM = 3, /* v = momentum v + g + l2 w; w -= alpha v */
    PARAMO_OPT_ADAGRAD = 4,  /* n += g^2; w -= alpha g / (beta + sqrt n) */
    PARAMO_OPT_FTRL = 5,     /* FTRL-proximal, McMahan et al., KDD 2013, Algorithm 1 */
    PARAMO_OPT_ADAM = 6      /* Kingma and Ba, ICLR 2015, Algorithm 1 */
} paramo_optimizer;

/* Initial parameters of a row; a function of seed, key and column alone, so that a row starts the same on
 * every server and in every order. */
typedef enum paramo_init_kind {
    PARAMO_INIT_ZERO = 0,
    PARAMO_INIT_CONSTANT = 1, /* a */
    PARAMO_INIT_UNIFORM = 2,  /* [a, b) */
    PARAMO_INIT_NORMAL = 3    /* mean a, standard deviation b */
} paramo_init_kind;

/* paramo_table_options.replicas: as many as the job has. */
#define PARAMO_REPLICAS_OF_JOB 255

typedef struct paramo_table_options {
    size_t size;
    paramo_table_kind kind;
    paramo_dtype dtype; /* optimizers other than assign and add need F32 */
    uint32_t dim;       /* values per key; 1 by default; unused for VAR and USER */
    uint64_t rows;      /* DENSE: number of rows */
    paramo_placement placement;
    paramo_optimizer optimizer;  /* ADD by default */
    float alpha, beta;           /* learning rate, its smoothing (FTRL, AdaGrad); 0.1, 1 */
    float l1, l2;                /* 0, 0 */
    float momentum;              /* 0.9 */
    float beta1, beta2, epsilon; /* Adam: 0.9, 0.999, 1e-8 */
    paramo_init_kind init;
    float init_a, init_b;
    uint64_t seed;
    /* Copies of every key beside its owner's, 0 to 3 and at most the job's (paramo_config.replicas), or
     * PARAMO_REPLICAS_OF_JOB, the default. Fewer make a push cheaper. When more servers die than that, the
     * job ends with DATA_LOST and says which keys are lost. With 0 of a job that has more, it goes on: what a
     * dead server had of this table is gone, and requests for it end with DATA_LOST until the table is
     * cleared. Not for USER, which has no copies. */
    uint32_t replicas;
} paramo_table_options;

/* One request's keys and values. Values of key i are vals[i*dim ..], or lens[i] values each, one after the
 * other. */
typedef struct paramo_kv {
    size_t size;
    const uint64_t *keys; /* n keys, ascending, no repeats */
    size_t n;
    void *vals;      /* push: read; pull and pushpull: written (pushpull: read first) */
    size_t vals_len; /* number of values (not bytes) in vals; for a pull with lens: its capacity */
    uint32_t *lens;  /* NULL, or n lengths: read by push, written by pull */
} paramo_kv;

typedef enum paramo_on_loss {
    PARAMO_ON_LOSS_END = 0, /* the job ends with DATA_LOST (without replicas: requests for the rows fail) */
    PARAMO_ON_LOSS_RESTORE = 1 /* those rows go back to the last checkpoint; everything else goes on */
} paramo_on_loss;

typedef enum paramo_checkpoint_flags {
    /* Only what has changed since the last checkpoint in the folder, which stays needed for loading this one:
     * if that was taken with this flag, too, or by checkpoint_every_s, the scheduler has taken or loaded none
     * elsewhere since, and not too many are based on each other (checkpoint_full_every). Else a full one. */
    PARAMO_CHECKPOINT_INCREMENTAL = 1
} paramo_checkpoint_flags;

typedef enum paramo_request_flags {
    PARAMO_COPY = 1,    /* keys, values and lens are copied before the call returns */
    PARAMO_NOWAIT = 2,  /* a full queue is PARAMO_E_AGAIN at once; otherwise the call drives the lane until
                           there is room */
    PARAMO_TRUSTED = 4, /* the caller vouches that keys are sorted and unique: not checked again */
    PARAMO_CREATE =
        8, /* pull from a sparse table: create missing rows (else their initial values are only computed) */
    PARAMO_WAITED = 16 /* it has a callback, but some thread waits for it, too. Without this flag a thread of
                          the library stays awake for the callback, at the price of processor time */
} paramo_request_flags;

/* Called once when a request completes, on some thread of this process, after the lane is released; those of
 * one customer one at a time, in completion order. It may issue requests; it may not wait. */
typedef void (*paramo_callback)(void *arg, uint64_t ts, paramo_err status);

typedef struct paramo_request_options {
    size_t size;
    uint32_t flags;
    int32_t priority;    /* higher first, in the sender's queue only; 0 */
    int32_t cmd;         /* handed to request handlers; 0 */
    uint32_t timeout_ms; /* 0: the node's request_timeout_ms */
    paramo_callback callback;
    void *callback_arg;
    /* Task dependencies: the request is held back until these requests of the same worker have completed. One
     * that failed ends it with CANCELLED. The list is copied. */
    const uint64_t *after;
    size_t after_count;
    uint64_t after_all; /* and all with this timestamp or a lower one; 0: none */
} paramo_request_options;

/* Bytes that somebody else owns. */
typedef struct paramo_bytes {
    const void *data;
    size_t len;
} paramo_bytes;

/* The segments of a message. */
enum { PARAMO_SEG_KEYS = 0, PARAMO_SEG_LENS = 1, PARAMO_SEG_VALS = 2, PARAMO_SEG_BODY = 3, PARAMO_SEGS = 4 };

/* A node's settings. Strings are copied. */
typedef struct paramo_config {
    size_t size;
    uint32_t roles; /* one paramo_role, or PARAMO_ROLE_ALL */
    const char
        *scheduler;    /* "host:port", "[v6]:port"; several with commas between: one leads, others stand by */
    const char *token; /* the job's secret; "" is a job without one, accepted on loopback only */
    const char *listen;    /* host to listen on; default "127.0.0.1" */
    uint16_t port;         /* server: port to listen on; 0 picks one */
    const char *advertise; /* host that others are told to use; default: listen, or the address that reaches
                              the scheduler */
    const char *name;      /* node name for a stable rank; default none */
    int32_t rank;          /* wanted rank; -1: the scheduler's choice */
    uint32_t num_servers, num_workers; /* the job's size; scheduler and embedded */
    uint32_t shards;                   /* server: shards (threads) per server; 1 */
    const char
        *van; /* "auto": ucx where it may be, else tcp; "tcp"; "ucx": no tables by anything else; "inproc" */
    /* A scheduler whose connection broke is given up once its address has said for so long that nobody
     * listens there: 1 s; longer if something starts it anew. (Whatever is less certain, silence or a network
     * that does not answer, has heartbeat_timeout_ms, or this if it is longer.) */
    uint32_t scheduler_wait_ms;
    /* Scheduler: a socket on which it says "listening\n", and "complete\n" when all have joined, to whoever
     * started it. It stays the caller's. -1: none. */
    int32_t notify_fd;
    uint32_t connect_timeout_ms; /* how long start waits for the scheduler and for the cluster to be complete;
                                    60 s */
    uint32_t request_timeout_ms; /* default deadline of a request; 60 s */
    uint32_t heartbeat_ms;       /* 1 s */
    uint32_t heartbeat_timeout_ms; /* silence after which a node counts as dead; 10 s */
    uint64_t max_message_bytes;    /* a longer frame is refused; 1 GiB */
    uint32_t drop_percent;         /* PS_DROP_MSG: drop this share of received data frames, for tests */
    uint32_t trusted_fabric;  /* 1: tables may go to other hosts by UCX, which neither checks nor hides their
                                 bytes; 0 */
    uint32_t handler_wait_ms; /* how long a request waits for an app or a USER table's handler to be set; 0:
                                 not at all; 10 s */
    uint32_t weight; /* server: the share of the keys that each of its shards gets, beside those of others, 1
                        to 1,000,000; 1 */
    const char *domain; /* server: what it fails together with, such as a rack; default: its host */
    /* Scheduler: a directory (made if need be) that keeps the job's state, so that a scheduler that was
     * killed can be started again with the same settings and goes on with the job; the others wait for it for
     * ten minutes. NULL: the job ends with its scheduler. */
    const char *state;
    /* Scheduler, instead of state: "etcd://HOST:PORT[,HOST:PORT...][/JOB]": the job's state is kept in etcd,
     * below "paramo/JOB/" ("job"). If another scheduler leads that job, this one stands by, until it leads or
     * the job is over (paramo_join: CLOSED). One that is found to lead no more ends with FENCED. */
    const char *meta;
    /* Scheduler. A folder that all servers and the scheduler see, and how often a checkpoint of the job is
     * taken into it by itself; NULL and 0: none is. */
    const char *checkpoint_dir;
    uint32_t checkpoint_every_s;
    /* Scheduler: the job begins with the last whole checkpoint of this folder. NULL: with nothing. */
    const char *restore_dir;
    uint32_t retry_ms; /* after how long without an answer a request is asked about, and sent again if it did
                          not come; 0: as measured, from 20 ms to 4 s */
    uint32_t replicas; /* scheduler: copies of every key beside its owner's, 0 to 3: so many servers may die
                          and nothing is lost; 0 */
    /* Scheduler: each so many-th checkpoint is a full one, from 1 to 1,024, those between have what changed
     * since the one before; 10. Of those that it took by itself so many stay, and those that they are based
     * on; 0: all; 3. */
    uint32_t checkpoint_full_every, checkpoint_keep;
    /* Scheduler: one paramo_on_loss: what becomes of the job when the last copy of rows dies with its server;
     * END. RESTORE needs checkpoint_dir. */
    uint32_t on_loss;
    /* Scheduler: folders, with colons between, in or below which checkpoints may be saved and loaded when a
     * node or `paramo checkpoint` asks for it, beside checkpoint_dir and restore_dir. Where neither this nor
     * checkpoint_dir is set, any folder may that is new, empty, or has nothing but checkpoints in it. NULL:
     * no others. */
    const char *checkpoint_allow;
    /* Scheduler: when no worker is left, and some have died, how long the job waits for one that is started
     * anew; 0, it ends at once. Workers that others outlive may be started anew in any case. */
    uint32_t recovery_ms;
} paramo_config;

#ifdef __cplusplus
}
#endif
#endif
