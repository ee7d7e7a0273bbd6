#include "van/conformance.h"

static void tcp_open(struct env **env, struct van **van)
{
    *env = env_real();
    assert_int_equal(van_tcp_create(*env, van), PARAMO_OK);
}

const struct conf_van conf_van = {.open = tcp_open,
                                  .close = van_destroy,
                                  .listen_address = "127.0.0.1:0",
                                  .dead_address = "127.0.0.1:1",
                                  .large_bytes = (CONF_SLOW ? 8 : 64) << 20,
                                  .large_count = CONF_SLOW ? 4 : 64};

int main(void)
{
    const struct CMUnitTest tests[] = {CONFORMANCE_TESTS};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
