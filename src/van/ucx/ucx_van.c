/* The ucx van: its table of operations, which are the tcp van's except for the ways. */
#ifdef PARAMO_HAVE_UCX
#include <stdlib.h>

#include "van/tcp/tcp.h"
#include "van/tcp/tcp_listen.h"
#include "van/tcp/tcp_recv.h"
#include "van/tcp/tcp_send.h"
#include "van/ucx/ucx.h"
#include "van/ucx/ucx_switch.h"
#include "van/ucx/ucx_way.h"

static paramo_err ucx_connect(struct van *van, struct lane *lane, const char *address,
                              const struct van_user *user_ops, void *user, struct van_conn **out)
{
    paramo_err err = tcp_connect(van, lane, address, user_ops, user, out);
    if (!err && (err = ucx_way_prepare(tcp_of(*out))))
        tcp_close(*out, false);
    return err;
}

static void ucx_conn_stays(struct van_conn *conn)
{
    ucx_way_ops.conn_stays(tcp_of(conn));
}

static void ucx_destroy(struct van *base)
{
    struct ucx_van *van = (struct ucx_van *)base;
    ucx_van_fini(van);
    van_fini(base);
    free(van);
}

static const struct van_ops ucx_ops = {
    .name = "ucx",
    .connect = ucx_connect,
    .listen = tcp_listen,
    .listener_close = tcp_listener_close,
    .send = tcp_send,
    .send_lent = tcp_send_lent,
    .withdraw = tcp_withdraw,
    .displace = tcp_displace,
    .close = tcp_close,
    .flush = tcp_flush,
    .expect = tcp_expect,
    .conn_stays = ucx_conn_stays,
    .move = tcp_move,
    .abandon = tcp_abandon,
    .destroy = ucx_destroy,
};

paramo_err van_ucx_create(struct env *env, const struct van_config *config, struct van **out)
{
    const struct ucx_api *api;
    paramo_err err = ucx_load(&api);
    if (err)
        return err;
    struct ucx_van *van = calloc(1, sizeof *van);
    if (!van)
        return err_memory(sizeof *van);
    van->tcp.ways = &ucx_way_ops;
    err = ucx_van_init(van, config, &ucx_pack_ops);
    if (err)
        goto err_free;
    err = van_init(&van->tcp.base, &ucx_ops, env);
    if (err)
        goto err_fini;
    *out = &van->tcp.base;
    return PARAMO_OK;

err_fini:
    ucx_van_fini(van);
err_free:
    free(van);
    return err;
}
#else
#include "van/van.h"

paramo_err van_ucx_create(struct env *env, const struct van_config *config, struct van **van)
{
    (void)env;
    (void)config;
    (void)van;
    return err_set(PARAMO_E_UNSUPPORTED,
                   "this build has no UCX (libucx-dev was not there, or PARAMO_UCX=OFF)");
}
#endif
