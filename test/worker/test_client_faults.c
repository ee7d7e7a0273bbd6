/* How requests end when they cannot succeed, and that their arrays are free when they have ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/answer.h"
#include "worker/client_impl.h"
#include "worker/links.h"
#include "worker/requests.h"
#include "worker/support_world.h"

enum { DENSE, USER, SPARSE };
enum { SEEN_MAX = 64 };

struct seen {
    uint64_t keys[SEEN_MAX];
    unsigned count;
};

static void note(void *arg, struct shard_request *q, const struct shard_request_info *info)
{
    struct seen *seen = arg;
    if (seen->count < SEEN_MAX)
        seen->keys[seen->count++] = info->keys[0];
    assert_ok(shard_answer(q, NULL, 0, NULL));
}

static void world_make(struct world *w, unsigned servers, struct seen *seen)
{
    world_init(w, true, 7);
    world_table(w, PARAMO_TABLE_DENSE, 1)->rows = 1 << 20;
    world_table(w, PARAMO_TABLE_USER, 1);
    world_table(w, PARAMO_TABLE_SPARSE, 1);
    w->handler = note;
    w->handler_arg = seen;
    world_start(w, servers, servers, 1);
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void run_for(struct world *w, uint64_t ns)
{
    (void)sim_run(w->sim, never, NULL, sim_now(w->sim) + ns);
}

static void cut(struct world *w, const char *from, const char *to, bool cut)
{
    struct simnet_node *a, *b;
    struct simnet_link *link;
    assert_ok(simnet_node(w->net, from, &a));
    assert_ok(simnet_node(w->net, to, &b));
    assert_ok(simnet_link(w->net, a, b, &link));
    link->cut = cut;
}

/* ---- deadlines ---- */

static void test_timeout(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 1, NULL);
    struct client *c = w.clients[0].client;
    uint64_t key = 3, ts, other;
    float val = 1;
    cut(&w, "w0", "s0", true);
    paramo_request_options o = {.size = sizeof o, .timeout_ms = 500};
    paramo_kv kv = {.size = sizeof kv, .keys = &key, .n = 1, .vals = &val, .vals_len = 1};
    struct client_call call = {.kind = REQUEST_PUSH, .table = &w.tables[DENSE], .kv = &kv, .options = &o};
    uint64_t began = sim_now(w.sim);
    assert_ok(client_issue(c, &call, &ts));
    o.timeout_ms = 2000;
    assert_ok(client_issue(c, &call, &other));
    assert_int_equal(client_wait(c, ts, 100), PARAMO_E_TIMEOUT); /* of the wait only */
    int done = 1;
    assert_ok(client_test(c, ts, &done));
    assert_int_equal(done, 0);
    assert_int_equal(client_wait(c, ts, 0), PARAMO_E_TIMEOUT);
    assert_non_null(strstr(err_text(), "server 0 (node 8, s0)"));
    assert_true(sim_now(w.sim) - began >= 500 * ENV_MS && sim_now(w.sim) - began < 600 * ENV_MS);
    assert_int_equal(client_wait_all(c, 0), PARAMO_E_TIMEOUT);
    assert_int_equal(client_wait(c, ts, 0), PARAMO_E_TIMEOUT); /* remembered */
    assert_int_equal(client_wait(c, other + 1, 0), PARAMO_E_INVALID);
    assert_ok(client_wait_all(c, 0)); /* told once */
    /* when the server is back the next ones pass */
    cut(&w, "w0", "s0", false);
    o.timeout_ms = 0;
    assert_ok(client_issue(c, &call, &ts));
    assert_ok(client_wait(c, ts, 0));
    world_fini(&w);
}

/* A lost answer or request is asked about soon, not at the deadline. */
static void test_probe(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 1, NULL);
    uint64_t key = 3, ts;
    float val = 1, out = 0;
    assert_ok(world_push(&w, 0, DENSE, &key, 1, &val, 1, &ts));
    assert_ok(world_wait(&w, 0, ts));
    van_sim_set_faulty(w.clients[0].van, 1u << VAN_REQUEST);
    van_sim_set_faulty(w.servers[0].van, 1u << VAN_ANSWER);
    for (int answers = 0; answers < 2; answers++) {
        cut(&w, answers ? "s0" : "w0", answers ? "w0" : "s0", true);
        uint64_t began = sim_now(w.sim);
        assert_ok(world_push(&w, 0, DENSE, &key, 1, &val, 1, &ts));
        run_for(&w, 50 * ENV_MS);
        cut(&w, answers ? "s0" : "w0", answers ? "w0" : "s0", false);
        assert_ok(world_wait(&w, 0, ts));
        assert_true(sim_now(w.sim) - began < 2 * ENV_SEC);
    }
    assert_ok(world_pull(&w, 0, DENSE, &key, 1, &out, 1, &ts));
    assert_ok(world_wait(&w, 0, ts));
    assert_true(out == 3);
    world_fini(&w);
}

struct late {
    struct sim_event event;
    struct shard_request *request;
};

static void answer_late(struct sim_event *event)
{
    struct late *late = container_of(event, struct late, event);
    assert_ok(shard_answer(late->request, NULL, 0, NULL));
    free(late);
}

/* Works on each request for as many seconds as its key says. */
static void work(void *arg, struct shard_request *q, const struct shard_request_info *info)
{
    struct world *w = arg;
    struct late *late = calloc(1, sizeof *late);
    *late = (struct late){.event.fire = answer_late, .request = q};
    assert_ok(sim_schedule(w->sim, &late->event, sim_now(w->sim) + info->keys[0] * ENV_SEC));
}

/* How long a push takes that is lost on its way. */
static uint64_t lost_push(struct world *w)
{
    uint64_t key = 9, began = sim_now(w->sim), ts;
    float val = 1;
    cut(w, "w0", "s0", true);
    assert_ok(world_push(w, 0, DENSE, &key, 1, &val, 1, &ts));
    run_for(w, ENV_MS);
    cut(w, "w0", "s0", false);
    assert_ok(world_wait(w, 0, ts));
    return sim_now(w->sim) - began;
}

/* Requests that are worked on for seconds do not delay finding out about one that is lost, and are not asked
 * about often. */
static void test_patience(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, true, 7);
    world_table(&w, PARAMO_TABLE_DENSE, 1)->rows = 1 << 20;
    world_table(&w, PARAMO_TABLE_USER, 1);
    w.timeout_ms = 60000;
    w.handler = work;
    w.handler_arg = &w;
    world_start(&w, 1, 1, 1);
    struct client *c = w.clients[0].client;
    uint64_t key = 2, ts;
    float val = 1;
    for (unsigned i = 0; i < 10; i++) {
        assert_ok(world_push(&w, 0, USER, &key, 1, &val, 1, &ts));
        assert_ok(world_wait(&w, 0, ts));
    }
    van_sim_set_faulty(w.clients[0].van, 1u << VAN_REQUEST);
    assert_true(lost_push(&w) < 100 * ENV_MS);
    key = 30; /* while one waits that has been asked about several times */
    uint64_t before = c->links->all[0]->conn->counters.frames_sent;
    assert_ok(world_push(&w, 0, USER, &key, 1, &val, 1, &ts));
    run_for(&w, 10 * ENV_SEC);
    assert_true(c->links->all[0]->conn->counters.frames_sent - before < 13);
    assert_true(lost_push(&w) < 100 * ENV_MS);
    assert_ok(world_wait(&w, 0, ts));
    c->config.retry_ms = 5000;
    uint64_t fixed = lost_push(&w);
    assert_true(fixed > 5000 * ENV_MS && fixed < 5100 * ENV_MS);
    world_fini(&w);
}

/* A table that the client's view lacks: its requests, and those after them, wait for the view that brings it. Servers
 * that lack the view, too, are not asked before. All keep their order. */
static void test_table_of_a_later_view(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct world w;
    world_make(&w, 1, &seen);
    const unsigned later = 3;
    world_table(&w, PARAMO_TABLE_USER, 1);
    world_view(&w);
    const uint64_t keys[] = {0, 1, 2, 3, 4, 5};
    uint64_t view = w.number, ts[6];
    unsigned i = 0;
    const unsigned tables[] = {USER, later, USER, later, USER, USER};
    float val = 1;
    for (; i < 4; i++)
        assert_ok(world_push(&w, 0, tables[i], &keys[i], 1, &val, 1, &ts[i]));
    assert_ok(world_wait(&w, 0, ts[0]));
    assert_true(w.clients[0].wanted_view == view);
    run_for(&w, ENV_SEC);
    assert_int_equal(seen.count, 1);
    world_client_view(&w, 0);
    for (; i < 6; i++)
        assert_ok(world_push(&w, 0, tables[i], &keys[i], 1, &val, 1, &ts[i]));
    run_for(&w, ENV_SEC);
    assert_int_equal(seen.count, 1); /* the server lacks the view */
    world_server_view(&w, 0);
    for (i = 1; i < 6; i++)
        assert_ok(world_wait(&w, 0, ts[i]));
    for (i = 0; i < 6; i++)
        assert_true(seen.keys[i] == i);
    assert_int_equal(seen.count, 6);
    /* the view does not come in time */
    world_table(&w, PARAMO_TABLE_USER, 1);
    world_view(&w);
    assert_ok(world_push(&w, 0, later + 1, &keys[0], 1, &val, 1, &ts[0]));
    assert_int_equal(world_wait(&w, 0, ts[0]), PARAMO_E_TIMEOUT);
    assert_non_null(strstr(err_text(), "no view that has its table"));
    world_fini(&w);
}

/* Two tables that begin by two later views: the order is kept, too. */
static void test_tables_of_later_views(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct world w;
    world_make(&w, 1, &seen);
    const uint64_t keys[] = {0, 1, 2, 3};
    uint64_t ts[4];
    const unsigned first = 3, second = 4, tables[] = {first, second, USER, first};
    float val = 1;
    world_table(&w, PARAMO_TABLE_USER, 1);
    world_view(&w);
    struct view *before = view_ref(w.view);
    world_table(&w, PARAMO_TABLE_USER, 1);
    world_view(&w);
    world_server_view(&w, 0);
    for (unsigned i = 0; i < 4; i++)
        assert_ok(world_push(&w, 0, tables[i], &keys[i], 1, &val, 1, &ts[i]));
    struct view *newest = w.view;
    w.view = before;
    world_client_view(&w, 0);
    w.view = newest;
    run_for(&w, ENV_SEC);
    assert_int_equal(seen.count, 1);
    world_client_view(&w, 0);
    for (unsigned i = 0; i < 4; i++)
        assert_ok(world_wait(&w, 0, ts[i]));
    for (unsigned i = 0; i < 4; i++)
        assert_true(seen.keys[i] == i);
    view_unref(before);
    world_fini(&w);
}

/* Keys that the caller changes while they are sent again end the request, once, with what is wrong; the
 * connection stays. */
static void test_changed_in_flight(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct world w;
    world_make(&w, 1, &seen);
    struct client *c = w.clients[0].client;
    uint64_t keys[2] = {3, 5}, ts;
    float vals[2] = {1, 1};
    assert_ok(world_push(&w, 0, DENSE, keys, 2, vals, 2, &ts));
    assert_ok(world_wait(&w, 0, ts));
    const struct van_conn *conn = c->links->all[0]->conn;
    van_sim_set_faulty(w.clients[0].van, 1u << VAN_REQUEST);
    van_sim_set_faulty(w.servers[0].van, 1u << VAN_ANSWER);
    for (unsigned table = DENSE; table <= SPARSE; table++) {
        cut(&w, "w0", "s0", true);
        keys[0] = 3;
        uint64_t began = sim_now(w.sim);
        assert_ok(world_push(&w, 0, table, keys, 2, vals, 2, &ts));
        run_for(&w, 10 * ENV_MS);
        keys[0] = 7;
        cut(&w, "w0", "s0", false);
        assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_KEYS_UNSORTED);
        assert_non_null(strstr(err_text(), "PARAMO_COPY"));
        assert_true(sim_now(w.sim) - began < 2 * ENV_SEC);
    }
    assert_int_equal(seen.count, 0);
    /* It was done, and only the answer is lost: then it is done. */
    keys[0] = 3;
    cut(&w, "s0", "w0", true);
    assert_ok(world_push(&w, 0, DENSE, keys, 2, vals, 2, &ts));
    run_for(&w, 10 * ENV_MS);
    keys[0] = 7;
    cut(&w, "s0", "w0", false);
    assert_ok(world_wait(&w, 0, ts));
    assert_ptr_equal(c->links->all[0]->conn, conn);
    world_fini(&w);
}

/* ---- cancelling at every point of a request's life ---- */

enum { ROWS = 30000 }; /* two chunks on each of two servers */

static bool cancel_after(unsigned steps, bool push)
{
    struct world w;
    world_make(&w, 2, NULL);
    simnet_defaults(w.net)->bytes_per_sec = 20 << 20;
    struct client *c = w.clients[0].client;
    uint64_t *keys = malloc(ROWS * 4 * sizeof *keys), ts;
    float *vals = malloc(ROWS * 4 * sizeof *vals);
    size_t n = ROWS * 4;
    for (size_t i = 0; i < n; i++) {
        keys[i] = i * 8;
        vals[i] = 1;
    }
    assert_ok(push ? world_push(&w, 0, DENSE, keys, n, vals, n, &ts)
                   : world_pull(&w, 0, DENSE, keys, n, vals, n, &ts));
    for (unsigned i = 0; i < steps; i++)
        (void)sim_step(w.sim);
    paramo_err err = client_cancel(c, ts);
    assert_true(err == PARAMO_OK || err == PARAMO_E_NOT_FOUND);
    assert_int_equal(client_wait(c, ts, 0), err ? PARAMO_OK : PARAMO_E_CANCELLED);
    for (size_t i = 0; i < n; i++)
        vals[i] = -77;
    assert_int_equal(c->pool.out, 0);
    assert_null(c->requests->first);
    run_for(&w, 5 * ENV_SEC);
    for (size_t i = 0; i < n; i++)
        assert_true(vals[i] == -77);
    /* a push has been applied or not, chunk by chunk, but with the values it had */
    if (push) {
        assert_ok(world_pull(&w, 0, DENSE, keys, n, vals, n, &ts));
        assert_ok(world_wait(&w, 0, ts));
        for (size_t i = 0; i < n; i++)
            assert_true(vals[i] == 0 || vals[i] == 1);
    }
    free(keys);
    free(vals);
    world_fini(&w);
    return err == PARAMO_OK;
}

static void test_cancel(void **state)
{
    (void)state;
    for (int push = 0; push < 2; push++) {
        unsigned steps = 0, stride = 1;
        while (cancel_after(steps, push) && steps < 5000) {
            stride = steps < 60 ? 1 : 7;
            steps += stride;
        }
        assert_true(steps > 20 && steps < 5000);
    }
}

/* What a cancelled request has with the van, seen from the van: an answer half received, a frame half sent.
 */
struct fake {
    struct van_conn conn; /* first */
    struct van_frame *sent;
    const void *displaced;
    size_t displaced_len;
    unsigned withdrawn;
};

static paramo_err fake_send(struct van_conn *conn, struct van_frame *frame)
{
    if (frame->class == VAN_CONTROL)
        frame->done(frame, PARAMO_OK); /* the goodbye leaves at once; requests are what is looked at */
    else
        ((struct fake *)conn)->sent = frame;
    return PARAMO_OK;
}

static void fake_withdraw(struct van_conn *conn, struct van_frame *frame)
{
    ((struct fake *)conn)->withdrawn++;
    frame->done(frame, PARAMO_E_CANCELLED);
}

static void fake_displace(struct van_conn *conn, const void *begin, size_t len)
{
    ((struct fake *)conn)->displaced = begin;
    ((struct fake *)conn)->displaced_len = len;
}

static void fake_close(struct van_conn *conn, bool flush)
{
    (void)conn;
    (void)flush;
}

static void test_cancel_takes_memory_back(void **state)
{
    (void)state;
    static const struct van_ops ops = {
        .send = fake_send, .withdraw = fake_withdraw, .displace = fake_displace, .close = fake_close};
    struct van van = {.ops = &ops};
    struct fake fake = {.conn.van = &van};
    struct world w;
    world_make(&w, 1, NULL);
    struct client *c = w.clients[0].client;
    struct link *l = c->links->by_shard[0];
    fake.conn.lane = c->lane;
    fake.conn.user_ops = &client_van_user;
    fake.conn.user = l;
    l->conn = &fake.conn;
    l->state = LINK_UP;
    uint64_t keys[4] = {1, 2, 3, 4}, ts;
    float vals[4];
    /* a frame that the van still has */
    assert_ok(world_push(&w, 0, DENSE, keys, 4, vals, 4, &ts));
    assert_non_null(fake.sent);
    assert_ptr_equal(fake.sent->seg[WIRE_SEG_VALS].data, vals); /* no copy was made */
    assert_ok(client_cancel(c, ts));
    assert_int_equal(fake.withdrawn, 1);
    /* one that has left, and whose answer is on its way into the array */
    assert_ok(world_pull(&w, 0, DENSE, keys, 4, vals, 4, &ts));
    fake.sent->done(fake.sent, PARAMO_OK);
    struct wire_head h;
    assert_ok(wire_head_decode(fake.sent->head, &h));
    h.kind = WIRE_ANSWER;
    uint8_t head[VAN_HEAD];
    wire_head_encode(&h, head);
    uint64_t lens[3] = {0, 0, sizeof vals};
    void *dst[3] = {NULL, NULL, NULL};
    assert_true(lane_enter(c->lane));
    assert_ok(client_van_user.place(l, &fake.conn, head, lens, 3, dst));
    assert_ptr_equal(dst[WIRE_SEG_VALS], vals);
    assert_null(fake.displaced);
    lane_leave(c->lane);
    assert_ok(client_cancel(c, ts));
    assert_int_equal(fake.withdrawn, 1);
    assert_ptr_equal(fake.displaced, vals);
    assert_int_equal(fake.displaced_len, sizeof vals);
    /* a second copy of the answer is ignored */
    assert_true(lane_enter(c->lane));
    assert_ok(client_van_user.place(l, &fake.conn, head, lens, 3, dst));
    assert_ptr_equal(dst[WIRE_SEG_VALS], VAN_SINK);
    /* one whose values have not the expected length does not go into the array */
    lane_leave(c->lane);
    assert_ok(world_pull(&w, 0, DENSE, keys, 4, vals, 4, &ts));
    assert_ok(wire_head_decode(fake.sent->head, &h));
    h.kind = WIRE_ANSWER;
    wire_head_encode(&h, head);
    lens[WIRE_SEG_VALS] = 2 * sizeof vals;
    dst[WIRE_SEG_VALS] = NULL;
    assert_true(lane_enter(c->lane));
    assert_ok(client_van_user.place(l, &fake.conn, head, lens, 3, dst));
    assert_null(dst[WIRE_SEG_VALS]);
    lane_leave(c->lane);
    world_fini(&w);
}

/* A waiting thread gets CLOSED: its request is over, and the arrays are its own again. */
static void test_interrupted(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        struct world w;
        world_make(&w, 1, NULL);
        struct client *c = w.clients[0].client;
        uint64_t keys[2] = {3, 4}, pulled, pushed;
        float into[2] = {-1, -1}, vals[2] = {5, 5};
        cut(&w, "w0", "s0", true);
        cut(&w, "s0", "w0", true);
        assert_ok(world_pull(&w, 0, DENSE, keys, 2, into, 2, &pulled));
        assert_ok(world_push(&w, 0, DENSE, keys, 2, vals, 2, &pushed));
        run_for(&w, 20 * ENV_MS);
        client_interrupt(c);
        assert_int_equal(all ? client_wait_all(c, 0) : client_wait(c, pulled, 0), PARAMO_E_CLOSED);
        assert_non_null(strstr(err_text(), "interrupted"));
        int done = 0;
        assert_ok(client_test(c, pulled, &done));
        assert_int_equal(done, 1);
        assert_ok(client_test(c, pushed, &done));
        assert_int_equal(done, all); /* no thread has waited for this one alone */
        assert_int_equal(client_wait(c, pushed, 0), PARAMO_E_CLOSED);
        assert_ok(client_wait_all(c, 0)); /* told once */
        assert_null(c->requests->first);
        /* nothing reads or writes them any more */
        cut(&w, "w0", "s0", false);
        cut(&w, "s0", "w0", false);
        run_for(&w, 2000 * ENV_MS);
        assert_true(into[0] == -1 && into[1] == -1);
        world_fini(&w);
    }
}

static void fail_it(void *arg)
{
    client_fail(arg, PARAMO_E_FENCED, "it was silent");
}

static unsigned fenced_calls;

static void on_fenced(void *arg, uint64_t ts, paramo_err status)
{
    (void)arg;
    (void)ts;
    assert_int_equal(status, PARAMO_E_FENCED);
    fenced_calls++;
}

/* The node is declared dead while no server can be reached: all requests end at once, and so do later ones. */
static void test_fenced(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 1, NULL);
    struct client *c = w.clients[0].client;
    uint64_t key = 3, pulled, ts;
    float into = -1, val = 5;
    paramo_request_options o = {.size = sizeof o, .callback = on_fenced};
    paramo_kv kv = {.size = sizeof kv, .keys = &key, .n = 1, .vals = &val, .vals_len = 1};
    struct client_call call = {.kind = REQUEST_PUSH, .table = &w.tables[DENSE], .kv = &kv, .options = &o};
    fenced_calls = 0;
    cut(&w, "w0", "s0", true);
    cut(&w, "s0", "w0", true);
    assert_ok(client_issue(c, &call, &ts));
    assert_ok(world_pull(&w, 0, DENSE, &key, 1, &into, 1, &pulled));
    run_for(&w, 20 * ENV_MS);
    assert_int_equal(fenced_calls, 0);
    world_on_lane(c->lane, fail_it, c);
    for (unsigned later = 0; later < 2; later++) {
        int done = 0;
        run_for(&w, ENV_MS);
        assert_int_equal(fenced_calls, 1 + later);
        assert_ok(client_test(c, pulled, &done));
        assert_int_equal(done, 1);
        assert_int_equal(client_wait(c, pulled, 0), PARAMO_E_FENCED);
        assert_non_null(strstr(err_text(), "it was silent"));
        assert_null(c->requests->first);
        assert_ok(client_issue(c, &call, &ts));
        assert_ok(world_pull(&w, 0, DENSE, &key, 1, &into, 1, &pulled));
    }
    cut(&w, "w0", "s0", false);
    cut(&w, "s0", "w0", false);
    run_for(&w, 2000 * ENV_MS);
    assert_true(into == -1);
    world_fini(&w);
}

/* ---- nodes that die ---- */

static void test_node_lost(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 2, NULL);
    struct client *c = w.clients[0].client;
    enum { N = 64 };
    uint64_t keys[N], ts;
    float vals[N];
    for (unsigned i = 0; i < N; i++) {
        keys[i] = i * ((1u << 20) / N);
        vals[i] = 1;
    }
    assert_ok(world_push(&w, 0, DENSE, keys, N, vals, N, &ts));
    assert_ok(world_wait(&w, 0, ts));
    world_server_stop(&w, 1);
    assert_ok(world_push(&w, 0, DENSE, keys, N, vals, N, &ts));
    run_for(&w, 300 * ENV_MS);
    int done = 1;
    assert_ok(client_test(c, ts, &done));
    assert_int_equal(done, 0); /* it may come back: it was not declared dead */
    world_view(&w);
    world_all_view(&w);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_NODE_LOST);
    assert_non_null(strstr(err_text(), "server 1 (node 10, s1)"));
    assert_ok(world_pull(&w, 0, DENSE, keys, N, vals, N, &ts));
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_NODE_LOST);
    assert_ok(world_pull(&w, 0, DENSE, keys, N / 2, vals, N / 2, &ts)); /* the other server's */
    assert_ok(world_wait(&w, 0, ts));
    /* another process takes its place, without the data */
    world_server_start(&w, 1);
    world_view(&w);
    world_all_view(&w);
    assert_ok(world_push(&w, 0, DENSE, keys, N, vals, N, &ts));
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_DATA_LOST);
    struct client_call clear = {.kind = REQUEST_CLEAR, .table = &w.tables[DENSE]};
    assert_ok(client_issue(c, &clear, &ts));
    assert_ok(world_wait(&w, 0, ts));
    for (unsigned i = 0; i < N; i++)
        vals[i] = 2;
    assert_ok(world_push(&w, 0, DENSE, keys, N, vals, N, &ts));
    assert_ok(world_wait(&w, 0, ts));
    memset(vals, 0, sizeof vals);
    assert_ok(world_pull(&w, 0, DENSE, keys, N, vals, N, &ts));
    assert_ok(world_wait(&w, 0, ts));
    for (unsigned i = 0; i < N; i++)
        assert_true(vals[i] == 2);
    world_fini(&w);
}

static void test_wrong_token(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 1, NULL);
    memcpy(w.clients[0].client->token, "wrong", 6);
    uint64_t key = 3, ts, began = sim_now(w.sim);
    float val = 1;
    assert_ok(world_push(&w, 0, DENSE, &key, 1, &val, 1, &ts));
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_TOKEN);
    assert_non_null(strstr(err_text(), "server 0 (node 8"));
    assert_true(sim_now(w.sim) - began < ENV_SEC);
    world_fini(&w);
}

/* ---- bounds, order, closing ---- */

static void test_full(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 1, NULL);
    struct client *c = w.clients[0].client;
    uint64_t key = 3, ts;
    float val = 1, out = 0;
    cut(&w, "w0", "s0", true);
    paramo_request_options o = {.size = sizeof o, .flags = PARAMO_NOWAIT};
    paramo_kv kv = {.size = sizeof kv, .keys = &key, .n = 1, .vals = &val, .vals_len = 1};
    struct client_call call = {.kind = REQUEST_PUSH, .table = &w.tables[DENSE], .kv = &kv, .options = &o};
    unsigned issued = 0;
    paramo_err err;
    while ((err = client_issue(c, &call, &ts)) == PARAMO_OK)
        assert_true(++issued <= TRACKER_LIMIT);
    assert_int_equal(err, PARAMO_E_AGAIN);
    assert_int_equal(issued, TRACKER_LIMIT);
    assert_false(client_has_room(c));
    cut(&w, "w0", "s0", false);
    o.flags = 0; /* waits for room */
    assert_ok(client_issue(c, &call, &ts));
    assert_ok(client_wait_all(c, 0));
    assert_true(client_has_room(c));
    assert_ok(world_pull(&w, 0, DENSE, &key, 1, &out, 1, &ts));
    assert_ok(world_wait(&w, 0, ts));
    assert_true(out == TRACKER_LIMIT + 1);
    world_fini(&w);
}

static void test_priority(void **state)
{
    (void)state;
    struct world w;
    struct seen seen = {.count = 0};
    world_make(&w, 1, &seen);
    static const int32_t priorities[] = {0, 0, 5, 0, 5, -1, 9};
    static const uint64_t expected[] = {6, 2, 4, 0, 1, 3, 5};
    uint64_t keys[7], ts;
    for (unsigned i = 0; i < 7; i++) { /* all wait for the connection */
        keys[i] = i;
        paramo_request_options o = {.size = sizeof o, .priority = priorities[i]};
        paramo_kv kv = {.size = sizeof kv, .keys = &keys[i], .n = 1};
        struct client_call call = {.kind = REQUEST_PUSH, .table = &w.tables[USER], .kv = &kv, .options = &o};
        assert_ok(client_issue(w.clients[0].client, &call, &ts));
    }
    assert_ok(client_wait_all(w.clients[0].client, 0));
    assert_int_equal(seen.count, 7);
    assert_memory_equal(seen.keys, expected, sizeof expected);
    world_fini(&w);
}

static unsigned closed_calls;

static void on_closed(void *arg, uint64_t ts, paramo_err status)
{
    (void)arg;
    (void)ts;
    assert_int_equal(status, PARAMO_E_CLOSED);
    closed_calls++;
}

static void test_close(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 1, NULL);
    struct client *c = w.clients[0].client;
    uint64_t key = 3, ts;
    float val = 1;
    closed_calls = 0;
    for (int deferred = 0; deferred < 2; deferred++) {
        paramo_request_options o = {.size = sizeof o, .callback = on_closed};
        paramo_kv kv = {.size = sizeof kv, .keys = &key, .n = 1, .vals = &val, .vals_len = 1};
        struct client_call call = {.kind = REQUEST_PUSH, .table = &w.tables[DENSE], .kv = &kv, .options = &o};
        assert_ok(client_issue(c, &call, &ts));
        if (!deferred)
            client_defer_callbacks(c);
    }
    client_close(c);
    assert_int_equal(closed_calls, 2);
    assert_int_equal(client_wait(c, ts, 0), PARAMO_E_CLOSED);
    assert_int_equal(world_push(&w, 0, DENSE, &key, 1, &val, 1, &ts), PARAMO_E_CLOSED);
    world_fini(&w);
}

static void on_closed_text(void *arg, uint64_t ts, paramo_err status)
{
    assert_string_equal(err_text(), "the worker was closed");
    on_closed(arg, ts, status);
}

/* More requests fail than the tracker remembers before the first callback runs: each callback has the status
 * and the text. */
static void test_many_fail(void **state)
{
    (void)state;
    enum { N = TRACKER_FAILURES + 100 };
    struct world w;
    world_make(&w, 1, NULL);
    struct client *c = w.clients[0].client;
    uint64_t key = 3, ts;
    float val = 1;
    closed_calls = 0;
    client_defer_callbacks(c);
    for (int i = 0; i < N; i++) {
        paramo_request_options o = {.size = sizeof o, .flags = PARAMO_COPY, .callback = on_closed_text};
        paramo_kv kv = {.size = sizeof kv, .keys = &key, .n = 1, .vals = &val, .vals_len = 1};
        struct client_call call = {.kind = REQUEST_PUSH, .table = &w.tables[DENSE], .kv = &kv, .options = &o};
        assert_ok(client_issue(c, &call, &ts));
    }
    client_close(c);
    assert_int_equal(closed_calls, N);
    world_fini(&w);
}

/* One request fails, and then more than the tracker remembers. The library's own calls (scans, among others) still know
 * that it did; otherwise a scan would lack the rows of a shard, and succeed. */
static void test_displaced_failure(void **state)
{
    (void)state;
    enum { N = TRACKER_FAILURES + 100 };
    struct world w;
    world_make(&w, 1, NULL);
    struct client *c = w.clients[0].client;
    uint64_t key = 3, first = 0, ts;
    float val = 1;
    paramo_err status = PARAMO_OK;
    for (int i = 0; i < N; i++) {
        paramo_request_options o = {.size = sizeof o, .flags = PARAMO_COPY};
        paramo_kv kv = {.size = sizeof kv, .keys = &key, .n = 1, .vals = &val, .vals_len = 1};
        struct client_call call = {.kind = REQUEST_PUSH,
                                   .table = &w.tables[DENSE],
                                   .kv = &kv,
                                   .options = &o,
                                   .status = i ? NULL : &status};
        assert_ok(client_issue(c, &call, &ts));
        assert_ok(client_cancel(c, ts));
        first = i ? first : ts;
    }
    assert_ok(client_wait(c, first, 0)); /* it is not known any more */
    assert_int_equal(client_wait_status(c, first, &status), PARAMO_E_CANCELLED);
    status = PARAMO_OK;
    assert_int_equal(client_wait_status(c, ts, &status), PARAMO_E_CANCELLED); /* by the tracker */
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_table_of_a_later_view),
        cmocka_unit_test(test_tables_of_later_views),
        cmocka_unit_test(test_changed_in_flight),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_takes_memory_back),
        cmocka_unit_test(test_node_lost),
        cmocka_unit_test(test_wrong_token),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_priority),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_many_fail),
        cmocka_unit_test(test_displaced_failure),
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_fenced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
