/*
 * Moves the bytes of a connection over UCX: as messages, or through the shared area. Never knows what a
 * frame means, or how a way is set up. Private to src/van/ucx. Tests: test/van/test_ucx*.c.
 */
#ifndef VAN_UCX_UCX_SWITCH_H
#define VAN_UCX_UCX_SWITCH_H

#include "van/ucx/ucx_way_state.h"

/* The datatype of each context: a way's bytes to send next. */
extern const ucp_generic_dt_ops_t ucx_pack_ops;

void ucx_signal(struct ucx_way *way, enum ucx_message message);
size_t ucx_write(struct tcp_conn *conn, const struct iovec *iov, int n);
/* Reads the word of a message that UCX has received. PROTOCOL. */
MUST_USE paramo_err ucx_word_came(const void *header, size_t header_len, const ucp_am_recv_param_t *param,
                                  struct ucx_word *word);
/* A message that brings bytes or gives room for them: DATA, AREA or ROOM. May end the connection. PROTOCOL. */
MUST_USE paramo_err ucx_bytes_came(struct ucx_way *way, const struct ucx_word *word, void *data, size_t len);

#endif
