/*
 * What a member is given: its world, what it registers as, its times, and its callbacks.
 * Must never know: the state of a member; configuration files and the environment.
 * Tests: test/cluster/test_member.c.
 */
#ifndef CLUSTER_MEMBER_MEMBER_CONFIG_H
#define CLUSTER_MEMBER_MEMBER_CONFIG_H

#include "cluster/view/view.h"
#include "van/van.h"
#include "wire/heartbeat.h"

enum { MEMBER_SCHEDULERS_MAX = 8 };

/* Strings are copied. */
struct member_config {
    struct van *van;
    struct lane *lane;
    /* One address, or several with commas between: one scheduler leads, standby schedulers do not listen. */
    const char *scheduler;
    const char *token;
    uint32_t role;        /* one paramo_role; SCHEDULER: the scheduler process's own member, id 1 */
    const char *host;     /* where other nodes reach this one; "": the address that the scheduler sees */
    uint16_t port;        /* 0: does not listen */
    uint16_t shards;      /* servers */
    const char *name;     /* "": none */
    uint32_t weight;      /* servers: of each shard, 1 and more */
    const char *domain;   /* servers: the failure domain; "": the host */
    int32_t rank;         /* wanted; -1: the scheduler chooses */
    uint64_t incarnation; /* random, not 0; the same as the acceptor's */
    uint32_t connect_timeout_ms;
    uint32_t heartbeat_ms, heartbeat_timeout_ms;
    /* After the connection to the scheduler was lost: for how long in a row its address may refuse
     * connections before the scheduler counts as dead. Weaker evidence (silence, no route, a connection that
     * is accepted and not answered) gets heartbeat_timeout_ms, or this if it is longer. */
    uint32_t scheduler_wait_ms;
    uint64_t frame_bytes;
    void *arg;
    /* Once: OK (id, rank and a complete view are there; on_view was called with it before), or NO_SCHEDULER
     * (names the address), TOKEN, VERSION, REFUSED, FULL, INVALID (rank), TIMEOUT (names the missing nodes),
     * SHUTDOWN. */
    void (*on_joined)(void *arg, paramo_err status, const char *text);
    /* Each newer view; take a reference to keep it. */
    void (*on_view)(void *arg, struct view *view);
    /* Once, after joining: the job is over (OK, NODE_LOST, SHUTDOWN), this node was declared dead (FENCED),
     * or the scheduler is gone for good (NO_SCHEDULER). Calls in flight have ended before with SHUTDOWN or
     * that code. */
    void (*on_ended)(void *arg, paramo_err status, const char *text);
    /* An order of the scheduler (wire/order.h), once. The callee answers it by member_order_done, now or
     * later. NULL: orders are answered with UNSUPPORTED. */
    void (*on_order)(void *arg, uint64_t order, uint32_t what, struct reader *fields);
    /* Fills in the lanes' progress for a heartbeat; NULL: none. */
    void (*progress)(void *arg, struct heartbeat *heartbeat);
};

#endif
