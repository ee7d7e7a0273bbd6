/*
 * The open connections of the HTTP server, and their deadlines: libmicrohttpd closes silent connections by itself, but
 * not those of a client that sends or reads byte by byte. It never knows HTTP. Tests: test/e2e/serve.sh.
 */
#ifndef CMD_SERVE_CONNECTIONS_H
#define CMD_SERVE_CONNECTIONS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* One connection and its current request. */
struct connection {
    struct connection *before, *after;
    int fd;
    int refused;                   /* beyond the limit: its requests are answered with 503 */
    atomic_int busy;               /* from the request line to the end of the answer */
    atomic_uint_least64_t changed; /* when busy was set last, ns */
    /* of the thread that handles the connection: */
    uint64_t began; /* when the header was read, ns; 0: not yet */
    int too_large;  /* the body */
    char *body;
    size_t len, cap;
    size_t unsent; /* bytes of its answer that count for --max-unsent */
};

struct connections {
    pthread_mutex_t lock; /* of the list; the fd of a connection in it is open */
    struct connection *first;
    size_t n;
};

/* CLOCK_MONOTONIC. */
uint64_t clock_ns(void);

/* Adds a connection, which is refused if there are more than limit. NULL: out of memory. */
struct connection *connection_add(struct connections *all, int fd, size_t limit);
void connection_remove(struct connections *all, struct connection *c);
void connection_set_busy(struct connection *c, int busy);

/* Shuts down the connections whose request takes longer than request_ns, or that have sent no complete request line
 * within idle_ns + request_ns. The library then closes them. Returns how many. */
size_t connections_expire(struct connections *all, uint64_t request_ns, uint64_t idle_ns);
/* Shuts down the receiving side of idle connections; a request that has arrived is still answered. Returns how many
 * connections are open. */
size_t connections_drain(struct connections *all);

#endif
