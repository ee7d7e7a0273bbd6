/*
 * Resolves names without stopping a lane. The system's resolver blocks, so each question has its own thread,
 * which posts the answer to the lane. A dropped question gets no answer. This module never knows
 * connections. Tests: test/van/test_tcp.c.
 */
#ifndef VAN_RESOLVE_H
#define VAN_RESOLVE_H

#include "env/lane.h"
#include "van/addr.h"

struct resolve;

/* answer is called on the lane, once, unless resolve_drop was called before: with list, or with the error. */
MUST_USE paramo_err resolve_start(struct lane *lane, const char *host, uint16_t port,
                                  void (*answer)(void *arg, const struct addr_list *list, paramo_err why,
                                                 const char *text),
                                  void *arg, struct resolve **question);
/* On the lane, before answer was called. */
void resolve_drop(struct resolve *question);

#endif
