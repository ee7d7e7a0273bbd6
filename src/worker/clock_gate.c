#include "worker/clock_gate.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "worker/client_impl.h"
#include "worker/ending.h"
#include "worker/slicing_turns.h"

static uint64_t lowest(const struct client_clock_gate *g)
{
    uint64_t clock = UINT64_MAX;
    for (const struct request *r = g->first; r; r = r->gate_next)
        clock = r->at_clock < clock ? r->at_clock : clock;
    return clock;
}

static void gate_check(const struct client_clock_gate *g)
{
    assert(!g->first == !g->last);
    assert(!g->first || (!g->first->gate_prev && !g->last->gate_next));
    assert(!g->lost == !g->epoch);
}

static void ask(struct client *c)
{
    struct client_clock_gate *g = c->clock_gate;
    gate_check(g);
    assert(!g->first || c->config.need_clock);
    if (g->first)
        c->config.need_clock(c->config.arg, lowest(g));
}

void clock_gate_begin(struct client *c, struct request *r)
{
    gate_check(c->clock_gate);
    assert(!r->gated && !r->ended);
    r->clock_epoch = c->clock_gate->epoch;
}

/* The number stays with the request however often it is sent. False: the request has ended, because it is not known. */
static bool workers_note(const struct client_clock_gate *g, struct request *r)
{
    assert(!r->ended && !r->gated);
    if (!r->clocked || r->workers)
        return true;
    r->workers = g->workers ? g->workers : 1;
    if (g->workers || r->kind != REQUEST_PUSH || r->table->options.aggregate != PARAMO_AGGREGATE_MEAN)
        return true;
    request_end(r, PARAMO_E_UNSUPPORTED,
                "the scheduler is of an older version, which does not count workers");
    return false;
}

bool clock_gate_hold(struct client *c, struct request *r)
{
    struct client_clock_gate *g = c->clock_gate;
    if (r->at_clock <= g->minimum) {
        return !workers_note(g, r);
    }
    /* The worker has lost its clock since the request was issued; a clock of its next session is another one. */
    if (r->clock_epoch != g->epoch) {
        request_end(r, g->lost, g->lost_text);
        return true;
    }
    gate_check(g);
    assert(c->config.need_clock && !r->gated && !r->ended);
    r->gated = true;
    r->gate_prev = g->last;
    r->gate_next = NULL;
    *(g->last ? &g->last->gate_next : &g->first) = r;
    g->last = r;
    gate_check(g);
    ask(c);
    return true;
}

void clock_gate_done(struct client *c, struct request *r)
{
    struct client_clock_gate *g = c->clock_gate;
    if (!r->gated)
        return;
    gate_check(g);
    assert(r->gate_prev ? r->gate_prev->gate_next == r : g->first == r);
    r->gated = false;
    *(r->gate_prev ? &r->gate_prev->gate_next : &g->first) = r->gate_next;
    *(r->gate_next ? &r->gate_next->gate_prev : &g->last) = r->gate_prev;
    gate_check(g);
}

void clock_gate_late(const struct client *c, const struct request *r)
{
    const char *behind = c->clock_gate->behind, *what = wire_kind_name(r->wire_kind);
    assert(r->gated && r->client == c);
    if (*behind)
        (void)err_set(PARAMO_E_TIMEOUT, "%s to table %s: %s", what, r->table->name, behind);
    else
        (void)err_set(PARAMO_E_TIMEOUT, "%s to table %s: not all workers have reached clock %" PRIu64, what,
                      r->table->name, r->at_clock);
}

void client_clock_reached(struct client *c, uint64_t minimum, uint32_t workers)
{
    struct client_clock_gate *g = c->clock_gate;
    assert(lane_held(c->lane));
    gate_check(g);
    if (minimum >= g->minimum)
        g->workers = workers;
    if (minimum > g->minimum) {
        g->minimum = minimum;
        g->behind[0] = '\0';
    }
    for (struct request *r = g->first, *next; r; r = next) {
        next = r->gate_next;
        if (r->at_clock > g->minimum)
            continue;
        clock_gate_done(c, r);
        if (!r->ended && workers_note(g, r))
            slice_request(c, r);
    }
    ask(c);
    client_finish(c);
}

void client_clock_behind(struct client *c, const char *who)
{
    assert(lane_held(c->lane));
    gate_check(c->clock_gate);
    (void)snprintf(c->clock_gate->behind, sizeof c->clock_gate->behind, "%s", who);
    ask(c);
}

void client_clock_lost(struct client *c, paramo_err status, const char *text)
{
    struct client_clock_gate *g = c->clock_gate;
    assert(lane_held(c->lane) && status);
    gate_check(g);
    g->epoch++;
    g->lost = status;
    (void)snprintf(g->lost_text, sizeof g->lost_text, "%s", text);
    while (g->first) {
        struct request *r = g->first;
        clock_gate_done(c, r);
        request_end(r, status, text);
    }
    client_finish(c);
}
