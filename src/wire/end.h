/*
 * END: the scheduler tells a member that the job is over for it: OK, NODE_LOST (which node), SHUTDOWN (why),
 * FENCED. It never knows members. Tests: test/wire/test_calls.c.
 */
#ifndef WIRE_END_H
#define WIRE_END_H

#include "base/cursor.h"

void end_encode(paramo_err status, const char *text, struct writer *w);
/* text has room for CALL_TEXT_MAX. */
MUST_USE paramo_err end_decode(struct reader *r, paramo_err *status, char *text);

#endif
