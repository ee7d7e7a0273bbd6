/* Every worker adds to the same three values, then reads them. Alone it runs a whole cluster in this process;
 * "paramo run -s 2 -w 4 -- ./hello" runs the same program as processes. */
#include <paramo/paramo.h>
#include <stdio.h>
#include <stdlib.h>

static void check(paramo_err err)
{
    if (err != PARAMO_OK) {
        fprintf(stderr, "hello: %s\n", paramo_last_error());
        exit(1);
    }
}

static void work(paramo_node *node)
{
    paramo_worker *worker;
    check(paramo_worker_open(node, 0, &worker));

    paramo_table_options options;
    paramo_table_options_init(&options); /* a sparse table of one float a key, to which a push adds */
    paramo_table *table;
    check(paramo_table_open(worker, "hello", &options, &table));

    uint64_t keys[] = {0, 42, UINT64_MAX}, ts;
    float vals[] = {1, 2, 3};
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = keys, kv.n = 3;
    kv.vals = vals, kv.vals_len = 3;
    check(paramo_push(worker, table, &kv, NULL, &ts));
    check(paramo_wait(worker, ts, 0));

    check(paramo_barrier(node, PARAMO_GROUP_WORKERS, 0, 0)); /* until all have pushed */
    check(paramo_pull(worker, table, &kv, NULL, &ts));
    check(paramo_wait(worker, ts, 0));
    printf("worker %u of %u, %u servers: %g %g %g\n", paramo_node_rank(node), paramo_num_workers(node),
           paramo_num_servers(node), vals[0], vals[1], vals[2]);

    paramo_table_close(table);
    paramo_worker_close(worker);
}

int main(void)
{
    paramo_config config;
    paramo_config_init(&config);
    config.roles = PARAMO_ROLE_ALL; /* unless the environment says otherwise */
    config.num_servers = config.num_workers = 1;
    check(paramo_config_from_env(&config));

    paramo_node *node;
    check(paramo_start(&config, &node));
    if (paramo_node_is(node, PARAMO_ROLE_WORKER))
        work(node);
    check(paramo_stop(node)); /* scheduler and servers stay here until the job is over */
    return 0;
}
