/*
 * The connection to one shard: connects, queues slices by priority, sends, probes and sends again what was
 * lost, measures round trips, tells the floor. It never knows what a request is for. On the lane. Tests:
 * test/worker/test_client.c, test/worker/test_client_faults.c, test/worker/test_clearing.c.
 */
#ifndef WORKER_LINK_H
#define WORKER_LINK_H

#include "worker/client_impl.h"

/* A header without segments. */
struct probe {
    struct van_frame frame;
    struct client *client; /* NULL: it was closed, the probe frees itself */
    struct probe *next;    /* of the free ones */
    struct probe *made_next;
    bool out; /* in the van */
};

struct client_probes {
    struct probe *free;
    struct probe *made;
    size_t made_count, out;
};

/* Frees those that are not in the van. */
void link_free_probes(struct client *c);

MUST_USE paramo_err link_create(struct client *c, const struct view_node *node, unsigned index,
                                struct link **link);
/* Tells the server that this customer will not come back; link_destroy follows. */
void link_goodbye(struct link *l);
/* After its slices have been withdrawn. */
void link_destroy(struct link *l);
/* The client closes: probes that are still in the van free themselves. */
void link_orphan_probes(struct client *c);
/* Sends the slice or queues it. */
void link_enqueue(struct link *l, struct slice *p);
/* Sends an unanswered slice once more. */
void link_again(struct link *l, struct slice *p);
/* All slices that were sent wait to be sent again, in order. */
void link_restart(struct link *l);
/* Sends what may be sent now. */
void link_pump(struct link *l);
/* The connection broke: its slices wait for the next one. */
void link_lost(struct link *l, const char *text);
/* An answer or probe answer for p came. */
void link_heard(struct link *l, struct slice *p, bool probe_answer);
/* "server 0 (node 8)" */
void link_name(const struct link *l, char text[LINK_NAME_MAX]);

#endif
