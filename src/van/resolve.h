/*
 * Names to addresses without stopping a lane: the system's resolver blocks, so each question gets a thread of
 * its own, whose answer is posted to the lane. A question that was dropped is answered to nobody. Tests:
 * test/van/test_tcp.c.
 */
#ifndef VAN_RESOLVE_H
#define VAN_RESOLVE_H

#include "env/lane.h"
#include "van/addr.h"

struct resolve;

/* answer comes on the lane, once, unless resolve_drop was called there before: list, or why not. */
MUST_USE paramo_err resolve_start(struct lane *lane, const char *host, uint16_t port,
                                  void (*answer)(void *arg, const struct addr_list *list, paramo_err why,
                                                 const char *text),
                                  void *arg, struct resolve **question);
/* On the lane, before the answer came. */
void resolve_drop(struct resolve *question);

#endif
