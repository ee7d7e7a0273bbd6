#include "van/conformance.h"

static void inproc_open(struct env **env, struct van **van)
{
    *env = env_real();
    assert_int_equal(van_inproc_create(*env, van), PARAMO_OK);
}

const struct conf_van conf_van = {.open = inproc_open,
                                  .close = van_destroy,
                                  .listen_address = "shard 1",
                                  .dead_address = "shard 2",
                                  .large_bytes = (CONF_SLOW ? 8 : 64) << 20,
                                  .large_count = CONF_SLOW ? 4 : 16};

int main(void)
{
    const struct CMUnitTest tests[] = {CONFORMANCE_TESTS};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
