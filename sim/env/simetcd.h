/*
 * An etcd in memory, behind its JSON gateway (v3): transactions that compare revisions and put, range and
 * delete, and leases by the simulation's clock. Requests fail as planned: not done, done with the answer
 * lost, or done later.
 *
 * It knows only the requests that the library makes, and answers all others with 400. One thread. Tests:
 * test/cluster/test_store_etcd.c.
 */
#ifndef SIM_ENV_SIMETCD_H
#define SIM_ENV_SIMETCD_H

#include "env/http.h"
#include "sim/env/sim.h"

struct simetcd;

enum simetcd_fault {
    SIMETCD_LOST,  /* the request */
    SIMETCD_MUTE,  /* the answer is lost: the request was done */
    SIMETCD_LATE,  /* it fails, and is done later */
    SIMETCD_UPSET, /* 503, not done */
    SIMETCD_FAULTS
};

MUST_USE paramo_err simetcd_create(struct sim *sim, struct simetcd **etcd);
/* All its clients must be destroyed before. NULL is allowed. */
void simetcd_destroy(struct simetcd *etcd);
/* A client. */
MUST_USE paramo_err simetcd_http(struct simetcd *etcd, struct http **http);
/* The requests of this client fail from the one after the next `after` on, `count` times; late_ns for LATE.
 */
void simetcd_fail(struct http *http, enum simetcd_fault fault, unsigned after, unsigned count,
                  uint64_t late_ns);
/* Called for each key that is put, with its value as text. */
void simetcd_watch(struct simetcd *etcd, void (*put)(void *arg, const char *key, const char *value),
                   void *arg);
/* The value of a key as text; NULL: not found. Valid until the next request. */
const char *simetcd_value(struct simetcd *etcd, const char *key);
size_t simetcd_keys(struct simetcd *etcd);
/* Puts a value for a test. Aborts without memory. */
void simetcd_put(struct simetcd *etcd, const char *key, const char *value);

#endif
