/* How far learners may be apart: the words for it, and when a batch waits. */
#include "learn/train/pace.h"
#include "unit.h"

#include <string.h>

static void words(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
        uint32_t bound;
    } c[] = {{"asp", 0, PACE_FREE},
             {"bsp", 0, 1},
             {"ssp:0", 0, 1},
             {"ssp:16", 0, 17},
             {"ssp:1048576", 0, 1048577},
             {"ssp", -1, 0},
             {"ssp:", -1, 0},
             {"ssp:x", -1, 0},
             {"ssp:-1", -1, 0},
             {"ssp:1048577", -1, 0},
             {"BSP", -1, 0},
             {"bsp:1", -1, 0},
             {"", -1, 0}};
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        uint32_t bound = 0;
        assert_int_equal(pace_parse(c[i].text, &bound), c[i].code);
        assert_int_equal(bound, c[i].bound);
    }
}

static paramo_err batch(struct pace *p, const atomic_int *stop)
{
    paramo_err err = pace_pull(p, stop);
    return err == PARAMO_OK ? pace_pushed(p) : err;
}

static void two_learners(void **state)
{
    (void)state;
    paramo_config config;
    paramo_node *node = NULL;
    atomic_int stop = 0;
    struct pace p[2] = {0};
    paramo_config_init(&config);
    config.roles = PARAMO_ROLE_ALL;
    assert_int_equal(paramo_start(&config, &node), PARAMO_OK);
    for (uint32_t i = 0; i < 2; i++) {
        p[i] = (struct pace){.node = node, .bound = 3, .embedded = 1}; /* ssp:2 */
        assert_int_equal(paramo_worker_open(node, i, &p[i].worker), PARAMO_OK);
    }
    /* Before it counts nothing holds it. A batch of its own that is unfinished counts, too. */
    assert_false(pace_holds(&p[0], 9));
    for (int i = 0; i < 2; i++) /* the second joins before the first has ended an iteration */
        assert_int_equal(pace_pull(&p[i], &stop), PARAMO_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pace_pushed(&p[i]), PARAMO_OK);
    assert_false(pace_holds(&p[0], 2));
    assert_true(pace_holds(&p[0], 3));
    /* Two clocks ahead of the other, and not three. */
    assert_int_equal(batch(&p[0], &stop), PARAMO_OK);
    assert_int_equal(batch(&p[0], &stop), PARAMO_OK);
    assert_int_equal(batch(&p[0], &stop), PARAMO_OK); /* clock 1 is reached by both */
    stop = 1;
    assert_true(pace_holds(&p[0], 1));
    assert_false(pace_holds(&p[0], 0));
    assert_int_equal(batch(&p[0], &stop), PARAMO_E_INTERRUPTED);
    stop = 0;
    assert_true(p[0].sum[PACE_WAITS] > 0 && p[0].sum[PACE_SECONDS] > 0);
    /* A worker without batches delays no other; its clock follows the minimum. */
    assert_int_equal(pace_idle(&p[1]), PARAMO_OK);
    assert_int_equal(pace_idle(&p[1]), PARAMO_OK);
    for (int i = 0; i < 20; i++)
        assert_int_equal(batch(&p[0], &stop), PARAMO_OK);
    assert_int_equal(batch(&p[1], &stop), PARAMO_OK);
    assert_true(p[1].next >= 22 && p[1].next <= 25);
    assert_true(p[0].sum[PACE_STALE] + p[0].sum[PACE_STALE + 1] + p[0].sum[PACE_STALE + 2] == 24);
    assert_true(p[0].sum[PACE_STALE + 3] == 0);
    /* The sums are the job's, and each is added once. */
    for (int i = 0; i < 2; i++) {
        double sum[PACE_SUMS];
        size_t len;
        assert_int_equal(pace_report(&p[0]), PARAMO_OK);
        assert_int_equal(paramo_kv_get(node, PACE_SUMS_KEY, sum, sizeof sum, &len, 0), PARAMO_OK);
        assert_true(len == sizeof sum && sum[PACE_STALE] + sum[PACE_STALE + 1] + sum[PACE_STALE + 2] == 24);
    }
    /* asp costs nothing. */
    struct pace free_one = {.node = node, .worker = p[1].worker};
    assert_false(pace_holds(&free_one, 1000));
    assert_int_equal(batch(&free_one, &stop), PARAMO_OK);
    assert_false(free_one.counts);
    for (int i = 0; i < 2; i++)
        paramo_worker_close(p[i].worker);
    assert_int_equal(paramo_stop(node), PARAMO_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),
        cmocka_unit_test(two_learners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
