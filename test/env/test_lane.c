#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "env/cores.h"
#include "env/lane.h"
#include "env/lane_impl.h"

#define LONG_AWAY (30 * ENV_SEC) /* deadlines that only a hang reaches */

struct counter {
    struct lane_task task;
    struct lane *lane;
    atomic_uint runs;
    unsigned order;
};

static void counter_run(struct lane_task *task)
{
    struct counter *c = container_of(&task->node, struct counter, task.node);
    assert_true(lane_held(c->lane));
    lane_notify(c->lane);
    atomic_fetch_add(&c->runs, 1); /* last: the waiter may now reuse the memory */
}

static bool counter_ran(void *arg)
{
    return atomic_load(&((struct counter *)arg)->runs) > 0;
}

static struct lane *lane_new(const char *name)
{
    struct lane *lane;
    assert_int_equal(lane_create(env_real(), name, 0, &lane), PARAMO_OK);
    return lane;
}

static void a_post_runs_on_the_lane(void **state)
{
    (void)state;
    struct lane *lane = lane_new("post");
    for (int i = 0; i < 1000; i++) {
        struct counter c = {.task.run = counter_run, .lane = lane};
        lane_post(lane, &c.task);
        assert_int_equal(lane_wait(lane, counter_ran, &c, lane_now(lane) + LONG_AWAY), PARAMO_OK);
        assert_int_equal(atomic_load(&c.runs), 1);
    }
    lane_destroy(lane);
}

static void destroy_runs_what_was_posted(void **state)
{
    (void)state;
    struct lane *lane = lane_new("drain");
    static struct counter many[100];
    for (int i = 0; i < 100; i++) {
        many[i] = (struct counter){.task.run = counter_run, .lane = lane};
        lane_post(lane, &many[i].task);
    }
    lane_destroy(lane);
    for (int i = 0; i < 100; i++)
        assert_int_equal(atomic_load(&many[i].runs), 1);
}

static void a_wait_ends_at_its_deadline(void **state)
{
    (void)state;
    struct lane *lane = lane_new("deadline");
    struct counter never_posted = {.lane = lane};
    uint64_t start = lane_now(lane);
    assert_int_equal(lane_wait(lane, counter_ran, &never_posted, start + 5 * ENV_MS), PARAMO_E_TIMEOUT);
    assert_true(lane_now(lane) >= start + 5 * ENV_MS);
    lane_destroy(lane);
}

struct alarm {
    struct lane_timer timer;
    struct counter *counter;
    struct alarm **fired;
};

static void alarm_fire(struct lane_timer *timer)
{
    struct alarm *a = container_of(timer, struct alarm, timer);
    *a->fired++ = a;
    counter_run(&a->counter->task);
}

static void timers_fire_without_a_waiter_and_in_order(void **state)
{
    (void)state;
    struct lane *lane = lane_new("timers");
    struct counter c = {.lane = lane};
    struct alarm *fired[4] = {0};
    struct alarm alarms[4];
    while (!lane_enter(lane)) {
    }
    uint64_t now = lane_now(lane);
    static const uint64_t after[4] = {3, 1, 2, 1};
    for (int i = 0; i < 4; i++) {
        alarms[i] = (struct alarm){.timer.fire = alarm_fire, .counter = &c, .fired = fired + i};
        assert_int_equal(lane_timer_arm(lane, &alarms[i].timer, now + after[i] * ENV_MS), PARAMO_OK);
    }
    lane_timer_cancel(lane, &alarms[2].timer);
    assert_int_equal(alarms[2].timer.slot, 0);
    lane_leave(lane);
    while (atomic_load(&c.runs) < 3) { /* no other thread drives: the lane's own must */
    }
    assert_ptr_equal(fired[0], &alarms[0]);
    assert_ptr_equal(fired[1], &alarms[1]);
    assert_null(fired[2]);
    assert_ptr_equal(fired[3], &alarms[3]);
    lane_destroy(lane);
}

struct ping {
    struct lane_source source;
    struct counter *counter;
    struct lane *lane;
};

static void ping_ready(struct lane_source *source, uint32_t events)
{
    struct ping *p = container_of(source, struct ping, source);
    assert_true(events & EPOLLIN);
    uint64_t count;
    assert_int_equal(read(source->fd, &count, sizeof count), sizeof count);
    counter_run(&p->counter->task);
}

struct target {
    struct counter *counter;
    unsigned runs;
};

static bool target_reached(void *arg)
{
    struct target *t = arg;
    return atomic_load(&t->counter->runs) >= t->runs;
}

static void a_descriptor_wakes_thread_and_waiter(void **state)
{
    (void)state;
    struct lane *lane = lane_new("fd");
    struct counter c = {.lane = lane};
    struct ping p = {.source = {.fd = eventfd(0, EFD_NONBLOCK), .events = EPOLLIN, .ready = ping_ready},
                     .counter = &c};
    while (!lane_enter(lane)) {
    }
    assert_int_equal(lane_source_add(lane, &p.source), PARAMO_OK);
    lane_leave(lane);
    uint64_t one = 1;
    for (unsigned i = 1; i <= 200; i++) {
        struct target target = {&c, i};
        assert_int_equal(write(p.source.fd, &one, sizeof one), sizeof one);
        if (i % 2) {
            while (!target_reached(&target)) { /* the thread alone */
            }
        } else {
            assert_int_equal(lane_wait(lane, target_reached, &target, lane_now(lane) + LONG_AWAY), PARAMO_OK);
        }
    }
    while (!lane_enter(lane)) {
    }
    lane_source_remove(lane, &p.source);
    lane_leave(lane);
    (void)close(p.source.fd);
    lane_destroy(lane);
}

/* ---- completions --------------------------------------------------------------------------------------- */

struct completion {
    struct lane_task task;
    struct lane *lane;
    unsigned *log, *logged, id;
    atomic_uint *running;
};

static void completion_run(struct lane_task *task)
{
    struct completion *c = container_of(task, struct completion, task);
    assert_int_equal(atomic_fetch_add(c->running, 1), 0);
    assert_false(lane_held(c->lane));
    assert_true(lane_inside());
    assert_int_equal(lane_wait(c->lane, counter_ran, &(struct counter){0}, UINT64_MAX), PARAMO_E_IN_CALLBACK);
    c->log[(*c->logged)++] = c->id;
    atomic_fetch_sub(c->running, 1);
}

static void completions_run_in_order_after_the_release(void **state)
{
    (void)state;
    struct lane *lane = lane_new("complete");
    unsigned log[64], logged = 0;
    atomic_uint running = 0;
    struct completion all[64];
    while (!lane_enter(lane)) {
    }
    for (unsigned i = 0; i < 64; i++) {
        all[i] = (struct completion){{.run = completion_run}, lane, log, &logged, i, &running};
        lane_complete(lane, &all[i].task);
    }
    assert_int_equal(logged, 0);
    lane_leave(lane);
    assert_int_equal(logged, 64);
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(log[i], i);
    lane_destroy(lane);
}

enum { LATES = 8 };

/* A completion, and what it posts. */
struct late {
    struct lane_task task;
    struct counter counter;
    struct late *all;
};

static void late_run(struct lane_task *task)
{
    struct late *l = container_of(task, struct late, task);
    lane_post_late(l->counter.lane, &l->counter.task);
    assert_true(mailbox_empty(&l->counter.lane->inbox));
    for (unsigned i = 0; i < LATES; i++)
        assert_int_equal(atomic_load(&l->all[i].counter.runs), 0);
}

static void late_posts_leave_together(void **state)
{
    (void)state;
    struct lane *lane = lane_new("late");
    for (unsigned round = 0; round < 100; round++) {
        struct late all[LATES];
        while (!lane_enter(lane)) {
        }
        for (unsigned i = 0; i < LATES; i++) {
            all[i] = (struct late){{.run = late_run}, {.task.run = counter_run, .lane = lane}, all};
            lane_complete(lane, &all[i].task);
        }
        lane_leave(lane);
        for (unsigned i = 0; i < LATES; i++)
            assert_int_equal(lane_wait(lane, counter_ran, &all[i].counter, lane_now(lane) + LONG_AWAY),
                             PARAMO_OK);
    }
    lane_destroy(lane);
}

/* ---- many lanes passing messages round, with drivers: no wake-up is lost ------------------------------- */

enum { RING_LANES = 4, RING_BALLS = 8, RING_HOPS = 4000, RING_WAITERS = 3 };

struct ball {
    struct lane_task task;
    unsigned at, hops;
};

static struct lane *ring_lanes[RING_LANES];
static struct ball balls[RING_BALLS];
static atomic_uint balls_home;

static void ball_run(struct lane_task *task)
{
    struct ball *b = container_of(task, struct ball, task);
    assert_true(lane_held(ring_lanes[b->at]));
    if (++b->hops == RING_HOPS) {
        atomic_fetch_add(&balls_home, 1);
        lane_notify(ring_lanes[b->at]);
        return;
    }
    b->at = (b->at + 1) % RING_LANES;
    lane_post(ring_lanes[b->at], &b->task);
}

static bool all_home(void *arg)
{
    (void)arg;
    return atomic_load(&balls_home) == RING_BALLS;
}

static void *ring_waiter(void *arg)
{
    struct lane *lane = arg;
    /* Short waits, so that drivers come and go all the time; the balls end on lane 0 (RING_HOPS %
     * RING_LANES), others only see the deadline. */
    while (!all_home(NULL)) {
        paramo_err err = lane_wait(lane, all_home, NULL, lane_now(lane) + ENV_MS / 4);
        assert_true(err == PARAMO_OK || err == PARAMO_E_TIMEOUT);
    }
    return NULL;
}

static void no_wake_up_is_lost(void **state)
{
    (void)state;
    for (int i = 0; i < RING_LANES; i++)
        ring_lanes[i] = lane_new("ring");
    atomic_store(&balls_home, 0);
    for (unsigned i = 0; i < RING_BALLS; i++) {
        balls[i] = (struct ball){.task.run = ball_run, .at = i % RING_LANES};
        lane_post(ring_lanes[balls[i].at], &balls[i].task);
    }
    pthread_t threads[RING_WAITERS];
    for (int i = 0; i < RING_WAITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ring_waiter, ring_lanes[i % 2]), 0);
    for (int i = 0; i < RING_WAITERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < RING_LANES; i++)
        lane_destroy(ring_lanes[i]);
    for (int i = 0; i < RING_BALLS; i++)
        assert_int_equal(balls[i].hops, RING_HOPS);
}

/* A step that lasts until a leader may have gone to sleep, and after which the lane's thread polls at once. */
struct slow_step {
    struct lane_task task;
    struct lane_timer timer;
    struct lane *lane;
    uint64_t lasts;
    atomic_bool begun, done;
    atomic_uint fired;
};

static void slow_step_fire(struct lane_timer *timer)
{
    atomic_fetch_add(&container_of(timer, struct slow_step, timer)->fired, 1);
}

static void slow_step_run(struct lane_task *task)
{
    struct slow_step *s = container_of(task, struct slow_step, task);
    atomic_store(&s->begun, true);
    for (uint64_t end = lane_now(s->lane) + s->lasts; lane_now(s->lane) < end;)
        ;
    assert_int_equal(lane_timer_arm(s->lane, &s->timer, lane_now(s->lane)), PARAMO_OK);
    lane_notify(s->lane);
    atomic_store(&s->done, true);
}

static bool slow_step_done(void *arg)
{
    return atomic_load(&((struct slow_step *)arg)->done);
}

static void a_poll_leaves_the_leader_its_wake_up(void **state)
{
    (void)state;
    struct lane *lane = lane_new("slow");
    struct slow_step s = {.task.run = slow_step_run, .timer.fire = slow_step_fire, .lane = lane};
    enum { STEPS = 500 };
    for (unsigned i = 0; i < STEPS; i++) {
        s.lasts = (20 + i % 200) * ENV_US;
        atomic_store(&s.begun, false);
        atomic_store(&s.done, false);
        lane_post(lane, &s.task);
        while (!atomic_load(&s.begun))
            (void)sched_yield();
        uint64_t deadline = lane_now(lane) + LONG_AWAY;
        assert_int_equal(lane_wait(lane, slow_step_done, &s, deadline), PARAMO_OK);
        assert_true(lane_now(lane) < deadline);
    }
    lane_destroy(lane);
    assert_in_range(atomic_load(&s.fired), 1, STEPS);
}

/* A source whose handling takes a while, so that a leader goes to sleep, and wakes, before the descriptor has been
 * read. */
struct slow_source {
    struct lane_source source;
    struct lane_timer timer;
    struct lane *lane;
    atomic_uint_fast64_t lasts;
    unsigned events; /* so far */
    atomic_bool begun;
    atomic_uint handled, empty, over;
};

static void slow_source_over(struct lane_timer *timer)
{
    struct slow_source *s = container_of(timer, struct slow_source, timer);
    atomic_fetch_add(&s->over, 1);
    lane_notify(s->lane);
}

static void slow_source_ready(struct lane_source *source, uint32_t events)
{
    struct slow_source *s = container_of(source, struct slow_source, source);
    assert_true(events & EPOLLIN);
    atomic_store(&s->begun, true);
    for (uint64_t end = lane_now(s->lane) + atomic_load(&s->lasts); lane_now(s->lane) < end;)
        ;
    uint64_t count;
    if (read(source->fd, &count, sizeof count) != sizeof count) {
        atomic_fetch_add(&s->empty, 1);
        return;
    }
    atomic_fetch_add(&s->handled, 1);
    assert_int_equal(lane_timer_arm(s->lane, &s->timer, lane_now(s->lane) + ENV_MS / 5), PARAMO_OK);
}

static bool slow_source_is_over(void *arg)
{
    struct slow_source *s = arg;
    return atomic_load(&s->over) == s->events;
}

static void an_event_is_handled_once(void **state)
{
    (void)state;
    struct lane *lane = lane_new("once");
    struct slow_source s = {
        .source = {.fd = eventfd(0, EFD_NONBLOCK), .events = EPOLLIN, .ready = slow_source_ready},
        .timer.fire = slow_source_over,
        .lane = lane};
    enum { EVENTS = 200 };
    while (!lane_enter(lane)) {
    }
    assert_int_equal(lane_source_add(lane, &s.source), PARAMO_OK);
    lane_leave(lane);
    for (unsigned i = 0; i < EVENTS; i++) {
        uint64_t one = 1;
        s.events = i + 1;
        atomic_store(&s.lasts, (20 + i) * ENV_US);
        atomic_store(&s.begun, false);
        assert_int_equal(write(s.source.fd, &one, sizeof one), sizeof one);
        while (!atomic_load(&s.begun))
            (void)sched_yield();
        assert_int_equal(lane_wait(lane, slow_source_is_over, &s, lane_now(lane) + LONG_AWAY), PARAMO_OK);
    }
    while (!lane_enter(lane)) {
    }
    lane_source_remove(lane, &s.source);
    lane_leave(lane);
    assert_int_equal(atomic_load(&s.handled), EVENTS);
    assert_int_equal(atomic_load(&s.empty), 0);
    (void)close(s.source.fd);
    lane_destroy(lane);
}

struct seen {
    struct lane_source source;
    struct lane *lane;
    atomic_bool seen;
};

static void seen_ready(struct lane_source *source, uint32_t events)
{
    struct seen *s = container_of(source, struct seen, source);
    uint64_t count;
    assert_true(events & EPOLLIN);
    assert_int_equal(read(source->fd, &count, sizeof count), sizeof count);
    lane_notify(s->lane);
    atomic_store(&s->seen, true);
}

static bool was_seen(void *arg)
{
    return atomic_load(&((struct seen *)arg)->seen);
}

static void enter(struct lane *lane)
{
    while (!lane_enter(lane))
        (void)sched_yield();
}

/* An event comes during a step of another thread: the lane's thread sleeps until the step is over. */
static void a_thread_waits_for_the_end_of_a_step(void **state)
{
    (void)state;
    struct lane *lane = lane_new("aside");
    struct seen s = {.source = {.fd = eventfd(0, EFD_NONBLOCK), .events = EPOLLIN, .ready = seen_ready},
                     .lane = lane};
    enter(lane);
    assert_int_equal(lane_source_add(lane, &s.source), PARAMO_OK);
    lane_expect(lane);
    lane_leave(lane);
    for (unsigned i = 0; i < 20; i++) {
        uint64_t one = 1, deadline = lane_now(lane) + LONG_AWAY;
        atomic_store(&s.seen, false);
        enter(lane);
        assert_int_equal(write(s.source.fd, &one, sizeof one), sizeof one);
        while (!atomic_load(&lane->real.aside)) {
            assert_true(lane_now(lane) < deadline);
            (void)sched_yield();
        }
        lane_leave(lane);
        assert_int_equal(lane_wait(lane, was_seen, &s, deadline), PARAMO_OK);
    }
    lane_expected(lane);
    enter(lane);
    lane_source_remove(lane, &s.source);
    lane_leave(lane);
    (void)close(s.source.fd);
    lane_destroy(lane);
}

static void cores_are_counted(void **state)
{
    (void)state;
    assert_in_range(cores_usable(), 1, 4096);
    assert_int_equal(cores_usable(), cores_usable());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_post_runs_on_the_lane),
        cmocka_unit_test(destroy_runs_what_was_posted),
        cmocka_unit_test(a_wait_ends_at_its_deadline),
        cmocka_unit_test(timers_fire_without_a_waiter_and_in_order),
        cmocka_unit_test(a_descriptor_wakes_thread_and_waiter),
        cmocka_unit_test(completions_run_in_order_after_the_release),
        cmocka_unit_test(late_posts_leave_together),
        cmocka_unit_test(no_wake_up_is_lost),
        cmocka_unit_test(a_poll_leaves_the_leader_its_wake_up),
        cmocka_unit_test(an_event_is_handled_once),
        cmocka_unit_test(a_thread_waits_for_the_end_of_a_step),
        cmocka_unit_test(cores_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
