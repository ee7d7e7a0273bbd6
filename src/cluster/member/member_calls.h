/*
 * The inside of a member's calls: numbers, repeats after a lost connection, deadlines. Other modules call
 * through member.h. It never knows what the scheduler does with a call. Tests: test/cluster/test_member.c.
 */
#ifndef CLUSTER_MEMBER_MEMBER_CALLS_H
#define CLUSTER_MEMBER_MEMBER_CALLS_H

#include "cluster/member/member.h"
#include "wire/calls.h"
#include "wire/head.h"

/* Begins a call whose body is written; after OK its done comes. */
MUST_USE paramo_err member_call_begin(struct member *m, struct member_call *call, enum call_kind kind,
                                      uint64_t deadline);
/* Sends one call over the present connection. */
void member_call_send(struct member *m, struct member_call *call);
/* Sends the calls that were not sent on this connection, and those whose answer is overdue. */
void member_calls_resend(struct member *m, uint64_t overdue);
/* The connection is lost: all calls count as not sent. */
void member_calls_unsend(struct member *m);
MUST_USE paramo_err member_calls_reply(struct member *m, const struct wire_reply *head, struct reader *body);
/* A view has come: calls that waited for it end. */
void member_calls_viewed(struct member *m);
/* Ends every call but LEAVE (with_leave: that one too, as done) with this thread's message. */
void member_calls_fail(struct member *m, paramo_err status, bool with_leave);
/* The lowest unanswered call number. */
uint64_t member_calls_floor(const struct member *m);

#endif
