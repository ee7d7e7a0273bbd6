/*
 * HEARTBEAT: a member's sign of life (the scheduler sends the same back, empty): how far each of its lanes
 * has come, so that a busy node is told from a wedged one. Its header is struct wire_heartbeat (head.h). It never
 * knows what a lane does. Tests: test/wire/test_calls.c.
 */
#ifndef WIRE_HEARTBEAT_H
#define WIRE_HEARTBEAT_H

#include <stdbool.h>

#include "base/cursor.h"

enum { HEARTBEAT_LANES_MAX = 256 };

struct heartbeat_lane {
    uint64_t steps; /* rises with each thing done */
    bool busy;      /* something waits to be done */
};

struct heartbeat {
    uint32_t lanes;
    struct heartbeat_lane lane[HEARTBEAT_LANES_MAX];
};

void heartbeat_encode(const struct heartbeat *m, struct writer *w);
MUST_USE paramo_err heartbeat_decode(struct reader *r, struct heartbeat *m);

#endif
