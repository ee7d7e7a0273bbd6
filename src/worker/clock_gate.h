/*
 * Requests that are held until all workers that count have reached a clock (paramo_request_options.at_clock). The
 * gate asks for the lowest clock that a request needs (client_config.need_clock), and is told how far the workers
 * are. It never knows what a clock is, or how the scheduler is asked. All on the client's lane. Tests:
 * test/node/test_clock.c; the simulator (sim/clocks.c).
 */
#ifndef WORKER_CLOCK_GATE_H
#define WORKER_CLOCK_GATE_H

#include "worker/client_types.h"

struct request;

struct client_clock_gate {
    uint64_t minimum; /* that all workers have reached, as far as the client was told */
    uint32_t workers; /* how many count since then; 0: not known */
    uint64_t epoch;   /* how often the worker has lost its clock */
    paramo_err lost;  /* why, the last time ... */
    char lost_text[ERR_TEXT_MAX];
    struct request *first, *last; /* held; all need more */
    char behind[ERR_TEXT_MAX];    /* the workers behind, by the scheduler's last answer; "": not known */
};

/* ---- news, after config.need_clock ---- */

/* All workers that count have reached the clock: requests that are held for it are sent. workers: how many count; 0:
 * not known. */
void client_clock_reached(struct client *client, uint64_t minimum, uint32_t workers);
/* Some workers have not reached the clock. A request that misses its deadline names them. Asks again if requests are
 * held. */
void client_clock_behind(struct client *client, const char *who);
/* The worker has lost its clock: requests that are held, or will be, end with this status. */
void client_clock_lost(struct client *client, paramo_err status, const char *text);

/* ---- for the client ---- */

/* The request has been issued. */
void clock_gate_begin(struct client *c, struct request *r);
/* True: the request must not be sliced now. It has ended, or the gate will slice it. */
bool clock_gate_hold(struct client *c, struct request *r);
/* The request is over: the gate does not hold it any more. */
void clock_gate_done(struct client *c, struct request *r);
/* Sets this thread's message: why a request that the gate holds has missed its deadline. */
void clock_gate_late(const struct client *c, const struct request *r);

#endif
