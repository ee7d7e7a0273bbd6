#include "sim/machine_state.h"

#include "node/member_slot.h"

struct member *machine_member(const struct machine *m)
{
    return m->up && m->made->own ? m->made->own->member : NULL;
}

bool machine_joined(const struct machine *m)
{
    return m->up && m->seen == MEMBER_SLOT_JOINED;
}
