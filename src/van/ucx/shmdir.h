/*
 * A folder in shared memory for the files that UCX makes in this process. UCX removes each file as soon as both
 * sides have opened it. If a process is killed before that, the file and its memory stay. A folder has a lock
 * that ends with its process. So the next start finds the folders of dead processes and removes them, whatever
 * their process ids and namespaces. It removes no folders of other users or of living processes. This module
 * never knows UCX. Any thread. Tests: test/van/test_shmdir.c.
 */
#ifndef VAN_UCX_SHMDIR_H
#define VAN_UCX_SHMDIR_H

#include "base/err.h"

enum { SHMDIR_PATH_MAX = 96 };

struct shmdir {
    char path[SHMDIR_PATH_MAX]; /* "": no folder */
    int lock;                   /* held until the process ends */
};

#define SHMDIR_BASE "/dev/shm"

/* Removes the folders of dead processes in base, then makes one for this process. After SYSTEM or MEMORY
 * there is no folder. */
MUST_USE paramo_err shmdir_make(const char *base, struct shmdir *dir);
/* Removes the folder and its files. No effect without a folder. */
void shmdir_remove(struct shmdir *dir);

#endif
