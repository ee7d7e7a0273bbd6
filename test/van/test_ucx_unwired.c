/* A connection over UCX's fabric that ends before UCX has connected it: its worker is destroyed, and not kept for
 * good. */
#include "van/support_ucx.h"

#ifdef PARAMO_HAVE_UCX
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "van/ucx/ucx_lib.h"
#include "van/ucx/ucx_switch.h"

static void ucx_open(struct env **env, struct van **van)
{
    static const struct van_config config = {.trusted_fabric = true, .no_shm = true, .at_once = true};
    *env = env_real();
    assert_int_equal(van_ucx_create(*env, &config, van), PARAMO_OK);
}

const struct conf_van conf_van = {
    .open = ucx_open, .close = van_destroy, .listen_address = "127.0.0.1:0", .dead_address = "127.0.0.1:1"};

/* A peer by hand, whose UCX does nothing: so the van's never gets an answer. */
struct hand {
    const struct ucx_api *api;
    struct ucx_context context;
    ucp_worker_h worker;
};

static void hand_begin(struct hand *h)
{
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SINGLE};
    *h = (struct hand){0};
    assert_int_equal(ucx_load(&h->api), PARAMO_OK);
    assert_int_equal(ucx_context_create(UCX_FABRIC, &ucx_pack_ops, &h->context), PARAMO_OK);
    assert_int_equal(h->api->worker_create(h->context.handle, &params, &h->worker), UCS_OK);
}

static void hand_end(struct hand *h)
{
    h->api->worker_destroy(h->worker);
    ucx_context_destroy(&h->context);
}

/* The van connects by hand, up to where UCX begins to connect. */
static int connect_unwired(struct hand *h, struct conf *c)
{
    uint8_t bytes[SETUP_BYTES_MAX + VAN_ALIGN];
    ucp_address_t *address;
    struct ucx_setup accept = {.kind = SETUP_ACCEPT, .way = UCX_FABRIC};
    int fd = hand_connected(c);
    assert_int_equal(hand_hear(fd, bytes).kind, SETUP_OFFER);
    assert_int_equal(h->api->worker_get_address(h->worker, &address, &accept.address_len), UCS_OK);
    accept.address = (const uint8_t *)address;
    hand_say(fd, &accept);
    h->api->worker_release_address(h->worker, address);
    assert_int_equal(hand_hear(fd, bytes).kind, SETUP_READY);
    return fd;
}

static atomic_uint kept;

static void find_kept(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    if (strstr(line, "UCX keeps a connection"))
        atomic_fetch_add(&kept, 1);
}

static void ends_unwired(void **state)
{
    (void)state;
    struct hand h;
    hand_begin(&h);
    if (h.context.rdma) /* its ways may be kept */
        skip();
    log_set_level(LOG_DEBUG);
    log_set_sink(find_kept, NULL);
    struct conf *c = conf_open();
    int fd = connect_unwired(&h, c);
    conf_close(c);
    log_set_sink(NULL, NULL);
    assert_int_equal(atomic_load(&kept), 0);
    (void)close(fd);
    hand_end(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ends_unwired)};
    return ucx_is_here() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
#else
int main(void)
{
    return 77;
}
#endif
