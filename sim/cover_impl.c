#include "sim/cover_impl.h"

#include <stdlib.h>

#include "sim/judge.h"

static const char *const state_names[] = {
#define NAME(name) #name,
    COVER_STATES(NAME)
#undef NAME
};

static const char *const machine_names[] = {
#define NAME(name, text) #name,
    COVER_MACHINES(NAME)
#undef NAME
};

/* 1 + enum cover_transition; 0: not a transition */
static const uint16_t table[COVER_MACHINES_COUNT][COVER_STATES_COUNT][COVER_STATES_COUNT] = {
#define CELL(machine, from, to) [COVER_##machine][IS_##from][IS_##to] = 1 + COVER_##machine##_##from##_##to,
    COVER_TRANSITIONS(CELL)
#undef CELL
};

_Static_assert(FAULT_KINDS_COUNT <= 32, "a mask has a bit for each kind");

void cover_transition_seen(struct machine *m, unsigned machine, unsigned from, unsigned to, uint32_t faults)
{
    struct world *w = m->world;
    if (!table[machine][from][to] && to == IS_killed)
        return; /* a process may be killed in any state; states that are met too seldom have no line */
    if (!table[machine][from][to]) {
        judge_broken(w, "%s: a %s went from %s to %s, which is no transition of it", m->name,
                     machine_names[machine], state_names[from], state_names[to]);
        return;
    }
    unsigned transition = table[machine][from][to] - 1U;
    w->coverage.transitions[transition]++;
    for (; faults; faults &= faults - 1)
        w->coverage.pairs[transition][__builtin_ctz(faults)]++;
}

/* ---- looking ------------------------------------------------------------------------------------------- */

/* The machine whose process has this incarnation, if it is up. */
static uint8_t peer_of(const struct world *w, uint64_t incarnation)
{
    for (uint32_t k = 0; k < w->count; k++)
        if (w->machines[k].up && w->machines[k].made->own &&
            w->machines[k].made->own->incarnation == incarnation)
            return (uint8_t)k;
    return NO_PEER;
}

static void instance_comes(struct watch *l, enum cover_machine machine, uint64_t key, enum cover_state state,
                           uint64_t peer)
{
    struct cover *c = l->c;
    if (c->count == c->room) {
        c->room = c->room ? 2 * c->room : 32;
        c->seen = realloc(c->seen, c->room * sizeof *c->seen);
        if (!c->seen)
            abort();
    }
    c->seen[c->count++] = (struct instance){.key = key,
                                            .machine = (uint8_t)machine,
                                            .state = (uint8_t)state,
                                            .peer = peer ? peer_of(l->m->world, peer) : NO_PEER};
    cover_transition_seen(l->m, machine, IS_none, state, c->born[machine]);
    c->born[machine] = 0;
}

void cover_watch_state(struct watch *l, enum cover_machine machine, uint64_t key, enum cover_state state,
                       uint64_t peer)
{
    struct cover *c = l->c;
    size_t i = l->at;
    while (i < c->count && (c->seen[i].key != key || c->seen[i].machine != machine))
        i++;
    if (i == c->count)
        instance_comes(l, machine, key, state, peer);
    struct instance found = c->seen[i];
    c->seen[i] = c->seen[l->at];
    if (found.state != state) {
        cover_transition_seen(l->m, machine, found.state, state, found.faults);
        found.state = (uint8_t)state;
        found.faults = 0;
    }
    c->seen[l->at++] = found;
}
