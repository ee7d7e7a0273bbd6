/*
 * Synchronous SGD, driven by the scheduler: it asks every worker for its gradient, waits for all, asks every server
 * for the update, waits for all. Workers pull the weights and push their gradients; servers keep both in a request
 * handler of their own, and add gradients up in the workers' order, so that the result does not depend on which was
 * first: it is what one process finds with the whole batch.
 *
 *     ./sync_sgd                               alone: one worker, the whole batch
 *     paramo run -s 2 -w 3 -- ./sync_sgd       the same curve
 */
#include <pthread.h>

#include "sgd.h"

enum { WORK = 1, SERVE = 2 }; /* two apps: what is asked of workers, and of servers */
enum { GRADIENT, UPDATE, LOSS, FINISH };
enum { WORKERS_MAX = 64 };

/* ---- server: weights, and the gradients pushed since the last update ---- */

static struct server {
    pthread_mutex_t lock; /* tables and apps have a thread each */
    double w[DIM], g[WORKERS_MAX][DIM];
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned index_of(uint64_t key)
{
    return (unsigned)(key / (UINT64_MAX / DIM));
}

static void on_push_or_pull(void *arg, paramo_request *request, const paramo_request_info *info)
{
    const double *vals = info->vals;
    double weights[DIM];
    unsigned rank = (info->sender - PARAMO_ID_WORKER(0)) / 2;
    (void)arg;
    pthread_mutex_lock(&server.lock);
    for (size_t i = 0; i < info->n; i++) {
        unsigned j = index_of(info->keys[i]);
        if (info->push)
            server.g[rank][j] += vals[i];
        weights[i] = server.w[j];
    }
    pthread_mutex_unlock(&server.lock);
    check(paramo_answer(request, weights, info->pull ? info->n : 0, NULL));
}

static void on_update(void *arg, paramo_request *request, const paramo_request_info *info)
{
    (void)arg;
    (void)info;
    pthread_mutex_lock(&server.lock);
    for (unsigned j = 0; j < DIM; j++) {
        double sum = 0;
        for (unsigned rank = 0; rank < WORKERS_MAX; rank++)
            sum += server.g[rank][j];
        server.w[j] -= STEP / ROWS * sum;
    }
    memset(server.g, 0, sizeof server.g);
    pthread_mutex_unlock(&server.lock);
    check(paramo_answer_body(request, NULL, 0));
}

/* ---- worker: does what it is asked for, on its own thread, which may wait ---- */

static void *work(void *arg)
{
    paramo_node *node = arg;
    paramo_worker *worker;
    paramo_table *table;
    paramo_table_options options;
    uint64_t keys[DIM], ts;
    unsigned first = part(paramo_node_rank(node), paramo_num_workers(node));
    unsigned last = part(paramo_node_rank(node) + 1, paramo_num_workers(node));
    check(paramo_worker_open(node, 0, &worker));
    paramo_table_options_init(&options);
    options.kind = PARAMO_TABLE_USER;
    options.dtype = PARAMO_F64;
    options.placement = PARAMO_PLACE_RANGE;
    check(paramo_table_open(worker, "weights", &options, &table));
    all_keys(keys);

    paramo_request *request;
    const paramo_request_info *info;
    int32_t head;
    do {
        double w[DIM], g[DIM] = {0}, loss;
        paramo_kv weights = whole(keys, w), grad = whole(keys, g);
        check(paramo_app_take(node, WORK, PARAMO_ANY, 0, &request, &info));
        head = info->cmd;
        check(paramo_pull(worker, table, &weights, NULL, &ts));
        check(paramo_wait(worker, ts, 0));
        loss = gradient(w, first, last, g);
        if (head == GRADIENT) {
            check(paramo_push(worker, table, &grad, NULL, &ts));
            check(paramo_wait(worker, ts, 0));
        }
        check(paramo_answer_body(request, &loss, sizeof loss));
    } while (head != FINISH);
    paramo_worker_close(worker);
    return NULL;
}

/* ---- scheduler ---- */

static void add_loss(void *arg, uint64_t ts, const paramo_reply *reply)
{
    double loss;
    (void)ts;
    memcpy(&loss, reply->seg[PARAMO_SEG_BODY].data, sizeof loss);
    ((double *)arg)[(reply->node - PARAMO_ID_WORKER(0)) / 2] = loss;
}

/* Waits until all of the group have answered; the mean loss, if workers were asked. */
static double ask(paramo_worker *c, uint32_t group, int32_t head)
{
    double loss[WORKERS_MAX] = {0}, sum = 0;
    uint64_t ts;
    paramo_message message;
    paramo_message_init(&message, group);
    message.app = group == PARAMO_GROUP_WORKERS ? WORK : SERVE;
    message.head = head;
    check(
        paramo_app_request(c, &message, 1, group == PARAMO_GROUP_WORKERS ? add_loss : NULL, loss, NULL, &ts));
    check(paramo_wait(c, ts, 0));
    for (unsigned rank = 0; rank < WORKERS_MAX; rank++)
        sum += loss[rank];
    return sum / ROWS;
}

static void drive(paramo_node *node)
{
    paramo_worker *c;
    check(paramo_customer_open(node, WORK, 1, &c));
    for (unsigned epoch = 0; epoch <= EPOCHS; epoch++) {
        printf("%2u %.9f\n", epoch, ask(c, PARAMO_GROUP_WORKERS, LOSS));
        ask(c, PARAMO_GROUP_WORKERS, GRADIENT);
        ask(c, PARAMO_GROUP_SERVERS, UPDATE);
    }
    ask(c, PARAMO_GROUP_WORKERS, FINISH);
    paramo_worker_close(c);
}

int main(void)
{
    paramo_node *node = start();
    int all = paramo_node_is(node, PARAMO_ROLE_SCHEDULER) && paramo_node_is(node, PARAMO_ROLE_WORKER);
    pthread_t thread;
    if (paramo_num_workers(node) > WORKERS_MAX)
        return 1;
    if (paramo_node_is(node, PARAMO_ROLE_SERVER)) {
        check(paramo_serve(node, "weights", on_push_or_pull, NULL));
        check(paramo_app_serve(node, SERVE, PARAMO_ANY, on_update, NULL));
    }
    if (paramo_node_is(node, PARAMO_ROLE_WORKER))
        check(paramo_app_serve(node, WORK, PARAMO_ANY, NULL, NULL));
    if (all && pthread_create(&thread, NULL, work, node))
        return 1;
    if (paramo_node_is(node, PARAMO_ROLE_SCHEDULER))
        drive(node);
    else if (paramo_node_is(node, PARAMO_ROLE_WORKER))
        work(node);
    if (all)
        pthread_join(thread, NULL);
    /* Not before all have what was answered to them: answers can be lost, and are given again while we are
     * here. */
    if (all || !paramo_node_is(node, PARAMO_ROLE_SERVER))
        check(paramo_barrier(node, PARAMO_GROUP_SCHEDULER | PARAMO_GROUP_WORKERS, 0, 0));
    check(paramo_stop(node)); /* servers stay here until the job is over */
    return 0;
}
