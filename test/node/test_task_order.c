/* The order of tasks: calls of several callers arrive at two nodes in any order, some never; they end in any order,
 * some with an error. After each event: no call begins before those that it names have ended at its node, none is
 * forgotten, and none that names a failed one runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "node/task_order.h"
#include "unit.h"

enum { CALLERS = 4, CALLS = 300, NODES = 2, NAMES = 3 };
static const uint32_t node_ids[NODES] = {8, 9}; /* a server and a worker */

enum state { UNSENT, LOST, ON_ITS_WAY, HELD, RUNNING, DONE };

struct call {
    struct order_name name; /* as others name it */
    unsigned names[NAMES], names_count;
    enum state state[NODES];
    bool failed[NODES];
    struct order_call order[NODES];
};

struct world {
    struct task_order *order;
    uint64_t random, high[CALLERS];
    struct call call[CALLS];
    unsigned issued;
};

static uint64_t draw(struct world *w, uint64_t below)
{
    return mix64(w->random += UINT64_C(0x9e3779b97f4a7c15)) % below;
}

static bool goes_to(const struct call *c, unsigned node)
{
    uint32_t to = c->name.to;
    return to == node_ids[node] || (to <= 7 && to & (node ? 4u : 2u));
}

/* ---- the judge ---- */

static bool over(const struct call *c, unsigned node)
{
    return !goes_to(c, node) || c->state[node] == DONE;
}

static void judge_begin(const struct world *w, const struct call *c, unsigned node)
{
    const struct order_call *o = &c->order[node];
    bool some_failed = false;
    for (unsigned i = 0; i < c->names_count; i++) {
        const struct call *named = &w->call[c->names[i]];
        some_failed |= goes_to(named, node) && named->state[node] == DONE && named->failed[node];
        if (!o->failed)
            assert_true(over(named, node)); /* execute-after */
    }
    if (o->failed)
        assert_true(some_failed);
    else
        for (unsigned i = 0; i < c->names_count; i++) {
            const struct call *named = &w->call[c->names[i]];
            if (goes_to(named, node))
                assert_false(named->failed[node]);
        }
}

/* Each held call waits for one that has not ended, or whose number is not known any more. */
static void judge_held(const struct world *w)
{
    for (unsigned i = 0; i < w->issued; i++)
        for (unsigned node = 0; node < NODES; node++) {
            const struct call *c = &w->call[i];
            bool waits = c->state[node] != HELD;
            for (unsigned k = 0; k < c->names_count; k++) {
                const struct call *named = &w->call[c->names[k]];
                waits |= goes_to(named, node) &&
                         (named->state[node] != DONE ||
                          w->high[named->name.session - 1] - named->name.number >= ORDER_WINDOW);
            }
            assert_true(waits);
        }
}

/* ---- events ---- */

static void begins(struct world *w, struct call *c, unsigned node)
{
    judge_begin(w, c, node);
    c->state[node] = RUNNING;
}

static struct call *call_of(struct order_call *o, unsigned node)
{
    return (struct call *)((char *)(o - node) - offsetof(struct call, order));
}

static void issue(struct world *w)
{
    struct call *c = &w->call[w->issued];
    uint64_t session = draw(w, CALLERS);
    uint64_t step = draw(w, 20) ? 1 + draw(w, 3) : 1 + draw(w, 2 * ORDER_WINDOW);
    const uint32_t targets[] = {8, 9, 2, 4, 6, 7};
    w->high[session] += step;
    c->name = (struct order_name){session + 1, w->high[session], targets[draw(w, 6)]};
    c->names_count = w->issued ? (unsigned)draw(w, NAMES + 1) : 0;
    for (unsigned i = 0; i < c->names_count; i++) {
        unsigned back = (unsigned)draw(w, draw(w, 4) ? 8 : CALLS) + 1;
        c->names[i] = back > w->issued ? 0 : w->issued - back;
    }
    w->issued++;
    for (unsigned node = 0; node < NODES; node++)
        if (goes_to(c, node))
            c->state[node] = draw(w, 30) ? ON_ITS_WAY : LOST;
}

static void arrive(struct world *w, struct call *c, unsigned node)
{
    struct order_name names[NAMES];
    for (unsigned i = 0; i < c->names_count; i++)
        names[i] = w->call[c->names[i]].name;
    struct order_call *o = &c->order[node];
    *o = (struct order_call){.at = node_ids[node], .session = c->name.session, .number = c->name.number};
    assert_int_equal(order_arrive(w->order, o, names, c->names_count), PARAMO_OK);
    c->state[node] = HELD;
    if (order_may_begin(o))
        begins(w, c, node);
}

static void end(struct world *w, struct call *c, unsigned node)
{
    c->failed[node] = c->order[node].failed || draw(w, 12) == 0;
    c->state[node] = DONE;
    for (struct order_call *o = order_end(w->order, &c->order[node], c->failed[node]), *next; o; o = next) {
        next = o->next;
        struct call *ready = call_of(o, node);
        assert_int_equal(ready->state[node], HELD);
        begins(w, ready, node);
    }
}

/* Something that can happen to a call that is drawn. */
static bool step(struct world *w, bool all)
{
    unsigned first = (unsigned)draw(w, w->issued);
    for (unsigned i = 0; i < (all ? w->issued : 1); i++)
        for (unsigned node = 0; node < NODES; node++) {
            struct call *c = &w->call[(first + i) % w->issued];
            if (c->state[node] == ON_ITS_WAY)
                arrive(w, c, node);
            else if (c->state[node] == RUNNING)
                end(w, c, node);
            else
                continue;
            return true;
        }
    return false;
}

static void play(uint64_t seed)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->random = seed;
    assert_int_equal(order_create(seed % 3 ? ORDER_CALLERS_MAX : CALLERS * NODES, &w->order), PARAMO_OK);
    while (w->issued < CALLS) {
        if (!w->issued || draw(w, 3) == 0)
            issue(w);
        else
            (void)step(w, draw(w, 8) == 0);
        if (w->issued % 16 == 0)
            judge_held(w);
    }
    while (step(w, true))
        ;
    judge_held(w);
    for (unsigned i = 0; i < CALLS; i++) /* what is held waits for one that was lost: its deadline ends it */
        for (unsigned node = 0; node < NODES; node++)
            if (w->call[i].state[node] == HELD) {
                order_withdraw(w->order, &w->call[i].order[node]);
                w->call[i].order[node].failed = true;
                w->call[i].state[node] = RUNNING;
                end(w, &w->call[i], node);
                while (step(w, true))
                    ;
            }
    order_destroy(w->order);
    free(w);
}

static void any_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= UNIT_SEEDS(400); seed++)
        play(seed);
}

/* ---- what is drawn rarely ---- */

static struct order_call arrived(struct task_order *o, uint64_t session, uint64_t number)
{
    struct order_call c = {.at = 8, .session = session, .number = number};
    assert_int_equal(order_arrive(o, &c, NULL, 0), PARAMO_OK);
    return c;
}

static void mistakes_and_bounds(void **state)
{
    (void)state;
    struct task_order *o;
    assert_int_equal(order_create(2, &o), PARAMO_OK);
    struct order_call one = arrived(o, 1, 5), two = arrived(o, 2, 5);
    struct order_call more = {.at = 8, .session = 3, .number = 1};
    assert_int_equal(order_arrive(o, &more, NULL, 0), PARAMO_E_FULL); /* both have open calls */
    struct order_call self = {.at = 8, .session = 1, .number = 6};
    const struct order_name names[] = {{1, 6, 8}, {3, 1, 8}};
    assert_int_equal(order_arrive(o, &self, names, 1), PARAMO_E_INVALID); /* it names itself */
    assert_int_equal(order_arrive(o, &self, &names[1], 1), PARAMO_E_FULL);
    assert_null(order_end(o, &one, false));
    assert_int_equal(order_arrive(o, &more, NULL, 0), PARAMO_OK); /* in the place of the first */
    assert_null(order_end(o, &more, false));
    assert_null(order_end(o, &two, false));
    /* The first is not known any more: its call counts as one that has not arrived. */
    const struct order_name first = {1, 5, 8};
    struct order_call late = {.at = 8, .session = 3, .number = 2};
    assert_int_equal(order_arrive(o, &late, &first, 1), PARAMO_OK);
    assert_false(order_may_begin(&late));
    order_withdraw(o, &late);
    assert_true(order_may_begin(&late));
    assert_null(order_end(o, &late, true));
    struct order_call last = arrived(o, 3, UINT64_MAX); /* there is no number after it */
    assert_null(order_end(o, &last, false));
    order_destroy(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_order), cmocka_unit_test(mistakes_and_bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
