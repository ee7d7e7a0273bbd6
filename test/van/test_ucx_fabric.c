/* The conformance suite over a fabric of UCX (its tcp, where there is no other), with the way up before the
 * first frame. */
#include "van/support_ucx.h"

static void ucx_open(struct env **env, struct van **van)
{
    static const struct van_config config = {.trusted_fabric = true, .no_shm = true, .at_once = true};
    *env = env_real();
    assert_int_equal(van_ucx_create(*env, &config, van), PARAMO_OK);
}

const struct conf_van conf_van = {.open = ucx_open,
                                  .close = van_destroy,
                                  .listen_address = "127.0.0.1:0",
                                  .dead_address = "127.0.0.1:1",
                                  .paired = ucx_wait_up,
                                  .large_bytes = (CONF_SLOW ? 8 : 64) << 20,
                                  .large_count = CONF_SLOW ? 4 : 16};

int main(void)
{
    const struct CMUnitTest tests[] = {CONFORMANCE_TESTS};
    return ucx_is_here() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
