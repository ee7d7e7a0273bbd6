/* What 'paramo run' makes of what its nodes print: names, order, and messages that several print at once. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/run_output.h"

enum { NODES = 6 };

static struct run_output output;
static struct run_source node[NODES];
static int in[NODES];
static int shown, standard_error;
static char text[8192];

static int open_all(void **state)
{
    (void)state;
    output = (struct run_output){.sources = NODES};
    for (int i = 0; i < NODES; i++) {
        int ends[2];
        assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        node[i] = (struct run_source){.fd = ends[0]};
        snprintf(node[i].name, sizeof node[i].name, "worker %d", i);
        in[i] = ends[1];
    }
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    shown = ends[0];
    standard_error = dup(STDERR_FILENO);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    assert_int_equal(close(ends[1]), 0);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    run_output_flush(&output, NULL);
    assert_int_equal(dup2(standard_error, STDERR_FILENO), STDERR_FILENO);
    (void)close(standard_error);
    (void)close(shown);
    for (int i = 0; i < NODES; i++) {
        (void)close(in[i]);
        if (node[i].fd >= 0)
            (void)close(node[i].fd);
    }
    return 0;
}

static void say(int i, const char *what, int64_t now)
{
    assert_int_equal(write(in[i], what, strlen(what)), (ssize_t)strlen(what));
    run_output_read(&output, &node[i], now);
}

/* All that has been printed since. */
static const char *printed(void)
{
    ssize_t n = read(shown, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void lines_pass_at_once(void **state)
{
    (void)state;
    say(0, "one\ntwo\nthr", 0);
    say(1, "one\n", 0);
    assert_string_equal(printed(), "[worker 0] one\n[worker 0] two\n[worker 1] one\n");
    say(0, "ee\n", 0);
    say(0, "paramount\n", 0); /* not ours */
    assert_string_equal(printed(), "[worker 0] three\n[worker 0] paramount\n");
    assert_int_equal(run_output_due(&output), -1);
    say(0, "no end", 0);
    assert_int_equal(close(in[0]), 0);
    in[0] = -1;
    run_output_read(&output, &node[0], 0);
    assert_int_equal(node[0].fd, -1);
    assert_string_equal(printed(), "[worker 0] no end\n");
}

static void one_message_of_many(void **state)
{
    (void)state;
    say(0, "paramo train: server 1 has died\n", 1000);
    say(1, "paramo train: another\n", 1010);
    say(2, "paramo train: server 1 has died\n", 1020);
    say(3, "paramo train: server 1 has died\n", 1200);
    assert_string_equal(printed(), "");
    int64_t due = run_output_due(&output);
    assert_true(due > 1200);
    run_output_tick(&output, due - 1);
    assert_string_equal(printed(), "");
    run_output_tick(&output, due);
    assert_string_equal(printed(), "[worker 0, worker 2, worker 3] paramo train: server 1 has died\n");
    run_output_tick(&output, due + 10);
    assert_string_equal(printed(), "[worker 1] paramo train: another\n");
    assert_int_equal(run_output_due(&output), -1);
    for (int i = 0; i < NODES; i++)
        say(i, "paramo: warning: many\n", 2000);
    run_output_tick(&output, 5000);
    assert_string_equal(printed(), "[worker 0, worker 1, worker 2 and 3 more] paramo: warning: many\n");
}

static void one_nodes_lines_stay_in_order(void **state)
{
    (void)state;
    say(0, "paramo: warning: first\n", 0);
    say(1, "paramo: warning: first\n", 0);
    say(1, "then this\n", 0);
    assert_string_equal(printed(), "[worker 0, worker 1] paramo: warning: first\n[worker 1] then this\n");
    say(0, "paramo: warning: again\nparamo: warning: again\n", 0); /* twice is twice */
    run_output_flush(&output, &node[1]);                           /* the ones that have written nothing */
    assert_string_equal(printed(), "");
    run_output_flush(&output, &node[0]);
    assert_string_equal(printed(), "[worker 0] paramo: warning: again\n[worker 0] paramo: warning: again\n");
}

static void long_lines_and_many_messages(void **state)
{
    (void)state;
    static char line[RUN_LINE_BYTES + 101];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 2] = '\n';
    say(0, line, 0);
    const char *out = printed();
    assert_int_equal(strlen(out), strlen(line) + 2 * strlen("[worker 0] ") + 1); /* in two pieces */
    for (int i = 0; i < 2 * RUN_HELD_MAX; i++) {
        char message[64];
        snprintf(message, sizeof message, "paramo: %d\n", i);
        say(0, message, 0);
    }
    run_output_flush(&output, NULL);
    out = printed();
    for (int i = 0; i < 2 * RUN_HELD_MAX; i++) {
        char message[64];
        snprintf(message, sizeof message, "[worker 0] paramo: %d\n", i);
        assert_memory_equal(out, message, strlen(message));
        out += strlen(message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_pass_at_once, open_all, close_all),
        cmocka_unit_test_setup_teardown(one_message_of_many, open_all, close_all),
        cmocka_unit_test_setup_teardown(one_nodes_lines_stay_in_order, open_all, close_all),
        cmocka_unit_test_setup_teardown(long_lines_and_many_messages, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
