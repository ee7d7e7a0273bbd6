#include "cmd/bench/bench_raw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)256 << 10) /* a piece is added while it is in the cache; arbitrary */
#define SPIN_MIN_NS 8000u               /* the bounds are those of the lanes (src/env/real/spin.h) */
#define SPIN_MAX_NS 60000u
#define SPIN_RETRY  32u

uint64_t raw_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

double raw_seconds_since(uint64_t ns)
{
    return 1e-9 * (double)(raw_now_ns() - ns);
}

/* ---- waiting ---- */

int raw_wait_open(struct raw_wait *w, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    *w = (struct raw_wait){.epoll_fd = epoll_create1(EPOLL_CLOEXEC), .budget_ns = 2 * SPIN_MIN_NS};
    return w->epoll_fd < 0 ? -1 : epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

void raw_wait_close(struct raw_wait *w)
{
    if (w->epoll_fd > 0)
        (void)close(w->epoll_fd);
    w->epoll_fd = 0;
}

static long recv_patient(int fd, struct raw_wait *w, void *data, size_t cap)
{
    long got = recv(fd, data, cap, MSG_DONTWAIT);
    if (got >= 0 || errno != EAGAIN)
        return got;
    if (w->cooldown > 0) {
        if (--w->cooldown == 0)
            w->budget_ns = SPIN_MIN_NS;
    } else {
        uint64_t start = raw_now_ns();
        while (raw_now_ns() - start < w->budget_ns) {
            got = recv(fd, data, cap, MSG_DONTWAIT);
            if (got >= 0 || errno != EAGAIN) {
                w->budget_ns = 2 * w->budget_ns < SPIN_MAX_NS ? 2 * w->budget_ns : SPIN_MAX_NS;
                return got;
            }
        }
        w->budget_ns -= w->budget_ns / 4;
        if (w->budget_ns < SPIN_MIN_NS)
            w->cooldown = SPIN_RETRY;
    }
    struct epoll_event event;
    while (epoll_wait(w->epoll_fd, &event, 1, -1) < 0)
        if (errno != EINTR)
            return -1;
    return recv(fd, data, cap, 0);
}

long raw_recv_some(int fd, struct raw_wait *w, void *data, size_t cap)
{
    long got;
    do
        got = w ? recv_patient(fd, w, data, cap) : recv(fd, data, cap, 0);
    while (got < 0 && errno == EINTR);
    return got;
}

int raw_recv(int fd, struct raw_wait *w, void *data, size_t len)
{
    for (size_t at = 0; at < len;) {
        long got = w ? raw_recv_some(fd, w, (char *)data + at, len - at)
                     : recv(fd, (char *)data + at, len - at, MSG_WAITALL);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = ECONNRESET;
        if (got <= 0)
            return -1;
        at += (size_t)got;
    }
    return 0;
}

static int send_flags(int fd, const void *data, size_t len, int flags)
{
    for (size_t at = 0; at < len;) {
        long n = send(fd, (const char *)data + at, len - at, MSG_NOSIGNAL | flags);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        at += (size_t)n;
    }
    return 0;
}

int raw_send(int fd, const void *data, size_t len)
{
    return send_flags(fd, data, len, 0);
}

int raw_send_begin(int fd, const void *data, size_t len)
{
    return send_flags(fd, data, len, MSG_MORE);
}

/* ---- dense ---- */

enum dense_op { DENSE_OPEN, DENSE_PUSH, DENSE_PULL };

struct dense_head {
    uint64_t op, row, bytes;
};

static void add(float *to, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

static int dense_take(int fd, float *row, size_t bytes, float *chunk)
{
    for (size_t at = 0; at < bytes;) {
        size_t n = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
        if (raw_recv(fd, NULL, chunk, n) != 0)
            return -1;
        add(row + at / sizeof *row, chunk, n / sizeof *row);
        at += n;
    }
    return 0;
}

void raw_dense_serve(int fd)
{
    struct dense_head head;
    float *rows = NULL, *chunk = aligned_alloc(64, CHUNK_BYTES);
    size_t row_floats = 0;
    while (chunk && raw_recv(fd, NULL, &head, sizeof head) == 0) {
        int result = 0;
        switch ((enum dense_op)head.op) {
        case DENSE_OPEN:
            free(rows);
            row_floats = (size_t)head.bytes / sizeof *rows;
            rows = aligned_alloc(64, (size_t)(head.row * head.bytes));
            if (!rows)
                return;
            memset(rows, 0, (size_t)(head.row * head.bytes));
            result = raw_send(fd, &head, sizeof head);
            break;
        case DENSE_PUSH:
            if (!rows || dense_take(fd, rows + head.row * row_floats, (size_t)head.bytes, chunk) != 0)
                return;
            result = raw_send(fd, &head, sizeof head);
            break;
        case DENSE_PULL:
            if (!rows)
                return;
            result = raw_send(fd, rows + head.row * row_floats, (size_t)head.bytes);
            break;
        }
        if (result != 0)
            return;
    }
}

int raw_dense_open(int fd, const struct raw_dense *d)
{
    struct dense_head head = {DENSE_OPEN, d->n_rows, d->row_bytes};
    return raw_send(fd, &head, sizeof head) != 0 ? -1 : raw_recv(fd, NULL, &head, sizeof head);
}

static float *dense_row(const struct raw_dense *d, size_t i)
{
    return d->rows + i % d->n_rows * (d->row_bytes / sizeof(float));
}

int raw_dense_push(int fd, const struct raw_dense *d, size_t count)
{
    size_t answered = 0;
    for (size_t i = 0; answered < count;) {
        struct dense_head head = {DENSE_PUSH, i % d->n_rows, d->row_bytes};
        if (i < count && i - answered < d->window) {
            if (raw_send_begin(fd, &head, sizeof head) != 0 ||
                raw_send(fd, dense_row(d, i), d->row_bytes) != 0)
                return -1;
            i++;
            continue;
        }
        if (raw_recv(fd, NULL, &head, sizeof head) != 0)
            return -1;
        answered++;
    }
    return 0;
}

int raw_dense_pull(int fd, const struct raw_dense *d, size_t count)
{
    size_t answered = 0;
    for (size_t i = 0; answered < count;) {
        if (i < count && i - answered < d->window) {
            struct dense_head head = {DENSE_PULL, i % d->n_rows, d->row_bytes};
            if (raw_send(fd, &head, sizeof head) != 0)
                return -1;
            i++;
            continue;
        }
        if (raw_recv(fd, NULL, dense_row(d, answered), d->row_bytes) != 0)
            return -1;
        answered++;
    }
    return 0;
}

/* ---- small messages ---- */

static void echo_serve(int fd, struct raw_wait *w)
{
    char message[RAW_MESSAGE];
    while (raw_recv(fd, w, message, sizeof message) == 0 && raw_send(fd, message, sizeof message) == 0)
        ;
}

void raw_echo_blocking_serve(int fd)
{
    echo_serve(fd, NULL);
}

void raw_echo_patient_serve(int fd)
{
    struct raw_wait w;
    if (raw_wait_open(&w, fd) == 0)
        echo_serve(fd, &w);
}

int raw_echo(int fd, struct raw_wait *w)
{
    char message[RAW_MESSAGE] = {1};
    return raw_send(fd, message, sizeof message) != 0 ? -1 : raw_recv(fd, w, message, sizeof message);
}

void raw_stream_single_serve(int fd)
{
    echo_serve(fd, NULL);
}

void raw_stream_many_serve(int fd)
{
    static char buf[64 * 1024];
    struct raw_wait w;
    size_t have = 0;
    if (raw_wait_open(&w, fd) != 0)
        return;
    for (;;) {
        long got = raw_recv_some(fd, &w, buf + have, sizeof buf - have);
        if (got <= 0)
            return;
        have += (size_t)got;
        size_t whole = have - have % RAW_MESSAGE;
        if (raw_send(fd, buf, whole) != 0)
            return;
        memmove(buf, buf + whole, have - whole);
        have -= whole;
    }
}

int raw_stream_single(int fd, size_t count, size_t window)
{
    char message[RAW_MESSAGE] = {1};
    size_t answered = 0;
    for (size_t i = 0; answered < count;) {
        if (i < count && i - answered < window) {
            if (raw_send(fd, message, sizeof message) != 0)
                return -1;
            i++;
            continue;
        }
        if (raw_recv(fd, NULL, message, sizeof message) != 0)
            return -1;
        answered++;
    }
    return 0;
}

int raw_stream_many(int fd, struct raw_wait *w, size_t count, size_t window)
{
    static char buf[64 * 1024];
    size_t answered = 0, part = 0; /* part: bytes of the next answer that have been received */
    if (window > sizeof buf / RAW_MESSAGE)
        window = sizeof buf / RAW_MESSAGE;
    for (size_t i = 0; answered < count;) {
        size_t room = window - (i - answered), left = count - i;
        size_t n = room < left ? room : left;
        if (n > 0 && raw_send(fd, buf, n * RAW_MESSAGE) != 0)
            return -1;
        i += n;
        long got = raw_recv_some(fd, w, buf, sizeof buf);
        if (got <= 0)
            return -1;
        part += (size_t)got;
        answered += part / RAW_MESSAGE;
        part %= RAW_MESSAGE;
    }
    return 0;
}
