#include "van/support_ucx.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "van/tcp/tcp.h"

struct up {
    struct peer *peer;
    bool is;
};

static void look(void *arg)
{
    struct up *up = arg;
    up->is = up->peer->conn && tcp_of(up->peer->conn)->out_by == TCP_OUT_WAY;
}

bool ucx_is_up(struct peer *peer)
{
    struct up up = {.peer = peer};
    conf_on(peer->conn->lane, look, &up);
    return up.is;
}

/* Each look is a turn of the lane; the van itself gives up after some seconds and closes. */
void ucx_wait_up(struct conf *c)
{
    struct peer *both[2] = {&c->client[0], &c->server[0]};
    for (unsigned i = 0; i < 2; i++)
        while (!ucx_is_up(both[i]))
            assert_int_equal(atomic_load(&both[i]->closed), 0);
}

bool ucx_is_here(void)
{
    struct van *van;
    if (van_ucx_create(env_real(), &(struct van_config){0}, &van)) {
        print_message("%s: not tried\n", err_text());
        return false;
    }
    van_destroy(van);
    return true;
}

/* ---- a peer by hand ------------------------------------------------------------------------------------ */

static void deadline(int fd)
{
    struct timeval most = {.tv_sec = 20};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most), 0);
}

int hand_connect(const char *address)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    addr.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    deadline(fd);
    return fd;
}

void hand_own(int fd, const uint8_t *body, size_t len)
{
    uint8_t bytes[VAN_HEADER_BYTES + SETUP_BYTES_MAX + VAN_ALIGN] = {0};
    van_own_header_encode(len, bytes);
    memcpy(bytes + VAN_HEADER_BYTES, body, len);
    size_t size = VAN_HEADER_BYTES + (size_t)van_padded(len);
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

void hand_say(int fd, const struct ucx_setup *what)
{
    uint8_t bytes[SETUP_BYTES_MAX];
    size_t len = ucx_setup_encode(what, bytes);
    assert_true(len > 0);
    hand_own(fd, bytes, len);
}

struct ucx_setup hand_hear(int fd, uint8_t bytes[SETUP_BYTES_MAX + VAN_ALIGN])
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

int hand_connected(struct conf *c)
{
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
    deadline(fd);
    (void)close(listener);
    return fd;
}

int hand_offered(struct conf *c, struct ucx_setup *offer)
{
    uint8_t bytes[SETUP_BYTES_MAX + VAN_ALIGN];
    int fd = hand_connected(c);
    *offer = hand_hear(fd, bytes);
    assert_int_equal(offer->kind, SETUP_OFFER);
    assert_true(offer->kinds & 1u << UCX_SHM);
    return fd;
}
