/*
 * The count of transitions and pairs, below the files that read states: cover.c (nodes, shards, workers) and
 * cover_sched.c (the scheduler and its store). No other file includes it. It must never read a state of the product.
 * Tests: test/sim/test_cover.c.
 */
#ifndef SIM_COVER_IMPL_H
#define SIM_COVER_IMPL_H

#include "sim/world.h"

enum cover_machine {
#define MACHINE(name, text) COVER_##name,
    COVER_MACHINES(MACHINE)
#undef MACHINE
        COVER_MACHINES_COUNT
};

#define COVER_STATES(X)                                                                                      \
    X(none)                                                                                                  \
    X(gone)                                                                                                  \
    X(killed)                                                                                                \
    X(joining)                                                                                               \
    X(joined)                                                                                                \
    X(seeking)                                                                                               \
    X(leaving)                                                                                               \
    X(ended)                                                                                                 \
    X(failed)                                                                                                \
    X(waiting)                                                                                               \
    X(absent)                                                                                                \
    X(dead)                                                                                                  \
    X(left)                                                                                                  \
    X(gathering)                                                                                             \
    X(running)                                                                                               \
    X(ending)                                                                                                \
    X(over)                                                                                                  \
    X(planned)                                                                                               \
    X(copying)                                                                                               \
    X(full)                                                                                                  \
    X(pausing)                                                                                               \
    X(paused)                                                                                                \
    X(filling)                                                                                               \
    X(last)                                                                                                  \
    X(passing)                                                                                               \
    X(idle)                                                                                                  \
    X(connecting)                                                                                            \
    X(up)                                                                                                    \
    X(pause)                                                                                                 \
    X(lost)                                                                                                  \
    X(holding)                                                                                               \
    X(held)                                                                                                  \
    X(loading)                                                                                               \
    X(loaded)                                                                                                \
    X(restoring)                                                                                             \
    X(open)                                                                                                  \
    X(starting)                                                                                              \
    X(ready)                                                                                                 \
    X(watch)                                                                                                 \
    X(grant)                                                                                                 \
    X(campaign)                                                                                              \
    X(read)                                                                                                  \
    X(leads)                                                                                                 \
    X(unsure)                                                                                                \
    X(fenced)

enum cover_state {
#define STATE(name) IS_##name,
    COVER_STATES(STATE)
#undef STATE
        COVER_STATES_COUNT
};

enum { NO_PEER = UINT8_MAX };
_Static_assert((int)SCHEDULE_NODES_MAX < (int)NO_PEER, "a peer is a node");

/* An instance of a state machine, as last seen. */
struct instance {
    uint64_t key; /* among those of its machine in this process */
    uint8_t machine, state, peer;
    uint32_t faults; /* kinds of faults that have struck it since */
};

/* The instances of one process, in the order of the checks. */
struct cover {
    struct instance *seen;
    size_t count, room;
    uint32_t born[COVER_MACHINES_COUNT]; /* faults since the newest instance appeared */
};

struct watch {
    struct machine *m;
    struct cover *c;
    size_t at; /* the instances before this place have been seen */
};

/* A machine's process has made a transition; faults: the kinds that have struck the instance before it. */
void cover_transition_seen(struct machine *m, unsigned machine, unsigned from, unsigned to, uint32_t faults);
/* An instance is gone, or in another state. */
void cover_watch_state(struct watch *l, enum cover_machine machine, uint64_t key, enum cover_state state,
                       uint64_t peer);

/* peer: the incarnation of the process at its other end; 0: none. */
static inline void watch_state(struct watch *l, enum cover_machine machine, uint64_t key,
                               enum cover_state state, uint64_t peer)
{
    const struct instance *x = &l->c->seen[l->at];
    if (l->at < l->c->count && x->key == key && x->machine == machine && x->state == state)
        l->at++;
    else
        cover_watch_state(l, machine, key, state, peer);
}

#endif
