/*
 * The observer of a machine's reader: the product's, on the machine's control lane, and what its views must be. The
 * reader's client takes its views from it and from nothing else. It begins again when it has ended, as a reader's
 * process does. machine.c opens and closes the customer. It must never look at what the reader reads. Tests:
 * test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_OBSERVING_H
#define SIM_OBSERVING_H

#include <stdbool.h>
#include <stdint.h>

struct machine;
struct view;

/* The machine has joined, and its application has a reader. */
void observing_begin(struct machine *m);
/* The process dies. On its control lane. */
void observing_end(struct machine *m);
/* The view of the observer; NULL: it has none. */
struct view *observing_view(const struct machine *m);
/* The reader needs a view of this number or a later one. On the control lane. */
void observing_need(struct machine *m, uint64_t number);
/* The reader is to be opened later. */
bool observing_continues(const struct machine *m);
/* After an event of the machine. */
void observing_check(struct machine *m);

#endif
