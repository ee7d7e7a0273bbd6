#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "env/real/spin.h"

enum { MANY = 100 * SPIN_WINDOW };

struct run {
    struct spin spin;
    uint64_t now, frames;
    uint64_t polls; /* of the last sleeps() */
};

/* What happens at each sleep: how long it takes until the next one, with a poll before and without. */
struct world {
    uint64_t slept_ns, polled_ns;
    unsigned frames;  /* that come each time */
    bool polls_fail;  /* nothing comes during a poll */
    bool descheduled; /* during each poll */
};

static void sleeps(struct run *r, unsigned count, const struct world *world)
{
    r->polls = 0;
    for (unsigned i = 0; i < count; i++) {
        uint64_t budget = spin_begin(&r->spin, r->now, r->frames);
        r->frames += world->frames;
        r->now += budget ? world->polled_ns : world->slept_ns;
        if (!budget)
            continue;
        assert_in_range(budget, SPIN_MIN_NS, SPIN_MAX_NS);
        r->polls++;
        spin_end(&r->spin, !world->polls_fail, world->descheduled);
    }
}

static struct run fresh(void)
{
    struct run r = {.now = ENV_SEC};
    spin_init(&r.spin);
    return r;
}

static void polling_that_is_cheaper_is_kept(void **state)
{
    (void)state;
    struct run r = fresh();
    struct world free_cores = {.slept_ns = 90 * ENV_US, .polled_ns = 8 * ENV_US, .frames = 1};
    sleeps(&r, SPIN_WINDOW, &free_cores);
    assert_int_equal(r.polls, 0);
    sleeps(&r, MANY, &free_cores);
    assert_true(r.polls > MANY * 8 / 10);
}

static void polling_that_costs_as_much_is_left(void **state)
{
    (void)state;
    struct run r = fresh();
    struct world busy = {.slept_ns = 20 * ENV_US, .polled_ns = 20 * ENV_US, .frames = 1};
    sleeps(&r, MANY, &busy);
    assert_true(r.polls <= 4 * SPIN_WINDOW); /* the trials are rarer each time */
    assert_true(r.polls > 0);
}

/* The lane is woken for each frame, or finds several at once: the latter is the cheaper one. */
static void the_cost_is_that_of_a_frame(void **state)
{
    (void)state;
    struct run r = fresh();
    struct world sleeping = {.slept_ns = 40 * ENV_US, .frames = 8};
    sleeps(&r, SPIN_WINDOW, &sleeping);
    struct world polling = {.polled_ns = 10 * ENV_US, .frames = 1};
    sleeps(&r, SPIN_WINDOW, &polling);
    assert_int_equal(r.polls, SPIN_WINDOW);
    sleeps(&r, TWO_WAYS_STAY_MIN * SPIN_WINDOW, &sleeping);
    assert_int_equal(r.polls, 0);
}

static void a_change_is_noticed(void **state)
{
    (void)state;
    struct run r = fresh();
    struct world free_cores = {.slept_ns = 90 * ENV_US, .polled_ns = 8 * ENV_US, .frames = 1};
    struct world busy = {.slept_ns = 20 * ENV_US, .polled_ns = 30 * ENV_US, .frames = 1};
    sleeps(&r, 32 * SPIN_WINDOW, &free_cores);
    sleeps(&r, 64 * SPIN_WINDOW, &busy);
    sleeps(&r, 64 * SPIN_WINDOW, &busy);
    assert_true(r.polls <= 4 * SPIN_WINDOW);
    sleeps(&r, 2 * TWO_WAYS_STAY_MAX * SPIN_WINDOW, &free_cores);
    sleeps(&r, MANY, &free_cores);
    assert_true(r.polls > MANY * 8 / 10);
}

static void a_descheduled_thread_stops_polling(void **state)
{
    (void)state;
    struct run r = fresh();
    struct world free_cores = {.slept_ns = 90 * ENV_US, .polled_ns = 8 * ENV_US, .frames = 1};
    sleeps(&r, MANY, &free_cores);
    struct world full = {.slept_ns = 90 * ENV_US, .polled_ns = 8 * ENV_US, .frames = 1, .descheduled = true};
    sleeps(&r, MANY, &full);
    assert_true(r.polls <= 8 * SPIN_GAPS); /* this many for each trial */
    sleeps(&r, MANY, &full);
    assert_true(r.polls <= 2 * SPIN_GAPS); /* trials have become rare */
}

static void a_lane_without_frames_sleeps(void **state)
{
    (void)state;
    struct run r = fresh();
    struct world idle = {.slept_ns = ENV_SEC, .polled_ns = 60 * ENV_US, .polls_fail = true};
    sleeps(&r, MANY, &idle);
    assert_int_equal(r.polls, 0);
    /* A push each millisecond: polls find nothing, and sleeping is as fast. */
    struct world paced = {.slept_ns = ENV_MS, .polled_ns = ENV_MS, .frames = 1, .polls_fail = true};
    sleeps(&r, MANY, &paced);
    sleeps(&r, MANY, &paced);
    assert_true(r.polls <= 2 * (SPIN_WINDOW / SPIN_TRIES + 8));
}

static void polls_that_find_nothing_get_shorter_and_rarer(void **state)
{
    (void)state;
    struct run r = fresh();
    struct world world = {.slept_ns = 20 * ENV_US, .polled_ns = 20 * ENV_US, .frames = 1, .polls_fail = true};
    sleeps(&r, SPIN_WINDOW, &world);
    sleeps(&r, SPIN_WINDOW, &world); /* the trial */
    assert_in_range(r.polls, 1, SPIN_WINDOW / SPIN_TRIES + 8);
}

/* A leader that has what it waited for, and a thread that was descheduled while it slept. */
static void time_that_has_other_causes_is_not_counted(void **state)
{
    (void)state;
    struct run r = fresh();
    for (unsigned i = 0; i < SPIN_WINDOW; i++) {
        assert_int_equal(spin_begin(&r.spin, r.now, r.frames++), 0);
        r.now += 10 * ENV_US;
        if (i % 2) {
            spin_pause(&r.spin, r.now);
            r.now += ENV_SEC;
        }
        if (i == 70)
            r.now += 3 * ENV_MS;
    }
    (void)spin_begin(&r.spin, r.now, r.frames);
    assert_in_range(r.spin.ways.cost[false], 10 * ENV_US, 12 * ENV_US);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(polling_that_is_cheaper_is_kept),
        cmocka_unit_test(polling_that_costs_as_much_is_left),
        cmocka_unit_test(the_cost_is_that_of_a_frame),
        cmocka_unit_test(a_change_is_noticed),
        cmocka_unit_test(a_descheduled_thread_stops_polling),
        cmocka_unit_test(a_lane_without_frames_sleeps),
        cmocka_unit_test(polls_that_find_nothing_get_shorter_and_rarer),
        cmocka_unit_test(time_that_has_other_causes_is_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
