#include "base/spread.h"

enum { EXACT = 8, EXACT_BITS = 3 }; /* size classes per doubling */

unsigned spread_class(uint64_t value)
{
    if (value < EXACT)
        return (unsigned)value;
    unsigned top = 63 - (unsigned)__builtin_clzll(value);
    unsigned at = (top - EXACT_BITS + 1) * EXACT + (unsigned)(value >> (top - EXACT_BITS) & (EXACT - 1));
    return at < SPREAD_CLASSES ? at : SPREAD_CLASSES - 1;
}

static uint64_t class_end(unsigned at)
{
    if (at < EXACT)
        return at;
    if (at == SPREAD_CLASSES - 1)
        return UINT64_MAX;
    unsigned shift = at / EXACT - 1;
    return ((uint64_t)(EXACT + at % EXACT + 1) << shift) - 1;
}

void spread_add(struct spread *s, uint64_t value)
{
    s->count++;
    s->in[spread_class(value)]++;
    s->max = value > s->max ? value : s->max;
}

void spread_join(struct spread *to, const struct spread *from)
{
    to->count += from->count;
    to->max = from->max > to->max ? from->max : to->max;
    for (unsigned i = 0; i < SPREAD_CLASSES; i++)
        to->in[i] += from->in[i];
}

uint64_t spread_quantile(const struct spread *s, double share)
{
    uint64_t seen = 0;
    for (unsigned i = 0; i < SPREAD_CLASSES; i++) {
        seen += s->in[i];
        if (s->in[i] && (double)seen >= share * (double)s->count)
            return class_end(i) < s->max ? class_end(i) : s->max;
    }
    return s->max;
}
