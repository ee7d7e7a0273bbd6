/*
 * The orders of a checkpoint to servers: which servers get them, what they report, and the order that follows when
 * all have. Must never know: files. Tests: test/cluster/test_sched_ckpt.c, test_sched_lost.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_CKPT_SERVERS_H
#define CLUSTER_SCHEDULER_SCHED_CKPT_SERVERS_H

#include "cluster/scheduler/sched_ckpt_impl.h"

/* Gives each server that counts this order. The checkpoint may have failed on return. */
void sched_ckpt_order_all(struct sched_ckpt *c, uint32_t what);
/* A server has carried out an order, or failed. sched_ckpt.server_done: the end of a checkpoint needs it, too. */
void sched_ckpt_server_done(void *arg, struct sched_node *node, paramo_err status, struct reader *result);

#endif
