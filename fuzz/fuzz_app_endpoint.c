/* A host of apps and askers that send anything: messages with any segments, again, late, below the floor,
 * from dead nodes, while views change and handlers answer now, later, without a copy, with errors, or never.
 * A number is handed to the handler once per sender, and what it reads is what was sent. */
#include <stdlib.h>
#include <string.h>

#include "cluster/session/control_message.h"
#include "fakevan.h"
#include "server/shard/shard.h"
#include "server/shard/shard_impl.h"

enum { CONNS = 3, HELD = 24, FRAME_LIMIT = 1 << 20, SELF = 9, INCARNATION = 100, WORKERS = 3 };

struct connection {
    struct fakeconn *fake;
    unsigned rank, app;
    uint64_t number;
};

static struct world {
    struct fakeworld world;
    struct shard *host;
    struct view *view;
    uint64_t number;
    struct connection conn[CONNS];
    struct shard_request *held[HELD];
    unsigned held_count;
    unsigned handed, answers;
} w;

static void set_view(unsigned dead)
{
    struct view *v = calloc(1, sizeof *v);
    CHECK(v);
    atomic_init(&v->refs, 1);
    v->job = 7;
    v->number = ++w.number;
    v->nodes_count = WORKERS + 1;
    v->nodes = calloc(v->nodes_count, sizeof *v->nodes);
    CHECK(v->nodes);
    for (unsigned i = 0; i < v->nodes_count; i++) {
        uint32_t id = i ? PARAMO_ID_WORKER(i - 1) : PARAMO_ID_SERVER(0);
        v->nodes[i] = (struct view_node){.id = id,
                                         .role = i ? PARAMO_ROLE_WORKER : PARAMO_ROLE_SERVER,
                                         .incarnation = INCARNATION + id,
                                         .alive = !(dead >> i & 1)};
    }
    view_unref(w.view);
    w.view = v;
    shard_set_view(w.host, v);
}

/* ---- the app ---- */

static void answer_now(struct shard_request *q, const struct shard_request_info *info, unsigned how)
{
    struct van_seg seg[VAN_SEGS] = {{0}};
    struct paramo_array *array[VAN_SEGS] = {0};
    for (unsigned i = 0; i < VAN_SEGS; i++) {
        if (how >> i & 1)
            CHECK(shard_request_keep(q, i, &array[i]) == PARAMO_OK);
        else if (how >> (i + 4) & 1)
            seg[i] = info->seg[i];
    }
    CHECK(shard_answer_segs(q, seg, array) == PARAMO_OK);
    for (unsigned i = 0; i < VAN_SEGS; i++)
        array_unref(array[i]);
}

static void handle(void *arg, struct shard_request *q, const struct shard_request_info *info)
{
    (void)arg;
    uint64_t sum = 0;
    CHECK(!info->table && info->to == PARAMO_ID_SERVER(0));
    w.handed++;
    for (unsigned i = 0; i < VAN_SEGS; i++)
        for (uint64_t k = 0; k < info->seg[i].len; k++)
            sum += ((const uint8_t *)info->seg[i].data)[k];
    CHECK((info->flags & 0xffff) == (sum & 0xffff)); /* the asker says so */
    unsigned how = (uint32_t)info->cmd & 255;
    if (how == 255 || w.held_count == HELD)
        CHECK(shard_answer_error(q, PARAMO_E_HANDLER, how & 256 ? "no" : NULL) == PARAMO_OK);
    else if (how % 3 == 0)
        w.held[w.held_count++] = q;
    else
        answer_now(q, info, how);
}

static void answer_held(struct source *s)
{
    unsigned which = draw_below(s, w.held_count);
    struct shard_request *q = w.held[which];
    w.held[which] = w.held[--w.held_count];
    uint32_t lens[8] = {1, 2};
    uint8_t how = draw_u8(s), body[3] = {7, 8, 9};
    if (how & 1)
        CHECK(shard_answer_error(q, PARAMO_E_HANDLER, "later, no") == PARAMO_OK);
    else if (shard_answer(q, body, sizeof body, how & 2 ? NULL : lens)) /* as many lens as keys came */
        CHECK(shard_answer(q, NULL, 0, NULL) == PARAMO_OK);
}

/* ---- the askers ---- */

static void sent(void *arg, struct fakeconn *c, const struct van_frame *frame)
{
    struct wire_head h;
    (void)arg;
    (void)c;
    CHECK(wire_head_decode(frame->head, &h) == PARAMO_OK);
    CHECK(van_frame_check(frame->seg, frame->nseg, FRAME_LIMIT) == PARAMO_OK);
    CHECK(h.kind == WIRE_WELCOME || h.kind == WIRE_REJECT || h.kind == WIRE_ANSWER ||
          h.kind == WIRE_PROBE_ANSWER);
    w.answers += h.kind == WIRE_ANSWER;
}

static void reconnect(struct connection *c, struct source *s)
{
    if (fakeconn_alive(c->fake))
        fakeconn_break(c->fake, PARAMO_E_DISCONNECTED, "cut");
    uint8_t how = draw_u8(s);
    c->rank = how & 1;
    c->app = how >> 1 & 1;
    struct hello hello = {.version_min = HELLO_VERSION_MIN,
                          .version_max = HELLO_VERSION_MAX,
                          .purpose = HELLO_DATA,
                          .node = PARAMO_ID_WORKER(c->rank),
                          .incarnation = INCARNATION + PARAMO_ID_WORKER(c->rank) + (how == 255),
                          .app = c->app,
                          .shard = how & 64 ? draw_u16(s) : HELLO_APP_ENDPOINT};
    c->fake = fakevan_conn_new(&w.world.van, w.world.lane);
    shard_accept(w.host, &c->fake->conn, &hello);
    if (!c->number || how & 4)
        c->number = 1;
}

static void message(struct connection *c, struct source *s)
{
    uint8_t bytes[VAN_HEAD], how = draw_u8(s);
    struct wire_head h = {.kind = how & 1 ? WIRE_PROBE : WIRE_MESSAGE,
                          .table = draw_below(s, 3),
                          .number = how & 2 && c->number > 1 ? c->number - 1 : c->number++,
                          .view = w.number + (how & 4 ? draw_below(s, 3) - 1 : 0),
                          .cmd = draw_u8(s),
                          .to = {.customer = draw_u8(s)},
                          .attempt = how & 8 ? draw_below(s, 2) : 0};
    h.floor = h.number > 3 && !(how & 16) ? h.number - draw_below(s, 3) : 1;
    if (h.number - h.floor >= DATA_WINDOW)
        h.floor = h.number;
    if (how & 32)
        h.flags = draw_u8(s) & 15, h.count = draw_below(s, 3);
    struct van_seg seg[VAN_SEGS] = {{0}};
    unsigned nseg = h.kind == WIRE_MESSAGE ? draw_below(s, VAN_SEGS + 1) : 0;
    uint64_t sum = 0;
    for (unsigned i = 0; i < nseg; i++) {
        size_t got;
        seg[i].data = draw_bytes(s, draw_below(s, 40), &got);
        seg[i].len = got;
        for (size_t k = 0; k < got; k++)
            sum += ((const uint8_t *)seg[i].data)[k];
    }
    if (h.kind == WIRE_PROBE)
        h.probe.kind = WIRE_MESSAGE;
    else
        h.to.flags = (uint32_t)sum & 0xffff;
    wire_head_encode(&h, bytes);
    unsigned before = w.handed;
    bool alive = fakeconn_frame(c->fake, bytes, seg, nseg);
    unsigned once = w.handed;
    CHECK(once - before <= 1);
    if (alive && h.kind == WIRE_MESSAGE && draw_below(s, 2)) { /* the network's copy */
        (void)fakeconn_frame(c->fake, bytes, seg, nseg);
        CHECK(w.handed == once);
    }
    for (unsigned i = 0; i < nseg; i++)
        free(seg[i].data);
}

static void step(struct source *s)
{
    uint8_t op = draw_u8(s);
    struct connection *c = &w.conn[op / 16 % CONNS];
    switch (op % 16) {
    default:
        if (!fakeconn_alive(c->fake))
            reconnect(c, s);
        if (fakeconn_alive(c->fake))
            message(c, s);
        break;
    case 10:
        if (c->fake)
            c->fake->full = op & 128;
        break;
    case 11:
        fakevan_round(&w.world.van);
        break;
    case 12:
        set_view(draw_u8(s) & 0x0e & draw_u8(s));
        break;
    case 13:
        if (w.held_count)
            answer_held(s);
        break;
    case 14:
        if (fakeconn_alive(c->fake))
            (void)fakeconn_raw(c->fake, s);
        break;
    case 15:
        reconnect(c, s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    harness_quiet();
    memset(&w, 0, sizeof w);
    fakeworld_open(&w.world);
    w.world.van.sent = sent;
    struct shard_config config = {.lane = w.world.lane,
                                  .incarnation = INCARNATION + PARAMO_ID_SERVER(0),
                                  .index = HELLO_APP_ENDPOINT,
                                  .frame_bytes = FRAME_LIMIT,
                                  .app_endpoint = true,
                                  .handler = handle};
    CHECK(shard_create(&config, &w.host) == PARAMO_OK);
    fakeworld_enter(&w.world);
    set_view(0);
    fakeworld_leave(&w.world);
    for (unsigned n = 0; s.left && n < 200; n++) {
        fakeworld_enter(&w.world);
        step(&s);
        fakeworld_leave(&w.world);
        if (draw_below(&s, 8) == 7)
            fakeworld_pass(&w.world, draw_u8(&s) * 300);
    }
    struct shard_counters counters;
    fakeworld_enter(&w.world);
    shard_get_counters(w.host, &counters);
    CHECK(counters.tables_bytes == 0 && counters.senders <= SHARD_SENDERS_MAX);
    shard_close(w.host);
    fakeworld_leave(&w.world);
    struct source none = {NULL, 0};
    while (w.held_count) /* late, without effect */
        answer_held(&none);
    fakeworld_pass(&w.world, 1000);
    view_unref(w.view);
    fakeworld_close(&w.world);
    return 0;
}
