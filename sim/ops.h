/*
 * The application's requests, and the servers' handler. It must never know which answer is right (ledger.h,
 * cells.h). Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_OPS_H
#define SIM_OPS_H

#include <stdbool.h>

#include "paramo/task.h"

struct machine;
struct task_run;
struct dice;

void op_issue(struct machine *m, unsigned customer);
/* A push or pull of some rows, as a subtask: on the thread of the machine's tasks, or in a callback of one of its
 * subtasks. `done` gets the request, and hands it to op_done. The request has ended if the call fails. */
paramo_err op_subtask(struct task_run *run, struct machine *m, paramo_task *task, bool push,
                      struct dice *dice, paramo_callback done);
/* The callback of all requests; arg: struct op. */
void op_done(void *arg, uint64_t ts, paramo_err status);
/* Sends what the customer's filters hold back. */
void op_flush(struct machine *m, unsigned customer);
/* The newest request, if this machine has issued it. */
void op_cancel(struct machine *m);
void op_handler(void *arg, paramo_request *request, const paramo_request_info *info);

#endif
