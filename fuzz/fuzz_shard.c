/* One shard in its chains, between peers that send anything: it is owner and follower, source and target of
 * migrations, while views, deaths, orders, acknowledgements and connections come in any order. Clients push
 * and read, the member before sends changes, the member after acknowledges them or does not. Frames are
 * mostly whole; one in some has a field that is not.
 *
 * A push is answered OK only when the member after has acknowledged it; an order is answered once; what the
 * shard sends can be read by those that it sends it to. Nothing may end the process. */
#include <stdlib.h>
#include <string.h>

#include "cluster/session/control_message.h"
#include "fakevan.h"
#include "functions.h"
#include "server/replication/chain_impl.h"
#include "server/snapshot/ckpt_rows.h"
#include "shard_views.h"
#include "table/packed_sums.h"
#include "wire/capability.h"
#include "wire/order.h"
#include "wire/reduction_body.h"
#include "wire/transform_body.h"

enum { CLIENTS = 3, OUT_MAX = 24, SENT_MAX = 64, FRAME_LIMIT = 1 << 20, OPS_MAX = 300 };

struct client {
    struct fakeconn *fake;
    unsigned rank, customer;
    uint64_t number;
    uint8_t kind; /* of that request, and its table */
    uint32_t table;
    /* These numbers came again with another kind or table: an answer may be to either. */
    uint64_t mixed[OPS_MAX];
    unsigned mixed_count;
};

struct before { /* a member before us, or the source of a migration */
    struct fakeconn *fake;
    unsigned server;
    bool migrations;
    uint64_t order;
};

struct stream { /* of one server to us, whichever connection it comes by */
    uint64_t seq;
    uint32_t generation;
};

struct sent { /* CHAIN that has left */
    uint64_t seq, number;
    uint32_t node, customer;
};

struct behind { /* a connection that the shard has made */
    struct fakeconn *fake;
    uint32_t server;
    bool welcomed;
    uint64_t seq, acked, clock;
    struct sent sent[SENT_MAX];
    unsigned sent_count;
};

struct asked { /* an order that was given */
    unsigned answers;
};

static struct world {
    struct fakeworld world;
    struct shard_views views;
    struct client clients[CLIENTS];
    struct before before[3];
    struct stream streams[2][SERVERS]; /* of changes, of migrations */
    struct behind behind[OUT_MAX];
    unsigned behind_count;
    struct asked asked[OPS_MAX];
    unsigned asked_count;
    uint64_t migration_id;
    bool failed;
} w;

/* ---- what the shard sends ------------------------------------------------------------------------------ */

static void answered(const struct client *c, const struct wire_head *h)
{
    if (h->status != PARAMO_OK || h->columns.first) /* a scan's, or a part of a row */
        return;
    for (unsigned i = 0; i < c->mixed_count; i++)
        if (h->number == c->mixed[i])
            return;
    for (unsigned i = 0; i < w.behind_count; i++) {
        const struct behind *b = &w.behind[i];
        for (unsigned k = 0; k < b->sent_count && fakeconn_alive(b->fake) && b->welcomed; k++)
            if (b->sent[k].number == h->number && b->sent[k].node == PARAMO_ID_WORKER(c->rank) &&
                b->sent[k].customer == c->customer)
                CHECK(b->sent[k].seq <= b->acked);
    }
}

static void behind_sends(struct behind *b, const struct van_frame *frame, const struct wire_head *h)
{
    struct chain_message change;
    struct migration_message migration;
    uint64_t clock;
    switch (h->kind) {
    case WIRE_HELLO: {
        struct hello hello;
        struct reader r = reader_over(frame->seg[0].data, frame->seg[0].len);
        CHECK(hello_decode(&r, &hello) == PARAMO_OK);
        CHECK(hello.purpose == HELLO_CHAIN || hello.purpose == HELLO_MIGRATION);
        break;
    }
    case WIRE_CHAIN:
        CHECK(b->welcomed && chain_decode(h, frame->seg, frame->nseg, &change) == PARAMO_OK);
        /* In order, from where the connection began, but for what it has acknowledged ahead (UINT64_MAX). */
        CHECK(change.seq <= b->seq + 1 || !b->seq || b->acked == UINT64_MAX);
        b->seq = change.seq > b->seq ? change.seq : b->seq;
        if (change.what == CHAIN_UPDATE && change.origin.node == PARAMO_ID_SERVER(SELF) &&
            b->sent_count < SENT_MAX)
            b->sent[b->sent_count++] =
                (struct sent){change.seq, change.request.number, change.sender.node, change.sender.customer};
        break;
    case WIRE_MIGRATION:
        CHECK(b->welcomed && migration_decode(h, frame->seg, frame->nseg, &migration) == PARAMO_OK);
        b->seq = migration.seq > b->seq ? migration.seq : b->seq;
        break;
    default:
        CHECK(b->welcomed && h->kind == WIRE_CHAIN_BEAT);
        CHECK(chain_beat_decode(h, frame->nseg, &clock) == PARAMO_OK);
        b->clock = clock;
    }
}

static struct stream *stream_of(const struct before *b)
{
    return &w.streams[b->migrations][b->server];
}

static void sent(void *arg, struct fakeconn *c, const struct van_frame *frame)
{
    struct wire_head h;
    (void)arg;
    CHECK(wire_head_decode(frame->head, &h) == PARAMO_OK);
    for (unsigned i = 0; i < w.behind_count; i++)
        if (w.behind[i].fake == c) {
            behind_sends(&w.behind[i], frame, &h);
            return;
        }
    for (unsigned i = 0; i < CLIENTS; i++)
        if (w.clients[i].fake == c && h.kind == WIRE_ANSWER)
            answered(&w.clients[i], &h);
    if (h.kind == WIRE_CHAIN_ACK) {
        struct chain_ack ack;
        CHECK(chain_ack_decode(&h, frame->seg, frame->nseg, &ack) == PARAMO_OK);
        CHECK(ack.acked <= ack.received);
    }
}

static void connected(void *arg, struct fakeconn *c)
{
    (void)arg;
    if (w.behind_count == OUT_MAX) {
        w.world.van.refuse = true;
        w.behind_count--; /* the last is not looked at any more */
    }
    w.behind[w.behind_count++] = (struct behind){.fake = c, .server = (unsigned)(c->conn.peer[0] - 'a')};
}

static void failed(void *arg, paramo_err status)
{
    (void)arg;
    CHECK(status != PARAMO_OK && !w.failed);
    w.failed = true;
}

static void moved(void *arg, paramo_err status)
{
    struct asked *asked = arg;
    (void)status;
    asked->answers++;
    CHECK(asked->answers == 1);
}

/* ---- clients ------------------------------------------------------------------------------------------- */

static void client_connect(struct client *c, struct source *s)
{
    uint8_t how = draw_u8(s);
    if (fakeconn_alive(c->fake))
        fakeconn_break(c->fake, PARAMO_E_DISCONNECTED, "cut");
    if (how & 1)
        c->customer = how >> 1 & 3, c->number = 0;
    struct hello hello = {.version_min = HELLO_VERSION_MIN,
                          .version_max = HELLO_VERSION_MAX,
                          .purpose = HELLO_DATA,
                          .node = how == 254 ? 0 : PARAMO_ID_WORKER(c->rank), /* or a reader */
                          .incarnation = INCARNATION + PARAMO_ID_WORKER(c->rank) + (how == 255),
                          .customer = c->customer};
    c->fake = fakevan_conn_new(&w.world.van, w.world.lane);
    c->fake->conn.capabilities = how & 64 ? 0 : CAPABILITY_COLUMNS;
    c->fake->conn.capabilities |= how & 128 ? 0 : CAPABILITY_AGGREGATE;
    shard_accept(w.views.shard, &c->fake->conn, &hello);
}

/* Ascending keys, mostly of partitions that are ours. */
static unsigned keys_draw(struct source *s, unsigned table, uint64_t keys[3])
{
    unsigned n = 1 + draw_below(s, 3), block = draw_below(s, BLOCKS);
    for (unsigned i = 0; i < BLOCKS && w.views.chains.level[0].owner[block * BLOCK_PARTITIONS] != SELF; i++)
        block = (block + 1) % BLOCKS;
    uint64_t at = block * BLOCK_PARTITIONS + draw_below(s, 8) * 100;
    for (unsigned i = 0; i < n; i++, at += 1 + draw_below(s, 40))
        keys[i] = (at < RING_PARTITIONS ? at : RING_PARTITIONS - 3 + i)
                  << (table == DENSE ? 0 : RING_PARTITION_SHIFT);
    return n;
}

/* A request leaves. again: with the number of the one before. */
static void asks(struct client *c, const struct wire_head *h, bool again)
{
    if (again && (h->kind != c->kind || h->table != c->table))
        c->mixed[c->mixed_count++] = h->number; /* one a step at most */
    c->kind = h->kind;
    c->table = h->table;
}

static void client_asks(struct client *c, struct source *s)
{
    static const uint8_t kinds[] = {WIRE_PUSH,   WIRE_PUSH,  WIRE_PUSH, WIRE_PULL, WIRE_PUSHPULL, WIRE_PUT,
                                    WIRE_DELETE, WIRE_CLEAR, WIRE_STAT, WIRE_SCAN, WIRE_PROBE,    WIRE_PUSH};
    static const float vals[3] = {1, 2, 3};
    uint64_t keys[3];
    uint32_t lens[3] = {1, 1, 1};
    uint8_t bytes[VAN_HEAD], how = draw_u8(s);
    unsigned table = 1 + draw_below(s, TABLES), n = keys_draw(s, table, keys);
    uint8_t kind = kinds[draw_below(s, sizeof kinds)], body[REDUCTION_BODY_MAX];
    if (kind == WIRE_STAT && how & 128)
        kind = WIRE_REDUCE;
    if (kind == WIRE_DELETE && how & 128)
        kind = WIRE_TRANSFORM;
    bool again = how & 1 && c->number,
         keyed = (kind < WIRE_CLEAR && kind != WIRE_PROBE && kind != WIRE_SCAN) || kind == WIRE_TRANSFORM;
    bool pushes = kind == WIRE_PUSH || kind == WIRE_PUSHPULL || kind == WIRE_PUT;
    struct wire_head h = {.kind = kind,
                          .table = how & 2 ? table : 1 + draw_below(s, TABLES + 1),
                          .number = again ? c->number : ++c->number,
                          .view = w.views.number + (how & 4 ? draw_below(s, 3) - 1 : 0),
                          .ts = c->number};
    table = h.table;
    h.floor = h.number > 4 && how & 8 ? h.number - draw_below(s, 4) : 1;
    if (h.number - h.floor >= DATA_WINDOW)
        h.floor = h.number;
    h.count = keyed ? n : kind == WIRE_SCAN;
    h.flags = table == VAR && pushes ? WIRE_LENS : 0;
    h.probe.kind = kind == WIRE_PROBE ? WIRE_PUSH : 0;
    if (how & 16) { /* a field is not what it should be */
        uint32_t *fields[] = {&h.count, &h.columns.first, &h.columns.count, &h.table, &h.attempt, &h.slice};
        *fields[draw_below(s, sizeof fields / sizeof fields[0])] = (uint32_t)draw_number(s);
        h.flags ^= how & 32 ? draw_u8(s) & 15 : 0;
    }
    struct van_seg seg[VAN_SEGS] = {{0}};
    bool page = kind == WIRE_SCAN && how & 128;
    if (page) {
        h.count = 2;
        h.scan.most = draw_below(s, 4);
        keys[1] = how & 64 ? UINT64_MAX - draw_number(s) : draw_number(s);
        if (how & 8) { /* rows have one column */
            h.flags |= WIRE_COLUMNS;
            h.scan_columns = (struct wire_columns){.count = 1 + (how & 1)};
        }
    }
    if (h.count || keyed)
        seg[0] = (struct van_seg){.data = keys, .len = 8 * (keyed ? n : page ? 2 : kind == WIRE_SCAN)};
    if (how & 128 && (kind == WIRE_PUSH || kind == WIRE_PULL || kind == WIRE_PUSHPULL)) {
        h.flags |= WIRE_RANGE;
        seg[0].len = 8 + 8 * draw_below(s, 3);
        if (seg[0].len > 8)
            keys[1] = keys[2] = how & 64 ? 0x25 : draw_number(s); /* the words of bits */
    }
    if ((how & 0x70) == 0x70 && kind <= WIRE_PUSHPULL) { /* rows have one column */
        h.flags |= WIRE_COLUMNS;
        h.columns = (struct wire_columns){.count = 1};
    }
    if (h.flags &
        WIRE_LENS) /* others have none, whatever the flag says; what stands there is not the shard's */
        seg[1] = (struct van_seg){.data = pushes ? lens : lens + 3, .len = pushes ? 4 * n : 0};
    if (pushes)
        seg[2] = (struct van_seg){.data = (void *)(uintptr_t)vals, .len = 4 * n};
    if (kind == WIRE_REDUCE) {
        struct reduction what = {.function = (uint8_t)draw_below(s, PARAMO_REDUCE_FUNCTIONS),
                                 .begin = draw_number(s),
                                 .last = UINT64_MAX - draw_number(s)};
        what.two = what.function == PARAMO_REDUCE_DOT;
        what.other = what.two ? 1 + draw_below(s, TABLES + 1) : 0;
        what.most = what.function > PARAMO_REDUCE_DOT;
        if (how & 32)
            what = (struct reduction){
                .function = PARAMO_REDUCE_USER, .last = UINT64_MAX, .user = functions_draw(s)};
        reduction_encode(&what, body);
        body[draw_below(s, (uint32_t)reduction_body_bytes(&what))] ^= how & 64 ? draw_u8(s) : 0;
        seg[3] = (struct van_seg){.data = body, .len = reduction_body_bytes(&what)};
    }
    if (kind == WIRE_TRANSFORM) {
        struct transform what = {.function = (uint8_t)draw_below(s, PARAMO_TRANSFORM_FUNCTIONS),
                                 .a = draw_u8(s)};
        what.two = transform_takes_two(what.function);
        what.other = what.two ? 1 + draw_below(s, TABLES + 1) : 0;
        if (how & 32) {
            what.function = PARAMO_TRANSFORM_USER;
            what.user = functions_draw(s);
        }
        transform_encode(&what, body);
        body[draw_below(s, (uint32_t)transform_body_bytes(&what))] ^= how & 64 ? draw_u8(s) : 0;
        seg[3] = (struct van_seg){.data = body, .len = transform_body_bytes(&what)};
    }
    asks(c, &h, again);
    wire_head_encode(&h, bytes);
    (void)fakeconn_frame(c->fake, bytes, seg,
                         seg[3].len                          ? 4
                         : seg[2].len || h.flags & WIRE_LENS ? 3
                         : seg[1].len                        ? 2
                         : seg[0].len                        ? 1
                                                             : 0);
}

/* A push of a clock, or a pull. The same few clocks and keys, so that pushes meet. */
static void client_clocks(struct client *c, struct source *s)
{
    static const float vals[3] = {1, 2, 3};
    uint64_t keys[3];
    uint8_t bytes[VAN_HEAD], how = draw_u8(s);
    bool push = how & 3, again = how & 4 && how & 8 && c->number;
    unsigned n = keys_draw(s, AGGREGATED, keys);
    struct wire_head h = {.kind = push ? WIRE_PUSH : WIRE_PULL,
                          .flags = WIRE_CLOCKED,
                          .table = AGGREGATED,
                          .number = again ? c->number : ++c->number,
                          .floor = 1,
                          .view = w.views.number,
                          .count = n,
                          .clock = how >> 4 & 3,
                          .workers = push ? 1 + (how >> 6) : 0};
    if (h.number >= DATA_WINDOW)
        h.floor = h.number;
    if ((how & 0x3c) == 0x3c) {
        h.clock = draw_number(s);
        h.workers = (uint32_t)draw_number(s);
    }
    const struct van_seg seg[VAN_SEGS] = {
        {.data = keys, .len = 8 * n}, {0}, {.data = (void *)(uintptr_t)vals, .len = push ? 4 * n : 0}};
    asks(c, &h, again);
    wire_head_encode(&h, bytes);
    (void)fakeconn_frame(c->fake, bytes, seg, push ? 3 : 1);
}

/* FLOOR or BYE with any floor. */
static void client_floor(struct client *c, struct source *s)
{
    uint8_t how = draw_u8(s);
    struct wire_head h = {.kind = how & 1 ? WIRE_FLOOR : WIRE_BYE,
                          .floor = how & 2 ? draw_number(s) : c->number + (how & 4 ? 1 : 0)};
    (void)fakeconn_control_message(c->fake, &h, NULL, 0);
    c->number = h.floor > c->number ? h.floor : c->number;
}

/* ---- the member before, and the source of a migration ----------------------------------------------------
 */

static void before_connect(struct before *b, struct source *s)
{
    uint8_t how = draw_u8(s);
    if (fakeconn_alive(b->fake))
        fakeconn_break(b->fake, PARAMO_E_DISCONNECTED, "cut");
    b->server = how & 3;
    struct stream *stream = stream_of(b);
    stream->generation += how >> 2 & 1;
    if (how & 4)
        stream->seq = 0;
    if (how == 254) /* any generation: what it has had is not known then */
        stream->seq = UINT64_MAX / 2;
    struct hello hello = {.version_min = HELLO_VERSION_MIN,
                          .version_max = HELLO_VERSION_MAX,
                          .purpose = b->migrations ? HELLO_MIGRATION : HELLO_CHAIN,
                          .node = PARAMO_ID_SERVER(b->server),
                          .incarnation = INCARNATION + PARAMO_ID_SERVER(b->server) + (how == 255),
                          .app = how == 254 ? (uint32_t)draw_number(s) : stream->generation};
    b->fake = fakevan_conn_new(&w.world.van, w.world.lane);
    b->fake->conn.capabilities = CAPABILITY_COLUMNS | (how & 8 ? 0 : CAPABILITY_AGGREGATE);
    shard_accept(w.views.shard, &b->fake->conn, &hello);
}

static void before_sends(struct before *b, const struct wire_head *h, const struct van_seg seg[VAN_SEGS])
{
    uint8_t bytes[VAN_HEAD];
    unsigned nseg = VAN_SEGS;
    while (nseg && !seg[nseg - 1].len)
        nseg--;
    wire_head_encode(h, bytes);
    uint64_t *seq = &stream_of(b)->seq;
    *seq = h->ts > *seq && h->kind != WIRE_CHAIN_BEAT ? h->ts : *seq;
    (void)fakeconn_frame(b->fake, bytes, seg, nseg);
}

static void before_changes(struct before *b, struct source *s)
{
    static const float vals[3] = {1, 2, 3};
    uint64_t keys[3];
    uint32_t lens[3] = {1, 1, 1};
    uint8_t body[CHAIN_BODY_MAX], how = draw_u8(s);
    unsigned table = 1 + draw_below(s, TABLES), rank = draw_below(s, WORKERS), block = draw_below(s, BLOCKS);
    static const uint8_t kinds[] = {WIRE_PUSH, WIRE_PUSH, WIRE_PUT, WIRE_DELETE, WIRE_CLEAR};
    uint8_t kind = kinds[draw_below(s, sizeof kinds)];
    keys[0] = (uint64_t)(block * BLOCK_PARTITIONS + draw_below(s, 8) * 100)
              << (table == DENSE ? 0 : RING_PARTITION_SHIFT);
    struct chain_message m = {
        .what = how & 1 ? CHAIN_UPDATE : (uint16_t)(1 + draw_below(s, 3)),
        .seq = stream_of(b)->seq + 1 - (how >> 1 & 1) * draw_below(s, 2),
        .view = w.views.number,
        .origin = {.node = PARAMO_ID_SERVER(how & 4 ? draw_below(s, SERVERS) : b->server)},
        .order = ++b->order + (how & 8 ? draw_number(s) : 0),
        .sender = {.node = PARAMO_ID_WORKER(rank),
                   .customer = draw_below(s, 3),
                   .incarnation = INCARNATION + PARAMO_ID_WORKER(rank)}};
    if (m.what == CHAIN_TAKEOVER)
        m.from.node = PARAMO_ID_SERVER(draw_below(s, SERVERS));
    bool update = m.what == CHAIN_UPDATE;
    if (update)
        m.request = (struct wire_head){.kind = kind,
                                       .table = table,
                                       .number = 1 + draw_below(s, 200),
                                       .floor = 1,
                                       .count = kind != WIRE_CLEAR};
    bool pushes = update && (kind == WIRE_PUSH || kind == WIRE_PUT);
    if (table == VAR && pushes)
        m.request.flags = WIRE_LENS;
    for (unsigned a = 0; chain_has_partitions(&m) && a < BLOCK_PARTITIONS; a++)
        partition_set_add(m.partitions, block * BLOCK_PARTITIONS + a);
    uint32_t n = 1;
    if (update && kind == WIRE_PUSH && how & 32 && table != VAR) { /* columns of two rows */
        keys[1] = keys[0] + 1;
        m.request.count = n = 2;
        m.request.flags |= WIRE_COLUMNS;
        m.request.columns = (struct wire_columns){.first = how >> 6 & 1, .count = 1};
    }
    struct wire_head h;
    chain_head(&m, &h);
    struct van_seg seg[VAN_SEGS] = {{0}};
    if (update && kind != WIRE_CLEAR)
        seg[0] = (struct van_seg){.data = keys, .len = 8 * n};
    if (m.request.flags & WIRE_LENS)
        seg[1] = (struct van_seg){.data = lens, .len = 4};
    if (pushes)
        seg[2] = (struct van_seg){.data = (void *)(uintptr_t)vals, .len = 4 * n};
    seg[3] = (struct van_seg){.data = body, .len = chain_body_encode(&m, body)};
    if (how & 16)
        body[draw_below(s, CHAIN_BODY_MIN)] ^= draw_u8(s);
    before_sends(b, &h, seg);
}

/* Pushes of a clock as one change; the numbers of the pushes are few, so that some come twice. */
static void before_combines(struct before *b, struct source *s)
{
    uint8_t body[CHAIN_BODY_MAX], pushes[3 * CHAIN_PUSH_BYTES], packed[2 * PACKED_SUM_MAX], how = draw_u8(s);
    struct aggregate_sum sums[2] = {{.hi = draw_u8(s)}, {.lo = draw_number(s), .hi = draw_number(s)}};
    unsigned count = 1 + draw_below(s, 3), block = draw_below(s, BLOCKS);
    uint64_t keys[2] = {(uint64_t)(block * BLOCK_PARTITIONS + draw_below(s, 8) * 100)
                        << RING_PARTITION_SHIFT};
    keys[1] = keys[0] + 1;
    struct chain_message m = {
        .what = CHAIN_COMBINED,
        .seq = stream_of(b)->seq + 1,
        .view = w.views.number,
        .origin = {.node = PARAMO_ID_SERVER(how & 4 ? draw_below(s, SERVERS) : b->server)},
        .order = ++b->order,
        .request = {.kind = WIRE_PUSH,
                    .flags = WIRE_CLOCKED,
                    .table = (how & 0x30) == 0x30 ? SPARSE : AGGREGATED,
                    .count = 1 + (how & 1),
                    .clock = draw_number(s),
                    .workers = 1 + (how >> 6)}};
    for (unsigned i = 0; i < count; i++) {
        struct chain_push push = {.sender = {.node = PARAMO_ID_WORKER(draw_below(s, WORKERS))}, .floor = 1};
        push.sender.incarnation = INCARNATION + push.sender.node;
        push.number = 1 + draw_below(s, 4);
        chain_push_put(&push, pushes + i * CHAIN_PUSH_BYTES);
    }
    size_t bytes = packed_sums_put(sums, m.request.count, packed);
    if (how & 8) /* garbage in it */
        packed[draw_u8(s) % bytes] ^= draw_u8(s);
    struct wire_head h;
    chain_head(&m, &h);
    const struct van_seg seg[VAN_SEGS] = {{.data = keys, .len = 8 * (uint64_t)m.request.count},
                                          {.data = pushes, .len = count * CHAIN_PUSH_BYTES},
                                          {.data = packed, .len = bytes},
                                          {.data = body, .len = chain_body_encode(&m, body)}};
    before_sends(b, &h, seg);
}

static void before_beats(struct before *b, struct source *s)
{
    struct wire_head h;
    chain_beat_head(fakeworld_now(&w.world) - draw_below(s, 3) * ENV_SEC / 4 + 1, w.views.number, &h);
    before_sends(b, &h, (struct van_seg[VAN_SEGS]){{0}});
}

/* Rows of the move's partitions, as another shard would have them. */
static void rows_write(struct source *s, struct writer *payload, uint32_t *table)
{
    struct ckpt_block block;
    uint64_t key = (uint64_t)(w.views.migration.first +
                              draw_below(s, w.views.migration.partitions ? w.views.migration.partitions : 1))
                   << RING_PARTITION_SHIFT;
    float row[4] = {1, 0, 0, 0};
    struct ring_placement placement = {.kind = PARAMO_PLACE_UNIFORM};
    *table = SPARSE + draw_below(s, 2);
    CHECK(ckpt_rows_pack(*table, &placement, &key, NULL, row, 1, 4, payload, &block) == PARAMO_OK);
}

static void source_sends(struct before *b, struct source *s)
{
    struct writer payload = {0};
    uint8_t how = draw_u8(s);
    struct sender_note note = {
        .sender = {.node = PARAMO_ID_WORKER(0), .incarnation = INCARNATION + PARAMO_ID_WORKER(0)}};
    struct migration_message m = {
        .what = how & 7, .seq = stream_of(b)->seq + 1, .view = w.views.number, .id = w.views.migration.id};
    for (unsigned a = w.views.migration.first;
         a < (unsigned)w.views.migration.first + w.views.migration.partitions; a++)
        partition_set_add(note.partitions, a);
    switch (m.what) {
    case MIGRATION_STEP_BEGIN:
        m.first = w.views.migration.first, m.partitions = w.views.migration.partitions;
        break;
    case MIGRATION_STEP_ROWS:
        rows_write(s, &payload, &m.table);
        break;
    case MIGRATION_STEP_RECORDS: {
        struct sender_window clock = {
            .sender = {.node = PARAMO_ID_WORKER(draw_below(s, WORKERS)), .customer = draw_below(s, 3)}};
        clock.sender.incarnation = INCARNATION + clock.sender.node;
        dedup_init(&clock.dedup);
        dedup_raise(&clock.dedup, 1 + draw_u8(s));
        dedup_record(&clock.dedup, clock.dedup.floor + draw_u8(s));
        migration_records_encode(note.partitions, &clock, 1, &payload);
        break;
    }
    case MIGRATION_STEP_NOTES:
        note.sender.customer = draw_below(s, 3);
        note.number = 1 + draw_u8(s);
        sender_note_encode(&note, &payload);
        break;
    case MIGRATION_STEP_LOST:
        m.table = how & 128 ? (uint32_t)ALONE : 1 + draw_below(s, TABLES);
        partition_bits_encode(note.partitions, &payload);
        break;
    default:
        for (unsigned i = 0; i < w.views.migration.partitions && m.what == MIGRATION_STEP_LAST; i++)
            write_u64(&payload, b->order);
    }
    if (how & 8 && payload.len) /* garbage in it */
        payload.data[draw_u16(s) % payload.len] ^= draw_u8(s) | 1;
    if (how & 16 && how & 32)
        payload.len -= payload.len ? 1 + draw_u8(s) % payload.len : 0;
    struct wire_head h;
    migration_head(&m, &h);
    struct van_seg seg[VAN_SEGS] = {{.data = payload.data, .len = payload.len}};
    before_sends(b, &h, seg);
    writer_fini(&payload);
}

/* ---- the members after ----------------------------------------------------------------------------------
 */

static void behind_acks(struct behind *b, struct source *s)
{
    uint8_t how = draw_u8(s), beyond[4] = {0};
    struct wire_head h;
    if (!b->welcomed) {
        struct welcome welcome = {
            .version = HELLO_VERSION_MAX, .job = 7, .incarnation = INCARNATION + PARAMO_ID_SERVER(0)};
        if (how & 64) /* the server whose address it is */
            welcome.incarnation = INCARNATION + PARAMO_ID_SERVER(b->server);
        if (how & 128)
            welcome.capabilities = w.world.van.van.capabilities;
        struct writer body = {0};
        if (how == 255)
            reject_encode(PARAMO_E_REFUSED, "no", &body);
        else
            welcome_encode(&welcome, &body);
        h = (struct wire_head){.kind = how == 255 ? WIRE_REJECT : WIRE_WELCOME};
        b->welcomed = how != 255;
        (void)fakeconn_control_message(b->fake, &h, body.data, body.len);
        writer_fini(&body);
        return;
    }
    struct chain_ack ack = {.acked = how & 1 ? b->seq : b->acked + (b->seq > b->acked),
                            .received = b->seq,
                            .view = w.views.number - (how >> 1 & 1),
                            .clock = how & 4 ? b->clock : 0,
                            .again = how & 8};
    if (how & 16) { /* any numbers */
        ack.acked = draw_number(s);
        ack.received = draw_number(s);
    }
    if (how & 32 && ack.received > ack.acked) {
        beyond[0] = draw_u8(s);
        ack.beyond = beyond;
        ack.beyond_bytes = 1;
    }
    chain_ack_head(&ack, &h);
    if (how == 255)
        h = (struct wire_head){.kind = WIRE_CHAIN_REFUSED, .view = w.views.number};
    /* What is acknowledged beyond the first may be answered, too. */
    b->acked = (how & 48) ? UINT64_MAX : ack.acked > b->acked ? ack.acked : b->acked;
    (void)fakeconn_control_message(b->fake, &h, beyond, how == 255 ? 0 : ack.beyond_bytes);
}

static struct behind *behind_some(struct source *s)
{
    for (unsigned i = 0, at = draw_u8(s); i < w.behind_count; i++) {
        struct behind *b = &w.behind[w.behind_count - 1 - (at + i) % w.behind_count];
        if (fakeconn_alive(b->fake))
            return b;
    }
    return NULL;
}

/* ---- orders ----------------------------------------------------------------------------------------------
 */

static void order(struct source *s)
{
    static const uint32_t whats[] = {ORDER_MIGRATION_SOURCE, ORDER_MIGRATION_TARGET, ORDER_MIGRATION_PAUSE,
                                     ORDER_MIGRATION_END};
    uint8_t how = draw_u8(s);
    uint32_t what = whats[how & 3];
    if (how & 4 || !w.views.migration.id) { /* another migration */
        unsigned block = draw_below(s, BLOCKS), other = draw_below(s, SERVERS);
        bool gives = w.views.chains.level[0].owner[block * BLOCK_PARTITIONS] == SELF;
        unsigned from = gives ? SELF : w.views.chains.level[0].owner[block * BLOCK_PARTITIONS];
        unsigned to = gives ? other : SELF;
        int had = MIGRATION_NO_LEVEL;
        for (unsigned level = 0; level <= REPLICAS; level++)
            if (w.views.chains.level[level].owner[block * BLOCK_PARTITIONS] == to)
                had = (int)level;
        w.views.migration = (struct migration_order){.id = (w.views.number >> 32) << 32 | ++w.migration_id,
                                                     .first = (uint16_t)(block * BLOCK_PARTITIONS),
                                                     .partitions = 1 + draw_u8(s),
                                                     .from = {.node = PARAMO_ID_SERVER(from)},
                                                     .to = {.node = PARAMO_ID_SERVER(to)},
                                                     .had = (uint8_t)had,
                                                     .kib_per_s = how & 8 ? 1 : 0};
    }
    struct migration_order m = w.views.migration;
    m.takes_over = how & 16;
    m.committed = how & 32;
    if (how & 64 && how & 128)
        m.id = draw_number(s) + 1;
    if (w.asked_count == OPS_MAX)
        return;
    if (what == ORDER_MIGRATION_END && m.committed && m.id == w.views.migration.id) {
        shard_views_commit(&w.views, m.takes_over);
        shard_views_next(&w.views, false);
    }
    shard_migration_order(w.views.shard, what, &m, moved, &w.asked[w.asked_count++]);
}

/* ---- the play --------------------------------------------------------------------------------------------
 */

static void step(struct source *s)
{
    uint8_t op = draw_u8(s);
    struct client *c = &w.clients[op >> 5 & 3 ? (op >> 5) % CLIENTS : 0];
    struct before *b = &w.before[(op >> 5) % 3];
    struct behind *next;
    switch (op % 16) {
    case 0:
    case 1:
    case 2:
    case 3:
        if (!fakeconn_alive(c->fake))
            client_connect(c, s);
        if (fakeconn_alive(c->fake))
            client_asks(c, s);
        break;
    case 4:
        client_connect(c, s);
        break;
    case 5: {
        struct wire_head bye = {.kind = WIRE_BYE};
        if (fakeconn_alive(c->fake) && op & 16 && op & 128)
            client_floor(c, s);
        else if (fakeconn_alive(c->fake) && op & 16)
            client_clocks(c, s);
        else if (fakeconn_alive(c->fake))
            (void)fakeconn_control_message(c->fake, &bye, NULL, 0);
        break;
    }
    case 6:
        before_connect(b, s);
        break;
    case 7:
    case 8:
        if (!fakeconn_alive(b->fake))
            before_connect(b, s);
        if (fakeconn_alive(b->fake) && b->migrations && op & 64)
            source_sends(b, s);
        else if (fakeconn_alive(b->fake))
            before_changes(b, s);
        break;
    case 9:
        if (fakeconn_alive(b->fake) && b->migrations)
            source_sends(b, s);
        else if (fakeconn_alive(b->fake) && op & 16)
            before_combines(b, s);
        else if (fakeconn_alive(b->fake))
            before_beats(b, s);
        break;
    case 10:
    case 11:
        if ((next = behind_some(s)))
            behind_acks(next, s);
        break;
    case 12:
        order(s);
        break;
    case 13:
        if (op & 32)
            shard_views_deaths(&w.views, s);
        else
            shard_views_draw(&w.views, draw_below(s, BLOCKS), draw_u8(s));
        shard_views_next(&w.views, op & 64);
        break;
    case 14:
        if (op & 16) {
            w.world.van.refuse = op & 32;
        } else if ((next = behind_some(s))) {
            if (op & 64)
                next->fake->full = op & 32;
            else
                fakeconn_break(next->fake, PARAMO_E_DISCONNECTED, "cut");
        }
        break;
    default:
        if (op & 64 && (next = behind_some(s)))
            next->acked = UINT64_MAX, (void)fakeconn_raw(next->fake, s);
        else if (op & 128 && fakeconn_alive(b->fake))
            stream_of(b)->seq = UINT64_MAX / 2, (void)fakeconn_raw(b->fake, s);
        else if (fakeconn_alive(c->fake))
            (void)fakeconn_raw(c->fake, s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    harness_quiet();
    memset(&w, 0, sizeof w);
    fakeworld_open(&w.world);
    w.world.van.sent = sent;
    w.world.van.connected = connected;
    for (unsigned i = 0; i < CLIENTS; i++)
        w.clients[i].rank = i % WORKERS, w.clients[i].customer = i / WORKERS;
    w.before[2].migrations = true;
    w.world.van.van.capabilities = CAPABILITY_COLUMNS | CAPABILITY_AGGREGATE;
    uint8_t more =
        size ? data[size - 1] : 0; /* some shards take small steps, with other events between them */
    struct shard_config config = {.lane = w.world.lane,
                                  .scan_keys = more % 8 > 5 ? 4 : 0,
                                  .turn_records = more % 8 == 7,
                                  .incarnation = INCARNATION + PARAMO_ID_SERVER(SELF),
                                  .frame_bytes = FRAME_LIMIT,
                                  .van = &w.world.van.van,
                                  .token = "t",
                                  .failed = failed};
    CHECK(shard_create(&config, &w.views.shard) == PARAMO_OK);
    w.views.number = UINT64_C(1) << 32;
    w.views.chains.replicas = REPLICAS;
    memset(w.views.old.level, 0xff, sizeof w.views.old.level);
    memset(w.views.chains.level, 0xff, sizeof w.views.chains.level);
    for (unsigned block = 0; block < BLOCKS; block++)
        shard_views_draw(&w.views, block, (block + SELF) % SERVERS);
    fakeworld_enter(&w.world);
    shard_views_next(&w.views, false);
    fakeworld_leave(&w.world);
    for (unsigned n = 0; s.left && n < OPS_MAX && !w.failed; n++) {
        fakeworld_enter(&w.world);
        step(&s);
        fakeworld_leave(&w.world);
        unsigned pass = draw_below(&s, 8);
        if (pass > 4)
            fakeworld_pass(&w.world, pass == 7 ? draw_u8(&s) * 20 : 1);
    }
    fakeworld_enter(&w.world);
    shard_close(w.views.shard);
    fakeworld_leave(&w.world);
    for (unsigned i = 0; i < w.asked_count; i++)
        CHECK(w.asked[i].answers == 1);
    fakeworld_pass(&w.world, 1000);
    view_unref(w.views.view);
    fakeworld_close(&w.world);
    return 0;
}
