/*
 * The raw limits over a bare socket: the rates of two processes that do only the work itself. For each pattern there is
 * a serve function for the far end (peer_start) and a driver for the near end.
 *
 * There are two ways of waiting. Blocking: recv sleeps in the kernel. Patient: recv polls for a short time, which is
 * adapted to whether polling has succeeded, and then sleeps in epoll_wait. Paramo's lanes do the same, but poll with
 * epoll_wait, so they need one call more. Functions that return int return 0 or -1 with errno. Tests:
 * test/e2e/bench.sh.
 */
#ifndef CMD_BENCH_BENCH_RAW_H
#define CMD_BENCH_BENCH_RAW_H

#include <stddef.h>
#include <stdint.h>

/* Zeros: blocking. */
struct raw_wait {
    int epoll_fd;
    unsigned cooldown; /* the next waits that sleep at once, because polling did not succeed */
    uint64_t budget_ns;
};

enum { RAW_MESSAGE = 128 }; /* bytes, about those of one key and one float with a header */

uint64_t raw_now_ns(void);
double raw_seconds_since(uint64_t ns);

int raw_wait_open(struct raw_wait *w, int fd);
void raw_wait_close(struct raw_wait *w);

int raw_send(int fd, const void *data, size_t len);
/* Like raw_send(), but the bytes leave in one packet with those that are sent next. */
int raw_send_begin(int fd, const void *data, size_t len);
/* Receives 1 to cap bytes. Returns their number, 0 at the end of the connection, or -1 with errno. */
long raw_recv_some(int fd, struct raw_wait *w, void *data, size_t cap);
/* Receives exactly len bytes. */
int raw_recv(int fd, struct raw_wait *w, void *data, size_t len);

/* ---- dense values: n_rows arrays of floats; the far end adds the pushed ones to its own ---- */

struct raw_dense {
    size_t row_bytes, n_rows, window;
    float *rows; /* near end: pushed from and pulled into */
};
void raw_dense_serve(int fd);
/* Tells the far end the sizes, and it allocates the rows. */
int raw_dense_open(int fd, const struct raw_dense *d);
/* Pushes or pulls `count` rows, with at most `window` of them unanswered. */
int raw_dense_push(int fd, const struct raw_dense *d, size_t count);
int raw_dense_pull(int fd, const struct raw_dense *d, size_t count);

/* ---- small messages ---- */

/* Ping-pong of RAW_MESSAGE bytes, blocking or patient at both ends. */
void raw_echo_blocking_serve(int fd);
void raw_echo_patient_serve(int fd);
int raw_echo(int fd, struct raw_wait *w);

/* Streams of messages, each of which is answered: with one call for each message, or with one call for all that are
 * available. */
void raw_stream_single_serve(int fd);
void raw_stream_many_serve(int fd);
int raw_stream_single(int fd, size_t count, size_t window);
int raw_stream_many(int fd, struct raw_wait *w, size_t count, size_t window);

#endif
