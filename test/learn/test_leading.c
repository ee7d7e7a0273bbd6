#include "learn/support_learn.h"
#include "learn/train/leader.h"
#include "paramo/paramo.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Processes of one job: each has its own record of it, and they share a node, as the scheduler is all that
 * they have in common. */
static paramo_node *node;

static int setup(void **state)
{
    (void)state;
    paramo_config config;
    paramo_config_init(&config);
    config.roles = PARAMO_ROLE_ALL;
    config.num_servers = config.num_workers = 1;
    return paramo_start(&config, &node) == PARAMO_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return paramo_stop(node) == PARAMO_OK ? 0 : -1;
}

static const struct words full = {
    .round = 7,
    .workers = 3,
    .rows = 123456789012,
    .go_on = GOES_ON,
    .run_rows = 99,
    .dealt_again = 5,
    .best_epoch = 4,
    .best_loss = 0.5,
    .bad_epochs = 2,
    .epoch = {.rows = 1000,
              .positives = 300,
              .loss = 0.25,
              .guess_loss = 0.75,
              .mean_label = 0.3,
              .seconds = 1.5,
              .valid_seconds = 0.5,
              .sent = 1e12,
              .received = 2e12,
              .keys = 42,
              .nonzero = 41,
              .has_valid = 1,
              .valid = {10, 3, 0.25, 0.125, 0.5, {0.875, 0.75, 1.25, 2, 3, 4, 5}}},
    .gave_up = 6,
    .label_scale = 12,
};

static void same(const struct words *a, const struct words *b)
{
    double x[WORDS], y[WORDS];
    lead_encode(a, x);
    lead_encode(b, y);
    assert_memory_equal(x, y, sizeof x);
}

static void test_a_word_is_read_as_it_was_put(void **state)
{
    (void)state;
    double numbers[WORDS];
    struct words words;
    lead_encode(&full, numbers);
    for (size_t i = 0; i < WORDS; i++) /* a number that is left out would be 0 */
        assert_true(numbers[i] != 0 || i == 4);
    lead_decode(numbers, WORDS, &words);
    same(&words, &full);
    lead_decode(numbers, WORDS_OLD, &words); /* of a checkpoint of before */
    assert_true(words.round == 7 && words.workers == 3 && words.rows == 123456789012 &&
                words.go_on == GOES_ON);
    assert_true(words.leader == 0 && words.best_epoch == 0 && words.epoch.rows == 0);
    for (size_t i = 0; i < WORDS; i++) /* whatever another program has put there */
        numbers[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? -1 : 1e300;
    lead_decode(numbers, WORDS, &words);
    assert_true(words.round == 0 && words.workers == 0 && words.rows == 0);
}

static struct job process(void)
{
    struct job job = {.node = node};
    assert_int_equal(lead_open(&job), PARAMO_OK);
    return job;
}

static void test_one_leads(void **state)
{
    (void)state;
    struct job a = process(), b = process();
    struct words words;
    assert_int_equal(lead_place(&a, &words), PARAMO_OK);
    assert_int_equal(words.workers, 0);
    assert_int_equal(lead_try(&a), PARAMO_OK);
    assert_true(a.leads);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(lead_try(&b), PARAMO_OK);
        assert_false(b.leads);
    }
    assert_int_equal(lead_try(&a), PARAMO_OK);
    assert_true(a.leads);

    assert_int_equal(lead_ready(&b, 1, &words), PARAMO_E_TIMEOUT);
    struct words first = {.workers = 3, .go_on = GOES_ON};
    assert_int_equal(lead_put_ready(&a, &first), PARAMO_OK);
    assert_int_equal(lead_ready(&b, 1, &words), PARAMO_OK);
    assert_int_equal(words.leader, paramo_node_id(node));
    assert_int_equal(lead_still(&a), PARAMO_OK);

    assert_int_equal(lead_word(&b, 6, 1, &words), PARAMO_E_TIMEOUT);
    a.gave_up = full.gave_up;
    assert_int_equal(lead_put_word(&a, &full), PARAMO_OK);
    assert_int_equal(lead_word(&b, 6, 1, &words), PARAMO_OK);
    assert_int_equal(words.leader, paramo_node_id(node));
    words.leader = 0;
    same(&words, &full);
    struct words next = full;
    next.round = 8;
    assert_int_equal(lead_put_word(&a, &next), PARAMO_OK);
    assert_int_equal(lead_word(&b, 6, 1, &words), PARAMO_E_TIMEOUT); /* values are bounded */
    assert_int_equal(lead_now(&b, &words), PARAMO_OK);
    assert_int_equal(words.round, 8);

    /* another has taken over */
    double numbers[WORDS];
    next.leader = paramo_node_id(node) + 2;
    lead_encode(&next, numbers);
    assert_int_equal(paramo_kv_put(node, "train/now", numbers, sizeof numbers), PARAMO_OK);
    assert_int_equal(lead_still(&a), PARAMO_E_FENCED);
}

/* A leader that cannot save announces that no worker leads, and changes nothing else; the others then ask at once. */
static void test_the_lead_is_handed_over(void **state)
{
    (void)state;
    struct job a = process(), b = process();
    struct words words;
    assert_int_equal(lead_try(&a), PARAMO_OK);
    assert_true(a.leads);
    assert_int_equal(lead_place(&a, &words), PARAMO_OK);
    assert_int_equal(lead_put_none(&a), PARAMO_E_NOT_FOUND); /* there is nothing to continue with */
    a.gave_up = full.gave_up;
    assert_int_equal(lead_put_word(&a, &full), PARAMO_OK);
    assert_int_equal(lead_now(&b, &words), PARAMO_OK);
    assert_int_equal(b.leader, paramo_node_id(node));
    assert_int_equal(lead_put_none(&a), PARAMO_OK);
    assert_int_equal(lead_now(&b, &words), PARAMO_OK);
    assert_int_equal(b.leader, LEAD_NONE);
    assert_int_equal(b.gave_up, full.gave_up + 1);
    assert_int_equal(lead_still(&a), PARAMO_E_FENCED);
    words.leader = 0;
    words.gave_up = full.gave_up;
    same(&words, &full);
}

static void test_a_checkpoint_of_before_is_read(void **state)
{
    (void)state;
    struct job job = process();
    struct words words;
    assert_int_equal(paramo_kv_put(node, "train/now", (double[WORDS_OLD]){2, 4, 1000, GOES_ON},
                                   WORDS_OLD * sizeof(double)),
                     PARAMO_OK);
    assert_int_equal(lead_place(&job, &words), PARAMO_OK);
    assert_true(words.round == 2 && words.workers == 4 && words.rows == 1000 && words.go_on == GOES_ON);
}

static void test_what_was_saved_is_said(void **state)
{
    (void)state;
    struct job job = process();
    assert_int_equal(lead_saved(&job, 1), PARAMO_E_TIMEOUT);
    assert_int_equal(lead_put_saved(&job), PARAMO_OK);
    assert_int_equal(lead_saved(&job, 1), PARAMO_OK);
    assert_int_equal(lead_forget_saved(&job), PARAMO_OK);
    assert_int_equal(lead_saved(&job, 1), PARAMO_E_TIMEOUT);
}

/* A worker that joins late, or stood still, knows the epochs that it was told of. */
static void test_what_the_next_leader_knows(void **state)
{
    (void)state;
    struct train_result result = {0};
    struct job job = {.result = &result};
    static const uint32_t heard[] = {3, 4, 4, 7, 8};
    for (size_t i = 0; i < sizeof heard / sizeof *heard; i++) {
        struct words words = {.round = heard[i], .epoch = {.rows = 100 + heard[i]}};
        assert_int_equal(leader_hear(&job, &words), PARAMO_OK);
        assert_int_equal(result.epochs, heard[i]);
    }
    assert_int_equal(result.first_epoch, 2);
    static const uint64_t rows[] = {0, 0, 103, 104, 0, 0, 107, 108};
    for (size_t i = 0; i < result.epochs; i++)
        assert_int_equal(result.epoch[i].rows, rows[i]);
    train_result_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_word_is_read_as_it_was_put),
        cmocka_unit_test(test_what_the_next_leader_knows),
        cmocka_unit_test_setup_teardown(test_one_leads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_lead_is_handed_over, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_checkpoint_of_before_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_was_saved_is_said, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
