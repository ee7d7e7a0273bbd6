/* The ucx van: which connections use UCX, and peers that are killed. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "van/support_ucx.h"

static struct van_config settings = {.at_once = true};

static void ucx_open(struct env **env, struct van **van)
{
    *env = env_real();
    assert_int_equal(van_ucx_create(*env, &settings, van), PARAMO_OK);
}

const struct conf_van conf_van = {
    .open = ucx_open, .close = van_destroy, .listen_address = "127.0.0.1:0", .dead_address = "127.0.0.1:1"};

static const struct van_config plain = {.at_once = true};

static void send_some(void *arg)
{
    struct conf *c = arg;
    for (unsigned i = 0; i < 20; i++)
        conf_send(&c->client[0], conf_frame(&c->client[0], i, 1, (uint64_t[]){i * 9000}));
}

static void exchange(struct conf *c)
{
    conf_on(c->lane[0], send_some, c);
    conf_wait(c->lane[1], &c->server[0].frames, 20);
}

/* ---- which connections use UCX ------------------------------------------------------------------------- */

static atomic_uint reasons;
static const char *reason;

static void find_reason(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    if (strstr(line, reason))
        atomic_fetch_add(&reasons, 1);
}

static void test_says_which_and_why(void **state)
{
    (void)state;
    static const struct {
        struct van_config config;
        const char *reason;
    } cases[] = {{{.at_once = true}, "by shared memory"},
                 {{.at_once = true, .no_shm = true}, "by tcp: shared memory is turned off"},
                 {{.at_once = true, .no_shm = true, .trusted_fabric = true}, "by the trusted fabric"}};
    for (unsigned i = 0; i < 3; i++) {
        settings = cases[i].config;
        reason = cases[i].reason;
        atomic_store(&reasons, 0);
        log_set_level(LOG_INFO);
        log_set_sink(find_reason, NULL);
        struct conf *c = conf_open();
        conf_listen(c);
        conf_connect(c, 0);
        conf_wait(c->lane[1], &c->accepted, 1);
        exchange(c);
        if (i != 1)
            ucx_wait_up(c);
        conf_close(c);
        log_set_sink(NULL, NULL);
        assert_true(atomic_load(&reasons) >= 1);
    }
    settings = plain;
}

/* Two vans: the first listens, the second connects. */
static struct conf *between(const struct van_config *listens, const struct van_config *connects,
                            struct van **other)
{
    struct conf *c;
    if (listens) {
        settings = *listens;
        c = conf_open();
    } else {
        c = conf_open();
        van_destroy(c->van);
        assert_int_equal(van_tcp_create(c->env, &(struct van_config){0}, &c->van), PARAMO_OK);
    }
    settings = plain;
    conf_listen(c);
    assert_int_equal(van_ucx_create(c->env, connects, other), PARAMO_OK);
    struct van *first = c->van;
    c->van = *other;
    conf_connect(c, 0);
    c->van = first;
    conf_wait(c->lane[1], &c->accepted, 1);
    return c;
}

static void test_required_is_refused(void **state)
{
    (void)state;
    struct van *other;
    struct conf *c =
        between(&(struct van_config){.no_shm = true}, &(struct van_config){.required = true}, &other);
    conf_wait(c->lane[0], &c->client[0].closed, 1);
    assert_int_equal(c->client[0].why, PARAMO_E_REFUSED);
    assert_non_null(strstr(c->client[0].text, "UCX"));
    conf_close(c);
    van_destroy(other);
}

static void test_with_a_tcp_peer(void **state)
{
    (void)state;
    struct van *other;
    struct conf *c = between(NULL, &plain, &other);
    exchange(c);
    assert_int_equal(c->server[0].closed, 0);
    conf_close(c);
    van_destroy(other);
}

/* ---- peers that are killed ----------------------------------------------------------------------------- */

/* Where UCX puts its segments for this test and its children alone: others on the machine have theirs. */
static char segments[] = "/dev/shm/paramo-test-XXXXXX";

static unsigned segments_left(void)
{
    unsigned n = 0;
    DIR *dir = opendir(segments);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    (void)closedir(dir);
    return n;
}

enum { FLOOD_LEN = 100000 };

static void flood(void *arg)
{
    struct conf *c = arg;
    for (unsigned i = 0; i < 500; i++)
        conf_send(&c->client[0], conf_frame(&c->client[0], i, 1, (uint64_t[]){FLOOD_LEN}));
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static paramo_err answer_greeting(struct peer *peer, const uint8_t *head, const struct van_seg *seg,
                                  unsigned nseg)
{
    if (nseg == 0)
        conf_send(peer, conf_frame(peer, conf_check(head, seg, nseg), 0, NULL));
    return PARAMO_OK;
}

/* This program again, as a client: floods, or receives, until it is killed. */
static int child_main(const char *address, bool floods)
{
    struct conf *c = conf_open();
    c->address = address;
    c->client[0].on_frame = answer_greeting;
    conf_connect(c, 0);
    if (floods)
        conf_on(c->lane[0], flood, c);
    (void)!lane_wait(c->lane[0], never, NULL, UINT64_MAX);
    return 1;
}

static pid_t child_start(const char *address, const char *how)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl("/proc/self/exe", "test_ucx_ends", how, address, (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    return pid;
}

static void kill_child(pid_t pid)
{
    int status;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

static void wait_server_up(struct conf *c)
{
    conf_wait(c->lane[1], &c->accepted, 1);
    while (!ucx_is_up(&c->server[0]))
        assert_int_equal(c->server[0].closed, 0);
}

static void test_sender_is_killed(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    conf_listen(c);
    pid_t pid = child_start(c->address, "flood");
    wait_server_up(c);
    conf_wait(c->lane[1], &c->server[0].frames, 20);
    kill_child(pid);
    conf_wait(c->lane[1], &c->server[0].closed, 1);
    assert_int_equal(c->server[0].why, PARAMO_E_DISCONNECTED);
    conf_close(c);
    assert_int_equal(segments_left(), 0);
}

static void flood_child(void *arg)
{
    struct conf *c = arg;
    for (unsigned i = 0; i < 60; i++)
        conf_send(&c->server[0], conf_frame(&c->server[0], i + 1, 1, (uint64_t[]){FLOOD_LEN}));
}

static void greet_child(void *arg)
{
    struct conf *c = arg;
    conf_send(&c->server[0], conf_frame(&c->server[0], 0, 0, NULL));
}

/* Its queue is full and it reads no more when it dies. */
static void test_stopped_receiver_is_killed(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    conf_listen(c);
    pid_t pid = child_start(c->address, "receive");
    wait_server_up(c);
    conf_on(c->lane[1], greet_child, c);
    conf_wait(c->lane[1], &c->server[0].frames, 1);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    int status;
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    conf_on(c->lane[1], flood_child, c);
    conf_wait(c->lane[1], &c->server[0].done_ok, 5);
    assert_true(c->server[0].done_ok < 60);
    kill_child(pid);
    conf_wait(c->lane[1], &c->server[0].closed, 1);
    assert_int_equal(c->server[0].done_ok + c->server[0].done_bad, 61);
    conf_close(c);
    assert_int_equal(segments_left(), 0);
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return child_main(argv[2], strcmp(argv[1], "flood") == 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_says_which_and_why),
        cmocka_unit_test(test_required_is_refused),
        cmocka_unit_test(test_with_a_tcp_peer),
        cmocka_unit_test(test_sender_is_killed),
        cmocka_unit_test(test_stopped_receiver_is_killed),
    };
    if (!mkdtemp(segments) || setenv("UCX_POSIX_DIR", segments, 1))
        return 1;
    int result = ucx_is_here() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
    return rmdir(segments) ? 1 : result;
}
