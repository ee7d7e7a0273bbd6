/* A node with user tasks, and callers that send anything: names, orders of any words, payloads, again and late, while
 * time passes and functions run. A call runs at most once. It runs only if those that it names have ended here
 * before, and none of those by that name only with errors. Each call ends. */
#include <stdlib.h>
#include <string.h>

#include "base/user_task.h"
#include "fakevan.h"
#include "node/member_slot.h"
#include "node/serve.h"
#include "node/tasks.h"
#include "paramo/app.h"
#include "server/shard/shard.h"

enum { CONNS = 3, FRAME_LIMIT = 1 << 20, SELF = 8, INCARNATION = 100, CALLS = 256, SESSIONS = 3, NAMES = 70 };

/* A message that has been sent; calls that are no good have no names. */
struct call {
    uint64_t session, number;
    unsigned names;
    uint64_t words[3 * NAMES];
    bool ordered, ran, ended, failed;
};

struct connection {
    struct fakeconn *fake;
    unsigned rank;
    uint64_t number;
};

static struct world {
    struct fakeworld world;
    paramo_node node;
    struct member_slot slot;
    struct view *view;
    struct connection conn[CONNS];
    struct call call[CALLS];
    uint32_t calls;
    uint64_t next[SESSIONS]; /* the last number of each */
    unsigned answers;
} w;

/* ---- the functions ---- */

static bool is_here(uint32_t to)
{
    return to == SELF || (to <= PARAMO_GROUP_ALL && to & PARAMO_ROLE_SERVER);
}

/* Several calls may claim one number: one of them has ended, and one of those that have has not failed. */
static void order_check(const struct call *call)
{
    for (unsigned i = 0; i < call->names; i++) {
        bool ended = false, well = false;
        if (!is_here((uint32_t)call->words[3 * i + 2]))
            continue;
        for (uint32_t k = 0; k < w.calls; k++) {
            const struct call *first = &w.call[k];
            bool named = first->ordered && first->session == call->words[3 * i] &&
                         first->number == call->words[3 * i + 1];
            ended |= named && first->ended;
            well |= named && first->ended && !first->failed;
        }
        CHECK(ended && well);
    }
}

static paramo_err run(void *user, paramo_task *task, const paramo_task_info *info)
{
    uint32_t index;
    CHECK(!user && info->node == SELF && tasks_node(task) == &w.node);
    CHECK(info->payload_bytes == sizeof index);
    memcpy(&index, info->payload, sizeof index);
    CHECK(index < w.calls);
    struct call *call = &w.call[index];
    CHECK(!call->ran);
    order_check(call);
    call->ran = call->ended = true;
    call->failed = index % 5 == 4;
    void *memory;
    CHECK(paramo_task_alloc(task, index % 100, &memory) == PARAMO_OK);
    return call->failed ? PARAMO_E_HANDLER : paramo_task_answer(task, &index, index % sizeof index);
}

/* ---- the callers ---- */

static void sent(void *arg, struct fakeconn *c, const struct van_frame *frame)
{
    struct wire_head h;
    (void)arg;
    (void)c;
    CHECK(wire_head_decode(frame->head, &h) == PARAMO_OK);
    CHECK(van_frame_check(frame->seg, frame->nseg, FRAME_LIMIT) == PARAMO_OK);
    w.answers += h.kind == WIRE_ANSWER;
}

static void reconnect(struct connection *c, struct source *s)
{
    if (fakeconn_alive(c->fake))
        fakeconn_break(c->fake, PARAMO_E_DISCONNECTED, "cut");
    uint8_t how = draw_u8(s);
    c->rank = how & 1;
    if (!c->number || how % 16 == 15)
        c->number = 1;
    struct hello hello = {.version_min = HELLO_VERSION_MIN,
                          .version_max = HELLO_VERSION_MAX,
                          .purpose = HELLO_DATA,
                          .node = PARAMO_ID_WORKER(c->rank),
                          .incarnation = INCARNATION + PARAMO_ID_WORKER(c->rank),
                          .customer = (uint32_t)(c - w.conn),
                          .shard = HELLO_APP_ENDPOINT};
    c->fake = fakevan_conn_new(&w.world.van, w.world.lane);
    shard_accept(w.slot.app_endpoint.shard, &c->fake->conn, &hello);
}

/* Words of an order that is well formed. */
static size_t words_draw(struct source *s, struct call *call, uint64_t *words)
{
    unsigned n = 0, most = draw_u8(s), wait = draw_u8(s);
    most = most < 240 ? most % 4 : draw_u8(s) % NAMES;
    words[n++] = wait % 8 ? 1 + wait * 20U : draw_u64(s);
    unsigned own = draw_u8(s) % SESSIONS;
    words[n++] = call->session = own + 1;
    words[n++] = call->number = draw_u8(s) % 8 ? ++w.next[own] : draw_number(s);
    for (unsigned i = 0; i < most; i++) {
        uint64_t *name = &call->words[3 * call->names++];
        uint8_t how = draw_u8(s);
        unsigned of = how % SESSIONS;
        name[0] = how < 250 ? of + 1 : draw_u64(s);
        name[1] = how % 16 ? w.next[of] - (of == own) - how / 8 % 4 : draw_number(s);
        name[2] = how & 128 ? SELF : draw_u8(s) % 12;
        memcpy(&words[n], name, 3 * sizeof *name);
        n += 3;
    }
    return n * sizeof *words;
}

/* Any bytes may be a good order. */
static void words_note(struct call *call, const uint8_t *raw, size_t bytes)
{
    uint64_t words[3];
    if (bytes < sizeof words || bytes % sizeof words)
        return;
    memcpy(words, raw, sizeof words);
    call->ordered = true;
    call->session = words[1];
    call->number = words[2];
    call->names = (unsigned)(bytes / sizeof words) - 1;
    memcpy(call->words, raw + sizeof words, bytes - sizeof words);
}

static void message(struct connection *c, struct source *s)
{
    static char *const names[] = {"fuzz.task", "fuzz.none", ""};
    uint8_t bytes[VAN_HEAD], how = draw_u8(s);
    uint64_t words[3 + 3 * NAMES];
    struct van_seg seg[VAN_SEGS] = {{0}};
    uint8_t *raw = NULL;
    if (w.calls == CALLS)
        return;
    uint32_t index = w.calls++;
    struct call *call = &w.call[index];
    struct wire_head h = {.kind = WIRE_MESSAGE,
                          .app = PARAMO_TASKS_APP,
                          .number = how % 32 == 1 && c->number > 1 ? c->number - 1 : c->number++,
                          .view = 1};
    if (how & 2) {
        call->ordered = true;
        h.to.flags = TASKS_IN_ORDER;
        seg[WIRE_SEG_KEYS] = (struct van_seg){.data = words, .len = words_draw(s, call, words)};
    } else if (how % 32 == 4) {
        size_t got;
        h.to.flags = draw_below(s, 3);
        raw = draw_bytes(s, draw_below(s, 60), &got);
        if (h.to.flags == TASKS_IN_ORDER)
            words_note(call, raw, got);
        seg[WIRE_SEG_KEYS] = (struct van_seg){.data = raw, .len = got};
    }
    if (how % 64 == 8)
        seg[WIRE_SEG_LENS] = (struct van_seg){.data = &index, .len = sizeof index};
    char *name = names[how & 16 && how & 4 ? draw_u8(s) % 3 : 0];
    seg[WIRE_SEG_BODY] = (struct van_seg){.data = name, .len = strlen(name)};
    seg[WIRE_SEG_VALS] = (struct van_seg){.data = &index, .len = sizeof index};
    h.floor = h.number > 8 ? h.number - 8 : 1;
    wire_head_encode(&h, bytes);
    bool alive = fakeconn_frame(c->fake, bytes, seg, VAN_SEGS);
    if (alive && how & 32) /* the network's copy */
        (void)fakeconn_frame(c->fake, bytes, seg, VAN_SEGS);
    free(raw);
}

static void step(struct source *s)
{
    uint8_t op = draw_u8(s);
    struct connection *c = &w.conn[op / 16 % CONNS];
    if (!fakeconn_alive(c->fake))
        reconnect(c, s);
    else if (op % 64 == 15)
        reconnect(c, s);
    else if (op % 16 == 13)
        fakevan_round(&w.world.van);
    else
        message(c, s);
}

/* ---- the node ---- */

static void view_make(void)
{
    struct view *v = harness_alloc(sizeof *v);
    memset(v, 0, sizeof *v);
    atomic_init(&v->refs, 1);
    v->job = 7;
    v->number = 1;
    v->nodes_count = 3;
    v->nodes = calloc(v->nodes_count, sizeof *v->nodes);
    CHECK(v->nodes);
    for (unsigned i = 0; i < v->nodes_count; i++) {
        uint32_t id = i ? PARAMO_ID_WORKER(i - 1) : SELF;
        v->nodes[i] = (struct view_node){.id = id,
                                         .role = i ? PARAMO_ROLE_WORKER : PARAMO_ROLE_SERVER,
                                         .incarnation = INCARNATION + id,
                                         .alive = true};
    }
    w.view = v;
}

static void node_open(void)
{
    static const paramo_task_function function = {.size = sizeof function, .name = "fuzz.task", .run = run};
    paramo_node *node = &w.node;
    if (!user_tasks_any())
        CHECK(paramo_task_register(&function) == PARAMO_OK);
    node->env = sim_env(w.world.sim);
    node->apps = w.world.lane;
    node->config.max_message_bytes = FRAME_LIMIT;
    CHECK(lane_create(node->env, "control", 0, &node->control) == PARAMO_OK);
    node->own = node->member_slots = &w.slot;
    w.slot.node = node;
    serve_init(node);
    CHECK(tasks_create(node) == PARAMO_OK);
    CHECK(node_shard_make(node, &w.slot.app_endpoint, node->apps, INCARNATION + SELF, HELLO_APP_ENDPOINT) ==
          PARAMO_OK);
    view_make();
    fakeworld_enter(&w.world);
    shard_set_view(w.slot.app_endpoint.shard, w.view);
    fakeworld_leave(&w.world);
}

static void node_close(void)
{
    struct node_shard *endpoint = &w.slot.app_endpoint;
    tasks_end(&w.node); /* asserts that each call has ended */
    fakeworld_enter(&w.world);
    dispatch_close(&endpoint->dispatch);
    shard_close(endpoint->shard);
    fakeworld_leave(&w.world);
    view_feed_fini(&endpoint->feed);
    tasks_free(&w.node);
    fakeworld_pass(&w.world, 1000);
    lane_destroy(w.node.control);
    view_unref(w.view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    harness_quiet();
    memset(&w, 0, sizeof w);
    fakeworld_open(&w.world);
    w.world.van.sent = sent;
    node_open();
    unsigned early = draw_u8(&s) % 8; /* steps before the node has joined */
    for (unsigned n = 0; s.left && n < CALLS; n++) {
        if (n == early)
            CHECK(tasks_run(&w.node) == PARAMO_OK);
        fakeworld_enter(&w.world);
        step(&s);
        fakeworld_leave(&w.world);
        if (draw_u8(&s) % 4 == 3)
            fakeworld_pass(&w.world, draw_u8(&s));
    }
    node_close();
    fakeworld_close(&w.world);
    return 0;
}
