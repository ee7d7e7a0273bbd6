#include "fakevan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fakeconn *fake_of(struct van_conn *conn)
{
    return (struct fakeconn *)conn;
}

/* Reads every byte, so that a sanitizer sees what is not there any more. */
static void touch(const struct van_frame *frame)
{
    volatile uint8_t sum = 0;
    for (unsigned i = 0; i < frame->nseg; i++)
        for (uint64_t at = 0; at < frame->seg[i].len; at++)
            sum = (uint8_t)(sum + ((const uint8_t *)frame->seg[i].data)[at]);
}

static void give_back(struct fakeconn *c, paramo_err status)
{
    for (struct qnode *node; (node = queue_pop(&c->out));) {
        struct van_frame *frame = container_of(node, struct van_frame, node);
        touch(frame);
        frame->done(frame, status);
    }
}

static paramo_err fake_connect(struct van *base, struct lane *lane, const char *address,
                               const struct van_user *ops, void *user, struct van_conn **conn)
{
    struct fakevan *van = (struct fakevan *)base;
    if (van->refuse)
        return err_set(PARAMO_E_CONNECT, "%s: refused", address);
    struct fakeconn *c = fakevan_conn_new(van, lane);
    (void)snprintf(c->conn.peer, sizeof c->conn.peer, "%s", address);
    van_set_user(&c->conn, ops, user);
    *conn = &c->conn;
    if (van->connected)
        van->connected(van->arg, c);
    return PARAMO_OK;
}

static paramo_err fake_listen(struct van *base, struct lane *lane, const char *address,
                              void (*accept)(void *arg, struct van_conn *conn), void *arg,
                              struct van_listener **listener)
{
    struct fakevan *van = (struct fakevan *)base;
    size_t len = strlen(address);
    CHECK(!van->accept && len < sizeof van->listener.address);
    van->listener.van = base;
    memcpy(van->listener.address, address, len + 1);
    van->listener_lane = lane;
    van->accept = accept;
    van->accept_arg = arg;
    *listener = &van->listener;
    return PARAMO_OK;
}

static void fake_listener_close(struct van_listener *listener)
{
    ((struct fakevan *)listener->van)->accept = NULL;
}

static paramo_err fake_send(struct van_conn *conn, struct van_frame *frame)
{
    struct fakeconn *c = fake_of(conn);
    CHECK(!c->closed);
    CHECK(frame->nseg <= VAN_SEGS && frame->class < VAN_CLASSES && frame->done);
    if (c->broken)
        return err_set(PARAMO_E_DISCONNECTED, "gone");
    if (c->full) {
        c->refused = true;
        return PARAMO_E_AGAIN;
    }
    touch(frame);
    queue_push(&c->out, &frame->node);
    c->sent++;
    if (c->van->sent)
        c->van->sent(c->van->arg, c, frame);
    return PARAMO_OK;
}

static void fake_withdraw(struct van_conn *conn, struct van_frame *frame)
{
    struct fakeconn *c = fake_of(conn);
    struct queue old = c->out;
    bool there = false;
    c->out = (struct queue){0};
    for (struct qnode *node; (node = queue_pop(&old));) {
        if (node == &frame->node)
            there = true;
        else
            queue_push(&c->out, node);
    }
    if (there)
        frame->done(frame, PARAMO_E_CANCELLED);
}

static void fake_displace(struct van_conn *conn, const void *begin, size_t len)
{
    struct fakeconn *c = fake_of(conn);
    for (unsigned i = 0; c->coming && i < c->nseg; i++)
        if (c->dst[i] && (uintptr_t)c->dst[i] - (uintptr_t)begin < len)
            c->dst[i] = VAN_SINK;
}

static void coming_end(struct fakeconn *c)
{
    for (unsigned i = 0; c->coming && i < c->nseg; i++)
        free(c->bytes[i]);
    c->coming = false;
}

static void fake_close(struct van_conn *conn, bool flush)
{
    struct fakeconn *c = fake_of(conn);
    CHECK(!c->closed);
    c->closed = true;
    coming_end(c);
    if (!flush)
        give_back(c, PARAMO_E_CLOSED);
}

static const struct van_ops fake_ops = {.name = "fake",
                                        .connect = fake_connect,
                                        .listen = fake_listen,
                                        .listener_close = fake_listener_close,
                                        .send = fake_send,
                                        .withdraw = fake_withdraw,
                                        .displace = fake_displace,
                                        .close = fake_close};

void fakevan_init(struct fakevan *van, struct env *env)
{
    *van = (struct fakevan){0};
    CHECK(van_init(&van->van, &fake_ops, env) == PARAMO_OK);
}

void fakevan_fini(struct fakevan *van)
{
    CHECK(!van->accept);
    for (struct fakeconn *c; (c = van->conns);) {
        van->conns = c->next;
        CHECK(c->closed);
        give_back(c, PARAMO_OK);
        free(c);
    }
    van_fini(&van->van);
}

struct fakeconn *fakevan_conn_new(struct fakevan *van, struct lane *lane)
{
    struct fakeconn *c = calloc(1, sizeof *c);
    CHECK(c);
    van_conn_init(&c->conn, &van->van, lane);
    memcpy(c->conn.peer, "peer", 5);
    c->van = van;
    c->next = van->conns;
    van->conns = c;
    return c;
}

struct fakeconn *fakevan_unauth(struct fakevan *van)
{
    if (!van->accept)
        return NULL;
    struct fakeconn *c = fakevan_conn_new(van, van->listener_lane);
    van->accept(van->accept_arg, &c->conn);
    CHECK(c->closed || c->conn.user_ops);
    return c;
}

void fakevan_round(struct fakevan *van)
{
    for (struct fakeconn *c = van->conns; c; c = c->next) {
        if (!c->full)
            give_back(c, PARAMO_OK);
        if (!c->full && c->refused && fakeconn_alive(c)) {
            c->refused = false;
            if (c->conn.user_ops->writable)
                c->conn.user_ops->writable(c->conn.user, &c->conn);
        }
    }
}

bool fakeconn_begin(struct fakeconn *c, const uint8_t head[VAN_HEAD], const struct van_seg *seg,
                    unsigned nseg)
{
    CHECK(fakeconn_alive(c) && !c->coming);
    paramo_err err = van_frame_check(seg, nseg, c->conn.limits.frame_bytes);
    uint64_t len[VAN_SEGS] = {0};
    for (unsigned i = 0; i < nseg; i++)
        len[i] = seg[i].len;
    if (!err)
        err = van_ask_place(&c->conn, head, len, nseg, c->dst);
    if (err) {
        fakeconn_break(c, err, err_text());
        return false;
    }
    memcpy(c->head, head, VAN_HEAD);
    memcpy(c->len, len, sizeof len);
    c->nseg = nseg;
    for (unsigned i = 0; i < nseg; i++) {
        c->bytes[i] = harness_alloc(len[i]);
        if (len[i])
            memcpy(c->bytes[i], seg[i].data, len[i]);
        if (c->dst[i] != VAN_POOL && c->dst[i] != VAN_SINK) /* the first half is written already */
            memcpy(c->dst[i], c->bytes[i], len[i] / 2);
    }
    c->coming = true;
    return true;
}

bool fakeconn_finish(struct fakeconn *c)
{
    CHECK(fakeconn_alive(c) && c->coming);
    struct van_seg seg[VAN_SEGS] = {{0}};
    uint8_t *bytes[VAN_SEGS], head[VAN_HEAD];
    unsigned borrowed = 0, nseg = c->nseg;
    memcpy(bytes, c->bytes, sizeof bytes);
    memcpy(head, c->head, VAN_HEAD);
    for (unsigned i = 0; i < nseg; i++) {
        seg[i].len = c->len[i];
        if (c->dst[i] == VAN_POOL) {
            seg[i].data = bytes[i];
            borrowed |= 1u << i;
        } else if (c->dst[i] != VAN_SINK) {
            memcpy(c->dst[i], bytes[i], c->len[i]);
            seg[i].data = c->dst[i];
        }
    }
    c->coming = false;
    paramo_err err = van_deliver(&c->conn, head, seg, nseg, NULL, borrowed);
    for (unsigned i = 0; i < nseg; i++)
        free(bytes[i]);
    if (err && !c->closed)
        fakeconn_break(c, err, err_text());
    return fakeconn_alive(c);
}

bool fakeconn_frame(struct fakeconn *c, const uint8_t head[VAN_HEAD], const struct van_seg *seg,
                    unsigned nseg)
{
    return fakeconn_begin(c, head, seg, nseg) && fakeconn_finish(c);
}

void fakeconn_break(struct fakeconn *c, paramo_err why, const char *text)
{
    char copy[ERR_TEXT_MAX];
    size_t len = strnlen(text, sizeof copy - 1);
    memcpy(copy, text, len);
    copy[len] = '\0';
    CHECK(fakeconn_alive(c));
    coming_end(c);
    c->broken = true;
    give_back(c, why);
    if (!c->closed)
        c->conn.user_ops->closed(c->conn.user, &c->conn, why, copy);
}

bool fakeconn_raw(struct fakeconn *c, struct source *s)
{
    uint8_t head[VAN_HEAD] = {0}, *bytes[VAN_SEGS];
    struct van_seg seg[VAN_SEGS];
    size_t most = draw_u8(s) & 1 ? VAN_HEAD - 16 : VAN_HEAD; /* spare fields stay zero, mostly */
    most = most < s->left ? most : s->left;
    memcpy(head, s->at, most);
    s->at += most;
    s->left -= most;
    unsigned nseg = draw_below(s, VAN_SEGS + 1);
    for (unsigned i = 0; i < nseg; i++) {
        size_t got;
        bytes[i] = draw_bytes(s, draw_u8(s), &got);
        seg[i] = (struct van_seg){.data = bytes[i], .len = got};
    }
    bool alive = fakeconn_frame(c, head, seg, nseg);
    for (unsigned i = 0; i < nseg; i++)
        free(bytes[i]);
    return alive;
}

bool fakeconn_control_message(struct fakeconn *c, const struct wire_head *head, const void *body, size_t len)
{
    uint8_t bytes[VAN_HEAD];
    struct van_seg seg = {.data = (void *)(uintptr_t)body, .len = len};
    wire_head_encode(head, bytes);
    return fakeconn_frame(c, bytes, &seg, len ? 1 : 0);
}

/* ---- the world ---- */

void fakeworld_open(struct fakeworld *w)
{
    harness_quiet();
    CHECK(sim_create(1, &w->sim) == PARAMO_OK);
    CHECK(lane_create(sim_env(w->sim), "fuzz", 0, &w->lane) == PARAMO_OK);
    fakevan_init(&w->van, sim_env(w->sim));
}

void fakeworld_close(struct fakeworld *w)
{
    lane_destroy(w->lane);
    fakevan_fini(&w->van);
    sim_destroy(w->sim);
}

void fakeworld_enter(struct fakeworld *w)
{
    CHECK(lane_enter(w->lane));
}

void fakeworld_leave(struct fakeworld *w)
{
    lane_leave(w->lane);
}

uint64_t fakeworld_now(struct fakeworld *w)
{
    return sim_now(w->sim);
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void nothing(struct sim_event *event)
{
    (void)event;
}

void fakeworld_pass(struct fakeworld *w, uint64_t ms)
{
    /* A marker, so that the clock comes to this moment though nothing else happens then. */
    struct sim_event marker = {.fire = nothing};
    fakeworld_enter(w);
    fakevan_round(&w->van);
    fakeworld_leave(w);
    CHECK(sim_schedule(w->sim, &marker, sim_now(w->sim) + ms * ENV_MS) == PARAMO_OK);
    (void)sim_run(w->sim, never, NULL, marker.at);
    sim_cancel(w->sim, &marker);
}
