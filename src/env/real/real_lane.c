/*
 * How a real lane waits. Its thread sleeps in epoll_wait. A thread that waits for a request becomes the
 * lane's leader and sleeps in epoll_wait itself, so that an answer wakes the thread that needs it. The
 * lane's thread then parks on another descriptor, first for PARK_NS at a time: while callers come and go it
 * stays there, and checks once after each time. During one long wait it parks without a timeout, until that
 * leader leaves. Further waiters are followers: they sleep on a futex until the leader notifies them or
 * leaves.
 *
 * While an event is expected for which no thread waits (lane_expect), and until callers have come and gone
 * once without such an event, the lane's thread parks only while a leader drives. Otherwise it watches the
 * descriptors itself.
 *
 * Before it sleeps, a thread polls for a short time if that pays (spin.h).
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "env/cores.h"
#include "env/lane.h"
#include "env/lane_impl.h"
#include "env/process.h"
#include "env/real/real_lane.h"

/* How late the lane's thread may notice a timer, or a lane without a driver, while callers come and go. */
#define PARK_NS      (500 * ENV_US)
#define PARK_SHALLOW 4 /* parks during one wait before the thread parks without a timeout ... */
#define PARK_RARE    1 /* ... of a lane with LANE_NO_BORROW (the control lane): its waits are long */
enum {
    EVENTS_MAX = 64,
    ASIDE_SPINS = 100 /* some microseconds: a step of a thread on another core is mostly over by then */
};

static void real_wake(struct lane *lane, bool soon)
{
    if (atomic_load(&lane->real.sleepers))
        event_signal(lane->real.wake_fd);
    else if (atomic_load(&lane->real.parked) && (!soon || atomic_load(&lane->real.deep)))
        event_signal(lane->real.park_fd);
    /* otherwise its thread or leader is awake and checks the inbox before it sleeps */
}

static void futex_wake_all(atomic_uint *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void futex_wait(atomic_uint *word, unsigned value, uint64_t ns)
{
    struct timespec limit = {.tv_sec = (time_t)(ns / ENV_SEC), .tv_nsec = (long)(ns % ENV_SEC)};
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &limit, NULL, 0);
}

/* Another thread is inside a step: returns when it has left, or after PARK_NS. Yielding the processor instead would
 * take milliseconds on a busy machine. */
static void real_step_aside(struct lane *lane)
{
    for (unsigned i = 0; i < ASIDE_SPINS && !(lane->flags & LANE_NO_SPIN); i++) {
        if (atomic_load(&lane->state) == LANE_IDLE)
            return;
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
    unsigned turn = atomic_load(&lane->real.turn);
    atomic_fetch_add(&lane->real.aside, 1);
    if (atomic_load(&lane->state) != LANE_IDLE && !atomic_load(&lane->real.stop))
        futex_wait(&lane->real.turn, turn, PARK_NS);
    atomic_fetch_sub(&lane->real.aside, 1);
}

/* The lane's thread must not sleep beyond the earliest timer. One signal per time is enough: the thread
 * takes a while to wake, and each of many requests would send one. */
static void real_watch(struct lane *lane, uint64_t next)
{
    if (next >= atomic_load(&lane->real.sleep_until) || next >= atomic_load(&lane->real.roused_for))
        return;
    atomic_store(&lane->real.roused_for, next);
    if (atomic_load(&lane->real.parked))
        event_signal(lane->real.park_fd);
    else
        event_signal(lane->real.wake_fd);
}

static void real_released(struct lane *lane, uint64_t next, bool notify)
{
    if (atomic_load(&lane->real.aside)) {
        atomic_fetch_add(&lane->real.turn, 1);
        futex_wake_all(&lane->real.turn);
    }
    if (notify) {
        atomic_fetch_add(&lane->real.generation, 1);
        if (atomic_load(&lane->real.followers))
            futex_wake_all(&lane->real.generation);
        if (atomic_load(&lane->real.leader_asleep))
            event_signal(lane->real.wake_fd);
    }
    if (lane_expects(lane) && atomic_load(&lane->real.parked) && !atomic_load(&lane->real.drivers))
        event_signal(lane->real.park_fd);
    /* A leader that is awake checks the timers itself before it sleeps, and real_wait does so after it. */
    if (!atomic_load(&lane->real.led) || atomic_load(&lane->real.leader_asleep))
        real_watch(lane, next);
}

static void real_entered(struct lane *lane)
{
    unsigned before = atomic_load_explicit(&lane->real.entered, memory_order_relaxed);
    atomic_store_explicit(&lane->real.entered, before + 1, memory_order_relaxed);
}

/* The descriptors that were ready when a driver's sleep ended. Its next round handles them without a poll of its own,
 * unless another driver has handled descriptors, or a source was removed, since the sleep began. */
struct ready {
    struct epoll_event event[EVENTS_MAX];
    int count;
    unsigned changes; /* lane->real.changes when the sleep began */
};

static void real_poll(struct lane *lane)
{
    struct epoll_event polled[EVENTS_MAX], *events = polled;
    int n = 0;
    if (lane->real.ready && lane->real.ready->changes == atomic_load(&lane->real.changes)) {
        events = lane->real.ready->event;
        n = lane->real.ready->count;
    } else {
        n = epoll_wait(lane->real.epoll_fd, polled, EVENTS_MAX, 0);
    }
    for (int i = 0; i < n; i++) {
        struct lane_source *source = events[i].data.ptr;
        if (!source) {
            /* The signal may be for a leader that is still in epoll_wait, and would sleep on without it. */
            if (!atomic_load(&lane->real.leader_asleep))
                event_drain(lane->real.wake_fd);
        } else if (!source->dead) {
            if (!source->quiet)
                lane_worked(lane, 1);
            source->ready(source, events[i].events);
        }
    }
    if (n >
        0) /* after the handling: a sleep that begins during it may still find a descriptor that is about to be read */
        atomic_fetch_add(&lane->real.changes, 1);
}

paramo_err lane_source_add(struct lane *lane, struct lane_source *source)
{
    source->dead = false;
    struct epoll_event event = {.events = source->events, .data.ptr = source};
    if (epoll_ctl(lane->real.epoll_fd, EPOLL_CTL_ADD, source->fd, &event))
        return err_errno(PARAMO_E_SYSTEM, errno, "epoll add (lane %s)", lane->name);
    return PARAMO_OK;
}

paramo_err lane_source_change(struct lane *lane, struct lane_source *source, uint32_t wanted)
{
    if (source->events == wanted)
        return PARAMO_OK;
    struct epoll_event event = {.events = wanted, .data.ptr = source};
    if (epoll_ctl(lane->real.epoll_fd, EPOLL_CTL_MOD, source->fd, &event))
        return err_errno(PARAMO_E_SYSTEM, errno, "epoll change (lane %s)", lane->name);
    source->events = wanted;
    return PARAMO_OK;
}

void lane_source_remove(struct lane *lane, struct lane_source *source)
{
    if (source->dead)
        return;
    source->dead = true;
    (void)epoll_ctl(lane->real.epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
    atomic_fetch_add(&lane->real.changes, 1); /* a sleep that begins from here on cannot find it */
}

void lane_hook_set(struct lane *lane, struct lane_hook *hook)
{
    assert(lane_held(lane) && (!hook || !lane->hook));
    lane->hook = hook;
    atomic_store(&lane->real.hooked, hook != NULL);
}

/* A driver's last step before it sleeps. False: it makes another round instead. It is counted among the
 * sleepers already, so that a thread that leaves the lane without arming the hook (real_wait) wakes it. */
static bool real_arm(struct lane *lane)
{
    if (!atomic_load(&lane->real.hooked))
        return true;
    if (!lane_acquire(lane)) {
        real_step_aside(lane); /* afterwards there may be more to do */
        return false;
    }
    bool armed = !lane->hook || lane->hook->arm(lane->hook);
    lane_leave(lane);
    return armed;
}

/* Acquires the lane for a full round. ready: what the sleep before has found; NULL: the round polls. True if anything
 * was handled. */
static bool real_turn(struct lane *lane, struct ready *ready)
{
    uint64_t before = atomic_load_explicit(&lane->work, memory_order_relaxed);
    if (!lane_acquire(lane))
        return false;
    lane->real.ready = ready;
    lane_round(lane);
    lane->real.ready = NULL;
    lane_leave(lane);
    return atomic_load_explicit(&lane->work, memory_order_relaxed) != before;
}

/* True if there is mail that no thread will handle. Checked before sleeping. */
static bool real_has_mail(struct lane *lane)
{
    return !mailbox_empty(&lane->inbox) && atomic_load(&lane->state) == LANE_IDLE;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

/* Polls if that pays. True if something came. Each poll yields the core, which the awaited thread may need. */
static bool real_spin(struct lane *lane, struct spin *spin, bool (*done)(void *), void *arg)
{
    if (lane->flags & LANE_NO_SPIN)
        return false;
    uint64_t start = env_now(lane->env), last = start;
    uint64_t budget = spin_begin(spin, start, atomic_load_explicit(&lane->frames, memory_order_relaxed));
    bool came = false, gap = false;
    while (last - start < budget && !atomic_load_explicit(&lane->real.stop, memory_order_relaxed)) {
        came = real_turn(lane, NULL) || done(arg);
        if (came)
            break;
        (void)sched_yield();
        uint64_t now = env_now(lane->env);
        gap = gap || now - last > SPIN_GAP_NS;
        last = now;
    }
    if (budget)
        spin_end(spin, came, gap);
    return came;
}

/* Sleeps until a descriptor is ready, a wake-up, or `until`. The caller has announced itself and checked once
 * more. */
static void real_sleep(struct lane *lane, uint64_t until, struct ready *ready)
{
    ready->changes = atomic_load(&lane->real.changes);
    uint64_t now = env_now(lane->env);
    struct timespec limit = {0};
    if (until > now) {
        limit.tv_sec = (time_t)((until - now) / ENV_SEC);
        limit.tv_nsec = (long)((until - now) % ENV_SEC);
    }
    int n = epoll_pwait2(lane->real.epoll_fd, ready->event, EVENTS_MAX, until == UINT64_MAX ? NULL : &limit,
                         NULL);
    if (n < 0 && errno == ENOSYS) { /* kernels before 5.11 */
        uint64_t ms = until > now ? (until - now + ENV_MS - 1) / ENV_MS : 0;
        n = epoll_wait(lane->real.epoll_fd, ready->event, EVENTS_MAX,
                       until == UINT64_MAX ? -1
                       : ms > 60000        ? 60000
                                           : (int)ms);
    }
    ready->count = n > 0 ? n : 0;
}

/* Sleeps without the epoll set: deep until the timer `until`, or shallow for PARK_NS, which needs no
 * wake-up. */
static void real_park(struct lane *lane, uint64_t until, bool deep)
{
    struct lane *l = lane;
    atomic_store(&l->real.roused_for, UINT64_MAX);
    atomic_store(&l->real.sleep_until, deep ? until : 0);
    atomic_store(&l->real.deep, deep);
    atomic_store(&l->real.parked, true);
    bool stay = !real_has_mail(l) && !atomic_load(&l->real.stop);
    if (!atomic_load(&l->real.drivers) && lane_expects(l))
        stay = false; /* no other thread watches */
    if (deep)
        stay = stay && atomic_load(&l->next_timer) >= until && atomic_load(&l->real.drivers);
    if (stay) {
        uint64_t now = env_now(l->env);
        struct timespec limit = {0};
        if (until > now) {
            limit.tv_sec = (time_t)((until - now) / ENV_SEC);
            limit.tv_nsec = (long)((until - now) % ENV_SEC);
        }
        struct pollfd fd = {.fd = l->real.park_fd, .events = POLLIN};
        if (ppoll(&fd, 1, until == UINT64_MAX ? NULL : &limit, NULL) > 0)
            event_drain(l->real.park_fd);
    }
    atomic_store(&l->real.parked, false);
    atomic_store(&l->real.deep, false);
    atomic_store(&l->real.sleep_until, 0);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Callers that took the lane or drove it, since the start. */
static unsigned real_sessions(const struct lane *lane)
{
    return atomic_load(&lane->real.entered) + atomic_load(&lane->real.waits);
}

static void *real_thread(void *arg)
{
    struct lane *lane = arg;
    struct ready ready = {.count = 0};
    bool slept = false;
    const unsigned shallow = lane->flags & LANE_NO_BORROW ? PARK_RARE : PARK_SHALLOW;
    unsigned seen = real_sessions(lane), parks = 0;
    uint64_t expected = atomic_load(&lane->expected) / LANE_EXPECTED_ONE;
    while (!atomic_load(&lane->real.stop)) {
        unsigned sessions = real_sessions(lane);
        unsigned drivers = atomic_load(&lane->real.drivers);
        uint64_t next = atomic_load(&lane->next_timer);
        uint64_t now_expected = atomic_load(&lane->expected) / LANE_EXPECTED_ONE;
        bool expects = lane_expects(lane) || now_expected != expected;
        expected = now_expected;
        if (expects)
            seen = sessions; /* callers come and go for events that this thread handles */
        if (drivers || sessions != seen) {
            slept = false;
            parks = sessions != seen ? 0 : parks + 1;
            seen = sessions;
            uint64_t now = env_now(lane->env);
            if ((next <= now || real_has_mail(lane)) && real_turn(lane, NULL))
                continue;
            bool deep = drivers && parks >= shallow && next > now;
            real_park(lane, deep ? next : now + PARK_NS, deep);
            /* Callers come and go, and none waits for the events that arrived. */
            if (!atomic_load(&lane->real.drivers))
                (void)real_turn(lane, NULL);
            continue;
        }
        parks = 0;
        (void)real_turn(lane, slept ? &ready : NULL);
        slept = false;
        if (atomic_load(&lane->state) != LANE_IDLE && expects) {
            real_step_aside(lane); /* then it is this thread's turn */
            continue;
        }
        if (atomic_load(&lane->state) != LANE_IDLE) { /* a borrower is inside: it handles what is ready */
            real_park(lane, env_now(lane->env) + PARK_NS, false);
            continue;
        }
        if (real_spin(lane, &lane->real.thread_spin, never, NULL))
            continue;
        next = atomic_load(&lane->next_timer);
        atomic_store(&lane->real.roused_for, UINT64_MAX);
        atomic_store(&lane->real.sleep_until, next);
        atomic_fetch_add(&lane->real.sleepers, 1);
        if (!real_has_mail(lane) && !atomic_load(&lane->real.stop) &&
            atomic_load(&lane->next_timer) >= next && real_arm(lane)) {
            real_sleep(lane, earlier(next, atomic_load(&lane->next_timer)), &ready);
            slept = true;
        }
        atomic_fetch_sub(&lane->real.sleepers, 1);
        atomic_store(&lane->real.sleep_until, 0);
    }
    return NULL;
}

static void real_lead(struct lane *lane, bool (*done)(void *), void *arg, uint64_t deadline)
{
    /* The first round only takes mail: the sleep finds what is ready. */
    struct ready ready = {.count = 0, .changes = atomic_load(&lane->real.changes)};
    bool slept = true;
    while (!done(arg)) {
        (void)real_turn(lane, slept ? &ready : NULL);
        slept = false;
        if (done(arg) || env_now(lane->env) >= deadline)
            return;
        if (real_spin(lane, &lane->real.leader_spin, done, arg))
            continue;
        atomic_fetch_add(&lane->real.sleepers, 1);
        atomic_store(&lane->real.leader_asleep, true);
        if (real_arm(lane) && !real_has_mail(lane) && !done(arg)) {
            real_sleep(lane, earlier(deadline, atomic_load(&lane->next_timer)), &ready);
            slept = true;
        }
        atomic_store(&lane->real.leader_asleep, false);
        atomic_fetch_sub(&lane->real.sleepers, 1);
    }
}

static paramo_err real_wait(struct lane *lane, bool (*done)(void *arg), void *arg, uint64_t deadline)
{
    atomic_fetch_add(&lane->real.drivers, 1);
    atomic_fetch_add(&lane->real.waits, 1);
    paramo_err err = PARAMO_OK;
    while (!done(arg)) {
        uint64_t now = env_now(lane->env);
        if (now >= deadline) {
            err = err_set(PARAMO_E_TIMEOUT, "the wait's deadline has passed");
            break;
        }
        if (!atomic_exchange(&lane->real.led, true)) {
            real_lead(lane, done, arg, deadline);
            if (lane->real.leader_spin.timing)
                spin_pause(&lane->real.leader_spin, env_now(lane->env));
            atomic_store(&lane->real.led, false);
            atomic_store(&lane->real.roused_for, UINT64_MAX); /* the signal may have woken this leader */
            real_watch(lane, atomic_load(&lane->next_timer));
            atomic_fetch_add(&lane->real.generation, 1);
            if (atomic_load(&lane->real.followers))
                futex_wake_all(&lane->real.generation); /* one of them becomes the leader */
            continue;
        }
        unsigned generation = atomic_load(&lane->real.generation);
        atomic_fetch_add(&lane->real.followers, 1);
        if (!done(arg) && atomic_load(&lane->real.led))
            futex_wait(&lane->real.generation, generation, deadline - now);
        atomic_fetch_sub(&lane->real.followers, 1);
    }
    if (atomic_fetch_sub(&lane->real.drivers, 1) == 1) {
        if (atomic_load(&lane->real.deep) || (atomic_load(&lane->real.parked) && lane_expects(lane)))
            event_signal(lane->real.park_fd);
        /* The thread may have been asleep since before this wait, and this wait has used up what it had
         * armed. */
        if (atomic_load(&lane->real.hooked) && atomic_load(&lane->real.sleepers))
            event_signal(lane->real.wake_fd);
    }
    return err;
}

static paramo_err real_start(struct lane *lane)
{
    paramo_err err;
    spin_init(&lane->real.thread_spin);
    spin_init(&lane->real.leader_spin);
    const char *poll = process_variable("PARAMO_POLL");
    if (cores_usable() < 2 || (poll && strcmp(poll, "0") == 0))
        lane->flags |= LANE_NO_SPIN;
    lane->real.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (lane->real.epoll_fd < 0)
        return err_errno(PARAMO_E_SYSTEM, errno, "make the epoll descriptor of lane %s", lane->name);
    err = event_create(&lane->real.wake_fd);
    if (err)
        goto err_close_epoll;
    err = event_create(&lane->real.park_fd);
    if (err)
        goto err_close_wake;
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(lane->real.epoll_fd, EPOLL_CTL_ADD, lane->real.wake_fd, &event)) {
        err = err_errno(PARAMO_E_SYSTEM, errno, "watch the eventfd of lane %s", lane->name);
        goto err_close_park;
    }
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&lane->real.thread, NULL, real_thread, lane);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        err = err_errno(PARAMO_E_SYSTEM, failed, "start the thread of lane %s", lane->name);
        goto err_close_park;
    }
    char name[16];
    (void)snprintf(name, sizeof name, "%.15s", lane->name);
    (void)pthread_setname_np(lane->real.thread, name);
    return PARAMO_OK;

err_close_park:
    event_close(lane->real.park_fd);
err_close_wake:
    event_close(lane->real.wake_fd);
err_close_epoll:
    (void)close(lane->real.epoll_fd);
    return err;
}

static void real_stop(struct lane *lane)
{
    atomic_store(&lane->real.stop, true);
    event_signal(lane->real.wake_fd);
    event_signal(lane->real.park_fd);
    (void)pthread_join(lane->real.thread, NULL);
}

static void real_fini(struct lane *lane)
{
    event_close(lane->real.park_fd);
    event_close(lane->real.wake_fd);
    (void)close(lane->real.epoll_fd);
}

const struct lane_ops real_lane_ops = {
    .start = real_start,
    .stop = real_stop,
    .fini = real_fini,
    .wake = real_wake,
    .entered = real_entered,
    .poll = real_poll,
    .released = real_released,
    .borrow = true,
    .wait = real_wait,
};
