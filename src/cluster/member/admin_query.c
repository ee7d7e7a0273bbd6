#include "cluster/member/admin_query.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/session/address.h"
#include "cluster/session/connector.h"
#include "cluster/session/control_message.h"
#include "wire/calls.h"

enum { ADMIN_QUERY_FRAME_BYTES = 64 << 20 };

/* First connecting (connector), then calling (conn). */
struct admin_query {
    struct admin_query_config config;
    struct hello hello;
    char *schedulers;
    const char *rest; /* addresses not tried yet */
    struct connector *connector;
    struct van_conn *conn;
    struct lane_timer timer;
    uint32_t call;
    struct writer body;
};

/* Until it ends, a query connects or waits for the answer, and has a deadline. */
static void admin_query_check(const struct admin_query *admin_query)
{
    assert(!admin_query->connector != !admin_query->conn);
    assert(admin_query->timer.slot);
}

void admin_query_cancel(struct admin_query *admin_query)
{
    assert(!admin_query->connector || !admin_query->conn);
    lane_timer_cancel(admin_query->config.lane, &admin_query->timer);
    if (admin_query->connector)
        connector_cancel(admin_query->connector);
    if (admin_query->conn)
        van_close(admin_query->conn, false);
    free(admin_query->schedulers);
    writer_fini(&admin_query->body);
    free(admin_query);
}

/* Ends the query with this thread's message. */
static void admin_query_end(struct admin_query *admin_query, paramo_err status,
                            struct admin_query_result *result)
{
    struct admin_query_config config = admin_query->config;
    struct admin_query_result nothing = {0};
    admin_query_cancel(admin_query);
    config.done(config.arg, status, status ? &nothing : result);
}

static void admin_query_late(struct lane_timer *timer)
{
    struct admin_query *admin_query = container_of(timer, struct admin_query, timer);
    assert(!timer->slot && !admin_query->connector != !admin_query->conn);
    paramo_err err =
        err_set(PARAMO_E_TIMEOUT, "%s: the scheduler has not answered in time; is it stopped or overloaded?",
                admin_query->schedulers);
    admin_query_end(admin_query, err, NULL);
}

static paramo_err status_answer(struct reader *body, struct admin_query_result *result)
{
    struct status *m = calloc(1, sizeof *m);
    paramo_err err = m ? status_decode(body, m) : err_memory(sizeof *m);
    if (err) {
        free(m);
        return err;
    }
    struct reader view = reader_over(m->view, m->view_len);
    result->status = m;
    m->view = NULL; /* of the frame */
    m->view_len = 0;
    return view_decode(&view, &result->view);
}

static paramo_err admin_query_answer(const struct admin_query *admin_query, const struct wire_reply *head,
                                     struct reader *body, struct admin_query_result *result)
{
    char text[CALL_TEXT_MAX];
    struct ckpt_result ckpt;
    paramo_err err;
    if (head->what != admin_query->call)
        return err_set(PARAMO_E_PROTOCOL, "the scheduler's answer is to %s, which was not asked",
                       call_kind_name(head->what));
    if (!head->status && admin_query->call == CALL_ADMIN_VIEW)
        return view_decode(body, &result->view);
    if (!head->status && admin_query->call == CALL_STATUS)
        return status_answer(body, result);
    if (!head->status && admin_query->call == CALL_DRAIN)
        return call_body_end(body, "an answer to DRAIN");
    if (!head->status) {
        err = ckpt_result_decode(body, &ckpt);
        result->number = ckpt.number;
        return err;
    }
    err = call_text_decode(body, text);
    return err ? err : err_set(err_from_wire(head->status), "%s", text);
}

static paramo_err admin_query_frame(void *user, struct van_conn *conn, const uint8_t bytes[VAN_HEAD],
                                    const struct van_seg *seg, unsigned nseg)
{
    struct admin_query *admin_query = user;
    struct wire_head head;
    struct reader body;
    struct admin_query_result result = {0};
    admin_query_check(admin_query);
    assert(admin_query->conn == conn);
    (void)conn;
    paramo_err err = control_message_open(bytes, seg, nseg, &head, &body);
    if (!err && head.kind == WIRE_WELCOME)
        return PARAMO_OK; /* a second copy of the first */
    if (!err && head.kind != WIRE_REPLY)
        err =
            err_set(PARAMO_E_PROTOCOL, "unexpected message %s from the scheduler", wire_kind_name(head.kind));
    if (!err)
        err = admin_query_answer(admin_query, &head.reply, &body, &result);
    admin_query_end(admin_query, err, &result);
    view_unref(result.view);
    if (result.status)
        status_fini(result.status);
    free(result.status);
    return PARAMO_OK;
}

static void admin_query_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    struct admin_query *admin_query = user;
    admin_query_check(admin_query);
    assert(admin_query->conn == conn);
    (void)conn;
    admin_query_end(admin_query, err_set(why, "%s", text), NULL);
}

static const struct van_user admin_query_user = {.frame = admin_query_frame, .closed = admin_query_closed};

static void admin_query_up(void *arg, struct van_conn *conn, const struct welcome *welcome)
{
    struct admin_query *admin_query = arg;
    struct wire_head head = {.call = {.kind = WIRE_CALL, .what = admin_query->call}};
    (void)welcome;
    admin_query_check(admin_query);
    assert(admin_query->connector);
    admin_query->connector = NULL;
    admin_query->conn = conn;
    van_set_user(conn, &admin_query_user, admin_query);
    paramo_err err = control_message_send(conn, &head, admin_query->body.data, admin_query->body.len);
    if (err)
        admin_query_end(admin_query, err, NULL);
}

static void admin_query_failed(void *arg, paramo_err code, const char *text);

/* Each address gets its share of the time that is left. */
static paramo_err admin_query_connect(struct admin_query *admin_query)
{
    char address[ADDRESS_MAX];
    unsigned left = 1;
    assert(!admin_query->connector && !admin_query->conn && admin_query->timer.slot);
    for (const char *at = admin_query->rest; (at = strchr(at, ',')) != NULL; at++)
        left++;
    (void)address_next(&admin_query->rest, address); /* admin_query_start has checked them all */
    uint64_t now = lane_now(admin_query->config.lane), end = admin_query->config.deadline;
    struct connector_config connector = {
        .van = admin_query->config.van,
        .lane = admin_query->config.lane,
        .address = address,
        .hello = admin_query->hello,
        .frame_bytes = ADMIN_QUERY_FRAME_BYTES,
        .deadline = left > 1 && end > now ? now + (end - now) / left : end,
        .up = admin_query_up,
        .failed = admin_query_failed,
        .arg = admin_query,
    };
    return connector_start(&connector, &admin_query->connector);
}

static void admin_query_failed(void *arg, paramo_err code, const char *text)
{
    struct admin_query *admin_query = arg;
    bool unreachable =
        code == PARAMO_E_CONNECT || code == PARAMO_E_CONNECTION_REFUSED || code == PARAMO_E_ADDRESS;
    (void)text; /* err_text() is the same */
    admin_query_check(admin_query);
    assert(admin_query->connector);
    admin_query->connector = NULL;
    if (unreachable && *admin_query->rest)
        code = admin_query_connect(admin_query);
    if (code && !admin_query->connector)
        admin_query_end(admin_query, code, NULL);
}

/* Addresses and token come from a person: report a mistake in them as such, not as a network failure. */
static paramo_err addresses_check(const char *list)
{
    char address[ADDRESS_MAX], host[ADDRESS_MAX];
    uint16_t port;
    do {
        if (!address_next(&list, address))
            return err_set(PARAMO_E_INVALID, "a scheduler address is empty or longer than %d bytes",
                           ADDRESS_MAX - 1);
        if (address_split(address, host, sizeof host, &port))
            return err_set(PARAMO_E_INVALID, "the scheduler's address %s", err_text());
    } while (*list);
    return PARAMO_OK;
}

paramo_err admin_query_start(const struct admin_query_config *config, struct admin_query **out)
{
    paramo_err err = addresses_check(config->scheduler);
    if (err)
        return err;
    struct admin_query *admin_query = calloc(1, sizeof *admin_query);
    if (!admin_query)
        return err_memory(sizeof *admin_query);
    admin_query->config = *config;
    admin_query->call = config->drain    ? CALL_DRAIN
                        : config->status ? CALL_STATUS
                        : !config->ckpt  ? CALL_ADMIN_VIEW
                        : config->load   ? CALL_CKPT_LOAD
                                         : CALL_CKPT_SAVE;
    if (config->drain)
        write_u32(&admin_query->body, config->drain);
    if (config->ckpt)
        ckpt_order_encode(config->ckpt, &admin_query->body);
    admin_query->config.ckpt = NULL;
    admin_query->timer.fire = admin_query_late;
    admin_query->hello = (struct hello){.purpose = HELLO_CONTROL, .incarnation = config->incarnation};
    if (admin_query->body.failed)
        err = err_memory(sizeof *config->ckpt);
    else if (strlen(config->token) >= sizeof admin_query->hello.token)
        err = err_set(PARAMO_E_INVALID, "the token is longer than %zu bytes", (size_t)HELLO_TOKEN_MAX - 1);
    else
        memcpy(admin_query->hello.token, config->token, strlen(config->token));
    admin_query->rest = admin_query->schedulers = err ? NULL : strdup(config->scheduler);
    if (!err && !admin_query->schedulers)
        err = err_memory(strlen(config->scheduler));
    if (!err)
        err = lane_timer_arm(config->lane, &admin_query->timer, config->deadline);
    if (!err)
        err = admin_query_connect(admin_query);
    if (err) {
        admin_query_cancel(admin_query);
        return err;
    }
    admin_query->config.scheduler = admin_query->config.token = NULL;
    admin_query_check(admin_query);
    *out = admin_query;
    return PARAMO_OK;
}
