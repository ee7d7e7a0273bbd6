/* The tally van keeps the contract of a van (van/van.h). */
#include "van/conformance.h"

static void tally_open(struct env **env, struct van **van)
{
    *env = env_real();
    assert_int_equal(van_create(*env, "tally", &(struct van_config){0}, van), PARAMO_OK);
    assert_string_equal((*van)->ops->name, "tally");
}

const struct conf_van conf_van = {.open = tally_open,
                                  .close = van_destroy,
                                  .listen_address = "127.0.0.1:0",
                                  .dead_address = "127.0.0.1:1",
                                  .large_bytes = 8 << 20,
                                  .large_count = 4};

int main(void)
{
    const struct CMUnitTest tests[] = {CONFORMANCE_TESTS};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
