#include "env/lane.h"

#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env/lane_impl.h"

enum {
    BORROW_MAX = 8,    /* idle lanes that one thread has promised to run; it wakes further ones instead */
    BORROW_STEPS = 64, /* foreign steps that a thread runs before it returns to its own work */
    GIVE_WAY = 8,      /* arbitrary: less than what one wake-up costs */
    MAIL_ROUNDS = 16 /* how often a holder that is leaving takes new mail before it wakes the lane's thread */
};

static _Thread_local struct {
    struct lane *held;
    unsigned completing;    /* depth of completions on this thread's stack */
    struct lane *late_of;   /* the lane of the innermost completions ... */
    struct queue *late;     /* ... and what they have posted with lane_post_late */
    unsigned leaving;       /* depth of lane_leave on this thread's stack */
    unsigned no_borrow;     /* ... of lanes with LANE_NO_BORROW */
    struct lane *returning; /* the lane of the last lane_returns */
    unsigned borrowed;
    struct lane *borrow[BORROW_MAX];
} self;

/* ---- timers: a binary heap ordered by (at, seq) -------------------------------------------------------- */

static bool timer_before(const struct lane_timer *a, const struct lane_timer *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void timer_place(struct lane *lane, struct lane_timer *timer, size_t slot)
{
    lane->timers[slot] = timer;
    timer->slot = slot;
}

static void timer_sift(struct lane *lane, struct lane_timer *timer, size_t slot)
{
    while (slot > 1 && timer_before(timer, lane->timers[slot / 2])) {
        timer_place(lane, lane->timers[slot / 2], slot);
        slot /= 2;
    }
    for (;;) {
        size_t child = 2 * slot;
        if (child > lane->timers_count)
            break;
        if (child < lane->timers_count && timer_before(lane->timers[child + 1], lane->timers[child]))
            child++;
        if (!timer_before(lane->timers[child], timer))
            break;
        timer_place(lane, lane->timers[child], slot);
        slot = child;
    }
    timer_place(lane, timer, slot);
}

paramo_err lane_timer_arm(struct lane *lane, struct lane_timer *timer, uint64_t at)
{
    assert(lane_held(lane));
    timer->at = at;
    timer->seq = ++lane->timer_seq;
    if (timer->slot) {
        timer_sift(lane, timer, timer->slot);
        return PARAMO_OK;
    }
    if (lane->timers_count + 1 >= lane->timers_capacity) {
        size_t capacity = lane->timers_capacity ? 2 * lane->timers_capacity : 16;
        struct lane_timer **timers = realloc(lane->timers, capacity * sizeof(struct lane_timer *));
        if (!timers)
            return err_memory(capacity * sizeof(struct lane_timer *));
        lane->timers = timers;
        lane->timers_capacity = capacity;
    }
    timer_sift(lane, timer, ++lane->timers_count);
    return PARAMO_OK;
}

void lane_timer_cancel(struct lane *lane, struct lane_timer *timer)
{
    assert(lane_held(lane));
    size_t slot = timer->slot;
    if (!slot)
        return;
    timer->slot = 0;
    struct lane_timer *last = lane->timers[lane->timers_count--];
    if (last != timer)
        timer_sift(lane, last, slot);
}

static void timers_run(struct lane *lane)
{
    if (!lane->timers_count)
        return;
    uint64_t now = env_now(lane->env);
    uint64_t armed_before = lane->timer_seq; /* a timer armed from now on waits for the next round */
    while (lane->timers_count && lane->timers[1]->at <= now && lane->timers[1]->seq <= armed_before) {
        struct lane_timer *timer = lane->timers[1];
        lane_timer_cancel(lane, timer);
        lane_worked(lane, 1);
        timer->fire(timer);
    }
}

/* ---- holding, running, leaving ------------------------------------------------------------------------- */

bool lane_held(const struct lane *lane)
{
    return self.held == lane;
}

bool lane_inside(void)
{
    return self.held || self.completing;
}

bool lane_acquire(struct lane *lane)
{
    if (self.held)
        return false;
    int idle = LANE_IDLE;
    if (!atomic_compare_exchange_strong(&lane->state, &idle, LANE_RUNNING))
        return false;
    self.held = lane;
    return true;
}

static void inbox_run(struct lane *lane)
{
    if (mailbox_empty(&lane->inbox))
        return;
    struct queue tasks = {0};
    mailbox_drain(&lane->inbox, &tasks);
    unsigned ran = 0;
    for (struct qnode *node; (node = queue_pop(&tasks)); ran++) {
        struct lane_task *task = container_of(node, struct lane_task, node);
        task->run(task);
    }
    lane_worked(lane, ran);
}

static void end_run(struct lane *lane)
{
    for (struct qnode *node; (node = queue_pop(&lane->at_end));) {
        struct lane_task *task = container_of(node, struct lane_task, node);
        task->run(task);
    }
}

void lane_round(struct lane *lane)
{
    inbox_run(lane);
    timers_run(lane);
    lane->ops->poll(lane);
    if (lane->hook && lane->hook->progress(lane->hook))
        lane_worked(lane, 1);
    end_run(lane);
}

static void mail_came(struct lane *lane);

static void late_post(struct lane *lane, struct queue *late)
{
    if (queue_empty(late))
        return;
    atomic_fetch_add(&lane->inside, 1);
    mailbox_post_all(&lane->inbox, late);
    mail_came(lane);
}

/* Completions run here, after the release. The thread that becomes the completer runs them all, so that
 * they stay in order and run one at a time. Another thread leaves them to the completer. The completer
 * checks again after it has stepped down. */
static void completions_run(struct lane *lane)
{
    while (!mailbox_empty(&lane->done_box)) {
        if (atomic_exchange(&lane->completing, true))
            return;
        struct queue tasks = {0}, late = {0}, *late_before = self.late;
        struct lane *late_of_before = self.late_of;
        self.completing++;
        self.late_of = lane;
        self.late = &late;
        do {
            mailbox_drain(&lane->done_box, &tasks);
            for (struct qnode *node; (node = queue_pop(&tasks));) {
                struct lane_task *task = container_of(node, struct lane_task, node);
                atomic_store_explicit(&lane->completes_more, !queue_empty(&tasks), memory_order_relaxed);
                task->run(task);
            }
            late_post(lane, &late);
        } while (!mailbox_empty(&lane->done_box));
        self.late_of = late_of_before;
        self.late = late_before;
        self.completing--;
        atomic_store(&lane->completing, false);
    }
}

/* Releases the lane. Afterwards its inbox is empty, or a thread has been woken. */
static void lane_release(struct lane *lane)
{
    for (unsigned rounds = 0;; rounds++) {
        end_run(lane);
        bool notify = lane->notify;
        lane->notify = false;
        uint64_t next = lane->timers_count ? lane->timers[1]->at : UINT64_MAX;
        /* only a holder writes it */
        if (atomic_load_explicit(&lane->next_timer, memory_order_relaxed) != next)
            atomic_store(&lane->next_timer, next);
        atomic_fetch_add(&lane->inside, 1); /* lane_destroy must not free it before this function ends */
        int running = LANE_RUNNING;
        self.held = NULL;
        if (atomic_compare_exchange_strong(&lane->state, &running, LANE_IDLE)) {
            lane->ops->released(lane, next, notify);
            break;
        }
        if (rounds >= MAIL_ROUNDS) {
            atomic_store(&lane->state, LANE_IDLE);
            lane->ops->released(lane, next, notify);
            lane->ops->wake(lane, false);
            break;
        }
        self.held = lane;
        lane->notify = notify;
        atomic_store(&lane->state, LANE_RUNNING);
        atomic_fetch_sub(&lane->inside, 1);
        inbox_run(lane);
    }
    completions_run(lane);
    atomic_fetch_sub(&lane->inside, 1);
}

static void borrowed_run(void)
{
    for (unsigned steps = 0; self.borrowed; steps++) {
        struct lane *lane = self.borrow[0];
        self.borrowed--;
        memmove(self.borrow, self.borrow + 1, self.borrowed * sizeof self.borrow[0]);
        if (steps >= BORROW_STEPS) {
            lane->ops->wake(lane, false);
        } else if (lane_acquire(lane)) {
            /* Otherwise a thread that acquired the lane in between takes our mail: it drains the inbox after
             * it has set the state. */
            inbox_run(lane);
            lane_release(lane);
        }
        atomic_fetch_sub(&lane->inside, 1);
    }
}

void lane_leave(struct lane *lane)
{
    assert(lane_held(lane));
    unsigned no_borrow = (lane->flags & LANE_NO_BORROW) != 0;
    self.leaving++;
    self.no_borrow += no_borrow;
    lane_release(lane);
    if (self.leaving == 1)
        borrowed_run();
    self.no_borrow -= no_borrow;
    self.leaving--;
}

bool lane_enter(struct lane *lane)
{
    if (!lane_acquire(lane))
        return false;
    if (lane->ops->entered)
        lane->ops->entered(lane);
    inbox_run(lane);
    return true;
}

/* The lane is idle and has mail: finds a thread to run it. Takes over the caller's count in lane->inside. */
static void summon(struct lane *lane)
{
    bool may = self.held ? !(self.held->flags & LANE_NO_BORROW) : self.leaving != 0;
    if (lane->ops->borrow && may && !self.no_borrow) {
        for (unsigned i = 0; i < self.borrowed; i++) {
            if (self.borrow[i] == lane) {
                atomic_fetch_sub(&lane->inside, 1);
                return;
            }
        }
        if (self.borrowed < BORROW_MAX) {
            self.borrow[self.borrowed++] = lane;
            return;
        }
    }
    lane->ops->wake(lane, self.returning == lane);
    atomic_fetch_sub(&lane->inside, 1);
}

void lane_unborrow(void)
{
    while (self.borrowed) {
        struct lane *lane = self.borrow[--self.borrowed];
        lane->ops->wake(lane, false);
        atomic_fetch_sub(&lane->inside, 1);
    }
}

void lane_returns(struct lane *lane)
{
    self.returning = lane;
}

/* After a post. Takes over the caller's count in lane->inside. */
static void mail_came(struct lane *lane)
{
    int state = atomic_load(&lane->state);
    for (;;) {
        if (state == LANE_RUNNING_MAIL)
            break;
        if (state == LANE_IDLE) {
            summon(lane);
            return;
        }
        if (atomic_compare_exchange_weak(&lane->state, &state, LANE_RUNNING_MAIL))
            break;
    }
    atomic_fetch_sub(&lane->inside, 1);
}

void lane_post(struct lane *lane, struct lane_task *task)
{
    atomic_fetch_add(&lane->inside, 1);
    mailbox_post(&lane->inbox, &task->node);
    mail_came(lane);
}

void lane_post_late(struct lane *lane, struct lane_task *task)
{
    if (self.late_of == lane && lane->ops->borrow)
        queue_push(self.late, &task->node);
    else
        lane_post(lane, task);
}

void lane_at_end(struct lane *lane, struct lane_task *task)
{
    assert(lane_held(lane));
    queue_push(&lane->at_end, &task->node);
}

void lane_complete(struct lane *lane, struct lane_task *task)
{
    assert(lane_held(lane));
    mailbox_post(&lane->done_box, &task->node);
}

void lane_callbacks_begin(void)
{
    self.completing++;
}

void lane_callbacks_end(void)
{
    assert(self.completing);
    self.completing--;
}

void lane_give_way(struct lane *lane)
{
    for (unsigned i = 0; i < GIVE_WAY; i++) {
        if (lane_inside() || !atomic_load(&lane->completing) || !atomic_load(&lane->completes_more))
            return;
        (void)sched_yield();
    }
}

void lane_notify(struct lane *lane)
{
    assert(lane_held(lane));
    lane->notify = true;
}

void lane_expect(struct lane *lane)
{
    atomic_fetch_add(&lane->expected, LANE_EXPECTED_ONE + 1);
}

void lane_expected(struct lane *lane)
{
    atomic_fetch_sub(&lane->expected, 1);
}

paramo_err lane_wait(struct lane *lane, bool (*done)(void *arg), void *arg, uint64_t deadline)
{
    if (done(arg))
        return PARAMO_OK;
    if (lane_inside())
        return err_set(PARAMO_E_IN_CALLBACK, "a callback or handler cannot wait (lane %s)", lane->name);
    return lane->ops->wait(lane, done, arg, deadline);
}

/* ---- life cycle ---------------------------------------------------------------------------------------- */

paramo_err lane_create(struct env *env, const char *name, unsigned flags, struct lane **lane)
{
    struct lane *made = calloc(1, sizeof *made);
    if (!made)
        return err_memory(sizeof *made);
    made->env = env;
    made->ops = env->ops->lanes;
    made->flags = flags;
    (void)snprintf(made->name, sizeof made->name, "%s", name);
    atomic_store(&made->next_timer, UINT64_MAX);
    paramo_err err = made->ops->start(made);
    if (err) {
        free(made);
        return err;
    }
    *lane = made;
    return PARAMO_OK;
}

void lane_destroy(struct lane *lane)
{
    if (!lane)
        return;
    assert(!self.held);
    lane->ops->stop(lane);
    for (;;) {
        if (lane_acquire(lane)) {
            inbox_run(lane);
            lane_release(lane);
            if (atomic_load(&lane->inside) == 0 && mailbox_empty(&lane->inbox) &&
                atomic_load(&lane->state) == LANE_IDLE)
                break;
        }
        (void)sched_yield(); /* a borrower is leaving: that takes a few instructions */
    }
    lane->ops->fini(lane);
    free(lane->timers);
    free(lane);
}

struct lane_hook *lane_hook(const struct lane *lane)
{
    assert(lane_held(lane));
    return lane->hook;
}

struct env *lane_env(struct lane *lane)
{
    return lane->env;
}

const char *lane_name(const struct lane *lane)
{
    return lane->name;
}

uint64_t lane_now(struct lane *lane)
{
    return env_now(lane->env);
}

void lane_count(struct lane *lane)
{
    assert(lane_held(lane));
    atomic_store_explicit(&lane->frames, atomic_load_explicit(&lane->frames, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

void lane_progress(struct lane *lane, uint64_t *handled, bool *waiting)
{
    *handled = atomic_load_explicit(&lane->work, memory_order_relaxed);
    *waiting = !mailbox_empty(&lane->inbox);
}
