/*
 * The application's requests, and the servers' handler. It must never know which answer is right (ledger.h,
 * cells.h). Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_OPS_H
#define SIM_OPS_H

#include "paramo/paramo.h"

struct machine;

void op_issue(struct machine *m, unsigned customer);
/* Sends what the customer's filters hold back. */
void op_flush(struct machine *m, unsigned customer);
/* The newest request, if this machine has issued it. */
void op_cancel(struct machine *m);
void op_handler(void *arg, paramo_request *request, const paramo_request_info *info);

#endif
