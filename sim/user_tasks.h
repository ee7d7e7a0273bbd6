/*
 * User tasks in the simulator: which node calls what, in which order, and what the functions do. The calls go through
 * the product's own code (src/node/tasks.c), whose thread is played as an event. It must never know which end is
 * right (task_judge.h). Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_USER_TASKS_H
#define SIM_USER_TASKS_H

struct machine;

/* A server's or worker's process is up and has not begun to join. */
void user_tasks_start(struct machine *m);
/* It has joined. */
void user_tasks_join(struct machine *m);
/* It is about to leave: as paramo_stop has it, it takes no more calls. */
void user_tasks_leave(struct machine *m);
/* It dies. */
void user_tasks_end(struct machine *m);
/* The application's turn: it may call a task, or cancel a call. */
void user_tasks_turn(struct machine *m);

#endif
