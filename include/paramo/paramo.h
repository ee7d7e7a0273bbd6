/*
 * Paramo: a parameter server. The public C API.
 *
 * A process starts a node (paramo_start), opens one or more workers ("customers") on it, opens tables, then
 * pushes and pulls:
 *
 *     paramo_config cfg;
 *     paramo_config_init(&cfg);
 *     paramo_config_from_env(&cfg);               // DMLC_ROLE, DMLC_PS_ROOT_URI, PARAMO_* ...
 *     paramo_node *node;  paramo_start(&cfg, &node);
 *     if (paramo_node_is(node, PARAMO_ROLE_WORKER)) {
 *         paramo_worker *w;  paramo_worker_open(node, 0, &w);
 *         paramo_table *t;   paramo_table_open(w, "weights", &options, &t);
 *         uint64_t ts;       paramo_push(w, t, &kv, NULL, &ts);
 *         paramo_wait(w, ts, 0);
 *     }
 *     paramo_stop(node);                          // a server or scheduler stays until the job is over
 *
 * Threads: every function may be called from any thread unless its comment says otherwise; requests of one
 * worker are ordered as they were issued. Errors: functions return a paramo_err, and paramo_last_error() has
 * the cause in words. Outputs are set on success only. Nothing here ever aborts the process or installs a
 * signal handler; after fork() every handle answers PARAMO_E_FORKED in the child.
 */
#ifndef PARAMO_PARAMO_H
#define PARAMO_PARAMO_H

#include "errors.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PARAMO_API      __attribute__((visibility("default")))
#define PARAMO_MUST_USE __attribute__((warn_unused_result))
#else
#define PARAMO_API
#define PARAMO_MUST_USE
#endif

typedef struct paramo_node paramo_node;       /* this process's membership in a cluster */
typedef struct paramo_worker paramo_worker;   /* one customer of a worker node */
typedef struct paramo_table paramo_table;     /* a worker's handle on a table */
typedef struct paramo_request paramo_request; /* server side: one request being handled */
typedef struct paramo_array paramo_array;     /* counted bytes (array.h) */

/* ---- errors, log, version ---- */

/* The code's name ("PARAMO_E_TIMEOUT") and sentence. Never NULL. */
PARAMO_API const char *paramo_err_name(paramo_err code);
PARAMO_API const char *paramo_err_text(paramo_err code);
/* The message of the last failed call on this thread; valid until the next failing call on it. Never NULL. */
PARAMO_API const char *paramo_last_error(void);
PARAMO_API const char *paramo_version(void);
/* The vector instructions that the loops over numbers use: "base" (what every processor of this architecture
 * has; NEON on AArch64), "avx2" or "avx512"; all that the processor has unless paramo_cpu_limit or the
 * variable PARAMO_CPU says less. Results are the same to the last bit at every level. Any thread. */
PARAMO_API const char *paramo_cpu(void);
/* Takes one of these words, or "auto" to lift the limit, for the whole process; set it before the first node
 * is created. INVALID: another word; UNSUPPORTED: this processor does not have it. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_cpu_limit(const char *name);
/* 0 errors only, 1 warnings (default), 2 progress of the cluster, 3 each message. Lines go to stderr, or to
 * sink, which several threads may call at once; set it before the first node is created. */
PARAMO_API void paramo_log_level(int level);
PARAMO_API void paramo_log_sink(void (*sink)(void *arg, int level, const char *line), void *arg);

/* ---- a node
 * ------------------------------------------------------------------------------------------------ */

PARAMO_API void paramo_config_init(paramo_config *cfg);
/* Reads DMLC_ROLE, DMLC_PS_ROOT_URI (a name or an address), DMLC_PS_ROOT_PORT, DMLC_NUM_SERVER,
 * DMLC_NUM_WORKER, DMLC_NODE_HOST, DMLC_INTERFACE, DMLC_LOCAL, DMLC_RANK, PORT / DMLC_PORT, DMLC_PS_VAN_TYPE,
 * PS_HEARTBEAT_INTERVAL, PS_HEARTBEAT_TIMEOUT, PS_DROP_MSG, PS_VERBOSE, PS_RESEND (only looked at: what is
 * lost is always sent again), PS_RESEND_TIMEOUT, and
 * PARAMO_TOKEN, PARAMO_LISTEN, PARAMO_NAME, PARAMO_DOMAIN, PARAMO_VAN, PARAMO_TRUSTED_FABRIC,
 * PARAMO_CONNECT_TIMEOUT_MS, PARAMO_REQUEST_TIMEOUT_MS, PARAMO_SCHEDULER (before DMLC_PS_ROOT_URI),
 * PARAMO_SCHEDULER_WAIT_MS, PARAMO_NOTIFY_FD, PARAMO_SHARDS, PARAMO_WEIGHT, PARAMO_REPLICAS, PARAMO_STATE,
 * PARAMO_META, PARAMO_CHECKPOINT_DIR, PARAMO_CHECKPOINT_EVERY (seconds), PARAMO_CHECKPOINT_FULL_EVERY,
 * PARAMO_CHECKPOINT_KEEP, PARAMO_RESTORE, PARAMO_ON_LOSS (end or restore), PARAMO_RECOVERY_MS, PARAMO_CPU
 * (paramo_cpu_limit, at once). What is not set is left as it is. A value that does not parse: INVALID naming
 * the variable. Strings are copies that live as long as the process, whatever becomes of the environment. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_config_from_env(paramo_config *cfg);

/* Joins the cluster and returns when it is complete (all servers and workers have registered), or with an
 * error after connect_timeout_ms. With PARAMO_ROLE_ALL, a scheduler, num_servers servers and one worker node
 * with room for num_workers customers run in this process over the inproc van; no socket is opened. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_start(const paramo_config *cfg, paramo_node **node);
/* Like paramo_start, but server request handlers can be set before the node joins: create, then
 * paramo_serve(...), then paramo_join. paramo_start is the two together. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_create(const paramo_config *cfg, paramo_node **node);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_join(paramo_node *node);

/* Leaves the cluster and frees the node. Workers: says goodbye at once. Servers and scheduler: return when
 * the job is over (every worker has left, or paramo_shutdown was called anywhere), with the error that ended
 * it if it ended early (NODE_LOST, NO_SCHEDULER ...). Workers and tables of the node are closed. NULL is
 * allowed. */
PARAMO_API paramo_err paramo_stop(paramo_node *node);
/* Takes a checkpoint of all tables into a folder that every server and the scheduler see, while the job goes
 * on: rows with optimizer state. What was acknowledged before the call is in it. Any role may call it; one at
 * a time in a job (AGAIN). number (may be NULL): which one it is in the folder, from 1. timeout_ms: 0 is 60
 * s; it is given up then. On an error there is no new checkpoint, and those that were there are as they were:
 * IO (a full disk, say; the message names file and cause), NODE_LOST, DATA_LOST, TIMEOUT.
 * flags: of paramo_checkpoint_flags. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_checkpoint_save(paramo_node *node, const char *dir,
                                                             uint32_t flags, uint32_t timeout_ms,
                                                             uint64_t *number);
/* Puts a checkpoint (number 0: the last whole one of the folder) in the place of what its tables hold,
 * whatever the number of servers it was made by. Requests wait meanwhile; what was pushed since it was taken
 * is gone. NOT_FOUND, CORRUPT (after which the tables may be lost: DATA_LOST until they are cleared or
 * loaded), TABLE_EXISTS (with other options). */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_checkpoint_load(paramo_node *node, const char *dir,
                                                             uint64_t number, uint32_t timeout_ms);
/* Asks the scheduler to end the job: servers and scheduler return from paramo_stop. Any role may call it. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_shutdown(paramo_node *node, const char *reason);
/* Makes every wait of this node return CLOSED soon; async-signal-safe; the node must still be stopped. */
PARAMO_API void paramo_interrupt(paramo_node *node);
/* The same for a server of a job that goes on: the paramo_stop that follows, or waits now, first has others
 * take what the server has, for a minute at most. Async-signal-safe. */
PARAMO_API void paramo_drain(paramo_node *node);

PARAMO_API int paramo_node_is(const paramo_node *node, paramo_role role);
PARAMO_API uint32_t paramo_node_id(const paramo_node *node); /* 1, 8 + 2 rank, 9 + 2 rank */
PARAMO_API uint32_t paramo_node_rank(const paramo_node *node);
/* When this node joined, itself included: more may have come since (paramo_node_ids has them). */
PARAMO_API uint32_t paramo_num_servers(const paramo_node *node);
PARAMO_API uint32_t paramo_num_workers(const paramo_node *node);
PARAMO_API int paramo_is_recovery(const paramo_node *node);    /* this node took a dead node's rank */
PARAMO_API uint16_t paramo_node_port(const paramo_node *node); /* the port it listens on; 0 if none */
/* Ids of nodes that died; returns how many there are, writes at most cap. */
PARAMO_API size_t paramo_dead_nodes(const paramo_node *node, uint32_t *ids, size_t cap);

/* Waits until every node of the group (1, 2, 4 and sums) has entered. customer tells several barriers of one
 * group apart. BARRIER error names the nodes that died; TIMEOUT those that have not come. timeout_ms 0: 60 s.
 */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_barrier(paramo_node *node, uint32_t group, uint32_t customer,
                                                     uint32_t timeout_ms);

/* ---- a worker
 * ------------------------------------------------------------------------------------------------ */

/* customer_id is unique within the node; each worker has its own lane, connections and timestamps. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_worker_open(paramo_node *node, uint32_t customer_id,
                                                         paramo_worker **worker);
/* Ends requests in flight with CLOSED, then frees the worker. On return every request has completed, each
 * callback has returned, and nothing reads or writes a caller's array: arrays of requests that have not
 * completed are freed after this call, never before. No other thread may use the worker. Never from a
 * callback, where it does nothing. NULL is allowed. */
PARAMO_API void paramo_worker_close(paramo_worker *worker);

PARAMO_API void paramo_table_options_init(paramo_table_options *options);
/* Opens a table by name, creating it on every server if nobody has yet; all who open it must agree on the
 * options (TABLE_EXISTS says which field differs). With options NULL it must exist (NO_TABLE). */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_table_open(paramo_worker *worker, const char *name,
                                                        const paramo_table_options *options,
                                                        paramo_table **table);
PARAMO_API void paramo_table_close(paramo_table *table);
PARAMO_API void paramo_table_info(const paramo_table *table, paramo_table_options *options);

PARAMO_API void paramo_kv_init(paramo_kv *kv);
PARAMO_API void paramo_request_options_init(paramo_request_options *options);

/* Each issues a request and returns its timestamp in *ts (which may be NULL when a callback is given).
 * The caller leaves keys, vals and lens alone until the request completes (with PARAMO_COPY: keys and what
 * push reads are free again on return). options may be NULL. Errors before anything is sent: INVALID,
 * KEYS_UNSORTED, KEYS_REPEATED, SIZE_MISMATCH, KEY_RANGE, NO_TABLE, CLOSED, AGAIN, TOO_LARGE, MEMORY. (A
 * request whose arrays are changed all the same may end with one of these, and be done in part.) push:
 * applies vals by the table's optimizer, exactly once, whatever is lost on the way. pull: writes the rows of
 * keys to vals. pushpull: push, then pull of the same keys, as one request. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_push(paramo_worker *worker, paramo_table *table,
                                                  const paramo_kv *kv, const paramo_request_options *options,
                                                  uint64_t *ts);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_pull(paramo_worker *worker, paramo_table *table,
                                                  const paramo_kv *kv, const paramo_request_options *options,
                                                  uint64_t *ts);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_pushpull(paramo_worker *worker, paramo_table *table,
                                                      const paramo_kv *kv,
                                                      const paramo_request_options *options, uint64_t *ts);

/* Waits for a request and returns its status. timeout_ms 0: the request's own deadline; TIMEOUT from a
 * shorter wait leaves the request running. A timestamp that completed long ago is OK; the failures of the
 * last 1,024 failed requests that nobody waited for are kept. INVALID at once for a timestamp that no request
 * has: 0 (a request that failed to be issued sets none), or one not issued yet.
 * An array of a request is the library's until the request has completed. After a shorter wait's TIMEOUT the
 * request is still in flight: paramo_test tells, paramo_cancel and paramo_worker_close end it. A wait that
 * paramo_interrupt (CLOSED) or the end of the node (its cause: FENCED, NO_SCHEDULER, SHUTDOWN ...) cuts short
 * ends the request, too, and its arrays are the caller's; a push may or may not have been applied. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_wait(paramo_worker *worker, uint64_t ts, uint32_t timeout_ms);
/* Waits for all requests in flight; returns the first failure among them. A TIMEOUT, an interrupt and the end
 * of the node as above, for all of them. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_wait_all(paramo_worker *worker, uint32_t timeout_ms);
/* *done: 1 if the request has completed (its status is then what paramo_wait would return), else 0. INVALID
 * for a timestamp that no request has, as paramo_wait. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_test(paramo_worker *worker, uint64_t ts, int *done);
/* Ends a request with CANCELLED if it has not completed; its arrays are free on return. A push that was
 * cancelled may or may not have been applied (never twice). NOT_FOUND: it had completed. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_cancel(paramo_worker *worker, uint64_t ts);
/* For one's own event loop: a descriptor that is readable when paramo_worker_poll has something to do. With
 * it, callbacks run in paramo_worker_poll only. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_worker_fd(paramo_worker *worker, int *fd);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_worker_poll(paramo_worker *worker);

/* ---- whole tables
 * ------------------------------------------------------------------------------------------ */

typedef struct paramo_table_stats {
    size_t size;
    uint64_t rows;          /* rows that exist */
    uint64_t nonzero;       /* rows with a parameter that is not zero */
    uint64_t bytes;         /* memory on the servers, what was freed and is held still included */
    uint64_t pushes, pulls; /* keys pushed and pulled since the start */
} paramo_table_stats;
PARAMO_API PARAMO_MUST_USE paramo_err paramo_table_stat(paramo_worker *worker, paramo_table *table,
                                                        paramo_table_stats *stats);
/* Removes every row (dense: back to the initial values), the optimizer's state too. After a server came back
 * without its rows only this makes the table usable again: until then all else ends with DATA_LOST, also put
 * and load, which say nothing about the rows that they do not bring. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_table_clear(paramo_worker *worker, paramo_table *table);
/* Removes the rows of these keys (sorted, unique). Dense: back to the initial values. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_table_delete(paramo_worker *worker, paramo_table *table,
                                                          const uint64_t *keys, size_t n);

/* Whole rows, in ascending key order over all servers, in batches. state_dim values of optimizer state follow
 * the dim parameters of each row when state is asked for (row_values = dim + state values); for VAR tables
 * lens is set and vals holds the rows one after the other. Return non-zero to stop; the iteration then ends
 * with INTERRUPTED. */
typedef struct paramo_rows {
    size_t size;
    const uint64_t *keys;
    size_t n;
    const void *vals;
    const uint32_t *lens; /* VAR tables only, else NULL */
    uint32_t row_values;  /* values per row; 0 for VAR tables */
} paramo_rows;
typedef int (*paramo_rows_fn)(void *arg, const paramo_rows *rows);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_table_iterate(paramo_worker *worker, paramo_table *table,
                                                           int with_state, paramo_rows_fn fn, void *arg);
/* Stores whole rows as iterate gave them (with_state: dim + state values per row), replacing what is there.
 */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_table_put(paramo_worker *worker, paramo_table *table,
                                                       int with_state, const paramo_rows *rows);
/* Values of optimizer state per row: FTRL 2 dim, AdaGrad dim ... */
PARAMO_API uint32_t paramo_table_state_values(const paramo_table *table);
/* One table to or from a safetensors file (tensors "keys" U64 [n], "values" [n, dim], "state" [n, s]; VAR:
 * "lens" U32 [n], "values" [sum]; sorted by key). Written beside path, synced, then renamed: a crash leaves
 * the old file or the new. load adds to or replaces rows; FORMAT and CORRUPT leave the table as it was. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_table_save(paramo_worker *worker, paramo_table *table,
                                                        const char *path, int with_state);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_table_load(paramo_worker *worker, paramo_table *table,
                                                        const char *path);

/* ---- data assignment
 * ------------------------------------------------------------------------------------------ */

/* The scheduler deals out work in parts. A pool is a named list of streams (files, say), each an open-ended
 * run of parts 0, 1, 2 ...; whoever finds that a stream ends at part k (that part does not exist) says so.
 * Parts are dealt in order, first those this worker already did in an earlier round (epoch), whose parsed
 * form it may have kept. `who` tells several customers of a node apart (use the customer id).
 *
 * A part is leased, to its holder's life: a dead worker's unfinished parts are dealt again, from their
 * beginning. One that was only slow (stopped, cut off) and is declared dead is fenced first: whoever gets the
 * part sees the table with all that the other has pushed, and nothing of it comes after; its requests end
 * with FENCED, its late paramo_pool_done with FENCED or, when the process has joined anew, NOT_FOUND. So work
 * that leaves a mark in the same push as its result, which the next holder looks for, is done exactly once
 * (test/e2e/workers.c); without, what the dead one had pushed of an unfinished part is pushed again. Workers
 * may join while a job runs (also more than num_workers) and get parts. */
typedef struct paramo_work_unit {
    uint32_t stream;
    uint32_t round;
    uint64_t index;
    uint64_t token; /* identifies this lease */
} paramo_work_unit;
/* Creates the pool if it is not there (all must agree on streams and rounds). */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_pool_open(paramo_node *node, const char *pool, uint32_t streams,
                                                       uint32_t rounds);
/* The next part of `round`; *state 0: got one; 1: none now, others are still at work on the round (ask again:
 * the call itself waits up to timeout_ms for a change); 2: the round is finished. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_pool_next(paramo_node *node, const char *pool, uint32_t who,
                                                       uint32_t round, uint32_t timeout_ms,
                                                       paramo_work_unit *unit, int *state);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_pool_done(paramo_node *node, const char *pool,
                                                       const paramo_work_unit *unit);
/* This part does not exist: its stream has ended before it. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_pool_end(paramo_node *node, const char *pool,
                                                      const paramo_work_unit *unit);

/* Small shared values kept by the scheduler, for agreeing on settings and adding up results. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_kv_put(paramo_node *node, const char *key, const void *value,
                                                    size_t len);
/* Waits until the key is there. TOO_LARGE if it does not fit into cap; *len is then its length. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_kv_get(paramo_node *node, const char *key, void *value,
                                                    size_t cap, size_t *len, uint32_t timeout_ms);
/* Adds n doubles to the key's values (missing: zeros). Applied once per call. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_kv_add(paramo_node *node, const char *key, const double *values,
                                                    size_t n);
/* Forgets the key, which need not be there: the scheduler keeps 65,536 values of 64 MiB in all (FULL), and
 * none goes by itself. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_kv_delete(paramo_node *node, const char *key);

/* ---- a server's own request handlers
 * ------------------------------------------------------------------------ */

/* What a handler sees of a request; valid until it is answered. */
typedef struct paramo_request_info {
    size_t size;
    const char *table;
    uint32_t sender; /* node id */
    uint32_t customer;
    uint64_t ts; /* the worker's timestamp */
    int32_t cmd;
    int push, pull; /* what is asked */
    const uint64_t *keys;
    size_t n;
    const void *vals; /* push: vals_len values of the table's dtype */
    size_t vals_len;
    const uint32_t *lens; /* or NULL */
    uint32_t app;         /* of the sender; of a message, the app it is for */
    uint32_t to;          /* the id of the node that was asked: this one (embedded: of this part of it) */
    uint32_t flags;       /* messages (app.h): the app's own bits; table is NULL then, cmd the head */
    paramo_bytes seg[PARAMO_SEGS]; /* the bytes as they came; messages: keys, vals and lens are these */
} paramo_request_info;
/* Runs on the shard's lane for each request to a USER table, one at a time per shard; a shard's whole slice
 * of a request in one call. It answers now or later, from any thread, exactly once, by paramo_answer or
 * paramo_answer_error; it must not wait. A repeated request (a lost answer) is not handed over again: the
 * kept answer is repeated. The handler's own state is the user's: it is not replicated, moved or
 * checkpointed. */
typedef void (*paramo_handler)(void *arg, paramo_request *request, const paramo_request_info *info);
/* table NULL: for every USER table without a handler of its own. After paramo_join, too: what came before
 * waited (config.handler_wait_ms). INVALID: the table has a handler already. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_serve(paramo_node *node, const char *table,
                                                   paramo_handler handler, void *arg);
/* Answers and frees the request (on an error it is still to be answered). For a pull: vals_len values
 * (copied; of a message: bytes), lens NULL or n lengths (copied). */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_answer(paramo_request *request, const void *vals,
                                                    size_t vals_len, const uint32_t *lens);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_answer_error(paramo_request *request, paramo_err status,
                                                          const char *message);

/* ---- counters
 * ------------------------------------------------------------------------------------------------- */

typedef struct paramo_counters {
    size_t size;
    uint64_t bytes_sent, bytes_received; /* on data connections, headers included */
    uint64_t frames_sent, frames_received;
    uint64_t requests, retries, moved;
    uint64_t in_flight;
} paramo_counters;
PARAMO_API void paramo_worker_counters(paramo_worker *worker, paramo_counters *counters);

#ifdef __cplusplus
}
#endif

#include "app.h"
#include "array.h"
#endif
