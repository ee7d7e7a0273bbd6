#ifdef PARAMO_HAVE_UCX
#include "van/ucx/ucx_way.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/log.h"
#include "base/sm.h"
#include "van/tcp/tcp_end.h"
#include "van/tcp/tcp_send.h"
#include "van/ucx/ucx_switch.h"
#include "van/ucx/ucx_worker.h"

/* WORTH: a way pays off on a connection that has carried this number of frames or bytes. The set-up takes about 10 ms
 * of both sides' processors (docs/PERFORMANCE.md). A chain to a migration's target often ends before that is won back.
 */
enum { SETUP_SECONDS = 10, WORTH_FRAMES = 1000, WORTH_BYTES = 16 << 20 };

static struct ucx_van *van_of(const struct tcp_conn *conn)
{
    return (struct ucx_van *)conn->base.van;
}

static const char *conn_peer(const struct ucx_way *way)
{
    return way->conn->base.peer;
}

static const char *kind_text(enum ucx_kind kind)
{
    return kind == UCX_SHM ? "shared memory (UCX): the same host and user" : "the trusted fabric (UCX)";
}

static void way_finish(struct tcp_conn *conn)
{
    ucx_signal(conn->way, MESSAGE_END);
}

/* The drawing is in ucx_way_state.h. */
static const struct sm machine = {
    "way",
    {[WAY_NEW] = {"new", SM_TO(WAY_OFFERED) | SM_TO(WAY_STARTING) | SM_TO(WAY_OFF)},
     [WAY_OFFERED] = {"offered", SM_TO(WAY_STARTING) | SM_TO(WAY_OFF)},
     [WAY_STARTING] = {"starting", SM_TO(WAY_ACCEPTED) | SM_TO(WAY_READY_SENT) | SM_TO(WAY_OFF)},
     [WAY_ACCEPTED] = {"accepted", SM_TO(WAY_READY_CAME) | SM_TO(WAY_OFF)},
     [WAY_READY_SENT] = {"ready_sent", SM_TO(WAY_LAST_SENT) | SM_TO(WAY_OFF)},
     [WAY_READY_CAME] = {"ready_came", SM_TO(WAY_LAST_SENT) | SM_TO(WAY_OFF)},
     [WAY_LAST_SENT] = {"last_sent", SM_TO(WAY_UP)},
     [WAY_UP] = {"up", 0},
     [WAY_OFF] = {"off", 0}}};

static void move(struct ucx_way *way, enum way_state to)
{
    sm_check(&machine, way->state, to);
    way->state = to;
}

static void way_up(struct ucx_way *way)
{
    move(way, WAY_UP);
    lane_timer_cancel(way->conn->base.lane, &way->late);
    log_info("van: %s by %s", way->conn->base.peer, kind_text(way->kind));
    tcp_way_open(way->conn, 0);
}

/* Sends PROBE or ECHO when it is due, and never before the endpoint is connected: no message waits for that. */
static void prove(struct ucx_way *way)
{
    bool due = way->connector ? way->state == WAY_READY_SENT : way->state == WAY_READY_CAME && way->probed;
    if (!due || !way->wired || way->proved || way->conn->base.orphan)
        return;
    assert(way->ep && way->state != WAY_OFF);
    way->proved = true;
    ucx_signal(way, way->connector ? MESSAGE_PROBE : MESSAGE_ECHO);
}

static paramo_err last_send(struct ucx_way *way);

/* A message that sets the way up. It is ignored if it has crossed a RETRACT or the close. */
static paramo_err signal_came(struct ucx_way *way, enum ucx_message message)
{
    bool over = way->state == WAY_OFF || way->conn->base.orphan;
    if (message == MESSAGE_PROBE && !way->connector && !way->probed) {
        way->probed = true;
        prove(way);
        return PARAMO_OK;
    }
    if (message == MESSAGE_ECHO && way->connector && way->proved && (way->state == WAY_READY_SENT || over))
        return over ? PARAMO_OK : last_send(way);
    if (message == MESSAGE_GO && way->state == WAY_LAST_SENT && tcp_send_held(way->conn)) {
        way_up(way);
        return PARAMO_OK;
    }
    return err_set(PARAMO_E_PROTOCOL, "message %u by UCX is out of place", message);
}

/* Called by UCX for each message of the peer. */
static ucs_status_t message_came(void *arg, const void *header, size_t header_len, void *data, size_t len,
                                 const ucp_am_recv_param_t *param)
{
    struct ucx_way *way = arg;
    struct ucx_word word;
    if (!way->conn)
        return UCS_OK;
    paramo_err err = ucx_word_came(header, header_len, param, &word);
    if (!err &&
        (word.message == MESSAGE_DATA || word.message == MESSAGE_AREA || word.message == MESSAGE_ROOM))
        err = ucx_bytes_came(way, &word, data, len);
    else if (!err && word.message == MESSAGE_END)
        tcp_break(way->conn,
                  err_set(PARAMO_E_DISCONNECTED, "peer %s closed the connection", way->conn->base.peer));
    else if (!err)
        err = signal_came(way, word.message);
    if (err && way->conn)
        tcp_break_later(way->conn, err_prefix(err, "peer %s", way->conn->base.peer));
    return UCS_OK;
}

/* ---- the endpoint -------------------------------------------------------------------------------------- */

static void wire_sent(void *request, ucs_status_t status, void *arg)
{
    struct ucx_way *way = arg;
    (void)status; /* a failure shows as the socket's end or as a timeout of the set-up */
    if (!way->van)
        return; /* kept, with its request */
    assert(way->ep && !way->wired);
    way->wired = true;
    way->context->api->request_free(request);
    if (way->conn)
        prove(way);
}

/* Learns when UCX has sent the message that connects the new endpoint: a flush ends after it. */
static paramo_err wire_watch(struct ucx_way *way)
{
    const struct ucx_api *api = way->context->api;
    assert(way->ep);
    assert(!way->wired);
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = wire_sent,
                                 .user_data = way};
    ucs_status_ptr_t flush = api->ep_flush(way->ep, &param);
    if (UCS_PTR_IS_ERR(flush))
        return err_set(PARAMO_E_UNSUPPORTED, "UCX: %s", api->status_string(UCS_PTR_STATUS(flush)));
    way->wired = !UCS_PTR_IS_PTR(flush);
    return PARAMO_OK;
}

/* UCX 1.13 leaks a hundred bytes for each endpoint whose other side is gone, so this is checked first. */
static bool other_side_left(const struct ucx_way *way)
{
    struct pollfd fd = {.fd = way->conn->source.fd, .events = POLLRDHUP};
    return poll(&fd, 1, 0) > 0;
}

/* UCX does not check an address. Over shared memory it comes from a process that has read our area, and such a
 * process could do anything to this one. Over a fabric it comes from a peer with the job's token, on a network that
 * the operator has called trusted. */
static paramo_err endpoint_begin(struct ucx_way *way, const struct ucx_setup *setup)
{
    uint8_t address[UCX_ADDRESS_MAX] = {0};
    assert(!way->ep);
    assert(way->worker);
    if (way->kind == UCX_SHM && setup->proof != area_proof(&way->ours))
        return err_set(PARAMO_E_PROTOCOL,
                       "the peer sent its UCX address without having read our shared memory");
    area_hide(&way->ours);
    if (other_side_left(way))
        return err_set(PARAMO_E_CLOSED, "the other side has closed the connection");
    memcpy(address, setup->address, setup->address_len);
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                              .address = (const ucp_address_t *)address};
    ucs_status_t status = way->context->api->ep_create(way->worker, &params, &way->ep);
    if (status)
        return err_set(PARAMO_E_UNSUPPORTED, "UCX: %s", way->context->api->status_string(status));
    return wire_watch(way);
}

/* ---- setting up, by own frames on the socket ----------------------------------------------------------- */

static paramo_err setup_send(struct ucx_way *way, const struct ucx_setup *what, bool last)
{
    uint8_t bytes[SETUP_BYTES_MAX];
    size_t len = ucx_setup_encode(what, bytes);
    if (!len)
        return err_set(PARAMO_E_UNSUPPORTED, "a UCX address of %zu bytes is too long", what->address_len);
    return tcp_send_own(way->conn, bytes, len, last);
}

static paramo_err setup_address(struct ucx_way *way, uint8_t kind)
{
    ucp_address_t *address;
    size_t len;
    ucs_status_t status = way->context->api->worker_get_address(way->worker, &address, &len);
    if (status)
        return err_set(PARAMO_E_UNSUPPORTED, "UCX: %s", way->context->api->status_string(status));
    struct ucx_setup what = {.kind = kind,
                             .way = (uint8_t)way->kind,
                             .area = way->ours.place,
                             .proof = way->theirs.head ? area_proof(&way->theirs) : 0,
                             .address = (const uint8_t *)address,
                             .address_len = len};
    paramo_err err = setup_send(way, &what, false);
    way->context->api->worker_release_address(way->worker, address);
    return err;
}

/* The connection stays on the socket, or ends if UCX is required. */
static void way_off(struct ucx_way *way, const char *why)
{
    struct tcp_conn *conn = way->conn;
    lane_timer_cancel(conn->base.lane, &way->late);
    move(way, WAY_OFF);
    area_close(&way->ours);
    area_close(&way->theirs);
    if (way->van->config.required)
        tcp_break_later(conn,
                        err_set(PARAMO_E_REFUSED, "%s cannot be reached by UCX: %s", conn->base.peer, why));
    else
        log_info("van: %s by tcp: %s", conn->base.peer, why);
}

static paramo_err late_arm(struct ucx_way *way);

static void way_timed_out(struct lane_timer *timer)
{
    struct ucx_way *way = container_of(timer, struct ucx_way, late);
    struct tcp_conn *conn = way->conn;
    if (way->state == WAY_OFFERED) {
        way_off(way, "the peer does not speak UCX");
        return;
    }
    paramo_err err;
    if (way->state == WAY_LAST_SENT && !tcp_send_held(conn)) {
        err = late_arm(way); /* LAST is behind a long frame: nothing waits for the way yet */
    } else {
        atomic_store(&way->van->failed[way->kind], true);
        log_warn("van: %s: UCX did not start in time; later connections do not try %s", conn->base.peer,
                 kind_text(way->kind));
        if (way->state == WAY_STARTING || way->state == WAY_READY_SENT) {
            way_off(way, "UCX did not start in time");
            err = setup_send(way, &(struct ucx_setup){.kind = SETUP_RETRACT}, false);
        } else { /* frames wait for GO */
            err = err_set(PARAMO_E_DISCONNECTED, "UCX to %s did not start in time", conn->base.peer);
        }
    }
    if (err)
        tcp_break_later(conn, err);
}

static paramo_err late_arm(struct ucx_way *way)
{
    struct lane *lane = way->conn->base.lane;
    way->late.fire = way_timed_out;
    return lane_timer_arm(lane, &way->late, lane_now(lane) + SETUP_SECONDS * ENV_SEC);
}

/* From here on this side's frames wait for GO. */
static paramo_err last_send(struct ucx_way *way)
{
    paramo_err err = setup_send(way, &(struct ucx_setup){.kind = SETUP_LAST}, true);
    if (err)
        return err;
    move(way, WAY_LAST_SENT);
    return late_arm(way);
}

static paramo_err offer(struct ucx_way *way)
{
    const char *why[UCX_KINDS];
    struct ucx_setup what = {.kind = SETUP_OFFER, .version = SETUP_VERSION, .host = way->van->host};
    for (unsigned i = 0; i < UCX_KINDS; i++)
        what.kinds |= (uint8_t)(ucx_allows(way->van, i, &why[i]) << i);
    if ((what.kinds >> UCX_SHM & 1) && area_create(lane_env(way->conn->base.lane), &way->ours)) {
        why[UCX_SHM] = "shared memory cannot be used";
        log_info("van: %s", err_text());
        what.kinds &= (uint8_t) ~(1u << UCX_SHM);
    }
    if (!what.kinds) {
        way_off(way, why[UCX_SHM]);
        return PARAMO_OK;
    }
    what.area = way->ours.place;
    move(way, WAY_OFFERED);
    paramo_err err = setup_send(way, &what, false);
    return err ? err : late_arm(way);
}

static void decline(struct ucx_way *way, const char *why)
{
    struct ucx_setup what = {.kind = SETUP_DECLINE};
    (void)snprintf(what.why, sizeof what.why, "%s", why);
    if (setup_send(way, &what, false))
        log_debug("van: %s: %s", way->conn->base.peer, err_text());
    way_off(way, why);
}

static paramo_err areas_begin(struct ucx_way *way, const struct area_place *theirs)
{
    paramo_err err = area_open(theirs, &way->theirs);
    return !err && !way->ours.head ? area_create(lane_env(way->conn->base.lane), &way->ours) : err;
}

static void offer_ready(struct ucx_way *way, paramo_err err)
{
    assert(way->state == WAY_STARTING && !way->connector);
    if (!err)
        err = setup_address(way, SETUP_ACCEPT);
    if (err) {
        log_info("van: %s: %s", conn_peer(way), err_text());
        decline(way, "UCX failed on the accepting side");
        return;
    }
    move(way, WAY_ACCEPTED);
}

static paramo_err offer_came(struct ucx_way *way, const struct ucx_setup *o)
{
    const char *why[UCX_KINDS];
    bool may[UCX_KINDS];
    for (unsigned i = 0; i < UCX_KINDS; i++)
        may[i] = ucx_allows(way->van, i, &why[i]) && (o->kinds >> i & 1);
    bool same = o->host == way->van->host;
    enum ucx_kind kind = same && may[UCX_SHM] ? UCX_SHM : UCX_FABRIC;
    if (o->version != SETUP_VERSION || !may[kind]) {
        const char *cause = same && why[UCX_SHM] ? why[UCX_SHM]
                            : why[UCX_FABRIC]    ? why[UCX_FABRIC]
                                                 : "the two sides allow different ways";
        decline(way,
                o->version != SETUP_VERSION ? "the peers speak different versions of the UCX setup" : cause);
        return PARAMO_OK;
    }
    paramo_err err = kind == UCX_SHM ? areas_begin(way, &o->area) : PARAMO_OK;
    if (err || ucx_worker_begin(way, kind, message_came, offer_ready)) {
        log_info("van: %s: %s", conn_peer(way), err_text());
        decline(way, err ? "shared memory cannot be used" : "UCX failed on the accepting side");
        return PARAMO_OK;
    }
    move(way, WAY_STARTING);
    return PARAMO_OK;
}

/* The connector's part after ACCEPT has failed: tells the acceptor. */
static paramo_err retract(struct ucx_way *way, const char *why)
{
    way_off(way, why);
    return setup_send(way, &(struct ucx_setup){.kind = SETUP_RETRACT}, false);
}

static void accept_ready(struct ucx_way *way, paramo_err err)
{
    assert(way->connector);
    if (way->state == WAY_OFF)
        return; /* it was too late; the worker stays until the connection ends */
    assert(way->state == WAY_STARTING);
    if (!err)
        err = endpoint_begin(way, &way->accept);
    if (!err)
        err = setup_address(way, SETUP_READY);
    if (!err) {
        move(way, WAY_READY_SENT);
        prove(way);
        err = late_arm(way);
    } else if (err != PARAMO_E_PROTOCOL) {
        log_info("van: %s: %s", conn_peer(way), err_text());
        err = retract(way, "UCX failed here");
    }
    if (err)
        tcp_break_later(way->conn, err);
}

static paramo_err accept_came(struct ucx_way *way, const struct ucx_setup *a)
{
    const char *why;
    bool may = ucx_allows(way->van, a->way, &why);
    if (a->way == UCX_SHM && !way->ours.head)
        return err_set(PARAMO_E_PROTOCOL, "the peer accepted a way that was not offered");
    paramo_err err = PARAMO_OK;
    if (may && a->way == UCX_SHM)
        err = areas_begin(way, &a->area);
    if (may && !err)
        err = ucx_worker_begin(way, a->way, message_came, accept_ready);
    if (may && !err) {
        way->accept = *a;
        memcpy(way->accept_address, a->address, a->address_len);
        way->accept.address = way->accept_address;
        move(way, WAY_STARTING);
        return PARAMO_OK;
    }
    if (err)
        log_info("van: %s: %s", conn_peer(way), err_text());
    return retract(way, err ? "UCX failed here" : why);
}

static paramo_err ready_came(struct ucx_way *way, const struct ucx_setup *r)
{
    paramo_err err = endpoint_begin(way, r);
    if (err == PARAMO_E_PROTOCOL)
        return err;
    if (err) {
        log_info("van: %s: %s", conn_peer(way), err_text());
        decline(way, "UCX failed on the accepting side");
        return PARAMO_OK;
    }
    move(way, WAY_READY_CAME);
    prove(way);
    return PARAMO_OK;
}

static paramo_err last_came(struct ucx_way *way)
{
    way->conn->in_by_way = true;
    ucx_signal(way, MESSAGE_GO);
    return way->connector ? PARAMO_OK : last_send(way);
}

static paramo_err way_own(struct tcp_conn *conn, const uint8_t *bytes, size_t len)
{
    struct ucx_setup setup;
    paramo_err err = ucx_setup_decode(bytes, len, &setup);
    if (!err && !conn->way) { /* an accepted connection that was not settled yet */
        err = ucx_way_prepare(conn);
        if (!err)
            conn->way->connector = false;
    }
    if (err)
        return err;
    struct ucx_way *way = conn->way;
    enum way_state state = way->state;
    if (!way->connector && state == WAY_NEW && setup.kind == SETUP_OFFER && !way->offered) {
        if (way->stays)
            return offer_came(way, &setup);
        way->offer = setup;
        way->offered = true;
        return PARAMO_OK;
    }
    if (way->connector && state == WAY_OFFERED && setup.kind == SETUP_ACCEPT)
        return accept_came(way, &setup);
    if (way->connector && state == WAY_OFF && setup.kind == SETUP_ACCEPT)
        return setup_send(way, &(struct ucx_setup){.kind = SETUP_RETRACT}, false); /* too late */
    if (!way->connector && state == WAY_ACCEPTED && setup.kind == SETUP_READY)
        return ready_came(way, &setup);
    if (way->connector && setup.kind == SETUP_DECLINE && (state == WAY_OFFERED || state == WAY_READY_SENT)) {
        way_off(way, setup.why);
        return PARAMO_OK;
    }
    if (!way->connector && setup.kind == SETUP_RETRACT &&
        (state == WAY_ACCEPTED || state == WAY_READY_CAME)) {
        way_off(way, "UCX failed on the connecting side");
        return PARAMO_OK;
    }
    if (state == WAY_OFF && setup.kind == (way->connector ? SETUP_DECLINE : SETUP_RETRACT))
        return PARAMO_OK; /* it has crossed ours */
    if (setup.kind == SETUP_LAST && !conn->in_by_way &&
        (way->connector ? state == WAY_LAST_SENT || state == WAY_UP : state == WAY_READY_CAME && way->proved))
        return last_came(way);
    return err_set(PARAMO_E_PROTOCOL, "UCX setup frame %u is out of place", setup.kind);
}

/* ---- life cycle ---------------------------------------------------------------------------------------- */

paramo_err ucx_way_prepare(struct tcp_conn *conn)
{
    assert(!conn->way);
    struct ucx_way *way = calloc(1, sizeof *way);
    if (!way)
        return err_memory(sizeof *way);
    way->conn = conn;
    way->van = van_of(conn);
    way->connector = true;
    conn->way = way;
    return PARAMO_OK;
}

static void way_conn_stays(struct tcp_conn *conn)
{
    paramo_err err = PARAMO_OK;
    if (conn->state > TCP_OPEN || conn->move_to)
        return;
    if (!conn->way && !(err = ucx_way_prepare(conn)))
        conn->way->connector = false;
    if (!err && !conn->way->stays) {
        struct ucx_way *way = conn->way;
        way->stays = true;
        if (way->connector && (way->van->config.required || way->van->config.at_once))
            err = offer(way);
        else if (!way->connector && way->offered)
            err = offer_came(way, &way->offer);
    }
    if (err)
        tcp_break_later(conn, err);
}

static void way_used(struct tcp_conn *conn)
{
    struct ucx_way *way = conn->way;
    if (!way->connector || !way->stays || way->state != WAY_NEW)
        return;
    const struct van_counters *n = &conn->base.counters;
    if (n->frames_sent + n->frames_received < WORTH_FRAMES && n->bytes_sent + n->bytes_received < WORTH_BYTES)
        return;
    paramo_err err = offer(way);
    if (err)
        tcp_break_later(conn, err);
}

static void way_end(struct tcp_conn *conn)
{
    struct ucx_way *way = conn->way;
    if (!way)
        return;
    assert(way->conn == conn);
    conn->way = NULL;
    way->conn = NULL;
    lane_timer_cancel(conn->base.lane, &way->late);
    ucx_worker_end(way);
}

const struct tcp_way_ops ucx_way_ops = {
    .conn_stays = way_conn_stays,
    .used = way_used,
    .own = way_own,
    .write = ucx_write,
    .finish = way_finish,
    .end = way_end,
};
#else
typedef int ucx_way_is_left_out; /* a translation unit may not be empty */
#endif
