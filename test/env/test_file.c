#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env/file.h"

static char directory[] = "/tmp/paramo-file-XXXXXX";

static void path_in(char path[256], const char *name)
{
    (void)snprintf(path, 256, "%s/%s", directory, name);
}

static size_t read_back(const char *path, char *bytes, size_t capacity)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t len = fread(bytes, 1, capacity, f);
    assert_int_equal(fclose(f), 0);
    return len;
}

static void committed_whole_or_not_at_all(void **state)
{
    (void)state;
    char path[256], got[64];
    path_in(path, "whole");
    struct file_out *out;
    struct file_spool *spool;
    assert_int_equal(file_out_open(path, &out), PARAMO_OK);
    assert_int_equal(file_spool_open(path, &spool), PARAMO_OK);
    assert_int_equal(file_out_write(out, "headfirst", 9), PARAMO_OK);
    assert_int_equal(file_spool_write(spool, "-spool", 6), PARAMO_OK);
    assert_int_equal(file_out_append_spool(out, spool), PARAMO_OK);
    assert_int_equal(file_out_append_spool(out, spool), PARAMO_OK); /* empty now */
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(file_out_commit(out), PARAMO_OK);
    assert_int_equal(read_back(path, got, sizeof got), 15);
    assert_memory_equal(got, "headfirst-spool", 15);

    assert_int_equal(file_out_open(path, &out), PARAMO_OK);
    assert_int_equal(file_out_write(out, "other", 5), PARAMO_OK);
    file_out_abort(out);
    file_spool_close(spool);
    assert_int_equal(read_back(path, got, sizeof got), 15);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0); /* nothing was left behind */
    assert_non_null(mkdtemp(strcpy(directory, "/tmp/paramo-file-XXXXXX")));
}

static void large_writes_keep_their_order(void **state)
{
    (void)state;
    char path[256];
    path_in(path, "large");
    enum { CHUNK = 700001, CHUNKS = 5 };
    char *chunk = malloc(CHUNK), *all = malloc((size_t)CHUNK * CHUNKS + 1);
    assert_non_null(chunk);
    assert_non_null(all);
    struct file_out *out;
    assert_int_equal(file_out_open(path, &out), PARAMO_OK);
    for (int i = 0; i < CHUNKS; i++) {
        memset(chunk, 'a' + i, CHUNK);
        assert_int_equal(file_out_write(out, chunk, i == 2 ? 3 : CHUNK), PARAMO_OK);
    }
    assert_int_equal(file_out_commit(out), PARAMO_OK);
    assert_int_equal(read_back(path, all, (size_t)CHUNK * CHUNKS), 4 * CHUNK + 3);
    assert_int_equal(all[0], 'a');
    assert_int_equal(all[2 * CHUNK - 1], 'b');
    assert_int_equal(all[2 * CHUNK], 'c');
    assert_int_equal(all[2 * CHUNK + 3], 'd');
    assert_int_equal(all[4 * CHUNK + 2], 'e');
    free(chunk);
    free(all);
    assert_int_equal(unlink(path), 0);
}

static void errors_name_the_path(void **state)
{
    (void)state;
    struct file_out *out;
    assert_int_equal(file_out_open("/nowhere/at/all", &out), PARAMO_E_IO);
    assert_non_null(strstr(err_text(), "/nowhere/at/all"));
    assert_non_null(strstr(err_text(), strerror(ENOENT)));
    struct file_spool *spool;
    assert_int_equal(file_spool_open("/nowhere/spool", &spool), PARAMO_E_IO);
}

static int group_setup(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int group_teardown(void **state)
{
    (void)state;
    return rmdir(directory);
}

static void what_is_loaded_stays(void **state)
{
    (void)state;
    char path[256];
    const void *data;
    size_t len;
    path_in(path, "loaded");
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite("twelve bytes", 1, 12, f), 12);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(file_load(path, &data, &len), PARAMO_OK);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(len, 12);
    assert_memory_equal(data, "twelve bytes", 12);
    file_unmap(data, len);
    assert_int_equal(file_load(path, &data, &len), PARAMO_OK);
    assert_true(len == 0 && !data);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(file_load(path, &data, &len), PARAMO_E_NOT_FOUND);
    assert_int_equal(file_load(directory, &data, &len), PARAMO_E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(committed_whole_or_not_at_all),
        cmocka_unit_test(large_writes_keep_their_order),
        cmocka_unit_test(errors_name_the_path),
        cmocka_unit_test(what_is_loaded_stays),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
