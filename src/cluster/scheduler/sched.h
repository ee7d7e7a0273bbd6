/*
 * The scheduler as its parts see it: the configuration, the job's state, and where each part's state is. Only
 * the files of this folder include it, and the simulator and tests that look inside. Each part has its own
 * header and owns the state behind its pointer: other parts call its functions. All run on the scheduler's
 * lane. scheduler.c makes the parts and sets the pointers.
 * Must never know: what is in a part; configuration files, the environment, threads.
 * Tests: test/cluster/test_scheduler.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_H
#define CLUSTER_SCHEDULER_SCHED_H

#include "cluster/scheduler/scheduler_config.h"
#include "env/lane.h"

struct sched_node;

enum sched_state { SCHED_GATHERING, SCHED_RUNNING, SCHED_ENDING, SCHED_OVER };

struct scheduler {
    struct scheduler_config config;
    enum sched_state state;
    bool restoring; /* the job begins with a checkpoint that is not loaded yet: workers get no view */
    uint32_t term;
    uint64_t job, incarnation;
    struct lane_timer tick;
    uint64_t ticked_at;
    struct sched_peers *peers;
    struct sched_roster *roster;
    struct sched_calls *calls;
    struct sched_view *view;
    struct sched_tables *tables;
    struct sched_ring *ring;
    struct sched_lost *lost;
    struct sched_recovery *recovery;
    struct sched_migrations *migrations;
    struct sched_barriers *barriers;
    struct sched_pools *pools;
    struct sched_values *values;
    struct sched_clocks *clocks;
    struct sched_ckpts *ckpts;
    struct sched_status *status;
    struct sched_saves *saves;
    struct sched_end *end;
    /* The node is DEAD or LEFT. Tells barriers, pools and clocks, and ends the job if it was the last. */
    void (*node_gone)(struct sched_node *node);
};

/* Do rows whose last copy is lost return to a checkpoint? A job that was about to begin with a load ends. */
bool sched_restores_lost(const struct scheduler *s);
/* Moves the job to this state. */
void sched_move(struct scheduler *s, enum sched_state to);

#endif
