/* Messages to apps, and requests that come after others: through client and host, over real lanes and in a
 * simulation. */
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "worker/client_impl.h"
#include "worker/support_world.h"

enum { HELD = 16, LOG = 64 };

/* Answers a message with its own segments, or holds it. */
struct dispatch {
    bool hold, refuse;
    uint32_t refuse_at; /* this node only */
    struct shard_request *held[HELD];
    unsigned held_count;
    int32_t log[LOG]; /* heads in order of arrival */
    uint32_t at[LOG];
    unsigned log_count;
};

static void answer(struct shard_request *q, const struct shard_request_info *info)
{
    struct paramo_array *array[VAN_SEGS] = {0};
    for (unsigned i = 0; i < VAN_SEGS; i++)
        assert_ok(shard_request_keep(q, i, &array[i]));
    assert_ok(shard_answer_segs(q, info->seg, array));
    for (unsigned i = 0; i < VAN_SEGS; i++)
        array_unref(array[i]);
}

static void handle(void *arg, struct shard_request *q, const struct shard_request_info *info)
{
    struct dispatch *d = arg;
    if (d->log_count < LOG) {
        d->at[d->log_count] = info->to;
        d->log[d->log_count++] = info->cmd;
    }
    if (d->refuse || d->refuse_at == info->to)
        assert_ok(shard_answer_error(q, PARAMO_E_HANDLER, "not today"));
    else if (d->hold)
        d->held[d->held_count++] = q;
    else if (info->table)
        assert_ok(shard_answer(q, info->vals, info->pull ? info->vals_len : 0, NULL));
    else
        answer(q, info);
}

static void release(struct dispatch *d, unsigned i)
{
    struct van_seg none[VAN_SEGS] = {{0}};
    struct paramo_array *const no[VAN_SEGS] = {0};
    struct shard_request *q = d->held[i];
    d->held[i] = NULL;
    assert_ok(shard_answer_segs(q, none, no));
}

static void world_make(struct world *w, struct dispatch *d, bool simulated)
{
    memset(d, 0, sizeof *d);
    world_init(w, simulated, 7);
    world_table(w, PARAMO_TABLE_USER, 1);
    w->handler = handle;
    w->handler_arg = d;
    world_start(w, 3, 3, 1);
}

struct heard {
    unsigned count;
    uint32_t nodes;
    struct client_reply last;
    char text[64];
};

static void hear(void (*to)(void), void *arg, uint64_t ts, const struct client_reply *reply)
{
    struct heard *h = arg;
    assert_null(to);
    assert_true(ts > 0);
    h->count++;
    h->nodes += reply->node;
    h->last = *reply;
    const struct van_seg *body = &reply->seg[WIRE_SEG_BODY];
    if (body->len && body->len < sizeof h->text)
        memcpy(h->text, body->data, (size_t)body->len);
}

static paramo_err ask(struct world *w, const struct client_message *m, size_t n, struct heard *h,
                      const paramo_request_options *o, uint64_t *ts)
{
    struct client_call call = {.kind = REQUEST_MESSAGE,
                               .messages = m,
                               .messages_count = n,
                               .options = o,
                               .on_reply = h ? hear : NULL,
                               .reply_arg = h};
    return client_issue(w->clients[0].client, &call, ts);
}

static struct client_message to(uint32_t node, int32_t head)
{
    return (struct client_message){.to = node, .app = 5, .head = head};
}

static void messages_come_back(void **state)
{
    for (int simulated = 0; simulated < 2; simulated++) {
        struct world w;
        struct dispatch d;
        (void)state;
        world_make(&w, &d, simulated);
        char text[] = "a body";
        uint8_t large[100000], back[100000] = {0};
        for (unsigned i = 0; i < sizeof large; i++)
            large[i] = (uint8_t)(i * 7);
        struct client_message m[2] = {to(PARAMO_GROUP_SERVERS, -3), to(PARAMO_ID_SERVER(1), 4)};
        m[0].seg[WIRE_SEG_BODY] = (struct van_seg){text, sizeof text};
        m[1].seg[WIRE_SEG_VALS] = (struct van_seg){large, sizeof large};
        m[1].into = back;
        m[1].into_len = sizeof back;
        struct heard h = {0};
        uint64_t ts;
        uint32_t answers;
        assert_ok(ask(&w, m, 2, &h, NULL, &ts));
        assert_ok(world_wait(&w, 0, ts));
        assert_int_equal(h.count, 4);
        assert_int_equal(h.nodes, 8 + 10 + 12 + 10);
        assert_string_equal(h.text, text);
        assert_memory_equal(back, large, sizeof large);
        assert_ok(client_answers(w.clients[0].client, ts, &answers));
        assert_int_equal(answers, 4);
        assert_int_equal(client_answers(w.clients[0].client, ts + 1, &answers), PARAMO_E_INVALID);
        d.refuse = true;
        assert_ok(ask(&w, m, 1, &h, NULL, &ts));
        assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_HANDLER);
        world_fini(&w);
    }
}

static void answers_are_counted_as_they_come(void **state)
{
    struct world w;
    struct dispatch d;
    (void)state;
    world_make(&w, &d, true);
    d.hold = true;
    struct client_message m = to(PARAMO_GROUP_SERVERS, 1);
    struct heard h = {0};
    uint64_t ts;
    uint32_t answers;
    assert_ok(ask(&w, &m, 1, &h, NULL, &ts));
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(client_wait(w.clients[0].client, ts, 50), PARAMO_E_TIMEOUT);
        assert_int_equal(d.held_count, 3);
        assert_ok(client_answers(w.clients[0].client, ts, &answers));
        assert_int_equal(answers, i);
        assert_int_equal(h.count, i);
        release(&d, i);
    }
    assert_ok(world_wait(&w, 0, ts));
    assert_int_equal(h.count, 3);
    world_fini(&w);
}

/* ---- one node of several fails ---- */

static bool is_done(struct world *w, uint64_t ts)
{
    int done = 0;
    assert_ok(client_test(w->clients[0].client, ts, &done));
    return done;
}

static void all_are_asked_whatever_one_answers(void **state)
{
    struct world w;
    struct dispatch d;
    (void)state;
    world_make(&w, &d, true);
    struct client_message m = to(PARAMO_GROUP_SERVERS, 1);
    uint64_t ts;
    for (uint32_t rank = 0; rank < 3; rank++) {
        struct heard h = {0};
        d.log_count = 0;
        d.refuse_at = PARAMO_ID_SERVER(rank);
        assert_ok(ask(&w, &m, 1, &h, NULL, &ts));
        assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_HANDLER);
        assert_non_null(strstr(err_text(), "not today"));
        assert_int_equal(d.log_count, 3);
        assert_int_equal(h.count, 2);
        assert_int_equal(h.nodes, 8 + 10 + 12 - PARAMO_ID_SERVER(rank));
    }
    /* it is not over before the others have answered */
    d.hold = true;
    assert_ok(ask(&w, &m, 1, NULL, NULL, &ts));
    assert_int_equal(client_wait(w.clients[0].client, ts, 50), PARAMO_E_TIMEOUT);
    assert_int_equal(d.held_count, 2);
    release(&d, 0);
    assert_int_equal(client_wait(w.clients[0].client, ts, 50), PARAMO_E_TIMEOUT);
    release(&d, 1);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_HANDLER);
    /* nor later than its deadline, and then the failure is what is said */
    paramo_request_options o = {.size = sizeof o, .timeout_ms = 500};
    assert_ok(ask(&w, &m, 1, NULL, &o, &ts));
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_HANDLER);
    assert_int_equal(d.held_count, 4);
    world_fini(&w);
    release(&d, 2);
    release(&d, 3);
}

/* A server that joins the job is one to ask from its first view on. */
static void a_later_node_is_asked_too(void **state)
{
    struct world w;
    struct dispatch d;
    (void)state;
    world_make(&w, &d, true);
    struct client_message m[2] = {to(PARAMO_ID_SERVER(3), 1), to(PARAMO_GROUP_SERVERS, 2)};
    uint64_t ts;
    assert_int_equal(ask(&w, m, 1, NULL, NULL, &ts), PARAMO_E_INVALID);
    w.servers_count++;
    w.partitions_changed[3] = w.chain_changed[3] = w.number + 1;
    world_server_start(&w, 3);
    world_view(&w);
    world_all_view(&w);
    struct heard h = {0};
    assert_ok(ask(&w, m, 2, &h, NULL, &ts));
    assert_ok(world_wait(&w, 0, ts));
    assert_int_equal(h.nodes, 14 + 8 + 10 + 12 + 14);
    world_fini(&w);
}

static void all_are_asked_whichever_has_died(void **state)
{
    struct world w;
    struct dispatch d;
    (void)state;
    world_make(&w, &d, true);
    struct client_message m[2] = {to(PARAMO_GROUP_SERVERS, 1), to(PARAMO_ID_SERVER(2), 2)};
    uint64_t ts;
    d.hold = true;
    assert_ok(ask(&w, m, 2, NULL, NULL, &ts));
    assert_int_equal(client_wait(w.clients[0].client, ts, 50), PARAMO_E_TIMEOUT);
    assert_int_equal(d.held_count, 4);
    world_server_stop(&w, 1); /* while it is asked */
    w.servers[1].alive = false;
    world_view(&w);
    world_all_view(&w);
    assert_int_equal(client_wait(w.clients[0].client, ts, 50), PARAMO_E_TIMEOUT);
    assert_false(is_done(&w, ts));
    d.hold = false;
    for (unsigned i = 0; i < 4; i++)
        release(&d, i);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_NODE_LOST);
    d.log_count = 0;
    struct heard h = {0};
    assert_ok(ask(&w, m, 2, &h, NULL, &ts)); /* it is known to be dead */
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_NODE_LOST);
    assert_non_null(strstr(err_text(), "10"));
    assert_int_equal(d.log_count, 3);
    assert_int_equal(h.nodes, 8 + 12 + 12);
    world_fini(&w);
}

/* ---- dependencies ---- */

static paramo_err ask_after(struct world *w, int32_t head, const uint64_t *after, size_t n, uint64_t all,
                            uint64_t *ts)
{
    paramo_request_options o = {.size = sizeof o, .after = after, .after_count = n, .after_all = all};
    struct client_message m = to(PARAMO_ID_SERVER(2), head);
    return ask(w, &m, 1, NULL, &o, ts);
}

static void a_request_comes_after_those_it_names(void **state)
{
    struct world w;
    struct dispatch d;
    (void)state;
    world_make(&w, &d, true);
    d.hold = true;
    uint64_t a, b, c, e, f;
    assert_ok(ask_after(&w, 1, NULL, 0, 0, &a));
    assert_ok(ask_after(&w, 2, NULL, 0, 0, &b));
    uint64_t both[] = {a, b, a}; /* the same one twice does no harm */
    assert_ok(ask_after(&w, 3, both, 3, 0, &c));
    assert_ok(ask_after(&w, 4, &c, 1, 0, &e));
    assert_ok(ask_after(&w, 5, NULL, 0, b, &f));
    assert_int_equal(client_wait(w.clients[0].client, e, 50), PARAMO_E_TIMEOUT);
    assert_int_equal(d.log_count, 2);
    release(&d, 0);
    assert_int_equal(client_wait(w.clients[0].client, e, 50), PARAMO_E_TIMEOUT);
    assert_int_equal(d.log_count, 2);
    release(&d, 1);
    assert_int_equal(client_wait(w.clients[0].client, e, 50), PARAMO_E_TIMEOUT);
    assert_int_equal(d.log_count, 4); /* 3 and 5, but 4 comes after 3 */
    assert_int_equal(d.log[2] + d.log[3], 3 + 5);
    release(&d, 2);
    release(&d, 3);
    assert_int_equal(client_wait(w.clients[0].client, e, 50), PARAMO_E_TIMEOUT);
    assert_int_equal(d.log_count, 5);
    release(&d, 4);
    assert_ok(client_wait_all(w.clients[0].client, 0));
    d.hold = false;
    assert_ok(ask_after(&w, 6, both, 3, e, &f)); /* all long done */
    assert_ok(world_wait(&w, 0, f));
    uint64_t future = f + 5;
    assert_int_equal(ask_after(&w, 7, &future, 1, 0, &a), PARAMO_E_INVALID);
    assert_int_equal(ask_after(&w, 7, NULL, 0, future, &a), PARAMO_E_INVALID);
    world_fini(&w);
}

static void what_comes_after_a_failure_is_cancelled(void **state)
{
    struct world w;
    struct dispatch d;
    (void)state;
    world_make(&w, &d, true);
    d.hold = true;
    uint64_t a, b, c, e;
    assert_ok(ask_after(&w, 1, NULL, 0, 0, &a));
    assert_ok(ask_after(&w, 2, &a, 1, 0, &b));
    assert_ok(ask_after(&w, 3, &b, 1, 0, &c));
    assert_ok(client_cancel(w.clients[0].client, a));
    assert_int_equal(world_wait(&w, 0, c), PARAMO_E_CANCELLED);
    assert_int_equal(world_wait(&w, 0, b), PARAMO_E_CANCELLED);
    assert_ok(ask_after(&w, 4, &a, 1, 0, &e)); /* it has failed before */
    assert_int_equal(world_wait(&w, 0, e), PARAMO_E_CANCELLED);
    assert_true(d.log_count <= 1);
    /* One that waits may end by itself first, and a client may be closed with some that wait. */
    assert_ok(ask_after(&w, 5, NULL, 0, 0, &a));
    assert_ok(ask_after(&w, 6, &a, 1, 0, &b));
    assert_ok(client_cancel(w.clients[0].client, b));
    assert_int_equal(world_wait(&w, 0, b), PARAMO_E_CANCELLED);
    assert_ok(ask_after(&w, 7, &a, 1, 0, &c));
    world_fini(&w);
    for (unsigned i = 0; i < d.held_count; i++)
        release(&d, i); /* late, without effect */
}

/* Pushes held back by a deadline of their own say what they waited for. */
static void waiting_has_a_deadline(void **state)
{
    struct world w;
    struct dispatch d;
    (void)state;
    world_make(&w, &d, true);
    d.hold = true;
    uint64_t a, b;
    assert_ok(ask_after(&w, 1, NULL, 0, 0, &a));
    paramo_request_options o = {.size = sizeof o, .after = &a, .after_count = 1, .timeout_ms = 500};
    uint64_t key = 3;
    float val = 1;
    paramo_kv kv = {.size = sizeof kv, .keys = &key, .n = 1, .vals = &val, .vals_len = 1};
    struct client_call call = {.kind = REQUEST_PUSH, .table = &w.tables[0], .kv = &kv, .options = &o};
    assert_ok(client_issue(w.clients[0].client, &call, &b));
    assert_int_equal(world_wait(&w, 0, b), PARAMO_E_TIMEOUT);
    assert_non_null(strstr(err_text(), "comes after"));
    release(&d, 0);
    assert_ok(world_wait(&w, 0, a));
    assert_int_equal(d.log_count, 1);
    world_fini(&w);
}

/* ---- nodes that go ---- */

static void a_new_process_is_not_asked_what_the_old_one_was(void **state)
{
    struct world w;
    struct dispatch d;
    (void)state;
    world_make(&w, &d, true);
    d.hold = true;
    struct client_message m = to(PARAMO_ID_SERVER(0), 1);
    uint64_t ts;
    assert_ok(ask(&w, &m, 1, NULL, NULL, &ts));
    assert_int_equal(client_wait(w.clients[0].client, ts, 50), PARAMO_E_TIMEOUT);
    assert_int_equal(d.log_count, 1);
    world_server_stop(&w, 0);
    d.hold = false;
    world_server_start(&w, 0); /* its death and its return in one view */
    world_view(&w);
    world_all_view(&w);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_NODE_LOST);
    assert_int_equal(d.log_count, 1);
    assert_ok(ask(&w, &m, 1, NULL, NULL, &ts));
    assert_ok(world_wait(&w, 0, ts));
    w.servers[0].alive = false;
    world_view(&w);
    world_all_view(&w);
    assert_ok(ask(&w, &m, 1, NULL, NULL, &ts));
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_NODE_LOST);
    m.to = PARAMO_ID_WORKER(0); /* it listens nowhere in this world */
    assert_ok(ask(&w, &m, 1, NULL, NULL, &ts));
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_UNSUPPORTED);
    world_fini(&w);
    release(&d, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_back),
        cmocka_unit_test(answers_are_counted_as_they_come),
        cmocka_unit_test(all_are_asked_whatever_one_answers),
        cmocka_unit_test(all_are_asked_whichever_has_died),
        cmocka_unit_test(a_later_node_is_asked_too),
        cmocka_unit_test(a_request_comes_after_those_it_names),
        cmocka_unit_test(what_comes_after_a_failure_is_cancelled),
        cmocka_unit_test(waiting_has_a_deadline),
        cmocka_unit_test(a_new_process_is_not_asked_what_the_old_one_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
