/* An observer sees the ring and changes nothing. */
#include "unit.h"

#include <string.h>

#include "cluster/member/admin_query.h"
#include "cluster/session/acceptor.h"
#include "cluster/session/control_message.h"
#include "cluster/support_simcluster.h"
#include "wire/calls.h"

struct sight {
    bool over;
    paramo_err status;
    uint64_t number;
    uint32_t nodes, shards;
    struct ring ring;
    char text[512];
};

static void seen(void *arg, paramo_err status, struct admin_query_result *result)
{
    const struct view *view = result->view;
    struct sight *s = arg;
    assert_false(s->over);
    assert_int_equal(view == NULL, status != PARAMO_OK);
    *s = (struct sight){.over = true, .status = status};
    if (status) {
        (void)strncpy(s->text, err_text(), sizeof s->text - 1);
        return;
    }
    s->number = view->number;
    s->nodes = view->nodes_count;
    s->shards = view->shards_count;
    s->ring = *view_ring(view);
}

static bool is_over(void *arg)
{
    return ((struct sight *)arg)->over;
}

/* Like a program of its own, on the lane of a node that does not run. */
static struct sight admin_query_at(struct cluster *c, struct tnode *node, const char *schedulers,
                                   const char *token, double seconds)
{
    struct sight s = {0};
    struct admin_query *l;
    struct van *van;
    assert_int_equal(van_sim_create(c->net, "observer", &van), PARAMO_OK);
    struct admin_query_config config = {.van = van,
                                        .lane = node->lane,
                                        .scheduler = schedulers,
                                        .token = token,
                                        .incarnation = 99,
                                        .deadline = in_seconds(c, seconds),
                                        .done = seen,
                                        .arg = &s};
    assert_true(lane_enter(node->lane));
    assert_int_equal(admin_query_start(&config, &l), PARAMO_OK);
    lane_leave(node->lane);
    assert_true(cluster_run(c, is_over, &s, 2 * seconds));
    assert_true(c->old_count < CLUSTER_VANS);
    c->old_vans[c->old_count++] = van;
    return s;
}

static struct sight admin_query(struct cluster *c, struct tnode *node, const char *token, double seconds)
{
    return admin_query_at(c, node, "scheduler:1", token, seconds);
}

static void sees_the_ring(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, 1, 2, 1);
    cluster_start_scheduler(&c);
    struct tnode *admin_client = &c.nodes[9];
    struct sight s = admin_query(&c, admin_client, "token", 5);
    assert_int_equal(s.status, PARAMO_E_AGAIN);
    assert_non_null(strstr(s.text, "not complete yet"));

    for (uint32_t i = 0; i < 3; i++)
        cluster_start(&c, &c.nodes[i], i < 2 ? PARAMO_ROLE_SERVER : PARAMO_ROLE_WORKER);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(cluster_run(&c, tnode_joined, &c.nodes[i], 5));
    cluster_pass(&c, 1);
    const struct view *view = member_view(c.nodes[0].member);
    for (int times = 0; times < 3; times++) { /* it is no member: nothing changes by it */
        static const char *const addresses[] = {"scheduler:1", "a:1,scheduler:1,b:1", "a:1,b:1,scheduler:1"};
        s = admin_query_at(&c, admin_client, addresses[times], "token", 5);
        assert_int_equal(s.status, PARAMO_OK);
        assert_int_equal(s.number, view->number);
        assert_int_equal(s.nodes, 4);
        assert_int_equal(s.shards, view->shards_count);
        assert_memory_equal(&s.ring, view_ring(view), sizeof s.ring);
    }
    cluster_pass(&c, 20);
    assert_false(c.over);
    assert_true(member_view(c.nodes[0].member) == view);
    assert_int_equal(admin_query(&c, admin_client, "guess", 5).status, PARAMO_E_TOKEN);
    cluster_fini(&c);
}

static void nobody_there(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, 1, 1, 1);
    struct sight s = admin_query(&c, &c.nodes[9], "token", 5);
    assert_int_equal(s.status, PARAMO_E_CONNECTION_REFUSED);
    s = admin_query_at(&c, &c.nodes[9], "a:1,scheduler:1", "token", 5);
    assert_int_equal(s.status, PARAMO_E_CONNECTION_REFUSED);
    assert_non_null(strstr(s.text, "scheduler:1"));
    cluster_start_scheduler(&c);
    struct admin_query *l;
    struct admin_query_config config = {.lane = c.lane, .token = "token"};
    static const char *const wrong[] = {"", "a:1,,scheduler:1", "scheduler", "scheduler:1,b", "::1:1", ":1"};
    assert_true(lane_enter(c.lane));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        config.scheduler = wrong[i];
        assert_int_equal(admin_query_start(&config, &l), PARAMO_E_INVALID);
    }
    config.scheduler = "scheduler:1";
    char token[300];
    memset(token, 'x', sizeof token);
    token[299] = '\0';
    config.token = token;
    assert_int_equal(admin_query_start(&config, &l), PARAMO_E_INVALID);
    lane_leave(c.lane);
    cluster_fini(&c);
}

/* What answers anything else than was asked is not believed. */
static struct impostor {
    struct acceptor *acceptor;
    unsigned mode;
} imp;

static paramo_err impostor_frame(void *user, struct van_conn *conn, const uint8_t bytes[VAN_HEAD],
                                 const struct van_seg *seg, unsigned nseg)
{
    struct wire_head head;
    struct reader body;
    (void)user;
    assert_int_equal(control_message_open(bytes, seg, nseg, &head, &body), PARAMO_OK);
    struct wire_head answer = {.reply = {.kind = WIRE_REPLY, .what = CALL_ADMIN_VIEW}};
    if (imp.mode == 0)
        answer.reply.what = CALL_KV_GET;
    if (imp.mode == 1)
        answer.kind = WIRE_HEARTBEAT;
    if (imp.mode == 4) { /* never answers */
        return PARAMO_OK;
    }
    return control_message_send(conn, &answer, "not a view", imp.mode == 3 ? 0 : 10);
}

static void impostor_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    (void)user;
    (void)why;
    (void)text;
    van_close(conn, false);
}

static const struct van_user impostor_user = {.frame = impostor_frame, .closed = impostor_closed};

static void impostor_comes(void *arg, struct van_conn *conn, const struct hello *hello)
{
    (void)arg;
    (void)hello;
    van_set_user(conn, &impostor_user, NULL);
    assert_int_equal(acceptor_welcome(conn, 7, 8), PARAMO_OK);
}

static void believes_nobody(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, 1, 1, 1);
    struct van *van;
    assert_int_equal(van_sim_create(c.net, "scheduler", &van), PARAMO_OK);
    struct acceptor_config config = {.van = van,
                                     .lane = c.lane,
                                     .address = "scheduler:1",
                                     .token = "token",
                                     .purposes = ACCEPTOR_PURPOSE_CONTROL,
                                     .frame_bytes = 4096,
                                     .accept = impostor_comes};
    assert_true(lane_enter(c.lane));
    assert_int_equal(acceptor_open(&config, &imp.acceptor), PARAMO_OK);
    lane_leave(c.lane);
    for (imp.mode = 0; imp.mode < 5; imp.mode++) {
        struct sight s = admin_query(&c, &c.nodes[9], "token", 5);
        assert_int_equal(s.status, imp.mode < 4 ? PARAMO_E_PROTOCOL : PARAMO_E_TIMEOUT);
    }
    assert_true(lane_enter(c.lane));
    acceptor_close(imp.acceptor);
    lane_leave(c.lane);
    c.old_vans[c.old_count++] = van;
    cluster_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sees_the_ring),
        cmocka_unit_test(nobody_there),
        cmocka_unit_test(believes_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
