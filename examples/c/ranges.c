/* A dense vector on the servers: each worker adds to its share of it, a range of rows, and reads the whole. No array of
 * keys is needed, and no keys travel. Alone, or as "paramo run -s 2 -w 3 -- ./ranges". */
#include "example.h"

enum { ROWS = 100000 };

static float values[ROWS];

static void work(paramo_node *node, paramo_worker *worker)
{
    paramo_table_options options;
    paramo_table_options_init(&options);
    options.kind = PARAMO_TABLE_DENSE;
    options.rows = ROWS;
    paramo_table *table;
    check(paramo_table_open(worker, "vector", &options, &table));

    uint64_t ts, rank = paramo_node_rank(node), workers = paramo_num_workers(node);
    paramo_range share;
    paramo_range_init(&share);
    share.begin = ROWS * rank / workers;
    share.end = ROWS * (rank + 1) / workers;
    share.vals = values;
    share.vals_len = share.end - share.begin;
    for (uint64_t i = 0; i < share.vals_len; i++)
        values[i] = (float)(share.begin + i);
    check(paramo_push_range(worker, table, &share, NULL, &ts));
    check(paramo_wait(worker, ts, 0));
    check(paramo_barrier(node, PARAMO_GROUP_WORKERS, 0, 0)); /* until all have pushed */

    paramo_range whole;
    paramo_range_init(&whole); /* end 0: up to the last row */
    whole.vals = values;
    whole.vals_len = ROWS;
    check(paramo_pull_range(worker, table, &whole, NULL, &ts));
    check(paramo_wait(worker, ts, 0));
    size_t right = 0;
    for (size_t i = 0; i < ROWS; i++)
        right += values[i] == (float)i;
    paramo_counters counters = {.size = sizeof counters};
    paramo_worker_counters(worker, &counters);
    printf("worker %llu: %zu of %d rows are right, %s\n", (unsigned long long)rank, right, ROWS,
           counters.bytes_sent < 4 * share.vals_len + 65536 ? "and no keys have travelled" : "with keys");
    paramo_table_close(table);
}

int main(void)
{
    return run(work);
}
