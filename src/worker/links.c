#include "worker/links.h"

#include <assert.h>
#include <stdlib.h>

void links_init(struct client *c)
{
    c->links->sole = -1;
}

paramo_err links_make_room(struct client *c)
{
    struct link **all = realloc(c->links->all, (c->links->count + 1) * sizeof *all);
    if (!all)
        return err_memory((c->links->count + 1) * sizeof *all);
    c->links->all = all;
    return PARAMO_OK;
}

void links_add(struct client *c, struct link *l)
{
    assert(l->client == c && l->index == HELLO_APP_ENDPOINT); /* views bring all others */
    assert(c->links->all && l->state == LINK_IDLE);
    c->links->all[c->links->count++] = l;
}

void links_set(struct client *c, struct link **all, size_t count, struct link **by_shard, int sole)
{
    assert(count >= c->links->count); /* it has all links of the old list */
    assert(sole < (int)count && (all || !count));
    free(c->links->all);
    free(c->links->by_shard);
    c->links->all = all;
    c->links->count = count;
    c->links->by_shard = by_shard;
    c->links->sole = sole;
}

void links_keep(struct client *c, bool (*keep)(struct link *l))
{
    size_t kept = 0;
    for (size_t i = 0; i < c->links->count; i++) {
        struct link *l = c->links->all[i];
        assert(l->client == c);
        if (keep(l))
            c->links->all[kept++] = l;
    }
    assert(!client_is_down(c) || !kept); /* closing drops all */
    c->links->count = kept;
}

void links_fini(struct client *c)
{
    assert(!c->links->count);
    free(c->links->all);
    free(c->links->by_shard);
    c->links->all = NULL;
    c->links->by_shard = NULL;
}

void links_hurry(struct client *c)
{
    c->links->pump = true;
}

bool links_hurried(struct client *c)
{
    bool pump = c->links->pump;
    c->links->pump = false;
    return pump;
}

static void add(struct van_counters *sum, const struct van_counters *n)
{
    sum->bytes_sent += n->bytes_sent;
    sum->bytes_received += n->bytes_received;
    sum->frames_sent += n->frames_sent;
    sum->frames_received += n->frames_received;
}

void links_count_closed(struct client *c, const struct van_counters *counters)
{
    add(&c->links->closed_conns, counters);
}

struct van_counters links_sum(const struct client *c)
{
    struct van_counters sum = c->links->closed_conns;
    for (size_t i = 0; i < c->links->count; i++)
        if (c->links->all[i]->conn)
            add(&sum, &c->links->all[i]->conn->counters);
    return sum;
}
