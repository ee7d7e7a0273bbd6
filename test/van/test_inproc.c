#include "van/conformance.h"

static void inproc_open(struct env **env, struct van **van)
{
    *env = env_real();
    assert_int_equal(van_inproc_create(*env, van), PARAMO_OK);
}

const struct conf_van conf_van = {.open = inproc_open,
                                  .close = van_destroy,
                                  .listen_address = "shard 1",
                                  .dead_address = "shard 2",
                                  .large_bytes = (CONF_SLOW ? 8 : 64) << 20,
                                  .large_count = CONF_SLOW ? 4 : 16};

/* ---- a frame that the receiver is just using ----------------------------------------------------------- */

static atomic_bool inside, withdrawing;
static struct van_frame *used;

static paramo_err using_frame(struct peer *peer, const uint8_t *head, const struct van_seg *seg,
                              unsigned nseg)
{
    (void)peer;
    atomic_store(&inside, true);
    while (!atomic_load(&withdrawing))
        ; /* the sender's lane has another thread, which comes */
    for (unsigned i = 0; i < 300; i++)
        (void)conf_check(head, seg, nseg);
    return PARAMO_OK;
}

static void connect_and_send(void *arg)
{
    struct conf *c = arg;
    struct peer *peer = &c->client[0];
    assert_int_equal(van_connect(c->van, c->lane[2], c->address, &conf_user, peer, &peer->conn), PARAMO_OK);
    used = conf_frame(peer, 0, 1, (uint64_t[]){100000});
    conf_send(peer, used);
}

static void withdraw_used(void *arg)
{
    struct peer *peer = arg;
    atomic_store(&withdrawing, true);
    van_withdraw(peer->conn, used); /* its memory is overwritten when this calls done */
    assert_int_equal(peer->done_bad, 1);
}

static void test_withdraw_waits_for_frame(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    lane_destroy(c->lane[2]);
    assert_int_equal(lane_create(c->env, "sender", LANE_NO_BORROW, &c->lane[2]), PARAMO_OK);
    c->server[0].on_frame = using_frame;
    conf_listen(c);
    conf_on(c->lane[2], connect_and_send, c);
    while (!atomic_load(&inside))
        ; /* not a wait that drives lane 1: this thread would be the one inside */
    conf_on(c->lane[2], withdraw_used, &c->client[0]);
    conf_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CONFORMANCE_TESTS, cmocka_unit_test(test_withdraw_waits_for_frame)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
