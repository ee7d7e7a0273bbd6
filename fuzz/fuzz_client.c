/* A client and servers that answer anything: right answers, edited ones, of the wrong size, late, twice, cut
 * in the middle by whatever else happens, while views change and requests are cancelled. Every request
 * completes once; no byte of its memory is touched after that (it is freed at once); and a right answer's
 * values arrive. */
#include <stdlib.h>
#include <string.h>

#include "base/transform.h"
#include "cluster/session/control_message.h"
#include "fakevan.h"
#include "filter/filter_chain.h"
#include "paramo/functions.h"
#include "table/table_options.h"
#include "wire/capability.h"
#include "wire/hello.h"
#include "worker/client.h"
#include "worker/client_impl.h"
#include "worker/scan.h"

enum { REQUESTS = 24, HEARD = 64, TABLES = 4, CONNS = 8, SERVERS = 3, FRAME_LIMIT = 1 << 20 };

struct asked {
    bool used;
    unsigned done;
    paramo_err status;
    uint64_t ts;
    uint64_t *keys;
    uint8_t *vals;
    uint32_t *lens;
    struct client_stats *stats;
    struct scan_batch *batch;
    paramo_reduction *reduction;
    paramo_page *page;
    void *page_keys, *page_lens, *page_vals;
};

/* A request that a server has heard. */
struct heard {
    struct fakeconn *conn;
    struct wire_head head;
    uint64_t first_key;
};

static struct world {
    struct fakeworld world;
    struct client *client;
    struct view *view;
    uint64_t number;
    paramo_table_options options[TABLES];
    struct client_table tables[TABLES];
    struct asked asked[REQUESTS];
    struct heard heard[HEARD];
    unsigned heard_count;
    struct fakeconn *conn[CONNS];
    unsigned conn_count;
} w;

/* ---- views ---- */

static struct view *make_view(unsigned foreign, unsigned dead)
{
    struct view *v = calloc(1, sizeof *v);
    CHECK(v);
    atomic_init(&v->refs, 1);
    v->job = 7;
    v->number = ++w.number;
    v->complete = true;
    v->nodes_count = SERVERS + 1;
    v->shards_count = SERVERS;
    v->tables_count = TABLES;
    v->nodes = calloc(v->nodes_count, sizeof *v->nodes);
    v->shards = calloc(v->shards_count, sizeof *v->shards);
    v->tables = calloc(TABLES, sizeof *v->tables);
    CHECK(v->nodes && v->shards && v->tables);
    static const uint32_t ids[] = {8, 9, 10, 12};
    for (unsigned i = 0, shard = 0; i < SERVERS + 1; i++) {
        struct view_node *n = &v->nodes[i];
        bool server = ids[i] % 2 == 0;
        *n = (struct view_node){.id = ids[i],
                                .role = server ? PARAMO_ROLE_SERVER : PARAMO_ROLE_WORKER,
                                .incarnation = 1 + (dead >> (4 + i) & 1),
                                .alive = !server || !(dead >> i & 1),
                                .recovered = server && dead >> (4 + i) & 1,
                                .port = server ? 1 : 0,
                                .shards = server};
        memcpy(n->host, "host", 5);
        if (server)
            v->shards[shard++] = (struct view_shard){.node = n->id, .partitions_changed = v->number};
    }
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        v->chains.level[0].owner[a] = a < foreign                 ? a * 2 < foreign
                                      : a % 64 == 5 && dead & 128 ? RING_NONE
                                                                  : 2;
    for (unsigned t = 0; t < TABLES; t++) {
        v->tables[t].id = t + 1;
        v->tables[t].options = w.options[t];
        v->tables[t].name[0] = (char)('a' + t);
    }
    view_unref(w.view);
    w.view = v;
    return v;
}

/* ---- the servers' side ---- */

static void connected(void *arg, struct fakeconn *c)
{
    (void)arg;
    w.conn[w.conn_count++ % CONNS] = c;
}

static void sent(void *arg, struct fakeconn *c, const struct van_frame *frame)
{
    struct wire_head h;
    (void)arg;
    CHECK(wire_head_decode(frame->head, &h) == PARAMO_OK);
    if (!h.number) /* HELLO and its like */
        return;
    if (!(h.flags & WIRE_FILTERED))
        CHECK(data_check_request(&h, frame->seg, frame->nseg) == PARAMO_OK);
    CHECK(van_frame_check(frame->seg, frame->nseg, FRAME_LIMIT) == PARAMO_OK);
    struct heard *heard = &w.heard[w.heard_count++ % HEARD];
    *heard = (struct heard){.conn = c, .head = h};
    if (data_seg_len(frame->seg, frame->nseg, WIRE_SEG_KEYS))
        memcpy(&heard->first_key, frame->seg[WIRE_SEG_KEYS].data, 8);
}

static void welcome(struct fakeconn *c, struct source *s)
{
    struct wire_head head = {.plain = {.kind = WIRE_WELCOME}};
    struct welcome m = {
        .version = 1, .job = 7, .incarnation = 1, .capabilities = w.world.van.van.capabilities};
    struct writer body = {0};
    if (draw_below(s, 8) == 7) {
        head.kind = WIRE_REJECT;
        reject_encode((paramo_err)draw_u8(s), "no", &body);
    } else {
        welcome_encode(&m, &body);
    }
    (void)fakeconn_control_message(c, &head, body.data, body.len);
    writer_fini(&body);
}

static void answer(struct source *s)
{
    if (!w.heard_count)
        return;
    unsigned back = draw_u8(s) % (w.heard_count < HEARD ? w.heard_count : HEARD);
    struct heard *heard = &w.heard[(w.heard_count - 1 - back) % HEARD];
    struct fakeconn *c = heard->conn;
    struct wire_head h = heard->head;
    uint8_t bytes[VAN_HEAD], how = draw_u8(s), kind = h.kind;
    if (!fakeconn_alive(c) || c->coming)
        return;
    h.kind = kind == WIRE_PROBE ? WIRE_PROBE_ANSWER : WIRE_ANSWER;
    h.flags = 0;
    h.clock = 0;
    if (kind == WIRE_PROBE)
        h.probed.found = 1 + (how >> 7);
    if (kind == WIRE_PROBE && (how & 12) == 12) { /* perhaps it lacks what filters need */
        h.probed.found = draw_below(s, 5);
        h.probed.full = draw_u8(s);
        h.filter_epoch = (uint16_t)draw_below(s, 3);
    }
    if ((how & 3) == 3) {
        static const uint16_t statuses[] = {PARAMO_E_MOVED, PARAMO_E_AGAIN, PARAMO_E_NOT_FOUND,
                                            PARAMO_E_FENCED};
        uint8_t which = draw_u8(s);
        h.status = which < 128 ? statuses[which % 4] : which;
        h.view = w.number + draw_below(s, 3);
    }
    const paramo_table_options *o = &w.options[(h.table - 1) % TABLES];
    bool var = o->kind == PARAMO_TABLE_VAR;
    size_t row = o->dim, count = h.count;
    size_t keys_len = 0, lens_len = 0, vals_len = 0, body_len = 0;
    if (heard->head.flags & WIRE_STATE)
        row += table_state_values(o);
    if (kind == WIRE_SCAN) {
        h.count = (uint32_t)(count = draw_below(s, 5));
        h.batch.more = draw_below(s, 4) == 3;
        keys_len = 8 * count;
    }
    bool rows = kind == WIRE_PULL || kind == WIRE_PUSHPULL || kind == WIRE_SCAN;
    uint32_t *lens = harness_alloc(4 * count);
    uint32_t columns = kind == WIRE_SCAN ? heard->head.scan_columns.count : heard->head.columns.count;
    size_t values = count * (heard->head.flags & WIRE_COLUMNS ? columns : row);
    if (var && rows) {
        lens_len = 4 * count;
        values = 0;
        for (size_t i = 0; i < count; i++)
            values += lens[i] = draw_below(s, 4);
    }
    if (rows && !h.status)
        vals_len = values * table_dtype_size(o->dtype);
    if (kind == WIRE_STAT && !h.status)
        body_len = DATA_STAT_BYTES;
    if (h.status) {
        keys_len = lens_len = 0;
        body_len = draw_below(s, 12);
    }
    if (how & 16) { /* not as it should be */
        switch (draw_below(s, 6)) {
        case 0:
            vals_len += draw_below(s, 9);
            break;
        case 1:
            vals_len -= vals_len ? 1 : 0;
            break;
        case 2:
            lens_len = lens_len ? lens_len - 4 : 0;
            break;
        case 3:
            if (count)
                lens[0] = (uint32_t)draw_number(s);
            break;
        case 4:
            h.count = (uint32_t)draw_number(s);
            break;
        default:
            body_len = draw_u8(s);
            h.flags ^= body_len & 128 && kind != WIRE_PROBE ? WIRE_FILTERED : 0;
            h.slice += draw_below(s, 3);
            h.attempt += draw_below(s, 2);
        }
    }
    uint64_t *keys = harness_alloc(keys_len);
    for (size_t i = 0; i < keys_len / 8; i++)
        keys[i] = heard->first_key + i;
    uint8_t *vals = harness_alloc(vals_len), *body = harness_alloc(body_len);
    memset(vals, 0x3f, vals_len);
    memset(body, 'x', body_len);
    for (size_t i = 0; i < body_len && i < 24 && h.flags & WIRE_FILTERED; i++)
        body[i] = draw_u8(s);
    struct van_seg seg[VAN_SEGS] = {{keys, keys_len}, {lens, lens_len}, {vals, vals_len}, {body, body_len}};
    unsigned nseg = body_len ? 4 : vals_len ? 3 : lens_len ? 2 : keys_len ? 1 : 0;
    wire_head_encode(&h, bytes);
    if (how & 32)
        (void)fakeconn_begin(c, bytes, seg, nseg); /* and the rest later */
    else if (fakeconn_frame(c, bytes, seg, nseg) && how & 64)
        (void)fakeconn_frame(c, bytes, seg, nseg);
    free(keys);
    free(lens);
    free(vals);
    free(body);
}

/* ---- requests ---- */

static void complete(void *arg, uint64_t ts, paramo_err status)
{
    struct asked *a = arg;
    CHECK(a->used && !a->done++);
    CHECK(!a->ts || a->ts == ts);
    a->status = status;
}

/* The memory of what is complete goes back at once. */
static void reap(void)
{
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct asked *a = &w.asked[i];
        if (!a->used || !a->done)
            continue;
        free(a->keys);
        free(a->vals);
        free(a->lens);
        free(a->stats);
        if (a->reduction)
            free(a->reduction->entries);
        free(a->reduction);
        free(a->page);
        free(a->page_keys);
        free(a->page_lens);
        free(a->page_vals);
        if (a->batch) {
            free(a->batch->keys);
            free(a->batch->lens);
            free(a->batch->vals);
            free(a->batch);
        }
        *a = (struct asked){0};
    }
}

static void issue(struct source *s)
{
    struct asked *a = NULL;
    for (unsigned i = 0; i < REQUESTS && !a; i++)
        if (!w.asked[i].used)
            a = &w.asked[i];
    if (!a)
        return;
    uint8_t how = draw_u8(s);
    unsigned t = draw_below(s, TABLES);
    const struct client_table *table = &w.tables[t];
    enum request_kind kind = (enum request_kind)draw_below(s, REQUEST_REDUCE + 1);
    if (kind == REQUEST_SCAN && how & 128)
        kind = REQUEST_PAGE;
    bool var = table->row_values == 0, with_state = kind == REQUEST_PUT && how & 4;
    size_t n = kind >= REQUEST_CLEAR ? 0 : 1 + (how & 8 ? draw_u8(s) : draw_below(s, 4));
    uint64_t key = draw_number(s), stride = 1 + draw_number(s);
    size_t row = table->row_values + (with_state ? table->state_values : 0), values = n * row;
    *a = (struct asked){.used = true};
    a->keys = harness_alloc(8 * n);
    a->lens = harness_alloc(4 * n);
    for (size_t i = 0; i < n; i++, key += stride) {
        a->keys[i] = table->options.kind == PARAMO_TABLE_DENSE ? (i + key % 7) % 100 : key;
        if (var)
            values += a->lens[i] = draw_below(s, 4);
    }
    bool pulls = kind == REQUEST_PULL || kind == REQUEST_PUSHPULL;
    if (var && pulls && values < 16)
        values = 16; /* capacity */
    a->vals = harness_alloc(values * table->value_bytes);
    memset(a->vals, 0, values * table->value_bytes);
    paramo_kv kv = {.size = sizeof kv, .keys = a->keys, .n = n, .vals = a->vals, .vals_len = values};
    bool keys_only = kind == REQUEST_DELETE || kind == REQUEST_TRANSFORM;
    if (var && !keys_only)
        kv.lens = a->lens;
    if (keys_only)
        kv.vals = NULL, kv.vals_len = 0;
    paramo_request_options o = {.size = sizeof o,
                                .flags = PARAMO_NOWAIT | (how & 1 ? PARAMO_COPY : 0) |
                                         (how & 2 ? PARAMO_CREATE : 0),
                                .priority = how >> 6,
                                .timeout_ms = 100u * (1 + draw_u8(s)),
                                .callback = complete,
                                .callback_arg = a};
    if ((kind <= REQUEST_PUSHPULL || kind == REQUEST_PAGE) && how & 4 && table->row_values > 1) {
        o.column = how >> 3 & 1;
        o.columns = table->row_values - 1 - (how >> 5 & 1);
        kv.vals_len = n * o.columns;
    }
    struct client_call call = {
        .kind = kind, .table = table, .kv = n ? &kv : NULL, .options = &o, .with_state = with_state};
    struct transform transform = {
        .function = (uint8_t)draw_below(s, PARAMO_TRANSFORM_COPY + 1), .other = table->id, .a = how};
    transform.two = transform_takes_two(transform.function);
    if (kind == REQUEST_TRANSFORM) {
        call.transform = &transform;
        call.other = transform.two ? table : NULL;
    }
    if (kind == REQUEST_REDUCE) {
        call.reduction = a->reduction = calloc(1, sizeof *a->reduction);
        CHECK(a->reduction);
        paramo_reduction_init(a->reduction, (paramo_reduce_function)draw_below(s, PARAMO_REDUCE_TOP + 1));
        a->reduction->begin = how & 32 ? key : 0;
        call.other = a->reduction->function == PARAMO_REDUCE_DOT ? table : NULL;
        a->reduction->most = a->reduction->function == PARAMO_REDUCE_TOP ? 1u + how % 8 : 0;
        a->reduction->entries = harness_alloc(a->reduction->most * sizeof(paramo_entry));
    }
    if (kind == REQUEST_PAGE) {
        call.page = a->page = calloc(1, sizeof *a->page);
        CHECK(a->page);
        paramo_page_init(a->page);
        a->page->begin = how & 32 ? key : 0;
        a->page->most = 1 + draw_u8(s);
        a->page->vals_len = table->row_values + draw_u8(s);
        a->page->keys = a->page_keys = harness_alloc(8 * a->page->most);
        a->page->lens = a->page_lens = var ? harness_alloc(4 * a->page->most) : NULL;
        a->page->vals = a->page_vals = harness_alloc(a->page->vals_len * table->value_bytes);
    }
    if (kind == REQUEST_STAT)
        call.stats = a->stats = calloc(1, sizeof *a->stats);
    if (kind == REQUEST_SCAN) {
        call.batch = a->batch = calloc(1, sizeof *a->batch);
        CHECK(a->batch);
        a->batch->shard = draw_below(s, SERVERS);
        a->batch->id = 1 + draw_u8(s);
        a->batch->cursor = draw_number(s);
        a->batch->with_state = how & 16 && !var;
    }
    if (kind <= REQUEST_PUSHPULL && how & 16) {
        kv.keys = NULL;
        call.range = true;
        call.begin = table->options.kind == PARAMO_TABLE_DENSE ? key % 100 : key / 2;
    }
    uint64_t ts = 0;
    paramo_err err = client_issue(w.client, &call, &ts);
    if (err) {
        CHECK(!a->done);
        a->done = 1;
    } else {
        a->ts = ts;
    }
}

static void step(struct source *s)
{
    uint8_t op = draw_u8(s);
    struct fakeconn *c =
        w.conn_count ? w.conn[op / 16u % (w.conn_count < CONNS ? w.conn_count : CONNS)] : NULL;
    switch (op % 16) {
    case 0:
    case 1:
    case 2:
        issue(s); /* not on the lane */
        return;
    case 3: {
        const struct asked *a = &w.asked[draw_below(s, REQUESTS)];
        if (a->used && a->ts) {
            paramo_err err = client_cancel(w.client, a->ts);
            (void)err;
        }
        return;
    }
    default:
        break;
    }
    fakeworld_enter(&w.world);
    switch (op % 16) {
    case 4:
    case 5:
        if (fakeconn_alive(c) && !c->coming)
            welcome(c, s);
        break;
    case 6:
    case 7:
    case 8:
    case 9:
    case 10:
        answer(s);
        break;
    case 11:
        if (fakeconn_alive(c) && c->coming)
            (void)fakeconn_finish(c);
        break;
    case 12:
        if (fakeconn_alive(c) && !c->coming && draw_below(s, 4) == 3)
            (void)fakeconn_raw(c, s);
        break;
    case 13:
        if (fakeconn_alive(c) && draw_below(s, 4) == 3)
            fakeconn_break(c, PARAMO_E_DISCONNECTED, "cut");
        break;
    case 14: {
        uint8_t how = draw_u8(s);
        client_set_view(
            w.client, make_view(how & 1 ? draw_u16(s) % (RING_PARTITIONS + 1) : 0, how & 2 ? draw_u8(s) : 0));
        break;
    }
    default:
        if (c)
            c->full = op & 128;
        w.world.van.refuse = op & 64 && op & 32;
        fakevan_round(&w.world.van);
    }
    fakeworld_leave(&w.world);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    memset(&w, 0, sizeof w);
    fakeworld_open(&w.world);
    w.world.van.sent = sent;
    w.world.van.connected = connected;
    bool filters = size && data[size - 1] % 4 == 3; /* some clients have them */
    w.world.van.van.capabilities = filters ? CAPABILITIES : CAPABILITY_RANGE | CAPABILITY_COLUMNS;
    for (unsigned t = 0; t < TABLES; t++)
        table_options_default(&w.options[t]);
    w.options[1].kind = PARAMO_TABLE_DENSE;
    w.options[1].rows = 100;
    w.options[1].dim = 3;
    w.options[2].kind = PARAMO_TABLE_VAR;
    w.options[3].dim = 40;
    w.options[3].optimizer = PARAMO_OPT_FTRL;
    for (unsigned t = 0; t < TABLES; t++)
        w.options[t].placement = table_options_placement(&w.options[t]);
    struct view *view = make_view(draw_u8(&s) * 16u, 0);
    for (unsigned t = 0; t < TABLES; t++)
        client_table_init(&w.tables[t], &view->tables[t]);
    struct client_config config = {.lane = w.world.lane,
                                   .van = &w.world.van.van,
                                   .view = view,
                                   .node = 9,
                                   .incarnation = 1,
                                   .token = "token",
                                   .frame_bytes = FRAME_LIMIT,
                                   .request_timeout_ms = 5000,
                                   .connect_timeout_ms = 2000};
    CHECK(client_create(&config, &w.client) == PARAMO_OK);
    if (filters) {
        struct filter_chain chains[FILTER_DIRECTIONS] = {{0}};
        CHECK(filter_chains_parse("push=keycache,lz4;pull=keycache,lz4", chains) == PARAMO_OK);
        fakeworld_enter(&w.world);
        for (unsigned d = 0; d < FILTER_DIRECTIONS; d++)
            CHECK(client_filter(w.client, &w.tables[0], (enum filter_direction)d, &chains[d]) == PARAMO_OK);
        fakeworld_leave(&w.world);
    }
    for (unsigned n = 0; s.left && n < 200; n++) {
        step(&s);
        if (draw_below(&s, 8) == 7)
            fakeworld_pass(&w.world, draw_u8(&s) * 4);
        reap();
    }
    for (struct fakeconn *c = w.world.van.conns; c; c = c->next)
        c->full = false;
    if (draw_u8(&s) & 1)
        fakeworld_pass(&w.world, 60000); /* every deadline */
    client_close(w.client);
    fakeworld_pass(&w.world, 1);
    for (unsigned i = 0; i < REQUESTS; i++)
        CHECK(!w.asked[i].used || w.asked[i].done == 1);
    reap();
    client_free(w.client);
    view_unref(w.view);
    fakeworld_close(&w.world);
    return 0;
}
