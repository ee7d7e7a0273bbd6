/*
 * The inside of the scheduler: its parts, together. Only the files of this folder include it, and the
 * simulator and tests that look inside. Each part has its own header and owns its member below: other parts
 * call its functions. All run on the scheduler's lane.
 * Must never know: configuration files, the environment, threads.
 * Tests: test/cluster/test_scheduler.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_H
#define CLUSTER_SCHEDULER_SCHED_H

#include "cluster/checkpoint/ckpt.h"
#include "cluster/scheduler/sched_barrier.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_ckpt.h"
#include "cluster/scheduler/sched_dispatch.h"
#include "cluster/scheduler/sched_end.h"
#include "cluster/scheduler/sched_kv.h"
#include "cluster/scheduler/sched_lost.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_orders.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_pool.h"
#include "cluster/scheduler/sched_records.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_save.h"
#include "cluster/scheduler/sched_status.h"
#include "cluster/scheduler/sched_view.h"
#include "cluster/scheduler/scheduler.h"
#include "cluster/session/acceptor.h"
#include "cluster/session/control_message.h"
#include "wire/calls.h"
#include "wire/heartbeat.h"

enum sched_state { SCHED_GATHERING, SCHED_RUNNING, SCHED_ENDING, SCHED_OVER };

struct scheduler {
    struct scheduler_config config;
    enum sched_state state;
    uint32_t term;
    uint64_t job, incarnation;
    struct lane_timer tick;
    uint64_t ticked_at;
    struct sched_peers peers;
    struct sched_roster roster;
    struct sched_calls calls;
    struct sched_view view;
    struct sched_ring ring;
    struct sched_lost lost;
    struct sched_migrations migrations;
    struct sched_barriers barriers;
    struct sched_pools pools;
    struct sched_values values;
    struct sched_ckpts ckpts;
    struct sched_status status;
    struct sched_saves saves;
    struct sched_end end;
};

/* scheduler.c: the node is DEAD or LEFT. Tells barriers and pools, and ends the job if it was the last. */
void sched_node_gone(struct sched_node *node);
/* scheduler.c: the job's state moves on. */
void sched_move(struct scheduler *s, enum sched_state to);

#endif
