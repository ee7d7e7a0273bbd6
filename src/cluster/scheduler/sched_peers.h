/*
 * Control connections: of members, and of admin clients, which do not register.
 * Must never know: what their frames mean (sched_dispatch.h).
 * Tests: test/cluster/test_scheduler.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_PEERS_H
#define CLUSTER_SCHEDULER_SCHED_PEERS_H

#include "base/cursor.h"
#include "base/err.h"
#include "env/lane.h"
#include "van/van.h"
#include "wire/head.h"

struct acceptor;
struct scheduler;
struct sched_node;

/* A control connection that was welcomed. */
struct sched_peer {
    struct scheduler *sched;
    struct van_conn *conn;
    struct sched_node *node; /* NULL before REGISTER */
    uint64_t incarnation;
    struct lane_timer timer; /* for the REGISTER */
    uint32_t ckpt_call;      /* an admin client waits for a checkpoint: its call and number; 0: none */
    uint64_t ckpt_number;
    bool status_waits; /* an admin client waits for the answer to STATUS, and its call's number */
    uint64_t status_number;
    uint64_t drain_save; /* an admin client waits for the answer to DRAIN: for this save; 0: none waits */
    uint64_t drain_number;
    struct sched_peer *next, *prev;
};

struct sched_peers {
    struct acceptor *acceptor;
    const struct van_user *user; /* of each connection */
    struct sched_peer *first;
    uint32_t count;
};

MUST_USE paramo_err sched_peers_open(struct scheduler *s, const struct van_user *user);
/* Accepts no more. */
void sched_peers_refuse(struct scheduler *s);
/* The address that members connect to, with the real port. */
const char *sched_peers_address(const struct scheduler *s);
/* All of them, by their next. */
struct sched_peer *sched_peers_first(const struct scheduler *s);
void sched_peers_fini(struct scheduler *s);
void sched_peer_close(struct sched_peer *peer, bool flush);
MUST_USE paramo_err sched_peer_send(struct sched_peer *peer, const struct wire_head *head, const void *body,
                                    size_t len);
MUST_USE paramo_err sched_peer_reply(struct sched_peer *peer, uint32_t kind, uint64_t number,
                                     paramo_err status, const struct writer *body);
/* The answer to an admin client, once. Takes what body owns. */
void sched_peer_answer(struct sched_peer *peer, uint32_t kind, uint64_t number, paramo_err status,
                       struct writer *body);
/* An answer to an admin client could not be sent, by this thread's message. Its connection ends in a moment, so
 * that it does not wait for the answer. */
void sched_peer_unanswered(struct sched_peer *peer, uint32_t kind);

#endif
