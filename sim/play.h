/*
 * Plays one schedule: a whole cluster in this thread, with its faults. After each event it checks all
 * invariants. The same schedule plays the same way, event for event; the trace shows it. Tests:
 * test/sim/test_play.c.
 */
#ifndef SIM_PLAY_H
#define SIM_PLAY_H

#include "sim/coverage.h"
#include "sim/fault.h"
#include "sim/play_counts.h"

const char *play_count_name(enum play_count count);

struct play_result {
    bool failed;
    char text[512]; /* what was violated; an internal error's text is here before the process aborts */
    uint64_t trace, steps, sim_ns, requests;
    uint32_t injected[FAULT_KINDS_COUNT]; /* faults that struck something */
    uint32_t injected_total;
    uint32_t counts[PLAY_COUNTS_COUNT]; /* requests and calls that ended well */
    struct coverage coverage;
};

void play(const struct schedule *schedule, struct play_result *result);
/* Takes out faults while the play fails (Zeller and Hildebrandt, TSE'02), at most this many plays; *s is the
 * smallest found, *result its failure. */
void play_shrink(struct schedule *s, struct play_result *result, unsigned plays);

#endif
