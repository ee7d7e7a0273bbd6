/*
 * The door of a process: it listens, takes each new connection through the handshake and hands those that
 * proved they belong to the job to their owner. A stranger is let in for a few seconds, one frame and 4 KiB;
 * how many may stand at the door at once is bounded, and the oldest gives way to the next, so that idle
 * strangers keep nobody out.
 *
 * The owner answers, not the door: accept() is called with a HELLO that has passed; the owner sets its user
 * (on this lane, or after van_move in arrived() on another) and then calls door_welcome, or door_reject. So
 * no frame of the peer can come before its owner is there: a peer says nothing until it is welcomed.
 *
 * Never knows what is said after the handshake. All functions on the door's lane, except door_welcome and
 * door_reject: on the connection's. Tests: test/post/test_door.c.
 */
#ifndef POST_DOOR_H
#define POST_DOOR_H

#include "van/van.h"
#include "wire/hello.h"

struct door;

enum {
    DOOR_PURPOSE_CONTROL = 1 << HELLO_CONTROL,
    DOOR_PURPOSE_DATA = 1 << HELLO_DATA,
    DOOR_PURPOSE_CHAIN = 1 << HELLO_CHAIN | 1 << HELLO_MOVE
};

struct door_config {
    struct van *van;
    struct lane *lane;
    const char *address;  /* copied by the van */
    const char *token;    /* copied */
    unsigned purposes;    /* what the owner takes, by bit; others are REFUSED */
    uint64_t frame_bytes; /* limit of frames once the peer is known */
    uint64_t timeout_ns;  /* for the HELLO; 0: 10 s */
    unsigned strangers;   /* how many may stand at the door; 0: 256 */
    /* Inside the door's frame() callback. hello is gone when this returns. */
    void (*accept)(void *arg, struct van_conn *conn, const struct hello *hello);
    void *arg;
};

MUST_USE paramo_err door_open(const struct door_config *config, struct door **door);
/* Stops listening and closes whoever still stands at the door; those handed over are not touched. NULL is
 * allowed. */
void door_close(struct door *door);
/* With the real port. */
const char *door_address(const struct door *door);
/* From now on a HELLO that names another job than this is REFUSED (0 names none). */
void door_set_job(struct door *door, uint64_t job);

/* Sends WELCOME in the protocol version that both speak. An error is the connection's end: close it. */
MUST_USE paramo_err door_welcome(struct van_conn *conn, uint64_t job, uint64_t incarnation);
/* Sends REJECT and closes the connection once that has left. */
void door_reject(struct van_conn *conn, paramo_err code, const char *text);

#endif
