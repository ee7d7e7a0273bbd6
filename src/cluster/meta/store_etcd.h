/*
 * A store in etcd: one scheduler leads, others wait for it to go. Below "paramo/JOB/":
 *
 * - term: how many have led; raised by each that begins. Whoever has raised it last may save: each save is a
 *   transaction that holds only while that key is as this store has left it (the fence).
 * - leader: who leads, for others to read; bound to a lease of 5 s, kept alive: when it is gone, the next may
 *   begin.
 * - head: which records count: "1 FIRST LAST PIECES BYTES".
 * - record/NUMBER.PIECE: what was saved, cut into pieces, for etcd takes little at a time; they count when
 * the transaction that brings the last one has changed `head`.
 *
 * etcd has several addresses; when one does not answer, the next is asked. Without etcd nothing is saved, and
 * nobody takes over. Who leads need not be right about it to be harmless: what it saves fails. Tests:
 * test/cluster/test_store_etcd.c, test/e2e/etcd.sh, the simulator.
 */
#ifndef CLUSTER_META_STORE_ETCD_H
#define CLUSTER_META_STORE_ETCD_H

#include "cluster/meta/store.h"
#include "env/blocking_job.h"
#include "env/http.h"

struct store_etcd_config {
    struct lane *lane;
    struct blocking_jobs *blocking_jobs; /* outlives the store until the lane has run what they posted */
    struct http *http;                   /* the store's from then on */
    const char *meta;                    /* "etcd://host:port,host:port/JOB"; copied */
    const char *name;                    /* the scheduler's address, for others to read; copied */
    uint32_t patience_ms;                /* how long store_start looks for an etcd that does not answer */
};

/* INVALID: what is wrong with it. */
MUST_USE paramo_err store_etcd_check(const char *meta);
/* On an error nothing was begun, and http is the caller's. */
MUST_USE paramo_err store_etcd_open(const struct store_etcd_config *config, struct store **store);

#endif
