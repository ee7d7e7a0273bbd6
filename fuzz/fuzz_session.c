/* A session of several messages against a live shard: two workers and their connections send requests that
 * are right, nearly right, repeated or mere bytes, to tables of every kind, while views change, queues fill
 * and handlers answer late. What it sends must be frames that its clients may read; and afterwards a
 * newcomer's push and pull must give exactly what they should. */
#include <stdlib.h>
#include <string.h>

#include "fakevan.h"
#include "server/shard/shard.h"
#include "server/shard/shard_impl.h"
#include "table/table_options.h"
#include "wire/capability.h"
#include "wire/reduction_body.h"
#include "wire/transform_body.h"

enum { CONNS = 4, HELD = 64, TABLES = 7, FRAME_LIMIT = 1 << 20 };
enum { NODE_SELF = 8, NEWCOMER = 2, INCARNATION = 100 };

struct connection {
    struct fakeconn *fake;
    uint32_t rank, customer;
    uint64_t number; /* the next request's */
};

static struct world {
    struct fakeworld world;
    struct shard *shard;
    struct view *view;
    uint64_t number; /* of the view */
    paramo_table_options options[TABLES];
    struct connection conn[CONNS];
    struct shard_request *held[HELD];
    size_t held_value[HELD];
    unsigned held_count;
    struct fakeconn *watched;
    unsigned answers;
    struct wire_head answer; /* the last to `watched`, and its first value */
    float answer_value;
    uint64_t answer_bytes;
} w;

/* ---- tables and views ---- */

static void tables_init(void)
{
    for (unsigned t = 0; t < TABLES; t++)
        table_options_default(&w.options[t]);
    w.options[1].kind = PARAMO_TABLE_DENSE;
    w.options[1].rows = RING_PARTITIONS;
    w.options[2].kind = PARAMO_TABLE_USER;
    w.options[3].kind = PARAMO_TABLE_VAR;
    w.options[3].dtype = PARAMO_U8;
    w.options[4].dim = 3;
    w.options[4].optimizer = PARAMO_OPT_FTRL;
    w.options[5].dim = 2;
    w.options[5].dtype = PARAMO_I64;
    w.options[5].optimizer = PARAMO_OPT_ASSIGN;
    w.options[6].kind = PARAMO_TABLE_DENSE;
    w.options[6].rows = 100;
    w.options[6].dim = 5;
    w.options[6].optimizer = PARAMO_OPT_ADAM;
    for (unsigned t = 0; t < TABLES; t++)
        w.options[t].placement = table_options_placement(&w.options[t]);
}

/* foreign: of the first partitions, how many belong to the other server; dead: bits of workers. */
static void set_view(unsigned foreign, unsigned dead, bool moved)
{
    struct view *v = calloc(1, sizeof *v);
    CHECK(v);
    atomic_init(&v->refs, 1);
    v->job = 7;
    v->number = ++w.number;
    v->nodes_count = 5;
    v->shards_count = 2;
    v->tables_count = TABLES;
    v->nodes = calloc(5, sizeof *v->nodes);
    v->shards = calloc(2, sizeof *v->shards);
    v->tables = calloc(TABLES, sizeof *v->tables);
    CHECK(v->nodes && v->shards && v->tables);
    static const uint32_t ids[] = {8, 9, 10, 11, 13};
    for (unsigned i = 0; i < 5; i++)
        v->nodes[i] = (struct view_node){.id = ids[i],
                                         .role = ids[i] % 2 ? PARAMO_ROLE_WORKER : PARAMO_ROLE_SERVER,
                                         .incarnation = INCARNATION + ids[i],
                                         .alive = !(dead >> i & 1)};
    for (unsigned i = 0; i < 2; i++)
        v->shards[i] = (struct view_shard){
            .node = i ? 10 : 8,
            .partitions_changed = moved || !w.view ? v->number : w.view->shards[i].partitions_changed};
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        v->chains.level[0].owner[a] = a < foreign;
    for (unsigned t = 0; t < TABLES; t++) {
        v->tables[t].id = t + 1;
        v->tables[t].options = w.options[t];
        v->tables[t].name[0] = (char)('a' + t);
    }
    view_unref(w.view);
    w.view = v;
    shard_set_view(w.shard, v);
}

/* ---- handlers ---- */

static void handle(void *arg, struct shard_request *request, const struct shard_request_info *info)
{
    (void)arg;
    uint64_t sum = 0;
    for (size_t i = 0; i < info->n; i++)
        sum += info->keys[i] + (info->lens ? info->lens[i] : 0);
    for (size_t i = 0; i < info->vals_len * 4; i++)
        sum += ((const uint8_t *)info->vals)[i];
    if (w.held_count == HELD || sum == 1) {
        CHECK(shard_answer_error(request, PARAMO_E_HANDLER, "too many") == PARAMO_OK);
        return;
    }
    w.held_value[w.held_count] = info->n;
    w.held[w.held_count++] = request;
}

static void answer_held(struct source *s, unsigned which)
{
    struct shard_request *request = w.held[which];
    size_t n = w.held_value[which];
    float vals[64] = {1, 2, 3};
    uint32_t lens[16];
    w.held[which] = w.held[--w.held_count];
    w.held_value[which] = w.held_value[w.held_count];
    paramo_err err;
    uint8_t how = draw_u8(s);
    if (how % 4 == 0) {
        err = shard_answer_error(request, (paramo_err)(1 + how / 4 % 20), "the handler failed");
    } else if (how % 4 == 1 && n <= 16) {
        size_t sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += lens[i] = draw_below(s, 4);
        err = shard_answer(request, vals, sum, lens);
    } else {
        err = shard_answer(request, vals, how % 64, NULL);
    }
    if (err) /* refused: it is still to be answered */
        CHECK(shard_answer_error(request, PARAMO_E_HANDLER, "refused") == PARAMO_OK);
}

/* ---- connections ---- */

static void sent(void *arg, struct fakeconn *c, const struct van_frame *frame)
{
    struct wire_head h;
    (void)arg;
    CHECK(wire_head_decode(frame->head, &h) == PARAMO_OK);
    CHECK(van_frame_check(frame->seg, frame->nseg, FRAME_LIMIT) == PARAMO_OK);
    CHECK(h.kind == WIRE_WELCOME || h.kind == WIRE_REJECT || h.kind == WIRE_ANSWER ||
          h.kind == WIRE_PROBE_ANSWER);
    if (h.status)
        CHECK(data_seg_len(frame->seg, frame->nseg, WIRE_SEG_VALS) == 0);
    if (c != w.watched || h.kind != WIRE_ANSWER)
        return;
    w.answers++;
    w.answer = h;
    w.answer_bytes = data_seg_len(frame->seg, frame->nseg, WIRE_SEG_VALS);
    if (w.answer_bytes >= 4)
        memcpy(&w.answer_value, frame->seg[WIRE_SEG_VALS].data, 4);
}

static uint64_t capabilities; /* of the next connection */

static struct fakeconn *join(uint32_t node, uint64_t incarnation, uint32_t customer, unsigned shard)
{
    struct fakeconn *c = fakevan_conn_new(&w.world.van, w.world.lane);
    c->conn.capabilities = capabilities;
    struct hello hello = {.version_min = HELLO_VERSION_MIN,
                          .version_max = HELLO_VERSION_MAX,
                          .purpose = HELLO_DATA,
                          .node = node,
                          .incarnation = incarnation,
                          .customer = customer,
                          .shard = (uint16_t)shard};
    shard_accept(w.shard, &c->conn, &hello);
    return c;
}

static void reconnect(struct connection *c, struct source *s)
{
    if (fakeconn_alive(c->fake))
        fakeconn_break(c->fake, PARAMO_E_DISCONNECTED, "cut");
    uint8_t how = draw_u8(s);
    c->rank = how & 1;
    c->customer = how >> 1 & 1;
    uint32_t node = how >= 0xf0 ? draw_u16(s) % 12 : PARAMO_ID_WORKER(c->rank);
    capabilities = how & 8 ? CAPABILITIES : 0;
    c->fake =
        join(node, how & 0x20 ? draw_u8(s) : INCARNATION + node, c->customer, how & 0x40 ? draw_u8(s) : 0);
    if (how & 0x10)
        c->number = 1;
}

/* ---- requests ---- */

static size_t value_size(uint32_t table)
{
    return table >= 1 && table <= TABLES ? table_dtype_size(w.options[table - 1].dtype) : 4;
}

static void request(struct connection *c, struct source *s)
{
    static const uint8_t kinds[] = {WIRE_PUSH, WIRE_PULL,   WIRE_PUSHPULL, WIRE_PROBE, WIRE_SCAN,
                                    WIRE_PUT,  WIRE_DELETE, WIRE_CLEAR,    WIRE_STAT};
    uint8_t bytes[VAN_HEAD], how = draw_u8(s);
    struct wire_head h = {.kind = kinds[draw_below(s, 9)],
                          .table = 1 + draw_below(s, TABLES + 1),
                          .number = c->number,
                          .view = w.number};
    if (how & 1)
        h.number = c->number > 1 + how / 64u ? c->number - 1 - how / 64u : 1; /* again, or an old one */
    else
        c->number++;
    uint64_t behind = draw_below(s, 8);
    h.floor = h.number > behind ? h.number - behind : 1;
    if (how & 2) { /* unusual */
        uint8_t what = draw_u8(s);
        h.flags = what & 15;
        h.view += what & 16 ? 1 : 0;
        h.view -= what & 32 ? 1 : 0;
        if (what & 64)
            h.number = draw_number(s), h.floor = h.number - draw_below(s, 3);
        if (what & 128)
            h.columns.first = (uint32_t)draw_number(s), h.columns.count = (uint32_t)draw_number(s);
    }
    h.ts = h.number;
    bool many = h.kind != WIRE_SCAN;
    h.count = h.kind == WIRE_CLEAR || h.kind == WIRE_STAT ? 0
              : many                                      ? 1 + draw_below(s, how & 4 ? 200 : 6)
                                                          : 1;
    if (h.kind == WIRE_PROBE)
        h.probe.kind = kinds[draw_below(s, 9)];
    if (h.flags & WIRE_COLUMNS)
        h.count = 1;
    uint64_t key = draw_number(s), stride = 1 + draw_below(s, 3);
    bool has_vals = h.kind == WIRE_PUSH || h.kind == WIRE_PUSHPULL || h.kind == WIRE_PUT;
    const paramo_table_options *o = h.table <= TABLES ? &w.options[h.table - 1] : &w.options[0];
    bool var = o->kind == PARAMO_TABLE_VAR || o->kind == PARAMO_TABLE_USER;
    if (var && has_vals)
        h.flags |= WIRE_LENS;
    size_t keys_len = h.kind == WIRE_PROBE ? 0 : 8 * (size_t)h.count;
    uint64_t *keys = harness_alloc(keys_len);
    for (size_t i = 0; i < keys_len / 8; i++, key += stride)
        keys[i] = how & 8 && i == 3 ? draw_u64(s) : key;
    size_t lens_len = has_vals && (h.flags & WIRE_LENS) ? 4 * (size_t)h.count : 0, values = 0;
    uint32_t *lens = harness_alloc(lens_len);
    for (size_t i = 0; i < lens_len / 4; i++)
        values += lens[i] = how & 16 && i == 1 ? (uint32_t)draw_number(s) : draw_below(s, 5);
    if (!lens_len)
        values = (size_t)h.count * (h.flags & WIRE_COLUMNS
                                        ? h.columns.count % 64
                                        : o->dim + (h.flags & WIRE_STATE ? table_state_values(o) : 0));
    size_t vals_len = has_vals ? values % 5000 * value_size(h.table) : 0;
    if (how & 32 && vals_len)
        vals_len = vals_len - 1 + draw_below(s, 3);
    uint8_t *vals = harness_alloc(vals_len);
    memset(vals, 0, vals_len);
    for (size_t i = 0; i + 4 <= vals_len; i += 4) {
        float v = (float)draw_below(s, 5);
        memcpy(vals + i, &v, 4);
    }
    for (unsigned n = how & 64 ? 8 : 0; n-- && vals_len;)
        vals[draw_u16(s) % vals_len] = draw_u8(s);
    wire_head_encode(&h, bytes);
    struct van_seg seg[VAN_SEGS] = {{keys, keys_len}, {lens, lens_len}, {vals, vals_len}, {NULL, 0}};
    unsigned nseg = has_vals ? 3 : keys_len ? 1 : 0;
    if (how & 128)
        nseg = draw_below(s, 5);
    bool alive = fakeconn_frame(c->fake, bytes, seg, nseg);
    if (alive && draw_below(s, 8) == 7) /* the network's copy */
        (void)fakeconn_frame(c->fake, bytes, seg, nseg);
    free(keys);
    free(lens);
    free(vals);
}

/* What has no keys, or other segments: the floor, a function of a table, keys as a range, what a filter has coded. */
static void request_other(struct connection *c, struct source *s)
{
    static const uint8_t kinds[] = {WIRE_FLOOR, WIRE_BYE,  WIRE_REDUCE,   WIRE_TRANSFORM,
                                    WIRE_PUSH,  WIRE_PULL, WIRE_PUSHPULL, WIRE_PULL};
    uint8_t bytes[VAN_HEAD], how = draw_u8(s), body[REDUCTION_BODY_MAX] = {0};
    uint64_t keys[4] = {draw_number(s)};
    float vals[4 * 5] = {1, 2, 3};
    struct wire_head h = {.kind = kinds[how & 7],
                          .table = 1 + draw_below(s, TABLES + 1),
                          .number = c->number,
                          .floor = 1,
                          .view = w.number,
                          .count = 1 + (how >> 3 & 3)};
    if (how & 32 && c->number > 1)
        h.number--; /* again, perhaps of another table */
    else
        c->number++;
    h.ts = h.number;
    if (h.number - h.floor >= DATA_WINDOW)
        h.floor = h.number;
    const paramo_table_options *o = h.table <= TABLES ? &w.options[h.table - 1] : &w.options[0];
    for (unsigned i = 1; i < 4; i++)
        keys[i] = keys[i - 1] + 1;
    struct van_seg seg[VAN_SEGS] = {{keys, 8 * h.count}};
    if (h.kind == WIRE_FLOOR || h.kind == WIRE_BYE) {
        seg[0].len = h.count = 0;
        h.floor = how & 64 ? draw_number(s) : h.number;
        c->number = h.floor > c->number ? h.floor : c->number;
    } else if (h.kind == WIRE_REDUCE) {
        struct reduction what = {.function = (uint8_t)draw_below(s, PARAMO_REDUCE_USER),
                                 .begin = draw_number(s),
                                 .last = UINT64_MAX - draw_number(s)};
        what.two = what.function == PARAMO_REDUCE_DOT;
        what.other = what.two ? 1 + draw_below(s, TABLES + 1) : 0;
        what.most = what.function > PARAMO_REDUCE_DOT;
        reduction_encode(&what, body);
        seg[0].len = h.count = 0;
        seg[3] = (struct van_seg){body, reduction_body_bytes(&what)};
    } else if (h.kind == WIRE_TRANSFORM) {
        struct transform what = {.function = (uint8_t)draw_below(s, PARAMO_TRANSFORM_COPY + 1),
                                 .a = draw_u8(s)};
        what.two = transform_takes_two(what.function);
        what.other = what.two ? 1 + draw_below(s, TABLES + 1) : 0;
        transform_encode(&what, body);
        seg[3] = (struct van_seg){body, transform_body_bytes(&what)};
    } else {
        if (h.kind != WIRE_PULL)
            seg[2] = (struct van_seg){vals, h.count * o->dim * value_size(h.table)};
        if (how & 64) { /* a range */
            h.flags |= WIRE_RANGE;
            seg[0].len = 8 * (1 + draw_below(s, 3));
            keys[1] = keys[2] = draw_number(s);
        }
        if (how & 128) {
            h.flags |= WIRE_FILTERED;
            h.filter_epoch = (uint16_t)draw_below(s, 2);
            seg[3] = (struct van_seg){body, draw_below(s, sizeof body)};
            for (size_t i = 0; i < seg[3].len && i < 24; i++)
                body[i] = draw_u8(s);
        }
    }
    wire_head_encode(&h, bytes);
    (void)fakeconn_frame(c->fake, bytes, seg, seg[3].len ? 4 : seg[2].len ? 3 : seg[0].len ? 1 : 0);
}

static void step(struct source *s)
{
    uint8_t op = draw_u8(s);
    struct connection *c = &w.conn[op / 16 % CONNS];
    switch (op % 16) {
    default:
        if (!fakeconn_alive(c->fake))
            reconnect(c, s);
        if (fakeconn_alive(c->fake) && op >= 0xc0)
            request_other(c, s);
        else if (fakeconn_alive(c->fake))
            request(c, s);
        break;
    case 15: /* the customer is closed */
        if (fakeconn_alive(c->fake) && draw_below(s, 4) == 3)
            (void)fakeconn_control_message(c->fake, &(struct wire_head){.kind = WIRE_BYE}, NULL, 0);
        break;
    case 8:
        if (fakeconn_alive(c->fake))
            (void)fakeconn_raw(c->fake, s);
        break;
    case 9:
        reconnect(c, s);
        break;
    case 10:
        if (c->fake)
            c->fake->full = op & 128;
        break;
    case 11:
        fakevan_round(&w.world.van);
        break;
    case 12: {
        uint8_t how = draw_u8(s);
        set_view(how & 1 ? draw_u16(s) % (RING_PARTITIONS + 1) : 0, how & 2 ? draw_u8(s) & 0x0e : 0, how & 4);
        break;
    }
    case 13:
    case 14:
        if (w.held_count)
            answer_held(s, draw_below(s, w.held_count));
    }
}

/* ---- afterwards ---- */

static void ask(struct fakeconn *c, unsigned kind, uint64_t number, uint64_t key, float value)
{
    uint8_t bytes[VAN_HEAD];
    struct wire_head h = {.kind = (uint8_t)kind,
                          .table = 1,
                          .number = number,
                          .floor = number,
                          .ts = number,
                          .view = w.number,
                          .count = 1};
    struct van_seg seg[VAN_SEGS] = {{&key, 8}, {NULL, 0}, {&value, 4}, {NULL, 0}};
    wire_head_encode(&h, bytes);
    unsigned before = w.answers;
    CHECK(fakeconn_frame(c, bytes, seg, kind == WIRE_PUSH ? 3 : 1));
    CHECK(w.answers == before + 1 && w.answer.status == 0 && w.answer.number == number);
    CHECK(kind == WIRE_PUSH || w.answer_bytes == 4);
}

static void newcomer(void)
{
    set_view(0, 0, true);
    struct fakeconn *c = w.watched =
        join(PARAMO_ID_WORKER(NEWCOMER), INCARNATION + PARAMO_ID_WORKER(NEWCOMER), 0, 0);
    CHECK(fakeconn_alive(c) && c->sent == 1);
    ask(c, WIRE_PULL, 1, 3, 0);
    float before = w.answer_value, want = before + 1;
    ask(c, WIRE_PUSH, 2, 3, 1);
    ask(c, WIRE_PULL, 3, 3, 0);
    CHECK(want != want ? w.answer_value != w.answer_value : w.answer_value == want);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    memset(&w, 0, sizeof w);
    capabilities = 0;
    fakeworld_open(&w.world);
    w.world.van.sent = sent;
    tables_init();
    struct shard_config config = {.lane = w.world.lane,
                                  .node = NODE_SELF,
                                  .incarnation = INCARNATION + NODE_SELF,
                                  .frame_bytes = FRAME_LIMIT,
                                  .scan_keys = size && data[size - 1] % 8 == 7 ? 4 : 0, /* small steps */
                                  .handler = handle};
    CHECK(shard_create(&config, &w.shard) == PARAMO_OK);
    fakeworld_enter(&w.world);
    set_view(0, 0, true);
    for (unsigned i = 0; i < CONNS; i++)
        w.conn[i].number = 1;
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
    newcomer();
    shard_get_counters(w.shard, &counters);
    CHECK(counters.kept_bytes <= CONNS * (uint64_t)SENDER_KEPT_BYTES &&
          counters.senders <= SHARD_SENDERS_MAX);
    shard_close(w.shard);
    fakeworld_leave(&w.world);
    struct source none = {NULL, 0};
    while (w.held_count) /* late, without effect */
        answer_held(&none, w.held_count - 1);
    fakeworld_pass(&w.world, 1000);
    view_unref(w.view);
    fakeworld_close(&w.world);
    return 0;
}
