/*
 * A worker for workers.sh: works through a pool, and adds 1 to a key of its own for each part, once, even if workers
 * die: it looks whether the part's earlier holder has done so. It prints what it does; files say when to
 * continue.
 *
 *   e2e_worker PARTS ROUNDS [gate FILE] [hold FILE] [last FILE]
 *     gate  before round 1 it waits for the file
 *     hold  with the first part it gets it waits for the file, and then pushes without looking, like a
 *           worker that was only slow
 *     last  when all is done it waits for the file, then counts: "exact" if each part was added once
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "paramo/paramo.h"

static struct {
    unsigned units, rounds;
    const char *gate, *hold, *last;
    paramo_node *node;
    paramo_worker *worker;
    paramo_table *table;
} app;

static void say(const char *what, paramo_err err)
{
    printf("%s: %s%s%s\n", what, paramo_err_name(err), err ? ": " : "", err ? paramo_last_error() : "");
    (void)fflush(stdout);
}

static void must(const char *what, paramo_err err)
{
    if (!err)
        return;
    say(what, err);
    exit(1);
}

/* Until the file is in this folder. The script kills a worker that waits too long. */
static void wait_for(const char *what, const char *file)
{
    char news[4096];
    if (!file)
        return;
    int watch = inotify_init1(IN_CLOEXEC);
    if (watch < 0 || inotify_add_watch(watch, ".", IN_CREATE | IN_MOVED_TO) < 0) {
        perror("inotify");
        exit(1);
    }
    printf("waiting: %s\n", what);
    (void)fflush(stdout);
    while (access(file, F_OK))
        if (read(watch, news, sizeof news) < 0 && errno != EINTR) {
            perror("inotify");
            exit(1);
        }
    (void)close(watch);
}

static paramo_err transfer(int push, uint64_t first, size_t n, int64_t *vals)
{
    uint64_t *keys = malloc(n * sizeof *keys), ts;
    if (!keys)
        return PARAMO_E_MEMORY;
    for (size_t i = 0; i < n; i++)
        keys[i] = first + i;
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = keys;
    kv.n = kv.vals_len = n;
    kv.vals = vals;
    paramo_err err = push ? paramo_push(app.worker, app.table, &kv, NULL, &ts)
                          : paramo_pull(app.worker, app.table, &kv, NULL, &ts);
    if (!err)
        err = paramo_wait(app.worker, ts, 0);
    free(keys);
    return err;
}

static void join(void)
{
    paramo_config config;
    paramo_table_options options;
    paramo_config_init(&config);
    must("config", paramo_config_from_env(&config));
    must("start", paramo_start(&config, &app.node));
    must("worker", paramo_worker_open(app.node, 0, &app.worker));
    paramo_table_options_init(&options);
    options.kind = PARAMO_TABLE_SPARSE;
    options.dtype = PARAMO_I64;
    must("table", paramo_table_open(app.worker, "done", &options, &app.table));
    must("pool", paramo_pool_open(app.node, "work", 1, app.rounds));
    printf("joined: node %u\n", paramo_node_id(app.node));
    (void)fflush(stdout);
}

static void leave(void)
{
    paramo_table_close(app.table);
    paramo_worker_close(app.worker);
    (void)paramo_stop(app.node);
}

static paramo_err work_on(const paramo_work_unit *unit)
{
    int64_t marks = 0, one = 1;
    uint64_t key = (uint64_t)unit->round * app.units + unit->index + 1;
    printf("got: %" PRIu32 " %" PRIu64 "\n", unit->round, unit->index);
    (void)fflush(stdout);
    paramo_err err = transfer(0, key, 1, &marks); /* what the part's holder before has pushed is there */
    if (!err && app.hold) {
        wait_for("hold", app.hold);
        app.hold = NULL;
        err = transfer(1, key, 1, &one);
        say("late push", err);
    } else if (!err && !marks) {
        err = transfer(1, key, 1, &one);
    }
    return err ? err : paramo_pool_done(app.node, "work", unit);
}

/* OK: the round is finished. An error: this node was declared dead. */
static paramo_err work(unsigned round, paramo_work_unit *unit)
{
    for (int state = 1; state != 2;) {
        paramo_err err = paramo_pool_next(app.node, "work", 0, round, 1000, unit, &state);
        if (!err && state == 0)
            err = unit->index < app.units ? work_on(unit) : paramo_pool_end(app.node, "work", unit);
        if (err)
            return err;
    }
    return PARAMO_OK;
}

static void count(void)
{
    size_t n = (size_t)app.units * app.rounds, wrong = 0;
    int64_t *vals = calloc(n, sizeof *vals);
    if (!vals)
        exit(1);
    must("count", transfer(0, 1, n, vals));
    for (size_t i = 0; i < n; i++) {
        wrong += vals[i] != 1;
        if (vals[i] != 1)
            printf("part %zu of round %zu was done %" PRId64 " times\n", i % app.units, i / app.units,
                   vals[i]);
    }
    printf(wrong ? "wrong: %zu of %zu\n" : "exact: %zu wrong of %zu\n", wrong, n);
    free(vals);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    app.units = (unsigned)strtoul(argv[1], NULL, 10);
    app.rounds = (unsigned)strtoul(argv[2], NULL, 10);
    for (int i = 3; i + 1 < argc; i += 2)
        *(*argv[i] == 'g' ? &app.gate : *argv[i] == 'h' ? &app.hold : &app.last) = argv[i + 1];
    join();
    for (unsigned round = 0; round < app.rounds;) {
        paramo_work_unit unit;
        if (round == 1)
            wait_for("gate", app.gate);
        paramo_err err = work(round, &unit);
        if (!err) {
            round++;
            continue;
        }
        say("work", err);
        if (err != PARAMO_E_FENCED)
            return 1;
        leave(); /* this node was declared dead: it continues as a new one, and its old lease is void */
        join();
        say("stale token", paramo_pool_done(app.node, "work", &unit));
    }
    wait_for("last", app.last);
    if (app.last)
        count();
    leave();
    return 0;
}
