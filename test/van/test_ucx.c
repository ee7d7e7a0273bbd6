/* The conformance suite over UCX with shared memory, which comes up while the tests send. */
#include "van/support_ucx.h"

static void ucx_open(struct env **env, struct van **van)
{
    *env = env_real();
    assert_int_equal(van_ucx_create(*env, &(struct van_config){.at_once = true}, van), PARAMO_OK);
}

const struct conf_van conf_van = {.open = ucx_open,
                                  .close = van_destroy,
                                  .listen_address = "127.0.0.1:0",
                                  .dead_address = "127.0.0.1:1",
                                  .large_bytes = (CONF_SLOW ? 8 : 64) << 20,
                                  .large_count = CONF_SLOW ? 4 : 32};

int main(void)
{
    const struct CMUnitTest tests[] = {CONFORMANCE_TESTS};
    return !ucx_is_here() ? 77 : cmocka_run_group_tests(tests, NULL, NULL);
}
