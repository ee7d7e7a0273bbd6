/*
 * A store in a folder: a snapshot and a log of later saves. One scheduler at a time has it: a second one is
 * refused, and the lock ends with its process. A damaged or foreign file is refused with a message and left
 * as it is. It never knows what is in a durable record. Tests: test/cluster/test_store.c.
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
    const char *dir; /* copied; created if missing, in a folder that exists */
};

enum store_phase { STORE_OPEN, STORE_STARTING, STORE_READY };

/* On an error nothing was begun. */
MUST_USE paramo_err store_dir_open(const struct store_dir_config *config, struct store **store);
/* For the simulator. */
enum store_phase store_dir_phase(const struct store *store);

#endif
