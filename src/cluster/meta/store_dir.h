/*
 * A store in a folder: a snapshot and a log of what was saved since. One scheduler at a time has it; a second
 * one is refused, and the lock dies with its process. A file that is damaged or not ours is refused with a
 * message and left as it is. Tests: test/cluster/test_store.c.
 */
#ifndef CLUSTER_META_STORE_DIR_H
#define CLUSTER_META_STORE_DIR_H

#include "cluster/meta/store.h"
#include "env/blocking_job.h"
#include "env/fs.h"

struct store_dir_config {
    struct lane *lane;
    struct blocking_jobs *blocking_jobs; /* outlives the store until the lane has run what they posted */
    struct fs *fs;
    const char *dir; /* copied; made if it is not there, in a folder that is */
};

enum store_phase { STORE_OPEN, STORE_STARTING, STORE_READY };

/* On an error nothing was begun. */
MUST_USE paramo_err store_dir_open(const struct store_dir_config *config, struct store **store);
/* For who looks on (the simulator). */
enum store_phase store_dir_phase(const struct store *store);

#endif
