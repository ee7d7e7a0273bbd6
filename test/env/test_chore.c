#include "unit.h"

#include <stdatomic.h>
#include <string.h>

#include "env/chore.h"
#include "env/sim.h"

enum { CHORES = 100 };

struct job {
    struct chore chore;
    struct board *board;
    int number;
};

struct board {
    struct lane *lane;
    struct chores *chores;
    int worked, ended; /* each: the chores' thread's, the lane's */
    bool off_lane, worked_in_order;
    bool on_lane, ended_in_order;
    atomic_bool all;
    struct job job[CHORES];
};

static void work(struct chore *chore)
{
    struct job *job = container_of(chore, struct job, chore);
    job->board->off_lane &= !lane_held(job->board->lane);
    job->board->worked_in_order &= job->number == job->board->worked++;
}

static void done(struct chore *chore)
{
    struct job *job = container_of(chore, struct job, chore);
    struct board *b = job->board;
    b->on_lane &= lane_held(b->lane);
    b->ended_in_order &= job->number == b->ended++;
    if (b->ended == CHORES) {
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
    assert_int_equal(chores_create(env, "chores", &b->chores), PARAMO_OK);
    for (int i = 0; i < CHORES; i++) {
        b->job[i] =
            (struct job){.chore = {.lane = b->lane, .work = work, .done = done}, .board = b, .number = i};
        chores_post(b->chores, &b->job[i].chore);
    }
}

static void check(const struct board *b)
{
    assert_int_equal(b->worked, CHORES);
    assert_int_equal(b->ended, CHORES);
    assert_true(b->off_lane && b->worked_in_order && b->on_lane && b->ended_in_order);
}

static void a_thread_of_their_own(void **state)
{
    (void)state;
    static struct board b;
    prepare(&b, env_real());
    assert_int_equal(lane_wait(b.lane, all_done, &b, UINT64_MAX), PARAMO_OK);
    chores_destroy(b.chores);
    lane_destroy(b.lane);
    check(&b);
}

/* What was posted is done before destroy returns, and told before the lane is gone. */
static void destroyed_at_once(void **state)
{
    (void)state;
    static struct board b;
    prepare(&b, env_real());
    chores_destroy(b.chores);
    assert_int_equal(b.worked, CHORES);
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
        assert_true(sim_now(sim) > start + CHORES);
        check(&b);
        if (round)
            assert_int_equal(trace, sim_trace(sim));
        trace = sim_trace(sim);
        chores_destroy(b.chores);
        lane_destroy(b.lane);
        sim_destroy(sim);
    }
    struct sim *sim;
    assert_int_equal(sim_create(7, &sim), PARAMO_OK);
    prepare(&b, sim_env(sim));
    chores_destroy(b.chores);
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
