/*
 * The connecting side of the handshake: connect, HELLO, await WELCOME, hand the connection to its user; one
 * attempt with one deadline, so that retrying and its pace are the caller's. Failures name the address once:
 * NOBODY (it says that nobody listens there), CONNECT (it cannot be reached, does not answer in time, or
 * hangs up), PROTOCOL (whoever answers there does not speak Paramo's), TOKEN, VERSION, REFUSED and whatever
 * code the other side rejects with.
 *
 * Never knows what is said after the handshake. All on one lane. Tests: test/cluster/test_acceptor.c.
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
    struct hello hello;   /* versions are filled in by dial */
    uint64_t frame_bytes; /* limit of frames once welcomed */
    uint64_t deadline;    /* lane_now's clock */
    /* The connection stands; up must set its user (or close it) before it returns. The dial is gone already.
     */
    void (*up)(void *arg, struct van_conn *conn, const struct welcome *welcome);
    /* From a round of the lane, never from connector_start. The dial is gone already; err_text() says the
     * same as text. */
    void (*failed)(void *arg, paramo_err code, const char *text);
    void *arg;
};

/* On an error nothing was begun and no callback comes; else exactly one of the two, unless cancelled. */
MUST_USE paramo_err connector_start(const struct connector_config *config, struct connector **connector);
void connector_cancel(struct connector *connector);

#endif
