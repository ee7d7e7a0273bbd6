/* The harness of the conformance suite: lanes, ends, frames whose content can be checked. */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "van/conformance.h"

#define WAIT_NS (UINT64_C(120) * ENV_SEC) /* virtual where the van is simulated */

/* conf_van is defined by the programs that run the suite; the others link this file too. */
#pragma weak conf_van

struct on_call {
    struct lane_task task;
    struct lane *lane;
    void (*fn)(void *arg);
    void *arg;
    atomic_uint done;
};

static void on_call_run(struct lane_task *task)
{
    struct on_call *call = container_of(task, struct on_call, task);
    struct lane *lane = call->lane;
    call->fn(call->arg);
    atomic_store(&call->done, 1); /* from here on the call may be gone */
    lane_notify(lane);
}

struct wait_for {
    atomic_uint *counter;
    unsigned value;
};

static bool wait_done(void *arg)
{
    struct wait_for *w = arg;
    return atomic_load(w->counter) >= w->value;
}

void conf_wait(struct lane *lane, atomic_uint *counter, unsigned value)
{
    struct wait_for w = {counter, value};
    paramo_err err = lane_wait(lane, wait_done, &w, lane_now(lane) + WAIT_NS);
    if (err)
        print_error("waited in vain: %u of %u\n", atomic_load(counter), value);
    assert_int_equal(err, PARAMO_OK);
}

void conf_on(struct lane *lane, void (*fn)(void *arg), void *arg)
{
    struct on_call call = {.task.run = on_call_run, .lane = lane, .fn = fn, .arg = arg};
    lane_post(lane, &call.task);
    conf_wait(lane, &call.done, 1);
}

struct conf *conf_open(void)
{
    struct conf *c = calloc(1, sizeof *c);
    assert_non_null(c);
    conf_van.open(&c->env, &c->van);
    for (unsigned i = 0; i < CONF_LANES; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "lane%u", i);
        assert_int_equal(lane_create(c->env, name, conf_van.lane_flags, &c->lane[i]), PARAMO_OK);
    }
    for (unsigned i = 0; i < CONF_PEERS; i++) {
        c->client[i].conf = c->server[i].conf = c;
        c->server[i].accepted_number = i;
    }
    c->frame_limit = UINT64_C(1) << 40;
    return c;
}

struct closing {
    struct conf *c;
    struct lane *lane;
};

static void close_on(void *arg)
{
    struct closing *closing = arg;
    struct conf *c = closing->c;
    for (unsigned i = 0; i < CONF_PEERS; i++) {
        struct peer *both[2] = {&c->client[i], &c->server[i]};
        for (unsigned k = 0; k < 2; k++) {
            if (both[k]->conn && both[k]->conn->lane == closing->lane) {
                van_close(both[k]->conn, false);
                both[k]->conn = NULL;
            }
        }
    }
    if (c->listener && closing->lane == c->lane[1]) {
        van_listener_close(c->listener);
        c->listener = NULL;
    }
    van_abandon(c->van, closing->lane);
}

void conf_close(struct conf *c)
{
    /* The listener's lane first: no further connection is accepted during this. */
    static const unsigned order[CONF_LANES] = {1, 0, 2};
    for (unsigned i = 0; i < CONF_LANES; i++)
        conf_on(c->lane[order[i]], close_on, &(struct closing){c, c->lane[order[i]]});
    for (unsigned i = 0; i < CONF_LANES; i++) {
        assert_int_equal(van_flushing(c->van, c->lane[i]), 0);
        lane_destroy(c->lane[i]);
    }
    conf_van.close(c->van);
    for (unsigned i = 0; i < CONF_PEERS; i++) {
        for (unsigned s = 0; s < VAN_SEGS; s++) {
            free(c->client[i].dst[s]);
            free(c->server[i].dst[s]);
        }
    }
    free(c);
}

/* ---- ends ---------------------------------------------------------------------------------------------- */

static void peer_event(struct peer *peer, atomic_uint *counter)
{
    if (peer->lane)
        assert_ptr_equal(peer->conn->lane, peer->lane);
    assert_true(lane_held(peer->conn->lane));
    atomic_fetch_add(counter, 1);
    lane_notify(peer->conn->lane);
}

static paramo_err peer_place(void *user, struct van_conn *conn, const uint8_t head[VAN_HEAD],
                             const uint64_t *len, unsigned nseg, void *dst[])
{
    struct peer *peer = user;
    assert_ptr_equal(conn, peer->conn);
    for (unsigned i = 0; i < nseg; i++) {
        int mode = peer->place_mode == 3 ? (int)((head[0] + i) % 3) : peer->place_mode;
        if (mode == 1 && len[i] <= peer->dst_bytes)
            dst[i] = peer->dst[i];
        else
            dst[i] = mode == 2 ? VAN_SINK : VAN_POOL;
    }
    peer_event(peer, &peer->placed);
    return PARAMO_OK;
}

static paramo_err peer_frame(void *user, struct van_conn *conn, const uint8_t head[VAN_HEAD],
                             const struct van_seg *seg, unsigned nseg)
{
    struct peer *peer = user;
    assert_ptr_equal(conn, peer->conn);
    paramo_err err = PARAMO_OK;
    if (peer->on_frame) {
        err = peer->on_frame(peer, head, seg, nseg);
    } else {
        uint64_t id = conf_check(head, seg, nseg);
        assert_int_equal(id, peer->next_id);
        peer->next_id++;
    }
    if (peer->conn)
        peer_event(peer, &peer->frames);
    else
        atomic_fetch_add(&peer->frames, 1);
    return err;
}

static void peer_writable(void *user, struct van_conn *conn)
{
    struct peer *peer = user;
    assert_ptr_equal(conn, peer->conn);
    peer_event(peer, &peer->writable);
}

static void peer_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    struct peer *peer = user;
    assert_ptr_equal(conn, peer->conn);
    assert_int_equal(atomic_load(&peer->closed), 0);
    peer->why = why;
    (void)snprintf(peer->text, sizeof peer->text, "%s", text);
    if (peer->on_closed)
        peer->on_closed(peer);
    peer_event(peer, &peer->closed);
}

const struct van_user conf_user = {
    .place = peer_place, .frame = peer_frame, .writable = peer_writable, .closed = peer_closed};

static void accepted(void *arg, struct van_conn *conn)
{
    struct conf *c = arg;
    struct peer *peer = &c->server[atomic_load(&c->accepted)];
    peer->conn = conn;
    van_set_user(conn, &conf_user, peer);
    van_set_frame_limit(conn, c->frame_limit);
    if (!c->moving)
        van_conn_stays(conn);
    if (c->on_accept)
        c->on_accept(peer);
    peer_event(peer, &c->accepted);
}

static void listen_on(void *arg)
{
    struct conf *c = arg;
    paramo_err err = van_listen(c->van, c->lane[1], conf_van.listen_address, accepted, c, &c->listener);
    if (err)
        print_error("%s\n", err_text());
    assert_int_equal(err, PARAMO_OK);
    c->address = van_listener_address(c->listener);
}

void conf_listen(struct conf *c)
{
    conf_on(c->lane[1], listen_on, c);
}

static void connect_on(void *arg)
{
    struct peer *peer = arg;
    struct conf *c = peer->conf;
    assert_int_equal(van_connect(c->van, c->lane[0], c->address, &conf_user, peer, &peer->conn), PARAMO_OK);
    van_set_frame_limit(peer->conn, c->frame_limit);
    van_conn_stays(peer->conn);
    peer->conn->limits.queue_bytes[VAN_REQUEST] = UINT64_C(1) << 40; /* but for the test of this bound */
}

void conf_connect(struct conf *c, unsigned i)
{
    conf_on(c->lane[0], connect_on, &c->client[i]);
}

/* ---- frames -------------------------------------------------------------------------------------------- */

struct test_frame {
    struct van_frame frame;
    struct peer *peer;
    unsigned done;
};

/* Long segments repeat one block, whose place in the segment is mixed into one word of each, so that checking
 * is fast. */
enum { BLOCK = 4096 };

static void pattern(uint8_t *p, uint64_t len, uint64_t seed, bool check)
{
    for (uint64_t at = 0; at < len; at += BLOCK) {
        uint64_t n = len - at < BLOCK ? len - at : BLOCK;
        uint64_t word = mix64(seed + at);
        uint8_t fill = (uint8_t)word;
        if (check) {
            assert_int_equal(p[at], fill);
            if (n >= 9)
                assert_memory_equal(p + at + n - 8, &word, 8);
            if (n >= 64)
                assert_int_equal(p[at + 1 + word % (n - 9)], fill);
        } else {
            memset(p + at, fill, (size_t)n);
            if (n >= 9)
                memcpy(p + at + n - 8, &word, 8);
        }
    }
}

static void frame_done(struct van_frame *frame, paramo_err status)
{
    struct test_frame *f = container_of(frame, struct test_frame, frame);
    assert_int_equal(f->done++, 0);
    for (unsigned i = 0; i < frame->nseg; i++) {
        memset(frame->seg[i].data, 0xee, (size_t)(frame->seg[i].len < 65536 ? frame->seg[i].len : 65536));
        free(frame->seg[i].data);
    }
    struct peer *peer = f->peer;
    free(f);
    atomic_fetch_add(status ? &peer->done_bad : &peer->done_ok, 1);
    if (peer->conn)
        lane_notify(peer->conn->lane);
}

struct van_frame *conf_frame(struct peer *peer, uint64_t id, unsigned nseg, const uint64_t *len)
{
    struct test_frame *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->peer = peer;
    f->frame.nseg = (uint8_t)nseg;
    f->frame.class = VAN_REQUEST;
    f->frame.done = frame_done;
    memcpy(f->frame.head, &id, 8);
    memset(f->frame.head + 8, (int)(uint8_t)id, VAN_HEAD - 8);
    for (unsigned i = 0; i < nseg; i++) {
        f->frame.seg[i].len = len[i];
        f->frame.seg[i].data = malloc(len[i] ? (size_t)len[i] : 1);
        assert_non_null(f->frame.seg[i].data);
        pattern(f->frame.seg[i].data, len[i], mix64(id) + i, false);
    }
    return &f->frame;
}

void conf_send(struct peer *peer, struct van_frame *frame)
{
    assert_int_equal(van_send(peer->conn, frame), PARAMO_OK);
}

uint64_t conf_check(const uint8_t *head, const struct van_seg *seg, unsigned nseg)
{
    uint64_t id;
    memcpy(&id, head, 8);
    for (unsigned i = 8; i < VAN_HEAD; i++)
        assert_int_equal(head[i], (uint8_t)id);
    for (unsigned i = 0; i < nseg; i++)
        if (seg[i].data)
            pattern(seg[i].data, seg[i].len, mix64(id) + i, true);
    return id;
}
