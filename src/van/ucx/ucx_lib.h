/*
 * The UCX library: loaded when the van is first used, so that a program without it pays nothing. Never knows
 * connections or lanes. Tests: test/van/test_ucx*.c.
 */
#ifndef VAN_UCX_UCX_LIB_H
#define VAN_UCX_UCX_LIB_H

#include <ucp/api/ucp.h>

#include "base/err.h"
#include "van/ucx/shmdir.h"
#include "van/ucx/ucx_setup.h"

/* The functions of UCX that the van calls. */
struct ucx_api {
    __typeof__(&ucp_config_read) config_read;
    __typeof__(&ucp_config_modify) config_modify;
    __typeof__(&ucp_config_release) config_release;
    __typeof__(&ucp_init_version) init_version;
    __typeof__(&ucp_cleanup) cleanup;
    __typeof__(&ucp_worker_create) worker_create;
    __typeof__(&ucp_worker_destroy) worker_destroy;
    __typeof__(&ucp_worker_get_address) worker_get_address;
    __typeof__(&ucp_worker_release_address) worker_release_address;
    __typeof__(&ucp_worker_get_efd) worker_get_efd;
    __typeof__(&ucp_worker_arm) worker_arm;
    __typeof__(&ucp_worker_progress) worker_progress;
    __typeof__(&ucp_worker_set_am_recv_handler) worker_set_am_recv_handler;
    __typeof__(&ucp_dt_create_generic) dt_create_generic;
    __typeof__(&ucp_dt_destroy) dt_destroy;
    __typeof__(&ucp_ep_create) ep_create;
    __typeof__(&ucp_ep_flush_nbx) ep_flush;
    __typeof__(&ucp_am_send_nbx) am_send;
    __typeof__(&ucp_request_free) request_free;
    __typeof__(&ucs_status_string) status_string;
};

/* Any thread. UNSUPPORTED if the library is not there. */
MUST_USE paramo_err ucx_load(const struct ucx_api **api);

/* A process's UCX context for one kind of way: shared memory, or a fabric to other hosts. */
struct ucx_context {
    const struct ucx_api *api;
    ucp_context_h handle;
    ucp_datatype_t datatype; /* its one element is a way, packed as the bytes that the way sends next */
    size_t message_bytes;    /* bytes that fit into one message of the transport */
    bool rdma;         /* it may use an RDMA device: UCX connects such endpoints by a message of its own */
    struct shmdir dir; /* for its files; empty: UCX makes none, or the user names the folder */
};
/* pack reads the bytes of a message. context is zeroed. It is unchanged after an error. */
MUST_USE paramo_err ucx_context_create(enum ucx_kind kind, const ucp_generic_dt_ops_t *pack,
                                       struct ucx_context *context);
/* No effect if the context was never made. */
void ucx_context_destroy(struct ucx_context *context);

#endif
