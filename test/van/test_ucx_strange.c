/* The ucx van and peers that say what they should not: own frames out of place, shared memory that is none,
 * and addresses from who has not proved that it is this host and user, which UCX must never see. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "van/core.h"
#include "van/support_ucx.h"
#include "van/ucx/ucx_setup.h"

static void ucx_open(struct env **env, struct van **van)
{
    *env = env_real();
    assert_int_equal(van_ucx_create(*env, &(struct van_config){0}, van), PARAMO_OK);
}

const struct conf_van conf_van = {
    .open = ucx_open, .close = van_destroy, .listen_address = "127.0.0.1:0", .dead_address = "127.0.0.1:1"};

/* ---- a peer by hand ------------------------------------------------------------------------------------ */

static int connector(const char *address)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    addr.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    return fd;
}

static void append_bytes(int fd, const uint8_t *body, size_t len)
{
    uint8_t bytes[VAN_HEADER_BYTES + SETUP_BYTES_MAX + VAN_ALIGN] = {0};
    van_own_header_encode(len, bytes);
    memcpy(bytes + VAN_HEADER_BYTES, body, len);
    size_t size = VAN_HEADER_BYTES + (size_t)van_padded(len);
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

static void setup(int fd, const struct ucx_setup *what)
{
    uint8_t bytes[SETUP_BYTES_MAX];
    size_t len = ucx_setup_encode(what, bytes);
    assert_true(len > 0);
    append_bytes(fd, bytes, len);
}

/* bytes hold the address that it refers to. */
static struct ucx_setup hear(int fd, uint8_t bytes[SETUP_BYTES_MAX + VAN_ALIGN])
{
    uint8_t header[VAN_HEADER_BYTES];
    struct van_header h;
    struct ucx_setup got;
    assert_int_equal(recv(fd, header, sizeof header, MSG_WAITALL), sizeof header);
    assert_int_equal(van_header_decode(header, SETUP_BYTES_MAX, &h), PARAMO_OK);
    assert_true(h.own);
    assert_int_equal(recv(fd, bytes, h.padded, MSG_WAITALL), (ssize_t)h.padded);
    assert_int_equal(ucx_setup_decode(bytes, (size_t)h.len[0], &got), PARAMO_OK);
    return got;
}

/* The van's offer to a listener by hand, and the connection. */
static int hear_offer(struct conf *c, struct ucx_setup *offer)
{
    uint8_t bytes[SETUP_BYTES_MAX + VAN_ALIGN];
    char address[40];
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", ntohs(addr.sin_port));
    c->address = address;
    conf_connect(c, 0);
    int fd = accept(listener, NULL, NULL);
    assert_true(fd >= 0);
    (void)close(listener);
    *offer = hear(fd, bytes);
    assert_int_equal(offer->kind, SETUP_OFFER);
    assert_true(offer->kinds & 1u << UCX_SHM);
    return fd;
}

static const uint8_t garbage[200] = {0xff, 0xee, 0x03, 0x80, 0x77, 0x12, 0xff, 0xff, 0xff, 0xff, 0x7f};

static void is_broken(struct conf *c, unsigned lane, struct peer *peer)
{
    conf_wait(c->lane[lane], &peer->closed, 1);
    assert_int_equal(peer->why, PARAMO_E_PROTOCOL);
}

/* ---- tests --------------------------------------------------------------------------------------------- */

static void own_frames_out_of_place(void **state)
{
    (void)state;
    static const struct {
        uint8_t body[32];
        size_t len;
    } says[] = {
        {{SETUP_READY, 1, 2, 3, 4, 5, 6, 7, 8, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8}, 19}, /* READY first */
        {{SETUP_ACCEPT, 0, 0, 0}, 4},
        {{SETUP_SWITCH}, 1},
        {{SETUP_OFFER, SETUP_VERSION, 0, 0}, 4}, /* a short offer */
        {{0}, 0},
        {{77, 1}, 2}, /* no such kind */
        {{SETUP_OFFER, SETUP_VERSION, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 9},
         20}, /* a long one */
    };
    for (unsigned i = 0; i < sizeof says / sizeof says[0]; i++) {
        struct conf *c = conf_open();
        conf_listen(c);
        int fd = connector(c->address);
        append_bytes(fd, says[i].body, says[i].len);
        conf_wait(c->lane[1], &c->accepted, 1);
        is_broken(c, 1, &c->server[0]);
        (void)close(fd);
        conf_close(c);
    }
}

static void memory_that_is_none_is_declined(void **state)
{
    (void)state;
    uint8_t bytes[SETUP_BYTES_MAX + VAN_ALIGN];
    struct ucx_setup offer, answer;
    struct conf *c = conf_open();
    (void)close(hear_offer(c, &offer));
    conf_listen(c);
    offer.area = (struct area_place){(uint32_t)getpid(), 99999};
    int fd = connector(c->address);
    setup(fd, &offer);
    answer = hear(fd, bytes);
    assert_int_equal(answer.kind, SETUP_DECLINE);
    offer.version++; /* a later version's */
    int other = connector(c->address);
    setup(other, &offer);
    answer = hear(other, bytes);
    assert_int_equal(answer.kind, SETUP_DECLINE);
    (void)close(fd);
    (void)close(other);
    conf_close(c);
}

/* It knows host and user, as anybody may, but has not read our memory. */
static void an_accept_without_proof_is_refused(void **state)
{
    (void)state;
    struct ucx_setup offer;
    struct area area = {0};
    struct conf *c = conf_open();
    assert_int_equal(area_create(c->env, &area), PARAMO_OK);
    int fd = hear_offer(c, &offer);
    setup(fd, &(struct ucx_setup){.kind = SETUP_ACCEPT,
                                  .way = UCX_SHM,
                                  .area = area.place,
                                  .proof = 1,
                                  .address = garbage,
                                  .address_len = sizeof garbage});
    is_broken(c, 0, &c->client[0]);
    area_close(&area);
    (void)close(fd);
    conf_close(c);
}

static void a_ready_without_proof_is_refused(void **state)
{
    (void)state;
    uint8_t bytes[SETUP_BYTES_MAX + VAN_ALIGN];
    struct ucx_setup offer, answer;
    struct area area = {0};
    struct conf *c = conf_open();
    assert_int_equal(area_create(c->env, &area), PARAMO_OK);
    (void)close(hear_offer(c, &offer));
    conf_listen(c);
    offer.area = area.place;
    int fd = connector(c->address);
    setup(fd, &offer);
    answer = hear(fd, bytes);
    assert_int_equal(answer.kind, SETUP_ACCEPT);
    assert_true(answer.proof == area_proof(&area)); /* it has read ours */
    setup(fd, &(struct ucx_setup){
                  .kind = SETUP_READY, .proof = 1, .address = garbage, .address_len = sizeof garbage});
    is_broken(c, 1, &c->server[0]);
    area_close(&area);
    (void)close(fd);
    conf_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_frames_out_of_place),
        cmocka_unit_test(memory_that_is_none_is_declined),
        cmocka_unit_test(an_accept_without_proof_is_refused),
        cmocka_unit_test(a_ready_without_proof_is_refused),
    };
    return ucx_is_here() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
