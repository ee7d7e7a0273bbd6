/*
 * A cluster in one simulation: a scheduler and nodes, each on a lane of its own, for the tests of this
 * folder. A node here is a member and nothing more. Everything fails the running test if it cannot be.
 */
#ifndef TEST_CLUSTER_SUPPORT_SIMCLUSTER_H
#define TEST_CLUSTER_SUPPORT_SIMCLUSTER_H

#include "cluster/member/member.h"
#include "cluster/member/member_calls.h"
#include "cluster/scheduler/scheduler.h"
#include "env/lane.h"
#include "sim/env/sim.h"
#include "sim/env/simfs.h"
#include "sim/van/simvan.h"

enum { CLUSTER_NODES = 16, CLUSTER_VANS = 256 };

struct cluster;

struct tnode {
    struct cluster *cluster;
    struct lane *lane;
    struct van *van;
    struct member *member; /* NULL: not running */
    uint32_t role;
    bool joined, ended, left;
    paramo_err joined_status, ended_status;
    char joined_text[512], ended_text[512];
    uint64_t view_number; /* of the last on_view: must only rise */
    void (*on_joined)(struct tnode *node);
    void (*on_ended)(struct tnode *node);
    void *arg;
};

struct cluster {
    struct sim *sim;
    struct simnet *net;
    struct van *van; /* the scheduler's, and its lane */
    struct lane *lane;
    struct van *old_vans[CLUSTER_VANS]; /* of what was killed */
    size_t old_count;
    unsigned faulty; /* for vans made from now on */
    struct scheduler *scheduler;
    struct scheduler_config config;
    struct store_state found; /* cluster_find_state */
    struct writer found_records;
    bool state_told;
    paramo_err state_status;
    bool over;
    paramo_err over_status;
    char over_text[CLUSTER_NODES * 128];
    struct tnode nodes[CLUSTER_NODES];
};

/* Simulation and lanes; nothing runs yet. */
void cluster_init(struct cluster *c, uint64_t seed, uint32_t servers, uint32_t workers);
void cluster_fini(struct cluster *c);
/* Tries again while there is no memory, as a supervisor would. So does the next function. */
void cluster_start_scheduler(struct cluster *c);
/* The scheduler that is started next keeps its state in dir of this disk, and goes on with what is there. */
void cluster_find_state(struct cluster *c, struct simfs *disk, const char *dir,
                        struct blocking_jobs *blocking_jobs);
void cluster_kill_scheduler(struct cluster *c);
struct member_config cluster_member_config(struct cluster *c, struct tnode *node, uint32_t role);
void cluster_start(struct cluster *c, struct tnode *node, uint32_t role);
void cluster_start_config(struct tnode *node, const struct member_config *config);
/* All of it: servers, then workers, as nodes 0, 1, ... in this order; returns when they have joined. */
void cluster_start_all(struct cluster *c, uint32_t servers, uint32_t workers);
/* As kill -9: its connection is reset. */
void cluster_kill(struct tnode *node);
/* LEAVE, then the member is destroyed by cluster_kill or cluster_fini. */
void cluster_leave(struct tnode *node);
/* Runs until the condition holds; false if virtual time passed `seconds` more. */
bool cluster_run(struct cluster *c, bool (*done)(void *arg), void *arg, double seconds);
void cluster_pass(struct cluster *c, double seconds);

/* One call, waited for. */
struct tcall {
    struct member_call call;
    bool done;
    paramo_err status;
    char text[512];
    char value[256];
};
void tcall_init(struct tcall *call);
bool tcall_done(void *call);
/* Its status; the test fails if it does not end. */
paramo_err tcall_wait(struct cluster *c, struct tcall *call);
/* Begins the call that the rest says, by the node. */
#define TCALL(node, t, ...)                                                                                  \
    do {                                                                                                     \
        tcall_init(t);                                                                                       \
        tnode_enter(node);                                                                                   \
        assert_int_equal(__VA_ARGS__, PARAMO_OK);                                                            \
        tnode_leave(node);                                                                                   \
    } while (0)
bool tnode_joined(void *node);
bool tnode_ended(void *node);
bool cluster_over(void *cluster);
/* Between these the test is on the node's lane. */
void tnode_enter(struct tnode *node);
void tnode_leave(struct tnode *node);
uint64_t in_seconds(struct cluster *c, double seconds);

#endif
