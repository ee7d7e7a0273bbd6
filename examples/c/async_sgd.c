/*
 * Asynchronous SGD: every worker goes through its rows in blocks, on its own: pull the weights, push the
 * block's step. A block begins when all blocks of this worker but the last DELAY are in the weights (bounded
 * delay); of the others' it takes what is there. Worker 0 prints the loss over all rows before each pass.
 *
 *     ./async_sgd                               alone
 *     paramo run -s 2 -w 3 -- ./async_sgd
 */
#include "sgd.h"

enum { BLOCKS = 10, DELAY = 2 };

static void work(paramo_node *node)
{
    paramo_worker *worker;
    paramo_table *table;
    paramo_table_options options;
    paramo_request_options pull, push;
    paramo_delay delay;
    uint64_t keys[DIM], ts;
    unsigned rank = paramo_node_rank(node), workers = paramo_num_workers(node);
    unsigned first = part(rank, workers), rows = part(rank + 1, workers) - first;
    check(paramo_worker_open(node, 0, &worker));
    paramo_table_options_init(&options); /* a push adds */
    options.dtype = PARAMO_F64;
    check(paramo_table_open(worker, "weights", &options, &table));
    all_keys(keys);
    paramo_request_options_init(&pull);
    paramo_request_options_init(&push);
    push.flags = PARAMO_COPY; /* it is not waited for: the array is used again before it is done */
    check(paramo_delay_init(&delay, DELAY));

    for (unsigned block = 0; block <= EPOCHS * BLOCKS; block++) {
        double w[DIM], g[DIM] = {0};
        paramo_kv weights = whole(keys, w), step = whole(keys, g);
        paramo_delay_apply(&delay, &pull);
        check(paramo_pull(worker, table, &weights, &pull, &ts));
        check(paramo_wait(worker, ts, 0));
        if (rank == 0 && block % BLOCKS == 0)
            printf("%2u %.9f\n", block / BLOCKS, gradient(w, 0, ROWS, NULL) / ROWS);

        unsigned k = block % BLOCKS, from = rows * k / BLOCKS, to = rows * (k + 1) / BLOCKS;
        gradient(w, first + from, first + to, g);
        for (unsigned j = 0; j < DIM; j++)
            g[j] *= -STEP / ROWS;
        check(paramo_push(worker, table, &step, &push, &ts));
        paramo_delay_end(&delay, ts);
    }
    check(paramo_wait_all(worker, 0));
    paramo_worker_close(worker);
}

int main(void)
{
    paramo_node *node = start();
    if (paramo_node_is(node, PARAMO_ROLE_WORKER))
        work(node);
    check(paramo_stop(node)); /* scheduler and servers stay here until the job is over */
    return 0;
}
