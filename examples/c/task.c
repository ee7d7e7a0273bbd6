/* Tasks of our own (own_tasks.h): a worker calls "total" on a server, which calls "sum" on all of them. "./task" runs
 * alone; "paramo run -s 3 -w 1 -- ./task" runs it as a job. With PARAMO_PLUGIN=./tasks.so the tasks come from there. */
#include "example.h"
#include "own_tasks.h"

enum { ROWS = 30000 };

static void hear(void *arg, uint64_t ts, uint32_t node, const void *answer, size_t bytes)
{
    double total;
    (void)arg, (void)ts;
    if (bytes != sizeof total)
        return;
    memcpy(&total, answer, sizeof total);
    printf("node %u: total %.0f\n", node, total);
}

static void work(paramo_node *node, paramo_worker *worker)
{
    static uint64_t keys[ROWS];
    static float weights[ROWS];
    paramo_table *table = adding_table(worker, "weights", PARAMO_F32, 1, 0);
    (void)node;
    for (size_t i = 0; i < ROWS; i++) {
        keys[i] = i;
        weights[i] = 1;
    }
    push(worker, table, keys, ROWS, weights, ROWS);
    struct part whole = {0, ROWS};
    uint64_t one, all;
    check(
        paramo_task_call(worker, PARAMO_ID_SERVER(0), "total", &whole, sizeof whole, hear, NULL, NULL, &one));
    check(paramo_task_call(worker, PARAMO_GROUP_SERVERS, "total", &whole, sizeof whole, hear, NULL, NULL,
                           &all));
    check(paramo_wait(worker, one, 0)); /* both run at the same time */
    check(paramo_wait(worker, all, 0));
}

int main(void)
{
    if (!getenv("PARAMO_PLUGIN")) {
        check(paramo_task_register(&sum_task));
        check(paramo_task_register(&total_task));
    }
    return run(work);
}
