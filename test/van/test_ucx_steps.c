/* How a connection comes to UCX, step by step, against a peer by hand: what each side sends, that frames travel on
 * the socket until the last one there, and what a failure, a timeout or a close leaves behind at each step. */
#include "van/support_ucx.h"

#ifdef PARAMO_HAVE_UCX
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "env/env.h"
#include "van/core.h"
#include "van/tcp/tcp.h"
#include "van/ucx/ucx_switch.h"

static struct van_config settings = {.at_once = true};

static void ucx_open(struct env **env, struct van **van)
{
    *env = env_real();
    assert_int_equal(van_ucx_create(*env, &settings, van), PARAMO_OK);
}

const struct conf_van conf_van = {
    .open = ucx_open, .close = van_destroy, .listen_address = "127.0.0.1:0", .dead_address = "127.0.0.1:1"};

/* ---- a peer by hand ------------------------------------------------------------------------------------ */

enum { HEARD_MAX = 16, LEN = 104, FRAME_BYTES = VAN_HEADER_BYTES + LEN };

struct hand {
    struct conf *c;
    struct peer *peer; /* the van's end */
    struct lane *lane; /* its */
    int fd;
    struct area ours, theirs;
    const struct ucx_api *api;
    struct ucx_context context;
    ucp_worker_h worker;
    ucp_ep_h ep;
    bool said;
    /* what came by UCX */
    unsigned came, heard;
    uint8_t kinds[HEARD_MAX];
    uint8_t data[HEARD_MAX][FRAME_BYTES];
    size_t len[HEARD_MAX];
};

static ucs_status_t hand_came(void *arg, const void *header, size_t header_len, void *data, size_t len,
                              const ucp_am_recv_param_t *param)
{
    struct hand *h = arg;
    struct ucx_word word;
    uint64_t bits;
    (void)param;
    assert_int_equal(header_len, sizeof bits);
    memcpy(&bits, header, sizeof bits);
    assert_int_equal(ucx_word_decode(bits, &word), PARAMO_OK);
    assert_true(h->came < HEARD_MAX && len <= FRAME_BYTES);
    h->kinds[h->came] = word.message;
    h->len[h->came] = len;
    if (len)
        memcpy(h->data[h->came], data, len);
    h->came++;
    return UCS_OK;
}

static void nothing(void *arg)
{
    (void)arg;
}

/* A turn of the van's lane, and one of ours. */
static void turn(struct hand *h)
{
    conf_on(h->lane, nothing, NULL);
    (void)h->api->worker_progress(h->worker);
}

/* The next message by UCX is of this kind; returns its number. */
static unsigned by_ucx(struct hand *h, enum ucx_message kind)
{
    uint64_t until = env_now(h->c->env) + 20 * ENV_SEC;
    while (h->heard == h->came && env_now(h->c->env) < until)
        turn(h);
    assert_true(h->heard < h->came);
    assert_int_equal(h->kinds[h->heard], kind);
    return h->heard++;
}

static void said(void *request, ucs_status_t status, void *arg)
{
    struct hand *h = arg;
    assert_int_equal(status, UCS_OK);
    h->api->request_free(request);
    h->said = true;
}

static void say_by_ucx(struct hand *h, enum ucx_message kind, const void *data, size_t len)
{
    uint64_t word = kind;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags = UCP_AM_SEND_FLAG_EAGER,
                                 .cb.send = said,
                                 .user_data = h};
    h->said = false;
    ucs_status_ptr_t sent = h->api->am_send(h->ep, UCX_AM_ID, &word, sizeof word, data, len, &param);
    assert_false(UCS_PTR_IS_ERR(sent));
    do
        turn(h);
    while (sent && !h->said);
}

static void hand_begin(struct hand *h, struct conf *c, bool accepts)
{
    int fd;
    *h = (struct hand){.c = c, .lane = c->lane[accepts ? 0 : 1]};
    h->peer = accepts ? &c->client[0] : &c->server[0];
    assert_int_equal(ucx_load(&h->api), PARAMO_OK);
    assert_int_equal(ucx_context_create(UCX_SHM, &ucx_pack_ops, &h->context), PARAMO_OK);
    assert_int_equal(area_create(c->env, &h->ours), PARAMO_OK);
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                                    UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                    UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                      .id = UCX_AM_ID,
                                      .cb = hand_came,
                                      .arg = h};
    assert_int_equal(h->api->worker_create(h->context.handle, &params, &h->worker), UCS_OK);
    assert_int_equal(h->api->worker_set_am_recv_handler(h->worker, &handler), UCS_OK);
    assert_int_equal(h->api->worker_get_efd(h->worker, &fd), UCS_OK);
}

static void hand_end(struct hand *h)
{
    (void)close(h->fd);
    conf_close(h->c);
    h->api->worker_destroy(h->worker);
    ucx_context_destroy(&h->context);
    area_close(&h->ours);
    area_close(&h->theirs);
}

/* Says ACCEPT or READY, with our address. */
static void say_address(struct hand *h, enum ucx_setup_kind kind)
{
    ucp_address_t *address;
    struct ucx_setup what = {
        .kind = (uint8_t)kind, .way = UCX_SHM, .area = h->ours.place, .proof = area_proof(&h->theirs)};
    assert_int_equal(h->api->worker_get_address(h->worker, &address, &what.address_len), UCS_OK);
    what.address = (const uint8_t *)address;
    hand_say(h->fd, &what);
    h->api->worker_release_address(h->worker, address);
}

/* Connects to the address of ACCEPT or READY. */
static void hand_join(struct hand *h, const struct ucx_setup *from)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                              .address = (const ucp_address_t *)from->address};
    assert_true(from->proof == area_proof(&h->ours));
    assert_int_equal(h->api->ep_create(h->worker, &params, &h->ep), UCS_OK);
}

/* The van connects to us; up to its OFFER. */
static void accept_until_offer(struct hand *h)
{
    struct ucx_setup offer;
    hand_begin(h, conf_open(), true);
    h->fd = hand_offered(h->c, &offer);
    assert_int_equal(area_open(&offer.area, &h->theirs), PARAMO_OK);
}

static void ready_after_offer(struct hand *h)
{
    uint8_t bytes[SETUP_BYTES_MAX + VAN_ALIGN];
    say_address(h, SETUP_ACCEPT);
    struct ucx_setup ready = hand_hear(h->fd, bytes);
    assert_int_equal(ready.kind, SETUP_READY);
    hand_join(h, &ready);
}

/* Up to its PROBE. */
static void accept_until_probe(struct hand *h)
{
    accept_until_offer(h);
    ready_after_offer(h);
    (void)by_ucx(h, MESSAGE_PROBE);
}

/* We connect to the van; up to our READY. */
static void connect_until_ready(struct hand *h)
{
    uint8_t bytes[SETUP_BYTES_MAX + VAN_ALIGN];
    struct conf *c = conf_open();
    conf_listen(c);
    hand_begin(h, c, false);
    const char *address = c->address; /* the client's offer goes elsewhere, and identifies this process */
    struct ucx_setup offer, answer;
    (void)close(hand_offered(c, &offer));
    h->fd = hand_connect(address);
    offer.area = h->ours.place;
    hand_say(h->fd, &offer);
    answer = hand_hear(h->fd, bytes);
    assert_int_equal(answer.kind, SETUP_ACCEPT);
    assert_int_equal(area_open(&answer.area, &h->theirs), PARAMO_OK);
    hand_join(h, &answer);
    say_address(h, SETUP_READY);
}

static void hears(struct hand *h, enum ucx_setup_kind kind)
{
    uint8_t bytes[SETUP_BYTES_MAX + VAN_ALIGN];
    assert_int_equal(hand_hear(h->fd, bytes).kind, kind);
}

static void says(struct hand *h, enum ucx_setup_kind kind)
{
    hand_say(h->fd, &(struct ucx_setup){.kind = (uint8_t)kind, .why = "no"});
}

/* ---- frames -------------------------------------------------------------------------------------------- */

struct sending {
    struct peer *peer;
    uint64_t id;
    uint64_t len;
};

static void send_one(void *arg)
{
    struct sending *s = arg;
    conf_send(s->peer, conf_frame(s->peer, s->id, 1, &s->len));
}

static void van_sends(struct hand *h, uint64_t id)
{
    conf_on(h->lane, send_one, &(struct sending){h->peer, id, LEN});
}

static void is_frame(const uint8_t bytes[FRAME_BYTES], uint64_t id)
{
    struct van_header header;
    assert_int_equal(van_header_decode(bytes, LEN, &header), PARAMO_OK);
    assert_false(header.own);
    assert_int_equal(header.padded, FRAME_BYTES - VAN_HEADER_BYTES);
    struct van_seg seg = {.data = (void *)(uintptr_t)(bytes + VAN_HEADER_BYTES), .len = LEN};
    assert_int_equal(conf_check(header.head, &seg, 1), id);
}

static void comes_on_socket(struct hand *h, uint64_t id)
{
    uint8_t bytes[FRAME_BYTES];
    assert_int_equal(recv(h->fd, bytes, sizeof bytes, MSG_WAITALL), sizeof bytes);
    is_frame(bytes, id);
}

static void comes_by_ucx(struct hand *h, uint64_t id)
{
    unsigned i = by_ucx(h, MESSAGE_DATA);
    assert_int_equal(h->len[i], FRAME_BYTES);
    is_frame(h->data[i], id);
}

/* The frame leaves neither on the socket nor by UCX. */
static void is_held(struct hand *h)
{
    uint8_t byte;
    for (unsigned i = 0; i < 3; i++)
        turn(h);
    assert_int_equal(h->heard, h->came);
    assert_int_equal(recv(h->fd, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
}

static void frame_bytes(struct hand *h, uint64_t id, uint8_t bytes[FRAME_BYTES])
{
    struct van_frame *frame = conf_frame(&h->c->client[CONF_PEERS - 1], id, 1, (uint64_t[]){LEN});
    memset(bytes, 0, FRAME_BYTES);
    van_header_encode(frame, bytes);
    memcpy(bytes + VAN_HEADER_BYTES, frame->seg[0].data, LEN);
    frame->done(frame, PARAMO_OK);
}

/* The van's end gets the frame, its id-th from 0, on the socket. */
static void goes_on_socket(struct hand *h, uint64_t id)
{
    uint8_t bytes[FRAME_BYTES];
    frame_bytes(h, id, bytes);
    assert_int_equal(send(h->fd, bytes, sizeof bytes, MSG_NOSIGNAL), sizeof bytes);
    conf_wait(h->lane, &h->peer->frames, (unsigned)id + 1);
}

static void goes_by_ucx(struct hand *h, uint64_t id)
{
    uint8_t bytes[FRAME_BYTES];
    frame_bytes(h, id, bytes);
    say_by_ucx(h, MESSAGE_DATA, bytes, sizeof bytes);
    conf_wait(h->lane, &h->peer->frames, (unsigned)id + 1);
}

static void both_on_socket(struct hand *h, uint64_t id)
{
    van_sends(h, id);
    comes_on_socket(h, id);
    goes_on_socket(h, id);
    assert_int_equal(atomic_load(&h->peer->closed), 0);
}

/* ---- the steps ----------------------------------------------------------------------------------------- */

static void the_connector_switches(void **state)
{
    (void)state;
    struct hand h;
    accept_until_offer(&h);
    ready_after_offer(&h);
    both_on_socket(&h, 0);
    (void)by_ucx(&h, MESSAGE_PROBE);
    both_on_socket(&h, 1);
    say_by_ucx(&h, MESSAGE_ECHO, NULL, 0);
    hears(&h, SETUP_LAST);
    van_sends(&h, 2);
    is_held(&h);
    goes_on_socket(&h, 2); /* our direction has not switched */
    say_by_ucx(&h, MESSAGE_GO, NULL, 0);
    comes_by_ucx(&h, 2);
    goes_on_socket(&h, 3);
    says(&h, SETUP_LAST);
    (void)by_ucx(&h, MESSAGE_GO);
    goes_by_ucx(&h, 4);
    van_sends(&h, 3);
    comes_by_ucx(&h, 3);
    hand_end(&h);
}

static void the_acceptor_switches(void **state)
{
    (void)state;
    struct hand h;
    connect_until_ready(&h);
    both_on_socket(&h, 0);
    say_by_ucx(&h, MESSAGE_PROBE, NULL, 0);
    (void)by_ucx(&h, MESSAGE_ECHO);
    both_on_socket(&h, 1);
    says(&h, SETUP_LAST);
    (void)by_ucx(&h, MESSAGE_GO);
    hears(&h, SETUP_LAST);
    van_sends(&h, 2);
    is_held(&h);
    goes_by_ucx(&h, 2);
    say_by_ucx(&h, MESSAGE_GO, NULL, 0);
    comes_by_ucx(&h, 2);
    hand_end(&h);
}

/* A connection that carries little stays on the socket, without an offer. */
static void little_is_not_worth_it(void **state)
{
    (void)state;
    enum { FRAMES = 1000 };
    uint8_t bytes[SETUP_BYTES_MAX + VAN_ALIGN];
    settings.at_once = false;
    struct conf *c = conf_open();
    struct hand h = {.c = c, .peer = &c->client[0], .lane = c->lane[0], .fd = hand_connected(c)};
    for (uint64_t id = 0; id < FRAMES; id++) {
        van_sends(&h, id);
        comes_on_socket(&h, id);
    }
    assert_int_equal(hand_hear(h.fd, bytes).kind, SETUP_OFFER);
    (void)close(h.fd);
    conf_close(c);
    settings.at_once = true;
}

/* ---- out of place -------------------------------------------------------------------------------------- */

static void out_of_place(void **state)
{
    (void)state;
    enum {
        DATA_EARLY,
        GO_EARLY,
        ECHO_TWICE,
        PROBE_BY_ACCEPTOR,
        LAST_EARLY,
        PROBE_TWICE,
        LAST_UNPROVED,
        CASES
    };
    for (unsigned i = 0; i < CASES; i++) {
        struct hand h;
        uint8_t bytes[FRAME_BYTES];
        if (i < PROBE_TWICE) {
            accept_until_probe(&h);
        } else {
            connect_until_ready(&h);
        }
        switch (i) {
        case DATA_EARLY:
            frame_bytes(&h, 0, bytes);
            say_by_ucx(&h, MESSAGE_DATA, bytes, sizeof bytes);
            break;
        case GO_EARLY:
            say_by_ucx(&h, MESSAGE_GO, NULL, 0);
            break;
        case ECHO_TWICE:
            say_by_ucx(&h, MESSAGE_ECHO, NULL, 0);
            say_by_ucx(&h, MESSAGE_ECHO, NULL, 0);
            break;
        case PROBE_BY_ACCEPTOR:
            say_by_ucx(&h, MESSAGE_PROBE, NULL, 0);
            break;
        case PROBE_TWICE:
            say_by_ucx(&h, MESSAGE_PROBE, NULL, 0);
            say_by_ucx(&h, MESSAGE_PROBE, NULL, 0);
            break;
        default:
            says(&h, SETUP_LAST);
        }
        conf_wait(h.lane, &h.peer->closed, 1);
        assert_int_equal(h.peer->why, PARAMO_E_PROTOCOL);
        assert_int_equal(atomic_load(&h.peer->frames), 0);
        hand_end(&h);
    }
}

/* ---- turned off ---------------------------------------------------------------------------------------- */

static void time_is_over(void *arg)
{
    struct lane_timer *late = &tcp_of(((struct hand *)arg)->peer->conn)->way->late;
    assert_non_null(late->slot);
    lane_timer_cancel(((struct hand *)arg)->lane, late);
    late->fire(late);
}

static void a_decline_after_ready(void **state)
{
    (void)state;
    struct hand h;
    accept_until_probe(&h);
    says(&h, SETUP_DECLINE);
    both_on_socket(&h, 0);
    hand_end(&h);
}

/* What crosses the RETRACT is ignored: ECHO, or DECLINE. */
static void no_echo_in_time(void **state)
{
    (void)state;
    for (unsigned declines = 0; declines < 2; declines++) {
        struct hand h;
        accept_until_probe(&h);
        conf_on(h.lane, time_is_over, &h);
        hears(&h, SETUP_RETRACT);
        both_on_socket(&h, 0);
        if (declines)
            says(&h, SETUP_DECLINE);
        else
            say_by_ucx(&h, MESSAGE_ECHO, NULL, 0);
        both_on_socket(&h, 1);
        hand_end(&h);
    }
}

static void a_retract_after_ready(void **state)
{
    (void)state;
    struct hand h;
    connect_until_ready(&h);
    says(&h, SETUP_RETRACT);
    both_on_socket(&h, 0);
    say_by_ucx(&h, MESSAGE_PROBE, NULL, 0);
    both_on_socket(&h, 1);
    hand_end(&h);
}

static void no_go_in_time(void **state)
{
    (void)state;
    struct hand h;
    accept_until_probe(&h);
    say_by_ucx(&h, MESSAGE_ECHO, NULL, 0);
    hears(&h, SETUP_LAST);
    conf_on(h.lane, time_is_over, &h);
    conf_wait(h.lane, &h.peer->closed, 1);
    assert_int_equal(h.peer->why, PARAMO_E_DISCONNECTED);
    hand_end(&h);
}

/* The van sends a frame that the socket does not take whole, because we do not read. Its first byte has come: what the
 * van says from now on is behind it. */
static void fill_the_socket(struct hand *h, uint64_t len)
{
    int room = 1 << 16;
    uint8_t first;
    assert_int_equal(setsockopt(h->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
    conf_on(h->lane, send_one, &(struct sending){h->peer, 0, len});
    assert_int_equal(recv(h->fd, &first, 1, MSG_PEEK), 1);
}

/* The peer reads nothing, and a frame fills the socket. Then own frames do not leave, and no other frame waits for
 * the way. */
struct own_check {
    struct hand *h;
    bool waits;
};

static void own_frame_waits(void *arg)
{
    struct own_check *check = arg;
    check->waits = tcp_of(check->h->peer->conn)->own_frame_len > 0;
}

static void own_frames_behind_a_long_one(void **state)
{
    (void)state;
    enum { LONG = 16 << 20 };
    for (unsigned last = 0; last < 2; last++) {
        struct hand h;
        uint8_t bytes[SETUP_BYTES_MAX + VAN_ALIGN];
        accept_until_offer(&h);
        if (last) {
            ready_after_offer(&h);
            (void)by_ucx(&h, MESSAGE_PROBE);
        }
        fill_the_socket(&h, LONG);
        if (last)
            say_by_ucx(&h, MESSAGE_ECHO, NULL, 0);
        else
            say_address(&h, SETUP_ACCEPT);
        struct own_check check = {&h, false};
        for (conf_on(h.lane, own_frame_waits, &check); !check.waits; conf_on(h.lane, own_frame_waits, &check))
            turn(&h);
        conf_on(h.lane, time_is_over, &h);
        uint8_t *whole = malloc(VAN_HEADER_BYTES + LONG);
        assert_non_null(whole);
        assert_int_equal(recv(h.fd, whole, VAN_HEADER_BYTES + LONG, MSG_WAITALL), VAN_HEADER_BYTES + LONG);
        free(whole);
        /* READY never left */
        assert_int_equal(hand_hear(h.fd, bytes).kind, last ? SETUP_LAST : SETUP_RETRACT);
        if (!last)
            both_on_socket(&h, 0);
        else
            goes_on_socket(&h, 0);
        hand_end(&h);
    }
}

/* ---- closed -------------------------------------------------------------------------------------------- */

static void send_and_close(void *arg)
{
    struct hand *h = arg;
    uint64_t len = LEN;
    conf_send(h->peer, conf_frame(h->peer, 7, 1, &len));
    van_close(h->peer->conn, true);
    h->peer->conn = NULL;
}

static void closed_before_the_last(void **state)
{
    (void)state;
    uint8_t byte;
    for (unsigned accepts = 0; accepts < 2; accepts++) {
        struct hand h;
        if (accepts)
            accept_until_probe(&h);
        else
            connect_until_ready(&h);
        conf_on(h.lane, send_and_close, &h);
        if (accepts) {
            say_by_ucx(&h, MESSAGE_ECHO, NULL, 0);
        } else {
            says(&h, SETUP_LAST);
            say_by_ucx(&h, MESSAGE_PROBE, NULL, 0);
        }
        comes_on_socket(&h, 7);
        assert_int_equal(recv(h.fd, &byte, 1, 0), 0); /* the end */
        hand_end(&h);
    }
}

static void closed_behind_the_last(void **state)
{
    (void)state;
    for (unsigned accepts = 0; accepts < 2; accepts++) {
        struct hand h;
        if (accepts) {
            accept_until_probe(&h);
            say_by_ucx(&h, MESSAGE_ECHO, NULL, 0);
        } else {
            connect_until_ready(&h);
            say_by_ucx(&h, MESSAGE_PROBE, NULL, 0);
            (void)by_ucx(&h, MESSAGE_ECHO);
            says(&h, SETUP_LAST);
            (void)by_ucx(&h, MESSAGE_GO);
        }
        hears(&h, SETUP_LAST);
        conf_on(h.lane, send_and_close, &h);
        is_held(&h);
        say_by_ucx(&h, MESSAGE_GO, NULL, 0);
        comes_by_ucx(&h, 7);
        (void)by_ucx(&h, MESSAGE_END);
        hand_end(&h);
    }
}

/* The connection ends while the van's thread makes the worker, or just before or after that. */
static void ends_while_the_worker_is_made(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        struct hand h;
        struct ucx_setup offer;
        bool accepts = i % 2;
        accept_until_offer(&h);
        if (accepts) {
            say_address(&h, SETUP_ACCEPT);
        } else { /* its acceptor starts to make one */
            uint8_t byte = 0;
            conf_listen(h.c);
            offer = (struct ucx_setup){.kind = SETUP_OFFER,
                                       .version = SETUP_VERSION,
                                       .host = ((struct ucx_van *)h.c->van)->host,
                                       .kinds = 1 << UCX_SHM,
                                       .area = h.ours.place};
            int fd = hand_connect(h.c->address);
            hand_say(fd, &offer);
            if (i % 4)
                assert_int_equal(recv(fd, &byte, 1, 0), 1); /* ACCEPT begins */
            (void)close(fd);
        }
        if (i % 3)
            conf_on(h.lane, nothing, NULL); /* the frame may have come, or not */
        hand_end(&h);                       /* closes both sides, and the van */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_connector_switches),       cmocka_unit_test(the_acceptor_switches),
        cmocka_unit_test(little_is_not_worth_it),       cmocka_unit_test(out_of_place),
        cmocka_unit_test(a_decline_after_ready),        cmocka_unit_test(no_echo_in_time),
        cmocka_unit_test(a_retract_after_ready),        cmocka_unit_test(no_go_in_time),
        cmocka_unit_test(own_frames_behind_a_long_one), cmocka_unit_test(closed_before_the_last),
        cmocka_unit_test(closed_behind_the_last),       cmocka_unit_test(ends_while_the_worker_is_made),
    };
    return ucx_is_here() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
#else
int main(void)
{
    return 77;
}
#endif
