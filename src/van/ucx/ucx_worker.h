/*
 * Makes a way's UCX worker and destroys it. Both take milliseconds, on a busy machine tens of them, and a worker whose
 * endpoint is not connected must be waited for. So a thread of the van does it, beside the lanes. Never knows what the
 * messages mean. Private to src/van/ucx. Tests: test/van/test_ucx_ends.c, test_ucx_strange.c.
 */
#ifndef VAN_UCX_UCX_WORKER_H
#define VAN_UCX_UCX_WORKER_H

#include "van/ucx/ucx_way_state.h"

/* Begins to make the way's worker, which hands messages to `came`. Then `ready` is called on the connection's lane,
 * unless the connection has ended. On an error the text is that of its cause. SYSTEM: the thread could not be
 * started. */
MUST_USE paramo_err ucx_worker_begin(struct ucx_way *way, enum ucx_kind kind, ucp_am_recv_callback_t came,
                                     void (*ready)(struct ucx_way *way, paramo_err err));
/* On the lane, when the connection has ended: destroys the worker, and frees the way. */
void ucx_worker_end(struct ucx_way *way);

#endif
