/*
 * A store in etcd while it leads: keeps the lease alive and writes saves, piece by piece. It never knows what
 * a durable record holds. Tests: test/cluster/test_store_etcd.c, test/cluster/test_lead.c.
 */
#ifndef CLUSTER_META_STORE_ETCD_LEAD_H
#define CLUSTER_META_STORE_ETCD_LEAD_H

#include "cluster/meta/store_etcd_impl.h"

void meta_grant(struct etcd_store *s, void (*then)(struct etcd_store *s, paramo_err err));
/* The lease lasts from the moment at which it was asked for. */
void meta_lease_lasts(struct etcd_store *s, uint64_t asked_at, uint32_t ttl_s);
MUST_USE paramo_err meta_lease_taken(struct etcd_store *s, paramo_err err);
void meta_lease_call(struct etcd_store *s);
/* Sends the next request of the first save. */
void meta_save_call(struct etcd_store *s);
/* Ends saves that cannot succeed any more. */
void meta_saves_fail(struct etcd_store *s);
paramo_err meta_broken_text(void);

#endif
