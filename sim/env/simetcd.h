/*
 * An etcd in memory, behind its JSON gateway (v3): transactions that compare revisions and put, range and
 * delete, and leases by the simulation's clock. What it is asked goes wrong as is planned: it is not done, or
 * done and the answer is lost, or done later.
 *
 * Knows only what the library asks; anything else is answered with 400. One thread. Tests:
 * test/cluster/test_store_etcd.c.
 */
#ifndef SIM_ENV_SIMETCD_H
#define SIM_ENV_SIMETCD_H

#include "env/http.h"
#include "sim/env/sim.h"

struct simetcd;

enum simetcd_fault {
    SIMETCD_LOST,  /* the request */
    SIMETCD_MUTE,  /* the answer: it was done */
    SIMETCD_LATE,  /* it is done, but later; meanwhile it has failed */
    SIMETCD_UPSET, /* 503, not done */
    SIMETCD_FAULTS
};

MUST_USE paramo_err simetcd_create(struct sim *sim, struct simetcd **etcd);
/* Every http of it must be destroyed. NULL is allowed. */
void simetcd_destroy(struct simetcd *etcd);
/* One that asks. */
MUST_USE paramo_err simetcd_http(struct simetcd *etcd, struct http **http);
/* What this http asks goes wrong from the request after the next `after` on, `count` times; late_ns for LATE.
 */
void simetcd_fail(struct http *http, enum simetcd_fault fault, unsigned after, unsigned count,
                  uint64_t late_ns);
/* Told of each key that is put, and its value as text. */
void simetcd_watch(struct simetcd *etcd, void (*put)(void *arg, const char *key, const char *value),
                   void *arg);
/* The value of a key as text, NULL if it is not there; valid until the next request. */
const char *simetcd_value(struct simetcd *etcd, const char *key);
size_t simetcd_keys(struct simetcd *etcd);
/* A value of the test's own. Aborts without memory. */
void simetcd_put(struct simetcd *etcd, const char *key, const char *value);

#endif
