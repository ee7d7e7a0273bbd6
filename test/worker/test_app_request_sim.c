/*
 * Messages are handled once per node, in the order of issue where nothing was lost, and their answers are
 * whole, whatever the network drops, repeats and reorders: two clients, three hosts, faults from a seed. One
 * seed again: test_app_request_sim SEED.
 */
#include <stdlib.h>
#include <string.h>

#include "worker/client_impl.h"
#include "worker/numbers.h"
#include "worker/support_play.h"

enum { SEEDS = 60, CLIENTS = 2, SERVERS = 3, REQUESTS = 120 };

static uint64_t retries; /* by all seeds */

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
    struct play p;
    struct asked asked[REQUESTS];
};

struct late {
    struct sim_event event;
    struct run *run;
    struct shard_request *request;
    const struct shard_request_info *info;
};

static void answer(struct run *r, struct shard_request *q, const struct shard_request_info *info)
{
    struct paramo_array *const none[VAN_SEGS] = {0};
    play_check(&r->p, shard_answer_segs(q, info->seg, none) == PARAMO_OK);
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
    play_check(&r->p, !info->table && info->app == 3 && (unsigned)info->cmd < REQUESTS);
    struct asked *a = &r->asked[info->cmd];
    unsigned server = (info->to - 8) / 2;
    play_check(&r->p, info->flags == 77 + a->client && info->sender == PARAMO_ID_WORKER(a->client));
    play_check(&r->p, info->seg[WIRE_SEG_BODY].len == a->len &&
                          (!a->len || memcmp(info->seg[WIRE_SEG_BODY].data, a->body, a->len) == 0));
    play_check(&r->p, ++a->handled[server] == 1);
    for (unsigned i = 0; i < REQUESTS && a->after; i++) {
        struct asked *b = &r->asked[i];
        play_check(&r->p, b->client != a->client || b->ts != a->after || b->done);
    }
    if (play_draw(&r->p, 3)) {
        answer(r, q, info);
        return;
    }
    struct late *late = calloc(1, sizeof *late);
    *late = (struct late){.event.fire = answer_late, .run = r, .request = q, .info = info};
    play_check(&r->p, sim_schedule(r->p.w.sim, &late->event,
                                   sim_now(r->p.w.sim) + play_draw(&r->p, 400 * ENV_MS)) == PARAMO_OK);
}

static void on_reply(void (*to)(void), void *arg, uint64_t ts, const struct client_reply *reply)
{
    struct asked *a = arg;
    (void)to;
    play_check(&a->run->p, !a->done && (!a->ts || a->ts == ts));
    play_check(&a->run->p, reply->seg[WIRE_SEG_BODY].len == a->len &&
                               (!a->len || memcmp(reply->seg[WIRE_SEG_BODY].data, a->body, a->len) == 0));
    a->replies++;
}

static void on_done(void *arg, uint64_t ts, paramo_err status)
{
    struct asked *a = arg;
    (void)ts;
    play_check(&a->run->p, !a->done);
    a->done = true;
    a->status = status;
}

static void issue(struct run *r, unsigned i)
{
    struct asked *a = &r->asked[i];
    a->run = r;
    a->client = (unsigned)play_draw(&r->p, CLIENTS);
    a->to =
        play_draw(&r->p, 3) ? (uint32_t)PARAMO_GROUP_SERVERS : PARAMO_ID_SERVER(play_draw(&r->p, SERVERS));
    a->len = play_draw(&r->p, 4) ? (size_t)play_draw(&r->p, sizeof a->body) : 0;
    for (size_t k = 0; k < a->len; k++)
        a->body[k] = (uint8_t)play_draw(&r->p, 256);
    for (unsigned k = i; k-- && !a->after && play_draw(&r->p, 3) == 0;)
        if (r->asked[k].client == a->client)
            a->after = r->asked[k].ts;
    struct client_message m = {
        .to = a->to, .app = 3, .customer = 9, .flags = 77 + a->client, .head = (int32_t)i};
    m.seg[WIRE_SEG_BODY] = (struct van_seg){a->body, a->len};
    paramo_request_options o = {.size = sizeof o,
                                .priority = (int32_t)play_draw(&r->p, 2),
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
    play_check(&r->p, client_issue(r->p.w.clients[a->client].client, &call, &a->ts) == PARAMO_OK);
}

static void run_seed(uint64_t seed)
{
    struct run *r = calloc(1, sizeof *r);
    play_open(&r->p, seed);
    r->p.w.handler = handle;
    r->p.w.handler_arg = r;
    play_links(&r->p, 200000, 200000, 300000);
    world_start(&r->p.w, SERVERS, SERVERS, CLIENTS);
    play_faulty(&r->p, 1u << VAN_REQUEST | 1u << VAN_ANSWER);
    for (unsigned i = 0; i < REQUESTS; i++) {
        issue(r, i);
        play_run(&r->p, play_draw(&r->p, 40 * ENV_MS));
    }
    for (unsigned c = 0; c < CLIENTS; c++)
        play_check(&r->p, client_wait_all(r->p.w.clients[c].client, 0) == PARAMO_OK);
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct asked *a = &r->asked[i];
        unsigned handled = 0, want = a->to == PARAMO_GROUP_SERVERS ? SERVERS : 1;
        for (unsigned s = 0; s < SERVERS; s++)
            handled += a->handled[s];
        play_check(&r->p, a->done && a->status == PARAMO_OK && a->replies == want && handled == want);
    }
    for (unsigned c = 0; c < CLIENTS; c++) {
        struct client *client = r->p.w.clients[c].client;
        play_check(&r->p, client->pool.out == 0 && client->numbers->floor == client->numbers->next);
        retries += client->counts->retries;
    }
    play_close(&r->p);
    free(r);
}

int main(int argc, char **argv)
{
    int code = play_main(argc, argv, SEEDS, run_seed);
    return code || retries > play_seeds() ? code : 1; /* else nothing was lost, and nothing shown */
}
