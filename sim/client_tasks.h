/*
 * What an application does on a thread of its own: it saves and loads tables. It must never drive the
 * cluster. Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_CLIENT_TASKS_H
#define SIM_CLIENT_TASKS_H

#include <stdint.h>

struct machine;

struct client_task;

/* A new disk. */
void client_task_disk(struct machine *m, uint64_t seed);
/* Saves or loads a table, by the draw, while the machine does other work; one at a time. */
void client_task_start(struct machine *m, unsigned customer, uint64_t draw);
/* After each event. */
void client_task_step(struct machine *m);
/* The process is dead and its customer closed: the task ends here. */
void client_task_die(struct machine *m);
/* The power of its machine has failed. */
void client_task_power_fails(struct machine *m);
/* Are the files that must be there whole? */
void client_task_check_files(struct machine *m);

#endif
