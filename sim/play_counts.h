/*
 * What the application and the cluster do, by name: a world counts it, and a play reports it. It holds no state. Tests:
 * test/sim/test_play.c.
 */
#ifndef SIM_PLAY_COUNTS_H
#define SIM_PLAY_COUNTS_H

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
    X(flush)                                                                                                 \
    X(page)                                                                                                  \
    X(refused_moved)                                                                                         \
    X(barriers)                                                                                              \
    X(work_units)                                                                                            \
    X(stale)                                                                                                 \
    X(values)                                                                                                \
    X(clocks)                                                                                                \
    X(clock_joins)                                                                                           \
    X(clock_waits)                                                                                           \
    X(aggregated)                                                                                            \
    X(combined)                                                                                              \
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
    X(restored_again)                                                                                        \
    X(returned)                                                                                              \
    X(lies)                                                                                                  \
    X(lists_named)                                                                                           \
    X(filters_again)                                                                                         \
    X(compressed)                                                                                            \
    X(rounded)                                                                                               \
    X(held_back)                                                                                             \
    X(held_sent)                                                                                             \
    X(user_filtered)                                                                                         \
    X(ranges)                                                                                                \
    X(columns)                                                                                               \
    X(refused)                                                                                               \
    X(tasks)                                                                                                 \
    X(task_groups)                                                                                           \
    X(task_orders)                                                                                           \
    X(task_calls)                                                                                            \
    X(subtasks)

enum play_count {
#define PLAY_ENUM(name) PLAY_##name,
    PLAY_COUNTS(PLAY_ENUM)
#undef PLAY_ENUM
        PLAY_COUNTS_COUNT
};

#endif
