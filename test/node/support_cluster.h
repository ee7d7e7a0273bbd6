/* A whole cluster in the test's own process: embedded, or scheduler, servers and workers as nodes of one role
 * each, over TCP on loopback, every one started and stopped on a thread of its own. */
#ifndef TEST_NODE_SUPPORT_CLUSTER_H
#define TEST_NODE_SUPPORT_CLUSTER_H

#include <pthread.h>

#include "paramo/paramo.h"

enum { CLUSTER_MAX = 8 };

struct cluster_node {
    paramo_config config;
    paramo_node *node;
    paramo_err started, stopped;
    pthread_t thread;
    void (*prepare)(paramo_node *node); /* between create and join */
};

struct cluster {
    struct cluster_node scheduler;
    struct cluster_node servers[CLUSTER_MAX];
    struct cluster_node workers[CLUSTER_MAX];
    unsigned servers_count, workers_count;
    char address[64];
    void (*configure)(paramo_config *config);
};

/* Fails the test if any of them does not join. prepare (or NULL) is called for each server before it joins.
 */
void cluster_start(struct cluster *c, unsigned servers, unsigned workers, void (*prepare)(paramo_node *node));
/* The same, with each node's settings changed by configure before it is made. */
void cluster_start_with(struct cluster *c, unsigned servers, unsigned workers,
                        void (*configure)(paramo_config *config));
/* One more server, while the job runs; returns when it has joined. */
void cluster_add_server(struct cluster *c);
/* Workers first; each stop must be OK. */
void cluster_stop(struct cluster *c);

/* Embedded: one node. */
paramo_node *embedded_start(unsigned servers);

#endif
