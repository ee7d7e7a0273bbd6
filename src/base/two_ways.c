#include "base/two_ways.h"

void two_ways_init(struct two_ways *t)
{
    *t = (struct two_ways){.stay = 1, .stay_next = TWO_WAYS_STAY_MIN};
}

/* A trial has ended, or the better way has failed: stays with this way. */
static void stay_with(struct two_ways *t, bool second)
{
    if (second != t->better)
        t->stay_next = TWO_WAYS_STAY_MIN;
    else if (t->stay_next < TWO_WAYS_STAY_MAX)
        t->stay_next *= 2;
    t->second = t->better = second;
    t->stay = t->stay_next;
}

static bool second_pays(const struct two_ways *t)
{
    return t->cost[true] && t->cost[true] < t->cost[false] - t->cost[false] / 32;
}

void two_ways_window(struct two_ways *t, uint64_t cost)
{
    bool trial = t->second != t->better;
    if (!cost) {
        t->second = t->better = false;
        t->stay = 1;
        return;
    }
    uint64_t before = t->cost[t->second];
    t->cost[t->second] = trial || !before ? cost : (3 * before + cost) / 4;
    if (trial)
        stay_with(t, second_pays(t));
    else if (--t->stay == 0)
        t->second = !t->better;
}

void two_ways_fail(struct two_ways *t)
{
    t->cost[true] = 0;
    stay_with(t, false);
}
