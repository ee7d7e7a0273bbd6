/* Settings from the environment, ps-lite's and our own, and where a node listens. */
#include <stdlib.h>
#include <string.h>

#include "node/config.h"
#include "node/node.h"
#include "unit.h"

static const char *const names[] = {
    "DMLC_ROLE",      "DMLC_PS_ROOT_URI",      "DMLC_PS_ROOT_PORT",    "DMLC_NUM_SERVER", "DMLC_NUM_WORKER",
    "DMLC_NODE_HOST", "DMLC_INTERFACE",        "DMLC_LOCAL",           "DMLC_RANK",       "PORT",
    "DMLC_PORT",      "DMLC_PS_VAN_TYPE",      "PS_VERBOSE",           "PS_RESEND",       "PS_RESEND_TIMEOUT",
    "PS_DROP_MSG",    "PS_HEARTBEAT_INTERVAL", "PS_HEARTBEAT_TIMEOUT", "PARAMO_TOKEN",    "PARAMO_LISTEN",
    "PARAMO_VAN",     "PARAMO_WEIGHT",         "PARAMO_DOMAIN"};

/* "NAME=value NAME=value"; all other variables are not set. */
static paramo_err from(const char *assignments, paramo_config *config)
{
    char text[512], *rest = text;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        (void)unsetenv(names[i]);
    assert_true(strlen(assignments) < sizeof text);
    strcpy(text, assignments);
    for (char *one; (one = strtok_r(rest, " ", &rest));) {
        char *value = strchr(one, '=');
        assert_non_null(value);
        *value++ = '\0';
        assert_int_equal(setenv(one, value, 1), 0);
    }
    paramo_config_init(config);
    return paramo_config_from_env(config);
}

#define ROOT "DMLC_PS_ROOT_URI=localhost DMLC_PS_ROOT_PORT=9000 DMLC_NUM_SERVER=2 DMLC_NUM_WORKER=3 "

static void ps_lite_variables_are_read(void **state)
{
    (void)state;
    paramo_config c;
    assert_int_equal(from(ROOT
                          "DMLC_ROLE=server DMLC_RANK=1 DMLC_PORT=7000 PS_RESEND=1 PS_RESEND_TIMEOUT=1000 "
                          "PS_DROP_MSG=10 PS_HEARTBEAT_INTERVAL=2 PS_HEARTBEAT_TIMEOUT=20 "
                          "DMLC_PS_VAN_TYPE=zmq DMLC_NODE_HOST=127.0.0.2",
                          &c),
                     PARAMO_OK);
    assert_int_equal(c.roles, PARAMO_ROLE_SERVER);
    assert_string_equal(c.scheduler, "localhost:9000");
    assert_int_equal(c.num_servers, 2);
    assert_int_equal(c.num_workers, 3);
    assert_int_equal(c.rank, 1);
    assert_int_equal(c.port, 7000);
    assert_int_equal(c.drop_percent, 10);
    assert_int_equal(c.retry_ms, 1000);
    assert_int_equal(c.heartbeat_ms, 2000);
    assert_int_equal(c.heartbeat_timeout_ms, 20000);
    assert_string_equal(c.van, "auto");
    assert_string_equal(c.listen, "127.0.0.2");
    assert_string_equal(c.advertise, "127.0.0.2");
}

/* What was read stays, however often and whatever is read later, here or on a thread that has ended. */
static void what_was_read_stays(void **state)
{
    (void)state;
    paramo_config first, second, again;
    char variable[] = "PARAMO_TOKEN=first";
    assert_int_equal(from(ROOT "DMLC_ROLE=worker DMLC_INTERFACE=lo PARAMO_DOMAIN=a", &first), PARAMO_OK);
    assert_int_equal(putenv(variable), 0); /* the environment's memory is the program's own */
    assert_int_equal(paramo_config_from_env(&first), PARAMO_OK);
    (void)strcpy(variable, "PARAMO_TOKEN=other");
    assert_int_equal(from("DMLC_PS_ROOT_URI=elsewhere DMLC_PS_ROOT_PORT=9999 DMLC_ROLE=worker "
                          "DMLC_NODE_HOST=127.0.0.9 PARAMO_TOKEN=other PARAMO_DOMAIN=b",
                          &second),
                     PARAMO_OK);
    assert_string_equal(second.scheduler, "elsewhere:9999");
    assert_string_equal(second.listen, "127.0.0.9");
    assert_string_equal(second.token, "other");
    assert_string_equal(second.domain, "b");
    assert_string_equal(first.scheduler, "localhost:9000");
    assert_string_equal(first.listen, "127.0.0.1");
    assert_string_equal(first.advertise, "127.0.0.1");
    assert_string_equal(first.token, "first");
    assert_string_equal(first.domain, "a");
    assert_int_equal(from(ROOT "DMLC_ROLE=worker", &again), PARAMO_OK);
    assert_ptr_equal(again.scheduler, first.scheduler); /* and takes no more memory */
}

static void the_schedulers_address_is_the_root(void **state)
{
    (void)state;
    paramo_config c;
    struct place place;
    assert_int_equal(
        from(ROOT "DMLC_ROLE=scheduler PORT=7000 DMLC_NODE_HOST=10.0.0.5 DMLC_INTERFACE=none", &c),
        PARAMO_OK);
    assert_int_equal(c.port, 0);
    assert_null(c.listen);
    assert_int_equal(config_place(&c, &place), PARAMO_OK);
    assert_string_equal(place.listen, "localhost:9000");
}

static void an_interface_says_where(void **state)
{
    (void)state;
    paramo_config c;
    assert_int_equal(from(ROOT "DMLC_ROLE=worker DMLC_INTERFACE=lo", &c), PARAMO_OK);
    assert_string_equal(c.listen, "127.0.0.1");
    assert_int_equal(from(ROOT "DMLC_ROLE=worker DMLC_INTERFACE=no-such-one", &c), PARAMO_E_ADDRESS);
    assert_non_null(strstr(paramo_last_error(), "DMLC_INTERFACE=no-such-one"));
    assert_int_equal(from(ROOT "DMLC_ROLE=worker DMLC_LOCAL=1 DMLC_INTERFACE=no-such-one", &c), PARAMO_OK);
    assert_string_equal(c.listen, "127.0.0.1");
}

static void weight_and_domain(void **state)
{
    (void)state;
    paramo_config c, copy;
    assert_int_equal(from(ROOT "DMLC_ROLE=server PARAMO_WEIGHT=5 PARAMO_DOMAIN=rack-a", &c), PARAMO_OK);
    assert_int_equal(config_copy(&c, &copy), PARAMO_OK);
    assert_int_equal(config_check(&copy), PARAMO_OK);
    assert_int_equal(copy.weight, 5);
    assert_string_equal(copy.domain, "rack-a");
    copy.weight = 0;
    assert_int_equal(config_check(&copy), PARAMO_E_INVALID);
    copy.weight = RING_WEIGHT_MAX + 1;
    assert_int_equal(config_check(&copy), PARAMO_E_INVALID);
    config_free(&copy);
    c.size = offsetof(paramo_config, weight); /* of a caller that knows neither */
    c.weight = 9;
    assert_int_equal(config_copy(&c, &copy), PARAMO_OK);
    assert_int_equal(copy.weight, 1);
    assert_null(copy.domain);
    config_free(&copy);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "DMLC_ROLE=boss",        "PS_DROP_MSG=200",          "PS_RESEND=2",
        "DMLC_LOCAL=x",          "DMLC_PS_VAN_TYPE=carrier", "DMLC_PORT=70000",
        "DMLC_NUM_SERVER=-1",    "PS_HEARTBEAT_TIMEOUT=1s",  "PS_VERBOSE=a",
        "PS_RESEND_TIMEOUT=1e3", "PARAMO_WEIGHT=0"};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        paramo_config c;
        assert_int_equal(from(wrong[i], &c), PARAMO_E_INVALID);
        assert_non_null(strstr(paramo_last_error(), wrong[i]));
    }
}

static void without_a_token_on_loopback_only(void **state)
{
    (void)state;
    paramo_config c;
    struct place place;
    assert_int_equal(from(ROOT "DMLC_ROLE=server", &c), PARAMO_OK);
    assert_int_equal(config_place(&c, &place), PARAMO_OK);
    assert_string_equal(place.listen, "127.0.0.1:0");
    assert_string_equal(place.advertise, "127.0.0.1");
    assert_int_equal(from(ROOT "DMLC_ROLE=server PARAMO_LISTEN=0.0.0.0", &c), PARAMO_OK);
    assert_int_equal(config_place(&c, &place), PARAMO_E_INVALID);
    assert_non_null(strstr(paramo_last_error(), "PARAMO_TOKEN"));
    assert_int_equal(from(ROOT "DMLC_ROLE=server PARAMO_LISTEN=0.0.0.0 PARAMO_TOKEN=t", &c), PARAMO_OK);
    assert_int_equal(config_place(&c, &place), PARAMO_OK);
    assert_string_equal(place.listen, "0.0.0.0:0");
    assert_string_equal(place.advertise, ""); /* the scheduler sees */
    /* A worker that may not listen works without. */
    assert_int_equal(from(ROOT "DMLC_ROLE=worker PARAMO_LISTEN=0.0.0.0", &c), PARAMO_OK);
    assert_int_equal(config_place(&c, &place), PARAMO_OK);
    assert_string_equal(place.listen, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_read_stays),
        cmocka_unit_test(ps_lite_variables_are_read),
        cmocka_unit_test(the_schedulers_address_is_the_root),
        cmocka_unit_test(an_interface_says_where),
        cmocka_unit_test(weight_and_domain),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(without_a_token_on_loopback_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
