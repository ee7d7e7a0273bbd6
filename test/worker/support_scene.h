/*
 * Scenes: tests of chains and migrations that are the scheduler themselves. A scene gives each order and each view,
 * and cuts or delays connections between them. Seeds: test_migration_sim.c, test_chain_sim.c.
 */
#ifndef TEST_WORKER_SUPPORT_SCENE_H
#define TEST_WORKER_SUPPORT_SCENE_H

#include "unit.h"
#include "wire/migration_order.h"
#include "wire/order.h"
#include "worker/support_world.h"

/* Row i of DENSE lies on partition i. NONE has no copies, ONE has one. s0 owns the partitions below PARTITIONS. */
enum { DENSE, NONE, ONE, TABLES, SERVERS = 4, CLIENTS = 2, PARTITIONS = 256, KEY = 5 };

/* An order to a shard, and its answer. */
struct scene_order {
    struct world_server *server;
    uint32_t what;
    struct migration_order fields;
    bool done;
    paramo_err status;
};

struct scene {
    struct world w;
    struct scene_order orders[16];
    unsigned asked; /* orders given */
    unsigned apart; /* servers of the side that is cut off */
};
extern struct scene scene;
extern const uint64_t scene_key; /* of all requests below */
extern const float scene_one;

/* Starts the world. s0 owns the partitions below PARTITIONS, with these followers; s3 owns the others. */
void scene_begin(unsigned replicas, uint16_t first, uint16_t second);
/* Simulated time passes. */
void scene_pass(uint64_t ns);

/* ---- connections ---- */

struct simnet_link *scene_link(const char *from, const char *to);
void scene_cut(const char *a, const char *b, bool is);
/* Cuts off the first servers, from s0 on, with client 1: they do not reach the other servers and client 0. */
void scene_apart(unsigned servers, bool is);
/* The same with s0 alone. */
void scene_part(bool is);

/* ---- the scheduler ---- */

/* The `done` function of orders; arg is the scene_order. */
void scene_answered(void *arg, paramo_err status);
struct scene_order *scene_order(unsigned server, uint32_t what, struct migration_order fields);
/* The order succeeds within half a second. */
void scene_must(unsigned server, uint32_t what, struct migration_order fields);
/* The migration of the partitions below PARTITIONS from s0. */
struct migration_order scene_migration(unsigned to, uint8_t level, uint8_t had);
/* The chains of partitions below PARTITIONS in the next view. */
void scene_chain(uint16_t owner, uint16_t first, uint16_t second);
/* In the next view the server's partitions and chains have changed. */
void scene_changed(unsigned server);
/* Client 0 and the servers from this one on take the next view. */
void scene_view_from(unsigned server);
void scene_view_without_s0(void);

/* ---- requests of scene_key ---- */

void scene_push(unsigned client, unsigned table);
float scene_pulled(unsigned client, unsigned table);
/* A pull is not answered while the cut lasts. It gets the value `later` after the cut. */
void scene_pull_held(unsigned client, float later);

#endif
