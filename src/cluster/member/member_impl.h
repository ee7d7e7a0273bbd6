/*
 * The state of a member, which member.c (its life), member_calls.c and member_orders.c share. No other
 * product code includes it. Tests: test/cluster/test_member.c.
 */
#ifndef CLUSTER_MEMBER_MEMBER_IMPL_H
#define CLUSTER_MEMBER_MEMBER_IMPL_H

#include <assert.h>

#include "cluster/member/member_config.h"
#include "cluster/session/address.h"
#include "cluster/session/connector.h"
#include "wire/calls.h"
#include "wire/head.h"
#include "wire/hello.h"
#include "wire/order.h"

/* One window, and one of a scheduler that has been replaced since. */
enum { ORDERS_MOST = 2 * ORDERS_WINDOW };

enum member_state { MEMBER_JOINING, MEMBER_JOINED, MEMBER_LEAVING, MEMBER_ENDED, MEMBER_CLOSED };

struct member {
    struct member_config config;
    char schedulers[MEMBER_SCHEDULERS_MAX][ADDRESS_MAX]; /* tried in turn */
    unsigned schedulers_count, scheduler_at;
    const char *scheduler; /* the one that is tried, or was reached */
    char token[HELLO_TOKEN_MAX];
    char host[VIEW_HOST_MAX];
    char name[VIEW_NAME_MAX];
    char domain[VIEW_HOST_MAX];
    enum member_state state;
    /* LEAVE is done: silence and lost connections mean nothing from here on. Set by member.c. */
    void (*has_left)(struct member *m);
    struct connector *connector;
    struct van_conn *conn; /* handshake done */
    bool registered;       /* on this connection */
    uint64_t register_sent_at;
    uint64_t heard_at;
    uint64_t backoff;       /* until the next attempt to connect */
    uint64_t limit;         /* of joining, or of reaching the scheduler again */
    bool stood;             /* there was a connection: from then on a refusal is evidence */
    uint64_t refused_since; /* since when the address has refused connections; 0: it does not */
    char why[ERR_TEXT_MAX]; /* why the last attempt failed */
    paramo_err end_status;  /* ENDED: why */
    char end_text[ERR_TEXT_MAX];
    struct lane_timer reconnect_timer, limit_timer, beat_timer, resend_timer;
    uint32_t id;
    bool recovered;
    bool returns; /* the scheduler keeps its state */
    uint64_t job;
    struct view *view;
    struct member_call *oldest, *newest; /* unanswered, by number */
    struct member_call **places;         /* the unanswered calls at their places (wire/calls.h) */
    uint32_t places_count;               /* 0 or a power of two */
    uint32_t place_free;                 /* none below is free */
    uint64_t next_sequence;
    struct member_order *orders;
    unsigned orders_count;
    uint64_t orders_floor, orders_seen; /* a bit for each id from the floor on, at id % ORDERS_WINDOW */
};

/* A member connects, or has a connection, or waits; it is registered on a connection only. One that has joined has a
 * place and a view. */
static inline void member_check(const struct member *m)
{
    assert(!m->connector || (!m->conn && m->state < MEMBER_ENDED));
    assert(!m->registered || m->conn || m->state == MEMBER_CLOSED);
    assert(m->scheduler_at < m->schedulers_count && (!m->refused_since || m->stood));
    assert(m->state != MEMBER_JOINED || (m->id && m->view));
    assert(m->scheduler == m->schedulers[m->scheduler_at]);
    assert(!m->reconnect_timer.slot || (!m->connector && !m->conn && m->state < MEMBER_LEAVING));
    assert(!m->orders == !m->orders_count && m->orders_count <= ORDERS_MOST);
}

#endif
