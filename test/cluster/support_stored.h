/*
 * A cluster whose scheduler keeps its state on a simulated disk: what the tests of its restarts share. A scheduler
 * may be stopped and started again.
 */
#ifndef TEST_CLUSTER_SUPPORT_STORED_H
#define TEST_CLUSTER_SUPPORT_STORED_H

#include "unit.h"

#include "cluster/support_simcluster.h"
#include "sim/env/simfs.h"

#define SERVER PARAMO_ROLE_SERVER
#define WORKER PARAMO_ROLE_WORKER

extern struct stored {
    struct cluster c;
    struct simfs *disk;
    struct blocking_jobs *blocking_jobs;
} stored;

/* The disk; nothing runs yet. */
void stored_init(uint32_t servers, uint32_t workers);
void stored_scheduler_on(void);
/* power: what was not durable is gone, too. */
void stored_scheduler_off(bool power);
/* All of it: servers, then workers; returns when they have joined. */
void stored_on(uint32_t servers, uint32_t workers);
void stored_on_copied(uint32_t servers, uint32_t workers, uint32_t replicas);
void stored_off(void);
/* For log_set_sink. */
void stored_log_nothing(void *arg, int level, const char *line);

#endif
