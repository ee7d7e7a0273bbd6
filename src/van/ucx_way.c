#ifdef PARAMO_HAVE_UCX
#include "van/ucx.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cursor.h"
#include "base/log.h"

/* Own frames: kind 1, then what the kind says. */
enum { SAY_OFFER = 1, SAY_ACCEPT, SAY_DECLINE, SAY_READY, SAY_RETRACT, SAY_SWITCH, SAY_VERSION = 1 };
/* The header of a message by UCX. */
enum message { MESSAGE_DATA, MESSAGE_PROBE, MESSAGE_GO, MESSAGE_END, MESSAGE_KINDS };
static const uint64_t message_header[MESSAGE_KINDS] = {MESSAGE_DATA, MESSAGE_PROBE, MESSAGE_GO, MESSAGE_END};

enum { AM_ID = 1, OFFER_MAX = 64, PROGRESS_MAX = 4, BUSY_MAX = 16, SETUP_SECONDS = 5 };
#define NUDGE_MIN_NS (50 * ENV_US)
#define NUDGE_MAX_NS (1 * ENV_MS)

/*
 *   connector: NEW -> OFFERED -> READY_SAID ----> UP
 *   acceptor:  NEW -> ACCEPTED -> SWITCH_SAID --> UP      OFF: stays on the socket
 */
enum way_state { WAY_NEW, WAY_OFFERED, WAY_ACCEPTED, WAY_READY_SAID, WAY_SWITCH_SAID, WAY_UP, WAY_OFF };

/* Those of one lane; lives from the first worker to the last. */
struct ucx_lane {
    struct lane_hook hook;
    struct lane *lane;
    struct ucx_way *ways;
    struct lane_timer nudge; /* polls what UCX would not wake us for */
    uint64_t nudge_ns;
};

struct ucx_way {
    struct tcp_conn *conn; /* NULL: ended */
    struct ucx_van *van;
    enum way_state state;
    bool connector;
    bool settled;
    bool probed;              /* the peer's PROBE came before we said SWITCH */
    uint8_t offer[OFFER_MAX]; /* came before we were settled */
    size_t offer_len;
    struct lane_timer late;

    /* from here on with a worker */
    enum ucx_kind kind;
    const struct ucx_context *context;
    ucp_worker_h worker;
    ucp_ep_h ep;
    struct ucx_lane *lane;
    struct ucx_way *next;
    struct lane_source source;
    struct lane_task end;
    bool armed;   /* whatever comes makes source ready */
    bool pending; /* UCX has not taken the message yet */
    bool moved;   /* a send was completed in this round */
    unsigned busy;
    size_t message_len;
};

static struct ucx_van *van_of(const struct tcp_conn *conn)
{
    return (struct ucx_van *)conn->base.van;
}

/* ThreadSanitizer does not see that what a message carries happened before, where both ends are one process.
 */
#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *);
void __tsan_release(void *);
static char by_memory;
#define CARRY_AWAY() __tsan_release(&by_memory)
#define CARRY_IN()   __tsan_acquire(&by_memory)
#else
#define CARRY_AWAY() ((void)0)
#define CARRY_IN()   ((void)0)
#endif

static const char *conn_peer(const struct ucx_way *way)
{
    return way->conn->base.peer;
}

static const char *kind_text(enum ucx_kind kind)
{
    return kind == UCX_SHM ? "shared memory (UCX): the same host and user" : "the trusted fabric (UCX)";
}

/* ---- the lane's hook
 * ------------------------------------------------------------------------------------------ */

static void nudge_fire(struct lane_timer *timer)
{
    (void)timer; /* the round polls */
}

static void nudge(struct ucx_lane *l)
{
    if (l->nudge.slot)
        return;
    l->nudge_ns = l->nudge_ns ? 2 * l->nudge_ns : NUDGE_MIN_NS;
    if (l->nudge_ns > NUDGE_MAX_NS)
        l->nudge_ns = NUDGE_MAX_NS;
    if (lane_timer_arm(l->lane, &l->nudge, lane_now(l->lane) + l->nudge_ns))
        log_error("%s: %s", lane_name(l->lane), err_text());
}

static bool hook_progress(struct lane_hook *hook)
{
    struct ucx_lane *l = container_of(hook, struct ucx_lane, hook);
    bool any = false;
    for (struct ucx_way *way = l->ways; way; way = way->next) {
        unsigned handled = 0;
        way->moved = false;
        for (unsigned i = 0, n = 1; i < PROGRESS_MAX && n && way->conn; i++)
            handled += n = way->context->api->worker_progress(way->worker);
        if (handled || way->moved) {
            way->armed = false;
            way->busy = 0;
            any = true;
        }
    }
    if (any)
        l->nudge_ns = 0;
    return any;
}

static bool hook_arm(struct lane_hook *hook)
{
    struct ucx_lane *l = container_of(hook, struct ucx_lane, hook);
    bool all = true;
    for (struct ucx_way *way = l->ways; way; way = way->next) {
        if (!way->conn)
            continue;
        if (way->pending) {
            nudge(l); /* UCX tells nobody that a full queue has room again */
            continue;
        }
        if (way->armed)
            continue;
        ucs_status_t status = way->context->api->worker_arm(way->worker);
        way->armed = status == UCS_OK;
        if (status == UCS_ERR_BUSY && ++way->busy < BUSY_MAX)
            all = false;
        else if (status)
            nudge(l);
    }
    return all;
}

static void worker_woken(struct lane_source *source, uint32_t events)
{
    (void)events;
    container_of(source, struct ucx_way, source)->armed = false;
}

static paramo_err lane_join(struct ucx_way *way, struct lane *lane)
{
    struct lane_hook *hook = lane_hook(lane);
    struct ucx_lane *l = hook ? container_of(hook, struct ucx_lane, hook) : NULL;
    if (!l) {
        l = calloc(1, sizeof *l);
        if (!l)
            return err_memory(sizeof *l);
        l->lane = lane;
        l->hook = (struct lane_hook){.progress = hook_progress, .arm = hook_arm};
        l->nudge.fire = nudge_fire;
        lane_hook_set(lane, &l->hook);
    }
    way->lane = l;
    way->next = l->ways;
    l->ways = way;
    nudge(l); /* wakes a driver that went to sleep without this worker */
    return PARAMO_OK;
}

static void lane_part(struct ucx_way *way)
{
    struct ucx_lane *l = way->lane;
    struct ucx_way **at = &l->ways;
    while (*at != way)
        at = &(*at)->next;
    *at = way->next;
    if (l->ways)
        return;
    lane_timer_cancel(l->lane, &l->nudge);
    lane_hook_set(l->lane, NULL);
    free(l);
}

/* ---- messages by UCX
 * ------------------------------------------------------------------------------------------ */

static void signal_sent(void *request, ucs_status_t status, void *arg)
{
    struct ucx_way *way = arg;
    (void)status; /* what cannot be sent shows as the socket's end or as a late set-up */
    way->moved = true;
    way->context->api->request_free(request);
}

static void data_sent(void *request, ucs_status_t status, void *arg)
{
    struct ucx_way *way = arg;
    way->moved = true;
    way->pending = false;
    way->context->api->request_free(request);
    if (!way->conn)
        return;
    if (status != UCS_OK)
        tcp_break_later(way->conn, err_set(PARAMO_E_DISCONNECTED, "UCX to %s: %s", way->conn->base.peer,
                                           way->context->api->status_string(status)));
    else
        tcp_way_open(way->conn, way->message_len);
}

/* UCX asks for the bytes of a message when it has room for them, which may be long after it was given: they
 * are what is to leave next, wherever that lies by then. */
static void *pack_start(void *context, const void *buffer, size_t count)
{
    (void)context;
    (void)count;
    return (void *)(uintptr_t)buffer;
}

static size_t pack_size(void *state)
{
    return ((const struct ucx_way *)state)->message_len;
}

static size_t pack(void *state, size_t offset, void *dst, size_t len)
{
    struct ucx_way *way = state;
    struct iovec iov[1 + 2 * VAN_SEGS];
    uint8_t *to = dst;
    size_t at = 0, skip = offset;
    int n = 0;
    if (way->conn)
        (void)tcp_gather(way->conn, iov, &n, offset + len);
    CARRY_AWAY();
    for (int i = 0; i < n; i++) {
        if (skip >= iov[i].iov_len) {
            skip -= iov[i].iov_len;
            continue;
        }
        memcpy(to + at, (const uint8_t *)iov[i].iov_base + skip, iov[i].iov_len - skip);
        at += iov[i].iov_len - skip;
        skip = 0;
    }
    return at;
}

static void pack_finish(void *state)
{
    (void)state;
}

static void *unpack_start(void *context, void *buffer, size_t count)
{
    (void)context;
    (void)count;
    return buffer;
}

static ucs_status_t unpack(void *state, size_t offset, const void *src, size_t len)
{
    (void)state;
    (void)offset;
    (void)src;
    (void)len;
    return UCS_ERR_UNSUPPORTED; /* messages are read where they come */
}

const ucp_generic_dt_ops_t ucx_pack_ops = {.start_pack = pack_start,
                                           .start_unpack = unpack_start,
                                           .packed_size = pack_size,
                                           .pack = pack,
                                           .unpack = unpack,
                                           .finish = pack_finish};

static void send_failed(struct ucx_way *way, ucs_status_ptr_t sent)
{
    tcp_break_later(way->conn, err_set(PARAMO_E_DISCONNECTED, "UCX to %s: %s", conn_peer(way),
                                       way->context->api->status_string(UCS_PTR_STATUS(sent))));
}

static void signal_send(struct ucx_way *way, enum message kind)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags = UCP_AM_SEND_FLAG_EAGER,
                                 .cb.send = signal_sent,
                                 .user_data = way};
    ucs_status_ptr_t sent = way->context->api->am_send(way->ep, AM_ID, &message_header[kind],
                                                       sizeof message_header[kind], NULL, 0, &param);
    if (UCS_PTR_IS_ERR(sent))
        send_failed(way, sent);
}

static size_t way_write(struct tcp_conn *conn, const struct iovec *iov, int n)
{
    struct ucx_way *way = conn->way;
    if (way->pending)
        return 0;
    size_t len = 0;
    for (int i = 0; i < n; i++)
        len += iov[i].iov_len;
    way->message_len = len < way->context->message_bytes ? len : way->context->message_bytes;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_DATATYPE,
                                 .flags = UCP_AM_SEND_FLAG_EAGER,
                                 .datatype = way->context->datatype,
                                 .cb.send = data_sent,
                                 .user_data = way};
    ucs_status_ptr_t sent = way->context->api->am_send(way->ep, AM_ID, &message_header[MESSAGE_DATA],
                                                       sizeof message_header[MESSAGE_DATA], way, 1, &param);
    if (UCS_PTR_IS_ERR(sent))
        send_failed(way, sent);
    way->pending = UCS_PTR_IS_PTR(sent);
    return sent == NULL ? way->message_len : 0;
}

static void way_finish(struct tcp_conn *conn)
{
    signal_send(conn->way, MESSAGE_END);
}

static void way_up(struct ucx_way *way)
{
    way->state = WAY_UP;
    lane_timer_cancel(way->conn->base.lane, &way->late);
    log_info("van: %s by %s", way->conn->base.peer, kind_text(way->kind));
    tcp_way_open(way->conn, 0);
}

static void probe_came(struct ucx_way *way)
{
    way->probed = true;
    if (way->state != WAY_SWITCH_SAID)
        return;
    signal_send(way, MESSAGE_GO);
    way_up(way);
}

static ucs_status_t message_came(void *arg, const void *header, size_t header_len, void *data, size_t len,
                                 const ucp_am_recv_param_t *param)
{
    struct ucx_way *way = arg;
    uint64_t kind;
    if (!way->conn)
        return UCS_OK;
    if (header_len != sizeof kind || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        tcp_break_later(
            way->conn, err_set(PARAMO_E_PROTOCOL, "peer %s: a strange message by UCX", way->conn->base.peer));
        return UCS_OK;
    }
    memcpy(&kind, header, sizeof kind);
    CARRY_IN();
    if (kind == MESSAGE_DATA)
        (void)tcp_recv_bytes(way->conn, data, len);
    else if (kind == MESSAGE_PROBE && !way->connector && !way->probed)
        probe_came(way);
    else if (kind == MESSAGE_GO && way->state == WAY_READY_SAID)
        way_up(way);
    else if (kind == MESSAGE_END)
        tcp_break(way->conn,
                  err_set(PARAMO_E_DISCONNECTED, "peer %s closed the connection", way->conn->base.peer));
    else
        tcp_break_later(way->conn, err_set(PARAMO_E_PROTOCOL, "peer %s: an unexpected message by UCX",
                                           way->conn->base.peer));
    return UCS_OK;
}

/* ---- the worker
 * ----------------------------------------------------------------------------------------------- */

static void worker_end(struct lane_task *task)
{
    struct ucx_way *way = container_of(task, struct ucx_way, end);
    way->context->api->worker_destroy(way->worker); /* with its endpoint and messages */
    lane_part(way);
    free(way);
}

static paramo_err worker_begin(struct ucx_way *way, enum ucx_kind kind)
{
    struct lane *lane = way->conn->base.lane;
    int fd;
    paramo_err err = ucx_context_of(way->van, kind, &way->context);
    if (err)
        return err;
    const struct ucx_api *api = way->context->api;
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                                    UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                    UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                      .id = AM_ID,
                                      .cb = message_came,
                                      .arg = way};
    ucs_status_t status = api->worker_create(way->context->handle, &params, &way->worker);
    if (status)
        goto err_forget;
    status = api->worker_set_am_recv_handler(way->worker, &handler);
    if (!status)
        status = api->worker_get_efd(way->worker, &fd);
    if (status)
        goto err_destroy;
    way->source = (struct lane_source){.fd = fd, .events = EPOLLIN, .ready = worker_woken, .quiet = true};
    err = lane_source_add(lane, &way->source);
    if (err)
        goto err_destroy;
    err = lane_join(way, lane);
    if (err) {
        lane_source_remove(lane, &way->source);
        goto err_destroy;
    }
    way->kind = kind;
    way->end.run = worker_end;
    atomic_fetch_add(&way->van->ways, 1);
    return PARAMO_OK;

err_destroy:
    api->worker_destroy(way->worker);
err_forget:
    way->worker = NULL;
    return err ? err : err_set(PARAMO_E_UNSUPPORTED, "UCX: %s", api->status_string(status));
}

/* A peer that has proved who it is sends this; UCX itself does not check it. */
static paramo_err endpoint_begin(struct ucx_way *way, struct reader *r)
{
    uint8_t address[UCX_ADDRESS_MAX] = {0};
    size_t len = read_u16(r);
    if (len > sizeof address || len != r->left)
        return err_set(PARAMO_E_PROTOCOL, "a UCX address of %zu bytes", len);
    read_bytes(r, address, len);
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                              .address = (const ucp_address_t *)address};
    ucs_status_t status = way->context->api->ep_create(way->worker, &params, &way->ep);
    if (status)
        return err_set(PARAMO_E_UNSUPPORTED, "UCX: %s", way->context->api->status_string(status));
    return PARAMO_OK;
}

/* ---- setting up, by own frames on the socket
 * -------------------------------------------------------------------- */

static paramo_err say_address(struct ucx_way *way, uint8_t kind, bool last)
{
    uint8_t bytes[UCX_ADDRESS_MAX + 8];
    struct writer w = writer_over(bytes, sizeof bytes);
    ucp_address_t *address;
    size_t len;
    ucs_status_t status = way->context->api->worker_get_address(way->worker, &address, &len);
    if (status)
        return err_set(PARAMO_E_UNSUPPORTED, "UCX: %s", way->context->api->status_string(status));
    write_u8(&w, kind);
    if (kind == SAY_ACCEPT)
        write_u8(&w, (uint8_t)way->kind);
    write_u16(&w, (uint16_t)len);
    write_bytes(&w, address, len);
    way->context->api->worker_release_address(way->worker, address);
    if (w.failed || len > UCX_ADDRESS_MAX)
        return err_set(PARAMO_E_UNSUPPORTED, "UCX: an address of %zu bytes", len);
    return tcp_say(way->conn, bytes, w.len, last);
}

/* The connection stays as it is, or ends if UCX is a must. */
static void way_off(struct ucx_way *way, const char *why)
{
    struct tcp_conn *conn = way->conn;
    lane_timer_cancel(conn->base.lane, &way->late);
    way->state = WAY_OFF;
    if (way->van->config.required)
        tcp_break_later(conn,
                        err_set(PARAMO_E_REFUSED, "%s cannot be reached by UCX: %s", conn->base.peer, why));
    else
        log_info("van: %s by tcp: %s", conn->base.peer, why);
}

static void way_late(struct lane_timer *timer)
{
    struct ucx_way *way = container_of(timer, struct ucx_way, late);
    struct tcp_conn *conn = way->conn;
    if (way->state == WAY_OFFERED) {
        way_off(way, "it does not speak UCX");
        return;
    }
    /* Bytes wait for a way that does not come up: the next connection does not try. */
    atomic_store(&way->van->failed[way->kind], true);
    log_warn("van: %s: UCX does not come up; no more of it by %s", conn->base.peer, kind_text(way->kind));
    tcp_break_later(conn, err_set(PARAMO_E_DISCONNECTED, "UCX to %s does not come up", conn->base.peer));
}

static paramo_err late_arm(struct ucx_way *way)
{
    struct lane *lane = way->conn->base.lane;
    way->late.fire = way_late;
    return lane_timer_arm(lane, &way->late, lane_now(lane) + SETUP_SECONDS * ENV_SEC);
}

static paramo_err offer(struct ucx_way *way)
{
    uint8_t bytes[OFFER_MAX];
    const char *why[UCX_KINDS];
    struct writer w = writer_over(bytes, sizeof bytes);
    uint8_t kinds = 0;
    for (unsigned i = 0; i < UCX_KINDS; i++)
        kinds |= (uint8_t)(ucx_allows(way->van, i, &why[i]) << i);
    if (!kinds) {
        way_off(way, why[UCX_SHM]);
        return PARAMO_OK;
    }
    write_u8(&w, SAY_OFFER);
    write_u8(&w, SAY_VERSION);
    write_u64(&w, way->van->host);
    write_u8(&w, kinds);
    way->state = WAY_OFFERED;
    paramo_err err = tcp_say(way->conn, bytes, w.len, false);
    return err ? err : late_arm(way);
}

static void decline(struct ucx_way *way, const char *why)
{
    uint8_t bytes[256];
    struct writer w = writer_over(bytes, sizeof bytes);
    write_u8(&w, SAY_DECLINE);
    write_string(&w, why);
    if (tcp_say(way->conn, bytes, w.len, false))
        log_debug("van: %s: %s", way->conn->base.peer, err_text());
    way_off(way, why);
}

static paramo_err offer_came(struct ucx_way *way, struct reader *r)
{
    const char *why[UCX_KINDS];
    bool may[UCX_KINDS];
    uint8_t version = read_u8(r);
    uint64_t host = read_u64(r);
    uint8_t kinds = read_u8(r);
    if (!reader_done(r))
        return err_set(PARAMO_E_PROTOCOL, "an offer of UCX that is none");
    for (unsigned i = 0; i < UCX_KINDS; i++)
        may[i] = ucx_allows(way->van, i, &why[i]) && (kinds >> i & 1);
    bool same = host == way->van->host;
    enum ucx_kind kind = same && may[UCX_SHM] ? UCX_SHM : UCX_FABRIC;
    if (version != SAY_VERSION || !may[kind]) {
        const char *cause = same && why[UCX_SHM] ? why[UCX_SHM]
                            : why[UCX_FABRIC]    ? why[UCX_FABRIC]
                                                 : "the two sides allow different ways";
        decline(way, version != SAY_VERSION ? "another version of the way" : cause);
        return PARAMO_OK;
    }
    if (worker_begin(way, kind) || say_address(way, SAY_ACCEPT, false)) {
        log_info("van: %s: %s", conn_peer(way), err_text());
        decline(way, "UCX failed there");
        return PARAMO_OK;
    }
    way->state = WAY_ACCEPTED;
    return PARAMO_OK;
}

static paramo_err accept_came(struct ucx_way *way, struct reader *r)
{
    uint8_t kind = read_u8(r);
    const char *why;
    if (kind >= UCX_KINDS)
        return err_set(PARAMO_E_PROTOCOL, "UCX of kind %u", kind);
    bool may = ucx_allows(way->van, kind, &why);
    paramo_err err = may ? worker_begin(way, kind) : PARAMO_OK;
    if (may && !err)
        err = endpoint_begin(way, r);
    if (may && !err)
        err = say_address(way, SAY_READY, true);
    if (may && !err) {
        way->state = WAY_READY_SAID;
        return late_arm(way);
    }
    if (err)
        log_info("van: %s: %s", conn_peer(way), err_text());
    way_off(way, err ? "UCX failed here" : why);
    return tcp_say(way->conn, &(uint8_t){SAY_RETRACT}, 1, false);
}

static paramo_err ready_came(struct ucx_way *way, struct reader *r)
{
    paramo_err err = endpoint_begin(way, r);
    if (!err)
        err = tcp_say(way->conn, &(uint8_t){SAY_SWITCH}, 1, true);
    if (!err)
        err = late_arm(way);
    if (err)
        return err;
    way->conn->in_by_way = true;
    way->state = WAY_SWITCH_SAID;
    if (way->probed)
        probe_came(way);
    return PARAMO_OK;
}

static paramo_err way_own(struct tcp_conn *conn, const uint8_t *bytes, size_t len)
{
    struct reader r = reader_over(bytes, len);
    uint8_t kind = read_u8(&r);
    if (!conn->way) { /* an accepted connection that was not settled yet */
        paramo_err err = ucx_way_prepare(conn);
        if (err)
            return err;
        conn->way->connector = false;
    }
    struct ucx_way *way = conn->way;
    if (!way->connector && way->state == WAY_NEW && kind == SAY_OFFER && !way->offer_len) {
        if (way->settled)
            return offer_came(way, &r);
        if (len > sizeof way->offer)
            return err_set(PARAMO_E_PROTOCOL, "an offer of UCX of %zu bytes", len);
        memcpy(way->offer, bytes, len);
        way->offer_len = len;
        return PARAMO_OK;
    }
    if (way->connector && way->state == WAY_OFFERED && kind == SAY_ACCEPT)
        return accept_came(way, &r);
    if (way->connector && way->state == WAY_OFFERED && kind == SAY_DECLINE) {
        char why[200];
        read_string(&r, why, sizeof why);
        if (!reader_done(&r))
            return err_set(PARAMO_E_PROTOCOL, "a refusal of UCX without a reason");
        way_off(way, why);
        return PARAMO_OK;
    }
    if (way->connector && way->state == WAY_OFF && kind == SAY_ACCEPT)
        return tcp_say(conn, &(uint8_t){SAY_RETRACT}, 1, false); /* too late */
    if (!way->connector && way->state == WAY_ACCEPTED && kind == SAY_READY)
        return ready_came(way, &r);
    if (!way->connector && way->state == WAY_ACCEPTED && kind == SAY_RETRACT) {
        way_off(way, "UCX failed there");
        return PARAMO_OK;
    }
    if (way->connector && way->state == WAY_READY_SAID && kind == SAY_SWITCH) {
        conn->in_by_way = true;
        signal_send(way, MESSAGE_PROBE);
        return PARAMO_OK;
    }
    return err_set(PARAMO_E_PROTOCOL, "own frame %u is out of place", kind);
}

/* ---- life cycle
 * ----------------------------------------------------------------------------------------------- */

paramo_err ucx_way_prepare(struct tcp_conn *conn)
{
    struct ucx_way *way = calloc(1, sizeof *way);
    if (!way)
        return err_memory(sizeof *way);
    way->conn = conn;
    way->van = van_of(conn);
    way->connector = true;
    conn->way = way;
    return PARAMO_OK;
}

static void way_settle(struct tcp_conn *conn)
{
    paramo_err err = PARAMO_OK;
    if (conn->state > TCP_OPEN || conn->move_to)
        return;
    if (!conn->way && !(err = ucx_way_prepare(conn)))
        conn->way->connector = false;
    if (!err && !conn->way->settled) {
        struct ucx_way *way = conn->way;
        way->settled = true;
        if (way->connector) {
            err = offer(way);
        } else if (way->offer_len) {
            struct reader r = reader_over(way->offer, way->offer_len);
            (void)read_u8(&r);
            err = offer_came(way, &r);
        }
    }
    if (err)
        tcp_break_later(conn, err);
}

/* What an orphan still has to send waits for a PROBE that nothing would lead to any more: of what comes, it
 * reads messages by UCX only. */
static void way_closing(struct tcp_conn *conn)
{
    struct ucx_way *way = conn->way;
    if (way && way->state == WAY_READY_SAID && !conn->in_by_way)
        signal_send(way, MESSAGE_PROBE);
}

static void way_end(struct tcp_conn *conn)
{
    struct ucx_way *way = conn->way;
    if (!way)
        return;
    conn->way = NULL;
    way->conn = NULL;
    lane_timer_cancel(conn->base.lane, &way->late);
    if (!way->worker) {
        free(way);
        return;
    }
    atomic_fetch_sub(&way->van->ways, 1);
    lane_source_remove(conn->base.lane, &way->source);
    lane_at_end(conn->base.lane, &way->end);
}

const struct tcp_way_ops ucx_way_ops = {
    .settle = way_settle,
    .own = way_own,
    .write = way_write,
    .closing = way_closing,
    .finish = way_finish,
    .end = way_end,
};
#else
typedef int ucx_way_is_left_out; /* a translation unit may not be empty */
#endif
