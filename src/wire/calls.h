/*
 * Calls of a member to its scheduler and their replies. Their headers are struct wire_call and struct
 * wire_reply (head.h); segment 0 is the body. A reply repeats kind and number; its status is a paramo_err, and
 * its body the result, or, when the status is not OK, a text. A call that was answered before gets the same
 * answer again until the floor has passed it. So a call is done once, however often it is sent.
 *
 * A number is a sequence, which rises from 1, times CALL_PLACES, plus a place. Calls in flight have different places: a
 * call that has the place of an earlier one says that the caller has the earlier one's answer, or has given it up. So
 * a call that waits for long, and holds the floor, holds up no other call.
 *
 * Bodies have files of their own: register_call.h, barrier_call.h, table_spec.h, pool_calls.h, kv_calls.h,
 * clock_calls.h, ckpt_order.h, order.h, status.h; heartbeat.h and end.h are not calls. It never knows which node calls.
 * Tests: test/wire/test_calls.c.
 */
#ifndef WIRE_CALLS_H
#define WIRE_CALLS_H

#include <stdbool.h>

#include "base/cursor.h"

enum call_kind {
    CALL_REGISTER = 1,
    CALL_BARRIER = 2,
    CALL_TABLE_OPEN = 3,
    CALL_LEAVE = 4,    /* no body, no result */
    CALL_SHUTDOWN = 5, /* body: a text */
    CALL_POOL_OPEN = 6,
    CALL_POOL_NEXT = 7,
    CALL_POOL_DONE = 8,
    CALL_POOL_END = 9,
    CALL_KV_PUT = 10,
    CALL_KV_GET = 11,
    CALL_KV_ADD = 12,
    /* no body; the result is a VIEW. An admin client, which has no place in the job, sends it instead of REGISTER */
    CALL_ADMIN_VIEW = 13,
    CALL_KV_DELETE = 14,
    CALL_ORDER_DONE = 15,
    CALL_CKPT_SAVE = 16, /* ckpt_order.h; a member sends these two, or an admin client instead of REGISTER */
    CALL_CKPT_LOAD = 17,
    CALL_DRAIN = 18,  /* body: u32 id of a server, 0: the caller; no result */
    CALL_STATUS = 19, /* no body; status.h. From an admin client, as ADMIN_VIEW */
    CALL_CLOCK_JOIN = 20,
    CALL_CLOCK_TELL = 21,
    CALL_CLOCK_WAIT = 22,
    CALL_CLOCK_LEAVE = 23
};

enum {
    CALL_PLACES = 4096,   /* calls that a member may have in flight */
    CALL_TEXT_MAX = 2048, /* longest text of a reply or SHUTDOWN, with its zero byte */
    CALL_TIMEOUT_MAX_MS = 7 * 24 * 3600 * 1000
};

const char *call_kind_name(unsigned kind);
/* A text as the whole body. A text that is too long is cut. */
void call_text_encode(const char *text, struct writer *w);
MUST_USE paramo_err call_text_decode(struct reader *r, char text[CALL_TEXT_MAX]);
/* For the decoders of bodies: PROTOCOL, with the name of the message, unless all was read and nothing failed. */
MUST_USE paramo_err call_body_end(const struct reader *r, const char *message);

#endif
