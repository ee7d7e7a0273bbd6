/*
 * What member.c (life) and member_calls.c (calls) share. Nobody else includes it.
 */
#ifndef CLUSTER_MEMBER_MEMBER_IMPL_H
#define CLUSTER_MEMBER_MEMBER_IMPL_H

#include "base/mutant.h"
#include "cluster/member/member.h"
#include "cluster/session/address.h"
#include "cluster/session/connector.h"
#include "wire/calls.h"
#include "wire/head.h"
#include "wire/hello.h"

enum member_state { MEMBER_JOINING, MEMBER_JOINED, MEMBER_LEAVING, MEMBER_ENDED, MEMBER_CLOSED };

struct member {
    struct member_config config;
    char schedulers[MEMBER_SCHEDULERS_MAX][ADDRESS_MAX]; /* dialled in turn */
    unsigned schedulers_count, scheduler_at;
    const char *scheduler; /* the one that is dialled, or was reached */
    char token[HELLO_TOKEN_MAX];
    char host[VIEW_HOST_MAX];
    char name[VIEW_NAME_MAX];
    char domain[VIEW_HOST_MAX];
    enum member_state state;
    struct connector *connector;
    struct van_conn *conn; /* welcomed */
    bool registered;       /* on this connection */
    uint64_t register_sent_at;
    uint64_t heard_at;
    uint64_t pace;          /* until the next dial */
    uint64_t limit;         /* joining, or reaching the scheduler again: not beyond this */
    bool stood;             /* there was a connection: from then on a refusal is evidence */
    uint64_t refused_since; /* ... and since then the address says that nobody listens; 0: it does not */
    char why[ERR_TEXT_MAX]; /* the last dial failed */
    paramo_err end_status;  /* ENDED: why */
    char end_text[ERR_TEXT_MAX];
    struct lane_timer redial_timer, limit_timer, beat_timer;
    uint32_t id;
    bool recovered;
    bool returns; /* the scheduler keeps its state */
    uint64_t job;
    struct view *view;
    struct member_call *oldest, *newest; /* unanswered, by number */
    uint64_t next_number;
    struct member_order *orders;
    unsigned orders_count;
    uint64_t orders_floor, orders_seen; /* a bit for each id from the floor on, at id % ORDERS_WINDOW */
};

/* member_orders.c */
MUST_USE paramo_err member_order_got(struct member *m, const struct wire_head *head, struct reader *body);
/* Answers for which there was no room. */
void member_orders_answer(struct member *m);
void member_orders_fini(struct member *m); /* after the calls have ended */

/* Begins a call with the body that is written; from then on its done comes. */
MUST_USE paramo_err member_call_begin(struct member *m, struct member_call *call, enum call_kind kind,
                                      uint64_t deadline);
/* Sends a call that is due on this connection. */
void member_call_send(struct member *m, struct member_call *call);
/* Those not sent on this connection, and those whose answer is overdue. */
void member_calls_resend(struct member *m, uint64_t overdue);
void member_calls_unsend(struct member *m);
MUST_USE paramo_err member_calls_reply(struct member *m, const struct wire_head *head, struct reader *body);
/* Calls that waited for the view that has come. */
void member_calls_viewed(struct member *m);
/* Ends every call but LEAVE (with_leave: that too, as done) with this thread's message. */
void member_calls_fail(struct member *m, paramo_err status, bool with_leave);
uint64_t member_calls_floor(const struct member *m);
/* LEAVE is done: from here on silence and lost connections mean nothing. */
void member_has_left(struct member *m);
void member_lost(struct member *m, const char *why);

#endif
