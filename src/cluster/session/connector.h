/*
 * The connecting side of the handshake: connect, HELLO, await WELCOME, hand the connection to its user. One
 * attempt with one deadline; the caller retries. A failure names the address once:
 *   CONNECTION_REFUSED   nothing listens there
 *   CONNECT              it cannot be reached, does not answer in time, or hangs up
 *   PROTOCOL             the peer does not speak Paramo's protocol
 *   TOKEN, VERSION, REFUSED, ...   the code with which the peer rejects
 *
 * It never knows what is sent after the handshake. All on one lane. Tests: test/cluster/test_acceptor.c.
 */
#ifndef CLUSTER_SESSION_CONNECTOR_H
#define CLUSTER_SESSION_CONNECTOR_H

#include "van/van.h"
#include "wire/hello.h"

struct connector;

struct connector_config {
    struct van *van;
    struct lane *lane;
    const char *address;  /* copied */
    struct hello hello;   /* connector_start fills in versions and capabilities */
    uint64_t frame_bytes; /* limit of frames once welcomed */
    uint64_t deadline;    /* lane_now's clock */
    /* The connection is up. The callee must set its user (or close it) before it returns. The connector is
     * gone. */
    void (*up)(void *arg, struct van_conn *conn, const struct welcome *welcome);
    /* From a round of the lane, never from connector_start. The connector is gone; err_text() is the same as
     * text. */
    void (*failed)(void *arg, paramo_err code, const char *text);
    void *arg;
};

/* After OK exactly one callback comes, unless cancelled; after an error none. */
MUST_USE paramo_err connector_start(const struct connector_config *config, struct connector **connector);
void connector_cancel(struct connector *connector);

#endif
