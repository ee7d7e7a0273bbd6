/* etcd's answers, as bytes: what is read fits, and a store that is told anything neither saves nor leads by
 * it unless it says so. */
#include <stdlib.h>
#include <string.h>

#include "cluster/meta/etcd.h"
#include "cluster/meta/store_etcd.h"
#include "harness.h"
#include "sim/env/sim.h"

static void read_all(const uint8_t *data, size_t size)
{
    struct writer json = {0};
    struct etcd_answer answer;
    uint64_t lease;
    uint32_t ttl_s;
    char text[64];
    if (size)
        write_bytes(&json, data, size);
    if (etcd_txn_read(&json, &answer) == PARAMO_OK) {
        CHECK(answer.revision && answer.count <= ETCD_KVS_MAX);
        for (unsigned i = 0; i < answer.count; i++)
            CHECK(strlen(answer.kv[i].key) && strlen(answer.kv[i].key) < ETCD_KEY_MAX &&
                  answer.kv[i].modified);
        etcd_answer_fini(&answer);
    }
    if (etcd_lease_read(&json, &lease, &ttl_s) == PARAMO_OK)
        CHECK(!ttl_s || lease);
    etcd_error_text(&json, text, sizeof text);
    CHECK(strlen(text) < sizeof text);
    writer_fini(&json);
}

/* Answers that are taken from the input, one after the other: a text up to a line's end each. */
struct answers {
    struct http http;
    struct source source;
};

static paramo_err post_request(struct http *http, const struct http_request *ask, unsigned *status,
                               struct writer *answer)
{
    struct answers *a = (struct answers *)http;
    CHECK(ask->body->len && !ask->body->failed && ask->timeout_ms);
    if (!a->source.left)
        return err_set(PARAMO_E_CONNECT, "no server is there");
    const uint8_t *end = memchr(a->source.at, '\n', a->source.left);
    size_t len = end ? (size_t)(end - a->source.at) : a->source.left;
    if (len)
        write_bytes(answer, a->source.at, len);
    *status = len && a->source.at[0] == '!' ? 500 : 200;
    a->source.at += len + (end != NULL);
    a->source.left -= len + (end != NULL);
    return PARAMO_OK;
}

static void nothing(struct http *http)
{
    (void)http;
}

static struct told {
    bool started, saved;
    paramo_err status;
} told;

static void started(void *arg, paramo_err status, const struct store_state *state)
{
    (void)arg;
    CHECK(!told.started && !state == (status != PARAMO_OK));
    told.started = true;
    told.status = status;
    if (state)
        CHECK(state->term && state->term <= INT32_MAX);
}

static void saved(void *arg, paramo_err status)
{
    (void)arg, (void)status;
    CHECK(!told.saved);
    told.saved = true;
}

static bool is_started(void *arg)
{
    (void)arg;
    return told.started;
}

static bool is_saved(void *arg)
{
    (void)arg;
    return told.saved;
}

static void live(const uint8_t *data, size_t size)
{
    static const struct http_ops ops = {.post = post_request, .destroy = nothing};
    struct answers answers = {.http.ops = &ops, .source = {data, size}};
    struct sim *sim;
    struct lane *lane;
    struct blocking_jobs *blocking_jobs;
    struct store *store;
    told = (struct told){0};
    CHECK(!sim_create(1, &sim) && !lane_create(sim_env(sim), "control", 0, &lane) &&
          !blocking_jobs_create(sim_env(sim), "blocking jobs", &blocking_jobs));
    struct store_etcd_config config = {.lane = lane,
                                       .blocking_jobs = blocking_jobs,
                                       .http = &answers.http,
                                       .meta = "etcd://a:1/j",
                                       .name = "name:1",
                                       .patience_ms = 1000};
    CHECK(!store_etcd_open(&config, &store) && lane_enter(lane));
    CHECK(!store_start(store, started, NULL));
    lane_leave(lane);
    (void)sim_run(sim, is_started, NULL, sim_now(sim) + 20 * ENV_SEC);
    CHECK(lane_enter(lane));
    struct writer records = {0};
    size_t mark;
    store_record_begin(&records, 1, &mark);
    store_record_end(&records, mark);
    bool leads = told.started && !told.status;
    bool asked = leads && !store_save(store, &records, size % 2, saved, NULL);
    lane_leave(lane);
    if (asked) /* it ends, well or not */
        CHECK(sim_run(sim, is_saved, NULL, sim_now(sim) + 20 * ENV_SEC));
    if (!leads)
        writer_fini(&records);
    CHECK(lane_enter(lane));
    store_close(store);
    lane_leave(lane);
    blocking_jobs_destroy(blocking_jobs);
    CHECK(lane_enter(lane));
    lane_leave(lane);
    lane_destroy(lane);
    sim_destroy(sim);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    harness_quiet();
    read_all(data, size);
    live(data, size);
    return 0;
}
