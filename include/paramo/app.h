/*
 * Applications on messages: requests with a head and bytes from any node to any others, answered by handlers
 * (the role of ps-lite's SimpleApp, and what its KVWorker and KVServer stand on).
 *
 * An app is a number that both ends agree on. On the asking side a customer of the app (paramo_customer_open;
 * a paramo_worker is one) issues requests with paramo_app_request and waits for them with paramo_wait, as for
 * a push. On the answering side each node serves the app, by a handler (paramo_app_serve), or by taking
 * requests one by one on a thread of its own, which may wait for other things while it works on one
 * (paramo_app_take):
 *
 *     // on every worker                                // on the scheduler
 *     paramo_app_serve(node, 7, PARAMO_ANY, NULL, NULL); paramo_customer_open(node, 7, 0, &c);
 *     while (!paramo_app_take(node, 7, PARAMO_ANY,       paramo_message m;
 *                             0, &q, &info))             paramo_message_init(&m, PARAMO_GROUP_WORKERS);
 *         ... work ..., paramo_answer_body(q, ...);      m.head = GRADIENT;
 *                                                        paramo_app_request(c, &m, 1, NULL, NULL, NULL, &ts);
 *                                                        paramo_wait(c, ts, 0);
 *
 * A message has up to four segments of bytes, each sent from and received without a copy: keys, lens, values
 * and body (PARAMO_SEG_*). What stands in them is the app's own: a key-value app of any value type, with its
 * own slicing by server rank, is a set of messages, one for each server.
 *
 * Requests are handed to an app exactly once per node they were sent to, whatever is lost on the way; those
 * of one customer to one node in the order of issue. Tests: test/node/test_app.c,
 * test/worker/test_app_request_sim.c.
 */
#ifndef PARAMO_APP_H
#define PARAMO_APP_H

#include "paramo.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PARAMO_ANY UINT32_MAX /* any customer */

/* ---- asking ---- */

/* As paramo_worker_open (which is app 0), for any role and app: the scheduler and servers may ask, push and
 * pull, too. app and customer together are unique within the node (INVALID). */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_customer_open(paramo_node *node, uint32_t app, uint32_t customer,
                                                           paramo_worker **worker);

typedef struct paramo_message {
    size_t size;
    uint32_t to;       /* a node's id, or a group: 1, 2, 4 or a sum of them (then every node of it) */
    uint32_t app;      /* which app there; PARAMO_ANY: the asking customer's own */
    uint32_t customer; /* which customer of it there; PARAMO_ANY: the same number as the asking one's */
    int32_t head;      /* the request in a number; handlers see it as cmd */
    uint32_t flags;    /* the app's own bits; handed over as they are */
    paramo_bytes seg[PARAMO_SEGS];
    /* One node's answer only (to must not be a group): if its values are exactly into_len bytes, they are
     * received here, without a copy. */
    void *into;
    size_t into_len;
} paramo_message;
PARAMO_API void paramo_message_init(paramo_message *message, uint32_t to);

/* One node's answer. Valid during the call that gets it. */
typedef struct paramo_reply {
    size_t size;
    uint32_t node;    /* who answers */
    uint32_t message; /* the index of the message that it answers */
    int32_t head;     /* that message's */
    int placed;       /* the values are in the message's `into`; seg[PARAMO_SEG_VALS] says so, too */
    paramo_bytes seg[PARAMO_SEGS];
} paramo_reply;
/* Called as answers come in, one at a time per customer, before the request completes; it may issue requests,
 * never wait. */
typedef void (*paramo_reply_fn)(void *arg, uint64_t ts, const paramo_reply *reply);
/* Inside a paramo_reply_fn: segment i of the answer as an array, without a copy, to keep it. An empty segment
 * is an empty array; INVALID for a segment that was received into `into`. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_reply_keep(const paramo_reply *reply, unsigned i,
                                                        paramo_array **array);

/* Sends count messages (each may go to several nodes) as one request, which completes when all have answered,
 * and returns its timestamp. Two messages to one node are two. The structs may go on return; the caller
 * leaves the bytes of the segments alone until the request completes (with PARAMO_COPY: free on return).
 * on_reply NULL: what is answered is dropped. options as for paramo_push, also `after`; its cmd is not used.
 * Wait, test, cancel and callbacks as for any request. INVALID: no such node, nothing to send to; TOO_LARGE:
 * beyond max_message_bytes; NODE_LOST: a node of those died or has left; HANDLER or what the app said. Where
 * there are several nodes, all are asked and waited for, whatever becomes of one; then the request ends with
 * the first failure. A node that does not serve the app within its handler_wait_ms answers HANDLER. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_app_request(paramo_worker *worker,
                                                         const paramo_message *messages, size_t count,
                                                         paramo_reply_fn on_reply, void *arg,
                                                         const paramo_request_options *options, uint64_t *ts);
/* How many answers a request has got so far (paramo_app_request: nodes; push and pull: parts of the request).
 * Counted until some thousand requests later; then NOT_FOUND. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_answers(paramo_worker *worker, uint64_t ts, uint32_t *count);

/* ---- answering ---- */

/* From now on this node serves the app: handler runs for each request, on a thread of the library, one at a
 * time for all apps of the node; it answers now or later and must not wait (waiting is IN_CALLBACK). handler
 * NULL: requests queue for paramo_app_take. customer: requests to that one; PARAMO_ANY: those for which no
 * other is there. Before or after joining; what came earlier waited (handler_wait_ms). INVALID: served
 * already. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_app_serve(paramo_node *node, uint32_t app, uint32_t customer,
                                                       paramo_handler handler, void *arg);
/* No handler call is running or comes after this. What is queued is answered with CLOSED. NOT_FOUND. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_app_close(paramo_node *node, uint32_t app, uint32_t customer);
/* The next request to an app that has no handler; waits up to timeout_ms (0: until there is one) and drives
 * the connections meanwhile. Any number of threads. The request is answered like one that a handler got; info
 * is valid until then. TIMEOUT; CLOSED when the app is closed, the node is interrupted, or the job is over.
 * All who take have returned before paramo_stop is called. An answer that is lost on its way is given again
 * only while its node is there: nodes that stop after their last answer enter a barrier with those who asked.
 */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_app_take(paramo_node *node, uint32_t app, uint32_t customer,
                                                      uint32_t timeout_ms, paramo_request **request,
                                                      const paramo_request_info **info);
/* Before it is answered: segment i of the request as an array, without a copy, to keep it. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_request_keep(paramo_request *request, unsigned i,
                                                          paramo_array **array);
/* Answers and frees the request; see paramo_answer. Segments are copied. On an error it is still to be
 * answered. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_answer_body(paramo_request *request, const void *body,
                                                         size_t len);
/* The same without a copy: each segment (or NULL) is sent from its array, of which a reference is held until
 * nobody can ask for the answer again; the bytes must not change meanwhile. For a request to a USER table:
 * LENS and VALS only. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_answer_arrays(paramo_request *request,
                                                           paramo_array *const seg[PARAMO_SEGS]);

/* ---- who is there ---- */

/* The ids of a group (1, 2, 4 and sums), or of one node, ascending; returns how many there are, writes at
 * most cap. 0: there are none, or the node has not joined. */
PARAMO_API size_t paramo_node_ids(const paramo_node *node, uint32_t group, uint32_t *ids, size_t cap);
/* Keys [*first, *last] (both included) are server rank's in tables placed PARAMO_PLACE_RANGE. NOT_FOUND: no
 * such server, or no keys are its own. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_server_range(const paramo_node *node, uint32_t rank,
                                                          uint64_t *first, uint64_t *last);

/* ---- life ---- */

/* Called by paramo_stop, in order of registration, when the node has left the cluster. At most 64. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_on_exit(paramo_node *node, void (*fn)(void *arg), void *arg);
/* As paramo_stop, but without waiting for the job's end: a server takes its share of the tables with it, a
 * scheduler leaves the others without one (they go on, until they need it). */
PARAMO_API paramo_err paramo_stop_now(paramo_node *node);

/* ---- order among requests (Li et al., OSDI'14, section 3.2: task dependencies) ----
 * paramo_request_options.after names requests of the same customer that must have been executed before this
 * one is sent. Helpers that fill it in: a loop of iterations, each ending with a request that counts. */

enum { PARAMO_DELAY_MAX = 64 };
/* Bounded delay: an iteration's requests come after all that were issued up to the end of the iteration tau +
 * 1 before it. tau = 0 is sequential execution; without a paramo_delay it is eventual consistency. One thread
 * at a time. */
typedef struct paramo_delay {
    uint32_t tau;
    uint32_t at;                         /* of ends */
    uint64_t ends[PARAMO_DELAY_MAX + 1]; /* last timestamps of the iterations before */
} paramo_delay;
/* INVALID: tau is beyond PARAMO_DELAY_MAX. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_delay_init(paramo_delay *delay, uint32_t tau);
/* Sets options->after_all for the next request of this iteration. */
PARAMO_API void paramo_delay_apply(const paramo_delay *delay, paramo_request_options *options);
/* The iteration's last request was ts: the next one begins. */
PARAMO_API void paramo_delay_end(paramo_delay *delay, uint64_t ts);

#ifdef __cplusplus
}
#endif
#endif
