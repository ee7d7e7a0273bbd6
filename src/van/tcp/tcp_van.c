/* The operations of the tcp van, and its creation (van/van.h). */
#include <stdlib.h>

#include "van/tcp/tcp.h"
#include "van/tcp/tcp_listen.h"
#include "van/tcp/tcp_recv.h"
#include "van/tcp/tcp_send.h"

static void tcp_destroy(struct van *van)
{
    van_fini(van);
    free(van);
}

static const struct van_ops tcp_ops = {
    .name = "tcp",
    .connect = tcp_connect,
    .listen = tcp_listen,
    .listener_close = tcp_listener_close,
    .send = tcp_send,
    .send_lent = tcp_send_lent,
    .withdraw = tcp_withdraw,
    .displace = tcp_displace,
    .close = tcp_close,
    .flush = tcp_flush,
    .expect = tcp_expect,
    .move = tcp_move,
    .abandon = tcp_abandon,
    .destroy = tcp_destroy,
};

paramo_err van_tcp_create(struct env *env, const struct van_config *config, struct van **out)
{
    (void)config;
    struct tcp_van *van = calloc(1, sizeof *van);
    if (!van)
        return err_memory(sizeof *van);
    paramo_err err = van_init(&van->base, &tcp_ops, env);
    if (err) {
        free(van);
        return err;
    }
    *out = &van->base;
    return PARAMO_OK;
}
