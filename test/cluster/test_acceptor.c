/* The handshake from both sides, and what unauthenticated peers can do at an acceptor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/session/acceptor.h"
#include "cluster/session/connector.h"
#include "cluster/session/control_message.h"
#include "env/lane.h"
#include "sim/env/sim.h"
#include "wire/capability.h"

static struct world {
    struct sim *sim;
    struct van *van;
    struct lane *inside, *shard, *outside;
    struct acceptor *acceptor;
    struct van_conn *accepted; /* on inside or, moved, on shard */
    struct hello hello;
    bool move, refuse;
    struct van_conn *up;
    paramo_err failed;
    char text[ERR_TEXT_MAX];
    unsigned greetings; /* frames that came in after the handshake, either side */
    bool accepted_closed, up_closed;
} w;

static paramo_err greeted(void *user, struct van_conn *conn, const uint8_t head[VAN_HEAD],
                          const struct van_seg *seg, unsigned nseg)
{
    (void)user, (void)conn, (void)head, (void)seg, (void)nseg;
    w.greetings++;
    return PARAMO_OK;
}

static void closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    (void)why, (void)text;
    van_close(conn, false);
    *(bool *)user = true;
}

static const struct van_user user = {.frame = greeted, .closed = closed};

static void moved(void *arg, struct van_conn *conn)
{
    (void)arg;
    assert_true(lane_held(w.shard));
    van_set_user(conn, &user, &w.accepted_closed);
    w.accepted = conn;
    assert_int_equal(acceptor_welcome(conn, 5, 6), PARAMO_OK);
}

static void accepted(void *arg, struct van_conn *conn, const struct hello *hello)
{
    (void)arg;
    w.hello = *hello;
    if (w.refuse) {
        acceptor_reject(conn, PARAMO_E_FULL, "no room");
    } else if (w.move) {
        van_move(conn, w.shard, moved, NULL);
    } else {
        van_set_user(conn, &user, &w.accepted_closed);
        w.accepted = conn;
        assert_int_equal(acceptor_welcome(conn, 5, 6), PARAMO_OK);
    }
}

static void up(void *arg, struct van_conn *conn, const struct welcome *welcome)
{
    (void)arg;
    assert_int_equal(welcome->job, 5);
    assert_int_equal(welcome->incarnation, 6);
    w.up = conn;
    van_set_user(conn, &user, &w.up_closed);
    struct wire_head head = {
        .heartbeat = {.kind = WIRE_HEARTBEAT}}; /* at once: nothing may be lost in the hand-over */
    assert_int_equal(control_message_send(conn, &head, "hello", 5), PARAMO_OK);
}

static void failed(void *arg, paramo_err code, const char *text)
{
    (void)arg;
    w.failed = code;
    snprintf(w.text, sizeof w.text, "%s", text);
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void nothing(struct sim_event *event)
{
    (void)event;
}

static void pass(double seconds)
{
    /* A marker, so that the clock comes to this moment though nothing else happens then. */
    struct sim_event marker = {.fire = nothing};
    assert_int_equal(sim_schedule(w.sim, &marker, sim_now(w.sim) + (uint64_t)(seconds * 1e9)), PARAMO_OK);
    (void)sim_run(w.sim, never, NULL, marker.at);
}

static int setup(void **state)
{
    (void)state;
    w = (struct world){0};
    assert_int_equal(sim_create(1, &w.sim), PARAMO_OK);
    assert_int_equal(van_inproc_create(sim_env(w.sim), &w.van), PARAMO_OK);
    assert_int_equal(lane_create(sim_env(w.sim), "inside", 0, &w.inside), PARAMO_OK);
    assert_int_equal(lane_create(sim_env(w.sim), "shard", 0, &w.shard), PARAMO_OK);
    assert_int_equal(lane_create(sim_env(w.sim), "outside", 0, &w.outside), PARAMO_OK);
    struct acceptor_config config = {.van = w.van,
                                     .lane = w.inside,
                                     .address = "acceptor",
                                     .token = "secret",
                                     .purposes = ACCEPTOR_PURPOSE_DATA,
                                     .frame_bytes = 1 << 20,
                                     .unauth_max = 4,
                                     .accept = accepted};
    assert_true(lane_enter(w.inside));
    assert_int_equal(acceptor_open(&config, &w.acceptor), PARAMO_OK);
    acceptor_set_job(w.acceptor, 5);
    lane_leave(w.inside);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_true(lane_enter(w.inside));
    acceptor_close(w.acceptor);
    if (w.accepted && !w.move && !w.accepted_closed)
        van_close(w.accepted, false);
    lane_leave(w.inside);
    assert_true(lane_enter(w.shard));
    if (w.accepted && w.move && !w.accepted_closed)
        van_close(w.accepted, false);
    lane_leave(w.shard);
    assert_true(lane_enter(w.outside));
    if (w.up && !w.up_closed)
        van_close(w.up, false);
    lane_leave(w.outside);
    pass(10);
    lane_destroy(w.inside);
    lane_destroy(w.shard);
    lane_destroy(w.outside);
    van_destroy(w.van);
    sim_destroy(w.sim);
    return 0;
}

static struct connector *connector(const char *address, const struct hello *hello)
{
    struct connector *connector;
    struct connector_config config = {.van = w.van,
                                      .lane = w.outside,
                                      .address = address,
                                      .hello = *hello,
                                      .frame_bytes = 1 << 20,
                                      .deadline = sim_now(w.sim) + 5 * ENV_SEC,
                                      .up = up,
                                      .failed = failed};
    assert_true(lane_enter(w.outside));
    assert_int_equal(connector_start(&config, &connector), PARAMO_OK);
    lane_leave(w.outside);
    return connector;
}

static const struct hello good = {.purpose = HELLO_DATA,
                                  .node = 9,
                                  .incarnation = 7,
                                  .job = 5,
                                  .customer = 3,
                                  .shard = 1,
                                  .token = "secret"};

static void check_welcomed(void)
{
    connector("acceptor", &good);
    pass(1);
    assert_non_null(w.up);
    assert_non_null(w.accepted);
    assert_int_equal(w.hello.customer, 3);
    assert_int_equal(w.hello.shard, 1);
    assert_int_equal(w.greetings, 1);
}

static void test_welcome(void **state)
{
    (void)state;
    check_welcomed();
}

static void test_welcome_on_another_lane(void **state)
{
    (void)state;
    w.move = true;
    check_welcomed();
}

static void test_rejected(void **state)
{
    (void)state;
    struct {
        struct hello hello;
        paramo_err code;
        const char *text;
    } bad[] = {{good, PARAMO_E_TOKEN, "token"},         {good, PARAMO_E_TOKEN, "token"},
               {good, PARAMO_E_TOKEN, "token"},         {good, PARAMO_E_REFUSED, "not a scheduler"},
               {good, PARAMO_E_REFUSED, "another job"}, {good, PARAMO_E_FULL, "no room"}};
    strcpy(bad[0].hello.token, "");
    strcpy(bad[1].hello.token, "secre");
    strcpy(bad[2].hello.token, "secrets");
    bad[3].hello.purpose = HELLO_CONTROL;
    bad[4].hello.job = 6;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        w.refuse = i == 5;
        connector("acceptor", &bad[i].hello);
        pass(1);
        assert_null(w.up);
        assert_int_equal(w.failed, bad[i].code);
        assert_non_null(strstr(w.text, bad[i].text));
        assert_non_null(strstr(w.text, "acceptor"));
        w.failed = PARAMO_OK;
    }
}

static void test_nobody_there(void **state)
{
    (void)state;
    connector("elsewhere", &good);
    pass(1);
    assert_int_equal(w.failed, PARAMO_E_CONNECTION_REFUSED);
    assert_non_null(strstr(w.text, "elsewhere"));
    w.failed = PARAMO_OK;
    struct connector *given_up = connector("acceptor", &good);
    assert_true(lane_enter(w.outside));
    connector_cancel(given_up);
    lane_leave(w.outside);
    pass(6);
    assert_null(w.up);
    assert_int_equal(w.failed, PARAMO_OK);
}

/* ---- unauthenticated ---------------------------------------------------------------------------------- */

static bool unauth_closed[16];

static struct van_conn *unauth(size_t i)
{
    struct van_conn *conn;
    unauth_closed[i] = false;
    assert_true(lane_enter(w.outside));
    assert_int_equal(van_connect(w.van, w.outside, "acceptor", &user, &unauth_closed[i], &conn), PARAMO_OK);
    lane_leave(w.outside);
    pass(0.01);
    return conn;
}

static void say(struct van_conn *conn, const struct wire_head *head, const void *body, size_t len)
{
    assert_true(lane_enter(w.outside));
    assert_int_equal(control_message_send(conn, head, body, len), PARAMO_OK);
    lane_leave(w.outside);
    pass(0.01);
}

/* Whatever they say first but a HELLO, or if they say nothing for too long, they are closed, and no other connection
 * is affected. */
static void test_unauth(void **state)
{
    (void)state;
    static char large[5000];
    struct van_conn *conn = unauth(0);
    say(conn, &(struct wire_head){.call = {.kind = WIRE_CALL}}, "x", 1);
    assert_true(unauth_closed[0]);
    conn = unauth(1);
    say(conn, &(struct wire_head){.plain = {.kind = WIRE_HELLO}}, "not a hello", 11);
    assert_true(unauth_closed[1]);
    conn = unauth(2);
    say(conn, &(struct wire_head){.plain = {.kind = WIRE_HELLO}}, large, sizeof large);
    assert_true(unauth_closed[2]);
    unauth(3);
    pass(9);
    assert_false(unauth_closed[3]);
    pass(1.5);
    assert_true(unauth_closed[3]);
    /* Too many connections: the oldest is closed, and one with the token is still accepted. */
    for (size_t i = 0; i < 6; i++)
        unauth(i);
    assert_true(unauth_closed[0] && unauth_closed[1]);
    assert_false(unauth_closed[2] || unauth_closed[5]);
    check_welcomed();
    pass(11);
    assert_true(unauth_closed[5]);
}

/* ---- capabilities ---- */

/* A feature with the test bit: a sender uses it where the connection has the bit. */
static bool feature_used(struct van_conn *conn, struct lane *lane)
{
    struct wire_head head = {.heartbeat = {.kind = WIRE_HEARTBEAT}};
    assert_true(lane_enter(lane));
    bool used = capability_of(conn, CAPABILITY_TEST);
    if (used)
        assert_int_equal(control_message_send(conn, &head, NULL, 0), PARAMO_OK);
    lane_leave(lane);
    pass(0.1);
    return used;
}

/* Builds with these bits talk; each end has those that both have. */
static void check_builds(uint64_t connects, uint64_t accepts)
{
    w.van->capabilities = connects;
    connector("acceptor", &good);
    w.van->capabilities = accepts;
    pass(1);
    assert_non_null(w.up);
    assert_non_null(w.accepted);
    assert_true(w.hello.capabilities == connects);
    assert_true(w.up->capabilities == (connects & accepts));
    assert_true(w.accepted->capabilities == (connects & accepts));
    bool both = connects & accepts & CAPABILITY_TEST;
    unsigned before = w.greetings;
    assert_int_equal(feature_used(w.up, w.outside), both);
    assert_int_equal(feature_used(w.accepted, w.move ? w.shard : w.inside), both);
    assert_int_equal(w.greetings, before + 2 * both);
}

static void test_both_can(void **state)
{
    (void)state;
    check_builds(CAPABILITY_TEST | 1, CAPABILITY_TEST | 2);
}

static void test_both_can_on_another_lane(void **state)
{
    (void)state;
    w.move = true;
    check_builds(CAPABILITY_TEST | 4, CAPABILITY_TEST | 4);
}

static void test_one_can(void **state)
{
    (void)state;
    check_builds(CAPABILITY_TEST | 1, 1);
}

static void test_the_other_can(void **state)
{
    (void)state;
    check_builds(0, CAPABILITY_TEST | 1); /* HELLO as builds without capabilities send it */
}

/* An acceptor that claims a bit that was not offered breaks the protocol. */
static void claims(void *arg, struct van_conn *conn, const struct hello *hello)
{
    conn->capabilities |= CAPABILITY_TEST;
    accepted(arg, conn, hello);
}

static void test_not_offered(void **state)
{
    (void)state;
    struct acceptor *acceptor;
    struct acceptor_config config = {.van = w.van,
                                     .lane = w.inside,
                                     .address = "claims",
                                     .token = "secret",
                                     .purposes = ACCEPTOR_PURPOSE_DATA,
                                     .frame_bytes = 1 << 20,
                                     .accept = claims};
    assert_true(lane_enter(w.inside));
    assert_int_equal(acceptor_open(&config, &acceptor), PARAMO_OK);
    lane_leave(w.inside);
    w.van->capabilities = 1;
    connector("claims", &good);
    pass(1);
    assert_null(w.up);
    assert_non_null(strstr(w.text, "not offered"));
    assert_true(lane_enter(w.inside));
    acceptor_close(acceptor);
    lane_leave(w.inside);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_welcome, setup, teardown),
        cmocka_unit_test_setup_teardown(test_welcome_on_another_lane, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rejected, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nobody_there, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unauth, setup, teardown),
        cmocka_unit_test_setup_teardown(test_both_can, setup, teardown),
        cmocka_unit_test_setup_teardown(test_both_can_on_another_lane, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_can, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_other_can, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_offered, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
