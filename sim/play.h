/*
 * Plays one schedule: a whole cluster in this thread, with its faults. After each event it checks all
 * invariants. The same schedule plays the same way, event for event; the trace shows it. Tests:
 * test/sim/test_play.c.
 */
#ifndef SIM_PLAY_H
#define SIM_PLAY_H

#include "sim/cover.h"
#include "sim/fault.h"

/* Counts of what the application and the cluster did. X(name). */
#define PLAY_COUNTS(X)                                                                                       \
    X(push)                                                                                                  \
    X(pull)                                                                                                  \
    X(pushpull)                                                                                              \
    X(put)                                                                                                   \
    X(delete)                                                                                                \
    X(clear)                                                                                                 \
    X(stat)                                                                                                  \
    X(scan)                                                                                                  \
    X(reduce)                                                                                                \
    X(transform)                                                                                             \
    X(refused_moved)                                                                                         \
    X(barriers)                                                                                              \
    X(work_units)                                                                                            \
    X(stale)                                                                                                 \
    X(values)                                                                                                \
    X(clocks)                                                                                                \
    X(clock_joins)                                                                                           \
    X(clock_waits)                                                                                           \
    X(clock_requests)                                                                                        \
    X(saves)                                                                                                 \
    X(took_over)                                                                                             \
    X(loads)                                                                                                 \
    X(promotions)                                                                                            \
    X(ownership)                                                                                             \
    X(reopened)                                                                                              \
    X(drained)                                                                                               \
    X(ckpt_saves)                                                                                            \
    X(ckpt_loads)                                                                                            \
    X(restores)                                                                                              \
    X(returned)                                                                                              \
    X(lies)                                                                                                  \
    X(lists_named)                                                                                           \
    X(filters_again)                                                                                         \
    X(compressed)                                                                                            \
    X(rounded)                                                                                               \
    X(user_filtered)

enum play_count {
#define PLAY_ENUM(name) PLAY_##name,
    PLAY_COUNTS(PLAY_ENUM)
#undef PLAY_ENUM
        PLAY_COUNTS_COUNT
};
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
