/*
 * Clocks: the application's customers join, end iterations, wait for others and leave, and the model of what they
 * have ended. It must never know how clocks are kept. Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_CLOCKS_H
#define SIM_CLOCKS_H

#include "cluster/member/member_calls.h"

struct customer;
struct machine;
struct op;
struct world;

/* A turn of the application: perhaps it makes a call about a clock, or ends an iteration. */
void clocks_turn(struct machine *m);
/* Some requests of a customer that counts are held until all have reached a clock. */
void clocks_draw(struct machine *m, struct op *op, paramo_request_options *o);
/* A request leaves, or was executed: all must have reached its clock. */
void clocks_request(const struct op *op, const char *what);
/* Is a worker behind the clock of the request, or of one that it comes after, so that it is held rightly? */
bool clocks_hold(const struct op *op);
/* Has the customer lost its clock since the request was issued, with this status? */
bool clocks_lost(const struct op *op, paramo_err status);
/* In the calm period: has no customer open work with clocks? If one has, the work continues. */
bool clocks_calm(struct machine *m);
/* Does the job's scheduler count this process among the living? No, if there is no scheduler. */
bool clocks_lives(const struct machine *m);
/* The customer is about to be closed. */
void clocks_close(struct customer *c);
/* What the scheduler keeps of clocks fits together. */
void clocks_check(struct world *w);
/* Another job begins. */
void clocks_forget(struct world *w);

#endif
