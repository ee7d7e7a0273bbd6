#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/env/simfs.h"

static char real_dir[] = "/tmp/paramo-fs-XXXXXX";

static void put(struct fs *fs, const char *path, const char *text)
{
    struct fs_file *file;
    assert_int_equal(fs_open(fs, path, FS_CREATE, &file), PARAMO_OK);
    assert_int_equal(fs_write_all(file, text, strlen(text)), PARAMO_OK);
    assert_int_equal(fs_sync(file), PARAMO_OK);
    fs_close(file);
}

/* "?" if it is not there. */
static const char *get(struct fs *fs, const char *path)
{
    static char text[64];
    struct writer w = {0};
    paramo_err err = fs_load(fs, path, sizeof text - 1, &w);
    if (err == PARAMO_E_NOT_FOUND)
        return "?";
    assert_int_equal(err, PARAMO_OK);
    memcpy(text, w.data, w.len);
    text[w.len] = '\0';
    writer_fini(&w);
    return text;
}

static void add_name(void *arg, const char *name)
{
    (void)strcat(strcat(arg, name), " ");
}

/* What both kinds promise. */
static void contract(struct fs *fs, const char *dir)
{
    char a[FS_PATH_MAX], b[FS_PATH_MAX], sub[FS_PATH_MAX], in[FS_PATH_MAX], names[64] = "";
    struct fs_file *file, *second;
    uint64_t size;
    assert_int_equal(fs_join(dir, "a", a), PARAMO_OK);
    assert_int_equal(fs_join(dir, "b", b), PARAMO_OK);
    assert_int_equal(fs_join(dir, "sub", sub), PARAMO_OK);
    assert_int_equal(fs_join(sub, "in", in), PARAMO_OK);

    assert_int_equal(fs_open(fs, a, FS_READ, &file), PARAMO_E_NOT_FOUND);
    assert_non_null(strstr(err_text(), a));
    assert_int_equal(fs_unlink(fs, a), PARAMO_E_NOT_FOUND);
    assert_int_equal(fs_open(fs, in, FS_CREATE, &file), PARAMO_E_NOT_FOUND);
    put(fs, a, "hello");
    assert_int_equal(fs_open(fs, a, FS_CREATE, &file), PARAMO_E_IO);
    assert_string_equal(get(fs, a), "hello");
    put(fs, b, "other");
    assert_int_equal(fs_rename(fs, a, b), PARAMO_OK);
    assert_string_equal(get(fs, b), "hello");
    assert_string_equal(get(fs, a), "?");
    assert_int_equal(fs_replace(fs, dir, "b", "newer", 5), PARAMO_OK);
    assert_string_equal(get(fs, b), "newer");
    struct writer w;
    assert_int_equal(fs_load(fs, b, 4, &w), PARAMO_E_TOO_LARGE);

    assert_int_equal(fs_open(fs, b, FS_READ, &file), PARAMO_OK);
    char part[8];
    size_t got;
    assert_int_equal(fs_size(file, &size), PARAMO_OK);
    assert_int_equal(size, 5);
    assert_int_equal(fs_read(file, 3, part, sizeof part, &got), PARAMO_OK);
    assert_int_equal(got, 2);
    assert_memory_equal(part, "er", 2);
    assert_int_equal(fs_read(file, 9, part, sizeof part, &got), PARAMO_OK);
    assert_int_equal(got, 0);
    fs_close(file);

    assert_int_equal(fs_make_dir(fs, sub), PARAMO_OK);
    assert_int_equal(fs_make_dir(fs, sub), PARAMO_OK);
    assert_int_equal(fs_make_dir(fs, b), PARAMO_E_IO);
    put(fs, in, "deep");
    assert_int_equal(fs_sync_dir(fs, sub), PARAMO_OK);
    assert_int_equal(fs_remove_dir(fs, sub), PARAMO_E_IO);
    assert_int_equal(fs_list(fs, dir, add_name, names), PARAMO_OK);
    assert_true(strcmp(names, "b sub ") == 0 || strcmp(names, "sub b ") == 0);
    assert_int_equal(fs_unlink(fs, in), PARAMO_OK);
    assert_int_equal(fs_remove_dir(fs, sub), PARAMO_OK);
    assert_int_equal(fs_list(fs, sub, add_name, names), PARAMO_E_NOT_FOUND);

    assert_int_equal(fs_open(fs, a, FS_LOCK, &file), PARAMO_OK);
    assert_int_equal(fs_open(fs, a, FS_LOCK, &second), PARAMO_E_REFUSED);
    fs_close(file);
    assert_int_equal(fs_open(fs, a, FS_LOCK, &second), PARAMO_OK);
    fs_close(second);
    assert_int_equal(fs_unlink(fs, a), PARAMO_OK);
    assert_int_equal(fs_unlink(fs, b), PARAMO_OK);
}

static void real_files(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(real_dir));
    contract(fs_real(), real_dir);
    assert_int_equal(rmdir(real_dir), 0);
}

static void simulated_files(void **state)
{
    (void)state;
    struct simfs *sim;
    assert_int_equal(simfs_create(1, &sim), PARAMO_OK);
    assert_int_equal(fs_make_dir(simfs_fs(sim), "/d"), PARAMO_OK);
    contract(simfs_fs(sim), "/d");
    simfs_destroy(sim);
}

/* Bytes without a sync, and names without one of their folder, may be gone after a crash, or not, or in part;
 * with both they are there. Over many seeds each of that is seen. */
static void crashes_lose_what_is_not_synced(void **state)
{
    (void)state;
    int lost = 0, kept = 0, torn = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct simfs *sim;
        struct fs_file *file;
        assert_int_equal(simfs_create(seed, &sim), PARAMO_OK);
        struct fs *fs = simfs_fs(sim);
        assert_int_equal(fs_make_dir(fs, "/d"), PARAMO_OK);
        put(fs, "/d/safe", "safe");
        assert_int_equal(fs_sync_dir(fs, "/d"), PARAMO_OK);
        assert_int_equal(fs_open(fs, "/d/some", FS_CREATE, &file), PARAMO_OK);
        assert_int_equal(fs_write_all(file, "0123456789", 10), PARAMO_OK);
        assert_int_equal(fs_rename(fs, "/d/safe", "/d/renamed"), PARAMO_OK);
        simfs_restart(sim);
        assert_int_equal(fs_sync(file), PARAMO_E_IO);
        fs_close(file);
        bool before = strcmp(get(fs, "/d/safe"), "safe") == 0;
        bool after = strcmp(get(fs, "/d/renamed"), "safe") == 0;
        assert_true(before != after);
        const char *some = get(fs, "/d/some");
        if (after)
            assert_string_not_equal(some, "?"); /* in order */
        lost += strcmp(some, "?") == 0;
        kept += strcmp(some, "0123456789") == 0;
        torn += strcmp(some, "?") != 0 && strcmp(some, "0123456789") != 0;
        simfs_destroy(sim);
    }
    assert_true(lost > 10 && kept > 0 && torn > 10);
}

/* After a failed sync the bytes are gone even where a later one succeeds. */
static void failed_sync_is_final(void **state)
{
    (void)state;
    struct simfs *sim;
    struct fs_file *file;
    int whole = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        assert_int_equal(simfs_create(seed, &sim), PARAMO_OK);
        struct fs *fs = simfs_fs(sim);
        assert_int_equal(fs_make_dir(fs, "/d"), PARAMO_OK);
        assert_int_equal(fs_open(fs, "/d/a", FS_CREATE, &file), PARAMO_OK);
        assert_int_equal(fs_sync_dir(fs, "/d"), PARAMO_OK);
        assert_int_equal(fs_write_all(file, "0123456789", 10), PARAMO_OK);
        simfs_plan(sim, SIMFS_FAIL, simfs_steps(sim));
        assert_int_equal(fs_sync(file), PARAMO_E_IO);
        assert_int_equal(fs_sync(file), PARAMO_OK);
        fs_close(file);
        assert_string_equal(get(fs, "/d/a"), "0123456789");
        simfs_restart(sim);
        whole += strcmp(get(fs, "/d/a"), "0123456789") == 0;
        simfs_destroy(sim);
    }
    assert_int_equal(whole, 0);
}

/* A sync that lies: all is as it should be until the crash, which takes what was said to be durable, and says
 * so; a file that an honest sync was for, too, is there. */
static void lying_syncs_lose_what_they_were_for(void **state)
{
    (void)state;
    int lost = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct simfs *sim;
        assert_int_equal(simfs_create(seed, &sim), PARAMO_OK);
        struct fs *fs = simfs_fs(sim);
        assert_int_equal(fs_make_dir(fs, "/d"), PARAMO_OK);
        assert_int_equal(fs_replace(fs, "/d", "safe", "safe", 4), PARAMO_OK);
        assert_int_equal(fs_replace(fs, "/d", "f", "old", 3), PARAMO_OK);
        simfs_lie(sim, 1 + seed % 2); /* of the file; and of the folder */
        assert_int_equal(fs_replace(fs, "/d", "f", "newer", 5), PARAMO_OK);
        assert_string_equal(get(fs, "/d/f"), "newer");
        if (seed % 4 == 3) { /* what comes later is true */
            assert_int_equal(fs_replace(fs, "/d", "f", "last", 4), PARAMO_OK);
            simfs_restart(sim);
            assert_string_equal(get(fs, "/d/f"), "last");
            assert_false(simfs_lost(sim, "/d"));
        } else {
            simfs_restart(sim);
            bool is = strcmp(get(fs, "/d/f"), "newer") == 0;
            lost += !is;
            assert_true(is || simfs_lost(sim, "/d"));
        }
        assert_string_equal(get(fs, "/d/safe"), "safe");
        assert_false(simfs_lost(sim, "/d/safe"));
        simfs_restart(sim);
        assert_false(simfs_lost(sim, "/d"));
        simfs_destroy(sim);
    }
    assert_in_range(lost, 5, 30);
}

/* A folder that is lost takes with it all that lies below, folders and files, whatever was synced. */
static void lost_folders_take_all_below(void **state)
{
    (void)state;
    int lost = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct simfs *sim;
        assert_int_equal(simfs_create(seed, &sim), PARAMO_OK);
        struct fs *fs = simfs_fs(sim);
        assert_int_equal(fs_make_dir(fs, "/d"), PARAMO_OK);
        assert_int_equal(fs_make_dir(fs, "/d/e"), PARAMO_OK);
        simfs_lie(sim, 1);
        assert_int_equal(fs_sync_dir(fs, "/d"), PARAMO_OK);
        assert_int_equal(fs_make_dir(fs, "/d/e/f"), PARAMO_OK);
        assert_int_equal(fs_sync_dir(fs, "/d/e"), PARAMO_OK);
        assert_int_equal(fs_replace(fs, "/d/e/f", "g", "text", 4), PARAMO_OK);
        simfs_restart(sim);
        paramo_err there = fs_sync_dir(fs, "/d/e");
        lost += there == PARAMO_E_NOT_FOUND;
        assert_int_equal(fs_sync_dir(fs, "/d/e/f"), there);
        assert_int_equal(fs_unlink(fs, "/d/e/f/g"), there);
        simfs_destroy(sim);
    }
    assert_in_range(lost, 3, 17);
}

/* fs_replace under every fault at every step, and crashes with many seeds: the old or the new, and the new
 * once it has said so. */
static void replaced_whole_or_not_at_all(void **state)
{
    (void)state;
    uint64_t steps = 0;
    for (enum simfs_fault fault = 0; fault < SIMFS_FAULTS; fault++)
        for (uint64_t step = 0, end = 1; step < end; step++) /* until it is beyond the last */
            for (uint64_t seed = 0; seed < 40; seed++) {
                struct simfs *sim;
                assert_int_equal(simfs_create(seed, &sim), PARAMO_OK);
                struct fs *fs = simfs_fs(sim);
                assert_int_equal(fs_make_dir(fs, "/d"), PARAMO_OK);
                assert_int_equal(fs_replace(fs, "/d", "f", "old", 3), PARAMO_OK);
                uint64_t begin = simfs_steps(sim);
                simfs_plan(sim, fault, begin + step);
                paramo_err err = fs_replace(fs, "/d", "f", "newer", 5);
                end = simfs_steps(sim) - begin > step ? step + 2 : step;
                steps = step > steps ? step : steps;
                if (fault == SIMFS_SHORT)
                    assert_int_equal(err, PARAMO_OK);
                if (!simfs_crashed(sim) && seed % 2) {
                    const char *text = get(fs, "/d/f"); /* without a crash, too */
                    assert_true(strcmp(text, "newer") == 0 || (err && strcmp(text, "old") == 0));
                }
                simfs_restart(sim);
                const char *text = get(fs, "/d/f");
                assert_true(strcmp(text, "newer") == 0 || (err && strcmp(text, "old") == 0));
                assert_int_equal(fs_replace(fs, "/d", "f", "last", 4), PARAMO_OK);
                simfs_restart(sim);
                assert_string_equal(get(fs, "/d/f"), "last");
                simfs_destroy(sim);
            }
    assert_int_equal(steps, 6); /* remove, create, write, sync, rename, sync of the folder; and none */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_files),
        cmocka_unit_test(simulated_files),
        cmocka_unit_test(crashes_lose_what_is_not_synced),
        cmocka_unit_test(failed_sync_is_final),
        cmocka_unit_test(lying_syncs_lose_what_they_were_for),
        cmocka_unit_test(lost_folders_take_all_below),
        cmocka_unit_test(replaced_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
