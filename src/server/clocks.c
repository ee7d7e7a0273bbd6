#include "server/clocks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct clock_apart {
    struct clock_apart *next;
    unsigned set;
    uint64_t last; /* the highest number in which it differs from the own one */
    struct dedup dedup;
};

void clocks_init(struct clocks *c)
{
    memset(c, 0, sizeof *c);
    c->arcs[0] = RING_ARCS;
}

void clock_init(struct clock *clock)
{
    dedup_init(&clock->own);
    clock->apart = NULL;
}

/* The set's arcs are like all others. */
static void set_end(struct clocks *c, unsigned set)
{
    for (size_t a = 0; a < RING_ARCS && c->arcs[set]; a++)
        if (c->set_of[a] == set) {
            c->set_of[a] = 0;
            c->arcs[set]--;
            c->arcs[0]++;
        }
}

static void apart_end(struct clocks *c, struct clock_apart **at)
{
    struct clock_apart *apart = *at;
    *at = apart->next;
    assert(c->senders[apart->set]);
    if (--c->senders[apart->set] == 0)
        set_end(c, apart->set);
    free(apart);
}

void clock_fini(struct clocks *c, struct clock *clock)
{
    while (clock->apart)
        apart_end(c, &clock->apart);
}

static void arc_move(struct clocks *c, unsigned arc, unsigned set)
{
    c->arcs[c->set_of[arc]]--;
    c->arcs[set]++;
    c->set_of[arc] = (uint8_t)set;
}

paramo_err clocks_arrive(struct clocks *c, unsigned first, unsigned count, unsigned *set)
{
    unsigned found = 1;
    assert(count && first < RING_ARCS && count <= RING_ARCS - first);
    while (found < CLOCK_SETS && (c->arcs[found] || c->senders[found]))
        found++;
    if (found == CLOCK_SETS)
        return err_set(PARAMO_E_FULL, "arcs of %d arrivals still have records of their own", CLOCK_SETS - 1);
    for (unsigned a = first; a < first + count; a++)
        arc_move(c, a, found);
    *set = found;
    return PARAMO_OK;
}

void clocks_add(struct clocks *c, unsigned set, unsigned arc)
{
    arc_move(c, arc, set);
}

/* The highest number in which two records of one floor differ; 0: none. */
static uint64_t last_difference(const struct dedup *a, const struct dedup *b)
{
    uint64_t last = 0;
    assert(a->floor == b->floor);
    for (unsigned word = 0; word < DATA_WINDOW / 64; word++)
        for (uint64_t bits = a->bits[word] ^ b->bits[word]; bits; bits &= bits - 1) {
            /* bit i of the window is the number of that remainder in [floor, floor + DATA_WINDOW) */
            uint64_t i = 64 * word + (uint64_t)__builtin_ctzll(bits);
            uint64_t number = a->floor + (i + DATA_WINDOW - a->floor % DATA_WINDOW) % DATA_WINDOW;
            last = number > last ? number : last;
        }
    return last;
}

paramo_err clock_arrive(struct clocks *c, struct clock *clock, unsigned set, const struct dedup *theirs)
{
    struct clock_apart *apart = calloc(1, sizeof *apart);
    if (!apart)
        return err_memory(sizeof *apart);
    apart->set = set;
    if (theirs)
        apart->dedup = *theirs;
    else
        dedup_init(&apart->dedup);
    clock_raise(c, clock, apart->dedup.floor); /* both are what one sender has said */
    dedup_raise(&apart->dedup, clock->own.floor);
    apart->last = last_difference(&clock->own, &apart->dedup);
    if (!apart->last) {
        free(apart);
        return PARAMO_OK;
    }
    apart->next = clock->apart;
    clock->apart = apart;
    c->senders[set]++;
    return PARAMO_OK;
}

void clocks_arrived(struct clocks *c, unsigned set)
{
    if (!c->senders[set])
        set_end(c, set);
}

void clocks_join(struct clocks *c, unsigned first, unsigned count, unsigned set)
{
    for (unsigned a = first; a < first + count; a++)
        arc_move(c, a, c->senders[set] ? set : 0);
}

void clocks_depart(struct clocks *c, unsigned first, unsigned count)
{
    for (unsigned a = first; a < first + count; a++)
        arc_move(c, a, 0);
}

unsigned clocks_sets(const struct clocks *c)
{
    unsigned n = 0;
    for (unsigned set = 1; set < CLOCK_SETS; set++)
        n += c->arcs[set] || c->senders[set];
    return n;
}

size_t clock_count(const struct clock *clock, size_t *bytes)
{
    size_t n = 0;
    for (const struct clock_apart *apart = clock->apart; apart; apart = apart->next)
        n++;
    *bytes += n * sizeof *clock->apart;
    return n;
}

void clock_raise(struct clocks *c, struct clock *clock, uint64_t floor)
{
    dedup_raise(&clock->own, floor);
    for (struct clock_apart **at = &clock->apart; *at;) {
        dedup_raise(&(*at)->dedup, floor);
        if ((*at)->last < clock->own.floor || !c->arcs[(*at)->set])
            apart_end(c, at);
        else
            at = &(*at)->next;
    }
}

const struct dedup *clock_of(const struct clock *clock, unsigned set)
{
    for (const struct clock_apart *apart = clock->apart; set && apart; apart = apart->next)
        if (apart->set == set)
            return &apart->dedup;
    return &clock->own;
}

enum dedup_state clock_look(const struct clock *clock, unsigned set, uint64_t number)
{
    return dedup_look(clock_of(clock, set), number);
}

enum dedup_state clock_look_all(const struct clock *clock, uint64_t number)
{
    enum dedup_state state = dedup_look(&clock->own, number);
    for (const struct clock_apart *apart = clock->apart; apart && state == DEDUP_DONE; apart = apart->next)
        state = dedup_look(&apart->dedup, number);
    return state;
}

void clock_record(struct clock *clock, uint64_t number)
{
    if (dedup_look(&clock->own, number) == DEDUP_NEW)
        dedup_record(&clock->own, number);
    for (struct clock_apart *apart = clock->apart; apart; apart = apart->next)
        if (dedup_look(&apart->dedup, number) == DEDUP_NEW)
            dedup_record(&apart->dedup, number);
}
