/* A member and a scheduler that says anything: welcomes and rejections, places, views, answers to calls, the
 * end, right or edited, in any order. Every call is done once, the node joins and ends at most once, and
 * views only get newer. */
#include <stdlib.h>
#include <string.h>

#include "cluster/member/member.h"
#include "cluster/member/member_calls.h"
#include "cluster/member/member_orders.h"
#include "cluster/session/control_message.h"
#include "fakevan.h"
#include "wire/barrier_call.h"
#include "wire/calls.h"
#include "wire/end.h"
#include "wire/hello.h"
#include "wire/register_call.h"
#include "wire/table_spec.h"

enum { CALLS = 12 };

struct called {
    struct member_call call;
    bool begun;
    unsigned done;
};

static struct world {
    struct fakeworld world;
    struct member *member;
    struct fakeconn *fake; /* the latest connection */
    struct called call[CALLS];
    uint32_t kind; /* of the latest call that was heard, and its number */
    uint64_t number, view;
    bool viewed;
    unsigned joined, ended;
    uint64_t ordered;
    bool is_in;
} w;

static void joined(void *arg, paramo_err status, const char *text)
{
    (void)arg;
    CHECK(!w.joined++ && text);
    w.is_in = status == PARAMO_OK;
    CHECK(status || (member_view(w.member) && member_view(w.member)->complete));
}

static void viewed(void *arg, struct view *view)
{
    (void)arg;
    CHECK((view->number > w.view || !w.viewed) && !w.ended);
    w.viewed = true;
    w.view = view->number;
}

static void ended(void *arg, paramo_err status, const char *text)
{
    (void)arg, (void)status;
    CHECK(w.is_in && !w.ended++ && text);
}

static void progress(void *arg, struct heartbeat *heartbeat)
{
    (void)arg;
    heartbeat->lanes = 1;
    heartbeat->lane[0] = (struct heartbeat_lane){.steps = 5};
}

/* Answered at once, or by a later one. */
static void ordered(void *arg, uint64_t order, uint32_t what, struct reader *fields)
{
    struct writer result = {0};
    (void)arg, (void)fields;
    CHECK(w.is_in && !w.ended && order);
    if (what & 1) {
        w.ordered = order;
        return;
    }
    write_u64(&result, order);
    member_order_done(w.member, what & 2 ? order : w.ordered,
                      what & 4 ? err_set(PARAMO_E_IO, "no") : PARAMO_OK, &result);
}

static void connected(void *arg, struct fakeconn *c)
{
    (void)arg;
    w.fake = c;
}

static void sent(void *arg, struct fakeconn *c, const struct van_frame *frame)
{
    struct wire_head head;
    struct reader body;
    (void)arg, (void)c;
    CHECK(control_message_open(frame->head, frame->seg, frame->nseg, &head, &body) == PARAMO_OK);
    CHECK(head.kind == WIRE_HELLO || head.kind == WIRE_CALL || head.kind == WIRE_HEARTBEAT);
    if (head.kind == WIRE_CALL) {
        w.kind = head.call.what;
        w.number = head.call.number;
    }
}

static void done(struct member_call *call, paramo_err status)
{
    struct called *c = container_of(call, struct called, call);
    CHECK(c->begun && !c->done++);
    if (status == PARAMO_OK && call->kind == CALL_KV_GET) {
        volatile uint8_t sum = 0;
        for (size_t i = 0; i < call->result.value_len; i++)
            sum = (uint8_t)(sum + ((const uint8_t *)call->result.value)[i]);
    }
}

static void begin_call(struct source *s)
{
    struct called *c = NULL;
    for (unsigned i = 0; i < CALLS && !c; i++)
        if (!w.call[i].begun || w.call[i].done)
            c = &w.call[i];
    if (!c)
        return;
    *c = (struct called){.call.done = done};
    uint64_t deadline = fakeworld_now(&w.world) + draw_u8(s) * 100 * ENV_MS;
    struct work_unit unit = {.index = 1};
    paramo_table_options options = {.size = sizeof options, .dim = 1};
    double one = 1;
    paramo_err err;
    c->begun = true; /* done may come only later */
    switch (draw_below(s, 18)) {
    case 0:
        err = member_barrier(w.member, &c->call, PARAMO_GROUP_WORKERS, 0, deadline);
        break;
    case 1:
        err = member_table_open(w.member, &c->call, "t", draw_u8(s) & 1 ? &options : NULL, deadline);
        break;
    case 2:
        err = member_pool_open(w.member, &c->call, "p", 1, 1, deadline);
        break;
    case 3:
        err = member_pool_next(w.member, &c->call, "p", 0, 0, 500, deadline);
        break;
    case 4:
        err = member_pool_done(w.member, &c->call, "p", &unit, deadline);
        break;
    case 5:
        err = member_pool_end(w.member, &c->call, "p", &unit, deadline);
        break;
    case 6:
        err = member_kv_put(w.member, &c->call, "k", "value", 5, deadline);
        break;
    case 7:
        err = member_kv_get(w.member, &c->call, "k", deadline);
        break;
    case 8:
        err = member_kv_add(w.member, &c->call, "k", &one, 1, deadline);
        break;
    case 9:
        err = member_kv_delete(w.member, &c->call, "k", deadline);
        break;
    case 10:
        err = member_shutdown(w.member, &c->call, "enough", deadline);
        break;
    case 11:
        err = member_drain(w.member, &c->call, deadline);
        break;
    case 12:
        err = draw_u8(s) & 1 ? member_ckpt_load(w.member, &c->call, "/ckpt", 0, deadline)
                             : member_ckpt_save(w.member, &c->call, "/ckpt", draw_u8(s) & 1, deadline);
        break;
    case 13:
        err = member_clock_join(w.member, &c->call, 0, deadline);
        break;
    case 14:
        err = member_clock_tell(w.member, &c->call, 1, 2, deadline);
        break;
    case 15:
        err = member_clock_wait(w.member, &c->call, 1, 2, deadline);
        break;
    case 16:
        err = member_clock_leave(w.member, &c->call, 1, deadline);
        break;
    default:
        err = member_leave(w.member, &c->call, deadline);
    }
    if (err) {
        CHECK(!c->done);
        c->begun = false;
    }
}

static void cancel_call(struct source *s)
{
    struct called *c = &w.call[draw_below(s, CALLS)];
    if (c->begun && !c->done) {
        member_cancel(w.member, &c->call);
        CHECK(c->done == 1);
    }
}

/* ---- the scheduler's side ---- */

static void send_message(struct wire_head *head, struct writer *body, struct source *s)
{
    if (draw_below(s, 5) == 4 && body->len) {
        for (unsigned n = 1 + draw_below(s, 3); n--;)
            body->data[draw_u16(s) % body->len] = draw_u8(s);
        if (draw_below(s, 4) == 3)
            body->len -= draw_below(s, 8) % (body->len + 1);
    }
    (void)fakeconn_control_message(w.fake, head, body->data, body->len);
    writer_fini(body);
}

static void say_welcome(struct source *s)
{
    struct wire_head head = {.plain = {.kind = WIRE_WELCOME}};
    struct welcome welcome = {.version = 1, .job = 7, .incarnation = 1 + draw_below(s, 2)};
    struct writer body = {0};
    if (draw_below(s, 8) == 7) {
        head.kind = WIRE_REJECT;
        reject_encode((paramo_err)draw_u8(s), "no", &body);
    } else {
        welcome_encode(&welcome, &body);
    }
    send_message(&head, &body, s);
}

static void say_place(struct source *s)
{
    struct wire_head head = {.reply = {.kind = WIRE_REPLY, .what = CALL_REGISTER}};
    uint8_t how = draw_u8(s);
    struct register_result place = {.node = how >> 6 == 3 ? 11 : 9, .recovered = how & 1, .returns = how & 2};
    struct writer body = {0};
    if (draw_below(s, 8) == 7) {
        head.reply.status = draw_u8(s);
        call_text_encode("no place", &body);
    } else {
        register_result_encode(&place, &body);
    }
    send_message(&head, &body, s);
}

static void say_view(struct source *s)
{
    struct view_node nodes[3] = {{.id = 1, .role = PARAMO_ROLE_SCHEDULER, .incarnation = 1, .alive = true},
                                 {.id = 8,
                                  .role = PARAMO_ROLE_SERVER,
                                  .incarnation = 2,
                                  .alive = true,
                                  .port = 1,
                                  .shards = 1,
                                  .weight = 1,
                                  .domain = "host"},
                                 {.id = 9, .role = PARAMO_ROLE_WORKER, .incarnation = 3, .alive = true}};
    struct view_shard shard = {.node = 8, .partitions_changed = 0};
    struct view_table tables[2] = {{.id = 1, .name = "t"}, {.id = 2, .name = "u"}};
    struct view view = {.job = draw_below(s, 8) == 7 ? 8 : 7,
                        .number = draw_below(s, 16),
                        .complete = draw_below(s, 8) != 7,
                        .num_servers = 1,
                        .num_workers = 1,
                        .nodes_count = 3,
                        .shards_count = 1,
                        .tables_count = draw_below(s, 3),
                        .nodes = nodes,
                        .shards = &shard,
                        .tables = tables};
    tables[0].options = tables[1].options = (paramo_table_options){
        .size = sizeof(paramo_table_options), .dim = 1, .placement = PARAMO_PLACE_MIXED};
    struct wire_head head = {.plain = {.kind = WIRE_VIEW}};
    struct writer body = {0};
    view_encode(&view, &body);
    send_message(&head, &body, s);
}

static void say_reply(struct source *s)
{
    struct wire_head head = {.reply = {.kind = WIRE_REPLY, .what = w.kind, .number = w.number}};
    struct writer body = {0};
    uint8_t how = draw_u8(s);
    if (how & 1)
        head.reply.number -= how >> 6;
    if (how & 2)
        head.reply.what = how >> 3;
    if ((how & 12) == 12) {
        head.reply.status = draw_u8(s);
        call_text_encode("it failed", &body);
    } else if (head.reply.what == CALL_BARRIER) {
        barrier_result_encode(&(struct barrier_result){.number = 1}, &body);
    } else if (head.reply.what == CALL_TABLE_OPEN) {
        table_open_result_encode(&(struct table_open_result){.table = 1, .view = draw_below(s, 16)}, &body);
    } else if (head.reply.what == CALL_POOL_NEXT) {
        pool_next_result_encode(&(struct pool_next_result){.state = (uint8_t)draw_below(s, 3)}, &body);
    } else if (head.reply.what == CALL_CLOCK_JOIN) {
        clock_joined_encode(&(struct clock_joined){.session = 1, .minimum = 2}, &body);
    } else if (head.reply.what == CALL_CLOCK_TELL || head.reply.what == CALL_CLOCK_WAIT) {
        clock_result_encode(&(struct clock_result){.minimum = 2, .node = 9}, &body);
    } else if (head.reply.what == CALL_KV_GET || head.reply.what == CALL_CKPT_SAVE ||
               head.reply.what == CALL_CKPT_LOAD) {
        write_u64(&body, draw_u64(s));
    }
    send_message(&head, &body, s);
}

static void say_order(struct source *s)
{
    struct wire_head head = {
        .order = {.kind = WIRE_ORDER, .what = draw_u8(s), .id = draw_u8(s), .view = draw_below(s, 16)}};
    struct writer body = {0};
    head.order.floor = head.order.id - draw_below(s, 70);
    write_u64(&body, 1);
    send_message(&head, &body, s);
}

static void say_end(struct source *s)
{
    struct wire_head head = {.plain = {.kind = WIRE_END}};
    struct writer body = {0};
    end_encode((paramo_err)draw_u8(s), "it is over", &body);
    send_message(&head, &body, s);
}

static void step(struct source *s)
{
    uint8_t op = draw_u8(s);
    bool alive = fakeconn_alive(w.fake);
    switch (op % 16) {
    case 0:
        if (alive)
            say_welcome(s);
        break;
    case 1:
        if (alive)
            say_place(s);
        break;
    case 2:
    case 3:
        if (alive)
            say_view(s);
        break;
    case 4:
    case 5:
    case 6:
        if (alive)
            say_reply(s);
        break;
    case 7:
        if (alive && draw_below(s, 4) == 3)
            say_end(s);
        break;
    case 8:
        if (alive)
            (void)fakeconn_raw(w.fake, s);
        break;
    case 9:
        if (alive)
            fakeconn_break(w.fake, PARAMO_E_DISCONNECTED, "cut");
        break;
    case 10:
        w.world.van.refuse = op & 128;
        if (alive)
            w.fake->full = op & 64;
        break;
    case 11:
        if (alive && draw_below(s, 2))
            say_order(s);
        else
            cancel_call(s);
        break;
    default:
        begin_call(s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    memset(&w, 0, sizeof w);
    fakeworld_open(&w.world);
    w.world.van.sent = sent;
    w.world.van.connected = connected;
    fakeworld_pass(&w.world, 1000); /* a machine that has been on for a second */
    struct member_config config = {.van = &w.world.van.van,
                                   .lane = w.world.lane,
                                   .scheduler = "scheduler:1",
                                   .token = "token",
                                   .role = PARAMO_ROLE_WORKER,
                                   .host = "host",
                                   .name = "",
                                   .domain = "",
                                   .rank = -1,
                                   .incarnation = 3,
                                   .connect_timeout_ms = 20000,
                                   .heartbeat_ms = 1000,
                                   .heartbeat_timeout_ms = 10000,
                                   .frame_bytes = 1 << 20,
                                   .on_joined = joined,
                                   .on_view = viewed,
                                   .on_ended = ended,
                                   .on_order = ordered,
                                   .progress = draw_u8(&s) & 1 ? progress : NULL};
    fakeworld_enter(&w.world);
    CHECK(member_create(&config, &w.member) == PARAMO_OK);
    fakeworld_leave(&w.world);
    fakeworld_pass(&w.world, 1);
    for (unsigned n = 0; s.left && n < 200; n++) {
        fakeworld_enter(&w.world);
        step(&s);
        fakeworld_leave(&w.world);
        if (draw_below(&s, 8) == 7)
            fakeworld_pass(&w.world, draw_u8(&s) * 20);
    }
    if (w.fake)
        w.fake->full = false;
    fakeworld_pass(&w.world, 30000); /* every deadline */
    for (unsigned i = 0; i < CALLS; i++)
        CHECK(!w.call[i].begun || w.call[i].done == 1);
    CHECK(w.joined == 1);
    fakeworld_enter(&w.world);
    member_destroy(w.member);
    fakeworld_leave(&w.world);
    fakeworld_close(&w.world);
    return 0;
}
