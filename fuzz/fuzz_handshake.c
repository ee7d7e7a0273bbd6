/* Both sides of the handshake. Unauthenticated connections send any bytes to an acceptor, and a peer answers a
 * connector with any bytes. Only the right token is accepted, a connection attempt ends once, and afterwards the
 * acceptor still accepts a proper handshake. */
#include <stdlib.h>
#include <string.h>

#include "cluster/session/acceptor.h"
#include "cluster/session/connector.h"
#include "cluster/session/control_message.h"
#include "fakevan.h"

enum { CONNS = 6, CONNECTORS = 3 };

struct connecting {
    struct connector *connector;
    struct fakeconn *conn;
    bool over;
};

static struct world {
    struct fakeworld world;
    struct acceptor *acceptor;
    struct fakeconn *unauth[CONNS];
    struct connecting connector[CONNECTORS];
    struct connecting *connecting; /* being begun */
    unsigned accepted, welcomes;
    unsigned mode; /* what the owner does with an accepted connection */
} w;

static paramo_err owned_frame(void *user, struct van_conn *conn, const uint8_t head[VAN_HEAD],
                              const struct van_seg *seg, unsigned nseg)
{
    (void)user, (void)conn, (void)head, (void)seg, (void)nseg;
    return PARAMO_OK;
}

static void owned_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    (void)user, (void)why, (void)text;
    van_close(conn, false);
}

static const struct van_user owned = {.frame = owned_frame, .closed = owned_closed};

static void accepted(void *arg, struct van_conn *conn, const struct hello *hello)
{
    (void)arg;
    CHECK(strcmp(hello->token, "secret") == 0 && hello->incarnation);
    CHECK(hello->purpose == HELLO_DATA && (!hello->job || hello->job == 5));
    w.accepted++;
    if (w.mode == 1) {
        acceptor_reject(conn, PARAMO_E_FULL, "no room");
        return;
    }
    van_set_user(conn, &owned, NULL);
    if (acceptor_welcome(conn, 5, 6) != PARAMO_OK)
        van_close(conn, false);
}

static void up(void *arg, struct van_conn *conn, const struct welcome *welcome)
{
    struct connecting *d = arg;
    CHECK(!d->over && welcome->version == HELLO_VERSION_MAX);
    d->over = true;
    d->connector = NULL;
    van_set_user(conn, &owned, NULL);
}

static void failed(void *arg, paramo_err code, const char *text)
{
    struct connecting *d = arg;
    CHECK(!d->over && code != PARAMO_OK && text);
    d->over = true;
    d->connector = NULL;
}

static void connected(void *arg, struct fakeconn *conn)
{
    (void)arg;
    w.connecting->conn = conn;
}

static void sent(void *arg, struct fakeconn *conn, const struct van_frame *frame)
{
    struct wire_head head;
    struct reader body;
    struct welcome welcome;
    struct hello hello;
    paramo_err code;
    (void)arg, (void)conn;
    CHECK(control_message_open(frame->head, frame->seg, frame->nseg, &head, &body) == PARAMO_OK);
    if (head.kind == WIRE_WELCOME) {
        CHECK(welcome_decode(&body, &welcome) == PARAMO_OK);
        w.welcomes++;
    } else if (head.kind == WIRE_HELLO) {
        CHECK(hello_decode(&body, &hello) == PARAMO_OK);
    } else {
        CHECK(head.kind == WIRE_REJECT && reject_decode(&body, &code) == PARAMO_OK);
    }
}

static void edit(struct writer *body, struct source *s)
{
    for (unsigned n = draw_below(s, 4); n-- && body->len;)
        body->data[draw_u16(s) % body->len] = draw_u8(s);
    if (draw_below(s, 8) == 7)
        body->len -= draw_below(s, 8) % (body->len + 1);
}

static void send_hello(struct fakeconn *c, struct source *s)
{
    static const char *const tokens[] = {"secret", "secret", "secret", "Secret", "", "secret2"};
    struct hello hello = {.version_min = HELLO_VERSION_MIN,
                          .version_max = HELLO_VERSION_MAX,
                          .purpose = HELLO_DATA,
                          .node = draw_u8(s),
                          .incarnation = 1 + draw_number(s),
                          .job = draw_below(s, 4) == 3 ? draw_u8(s) : 0};
    const char *token = tokens[draw_below(s, 6)];
    memcpy(hello.token, token, strlen(token) + 1);
    struct wire_head head = {.plain = {.kind = WIRE_HELLO}};
    struct writer body = {0};
    hello_encode(&hello, &body);
    edit(&body, s);
    (void)fakeconn_control_message(c, &head, body.data, body.len);
    writer_fini(&body);
}

static void answer(struct fakeconn *c, struct source *s)
{
    struct wire_head head = {.plain = {.kind = WIRE_WELCOME}};
    struct welcome welcome = {.version = 1, .job = draw_u8(s), .incarnation = draw_u64(s)};
    struct writer body = {0};
    char text[64];
    if (draw_below(s, 3)) {
        welcome_encode(&welcome, &body);
    } else {
        head.kind = WIRE_REJECT;
        draw_text(s, text, sizeof text);
        reject_encode((paramo_err)draw_u8(s), text, &body);
    }
    edit(&body, s);
    (void)fakeconn_control_message(c, &head, body.data, body.len);
    writer_fini(&body);
}

static void start_connector(struct connecting *d, struct source *s)
{
    struct connector_config config = {.van = &w.world.van.van,
                                      .lane = w.world.lane,
                                      .address = "peer:1",
                                      .hello = {.purpose = HELLO_DATA, .incarnation = 3, .token = "secret"},
                                      .frame_bytes = 1 << 16,
                                      .deadline = fakeworld_now(&w.world) + (1 + draw_u8(s)) * ENV_SEC / 10,
                                      .up = up,
                                      .failed = failed,
                                      .arg = d};
    *d = (struct connecting){0};
    w.connecting = d;
    if (connector_start(&config, &d->connector) != PARAMO_OK)
        d->over = true;
}

static void step(struct source *s)
{
    uint8_t op = draw_u8(s);
    struct fakeconn **unauth = &w.unauth[draw_below(s, CONNS)], *c = *unauth;
    struct connecting *d = &w.connector[draw_below(s, CONNECTORS)];
    switch (op % 12) {
    case 0:
        if (!fakeconn_alive(c))
            *unauth = fakevan_unauth(&w.world.van);
        break;
    case 1:
    case 2:
        if (fakeconn_alive(c))
            send_hello(c, s);
        break;
    case 3:
        if (fakeconn_alive(c))
            (void)fakeconn_raw(c, s);
        break;
    case 4:
        if (fakeconn_alive(c))
            fakeconn_break(c, PARAMO_E_DISCONNECTED, "cut");
        break;
    case 5:
        w.mode = draw_below(s, 2);
        w.world.van.refuse = draw_below(s, 4) == 3;
        break;
    case 6:
        if (!d->connector)
            start_connector(d, s);
        break;
    case 7:
    case 8:
        if (fakeconn_alive(d->conn))
            answer(d->conn, s);
        break;
    case 9:
        if (fakeconn_alive(d->conn))
            (void)fakeconn_raw(d->conn, s);
        break;
    case 10:
        if (fakeconn_alive(d->conn))
            fakeconn_break(d->conn, PARAMO_E_DISCONNECTED, "cut");
        break;
    default:
        if (d->connector)
            connector_cancel(d->connector);
        d->connector = NULL;
        d->over = true;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    memset(&w, 0, sizeof w);
    fakeworld_open(&w.world);
    w.world.van.sent = sent;
    w.world.van.connected = connected;
    struct acceptor_config config = {.van = &w.world.van.van,
                                     .lane = w.world.lane,
                                     .address = "acceptor",
                                     .token = "secret",
                                     .purposes = ACCEPTOR_PURPOSE_DATA,
                                     .frame_bytes = 1 << 20,
                                     .unauth_max = 3,
                                     .accept = accepted};
    fakeworld_enter(&w.world);
    CHECK(acceptor_open(&config, &w.acceptor) == PARAMO_OK);
    acceptor_set_job(w.acceptor, 5);
    fakeworld_leave(&w.world);
    for (unsigned n = 0; s.left && n < 200; n++) {
        fakeworld_enter(&w.world);
        step(&s);
        fakeworld_leave(&w.world);
        if (draw_below(&s, 4) == 3)
            fakeworld_pass(&w.world, draw_u8(&s) * 16);
    }
    /* A connection with a correct HELLO is accepted. */
    struct hello hello = {.version_min = HELLO_VERSION_MIN,
                          .version_max = HELLO_VERSION_MAX,
                          .purpose = HELLO_DATA,
                          .incarnation = 9,
                          .token = "secret"};
    struct wire_head head = {.plain = {.kind = WIRE_HELLO}};
    struct writer body = {0};
    w.mode = 0;
    fakeworld_enter(&w.world);
    struct fakeconn *last = fakevan_unauth(&w.world.van);
    unsigned before = w.welcomes;
    hello_encode(&hello, &body);
    CHECK(fakeconn_control_message(last, &head, body.data, body.len) && w.welcomes == before + 1);
    writer_fini(&body);
    acceptor_close(w.acceptor);
    fakeworld_leave(&w.world);
    fakeworld_pass(&w.world, 40000); /* every deadline */
    fakeworld_enter(&w.world);
    for (unsigned i = 0; i < CONNECTORS; i++)
        CHECK(!w.connector[i].connector);
    for (struct fakeconn *c = w.world.van.conns; c; c = c->next)
        if (fakeconn_alive(c)) {
            CHECK(c->conn.user_ops == &owned);
            fakeconn_break(c, PARAMO_E_DISCONNECTED, "the end");
        }
    fakeworld_leave(&w.world);
    fakeworld_close(&w.world);
    return 0;
}
