/* Iterations with bounded delay (the paper, section 3.5), in an order that the servers keep: the worker issues all
 * calls at once and waits for no round trip. An iteration has two tasks on each server, with two tables:
 *     "add"  adds 1 to the server's row of table "sums"; it comes after "note" of iteration i - tau - 1
 *     "note" reads that row and writes it into table "notes"; it comes after "add" of its iteration and "note" of the
 *            last
 * So what iteration i notes has the sums of all iterations up to i, and of at most tau later ones.
 *     ./chain TAU; paramo run -s 2 -w 1 -- ./chain TAU */
#include "example.h"

#include <inttypes.h>
#include <paramo/app.h>
#include <paramo/task.h>
#include <string.h>

enum { ITERATIONS = 200, TAU_MAX = 64, SERVERS_MAX = 16 };

struct step {
    paramo_task *task;
    uint64_t key[2]; /* in "sums" and in "notes" */
    float value;
};

/* A subtask on one row; next continues the task. */
static paramo_err on_row(struct step *s, const char *table_name, const uint64_t *key,
                         paramo_err (*request)(paramo_worker *, paramo_table *, const paramo_kv *,
                                               const paramo_request_options *, uint64_t *),
                         paramo_callback next)
{
    paramo_table *table;
    paramo_table_options table_options;
    uint64_t ts;
    paramo_table_options_init(&table_options); /* a push adds */
    paramo_err err = paramo_task_table(s->task, table_name, &table_options, &table);
    if (err)
        return err;
    paramo_kv kv = pairs(key, 1, &s->value, 1);
    paramo_request_options options;
    paramo_request_options_init(&options);
    options.task = s->task;
    options.callback = next, options.callback_arg = s;
    return request(paramo_task_worker(s->task), table, &kv, &options, &ts);
}

static paramo_err step_begin(paramo_task *task, const paramo_task_info *info, struct step **step)
{
    uint64_t iteration;
    void *memory;
    if (info->payload_bytes != sizeof iteration)
        return paramo_error_set(PARAMO_E_INVALID, "the payload is no iteration");
    memcpy(&iteration, info->payload, sizeof iteration);
    paramo_err err = paramo_task_alloc(task, sizeof **step, &memory);
    if (err)
        return err;
    *step = memory;
    **step = (struct step){
        .task = task, .key = {info->node, iteration * SERVERS_MAX + (info->node - 8) / 2}, .value = 1};
    return PARAMO_OK;
}

static paramo_err add(void *user, paramo_task *task, const paramo_task_info *info)
{
    struct step *s = NULL;
    (void)user;
    paramo_err err = step_begin(task, info, &s);
    return err ? err : on_row(s, "sums", &s->key[0], paramo_push, NULL);
}

static void note_pulled(void *arg, uint64_t ts, paramo_err status)
{
    struct step *s = arg;
    (void)ts;
    if (!status)
        status = on_row(s, "notes", &s->key[1], paramo_push, NULL);
    paramo_task_fail(s->task, status, paramo_last_error());
}

static paramo_err note(void *user, paramo_task *task, const paramo_task_info *info)
{
    struct step *s = NULL;
    paramo_table *table;
    paramo_table_options options;
    (void)user;
    paramo_table_options_init(&options);
    paramo_err err = paramo_task_table(task, "notes", &options, &table); /* a callback finds it open */
    if (!err)
        err = step_begin(task, info, &s);
    return err ? err : on_row(s, "sums", &s->key[0], paramo_pull, note_pulled);
}

static uint64_t tau;

static paramo_task_name call(paramo_worker *worker, const char *name, uint64_t iteration,
                             const paramo_task_name after[2])
{
    paramo_task_name given;
    uint64_t ts;
    paramo_task_order order;
    paramo_task_order_init(&order);
    order.after = after, order.after_count = 2, order.name = &given;
    paramo_request_options options;
    paramo_request_options_init(&options);
    options.flags = PARAMO_COPY;
    check(paramo_task_call_after(worker, PARAMO_GROUP_SERVERS, name, &iteration, sizeof iteration, &order,
                                 NULL, NULL, &options, &ts));
    return given;
}

static void work(paramo_node *node, paramo_worker *worker)
{
    /* of iteration i at TAU_MAX + 1 + i; zeroed: none */
    static paramo_task_name noted[TAU_MAX + 1 + ITERATIONS];
    static uint64_t keys[ITERATIONS * SERVERS_MAX];
    static float notes[ITERATIONS * SERVERS_MAX];
    for (uint64_t i = 0; i < ITERATIONS; i++) {
        paramo_task_name *own = &noted[TAU_MAX + 1 + i];
        paramo_task_name added = call(worker, "add", i, (paramo_task_name[2]){own[-(int)tau - 1]});
        *own = call(worker, "note", i, (paramo_task_name[2]){added, own[-1]});
    }
    check(paramo_wait_all(worker, 0));
    size_t servers = paramo_num_servers(node), n = 0;
    for (uint64_t i = 0; i < ITERATIONS; i++)
        for (size_t k = 0; k < servers; k++)
            keys[n++] = i * SERVERS_MAX + k;
    pull(worker, adding_table(worker, "notes", PARAMO_F32, 1, 0), keys, n, notes, n);
    uint64_t wrong = 0, ahead = 0;
    for (size_t at = 0; at < n; at++) {
        double more = notes[at] - (double)(at / servers + 1);
        wrong += more < 0 || more > (double)tau;
        ahead = more > (double)ahead ? (uint64_t)more : ahead;
    }
    printf("tau %" PRIu64 ": %zu notes, %" PRIu64 " beyond the bound, at most %" PRIu64 " ahead\n", tau, n,
           wrong, ahead);
}

int main(int argc, char **argv)
{
    static const paramo_task_function functions[] = {{sizeof *functions, "add", NULL, add},
                                                     {sizeof *functions, "note", NULL, note}};
    tau = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    if (tau > TAU_MAX)
        fail("tau is at most %d", TAU_MAX);
    check(paramo_task_register(&functions[0]));
    check(paramo_task_register(&functions[1]));
    return run(work);
}
