#include "unit.h"

#include <stdatomic.h>
#include <string.h>

#include "env/blocking_job.h"
#include "sim/env/sim.h"

enum { BLOCKING_JOBS = 100 };

struct job {
    struct blocking_job blocking_job;
    struct board *board;
    int number;
};

struct board {
    struct lane *lane;
    struct blocking_jobs *blocking_jobs;
    int worked, ended; /* each: the blocking jobs' thread's, the lane's */
    bool off_lane, worked_in_order;
    bool on_lane, ended_in_order;
    atomic_bool all;
    struct job job[BLOCKING_JOBS];
};

static void work(struct blocking_job *blocking_job)
{
    struct job *job = container_of(blocking_job, struct job, blocking_job);
    job->board->off_lane &= !lane_held(job->board->lane);
    job->board->worked_in_order &= job->number == job->board->worked++;
}

static void done(struct blocking_job *blocking_job)
{
    struct job *job = container_of(blocking_job, struct job, blocking_job);
    struct board *b = job->board;
    b->on_lane &= lane_held(b->lane);
    b->ended_in_order &= job->number == b->ended++;
    if (b->ended == BLOCKING_JOBS) {
        struct lane *lane = b->lane;
        atomic_store(&b->all, true);
        lane_notify(lane);
    }
}

static bool all_done(void *arg)
{
    return atomic_load(&((struct board *)arg)->all);
}

static void prepare(struct board *b, struct env *env)
{
    *b = (struct board){.off_lane = true, .worked_in_order = true, .on_lane = true, .ended_in_order = true};
    assert_int_equal(lane_create(env, "lane", 0, &b->lane), PARAMO_OK);
    assert_int_equal(blocking_jobs_create(env, "blocking jobs", &b->blocking_jobs), PARAMO_OK);
    for (int i = 0; i < BLOCKING_JOBS; i++) {
        b->job[i] = (struct job){
            .blocking_job = {.lane = b->lane, .work = work, .done = done}, .board = b, .number = i};
        blocking_jobs_post(b->blocking_jobs, &b->job[i].blocking_job);
    }
}

static void check(const struct board *b)
{
    assert_int_equal(b->worked, BLOCKING_JOBS);
    assert_int_equal(b->ended, BLOCKING_JOBS);
    assert_true(b->off_lane && b->worked_in_order && b->on_lane && b->ended_in_order);
}

static void a_thread_of_their_own(void **state)
{
    (void)state;
    static struct board b;
    prepare(&b, env_real());
    assert_int_equal(lane_wait(b.lane, all_done, &b, UINT64_MAX), PARAMO_OK);
    blocking_jobs_destroy(b.blocking_jobs);
    lane_destroy(b.lane);
    check(&b);
}

/* What was posted is done before destroy returns, and told before the lane is gone. */
static void destroyed_at_once(void **state)
{
    (void)state;
    static struct board b;
    prepare(&b, env_real());
    blocking_jobs_destroy(b.blocking_jobs);
    assert_int_equal(b.worked, BLOCKING_JOBS);
    lane_destroy(b.lane);
    check(&b);
}

static void events_in_the_simulation(void **state)
{
    (void)state;
    static struct board b;
    uint64_t trace = 0;
    for (int round = 0; round < 2; round++) {
        struct sim *sim;
        assert_int_equal(sim_create(7, &sim), PARAMO_OK);
        prepare(&b, sim_env(sim));
        assert_int_equal(b.worked, 0); /* not before time passes */
        uint64_t start = sim_now(sim);
        assert_true(sim_run(sim, all_done, &b, UINT64_MAX));
        assert_true(sim_now(sim) > start + BLOCKING_JOBS);
        check(&b);
        if (round)
            assert_int_equal(trace, sim_trace(sim));
        trace = sim_trace(sim);
        blocking_jobs_destroy(b.blocking_jobs);
        lane_destroy(b.lane);
        sim_destroy(sim);
    }
    struct sim *sim;
    assert_int_equal(sim_create(7, &sim), PARAMO_OK);
    prepare(&b, sim_env(sim));
    blocking_jobs_destroy(b.blocking_jobs);
    lane_destroy(b.lane);
    check(&b);
    sim_destroy(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_of_their_own),
        cmocka_unit_test(destroyed_at_once),
        cmocka_unit_test(events_in_the_simulation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
