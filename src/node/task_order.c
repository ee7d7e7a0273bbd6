#include "node/task_order.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "paramo/types.h"

struct order_edge {
    struct order_call *by;          /* the call that waits */
    struct order_caller *on;        /* the caller of the call it waits for; NULL: it has ended */
    uint64_t number;                /* of that call */
    struct order_edge *prev, *next; /* of on->edges */
};

struct order_caller {
    uint32_t at;
    uint64_t session;
    uint64_t high;            /* highest number that has arrived */
    unsigned uses;            /* open calls of it, and edges on it */
    struct order_edge *edges; /* on its calls */
    /* of the idle callers, which have no uses: the one that was idle longest first */
    struct order_caller *prev, *next;
    uint64_t ended[ORDER_WINDOW / 64], failed[ORDER_WINDOW / 64];
};

struct task_order {
    struct map callers;
    size_t callers_max;
    struct order_caller *first, *last; /* idle */
};

/* ---- bits ---- */

static bool bit(const uint64_t *bits, uint64_t number)
{
    return bits[number % ORDER_WINDOW / 64] >> number % 64 & 1;
}

static void bit_set(uint64_t *bits, uint64_t number, bool on)
{
    uint64_t mask = UINT64_C(1) << number % 64, *word = &bits[number % ORDER_WINDOW / 64];
    *word = on ? *word | mask : *word & ~mask;
}

static bool in_window(const struct order_caller *c, uint64_t number)
{
    return number <= c->high && c->high - number < ORDER_WINDOW;
}

static bool has_ended(const struct order_caller *c, uint64_t number)
{
    return in_window(c, number) && bit(c->ended, number);
}

/* ---- callers ---- */

static uint64_t key_of(uint32_t at, uint64_t session)
{
    return session ^ mix64(at);
}

/* The callers without open calls, in a list. */
static void idle_check(const struct task_order *o)
{
    assert(!o->first == !o->last && o->callers.count <= o->callers_max + 1);
    assert(!o->first || (!o->first->prev && !o->last->next && !o->first->uses));
}

static void idle_remove(struct task_order *o, struct order_caller *c)
{
    idle_check(o);
    assert(c->uses == 0);
    assert(c->prev ? c->prev->next == c : o->first == c);
    assert(c->next ? c->next->prev == c : o->last == c);
    *(c->prev ? &c->prev->next : &o->first) = c->next;
    *(c->next ? &c->next->prev : &o->last) = c->prev;
    c->prev = c->next = NULL;
}

static void caller_use(struct task_order *o, struct order_caller *c)
{
    assert(c->uses || !c->edges); /* an edge is a use */
    if (c->uses == 0)
        idle_remove(o, c);
    c->uses++;
    assert(!c->prev && !c->next && o->first != c); /* it is not idle */
}

static void caller_unuse(struct task_order *o, struct order_caller *c)
{
    assert(c->uses > 0);
    if (--c->uses)
        return;
    assert(!c->edges && !c->prev && !c->next);
    c->prev = o->last;
    *(o->last ? &o->last->next : &o->first) = c;
    o->last = c;
    idle_check(o);
}

static void caller_free(struct task_order *o, struct order_caller *c)
{
    assert(!c->edges && !c->uses);
    idle_remove(o, c);
    (void)map_remove(&o->callers, key_of(c->at, c->session));
    free(c);
}

static paramo_err caller_get(struct task_order *o, uint32_t at, uint64_t session,
                             struct order_caller **caller)
{
    uint64_t key = key_of(at, session);
    struct order_caller *c = map_get(&o->callers, key);
    if (c && (c->at != at || c->session != session))
        return err_set(PARAMO_E_INVALID, "the session %016" PRIx64 " is not one of this job", session);
    if (!c) {
        if (o->callers.count >= o->callers_max && !o->first)
            return err_set(PARAMO_E_FULL, "%zu callers have tasks that have not ended", o->callers_max);
        c = calloc(1, sizeof *c);
        if (!c)
            return err_memory(sizeof *c);
        c->at = at;
        c->session = session;
        c->uses = 1; /* for as long as this function uses it */
        paramo_err err = map_put(&o->callers, key, c);
        if (err) {
            free(c);
            return err;
        }
        if (o->callers.count > o->callers_max)
            caller_free(o, o->first);
        caller_unuse(o, c);
        assert(o->callers.count <= o->callers_max);
    }
    assert(c->at == at && c->session == session);
    *caller = c;
    return PARAMO_OK;
}

/* The caller's calls have numbers up to this one. A peer sends the number, so it may be UINT64_MAX. */
static void caller_reaches(struct order_caller *c, uint64_t number)
{
    if (number <= c->high)
        return;
    uint64_t more = number - c->high < ORDER_WINDOW ? number - c->high : ORDER_WINDOW;
    for (uint64_t i = 0; i < more; i++) {
        bit_set(c->ended, number - i, false);
        bit_set(c->failed, number - i, false);
    }
    c->high = number;
    assert(in_window(c, number));
}

/* ---- edges ---- */

static void edge_cut(struct task_order *o, struct order_edge *e)
{
    struct order_caller *on = e->on;
    if (!on)
        return;
    assert(e->prev ? e->prev->next == e : on->edges == e);
    *(e->prev ? &e->prev->next : &on->edges) = e->next;
    if (e->next)
        e->next->prev = e->prev;
    e->on = NULL;
    e->prev = e->next = NULL;
    assert(e->by->edges_open > 0);
    e->by->edges_open--;
    caller_unuse(o, on);
}

static void edge_join(struct task_order *o, struct order_edge *e, struct order_call *by,
                      struct order_caller *on, uint64_t number)
{
    assert(by->edges_open < by->edges_count); /* this one is counted already */
    assert(!on->edges || (on->uses && !on->edges->prev));
    *e = (struct order_edge){.by = by, .on = on, .number = number, .next = on->edges};
    caller_use(o, on);
    if (on->edges)
        on->edges->prev = e;
    on->edges = e;
    by->edges_open++;
}

void order_withdraw(struct task_order *o, struct order_call *call)
{
    for (size_t i = 0; i < call->edges_count; i++)
        edge_cut(o, &call->edges[i]);
    assert(call->edges_open == 0);
}

static uint32_t role_of(uint32_t node)
{
    return node == 1 ? PARAMO_ROLE_SCHEDULER : node % 2 ? PARAMO_ROLE_WORKER : PARAMO_ROLE_SERVER;
}

static bool was_sent_to(const struct order_name *name, uint32_t at)
{
    return name->to == at || (name->to <= PARAMO_GROUP_ALL && name->to & role_of(at));
}

/* ---- calls ---- */

static paramo_err name_one(struct task_order *o, struct order_call *call, const struct order_name *name)
{
    struct order_caller *on;
    if (name->session == call->session && name->number >= call->number)
        return err_set(PARAMO_E_INVALID,
                       "call %" PRIu64 " comes after call %" PRIu64 ", which is not earlier", call->number,
                       name->number);
    if (!was_sent_to(name, call->at))
        return PARAMO_OK;
    assert(call->edges);
    assert(call->edges_count < ORDER_NAMES_MAX);
    paramo_err err = caller_get(o, call->at, name->session, &on);
    if (err)
        return err;
    if (!has_ended(on, name->number))
        edge_join(o, &call->edges[call->edges_count++], call, on, name->number);
    else if (bit(on->failed, name->number))
        call->failed = true;
    return PARAMO_OK;
}

paramo_err order_arrive(struct task_order *o, struct order_call *call, const struct order_name *names,
                        size_t n)
{
    assert(n <= ORDER_NAMES_MAX);
    call->failed = false;
    call->edges = NULL;
    call->edges_count = call->edges_open = 0;
    call->next = NULL;
    paramo_err err = caller_get(o, call->at, call->session, &call->caller);
    if (err)
        return err;
    caller_use(o, call->caller);
    if (n)
        call->edges = malloc(n * sizeof *call->edges);
    if (n && !call->edges)
        err = err_memory(n * sizeof *call->edges);
    for (size_t i = 0; i < n && !err; i++)
        err = name_one(o, call, &names[i]);
    if (err || call->failed)
        order_withdraw(o, call);
    if (!err) {
        caller_reaches(call->caller, call->number);
        assert(call->caller->uses > 0 && call->edges_open <= call->edges_count);
        return PARAMO_OK;
    }
    free(call->edges);
    call->edges = NULL;
    caller_unuse(o, call->caller);
    return err;
}

struct order_call *order_end(struct task_order *o, struct order_call *call, bool failed)
{
    struct order_caller *c = call->caller;
    struct order_call *ready = NULL, **at = &ready;
    assert(order_may_begin(call));
    assert(c->uses > 0 && c->at == call->at && c->session == call->session);
    if (in_window(c, call->number)) {
        bit_set(c->ended, call->number, true);
        bit_set(c->failed, call->number, failed);
    }
    for (struct order_edge *e = c->edges, *next; e; e = next) {
        next = e->next;
        if (e->number != call->number)
            continue;
        struct order_call *by = e->by;
        edge_cut(o, e);
        by->failed |= failed;
        if (by->edges_open && !by->failed)
            continue;
        if (by->edges_open) { /* it fails at once, without waiting for the others */
            while (next && next->by == by)
                next = next->next;
            order_withdraw(o, by);
        }
        *at = by;
        at = &by->next;
        by->next = NULL;
    }
    free(call->edges);
    call->edges = NULL;
    caller_unuse(o, c);
    assert(!ready || order_may_begin(ready));
    return ready;
}

/* ---- life ---- */

paramo_err order_create(size_t callers, struct task_order **order)
{
    assert(callers > 0);
    struct task_order *o = calloc(1, sizeof *o);
    if (!o)
        return err_memory(sizeof *o);
    map_init(&o->callers);
    o->callers_max = callers;
    idle_check(o);
    *order = o;
    return PARAMO_OK;
}

void order_destroy(struct task_order *o)
{
    if (!o)
        return;
    while (o->first)
        caller_free(o, o->first);
    assert(o->callers.count == 0);
    map_fini(&o->callers);
    free(o);
}
