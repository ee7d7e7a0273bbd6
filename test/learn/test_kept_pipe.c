/* Pipes that are read ahead: those that end, those that have more, and waits that end. */
#include "learn/io/input.h"
#include "learn/io/kept_pipe.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MANY 200000 /* bytes: more than one read takes */

static char text[MANY], got[MANY + 1];
static int end[2];
static char path[64];

/* A pipe that has n bytes; path names it. */
static void open_pipe(size_t n)
{
    for (size_t i = 0; i < MANY; i++)
        text[i] = (char)('a' + i % 25);
    assert_int_equal(pipe(end), 0);
    assert_true(fcntl(end[1], F_SETPIPE_SZ, 2 * MANY) >= MANY);
    assert_int_equal(write(end[1], text, n), (ssize_t)n);
    (void)snprintf(path, sizeof path, "/dev/fd/%d", end[0]);
}

static void close_end(int i)
{
    (void)close(end[i]);
}

static void check_text(struct input *in, size_t n)
{
    size_t len = 0, more = 1;
    while (more > 0) {
        assert_int_equal(input_read(in, got + len, sizeof got - len, &more), PARAMO_OK);
        len += more;
    }
    assert_int_equal(len, n);
    assert_memory_equal(got, text, n);
}

static void a_pipe_that_ends_is_read_again(void **state)
{
    (void)state;
    struct input *in, *other;
    size_t bytes = 0;
    int whole = 0;
    open_pipe(MANY);
    close_end(1);
    assert_int_equal(kept_pipe_read(path, MANY, NULL, &bytes, &whole), PARAMO_OK);
    assert_int_equal(bytes, MANY);
    assert_true(whole);
    assert_int_equal(kept_pipe_read(path, 1, NULL, &bytes, &whole), PARAMO_OK); /* as it is kept */
    assert_true(whole && bytes == MANY);
    assert_int_equal(input_open(path, -1, &in), PARAMO_OK);
    assert_int_equal(input_open(path, -1, &other), PARAMO_OK);
    assert_true(input_is_kept(in) && input_is_plain(in));
    assert_int_equal(input_size(in), MANY);
    assert_string_equal(input_name(in), path);
    check_text(in, MANY);
    check_text(other, MANY);
    assert_int_equal(input_rewind(in), PARAMO_OK);
    check_text(in, MANY);
    assert_int_equal(input_read_at(in, 1000, got, 500), PARAMO_OK);
    assert_memory_equal(got, text + 1000, 500);
    input_close(in);
    input_close(other);
    kept_pipe_free_all();
    close_end(0);
}

static void the_rest_of_a_pipe_comes_behind(void **state)
{
    (void)state;
    struct input *in;
    size_t bytes = 0;
    int whole = 1;
    open_pipe(MANY);
    assert_int_equal(kept_pipe_read(path, 10, NULL, &bytes, &whole), PARAMO_OK);
    assert_true(!whole && bytes > 10 && bytes < MANY);
    close_end(1);
    assert_int_equal(input_open(path, -1, &in), PARAMO_OK);
    assert_false(input_is_kept(in) || input_is_plain(in));
    assert_int_equal(input_size(in), 0);
    check_text(in, MANY);
    assert_int_equal(input_rewind(in), PARAMO_E_UNSUPPORTED);
    input_close(in);
    close_end(0);

    open_pipe(MANY); /* one that is never opened */
    assert_int_equal(kept_pipe_read(path, 10, NULL, &bytes, &whole), PARAMO_OK);
    kept_pipe_free_all();
    close_end(0);
    close_end(1);
}

static int stopped_calls;

static int stopped(void)
{
    return ++stopped_calls > 1;
}

static void a_wait_ends(void **state)
{
    (void)state;
    struct input *in;
    size_t bytes = 0;
    int whole = 1;
    open_pipe(7);
    stopped_calls = 0;
    assert_int_equal(kept_pipe_read(path, MANY, stopped, &bytes, &whole), PARAMO_E_INTERRUPTED);
    assert_false(whole);
    close_end(1);
    assert_int_equal(input_open(path, -1, &in), PARAMO_OK);
    check_text(in, 7); /* nothing is lost */
    input_close(in);
    close_end(0);
}

static void what_cannot_be_kept(void **state)
{
    (void)state;
    struct input *in;
    size_t bytes = 0;
    int whole = 0;
    assert_int_equal(kept_pipe_read("/nothing/here", MANY, NULL, &bytes, &whole), PARAMO_E_NOT_FOUND);
    open_pipe(0);
    close_end(1);
    assert_int_equal(kept_pipe_read(path, MANY, NULL, &bytes, &whole), PARAMO_OK);
    assert_true(whole && bytes == 0);
    assert_int_equal(input_open(path, -1, &in), PARAMO_E_FORMAT);
    kept_pipe_free_all();
    close_end(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_pipe_that_ends_is_read_again),
                                       cmocka_unit_test(the_rest_of_a_pipe_comes_behind),
                                       cmocka_unit_test(a_wait_ends), cmocka_unit_test(what_cannot_be_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
