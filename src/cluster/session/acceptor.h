/*
 * The acceptor of a process: it listens, takes new connections through the handshake, and hands those that
 * belong to the job to their owner. An unauthenticated connection gets a few seconds, one frame and 4 KiB.
 * Their number is bounded: when there are too many, the oldest is closed. So idle connections keep no peer out.
 *
 * The owner answers, not the acceptor. accept() is called with a checked HELLO. The owner sets its user (on
 * this lane, or after van_move in arrived() on another), then calls acceptor_welcome or acceptor_reject. A
 * peer sends nothing until it is welcomed, so no frame can come before its owner is ready.
 *
 * It never knows what is sent after the handshake. All functions run on the acceptor's lane, except
 * acceptor_welcome and acceptor_reject: on the connection's. Tests: test/cluster/test_acceptor.c.
 */
#ifndef CLUSTER_SESSION_ACCEPTOR_H
#define CLUSTER_SESSION_ACCEPTOR_H

#include "van/van.h"
#include "wire/hello.h"

struct acceptor;

enum {
    ACCEPTOR_PURPOSE_CONTROL = 1 << HELLO_CONTROL,
    ACCEPTOR_PURPOSE_DATA = 1 << HELLO_DATA,
    ACCEPTOR_PURPOSE_CHAIN = 1 << HELLO_CHAIN | 1 << HELLO_MIGRATION
};

struct acceptor_config {
    struct van *van;
    struct lane *lane;
    const char *address;  /* copied by the van */
    const char *token;    /* copied */
    unsigned purposes;    /* a bit for each purpose that the owner accepts; others are REFUSED */
    uint64_t frame_bytes; /* limit of frames once the peer is known */
    uint64_t timeout_ns;  /* for the HELLO; 0: 10 s */
    unsigned unauth_max;  /* unauthenticated connections at once; 0: 256 */
    /* Inside the acceptor's frame() callback. hello is gone when this returns. */
    void (*accept)(void *arg, struct van_conn *conn, const struct hello *hello);
    void *arg;
};

MUST_USE paramo_err acceptor_open(const struct acceptor_config *config, struct acceptor **acceptor);
/* Stops listening and closes unauthenticated connections. Connections that were handed over stay. NULL is
 * allowed. */
void acceptor_close(struct acceptor *acceptor);
/* With the real port. */
const char *acceptor_address(const struct acceptor *acceptor);
/* From now on a HELLO that names another job is REFUSED (0 names none). */
void acceptor_set_job(struct acceptor *acceptor, uint64_t job);

/* Sends WELCOME in the protocol version that both speak, with the capabilities that both have
 * (wire/capability.h; conn has them since accept()). On an error, close the connection. */
MUST_USE paramo_err acceptor_welcome(struct van_conn *conn, uint64_t job, uint64_t incarnation);
/* Sends REJECT, then closes the connection. */
void acceptor_reject(struct van_conn *conn, paramo_err code, const char *text);

#endif
