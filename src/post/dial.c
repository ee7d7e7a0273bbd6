#include "post/dial.h"

#include <stdlib.h>
#include <string.h>

#include "post/letter.h"

struct dial {
    struct dial_config config;
    char address[256];
    struct van_conn *conn;
    struct lane_timer timer;
    bool heard; /* a whole frame has come: it is one of ours, whatever it says */
};

void dial_cancel(struct dial *dial)
{
    lane_timer_cancel(dial->config.lane, &dial->timer);
    if (dial->conn)
        van_close(dial->conn, false);
    free(dial);
}

/* Ends the dial with this thread's message. */
static void dial_fail(struct dial *dial, paramo_err code)
{
    char text[ERR_TEXT_MAX];
    err_text_copy(text);
    void (*failed)(void *arg, paramo_err code, const char *text) = dial->config.failed;
    void *arg = dial->config.arg;
    dial_cancel(dial);
    failed(arg, code, text);
}

static void dial_late(struct lane_timer *timer)
{
    struct dial *dial = container_of(timer, struct dial, timer);
    bool connected = dial->conn->counters.bytes_sent > 0;
    dial_fail(dial,
              err_set(PARAMO_E_CONNECT, "%s %s", dial->address,
                      connected ? "takes the connection and says nothing (it is stopped, or none of Paramo's)"
                                : "does not answer"));
}

static void dial_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    struct dial *dial = user;
    (void)conn;
    /* Whatever else broke, nobody of ours was reached. */
    bool stays = why == PARAMO_E_NOBODY || why == PARAMO_E_ADDRESS || why == PARAMO_E_VERSION ||
                 (why == PARAMO_E_PROTOCOL && !dial->heard);
    (void)err_set(why, "%s", text);
    if (why == PARAMO_E_PROTOCOL && !dial->heard)
        (void)err_prefix(why, "what answers there does not speak Paramo's protocol");
    if (why == PARAMO_E_DISCONNECTED && !dial->heard)
        (void)err_set(why, "%s, without an answer", text);
    if (!strstr(text, dial->address)) /* vans name the peer, but cut a long one */
        (void)err_prefix(why, "%s", dial->address);
    dial_fail(dial, stays ? why : PARAMO_E_CONNECT);
}

static paramo_err dial_frame(void *user, struct van_conn *conn, const uint8_t bytes[VAN_HEAD],
                             const struct van_seg *seg, unsigned nseg)
{
    struct dial *dial = user;
    struct wire_head head;
    struct reader body;
    dial->heard = true;
    paramo_err err = letter_open(bytes, seg, nseg, &head, &body);
    if (err)
        return err;
    if (head.kind == WIRE_REJECT) {
        paramo_err code;
        err = reject_decode(&body, &code);
        if (!err)
            dial_fail(dial, err_prefix(code, "%s", dial->address));
        return err;
    }
    struct welcome welcome;
    if (head.kind != WIRE_WELCOME)
        return err_set(PARAMO_E_PROTOCOL, "%s instead of WELCOME", wire_kind_name(head.kind));
    err = welcome_decode(&body, &welcome);
    if (err)
        return err;
    if (welcome.version < HELLO_VERSION_MIN || welcome.version > HELLO_VERSION_MAX)
        return err_set(PARAMO_E_VERSION, "it chose protocol version %u", welcome.version);
    struct dial_config config = dial->config;
    dial->conn = NULL;
    dial_cancel(dial);
    van_set_frame_limit(conn, config.frame_bytes);
    config.up(config.arg, conn, &welcome);
    return PARAMO_OK;
}

static const struct van_user dial_user = {.frame = dial_frame, .closed = dial_closed};

paramo_err dial_start(const struct dial_config *config, struct dial **out)
{
    struct dial *dial = calloc(1, sizeof *dial);
    if (!dial)
        return err_memory(sizeof *dial);
    dial->config = *config;
    dial->config.hello.version_min = HELLO_VERSION_MIN;
    dial->config.hello.version_max = HELLO_VERSION_MAX;
    memcpy(dial->address, config->address, strnlen(config->address, sizeof dial->address - 1));
    dial->config.address = NULL;
    dial->timer.fire = dial_late;
    paramo_err err = lane_timer_arm(config->lane, &dial->timer, config->deadline);
    if (!err)
        err = van_connect(config->van, config->lane, dial->address, &dial_user, dial, &dial->conn);
    if (!err) {
        struct wire_head head = {.kind = WIRE_HELLO};
        struct writer w = {0};
        hello_encode(&dial->config.hello, &w);
        err = letter_send_written(dial->conn, &head, &w);
    }
    if (err) {
        dial_cancel(dial);
        return err;
    }
    *out = dial;
    return PARAMO_OK;
}
