/*
 * An admin client: it sends one request to a scheduler without joining the job. The request is for the view, for the
 * job's status, to take or load a checkpoint, or to drain a server. There is one attempt with one deadline; it tries
 * the scheduler's addresses until one answers. It never knows what the answer is for. All on one lane. Tests:
 * test/cluster/test_admin_query.c, test_sched_status.c.
 */
#ifndef CLUSTER_MEMBER_ADMIN_QUERY_H
#define CLUSTER_MEMBER_ADMIN_QUERY_H

#include "cluster/view/view.h"
#include "van/van.h"
#include "wire/ckpt_order.h"
#include "wire/status.h"

struct admin_query;

struct admin_query_result {
    struct view *view;     /* a reference, or NULL */
    struct status *status; /* NULL: not asked for; the taker calls status_fini() and free() */
    uint64_t number;       /* of the checkpoint */
};

struct admin_query_config {
    struct van *van;
    struct lane *lane;
    const char *scheduler;         /* its addresses, as a member's; copied */
    const char *token;             /* used until admin_query_start returns */
    uint64_t incarnation;          /* random, not 0 */
    uint64_t deadline;             /* lane_now's clock */
    const struct ckpt_order *ckpt; /* NULL: query the view; used until admin_query_start returns */
    bool load;                     /* load this checkpoint instead of taking one */
    uint32_t drain;                /* id of the server to drain; 0: none */
    bool status;                   /* query the job's status, with the view */
    /* Once, from a round of the lane: the result, or an error (err_text() says more): CONNECT, TOKEN, ...,
     * TIMEOUT, AGAIN: the job is not complete yet. The query is gone. result is borrowed, all NULL and 0 on
     * an error; set to NULL what you take out of it. */
    void (*done)(void *arg, paramo_err status, struct admin_query_result *result);
    void *arg;
};

/* After an error done does not come. INVALID: an address or the token is malformed. */
MUST_USE paramo_err admin_query_start(const struct admin_query_config *config,
                                      struct admin_query **admin_query);
void admin_query_cancel(struct admin_query *admin_query);

#endif
