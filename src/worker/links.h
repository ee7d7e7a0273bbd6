/*
 * The list of a client's links, and which shard is reached by which. route.c makes and drops links (link.h) as views
 * say; this is only the list. It must never know what a link does. Tests: test/worker/test_client.c.
 */
#ifndef WORKER_LINKS_H
#define WORKER_LINKS_H

#include "worker/client_impl.h"

struct client_links {
    struct link **all;
    size_t count;
    struct link **by_shard; /* view->shards_count of them; each is in `all` */
    int sole;               /* the shard that owns every partition, or -1 */
    bool pump;              /* a link has a numbered slice that may be sent at once; client_finish does it */
    struct van_counters closed_conns; /* sums of connections that are gone */
};

void links_init(struct client *c);
/* Adds a link, which the list owns from now on; room for it has been made. */
MUST_USE paramo_err links_make_room(struct client *c);
void links_add(struct client *c, struct link *l);
/* A view has come. Takes over both arrays. sole: the shard that owns every partition, or -1. */
void links_set(struct client *c, struct link **all, size_t count, struct link **by_shard, int sole);
/* Takes a link off the list, at its place; the last one takes none. The order of the others stays. */
void links_keep(struct client *c, bool (*keep)(struct link *l));
/* The list is empty: frees it. */
void links_fini(struct client *c);
/* A link has a numbered slice that may be sent at once. */
void links_hurry(struct client *c);
/* True, once after links_hurry. */
bool links_hurried(struct client *c);
/* A connection is about to be closed: its counters stay in the sum. */
void links_count_closed(struct client *c, const struct van_counters *counters);
/* Of all connections, those that are gone as well. */
struct van_counters links_sum(const struct client *c);

static inline size_t links_count(const struct client *c)
{
    return c->links->count;
}

static inline struct link *links_at(const struct client *c, size_t i)
{
    return c->links->all[i];
}

/* The link to a shard of the present view. */
static inline struct link *links_to_shard(const struct client *c, size_t shard)
{
    return c->links->by_shard[shard];
}

/* The shard that owns every partition, or -1. */
static inline int links_sole(const struct client *c)
{
    return c->links->sole;
}

#endif
