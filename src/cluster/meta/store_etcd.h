/*
 * A store in etcd: one scheduler leads, and standby schedulers wait for its end. Below "paramo/JOB/":
 *
 * - term: how many schedulers have led; each leader raises it. The last to raise it may save: each save is a
 *   transaction that holds only while that key is as this store left it (the fence).
 * - leader: the leader's address, bound to a lease of 5 s that it keeps alive. When it is gone, another may
 *   lead.
 * - head: which records count: "1 FIRST LAST PIECES BYTES".
 * - record/NUMBER.PIECE: the records, cut into pieces because etcd limits a request. A save's pieces count
 *   when the transaction that brings its last one has changed `head`.
 *
 * etcd may have several addresses; when one does not answer, the next is asked. Without etcd nothing is saved
 * and no standby takes over. A scheduler that wrongly believes it leads does no harm: its saves fail. It
 * never knows what is in a durable record. Tests: test/cluster/test_store_etcd.c, test/e2e/etcd.sh, the
 * simulator.
 */
#ifndef CLUSTER_META_STORE_ETCD_H
#define CLUSTER_META_STORE_ETCD_H

#include "cluster/meta/store.h"
#include "env/blocking_job.h"
#include "env/http.h"

struct store_etcd_config {
    struct lane *lane;
    struct blocking_jobs *blocking_jobs; /* outlives the store until the lane has run what they posted */
    struct http *http;                   /* owned by the store after OK */
    const char *meta;                    /* "etcd://host:port,host:port/JOB"; copied */
    const char *name;                    /* the scheduler's address, for other schedulers to read; copied */
    uint32_t patience_ms;                /* how long store_start tries to reach etcd */
};

/* INVALID says what is wrong. */
MUST_USE paramo_err store_etcd_check(const char *meta);
/* After an error http is still the caller's. */
MUST_USE paramo_err store_etcd_open(const struct store_etcd_config *config, struct store **store);

#endif
