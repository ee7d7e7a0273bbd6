/*
 * Applications on messages: requests with a head and bytes from any node to any others, answered by handlers
 * (the role of ps-lite's SimpleApp and the base of its KVWorker and KVServer).
 *
 * An app is a number that both ends agree on. A customer of the app (paramo_customer_open; a paramo_worker is
 * one) sends requests with paramo_app_request and waits for them with paramo_wait. The nodes that answer
 * serve the app by a handler (paramo_app_serve), or take requests one by one on a thread of their own, which
 * may wait while it works (paramo_app_take):
 *
 *     // on every worker                                // on the scheduler
 *     paramo_app_serve(node, 7, PARAMO_ANY, NULL, NULL); paramo_customer_open(node, 7, 0, &c);
 *     while (!paramo_app_take(node, 7, PARAMO_ANY,       paramo_message m;
 *                             0, &q, &info))             paramo_message_init(&m, PARAMO_GROUP_WORKERS);
 *         ... work ..., paramo_answer_body(q, ...);      m.head = GRADIENT;
 *                                                        paramo_app_request(c, &m, 1, NULL, NULL, NULL, &ts);
 *                                                        paramo_wait(c, ts, 0);
 *
 * A message has up to four segments of bytes: keys, lens, values and body (PARAMO_SEG_*). Each is sent and
 * received without a copy. The app defines their contents. A key-value app with its own value type and
 * slicing by server rank is a set of messages, one for each server.
 *
 * Each node an app request is sent to handles it exactly once, even if messages are lost. Requests of one
 * customer to one node arrive in the order of issue, but one that is lost, or for which the node has no room, is
 * sent again after later ones; paramo_task_call_after (task.h) always keeps an order. Tests:
 * test/node/test_app.c, test/worker/test_app_request_sim.c.
 */
#ifndef PARAMO_APP_H
#define PARAMO_APP_H

#include "paramo.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PARAMO_ANY UINT32_MAX /* any customer */

/* ---- requests ---- */

/* paramo_worker_open for any role and app (a worker is app 0): schedulers and servers, too, may then send
 * requests, push and pull. INVALID: app and customer together are not unique within the node. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_customer_open(paramo_node *node, uint32_t app, uint32_t customer,
                                                           paramo_worker **worker);

/* paramo_worker_open for a reader, on a node of any role (also READER). A reader may pull, scan and reduce, and
 * changes nothing. The servers refuse (REFUSED) its pushes, puts, deletes, clears and transforms, its pulls with
 * PARAMO_CREATE, and all of its requests to USER tables. They keep no record of it. It has no clock (INVALID) and
 * sends no messages (REFUSED), and paramo_table_open creates no table for it (NO_TABLE). No worker of this node may
 * have the number `customer`. A request ends with UNSUPPORTED if a server is of an older version. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_reader_open(paramo_node *node, uint32_t customer,
                                                         paramo_worker **reader);

/* From now on paramo_table_open of this worker or reader opens NAME as "space/NAME", and "/NAME" as "NAME". So two
 * groups of workers on the same servers have tables of their own, and share those whose names begin with a slash.
 * Handlers, messages, checkpoints and other workers use the full names. NULL, the state at first: names are used as
 * given. No other thread may open tables at that time. INVALID: empty, too long, or a slash at an end. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_worker_namespace(paramo_worker *worker, const char *space);

typedef struct paramo_message {
    size_t size;
    uint32_t to;       /* id of a node, or a group: 1, 2, 4 or a sum of them, for all its nodes */
    uint32_t app;      /* app there; PARAMO_ANY: the sender's own */
    uint32_t customer; /* customer of the app there; PARAMO_ANY: the sender's number */
    int32_t head;      /* kind of request, the app's own; handlers see it as cmd */
    uint32_t flags;    /* bits of the app, passed unchanged */
    paramo_bytes seg[PARAMO_SEGS];
    /* For a message to one node, not a group: if the values of the answer have exactly into_len bytes, they
     * are received here without a copy. */
    void *into;
    size_t into_len;
} paramo_message;
PARAMO_API void paramo_message_init(paramo_message *message, uint32_t to);

/* Answer of one node. Valid during the paramo_reply_fn. */
typedef struct paramo_reply {
    size_t size;
    uint32_t node;    /* node that answers */
    uint32_t message; /* index of the message that it answers */
    int32_t head;     /* head of that message */
    int placed;       /* the values are in the message's `into`, and seg[PARAMO_SEG_VALS] points there */
    paramo_bytes seg[PARAMO_SEGS];
} paramo_reply;
/* Called for each answer before the request completes; one at a time per customer. It may issue requests; it
 * may not wait. */
typedef void (*paramo_reply_fn)(void *arg, uint64_t ts, const paramo_reply *reply);
/* Inside a paramo_reply_fn: segment i of the answer as an array without a copy; the caller owns a reference.
 * An empty segment is an empty array. INVALID: the segment was received into `into`. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_reply_keep(const paramo_reply *reply, unsigned i,
                                                        paramo_array **array);

/* Sends count messages as one request, which completes when all nodes have answered, and returns its
 * timestamp. A message to a group goes to each of its nodes; two messages to one node are two. The structs
 * are read during the call; the bytes of the segments belong to the library until the request completes (with
 * PARAMO_COPY: until it returns). on_reply NULL: answers are dropped. options as for paramo_push, except cmd;
 * wait, test, cancel and callbacks as for any request.
 * 
 * INVALID: no such node, or an empty group. TOO_LARGE: beyond max_message_bytes. NODE_LOST: one of the nodes
 * died or left. HANDLER, or the app's own status; a node that does not serve the app within handler_wait_ms
 * answers HANDLER. All nodes are asked and waited for even if one fails; the request then ends with the first
 * failure. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_app_request(paramo_worker *worker,
                                                         const paramo_message *messages, size_t count,
                                                         paramo_reply_fn on_reply, void *arg,
                                                         const paramo_request_options *options, uint64_t *ts);
/* Number of answers so far (paramo_app_request: nodes; push and pull: slices). NOT_FOUND: some thousand
 * requests were issued since. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_answers(paramo_worker *worker, uint64_t ts, uint32_t *count);

/* ---- handlers ---- */

/* Serves the app on this node, before or after joining; earlier requests wait for it (handler_wait_ms).
 * handler runs for each request on a thread of the library, one at a time for all apps of the node. It
 * answers now or later and must not wait (IN_CALLBACK). handler NULL: requests queue for paramo_app_take.
 * customer: serves requests to this customer; PARAMO_ANY: to those that nothing else serves. INVALID: it is
 * served already. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_app_serve(paramo_node *node, uint32_t app, uint32_t customer,
                                                       paramo_handler handler, void *arg);
/* Stops serving. On return no handler call runs, and none follows. Queued requests are answered with CLOSED.
 * NOT_FOUND. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_app_close(paramo_node *node, uint32_t app, uint32_t customer);
/* Gets the next request to an app without a handler. Waits up to timeout_ms (0: without limit) and drives the
 * connections while it waits. Any number of threads. *info is valid until the request is answered. TIMEOUT;
 * CLOSED: the app is closed, the node is interrupted, or the job is over. All calls must have returned before
 * paramo_stop. A lost answer is repeated only while its node lives: before the node stops, enter a barrier
 * with the nodes that sent requests. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_app_take(paramo_node *node, uint32_t app, uint32_t customer,
                                                      uint32_t timeout_ms, paramo_request **request,
                                                      const paramo_request_info **info);
/* Before the answer: segment i of the request as an array without a copy; the caller owns a reference. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_request_keep(paramo_request *request, unsigned i,
                                                          paramo_array **array);
/* paramo_answer with len bytes of body, which are copied. On an error the request is not answered. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_answer_body(paramo_request *request, const void *body,
                                                         size_t len);
/* paramo_answer_body without a copy: each segment (or NULL) is sent from its array. The library holds a
 * reference until the answer cannot be repeated; do not change the bytes until then. For a request to a USER
 * table: LENS and VALS only. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_answer_arrays(paramo_request *request,
                                                           paramo_array *const seg[PARAMO_SEGS]);

/* ---- the nodes of the job ---- */

/* Writes the ids of a group (1, 2, 4 and sums), or of one node, ascending, at most cap. Returns how many
 * there are; 0 before the node has joined. */
PARAMO_API size_t paramo_node_ids(const paramo_node *node, uint32_t group, uint32_t *ids, size_t cap);
/* Sets [*first, *last], both included, to the keys of server rank in tables placed PARAMO_PLACE_RANGE.
 * NOT_FOUND: no such server, or it has no keys. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_server_range(const paramo_node *node, uint32_t rank,
                                                          uint64_t *first, uint64_t *last);

/* ---- life ---- */

/* paramo_stop calls fn when the node has left the cluster, in order of registration. At most 64 functions. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_on_exit(paramo_node *node, void (*fn)(void *arg), void *arg);
/* paramo_stop without waiting for the end of the job. A server's rows are lost as if it had died. When a scheduler
 * stops, the other nodes continue until they need it. */
PARAMO_API paramo_err paramo_stop_now(paramo_node *node);

/* ---- order among requests (Li et al., OSDI'14, section 3.2: task dependencies) ----
 * paramo_request_options.after names requests of the same customer that must have been executed before this
 * one is sent. Helpers that fill it in: a loop of iterations, each ending with a request that counts. */

enum { PARAMO_DELAY_MAX = 64 };
/* Bounded delay: requests of an iteration are sent after all requests issued up to the end of iteration tau +
 * 1 before it. tau 0 is sequential execution; without a paramo_delay it is eventual consistency. One thread
 * at a time. */
typedef struct paramo_delay {
    uint32_t tau;
    uint32_t at;                         /* next index in ends */
    uint64_t ends[PARAMO_DELAY_MAX + 1]; /* last timestamps of the iterations before */
} paramo_delay;
/* INVALID: tau is greater than PARAMO_DELAY_MAX. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_delay_init(paramo_delay *delay, uint32_t tau);
/* Sets options->after_all for the next request of this iteration. */
PARAMO_API void paramo_delay_apply(const paramo_delay *delay, paramo_request_options *options);
/* Ends the iteration; its last request was ts. */
PARAMO_API void paramo_delay_end(paramo_delay *delay, uint64_t ts);

#ifdef __cplusplus
}
#endif
#endif
