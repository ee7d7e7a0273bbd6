#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "cluster/meta/store_dir.h"
#include "sim/env/sim.h"
#include "sim/env/simfs.h"

enum { SAVES = 6, A = 1, B = 2 };

/* A machine with a disk, and a scheduler's life on it: start, then SAVES saves of two durable records, or of
 * one. */
static struct life {
    struct sim *sim;
    struct simfs *disk;
    struct lane *lane;
    struct blocking_jobs *blocking_jobs;
    struct store *store;
    bool told;
    paramo_err status;
    uint32_t term;
    char record[3][16]; /* what was found */
} l;

static void machine_on(uint64_t seed)
{
    l = (struct life){0};
    assert_int_equal(sim_create(seed, &l.sim), PARAMO_OK);
    assert_int_equal(simfs_create(seed, &l.disk), PARAMO_OK);
    assert_int_equal(lane_create(sim_env(l.sim), "control", 0, &l.lane), PARAMO_OK);
    assert_int_equal(blocking_jobs_create(sim_env(l.sim), "blocking jobs", &l.blocking_jobs), PARAMO_OK);
    assert_int_equal(fs_make_dir(simfs_fs(l.disk), "/var"), PARAMO_OK);
}

static void close_on_lane(void)
{
    assert_true(lane_enter(l.lane));
    store_close(l.store);
    lane_leave(l.lane);
    l.store = NULL;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void drain(void)
{
    (void)sim_run(l.sim, never, NULL, UINT64_MAX - 1);
}

static void machine_off(void)
{
    close_on_lane();
    drain();
    blocking_jobs_destroy(l.blocking_jobs);
    lane_destroy(l.lane);
    simfs_destroy(l.disk);
    sim_destroy(l.sim);
}

static void started(void *arg, paramo_err status, const struct store_state *state)
{
    (void)arg;
    assert_true(lane_held(l.lane));
    l.told = true;
    l.status = status;
    assert_int_equal(state == NULL, status != PARAMO_OK);
    if (!state)
        return;
    l.term = state->term;
    memset(l.record, 0, sizeof l.record);
    struct reader records = reader_over(state->records, state->bytes), record;
    uint64_t id;
    while (store_record_next(&records, &id, &record)) {
        assert_true(id < 3 && record.left < sizeof l.record[0]);
        memset(l.record[id], 0, sizeof l.record[id]);
        if (record.left)
            memcpy(l.record[id], record.at, record.left);
    }
    assert_true(reader_done(&records));
}

static void saved(void *arg, paramo_err status)
{
    assert_true(lane_held(l.lane));
    l.told = true;
    *(paramo_err *)arg = l.status = status;
}

static bool is_told(void *arg)
{
    (void)arg;
    return l.told;
}

static paramo_err start_in(const char *dir)
{
    struct store_dir_config config = {
        .lane = l.lane, .blocking_jobs = l.blocking_jobs, .fs = simfs_fs(l.disk), .dir = dir};
    assert_int_equal(store_dir_open(&config, &l.store), PARAMO_OK);
    l.told = false;
    assert_true(lane_enter(l.lane));
    assert_int_equal(store_start(l.store, started, NULL), PARAMO_OK);
    lane_leave(l.lane);
    assert_true(sim_run(l.sim, is_told, NULL, UINT64_MAX - 1));
    return l.status;
}

static paramo_err start(void)
{
    return start_in("/var/state");
}

static void record_put(struct writer *w, uint64_t id, const char *text)
{
    size_t mark;
    store_record_begin(w, id, &mark);
    if (*text)
        write_bytes(w, text, strlen(text));
    store_record_end(w, mark);
}

/* b NULL: only the one. */
static void save_begin(bool whole, const char *a, const char *b, paramo_err *status)
{
    struct writer w = {0};
    record_put(&w, A, a);
    if (b)
        record_put(&w, B, b);
    l.told = false;
    assert_true(lane_enter(l.lane));
    assert_int_equal(store_save(l.store, &w, whole, saved, status), PARAMO_OK);
    lane_leave(l.lane);
    assert_false(l.told);
}

static paramo_err save(bool whole, const char *a, const char *b)
{
    paramo_err status;
    save_begin(whole, a, b, &status);
    assert_true(sim_run(l.sim, is_told, NULL, UINT64_MAX - 1));
    return status;
}

static void remembers(void **state)
{
    (void)state;
    machine_on(1);
    assert_int_equal(start(), PARAMO_OK);
    assert_int_equal(l.term, 1);
    assert_string_equal(l.record[A], "");
    assert_int_equal(save(false, "one", "two"), PARAMO_OK);
    assert_int_equal(save(true, "three", NULL), PARAMO_OK); /* whole: B is not there any more */
    assert_int_equal(save(false, "four", "five"), PARAMO_OK);
    assert_int_equal(save(false, "six", NULL), PARAMO_OK);
    for (uint32_t term = 2; term < 5; term++) {
        close_on_lane();
        simfs_restart(l.disk);
        assert_int_equal(start_in(term % 2 ? "/var/state" : "/var/state/"), PARAMO_OK);
        assert_int_equal(l.term, term);
        assert_string_equal(l.record[A], "six");
        assert_string_equal(l.record[B], "five");
    }
    assert_int_equal(save(true, "seven", NULL), PARAMO_OK);
    close_on_lane();
    simfs_restart(l.disk);
    assert_int_equal(start(), PARAMO_OK);
    assert_string_equal(l.record[A], "seven");
    assert_string_equal(l.record[B], "");
    machine_off();
}

/* Every fault at every step of a life, then a crash: what is found is the last that was acknowledged, or the
 * one that was under way, and both its durable records; and the term rises. */
static void old_or_new_never_a_third(void **state)
{
    (void)state;
    static const char *const texts[SAVES + 1] = {"", "first", "second", "third", "fourth", "fifth", "sixth"};
    unsigned crashes = 0, errors = 0;
    for (enum simfs_fault fault = 0; fault < SIMFS_FAULTS; fault++)
        for (uint64_t step = 0, end = 1; step < end; step++) /* until it is beyond the last */
            for (uint64_t seed = 0; seed < 12; seed++) {
                machine_on(seed);
                uint64_t begin = simfs_steps(l.disk);
                simfs_plan(l.disk, fault, begin + step);
                paramo_err err = start();
                uint32_t term = err ? 0 : l.term;
                uint64_t sure = 0, may = 0;
                if (err && !simfs_crashed(l.disk)) { /* tried again */
                    errors++;
                    close_on_lane();
                    err = start();
                    assert_int_equal(err, PARAMO_OK);
                    term = l.term;
                }
                bool failed = false;
                for (uint64_t n = 1; !err && n <= SAVES; n++) {
                    may = n;
                    failed = save(failed || n == 4, texts[n], texts[n]) != PARAMO_OK;
                    if (!failed)
                        sure = n;
                    errors += failed;
                    if (simfs_crashed(l.disk))
                        break;
                }
                end = simfs_steps(l.disk) - begin > step ? step + 2 : step;
                crashes += simfs_crashed(l.disk);
                close_on_lane();
                simfs_restart(l.disk);
                assert_int_equal(start(), PARAMO_OK);
                assert_true(l.term > term);
                assert_true(!strcmp(l.record[A], texts[sure]) || !strcmp(l.record[A], texts[may]));
                assert_string_equal(l.record[A], l.record[B]);
                assert_int_equal(save(false, "after", NULL), PARAMO_OK);
                machine_off();
            }
    assert_true(crashes > 100 && errors > 100);
}

/* After a failed save the log's end is not known: only a whole one is taken. */
static void a_failure_asks_for_all(void **state)
{
    (void)state;
    machine_on(1);
    assert_int_equal(start(), PARAMO_OK);
    assert_int_equal(save(false, "one", "two"), PARAMO_OK);
    simfs_plan(l.disk, SIMFS_FAIL, simfs_steps(l.disk));
    assert_int_equal(save(false, "three", NULL), PARAMO_E_IO);
    assert_int_equal(save(false, "four", NULL), PARAMO_E_IO);
    assert_int_equal(save(true, "five", "six"), PARAMO_OK);
    assert_int_equal(save(false, "seven", NULL), PARAMO_OK);
    close_on_lane();
    assert_int_equal(start(), PARAMO_OK);
    assert_string_equal(l.record[A], "seven");
    assert_string_equal(l.record[B], "six");
    machine_off();
}

static const char state_path[] = "/var/state/state";

/* Each bit, each length: nothing but the whole file passes, and it is left as it was. */
static void refuses_what_is_not_whole(void **state)
{
    (void)state;
    machine_on(1);
    assert_int_equal(start(), PARAMO_OK);
    assert_int_equal(save(true, "five", NULL), PARAMO_OK);
    close_on_lane();
    drain();
    for (uint64_t at = 0; simfs_flip(l.disk, state_path, at, (unsigned)at); at++) {
        paramo_err err = start();
        assert_true(err == PARAMO_E_CORRUPT || err == PARAMO_E_FORMAT);
        assert_non_null(strstr(err_text(), state_path));
        close_on_lane();
        assert_true(simfs_flip(l.disk, state_path, at, (unsigned)at));
    }
    assert_int_equal(start(), PARAMO_OK);
    assert_int_equal(l.term, 2);
    close_on_lane();
    drain();
    for (uint64_t size = 55; size < 56; size--) {
        assert_true(simfs_cut(l.disk, state_path, size));
        paramo_err err = start();
        assert_true(err == PARAMO_E_CORRUPT || err == PARAMO_E_FORMAT);
        close_on_lane();
    }
    machine_off();
}

/* Of the log only the last record may be not whole, as one is that was being written at a crash. */
static void log_ends_but_has_no_holes(void **state)
{
    (void)state;
    static const char log_path[] = "/var/state/log.1";
    enum { ENTRY = 32 + 12 + 5 + 8 };
    for (uint64_t at = 0; at < 3 * ENTRY; at++) {
        machine_on(1);
        assert_int_equal(start(), PARAMO_OK);
        assert_int_equal(save(false, "first", NULL), PARAMO_OK);
        assert_int_equal(save(false, "secon", NULL), PARAMO_OK);
        assert_int_equal(save(false, "third", NULL), PARAMO_OK);
        close_on_lane();
        drain();
        assert_true(simfs_flip(l.disk, log_path, at, (unsigned)at));
        paramo_err err = start();
        assert_int_equal(err, at < 2 * ENTRY ? PARAMO_E_CORRUPT : PARAMO_OK);
        if (err) {
            assert_non_null(strstr(err_text(), log_path));
            close_on_lane();
            assert_true(simfs_flip(l.disk, log_path, at, (unsigned)at));
            assert_true(simfs_cut(l.disk, log_path, at));
            assert_int_equal(start(), PARAMO_OK);
            assert_string_equal(l.record[A], at < ENTRY ? "" : "first");
        }
        machine_off();
    }
}

static void refuses_what_is_not_ours(void **state)
{
    (void)state;
    machine_on(1);
    struct fs *fs = simfs_fs(l.disk);
    assert_int_equal(fs_make_dir(fs, "/var/state"), PARAMO_OK);
    assert_int_equal(fs_replace(fs, "/var/state", "state", "some other program's", 20), PARAMO_OK);
    assert_int_equal(start(), PARAMO_E_FORMAT);
    assert_non_null(strstr(err_text(), "not the state of a scheduler"));
    close_on_lane();
    assert_int_equal(start_in("/nowhere/state"), PARAMO_E_NOT_FOUND);
    machine_off();
}

/* A whole state whose generation has none after it; only a person can have written it. */
static void refuses_the_last_generation(void **state)
{
    (void)state;
    machine_on(1);
    struct writer w = {0};
    write_bytes(&w, "PARAMOST", 8);
    write_u32(&w, 1); /* format */
    write_u32(&w, 5); /* term */
    write_u64(&w, UINT64_MAX);
    write_u64(&w, 0);
    write_u64(&w, hash_bytes(w.data, w.len));
    assert_int_equal(fs_make_dir(simfs_fs(l.disk), "/var/state"), PARAMO_OK);
    assert_int_equal(fs_replace(simfs_fs(l.disk), "/var/state", "state", w.data, w.len), PARAMO_OK);
    writer_fini(&w);
    assert_int_equal(start(), PARAMO_E_FORMAT);
    assert_non_null(strstr(err_text(), "its generation 18446744073709551615 is not valid"));
    machine_off();
}

static void one_at_a_time(void **state)
{
    (void)state;
    machine_on(1);
    assert_int_equal(start(), PARAMO_OK);
    struct store *first = l.store;
    assert_int_equal(start(), PARAMO_E_REFUSED);
    assert_non_null(strstr(err_text(), "is in use by a running scheduler"));
    close_on_lane();
    l.store = first;
    assert_int_equal(save(false, "five", NULL), PARAMO_OK);
    close_on_lane();
    assert_int_equal(start(), PARAMO_OK);
    assert_string_equal(l.record[A], "five");
    machine_off();
}

/* The save that was begun ends, no function is called, and then the folder is free. */
static void closed_while_saving(void **state)
{
    (void)state;
    machine_on(1);
    assert_int_equal(start(), PARAMO_OK);
    paramo_err status;
    save_begin(false, "five", "b", &status);
    save_begin(false, "six", NULL, &status);
    close_on_lane();
    drain();
    assert_false(l.told);
    assert_int_equal(start(), PARAMO_OK);
    assert_string_equal(l.record[A], "six");
    assert_string_equal(l.record[B], "b");
    machine_off();
}

/* ---- a disk that stands still stops no lane ----------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    bool free;
    unsigned syncs;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .freed = PTHREAD_COND_INITIALIZER};

static paramo_err slow_sync_dir(struct fs *fs, const char *path)
{
    (void)fs;
    (void)pthread_mutex_lock(&gate.lock);
    gate.syncs++;
    while (!gate.free)
        (void)pthread_cond_wait(&gate.freed, &gate.lock);
    (void)pthread_mutex_unlock(&gate.lock);
    return fs_sync_dir(fs_real(), path);
}

struct real_life {
    struct lane_task task;
    atomic_bool ran, told;
    struct lane *lane;
};

static void open_gate(struct lane_task *task)
{
    struct real_life *r = container_of(task, struct real_life, task);
    (void)pthread_mutex_lock(&gate.lock);
    gate.free = true;
    (void)pthread_cond_broadcast(&gate.freed);
    (void)pthread_mutex_unlock(&gate.lock);
    atomic_store(&r->ran, true);
}

static void really_started(void *arg, paramo_err status, const struct store_state *state)
{
    struct real_life *r = arg;
    assert_int_equal(status, PARAMO_OK);
    assert_int_equal(state->term, 1);
    struct lane *lane = r->lane;
    atomic_store(&r->told, true);
    lane_notify(lane);
}

static bool really_told(void *arg)
{
    return atomic_load(&((struct real_life *)arg)->told);
}

static void lanes_go_on(void **state)
{
    (void)state;
    char dir[] = "/tmp/paramo-store-XXXXXX", inner[64], file[80];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(inner, sizeof inner, "%s/state", dir);
    struct fs_ops ops = *fs_real()->ops;
    ops.sync_dir = slow_sync_dir;
    struct fs slow = {.ops = &ops};
    struct real_life r = {.task.run = open_gate};
    struct lane *lane;
    struct blocking_jobs *blocking_jobs;
    struct store *store;
    assert_int_equal(lane_create(env_real(), "control", 0, &lane), PARAMO_OK);
    assert_int_equal(blocking_jobs_create(env_real(), "blocking jobs", &blocking_jobs), PARAMO_OK);
    r.lane = lane;
    struct store_dir_config config = {
        .lane = lane, .blocking_jobs = blocking_jobs, .fs = &slow, .dir = inner};
    assert_int_equal(store_dir_open(&config, &store), PARAMO_OK);
    while (!lane_enter(lane))
        ;
    assert_int_equal(store_start(store, really_started, &r), PARAMO_OK);
    lane_leave(lane);
    lane_post(lane, &r.task); /* only this frees the disk */
    assert_int_equal(lane_wait(lane, really_told, &r, env_now(env_real()) + 60 * ENV_SEC), PARAMO_OK);
    assert_true(atomic_load(&r.ran));
    assert_true(gate.syncs >= 2);
    while (!lane_enter(lane))
        ;
    store_close(store);
    lane_leave(lane);
    blocking_jobs_destroy(blocking_jobs);
    lane_destroy(lane);
    (void)snprintf(file, sizeof file, "%s/state", inner);
    assert_int_equal(unlink(file), 0);
    (void)snprintf(file, sizeof file, "%s/lock", inner);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(inner), 0); /* nothing else was left */
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(remembers),
        cmocka_unit_test(old_or_new_never_a_third),
        cmocka_unit_test(a_failure_asks_for_all),
        cmocka_unit_test(refuses_what_is_not_whole),
        cmocka_unit_test(log_ends_but_has_no_holes),
        cmocka_unit_test(refuses_what_is_not_ours),
        cmocka_unit_test(refuses_the_last_generation),
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(closed_while_saving),
        cmocka_unit_test(lanes_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
