/*
 * The view of a job for a node that is no member of it: the scheduler is asked for it each second, as by an admin
 * client, and at once when a newer one is needed. The scheduler knows nothing of the node, and does not wait for it.
 * An observer never knows what the view is for. All on one lane, unless noted. Tests: test/cluster/test_observer.c,
 * test/node/test_readers.c.
 */
#ifndef CLUSTER_MEMBER_OBSERVER_H
#define CLUSTER_MEMBER_OBSERVER_H

#include "cluster/view/view.h"
#include "van/van.h"

struct observer;

struct observer_config {
    struct van *van;
    struct lane *lane;
    const char *scheduler; /* its addresses, as a member's; the caller's, and stay valid, like the token */
    const char *token;
    uint64_t incarnation;        /* random, not 0 */
    uint32_t connect_timeout_ms; /* for the first view */
    uint32_t patience_ms;        /* later: how long the scheduler may be silent */
    void *arg;
    /* As a member's. joined, once: OK with the first view, or why there is none. view: the first, and each newer one.
     * ended, at most once after joined: SHUTDOWN, another job runs at the address; or the scheduler has been silent,
     * and why. */
    void (*on_joined)(void *arg, paramo_err status, const char *text);
    void (*on_view)(void *arg, struct view *view);
    void (*on_ended)(void *arg, paramo_err status, const char *text);
};

/* INVALID: an address or the token is malformed. MEMORY. After an error no callback comes, else from a later round. */
MUST_USE paramo_err observer_create(const struct observer_config *config, struct observer **observer);
/* NULL is allowed. */
void observer_destroy(struct observer *observer);
/* Borrowed; NULL: there is none yet. */
struct view *observer_view(const struct observer *observer);
/* A view of this number or a later one is needed. */
void observer_need(struct observer *observer, uint64_t number);
/* Asks for the view as it is from now on. Returns the number of the query; its answer is there when observer_answered
 * is not less. */
uint64_t observer_ask(struct observer *observer);
/* The last query that was answered with a view. Any thread, while the observer exists. */
uint64_t observer_answered(const struct observer *observer);

#endif
