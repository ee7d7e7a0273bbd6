/*
 * Messages are handled once per node, in the order of issue where nothing was lost, and their answers are
 * whole, whatever the network drops, repeats and reorders: two clients, three hosts, faults from a seed. One
 * seed again: test_ask_sim SEED.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "worker/client_impl.h"
#include "worker/support_world.h"

enum { SEEDS = 60, CLIENTS = 2, SERVERS = 3, REQUESTS = 120 };

static uint64_t first_seed = 1;
static unsigned seeds = SEEDS;

struct asked {
    struct run *run;
    unsigned client;
    uint64_t ts, after;
    uint32_t to;
    uint8_t body[200];
    size_t len;
    unsigned replies, handled[SERVERS];
    bool done;
    paramo_err status;
};

struct run {
    struct world w;
    uint64_t seed;
    struct asked asked[REQUESTS];
};

struct late {
    struct sim_event event;
    struct run *run;
    struct shard_request *request;
    const struct shard_request_info *info;
};

static uint64_t draw(struct run *r, uint64_t below)
{
    return sim_random(r->w.sim) % below;
}

#define check(r, condition)                                                                                  \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            fail_msg("seed %llu, line %d: %s", (unsigned long long)(r)->seed, __LINE__, #condition);         \
    } while (0)

static void answer(struct run *r, struct shard_request *q, const struct shard_request_info *info)
{
    struct paramo_array *const none[VAN_SEGS] = {0};
    check(r, shard_answer_segs(q, info->seg, none) == PARAMO_OK);
}

static void answer_late(struct sim_event *event)
{
    struct late *late = container_of(event, struct late, event);
    answer(late->run, late->request, late->info);
    free(late);
}

static void handle(void *arg, struct shard_request *q, const struct shard_request_info *info)
{
    struct run *r = arg;
    check(r, !info->table && info->app == 3 && (unsigned)info->cmd < REQUESTS);
    struct asked *a = &r->asked[info->cmd];
    unsigned server = (info->to - 8) / 2;
    check(r, info->flags == 77 + a->client && info->sender == PARAMO_ID_WORKER(a->client));
    check(r, info->seg[WIRE_SEG_BODY].len == a->len &&
                 (!a->len || memcmp(info->seg[WIRE_SEG_BODY].data, a->body, a->len) == 0));
    check(r, ++a->handled[server] == 1);
    for (unsigned i = 0; i < REQUESTS && a->after; i++) {
        struct asked *b = &r->asked[i];
        check(r, b->client != a->client || b->ts != a->after || b->done);
    }
    if (draw(r, 3)) {
        answer(r, q, info);
        return;
    }
    struct late *late = calloc(1, sizeof *late);
    *late = (struct late){.event.fire = answer_late, .run = r, .request = q, .info = info};
    check(r, sim_schedule(r->w.sim, &late->event, sim_now(r->w.sim) + draw(r, 400 * ENV_MS)) == PARAMO_OK);
}

static void on_reply(void (*to)(void), void *arg, uint64_t ts, const struct client_reply *reply)
{
    struct asked *a = arg;
    (void)to;
    check(a->run, !a->done && (!a->ts || a->ts == ts));
    check(a->run, reply->seg[WIRE_SEG_BODY].len == a->len &&
                      (!a->len || memcmp(reply->seg[WIRE_SEG_BODY].data, a->body, a->len) == 0));
    a->replies++;
}

static void on_done(void *arg, uint64_t ts, paramo_err status)
{
    struct asked *a = arg;
    (void)ts;
    check(a->run, !a->done);
    a->done = true;
    a->status = status;
}

static void issue(struct run *r, unsigned i)
{
    struct asked *a = &r->asked[i];
    a->run = r;
    a->client = (unsigned)draw(r, CLIENTS);
    a->to = draw(r, 3) ? (uint32_t)PARAMO_GROUP_SERVERS : PARAMO_ID_SERVER(draw(r, SERVERS));
    a->len = draw(r, 4) ? (size_t)draw(r, sizeof a->body) : 0;
    for (size_t k = 0; k < a->len; k++)
        a->body[k] = (uint8_t)draw(r, 256);
    for (unsigned k = i; k-- && !a->after && draw(r, 3) == 0;)
        if (r->asked[k].client == a->client)
            a->after = r->asked[k].ts;
    struct client_message m = {
        .to = a->to, .app = 3, .customer = 9, .flags = 77 + a->client, .head = (int32_t)i};
    m.seg[WIRE_SEG_BODY] = (struct van_seg){a->body, a->len};
    paramo_request_options o = {.size = sizeof o,
                                .priority = (int32_t)draw(r, 2),
                                .callback = on_done,
                                .callback_arg = a,
                                .after = &a->after,
                                .after_count = a->after != 0};
    struct client_call call = {.kind = REQUEST_MESSAGE,
                               .messages = &m,
                               .messages_count = 1,
                               .options = &o,
                               .on_reply = on_reply,
                               .reply_arg = a};
    check(r, client_issue(r->w.clients[a->client].client, &call, &a->ts) == PARAMO_OK);
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void run_seed(uint64_t seed, uint64_t *retries)
{
    struct run *r = calloc(1, sizeof *r);
    r->seed = seed;
    world_init(&r->w, true, seed);
    r->w.timeout_ms = 3600 * 1000;
    r->w.handler = handle;
    r->w.handler_arg = r;
    struct simnet_link *l = simnet_defaults(r->w.net);
    l->loss_ppm = (uint32_t)draw(r, 200000);
    l->repeat_ppm = (uint32_t)draw(r, 200000);
    l->late_ppm = (uint32_t)draw(r, 300000);
    l->late_ns = draw(r, 300 * ENV_MS);
    world_start(&r->w, SERVERS, SERVERS, CLIENTS);
    unsigned faulty = 1u << VAN_REQUEST | 1u << VAN_ANSWER;
    for (unsigned s = 0; s < SERVERS; s++)
        van_sim_set_faulty(r->w.servers[s].van, faulty);
    for (unsigned c = 0; c < CLIENTS; c++)
        van_sim_set_faulty(r->w.clients[c].van, faulty);
    for (unsigned i = 0; i < REQUESTS; i++) {
        issue(r, i);
        (void)sim_run(r->w.sim, never, NULL, sim_now(r->w.sim) + draw(r, 40 * ENV_MS));
    }
    for (unsigned c = 0; c < CLIENTS; c++)
        check(r, client_wait_all(r->w.clients[c].client, 0) == PARAMO_OK);
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct asked *a = &r->asked[i];
        unsigned handled = 0, want = a->to == PARAMO_GROUP_SERVERS ? SERVERS : 1;
        for (unsigned s = 0; s < SERVERS; s++)
            handled += a->handled[s];
        check(r, a->done && a->status == PARAMO_OK && a->replies == want && handled == want);
    }
    for (unsigned c = 0; c < CLIENTS; c++) {
        struct client *client = r->w.clients[c].client;
        check(r, client->pool.out == 0 && client->floor == client->next_number);
        *retries += client->retries;
    }
    world_fini(&r->w);
    free(r);
}

static void once_per_node(void **state)
{
    (void)state;
    uint64_t retries = 0;
    for (unsigned i = 0; i < seeds; i++)
        run_seed(first_seed + i, &retries);
    assert_true(retries > seeds); /* else nothing was lost, and nothing shown */
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
        seeds = 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(once_per_node)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
