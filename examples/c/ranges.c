/* A dense vector on the servers: each worker adds to its share of it, a range of rows, and reads the whole. No array
 * of keys is needed, and no keys travel. Then rows that exist, and one column of a matrix. Alone, or as "paramo run
 * -s 2 -w 3 -- ./ranges". */
#include "example.h"

enum { ROWS = 100000 };

static float values[ROWS];

/* The rows of a sparse table, whose keys are any, in order. */
static void pages(paramo_worker *worker)
{
    enum { IDS = 20000, MOST = 3000 };
    static uint64_t ids[IDS], keys[MOST];
    paramo_table *table = adding_table(worker, "ids", PARAMO_F32, 1, 0);
    for (uint64_t i = 0; i < IDS; i++)
        ids[i] = mix(i);
    sort_keys(ids, IDS);
    push(worker, table, ids, IDS, values, IDS);

    paramo_page page;
    paramo_page_init(&page);
    page.keys = keys;
    page.most = MOST;
    page.vals = values;
    page.vals_len = MOST;
    size_t n = 0;
    do {
        uint64_t ts;
        check(paramo_pull_page(worker, table, &page, NULL, &ts));
        check(paramo_wait(worker, ts, 0));
        for (size_t i = 0; i < page.n; i++)
            n += page.keys[i] == ids[n];
        page.begin = page.next;
    } while (page.more);
    printf("%zu of %d ids came in order, page by page\n", n, IDS);
    paramo_table_close(table);
}

/* One column of the rows of a matrix: nothing else of them travels or changes. */
static void column(paramo_worker *worker)
{
    enum { HEIGHT = 10000, WIDTH = 8 };
    paramo_table *table = adding_table(worker, "matrix", PARAMO_F32, WIDTH, 0);
    paramo_request_options options;
    paramo_request_options_init(&options);
    options.column = 5;
    options.columns = 1;
    paramo_range rows;
    paramo_range_init(&rows);
    rows.end = HEIGHT;
    rows.vals = values;
    rows.vals_len = HEIGHT;
    for (size_t i = 0; i < HEIGHT; i++)
        values[i] = 1;
    uint64_t ts;
    check(paramo_push_range(worker, table, &rows, &options, &ts));
    check(paramo_wait(worker, ts, 0));
    rows.vals_len = HEIGHT * WIDTH;
    check(paramo_pull_range(worker, table, &rows, NULL, &ts));
    check(paramo_wait(worker, ts, 0));
    size_t right = 0;
    for (size_t i = 0; i < HEIGHT * WIDTH; i++)
        right += values[i] == (i % WIDTH == 5);
    printf("%zu of %d values of the matrix are right\n", right, HEIGHT * WIDTH);
    paramo_table_close(table);
}

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
    if (rank == 0) {
        pages(worker);
        column(worker);
    }
}

int main(void)
{
    return run(work);
}
