/* The tcp van's receiving side, fed through a socket pair in pieces of any size: frames that are whole come
 * out whole and in order, wherever the stream was cut; whatever else comes ends the connection. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"
#include "sim/env/sim.h"
#include "van/tcp/tcp.h"
#include "van/tcp/tcp_recv.h"

enum { FRAMES = 16, LIMIT = 256 << 10, BYTES = 512 << 10 };

struct sent {
    uint8_t head[VAN_HEAD];
    uint64_t len[VAN_SEGS];
    unsigned nseg;
    size_t at; /* of its first segment in the stream */
};

struct world {
    uint8_t *stream;
    size_t len;
    struct sent frame[FRAMES];
    unsigned frames, whole_frames, received;
    bool raw;        /* bytes that are no frame of ours follow the whole frames */
    unsigned places; /* what place() says: three bits a segment */
    uint8_t *own[VAN_SEGS];
    uint64_t own_len[VAN_SEGS];
    bool closed;
};

static paramo_err place(void *user, struct van_conn *conn, const uint8_t head[VAN_HEAD], const uint64_t *len,
                        unsigned nseg, void *dst[])
{
    struct world *w = user;
    (void)conn, (void)head;
    for (unsigned i = 0; i < nseg; i++) {
        unsigned what = w->places >> 2 * i & 3;
        CHECK(len[i] <= LIMIT);
        if (what == 1) {
            dst[i] = VAN_SINK;
        } else if (what == 2) {
            free(w->own[i]);
            w->own[i] = dst[i] = harness_alloc(len[i]);
            w->own_len[i] = len[i];
        } else if (what == 3 && i == 3) {
            return err_set(PARAMO_E_INVALID, "not wanted");
        }
    }
    return PARAMO_OK;
}

static paramo_err frame(void *user, struct van_conn *conn, const uint8_t head[VAN_HEAD],
                        const struct van_seg *seg, unsigned nseg)
{
    struct world *w = user;
    CHECK(!w->closed);
    if (w->received < w->whole_frames) {
        const struct sent *f = &w->frame[w->received];
        size_t at = f->at;
        CHECK(nseg == f->nseg && memcmp(head, f->head, VAN_HEAD) == 0);
        for (unsigned i = 0; i < nseg; i++) {
            CHECK(seg[i].len == f->len[i]);
            CHECK(!seg[i].data || seg[i].len == 0 || memcmp(seg[i].data, w->stream + at, seg[i].len) == 0);
            at += van_padded(seg[i].len);
        }
        struct van_seg kept[VAN_SEGS];
        struct van_hold *hold;
        memcpy(kept, seg, nseg * sizeof *seg);
        CHECK(van_keep(conn, kept, nseg, &hold) == PARAMO_OK);
        for (unsigned i = 0; i < nseg; i++)
            CHECK(!kept[i].data || !seg[i].len || memcmp(kept[i].data, seg[i].data, seg[i].len) == 0);
        van_release(hold);
    } else {
        CHECK(w->raw);
    }
    w->received++;
    return PARAMO_OK;
}

static void closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    struct world *w = user;
    CHECK(!w->closed && why && text);
    w->closed = true;
    van_close(conn, false);
}

static const struct van_user user_ops = {.place = place, .frame = frame, .closed = closed};

/* A frame with a right header, of which the input says the rest. */
static void add_frame(struct world *w, struct source *s)
{
    struct van_frame f = {.nseg = (uint8_t)draw_below(s, VAN_SEGS + 1),
                          .class = (uint8_t)draw_below(s, VAN_CLASSES)};
    struct sent *sent = &w->frame[w->frames];
    size_t total = VAN_HEADER_BYTES;
    uint64_t sum = 0;
    f.head[0] = draw_u8(s);
    for (unsigned i = 0; i < f.nseg; i++) {
        uint8_t how = draw_u8(s);
        f.seg[i].len = how < 0xc0 ? how : (uint64_t)(how - 0xbf) * 997;
        sum += f.seg[i].len;
        total += van_padded(f.seg[i].len);
    }
    if (w->len + total > BYTES)
        return;
    memcpy(sent->head, f.head, VAN_HEAD);
    sent->nseg = f.nseg;
    sent->at = w->len + VAN_HEADER_BYTES;
    van_header_encode(&f, w->stream + w->len);
    uint8_t fill = draw_u8(s);
    for (unsigned i = 0; i < f.nseg; i++)
        sent->len[i] = f.seg[i].len;
    for (size_t at = sent->at; at < w->len + total; at++)
        w->stream[at] = fill++;
    w->len += total;
    w->frames++;
    if (!w->raw && sum <= LIMIT)
        w->whole_frames++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    struct world w = {.stream = harness_alloc(BYTES)};
    struct sim *sim;
    struct lane *lane;
    struct van *van;
    struct tcp_conn *conn;
    int fd[2];
    harness_quiet();
    w.places = draw_u8(&s);
    unsigned step = draw_u16(&s);
    for (unsigned n = 0; s.left && w.frames < FRAMES && n < FRAMES; n++) {
        if (draw_below(&s, 4)) {
            add_frame(&w, &s);
        } else { /* anything */
            size_t take = draw_u8(&s);
            take = take < s.left ? take : s.left;
            take = take < BYTES - w.len ? take : BYTES - w.len;
            memcpy(w.stream + w.len, s.at, take);
            s.at += take;
            s.left -= take;
            w.len += take;
            w.raw = w.raw || take;
        }
    }
    CHECK(sim_create(1, &sim) == PARAMO_OK && lane_create(sim_env(sim), "stream", 0, &lane) == PARAMO_OK);
    CHECK(van_tcp_create(sim_env(sim), &(struct van_config){0}, &van) == PARAMO_OK);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) == 0);
    CHECK(lane_enter(lane));
    CHECK(tcp_conn_create(van, lane, &conn) == PARAMO_OK);
    conn->source.fd = fd[0]; /* not on a poller: the target itself says when it is readable */
    conn->state = TCP_OPEN;
    van_set_user(&conn->base, &user_ops, &w);
    van_set_frame_limit(&conn->base, LIMIT);
    for (size_t at = 0; at < w.len && !w.closed;) {
        size_t most = step ? step : w.len;
        most = most > w.len / 400 ? most : w.len / 400 + 1; /* a bound of system calls */
        ssize_t wrote = send(fd[1], w.stream + at, w.len - at < most ? w.len - at : most, MSG_NOSIGNAL);
        CHECK(wrote > 0 || errno == EAGAIN);
        at += wrote > 0 ? (size_t)wrote : 0;
        tcp_recv_round(conn);
    }
    for (unsigned i = 0; i < 4 && !w.closed; i++)
        tcp_recv_round(conn);
    bool refused = (w.places >> 6 & 3) == 3;
    if (!w.raw && !refused && w.frames == w.whole_frames)
        CHECK(!w.closed && w.received == w.frames);
    (void)close(fd[1]);
    for (unsigned i = 0; i < 8 && !w.closed; i++)
        tcp_recv_round(conn);
    CHECK(w.closed);
    lane_leave(lane);
    lane_destroy(lane);
    van_destroy(van);
    sim_destroy(sim);
    for (unsigned i = 0; i < VAN_SEGS; i++)
        free(w.own[i]);
    free(w.stream);
    return 0;
}
