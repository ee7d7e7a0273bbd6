/*
 * Checkpoints of the job: saves, loads, and that their files are whole. It must never know what
 * rows mean (bounds.h). Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_CKPTS_H
#define SIM_CKPTS_H

#include <stdbool.h>
#include <stdint.h>

struct world;
struct machine;
struct fault;

struct ckpts;
struct scheduler_config;
/* Only if the schedule has checkpoints. */
void ckpts_make(struct world *w);
void ckpts_free(struct world *w);
/* The machine's process begins or ends; its scheduler begins. */
void ckpts_machine(struct machine *m);
void ckpts_machine_dies(struct machine *m);
void ckpts_scheduler(const struct machine *m, struct scheduler_config *config);
/* False: the fault cannot strike now. */
bool ckpts_strike(struct machine *m, const struct fault *f);
/* A worker's turn: failed saves and loads are repeated. In the calm period a worker that is about to leave
 * has a checkpoint saved and loaded. True: the worker needs another turn. */
bool ckpts_turn(struct machine *m, bool leaving);
/* After each event. */
void ckpts_check(struct world *w);
/* The faults are over; all processes are about to end. */
void ckpts_calm(struct world *w);
void ckpts_end(struct world *w);
/* The next job. True: it begins with the last checkpoint, and the model becomes what that holds. */
bool ckpts_again(struct world *w, bool wanted);

#endif
