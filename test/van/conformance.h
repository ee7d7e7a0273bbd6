/*
 * The transport contract of van/van.h as tests, the same for every van: a van's test program says how to make
 * one, and runs them with CONFORMANCE_TESTS. Ends are driven on lanes of the van's own environment; what is
 * waited for is an event on the lane where it happens, with a deadline.
 */
#ifndef TEST_VAN_CONFORMANCE_H
#define TEST_VAN_CONFORMANCE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "env/lane.h"
#include "van/van.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONF_SLOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CONF_SLOW 1
#endif
#endif
#ifndef CONF_SLOW
#define CONF_SLOW 0
#endif

enum { CONF_LANES = 3, CONF_PEERS = 256 };

struct conf;

/* How a van is made; opened and closed around each test. */
struct conf_van {
    void (*open)(struct env **env, struct van **van);
    void (*close)(struct van *van);
    const char *listen_address;     /* twice in use is refused */
    const char *dead_address;       /* no process listens there */
    void (*paired)(struct conf *c); /* may be NULL: a pair stands, nothing was sent */
    uint64_t large_bytes;           /* of one large frame */
    unsigned large_count;
    unsigned lane_flags; /* enum lane_flags */
};
extern const struct conf_van conf_van;

/* One end of a connection, and what it has seen. */
struct peer {
    struct conf *conf;
    struct van_conn *conn;
    atomic_uint frames, closed, writable, done_ok, done_bad, placed;
    paramo_err why;
    char text[ERR_TEXT_MAX];
    int place_mode; /* 0 pool, 1 dst, 2 sink, 3 by turns */
    uint8_t *dst[VAN_SEGS];
    size_t dst_bytes;
    unsigned accepted_number;
    /* NULL: check_frame */
    paramo_err (*on_frame)(struct peer *peer, const uint8_t *head, const struct van_seg *seg, unsigned nseg);
    void (*on_closed)(struct peer *peer);
    uint64_t next_id; /* expected by check_frame; UINT64_MAX: any, rising */
    uint64_t order[64];
    struct lane *lane; /* where callbacks must come, if not NULL */
    struct van_hold *holds[16];
    struct van_seg kept[16][VAN_SEGS];
    uint8_t kept_head[16][VAN_HEAD];
};

struct conf {
    struct env *env;
    struct van *van;
    struct lane *lane[CONF_LANES]; /* 0 connects, 1 listens */
    struct van_listener *listener;
    struct peer client[CONF_PEERS], server[CONF_PEERS];
    atomic_uint accepted;
    void (*on_accept)(struct peer *peer);
    uint64_t frame_limit;
    bool moving; /* an accepted connection is not settled at once */
    const char *address;
};

struct conf *conf_open(void);
/* Closes what is open. */
void conf_close(struct conf *c);
/* Runs fn on the lane and waits for it. */
void conf_on(struct lane *lane, void (*fn)(void *arg), void *arg);
/* Waits until *counter >= value; it is raised on that lane. */
void conf_wait(struct lane *lane, atomic_uint *counter, unsigned value);
void conf_listen(struct conf *c);
/* Connects client[i] on lane 0. */
void conf_connect(struct conf *c, unsigned i);
extern const struct van_user conf_user;

/* A frame whose content follows from its id; freed by its done, which counts on the peer. */
struct van_frame *conf_frame(struct peer *peer, uint64_t id, unsigned nseg, const uint64_t *len);
/* On the lane: sends; AGAIN is the test's failure. */
void conf_send(struct peer *peer, struct van_frame *frame);
/* Fails the test if the bytes are not what conf_frame made; returns the id. */
uint64_t conf_check(const uint8_t *head, const struct van_seg *seg, unsigned nseg);

void conf_test_shapes(void **state);
void conf_test_large(void **state);
void conf_test_too_large(void **state);
void conf_test_back_pressure(void **state);
void conf_test_many_peers(void **state);
void conf_test_receiver_closes(void **state);
void conf_test_sender_closes(void **state);
void conf_test_flush_close(void **state);
void conf_test_withdraw(void **state);
void conf_test_order(void **state);
void conf_test_move(void **state);
void conf_test_same_lane(void **state);
void conf_test_keep(void **state);
void conf_test_drop(void **state);
void conf_test_refused(void **state);
void conf_test_in_use(void **state);
void conf_test_frame_error(void **state);
void conf_test_ping_pong(void **state);

#define CONFORMANCE_TESTS                                                                                    \
    cmocka_unit_test(conf_test_shapes), cmocka_unit_test(conf_test_large),                                   \
        cmocka_unit_test(conf_test_too_large), cmocka_unit_test(conf_test_back_pressure),                    \
        cmocka_unit_test(conf_test_many_peers), cmocka_unit_test(conf_test_receiver_closes),                 \
        cmocka_unit_test(conf_test_sender_closes), cmocka_unit_test(conf_test_flush_close),                  \
        cmocka_unit_test(conf_test_withdraw), cmocka_unit_test(conf_test_order),                             \
        cmocka_unit_test(conf_test_move), cmocka_unit_test(conf_test_same_lane),                             \
        cmocka_unit_test(conf_test_keep), cmocka_unit_test(conf_test_drop),                                  \
        cmocka_unit_test(conf_test_refused), cmocka_unit_test(conf_test_in_use),                             \
        cmocka_unit_test(conf_test_frame_error), cmocka_unit_test(conf_test_ping_pong)

#endif
