/* The simulator itself: what it plays is the seed's alone, a file replays it, shrinking keeps the failure.
 * scripts/mutants shows that it finds bugs. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "env/lane.h"
#include "sim/env/sim.h"
#include "sim/play.h"

static void the_same_seed_plays_the_same_way(void **state)
{
    (void)state;
    uint64_t last = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct schedule s;
        struct play_result a, b;
        assert_int_equal(schedule_draw(seed, &s), PARAMO_OK);
        play(&s, &a);
        play(&s, &b);
        assert_string_equal(a.text, "");
        assert_false(a.failed);
        assert_true(a.trace == b.trace);
        assert_true(a.trace != last);
        assert_true(a.requests > 10 && a.steps > 500);
        assert_true(a.injected_total >= 50);
        last = a.trace;
        schedule_fini(&s);
    }
}

static void a_file_replays_what_was_drawn(void **state)
{
    (void)state;
    struct schedule drawn, read;
    struct play_result a, b;
    assert_int_equal(schedule_draw(42, &drawn), PARAMO_OK);
    char *text = schedule_write(&drawn);
    assert_non_null(text);
    assert_int_equal(schedule_read(text, &read), PARAMO_OK);
    assert_true(read.seed == 42 && read.count == drawn.count && read.servers == drawn.servers);
    play(&drawn, &a);
    play(&read, &b);
    assert_true(a.trace == b.trace);
    read.count /= 2; /* other faults, another play */
    play(&read, &b);
    assert_true(a.trace != b.trace);
    free(text);
    schedule_fini(&drawn);
    schedule_fini(&read);
}

static void what_is_no_schedule_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "paramo-sim 2\nseed 1\n",
                                      "paramo-sim 1\n",
                                      "paramo-sim 1\nseed x\n",
                                      "paramo-sim 1\nseed 1\n5 melt 0 1 1\n",
                                      "paramo-sim 1\nseed 1\n5 drop 0 99 1\n",
                                      "paramo-sim 1\nseed 1\n5 drop 0 1\n",
                                      "paramo-sim 1\nseed 1\n5 drop 0 1 1\n4 drop 0 1 1\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct schedule s;
        assert_int_equal(schedule_read(bad[i], &s), PARAMO_E_FORMAT);
        schedule_fini(&s);
    }
    struct schedule s;
    assert_int_equal(schedule_read("paramo-sim 1\n# a comment\nseed 1\n5 drop 0 99 1\n", &s),
                     PARAMO_E_FORMAT);
    assert_non_null(strstr(err_text(), "line 4"));
}

static void all_that_is_drawn_can_be_read(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct schedule drawn, read;
        assert_int_equal(schedule_draw(seed * UINT64_C(0x9e3779b97f4a7c15), &drawn), PARAMO_OK);
        char *text = schedule_write(&drawn);
        assert_non_null(text);
        assert_int_equal(schedule_read(text, &read), PARAMO_OK);
        assert_int_equal(read.count, drawn.count);
        assert_int_equal(schedule_nodes(&read), schedule_nodes(&drawn));
        assert_memory_equal(read.faults, drawn.faults, drawn.count * sizeof *drawn.faults);
        free(text);
        schedule_fini(&read);
        schedule_fini(&drawn);
    }
}

struct counter {
    struct lane_timer timer;
    unsigned fired;
};

static void count(struct lane_timer *timer)
{
    container_of(timer, struct counter, timer)->fired++;
}

/* A host's clock jumps, and its lanes stand still, without a trace on other hosts. */
static void hosts_have_clocks_of_their_own(void **state)
{
    (void)state;
    struct sim *sim;
    struct sim_host *host[2];
    struct lane *lane[2];
    struct counter counter[2];
    assert_int_equal(sim_create(1, &sim), PARAMO_OK);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(sim_host_create(sim, i, &host[i]), PARAMO_OK);
        assert_int_equal(lane_create(sim_host_env(host[i]), "lane", 0, &lane[i]), PARAMO_OK);
        counter[i] = (struct counter){.timer.fire = count};
        assert_true(lane_enter(lane[i]));
        assert_int_equal(lane_timer_arm(lane[i], &counter[i].timer, lane_now(lane[i]) + 10 * ENV_SEC),
                         PARAMO_OK);
        lane_leave(lane[i]);
    }
    uint64_t start = sim_now(sim);
    sim_host_jump(host[0], 4 * ENV_SEC);
    sim_host_jump(host[0], 5 * ENV_SEC);
    assert_true(lane_now(lane[0]) == start + 9 * ENV_SEC && lane_now(lane[1]) == start);
    assert_int_equal(sim_host_jumped(host[0], start), 9 * ENV_SEC);
    assert_int_equal(sim_host_jumped(host[0], start + 1), 5 * ENV_SEC);
    assert_int_equal(sim_host_jumped(host[0], start + 4 * ENV_SEC + 1), 0);
    assert_int_equal(sim_host_jumped(host[1], start), 0);
    sim_host_pause(host[0], start + 3 * ENV_SEC);
    assert_true(sim_step(sim)); /* due after one second, and put off */
    assert_int_equal(counter[0].fired, 0);
    assert_true(sim_step(sim));
    assert_int_equal(counter[0].fired, 1);
    assert_true(sim_now(sim) == start + 3 * ENV_SEC);
    assert_int_equal(counter[1].fired, 0);
    assert_true(sim_step(sim));
    assert_int_equal(counter[1].fired, 1);
    assert_true(sim_now(sim) == start + 10 * ENV_SEC);
    lane_destroy(lane[0]);
    lane_destroy(lane[1]);
    sim_destroy(sim);
}

static void nothing(struct sim_event *event)
{
    (void)event;
}

/* The next thing that happens, so long from now. */
static void step_at(struct sim *sim, uint64_t ns)
{
    struct sim_event marker = {.fire = nothing};
    uint64_t at = sim_now(sim) + ns;
    assert_int_equal(sim_schedule(sim, &marker, at), PARAMO_OK);
    assert_true(sim_step(sim));
    assert_int_equal(sim_now(sim), at);
}

/* A clock that is slow, or stands still, has its timers late by the simulation's clock, and never early by
 * its own. */
static void clocks_drift_and_stand_still(void **state)
{
    (void)state;
    struct sim *sim;
    struct sim_host *host;
    struct lane *lane;
    struct counter counter = {.timer.fire = count};
    assert_int_equal(sim_create(1, &sim), PARAMO_OK);
    assert_int_equal(sim_host_create(sim, 1, &host), PARAMO_OK);
    assert_int_equal(lane_create(sim_host_env(host), "lane", 0, &lane), PARAMO_OK);
    uint64_t start = sim_now(sim);
    sim_host_drift(host, -50000);
    assert_true(lane_enter(lane));
    assert_int_equal(lane_timer_arm(lane, &counter.timer, lane_now(lane) + 19 * ENV_SEC), PARAMO_OK);
    lane_leave(lane);
    assert_true(sim_step(sim)); /* 19 s by a clock that loses one second in twenty */
    assert_int_equal(counter.fired, 1);
    assert_true(sim_now(sim) >= start + 20 * ENV_SEC && sim_now(sim) < start + 20 * ENV_SEC + 2000);
    sim_host_drift(host, 0);
    uint64_t clock = lane_now(lane), at = sim_now(sim);
    sim_host_freeze(host, at + 7 * ENV_SEC);
    assert_true(lane_enter(lane));
    assert_int_equal(lane_timer_arm(lane, &counter.timer, clock + ENV_SEC), PARAMO_OK);
    lane_leave(lane);
    step_at(sim, 3 * ENV_SEC);
    assert_int_equal(sim_host_stood(host, clock), 3 * ENV_SEC);
    while (counter.fired == 1)
        assert_true(sim_step(sim));
    assert_true(sim_now(sim) == at + 8 * ENV_SEC && lane_now(lane) == clock + ENV_SEC);
    assert_int_equal(sim_host_stood(host, clock), 7 * ENV_SEC);
    assert_int_equal(sim_host_stood(host, clock + 1), 0);
    uint64_t again = lane_now(lane);
    sim_host_freeze(host, sim_now(sim) + 2 * ENV_SEC);
    step_at(sim, ENV_SEC);
    assert_int_equal(sim_host_stood(host, clock), 8 * ENV_SEC); /* both times */
    step_at(sim, 3 * ENV_SEC);
    assert_int_equal(sim_host_stood(host, clock), 9 * ENV_SEC);
    assert_int_equal(sim_host_stood(host, again), 2 * ENV_SEC);
    assert_int_equal(sim_host_stood(host, again + 1), 0);
    lane_destroy(lane);
    sim_destroy(sim);
}

/* A clock changes its speed while a timer runs, also while it stands still: no time is lost or repeated, and
 * the timer is on time by its own clock. */
static void clocks_change_their_speed(void **state)
{
    (void)state;
    struct sim *sim;
    struct sim_host *host;
    struct lane *lane;
    struct counter counter = {.timer.fire = count}, soon = {.timer.fire = count};
    assert_int_equal(sim_create(1, &sim), PARAMO_OK);
    assert_int_equal(sim_host_create(sim, 1, &host), PARAMO_OK);
    assert_int_equal(lane_create(sim_host_env(host), "lane", 0, &lane), PARAMO_OK);
    uint64_t start = sim_now(sim), clock = lane_now(lane);
    assert_true(lane_enter(lane));
    assert_int_equal(lane_timer_arm(lane, &counter.timer, clock + 20 * ENV_SEC), PARAMO_OK);
    assert_int_equal(lane_timer_arm(lane, &soon.timer, clock + 14 * ENV_SEC), PARAMO_OK);
    lane_leave(lane);
    step_at(sim, 10 * ENV_SEC);
    sim_host_drift(host, 250000); /* faster: 10 s of its own are 8 s */
    assert_int_equal(lane_now(lane), clock + 10 * ENV_SEC);
    assert_true(sim_step(sim));
    assert_int_equal(soon.fired, 1);
    assert_in_range(sim_now(sim), start + 13200 * ENV_MS, start + 13200 * ENV_MS + 1);
    step_at(sim, start + 14 * ENV_SEC - sim_now(sim));
    assert_int_equal(lane_now(lane), clock + 15 * ENV_SEC);
    sim_host_drift(host, -500000); /* slower: 5 s of its own are 10 s */
    assert_int_equal(lane_now(lane), clock + 15 * ENV_SEC);
    step_at(sim, 2 * ENV_SEC);
    assert_int_equal(lane_now(lane), clock + 16 * ENV_SEC);
    uint64_t until = sim_now(sim) + 5 * ENV_SEC;
    sim_host_freeze(host, until);
    step_at(sim, 3 * ENV_SEC);
    sim_host_drift(host, 0);
    assert_int_equal(lane_now(lane), clock + 16 * ENV_SEC);
    while (!counter.fired)
        assert_true(sim_step(sim));
    assert_int_equal(lane_now(lane), clock + 20 * ENV_SEC);
    assert_int_equal(sim_now(sim), start + 16 * ENV_SEC + 5 * ENV_SEC + 4 * ENV_SEC);
    lane_destroy(lane);
    sim_destroy(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_plays_the_same_way), cmocka_unit_test(a_file_replays_what_was_drawn),
        cmocka_unit_test(what_is_no_schedule_is_refused),   cmocka_unit_test(all_that_is_drawn_can_be_read),
        cmocka_unit_test(hosts_have_clocks_of_their_own),   cmocka_unit_test(clocks_drift_and_stand_still),
        cmocka_unit_test(clocks_change_their_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
