/* The table of a node's settings: every line is whole, and defaults, variables and options set their fields. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/config.h"
#include "node/settings.h"
#include "unit.h"

static void every_line_is_whole(void **state)
{
    (void)state;
    const paramo_option *option, *other;
    for (size_t i = 0; (option = paramo_config_option(i)); i++) {
        paramo_option_value value;
        assert_non_null(option->help);
        assert_true(option->type == PARAMO_OPTION_FLAG || option->meta);
        if (option->preset)
            assert_int_equal(paramo_option_read(option, PARAMO_FROM_DEFAULT, option->preset, &value),
                             PARAMO_OK);
        for (size_t k = 0; k < i && (other = paramo_config_option(k)); k++) {
            assert_false(option->name && other->name && strcmp(option->name, other->name) == 0);
            assert_false(option->variable && other->variable &&
                         strcmp(option->variable, other->variable) == 0);
        }
    }
}

static void defaults_are_those_of_the_table(void **state)
{
    (void)state;
    paramo_config c;
    paramo_config_init(&c);
    assert_int_equal(c.size, sizeof c);
    assert_int_equal(c.roles, 0);
    assert_int_equal(c.rank, -1);
    assert_int_equal(c.notify_fd, -1);
    assert_int_equal(c.num_servers, 1);
    assert_int_equal(c.num_workers, 1);
    assert_int_equal(c.shards, 1);
    assert_int_equal(c.weight, 1);
    assert_int_equal(c.replicas, 0);
    assert_string_equal(c.van, "auto");
    assert_int_equal(c.connect_timeout_ms, 60000);
    assert_int_equal(c.request_timeout_ms, 60000);
    assert_int_equal(c.heartbeat_ms, 1000);
    assert_int_equal(c.heartbeat_timeout_ms, 10000);
    assert_int_equal(c.scheduler_wait_ms, 1000);
    assert_int_equal(c.max_message_bytes, UINT64_C(1) << 30);
    assert_int_equal(c.handler_wait_ms, 10000);
    assert_int_equal(c.checkpoint_full_every, 10);
    assert_int_equal(c.checkpoint_keep, 3);
    assert_int_equal(c.on_loss, PARAMO_ON_LOSS_END);
    assert_int_equal(c.recovery_ms, 0);
    assert_null(c.scheduler);
    assert_null(c.token);
}

static void options_set_their_fields(void **state)
{
    (void)state;
    paramo_config c;
    char text[] = "10.0.0.1:9000";
    paramo_config_init(&c);
    assert_int_equal(paramo_config_set(&c, "scheduler", text), PARAMO_OK);
    text[0] = 'x'; /* the configuration has its own copy */
    assert_string_equal(c.scheduler, "10.0.0.1:9000");
    assert_int_equal(paramo_config_set(&c, "port", "65535"), PARAMO_OK);
    assert_int_equal(c.port, 65535);
    assert_int_equal(paramo_config_set(&c, "wait", "7"), PARAMO_OK);
    assert_int_equal(c.connect_timeout_ms, 7000);
    assert_int_equal(paramo_config_set(&c, "on-loss", "restore"), PARAMO_OK);
    assert_int_equal(c.on_loss, PARAMO_ON_LOSS_RESTORE);
    assert_int_equal(paramo_config_set(&c, "trusted-fabric", NULL), PARAMO_OK);
    assert_int_equal(c.trusted_fabric, 1);
    assert_int_equal(paramo_config_set(&c, "rank", "3"), PARAMO_OK);
    assert_int_equal(c.rank, 3);
    assert_int_equal(paramo_config_set(&c, "van", "inproc"), PARAMO_E_INVALID);
    assert_string_equal(c.van, "auto");
}

static void a_wrong_value_is_named_with_its_place_and_limits(void **state)
{
    (void)state;
    paramo_config c;
    paramo_config_init(&c);
    assert_int_equal(paramo_config_set(&c, "shards", "257"), PARAMO_E_INVALID);
    assert_string_equal(paramo_last_error(),
                        "--shards '257' on the command line: not a whole number from 1 to 256");
    assert_int_equal(c.shards, 1);
    assert_int_equal(paramo_config_set(&c, "on-loss", "perhaps"), PARAMO_E_INVALID);
    assert_string_equal(paramo_last_error(),
                        "--on-loss 'perhaps' on the command line: not one of end|restore");
    assert_int_equal(paramo_config_set(&c, "state", ""), PARAMO_E_INVALID);
    assert_string_equal(paramo_last_error(), "--state '' on the command line: it is empty");
    assert_int_equal(paramo_config_set(&c, "no-such", "1"), PARAMO_E_INVALID);
    assert_int_equal(setenv("PARAMO_SHARDS", "-1", 1), 0);
    assert_int_equal(paramo_config_from_env(&c), PARAMO_E_INVALID);
    assert_string_equal(paramo_last_error(),
                        "PARAMO_SHARDS=-1 in the environment: not a whole number from 1 to 256");
    assert_int_equal(setenv("PARAMO_SHARDS", "256", 1), 0);
    assert_int_equal(paramo_config_from_env(&c), PARAMO_OK);
    assert_int_equal(c.shards, 256);
    assert_int_equal(unsetenv("PARAMO_SHARDS"), 0);
}

static void every_variable_sets_or_is_refused(void **state)
{
    (void)state;
    const paramo_option *option;
    for (size_t i = 0; (option = paramo_config_option(i)); i++) {
        paramo_config c;
        paramo_config_init(&c);
        if (!option->variable || option->type != PARAMO_OPTION_NUMBER ||
            strcmp(option->variable, "PARAMO_POLL") == 0)
            continue;
        assert_int_equal(setenv(option->variable, "18446744073709551615", 1), 0);
        assert_int_equal(paramo_config_from_env(&c), PARAMO_E_INVALID);
        assert_non_null(strstr(paramo_last_error(), option->variable));
        assert_non_null(strstr(paramo_last_error(), "in the environment"));
        assert_int_equal(unsetenv(option->variable), 0);
    }
}

/* A second call, with another environment in the same memory, changes nothing that the first has read. */
static void every_text_is_kept(void **state)
{
    (void)state;
    enum { VARIABLES = 100, ROOM = 64 };
    static char memory[VARIABLES][ROOM]; /* the environment points to it */
    const paramo_option *option;
    paramo_config first, second;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < VARIABLES && (option = paramo_config_option(i)); i++) {
            if (!option->variable || option->type != PARAMO_OPTION_TEXT ||
                strncmp(option->variable, "PARAMO_", 7) != 0)
                continue;
            (void)snprintf(memory[i], ROOM, "%s=%s", option->variable, round ? "second" : "first");
            assert_int_equal(putenv(memory[i]), 0);
        }
        paramo_config_init(round ? &second : &first);
        assert_int_equal(paramo_config_from_env(round ? &second : &first), PARAMO_OK);
    }
    unsigned texts = 0;
    const char **a, **b;
    for (unsigned i = 0; (a = settings_text(&first, i)) && (b = settings_text(&second, i)); i++) {
        if (!*a || strcmp(*a, "auto") == 0) /* advertise, van */
            continue;
        assert_string_equal(*a, "first");
        assert_string_equal(*b, "second");
        texts++;
    }
    assert_int_equal(texts, 12);
    for (size_t i = 0; (option = paramo_config_option(i)); i++)
        if (option->variable)
            assert_int_equal(unsetenv(option->variable), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_is_whole),
        cmocka_unit_test(defaults_are_those_of_the_table),
        cmocka_unit_test(options_set_their_fields),
        cmocka_unit_test(a_wrong_value_is_named_with_its_place_and_limits),
        cmocka_unit_test(every_variable_sets_or_is_refused),
        cmocka_unit_test(every_text_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
