#include "base/hash.h"
#include "sim/env/sim.h"
#include "sim/van/simvan.h"
#include "van/conformance.h"

static struct sim *sim;
static struct sim_host *host; /* all lanes are on it */
static struct simnet *net;
static struct simnet_link faults; /* the net's defaults in the next test */
static uint64_t seed = 7;

static void sim_open(struct env **env, struct van **van)
{
    assert_int_equal(sim_create(seed, &sim), PARAMO_OK);
    assert_int_equal(simnet_create(sim, &net), PARAMO_OK);
    if (faults.delay_max_ns)
        *simnet_defaults(net) = faults;
    assert_int_equal(sim_host_create(sim, 0, &host), PARAMO_OK);
    *env = sim_host_env(host);
    assert_int_equal(van_sim_create(net, "node", van), PARAMO_OK);
}

static void sim_close(struct van *van)
{
    van_destroy(van);
    simnet_destroy(net);
    sim_destroy(sim);
    faults = (struct simnet_link){0};
}

const struct conf_van conf_van = {.open = sim_open,
                                  .close = sim_close,
                                  .listen_address = "node:1",
                                  .dead_address = "node:2",
                                  .large_bytes = 8 << 20,
                                  .large_count = 8};

enum { FRAMES = 500 };

static struct simnet_link *self_link(void)
{
    struct simnet_node *node;
    struct simnet_link *link;
    assert_int_equal(simnet_node(net, "node", &node), PARAMO_OK);
    assert_int_equal(simnet_link(net, node, node, &link), PARAMO_OK);
    return link;
}

static struct conf *pair(void)
{
    struct conf *c = conf_open();
    conf_listen(c);
    conf_connect(c, 0);
    conf_wait(c->lane[1], &c->accepted, 1);
    return c;
}

static void send_frames(void *arg)
{
    struct conf *c = arg;
    for (unsigned i = 0; i < FRAMES; i++)
        conf_send(&c->client[0], conf_frame(&c->client[0], i, 1, (uint64_t[]){i}));
}

/* The stream stays a stream over links that lose, repeat and reorder. */
static void test_stream_over_faults(void **state)
{
    (void)state;
    faults = (struct simnet_link){.delay_min_ns = ENV_MS,
                                  .delay_max_ns = 20 * ENV_MS,
                                  .loss_ppm = 100000,
                                  .repeat_ppm = 100000,
                                  .late_ppm = 100000,
                                  .late_ns = ENV_SEC};
    struct conf *c = pair();
    conf_on(c->lane[0], send_frames, c);
    conf_wait(c->lane[1], &c->server[0].frames, FRAMES); /* in order: peer_frame */
    assert_true(self_link()->lost > 0);
    conf_close(c);
}

static struct {
    unsigned seen[FRAMES];
    unsigned backwards, last, total;
    uint64_t trace;
} datagrams;

static paramo_err datagram_frame(struct peer *peer, const uint8_t *head, const struct van_seg *seg,
                                 unsigned nseg)
{
    unsigned id = (unsigned)conf_check(head, seg, nseg);
    datagrams.seen[id]++;
    datagrams.backwards += id < datagrams.last;
    datagrams.last = id;
    datagrams.total++;
    datagrams.trace = mix64(datagrams.trace + id + lane_now(peer->conn->lane));
    return PARAMO_OK;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void run_datagrams(void)
{
    memset(&datagrams, 0, sizeof datagrams);
    faults = (struct simnet_link){
        .delay_min_ns = ENV_MS, .delay_max_ns = 3 * ENV_MS, .loss_ppm = 100000, .repeat_ppm = 100000};
    struct conf *c = pair();
    van_sim_set_faulty(c->van, 1u << VAN_REQUEST);
    c->server[0].on_frame = datagram_frame;
    conf_on(c->lane[0], send_frames, c);
    assert_false(sim_run(sim, never, NULL, sim_now(sim) + ENV_SEC));
    assert_int_equal(c->client[0].done_ok, FRAMES);
    conf_close(c);
}

static void test_datagrams(void **state)
{
    (void)state;
    run_datagrams();
    unsigned lost = 0, repeated = 0;
    for (unsigned i = 0; i < FRAMES; i++) {
        lost += datagrams.seen[i] == 0;
        repeated += datagrams.seen[i] == 2;
    }
    assert_true(lost > 20 && lost < 100);
    assert_true(repeated > 20 && repeated < 100);
    assert_true(datagrams.backwards > 50);
    assert_int_equal(datagrams.total, FRAMES - lost + repeated);
}

static unsigned first_id;

static paramo_err first_frame(struct peer *peer, const uint8_t *head, const struct van_seg *seg,
                              unsigned nseg)
{
    unsigned id = (unsigned)conf_check(head, seg, nseg);
    if (!datagrams.total++)
        first_id = id;
    (void)peer;
    return PARAMO_OK;
}

/* What makes a connection (HELLO, WELCOME) is neither lost nor overtaken, though all is datagrams. */
static void test_datagrams_begin(void **state)
{
    (void)state;
    for (seed = 100; seed < 120; seed++) {
        datagrams.total = 0;
        first_id = FRAMES;
        faults = (struct simnet_link){
            .delay_min_ns = ENV_MS, .delay_max_ns = 20 * ENV_MS, .loss_ppm = 300000, .repeat_ppm = 100000};
        struct conf *c = pair();
        van_sim_set_faulty(c->van, (1u << VAN_CLASSES) - 1);
        c->server[0].on_frame = first_frame;
        conf_on(c->lane[0], send_frames, c);
        assert_false(sim_run(sim, never, NULL, sim_now(sim) + 20 * ENV_SEC));
        assert_in_range(datagrams.total, FRAMES / 2, FRAMES);
        assert_int_equal(first_id, 0);
        conf_close(c);
    }
    seed = 7;
}

/* A connection breaks while the process stands still: frames that had come are lost, and one that is on its
 * way then does not come after the gap (peer_frame looks at the order). */
static void test_no_gap(void **state)
{
    (void)state;
    faults =
        (struct simnet_link){.delay_min_ns = ENV_MS, .delay_max_ns = ENV_MS + 1, .bytes_per_sec = 200000};
    struct conf *c = pair();
    conf_on(c->lane[0], send_frames, c);
    conf_wait(c->lane[1], &c->server[0].frames, 10);
    sim_host_pause(host, sim_now(sim) + ENV_SEC);
    assert_false(sim_run(sim, never, NULL, sim_now(sim) + 20 * ENV_MS));
    van_sim_reset(c->van, UINT32_MAX);
    assert_false(sim_run(sim, never, NULL, sim_now(sim) + 2 * ENV_SEC));
    conf_wait(c->lane[1], &c->server[0].closed, 1);
    assert_in_range(c->server[0].frames, 10, FRAMES / 10);
    conf_close(c);
}

static void test_same_seed_same_run(void **state)
{
    (void)state;
    run_datagrams();
    uint64_t trace = datagrams.trace;
    run_datagrams();
    assert_int_equal(datagrams.trace, trace);
    seed = 8;
    run_datagrams();
    seed = 7;
    assert_int_not_equal(datagrams.trace, trace);
}

/* A cut that heals in time is a delay; one that does not breaks the sender's connection. */
static void test_cut(void **state)
{
    (void)state;
    for (int heals = 0; heals < 2; heals++) {
        struct conf *c = pair();
        self_link()->cut = true;
        conf_on(c->lane[0], send_frames, c);
        assert_false(sim_run(sim, never, NULL, sim_now(sim) + 10 * ENV_SEC));
        assert_int_equal(c->server[0].frames, 0);
        assert_int_equal(c->client[0].closed, 0);
        if (heals) {
            self_link()->cut = false;
            conf_wait(c->lane[1], &c->server[0].frames, FRAMES);
        } else {
            conf_wait(c->lane[0], &c->client[0].closed, 1);
            assert_int_equal(c->client[0].why, PARAMO_E_DISCONNECTED);
            assert_true(sim_now(sim) >= SIMVAN_GIVE_UP_NS);
        }
        conf_close(c);
    }
}

static void test_bandwidth(void **state)
{
    (void)state;
    faults = (struct simnet_link){.delay_max_ns = 1, .bytes_per_sec = 100000};
    struct conf *c = pair();
    uint64_t before = sim_now(sim);
    conf_on(c->lane[0], send_frames, c);
    conf_wait(c->lane[1], &c->server[0].frames, FRAMES);
    double seconds = (double)(sim_now(sim) - before) / 1e9;
    double bytes = (double)c->client[0].conn->counters.bytes_sent;
    assert_true(seconds > bytes / 100000 * 0.99 && seconds < bytes / 100000 * 1.01);
    conf_close(c);
}

static void accept_none(void *arg, struct van_conn *conn)
{
    (void)arg;
    van_close(conn, false);
}

struct second {
    struct conf *c;
    struct van *van;
    struct van_listener *listener;
};

static void second_listen(void *arg)
{
    struct second *s = arg;
    assert_int_equal(van_listen(s->van, s->c->lane[2], "other:1", accept_none, NULL, &s->listener),
                     PARAMO_OK);
}

static void second_connect(void *arg)
{
    struct second *s = arg;
    struct peer *peer = &s->c->client[1];
    assert_int_equal(van_connect(s->van, s->c->lane[2], s->c->address, &conf_user, peer, &peer->conn),
                     PARAMO_OK);
    conf_send(peer, conf_frame(peer, 0, 0, NULL));
}

static void second_close(void *arg)
{
    struct second *s = arg;
    van_close(s->c->client[1].conn, false);
    s->c->client[1].conn = NULL;
    van_listener_close(s->listener);
}

static void connect_second(void *arg)
{
    struct second *s = arg;
    struct peer *peer = &s->c->client[2];
    assert_int_equal(van_connect(s->c->van, s->c->lane[0], "other:1", &conf_user, peer, &peer->conn),
                     PARAMO_OK);
}

/* The other end of a crashed node's connection is told; its own hears nothing; its address refuses. */
static void test_crash(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    conf_listen(c);
    struct second s = {.c = c};
    assert_int_equal(van_sim_create(net, "other", &s.van), PARAMO_OK);
    conf_on(c->lane[2], second_listen, &s);
    conf_on(c->lane[2], second_connect, &s);
    conf_wait(c->lane[1], &c->server[0].frames, 1);
    van_sim_crash(s.van);
    conf_wait(c->lane[1], &c->server[0].closed, 1);
    assert_int_equal(c->server[0].why, PARAMO_E_DISCONNECTED);
    assert_int_equal(c->client[1].closed, 0);
    conf_on(c->lane[0], connect_second, &s);
    conf_wait(c->lane[0], &c->client[2].closed, 1);
    assert_int_equal(c->client[2].why, PARAMO_E_CONNECTION_REFUSED);
    conf_on(c->lane[2], second_close, &s);
    van_destroy(s.van);
    conf_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONFORMANCE_TESTS,
        cmocka_unit_test(test_stream_over_faults),
        cmocka_unit_test(test_datagrams),
        cmocka_unit_test(test_datagrams_begin),
        cmocka_unit_test(test_no_gap),
        cmocka_unit_test(test_same_seed_same_run),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_bandwidth),
        cmocka_unit_test(test_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
