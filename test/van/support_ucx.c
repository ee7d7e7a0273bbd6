#include "van/support_ucx.h"

#include "van/tcp/tcp.h"

/* UCX 1.13 forgets some hundred bytes where an endpoint cannot be made since its peer has just gone. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libuct.so\n";
}

struct up {
    struct peer *peer;
    bool is;
};

static void look(void *arg)
{
    struct up *up = arg;
    up->is = up->peer->conn && tcp_of(up->peer->conn)->out_by == TCP_OUT_WAY;
}

bool ucx_is_up(struct peer *peer)
{
    struct up up = {.peer = peer};
    conf_on(peer->conn->lane, look, &up);
    return up.is;
}

/* Each look is a turn of the lane; the van itself gives up after some seconds and closes. */
void ucx_wait_up(struct conf *c)
{
    struct peer *both[2] = {&c->client[0], &c->server[0]};
    for (unsigned i = 0; i < 2; i++)
        while (!ucx_is_up(both[i]))
            assert_int_equal(atomic_load(&both[i]->closed), 0);
}

bool ucx_is_here(void)
{
    struct van *van;
    if (van_ucx_create(env_real(), &(struct van_config){0}, &van)) {
        print_message("%s: not tried\n", err_text());
        return false;
    }
    van_destroy(van);
    return true;
}
