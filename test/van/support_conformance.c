/* The tests of the transport contract. */
#include <stdio.h>
#include <stdlib.h>

#include "van/conformance.h"

#pragma weak conf_van /* as in support_harness.c */

static void pair(struct conf *c)
{
    conf_listen(c);
    conf_connect(c, 0);
    conf_wait(c->lane[1], &c->accepted, 1);
    if (conf_van.paired && !c->moving)
        conf_van.paired(c);
}

static unsigned all_done(const struct peer *peer)
{
    return peer->done_ok + peer->done_bad;
}

/* ---- what travels arrives ------------------------------------------------------------------------------ */

static const uint64_t lengths[] = {0,    1,    7,    8,     9,     100,   4000,  4096,
                                   8060, 8064, 8065, 65408, 65536, 70001, 200000};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static unsigned shape(unsigned id, uint64_t len[VAN_SEGS])
{
    unsigned nseg = id % (VAN_SEGS + 1);
    for (unsigned i = 0; i < VAN_SEGS; i++)
        len[i] = lengths[(id / 5 + i * (1 + id / 75)) % LENGTHS];
    return nseg;
}

struct shapes {
    struct conf *c;
    unsigned from, to;
};

static void send_shapes(void *arg)
{
    struct shapes *s = arg;
    uint64_t len[VAN_SEGS];
    for (unsigned id = s->from; id < s->to; id++) {
        unsigned nseg = shape(id, len);
        conf_send(&s->c->client[0], conf_frame(&s->c->client[0], id, nseg, len));
    }
}

static paramo_err shape_frame(struct peer *peer, const uint8_t *head, const struct van_seg *seg,
                              unsigned nseg)
{
    uint64_t len[VAN_SEGS];
    assert_int_equal(conf_check(head, seg, nseg), peer->next_id);
    assert_int_equal(nseg, shape((unsigned)peer->next_id, len));
    for (unsigned i = 0; i < nseg; i++)
        assert_int_equal(seg[i].len, len[i]);
    peer->next_id++;
    return PARAMO_OK;
}

static void room_for(struct peer *peer, size_t bytes)
{
    peer->dst_bytes = bytes;
    for (unsigned i = 0; i < VAN_SEGS; i++) {
        peer->dst[i] = malloc(bytes);
        assert_non_null(peer->dst[i]);
    }
}

void conf_test_shapes(void **state)
{
    (void)state;
    for (int mode = 0; mode < 4; mode++) {
        struct conf *c = conf_open();
        pair(c);
        c->server[0].place_mode = mode;
        c->server[0].on_frame = shape_frame;
        room_for(&c->server[0], 200000);
        /* alone, in twos, then in bursts */
        unsigned at = 0;
        for (unsigned burst = 1; at < 300; burst = at < 80 ? burst % 2 + 1 : 22) {
            conf_on(c->lane[0], send_shapes, &(struct shapes){c, at, at + burst});
            at += burst;
            if (at < 80)
                conf_wait(c->lane[1], &c->server[0].frames, at);
        }
        conf_wait(c->lane[1], &c->server[0].frames, at);
        conf_wait(c->lane[0], &c->client[0].done_ok, at);
        assert_int_equal(c->client[0].conn->counters.frames_sent, at);
        assert_int_equal(c->server[0].conn->counters.frames_received, at);
        assert_int_equal(c->client[0].conn->counters.bytes_sent > 0, 1);
        conf_close(c);
    }
}

/* One block of memory is sent again and again, two frames at a time, each sent again by its own `done`. */
static struct {
    struct van_frame frame[2];
    struct peer *peer;
    unsigned left;
} large;

static void large_done(struct van_frame *frame, paramo_err status)
{
    assert_int_equal(status, PARAMO_OK);
    atomic_fetch_add(&large.peer->done_ok, 1);
    lane_notify(large.peer->conn->lane);
    if (large.left) {
        large.left--;
        conf_send(large.peer, frame);
    }
}

static paramo_err large_frame(struct peer *peer, const uint8_t *head, const struct van_seg *seg,
                              unsigned nseg)
{
    assert_int_equal(conf_check(head, seg, nseg), 0);
    assert_int_equal(seg[1].len, conf_van.large_bytes);
    if (peer->frames + 1 == conf_van.large_count * 3 / 4)
        peer->place_mode = 0;
    return PARAMO_OK;
}

static void send_large(void *arg)
{
    const struct van_frame *made = arg;
    for (unsigned i = 0; i < 2; i++) {
        large.frame[i] = *made;
        large.frame[i].done = large_done;
        conf_send(large.peer, &large.frame[i]);
    }
}

void conf_test_large(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    pair(c);
    c->server[0].place_mode = 1;
    c->server[0].on_frame = large_frame;
    room_for(&c->server[0], conf_van.large_bytes);
    large.peer = &c->client[0];
    large.left = conf_van.large_count - 2;
    struct van_frame *made = conf_frame(&c->client[1], 0, 2, (uint64_t[]){1000, conf_van.large_bytes});
    conf_on(c->lane[0], send_large, made);
    conf_wait(c->lane[1], &c->server[0].frames, conf_van.large_count);
    conf_wait(c->lane[0], &c->client[0].done_ok, conf_van.large_count);
    assert_true(c->client[0].conn->counters.bytes_sent > conf_van.large_count * conf_van.large_bytes);
    made->done(made, PARAMO_OK);
    conf_close(c);
}

static void send_one(void *arg)
{
    struct shapes *s = arg;
    conf_send(&s->c->client[0], conf_frame(&s->c->client[0], 0, 1, (uint64_t[]){s->from}));
}

void conf_test_too_large(void **state)
{
    (void)state;
    for (unsigned over = 0; over < 2; over++) {
        struct conf *c = conf_open();
        c->frame_limit = 4096;
        pair(c);
        conf_on(c->lane[0], send_one, &(struct shapes){.c = c, .from = 4096 + over});
        if (over) {
            conf_wait(c->lane[1], &c->server[0].closed, 1);
            assert_int_equal(c->server[0].why, PARAMO_E_TOO_LARGE);
            assert_non_null(strstr(c->server[0].text, c->server[0].conn->peer));
            assert_int_equal(c->server[0].frames, 0);
            conf_wait(c->lane[0], &c->client[0].closed, 1);
        } else {
            conf_wait(c->lane[1], &c->server[0].frames, 1);
        }
        conf_close(c);
    }
}

/* ---- bounds -------------------------------------------------------------------------------------------- */

struct pressure {
    struct conf *c;
    unsigned sent, want;
    bool refused;
};

enum { PRESSURE_LEN = 50000 };

/* Sends until it is refused. */
static void send_until_full(void *arg)
{
    struct pressure *p = arg;
    struct peer *peer = &p->c->client[0];
    p->refused = false;
    while (p->sent < p->want && !p->refused) {
        struct van_frame *frame = conf_frame(peer, p->sent, 1, (uint64_t[]){PRESSURE_LEN});
        paramo_err err = van_send(peer->conn, frame);
        if (err == PARAMO_E_AGAIN) {
            p->refused = true;
            atomic_fetch_sub(&peer->done_bad, 1);
            frame->done(frame, err); /* ours again: this only frees it */
        } else {
            assert_int_equal(err, PARAMO_OK);
            p->sent++;
        }
    }
}

static void shrink_queue(void *arg)
{
    struct peer *peer = arg;
    peer->conn->limits.queue_bytes[VAN_REQUEST] = 1 << 20;
}

void conf_test_back_pressure(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    struct pressure p = {.c = c, .want = 400};
    struct peer *peer = &c->client[0];
    pair(c);
    conf_on(c->lane[0], shrink_queue, peer);
    unsigned refusals = 0;
    while (p.sent < p.want) {
        unsigned writable = atomic_load(&peer->writable);
        conf_on(c->lane[0], send_until_full, &p);
        if (p.refused) {
            refusals++;
            conf_wait(c->lane[0], &peer->writable, writable + 1);
        }
        /* what the van holds stays within the bound */
        assert_true(p.sent - peer->done_ok <= (1 << 20) / PRESSURE_LEN + 1);
    }
    assert_true(refusals >= 400 * PRESSURE_LEN / (2 << 20));
    conf_wait(c->lane[1], &c->server[0].frames, p.want);
    conf_close(c);
}

/* ---- many ends ----------------------------------------------------------------------------------------- */

enum { MANY = 200, MANY_FRAMES = 10 };

static paramo_err echo_frame(struct peer *peer, const uint8_t *head, const struct van_seg *seg, unsigned nseg)
{
    uint64_t len[VAN_SEGS];
    uint64_t id = conf_check(head, seg, nseg);
    for (unsigned i = 0; i < nseg; i++)
        len[i] = seg[i].len;
    struct van_frame *frame = conf_frame(peer, id, nseg, len);
    frame->class = VAN_ANSWER;
    conf_send(peer, frame);
    return PARAMO_OK;
}

static void send_from_all(void *arg)
{
    struct shapes *s = arg;
    for (unsigned i = 0; i < MANY; i++)
        conf_send(&s->c->client[i], conf_frame(&s->c->client[i], s->from, 2, (uint64_t[]){i, 10 * i}));
}

static void echo_on_accept(struct peer *peer)
{
    peer->on_frame = echo_frame;
}

void conf_test_many_peers(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    c->on_accept = echo_on_accept;
    conf_listen(c);
    for (unsigned i = 0; i < MANY; i++)
        conf_connect(c, i);
    for (unsigned k = 0; k < MANY_FRAMES; k++)
        conf_on(c->lane[0], send_from_all, &(struct shapes){.c = c, .from = k});
    for (unsigned i = 0; i < MANY; i++)
        conf_wait(c->lane[0], &c->client[i].frames, MANY_FRAMES);
    assert_int_equal(c->accepted, MANY);
    conf_close(c);
}

static paramo_err pong_frame(struct peer *peer, const uint8_t *head, const struct van_seg *seg, unsigned nseg)
{
    uint64_t id = conf_check(head, seg, nseg);
    assert_int_equal(id, peer->next_id++);
    if (id < 500) {
        conf_send(peer, conf_frame(peer, id + 1, 1, (uint64_t[]){40}));
    }
    return PARAMO_OK;
}

/* The next request is sent from frame(): nothing else would make it leave. */
void conf_test_ping_pong(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    c->on_accept = echo_on_accept;
    pair(c);
    c->client[0].on_frame = pong_frame;
    c->client[0].next_id = 0;
    conf_on(c->lane[0], send_one, &(struct shapes){.c = c, .from = 40});
    conf_wait(c->lane[0], &c->client[0].frames, 501);
    conf_close(c);
}

/* ---- ends that end ------------------------------------------------------------------------------------- */

enum { BURST = 1000 };

static void send_burst(void *arg)
{
    struct shapes *s = arg;
    for (unsigned i = 0; i < BURST; i++)
        conf_send(&s->c->client[0], conf_frame(&s->c->client[0], i, 1, (uint64_t[]){i % 7 ? i : 5 * i}));
}

static paramo_err close_at_100(struct peer *peer, const uint8_t *head, const struct van_seg *seg,
                               unsigned nseg)
{
    if (conf_check(head, seg, nseg) == 100) {
        struct van_conn *conn = peer->conn;
        peer->conn = NULL;
        van_close(conn, false);
    }
    return PARAMO_OK;
}

static void nothing(void *arg)
{
    (void)arg;
}

void conf_test_receiver_closes(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    pair(c);
    c->server[0].on_frame = close_at_100;
    conf_on(c->lane[0], send_burst, &(struct shapes){.c = c});
    conf_wait(c->lane[0], &c->client[0].closed, 1);
    assert_int_equal(c->client[0].why, PARAMO_E_DISCONNECTED);
    conf_on(c->lane[1], nothing, NULL); /* the frame() that closed has returned */
    assert_int_equal(c->server[0].frames, 101);
    assert_int_equal(all_done(&c->client[0]), BURST);
    conf_close(c);
}

struct burst_close {
    struct conf *c;
    bool flush;
};

static void send_and_close(void *arg)
{
    struct burst_close *b = arg;
    struct peer *peer = &b->c->client[0];
    send_burst(&(struct shapes){.c = b->c});
    struct van_conn *conn = peer->conn;
    peer->conn = NULL;
    van_close(conn, b->flush);
}

void conf_test_sender_closes(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    pair(c);
    conf_on(c->lane[0], send_and_close, &(struct burst_close){c, false});
    assert_int_equal(all_done(&c->client[0]), BURST);
    conf_wait(c->lane[1], &c->server[0].closed, 1);
    assert_int_equal(c->server[0].why, PARAMO_E_DISCONNECTED);
    conf_close(c);
}

/* All that was sent arrives, though the other side is sending too, and it arrives before the end. */
void conf_test_flush_close(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    c->on_accept = echo_on_accept;
    pair(c);
    conf_on(c->lane[0], send_and_close, &(struct burst_close){c, true});
    conf_wait(c->lane[1], &c->server[0].closed, 1);
    assert_int_equal(c->server[0].frames, BURST);
    conf_close(c);
}

static paramo_err refuse_frame(struct peer *peer, const uint8_t *head, const struct van_seg *seg,
                               unsigned nseg)
{
    (void)peer;
    (void)conf_check(head, seg, nseg);
    return err_set(PARAMO_E_PROTOCOL, "no such kind");
}

void conf_test_frame_error(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    pair(c);
    c->server[0].on_frame = refuse_frame;
    conf_on(c->lane[0], send_one, &(struct shapes){.c = c, .from = 10});
    conf_wait(c->lane[1], &c->server[0].closed, 1);
    assert_int_equal(c->server[0].why, PARAMO_E_PROTOCOL);
    assert_non_null(strstr(c->server[0].text, "no such kind"));
    conf_wait(c->lane[0], &c->client[0].closed, 1);
    conf_close(c);
}

static void connect_dead(void *arg)
{
    struct conf *c = arg;
    c->address = conf_van.dead_address;
    assert_int_equal(
        van_connect(c->van, c->lane[0], c->address, &conf_user, &c->client[0], &c->client[0].conn),
        PARAMO_OK);
    conf_send(&c->client[0], conf_frame(&c->client[0], 0, 0, NULL));
}

void conf_test_refused(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    conf_on(c->lane[0], connect_dead, c);
    conf_wait(c->lane[0], &c->client[0].closed, 1);
    assert_int_equal(c->client[0].why, PARAMO_E_CONNECTION_REFUSED);
    assert_non_null(strstr(c->client[0].text, conf_van.dead_address));
    assert_int_equal(all_done(&c->client[0]), 1); /* OK where it was copied already */
    conf_close(c);
}

static void listen_again(void *arg)
{
    struct conf *c = arg;
    struct van_listener *second = NULL;
    assert_int_equal(van_listen(c->van, c->lane[1], c->address, NULL, NULL, &second),
                     PARAMO_E_ADDRESS_IN_USE);
    assert_non_null(strstr(err_text(), c->address));
}

void conf_test_in_use(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    conf_listen(c);
    conf_on(c->lane[1], listen_again, c);
    conf_close(c);
}

/* ---- taking back --------------------------------------------------------------------------------------- */

struct taking {
    struct conf *c;
    unsigned id;
    struct van_frame *frame;
    uint64_t len;
    bool at_once;
};

static void withdraw_frame(void *arg)
{
    struct taking *t = arg;
    struct peer *peer = &t->c->client[0];
    unsigned before = all_done(peer);
    if (before == t->id * 2 + 1 || before == t->id * 2 + 2)
        return; /* it has left already (frames of this test end in order) */
    van_withdraw(peer->conn, t->frame);
    assert_int_equal(all_done(peer), before + 1);
}

static void send_taken(void *arg)
{
    struct taking *t = arg;
    struct peer *peer = &t->c->client[0];
    t->frame = conf_frame(peer, 2 * t->id, 2, (uint64_t[]){100, t->len});
    conf_send(peer, t->frame);
    if (t->at_once) {
        van_withdraw(peer->conn, t->frame);
        assert_int_equal(peer->done_bad, t->id + 1);
    }
}

static void send_after(void *arg)
{
    struct taking *t = arg;
    conf_send(&t->c->client[0], conf_frame(&t->c->client[0], 2 * t->id + 1, 1, (uint64_t[]){10}));
}

/* Every odd frame arrives, in order; an even one arrives whole or not at all. */
static paramo_err taken_frame(struct peer *peer, const uint8_t *head, const struct van_seg *seg,
                              unsigned nseg)
{
    uint64_t id = conf_check(head, seg, nseg);
    if (id % 2) {
        assert_int_equal(id, 2 * peer->next_id + 1);
        peer->next_id++;
    } else {
        assert_int_equal(id, 2 * peer->next_id);
    }
    return PARAMO_OK;
}

void conf_test_withdraw(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    struct peer *peer = &c->client[0];
    pair(c);
    c->server[0].on_frame = taken_frame;
    unsigned rounds = CONF_SLOW ? 60 : 200;
    for (unsigned i = 0; i < rounds; i++) {
        struct taking t = {.c = c, .id = i, .at_once = i < 10, .len = i % 2 ? 6000000 : 300};
        conf_on(c->lane[0], send_taken, &t);
        if (!t.at_once)
            conf_on(c->lane[0], withdraw_frame, &t);
        conf_on(c->lane[0], send_after, &t);
        conf_wait(c->lane[0], &peer->done_ok, i + 1);
        while (all_done(peer) < 2 * i + 2)
            conf_on(c->lane[0], shrink_queue, peer);
    }
    assert_true(peer->done_bad >= 10);
    conf_close(c);
}

/* ---- order --------------------------------------------------------------------------------------------- */

static const struct {
    uint8_t class;
    int32_t priority;
    unsigned place; /* in which it must arrive */
} orders[] = {
    {VAN_REQUEST, 0, 9},   {VAN_REQUEST, 5, 7}, {VAN_CHAIN, -100, 5}, {VAN_REQUEST, 0, 10},
    {VAN_ANSWER, 0, 2},    {VAN_REQUEST, 9, 6}, {VAN_ANSWER, 0, 3},   {VAN_CONTROL, -1, 1},
    {VAN_REQUEST, -3, 11}, {VAN_CONTROL, 0, 0}, {VAN_REQUEST, 5, 8},  {VAN_CHAIN, 0, 4},
};
enum { ORDERS = sizeof orders / sizeof orders[0] };

static void send_orders(void *arg)
{
    struct conf *c = arg;
    for (unsigned i = 0; i < ORDERS; i++) {
        struct van_frame *frame =
            conf_frame(&c->client[0], orders[i].place, 1, (uint64_t[]){orders[i].place * 3000});
        frame->class = orders[i].class;
        frame->priority = orders[i].priority;
        conf_send(&c->client[0], frame);
    }
}

void conf_test_order(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    pair(c);
    conf_on(c->lane[0], send_orders, c);
    conf_wait(c->lane[1], &c->server[0].frames, ORDERS); /* peer_frame checks the order */
    conf_close(c);
}

/* ---- moving -------------------------------------------------------------------------------------------- */

static void moved(void *arg, struct van_conn *conn)
{
    struct peer *peer = arg;
    assert_true(lane_held(conn->lane));
    peer->conn = conn;
    peer->lane = conn->lane;
    van_set_user(conn, &conf_user, peer);
    if (peer->next_id + 50 == BURST)
        van_conn_stays(conn);
}

/* At every 50th frame to the other lane. */
static paramo_err moving_frame(struct peer *peer, const uint8_t *head, const struct van_seg *seg,
                               unsigned nseg)
{
    struct conf *c = peer->conf;
    assert_int_equal(conf_check(head, seg, nseg), peer->next_id);
    peer->next_id++;
    if (peer->next_id % 50 == 0 && peer->next_id < BURST) {
        struct lane *to = peer->conn->lane == c->lane[1] ? c->lane[2] : c->lane[1];
        lane_notify(peer->conn->lane);
        struct van_conn *conn = peer->conn;
        peer->conn = NULL;
        peer->lane = NULL;
        van_move(conn, to, moved, peer);
    }
    return PARAMO_OK;
}

void conf_test_move(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    c->moving = true;
    pair(c);
    c->server[0].on_frame = moving_frame;
    conf_on(c->lane[0], send_burst, &(struct shapes){.c = c});
    /* 19 moves from lane 1 end on lane 2 */
    conf_wait(c->lane[2], &c->server[0].frames, BURST);
    assert_ptr_equal(c->server[0].conn->lane, c->lane[2]);
    conf_close(c);
}

static void connect_same_lane(void *arg)
{
    struct conf *c = arg;
    struct peer *peer = &c->client[0];
    assert_int_equal(van_connect(c->van, c->lane[1], c->address, &conf_user, peer, &peer->conn), PARAMO_OK);
    van_set_frame_limit(peer->conn, c->frame_limit);
    van_conn_stays(peer->conn);
    send_burst(&(struct shapes){.c = c});
}

void conf_test_same_lane(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    conf_listen(c);
    c->server[0].on_frame = echo_frame;
    conf_on(c->lane[1], connect_same_lane, c);
    conf_wait(c->lane[1], &c->server[0].frames, BURST);
    conf_wait(c->lane[1], &c->client[0].frames, BURST);
    conf_close(c);
}

/* ---- keeping ------------------------------------------------------------------------------------------- */

static paramo_err keeping_frame(struct peer *peer, const uint8_t *head, const struct van_seg *seg,
                                unsigned nseg)
{
    unsigned i = peer->frames;
    memcpy(peer->kept[i], seg, nseg * sizeof *seg);
    memcpy(peer->kept_head[i], head, VAN_HEAD);
    return van_keep(peer->conn, peer->kept[i], nseg, &peer->holds[i]);
}

static void send_kept(void *arg)
{
    struct shapes *s = arg;
    for (unsigned i = s->from; i < s->to; i++)
        conf_send(&s->c->client[0], conf_frame(&s->c->client[0], i, 3,
                                               (uint64_t[]){(uint64_t)i * i * i * 100, i, i % 2 ? 0 : 5000}));
}

void conf_test_keep(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    struct peer *server = &c->server[0];
    pair(c);
    server->on_frame = keeping_frame;
    conf_on(c->lane[0], send_kept, &(struct shapes){c, 0, 16});
    conf_wait(c->lane[1], &server->frames, 16);
    server->on_frame = NULL;
    server->next_id = 16;
    conf_on(c->lane[0], send_kept, &(struct shapes){c, 16, 40});
    conf_wait(c->lane[1], &server->frames, 40);
    for (unsigned i = 0; i < 16; i++) {
        assert_int_equal(conf_check(server->kept_head[i], server->kept[i], 3), i);
        for (unsigned s = 0; s < 3; s++)
            assert_int_equal((uintptr_t)server->kept[i][s].data % VAN_ALIGN, 0);
        van_release(server->holds[i]);
    }
    conf_close(c);
}

/* ---- dropping ------------------------------------------------------------------------------------------ */

static void send_droppable(void *arg)
{
    struct conf *c = arg;
    for (unsigned i = 0; i < 100; i++) {
        struct van_frame *frame = conf_frame(&c->client[0], i, 1, (uint64_t[]){i * 500});
        frame->class = i % 10 == 9 ? VAN_CONTROL : VAN_REQUEST;
        conf_send(&c->client[0], frame);
    }
}

static paramo_err dropped_frame(struct peer *peer, const uint8_t *head, const struct van_seg *seg,
                                unsigned nseg)
{
    peer->order[peer->frames % 64] = conf_check(head, seg, nseg);
    return PARAMO_OK;
}

void conf_test_drop(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    pair(c);
    c->server[0].on_frame = dropped_frame;
    van_set_drop(c->van, 100);
    conf_on(c->lane[0], send_droppable, c);
    conf_wait(c->lane[0], &c->client[0].done_ok, 100);
    conf_wait(c->lane[1], &c->server[0].frames, 10);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(c->server[0].order[i] % 10, 9);
    conf_close(c);
}
