/* Several application threads on one client, and handlers that answer from threads of their own; over real
 * lanes. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "worker/client_impl.h"
#include "worker/support_world.h"

enum { THREADS = 4, PUSHES = 3000, DENSE = 0, USER = 1 };

/* cmocka's assertions are for its own thread: others count. */
struct job {
    struct world *w;
    unsigned index, failures;
    atomic_uint *callbacks;
};

static void on_done(void *arg, uint64_t ts, paramo_err status)
{
    struct job *job = arg;
    (void)ts;
    if (status == PARAMO_OK)
        atomic_fetch_add(job->callbacks, 1);
}

static void *pusher(void *arg)
{
    struct job *job = arg;
    struct client *c = job->w->clients[0].client;
    for (unsigned i = 0; i < PUSHES; i++) {
        uint64_t keys[2] = {i % 7, 1000 + job->index}, ts;
        float vals[2] = {1, 1};
        paramo_request_options o = {.size = sizeof o, .flags = PARAMO_COPY};
        if (i % 3 == 0) {
            o.callback = on_done;
            o.callback_arg = job;
        }
        paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = 2, .vals = vals, .vals_len = 2};
        struct client_call call = {
            .kind = REQUEST_PUSH, .table = &job->w->tables[DENSE], .kv = &kv, .options = &o};
        if (client_issue(c, &call, &ts))
            job->failures++;
        else if (i % 16 == 15 && client_wait(c, ts, 0))
            job->failures++;
        else if (i % 100 == 50) /* it may have completed */
            (void)!client_cancel(c, UINT64_MAX);
    }
    if (client_wait_all(c, 0))
        job->failures++;
    return NULL;
}

static void test_many_threads(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, false, 1);
    world_table(&w, PARAMO_TABLE_DENSE, 1)->rows = 2000;
    world_start(&w, 2, 2, 1);
    struct job jobs[THREADS];
    pthread_t threads[THREADS];
    atomic_uint callbacks = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){.w = &w, .index = i, .callbacks = &callbacks};
        assert_int_equal(pthread_create(&threads[i], NULL, pusher, &jobs[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(jobs[i].failures, 0);
    }
    uint64_t keys[7 + THREADS], ts;
    float vals[7 + THREADS], sum = 0;
    for (unsigned i = 0; i < 7 + THREADS; i++)
        keys[i] = i < 7 ? i : 1000 + i - 7;
    assert_int_equal(world_pull(&w, 0, DENSE, keys, 7 + THREADS, vals, 7 + THREADS, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    for (unsigned i = 0; i < 7; i++)
        sum += vals[i];
    assert_true(sum == THREADS * PUSHES);
    for (unsigned i = 0; i < THREADS; i++)
        assert_true(vals[7 + i] == PUSHES);
    assert_int_equal(atomic_load(&callbacks), THREADS * (PUSHES / 3));
    assert_int_equal(atomic_load(&w.clients[0].client->shared->copied), 0);
    world_fini(&w);
}

/* One clerk takes requests from the shard's lane and answers them from its own thread. */
struct office {
    pthread_mutex_t lock;
    pthread_cond_t bell;
    struct shard_request *dispatch[64];
    float values[64];
    unsigned count;
    bool over;
};

static void hand_over(void *arg, struct shard_request *request, const struct shard_request_info *info)
{
    struct office *o = arg;
    (void)pthread_mutex_lock(&o->lock);
    o->values[o->count] = (float)info->keys[0];
    o->dispatch[o->count++] = request;
    (void)pthread_cond_signal(&o->bell);
    (void)pthread_mutex_unlock(&o->lock);
}

static void *clerk(void *arg)
{
    struct office *o = arg;
    (void)pthread_mutex_lock(&o->lock);
    while (!o->over || o->count) {
        if (!o->count) {
            (void)pthread_cond_wait(&o->bell, &o->lock);
            continue;
        }
        struct shard_request *request = o->dispatch[--o->count];
        float value = o->values[o->count];
        (void)pthread_mutex_unlock(&o->lock);
        if (shard_answer(request, &value, 1, NULL))
            abort();
        (void)pthread_mutex_lock(&o->lock);
    }
    (void)pthread_mutex_unlock(&o->lock);
    return NULL;
}

static void test_answers_from_threads(void **state)
{
    (void)state;
    enum { ROUNDS = 200, WINDOW = 16 };
    struct office o = {.lock = PTHREAD_MUTEX_INITIALIZER, .bell = PTHREAD_COND_INITIALIZER};
    struct world w;
    pthread_t thread;
    world_init(&w, false, 1);
    w.handler = hand_over;
    w.handler_arg = &o;
    world_table(&w, PARAMO_TABLE_DENSE, 1)->rows = 10;
    world_table(&w, PARAMO_TABLE_USER, 1);
    world_start(&w, 1, 1, 1);
    assert_int_equal(pthread_create(&thread, NULL, clerk, &o), 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t keys[WINDOW], ts[WINDOW];
        float vals[WINDOW] = {0};
        for (unsigned i = 0; i < WINDOW; i++) {
            keys[i] = round * WINDOW + i;
            assert_int_equal(world_pull(&w, 0, USER, &keys[i], 1, &vals[i], 1, &ts[i]), PARAMO_OK);
        }
        for (unsigned i = 0; i < WINDOW; i++) {
            assert_int_equal(world_wait(&w, 0, ts[i]), PARAMO_OK);
            assert_true(vals[i] == (float)keys[i]);
        }
    }
    /* the shard goes while the clerk is at work */
    uint64_t key = 1, ts;
    float val;
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(world_pull(&w, 0, USER, &key, 1, &val, 1, &ts), PARAMO_OK);
    world_fini(&w);
    (void)pthread_mutex_lock(&o.lock);
    o.over = true;
    (void)pthread_cond_signal(&o.bell);
    (void)pthread_mutex_unlock(&o.lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_threads),
                                       cmocka_unit_test(test_answers_from_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
