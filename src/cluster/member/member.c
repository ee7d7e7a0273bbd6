#include "cluster/member/member.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/sm.h"
#include "cluster/member/member_calls.h"
#include "cluster/member/member_impl.h"
#include "cluster/member/member_orders.h"
#include "cluster/session/control_message.h"
#include "wire/end.h"
#include "wire/register_call.h"

#define BACKOFF_MIN (20 * ENV_MS)
#define BACKOFF_MAX (500 * ENV_MS)
/* Bounds one attempt to connect, so that an address that swallows packets does not use up all the time. */
#define CONNECT_TIME (5 * ENV_SEC)
/* After the deadline of joining, the scheduler's own answer, which names the missing nodes, may still
 * come. */
#define JOIN_SLACK (400 * ENV_MS)
/* A scheduler that keeps its state is started again. An operator may have to be called first. */
#define RETURN_TIME (600 * ENV_SEC)

static void connect_again(struct member *m);
static void lost(struct member *m, const char *why);

static uint64_t now(const struct member *m)
{
    return lane_now(m->config.lane);
}

static void drop_connection(struct member *m)
{
    member_check(m);
    if (m->conn)
        van_close(m->conn, false);
    m->conn = NULL;
    m->registered = false;
    member_calls_unsend(m);
    member_check(m);
}

static const struct sm machine = {
    "member",
    {[MEMBER_JOINING] = {"joining", SM_TO(MEMBER_JOINED) | SM_TO(MEMBER_ENDED) | SM_TO(MEMBER_CLOSED)},
     [MEMBER_JOINED] = {"joined", SM_TO(MEMBER_LEAVING) | SM_TO(MEMBER_ENDED) | SM_TO(MEMBER_CLOSED)},
     [MEMBER_LEAVING] = {"leaving", SM_TO(MEMBER_ENDED) | SM_TO(MEMBER_CLOSED)},
     [MEMBER_ENDED] = {"ended", SM_TO(MEMBER_CLOSED)},
     [MEMBER_CLOSED] = {"closed", 0}}};

static void move(struct member *m, enum member_state to)
{
    sm_check(&machine, m->state, to);
    m->state = to;
}

static void next_scheduler(struct member *m)
{
    member_check(m);
    assert(!m->conn && !m->connector);
    m->scheduler_at = (m->scheduler_at + 1) % m->schedulers_count;
    m->scheduler = m->schedulers[m->scheduler_at];
}

static void stop_connecting(struct member *m)
{
    assert(!m->connector || (!m->conn && !m->reconnect_timer.slot));
    if (m->connector)
        connector_cancel(m->connector);
    m->connector = NULL;
    lane_timer_cancel(m->config.lane, &m->reconnect_timer);
    lane_timer_cancel(m->config.lane, &m->limit_timer);
}

/* The only way to MEMBER_ENDED: the job is over for this node. This thread's message is the cause. */
static void end(struct member *m, paramo_err status, bool keep_connection)
{
    enum member_state before = m->state;
    char text[ERR_TEXT_MAX];
    member_check(m);
    err_text_copy(text);
    stop_connecting(m);
    if (!keep_connection)
        drop_connection(m);
    move(m, MEMBER_ENDED);
    member_check(m);
    assert(!m->reconnect_timer.slot && !m->limit_timer.slot);
    if (status == PARAMO_OK)
        (void)err_set(PARAMO_E_SHUTDOWN, "the job is over");
    m->end_status = status ? status : PARAMO_E_SHUTDOWN;
    assert(before != MEMBER_CLOSED && m->end_status);
    err_text_copy(m->end_text);
    member_calls_fail(m, status ? status : PARAMO_E_SHUTDOWN, !m->conn);
    if (before == MEMBER_JOINING)
        m->config.on_joined(m->config.arg, status ? status : PARAMO_E_SHUTDOWN, text);
    else if (before == MEMBER_JOINED)
        m->config.on_ended(m->config.arg, status, text);
}

void member_fail(struct member *m, paramo_err status)
{
    member_check(m);
    if (m->state == MEMBER_JOINING || m->state == MEMBER_JOINED)
        end(m, status, false);
}

static void has_left(struct member *m)
{
    assert(m->conn); /* only the scheduler's message brings it here */
    stop_connecting(m);
    if (m->state == MEMBER_JOINED)
        move(m, MEMBER_LEAVING);
    member_check(m);
}

/* ---- messages ----------------------------------------------------------------------------------------- */

static paramo_err joined_perhaps(struct member *m)
{
    if (m->state != MEMBER_JOINING || !m->registered || !m->view)
        return PARAMO_OK;
    assert(m->id && m->view->complete);
    move(m, MEMBER_JOINED);
    member_check(m);
    lane_timer_cancel(m->config.lane, &m->limit_timer);
    m->config.on_joined(m->config.arg, PARAMO_OK, "");
    return PARAMO_OK;
}

static paramo_err got_view(struct member *m, struct reader *body)
{
    struct view *view;
    member_check(m);
    paramo_err err = view_decode(body, &view);
    if (err)
        return err;
    if (view->job != m->job)
        err = err_set(PARAMO_E_PROTOCOL, "the scheduler sent a view of another job");
    bool older = m->view && view->number <= m->view->number;
    /* After its end a node's shards get no view. A customer that is opened then must not have a newer one than they:
     * they would keep its requests until they had it, too. */
    bool late = m->state != MEMBER_JOINING && m->state != MEMBER_JOINED;
    if (err || !view->complete || older || late) {
        view_unref(view);
        return err;
    }
    view_unref(m->view);
    m->view = view;
    assert(m->job == view->job && (m->state == MEMBER_JOINING || m->state == MEMBER_JOINED));
    m->config.on_view(m->config.arg, view);
    err = joined_perhaps(m);
    member_calls_viewed(m);
    return err;
}

static paramo_err got_registered(struct member *m, const struct wire_reply *head, struct reader *body)
{
    if (m->registered)
        return PARAMO_OK;
    member_check(m);
    assert(m->conn);
    paramo_err status = err_from_wire(head->status), err;
    if (status) {
        char text[CALL_TEXT_MAX];
        err = call_text_decode(body, text);
        if (!err && status == PARAMO_E_CLOSED)
            has_left(m); /* its answer to LEAVE was lost */
        if (!err && m->state != MEMBER_ENDED)
            end(m, err_set(status, "%s", text), false);
        return err;
    }
    struct register_result result;
    err = register_result_decode(body, &result);
    if (err)
        return err;
    m->registered = true;
    m->id = result.node;
    m->recovered = result.recovered;
    m->returns = result.returns;
    if (m->state == MEMBER_JOINED)
        lane_timer_cancel(m->config.lane, &m->limit_timer);
    member_calls_resend(m, UINT64_MAX); /* none was sent on this connection */
    return joined_perhaps(m);
}

static paramo_err member_frame(void *user, struct van_conn *conn, const uint8_t bytes[VAN_HEAD],
                               const struct van_seg *seg, unsigned nseg)
{
    struct member *m = user;
    struct wire_head head;
    struct reader body;
    (void)conn;
    member_check(m);
    assert(m->conn == conn);
    paramo_err err = control_message_open(bytes, seg, nseg, &head, &body);
    if (err)
        return err;
    m->heard_at = now(m);
    switch (head.kind) {
    case WIRE_VIEW:
        return got_view(m, &body);
    case WIRE_REPLY:
        return head.reply.what == CALL_REGISTER ? got_registered(m, &head.reply, &body)
                                                : member_calls_reply(m, &head.reply, &body);
    case WIRE_ORDER:
        return member_order_got(m, &head.order, &body);
    case WIRE_HEARTBEAT:
    case WIRE_WELCOME: /* a second copy */
        return PARAMO_OK;
    case WIRE_END: {
        paramo_err status;
        char text[CALL_TEXT_MAX];
        err = end_decode(&body, &status, text);
        if (!err && m->state != MEMBER_ENDED)
            end(m, err_set(status, "%s", text), status != PARAMO_E_FENCED);
        return err;
    }
    default:
        return err_set(PARAMO_E_PROTOCOL, "unexpected message %s from the scheduler",
                       wire_kind_name(head.kind));
    }
}

static void member_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    struct member *m = user;
    assert(m->conn == conn);
    member_check(m);
    (void)conn;
    log_info("lost the connection to the scheduler: %s", text);
    /* The kernel reports one of several errors here, by chance. */
    lost(m, why == PARAMO_E_DISCONNECTED ? "connection reset" : text);
}

static const struct van_user member_user = {.frame = member_frame, .closed = member_closed};

/* ---- reaching the scheduler --------------------------------------------------------------------------- */

/* The place that this incarnation has by the newest view, 0: none. It may have one before it has joined: a view may
 * come although the answer to REGISTER is lost. A scheduler that was restarted since knows by it that the place was
 * lost. */
static uint32_t known_id(const struct member *m)
{
    if (m->state != MEMBER_JOINING)
        return m->id;
    for (uint32_t i = 0; m->view && i < m->view->nodes_count; i++)
        if (m->view->nodes[i].incarnation == m->config.incarnation)
            return m->view->nodes[i].id;
    return 0;
}

static void send_register(struct member *m)
{
    member_check(m);
    assert(m->conn && !m->registered);
    struct register_call call = {.role = m->config.role,
                                 .node = known_id(m),
                                 .port = m->config.port,
                                 .shards = m->config.shards,
                                 .weight = m->config.weight,
                                 .rank = m->config.rank,
                                 .timeout_ms = 0};
    if (m->limit > now(m))
        call.timeout_ms = (uint32_t)((m->limit - now(m)) / ENV_MS);
    memcpy(call.host, m->host, sizeof call.host);
    memcpy(call.name, m->name, sizeof call.name);
    memcpy(call.domain, m->domain, sizeof call.domain);
    struct wire_head head = {.kind = WIRE_CALL,
                             .table = CALL_REGISTER,
                             .floor = member_calls_floor(m),
                             .view = m->view ? m->view->number : 0};
    struct writer w = {0};
    register_call_encode(&call, &w);
    if (control_message_send_written(m->conn, &head, &w) == PARAMO_OK)
        m->register_sent_at = now(m);
}

static void reached(void *arg, struct van_conn *conn, const struct welcome *welcome)
{
    struct member *m = arg;
    member_check(m);
    assert(m->connector && !m->reconnect_timer.slot);
    m->connector = NULL;
    m->conn = conn;
    van_set_user(conn, &member_user, m);
    if (known_id(m) && welcome->job != m->job) {
        end(m,
            err_set(PARAMO_E_NO_SCHEDULER, "the scheduler at %s runs another job; is the address right?",
                    m->scheduler),
            false);
        return;
    }
    m->job = welcome->job;
    m->heard_at = now(m);
    m->backoff = BACKOFF_MIN;
    m->stood = true;
    m->refused_since = 0;
    m->register_sent_at = 0;
    send_register(m);
}

static void remember_why(struct member *m, const char *text)
{
    memcpy(m->why, text, strnlen(text, sizeof m->why - 1) + 1);
    m->why[sizeof m->why - 1] = '\0';
}

static uint64_t give_up_at(const struct member *m)
{
    uint64_t refused = m->refused_since + m->config.scheduler_wait_ms * ENV_MS;
    return m->refused_since && refused < m->limit ? refused : m->limit;
}

/* Evidence that nothing listens at the scheduler's address counts until it is contradicted. */
static paramo_err note_refusal(struct member *m, bool refused)
{
    if (!m->stood || m->returns || refused == (m->refused_since != 0))
        return PARAMO_OK;
    member_check(m);
    assert(!m->conn && !m->connector);
    m->refused_since = refused ? now(m) : 0;
    return lane_timer_arm(m->config.lane, &m->limit_timer, give_up_at(m));
}

static void connect_failed(void *arg, paramo_err code, const char *text)
{
    struct member *m = arg;
    member_check(m);
    assert(m->connector && !m->reconnect_timer.slot);
    m->connector = NULL;
    remember_why(m, text);
    if (code != PARAMO_E_CONNECT && code != PARAMO_E_CONNECTION_REFUSED && code != PARAMO_E_ADDRESS) {
        /* The scheduler answered; trying again would not change the answer. */
        end(m,
            m->state == MEMBER_JOINING ? err_set(code, "%s", text)
                                       : err_set(PARAMO_E_NO_SCHEDULER, "%s", text),
            false);
        return;
    }
    if (note_refusal(m, code == PARAMO_E_CONNECTION_REFUSED)) {
        end(m, PARAMO_E_MEMORY, false);
        return;
    }
    next_scheduler(m);
    connect_again(m);
}

static void connect_now(struct member *m)
{
    member_check(m);
    assert(!m->conn && !m->connector && !m->reconnect_timer.slot);
    /* It ends before the limit, so that there is a reason to report. */
    uint64_t deadline = now(m) + CONNECT_TIME, last = m->limit - ENV_MS;
    struct connector_config config = {.van = m->config.van,
                                      .lane = m->config.lane,
                                      .address = m->scheduler,
                                      .hello = {.purpose = HELLO_CONTROL,
                                                .node = known_id(m),
                                                .incarnation = m->config.incarnation,
                                                .job = known_id(m) ? m->job : 0},
                                      .frame_bytes = m->config.frame_bytes,
                                      .deadline = deadline < last ? deadline : last,
                                      .up = reached,
                                      .failed = connect_failed,
                                      .arg = m};
    memcpy(config.hello.token, m->token, sizeof config.hello.token);
    if (connector_start(&config, &m->connector)) {
        err_text_copy(m->why);
        m->connector = NULL;
        connect_again(m);
    }
}

static void reconnect_due(struct lane_timer *timer)
{
    connect_now(container_of(timer, struct member, reconnect_timer));
}

/* Waits for the back-off and up to a quarter more, so that many nodes do not connect in step, then connects. */
static void connect_again(struct member *m)
{
    member_check(m);
    assert(!m->conn && !m->connector && m->backoff >= BACKOFF_MIN && m->backoff <= BACKOFF_MAX);
    assert(m->state == MEMBER_JOINING || m->state == MEMBER_JOINED);
    uint64_t wait = m->backoff + env_random(lane_env(m->config.lane)) % (m->backoff / 4);
    m->backoff = m->backoff * 2 < BACKOFF_MAX ? m->backoff * 2 : BACKOFF_MAX;
    if (lane_timer_arm(m->config.lane, &m->reconnect_timer, now(m) + wait))
        end(m, PARAMO_E_MEMORY, false);
}

/* Does the remembered failure already name its address? */
static bool why_has_address(const struct member *m)
{
    for (unsigned i = 0; i < m->schedulers_count; i++)
        if (strstr(m->why, m->schedulers[i]))
            return true;
    return false;
}

static void limit_reached(struct lane_timer *timer)
{
    struct member *m = container_of(timer, struct member, limit_timer);
    assert(m->state == MEMBER_JOINING || m->state == MEMBER_JOINED);
    member_check(m);
    if (!m->conn && m->refused_since)
        end(m,
            err_set(PARAMO_E_NO_SCHEDULER, "the scheduler at %s is gone: connection refused", m->scheduler),
            false);
    else if (!m->conn && why_has_address(m))
        end(m, err_set(PARAMO_E_NO_SCHEDULER, "cannot reach the scheduler: %s", m->why), false);
    else if (!m->conn)
        end(m,
            err_set(PARAMO_E_NO_SCHEDULER, "cannot reach the scheduler at %s%s%s", m->scheduler,
                    m->why[0] ? ": " : "", m->why),
            false);
    else if (now(m) < m->limit + JOIN_SLACK &&
             lane_timer_arm(m->config.lane, timer, m->limit + JOIN_SLACK) == PARAMO_OK)
        return;
    else
        end(m,
            err_set(PARAMO_E_TIMEOUT,
                    "the scheduler at %s gave this node no place in time; is the job complete already?",
                    m->scheduler),
            false);
}

static void lost(struct member *m, const char *why)
{
    member_check(m);
    assert(m->conn);
    drop_connection(m);
    if (m->state == MEMBER_ENDED || m->state == MEMBER_LEAVING) {
        (void)err_set(PARAMO_E_CLOSED, "this node has left the job");
        member_calls_fail(m, PARAMO_E_CLOSED, true);
        return;
    }
    remember_why(m, why);
    m->backoff = BACKOFF_MIN;
    if (m->state == MEMBER_JOINED) {
        uint32_t wait = m->config.heartbeat_timeout_ms;
        if (wait < m->config.scheduler_wait_ms)
            wait = m->config.scheduler_wait_ms;
        m->limit = now(m) + (m->returns ? RETURN_TIME : wait * ENV_MS);
        if (lane_timer_arm(m->config.lane, &m->limit_timer, m->limit)) {
            end(m, PARAMO_E_MEMORY, false);
            return;
        }
    }
    log_warn("lost the scheduler at %s: %s; trying to reach it again for up to %" PRIu64 " s", m->scheduler,
             why, m->limit > now(m) ? (m->limit - now(m) + ENV_SEC / 2) / ENV_SEC : 0);
    connect_again(m);
}

/* ---- heartbeats --------------------------------------------------------------------------------------- */

static void send_heartbeat(struct member *m)
{
    member_check(m);
    assert(m->conn && !m->reconnect_timer.slot);
    struct heartbeat beat;
    beat.lanes = 0;
    if (m->config.progress)
        m->config.progress(m->config.arg, &beat);
    struct wire_head head = {.heartbeat = {.kind = WIRE_HEARTBEAT,
                                           .floor = member_calls_floor(m),
                                           .view = m->view ? m->view->number : 0}};
    struct writer w = {0};
    heartbeat_encode(&beat, &w);
    /* AGAIN means that much is queued, which is as good a sign of life. */
    paramo_err err = control_message_send_written(m->conn, &head, &w);
    (void)err;
}

static void beat_due(struct lane_timer *timer)
{
    struct member *m = container_of(timer, struct member, beat_timer);
    uint64_t period = m->config.heartbeat_ms * ENV_MS, late = now(m) - timer->at;
    member_check(m);
    assert(m->state != MEMBER_CLOSED);
    /* Armed again first, since what follows may not return here. Its slot was just freed, so this cannot run
     * out of memory. */
    paramo_err err = lane_timer_arm(m->config.lane, timer, now(m) + period);
    (void)err;
    if (!m->conn)
        return;
    if (late > period) /* this process was stopped: the silence was its own */
        m->heard_at += late;
    if (now(m) > m->heard_at + m->config.heartbeat_timeout_ms * ENV_MS) {
        lost(m, "it sends no heartbeats");
        next_scheduler(m);
        return;
    }
    send_heartbeat(m);
    if (!m->registered) {
        if (now(m) - m->register_sent_at >= 2 * period)
            send_register(m);
    } else {
        member_calls_resend(m, 2 * period);
        member_orders_answer(m);
    }
}

/* ---- life --------------------------------------------------------------------------------------------- */

static paramo_err copy(char *dst, size_t capacity, const char *what, const char *src)
{
    size_t len = strlen(src);
    if (len >= capacity)
        return err_set(PARAMO_E_INVALID, "the %s is longer than %zu bytes", what, capacity - 1);
    memset(dst, 0, capacity);
    memcpy(dst, src, len);
    return PARAMO_OK;
}

static paramo_err schedulers_parse(struct member *m, const char *list)
{
    while (m->schedulers_count < MEMBER_SCHEDULERS_MAX &&
           address_next(&list, m->schedulers[m->schedulers_count]))
        m->schedulers_count++;
    m->scheduler = m->schedulers[0];
    if (*list || !m->schedulers_count)
        return err_set(PARAMO_E_INVALID,
                       "the list of scheduler addresses must have 1 to %d addresses of at most %d bytes, "
                       "separated by commas",
                       MEMBER_SCHEDULERS_MAX, ADDRESS_MAX - 1);
    return PARAMO_OK;
}

paramo_err member_create(const struct member_config *config, struct member **out)
{
    struct member *m = calloc(1, sizeof *m);
    if (!m)
        return err_memory(sizeof *m);
    m->config = *config;
    paramo_err err = schedulers_parse(m, config->scheduler);
    if (!err)
        err = copy(m->token, sizeof m->token, "job token", config->token);
    if (!err)
        err = copy(m->host, sizeof m->host, "host", config->host);
    if (!err)
        err = copy(m->name, sizeof m->name, "node name", config->name);
    if (!err)
        err = copy(m->domain, sizeof m->domain, "failure domain", config->domain);
    m->config.scheduler = NULL;
    m->config.token = m->token;
    m->config.host = m->host;
    m->config.name = m->name;
    m->config.domain = m->domain;
    m->has_left = has_left;
    m->next_sequence = 1;
    m->backoff = BACKOFF_MIN;
    m->reconnect_timer.fire = reconnect_due;
    m->limit_timer.fire = limit_reached;
    m->beat_timer.fire = beat_due;
    m->resend_timer.fire = member_calls_resend_due;
    m->limit = now(m) + config->connect_timeout_ms * ENV_MS;
    if (!err)
        err = lane_timer_arm(config->lane, &m->limit_timer, m->limit);
    if (!err)
        err = lane_timer_arm(config->lane, &m->beat_timer, now(m) + config->heartbeat_ms * ENV_MS);
    /* A timer starts the first attempt, too: callbacks never come from inside this function. */
    if (!err)
        err = lane_timer_arm(config->lane, &m->reconnect_timer, now(m));
    if (err) {
        lane_timer_cancel(config->lane, &m->limit_timer);
        lane_timer_cancel(config->lane, &m->beat_timer);
        free(m);
        return err;
    }
    member_check(m);
    assert(m->limit_timer.slot && m->beat_timer.slot && m->reconnect_timer.slot);
    *out = m;
    return PARAMO_OK;
}

void member_destroy(struct member *m)
{
    if (!m)
        return;
    member_check(m);
    move(m, MEMBER_CLOSED); /* callbacks that begin a call are refused */
    stop_connecting(m);
    lane_timer_cancel(m->config.lane, &m->beat_timer);
    lane_timer_cancel(m->config.lane, &m->resend_timer);
    if (m->conn)
        van_close(m->conn, true);
    m->conn = NULL;
    (void)err_set(PARAMO_E_CLOSED, "the node is closed");
    member_calls_fail(m, PARAMO_E_CLOSED, true);
    member_orders_fini(m);
    assert(!m->oldest && !m->orders && !m->connector);
    view_unref(m->view);
    free(m->places);
    free(m);
}

struct view *member_view(struct member *m)
{
    return m->view;
}

uint32_t member_id(const struct member *m)
{
    return m->id;
}

uint32_t member_rank(const struct member *m)
{
    return m->id < PARAMO_ID_SERVER(0) ? 0 : (m->id - PARAMO_ID_SERVER(0)) / 2;
}

const char *member_scheduler(const struct member *m)
{
    return m->scheduler;
}

bool member_recovered(const struct member *m)
{
    return m->recovered;
}
