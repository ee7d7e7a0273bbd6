/* A shard with fake connections: frames go in by hand, what it sends is recorded. One lane in a simulated
 * environment. */
#ifndef TEST_SERVER_SUPPORT_FAKE_H
#define TEST_SERVER_SUPPORT_FAKE_H

#include "server/shard/adopting.h"
#include "server/shard/clearing.h"
#include "server/shard/deferred.h"
#include "server/shard/handling.h"
#include "server/shard/kept.h"
#include "server/shard/peers.h"
#include "server/shard/reply.h"
#include "server/shard/scanning.h"
#include "server/shard/senders.h"
#include "server/shard/shard.h"
#include "server/shard/shard_impl.h"
#include "server/shard/table_map.h"
#include "server/snapshot/loading.h"
#include "server/snapshot/saving.h"
#include "sim/env/sim.h"
#include "van/core.h"

enum { FAKE_SENT_MAX = 4096, FAKE_VALS = 64 };

struct fake_sent {
    struct wire_head head;
    uint8_t class;
    size_t vals_bytes;
    float vals[FAKE_VALS];
    char text[ERR_TEXT_MAX];
};

struct fake_conn {
    struct van_conn conn; /* first */
    bool full;            /* van_send answers AGAIN */
    bool closed;
    unsigned count; /* sent so far */
    struct fake_sent sent[FAKE_SENT_MAX];
};

struct fake {
    struct sim *sim;
    struct lane *lane;
    struct van van;
    struct shard *shard;
    struct view *view;
    uint64_t number;  /* of the next view */
    uint16_t foreign; /* partitions below belong to another shard */
    uint64_t partitions_changed, since[4];
    uint64_t died[2]; /* owner_gone of the lower and the upper half of the partitions */
    bool recovered, worker_dead;
    uint8_t replicas; /* of the job; no chain has any */
    unsigned tables;
    paramo_table_options options[4];
    unsigned more; /* tables after these, with options 0 and 1 in turn */
};

/* Tables: 1 sparse dim 1, 2 dense of 4,096 rows, 3 USER. The lane is held from here to fake_fini. */
void fake_init(struct fake *f, shard_handler handler, void *arg);
void fake_fini(struct fake *f);
void fake_view(struct fake *f);
/* Simulated time passes, with all events due in it. */
void fake_pass(struct fake *f, uint64_t ns);
struct fake_conn *fake_connect(struct fake *f, uint32_t worker_rank);
void fake_disconnect(struct fake_conn *c);
/* A request with its number; floor 1 and the present view unless changed in *head. */
struct wire_head fake_head(const struct fake *f, unsigned kind, uint32_t table, uint64_t number);
paramo_err fake_send(struct fake_conn *c, const struct wire_head *head, const uint64_t *keys,
                     const float *vals);
/* The last frame that was sent; fails if there was none. */
const struct fake_sent *fake_last(struct fake_conn *c);

#endif
