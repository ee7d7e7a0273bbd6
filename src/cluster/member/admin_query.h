/*
 * An admin client: asks a scheduler one thing, without taking a place in the job: for the view, how all is,
 * for a checkpoint to be taken or loaded, or for a server to be drained. One attempt with one deadline, at
 * each of the scheduler's addresses until one answers. All on one lane. Tests:
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
    struct status *status; /* NULL: was not asked for; status_fini() and free() are for who takes it */
    uint64_t number;       /* of the checkpoint */
};

struct admin_query_config {
    struct van *van;
    struct lane *lane;
    const char *scheduler;         /* its addresses, as a member's; copied */
    const char *token;             /* used until admin_query_start returns */
    uint64_t incarnation;          /* random, not 0 */
    uint64_t deadline;             /* lane_now's clock */
    const struct ckpt_order *ckpt; /* NULL: the view is asked for; used until admin_query_start returns */
    bool load;                     /* a checkpoint: to be loaded, not taken */
    uint32_t drain;                /* the server of this id is to be drained; 0: none is */
    bool status;                   /* how the job is, and the view with it */
    /* Once, from a round of the lane: what was asked for, or why not (err_text() says more): CONNECT, TOKEN,
     * ..., TIMEOUT, AGAIN: the job is not complete yet. The look is gone already. result is borrowed, and all
     * NULL and 0 on an error; what is taken out of it is set to NULL there.
     */
    void (*done)(void *arg, paramo_err status, struct admin_query_result *result);
    void *arg;
};

/* On an error nothing was begun and done does not come; INVALID: an address or the token is no such thing. */
MUST_USE paramo_err admin_query_start(const struct admin_query_config *config,
                                      struct admin_query **admin_query);
void admin_query_cancel(struct admin_query *admin_query);

#endif
