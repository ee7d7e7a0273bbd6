/* Two tasks of our own. "sum" runs on any node: it pulls rows and answers with their sum. "total" gives each server a
 * part of the rows, as a subtask "sum", and answers with the sum of the sums. task.c registers them in each process
 * of a program; tasks.c makes them a plugin. */
#ifndef OWN_TASKS_H
#define OWN_TASKS_H

#include <paramo/app.h>
#include <paramo/task.h>
#include <string.h>

enum { SERVERS_MAX = 64 };

struct part {
    uint64_t first, n; /* keys */
};

/* ---- sum ---- */

struct sum {
    paramo_task *task;
    const float *vals;
    size_t n;
};

/* The rows are here: the task is answered after this. */
static void sum_pulled(void *arg, uint64_t ts, paramo_err status)
{
    struct sum *s = arg;
    double sum = 0;
    (void)ts;
    for (size_t i = 0; !status && i < s->n; i++)
        sum += s->vals[i];
    if (!status)
        paramo_task_fail(s->task, paramo_task_answer(s->task, &sum, sizeof sum), paramo_last_error());
}

static paramo_err sum_run(void *user, paramo_task *task, const paramo_task_info *info)
{
    struct part part;
    void *memory;
    paramo_table *table;
    (void)user;
    if (info->payload_bytes != sizeof part)
        return paramo_error_set(PARAMO_E_INVALID, "the payload is no part of the rows");
    memcpy(&part, info->payload, sizeof part);
    if (part.n > 1 << 24)
        return paramo_error_set(PARAMO_E_TOO_LARGE, "a part of more than 2^24 rows");
    paramo_err err = paramo_task_table(task, "weights", NULL, &table);
    if (!err) /* memory that lasts until the task has been answered */
        err = paramo_task_alloc(task, sizeof(struct sum) + part.n * (sizeof(uint64_t) + sizeof(float)),
                                &memory);
    if (err)
        return err;
    struct sum *s = memory;
    uint64_t *keys = (uint64_t *)(s + 1), ts;
    float *vals = (float *)(keys + part.n);
    for (uint64_t i = 0; i < part.n; i++)
        keys[i] = part.first + i;
    *s = (struct sum){.task = task, .vals = vals, .n = part.n};
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = keys, kv.n = kv.vals_len = part.n, kv.vals = vals;
    paramo_request_options options;
    paramo_request_options_init(&options);
    options.task = task; /* the task is not over before this request is */
    options.callback = sum_pulled, options.callback_arg = s;
    return paramo_pull(paramo_task_worker(task), table, &kv, &options, &ts);
}

/* ---- total ---- */

struct total {
    paramo_task *task;
    double sum;
    size_t left; /* subtasks. The callbacks of one customer run one at a time */
};

static void total_heard(void *arg, uint64_t ts, uint32_t node, const void *answer, size_t bytes)
{
    struct total *t = arg;
    double sum;
    (void)ts, (void)node;
    if (bytes == sizeof sum) {
        memcpy(&sum, answer, sizeof sum);
        t->sum += sum;
    }
}

static void total_one_done(void *arg, uint64_t ts, paramo_err status)
{
    struct total *t = arg;
    (void)ts, (void)status; /* an error is the task's own already */
    if (--t->left == 0)
        paramo_task_fail(t->task, paramo_task_answer(t->task, &t->sum, sizeof t->sum), paramo_last_error());
}

static paramo_err total_run(void *user, paramo_task *task, const paramo_task_info *info)
{
    struct part whole;
    void *memory;
    uint32_t ids[SERVERS_MAX];
    size_t servers = paramo_node_ids(paramo_task_node(task), PARAMO_GROUP_SERVERS, ids, SERVERS_MAX);
    (void)user;
    if (info->payload_bytes != sizeof whole || servers == 0 || servers > SERVERS_MAX)
        return paramo_error_set(PARAMO_E_INVALID,
                                "the payload is no part of the rows, or there are too many servers");
    memcpy(&whole, info->payload, sizeof whole);
    paramo_err err = paramo_task_alloc(task, sizeof(struct total), &memory);
    if (err)
        return err;
    struct total *t = memory;
    *t = (struct total){.task = task, .left = servers};
    paramo_request_options options;
    paramo_request_options_init(&options);
    options.task = task;
    options.flags = PARAMO_COPY; /* of the payload, which is on the stack */
    options.callback = total_one_done, options.callback_arg = t;
    for (size_t i = 0; i < servers && !err; i++) {
        uint64_t from = whole.n * i / servers, to = whole.n * (i + 1) / servers;
        struct part part = {whole.first + from, to - from};
        err = paramo_task_call(paramo_task_worker(task), ids[i], "sum", &part, sizeof part, total_heard, t,
                               &options, NULL);
    }
    return err;
}

static const paramo_task_function sum_task = {
    .size = sizeof(paramo_task_function), .name = "sum", .run = sum_run};
static const paramo_task_function total_task = {
    .size = sizeof(paramo_task_function), .name = "total", .run = total_run};

#endif
