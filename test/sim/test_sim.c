#include "unit.h"

#include <string.h>

#include "env/blocking_job.h"
#include "env/lane.h"
#include "sim/env/sim.h"

struct note {
    struct sim_event event;
    char letter;
    char *log;
};

static void note_fire(struct sim_event *event)
{
    struct note *n = container_of(event, struct note, event);
    size_t len = strlen(n->log);
    n->log[len] = n->letter;
    n->log[len + 1] = '\0';
}

static void events_come_by_time_then_by_sequence(void **state)
{
    (void)state;
    struct sim *sim;
    assert_int_equal(sim_create(1, &sim), PARAMO_OK);
    char log[8] = "";
    struct note notes[5];
    static const uint64_t after[5] = {30, 10, 20, 10, 10};
    for (int i = 0; i < 5; i++) {
        notes[i] = (struct note){.event.fire = note_fire, .letter = (char)('a' + i), .log = log};
        assert_int_equal(sim_schedule(sim, &notes[i].event, sim_now(sim) + after[i]), PARAMO_OK);
    }
    sim_cancel(sim, &notes[3].event);
    uint64_t start = sim_now(sim);
    while (sim_step(sim)) {
    }
    assert_string_equal(log, "beca");
    assert_int_equal(sim_now(sim), start + 30);
    sim_destroy(sim);
}

struct relay {
    struct lane_task task;
    struct lane_timer timer;
    struct lane *lane;
    unsigned runs;
};

static void relay_fire(struct lane_timer *timer)
{
    container_of(timer, struct relay, timer)->runs++;
}

static void relay_run(struct lane_task *task)
{
    struct relay *r = container_of(task, struct relay, task);
    r->runs++;
    assert_int_equal(lane_timer_arm(r->lane, &r->timer, lane_now(r->lane) + 5 * ENV_SEC), PARAMO_OK);
}

static bool relay_done(void *arg)
{
    return ((struct relay *)arg)->runs == 2;
}

static void lanes_run_on_the_virtual_clock(void **state)
{
    (void)state;
    struct sim *sim;
    assert_int_equal(sim_create(7, &sim), PARAMO_OK);
    struct lane *lane;
    assert_int_equal(lane_create(sim_env(sim), "sim", 0, &lane), PARAMO_OK);
    struct relay r = {.task.run = relay_run, .timer.fire = relay_fire, .lane = lane};
    uint64_t start = sim_now(sim);
    lane_post(lane, &r.task);
    assert_int_equal(r.runs, 0); /* a post is an event, never a call */
    assert_int_equal(lane_wait(lane, relay_done, &r, start + 2 * ENV_SEC), PARAMO_E_TIMEOUT);
    assert_int_equal(r.runs, 1);
    assert_int_equal(lane_wait(lane, relay_done, &r, start + 9 * ENV_SEC), PARAMO_OK);
    assert_int_equal(sim_now(sim), start + 5 * ENV_SEC);
    lane_destroy(lane);
    assert_false(sim_step(sim));
    sim_destroy(sim);
}

static void randomness_comes_from_the_seed(void **state)
{
    (void)state;
    uint64_t drawn[3];
    for (unsigned i = 0; i < 3; i++) {
        struct sim *sim;
        assert_int_equal(sim_create(i / 2, &sim), PARAMO_OK);
        drawn[i] = env_random(sim_env(sim));
        sim_destroy(sim);
    }
    assert_int_equal(drawn[0], drawn[1]);
    assert_int_not_equal(drawn[0], drawn[2]);
}

struct job {
    struct blocking_job job;
    unsigned ends;
};

static void job_work(struct blocking_job *job)
{
    (void)job;
}

static void job_done(struct blocking_job *job)
{
    container_of(job, struct job, job)->ends++;
}

/* A disk works on while its process is stopped; a thread of the process, whose jobs name no lane, does not. */
static void threads_stop_with_their_process(void **state)
{
    (void)state;
    struct sim *sim;
    struct sim_host *host;
    struct lane *lane;
    struct blocking_jobs *disk, *thread;
    assert_int_equal(sim_create(1, &sim), PARAMO_OK);
    assert_int_equal(sim_host_create(sim, 0, &host), PARAMO_OK);
    struct env *env = sim_host_env(host);
    assert_int_equal(lane_create(env, "lane", 0, &lane), PARAMO_OK);
    assert_int_equal(blocking_jobs_create(env, "disk", &disk), PARAMO_OK);
    assert_int_equal(blocking_jobs_create(env, "thread", &thread), PARAMO_OK);
    struct job sync = {.job = {.lane = lane, .work = job_work, .done = job_done}},
               function = {.job = {.work = job_work, .done = job_done}};
    uint64_t until = sim_now(sim) + ENV_SEC;
    sim_host_pause(host, until);
    blocking_jobs_post(disk, &sync.job);
    blocking_jobs_post(thread, &function.job);
    while (sim_next_at(sim) < until && sim_step(sim)) {
    }
    assert_int_equal(function.ends, 0);
    while (sim_step(sim)) {
    }
    assert_int_equal(function.ends, 1);
    assert_int_equal(sync.ends, 1); /* its end is a task of the lane, which stood still */
    blocking_jobs_destroy(thread);
    blocking_jobs_destroy(disk);
    lane_destroy(lane);
    sim_destroy(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_by_time_then_by_sequence),
        cmocka_unit_test(lanes_run_on_the_virtual_clock),
        cmocka_unit_test(randomness_comes_from_the_seed),
        cmocka_unit_test(threads_stop_with_their_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
