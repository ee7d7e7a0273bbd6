/* Folders of UCX's files: made, locked, removed; those of dead processes go at the next start, others stay.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "van/ucx/shmdir.h"

static char base[64];

static int setup(void **state)
{
    (void)state;
    (void)snprintf(base, sizeof base, "/tmp/shmdir-XXXXXX");
    return mkdtemp(base) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return rmdir(base); /* nothing is left in it */
}

static unsigned entries(const char *path)
{
    unsigned n = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        n += e->d_name[0] != '.';
    (void)closedir(dir);
    return n;
}

static void file_in(const struct shmdir *dir, const char *name)
{
    char path[SHMDIR_PATH_MAX + 32];
    (void)snprintf(path, sizeof path, "%s/%s", dir->path, name);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
}

static void made_and_removed(void **state)
{
    (void)state;
    struct shmdir dir;
    assert_int_equal(shmdir_make(base, &dir), PARAMO_OK);
    file_in(&dir, "ucx_shm_posix_1");
    assert_int_equal(entries(base), 1);
    shmdir_remove(&dir);
    assert_int_equal(entries(base), 0);
}

/* A process that makes one, and waits to be killed. */
static pid_t other(void)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct shmdir dir;
        if (shmdir_make(base, &dir))
            _exit(1);
        file_in(&dir, "ucx_shm_posix_2");
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    return pid;
}

static void killed(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_dead_ones_goes_a_living_ones_stays(void **state)
{
    (void)state;
    struct shmdir dir;
    pid_t dead = other(), alive = other();
    assert_int_equal(entries(base), 2);
    killed(dead);
    assert_int_equal(shmdir_make(base, &dir), PARAMO_OK);
    assert_int_equal(entries(base), 2); /* the living one's, and ours */
    killed(alive);
    shmdir_remove(&dir);
    assert_int_equal(shmdir_make(base, &dir), PARAMO_OK);
    assert_int_equal(entries(base), 1);
    shmdir_remove(&dir);
}

/* A process that was killed before it had locked its folder; and folders of other programs. */
static void half_made_ones(void **state)
{
    (void)state;
    struct shmdir dir;
    char path[3][96];
    (void)snprintf(path[0], sizeof path[0], "%s/paramo-ucx-empty1", base);
    (void)snprintf(path[1], sizeof path[1], "%s/another", base);
    (void)snprintf(path[2], sizeof path[2], "%s/paramo-ucx-link01", base);
    assert_int_equal(mkdir(path[0], 0700), 0);
    assert_int_equal(mkdir(path[1], 0700), 0);
    assert_int_equal(symlink(path[1], path[2]), 0);
    assert_int_equal(shmdir_make(base, &dir), PARAMO_OK);
    assert_int_equal(access(path[0], F_OK), -1);
    assert_int_equal(access(path[1], F_OK), 0);
    shmdir_remove(&dir);
    assert_int_equal(unlink(path[2]), 0);
    assert_int_equal(rmdir(path[1]), 0);
}

static void no_folder_to_make_it_in(void **state)
{
    (void)state;
    struct shmdir dir;
    assert_int_equal(shmdir_make("/nowhere/at/all", &dir), PARAMO_E_SYSTEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(made_and_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_dead_ones_goes_a_living_ones_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(half_made_ones, setup, teardown),
        cmocka_unit_test(no_folder_to_make_it_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
