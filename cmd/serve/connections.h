/*
 * The open connections of the HTTP server, and their deadlines: libmicrohttpd ends silent connections by itself, but
 * not those of a client that sends or reads byte by byte. Tests: test/e2e/serve.sh.
 */
#ifndef CMD_SERVE_CONNECTIONS_H
#define CMD_SERVE_CONNECTIONS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* One connection, and the request that it has at the moment. */
struct connection {
    struct connection *before, *after;
    int fd;
    int refused;                   /* above the limit: its requests are answered with 503 */
    atomic_int busy;               /* from the request line to the end of the answer */
    atomic_uint_least64_t changed; /* when busy changed last, ns */
    /* the rest is for the thread that handles it */
    uint64_t began; /* when the header was read; 0: not yet */
    int too_large;
    char *body;
    size_t len, cap;
    size_t unsent; /* bytes of its answer, counted in the limit of all */
};

struct connections {
    pthread_mutex_t lock; /* the list. A connection in it has an open fd. */
    struct connection *first;
    size_t n;
};

uint64_t clock_ns(void);

/* NULL: out of memory. */
struct connection *connection_add(struct connections *all, int fd, size_t limit);
void connection_remove(struct connections *all, struct connection *c);
void connection_set_busy(struct connection *c, int busy);

/* Shuts down the connections whose request takes longer than request_ns, or that sent no whole request line for
 * idle_ns + request_ns. The server then closes them. Returns how many. */
size_t connections_expire(struct connections *all, uint64_t request_ns, uint64_t idle_ns);
/* Receives no more on idle connections; a request that has arrived is still answered. Returns how many connections are
 * open. */
size_t connections_drain(struct connections *all);

#endif
