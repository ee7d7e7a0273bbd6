/* Task dependencies: a request that names earlier ones is held until they have completed (Li et al., OSDI'14,
 * section 3.2). All on the lane; an edge is in the lists of both its ends. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "worker/after.h"
#include "worker/client_impl.h"
#include "worker/clock_gate.h"
#include "worker/ending.h"
#include "worker/requests.h"
#include "worker/slicing_turns.h"

struct edge {
    struct request *by;       /* the request that waits */
    struct request *on;       /* the request it waits for; NULL: it has completed */
    struct edge *prev, *next; /* of on->waiters */
};

static void edge_cut(struct edge *e)
{
    if (!e->on)
        return;
    assert(e->prev ? e->prev->next == e : e->on->waiters == e);
    assert(!e->next || e->next->prev == e);
    *(e->prev ? &e->prev->next : &e->on->waiters) = e->next;
    if (e->next)
        e->next->prev = e->prev;
    e->on = NULL;
}

static void edge_join(struct edge *e, struct request *by, struct request *on)
{
    assert(by != on && !on->ended);
    assert(by->client == on->client && on->number < by->number); /* no circle */
    *e = (struct edge){.by = by, .on = on, .next = on->waiters};
    if (on->waiters)
        on->waiters->prev = e;
    on->waiters = e;
    by->edges_open++;
}

static void cancel(struct request *r, uint64_t ts, paramo_err status, const char *text)
{
    assert(status && !r->ended);
    (void)err_set(PARAMO_E_CANCELLED, "request %" PRIu64 ", which this one comes after, failed: %s: %s", ts,
                  err_name(status), text);
    request_end(r, PARAMO_E_CANCELLED, err_text());
}

/* The named request is not in flight: has it failed? */
static void after_check(struct client *c, struct request *r, uint64_t ts)
{
    char text[ERR_TEXT_MAX];
    paramo_err status = tracker_peek(&c->tracker, ts, text);
    if (status)
        cancel(r, ts, status, text);
}

static void depend(struct client *c, struct request *r, uint64_t ts, struct edge **at)
{
    struct request *on = requests_of_slot(c, ts);
    if (on && on->ts == ts && !on->ended && on != r)
        edge_join((*at)++, r, on);
    else
        after_check(c, r, ts);
}

bool after_hold(struct client *c, struct request *r)
{
    if (!r->after_count && !r->after_all)
        return false;
    assert(!r->edges && !r->edges_open && !r->chunks);
    size_t most = r->after_count;
    for (const struct request *on = requests_first(c); on && r->after_all; on = on->next)
        most += on->ts && on->ts <= r->after_all;
    if (most)
        r->edges = malloc(most * sizeof *r->edges);
    if (most && !r->edges) {
        request_end(r, err_memory(most * sizeof *r->edges), err_text());
        return true;
    }
    struct edge *at = r->edges;
    for (size_t i = 0; i < r->after_count && !r->ended; i++)
        depend(c, r, r->after[i], &at);
    for (struct request *on = requests_first(c); on && r->after_all && !r->ended; on = on->next)
        if (on->ts && on->ts <= r->after_all && on != r && !on->ended)
            edge_join(at++, r, on);
    r->edges_count = (size_t)(at - r->edges);
    assert(r->edges_open <= r->edges_count && r->edges_count <= most);
    return r->edges_open || r->ended;
}

void after_done(struct client *c, struct request *on)
{
    while (on->waiters) {
        struct request *r = on->waiters->by;
        assert(on->waiters->on == on && r != on && r->edges_open > 0);
        edge_cut(on->waiters);
        r->edges_open--;
        if (r->ended)
            continue;
        if (on->status)
            after_check(c, r, on->ts);
        else if (!r->edges_open && !clock_gate_hold(c, r))
            slice_request(c, r);
    }
    for (size_t i = 0; i < on->edges_count; i++)
        edge_cut(&on->edges[i]);
    free(on->edges);
    free(on->after);
    on->edges = NULL;
    on->after = NULL;
    on->edges_count = 0;
    assert(!on->waiters);
}
