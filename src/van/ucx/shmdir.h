/*
 * A folder in shared memory for the files that UCX makes in this process. UCX removes each file as soon as
 * both sides have it; a process that is killed before leaves it, and with it the memory that it takes. A
 * folder has a lock that ends with its process, so the next start finds the folders of dead processes and
 * removes them, whatever process ids they had and in whatever namespace. It removes nothing of other users,
 * and nothing that a living process has. It never knows UCX. Any thread. Tests: test/van/test_shmdir.c.
 */
#ifndef VAN_UCX_SHMDIR_H
#define VAN_UCX_SHMDIR_H

#include "base/err.h"

enum { SHMDIR_PATH_MAX = 96 };

struct shmdir {
    char path[SHMDIR_PATH_MAX]; /* "": there is none */
    int lock;                   /* held for as long as the process lives */
};

#define SHMDIR_BASE "/dev/shm"

/* Removes the folders of dead processes in base, then makes one for this process. SYSTEM, MEMORY: nothing was
 * made. */
MUST_USE paramo_err shmdir_make(const char *base, struct shmdir *dir);
/* With all that is in it; nothing if there is none. */
void shmdir_remove(struct shmdir *dir);

#endif
