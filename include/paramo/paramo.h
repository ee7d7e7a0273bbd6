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
 * Rules for all functions, unless a comment says otherwise:
 *
 * - Threads: any thread may call any function. Requests of one worker are ordered as they were issued.
 * - Errors: functions return a paramo_err; paramo_last_error() has the cause in words. Outputs are set on
 *   success only.
 * - Ownership: inputs are read during the call only. Requests (push, pull, pushpull, messages) say otherwise.
 * - The library never aborts the process and installs no signal handler. After fork() every handle answers
 *   PARAMO_E_FORKED in the child.
 */
#ifndef PARAMO_PARAMO_H
#define PARAMO_PARAMO_H

#include "errors.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PARAMO_API               __attribute__((visibility("default")))
#define PARAMO_MUST_USE          __attribute__((warn_unused_result))
#define PARAMO_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define PARAMO_API
#define PARAMO_MUST_USE
#define PARAMO_PRINTF(fmt, args)
#endif

typedef struct paramo_node paramo_node;       /* membership of this process in a cluster */
typedef struct paramo_worker paramo_worker;   /* one customer of a worker node */
typedef struct paramo_table paramo_table;     /* a worker's handle on a table */
typedef struct paramo_request paramo_request; /* a request that a server handles */
typedef struct paramo_array paramo_array;     /* counted bytes (array.h) */

/* ---- errors, log, version ---- */

/* Name ("PARAMO_E_TIMEOUT") and sentence of a code. Never NULL; the strings are static. */
PARAMO_API const char *paramo_err_name(paramo_err code);
PARAMO_API const char *paramo_err_text(paramo_err code);
/* Message of the last failed call on this thread. Never NULL. Valid until the next failing call on this
 * thread. */
PARAMO_API const char *paramo_last_error(void);
/* Sets this thread's message, cut to PARAMO_ERROR_MAX bytes, and returns code: for code around the library that
 * reports its own errors the same way. Arguments may be paramo_last_error(). */
PARAMO_API paramo_err paramo_error_set(paramo_err code, const char *fmt, ...) PARAMO_PRINTF(2, 3);
#ifdef __clang_analyzer__ /* it sees that the code comes back, which is not PARAMO_OK */
#define paramo_error_set(code, ...) ((void)paramo_error_set(code, __VA_ARGS__), (code))
#endif
PARAMO_API const char *paramo_version(void);
/* Vector instructions in use: "base" (every processor of this architecture), "avx2" or "avx512". By default
 * the best that the processor has; paramo_cpu_limit or the variable PARAMO_CPU set a lower limit. Results are
 * bitwise the same at every level. */
PARAMO_API const char *paramo_cpu(void);
/* Limits the level for the whole process: one of the words above, or "auto" for no limit. Call it before the
 * first node is created. INVALID: unknown word. UNSUPPORTED: this processor does not have it. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_cpu_limit(const char *name);
/* Level: 0 errors, 1 warnings (default), 2 progress of the cluster, 3 each message. Lines go to stderr, or to
 * sink. Several threads may call sink at once. Set the sink before the first node is created. */
PARAMO_API void paramo_log_level(int level);
PARAMO_API void paramo_log_sink(void (*sink)(void *arg, int level, const char *line), void *arg);

/* ---- a node ---- */

PARAMO_API void paramo_config_init(paramo_config *cfg);
/* Reads ps-lite's variables (DMLC_ROLE, DMLC_PS_ROOT_URI ...) and Paramo's own (PARAMO_TOKEN ...); man paramo(1)
 * lists them, and paramo_config_option (options.h) has the table. PARAMO_SCHEDULER takes precedence over
 * DMLC_PS_ROOT_URI. PARAMO_CPU calls paramo_cpu_limit. A variable that is not set leaves its field unchanged.
 * INVALID: a value is wrong; the message names the variable. Strings are copied; the copies live as long as the
 * process. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_config_from_env(paramo_config *cfg);

/* Joins the cluster. Returns when all servers and workers have registered, or with an error after
 * connect_timeout_ms. With PARAMO_ROLE_ALL a scheduler, num_servers servers and one worker node for
 * num_workers customers run in this process over the inproc van; no socket is opened. The caller owns the
 * node (paramo_stop). */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_start(const paramo_config *cfg, paramo_node **node);
/* paramo_start in two steps, to set request handlers in between: paramo_create, paramo_serve, paramo_join. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_create(const paramo_config *cfg, paramo_node **node);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_join(paramo_node *node);

/* Leaves the cluster and frees the node, its workers and its tables. A worker node leaves at once. A server
 * or scheduler returns when the job is over: every worker has left, or any node has called paramo_shutdown.
 * If the job ended early, it returns the cause (NODE_LOST, NO_SCHEDULER ...). NULL is allowed. */
PARAMO_API paramo_err paramo_stop(paramo_node *node);
/* Saves all tables, with optimizer state, to a folder that every server and the scheduler can reach. The job
 * continues. The checkpoint contains everything acknowledged before the call. Any role may call it; a job takes one
 * at a time (AGAIN). number (may be NULL): the number of the checkpoint in the folder, from 1. timeout_ms 0 is 60 s;
 * after it the checkpoint is abandoned. flags: paramo_checkpoint_flags. An error leaves no new checkpoint and keeps
 * the old ones: IO (the message names file and cause), NODE_LOST, DATA_LOST, TIMEOUT. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_checkpoint_save(paramo_node *node, const char *dir,
                                                             uint32_t flags, uint32_t timeout_ms,
                                                             uint64_t *number);
/* Replaces the contents of the tables by a checkpoint (number 0: the last complete one of the folder). The
 * number of servers may differ from that of the save. Requests wait until it is loaded; pushes made since the
 * save are lost. NOT_FOUND; TABLE_EXISTS: with other options; CORRUPT: tables may then be lost (DATA_LOST
 * until they are cleared or loaded). */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_checkpoint_load(paramo_node *node, const char *dir,
                                                             uint64_t number, uint32_t timeout_ms);
/* Asks the scheduler to end the job: paramo_stop then returns on servers and scheduler. Any role may call
 * it. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_shutdown(paramo_node *node, const char *reason);
/* Makes every wait of this node return CLOSED soon. Async-signal-safe. The node must still be stopped. */
PARAMO_API void paramo_interrupt(paramo_node *node);
/* paramo_interrupt for a server of a job that continues. The paramo_stop that follows, or is running, first migrates
 * the server's partitions to others, for at most a minute. Async-signal-safe. */
PARAMO_API void paramo_drain(paramo_node *node);

PARAMO_API int paramo_node_is(const paramo_node *node, paramo_role role);
PARAMO_API uint32_t paramo_node_id(const paramo_node *node); /* 1, 8 + 2 rank, 9 + 2 rank */
PARAMO_API uint32_t paramo_node_rank(const paramo_node *node);
/* Sizes at the time this node joined, itself included. paramo_node_ids has the present members. */
PARAMO_API uint32_t paramo_num_servers(const paramo_node *node);
PARAMO_API uint32_t paramo_num_workers(const paramo_node *node);
PARAMO_API int paramo_is_recovery(const paramo_node *node);    /* this node took a dead node's rank */
PARAMO_API uint16_t paramo_node_port(const paramo_node *node); /* the port it listens on; 0 if none */
/* OK while this node is a member of its job. Afterwards the reason: SHUTDOWN after a normal end, or an error
 * that paramo_stop returns as well (NODE_LOST, NO_SCHEDULER, FENCED ...). Never waits; callbacks and handlers
 * may call it. CLOSED: the node has not joined. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_job_status(const paramo_node *node);
/* Writes the ids of dead nodes, at most cap. Returns how many there are. */
PARAMO_API size_t paramo_dead_nodes(const paramo_node *node, uint32_t *ids, size_t cap);

/* Waits until every node of the group (1, 2, 4 and sums) has entered. customer tells apart several barriers
 * of one group. timeout_ms 0: 60 s. BARRIER: nodes died; the message names them. TIMEOUT: the message names
 * the nodes that have not entered. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_barrier(paramo_node *node, uint32_t group, uint32_t customer,
                                                     uint32_t timeout_ms);

/* ---- a worker ---- */

/* Opens a worker with its own lane, connections and timestamps. customer_id is unique within the node. The
 * caller owns it (paramo_worker_close); paramo_stop closes it, too. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_worker_open(paramo_node *node, uint32_t customer_id,
                                                         paramo_worker **worker);
/* Ends requests in flight with CLOSED, then frees the worker. On return every request has completed, every
 * callback has returned, and the library uses no array of the caller. Free arrays of incomplete requests
 * after this call only. No other thread may use the worker. Does nothing inside a callback. NULL is
 * allowed. */
PARAMO_API void paramo_worker_close(paramo_worker *worker);

PARAMO_API void paramo_table_options_init(paramo_table_options *options);
/* Opens a table by name; creates it on every server if it does not exist. TABLE_EXISTS: it exists with other
 * options; the message names the field. options NULL: the table must exist (NO_TABLE). */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_table_open(paramo_worker *worker, const char *name,
                                                        const paramo_table_options *options,
                                                        paramo_table **table);
PARAMO_API void paramo_table_close(paramo_table *table);
PARAMO_API void paramo_table_info(const paramo_table *table, paramo_table_options *options);

/* A list of n keys that many pulls name some of, such as the keys of data that is read again and again. A pull names
 * them by their places in it (paramo_kv.keyset, .places), besides the keys themselves. Servers of this process note in
 * the keyset where the rows are, 4 bytes for each key and table. keys[n] ascend without repeats and stay the caller's,
 * unchanged, until paramo_keyset_free. Any thread; requests of several workers may use it at once. MEMORY. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_keyset_new(const uint64_t *keys, size_t n,
                                                        paramo_keyset **keyset);
/* No request that names it is in flight. NULL is allowed. */
PARAMO_API void paramo_keyset_free(paramo_keyset *keyset);

PARAMO_API void paramo_kv_init(paramo_kv *kv);
PARAMO_API void paramo_request_options_init(paramo_request_options *options);

/* Each issues a request and returns its timestamp in *ts (NULL is allowed with a callback). options may be
 * NULL. push applies vals by the table's optimizer, exactly once, even if messages are lost. pull writes the
 * rows of keys to vals. pushpull pushes, then pulls the same keys, as one request. Until the request
 * completes, keys, vals and lens belong to the library. With PARAMO_COPY, keys and the inputs of push are the
 * caller's again on return. Changing an array earlier may end the request with one of the errors below,
 * partly applied. INVALID, KEYS_UNSORTED, KEYS_REPEATED, SIZE_MISMATCH, KEY_RANGE, NO_TABLE, CLOSED, AGAIN,
 * TOO_LARGE, MEMORY: nothing was sent. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_push(paramo_worker *worker, paramo_table *table,
                                                  const paramo_kv *kv, const paramo_request_options *options,
                                                  uint64_t *ts);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_pull(paramo_worker *worker, paramo_table *table,
                                                  const paramo_kv *kv, const paramo_request_options *options,
                                                  uint64_t *ts);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_pushpull(paramo_worker *worker, paramo_table *table,
                                                      const paramo_kv *kv,
                                                      const paramo_request_options *options, uint64_t *ts);

/* Waits for a request and returns its status. timeout_ms 0: until the request's deadline. TIMEOUT after a
 * shorter timeout leaves the request running: paramo_test asks for it, paramo_cancel and paramo_worker_close
 * end it. OK for a timestamp that completed long ago; the last 1,024 failures that nothing waited for are
 * kept. INVALID: no request has this timestamp (0, or not issued yet). MEMORY: a server lacks memory; a push
 * has not been applied on it, but that of a pushpull may have been. If paramo_interrupt (CLOSED) or the
 * end of the node (FENCED, NO_SCHEDULER, SHUTDOWN ...) cuts the wait short, the request ends and its arrays
 * are the caller's again; a push may or may not have been applied. When the node is declared dead, all its
 * requests end with FENCED at once, with or without a wait; so paramo_test finds them completed, and their
 * callbacks are called. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_wait(paramo_worker *worker, uint64_t ts, uint32_t timeout_ms);
/* Waits for all requests in flight. Returns the first failure. Timeouts, interrupts and the end of the node
 * act as in paramo_wait, on all of them. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_wait_all(paramo_worker *worker, uint32_t timeout_ms);
/* *done is 1 if the request has completed (paramo_wait then returns its status), otherwise 0. INVALID as
 * paramo_wait. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_test(paramo_worker *worker, uint64_t ts, int *done);
/* Ends an incomplete request with CANCELLED. On return its arrays are the caller's. A cancelled push was
 * applied once or not at all. NOT_FOUND: the request had completed. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_cancel(paramo_worker *worker, uint64_t ts);
/* For an event loop of the caller: *fd is readable when paramo_worker_poll has work. From then on callbacks
 * run inside paramo_worker_poll only. The descriptor stays the library's. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_worker_fd(paramo_worker *worker, int *fd);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_worker_poll(paramo_worker *worker);

/* ---- clocks: how far the workers of a job may be apart (docs/CONSISTENCY.md) ---- */

/* A worker's clock is the number of iterations that it has ended. Bulk-synchronous training (BSP) pulls for
 * iteration c after paramo_clock_wait(worker, c, ...); stale-synchronous training (SSP) with bound S after
 * paramo_clock_wait(worker, c - S, ...), from iteration S on. All workers of the job that have joined count,
 * each customer of a process as one, until they leave, are closed, or are declared dead. A worker begins with
 * the minimum of those that count, or with the last minimum if none does; so the minimum never falls.
 *
 * Counts the worker from now on. *clock (may be NULL): where it begins. INVALID: it has a clock. FULL. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_clock_join(paramo_worker *worker, uint64_t *clock);
/* Ends an iteration; does not wait. *clock (may be NULL): the number that the worker reaches when all requests that
 * it has issued before have completed. A request that fails counts as completed; paramo_wait returns its error.
 * INVALID: it has no clock. AGAIN: the requests of 1,024 iterations are in flight. NOT_FOUND, FENCED ...: the
 * scheduler no longer counts it. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_clock(paramo_worker *worker, uint64_t *clock);
/* Waits until all workers that count have reached the clock. Requests that are issued afterwards see all that
 * these workers have pushed up to it. A number that is known to be reached costs no message. timeout_ms 0: 60 s.
 * TIMEOUT: the message names the workers that are behind, their clocks, and how long the call has waited. A worker that
 * dies counts until its death is known. INVALID: it has no clock, or has itself ended fewer iterations. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_clock_wait(paramo_worker *worker, uint64_t clock,
                                                        uint32_t timeout_ms);
/* The worker no longer counts: call it at the end of the worker's data, for example, when others continue. Waits
 * until the scheduler knows the iterations before. paramo_worker_close does the same without that wait. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_clock_leave(paramo_worker *worker);
typedef struct paramo_clock_info {
    size_t size;
    uint64_t clock;                          /* iterations ended */
    uint64_t told;                           /* iterations that the scheduler knows */
    uint64_t minimum;                        /* that all workers have reached, as far as this one knows */
    uint64_t waits, waited_ns;               /* of paramo_clock_wait, where it had to ask */
    uint32_t awaited_node, awaited_customer; /* the worker for which the minimum waited last; node 0: none */
    int counts;                              /* it has a clock */
    uint32_t workers;                        /* workers that have a clock, as of `minimum`; 0: not known */
} paramo_clock_info;
/* Fills in *info, whose size is set. */
PARAMO_API void paramo_clock_get(const paramo_worker *worker, paramo_clock_info *info);
#define PARAMO_CLOCK_AGES 17
/* The staleness of a table's pulls, in clocks (SSP). ages[i] is the number of pulls that this worker issued i clocks
 * ahead of the slowest worker that counted, as far as it knew, or ahead of their at_clock. The last one counts all
 * pulls that were further ahead. The slowest worker may have advanced by the time of the pull, so the true ages are
 * at most these. Pulls without a clock do not count. Any thread. INVALID: NULL. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_table_clock_ages(const paramo_table *table,
                                                              uint64_t ages[PARAMO_CLOCK_AGES]);

/* ---- whole tables ---- */

typedef struct paramo_table_stats {
    size_t size;
    uint64_t rows;          /* rows that exist */
    uint64_t nonzero;       /* rows with a parameter that is not zero */
    uint64_t bytes;         /* bytes of memory on the servers, including freed memory that they still hold */
    uint64_t pushes, pulls; /* keys pushed and pulled since the start */
} paramo_table_stats;
PARAMO_API PARAMO_MUST_USE paramo_err paramo_table_stat(paramo_worker *worker, paramo_table *table,
                                                        paramo_table_stats *stats);
/* Removes every row and its optimizer state (dense tables: back to the initial values). If a server came back
 * without its rows, requests to the table end with DATA_LOST until it is cleared. Put and load do not help:
 * they do not tell which other rows are missing. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_table_clear(paramo_worker *worker, paramo_table *table);
/* Removes the rows of n keys, sorted and unique. Dense tables: back to the initial values. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_table_delete(paramo_worker *worker, paramo_table *table,
                                                          const uint64_t *keys, size_t n);

/* Whole rows, in batches, in ascending key order over all servers. A row has dim parameters and, with state,
 * the optimizer's state values (row_values = both). VAR tables: lens is set, and vals holds the rows one
 * after the other. rows is valid during the call of fn only. If fn returns non-zero, the iteration ends with
 * INTERRUPTED. */
typedef struct paramo_rows {
    size_t size;
    const uint64_t *keys;
    size_t n;
    const void *vals;
    const uint32_t *lens; /* VAR tables only, otherwise NULL */
    uint32_t row_values;  /* values per row; 0 for VAR tables */
} paramo_rows;
typedef int (*paramo_rows_fn)(void *arg, const paramo_rows *rows);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_table_iterate(paramo_worker *worker, paramo_table *table,
                                                           int with_state, paramo_rows_fn fn, void *arg);
/* Stores whole rows in the layout of paramo_table_iterate; replaces existing rows. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_table_put(paramo_worker *worker, paramo_table *table,
                                                       int with_state, const paramo_rows *rows);
/* Values (not bytes) of optimizer state per row: FTRL 2 dim, AdaGrad dim ... */
PARAMO_API uint32_t paramo_table_state_values(const paramo_table *table);
/* Saves or loads one table as a safetensors file: tensors "keys" U64 [n], "values" [n, dim], "state" [n, s],
 * sorted by key; VAR: "lens" U32 [n], "values" [sum]. A save writes a file beside path, syncs and renames it:
 * after a crash path has the old contents or the new. A load adds rows and replaces existing ones. FORMAT,
 * CORRUPT: the table is unchanged. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_table_save(paramo_worker *worker, paramo_table *table,
                                                        const char *path, int with_state);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_table_load(paramo_worker *worker, paramo_table *table,
                                                        const char *path);

/* ---- data assignment ---- */

/* The scheduler assigns work in units. A pool is a named list of streams (files, say). Each stream is a run of units
 * 0, 1, 2 ... of unknown length; the worker that finds its end reports it (paramo_pool_end). Units are assigned in
 * order; a worker first gets those it did in an earlier round (epoch), since it may have kept the parsed data.
 * customer is the id of the caller's customer: each customer of a node gets units of its own.
 * 
 * A unit is leased for the life of its holder. When a worker is declared dead, its unfinished units are
 * assigned again from their beginning. A worker that was only slow is fenced first: the next holder sees
 * everything the old one pushed, and no later push of the old one is applied. Requests of a fenced worker end
 * with FENCED; its paramo_pool_done ends with FENCED, or with NOT_FOUND once the process has joined again. So
 * work that marks its completion in the same push as its result is done exactly once (test/e2e/workers.c);
 * other work may be pushed twice. Workers may join a running job, also beyond num_workers, and get units. */
typedef struct paramo_work_unit {
    uint32_t stream;
    uint32_t round;
    uint64_t index;
    uint64_t token; /* identifies this lease */
} paramo_work_unit;
/* Creates the pool if it does not exist. All callers must pass the same streams and rounds. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_pool_open(paramo_node *node, const char *pool, uint32_t streams,
                                                       uint32_t rounds);
/* Gets the next unit of round. *state 0: *unit is set. 1: no unit is free, and other workers still work on the round;
 * the call has waited up to timeout_ms for a change. Call again. 2: the round is finished. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_pool_next(paramo_node *node, const char *pool, uint32_t customer,
                                                       uint32_t round, uint32_t timeout_ms,
                                                       paramo_work_unit *unit, int *state);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_pool_done(paramo_node *node, const char *pool,
                                                       const paramo_work_unit *unit);
/* Reports that the stream of this unit ends before it. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_pool_end(paramo_node *node, const char *pool,
                                                      const paramo_work_unit *unit);

/* Small shared values that the scheduler keeps, for agreeing on settings and adding up results. The value is
 * copied. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_kv_put(paramo_node *node, const char *key, const void *value,
                                                    size_t len);
/* Waits until the key exists, then copies its value of *len bytes. TOO_LARGE: cap bytes are too few; *len is
 * set. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_kv_get(paramo_node *node, const char *key, void *value,
                                                    size_t cap, size_t *len, uint32_t timeout_ms);
/* Adds n doubles to the values of the key (zeros if it does not exist), exactly once per call. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_kv_add(paramo_node *node, const char *key, const double *values,
                                                    size_t n);
/* Deletes the key, if it exists. Values are never deleted otherwise; the scheduler keeps at most 65,536
 * values of 64 MiB in all (FULL). */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_kv_delete(paramo_node *node, const char *key);

/* ---- a server's own request handlers ---- */

/* A request as its handler sees it. Valid until it is answered. */
typedef struct paramo_request_info {
    size_t size;
    const char *table;
    uint32_t sender; /* node id */
    uint32_t customer;
    uint64_t ts; /* the worker's timestamp */
    int32_t cmd;
    int push, pull; /* the request's kind; pushpull sets both */
    const uint64_t *keys;
    size_t n;
    const void *vals; /* push: vals_len values of the table's dtype */
    size_t vals_len;
    const uint32_t *lens; /* or NULL */
    uint32_t app;         /* app of the sender; of a message: the app it is for */
    uint32_t to; /* id of the node the request was sent to: this one (embedded: its part of this process) */
    uint32_t flags; /* messages (app.h): bits of the app; table is then NULL and cmd is the head */
    paramo_bytes seg[PARAMO_SEGS]; /* received bytes; for messages keys, vals and lens are these */
} paramo_request_info;
/* Handles a request to a USER table on the lane of the shard; one at a time per shard. One call has the
 * shard's whole slice of the request. It must not wait. It answers now or later, from any thread, exactly
 * once, with paramo_answer or paramo_answer_error. A repeated request gets the kept answer and is not handled
 * again. State of the handler is not replicated, migrated or checkpointed. */
typedef void (*paramo_handler)(void *arg, paramo_request *request, const paramo_request_info *info);
/* Sets the handler of a USER table; table NULL: of every USER table without its own. It may be called after
 * paramo_join: earlier requests wait for it (config.handler_wait_ms). INVALID: the table has a handler. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_serve(paramo_node *node, const char *table,
                                                   paramo_handler handler, void *arg);
/* Answers and frees the request; on an error it is not answered. For a pull: vals_len values of the table's
 * dtype (for a message: bytes) and n lengths or NULL. Both are copied. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_answer(paramo_request *request, const void *vals,
                                                    size_t vals_len, const uint32_t *lens);
PARAMO_API PARAMO_MUST_USE paramo_err paramo_answer_error(paramo_request *request, paramo_err status,
                                                          const char *message);

/* ---- counters ---- */

typedef struct paramo_counters {
    size_t size;
    uint64_t bytes_sent, bytes_received; /* on data connections, with headers */
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
#include "filter.h"
#include "functions.h"
#include "range.h"
#include "snapshot.h"
#endif
