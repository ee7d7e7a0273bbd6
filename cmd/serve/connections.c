#include "cmd/serve/connections.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

uint64_t clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct connection *connection_add(struct connections *all, int fd, size_t limit)
{
    struct connection *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->fd = fd;
    connection_set_busy(c, 0);
    (void)pthread_mutex_lock(&all->lock);
    c->after = all->first;
    if (c->after)
        c->after->before = c;
    all->first = c;
    c->refused = ++all->n > limit;
    (void)pthread_mutex_unlock(&all->lock);
    return c;
}

void connection_remove(struct connections *all, struct connection *c)
{
    (void)pthread_mutex_lock(&all->lock);
    if (c->before)
        c->before->after = c->after;
    else
        all->first = c->after;
    if (c->after)
        c->after->before = c->before;
    all->n--;
    (void)pthread_mutex_unlock(&all->lock);
    free(c->body);
    free(c);
}

void connection_set_busy(struct connection *c, int busy)
{
    c->changed = clock_ns();
    c->busy = busy;
}

size_t connections_expire(struct connections *all, uint64_t request_ns, uint64_t idle_ns)
{
    size_t expired = 0;
    (void)pthread_mutex_lock(&all->lock);
    uint64_t now = clock_ns();
    for (struct connection *c = all->first; c; c = c->after) {
        uint64_t limit = c->busy ? request_ns : idle_ns + request_ns;
        uint64_t changed = c->changed; /* it may be later than now: another thread sets it */
        if (changed < now && now - changed > limit) {
            (void)shutdown(c->fd, SHUT_RDWR);
            connection_set_busy(c, c->busy); /* so that it is counted once */
            expired++;
        }
    }
    (void)pthread_mutex_unlock(&all->lock);
    return expired;
}

size_t connections_drain(struct connections *all)
{
    (void)pthread_mutex_lock(&all->lock);
    for (struct connection *c = all->first; c; c = c->after)
        if (!c->busy)
            (void)shutdown(c->fd, SHUT_RD);
    size_t open = all->n;
    (void)pthread_mutex_unlock(&all->lock);
    return open;
}
