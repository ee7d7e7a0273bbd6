/*
 * The tally van: a tcp van that counts the frames that it is given, and logs their number at its end. Where
 * it has nothing to add, its operations are tcp's.
 * Tests: test/van/test_tally.c, with the conformance suite.
 */
#include "base/log.h"
#include "van/tcp/tcp.h"
#include "van/tcp/tcp_listen.h"
#include "van/tcp/tcp_recv.h"
#include "van/tcp/tcp_send.h"

#include <inttypes.h>
#include <stdlib.h>

struct tally_van {
    struct tcp_van tcp;
    atomic_uint_fast64_t frames; /* any lane */
};

static paramo_err count(const struct van_conn *conn, paramo_err err)
{
    if (!err)
        atomic_fetch_add_explicit(&((struct tally_van *)conn->van)->frames, 1, memory_order_relaxed);
    return err;
}

static paramo_err tally_send(struct van_conn *conn, struct van_frame *frame)
{
    return count(conn, tcp_send(conn, frame));
}

static paramo_err tally_send_lent(struct van_conn *conn, struct van_frame *frame, void *spare)
{
    return count(conn, tcp_send_lent(conn, frame, spare));
}

static void tally_destroy(struct van *van)
{
    log_info("van: tally: %" PRIuFAST64 " frames", atomic_load(&((struct tally_van *)van)->frames));
    van_fini(van);
    free(van);
}

static const struct van_ops tally_ops = {
    .name = "tally",
    .connect = tcp_connect,
    .listen = tcp_listen,
    .listener_close = tcp_listener_close,
    .send = tally_send,
    .send_lent = tally_send_lent,
    .withdraw = tcp_withdraw,
    .displace = tcp_displace,
    .close = tcp_close,
    .flush = tcp_flush,
    .move = tcp_move,
    .abandon = tcp_abandon,
    .destroy = tally_destroy,
};

paramo_err van_tally_create(struct env *env, const struct van_config *config, struct van **out)
{
    (void)config;
    struct tally_van *van = calloc(1, sizeof *van);
    if (!van)
        return err_memory(sizeof *van);
    paramo_err err = van_init(&van->tcp.base, &tally_ops, env);
    if (err) {
        free(van);
        return err;
    }
    *out = &van->tcp.base;
    return PARAMO_OK;
}
