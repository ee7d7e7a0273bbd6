#include "cluster/session/acceptor.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "cluster/session/control_message.h"

enum { UNAUTH_MAX = 256, TIMEOUT_SECONDS = 10 };

/* A connection that has not authenticated yet. */
struct unauth {
    struct acceptor *acceptor;
    struct van_conn *conn;
    struct lane_timer timer;
    struct unauth *older, *newer;
};

struct acceptor {
    struct acceptor_config config;
    char token[HELLO_TOKEN_MAX]; /* zero-padded, so that tokens compare in constant time */
    uint64_t job;
    struct van_listener *listener;
    struct unauth *oldest, *newest;
    unsigned unauth_count;
};

/* The unauthenticated connections in a list, no more than are allowed. */
static void acceptor_check(const struct acceptor *acceptor)
{
    assert(!acceptor->oldest == !acceptor->unauth_count && !acceptor->oldest == !acceptor->newest);
    assert(acceptor->unauth_count <= acceptor->config.unauth_max);
    assert(!acceptor->oldest || (!acceptor->oldest->older && !acceptor->newest->newer));
}

static void unauth_forget(struct unauth *unauth)
{
    struct acceptor *acceptor = unauth->acceptor;
    acceptor_check(acceptor);
    lane_timer_cancel(acceptor->config.lane, &unauth->timer);
    assert(unauth->older ? unauth->older->newer == unauth : acceptor->oldest == unauth);
    assert(unauth->newer ? unauth->newer->older == unauth : acceptor->newest == unauth);
    *(unauth->older ? &unauth->older->newer : &acceptor->oldest) = unauth->newer;
    *(unauth->newer ? &unauth->newer->older : &acceptor->newest) = unauth->older;
    acceptor->unauth_count--;
    acceptor_check(acceptor);
    free(unauth);
}

static void unauth_drop(struct unauth *unauth)
{
    van_close(unauth->conn, false);
    unauth_forget(unauth);
}

static void unauth_timeout(struct lane_timer *timer)
{
    struct unauth *unauth = container_of(timer, struct unauth, timer);
    acceptor_check(unauth->acceptor);
    assert(!timer->slot);
    log_debug("acceptor %s: %s sent nothing valid in time", acceptor_address(unauth->acceptor),
              unauth->conn->peer);
    unauth_drop(unauth);
}

static void unauth_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    struct unauth *unauth = user;
    acceptor_check(unauth->acceptor);
    assert(unauth->conn == conn);
    log_debug("acceptor %s: %s: %s (%s)", acceptor_address(unauth->acceptor), conn->peer, text,
              err_name(why));
    unauth_drop(unauth);
}

/* Compares a fixed length, for any tokens. */
static bool token_fits(const struct acceptor *acceptor, const struct hello *hello)
{
    char offered[HELLO_TOKEN_MAX] = {0};
    memcpy(offered, hello->token, strlen(hello->token));
    return bytes_equal_secret(offered, acceptor->token, sizeof offered);
}

/* Checks the token first: a peer without it learns nothing else. */
static paramo_err hello_check(const struct acceptor *acceptor, const struct hello *hello)
{
    if (!token_fits(acceptor, hello))
        return err_set(PARAMO_E_TOKEN, "the job token does not match; all nodes need the same PARAMO_TOKEN");
    if (hello->version_min > HELLO_VERSION_MAX || hello->version_max < HELLO_VERSION_MIN)
        return err_set(PARAMO_E_VERSION, "the peer speaks protocol versions %u to %u, this node %d to %d",
                       hello->version_min, hello->version_max, HELLO_VERSION_MIN, HELLO_VERSION_MAX);
    if (!(acceptor->config.purposes >> hello->purpose & 1))
        return err_set(PARAMO_E_REFUSED, hello->purpose == HELLO_CONTROL ? "this is not a scheduler"
                                                                         : "this node holds no tables");
    if (acceptor->job && hello->job && hello->job != acceptor->job)
        return err_set(PARAMO_E_REFUSED, "another job runs here");
    return PARAMO_OK;
}

static paramo_err unauth_frame(void *user, struct van_conn *conn, const uint8_t bytes[VAN_HEAD],
                               const struct van_seg *seg, unsigned nseg)
{
    struct unauth *unauth = user;
    struct acceptor *acceptor = unauth->acceptor;
    struct wire_head head;
    struct reader body;
    struct hello hello;
    assert(unauth->conn == conn && !conn->capabilities); /* none before HELLO */
    paramo_err err = control_message_open(bytes, seg, nseg, &head, &body);
    if (!err && head.kind != WIRE_HELLO)
        err = err_set(PARAMO_E_PROTOCOL, "%s came before HELLO", wire_kind_name(head.kind));
    if (!err)
        err = hello_decode(&body, &hello);
    if (err)
        return err;
    err = hello_check(acceptor, &hello);
    unauth_forget(unauth);
    if (err) {
        log_warn("acceptor %s: %s was rejected: %s", acceptor_address(acceptor), conn->peer, err_text());
        acceptor_reject(conn, err, err_text());
        return PARAMO_OK;
    }
    van_set_frame_limit(conn, acceptor->config.frame_bytes);
    conn->capabilities = hello.capabilities & acceptor->config.van->capabilities;
    acceptor->config.accept(acceptor->config.arg, conn, &hello);
    return PARAMO_OK;
}

static const struct van_user unauth_user = {.frame = unauth_frame, .closed = unauth_closed};

static void unauth_accept(void *arg, struct van_conn *conn)
{
    struct acceptor *acceptor = arg;
    struct unauth *unauth = calloc(1, sizeof *unauth);
    if (!unauth) {
        van_close(conn, false);
        return;
    }
    if (acceptor->unauth_count == acceptor->config.unauth_max)
        unauth_drop(acceptor->oldest);
    assert(acceptor->unauth_count < acceptor->config.unauth_max);
    unauth->acceptor = acceptor;
    unauth->conn = conn;
    unauth->timer.fire = unauth_timeout;
    unauth->older = acceptor->newest;
    *(acceptor->newest ? &acceptor->newest->newer : &acceptor->oldest) = unauth;
    acceptor->newest = unauth;
    acceptor->unauth_count++;
    acceptor_check(acceptor);
    van_set_user(conn, &unauth_user, unauth);
    if (lane_timer_arm(acceptor->config.lane, &unauth->timer,
                       lane_now(acceptor->config.lane) + acceptor->config.timeout_ns))
        unauth_drop(unauth);
}

paramo_err acceptor_open(const struct acceptor_config *config, struct acceptor **out)
{
    if (strlen(config->token) >= HELLO_TOKEN_MAX)
        return err_set(PARAMO_E_INVALID, "the job token is longer than %d bytes", HELLO_TOKEN_MAX - 1);
    struct acceptor *acceptor = calloc(1, sizeof *acceptor);
    if (!acceptor)
        return err_memory(sizeof *acceptor);
    acceptor->config = *config;
    if (!config->timeout_ns)
        acceptor->config.timeout_ns = TIMEOUT_SECONDS * ENV_SEC;
    if (!config->unauth_max)
        acceptor->config.unauth_max = UNAUTH_MAX;
    memcpy(acceptor->token, config->token, strlen(config->token));
    acceptor->config.token = NULL;
    paramo_err err =
        van_listen(config->van, config->lane, config->address, unauth_accept, acceptor, &acceptor->listener);
    if (err) {
        free(acceptor);
        return err;
    }
    acceptor_check(acceptor);
    assert(acceptor->config.timeout_ns && acceptor->listener);
    *out = acceptor;
    return PARAMO_OK;
}

void acceptor_close(struct acceptor *acceptor)
{
    if (!acceptor)
        return;
    acceptor_check(acceptor);
    van_listener_close(acceptor->listener);
    while (acceptor->oldest)
        unauth_drop(acceptor->oldest);
    assert(!acceptor->unauth_count);
    free(acceptor);
}

const char *acceptor_address(const struct acceptor *acceptor)
{
    return van_listener_address(acceptor->listener);
}

void acceptor_set_job(struct acceptor *acceptor, uint64_t job)
{
    assert(job);
    acceptor->job = job;
}

paramo_err acceptor_welcome(struct van_conn *conn, uint64_t job, uint64_t incarnation)
{
    struct welcome welcome = {.version = HELLO_VERSION_MAX,
                              .job = job,
                              .incarnation = incarnation,
                              .capabilities = conn->capabilities};
    struct wire_head head = {.plain = {.kind = WIRE_WELCOME}};
    struct writer w = {0};
    welcome_encode(&welcome, &w);
    return control_message_send_written(conn, &head, &w);
}

void acceptor_reject(struct van_conn *conn, paramo_err code, const char *text)
{
    assert(code != PARAMO_OK);
    struct wire_head head = {.plain = {.kind = WIRE_REJECT}};
    struct writer w = {0};
    reject_encode(code, text, &w);
    /* If this cannot be sent, the peer only learns that the connection was closed. */
    paramo_err err = control_message_send_written(conn, &head, &w);
    van_close(conn, err == PARAMO_OK);
}
