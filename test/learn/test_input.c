/* Files as text: compression, damage, globs, pipes, what cannot be read. */
#include "learn/io/input.h"
#include "learn/support_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define TEXT_BYTES 700001

static char *text;

static int make_text(void **s)
{
    (void)s;
    text = malloc(TEXT_BYTES);
    assert_non_null(text);
    uint64_t x = 1;
    for (size_t i = 0; i < TEXT_BYTES; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        text[i] = (char)('a' + (x >> 60));
    }
    return 0;
}

static int drop_text(void **s)
{
    (void)s;
    free(text);
    text_cleanup();
    return 0;
}

/* Reads all in pieces of `piece` bytes. */
static paramo_err read_all(struct input *in, size_t piece, char **got, size_t *len)
{
    char *out = malloc(TEXT_BYTES + piece);
    *len = 0;
    assert_non_null(out);
    for (;;) {
        size_t n;
        paramo_err err = input_read(in, out + *len, piece, &n);
        if (err != PARAMO_OK || n == 0) {
            *got = out;
            return err;
        }
        *len += n;
        assert_true(*len <= TEXT_BYTES);
    }
}

static void check_same(const char *path, size_t len)
{
    static const size_t pieces[] = {1 << 20, 4096, 77777};
    struct input *in;
    assert_int_equal(input_open(path, -1, &in), PARAMO_OK);
    for (int i = 0; i < 3; i++) {
        char *got;
        const char *head;
        size_t n;
        int whole;
        if (i == 1) { /* the head is delivered again */
            assert_int_equal(input_head(in, &head, &n, &whole), PARAMO_OK);
            assert_int_equal(n, len < 65536 ? len : 65536);
            assert_int_equal(whole, len < 65536);
            assert_memory_equal(head, text, n);
        }
        assert_int_equal(read_all(in, pieces[i], &got, &n), PARAMO_OK);
        assert_int_equal(n, len);
        assert_memory_equal(got, text, len);
        free(got);
        assert_int_equal(input_used(in), input_size(in));
        assert_int_equal(input_rewind(in), PARAMO_OK);
    }
    input_close(in);
}

static void every_compression_gives_the_same(void **s)
{
    (void)s;
    static const size_t lens[] = {TEXT_BYTES, 5, 262144};
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        const char *path = text_path("same"); /* the name says nothing */
        text_write_file(path, text, lens[i]);
        check_same(path, lens[i]);
        for (int frames = 1; frames <= 3; frames++) {
            text_write_gzip(path, text, lens[i], frames);
            check_same(path, lens[i]);
            text_write_zstd(path, text, lens[i], frames);
            check_same(path, lens[i]);
        }
    }
    /* a gzip file with zeros at its end, as tapes leave them */
    char packed[2048];
    text_write_gzip(text_path("zeros"), text, 1000, 1);
    FILE *f = fopen(text_path("zeros"), "rb");
    size_t n = fread(packed, 1, sizeof packed, f);
    (void)fclose(f);
    memset(packed + n, 0, 100);
    text_write_file(text_path("zeros"), packed, n + 100);
    check_same(text_path("zeros"), 1000);
}

static void expect_read_error(const char *path, paramo_err want, const char *message)
{
    struct input *in;
    char *got = NULL;
    size_t n;
    paramo_err err = input_open(path, -1, &in);
    if (err == PARAMO_OK) {
        err = read_all(in, 100000, &got, &n);
        input_close(in);
        free(got);
    }
    assert_int_equal(err, want);
    assert_non_null(strstr(paramo_last_error(), path));
    if (strstr(paramo_last_error(), message) == NULL) {
        fail_msg("\"%s\", not \"%s\"", paramo_last_error(), message);
    }
}

static void damage_is_an_error(void **s)
{
    (void)s;
    static char packed[1 << 20];
    for (int zstd = 0; zstd < 2; zstd++) {
        const char *path = text_path("damaged");
        if (zstd) {
            text_write_zstd(path, text, TEXT_BYTES, 2);
        } else {
            text_write_gzip(path, text, TEXT_BYTES, 2);
        }
        FILE *f = fopen(path, "rb");
        size_t n = fread(packed, 1, sizeof packed, f);
        (void)fclose(f);
        assert_true(n > 1000 && n < sizeof packed);
        text_write_file(path, packed, n - 1);
        expect_read_error(path, PARAMO_E_CORRUPT, "truncated");
        text_write_file(path, packed, n / 3);
        expect_read_error(path, PARAMO_E_CORRUPT, "truncated");
        text_write_file(path, packed, 10);
        expect_read_error(path, PARAMO_E_CORRUPT, "truncated");
        memset(packed + n / 4, 0x55, 300);
        text_write_file(path, packed, n);
        expect_read_error(path, PARAMO_E_CORRUPT, zstd ? "damaged zstd" : "damaged gzip");
    }
    text_write_file(text_path("xz"),
                    "\xfd"
                    "7zXZ\0abc",
                    9);
    expect_read_error(text_path("xz"), PARAMO_E_FORMAT, "xz data");
}

static void what_is_no_file(void **s)
{
    (void)s;
    expect_read_error(text_path("missing"), PARAMO_E_NOT_FOUND, "No such file");
    expect_read_error(text_dir(), PARAMO_E_IO, "is a directory");
    text_write_file(text_path("empty"), "", 0);
    expect_read_error(text_path("empty"), PARAMO_E_FORMAT, "is empty");
    struct input *in;
    const char *head;
    size_t n;
    int whole;
    text_write_gzip(text_path("empty.gz"), "", 0, 1);
    assert_int_equal(input_open(text_path("empty.gz"), -1, &in), PARAMO_OK);
    assert_int_equal(input_head(in, &head, &n, &whole), PARAMO_E_FORMAT);
    assert_non_null(strstr(paramo_last_error(), "is empty"));
    input_close(in);
}

static void globs(void **s)
{
    (void)s;
    char **names;
    size_t n;
    text_write_file(text_path("g2"), "x", 1);
    text_write_file(text_path("g1"), "x", 1);
    text_write_file(text_path("g[x]"), "x", 1);
    const char *paths[] = {"-", text_path("g?"), text_path("g[x]"), "plain"};
    assert_int_equal(input_expand(paths, 4, &names, &n), PARAMO_OK);
    assert_int_equal(n, 5);
    assert_string_equal(names[0], "-");
    assert_string_equal(names[1], text_path("g1"));
    assert_string_equal(names[2], text_path("g2"));
    assert_string_equal(names[3], text_path("g[x]")); /* a file of that very name */
    assert_string_equal(names[4], "plain");
    input_free_names(names, n);
    const char *none[] = {text_path("nothing*")};
    assert_int_equal(input_expand(none, 1, &names, &n), PARAMO_E_NOT_FOUND);
    assert_non_null(strstr(paramo_last_error(), "no file matches"));
    const char *twice[] = {"-", "a", "-"};
    assert_int_equal(input_expand(twice, 3, &names, &n), PARAMO_E_INVALID);
    assert_int_equal(input_expand(NULL, 0, &names, &n), PARAMO_E_INVALID);
}

/* Runs with a pipe as standard input, the way `-` is read. */
static void outputs_over_inputs(void **s)
{
    (void)s;
    static const char *const name[] = {"g*.txt", "none", "data"};
    char path[3][512];
    const char *paths[] = {"-", path[0], path[1], path[2]};
    for (int i = 0; i < 3; i++)
        (void)snprintf(path[i], sizeof path[i], "%s", text_path(name[i]));
    text_write_file(text_path("data"), "x\n", 2);
    text_write_file(text_path("g1.txt"), "x\n", 2);
    text_write_file(text_path("other"), "x\n", 2);
    assert_int_equal(link(text_path("data"), text_path("again")), 0);
    assert_int_equal(input_refuse_output(paths, 4, text_path("data")), PARAMO_E_INVALID);
    assert_non_null(strstr(paramo_last_error(), "data is one of the data files"));
    assert_int_equal(input_refuse_output(paths, 4, text_path("g1.txt")), PARAMO_E_INVALID);
    assert_int_equal(input_refuse_output(paths, 4, text_path("again")),
                     PARAMO_E_INVALID); /* another name of it */
    assert_int_equal(input_refuse_output(paths, 4, text_path("other")), PARAMO_OK);
    assert_int_equal(input_refuse_output(paths, 4, text_path("new")), PARAMO_OK);
    assert_int_equal(input_refuse_output(paths, 4, "/dev/null"), PARAMO_OK);
    assert_int_equal(input_refuse_output(paths, 0, text_path("data")), PARAMO_OK);
}

static void standard_input(void **s)
{
    (void)s;
    int ends[2], stop, saved = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(input_stop_open(&stop), PARAMO_OK);
    assert_int_equal(write(ends[1], text, 30000), 30000);
    struct input *in;
    assert_int_equal(input_open("-", stop, &in), PARAMO_OK);
    assert_int_equal(input_size(in), 0);
    char got[40000];
    size_t n = 0, len = 0;
    while (len < 30000) {
        assert_int_equal(input_read(in, got + len, sizeof got - len, &n), PARAMO_OK);
        assert_true(n > 0);
        len += n;
    }
    assert_memory_equal(got, text, 30000);
    assert_int_equal(input_rewind(in), PARAMO_E_UNSUPPORTED);
    /* the pipe is open and empty: only the stop ends the wait */
    input_stop_raise(stop);
    assert_int_equal(input_read(in, got, sizeof got, &n), PARAMO_E_INTERRUPTED);
    input_close(in);
    assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
    input_temp_close(stop);
    (void)close(saved);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void temporary_file(void **s)
{
    (void)s;
    int fd;
    char back[100];
    assert_int_equal(input_temp_open(text_dir(), &fd), PARAMO_OK);
    assert_int_equal(input_temp_write(fd, 5000, text, 100), PARAMO_OK);
    assert_int_equal(input_temp_read(fd, 5000, back, 100), PARAMO_OK);
    assert_memory_equal(back, text, 100);
    assert_int_equal(input_temp_read(fd, 5050, back, 100), PARAMO_E_IO);
    input_temp_close(fd);
    assert_int_equal(input_temp_open(text_path("missing-dir"), &fd), PARAMO_E_NOT_FOUND);
}

static void the_machine(void **s)
{
    (void)s;
    assert_true(input_available_memory() > 1 << 20);
    assert_true(input_available_cpus() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_compression_gives_the_same),
        cmocka_unit_test(damage_is_an_error),
        cmocka_unit_test(what_is_no_file),
        cmocka_unit_test(globs),
        cmocka_unit_test(outputs_over_inputs),
        cmocka_unit_test(standard_input),
        cmocka_unit_test(temporary_file),
        cmocka_unit_test(the_machine),
    };
    return cmocka_run_group_tests(tests, make_text, drop_text);
}
