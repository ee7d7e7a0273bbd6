#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "van/conformance.h"
#include "van/core.h"
#include "van/tcp/tcp_end.h"
#include "van/tcp/tcp_send.h"

static const char *listen_on = "127.0.0.1:0";

static void tcp_open(struct env **env, struct van **van)
{
    *env = env_real();
    assert_int_equal(van_tcp_create(*env, &(struct van_config){0}, van), PARAMO_OK);
}

const struct conf_van conf_van = {.open = tcp_open,
                                  .close = van_destroy,
                                  .listen_address = "127.0.0.1:0",
                                  .dead_address = "127.0.0.1:1",
                                  .large_bytes = (CONF_SLOW ? 8 : 64) << 20,
                                  .large_count = CONF_SLOW ? 4 : 40};

/* ---- a peer that is a bare socket ---------------------------------------------------------------------- */

static int raw_connect(const struct conf *c)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    addr.sin_port = htons((uint16_t)atoi(strrchr(c->address, ':') + 1));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    return fd;
}

static void raw_write(int fd, const void *data, size_t len)
{
    assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void raw_read(int fd, void *data, size_t len)
{
    assert_int_equal(recv(fd, data, len, MSG_WAITALL), (ssize_t)len);
}

/* The bytes of a frame; free them. */
static uint8_t *raw_frame(struct peer *peer, uint64_t id, unsigned nseg, const uint64_t *len, size_t *size)
{
    struct van_frame *frame = conf_frame(peer, id, nseg, len);
    *size = VAN_HEADER_BYTES;
    for (unsigned i = 0; i < nseg; i++)
        *size += van_padded(len[i]);
    uint8_t *bytes = calloc(1, *size);
    assert_non_null(bytes);
    van_header_encode(frame, bytes);
    uint8_t *at = bytes + VAN_HEADER_BYTES;
    for (unsigned i = 0; i < nseg; i++) {
        memcpy(at, frame->seg[i].data, len[i]);
        at += van_padded(len[i]);
    }
    frame->done(frame, PARAMO_OK);
    return bytes;
}

struct received {
    struct peer *peer;
    uint64_t bytes;
};

static void read_counter(void *arg)
{
    struct received *r = arg;
    r->bytes = r->peer->conn->counters.bytes_received;
}

/* Until the connection has taken that many bytes from its socket; conf_on is one turn of its lane. */
static void wait_received(struct peer *peer, uint64_t bytes)
{
    struct received r = {.peer = peer};
    do
        conf_on(peer->conf->lane[1], read_counter, &r);
    while (r.bytes < bytes);
}

static void test_split_at_every_byte(void **state)
{
    (void)state;
    static const struct {
        uint64_t len[3];
        int mode;
    } frames[] = {{{13, 0, 21}, 0}, {{13, 9000, 3}, 1}, {{9001, 1, 70}, 2}, {{5, 20000, 11}, 0}};
    struct conf *c = conf_open();
    conf_listen(c);
    int fd = raw_connect(c);
    conf_wait(c->lane[1], &c->accepted, 1);
    struct peer *server = &c->server[0];
    server->dst_bytes = 10000;
    for (unsigned i = 0; i < VAN_SEGS; i++)
        server->dst[i] = malloc(10000);
    uint64_t written = 0;
    for (unsigned k = 0; k < 4; k++) {
        server->place_mode = frames[k].mode;
        for (size_t cut = 1;; cut += cut < 300 ? 1 : 1009) {
            size_t size;
            uint8_t *bytes = raw_frame(&c->client[0], server->next_id, 3, frames[k].len, &size);
            if (cut >= size) {
                free(bytes);
                break;
            }
            raw_write(fd, bytes, cut);
            wait_received(server, written + cut);
            assert_int_equal(server->frames, server->next_id);
            raw_write(fd, bytes + cut, size - cut);
            written += size;
            wait_received(server, written);
            free(bytes);
        }
    }
    assert_int_equal(server->frames, server->next_id);
    assert_true(server->frames > 900);
    (void)close(fd);
    conf_wait(c->lane[1], &server->closed, 1);
    assert_null(strstr(server->text, "in the middle"));
    conf_close(c);
}

static void test_dies_in_mid_frame(void **state)
{
    (void)state;
    static const size_t cuts[] = {1, VAN_HEADER_BYTES, VAN_HEADER_BYTES + 7, 50000};
    for (unsigned k = 0; k < 4; k++) {
        struct conf *c = conf_open();
        conf_listen(c);
        int fd = raw_connect(c);
        size_t size;
        uint8_t *bytes = raw_frame(&c->client[0], 0, 1, (uint64_t[]){100000}, &size);
        raw_write(fd, bytes, cuts[k]);
        (void)close(fd);
        conf_wait(c->lane[1], &c->server[0].closed, 1);
        assert_int_equal(c->server[0].why, PARAMO_E_DISCONNECTED);
        assert_non_null(strstr(c->server[0].text, "in the middle"));
        assert_non_null(strstr(c->server[0].text, "127.0.0.1:"));
        assert_int_equal(c->server[0].frames, 0);
        free(bytes);
        conf_close(c);
    }
}

static void test_garbage(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    c->frame_limit = 4096;
    conf_listen(c);
    static const struct {
        unsigned at;
        uint8_t value;
        bool resum;
        paramo_err why;
    } damages[] = {
        {0, 'G', false, PARAMO_E_PROTOCOL},  /* not our magic */
        {4, 9, false, PARAMO_E_VERSION},     /* another version */
        {100, 1, false, PARAMO_E_PROTOCOL},  /* a bit of the head */
        {17, 64, true, PARAMO_E_TOO_LARGE},  /* a length of 16 KiB */
        {23, 255, true, PARAMO_E_TOO_LARGE}, /* one of nearly 2^64 */
        {5, 5, true, PARAMO_E_PROTOCOL},     /* five segments */
        {6, 4, true, PARAMO_E_PROTOCOL},     /* no such class */
        {40, 1, true, PARAMO_E_PROTOCOL},    /* the length of a segment that is not there */
    };
    for (unsigned k = 0; k < sizeof damages / sizeof damages[0]; k++) {
        size_t size;
        uint8_t *bytes = raw_frame(&c->client[0], 0, 3, (uint64_t[]){8, 8, 8}, &size);
        bytes[damages[k].at] = damages[k].value;
        if (damages[k].resum) {
            memset(bytes + 8, 0, 8);
            uint64_t sum = hash_bytes(bytes, VAN_HEADER_BYTES);
            memcpy(bytes + 8, &sum, 8);
        }
        int fd = raw_connect(c);
        conf_wait(c->lane[1], &c->accepted, k + 1);
        raw_write(fd, bytes, size);
        conf_wait(c->lane[1], &c->server[k].closed, 1);
        assert_int_equal(c->server[k].why, damages[k].why);
        assert_int_equal(c->server[k].frames, 0);
        (void)close(fd);
        free(bytes);
    }
    conf_close(c);
}

/* ---- a peer that does not read ------------------------------------------------------------------------- */

struct silent {
    struct conf *c;
    char address[32];
    int listener, fd;
    unsigned sent;
    struct van_frame *frame;
};

static void silent_connect(void *arg)
{
    struct silent *s = arg;
    struct peer *peer = &s->c->client[0];
    assert_int_equal(van_connect(s->c->van, s->c->lane[0], s->address, &conf_user, peer, &peer->conn),
                     PARAMO_OK);
}

static void silent_open(struct silent *s)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    s->c = conf_open();
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&addr, len), 0);
    assert_int_equal(listen(s->listener, 1), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&addr, &len), 0);
    (void)snprintf(s->address, sizeof s->address, "127.0.0.1:%u", ntohs(addr.sin_port));
    conf_on(s->c->lane[0], silent_connect, s);
    s->fd = accept(s->listener, NULL, NULL);
    assert_true(s->fd >= 0);
}

static void silent_close(struct silent *s)
{
    (void)close(s->fd);
    (void)close(s->listener);
    conf_close(s->c);
}

static void raw_check(int fd, uint64_t id, uint64_t len)
{
    uint8_t header[VAN_HEADER_BYTES];
    struct van_header h;
    raw_read(fd, header, sizeof header);
    assert_int_equal(van_header_decode(header, UINT64_MAX, &h), PARAMO_OK);
    assert_int_equal(h.nseg, 1);
    assert_int_equal(h.len[0], len);
    uint8_t *bytes = malloc(h.padded ? h.padded : 1);
    raw_read(fd, bytes, h.padded);
    assert_int_equal(conf_check(h.head, &(struct van_seg){bytes, len}, 1), id);
    free(bytes);
}

enum { SILENT_LEN = 1000000 };

static void fill_up(void *arg)
{
    struct silent *s = arg;
    struct peer *peer = &s->c->client[0];
    for (;;) {
        struct van_frame *frame = conf_frame(peer, s->sent, 1, (uint64_t[]){SILENT_LEN});
        if (van_send(peer->conn, frame)) {
            frame->done(frame, PARAMO_E_AGAIN);
            return;
        }
        s->sent++;
    }
}

/* The bound holds while the peer does not read; when it does, everything arrives in order. */
static void test_peer_does_not_read(void **state)
{
    (void)state;
    struct silent s = {0};
    silent_open(&s);
    conf_on(s.c->lane[0], fill_up, &s);
    unsigned queued = s.sent;
    assert_int_equal(queued, (8 << 20) / (SILENT_LEN + VAN_HEADER_BYTES));
    for (unsigned i = 0; i < s.sent; i++)
        raw_check(s.fd, i, SILENT_LEN);
    conf_wait(s.c->lane[0], &s.c->client[0].writable, 1);
    conf_wait(s.c->lane[0], &s.c->client[0].done_ok, s.sent);
    silent_close(&s);
}

static void send_small(void *arg)
{
    struct silent *s = arg;
    conf_send(&s->c->client[0], conf_frame(&s->c->client[0], s->sent++, 1, (uint64_t[]){30}));
}

/* Opens it, and sends a first frame: the connection is established. */
static void silent_begin(struct silent *s)
{
    silent_open(s);
    conf_on(s->c->lane[0], send_small, s);
    raw_check(s->fd, 0, 30);
}

static void send_begun(void *arg)
{
    struct silent *s = arg;
    s->c->client[0].conn->limits.queue_bytes[VAN_REQUEST] = UINT64_C(1) << 40;
    s->frame = conf_frame(&s->c->client[0], 1, 1, (uint64_t[]){50000000});
    conf_send(&s->c->client[0], s->frame);
}

static void withdraw_begun(void *arg)
{
    struct silent *s = arg;
    struct peer *peer = &s->c->client[0];
    assert_int_equal(peer->done_ok + peer->done_bad, 1);
    assert_true(peer->conn->counters.bytes_sent > 2 * VAN_HEADER_BYTES + 30);
    van_withdraw(peer->conn, s->frame); /* done overwrites and frees its memory */
    assert_int_equal(peer->done_bad, 1);
    conf_send(peer, conf_frame(peer, 2, 1, (uint64_t[]){77}));
}

/* A frame that has begun to leave is completed after its memory was taken back. */
static void test_withdraw_begun(void **state)
{
    (void)state;
    struct silent s = {0};
    silent_begin(&s);
    conf_on(s.c->lane[0], send_begun, &s);
    conf_on(s.c->lane[0], withdraw_begun, &s);
    raw_check(s.fd, 1, 50000000);
    raw_check(s.fd, 2, 77);
    conf_wait(s.c->lane[0], &s.c->client[0].done_ok, 2);
    silent_close(&s);
}

static void send_lent(void *arg)
{
    struct silent *s = arg;
    struct peer *peer = &s->c->client[0];
    static const uint64_t lens[][2] = {{40, 100}, {8, 300000}, {16, 20000000}, {24, 70000}};
    peer->conn->limits.queue_bytes[VAN_REQUEST] = 20050000;
    for (unsigned i = 0; i < 4; i++) {
        struct van_frame *frame = conf_frame(peer, i, 2, lens[i]);
        uint8_t *lent = frame->seg[1].data, *spare = malloc(lens[i][1]);
        uint64_t sent = peer->conn->counters.bytes_sent;
        paramo_err err = van_send_lent(peer->conn, frame, spare);
        memset(lent, 0xee, lens[i][1]); /* it changes at once */
        free(lent);
        assert_ptr_equal(frame->seg[1].data, spare); /* freed by done */
        assert_int_equal(err, i < 3 ? PARAMO_OK : PARAMO_E_AGAIN);
        if (i < 2) /* the socket took it all: nothing was copied */
            assert_true(peer->conn->counters.bytes_sent - sent > lens[i][1]);
        if (err) {
            uint8_t first = spare[0], last = spare[lens[i][1] - 1];
            assert_false(first == 0xee && last == 0xee);
            frame->done(frame, PARAMO_E_AGAIN);
        }
    }
}

/* What was lent arrives as it was lent: sent at once as far as the socket takes it, copied where not. */
static void test_lent(void **state)
{
    (void)state;
    static const uint64_t lens[][2] = {{40, 100}, {8, 300000}, {16, 20000000}};
    struct silent s = {0};
    silent_begin(&s);
    conf_on(s.c->lane[0], send_lent, &s);
    for (unsigned i = 0; i < 3; i++) {
        uint8_t header[VAN_HEADER_BYTES];
        struct van_header h;
        raw_read(s.fd, header, sizeof header);
        assert_int_equal(van_header_decode(header, UINT64_MAX, &h), PARAMO_OK);
        assert_int_equal(h.len[1], lens[i][1]);
        uint8_t *bytes = malloc(h.padded);
        raw_read(s.fd, bytes, h.padded);
        struct van_seg seg[2] = {{bytes, h.len[0]}, {bytes + van_padded(h.len[0]), h.len[1]}};
        assert_int_equal(conf_check(h.head, seg, 2), i);
        free(bytes);
    }
    conf_wait(s.c->lane[0], &s.c->client[0].done_ok, 4);
    silent_close(&s);
}

/* Requests that gather after an unanswered one leave although there is no answer, flush or wait. */
static void test_gathered_leave(void **state)
{
    (void)state;
    struct silent s = {0};
    silent_open(&s);
    for (unsigned i = 0; i < 20; i++) {
        conf_on(s.c->lane[0], send_small, &s);
        raw_check(s.fd, i, 30);
    }
    silent_close(&s);
}

static void timer_fires(struct tcp_conn *conn)
{
    lane_timer_cancel(conn->base.lane, &conn->timer);
    conn->timer.fire(&conn->timer);
}

static void gather_twice(void *arg)
{
    struct silent *s = arg;
    struct tcp_conn *conn = tcp_of(s->c->client[0].conn);
    const uint64_t *left = &conn->base.counters.frames_sent;
    send_small(s);
    tcp_send_round(conn);
    assert_int_equal(*left, 1);
    assert_true(conn->gather_until && conn->timer.slot);
    van_flush(&conn->base);
    tcp_send_round(conn);
    assert_int_equal(*left, 2);
    assert_true(!conn->gather_until && conn->timer.slot);
    timer_fires(conn);
    assert_true(!conn->urgent && !conn->timer.slot);
    send_small(s);
    tcp_send_round(conn);
    conn->gather_until = UINT64_MAX;
    timer_fires(conn); /* it was set for frames that have left */
    tcp_send_round(conn);
    assert_int_equal(*left, 2);
    assert_true(conn->timer.slot && conn->timer.at == UINT64_MAX);
    conn->gather_until = 1;
    timer_fires(conn);
    tcp_send_round(conn);
    assert_int_equal(*left, 3);
}

/* The timer outlives the frames that it was set for: it neither sends later ones too early nor forgets them. */
static void test_gather_timer(void **state)
{
    (void)state;
    struct silent s = {0};
    silent_begin(&s);
    conf_on(s.c->lane[0], gather_twice, &s);
    raw_check(s.fd, 1, 30);
    raw_check(s.fd, 2, 30);
    silent_close(&s);
}

static void send_more(struct silent *s, bool more)
{
    struct peer *peer = &s->c->client[0];
    struct van_frame *frame = conf_frame(peer, s->sent++, 1, (uint64_t[]){30});
    frame->more = more;
    conf_send(peer, frame);
    tcp_send_round(tcp_of(peer->conn));
}

static void more_gathers(void *arg)
{
    struct silent *s = arg;
    struct tcp_conn *conn = tcp_of(s->c->client[0].conn);
    const uint64_t *left = &conn->base.counters.frames_sent;
    conn->unheard = false; /* nothing else holds a request up */
    send_more(s, true);
    assert_int_equal(*left, 1);
    assert_true(conn->gather_until && conn->timer.slot);
    send_more(s, true);
    assert_int_equal(*left, 1);
    send_more(s, false); /* the last one */
    assert_int_equal(*left, 4);
    conn->unheard = false;
    send_more(s, true);
    assert_int_equal(*left, 4);
    van_flush(&conn->base); /* it does not come: the caller waits */
    tcp_send_round(conn);
    assert_int_equal(*left, 5);
    conn->unheard = false;
    send_more(s, true);
    assert_int_equal(*left, 5);
    conn->gather_until = 1; /* the caller does neither */
    timer_fires(conn);
    tcp_send_round(conn);
    assert_int_equal(*left, 6);
    conn->unheard = false;
    send_more(s, false);
    assert_int_equal(*left, 7);
}

/* A request that another one follows leaves with it. If that does not come, it leaves before a wait, or after a
 * time. */
static void test_more(void **state)
{
    (void)state;
    struct silent s = {0};
    silent_begin(&s);
    conf_on(s.c->lane[0], more_gathers, &s);
    for (unsigned i = 1; i < 7; i++)
        raw_check(s.fd, i, 30);
    silent_close(&s);
}

enum { BURST_LARGE = 20000000 };

static void expect_and_send(struct silent *s, unsigned expected, unsigned sent)
{
    struct tcp_conn *conn = tcp_of(s->c->client[0].conn);
    for (unsigned i = 0; i < expected; i++)
        van_expect(&conn->base);
    tcp_send_round(conn);
    for (unsigned i = 0; i < sent; i++)
        send_small(s);
    tcp_send_round(conn);
}

static void bursts_gather(void *arg)
{
    struct silent *s = arg;
    struct tcp_conn *conn = tcp_of(s->c->client[0].conn);
    const uint64_t *left = &conn->base.counters.frames_sent;
    expect_and_send(s, 3, 1);
    assert_int_equal(*left, 1);
    expect_and_send(s, 0, 1);
    assert_int_equal(*left, 1);
    expect_and_send(s, 1, 1); /* one more is expected before they have left */
    assert_int_equal(*left, 1);
    expect_and_send(s, 0, 1);
    assert_int_equal(*left, 5);
    expect_and_send(s, 3 * TCP_BURST_FRAMES, TCP_BURST_FRAMES - 1);
    assert_int_equal(*left, 5);
    expect_and_send(s, 0, 1);
    assert_int_equal(*left, 5 + TCP_BURST_FRAMES);
    expect_and_send(s, 0, 1);
    assert_int_equal(*left, 5 + TCP_BURST_FRAMES);
    van_flush(&conn->base);
    expect_and_send(s, 0, 0);
    assert_int_equal(*left, 6 + TCP_BURST_FRAMES);
}

static void burst_that_fails(void *arg)
{
    expect_and_send(arg, 3, 1);
}

static void bursts_are_skipped(void *arg)
{
    struct silent *s = arg;
    struct tcp_conn *conn = tcp_of(s->c->client[0].conn);
    unsigned skipped = 0;
    assert_int_equal(conn->burst.due, 0);
    while (conn->burst.skip) {
        expect_and_send(s, 3, 0);
        assert_int_equal(conn->burst.due, 0);
        skipped++;
    }
    assert_int_equal(skipped, 1 << TCP_BURST_MISS);
    expect_and_send(s, 3, 3);
    assert_int_equal(conn->burst.misses, TCP_BURST_MISS - 1);
    expect_and_send(s, 1, 0); /* alone: nothing to wait for */
    assert_int_equal(conn->burst.due, 0);
}

/* The requests of a burst leave together. If they do not come, those that are there leave after a time, and further
 * bursts are not waited for. */
static void test_bursts(void **state)
{
    (void)state;
    struct silent s = {0};
    silent_begin(&s);
    conf_on(s.c->lane[0], bursts_gather, &s);
    for (unsigned i = 1; i < 6 + TCP_BURST_FRAMES; i++)
        raw_check(s.fd, i, 30);
    conf_on(s.c->lane[0], burst_that_fails, &s);
    raw_check(s.fd, 6 + TCP_BURST_FRAMES, 30);
    conf_on(s.c->lane[0], bursts_are_skipped, &s);
    silent_close(&s);
}

/* The other way is tried after a window: half of a long burst leaves while the rest is made. */
static void burst_is_cut(void *arg)
{
    struct silent *s = arg;
    struct tcp_conn *conn = tcp_of(s->c->client[0].conn);
    const uint64_t *left = &conn->base.counters.frames_sent;
    expect_and_send(s, 40, 40);
    assert_int_equal(*left, 41);
    assert_false(conn->burst.cut.ways.second);
    conn->burst.cut.answered = TCP_CUT_WINDOW;
    expect_and_send(s, 40, 19);
    assert_true(conn->burst.cut.ways.second);
    assert_int_equal(*left, 41);
    expect_and_send(s, 0, 1);
    assert_int_equal(*left, 61);
    expect_and_send(s, 0, 19);
    assert_int_equal(*left, 61);
    expect_and_send(s, 0, 1);
    assert_int_equal(*left, 81);
    expect_and_send(s, 20, 19); /* the answers to a half */
    assert_int_equal(*left, 81);
    expect_and_send(s, 0, 1);
    assert_int_equal(*left, 101);
}

static void test_burst_is_cut(void **state)
{
    (void)state;
    struct silent s = {0};
    silent_begin(&s);
    conf_on(s.c->lane[0], burst_is_cut, &s);
    for (unsigned i = 1; i < 101; i++)
        raw_check(s.fd, i, 30);
    silent_close(&s);
}

/* Of a burst of two, the second frame is large: the socket takes a part of it. Then two of three more frames come. */
static void burst_blocks(void *arg)
{
    struct silent *s = arg;
    struct peer *peer = &s->c->client[0];
    struct tcp_conn *conn = tcp_of(peer->conn);
    peer->conn->limits.queue_bytes[VAN_REQUEST] = UINT64_C(1) << 40;
    expect_and_send(s, 2, 1);
    conf_send(peer, conf_frame(peer, s->sent++, 1, (uint64_t[]){BURST_LARGE}));
    tcp_send_round(conn);
    assert_true(conn->blocked);
    assert_in_range(conn->base.counters.bytes_sent, 1, BURST_LARGE);
    expect_and_send(s, 3, 2);
    assert_true(conn->blocked);
    assert_int_equal(conn->burst.due, 1);
    assert_int_equal(conn->base.counters.frames_sent, 2); /* silent_begin's, and the burst's first */
}

static void test_burst_short_write(void **state)
{
    (void)state;
    struct silent s = {0};
    silent_begin(&s);
    conf_on(s.c->lane[0], burst_blocks, &s);
    raw_check(s.fd, 1, 30);
    raw_check(s.fd, 2, BURST_LARGE);
    raw_check(s.fd, 3, 30);
    raw_check(s.fd, 4, 30);
    conf_wait(s.c->lane[0], &s.c->client[0].done_ok, 5);
    silent_close(&s);
}

static void burst_waits(void *arg)
{
    struct silent *s = arg;
    expect_and_send(s, 4, 3);
    assert_int_equal(s->c->client[0].conn->counters.frames_sent, 1);
}

static void burst_is_lost(void *arg)
{
    struct silent *s = arg;
    struct peer *peer = &s->c->client[0];
    burst_waits(arg);
    tcp_break(tcp_of(peer->conn), err_set(PARAMO_E_DISCONNECTED, "the test breaks it"));
    assert_int_equal(peer->done_bad, 3);
    assert_int_equal(tcp_of(peer->conn)->timer.slot, 0);
    van_expect(peer->conn); /* an answer that was handled in the same round */
}

/* The connection is lost while frames of a burst wait for the others: each ends with an error, once. */
static void test_burst_connection_lost(void **state)
{
    (void)state;
    struct silent s = {0};
    silent_begin(&s);
    conf_on(s.c->lane[0], burst_is_lost, &s);
    conf_wait(s.c->lane[0], &s.c->client[0].closed, 1);
    assert_int_equal(s.c->client[0].done_bad, 3);
    assert_int_equal(s.c->client[0].done_ok, 1);
    silent_close(&s);
}

static void burst_is_closed(void *arg)
{
    struct silent *s = arg;
    burst_waits(arg);
    van_close(s->c->client[0].conn, true);
    s->c->client[0].conn = NULL;
}

/* A connection that is closed with a flush does not wait for the rest of a burst. */
static void test_burst_closed(void **state)
{
    (void)state;
    struct silent s = {0};
    silent_begin(&s);
    conf_on(s.c->lane[0], burst_is_closed, &s);
    for (unsigned i = 1; i < 4; i++)
        raw_check(s.fd, i, 30);
    assert_int_equal(recv(s.fd, &(char){0}, 1, 0), 0);
    silent_close(&s);
}

/* ---- displacing ---------------------------------------------------------------------------------------- */

static paramo_err displaced_frame(struct peer *peer, const uint8_t *head, const struct van_seg *seg,
                                  unsigned nseg)
{
    (void)head;
    assert_int_equal(nseg, 2);
    assert_ptr_equal(seg[0].data, peer->dst[0]);
    assert_null(seg[1].data);
    return PARAMO_OK;
}

static void displace(void *arg)
{
    struct peer *peer = arg;
    van_displace(peer->conn, peer->dst[1], peer->dst_bytes);
    memset(peer->dst[1], 0xdd, peer->dst_bytes);
}

static void test_displace(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    struct peer *server = &c->server[0];
    conf_listen(c);
    server->place_mode = 1;
    server->dst_bytes = 300000;
    server->on_frame = displaced_frame;
    server->dst[0] = malloc(server->dst_bytes);
    server->dst[1] = malloc(server->dst_bytes);
    int fd = raw_connect(c);
    size_t size;
    uint8_t *bytes = raw_frame(&c->client[0], 0, 2, (uint64_t[]){20000, 250000}, &size);
    raw_write(fd, bytes, 100000);
    conf_wait(c->lane[1], &c->accepted, 1);
    wait_received(server, 100000);
    conf_on(c->lane[1], displace, server);
    raw_write(fd, bytes + 100000, size - 100000);
    conf_wait(c->lane[1], &server->frames, 1);
    for (size_t i = 0; i < server->dst_bytes; i++)
        assert_int_equal(server->dst[1][i], 0xdd);
    free(bytes);
    (void)close(fd);
    conf_close(c);
}

/* ---- addresses ----------------------------------------------------------------------------------------- */

static void accept_any(void *arg, struct van_conn *conn)
{
    struct conf *c = arg;
    struct peer *peer = &c->server[0];
    peer->conn = conn;
    van_set_user(conn, &conf_user, peer);
    atomic_fetch_add(&c->accepted, 1);
    lane_notify(conn->lane);
}

static void listen_any(void *arg)
{
    struct conf *c = arg;
    assert_int_equal(van_listen(c->van, c->lane[1], listen_on, accept_any, c, &c->listener), PARAMO_OK);
}

static void connect_and_send(void *arg)
{
    struct conf *c = arg;
    struct peer *peer = &c->client[0];
    assert_int_equal(van_connect(c->van, c->lane[0], c->address, &conf_user, peer, &peer->conn), PARAMO_OK);
    conf_send(peer, conf_frame(peer, 0, 1, (uint64_t[]){100}));
}

static bool has_ipv6(void)
{
    struct sockaddr_in6 addr = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)&addr, sizeof addr) == 0;
    if (fd >= 0)
        (void)close(fd);
    return has;
}

static void test_addresses(void **state)
{
    (void)state;
    static const char *const ways[][2] = {{"127.0.0.1:0", "127.0.0.1"},
                                          {"127.0.0.1:0", "localhost"},
                                          {"localhost:0", "localhost"},
                                          {"*:0", "127.0.0.1"},
                                          {"[::1]:0", "[::1]"}};
    for (unsigned i = 0; i < 5; i++) {
        if (i == 4 && !has_ipv6()) {
            print_message("no IPv6 here: not tried\n");
            continue;
        }
        struct conf *c = conf_open();
        char address[64];
        listen_on = ways[i][0];
        conf_on(c->lane[1], listen_any, c);
        const char *real = van_listener_address(c->listener);
        (void)snprintf(address, sizeof address, "%s%s", ways[i][1], strrchr(real, ':'));
        c->address = address;
        conf_on(c->lane[0], connect_and_send, c);
        conf_wait(c->lane[1], &c->server[0].frames, 1);
        conf_close(c);
    }
}

static void test_no_such_name(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    c->address = "no-such-host.invalid:9";
    conf_on(c->lane[0], connect_and_send, c);
    conf_wait(c->lane[0], &c->client[0].closed, 1);
    assert_int_equal(c->client[0].why, PARAMO_E_ADDRESS);
    assert_non_null(strstr(c->client[0].text, "no-such-host.invalid"));
    assert_int_equal(c->client[0].done_bad, 1);
    conf_close(c);
}

static void resolve_and_close(void *arg)
{
    struct conf *c = arg;
    connect_and_send(c);
    van_close(c->client[0].conn, false);
    c->client[0].conn = NULL;
}

static void test_closed_while_resolving(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    c->address = "localhost:9";
    for (unsigned i = 0; i < 20; i++)
        conf_on(c->lane[0], resolve_and_close, c);
    assert_int_equal(c->client[0].done_bad, 20);
    conf_close(c);
}

/* ---- out of descriptors -------------------------------------------------------------------------------- */

static atomic_uint pauses;

static void nothing(void *arg)
{
    (void)arg;
}

static void count_pauses(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    if (strstr(line, "cannot accept connections"))
        atomic_fetch_add(&pauses, 1);
}

static void test_out_of_descriptors(void **state)
{
    (void)state;
    struct conf *c = conf_open();
    struct rlimit before, low;
    conf_listen(c);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = before;
    low.rlim_cur = (rlim_t)fd + 1; /* all numbers below are taken, or soon will be */
    int spare[64];
    unsigned spares = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    while (spares < 64 && (spare[spares] = dup(fd)) >= 0)
        spares++;
    log_set_sink(count_pauses, NULL);
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    addr.sin_port = htons((uint16_t)atoi(strrchr(c->address, ':') + 1));
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    while (atomic_load(&pauses) == 0)
        conf_on(c->lane[1], nothing, NULL);
    assert_int_equal(c->accepted, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    conf_wait(c->lane[1], &c->accepted, 1);
    log_set_sink(NULL, NULL);
    for (unsigned i = 0; i < spares; i++)
        (void)close(spare[i]);
    (void)close(fd);
    conf_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONFORMANCE_TESTS,
        cmocka_unit_test(test_split_at_every_byte),
        cmocka_unit_test(test_dies_in_mid_frame),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_peer_does_not_read),
        cmocka_unit_test(test_withdraw_begun),
        cmocka_unit_test(test_gathered_leave),
        cmocka_unit_test(test_lent),
        cmocka_unit_test(test_gather_timer),
        cmocka_unit_test(test_more),
        cmocka_unit_test(test_bursts),
        cmocka_unit_test(test_burst_is_cut),
        cmocka_unit_test(test_burst_short_write),
        cmocka_unit_test(test_burst_connection_lost),
        cmocka_unit_test(test_burst_closed),
        cmocka_unit_test(test_displace),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_no_such_name),
        cmocka_unit_test(test_closed_while_resolving),
        cmocka_unit_test(test_out_of_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
