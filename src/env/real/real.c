#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "env/blocking_job_impl.h"
#include "env/lane.h"
#include "env/lane_impl.h"
#include "env/real/real_lane.h"

static uint64_t real_now(struct env *env)
{
    (void)env;
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * ENV_SEC + (uint64_t)t.tv_nsec + 1;
}

static uint64_t real_random(struct env *env)
{
    (void)env;
    uint64_t bits;
    uint8_t *at = (uint8_t *)&bits;
    size_t have = 0;
    while (have < sizeof bits) {
        ssize_t got = getrandom(at + have, sizeof bits - have, 0);
        if (got > 0)
            have += (size_t)got;
        else if (errno != EINTR)
            abort(); /* only a kernel before 3.17 (2014) has no getrandom */
    }
    return bits;
}

static const struct env_ops real_ops = {
    .now = real_now,
    .random = real_random,
    .lanes = &real_lane_ops,
    .blocking_jobs = &real_blocking_job_ops,
};

struct env *env_real(void)
{
    static struct env env = {.ops = &real_ops};
    return &env;
}
