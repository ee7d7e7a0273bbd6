/*
 * Times and sizes of the simulated van, and what an observer of it is told: for the van (simvan.h) and its inside
 * (simwire.h). It must never know connections. Tests: test/van/test_simvan.c.
 */
#ifndef SIM_VAN_SIMVAN_RULES_H
#define SIM_VAN_SIMVAN_RULES_H

#include "van/van.h"

#define SIMVAN_RESEND_NS  (200 * ENV_MS)
#define SIMVAN_GIVE_UP_NS (15 * ENV_SEC)
/* Bytes of one connection and direction on the wire; the rest waits in the queue. */
enum { SIMVAN_WINDOW_BYTES = 1 << 20 };

/* For observers: called for each frame that leaves (it is still the sender's) and for each that arrives. */
struct simvan_watch {
    void (*leaves)(void *arg, uint32_t from, uint32_t to, const struct van_frame *frame);
    void (*arrives)(void *arg, uint32_t from, uint32_t to, const uint8_t head[VAN_HEAD]);
    void *arg;
};

#endif
