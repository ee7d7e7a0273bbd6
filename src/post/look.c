#include "post/look.h"

#include <stdlib.h>
#include <string.h>

#include "post/address.h"
#include "post/dial.h"
#include "post/letter.h"
#include "wire/calls.h"

enum { LOOK_FRAME_BYTES = 64 << 20 };

/* Dialling (dial), then asking (conn). */
struct look {
    struct look_config config;
    struct hello hello;
    char *schedulers;
    const char *rest; /* of them, not dialled yet */
    struct dial *dial;
    struct van_conn *conn;
    struct lane_timer timer;
    uint32_t call;
    struct writer body;
};

void look_cancel(struct look *look)
{
    lane_timer_cancel(look->config.lane, &look->timer);
    if (look->dial)
        dial_cancel(look->dial);
    if (look->conn)
        van_close(look->conn, false);
    free(look->schedulers);
    writer_fini(&look->body);
    free(look);
}

/* With this thread's message. */
static void look_end(struct look *look, paramo_err status, struct look_result *result)
{
    struct look_config config = look->config;
    struct look_result nothing = {0};
    look_cancel(look);
    config.done(config.arg, status, status ? &nothing : result);
}

static void look_late(struct lane_timer *timer)
{
    struct look *look = container_of(timer, struct look, timer);
    look_end(look, err_set(PARAMO_E_TIMEOUT, "the scheduler does not answer"), NULL);
}

static paramo_err status_answer(struct reader *body, struct look_result *result)
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

static paramo_err look_answer(const struct look *look, const struct wire_head *head, struct reader *body,
                              struct look_result *result)
{
    char text[CALL_TEXT_MAX];
    struct ckpt_result ckpt;
    paramo_err err;
    if (head->table != look->call)
        return err_set(PARAMO_E_PROTOCOL, "an answer to %s", call_kind_name(head->table));
    if (!head->status && look->call == CALL_LOOK)
        return view_decode(body, &result->view);
    if (!head->status && look->call == CALL_STATUS)
        return status_answer(body, result);
    if (!head->status && look->call == CALL_DRAIN)
        return call_body_end(body, "an answer to DRAIN");
    if (!head->status) {
        err = ckpt_result_decode(body, &ckpt);
        result->number = ckpt.number;
        return err;
    }
    err = call_text_decode(body, text);
    return err ? err : err_set(err_from_wire(head->status), "%s", text);
}

static paramo_err look_frame(void *user, struct van_conn *conn, const uint8_t bytes[VAN_HEAD],
                             const struct van_seg *seg, unsigned nseg)
{
    struct look *look = user;
    struct wire_head head;
    struct reader body;
    struct look_result result = {0};
    (void)conn;
    paramo_err err = letter_open(bytes, seg, nseg, &head, &body);
    if (!err && head.kind == WIRE_WELCOME)
        return PARAMO_OK; /* a second copy of the first */
    if (!err && head.kind != WIRE_REPLY)
        err = err_set(PARAMO_E_PROTOCOL, "%s to an observer", wire_kind_name(head.kind));
    if (!err)
        err = look_answer(look, &head, &body, &result);
    look_end(look, err, &result);
    view_unref(result.view);
    if (result.status)
        status_fini(result.status);
    free(result.status);
    return PARAMO_OK;
}

static void look_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    (void)conn;
    look_end(user, err_set(why, "%s", text), NULL);
}

static const struct van_user look_user = {.frame = look_frame, .closed = look_closed};

static void look_up(void *arg, struct van_conn *conn, const struct welcome *welcome)
{
    struct look *look = arg;
    struct wire_head head = {.kind = WIRE_CALL, .table = look->call};
    (void)welcome;
    look->dial = NULL;
    look->conn = conn;
    van_set_user(conn, &look_user, look);
    paramo_err err = letter_send(conn, &head, look->body.data, look->body.len);
    if (err)
        look_end(look, err, NULL);
}

static void look_failed(void *arg, paramo_err code, const char *text);

/* The next address has its share of the time that is left. */
static paramo_err look_dial(struct look *look)
{
    char address[ADDRESS_MAX];
    unsigned left = 1;
    for (const char *at = look->rest; (at = strchr(at, ',')) != NULL; at++)
        left++;
    (void)address_next(&look->rest, address); /* look_start has seen them all */
    uint64_t now = lane_now(look->config.lane), end = look->config.deadline;
    struct dial_config dial = {
        .van = look->config.van,
        .lane = look->config.lane,
        .address = address,
        .hello = look->hello,
        .frame_bytes = LOOK_FRAME_BYTES,
        .deadline = left > 1 && end > now ? now + (end - now) / left : end,
        .up = look_up,
        .failed = look_failed,
        .arg = look,
    };
    return dial_start(&dial, &look->dial);
}

static void look_failed(void *arg, paramo_err code, const char *text)
{
    struct look *look = arg;
    bool nobody = code == PARAMO_E_CONNECT || code == PARAMO_E_NOBODY || code == PARAMO_E_ADDRESS;
    (void)text; /* the thread's message is the same */
    look->dial = NULL;
    if (nobody && *look->rest)
        code = look_dial(look);
    if (code && !look->dial)
        look_end(look, code, NULL);
}

/* They are somebody's words: what is wrong with them is not taken for a network's failure. */
static paramo_err addresses_check(const char *list)
{
    char address[ADDRESS_MAX], host[ADDRESS_MAX];
    uint16_t port;
    do {
        if (!address_next(&list, address))
            return err_set(PARAMO_E_INVALID, "an address of the scheduler is empty or longer than %d bytes",
                           ADDRESS_MAX - 1);
        if (address_split(address, host, sizeof host, &port))
            return err_set(PARAMO_E_INVALID, "the scheduler's address %s", err_text());
    } while (*list);
    return PARAMO_OK;
}

paramo_err look_start(const struct look_config *config, struct look **out)
{
    paramo_err err = addresses_check(config->scheduler);
    if (err)
        return err;
    struct look *look = calloc(1, sizeof *look);
    if (!look)
        return err_memory(sizeof *look);
    look->config = *config;
    look->call = config->drain    ? CALL_DRAIN
                 : config->status ? CALL_STATUS
                 : !config->ckpt  ? CALL_LOOK
                 : config->load   ? CALL_CKPT_LOAD
                                  : CALL_CKPT_SAVE;
    if (config->drain)
        write_u32(&look->body, config->drain);
    if (config->ckpt)
        ckpt_order_encode(config->ckpt, &look->body);
    look->config.ckpt = NULL;
    look->timer.fire = look_late;
    look->hello = (struct hello){.purpose = HELLO_CONTROL, .incarnation = config->incarnation};
    if (look->body.failed)
        err = err_memory(sizeof *config->ckpt);
    else if (strlen(config->token) >= sizeof look->hello.token)
        err = err_set(PARAMO_E_INVALID, "the token is longer than %zu bytes", (size_t)HELLO_TOKEN_MAX - 1);
    else
        memcpy(look->hello.token, config->token, strlen(config->token));
    look->rest = look->schedulers = err ? NULL : strdup(config->scheduler);
    if (!err && !look->schedulers)
        err = err_memory(strlen(config->scheduler));
    if (!err)
        err = lane_timer_arm(config->lane, &look->timer, config->deadline);
    if (!err)
        err = look_dial(look);
    if (err) {
        look_cancel(look);
        return err;
    }
    look->config.scheduler = look->config.token = NULL;
    *out = look;
    return PARAMO_OK;
}
