/* Functions of our own (own_functions.h) on the servers. Every process of the job registers them, servers, too.
 * "./function" runs alone; "paramo run -s 3 -w 1 -- ./function" runs it as a job. With PARAMO_PLUGIN=./plugin.so they
 * come from there. */
#include <paramo/functions.h>

#include "example.h"
#include "own_functions.h"

enum { ROWS = 100000 };

static void show(paramo_worker *worker, paramo_table *table, double limit)
{
    uint64_t count[BINS], ts;
    paramo_reduction r;
    paramo_reduction_init(&r, PARAMO_REDUCE_USER);
    r.name = "histogram";
    r.params = &limit, r.params_bytes = sizeof limit;
    r.state = count, r.state_bytes = sizeof count;
    check(paramo_reduce(worker, table, &r, NULL, &ts));
    check(paramo_wait(worker, ts, 0));
    printf("%" PRIu64 " weights:", r.values);
    for (int i = 0; i < BINS; i++)
        printf(" %" PRIu64, count[i]);
    printf("\n");
}

static void work(paramo_node *node, paramo_worker *worker)
{
    static uint64_t keys[ROWS];
    static float weights[ROWS];
    uint64_t seed = 1;
    double limit = 0.5;
    paramo_table *table = adding_table(worker, "weights", PARAMO_F32, 1, 0);
    (void)node;
    for (size_t i = 0; i < ROWS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        keys[i] = 7 * i;
        weights[i] = (float)(seed >> 40) / (1 << 23) - 1;
    }
    push(worker, table, keys, ROWS, weights, ROWS);
    show(worker, table, 1);

    paramo_transformation change;
    paramo_transformation_init(&change, PARAMO_TRANSFORM_USER);
    change.name = "clip";
    change.params = &limit, change.params_bytes = sizeof limit;
    check(paramo_transform(worker, table, &change));
    show(worker, table, 1);
}

int main(void)
{
    if (!getenv("PARAMO_PLUGIN")) {
        check(paramo_function_register(&clip_function));
        check(paramo_function_register(&histogram_function));
    }
    return run(work);
}
