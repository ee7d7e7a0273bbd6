#include "server/support_fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table/table_options.h"

static void must(paramo_err err)
{
    if (err) {
        fprintf(stderr, "fake: %s\n", err_text());
        abort();
    }
}

static paramo_err fake_van_send(struct van_conn *conn, struct van_frame *frame)
{
    struct fake_conn *c = (struct fake_conn *)conn;
    if (c->full)
        return PARAMO_E_AGAIN;
    if (c->count == FAKE_SENT_MAX)
        abort();
    struct fake_sent *s = &c->sent[c->count++];
    memset(s, 0, sizeof *s);
    s->class = frame->class;
    if (frame->class != VAN_CONTROL)
        must(wire_head_decode(frame->head, &s->head));
    s->vals_bytes = data_seg_len(frame->seg, frame->nseg, WIRE_SEG_VALS);
    if (s->vals_bytes && s->vals_bytes <= sizeof s->vals)
        memcpy(s->vals, frame->seg[WIRE_SEG_VALS].data, s->vals_bytes);
    size_t body = data_seg_len(frame->seg, frame->nseg, WIRE_SEG_BODY);
    if (body && body < sizeof s->text)
        memcpy(s->text, frame->seg[WIRE_SEG_BODY].data, body);
    frame->done(frame, PARAMO_OK);
    return PARAMO_OK;
}

static void fake_van_close(struct van_conn *conn, bool flush)
{
    (void)flush;
    ((struct fake_conn *)conn)->closed = true;
}

static const struct van_ops fake_ops = {.name = "fake", .send = fake_van_send, .close = fake_van_close};

void fake_view(struct fake *f)
{
    struct view *v = calloc(1, sizeof *v);
    atomic_init(&v->refs, 1);
    v->job = 7;
    v->number = ++f->number;
    v->nodes = calloc(4, sizeof *v->nodes);
    v->shards = calloc(2, sizeof *v->shards);
    v->tables = calloc(4 + f->more, sizeof *v->tables);
    v->nodes_count = 4;
    for (unsigned i = 0; i < 4; i++) { /* servers 8 and 10, workers 9 and 11 */
        struct view_node *n = &v->nodes[i];
        n->id = 8 + i;
        n->role = i % 2 ? PARAMO_ROLE_WORKER : PARAMO_ROLE_SERVER;
        n->incarnation = 100 + i;
        n->alive = !(i == 1 && f->worker_dead);
        n->recovered = f->recovered;
    }
    v->shards_count = 2;
    v->shards[0] = (struct view_shard){.node = 8, .partitions_changed = f->partitions_changed};
    v->shards[1] = (struct view_shard){.node = 10, .partitions_changed = f->partitions_changed};
    for (unsigned a = 0; a < RING_PARTITIONS; a++) {
        v->chains.level[0].owner[a] = a < f->foreign;
        v->owner_gone[a] = f->died[a >= RING_PARTITIONS / 2];
    }
    v->chains.replicas = f->replicas;
    for (unsigned l = 1; l <= f->replicas; l++)
        for (unsigned a = 0; a < RING_PARTITIONS; a++)
            v->chains.level[l].owner[a] = RING_NONE;
    for (unsigned t = 0; t < f->tables + f->more; t++) {
        v->tables[t].id = t + 1;
        v->tables[t].since = t < f->tables ? f->since[t] : 0;
        v->tables[t].options = f->options[t < f->tables ? t : t % 2];
        v->tables[t].options.placement =
            v->tables[t].options.kind == PARAMO_TABLE_DENSE ? PARAMO_PLACE_DENSE : PARAMO_PLACE_UNIFORM;
        (void)snprintf(v->tables[t].name, sizeof v->tables[t].name, "t%u", t + 1);
    }
    v->tables_count = f->tables + f->more;
    view_unref(f->view);
    f->view = v;
    shard_set_view(f->shard, v);
}

void fake_init(struct fake *f, shard_handler handler, void *arg)
{
    memset(f, 0, sizeof *f);
    must(sim_create(1, &f->sim));
    must(lane_create(sim_env(f->sim), "shard", 0, &f->lane));
    must(van_init(&f->van, &fake_ops, sim_env(f->sim)));
    f->tables = 3;
    for (unsigned t = 0; t < f->tables; t++)
        table_options_default(&f->options[t]);
    f->options[0].kind = PARAMO_TABLE_SPARSE;
    f->options[1].kind = PARAMO_TABLE_DENSE;
    f->options[1].rows = RING_PARTITIONS;
    f->options[2].kind = PARAMO_TABLE_USER;
    struct shard_config config = {.lane = f->lane,
                                  .node = 8,
                                  .incarnation = 100,
                                  .frame_bytes = 1 << 20,
                                  .handler = handler,
                                  .arg = arg};
    must(shard_create(&config, &f->shard));
    if (!lane_enter(f->lane))
        abort();
}

void fake_fini(struct fake *f)
{
    if (f->shard)
        shard_close(f->shard);
    lane_leave(f->lane);
    lane_destroy(f->lane);
    van_fini(&f->van);
    view_unref(f->view);
    sim_destroy(f->sim);
}

struct fake_conn *fake_connect(struct fake *f, uint32_t worker_rank)
{
    struct fake_conn *c = calloc(1, sizeof *c);
    van_conn_init(&c->conn, &f->van, f->lane);
    struct hello hello = {.purpose = HELLO_DATA,
                          .version_max = HELLO_VERSION_MAX,
                          .node = PARAMO_ID_WORKER(worker_rank),
                          .incarnation = 101 + 2 * worker_rank,
                          .customer = 3};
    shard_accept(f->shard, &c->conn, &hello);
    c->count = 0; /* WELCOME */
    return c;
}

void fake_disconnect(struct fake_conn *c)
{
    if (!c->closed)
        c->conn.user_ops->closed(c->conn.user, &c->conn, PARAMO_E_DISCONNECTED, "cut");
    free(c);
}

struct wire_head fake_head(const struct fake *f, unsigned kind, uint32_t table, uint64_t number)
{
    return (struct wire_head){.kind = (uint8_t)kind,
                              .table = table,
                              .number = number,
                              .floor = 1,
                              .ts = number,
                              .view = f->number,
                              .count = 1};
}

paramo_err fake_send(struct fake_conn *c, const struct wire_head *head, const uint64_t *keys,
                     const float *vals)
{
    uint8_t bytes[VAN_HEAD];
    wire_head_encode(head, bytes);
    bool has_vals = head->kind == WIRE_PUSH || head->kind == WIRE_PUSHPULL || head->kind == WIRE_PUT;
    struct van_seg seg[VAN_SEGS] = {{0}};
    seg[WIRE_SEG_KEYS] = (struct van_seg){.data = (void *)(uintptr_t)keys, .len = 8 * (uint64_t)head->count};
    seg[WIRE_SEG_VALS] =
        (struct van_seg){.data = (void *)(uintptr_t)vals, .len = has_vals ? 4 * head->count : 0};
    unsigned nseg = has_vals ? 3 : head->count ? 1 : 0;
    return van_deliver(&c->conn, bytes, seg, nseg, NULL, 7);
}

const struct fake_sent *fake_last(struct fake_conn *c)
{
    if (!c->count)
        abort();
    return &c->sent[c->count - 1];
}

static void nothing(struct sim_event *event)
{
    (void)event;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

void fake_pass(struct fake *f, uint64_t ns)
{
    struct sim_event marker = {.fire = nothing}; /* so that the clock comes to this moment */
    must(sim_schedule(f->sim, &marker, sim_now(f->sim) + ns));
    lane_leave(f->lane);
    (void)sim_run(f->sim, never, NULL, marker.at);
    if (!lane_enter(f->lane))
        abort();
}
