/*
 * HELLO and WELCOME: the first frame each way on every connection. Until a HELLO with the right token has
 * come, a listener reads nothing else and no more than a few KiB. HELLO travels in one body segment; so does
 * WELCOME, or REJECT with a code and a text. It never knows connections. Tests: test/wire/test_hello.c.
 */
#ifndef WIRE_HELLO_H
#define WIRE_HELLO_H

#include <stdint.h>

#include "base/cursor.h"
#include "wire/sender_id.h"

enum { HELLO_TOKEN_MAX = 256, HELLO_TEXT_MAX = 256 };
/* Versions of the protocol that this side speaks. */
enum { HELLO_VERSION_MIN = 4, HELLO_VERSION_MAX = 4 };

enum hello_purpose {
    HELLO_CONTROL = 1, /* a member to the scheduler */
    HELLO_DATA = 2,    /* a worker's customer to a shard */
    /* a shard to the next in a chain; app: generation of the stream, customer: which shard of its node */
    HELLO_CHAIN = 3,
    HELLO_MIGRATION = 4 /* the same, to the target of a migration */
};

/* hello.shard: not a shard with tables, but the host of the process's apps */
enum { HELLO_APP_ENDPOINT = 0xffff };

struct hello {
    uint16_t version_min, version_max; /* protocol versions spoken */
    uint8_t purpose;
    uint32_t node; /* sender's id; 0 before it has one */
    uint64_t incarnation;
    uint64_t job; /* 0 before it knows it */
    uint32_t app, customer;
    uint16_t shard; /* DATA: which shard of this process */
    char token[HELLO_TOKEN_MAX];
    uint64_t capabilities; /* offered (capability.h); 0 takes no bytes, as in builds without them */
};

struct welcome {
    uint16_t version; /* the one to speak */
    uint64_t job;
    uint64_t incarnation;  /* of the process that answers */
    uint64_t capabilities; /* those of HELLO that the process has, too; 0 takes no bytes */
};

/* Purpose DATA: the name of the customer that sends on this connection. */
static inline struct sender_id hello_sender(const struct hello *m)
{
    return (struct sender_id){
        .node = m->node, .app = m->app, .customer = m->customer, .incarnation = m->incarnation};
}

void hello_encode(const struct hello *m, struct writer *w);
MUST_USE paramo_err hello_decode(struct reader *r, struct hello *m);
void welcome_encode(const struct welcome *m, struct writer *w);
MUST_USE paramo_err welcome_decode(struct reader *r, struct welcome *m);
void reject_encode(paramo_err code, const char *text, struct writer *w);
/* Sets this thread's message to the peer's text and *code to its code. */
MUST_USE paramo_err reject_decode(struct reader *r, paramo_err *code);

#endif
