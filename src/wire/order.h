/*
 * ORDER: the scheduler tells one member to do something. Its header is struct wire_order (head.h): id, floor,
 * what is to be done, and the view it refers to. A member with an older view waits for the order to come
 * again. Segment 0 holds the fields of that kind of order. An order is repeated, with heartbeats and
 * after a lost connection, until the member has answered by the call ORDER_DONE, which is done once. So a
 * member that lives on carries out an order once.
 *
 * It never knows what an order means. Tests: test/wire/test_calls.c, test/cluster/test_orders.c.
 */
#ifndef WIRE_ORDER_H
#define WIRE_ORDER_H

#include <stdbool.h>

#include "base/cursor.h"

enum order_what {
    ORDER_CKPT_SAVE = 1, /* wire/ckpt_order.h */
    ORDER_CKPT_DROP = 2, /* the save or load has failed */
    ORDER_CKPT_LOAD = 3,
    ORDER_CKPT_HOLD = 4,    /* before LOAD with replicas: requests wait, and all members get all changes */
    ORDER_CKPT_GO = 5,      /* all have loaded: requests continue */
    ORDER_CKPT_RESTORE = 6, /* load the lost rows (as the view names them) that the member owns */
    ORDER_MIGRATION_SOURCE = 16, /* wire/migration_order.h */
    ORDER_MIGRATION_TARGET = 17,
    ORDER_MIGRATION_PAUSE = 18,
    ORDER_MIGRATION_END = 19,
    ORDER_REPORT = 32 /* wire/report.h */
};

enum {
    ORDERS_WINDOW = 64,        /* orders that a member may have between floor and id */
    ORDER_BYTES_MAX = 16 << 20 /* of fields, and of a result */
};

/* The body of ORDER_DONE. No result. */
struct order_done {
    uint64_t order;
    paramo_err status;
    const void *rest; /* the result; if status is not OK, call_text_encode's bytes */
    size_t rest_len;
};

void order_done_encode(const struct order_done *m, struct writer *w);
/* rest points into what is read. */
MUST_USE paramo_err order_done_decode(struct reader *r, struct order_done *m);

#endif
