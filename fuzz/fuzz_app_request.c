/* A client that asks apps, and hosts that answer anything: right answers, of any segments, late, twice, cut
 * in the middle, with errors, while views change, nodes leave and requests are cancelled; some requests come
 * after others. Every request completes once, after its replies; its memory is its owner's again at once. */
#include <stdlib.h>
#include <string.h>

#include "cluster/session/control_message.h"
#include "fakevan.h"
#include "wire/hello.h"
#include "worker/client.h"
#include "worker/client_impl.h"

enum { REQUESTS = 24, HEARD = 64, SERVERS = 3, FRAME_LIMIT = 1 << 20, BODY = 48, INTO = 16 };

struct asked {
    bool used, nobody; /* the view has no scheduler */
    unsigned done, replies;
    uint64_t ts;
    uint8_t *body, *into; /* of exactly their size */
};

struct heard {
    struct fakeconn *conn;
    struct wire_head head;
};

static struct world {
    struct fakeworld world;
    struct client *client;
    struct view *view;
    uint64_t number;
    struct asked asked[REQUESTS];
    struct heard heard[HEARD];
    unsigned heard_count;
    struct fakeconn *conn;
} w;

static struct view *make_view(unsigned bits)
{
    struct view *v = calloc(1, sizeof *v);
    CHECK(v);
    atomic_init(&v->refs, 1);
    v->job = 7;
    v->number = ++w.number;
    v->num_servers = SERVERS;
    v->num_workers = 1;
    v->nodes_count = SERVERS + 1;
    v->nodes = calloc(v->nodes_count, sizeof *v->nodes);
    CHECK(v->nodes);
    static const uint32_t ids[] = {8, 9, 10, 12};
    for (unsigned i = 0; i < SERVERS + 1; i++) {
        bool server = ids[i] % 2 == 0;
        v->nodes[i] = (struct view_node){.id = ids[i],
                                         .role = server ? PARAMO_ROLE_SERVER : PARAMO_ROLE_WORKER,
                                         .incarnation = 1 + (server ? bits >> (i + 8) & 1 : 0),
                                         .alive = !(server && bits >> i & 1),
                                         .left = server && (bits >> i & 1) && (bits >> (4 + i) & 1),
                                         .port = server ? 1 : 0};
        memcpy(v->nodes[i].host, "host", 5);
    }
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        v->chains.level[0].owner[a] = RING_NONE;
    view_unref(w.view);
    w.view = v;
    return v;
}

/* ---- the hosts' side ---- */

static void connected(void *arg, struct fakeconn *c)
{
    (void)arg;
    w.conn = c;
}

static void sent(void *arg, struct fakeconn *c, const struct van_frame *frame)
{
    struct wire_head h;
    (void)arg;
    CHECK(wire_head_decode(frame->head, &h) == PARAMO_OK);
    if (!h.number)
        return;
    CHECK(h.kind == WIRE_MESSAGE || h.kind == WIRE_PROBE);
    CHECK(data_check_request(&h, frame->seg, frame->nseg) == PARAMO_OK);
    w.heard[w.heard_count++ % HEARD] = (struct heard){.conn = c, .head = h};
}

static void answer(struct source *s)
{
    if (!w.heard_count)
        return;
    struct heard *heard =
        &w.heard[(w.heard_count - 1 - draw_u8(s) % (w.heard_count < HEARD ? w.heard_count : HEARD)) % HEARD];
    if (!fakeconn_alive(heard->conn) || heard->conn->coming)
        return;
    uint8_t bytes[VAN_HEAD], how = draw_u8(s);
    struct wire_head h = heard->head;
    h.kind = how & 1 && draw_below(s, 2) ? WIRE_PROBE_ANSWER : WIRE_ANSWER;
    h.probed.found = h.kind == WIRE_PROBE_ANSWER ? draw_below(s, 4) : 0;
    h.status = how & 2 && draw_below(s, 3) == 0 ? draw_u8(s) : 0;
    h.attempt += how & 4 ? draw_below(s, 2) : 0;
    h.slice = how & 8 ? draw_below(s, 3) : 0;
    struct van_seg seg[VAN_SEGS] = {{0}};
    unsigned nseg = draw_below(s, VAN_SEGS + 1);
    for (unsigned i = 0; i < nseg; i++) {
        size_t got;
        seg[i].data = draw_bytes(s, i == WIRE_SEG_VALS && how & 16 ? (size_t)INTO : draw_below(s, 60), &got);
        seg[i].len = got;
    }
    wire_head_encode(&h, bytes);
    if (how & 32) {
        (void)fakeconn_begin(heard->conn, bytes, seg, nseg);
    } else if (fakeconn_frame(heard->conn, bytes, seg, nseg) && how & 64) {
        (void)fakeconn_frame(heard->conn, bytes, seg, nseg);
    }
    for (unsigned i = 0; i < nseg; i++)
        free(seg[i].data);
}

static void welcome(struct fakeconn *c, struct source *s)
{
    struct wire_head head = {.plain = {.kind = WIRE_WELCOME}};
    struct welcome m = {.version = 1, .job = 7, .incarnation = draw_below(s, 8) == 7 ? 2 : 1};
    struct writer body = {0};
    welcome_encode(&m, &body);
    (void)fakeconn_control_message(c, &head, body.data, body.len);
    writer_fini(&body);
}

/* ---- the client's side ---- */

static void on_reply(void (*to)(void), void *arg, uint64_t ts, const struct client_reply *reply)
{
    struct asked *a = arg;
    CHECK(!to && !a->done && (!a->ts || a->ts == ts));
    uint64_t sum = 0;
    for (unsigned i = 0; i < VAN_SEGS; i++)
        for (uint64_t k = 0; k < reply->seg[i].len; k++)
            sum += ((const uint8_t *)reply->seg[i].data)[k];
    if (reply->placed)
        CHECK(reply->seg[WIRE_SEG_VALS].data == a->into && reply->seg[WIRE_SEG_VALS].len == INTO);
    a->replies += sum == UINT64_MAX ? 2 : 1;
}

static void on_done(void *arg, uint64_t ts, paramo_err status)
{
    struct asked *a = arg;
    (void)ts;
    CHECK(++a->done == 1 && (status || a->replies || a->nobody));
    free(a->body);
    free(a->into);
    a->body = a->into = NULL;
}

static void issue(struct source *s)
{
    struct asked *a = NULL;
    for (unsigned i = 0; i < REQUESTS && !a; i++)
        if (!w.asked[i].used || w.asked[i].done)
            a = &w.asked[i];
    if (!a)
        return;
    static const uint32_t to[] = {8, 10, 12, 2, 6, 7, 9, 1};
    uint8_t how = draw_u8(s);
    *a = (struct asked){.used = true, .body = harness_alloc(BODY), .into = harness_alloc(INTO)};
    memset(a->body, how, BODY);
    struct client_message m = {.to = to[how % 8], .app = 3, .head = how};
    a->nobody = m.to == PARAMO_ID_SCHEDULER;
    m.seg[WIRE_SEG_BODY] = (struct van_seg){a->body, draw_below(s, BODY + 1)};
    m.seg[WIRE_SEG_KEYS] = (struct van_seg){a->body, draw_below(s, BODY + 1)};
    if (how & 32 && m.to >= 8) {
        m.into = a->into;
        m.into_len = INTO;
    }
    uint64_t after = w.asked[draw_below(s, REQUESTS)].ts;
    paramo_request_options o = {.size = sizeof o,
                                .flags = how & 64 ? PARAMO_COPY : 0,
                                .timeout_ms = 1 + draw_below(s, 20000),
                                .callback = on_done,
                                .callback_arg = a,
                                .after = &after,
                                .after_count = how & 128 && after,
                                .after_all = how & 16 ? after : 0};
    struct client_call call = {.kind = REQUEST_MESSAGE,
                               .messages = &m,
                               .messages_count = 1,
                               .options = &o,
                               .on_reply = on_reply,
                               .reply_arg = a};
    paramo_err err = client_issue(w.client, &call, &a->ts);
    CHECK(err == PARAMO_OK || err == PARAMO_E_AGAIN);
    if (err)
        on_done(a, 0, err);
}

static void step(struct source *s)
{
    uint8_t op = draw_u8(s);
    switch (op % 12) {
    case 0:
    case 1:
    case 2:
        issue(s);
        return;
    case 3:
        (void)!client_cancel(w.client, w.asked[draw_below(s, REQUESTS)].ts);
        return;
    case 4:
        fakeworld_pass(&w.world, draw_u8(s) * 40);
        return;
    }
    fakeworld_enter(&w.world);
    struct fakeconn *c = w.conn;
    switch (op % 12) {
    case 5:
    case 6:
        if (fakeconn_alive(c) && !c->coming)
            welcome(c, s);
        break;
    case 7:
        client_set_view(w.client, make_view(draw_below(s, 3) ? 0 : draw_u16(s)));
        break;
    case 8:
        if (fakeconn_alive(c))
            fakeconn_break(c, PARAMO_E_DISCONNECTED, "cut");
        break;
    case 9:
        if (fakeconn_alive(c) && c->coming)
            (void)fakeconn_finish(c);
        break;
    default:
        answer(s);
    }
    fakeworld_leave(&w.world);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    harness_quiet();
    memset(&w, 0, sizeof w);
    fakeworld_open(&w.world);
    w.world.van.sent = sent;
    w.world.van.connected = connected;
    struct client_config config = {.lane = w.world.lane,
                                   .van = &w.world.van.van,
                                   .view = make_view(0),
                                   .node = 9,
                                   .incarnation = 1,
                                   .token = "t",
                                   .scheduler = "scheduler:1",
                                   .frame_bytes = FRAME_LIMIT,
                                   .request_timeout_ms = 20000,
                                   .connect_timeout_ms = 1000};
    CHECK(client_create(&config, &w.client) == PARAMO_OK);
    for (unsigned n = 0; s.left && n < 300; n++)
        step(&s);
    fakeworld_pass(&w.world, 100);
    client_close(w.client);
    for (unsigned i = 0; i < REQUESTS; i++)
        CHECK(!w.asked[i].used || w.asked[i].done == 1);
    client_free(w.client);
    fakeworld_pass(&w.world, 1000);
    view_unref(w.view);
    fakeworld_close(&w.world);
    return 0;
}
