#include "post/door.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "post/letter.h"

enum { STRANGERS = 256, TIMEOUT_SECONDS = 10 };

/* A connection that has not said who it is. */
struct stranger {
    struct door *door;
    struct van_conn *conn;
    struct lane_timer timer;
    struct stranger *older, *newer;
};

struct door {
    struct door_config config;
    char token[HELLO_TOKEN_MAX]; /* zero to its end, so that tokens compare in equal time */
    uint64_t job;
    struct van_listener *listener;
    struct stranger *oldest, *newest;
    unsigned strangers;
};

static void stranger_forget(struct stranger *stranger)
{
    struct door *door = stranger->door;
    lane_timer_cancel(door->config.lane, &stranger->timer);
    *(stranger->older ? &stranger->older->newer : &door->oldest) = stranger->newer;
    *(stranger->newer ? &stranger->newer->older : &door->newest) = stranger->older;
    door->strangers--;
    free(stranger);
}

static void stranger_send_away(struct stranger *stranger)
{
    van_close(stranger->conn, false);
    stranger_forget(stranger);
}

static void stranger_late(struct lane_timer *timer)
{
    struct stranger *stranger = container_of(timer, struct stranger, timer);
    log_debug("door %s: %s said nothing valid in time", door_address(stranger->door), stranger->conn->peer);
    stranger_send_away(stranger);
}

static void stranger_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    struct stranger *stranger = user;
    log_debug("door %s: %s: %s (%s)", door_address(stranger->door), conn->peer, text, err_name(why));
    stranger_send_away(stranger);
}

/* Fixed length, whatever the tokens are. */
static bool token_fits(const struct door *door, const struct hello *hello)
{
    char said[HELLO_TOKEN_MAX] = {0};
    memcpy(said, hello->token, strlen(hello->token));
    return bytes_equal_secret(said, door->token, sizeof said);
}

/* The token first: who does not have it learns nothing else. */
static paramo_err hello_check(const struct door *door, const struct hello *hello)
{
    if (!token_fits(door, hello))
        return err_set(PARAMO_E_TOKEN, "the job token does not match");
    if (hello->version_min > HELLO_VERSION_MAX || hello->version_max < HELLO_VERSION_MIN)
        return err_set(PARAMO_E_VERSION, "protocol versions %u to %u are spoken there, %d to %d here",
                       hello->version_min, hello->version_max, HELLO_VERSION_MIN, HELLO_VERSION_MAX);
    if (!(door->config.purposes >> hello->purpose & 1))
        return err_set(PARAMO_E_REFUSED, hello->purpose == HELLO_CONTROL ? "this is not a scheduler"
                                                                         : "this node holds no tables");
    if (door->job && hello->job && hello->job != door->job)
        return err_set(PARAMO_E_REFUSED, "another job runs here");
    return PARAMO_OK;
}

static paramo_err stranger_frame(void *user, struct van_conn *conn, const uint8_t bytes[VAN_HEAD],
                                 const struct van_seg *seg, unsigned nseg)
{
    struct stranger *stranger = user;
    struct door *door = stranger->door;
    struct wire_head head;
    struct reader body;
    struct hello hello;
    paramo_err err = letter_open(bytes, seg, nseg, &head, &body);
    if (!err && head.kind != WIRE_HELLO)
        err = err_set(PARAMO_E_PROTOCOL, "%s before HELLO", wire_kind_name(head.kind));
    if (!err)
        err = hello_decode(&body, &hello);
    if (err)
        return err;
    err = hello_check(door, &hello);
    stranger_forget(stranger);
    if (err) {
        log_warn("door %s: %s was rejected: %s", door_address(door), conn->peer, err_text());
        door_reject(conn, err, err_text());
        return PARAMO_OK;
    }
    van_set_frame_limit(conn, door->config.frame_bytes);
    door->config.accept(door->config.arg, conn, &hello);
    return PARAMO_OK;
}

static const struct van_user stranger_user = {.frame = stranger_frame, .closed = stranger_closed};

static void stranger_comes(void *arg, struct van_conn *conn)
{
    struct door *door = arg;
    struct stranger *stranger = calloc(1, sizeof *stranger);
    if (!stranger) {
        van_close(conn, false);
        return;
    }
    if (door->strangers == door->config.strangers)
        stranger_send_away(door->oldest);
    stranger->door = door;
    stranger->conn = conn;
    stranger->timer.fire = stranger_late;
    stranger->older = door->newest;
    *(door->newest ? &door->newest->newer : &door->oldest) = stranger;
    door->newest = stranger;
    door->strangers++;
    van_set_user(conn, &stranger_user, stranger);
    if (lane_timer_arm(door->config.lane, &stranger->timer,
                       lane_now(door->config.lane) + door->config.timeout_ns))
        stranger_send_away(stranger);
}

paramo_err door_open(const struct door_config *config, struct door **out)
{
    if (strlen(config->token) >= HELLO_TOKEN_MAX)
        return err_set(PARAMO_E_INVALID, "the job token is longer than %d bytes", HELLO_TOKEN_MAX - 1);
    struct door *door = calloc(1, sizeof *door);
    if (!door)
        return err_memory(sizeof *door);
    door->config = *config;
    if (!config->timeout_ns)
        door->config.timeout_ns = TIMEOUT_SECONDS * ENV_SEC;
    if (!config->strangers)
        door->config.strangers = STRANGERS;
    memcpy(door->token, config->token, strlen(config->token));
    door->config.token = NULL;
    paramo_err err =
        van_listen(config->van, config->lane, config->address, stranger_comes, door, &door->listener);
    if (err) {
        free(door);
        return err;
    }
    *out = door;
    return PARAMO_OK;
}

void door_close(struct door *door)
{
    if (!door)
        return;
    van_listener_close(door->listener);
    while (door->oldest)
        stranger_send_away(door->oldest);
    free(door);
}

const char *door_address(const struct door *door)
{
    return van_listener_address(door->listener);
}

void door_set_job(struct door *door, uint64_t job)
{
    door->job = job;
}

paramo_err door_welcome(struct van_conn *conn, uint64_t job, uint64_t incarnation)
{
    struct welcome welcome = {.version = HELLO_VERSION_MAX, .job = job, .incarnation = incarnation};
    struct wire_head head = {.kind = WIRE_WELCOME};
    struct writer w = {0};
    welcome_encode(&welcome, &w);
    return letter_send_written(conn, &head, &w);
}

void door_reject(struct van_conn *conn, paramo_err code, const char *text)
{
    struct wire_head head = {.kind = WIRE_REJECT};
    struct writer w = {0};
    reject_encode(code, text, &w);
    /* If it cannot be sent, the peer learns no more than that it was closed. */
    paramo_err err = letter_send_written(conn, &head, &w);
    van_close(conn, err == PARAMO_OK);
}
