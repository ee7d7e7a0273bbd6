#include "van/ucx/shmdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "paramo-ucx-"
#define LOCK   "lock"

enum {
    TRIES = 16,       /* another process may mistake a folder without a lock for a dead one's. Arbitrary */
    SWEEP_MAX = 4096, /* folders that one start checks. Arbitrary */
};

/* Removes all files but the lock, then the lock, then the folder: after a sweep that is killed half-way
 * the next sweep removes the rest. */
static void remove_all(int base, const char *name, int folder)
{
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = again < 0 ? NULL : fdopendir(again);
    if (!list) {
        if (again >= 0)
            (void)close(again);
        return;
    }
    for (struct dirent *e; (e = readdir(list)) != NULL;)
        if (strcmp(e->d_name, LOCK) != 0 && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            (void)unlinkat(folder, e->d_name, 0);
    (void)closedir(list);
    (void)unlinkat(folder, LOCK, 0);
    (void)unlinkat(base, name, AT_REMOVEDIR);
}

/* Removes the folder if it belongs to this user and no process holds its lock. */
static void sweep_one(int base, const char *name)
{
    struct stat st;
    int folder = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return;
    if (fstat(folder, &st) == 0 && st.st_uid == geteuid()) {
        int lock = openat(folder, LOCK, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        if (lock < 0 && errno == ENOENT)
            (void)unlinkat(base, name, AT_REMOVEDIR); /* only if it is empty: its maker tries again */
        else if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
            remove_all(base, name, folder);
        if (lock >= 0)
            (void)close(lock);
    }
    (void)close(folder);
}

static void sweep(const char *path)
{
    DIR *base = opendir(path);
    unsigned looked = 0;
    if (!base)
        return;
    for (struct dirent *e; (e = readdir(base)) != NULL && looked < SWEEP_MAX;)
        if (strncmp(e->d_name, PREFIX, sizeof PREFIX - 1) == 0) {
            sweep_one(dirfd(base), e->d_name);
            looked++;
        }
    (void)closedir(base);
}

/* False: another process's sweep mistook the folder for a dead one's, or errno has the cause. */
static bool folder_lock(struct shmdir *dir)
{
    char path[SHMDIR_PATH_MAX + sizeof LOCK + 1];
    struct stat st = {.st_nlink = 1};
    (void)snprintf(path, sizeof path, "%s/%s", dir->path, LOCK);
    dir->lock = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (dir->lock < 0)
        return false;
    if (flock(dir->lock, LOCK_EX | LOCK_NB) == 0 && fstat(dir->lock, &st) == 0 && st.st_nlink > 0)
        return true;
    int why = st.st_nlink ? errno : ENOENT;
    (void)close(dir->lock);
    errno = why;
    return false;
}

paramo_err shmdir_make(const char *base, struct shmdir *dir)
{
    sweep(base);
    for (unsigned i = 0; i < TRIES; i++) {
        int n = snprintf(dir->path, sizeof dir->path, "%s/" PREFIX "XXXXXX", base);
        if (n < 0 || (size_t)n >= sizeof dir->path)
            return err_set(PARAMO_E_SYSTEM, "make a folder in %s: the path is too long", base);
        if (!mkdtemp(dir->path)) {
            dir->path[0] = '\0';
            return err_errno(PARAMO_E_SYSTEM, errno, "make a folder in %s", base);
        }
        if (folder_lock(dir))
            return PARAMO_OK;
        int why = errno;
        (void)rmdir(dir->path);
        if (why != ENOENT && why != EWOULDBLOCK) {
            dir->path[0] = '\0';
            return err_errno(PARAMO_E_SYSTEM, why, "lock a folder in %s", base);
        }
    }
    dir->path[0] = '\0';
    return err_set(PARAMO_E_SYSTEM, "make a folder in %s: other processes removed it %d times", base, TRIES);
}

void shmdir_remove(struct shmdir *dir)
{
    if (!dir->path[0])
        return;
    int folder = open(dir->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0) {
        remove_all(AT_FDCWD, dir->path, folder);
        (void)close(folder);
    }
    (void)close(dir->lock);
    dir->path[0] = '\0';
}
