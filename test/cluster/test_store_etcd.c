#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/meta/store_etcd.h"
#include "sim/env/sim.h"
#include "sim/env/simetcd.h"

enum { A = 1, B = 2, TEXT_MAX = 16, BIG = (512 << 10) * 3 + 100 };

static struct sim *sim;
static struct simetcd *etcd;

/* A process that leads, or would like to. */
struct process {
    struct sim_host *host;
    struct lane *lane;
    struct blocking_jobs *blocking_jobs;
    struct http *http;
    struct store *store;
    char name[16];
    unsigned told, saves;
    paramo_err status, saved;
    char text[ERR_TEXT_MAX];
    uint32_t term;
    char record[3][TEXT_MAX]; /* what was found; of what is longer the beginning */
    size_t bytes;
} one, two;

static void process_on_asking(struct process *p, const char *meta, const char *name)
{
    *p = (struct process){0};
    (void)snprintf(p->name, sizeof p->name, "%s", name);
    assert_int_equal(sim_host_create(sim, 0, &p->host), PARAMO_OK);
    assert_int_equal(lane_create(sim_host_env(p->host), "control", 0, &p->lane), PARAMO_OK);
    assert_int_equal(blocking_jobs_create(sim_host_env(p->host), "blocking jobs", &p->blocking_jobs),
                     PARAMO_OK);
    assert_int_equal(simetcd_http(etcd, &p->http), PARAMO_OK);
    struct store_etcd_config config = {.lane = p->lane,
                                       .blocking_jobs = p->blocking_jobs,
                                       .http = p->http,
                                       .meta = meta,
                                       .name = p->name,
                                       .patience_ms = 3000};
    assert_int_equal(store_etcd_open(&config, &p->store), PARAMO_OK);
}

static void process_on(struct process *p, const char *name)
{
    process_on_asking(p, "etcd://10.0.0.1:2379,10.0.0.2:2379/clicks", name);
}

static void drain_lane(struct process *p)
{
    assert_true(lane_enter(p->lane));
    lane_leave(p->lane);
}

static void process_off(struct process *p)
{
    assert_true(lane_enter(p->lane));
    store_close(p->store);
    lane_leave(p->lane);
    blocking_jobs_destroy(p->blocking_jobs);
    drain_lane(p); /* the ends of its blocking jobs */
    lane_destroy(p->lane);
    *p = (struct process){0};
}

static int on(void **state)
{
    (void)state;
    assert_int_equal(sim_create(1, &sim), PARAMO_OK);
    assert_int_equal(simetcd_create(sim, &etcd), PARAMO_OK);
    return 0;
}

static int off(void **state)
{
    (void)state;
    if (one.lane)
        process_off(&one);
    if (two.lane)
        process_off(&two);
    simetcd_destroy(etcd);
    sim_destroy(sim);
    return 0;
}

static void started(void *arg, paramo_err status, const struct store_state *state)
{
    struct process *p = arg;
    assert_true(lane_held(p->lane));
    p->told++;
    p->status = status;
    assert_int_equal(state == NULL, status != PARAMO_OK);
    if (status)
        err_text_copy(p->text);
    if (!state)
        return;
    p->term = state->term;
    p->bytes = state->bytes;
    memset(p->record, 0, sizeof p->record);
    struct reader records = reader_over(state->records, state->bytes), record;
    uint64_t id;
    while (store_record_next(&records, &id, &record)) {
        assert_true(id < 3);
        memset(p->record[id], 0, sizeof p->record[id]);
        if (record.left)
            memcpy(p->record[id], record.at, record.left < TEXT_MAX ? record.left : TEXT_MAX - 1);
    }
    assert_true(reader_done(&records));
}

static void saved(void *arg, paramo_err status)
{
    struct process *p = arg;
    assert_true(lane_held(p->lane));
    p->saves++;
    p->saved = status;
    if (status)
        err_text_copy(p->text);
}

static void start_begin(struct process *p)
{
    p->told = 0;
    assert_true(lane_enter(p->lane));
    assert_int_equal(store_start(p->store, started, p), PARAMO_OK);
    lane_leave(p->lane);
    assert_int_equal(p->told, 0);
}

static bool is_told(void *arg)
{
    return ((struct process *)arg)->told > 0;
}

static bool is_saved(void *arg)
{
    return ((struct process *)arg)->saves > 0;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void seconds_pass(unsigned ms)
{
    (void)sim_run(sim, never, NULL, sim_now(sim) + ms * ENV_MS);
}

static paramo_err start(struct process *p)
{
    start_begin(p);
    assert_true(sim_run(sim, is_told, p, sim_now(sim) + 30 * ENV_SEC));
    return p->status;
}

static void record_put(struct writer *w, uint64_t id, const char *text, size_t len)
{
    size_t mark;
    store_record_begin(w, id, &mark);
    if (len)
        write_bytes(w, text, len);
    store_record_end(w, mark);
}

static paramo_err save_begin(struct process *p, bool whole, struct writer *w)
{
    p->saves = 0;
    assert_true(lane_enter(p->lane));
    paramo_err err = store_save(p->store, w, whole, saved, p);
    lane_leave(p->lane);
    assert_int_equal(p->saves, 0);
    return err;
}

static paramo_err save_records(struct process *p, bool whole, struct writer *w)
{
    paramo_err err = save_begin(p, whole, w);
    if (err)
        return err;
    assert_true(sim_run(sim, is_saved, p, sim_now(sim) + 30 * ENV_SEC));
    return p->saved;
}

/* b NULL: only the one. */
static paramo_err save(struct process *p, bool whole, const char *a, const char *b)
{
    struct writer w = {0};
    record_put(&w, A, a, strlen(a));
    if (b)
        record_put(&w, B, b, strlen(b));
    return save_records(p, whole, &w);
}

static paramo_err proof(struct process *p)
{
    struct writer w = {0};
    return save_records(p, false, &w);
}

static bool sure(struct process *p)
{
    assert_true(lane_enter(p->lane));
    bool is = store_sure(p->store);
    lane_leave(p->lane);
    return is;
}

static void remembers(void **state)
{
    (void)state;
    process_on(&one, "one:1");
    assert_int_equal(start(&one), PARAMO_OK);
    assert_int_equal(one.term, 1);
    assert_int_equal(one.bytes, 0);
    assert_true(sure(&one));
    assert_string_equal(simetcd_value(etcd, "paramo/clicks/leader"), "one:1");
    assert_int_equal(save(&one, false, "one", "two"), PARAMO_OK);
    assert_int_equal(save(&one, true, "three", NULL), PARAMO_OK); /* whole: B is not there any more */
    assert_int_equal(save(&one, false, "four", "five"), PARAMO_OK);
    assert_int_equal(save(&one, false, "six", NULL), PARAMO_OK);
    assert_int_equal(proof(&one), PARAMO_OK);
    assert_int_equal(simetcd_keys(etcd), 3 + 3); /* term, leader, head; records since the whole one */
    for (uint32_t term = 2; term < 5; term++) {
        process_off(&one);
        process_on(&one, "one:1");
        uint64_t from = sim_now(sim);
        assert_int_equal(start(&one), PARAMO_OK);
        assert_in_range(sim_now(sim) - from, 3 * ENV_SEC, 7 * ENV_SEC); /* the lease of the one before */
        assert_int_equal(one.term, term);
        assert_string_equal(one.record[A], "six");
        assert_string_equal(one.record[B], "five");
    }
}

/* More than etcd takes at a time is cut into pieces, which count when the last is there. */
static void large_saves_are_whole(void **state)
{
    (void)state;
    static char big[BIG];
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (char)('a' + i % 23);
    process_on(&one, "one:1");
    assert_int_equal(start(&one), PARAMO_OK);
    assert_int_equal(save(&one, true, "before", "b"), PARAMO_OK);
    for (unsigned lost = 0; lost < 4; lost++) {
        struct writer w = {0};
        record_put(&w, A, "new", 3);
        record_put(&w, B, big, sizeof big);
        simetcd_fail(one.http, lost % 2 ? SIMETCD_MUTE : SIMETCD_LOST, lost, 1, 0);
        paramo_err err = save_records(&one, true, &w);
        assert_true(err == PARAMO_E_CONNECT || err == PARAMO_E_TIMEOUT);
        assert_int_equal(save(&one, false, "not whole", NULL), PARAMO_E_IO);
        process_off(&one);
        process_on(&one, "one:1");
        assert_int_equal(start(&one), PARAMO_OK);
        assert_string_equal(one.record[A], lost == 3 ? "new" : "before"); /* all was done but the answer */
        assert_int_equal(one.bytes, lost == 3 ? 2 * 12 + 3 + sizeof big : 2 * 12 + 6 + 1);
        if (lost < 3)
            assert_int_equal(save(&one, true, "before", "b"), PARAMO_OK);
    }
    struct writer w = {0};
    record_put(&w, A, big, sizeof big);
    assert_int_equal(save_records(&one, false, &w), PARAMO_OK);
    process_off(&one);
    process_on(&one, "one:1");
    assert_int_equal(start(&one), PARAMO_OK);
    assert_int_equal(one.bytes, 3 * 12 + 3 + 2 * sizeof big);
    assert_memory_equal(one.record[A], big, TEXT_MAX - 1);
    assert_int_equal(save(&one, true, "small", NULL), PARAMO_OK);
    assert_int_equal(simetcd_keys(etcd), 4); /* nothing of it is left */
}

/* One leads and the other stands by; when the first is gone, the second continues with its saved state. */
static void the_next_takes_over(void **state)
{
    (void)state;
    process_on(&one, "one:1");
    process_on(&two, "two:1");
    assert_int_equal(start(&one), PARAMO_OK);
    assert_int_equal(save(&one, false, "five", NULL), PARAMO_OK);
    start_begin(&two);
    seconds_pass(60000);
    assert_int_equal(two.told, 0);
    assert_true(sure(&one)); /* its lease is kept alive */
    assert_int_equal(save(&one, false, "six", NULL), PARAMO_OK);
    process_off(&one);
    assert_true(sim_run(sim, is_told, &two, sim_now(sim) + 6 * ENV_SEC));
    assert_int_equal(two.status, PARAMO_OK);
    assert_int_equal(two.term, 2);
    assert_string_equal(two.record[A], "six");
    assert_string_equal(simetcd_value(etcd, "paramo/clicks/leader"), "two:1");
}

/* Two that both believe to lead: the one that began last saves, and the other is fenced forever. */
static void the_one_before_is_fenced(void **state)
{
    (void)state;
    process_on(&one, "one:1");
    process_on(&two, "two:1");
    assert_int_equal(start(&one), PARAMO_OK);
    assert_int_equal(save(&one, false, "five", NULL), PARAMO_OK);
    sim_host_pause(one.host, sim_now(sim) + 20 * ENV_SEC);
    assert_int_equal(start(&two), PARAMO_OK);
    assert_string_equal(two.record[A], "five");
    sim_host_pause(one.host, 0);
    assert_false(sure(&one)); /* at once, by its own clock */
    assert_int_equal(save(&one, true, "old", "old"), PARAMO_E_FENCED);
    assert_non_null(strstr(one.text, "no longer leads the job: two:1 leads it in term 2"));
    assert_int_equal(proof(&one), PARAMO_E_FENCED);
    assert_int_equal(save(&one, false, "old", NULL), PARAMO_E_FENCED);
    seconds_pass(20000);
    assert_false(sure(&one)); /* nor does it take the lead back */
    assert_true(sure(&two));
    assert_int_equal(save(&two, false, "six", NULL), PARAMO_OK);
    process_off(&two);
    process_on(&two, "two:1");
    assert_int_equal(start(&two), PARAMO_OK);
    assert_string_equal(two.record[A], "six");
    assert_string_equal(two.record[B], "");
}

static void stands_still(void *arg, const char *key, const char *value)
{
    struct process *p = arg;
    if (strcmp(key, "paramo/clicks/leader") == 0 && strcmp(value, p->name) == 0)
        sim_host_pause(p->host, sim_now(sim) + 20 * ENV_SEC);
}

/* It has won, and before it has read what there is another has won after it: it stands by, and may lead later
 * as if nothing had been. */
static void a_campaign_that_was_in_vain(void **state)
{
    (void)state;
    process_on(&one, "one:1");
    assert_int_equal(start(&one), PARAMO_OK);
    assert_int_equal(save(&one, false, "five", NULL), PARAMO_OK);
    process_off(&one);
    process_on(&two, "two:1");
    simetcd_watch(etcd, stands_still, &two);
    start_begin(&two);
    seconds_pass(7000);
    assert_string_equal(simetcd_value(etcd, "paramo/clicks/term"), "2");
    process_on(&one, "one:1");
    assert_int_equal(start(&one), PARAMO_OK);
    assert_int_equal(one.term, 3);
    assert_int_equal(save(&one, false, "six", NULL), PARAMO_OK);
    seconds_pass(30000);
    assert_int_equal(two.told, 0);
    assert_true(sure(&one));
    simetcd_watch(etcd, NULL, NULL);
    process_off(&one);
    assert_true(sim_run(sim, is_told, &two, sim_now(sim) + 7 * ENV_SEC));
    assert_int_equal(two.status, PARAMO_OK);
    assert_int_equal(two.term, 4);
    assert_string_equal(two.record[A], "six");
    assert_int_equal(save(&two, false, "seven", NULL), PARAMO_OK);
}

/* A clock that jumps, or a pause in which no other has begun to lead: it keeps the lead when that is proved. */
static void a_lease_that_ended_is_taken_again(void **state)
{
    (void)state;
    process_on(&one, "one:1");
    assert_int_equal(start(&one), PARAMO_OK);
    simetcd_fail(one.http, SIMETCD_LOST, 0, 1000000, 0); /* etcd is away for longer than the lease */
    seconds_pass(8000);
    assert_false(sure(&one));
    assert_int_equal(save(&one, true, "five", NULL), PARAMO_E_CONNECT);
    assert_null(simetcd_value(etcd, "paramo/clicks/leader"));
    simetcd_fail(one.http, SIMETCD_LOST, 0, 0, 0);
    assert_int_equal(proof(&one), PARAMO_OK); /* no other has begun to lead */
    assert_int_equal(save(&one, true, "six", NULL), PARAMO_OK);
    seconds_pass(3000);
    assert_true(sure(&one));
    assert_string_equal(simetcd_value(etcd, "paramo/clicks/leader"), "one:1");
    process_on(&two, "two:1"); /* and another waits again */
    start_begin(&two);
    seconds_pass(20000);
    assert_int_equal(two.told, 0);
    assert_true(sure(&one));
}

/* What arrives late changes nothing that came after it. */
static void late_requests_are_lost(void **state)
{
    (void)state;
    process_on(&one, "one:1");
    assert_int_equal(start(&one), PARAMO_OK);
    assert_int_equal(save(&one, false, "one", "b"), PARAMO_OK);
    simetcd_fail(one.http, SIMETCD_LATE, 0, 1, 900 * ENV_MS);
    assert_int_equal(save(&one, false, "late", NULL), PARAMO_E_TIMEOUT);
    assert_int_equal(save(&one, true, "two", NULL), PARAMO_OK);
    seconds_pass(2000);
    process_off(&one);
    process_on(&one, "one:1");
    assert_int_equal(start(&one), PARAMO_OK);
    assert_string_equal(one.record[A], "two");
    assert_string_equal(one.record[B], "");
    assert_int_equal(save(&one, false, "three", NULL), PARAMO_OK);
    simetcd_fail(one.http, SIMETCD_LATE, 0, 1, 30 * ENV_SEC); /* until another leads */
    assert_int_equal(save(&one, true, "too late", "for all"), PARAMO_E_TIMEOUT);
    process_off(&one);
    process_on(&two, "two:1");
    assert_int_equal(start(&two), PARAMO_OK);
    assert_string_equal(two.record[A], "three");
    assert_int_equal(save(&two, false, "four", NULL), PARAMO_OK);
    seconds_pass(40000);
    assert_int_equal(proof(&two), PARAMO_OK);
    process_off(&two);
    process_on(&two, "two:1");
    assert_int_equal(start(&two), PARAMO_OK);
    assert_string_equal(two.record[A], "four");
    assert_string_equal(two.record[B], "");
}

/* Every fault at every request of a start and some saves: what is found afterwards is the last that was
 * acknowledged, or one that was tried since; and the term rises. */
static void acknowledged_is_there(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "first", "second", "third", "fourth", "fifth"};
    for (enum simetcd_fault fault = 0; fault < SIMETCD_FAULTS; fault++)
        for (unsigned at = 0; at < 14; at++)
            for (unsigned count = 1; count < 4; count++) {
                process_on(&one, "one:1");
                simetcd_put(etcd, "paramo/clicks/other", "1");
                simetcd_fail(one.http, fault, at, count, 700 * ENV_MS);
                assert_int_equal(start(&one), PARAMO_OK);
                uint32_t term = one.term;
                unsigned sure_of = 0, last = 0;
                bool failed = true;
                for (unsigned i = 1; i <= 5; i++) {
                    failed = save(&one, failed || i == 3, texts[i], texts[i]) != PARAMO_OK;
                    last = i;
                    sure_of = failed ? sure_of : i;
                }
                process_off(&one);
                process_on(&two, "two:1");
                assert_int_equal(start(&two), PARAMO_OK);
                assert_true(two.term > term);
                unsigned found = 0;
                while (found < 5 && strcmp(two.record[A], texts[found]) != 0)
                    found++;
                assert_in_range(found, sure_of, last);
                assert_string_equal(two.record[A], two.record[B]);
                assert_int_equal(save(&two, true, "", ""), PARAMO_OK);
                process_off(&two);
            }
}

/* A standby scheduler of a job that is over ends; one that is started later begins a new job. */
static void over_is_over(void **state)
{
    (void)state;
    process_on(&one, "one:1");
    assert_int_equal(start(&one), PARAMO_OK);
    process_on(&two, "two:1");
    start_begin(&two);
    seconds_pass(2000);
    assert_int_equal(save(&one, false, "five", NULL), PARAMO_OK);
    struct writer nothing = {0};
    assert_int_equal(save_records(&one, true, &nothing), PARAMO_OK);
    process_off(&one);
    assert_true(sim_run(sim, is_told, &two, sim_now(sim) + ENV_SEC));
    assert_int_equal(two.status, PARAMO_E_CLOSED);
    assert_non_null(strstr(two.text, "is over"));
    process_on(&one, "one:1");
    uint64_t from = sim_now(sim);
    assert_int_equal(start(&one), PARAMO_OK);
    assert_true(sim_now(sim) - from < ENV_SEC); /* nor is there a lease to be waited for */
    assert_int_equal(one.term, 2);
    assert_int_equal(one.bytes, 0);
    start_begin(&two); /* one that dies before anything was saved is no end */
    seconds_pass(2000);
    process_off(&one);
    assert_true(sim_run(sim, is_told, &two, sim_now(sim) + 7 * ENV_SEC));
    assert_int_equal(two.status, PARAMO_OK);
    assert_int_equal(two.term, 3);
}

static void an_etcd_that_is_not_there(void **state)
{
    (void)state;
    process_on(&one, "one:1");
    simetcd_fail(one.http, SIMETCD_LOST, 0, 1000000, 0);
    uint64_t from = sim_now(sim);
    assert_int_equal(start(&one), PARAMO_E_CONNECT);
    assert_in_range(sim_now(sim) - from, 3 * ENV_SEC, 4 * ENV_SEC); /* its patience */
    assert_non_null(strstr(one.text, "etcd does not answer"));
    simetcd_fail(one.http, SIMETCD_UPSET, 0, 5, 0);
    assert_int_equal(start(&one), PARAMO_OK); /* it may be tried again */
    process_off(&one);
    process_on(&two, "two:1");
    start_begin(&two);
    seconds_pass(3000);
    simetcd_fail(two.http, SIMETCD_LOST, 0, 100, 0); /* a standby scheduler waits longer */
    seconds_pass(10000);
    assert_int_equal(two.told, 0);
    assert_true(sim_run(sim, is_told, &two, sim_now(sim) + 30 * ENV_SEC));
    assert_int_equal(two.status, PARAMO_OK);
}

static void refuses_what_is_not_ours(void **state)
{
    (void)state;
    static const char *const bad[][2] = {{"term", "x"},          {"term", "0"},
                                         {"term", "2147483647"}, {"term", ""},
                                         {"head", "2 1 1 1 1"},  {"head", "1 1 1 2 1"},
                                         {"head", "1 2 1 1 1"},  {"head", "1 0 1 1 1"},
                                         {"head", "1 1 1 1 1 "}, {"head", "1 1 1 1 99999999999999"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char key[40];
        (void)snprintf(key, sizeof key, "paramo/%zu/%s", i, bad[i][0]);
        simetcd_put(etcd, key, bad[i][1]);
        char meta[40];
        (void)snprintf(meta, sizeof meta, "etcd://[::1]:2379/%zu", i);
        process_on_asking(&one, meta, "one:1");
        assert_int_equal(start(&one), PARAMO_E_FORMAT);
        process_off(&one);
    }
    simetcd_put(etcd, "paramo/job/head", "1 100000001 100000001 1 5"); /* its record is not there */
    process_on_asking(&one, "etcd://h:1", "one:1");
    assert_int_equal(start(&one), PARAMO_E_CORRUPT);
}

static void keys_that_are_gone_fence_too(void **state)
{
    (void)state;
    process_on(&one, "one:1");
    assert_int_equal(start(&one), PARAMO_OK);
    simetcd_put(etcd, "paramo/clicks/term", "7"); /* an operator */
    assert_int_equal(save(&one, false, "five", NULL), PARAMO_E_FENCED);
}

static void addresses(void **state)
{
    (void)state;
    static const char *const good[] = {"etcd://a:1", "etcd://a:1,b:2", "etcd://[::1]:2379/job-1.x_Y",
                                       "etcd://1:1,2:1,3:1,4:1,5:1,6:1,7:1,8:1/x"};
    static const char *const bad[] = {
        "",
        "a:1",
        "http://a:1",
        "etcd://",
        "etcd:///x",
        "etcd://a",
        "etcd://a:0",
        "etcd://a:1/",
        "etcd://a:1/x/y",
        "etcd://a:1/x y",
        "etcd://a:1,,b:1",
        "etcd://,a:1",
        "etcd://a:65536",
        "etcd://1:1,2:1,3:1,4:1,5:1,6:1,7:1,8:1,9:1",
        "etcd://a:1/0123456789012345678901234567890123456789012345678901234567890123"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(store_etcd_check(good[i]), PARAMO_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(store_etcd_check(bad[i]), PARAMO_E_INVALID);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, on, off)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(remembers),
        TEST(large_saves_are_whole),
        TEST(the_next_takes_over),
        TEST(the_one_before_is_fenced),
        TEST(a_campaign_that_was_in_vain),
        TEST(a_lease_that_ended_is_taken_again),
        TEST(late_requests_are_lost),
        TEST(acknowledged_is_there),
        TEST(over_is_over),
        TEST(an_etcd_that_is_not_there),
        TEST(refuses_what_is_not_ours),
        TEST(keys_that_are_gone_fence_too),
        TEST(addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
