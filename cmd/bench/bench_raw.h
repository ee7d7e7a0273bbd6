/*
 * The raw limits over a bare socket: what two processes reach that do nothing but the work itself. One serve
 * function per pattern for the far end (peer_start), one driver for the near end.
 *
 * Waiting comes in two ways. Blocking: read sleeps in the kernel. Patient: a read polls for a short time that
 * adapts to whether polling has paid, then sleeps in epoll_wait, as Paramo's lanes do (but with recv itself,
 * which saves a call). Functions that return int return 0 or -1 with errno. Tests: test/e2e/bench.sh.
 */
#ifndef CMD_BENCH_BENCH_RAW_H
#define CMD_BENCH_BENCH_RAW_H

#include <stddef.h>
#include <stdint.h>

/* Zero-initialised with epoll_fd 0: blocking. */
struct raw_wait {
    int epoll_fd;
    unsigned cooldown; /* waits that go to sleep at once */
    uint64_t budget_ns;
};

enum { RAW_MESSAGE = 128 }; /* about what one key and one float make with a header */

uint64_t raw_now_ns(void);
double raw_seconds_since(uint64_t ns);

int raw_wait_open(struct raw_wait *w, int fd);
void raw_wait_close(struct raw_wait *w);

int raw_send(int fd, const void *data, size_t len);
/* Like raw_send(), but the bytes leave in one packet with those that are sent next. */
int raw_send_begin(int fd, const void *data, size_t len);
/* At least one byte, at most cap: their number, 0 at the end of the connection, -1. */
long raw_recv_some(int fd, struct raw_wait *w, void *data, size_t cap);
/* Exactly len bytes. */
int raw_recv(int fd, struct raw_wait *w, void *data, size_t len);

/* ---- dense values: n_rows arrays of floats; the far end adds in what is pushed ---- */

struct raw_dense {
    size_t row_bytes, n_rows, window;
    float *rows; /* near end: pushed from and pulled into */
};
void raw_dense_serve(int fd);
/* Tells the far end the sizes; it allocates. */
int raw_dense_open(int fd, const struct raw_dense *d);
/* `count` values, `window` of them unanswered. */
int raw_dense_push(int fd, const struct raw_dense *d, size_t count);
int raw_dense_pull(int fd, const struct raw_dense *d, size_t count);

/* ---- small messages ---- */

/* Ping-pong of RAW_MESSAGE bytes, blocking or patient at both ends. */
void raw_echo_blocking_serve(int fd);
void raw_echo_patient_serve(int fd);
int raw_echo(int fd, struct raw_wait *w);

/* Streams of messages, each answered: a call per message, or as many in a call as there are. */
void raw_stream_single_serve(int fd);
void raw_stream_many_serve(int fd);
int raw_stream_single(int fd, size_t count, size_t window);
int raw_stream_many(int fd, struct raw_wait *w, size_t count, size_t window);

#endif
