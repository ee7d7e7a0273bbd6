/*
 * Control messages as frames: head and body in one allocation, freed when the van is done with it; and a
 * received frame as head and body. It never knows what a message means. Tests: test/cluster/test_acceptor.c.
 */
#ifndef CLUSTER_SESSION_CONTROL_MESSAGE_H
#define CLUSTER_SESSION_CONTROL_MESSAGE_H

#include "base/cursor.h"
#include "van/van.h"
#include "wire/head.h"

/* Copies the body. On an error nothing was sent. */
MUST_USE paramo_err control_message_send(struct van_conn *conn, const struct wire_head *head,
                                         const void *body, size_t len);
/* Sends what was written, or returns MEMORY if writing failed. Frees what w owns either way. */
MUST_USE paramo_err control_message_send_written(struct van_conn *conn, const struct wire_head *head,
                                                 struct writer *w);

/* A body that many control messages share, with a reference count; all on one lane. */
struct control_message_body;
/* Takes what w owns. NULL if out of memory; w is freed then, too. */
struct control_message_body *control_message_body_new(struct writer *w);
struct control_message_body *control_message_body_ref(struct control_message_body *body);
void control_message_body_unref(struct control_message_body *body); /* NULL is allowed */
void control_message_body_write(const struct control_message_body *body, struct writer *w);
MUST_USE paramo_err control_message_send_shared(struct van_conn *conn, const struct wire_head *head,
                                                struct control_message_body *body);

/* PROTOCOL unless the head is valid and there is at most one segment, the body. */
MUST_USE paramo_err control_message_open(const uint8_t bytes[VAN_HEAD], const struct van_seg *seg,
                                         unsigned nseg, struct wire_head *head, struct reader *body);

#endif
