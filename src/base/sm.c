#include "base/sm.h"

#include <stdlib.h>

#include "base/log.h"

static const char *state_name(const struct sm *sm, unsigned state)
{
    return state < SM_STATES_MAX && sm->state[state].name ? sm->state[state].name : "an unknown state";
}

void sm_broken(const struct sm *sm, unsigned from, unsigned to)
{
    log_error("internal error: state machine %s may not move from %s to %s", sm->name, state_name(sm, from),
              state_name(sm, to));
    abort();
}
