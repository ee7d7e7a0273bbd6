/* Connecting to an address where another program answers: a bare socket of this test, over the real tcp van. */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/session/connector.h"

static struct {
    struct env *env;
    struct lane *lane;
    struct van *van;
    int listener;
    char address[64];
    paramo_err code;
    char text[ERR_TEXT_MAX];
    atomic_bool ended;
} w;

static int open_all(void **state)
{
    (void)state;
    memset(&w, 0, sizeof w);
    w.env = env_real();
    assert_int_equal(lane_create(w.env, "connect", 0, &w.lane), PARAMO_OK);
    assert_int_equal(van_tcp_create(w.env, &(struct van_config){0}, &w.van), PARAMO_OK);
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    w.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(w.listener >= 0);
    assert_int_equal(bind(w.listener, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(getsockname(w.listener, (struct sockaddr *)&addr, &len), 0);
    (void)snprintf(w.address, sizeof w.address, "127.0.0.1:%u", ntohs(addr.sin_port));
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    lane_destroy(w.lane);
    van_destroy(w.van);
    (void)close(w.listener);
    return 0;
}

static void up(void *arg, struct van_conn *conn, const struct welcome *welcome)
{
    (void)arg, (void)welcome;
    van_close(conn, false);
    fail_msg("no server can have welcomed us");
}

static void failed(void *arg, paramo_err code, const char *text)
{
    (void)arg;
    w.code = code;
    (void)snprintf(w.text, sizeof w.text, "%s", text);
    lane_notify(w.lane);
    atomic_store(&w.ended, true);
}

static bool ended(void *arg)
{
    (void)arg;
    return atomic_load(&w.ended);
}

static void begin(struct lane_task *task)
{
    (void)task;
    struct connector *connector;
    struct connector_config config = {.van = w.van,
                                      .lane = w.lane,
                                      .address = w.address,
                                      .hello = {.purpose = HELLO_CONTROL, .incarnation = 1},
                                      .frame_bytes = 1 << 20,
                                      .deadline = UINT64_MAX,
                                      .up = up,
                                      .failed = failed};
    assert_int_equal(connector_start(&config, &connector), PARAMO_OK);
}

/* Connects. The listener, if it listens, sends `answer` and closes the connection. */
static void connect_to(const char *answer, bool listens)
{
    struct lane_task task = {.run = begin};
    if (listens)
        assert_int_equal(listen(w.listener, 4), 0);
    lane_post(w.lane, &task);
    if (listens) {
        int fd = accept(w.listener, NULL, NULL);
        char first;
        assert_true(fd >= 0);
        assert_int_equal(recv(fd, &first, 1, 0), 1); /* HELLO has come */
        assert_int_equal(send(fd, answer, strlen(answer), MSG_NOSIGNAL), (ssize_t)strlen(answer));
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        assert_int_equal(lane_wait(w.lane, ended, NULL, UINT64_MAX), PARAMO_OK);
        (void)close(fd);
    }
    assert_int_equal(lane_wait(w.lane, ended, NULL, UINT64_MAX), PARAMO_OK);
    const char *named = strstr(w.text, w.address);
    assert_non_null(named);
    assert_null(strstr(named + 1, w.address)); /* once */
}

static void nobody_listens(void **state)
{
    (void)state;
    connect_to("", false);
    assert_int_equal(w.code, PARAMO_E_CONNECTION_REFUSED);
    assert_non_null(strstr(w.text, "refused"));
}

static void another_protocol(void **state)
{
    (void)state;
    connect_to("SSH-2.0-x\r\n", true);
    assert_int_equal(w.code, PARAMO_E_PROTOCOL);
    assert_non_null(strstr(w.text, "the process there does not speak Paramo's protocol"));
}

static void a_short_answer(void **state)
{
    (void)state;
    connect_to("HI\n", true); /* less than what a frame begins with */
    assert_int_equal(w.code, PARAMO_E_CONNECT);
    assert_non_null(strstr(w.text, "in the middle of a frame, without an answer"));
}

static void hung_up(void **state)
{
    (void)state;
    connect_to("", true);
    assert_int_equal(w.code, PARAMO_E_CONNECT);
    assert_non_null(strstr(w.text, "without an answer"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nobody_listens, open_all, close_all),
        cmocka_unit_test_setup_teardown(another_protocol, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_short_answer, open_all, close_all),
        cmocka_unit_test_setup_teardown(hung_up, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
