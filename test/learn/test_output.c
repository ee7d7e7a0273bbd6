/* Files that appear whole or not at all. */
#include "learn/io/input.h"
#include "learn/io/output.h"
#include "learn/support_text.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES 1500007

static char *data;

/* The linker routes calls of umask here (CMakeLists.txt): other threads' files would get that mask, too. */
mode_t __real_umask(mode_t mask);
mode_t __wrap_umask(mode_t mask);

mode_t __wrap_umask(mode_t mask)
{
    (void)mask;
    fail_msg("umask is changed under other threads");
    return 0;
}

static void a_new_file_has_the_mode_of_its_process(void **s)
{
    (void)s;
    static const struct {
        mode_t mask, mode;
    } cases[] = {{0022, 0644}, {0077, 0600}, {0, 0666}, {0027, 0640}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct output *o;
        struct stat st;
        const char *path = text_path("mode");
        mode_t before = __real_umask(cases[i].mask);
        assert_int_equal(output_open(path, &o), PARAMO_OK);
        assert_int_equal(output_commit(o), PARAMO_OK);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, cases[i].mode);
        assert_int_equal(unlink(path), 0);
        (void)__real_umask(before);
    }
}

static int make_data(void **s)
{
    (void)s;
    data = malloc(BYTES);
    assert_non_null(data);
    uint64_t x = 1;
    for (size_t i = 0; i < BYTES; i++) { /* compresses to about half */
        x = x * 6364136223846793005u + 1442695040888963407u;
        data[i] = (char)('a' + (x >> 60));
    }
    return 0;
}

static int drop_data(void **s)
{
    (void)s;
    free(data);
    text_cleanup();
    return 0;
}

static int files_in_dir(void)
{
    int n = 0;
    DIR *d = opendir(text_dir());
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        n += e->d_name[0] != '.';
    }
    (void)closedir(d);
    return n;
}

static void expect_content(const char *path, const char *want, size_t len)
{
    struct input *in;
    char *got = malloc(len + 1);
    size_t at = 0, n;
    assert_non_null(got);
    assert_int_equal(input_open(path, -1, &in), PARAMO_OK);
    do {
        assert_int_equal(input_read(in, got + at, len + 1 - at, &n), PARAMO_OK);
        at += n;
    } while (n > 0);
    input_close(in);
    assert_int_equal(at, len);
    assert_memory_equal(got, want, len);
    free(got);
}

static paramo_err write_pieces(struct output *o)
{
    size_t piece = 1;
    for (size_t at = 0; at < BYTES; at += piece, piece = piece * 3 % 400009) {
        size_t n = BYTES - at < piece ? BYTES - at : piece;
        paramo_err err = output_write(o, data + at, n);
        if (err != PARAMO_OK) {
            return err;
        }
    }
    return PARAMO_OK;
}

static void written_whole(void **s)
{
    (void)s;
    static const char *const names[] = {"plain", "x.gz", "x.zst"};
    for (int i = 0; i < 3; i++) {
        const char *path = text_path(names[i]);
        struct output *o;
        struct stat st;
        text_write_file(path, "old", 3);
        assert_int_equal(chmod(path, 0640), 0);
        assert_int_equal(output_open(path, &o), PARAMO_OK);
        assert_int_equal(write_pieces(o), PARAMO_OK);
        expect_content(path, "old", 3); /* until the commit */
        assert_int_equal(output_commit(o), PARAMO_OK);
        expect_content(path, data, BYTES);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0640);
        assert_true(i == 0 || st.st_size < BYTES);
    }
    assert_int_equal(files_in_dir(), 3);
    struct output *o; /* nothing at all is a file too */
    assert_int_equal(output_open(text_path("nothing.gz"), &o), PARAMO_OK);
    assert_int_equal(output_commit(o), PARAMO_OK);
    expect_content(text_path("nothing.gz"), "", 0);
    assert_int_equal(unlink(text_path("nothing.gz")), 0);
}

static void an_abort_leaves_nothing(void **s)
{
    (void)s;
    struct output *o;
    int before = files_in_dir();
    assert_int_equal(output_open(text_path("aborted"), &o), PARAMO_OK);
    assert_int_equal(write_pieces(o), PARAMO_OK);
    output_abort(o);
    assert_int_equal(files_in_dir(), before);
}

static void a_full_disk_leaves_the_old_file(void **s)
{
    (void)s;
    struct rlimit old, small;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    static const char *const names[] = {"plain", "x.gz", "x.zst"};
    int before = files_in_dir();
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    for (int i = 0; i < 3; i++) {
        const char *path = text_path(names[i]);
        struct output *o;
        small = old;
        small.rlim_cur = 1000;
        assert_int_equal(output_open(path, &o), PARAMO_OK);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        paramo_err err = write_pieces(o);
        if (err != PARAMO_OK) { /* it stays */
            assert_int_equal(output_write(o, "x", 1), PARAMO_E_IO);
        }
        err = output_commit(o);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(err, PARAMO_E_IO);
        assert_non_null(strstr(paramo_last_error(), path));
        assert_non_null(strstr(paramo_last_error(), "cannot write: File too large"));
        expect_content(path, data, BYTES);
    }
    (void)signal(SIGXFSZ, handler);
    assert_int_equal(files_in_dir(), before);
}

static void places_that_cannot_be_written(void **s)
{
    (void)s;
    struct output *o;
    assert_int_equal(output_open(text_dir(), &o), PARAMO_E_IO);
    assert_non_null(strstr(paramo_last_error(), "is a directory"));
    assert_int_equal(output_open(text_path("no/such"), &o), PARAMO_E_IO);
    assert_non_null(strstr(paramo_last_error(), "cannot create: No such file"));
    assert_int_equal(output_open("/dev/full", &o), PARAMO_OK); /* a device is written in place */
    assert_int_equal(output_write(o, "x", 1), PARAMO_OK);
    assert_int_equal(output_commit(o), PARAMO_E_IO);
    assert_non_null(strstr(paramo_last_error(), "No space left"));
}

static void a_link_stays_a_link(void **s)
{
    (void)s;
    struct output *o;
    struct stat st;
    assert_int_equal(symlink(text_path("plain"), text_path("link")), 0);
    assert_int_equal(output_open(text_path("link"), &o), PARAMO_OK);
    assert_int_equal(output_write(o, "new", 3), PARAMO_OK);
    assert_int_equal(output_commit(o), PARAMO_OK);
    assert_int_equal(lstat(text_path("link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    expect_content(text_path("plain"), "new", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_file_has_the_mode_of_its_process),
        cmocka_unit_test(written_whole),
        cmocka_unit_test(an_abort_leaves_nothing),
        cmocka_unit_test(a_full_disk_leaves_the_old_file),
        cmocka_unit_test(places_that_cannot_be_written),
        cmocka_unit_test(a_link_stays_a_link),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
