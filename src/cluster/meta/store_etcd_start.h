/*
 * The start of a store in etcd: watch the leader, get a lease, campaign, read what was saved. It never knows
 * how saves are written. Tests: test/cluster/test_store_etcd.c, test/cluster/test_lead.c.
 */
#ifndef CLUSTER_META_STORE_ETCD_START_H
#define CLUSTER_META_STORE_ETCD_START_H

#include "cluster/meta/store_etcd_impl.h"

/* When the leader is looked up next, in ms. */
void meta_watch_in(struct etcd_store *s, uint32_t ms);
void meta_watch(struct etcd_store *s);
/* The lease's answer, as meta_grant's `then`. */
void meta_granted(struct etcd_store *s, paramo_err err);
void meta_campaign(struct etcd_store *s);
void meta_read_page(struct etcd_store *s);

#endif
