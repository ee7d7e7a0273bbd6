/*
 * Processes: start, crash, restart, drain; what a process has, and what outlives it. It must never judge.
 * Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

struct machine;

void machine_start(struct machine *m);
void machine_start_in(struct machine *m, uint64_t ns);
/* As kill -9. again_ns 0: it does not come back. */
void machine_kill(struct machine *m, uint64_t again_ns);
/* After each event: joins and ends. */
void machine_tick(struct machine *m);
/* Like machine_tick(), for the scheduler: its power may have failed in the middle of a write. */
void machine_scheduler_tick(struct machine *m);
/* The newest view of a scheduler whose job ends or has ended; 0: of none. */
uint64_t machine_end_view(const struct machine *m);
void machine_open_customers(struct machine *m);
/* The process of a reader has a view, or has lost it; false: the reader is busy with a client task. */
void machine_reader_opens(struct machine *m);
bool machine_reader_closes(struct machine *m);
/* The application closes a customer, and opens it again after this time. False: it is not open, or busy with
 * a client task. */
bool machine_close_customer(struct machine *m, unsigned customer, uint64_t ns);
/* The server is drained, leaves, and returns after this time; 0: never. */
bool machine_drain(struct machine *m, uint64_t ns);

#endif
