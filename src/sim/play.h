/*
 * Plays one schedule: a whole cluster in this thread, its faults, and after each event the question whether
 * all that must hold does hold. The same schedule plays the same way, event for event: the trace says so.
 * Tests: test/sim/test_play.c.
 */
#ifndef SIM_PLAY_H
#define SIM_PLAY_H

#include "sim/fault.h"

struct play_result {
    bool failed;
    char text[512]; /* what was violated */
    uint64_t trace, steps, sim_ns, requests;
    uint32_t injected[FAULT_KINDS_COUNT]; /* faults that struck something */
    uint32_t injected_total;
};

void play(const struct schedule *schedule, struct play_result *result);
/* Takes out faults while the play fails (Zeller and Hildebrandt, TSE'02), at most this many plays; *s is the
 * smallest found, *result its failure. */
void play_shrink(struct schedule *s, struct play_result *result, unsigned plays);

#endif
