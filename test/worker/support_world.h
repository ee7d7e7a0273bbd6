/*
 * Servers and clients without a scheduler: the test itself makes the views. Over the simulated environment
 * and van, or over real lanes and the inproc van.
 */
#ifndef TEST_WORKER_SUPPORT_WORLD_H
#define TEST_WORKER_SUPPORT_WORLD_H

#include <stdbool.h>

#include "cluster/session/acceptor.h"
#include "server/shard/shard.h"
#include "sim/env/sim.h"
#include "sim/van/simvan.h"
#include "worker/client.h"

/* Fails the test with the error's name and message. */
#define assert_ok(e)                                                                                         \
    do {                                                                                                     \
        paramo_err assert_ok_err = (e);                                                                      \
        if (assert_ok_err)                                                                                   \
            fail_msg("%s: %s", err_name(assert_ok_err), err_text());                                         \
    } while (0)

enum { WORLD_SERVERS = 66, WORLD_CLIENTS = 6, WORLD_TABLES = 8 };

struct world_server {
    struct world *world;
    unsigned rank;
    uint64_t incarnation;
    bool up, alive, recovered;
    struct sim_host *clock; /* in a simulation */
    struct lane *lane;
    struct van *van; /* the world's own, but one each in a simulation */
    struct acceptor *acceptor;
    struct shard *shard;
    struct shard *host; /* of apps; on the same lane */
};

struct world_client {
    struct world *world;
    unsigned rank;
    uint64_t incarnation;
    struct lane *lane;
    struct van *van;
    struct client *client;
    uint64_t wanted_view;
    bool dead; /* as views have it */
};

struct world {
    bool simulated;
    struct sim *sim;
    struct simnet *net;
    struct env *env;
    struct van *van; /* real worlds */
    unsigned servers_count, clients_count, tables_count;
    struct world_server servers[WORLD_SERVERS];
    struct world_client clients[WORLD_CLIENTS];
    paramo_table_options options[WORLD_TABLES];
    struct client_table tables[WORLD_TABLES];
    struct ring ring;
    unsigned replicas;                /* set before world_start: server i is followed by i + 1, i + 2 ... */
    size_t scan_keys, turn_records;   /* of its shards (server/shard/shard.h) */
    uint32_t turn_keys, portion_keys; /* of its clients (worker/client.h) */
    bool migrations; /* partitions will move: shards reach each other without replicas, too */
    struct ring follower[RING_LEVELS]; /* from 1 */
    uint64_t partitions_changed[WORLD_SERVERS], chain_changed[WORLD_SERVERS], moved[WORLD_SERVERS];
    uint64_t owner_gone[RING_PARTITIONS]; /* as views have it; so are these: */
    uint64_t lost_at;
    uint8_t lost[RING_PARTITIONS];
    uint64_t number; /* of the present view */
    struct view *view;
    uint32_t timeout_ms;
    uint64_t capabilities;                          /* of all vans; set before world_start ... */
    uint64_t older[WORLD_SERVERS];                  /* ... but for these of a server's */
    struct filter_chain filters[FILTER_DIRECTIONS]; /* of all clients */
    shard_handler handler;                          /* of tables and apps */
    void *handler_arg;
    void (*closed)(unsigned server);              /* one that is stopped, before its lane goes; or NULL */
    void (*failed)(void *arg, paramo_err status); /* shard_config.failed, with handler_arg */
};

/* Aborts when something cannot be made: a test cannot continue without its world. */
void world_init(struct world *w, bool simulated, uint64_t seed);
/* Everything is closed and freed. */
void world_fini(struct world *w);
/* kind, dim, optimizer and the rest at their defaults; *t to be changed before world_start. */
paramo_table_options *world_table(struct world *w, paramo_table_kind kind, uint32_t dim);
/* Starts servers and clients with a view in which `owners` of the servers share the ring. */
void world_start(struct world *w, unsigned servers, unsigned owners, unsigned clients);
/* A new view from the world's present state (ring, tables, alive, recovered); servers and clients do not have
 * it yet. */
void world_view(struct world *w);
void world_server_view(struct world *w, unsigned server);
void world_client_view(struct world *w, unsigned client);
void world_all_view(struct world *w);
void world_server_stop(struct world *w, unsigned server);
/* Again with another incarnation and empty tables. */
void world_server_start(struct world *w, unsigned server);
/* The customer is closed, and opened again: the same sender. */
void world_client_close(struct world *w, unsigned client);
void world_client_open(struct world *w, unsigned client);
/* Simulated: so much time goes by; what two nodes say to each other. */
void world_pass(struct world *w, uint64_t ns);
struct simnet_link *world_link(struct world *w, const char *from, const char *to);
/* A new view without this server: the first that is left of each chain is the owner. */
void world_server_gone(struct world *w, unsigned server);
/* Simulated: the server dies `in` nanoseconds from now, and all have the view without it. */
struct world_death {
    struct sim_event event;
    struct world *w;
    unsigned server;
    bool over;
};
void world_dies_in(struct world *w, struct world_death *death, unsigned server, uint64_t ns);
/* Runs fn on a lane: directly if it can be entered, else posted and waited for. */
void world_on_lane(struct lane *lane, void (*fn)(void *arg), void *arg);
/* On the lane of its shard: the connection of a stream (struct chain_stream) ends, and all that it has is unsent. */
void world_stream_ends(void *stream);

paramo_err world_push(struct world *w, unsigned client, unsigned table, const uint64_t *keys, size_t n,
                      const void *vals, size_t vals_len, uint64_t *ts);
paramo_err world_pull(struct world *w, unsigned client, unsigned table, const uint64_t *keys, size_t n,
                      void *vals, size_t vals_len, uint64_t *ts);
paramo_err world_wait(struct world *w, unsigned client, uint64_t ts);

#endif
