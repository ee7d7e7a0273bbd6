/*
 * State machines. A machine is an enum of states, a table of the moves that it may make, and one function
 * that makes a move: it calls sm_check() and then assigns the state. No other code assigns a state, except
 * where an instance begins. A move that the table does not have is a defect in Paramo: sm_check logs it and
 * aborts.
 *
 *     static const struct sm door = {"door", {[DOOR_OPEN] = {"open", SM_TO(DOOR_SHUT)},
 *                                             [DOOR_SHUT] = {"shut", SM_TO(DOOR_OPEN) | SM_TO(DOOR_LOCKED)},
 *                                             [DOOR_LOCKED] = {"locked", SM_TO(DOOR_SHUT)}}};
 *     static void door_move(struct door *d, enum door_state to)
 *     {
 *         sm_check(&door, d->state, to);
 *         d->state = to;
 *     }
 *
 * This module must never know a machine. scripts/layers finds assignments beside the functions of moves.
 * Source of the idea: dqlite, src/lib/sm.h. Tests: test/base/test_sm.c.
 */
#ifndef BASE_SM_H
#define BASE_SM_H

#include <stdbool.h>
#include <stdint.h>

enum { SM_STATES_MAX = 9 };

struct sm {
    const char *name;
    struct {
        const char *name;
        uint32_t next; /* SM_TO() of each state that may follow */
    } state[SM_STATES_MAX];
};

#define SM_TO(state) (UINT32_C(1) << (state))

static inline bool sm_may(const struct sm *sm, unsigned from, unsigned to)
{
    return from < SM_STATES_MAX && to < SM_STATES_MAX && (sm->state[from].next & SM_TO(to));
}

/* Logs the move that the machine may not make and aborts. */
_Noreturn void sm_broken(const struct sm *sm, unsigned from, unsigned to);

static inline void sm_check(const struct sm *sm, unsigned from, unsigned to)
{
    if (__builtin_expect(!sm_may(sm, from, to), 0))
        sm_broken(sm, from, to);
}

#endif
