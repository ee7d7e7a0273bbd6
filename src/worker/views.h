/*
 * Views of a client other than its current one: a view for which it had no memory, the view that it has asked for,
 * and the view that its requests need. It must never know what a view is used for.
 * Tests: test/worker/test_client.c, test/worker/test_no_memory.c.
 */
#ifndef WORKER_VIEWS_H
#define WORKER_VIEWS_H

#include "worker/client_impl.h"

struct client_views {
    struct client *client;
    void (*take)(struct client *c, struct view *view); /* client_set_view */
    struct view *missed; /* a newer one for which there was no memory; NULL: none */
    struct lane_timer timer;
    bool forgotten;              /* a newer one: there was no memory for the timer either */
    uint64_t partitions_changed; /* number of the last view that changed the owner of any partition */
    uint64_t asked;
    uint64_t table; /* the first that has all tables that requests have named; they wait for it */
};

void views_init(struct client *c, void (*take)(struct client *c, struct view *view));
void views_close(struct client *c);
/* c->view is new. */
void views_taken(struct client *c);
/* There was no memory for this view: it is taken again later, since the scheduler does not send it twice. */
void views_missed(struct client *c, struct view *view);
/* Asks for a view of at least this number, once. */
void views_ask(struct client *c, uint64_t need);
/* A server cannot be reached: asks for a newer view if one was forgotten, which may have another server in its
 * place. */
void views_ask_forgotten(struct client *c);
/* A request names a table that views have from this number on. */
void views_need_table(struct client *c, uint64_t since);

/* Number of the last view that changed the owner of any partition. */
static inline uint64_t views_partitions_changed(const struct client *c)
{
    return c->views->partitions_changed;
}

/* Number of the first view that has all tables that requests have named. */
static inline uint64_t views_of_tables(const struct client *c)
{
    return c->views->table;
}

#endif
