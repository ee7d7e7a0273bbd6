/*
 * The model of user tasks: which calls were made, what has run on which node, and how a call may end. It must never
 * call or run anything. Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_TASK_JUDGE_H
#define SIM_TASK_JUDGE_H

#include "sim/task_calls.h"

struct world;
struct machine;
struct customer;

/* A function runs. NULL: it must not, or what it is given is wrong. */
struct task_run *task_judge_begins(struct machine *m, const paramo_task_info *info);
void task_judge_fails(struct task_run *run, paramo_err status);
void task_judge_answered(struct task_call *call, uint32_t node, const void *answer, size_t bytes);
void task_judge_ended(struct task_call *call, paramo_err status);
/* Has the customer a call in flight that was issued up to this timestamp? */
bool task_judge_in_flight(const struct world *w, const struct customer *c, uint64_t ts);
/* The function has returned, or a callback of a subtask is about to. */
void task_judge_returns(struct task_run *run);
void task_judge_part_ends(struct task_run *run);
/* After each event: what the customer of the machine's tasks keeps, and that no task waits for nothing. */
void task_judge_check(const struct machine *m);

#endif
