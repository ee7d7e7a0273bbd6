/*
 * The inside of a lane, for env/lane.c (what real and simulated lanes share), env/real/real_lane.c and
 * sim/env/sim.c only. Tests: test/env/test_lane.c.
 */
#ifndef ENV_LANE_IMPL_H
#define ENV_LANE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "env/lane_types.h"
#include "env/real/spin.h"
#include "env/sim_event.h"

enum lane_state { LANE_IDLE, LANE_RUNNING, LANE_RUNNING_MAIL };

struct lane_ops {
    paramo_err (*start)(struct lane *lane);
    /* Joins the thread. Afterwards lane_destroy runs the lane until it is empty. */
    void (*stop)(struct lane *lane);
    void (*fini)(struct lane *lane);
    /* The lane is idle and has mail: makes a thread run it soon. Any thread. returning: the caller will drive
     * the lane soon itself, so a thread that looks within half a millisecond need not be woken. */
    void (*wake)(struct lane *lane, bool returning);
    /* On the lane: handles the descriptors that are ready, without waiting. */
    void (*poll)(struct lane *lane);
    /* A caller has taken the lane with lane_enter. May be NULL. */
    void (*entered)(struct lane *lane);
    /* The lane was just released. next: its earliest timer; notify: waiters should check again. */
    void (*released)(struct lane *lane, uint64_t next, bool notify);
    /* True: a thread in a step may run this lane after the step (summon in lane.c). */
    bool borrow;
    paramo_err (*wait)(struct lane *lane, bool (*done)(void *arg), void *arg, uint64_t deadline);
};

struct ready;

struct lane {
    struct env *env;
    const struct lane_ops *ops;
    unsigned flags;
    char name[32];

    _Atomic int state;           /* enum lane_state */
    struct mailbox inbox;        /* any thread posts */
    struct mailbox done_box;     /* completions: posted on the lane, taken by the completer */
    atomic_bool completing;      /* a thread is the completer */
    atomic_uint inside;          /* posters and borrowers that hold a pointer to the lane */
    _Atomic uint64_t next_timer; /* published at release; UINT64_MAX: none */
    _Atomic uint64_t expected;   /* events without a waiter: see LANE_EXPECTED_ONE */
    _Atomic uint64_t frames;     /* received (lane_count); the holder writes it */
    atomic_bool completes_more;  /* the completer has further completions to run */
    _Atomic uint64_t work;       /* tasks, timers and events handled: shows whether polling pays */

    /* owned by the holder of the lane */
    struct queue at_end;
    bool notify;
    struct lane_hook *hook;
    struct lane_timer **timers; /* binary heap from 1 */
    size_t timers_count, timers_capacity;
    uint64_t timer_seq;

    union {
        struct {
            int epoll_fd, wake_fd, park_fd;
            pthread_t thread;
            atomic_bool stop;
            atomic_bool hooked;  /* the lane has a hook, which must be armed before a thread sleeps */
            atomic_int sleepers; /* threads inside epoll_wait */
            atomic_uint changes; /* rounds that have handled descriptors, and sources that were removed */
            struct ready *ready; /* during a driver's round: what its sleep has found */
            atomic_bool parked;  /* the lane's thread sleeps on park_fd */
            atomic_bool deep;    /* ... without a timeout to look for missing drivers */
            atomic_bool led;     /* a waiting thread is the leader */
            atomic_bool leader_asleep;
            atomic_uint drivers;    /* threads in lane_wait */
            atomic_uint entered;    /* callers that took the lane, since the start; the holder writes it */
            atomic_uint waits;      /* callers that drove it, or waited for one that did */
            atomic_uint generation; /* futex: raised by notify, and when the lead becomes free */
            atomic_uint followers;
            atomic_uint aside;            /* drivers that wait until the lane is released ... */
            atomic_uint turn;             /* ... by this futex, raised at a release if there are any */
            _Atomic uint64_t sleep_until; /* the thread looks at the timers by then */
            _Atomic uint64_t roused_for;  /* it is already being woken for this time, or UINT64_MAX */
            struct spin thread_spin;      /* the thread's own */
            struct spin leader_spin;      /* the leader's */
        } real;
        struct {
            struct sim *sim;
            struct sim_host *host;
            struct lane *next; /* of the host */
            struct sim_event run;
            struct sim_event timer;
        } sim;
    };
};

/* Events that are expected without a waiter (lane_expect). The upper half counts those since the start, the lower half
 * those that have not come yet. */
#define LANE_EXPECTED_ONE (UINT64_C(1) << 32)
static inline bool lane_expects(const struct lane *lane)
{
    return (uint32_t)atomic_load(&lane->expected) != 0;
}

/* On the lane: counts what was handled. Only the holder counts. */
static inline void lane_worked(struct lane *lane, unsigned count)
{
    uint64_t before = atomic_load_explicit(&lane->work, memory_order_relaxed);
    atomic_store_explicit(&lane->work, before + count, memory_order_relaxed);
}

/* Takes the lane if it is idle. */
bool lane_acquire(struct lane *lane);
/* On the lane: makes one round: inbox, timers, descriptors, tasks at the round's end. */
void lane_round(struct lane *lane);

#endif
