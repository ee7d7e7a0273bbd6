/*
 * REGISTER: a node joins and gets its id. Sent again with the same incarnation after a lost connection, it gets the
 * same answer. It never knows views. Tests: test/wire/test_calls.c.
 */
#ifndef WIRE_REGISTER_CALL_H
#define WIRE_REGISTER_CALL_H

#include <stdbool.h>

#include "base/cursor.h"

enum {
    REGISTER_HOST_MAX = 256,
    REGISTER_NAME_MAX = 64,
    REGISTER_SHARDS_MAX = 4096,
    REGISTER_WEIGHT_MAX = 1000000
};

struct register_call {
    uint32_t role;                  /* a paramo_role */
    uint32_t node;                  /* the id it had before its connection was lost; 0: none yet */
    uint16_t port;                  /* 0: does not listen */
    uint16_t shards;                /* servers: 1 and more; others 0 */
    int32_t rank;                   /* wanted; -1: any */
    uint32_t timeout_ms;            /* how long it will wait for the cluster to be complete */
    char host[REGISTER_HOST_MAX];   /* "": the address the connection comes from */
    char name[REGISTER_NAME_MAX];   /* "": none */
    uint32_t weight;                /* servers: of each of its shards, 1 and more; others 0 */
    char domain[REGISTER_HOST_MAX]; /* servers: the failure domain; "": its host. Others "" */
};

struct register_result {
    uint32_t node;
    bool recovered; /* took a dead node's rank */
    bool returns;   /* the scheduler keeps its state: after a restart it continues the same job */
};

void register_call_encode(const struct register_call *m, struct writer *w);
MUST_USE paramo_err register_call_decode(struct reader *r, struct register_call *m);
void register_result_encode(const struct register_result *m, struct writer *w);
MUST_USE paramo_err register_result_decode(struct reader *r, struct register_result *m);

#endif
