#include "unit.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env/process.h"

static void a_child_knows_that_it_is_one(void **state)
{
    (void)state;
    unsigned mine = process_generation();
    assert_int_equal(process_generation(), mine);
    pid_t child = fork();
    if (child == 0)
        _exit(process_generation() != mine ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(process_generation(), mine);
}

static void empty_variables_are_not_set(void **state)
{
    (void)state;
    assert_int_equal(setenv("PARAMO_TEST_VARIABLE", "x", 1), 0);
    assert_string_equal(process_variable("PARAMO_TEST_VARIABLE"), "x");
    assert_int_equal(setenv("PARAMO_TEST_VARIABLE", "", 1), 0);
    assert_null(process_variable("PARAMO_TEST_VARIABLE"));
}

static void an_event_is_readable_until_drained(void **state)
{
    (void)state;
    int fd;
    assert_int_equal(event_create(&fd), PARAMO_OK);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0);
    event_signal(fd);
    event_signal(fd);
    assert_int_equal(poll(&p, 1, 0), 1);
    event_drain(fd);
    assert_int_equal(poll(&p, 1, 0), 0);
    event_close(fd);
}

static void what_is_said_is_heard(void **state)
{
    (void)state;
    int pair[2];
    char text[32] = "";
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    process_notify(-1, "nobody listens\n");
    process_notify(pair[0], "a word\n");
    assert_int_equal(read(pair[1], text, sizeof text), 7);
    assert_string_equal(text, "a word\n");
    assert_int_equal(close(pair[1]), 0);
    process_notify(pair[0], "it has gone\n"); /* and SIGPIPE does not kill us */
    assert_int_equal(close(pair[0]), 0);
}

static void a_path_from_the_root_on(void **state)
{
    (void)state;
    char before[4096], path[64], small[8];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(process_path("/a/b", path, sizeof path), PARAMO_OK);
    assert_string_equal(path, "/a/b");
    assert_int_equal(chdir("/tmp"), 0);
    assert_int_equal(process_path("a/b", path, sizeof path), PARAMO_OK);
    assert_string_equal(path, "/tmp/a/b");
    assert_int_equal(process_path("a/b", small, sizeof small), PARAMO_E_TOO_LARGE);
    assert_int_equal(chdir(before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_knows_that_it_is_one), cmocka_unit_test(empty_variables_are_not_set),
        cmocka_unit_test(what_is_said_is_heard),        cmocka_unit_test(an_event_is_readable_until_drained),
        cmocka_unit_test(a_path_from_the_root_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
