/*
 * Starting and finishing a job of 1 + 2 + 2 nodes in one process, again and again: no descriptor, thread or
 * memory stays. Each job asks every node, pushes and pulls. test_cycles N does N of them (the bar is 500).
 */
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "support_cluster.h"
#include "unit.h"

enum { APP = 3, WARM_UP = 10, LEAK_BYTES = 128 << 10 };

static unsigned cycles = 60;

static void ok_at(paramo_err err, int line)
{
    if (err)
        (void)fprintf(stderr, "line %d: %s: %s\n", line, paramo_err_name(err), paramo_last_error());
    assert_int_equal(err, PARAMO_OK);
}
#define ok(call) ok_at(call, __LINE__)

static size_t entries(const char *path)
{
    DIR *dir = opendir(path);
    assert_non_null(dir);
    size_t n = 0;
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

/* A thread that was joined may be in /proc for a moment still. */
static size_t threads_but(size_t wanted)
{
    size_t n = entries("/proc/self/task");
    for (unsigned i = 0; n != wanted && i < 1000000; i++) {
        (void)sched_yield();
        n = entries("/proc/self/task");
    }
    return n;
}

static void *count_others(void *n)
{
    *(size_t *)n = entries("/proc/self/task") - 1;
    return NULL;
}

/* The threads without a job: this one, and a sanitizer's own, which comes with the first thread that a program
 * creates. */
static size_t threads_without_job(void)
{
    size_t n;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, count_others, &n), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return n;
}

static void by_tcp(paramo_config *config)
{
    config->van = "tcp"; /* UCX keeps memory and threads of its own */
}

static void echo(void *arg, paramo_request *request, const paramo_request_info *info)
{
    (void)arg;
    ok(paramo_answer_body(request, info->seg[PARAMO_SEG_BODY].data, info->seg[PARAMO_SEG_BODY].len));
}

static void work(struct cluster *c)
{
    uint64_t ts;
    paramo_worker *w;
    ok(paramo_customer_open(c->scheduler.node, APP, 0, &w));
    paramo_message m;
    paramo_message_init(&m, PARAMO_GROUP_ALL);
    m.seg[PARAMO_SEG_BODY] = (paramo_bytes){"hello", 5};
    ok(paramo_app_request(w, &m, 1, NULL, NULL, NULL, &ts));
    ok(paramo_wait(w, ts, 0));
    paramo_worker_close(w);
    for (unsigned i = 0; i < c->workers_count; i++) {
        ok(paramo_worker_open(c->workers[i].node, 0, &w));
        paramo_table_options o;
        paramo_table_options_init(&o);
        paramo_table *t;
        ok(paramo_table_open(w, "weights", &o, &t));
        uint64_t keys[3] = {1, 2, UINT64_MAX};
        float vals[3] = {1, 2, 3}, back[3];
        paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = 3, .vals = vals, .vals_len = 3};
        ok(paramo_push(w, t, &kv, NULL, &ts));
        ok(paramo_wait(w, ts, 0));
        kv.vals = back;
        ok(paramo_pull(w, t, &kv, NULL, &ts));
        ok(paramo_wait(w, ts, 0));
        for (unsigned k = 0; k < 3; k++)
            assert_true(back[k] == vals[k] * (float)(i + 1));
    }
}

static void cycle(void)
{
    struct cluster c;
    cluster_start_with(&c, 2, 2, by_tcp);
    ok(paramo_app_serve(c.scheduler.node, APP, PARAMO_ANY, echo, NULL));
    for (unsigned i = 0; i < 2; i++) {
        ok(paramo_app_serve(c.servers[i].node, APP, PARAMO_ANY, echo, NULL));
        ok(paramo_app_serve(c.workers[i].node, APP, PARAMO_ANY, echo, NULL));
    }
    work(&c);
    cluster_stop(&c);
}

static void nothing_stays(void **state)
{
    (void)state;
    size_t fds = 0, memory = 0, threads = threads_without_job();
    for (unsigned i = 0; i < cycles; i++) {
        cycle();
        assert_int_equal(threads_but(threads), threads);
        size_t now = mallinfo2().uordblks;
        if (i + 1 == WARM_UP) {
            fds = entries("/proc/self/fd");
            memory = now;
        } else if (i >= WARM_UP) {
            assert_int_equal(entries("/proc/self/fd"), fds);
            assert_true(now < memory + LEAK_BYTES);
        }
    }
    (void)fprintf(stderr, "%u cycles: %zu descriptors, %zu threads, %zu KiB then, %zu KiB now\n", cycles,
                  fds - 3, threads - 2, memory >> 10, mallinfo2().uordblks >> 10);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cycles = (unsigned)strtoul(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
