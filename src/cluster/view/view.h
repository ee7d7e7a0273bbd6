/*
 * A view: who is in the cluster, which shards there are, who owns each partition, which tables exist;
 * numbered. Immutable once published and shared by reference between the lanes of a process. Nobody ever
 * adopts a view with a lower number. Bumped by every change: a death, a join, partitions that move, a new
 * table. Tests: test/cluster/test_view.c.
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
    VIEW_NAME_MAX = 64, /* node and table names, with the end */
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
    bool recovered;  /* took a dead node's rank: its tables hold nothing of what was pushed before */
    uint16_t port;   /* 0: does not listen */
    uint16_t shards; /* servers */
    uint32_t weight; /* servers: of each of its shards; others 0 */
    char host[VIEW_HOST_MAX];
    char name[VIEW_NAME_MAX];
    char domain[VIEW_HOST_MAX]; /* servers: what it fails together with; others "" */
};

struct view_shard {
    uint32_t node;               /* node id */
    uint16_t index;              /* which shard of that server */
    uint64_t partitions_changed; /* number of the last view that changed this shard's partitions */
    uint64_t chain_changed; /* ... that changed the chain of any partition of which it is a member, or was, or
                               in which its server is dead */
    uint64_t last_migration; /* id of the last move of rows to this shard that was committed; or 0 */
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
    struct view_shard *shards; /* by server rank, then index: the order the ring's owners refer to */
    struct view_table *tables; /* ascending id */
    /* Who has a partition's rows: a member at level l has all of the tables with l replicas or more, and none
     * of others. A level may be empty before one that is not, until a move has filled it. `apart` and
     * `present` are the planner's, and 0 here. */
    struct ring_chains chains;
    /* Rows that died with their servers and are about to come back from a checkpoint (--on-loss restore): on
     * partition a those of the tables that are older than view lost_at and have fewer replicas than lost[a],
     * 0 to RING_LEVELS. Whoever owns such a partition lets all requests wait. lost_at 0: none. */
    uint64_t lost_at;
    uint8_t lost[RING_PARTITIONS];
};

/* Who owns the partitions: all that a client needs of the chains. */
static inline const struct ring *view_ring(const struct view *view)
{
    return &view->chains.level[0];
}

/* What every message calls a node, by its rank and its id: "server 0 (node 8)"; with its name if it has one,
 * else its host unless that is only this machine: "server 0 (node 8, host-3)". The same text on every node,
 * whoever speaks. Both return label. */
const char *view_node_label(const struct view_node *node, char label[VIEW_LABEL_MAX]);
const char *view_id_label(uint32_t id, char label[VIEW_LABEL_MAX]);

struct view *view_ref(struct view *view);
void view_unref(struct view *view); /* NULL is allowed */
const struct view_node *view_node(const struct view *view, uint32_t id);
const struct view_table *view_table(const struct view *view, uint32_t id);
const struct view_table *view_table_named(const struct view *view, const char *name);
/* -1 if there is none. */
int view_shard_index(const struct view *view, uint32_t node, unsigned index);

/* Number of the last view in which a partition had another owner than before. */
uint64_t view_partitions_changed(const struct view *view);
void view_encode(const struct view *view, struct writer *w);
/* Checks everything; *view has one reference. */
MUST_USE paramo_err view_decode(struct reader *r, struct view **view);

#endif
