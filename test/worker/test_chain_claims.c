/* A process that has the token sends the HELLO of an owner's stream, with the owner's id and incarnation. The owner's
 * own stream goes on, and no push that it acknowledges is lost. */
#include "unit.h"

#include <string.h>

#include "cluster/session/connector.h"
#include "cluster/session/control_message.h"
#include "server/replication/chain_impl.h"
#include "server/replication/chain_stream.h"
#include "worker/client_impl.h"
#include "worker/support_world.h"

enum { SERVERS = 3, OWNER = 1, FOLLOWER = 2, N = 70000, KEY = N / 2 };

struct claim {
    struct world *w;
    struct connector *connector;
    struct van_conn *conn;
    uint32_t generation, customer;
    uint64_t clock; /* of the beat that follows HELLO; 0: nothing follows */
    bool up, ended;
    paramo_err refused;
};

struct play {
    struct world w;
    struct claim claims[CHAIN_GUESTS_MAX + 1];
    unsigned claims_count, pushes;
};

static paramo_err claim_frame(void *user, struct van_conn *conn, const uint8_t bytes[VAN_HEAD],
                              const struct van_seg *seg, unsigned nseg)
{
    (void)bytes, (void)seg, (void)nseg;
    assert_ptr_equal(((struct claim *)user)->conn, conn);
    return PARAMO_OK;
}

static void claim_close(struct claim *claim)
{
    if (claim->conn)
        van_close(claim->conn, false);
    claim->conn = NULL;
    claim->ended = true;
}

static void claim_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    struct claim *claim = user;
    (void)why, (void)text;
    assert_ptr_equal(claim->conn, conn);
    claim_close(claim);
}

static const struct van_user claim_user = {.frame = claim_frame, .closed = claim_closed};

static void claim_up(void *arg, struct van_conn *conn, const struct welcome *welcome)
{
    struct claim *claim = arg;
    struct wire_head head;
    (void)welcome;
    claim->connector = NULL;
    claim->conn = conn;
    claim->up = true;
    van_set_user(conn, &claim_user, claim);
    chain_beat_head(claim->clock, claim->w->number, &head);
    if (claim->clock)
        assert_ok(control_message_send(conn, &head, NULL, 0));
}

static void claim_failed(void *arg, paramo_err code, const char *text)
{
    struct claim *claim = arg;
    (void)text;
    claim->connector = NULL;
    claim->refused = code;
}

static void claim_connect(void *arg)
{
    struct claim *claim = arg;
    struct world_client *from = &claim->w->clients[1];
    struct connector_config config = {
        .van = from->van,
        .lane = from->lane,
        .address = acceptor_address(claim->w->servers[FOLLOWER].acceptor),
        .hello = {.purpose = HELLO_CHAIN,
                  .node = PARAMO_ID_SERVER(OWNER),
                  .incarnation = claim->w->servers[OWNER].incarnation,
                  .app = claim->generation,
                  .customer = claim->customer,
                  .token = "secret"},
        .frame_bytes = 1 << 16,
        .deadline = lane_now(from->lane) + ENV_SEC,
        .up = claim_up,
        .failed = claim_failed,
        .arg = claim,
    };
    assert_ok(connector_start(&config, &claim->connector));
}

static bool claim_answered(void *arg)
{
    const struct claim *claim = arg;
    return claim->up || claim->refused;
}

static struct claim *play_claim(struct play *p, const struct claim *as)
{
    struct claim *claim = &p->claims[p->claims_count++];
    *claim = *as;
    claim->w = &p->w;
    world_on_lane(p->w.clients[1].lane, claim_connect, claim);
    assert_true(sim_run(p->w.sim, claim_answered, claim, sim_now(p->w.sim) + ENV_SEC));
    return claim;
}

static void leave(void *arg)
{
    claim_close(arg);
}

static void claim_leave(struct claim *claim)
{
    world_on_lane(claim->w->clients[1].lane, leave, claim);
}

static struct chain_stream *owner_stream(struct play *p)
{
    struct chain_stream *st = p->w.servers[OWNER].shard->chain->streams;
    while (st && st->to.node != PARAMO_ID_SERVER(FOLLOWER))
        st = st->next;
    assert_non_null(st);
    return st;
}

/* The follower acknowledges it within a few seconds, and it is applied once. */
static void play_push(struct play *p)
{
    uint64_t ts, key = KEY;
    float one = 1, value = 0;
    assert_ok(world_push(&p->w, 0, 0, &key, 1, &one, 1, &ts));
    assert_ok(client_wait(p->w.clients[0].client, ts, 5000));
    p->pushes++;
    assert_ok(world_pull(&p->w, 0, 0, &key, 1, &value, 1, &ts));
    assert_ok(client_wait(p->w.clients[0].client, ts, 5000));
    assert_true(value == (float)p->pushes);
    assert_int_equal(owner_stream(p)->count, 0);
}

/* The stream is not at its beginning: what is acknowledged is released. */
static void play_make_with(struct play *p, unsigned replicas)
{
    memset(p, 0, sizeof *p);
    world_init(&p->w, true, 5);
    p->w.replicas = replicas;
    world_table(&p->w, PARAMO_TABLE_DENSE, 1)->rows = N;
    world_start(&p->w, SERVERS, SERVERS, 2);
    for (unsigned i = 0; i < 3; i++)
        play_push(p);
    assert_true(owner_stream(p)->acked >= 3);
}

static void play_make(struct play *p)
{
    play_make_with(p, 1);
}

/* The follower has what was acknowledged: it takes the owner's place. */
static void play_end(struct play *p)
{
    uint64_t ts, key = KEY;
    float value = 0;
    play_push(p);
    for (unsigned i = 0; i < p->claims_count; i++)
        claim_leave(&p->claims[i]);
    world_server_stop(&p->w, OWNER);
    world_server_gone(&p->w, OWNER);
    world_all_view(&p->w);
    assert_ok(world_pull(&p->w, 0, 0, &key, 1, &value, 1, &ts));
    assert_ok(client_wait(p->w.clients[0].client, ts, 5000));
    assert_true(value == (float)p->pushes);
    world_fini(&p->w);
}

static struct play play; /* too large for a stack */

static void a_generation_ahead_does_not_keep_the_owner_out(void **state)
{
    (void)state;
    static const uint32_t ahead[] = {1, 1000, UINT32_MAX / 2};
    for (size_t i = 0; i < sizeof ahead / sizeof *ahead; i++) {
        play_make(&play);
        struct claim *claim = play_claim(
            &play, &(struct claim){.generation = ahead[i] + owner_stream(&play)->generation, .clock = 1});
        assert_true(claim->up);
        play_push(&play);
        assert_true(claim->ended); /* the owner has its place again */
        play_end(&play);
    }
}

static void one_that_leaves_keeps_nothing(void **state)
{
    (void)state;
    play_make(&play);
    for (unsigned i = 0; i < 4; i++) {
        struct claim *claim =
            play_claim(&play, &(struct claim){.generation = UINT32_MAX - 3 + i, .clock = 1});
        assert_true(claim->up);
        world_pass(&play.w, ENV_MS);
        claim_leave(claim);
    }
    play_push(&play);
    unsigned streams = 0;
    for (const struct chain_source *x = play.w.servers[FOLLOWER].shard->chain->sources; x; x = x->next)
        streams += x->from.node == PARAMO_ID_SERVER(OWNER);
    assert_int_equal(streams, 1); /* nothing is left of the others */
    play_end(&play);
}

static void a_clock_of_another_is_not_answered_to_the_owner(void **state)
{
    (void)state;
    play_make(&play);
    struct claim *claim = play_claim(
        &play, &(struct claim){.generation = owner_stream(&play)->generation, .clock = UINT64_MAX});
    world_pass(&play.w, ENV_MS);
    claim_leave(claim);
    play_push(&play);
    play_end(&play);
}

static void connections_that_send_nothing_keep_the_owner_out_no_more(void **state)
{
    (void)state;
    play_make(&play);
    for (unsigned i = 0; i < CHAIN_GUESTS_MAX + 1; i++)
        assert_true(play_claim(&play, &(struct claim){.generation = 1000 + i})->up);
    unsigned guests = 0;
    for (const struct chain_guest *g = play.w.servers[FOLLOWER].shard->chain->guests; g; g = g->next)
        guests++;
    assert_in_range(guests, 1, CHAIN_GUESTS_MAX);
    van_sim_reset(play.w.servers[OWNER].van, UINT32_MAX);
    play_push(&play);
    play_end(&play);
}

static void a_shard_that_no_view_has_is_refused(void **state)
{
    (void)state;
    play_make(&play);
    struct claim *claim = play_claim(&play, &(struct claim){.generation = 1, .customer = 77, .clock = 1});
    assert_int_equal(claim->refused, PARAMO_E_REFUSED);
    play_end(&play);
}

static void play_cut(struct play *p, bool is)
{
    world_link(&p->w, "s1", "s2")->cut = world_link(&p->w, "s2", "s1")->cut = is;
}

/* The follower leaves the chains of some partitions while a push to others is not acknowledged: the owner's stream
 * begins again. Returns its number before. */
static uint32_t play_stream_again(struct play *p)
{
    uint64_t ts, key = KEY;
    float one = 1;
    uint32_t before = owner_stream(p)->generation;
    unsigned left = 0;
    play_cut(p, true);
    assert_ok(world_push(&p->w, 0, 0, &key, 1, &one, 1, &ts));
    p->pushes++;
    world_pass(&p->w, 10 * ENV_MS);
    assert_int_equal(owner_stream(p)->count, 1);
    for (unsigned a = 0; a < RING_PARTITIONS && left < 100; a++)
        if (p->w.ring.owner[a] == OWNER) {
            assert_int_equal(p->w.follower[1].owner[a], FOLLOWER);
            p->w.follower[1].owner[a] = p->w.follower[2].owner[a];
            p->w.follower[2].owner[a] = RING_NONE;
            left++;
        }
    for (unsigned i = 0; i < SERVERS; i++)
        p->w.chain_changed[i] = p->w.number + 1;
    world_view(&p->w);
    world_all_view(&p->w);
    play_cut(p, false);
    assert_ok(client_wait(p->w.clients[0].client, ts, 5000));
    assert_true(owner_stream(p)->generation > before);
    play_push(p);
    return before;
}

/* The follower knows an earlier stream of the owner, too. This one takes the place of the present one, and a later one
 * takes its place at once: the present one continues all the same. */
static void an_earlier_stream_is_not_kept_for_the_present_one(void **state)
{
    (void)state;
    play_make_with(&play, 2);
    uint32_t before = play_stream_again(&play), present = owner_stream(&play)->generation;
    world_pass(&play.w, 2 * ENV_SEC);
    assert_true(play_claim(&play, &(struct claim){.generation = before, .clock = 1})->up);
    assert_true(play_claim(&play, &(struct claim){.generation = present + 1000, .clock = 1})->up);
    play_push(&play);
    assert_int_equal(owner_stream(&play)->generation, present);
    play_end(&play);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_generation_ahead_does_not_keep_the_owner_out),
        cmocka_unit_test(one_that_leaves_keeps_nothing),
        cmocka_unit_test(a_clock_of_another_is_not_answered_to_the_owner),
        cmocka_unit_test(connections_that_send_nothing_keep_the_owner_out_no_more),
        cmocka_unit_test(an_earlier_stream_is_not_kept_for_the_present_one),
        cmocka_unit_test(a_shard_that_no_view_has_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
