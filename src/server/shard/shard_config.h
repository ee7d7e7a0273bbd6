/*
 * The configuration and the counters of a shard, for shard.h and for the parts of a shard. It never knows what a part
 * does.
 * Tests: test/server/test_shard.c.
 */
#ifndef SERVER_SHARD_SHARD_CONFIG_H
#define SERVER_SHARD_SHARD_CONFIG_H

#include "env/lane.h"
#include "server/shard/shard_request.h"

struct shard;

struct shard_config {
    struct lane *lane;
    uint32_t node; /* this node's id; 0: learned from the view, by incarnation */
    uint64_t incarnation;
    unsigned index;        /* which shard of the node */
    uint64_t frame_bytes;  /* the largest answer that is sent */
    uint32_t drop_percent; /* this share of received frames is dropped, for tests */
    struct van *van;       /* to reach other shards by; NULL: it has no part in chains */
    const char *token;     /* the job's; outlives the shard */
    size_t scan_keys; /* of a scan's page, and of a step; 0: as many as memory and time allow. For tests */
    /* senders whose records pass to another owner, or are checked, in one turn; 0: a millisecond's worth. For
     * tests */
    size_t turn_records;
    /* new tables of a view that are made in one turn; 0: a millisecond's worth. For tests */
    size_t turn_tables;
    bool app_endpoint;     /* no tables: messages to this node's apps; index is HELLO_APP_ENDPOINT */
    shard_handler handler; /* NULL: requests to USER tables fail with HANDLER */
    size_t request_room;   /* bytes that the handler needs for each request (shard_request_room) */
    /* Called once, on the lane: the shard cannot continue (this thread's message says why). It stops serving;
     * its node should end, so that members with copies take over. May be NULL. */
    void (*failed)(void *arg, paramo_err status);
    void *arg;
};

/* The result of a step of a migration; on an error this thread's message says why. */
typedef void (*shard_migration_done)(void *arg, paramo_err status);

struct shard_counters {
    uint64_t slices, repeats, moved, deferred_for_view, dropped;
    uint64_t chain_bytes; /* of changes to next members, each once for each member */
    uint64_t combined;    /* changes that were made of several pushes (collecting.h) */
    uint64_t senders, kept_bytes, view_deferred_bytes, tables_bytes;
};

#endif
