#include "functions.h"

static int negate(void *user, paramo_function_rows *rows)
{
    float *vals = rows->vals;
    (void)user;
    for (size_t i = 0; i < rows->n * rows->columns; i++)
        vals[i] = -vals[i];
    return rows->params_bytes > 1;
}

static void rows_count(void *user, const paramo_function_rows *rows, void *state)
{
    (void)user;
    *(uint64_t *)state += rows->n;
}

static int rows_merge(void *user, const void *params, size_t bytes, void *state, const void *from)
{
    (void)user;
    (void)params;
    (void)bytes;
    *(uint64_t *)state += *(const uint64_t *)from;
    return 0;
}

struct user_call functions_draw(struct source *s)
{
    const paramo_function f = {.size = sizeof f,
                               .name = "f",
                               .change = negate,
                               .state_bytes = 8,
                               .add = rows_count,
                               .merge = rows_merge};
    struct user_call call;
    unsigned how = draw_below(s, 8);
    if (!user_function_find("f"))
        CHECK(!user_function_register(&f));
    CHECK(!user_call_make(&call, how ? "f" : "none", "parameters", how));
    return call;
}
