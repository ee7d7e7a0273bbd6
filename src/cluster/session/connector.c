#include "cluster/session/connector.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/session/control_message.h"

struct connector {
    struct connector_config config;
    char address[256];
    struct van_conn *conn;
    struct lane_timer timer;
    bool heard; /* a whole frame has come: the peer speaks our protocol */
};

/* An attempt that lasts has a connection and a deadline. */
static void connector_check(const struct connector *connector)
{
    assert(connector->conn && connector->timer.slot);
    assert(!connector->conn->capabilities); /* none before WELCOME */
}

void connector_cancel(struct connector *connector)
{
    lane_timer_cancel(connector->config.lane, &connector->timer);
    if (connector->conn)
        van_close(connector->conn, false);
    free(connector);
}

/* Ends the attempt with this thread's message. */
static void connector_fail(struct connector *connector, paramo_err code)
{
    char text[ERR_TEXT_MAX];
    err_text_copy(text);
    void (*failed)(void *arg, paramo_err code, const char *text) = connector->config.failed;
    void *arg = connector->config.arg;
    connector_cancel(connector);
    failed(arg, code, text);
}

static void connector_late(struct lane_timer *timer)
{
    struct connector *connector = container_of(timer, struct connector, timer);
    assert(connector->conn && !connector->timer.slot);
    assert(!connector->conn->capabilities);
    bool connected = connector->conn->counters.bytes_sent > 0;
    connector_fail(connector,
                   err_set(PARAMO_E_CONNECT, "%s %s", connector->address,
                           connected
                               ? "accepts the connection and sends nothing; is it stopped, or not Paramo?"
                               : "does not answer"));
}

static void connector_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    struct connector *connector = user;
    connector_check(connector);
    assert(connector->conn == conn);
    (void)conn;
    /* Any other failure says only that the peer was not reached. */
    bool stays = why == PARAMO_E_CONNECTION_REFUSED || why == PARAMO_E_ADDRESS || why == PARAMO_E_VERSION ||
                 (why == PARAMO_E_PROTOCOL && !connector->heard);
    (void)err_set(why, "%s", text);
    if (why == PARAMO_E_PROTOCOL && !connector->heard)
        (void)err_prefix(why, "the process there does not speak Paramo's protocol");
    if (why == PARAMO_E_DISCONNECTED && !connector->heard)
        (void)err_set(why, "%s, without an answer", text);
    if (!strstr(text, connector->address)) /* vans name the peer, but shorten a long name */
        (void)err_prefix(why, "%s", connector->address);
    connector_fail(connector, stays ? why : PARAMO_E_CONNECT);
}

static paramo_err connector_frame(void *user, struct van_conn *conn, const uint8_t bytes[VAN_HEAD],
                                  const struct van_seg *seg, unsigned nseg)
{
    struct connector *connector = user;
    struct wire_head head;
    struct reader body;
    connector_check(connector);
    assert(connector->conn == conn);
    connector->heard = true;
    paramo_err err = control_message_open(bytes, seg, nseg, &head, &body);
    if (err)
        return err;
    if (head.kind == WIRE_REJECT) {
        paramo_err code;
        err = reject_decode(&body, &code);
        if (!err)
            connector_fail(connector, err_prefix(code, "%s", connector->address));
        return err;
    }
    struct welcome welcome;
    if (head.kind != WIRE_WELCOME)
        return err_set(PARAMO_E_PROTOCOL, "the peer answered %s instead of WELCOME",
                       wire_kind_name(head.kind));
    err = welcome_decode(&body, &welcome);
    if (err)
        return err;
    if (welcome.version < HELLO_VERSION_MIN || welcome.version > HELLO_VERSION_MAX)
        return err_set(PARAMO_E_VERSION, "the peer chose protocol version %u, which was not offered",
                       welcome.version);
    if (welcome.capabilities & ~connector->config.hello.capabilities)
        return err_set(PARAMO_E_PROTOCOL, "WELCOME has capabilities that were not offered");
    conn->capabilities = welcome.capabilities;
    struct connector_config config = connector->config;
    connector->conn = NULL;
    connector_cancel(connector);
    van_set_frame_limit(conn, config.frame_bytes);
    config.up(config.arg, conn, &welcome);
    return PARAMO_OK;
}

static const struct van_user connector_user = {.frame = connector_frame, .closed = connector_closed};

paramo_err connector_start(const struct connector_config *config, struct connector **out)
{
    struct connector *connector = calloc(1, sizeof *connector);
    if (!connector)
        return err_memory(sizeof *connector);
    connector->config = *config;
    connector->config.hello.version_min = HELLO_VERSION_MIN;
    connector->config.hello.version_max = HELLO_VERSION_MAX;
    connector->config.hello.capabilities = config->van->capabilities;
    memcpy(connector->address, config->address, strnlen(config->address, sizeof connector->address - 1));
    connector->config.address = NULL;
    connector->timer.fire = connector_late;
    paramo_err err = lane_timer_arm(config->lane, &connector->timer, config->deadline);
    if (!err)
        err = van_connect(config->van, config->lane, connector->address, &connector_user, connector,
                          &connector->conn);
    if (!err) {
        struct wire_head head = {.plain = {.kind = WIRE_HELLO}};
        struct writer w = {0};
        hello_encode(&connector->config.hello, &w);
        err = control_message_send_written(connector->conn, &head, &w);
    }
    if (err) {
        connector_cancel(connector);
        return err;
    }
    connector_check(connector);
    *out = connector;
    return PARAMO_OK;
}
