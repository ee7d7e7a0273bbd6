/*
 * Workers of e2e/tasks.sh, and as a shared object (bumper.so) the tasks of its servers.
 *
 *     bumper UNTIL
 *
 * The task "bump" adds 1 to the row of the node that runs it, as a subtask, and answers. Worker 0 calls it on all
 * servers and workers, again and again, until the file UNTIL is there, and says how often. Then the row of a node
 * that lives is the number of its answers: each call has run once, and each push was applied once. The row of a dead
 * node is that, or more by at most the calls that ended with NODE_LOST. The other workers wait for the end. Exit
 * code: 0 so it is, 1 it is not, 4 an error of Paramo.
 */
#include <inttypes.h>
#include <paramo/app.h>
#include <paramo/plugin.h>
#include <paramo/task.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NODES = 64 };

static paramo_err bump(void *user, paramo_task *task, const paramo_task_info *info)
{
    paramo_table *table;
    paramo_table_options table_options;
    void *memory;
    uint64_t ts;
    (void)user;
    paramo_table_options_init(&table_options);
    paramo_err err = paramo_task_table(task, "bumps", &table_options, &table);
    if (!err)
        err = paramo_task_alloc(task, 16, &memory);
    if (err)
        return err;
    uint64_t *key = memory;
    float *one = (float *)(key + 1);
    *key = info->node;
    *one = 1;
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = key, kv.n = kv.vals_len = 1, kv.vals = one;
    paramo_request_options options;
    paramo_request_options_init(&options);
    options.task = task;
    return paramo_push(paramo_task_worker(task), table, &kv, &options, &ts);
}

static const paramo_task_function bump_task = {
    .size = sizeof(paramo_task_function), .name = "bump", .run = bump};
const paramo_task_function *const paramo_tasks[] = {&bump_task, NULL};

static void check(paramo_err err)
{
    if (err != PARAMO_OK) {
        fprintf(stderr, "bumper: %s: %s\n", paramo_err_name(err), paramo_last_error());
        fflush(stdout);
        _exit(4); /* Paramo's threads still run: a leak check is not possible */
    }
}

static unsigned answered[NODES], lost;

static void hear(void *arg, uint64_t ts, uint32_t node, const void *answer, size_t bytes)
{
    (void)arg, (void)ts, (void)answer;
    if (bytes == 0 && node < NODES)
        answered[node]++;
}

static int judge(paramo_node *node, paramo_worker *worker)
{
    static uint64_t keys[NODES];
    static float rows[NODES];
    uint32_t dead[NODES];
    uint64_t ts;
    paramo_table *table;
    paramo_table_options options;
    int wrong = 0;
    size_t deads = paramo_dead_nodes(node, dead, NODES);
    paramo_table_options_init(&options);
    check(paramo_table_open(worker, "bumps", &options, &table));
    for (uint64_t i = 0; i < NODES; i++)
        keys[i] = i;
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = keys, kv.n = kv.vals_len = NODES, kv.vals = rows;
    check(paramo_pull(worker, table, &kv, NULL, &ts));
    check(paramo_wait(worker, ts, 0));
    for (uint32_t id = 0; id < NODES; id++) {
        unsigned most = answered[id];
        for (size_t i = 0; i < deads && i < NODES; i++)
            most += dead[i] == id ? lost : 0;
        if (rows[id] >= (float)answered[id] && rows[id] <= (float)most)
            continue;
        wrong = 1;
        printf("node %" PRIu32 ": %u answers, and its row is %.0f; at most %u\n", id, answered[id],
               (double)rows[id], most);
    }
    printf("%s, %u lost, %zu dead\n", wrong ? "wrong" : "right", lost, deads);
    return wrong;
}

static int lead(paramo_node *node, paramo_worker *worker, const char *until)
{
    for (unsigned n = 1; access(until, F_OK); n++) {
        uint64_t ts;
        check(paramo_task_call(worker, PARAMO_GROUP_SERVERS | PARAMO_GROUP_WORKERS, "bump", NULL, 0, hear,
                               NULL, NULL, &ts));
        paramo_err err = paramo_wait(worker, ts, 0);
        lost += err == PARAMO_E_NODE_LOST;
        if (err != PARAMO_E_NODE_LOST)
            check(err);
        if (n % 100 == 0)
            printf("%u bumps, %zu dead\n", n, paramo_dead_nodes(node, NULL, 0));
    }
    return judge(node, worker);
}

int main(int argc, char **argv)
{
    paramo_config config;
    paramo_node *node;
    paramo_worker *worker;
    int wrong = 0;
    if (argc != 2)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    paramo_config_init(&config);
    check(paramo_config_from_env(&config));
    check(paramo_task_register(&bump_task));
    check(paramo_start(&config, &node));
    check(paramo_worker_open(node, 0, &worker));
    if (paramo_node_rank(node) == 0)
        wrong = lead(node, worker, argv[1]);
    else
        check(paramo_barrier(node, PARAMO_GROUP_WORKERS, 0, 600000)); /* it is killed here */
    paramo_worker_close(worker);
    check(paramo_stop(node));
    return wrong;
}
