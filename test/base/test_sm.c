/* base/sm.h: which moves may be made, and how a process ends that makes another one. */
#include "base/sm.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "unit.h"

enum door { OPEN, SHUT, LOCKED };

static const struct sm door = {"door",
                               {[OPEN] = {"open", SM_TO(SHUT)},
                                [SHUT] = {"shut", SM_TO(OPEN) | SM_TO(LOCKED)},
                                [LOCKED] = {"locked", SM_TO(SHUT)}}};

static void test_table(void **state)
{
    (void)state;
    static const bool may[3][3] = {
        [OPEN] = {[SHUT] = true}, [SHUT] = {[OPEN] = true, [LOCKED] = true}, [LOCKED] = {[SHUT] = true}};
    for (unsigned from = 0; from < 3; from++)
        for (unsigned to = 0; to < 3; to++)
            assert_int_equal(sm_may(&door, from, to), may[from][to]);
    assert_false(sm_may(&door, SM_STATES_MAX, SHUT));
    assert_false(sm_may(&door, SHUT, SM_STATES_MAX));
    assert_false(sm_may(&door, SHUT, 32 + OPEN));
    sm_check(&door, OPEN, SHUT);
}

static void to_pipe(void *arg, int level, const char *line)
{
    (void)level;
    (void)!write(*(int *)arg, line, strlen(line));
}

/* What a child logs that makes the move; *status as waitpid gives it. */
static void child_moves(unsigned from, unsigned to, char text[256], int *status)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        log_set_sink(to_pipe, &ends[1]);
        sm_check(&door, from, to);
        _exit(0);
    }
    (void)close(ends[1]);
    size_t len = 0;
    for (ssize_t got; (got = read(ends[0], text + len, 255 - len)) > 0;)
        len += (size_t)got;
    text[len] = 0;
    (void)close(ends[0]);
    assert_int_equal(waitpid(pid, status, 0), pid);
}

static void test_another_move_aborts(void **state)
{
    (void)state;
    char text[256];
    int status;
    child_moves(OPEN, LOCKED, text, &status);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_string_equal(text, "internal error: state machine door may not move from open to locked");
    child_moves(9, SHUT, text, &status);
    assert_true(WIFSIGNALED(status));
    assert_string_equal(text,
                        "internal error: state machine door may not move from an unknown state to shut");
    child_moves(OPEN, SHUT, text, &status);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_another_move_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
