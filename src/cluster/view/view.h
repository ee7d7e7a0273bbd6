/*
 * A view: which nodes and shards are in the cluster, which shard owns each partition, which tables exist.
 * Every change makes a new view with a higher number: a death, a join, a migration, a new table. A published
 * view is immutable and shared by reference between the lanes of a process. No node adopts a view with a
 * lower number. It never knows how a view came about. Tests: test/cluster/test_view.c.
 */
#ifndef CLUSTER_VIEW_VIEW_H
#define CLUSTER_VIEW_VIEW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/err.h"
#include "paramo/types.h"
#include "ring/place.h"

enum {
    VIEW_NAME_MAX = 64, /* node and table names, with the terminating 0 */
    VIEW_HOST_MAX = 256,
    VIEW_NODES_MAX = 10000,
    VIEW_SHARDS_MAX = 4096,
    VIEW_TABLES_MAX = 4096,
    VIEW_LABEL_MAX = VIEW_HOST_MAX + 64
};

struct view_node {
    uint32_t id;   /* ps-lite's numbers */
    uint32_t role; /* one paramo_role */
    uint64_t incarnation;
    bool alive;
    bool left;       /* said goodbye: gone, but not dead */
    bool recovered;  /* took a dead node's rank, without its rows */
    uint16_t port;   /* 0: does not listen */
    uint16_t shards; /* servers */
    uint32_t weight; /* servers: of each shard; others 0 */
    char host[VIEW_HOST_MAX];
    char name[VIEW_NAME_MAX];
    char domain[VIEW_HOST_MAX]; /* servers: the failure domain; others "" */
};

struct view_shard {
    uint32_t node;               /* node id */
    uint16_t index;              /* which shard of that server */
    uint64_t partitions_changed; /* number of the last view that changed this shard's partitions */
    /* number of the last view that changed a chain of this shard, or in which its server died */
    uint64_t chain_changed;
    uint64_t last_migration; /* id of the last committed migration of rows to this shard; 0: none */
};

struct view_table {
    uint32_t id; /* from 1, never reused */
    char name[VIEW_NAME_MAX];
    uint64_t since;               /* number of the first view that has it */
    paramo_table_options options; /* placement resolved, never AUTO */
};

struct view {
    atomic_uint refs;
    uint64_t job;                      /* random: tells jobs apart */
    uint64_t number;                   /* term in the upper 32 bits, epoch in the lower */
    uint32_t num_servers, num_workers; /* the job's size */
    bool complete;                     /* all have registered at least once */
    uint32_t nodes_count, shards_count, tables_count;
    struct view_node *nodes;   /* ascending id */
    struct view_shard *shards; /* by server rank, then index; chains refer to this order */
    struct view_table *tables; /* ascending id */
    /* The shards that have a partition's rows. A member at level l has all tables with l replicas or more,
     * and no others. A level may be empty before one that is not, until a migration has filled it. `apart`
     * and `present` are the planner's, and 0 here. */
    struct ring_chains chains;
    /* Number of the last view in which the partition's owner was gone, and its rows with it: another member
     * got the partition without what only the owner had, or (no replicas) it waits for a server in the
     * owner's place. On that partition the tables without copies that are older than that view have lost
     * their rows. A migration takes them along and changes nothing here. 0: no owner was ever gone. */
    uint64_t owner_gone[RING_PARTITIONS];
    /* Rows that died with their servers and will be restored from a checkpoint (--on-loss restore). On
     * partition a these are the rows of tables that are older than view lost_at and have fewer replicas than
     * lost[a], 0 to RING_LEVELS. The owner of such a partition defers all requests. lost_at 0: none. */
    uint64_t lost_at;
    uint8_t lost[RING_PARTITIONS];
};

/* The owners of the partitions: all that a client needs of the chains. */
static inline const struct ring *view_ring(const struct view *view)
{
    return &view->chains.level[0];
}

/* How every message names a node, by rank and id: "server 0 (node 8)"; with its name if it has one, else with
 * its host unless that is loopback: "server 0 (node 8, host-3)". The text is the same on every node. Both
 * return label. */
const char *view_node_label(const struct view_node *node, char label[VIEW_LABEL_MAX]);
const char *view_id_label(uint32_t id, char label[VIEW_LABEL_MAX]);

struct view *view_ref(struct view *view);
void view_unref(struct view *view); /* NULL is allowed */
const struct view_node *view_node(const struct view *view, uint32_t id);
const struct view_table *view_table(const struct view *view, uint32_t id);
const struct view_table *view_table_named(const struct view *view, const char *name);
/* -1 if there is none. */
int view_shard_index(const struct view *view, uint32_t node, unsigned index);

/* Number of the last view in which the owner of any partition changed. */
uint64_t view_partitions_changed(const struct view *view);
void view_encode(const struct view *view, struct writer *w);
/* Checks everything; *view has one reference. */
MUST_USE paramo_err view_decode(struct reader *r, struct view **view);

#endif
