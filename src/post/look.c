#include "post/look.h"

#include <stdlib.h>
#include <string.h>

#include "post/dial.h"
#include "post/letter.h"
#include "wire/calls.h"

enum { LOOK_FRAME_BYTES = 64 << 20 };

/* Dialling (dial), then asking (conn). */
struct look {
    struct look_config config;
    struct dial *dial;
    struct van_conn *conn;
    struct lane_timer timer;
};

void look_cancel(struct look *look)
{
    lane_timer_cancel(look->config.lane, &look->timer);
    if (look->dial)
        dial_cancel(look->dial);
    if (look->conn)
        van_close(look->conn, false);
    free(look);
}

/* With this thread's message. */
static void look_end(struct look *look, paramo_err status, struct view *view)
{
    struct look_config config = look->config;
    look_cancel(look);
    config.done(config.arg, status, view);
}

static void look_late(struct lane_timer *timer)
{
    struct look *look = container_of(timer, struct look, timer);
    look_end(look, err_set(PARAMO_E_TIMEOUT, "the scheduler does not answer"), NULL);
}

static paramo_err look_answer(const struct wire_head *head, struct reader *body, struct view **view)
{
    char text[CALL_TEXT_MAX];
    if (head->table != CALL_LOOK)
        return err_set(PARAMO_E_PROTOCOL, "an answer to %s", call_kind_name(head->table));
    if (!head->status)
        return view_decode(body, view);
    paramo_err err = call_text_decode(body, text);
    return err ? err : err_set(err_from_wire(head->status), "%s", text);
}

static paramo_err look_frame(void *user, struct van_conn *conn, const uint8_t bytes[VAN_HEAD],
                             const struct van_seg *seg, unsigned nseg)
{
    struct look *look = user;
    struct wire_head head;
    struct reader body;
    struct view *view = NULL;
    (void)conn;
    paramo_err err = letter_open(bytes, seg, nseg, &head, &body);
    if (!err && head.kind == WIRE_WELCOME)
        return PARAMO_OK; /* a second copy of the first */
    if (!err && head.kind != WIRE_REPLY)
        err = err_set(PARAMO_E_PROTOCOL, "%s to an observer", wire_kind_name(head.kind));
    if (!err)
        err = look_answer(&head, &body, &view);
    look_end(look, err, view);
    view_unref(view);
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
    struct wire_head head = {.kind = WIRE_CALL, .table = CALL_LOOK};
    (void)welcome;
    look->dial = NULL;
    look->conn = conn;
    van_set_user(conn, &look_user, look);
    paramo_err err = letter_send(conn, &head, NULL, 0);
    if (err)
        look_end(look, err, NULL);
}

static void look_failed(void *arg, paramo_err code, const char *text)
{
    struct look *look = arg;
    (void)text; /* the thread's message is the same */
    look->dial = NULL;
    look_end(look, code, NULL);
}

paramo_err look_start(const struct look_config *config, struct look **out)
{
    struct look *look = calloc(1, sizeof *look);
    if (!look)
        return err_memory(sizeof *look);
    look->config = *config;
    look->timer.fire = look_late;
    struct dial_config dial = {
        .van = config->van,
        .lane = config->lane,
        .address = config->scheduler,
        .hello = {.purpose = HELLO_CONTROL, .incarnation = config->incarnation},
        .frame_bytes = LOOK_FRAME_BYTES,
        .deadline = config->deadline,
        .up = look_up,
        .failed = look_failed,
        .arg = look,
    };
    if (strlen(config->token) >= sizeof dial.hello.token) {
        free(look);
        return err_set(PARAMO_E_INVALID, "the token is longer than %zu bytes", sizeof dial.hello.token - 1);
    }
    memcpy(dial.hello.token, config->token, strlen(config->token));
    paramo_err err = lane_timer_arm(config->lane, &look->timer, config->deadline);
    if (!err)
        err = dial_start(&dial, &look->dial);
    if (err) {
        look_cancel(look);
        return err;
    }
    look->config.scheduler = look->config.token = NULL;
    *out = look;
    return PARAMO_OK;
}
