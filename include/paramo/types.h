/*
 * Enumerations and option structs of the public API, no functions. Includes only <stdint.h> and <stddef.h>,
 * so every layer may use it.
 *
 * Each options struct begins with `size`; its _init function sets it (or set it to sizeof). A newer library
 * uses defaults for fields that an older caller does not have.
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
    PARAMO_ROLE_ALL = 7, /* everything in one process: "embedded" */
    /* Not a part of the job: the job does not count it and does not wait for it. It opens readers
     * (paramo_reader_open); other calls that need a member end with INVALID. */
    PARAMO_ROLE_READER = 8
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
    PARAMO_TABLE_SPARSE = 0, /* any 64-bit keys; a push, or a pull with CREATE, creates a missing row */
    PARAMO_TABLE_DENSE = 1,  /* keys 0 .. rows-1, all there from the start */
    PARAMO_TABLE_VAR = 2,    /* any keys, rows of any length (lens); optimizers assign, add and max only */
    PARAMO_TABLE_USER = 3    /* no storage: a request handler on the servers answers */
} paramo_table_kind;

/* How keys fall on the ring, that is, on servers. */
typedef enum paramo_placement {
    PARAMO_PLACE_AUTO = 0,    /* dense tables: DENSE; all others: MIXED */
    PARAMO_PLACE_UNIFORM = 1, /* keys are hashes already, used as they are */
    PARAMO_PLACE_DENSE = 2,   /* 0 .. rows-1 spread evenly and contiguously */
    PARAMO_PLACE_MIXED = 3,   /* any ids, mixed by a bijection first */
    PARAMO_PLACE_RANGE = 4    /* contiguous equal ranges by server rank (ps-lite's rule, top key included) */
} paramo_placement;

/* Effect of a push on a row: w its parameters, g the pushed values. X(number, NAME, name); the numbers count up
 * from 0. */
/* clang-format off */
#define PARAMO_OPTIMIZERS(X)                                                                \
    X(0, ASSIGN,   assign)   /* w = g */                                                    \
    X(1, ADD,      add)      /* w += g */                                                   \
    X(2, SGD,      sgd)      /* w -= alpha (g + l2 w), then soft threshold alpha l1 */      \
    X(3, MOMENTUM, momentum) /* v = momentum v + g + l2 w; w -= alpha v */                  \
    X(4, ADAGRAD,  adagrad)  /* n += g^2; w -= alpha g / (beta + sqrt n) */                 \
    X(5, FTRL,     ftrl)     /* FTRL-proximal, McMahan et al., KDD 2013, Algorithm 1 */     \
    X(6, ADAM,     adam)     /* Kingma and Ba, ICLR 2015, Algorithm 1 */                    \
    X(7, MAX,      max)      /* w = max(w, g) */
/* clang-format on */

typedef enum paramo_optimizer {
#define PARAMO_OPTIMIZERS_ENUM(number, NAME, name) PARAMO_OPT_##NAME = number,
    PARAMO_OPTIMIZERS(PARAMO_OPTIMIZERS_ENUM)
#undef PARAMO_OPTIMIZERS_ENUM
} paramo_optimizer;

/* How many there are. */
#define PARAMO_OPTIMIZERS_ONE(number, NAME, name) +1
#define PARAMO_OPTIMIZER_COUNT                    (0 PARAMO_OPTIMIZERS(PARAMO_OPTIMIZERS_ONE))

/* Initial parameters of a row: a function of seed, key and column alone, so that a row starts with the same
 * values on every server and in every order. */
typedef enum paramo_init_kind {
    PARAMO_INIT_ZERO = 0,
    PARAMO_INIT_CONSTANT = 1, /* a */
    PARAMO_INIT_UNIFORM = 2,  /* [a, b) */
    PARAMO_INIT_NORMAL = 3    /* mean a, standard deviation b */
} paramo_init_kind;

/* How the pushes of several workers are applied (paramo_table_options.aggregate). docs/CONSISTENCY.md, section 5. */
typedef enum paramo_aggregate {
    PARAMO_AGGREGATE_NONE = 0, /* the optimizer is applied to each push, as it comes */
    PARAMO_AGGREGATE_SUM = 1,  /* once to the sum of all pushes of a clock (paramo_clock) */
    PARAMO_AGGREGATE_MEAN = 2  /* once to that sum, divided by the number of workers that count */
} paramo_aggregate;

/* paramo_table_options.replicas: the same as the job */
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
    /* Copies of every key beside its owner's: 0 to 3, at most the job's (paramo_config.replicas), or
     * PARAMO_REPLICAS_OF_JOB, the default. Fewer copies make pushes cheaper. When more servers die than there
     * are copies, the job ends with DATA_LOST, which names the lost keys. A table with 0 copies in a job with
     * more: the job goes on, and requests for the lost keys end with DATA_LOST until the table is cleared.
     * Not for USER. */
    uint32_t replicas;
    /* Synchronous update; NONE by default. For SPARSE tables of F32 and F64, with any optimizer but assign and max.
     * Only workers that have a clock push to such a table. A push, and a pull by such a worker, is sent when all
     * workers that count have ended as many iterations as its worker had when it was issued (as with at_clock). A
     * push counts for the iteration that its worker is in; the pushes of one iteration may come in any order, the
     * bits are the same. A worker with a clock pulls the result of all iterations before its own. Workers without a
     * clock, functions, scans and checkpoints see all pushes that have arrived. Values are at most 2^40, and are
     * rounded to multiples of 2^-64. A row takes 16 * (dim + 1) bytes more. */
    paramo_aggregate aggregate;
} paramo_table_options;

/* Keys of which many requests name some (paramo_keyset_new). */
typedef struct paramo_keyset paramo_keyset;

/* Keys and values of one request. Key i has the values vals[i*dim ..], or with lens the next lens[i]
 * values. */
typedef struct paramo_kv {
    size_t size;
    const uint64_t *keys; /* n keys, ascending, no repeats */
    size_t n;
    void *vals;      /* push: read; pull and pushpull: written (pushpull: read first) */
    size_t vals_len; /* number of values (not bytes) in vals; for a pull with lens: its capacity */
    uint32_t *lens;  /* NULL, or n lengths: read by push, written by pull */
    /* Of a pull, or NULL: key i is key places[i] of the keyset (paramo_keyset_new). Servers of this process then find
     * rows again without a look-up; others ignore it. The values are the same. Not with PARAMO_COPY */
    paramo_keyset *keyset;
    const uint32_t *places; /* n of them */
} paramo_kv;

typedef enum paramo_on_loss {
    /* the job ends with DATA_LOST (without replicas: requests for the lost rows fail) */
    PARAMO_ON_LOSS_END = 0,
    PARAMO_ON_LOSS_RESTORE = 1 /* the lost rows return to the last checkpoint; all others are kept */
} paramo_on_loss;

typedef enum paramo_checkpoint_flags {
    /* Saves only the changes since the last checkpoint in the folder, which must be kept to load this one. A
     * full checkpoint is saved if the last one was not made with this flag or by checkpoint_every_s, if the
     * scheduler has saved or loaded one elsewhere since, or if too many depend on each other
     * (checkpoint_full_every). */
    PARAMO_CHECKPOINT_INCREMENTAL = 1
} paramo_checkpoint_flags;

typedef enum paramo_request_flags {
    PARAMO_COPY = 1, /* keys, values and lens are copied before the call returns */
    /* a full queue is PARAMO_E_AGAIN at once; without it the call drives the lane until there is room */
    PARAMO_NOWAIT = 2,
    PARAMO_TRUSTED = 4, /* the caller guarantees that keys are sorted and unique: not checked */
    PARAMO_CREATE = 8,  /* pull from a sparse table: create missing rows, not only compute their values */
    /* a thread waits for the request although it has a callback. Without it a thread of the library stays
     * awake for the callback, which costs processor time */
    PARAMO_WAITED = 16,
    /* the caller issues another request of the worker within microseconds. This one may wait for it, for at most half a
     * millisecond, so that both leave with one system call. paramo_wait ends that, too */
    PARAMO_MORE = 32
} paramo_request_flags;

/* Called once when a request completes, on some thread of this process that holds no lane. Callbacks of one
 * customer run one at a time, in completion order. It may issue requests; it may not wait. */
typedef void (*paramo_callback)(void *arg, uint64_t ts, paramo_err status);

typedef struct paramo_request_options {
    size_t size;
    uint32_t flags;
    int32_t priority;    /* higher first, in the sender's queue only; 0 */
    int32_t cmd;         /* passed to request handlers; 0 */
    uint32_t timeout_ms; /* 0: the node's request_timeout_ms */
    paramo_callback callback;
    void *callback_arg;
    /* Task dependencies: the request is sent when these requests of the same worker have completed. If one of
     * them fails, it ends with CANCELLED. The list is copied. */
    const uint64_t *after;
    size_t after_count;
    uint64_t after_all; /* also after all requests up to this timestamp; 0: none */
    /* The request is sent when all workers that count have reached this clock (paramo_clock); 0: at once. So it sees
     * what they pushed up to it, without a thread that waits. Its deadline still holds; the error message then names
     * the workers that are behind. The worker must have a clock, and have ended as many iterations itself (INVALID).
     * If the worker stops counting, the request ends with INVALID, or with what ended its clock. */
    uint64_t at_clock;
    /* Push, pull and pushpull, of keys or of a range, and pull_page: of each row only the columns from `column` on,
     * `columns` of them; 0: all. vals then has `columns` values for each key, and only these travel. A push takes the
     * optimizer's step for these columns; the others, and their state, stay as they are, bit for bit. A missing row
     * is created whole, with initial values. INVALID: the rows have fewer columns. UNSUPPORTED: rows of no fixed
     * length (VAR, USER), a push to a table whose steps are of whole rows (adam, aggregate), or a server of an older
     * version (docs/RANGES.md). */
    uint32_t column, columns;
    /* The request is a subtask of this one: the task is not answered before the request has completed and its callback
     * has returned. If it fails, the task ends with its error. Inside the task's function and callbacks only
     * (task.h). */
    struct paramo_task *task;
} paramo_request_options;

/* What paramo_reduce computes over the parameters of rows (functions.h). The numbers are on the wire. */
typedef enum paramo_reduce_function {
    PARAMO_REDUCE_COUNT = 0, /* rows and values only */
    PARAMO_REDUCE_SUM = 1,
    PARAMO_REDUCE_NORM1 = 2,         /* sum of magnitudes */
    PARAMO_REDUCE_NORM2_SQUARED = 3, /* sum of squares */
    PARAMO_REDUCE_DOT = 4, /* of two tables: sum of products, over the keys that have a row in both */
    PARAMO_REDUCE_MIN = 5,
    PARAMO_REDUCE_MAX = 6,
    PARAMO_REDUCE_TOP = 7,   /* the values of greatest magnitude */
    PARAMO_REDUCE_USER = 255 /* a function of the application's own (function_types.h) */
} paramo_reduce_function;
#define PARAMO_REDUCE_FUNCTIONS   8     /* without USER */
#define PARAMO_REDUCE_ENTRIES_MAX 16384 /* of TOP */

/* What paramo_transform does to the parameters w of a row; x: those of the second table (functions.h). The numbers
 * are on the wire. */
typedef enum paramo_transform_function {
    PARAMO_TRANSFORM_FILL = 0,  /* w = a */
    PARAMO_TRANSFORM_SCALE = 1, /* w = a w */
    PARAMO_TRANSFORM_ADD = 2,   /* w += a */
    PARAMO_TRANSFORM_AXPY = 3,  /* w += a x */
    PARAMO_TRANSFORM_COPY = 4,  /* w = x */
    PARAMO_TRANSFORM_USER = 255 /* a function of the application's own (function_types.h) */
} paramo_transform_function;
#define PARAMO_TRANSFORM_FUNCTIONS 5 /* without USER */

/* One parameter of a row. */
typedef struct paramo_entry {
    uint64_t key;
    uint32_t column;
    uint32_t reserved; /* 0 */
    double value;
} paramo_entry;

/* Borrowed bytes. */
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
    /* "host:port", "[v6]:port"; with several, separated by commas, one leads and the others stand by */
    const char *scheduler;
    const char *token; /* secret of the job; "": a job without one, on loopback only */
    /* host to listen on; NULL: for a scheduler, the host of `scheduler`; for others, 127.0.0.1 if the scheduler is
     * on this machine's loopback, otherwise the address from which it is reached */
    const char *listen;
    /* port to listen on; 0: for a scheduler, the port of `scheduler`; for others, any free one */
    uint16_t port;
    /* host that others connect to; default: listen, or the address that reaches the scheduler */
    const char *advertise;
    const char *name;                  /* name of the node, for a stable rank; default none */
    int32_t rank;                      /* wanted rank; -1: the scheduler's choice */
    uint32_t num_servers, num_workers; /* the job's size; scheduler and embedded */
    uint32_t shards;                   /* server: shards (threads) per server; 1 */
    /* "auto": ucx where possible, otherwise tcp; "tcp"; "ucx": tables by ucx only; "inproc" */
    const char *van;
    /* After its connection broke, the scheduler counts as dead when its address has refused connections for
     * this long: 1 s; longer if something restarts it. If it does not answer at all, after
     * heartbeat_timeout_ms, or this if it is longer. */
    uint32_t scheduler_wait_ms;
    /* Scheduler: a socket to which it writes "listening\n", and "complete\n" when all nodes have joined. The
     * caller keeps its ownership. -1: none. */
    int32_t notify_fd;
    /* limit of paramo_start for reaching the scheduler and completing the cluster; 60 s */
    uint32_t connect_timeout_ms;
    uint32_t request_timeout_ms;   /* default deadline of a request; 60 s */
    uint32_t heartbeat_ms;         /* 1 s */
    uint32_t heartbeat_timeout_ms; /* silence after which a node counts as dead; 10 s */
    uint64_t max_message_bytes;    /* a longer frame is refused; 1 GiB */
    uint32_t drop_percent;   /* PS_DROP_MSG: drop this share of the received data frames, for tests; 0 */
    uint32_t trusted_fabric; /* 1: allows UCX to other hosts, which does not check or hide the bytes; 0 */
    /* how long a request waits until a handler of its app or USER table is set; 0: not at all; 10 s */
    uint32_t handler_wait_ms;
    uint32_t weight;    /* server: relative share of the keys of each of its shards, 1 to 1,000,000; 1 */
    const char *domain; /* server: failure domain, such as a rack; default: its host */
    /* Scheduler: a folder, created if needed, for the job's state. A scheduler that was killed continues the
     * job when it is started again with the same settings; the others wait for it for ten minutes. NULL: the
     * job ends with its scheduler. */
    const char *state;
    /* Scheduler, instead of state: "etcd://HOST:PORT[,HOST:PORT...][/JOB]" keeps the job's state in etcd,
     * below "paramo/JOB/" (default "job"). If another scheduler leads that job, this one stands by until it
     * leads or the job is over (paramo_join: CLOSED). A scheduler that has lost the lead ends with FENCED. */
    const char *meta;
    /* Scheduler: a folder that all servers and the scheduler can reach, and the interval at which the job
     * saves checkpoints to it. NULL and 0: none. */
    const char *checkpoint_dir;
    uint32_t checkpoint_every_s;
    /* Scheduler: the job starts with the last complete checkpoint of this folder. NULL: with empty tables. */
    const char *restore_dir;
    /* time without an answer after which a request is probed, and sent again if it did not arrive; 0:
     * measured, 20 ms to 4 s */
    uint32_t retry_ms;
    /* scheduler: copies of every key beside its owner's, 0 to 3; this many servers may die without loss; 0 */
    uint32_t replicas;
    /* Scheduler: every checkpoint_full_every-th checkpoint is full, the others have the changes since the one
     * before; 1 to 1,024; 10. checkpoint_keep: how many periodic checkpoints are kept, besides those they
     * depend on; 0: all; 3. */
    uint32_t checkpoint_full_every, checkpoint_keep;
    /* Scheduler: a paramo_on_loss, for when the last copy of rows dies with its server; END. RESTORE needs
     * checkpoint_dir. */
    uint32_t on_loss;
    /* Scheduler: folders, separated by colons, in or below which nodes and `paramo checkpoint` may save and
     * load checkpoints, besides checkpoint_dir and restore_dir. If this and checkpoint_dir are not set,
     * any folder is allowed that is new, empty, or holds only checkpoints. NULL: none. */
    const char *checkpoint_allow;
    /* Scheduler: when no worker is left and some have died, how long the job waits for a restarted one; 0: it
     * ends at once. While other workers live, a dead one may be restarted in any case. */
    uint32_t recovery_ms;
    /* Worker: filters of all its tables, as far as they fit them (filter.h): "push=CHAIN", "pull=CHAIN", or both
     * with ';' between them. NULL: none. */
    const char *filter;
    /* Plugins to load before the node starts (plugin.h): files, separated by colons. NULL: none. */
    const char *plugin;
} paramo_config;

#ifdef __cplusplus
}
#endif
#endif
