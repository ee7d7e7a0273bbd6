/* A scheduler and members that say anything: calls of every kind, right, edited or mere bytes, from nodes
 * that come, fall silent, leave and come back. Each frame it sends must be one that a member can read; views
 * only get newer; and afterwards it still answers a node that registers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/meta/store_dir.h"
#include "cluster/scheduler/scheduler.h"
#include "cluster/session/control_message.h"
#include "cluster/view/view.h"
#include "fakevan.h"
#include "sim/env/simfs.h"
#include "wire/barrier_call.h"
#include "wire/calls.h"
#include "wire/capability.h"
#include "wire/ckpt_order.h"
#include "wire/clock_calls.h"
#include "wire/end.h"
#include "wire/heartbeat.h"
#include "wire/hello.h"
#include "wire/kv_calls.h"
#include "wire/order.h"
#include "wire/pool_calls.h"
#include "wire/register_call.h"
#include "wire/status.h"
#include "wire/table_spec.h"

enum { NODES = 6 };

struct node {
    struct fakeconn *fake;
    uint64_t incarnation, number, floor, view;
};

static struct world {
    struct fakeworld world;
    struct scheduler *scheduler;
    struct node node[NODES];
    struct fakeconn *watched;
    unsigned registered; /* answers to REGISTER that `watched` got */
    bool over;
    bool views; /* nodes say that they have seen any view */
    struct store_state found;
    bool started;
} w;

static void over(void *arg, paramo_err status, const char *text)
{
    (void)arg, (void)status;
    CHECK(!w.over && text);
    w.over = true;
}

static void check_reply(const struct wire_reply *head, struct reader *body)
{
    struct register_result place;
    struct barrier_result barrier;
    struct table_open_result table;
    struct pool_next_result unit;
    struct ckpt_result ckpt;
    struct clock_joined joined;
    struct clock_result clock;
    struct view *view;
    char text[CALL_TEXT_MAX];
    if (head->status) {
        CHECK(call_text_decode(body, text) == PARAMO_OK);
        return;
    }
    switch (head->what) {
    case CALL_REGISTER:
        CHECK(register_result_decode(body, &place) == PARAMO_OK && place.node);
        break;
    case CALL_BARRIER:
        CHECK(barrier_result_decode(body, &barrier) == PARAMO_OK && barrier.number);
        break;
    case CALL_TABLE_OPEN:
        CHECK(table_open_result_decode(body, &table) == PARAMO_OK && table.table);
        break;
    case CALL_POOL_NEXT:
        CHECK(pool_next_result_decode(body, &unit) == PARAMO_OK);
        break;
    case CALL_CKPT_SAVE:
    case CALL_CKPT_LOAD:
        CHECK(ckpt_result_decode(body, &ckpt) == PARAMO_OK && ckpt.number);
        break;
    case CALL_CLOCK_JOIN:
        CHECK(clock_joined_decode(body, &joined) == PARAMO_OK);
        break;
    case CALL_CLOCK_TELL:
    case CALL_CLOCK_WAIT:
        CHECK(clock_result_decode(body, &clock) == PARAMO_OK);
        break;
    case CALL_KV_GET:
        CHECK(body->left <= KV_VALUE_MAX);
        break;
    case CALL_ADMIN_VIEW:
        CHECK(view_decode(body, &view) == PARAMO_OK && view->complete);
        view_unref(view);
        break;
    case CALL_STATUS: {
        struct status m;
        CHECK(status_decode(body, &m) == PARAMO_OK);
        struct reader rest = reader_over(m.view, m.view_len);
        CHECK(view_decode(&rest, &view) == PARAMO_OK && view->complete);
        view_unref(view);
        status_fini(&m);
        break;
    }
    default:
        CHECK(call_body_end(body, "reply") == PARAMO_OK);
    }
}

static void sent(void *arg, struct fakeconn *c, const struct van_frame *frame)
{
    struct wire_head head;
    struct reader body;
    struct view *view;
    struct welcome welcome;
    paramo_err code;
    char text[CALL_TEXT_MAX];
    struct node *node = c->arg;
    (void)arg;
    CHECK(control_message_open(frame->head, frame->seg, frame->nseg, &head, &body) == PARAMO_OK);
    switch (head.kind) {
    case WIRE_WELCOME:
        CHECK(welcome_decode(&body, &welcome) == PARAMO_OK);
        break;
    case WIRE_REJECT:
        CHECK(reject_decode(&body, &code) == PARAMO_OK);
        break;
    case WIRE_REPLY:
        check_reply(&head.reply, &body);
        if (c == w.watched && head.reply.what == CALL_REGISTER)
            w.registered++;
        break;
    case WIRE_VIEW:
        CHECK(view_decode(&body, &view) == PARAMO_OK);
        CHECK(view->complete && (!node || view->number >= node->view));
        if (node)
            node->view = view->number;
        view_unref(view);
        break;
    case WIRE_END:
        CHECK(end_decode(&body, &code, text) == PARAMO_OK);
        break;
    default:
        CHECK(head.kind == WIRE_HEARTBEAT || head.kind == WIRE_ORDER);
    }
}

static void edit(struct writer *body, struct source *s)
{
    if (draw_below(s, 4) != 3 || !body->len)
        return; /* at the input's end, too: what begin() sends is right */
    for (unsigned n = 1 + draw_below(s, 3); n--;)
        body->data[draw_u16(s) % body->len] = draw_u8(s);
    if (draw_below(s, 4) == 3)
        body->len -= draw_below(s, 8) % (body->len + 1);
}

static void knock(struct node *node, struct source *s)
{
    if (fakeconn_alive(node->fake))
        fakeconn_break(node->fake, PARAMO_E_DISCONNECTED, "cut");
    node->fake = fakevan_unauth(&w.world.van);
    if (!node->fake)
        return;
    if (draw_below(s, 4) == 3 || !node->incarnation) {
        *node =
            (struct node){.fake = node->fake, .incarnation = 1 + draw_below(s, 200), .number = 1, .floor = 1};
    }
    node->fake->arg = node;
    node->view = 0;
    struct hello hello = {.version_min = HELLO_VERSION_MIN,
                          .version_max = HELLO_VERSION_MAX,
                          .purpose = HELLO_CONTROL,
                          .capabilities = node->incarnation & 1 ? CAPABILITY_CLOCK_WORKERS : 0,
                          .incarnation = node->incarnation,
                          .token = "token"};
    struct wire_head head = {.plain = {.kind = WIRE_HELLO}};
    struct writer body = {0};
    hello_encode(&hello, &body);
    (void)fakeconn_control_message(node->fake, &head, body.data, body.len);
    writer_fini(&body);
}

static void enlist(struct node *node, struct source *s, uint32_t role)
{
    struct register_call call = {
        .role = role, .rank = (int32_t)draw_below(s, 4) - 1, .timeout_ms = draw_u16(s)};
    struct wire_head head = {.call = {.kind = WIRE_CALL, .what = CALL_REGISTER, .floor = node->floor}};
    struct writer body = {0};
    if (role == PARAMO_ROLE_SERVER) {
        call.port = (uint16_t)(1 + draw_below(s, 3));
        call.shards = (uint16_t)(1 + draw_below(s, 3));
        call.weight = 1 + draw_below(s, 3);
        draw_text(s, call.domain, 3);
    }
    if (w.views)
        head.call.view = draw_number(s);
    if (draw_below(s, 4) == 3)
        call.node = draw_u8(s);
    draw_text(s, call.host, 8);
    draw_text(s, call.name, 4);
    register_call_encode(&call, &body);
    edit(&body, s);
    (void)fakeconn_control_message(node->fake, &head, body.data, body.len);
    writer_fini(&body);
}

static void name(struct source *s, char *text)
{
    text[0] = (char)('a' + draw_below(s, 3));
    text[1] = '\0';
}

static void work_unit(struct source *s, struct work_unit *unit)
{
    *unit = (struct work_unit){.stream = draw_below(s, 3),
                               .round = draw_below(s, 2),
                               .index = draw_below(s, 4),
                               .token = draw_number(s)};
}

static void table(struct source *s, struct writer *body)
{
    uint8_t create = draw_u8(s) % 4;
    struct table_open open = {.create = create};
    name(s, open.name);
    open.options = (paramo_table_options){.size = sizeof open.options,
                                          .kind = (paramo_table_kind)draw_below(s, 4),
                                          .dtype = (paramo_dtype)draw_below(s, 2),
                                          .dim = draw_below(s, 3),
                                          .rows = draw_below(s, 3),
                                          .optimizer = (paramo_optimizer)draw_below(s, 3),
                                          .placement = (paramo_placement)draw_below(s, 5)};
    if (create == 3) { /* what few tables have */
        uint8_t how = draw_u8(s);
        open.options.replicas = how & 1 ? draw_below(s, 5) : PARAMO_REPLICAS_OF_JOB;
        open.options.aggregate = (paramo_aggregate)(how >> 1 & 3);
        open.options.init = (paramo_init_kind)(how >> 3 & 3);
        open.options.rows = how & 32 ? draw_number(s) : open.options.rows;
        open.options.dim = how & 64 ? (uint32_t)draw_number(s) : open.options.dim;
    }
    table_open_encode(&open, body);
}

/* Few sessions, so that some are of the node that calls. */
static void clock_call(struct source *s, uint32_t kind, struct writer *body)
{
    uint64_t session = clock_session(9 + 2 * draw_below(s, 2), draw_below(s, 8));
    if (kind == CALL_CLOCK_JOIN) {
        clock_join_encode(&(struct clock_join){.customer = draw_below(s, 2)}, body);
    } else if (kind == CALL_CLOCK_TELL) {
        clock_tell_encode(&(struct clock_tell){.session = session, .clock = draw_below(s, 6)}, body);
    } else if (kind == CALL_CLOCK_WAIT) {
        struct clock_wait m = {.session = session, .clock = draw_below(s, 6), .timeout_ms = draw_u16(s)};
        clock_wait_encode(&m, body);
    } else {
        clock_leave_encode(&(struct clock_leave){.session = session}, body);
    }
}

static void call(struct node *node, struct source *s)
{
    uint8_t value[64] = {0};
    struct wire_head head = {.call = {.kind = WIRE_CALL,
                                      .what = 2 + draw_below(s, CALL_CLOCK_LEAVE - 1),
                                      .number = node->number,
                                      .floor = node->floor}};
    struct writer body = {0};
    uint8_t how = draw_u8(s);
    if (how & 1)
        head.call.number -= how / 64u; /* again */
    else
        node->number++;
    if ((how & 6) == 6)
        head.call.floor = node->floor = node->number - 1 > how / 16u ? node->number - 1 - how / 16u : 1;
    if ((how & 0x18) == 0x18)
        head.call.number = draw_number(s), head.call.floor = draw_number(s);
    else if ((how & 0xe0) == 0xe0) /* as nodes do: the place is below a sequence */
        head.call.number = node->number += CALL_PLACES;
    switch (head.call.what) {
    case CALL_BARRIER: {
        struct barrier_call m = {
            .group = 1 + draw_below(s, 7), .customer = draw_below(s, 2), .timeout_ms = draw_u16(s)};
        barrier_call_encode(&m, &body);
        break;
    }
    case CALL_CLOCK_JOIN:
    case CALL_CLOCK_TELL:
    case CALL_CLOCK_WAIT:
    case CALL_CLOCK_LEAVE:
        clock_call(s, head.call.what, &body);
        break;
    case CALL_TABLE_OPEN:
        table(s, &body);
        break;
    case CALL_SHUTDOWN:
        if (draw_below(s, 8) == 7)
            call_text_encode("enough", &body);
        break;
    case CALL_POOL_OPEN: {
        struct pool_open m = {.streams = 1 + draw_below(s, 3), .rounds = 1 + draw_below(s, 3)};
        name(s, m.name);
        pool_open_encode(&m, &body);
        break;
    }
    case CALL_POOL_NEXT: {
        struct pool_next m = {
            .customer = draw_below(s, 3), .round = draw_below(s, 3), .timeout_ms = draw_u16(s)};
        name(s, m.name);
        pool_next_encode(&m, &body);
        break;
    }
    case CALL_POOL_DONE:
    case CALL_POOL_END: {
        struct pool_report m = {.name = ""};
        name(s, m.name);
        work_unit(s, &m.unit);
        pool_report_encode(&m, &body);
        break;
    }
    case CALL_KV_PUT:
    case CALL_KV_ADD: {
        struct kv_put m = {.value = value, .len = draw_below(s, 8) * 8};
        name(s, m.key);
        kv_put_encode(&m, &body);
        break;
    }
    case CALL_KV_GET: {
        struct kv_get m = {.timeout_ms = draw_u16(s)};
        name(s, m.key);
        kv_get_encode(&m, &body);
        break;
    }
    case CALL_KV_DELETE: {
        struct kv_delete m;
        name(s, m.key);
        kv_delete_encode(&m, &body);
        break;
    }
    case CALL_CKPT_SAVE:
    case CALL_CKPT_LOAD: {
        static const char *const dirs[] = {"/var/ckpt", "/var/../etc", "/var/ckpt/deeper", "/var"};
        struct ckpt_order m = {.number = draw_below(s, 3), .timeout_ms = draw_u16(s)};
        (void)snprintf(m.dir, sizeof m.dir, "%s", dirs[m.timeout_ms >> 8 & 32 ? m.timeout_ms >> 6 & 3 : 0]);
        m.changes = m.timeout_ms & 1;
        if ((how & 0xc0) == 0x80) { /* fields that the scheduler chooses */
            m.id = draw_number(s);
            m.base = draw_number(s);
            m.base_id = draw_number(s);
            m.number += m.base;
        }
        ckpt_order_encode(&m, &body);
        break;
    }
    case CALL_ORDER_DONE: {
        struct order_done m = {.order = (UINT64_C(1) << 32) + draw_below(s, 16),
                               .status = draw_below(s, 4) == 3 ? PARAMO_E_MEMORY : PARAMO_OK};
        if (m.status && how & 32)
            m.status = (paramo_err)(1 + draw_below(s, 40));
        struct ckpt_written *written = calloc(1, sizeof *written);
        struct writer result = {0};
        CHECK(written);
        written->count = draw_below(s, 4);
        if (written->count == 3) { /* not of a checkpoint: a report of one shard */
            struct shard_report report = {.rows = 1};
            spread_add(&report.pauses, draw_u8(s));
            shard_report_encode(&report, &result);
        } else if (!m.status) {
            for (unsigned i = 0; i < written->count; i++) {
                static const char *const names[] = {"blocks-0", "blocks-1", "blocks-2", "blocks-9",
                                                    "manifest"};
                (void)snprintf(written->file[i].name, sizeof written->file[i].name, "%s",
                               names[(m.order + i) % 5]);
            }
            ckpt_written_encode(written, &result);
        }
        m.rest = result.data;
        m.rest_len = result.len;
        free(written);
        order_done_encode(&m, &body);
        writer_fini(&result);
        break;
    }
    case CALL_DRAIN:
        write_u32(&body, draw_below(s, 3) ? PARAMO_ID_SERVER(draw_below(s, 4)) : 0);
        break;
    default:
        break;
    }
    edit(&body, s);
    (void)fakeconn_control_message(node->fake, &head, body.data, body.len);
    writer_fini(&body);
}

static void beat(struct node *node, struct source *s)
{
    struct heartbeat m = {.lanes = draw_below(s, 5)};
    struct wire_head head = {.heartbeat = {.kind = WIRE_HEARTBEAT, .floor = node->floor, .view = node->view}};
    struct writer body = {0};
    for (unsigned i = 0; i < m.lanes; i++)
        m.lane[i] = (struct heartbeat_lane){.steps = draw_u8(s), .busy = i & 1};
    if (m.lanes == 4) {
        head.heartbeat.floor = draw_number(s);
        head.heartbeat.view = draw_number(s);
    }
    heartbeat_encode(&m, &body);
    edit(&body, s);
    (void)fakeconn_control_message(node->fake, &head, body.data, body.len);
    writer_fini(&body);
}

static void step(struct source *s)
{
    uint8_t op = draw_u8(s);
    struct node *node = &w.node[draw_below(s, NODES)];
    bool alive = fakeconn_alive(node->fake);
    switch (op % 12) {
    case 0:
        knock(node, s);
        break;
    case 1:
        if (alive)
            enlist(node, s, PARAMO_ROLE_WORKER);
        break;
    case 2:
        if (alive)
            enlist(node, s, PARAMO_ROLE_SERVER);
        break;
    case 3:
        if (alive)
            (void)fakeconn_raw(node->fake, s);
        break;
    case 4:
        if (alive)
            fakeconn_break(node->fake, PARAMO_E_DISCONNECTED, "cut");
        break;
    case 5:
        if (alive)
            node->fake->full = op & 128;
        break;
    case 6:
        if (alive)
            beat(node, s);
        break;
    default:
        if (alive)
            call(node, s);
    }
}

/* The servers and a worker come as they should, so that most inputs get to a running job. */
static void begin(unsigned servers)
{
    for (unsigned i = 0; i < servers + 1 && i < NODES; i++) {
        fakeworld_enter(&w.world);
        w.node[i].incarnation = 1000 + i;
        w.node[i].number = w.node[i].floor = 1;
        struct source again = {(const uint8_t *)"\0", 1};
        knock(&w.node[i], &again);
        const uint8_t plain[] = {0, 0xff, 0xff}; /* rank -1 */
        again = (struct source){plain, sizeof plain};
        enlist(&w.node[i], &again, i < servers ? PARAMO_ROLE_SERVER : PARAMO_ROLE_WORKER);
        fakeworld_leave(&w.world);
    }
    fakeworld_pass(&w.world, 100);
}

static void started(void *arg, paramo_err status, const struct store_state *state)
{
    (void)arg;
    CHECK(status == PARAMO_OK && !state->bytes);
    w.found = (struct store_state){.term = state->term};
    w.started = true;
}

/* A store that is empty: what the scheduler saves it says only then. */
static struct store *begin_store(struct simfs *disk, struct blocking_jobs *blocking_jobs)
{
    struct store *store;
    struct store_dir_config config = {
        .lane = w.world.lane, .fs = simfs_fs(disk), .dir = "/d/s", .blocking_jobs = blocking_jobs};
    CHECK(store_dir_open(&config, &store) == PARAMO_OK);
    fakeworld_enter(&w.world);
    CHECK(store_start(store, started, NULL) == PARAMO_OK);
    fakeworld_leave(&w.world);
    fakeworld_pass(&w.world, 100);
    CHECK(w.started);
    return store;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    memset(&w, 0, sizeof w);
    fakeworld_open(&w.world);
    w.world.van.sent = sent;
    w.world.van.van.capabilities = CAPABILITY_CLOCK_WORKERS;
    uint8_t how = draw_u8(&s), more = size ? data[size - 1] : 0;
    w.views = more & 1;
    struct simfs *disk;
    struct blocking_jobs *blocking_jobs;
    CHECK(simfs_create(1, &disk) == PARAMO_OK && fs_make_dir(simfs_fs(disk), "/var") == PARAMO_OK);
    CHECK(fs_make_dir(simfs_fs(disk), "/d") == PARAMO_OK);
    CHECK(blocking_jobs_create(lane_env(w.world.lane), "files", &blocking_jobs) == PARAMO_OK);
    struct scheduler_config config = {.van = &w.world.van.van,
                                      .lane = w.world.lane,
                                      .address = "scheduler",
                                      .token = "token",
                                      .num_servers = 1u + (how >> 1 & 1u) + (how >> 6),
                                      .replicas = how >> 4 & 3u,
                                      .num_workers = 1 + (how >> 2 & 1),
                                      .own_member = how & 8,
                                      .fs = simfs_fs(disk),
                                      .blocking_jobs = how & 16 ? NULL : blocking_jobs,
                                      .checkpoint_every_ms = how & 32 ? 700 : 0,
                                      .checkpoint_full_every = 3,
                                      .checkpoint_keep = 2,
                                      .checkpoint_dir = "/var/ckpt",
                                      .on_loss_restore = more & 4,
                                      .checkpoint_allow = "",
                                      .arg = &w,
                                      .over = over};
    if (more & 8)
        (void)snprintf(config.checkpoint_allow, sizeof config.checkpoint_allow, "/var/other:/var");
    if (more & 2) {
        config.store = begin_store(disk, blocking_jobs);
        config.found = &w.found;
    }
    fakeworld_enter(&w.world);
    CHECK(scheduler_create(&config, &w.scheduler) == PARAMO_OK);
    fakeworld_leave(&w.world);
    if (!(how & 1))
        begin(config.num_servers);
    for (unsigned n = 0; s.left && n < 300; n++) {
        fakeworld_enter(&w.world);
        step(&s);
        fakeworld_leave(&w.world);
        if (draw_below(&s, 8) == 7)
            fakeworld_pass(&w.world, draw_u8(&s) * 50);
    }
    /* It still listens, and answers a node that registers: with a place or with a reason. */
    fakeworld_enter(&w.world);
    struct node last = {.incarnation = 5000, .number = 1, .floor = 1};
    struct source plain = {(const uint8_t *)"\0", 1};
    for (unsigned i = 0; i < NODES; i++)
        if (w.node[i].fake)
            w.node[i].fake->full = false;
    knock(&last, &plain);
    if (fakeconn_alive(last.fake)) {
        w.watched = last.fake;
        const uint8_t bytes[] = {0, 0x40, 0};
        plain = (struct source){bytes, sizeof bytes};
        enlist(&last, &plain, PARAMO_ROLE_WORKER);
    }
    fakeworld_leave(&w.world);
    fakeworld_pass(&w.world, 5000);
    CHECK(w.registered || w.over);
    fakeworld_enter(&w.world);
    scheduler_destroy(w.scheduler);
    fakeworld_leave(&w.world);
    blocking_jobs_destroy(blocking_jobs);
    fakeworld_close(&w.world);
    simfs_destroy(disk);
    return 0;
}
