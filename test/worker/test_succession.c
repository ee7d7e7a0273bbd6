/* A server dies during a request that asks all servers: with copies the request starts again where it must, and only
 * takes longer. Also: a table is scanned while owners change. */
#include "server/replication/acks.h"
#include "server/replication/chain_impl.h"
#include "server/replication/chain_stream.h"
#include "server/replication/chain_tick.h"
#include "server/shard/shard_tables.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/session/connector.h"
#include "worker/client_impl.h"
#include "worker/scan.h"
#include "worker/support_world.h"

enum { DENSE, SPARSE, NONE, SERVERS = 3, N = 70000 };

struct play {
    struct world w;
    struct client *client;
    uint64_t *keys;
    float *vals;
    struct sim_event dies, known; /* server 1 dies; all have the view in which it is dead */
};

static void dies(struct sim_event *event)
{
    struct play *p = container_of(event, struct play, dies);
    world_server_stop(&p->w, 1);
}

static void known(struct sim_event *event)
{
    struct play *p = container_of(event, struct play, known);
    world_server_gone(&p->w, 1);
    world_all_view(&p->w);
}

/* The first SERVERS own all partitions. The table NONE has no copies. */
static void play_begin(struct play *p, unsigned replicas, unsigned servers)
{
    memset(p, 0, sizeof *p);
    p->dies.fire = dies;
    p->known.fire = known;
    world_init(&p->w, true, 5);
    p->w.replicas = replicas;
    world_table(&p->w, PARAMO_TABLE_DENSE, 1)->rows = N;
    world_table(&p->w, PARAMO_TABLE_SPARSE, 1);
    paramo_table_options *none = world_table(&p->w, PARAMO_TABLE_SPARSE, 1);
    none->replicas = replicas ? 0 : PARAMO_REPLICAS_OF_JOB;
    world_start(&p->w, servers, SERVERS, 2);
    p->client = p->w.clients[0].client;
}

static void play_make_of(struct play *p, unsigned replicas, unsigned servers)
{
    play_begin(p, replicas, servers);
    p->keys = malloc(N * sizeof *p->keys);
    p->vals = malloc(N * sizeof *p->vals);
    for (unsigned i = 0; i < N; i++) {
        p->keys[i] = i;
        p->vals[i] = 1;
    }
    uint64_t ts;
    for (unsigned t = DENSE; t <= SPARSE; t++) {
        assert_int_equal(world_push(&p->w, 0, t, p->keys, N, p->vals, N, &ts), PARAMO_OK);
        assert_int_equal(world_wait(&p->w, 0, ts), PARAMO_OK);
    }
}

static void play_make(struct play *p, unsigned replicas)
{
    play_make_of(p, replicas, SERVERS);
}

static void play_end(struct play *p)
{
    sim_cancel(p->w.sim, &p->dies);
    sim_cancel(p->w.sim, &p->known);
    free(p->keys);
    free(p->vals);
    world_fini(&p->w);
}

/* Server 1 dies in `ms`, and that is known a second later. */
static void death_in(struct play *p, uint64_t ns)
{
    uint64_t at = sim_now(p->w.sim) + ns;
    assert_int_equal(sim_schedule(p->w.sim, &p->dies, at), PARAMO_OK);
    assert_int_equal(sim_schedule(p->w.sim, &p->known, at + ENV_SEC), PARAMO_OK);
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

/* At every moment of the request, from before the first frame to after the last. */
static const uint64_t moments[] = {0, 60, 140, 220, 300, 500};

static void test_stat(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++)
        for (unsigned t = DENSE; t <= SPARSE; t++) {
            struct play p;
            struct client_stats stats;
            uint64_t ts;
            play_make(&p, 1);
            struct client_call stat = {.kind = REQUEST_STAT, .table = &p.w.tables[t], .stats = &stats};
            death_in(&p, moments[i] * ENV_US);
            assert_int_equal(client_issue(p.client, &stat, &ts), PARAMO_OK);
            assert_int_equal(world_wait(&p.w, 0, ts), PARAMO_OK);
            assert_int_equal(stats.rows, N);
            assert_int_equal(stats.nonzero, N);
            play_end(&p);
        }
}

static void test_clear(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++)
        for (unsigned t = DENSE; t <= SPARSE; t++) {
            struct play p;
            uint64_t ts;
            play_make(&p, 2);
            struct client_call clear = {.kind = REQUEST_CLEAR, .table = &p.w.tables[t]};
            death_in(&p, moments[i] * ENV_US);
            assert_int_equal(client_issue(p.client, &clear, &ts), PARAMO_OK);
            assert_int_equal(world_wait(&p.w, 0, ts), PARAMO_OK);
            /* What is pushed when it is done stays, whatever of it was sent again. */
            assert_int_equal(world_push(&p.w, 1, t, p.keys, N / 2, p.vals, N / 2, &ts), PARAMO_OK);
            assert_int_equal(world_wait(&p.w, 1, ts), PARAMO_OK);
            assert_int_equal(world_pull(&p.w, 0, t, p.keys, N, p.vals, N, &ts), PARAMO_OK);
            assert_int_equal(world_wait(&p.w, 0, ts), PARAMO_OK);
            for (unsigned k = 0; k < N; k++)
                assert_true(p.vals[k] == (k < N / 2 ? 1 : 0));
            play_end(&p);
        }
}

static struct simnet_link *link_of(struct play *p, const char *from, const char *to)
{
    struct simnet_node *a, *b;
    struct simnet_link *link;
    assert_int_equal(simnet_node(p->w.net, from, &a), PARAMO_OK);
    assert_int_equal(simnet_node(p->w.net, to, &b), PARAMO_OK);
    assert_int_equal(simnet_link(p->w.net, a, b, &link), PARAMO_OK);
    return link;
}

/* A server without partitions dies, too, while the servers that have the dead one's partitions are asked: the
 * request waits for their answers. */
static void test_clear_is_not_done_early(void **state)
{
    (void)state;
    struct play p;
    uint64_t ts;
    play_make_of(&p, 2, SERVERS + 1);
    struct client_call clear = {.kind = REQUEST_CLEAR, .table = &p.w.tables[DENSE]};
    world_server_stop(&p.w, 1);
    assert_int_equal(client_issue(p.client, &clear, &ts), PARAMO_OK);
    (void)sim_run(p.w.sim, never, NULL, sim_now(p.w.sim) + ENV_SEC); /* the others have done it */
    for (unsigned s = 0; s < SERVERS; s += 2) {
        struct simnet_link *to = link_of(&p, "w0", s ? "s2" : "s0");
        to->late_ppm = 1000000;
        to->late_ns = 2 * ENV_SEC;
    }
    world_server_gone(&p.w, 1);
    world_all_view(&p.w);
    world_server_stop(&p.w, SERVERS);
    world_server_gone(&p.w, SERVERS);
    world_all_view(&p.w);
    assert_int_equal(world_wait(&p.w, 0, ts), PARAMO_OK);
    assert_int_equal(world_pull(&p.w, 1, DENSE, p.keys, N, p.vals, N, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&p.w, 1, ts), PARAMO_OK);
    for (unsigned k = 0; k < N; k++)
        assert_true(p.vals[k] == 0);
    play_end(&p);
}

struct rows {
    uint64_t next; /* key */
    float sum;
};

static int take_rows(void *arg, const struct scan_rows *rows)
{
    struct rows *r = arg;
    for (size_t i = 0; i < rows->n; i++) {
        assert_int_equal(rows->keys[i], r->next++);
        r->sum += rows->vals ? ((const float *)rows->vals)[i] : 0;
    }
    return 0;
}

static void test_scan(void **state)
{
    (void)state;
    static const uint64_t when[] = {0, 120, 300, 700, 1200, 2400, 4000};
    for (size_t i = 0; i < 3 * sizeof when / sizeof *when; i++)
        for (unsigned t = DENSE; t <= SPARSE; t++) {
            struct play p;
            struct rows rows = {0};
            play_make(&p, 1);
            for (unsigned s = 0; s < SERVERS && i % 3; s++) /* and in many pages */
                p.w.servers[s].shard->config.scan_keys = i % 3 == 1 ? 5000 : 12000;
            death_in(&p, when[i / 3] * ENV_US);
            assert_int_equal(scan_run(p.client, &p.w.tables[t], false, 0, take_rows, &rows), PARAMO_OK);
            assert_int_equal(rows.next, N);
            assert_true(rows.sum == (float)N);
            play_end(&p);
        }
}

/* An answer to a beat that was sent long ago says nothing of now, however late it comes: the owner may be
 * none any more. It answers pulls again when its followers are quick again. */
static void test_lease(void **state)
{
    (void)state;
    struct play p;
    uint64_t ts, began;
    play_make(&p, 1);
    struct simnet_link *back = link_of(&p, "s2", "s1"), before = *back;
    uint64_t key = N / 2; /* server 1's */
    float val = 0;
    back->late_ppm = 1000000;
    back->late_ns = 700 * ENV_MS;
    (void)sim_run(p.w.sim, never, NULL, sim_now(p.w.sim) + 3 * ENV_SEC);
    began = sim_now(p.w.sim);
    assert_int_equal(world_pull(&p.w, 0, DENSE, &key, 1, &val, 1, &ts), PARAMO_OK);
    assert_int_equal(client_wait(p.client, ts, 5000), PARAMO_E_TIMEOUT);
    assert_true(sim_now(p.w.sim) - began >= 5 * ENV_SEC);
    back->late_ppm = before.late_ppm;
    assert_int_equal(world_wait(&p.w, 0, ts), PARAMO_OK);
    assert_true(val == 1);
    play_end(&p);
}

/* A push to server 1, which server 2 follows, waits for the view: how long it takes once all have that. */
static uint64_t held_for_a_view(struct play *p)
{
    uint64_t ts, key = N / 2;
    float one = 1;
    assert_int_equal(world_push(&p->w, 0, DENSE, &key, 1, &one, 1, &ts), PARAMO_OK);
    assert_int_equal(client_wait(p->client, ts, 30), PARAMO_E_TIMEOUT);
    uint64_t began = sim_now(p->w.sim);
    world_all_view(&p->w);
    assert_int_equal(world_wait(&p->w, 0, ts), PARAMO_OK);
    return sim_now(p->w.sim) - began;
}

/* What a follower refuses, since the owner's view is older, it gets again when the owner has that view, even
 * if nothing comes after it. A pause of a move waits for it. */
static void test_refused(void **state)
{
    (void)state;
    struct play p;
    play_make(&p, 1);
    p.w.chain_changed[2] = p.w.number + 1;
    world_view(&p.w);
    world_server_view(&p.w, 2);
    assert_true(held_for_a_view(&p) < 20 * ENV_MS); /* of this network's time */
    play_end(&p);
}

static void count_chain(void *arg, uint32_t from, uint32_t to, const struct van_frame *frame)
{
    struct wire_head head;
    (void)from, (void)to;
    assert_int_equal(wire_head_decode(frame->head, &head), PARAMO_OK);
    *(unsigned *)arg += head.kind == WIRE_CHAIN;
}

static void ignore(void *arg, uint32_t from, uint32_t to, const uint8_t head[VAN_HEAD])
{
    (void)arg, (void)from, (void)to, (void)head;
}

enum { CHANGES = 100, ASKED = 50 };

static void ask(void *arg)
{
    const struct shard *s = arg;
    for (struct chain_source *source = s->chain->sources; source; source = source->next)
        for (unsigned i = 0; i < ASKED; i++) {
            source->again = true;
            acks_send(source);
        }
}

/* A follower lacks the view of the changes, and its ACKs ask for them again. As a cut of its link ends, many of those
 * come at once. It gets the changes once or twice for each beat then, and not for each ACK. */
static void test_asked_often(void **state)
{
    (void)state;
    struct play p;
    unsigned sent = 0;
    uint64_t ts[CHANGES], key = N / 2; /* server 1's */
    float one = 1, val;
    play_make(&p, 1);
    const struct simvan_watch watch = {.leaves = count_chain, .arrives = ignore, .arg = &sent};
    assert_int_equal(van_sim_watch(p.w.net, &watch), PARAMO_OK);
    world_view(&p.w);
    world_server_view(&p.w, 1);
    for (unsigned i = 0; i < CHANGES; i++)
        assert_int_equal(world_push(&p.w, 0, DENSE, &key, 1, &one, 1, &ts[i]), PARAMO_OK);
    world_pass(&p.w, ENV_SEC);
    assert_true(sent >= CHANGES);
    sent = 0;
    world_on_lane(p.w.servers[2].lane, ask, p.w.servers[2].shard);
    world_pass(&p.w, 150 * ENV_MS); /* two beats, which grant it once or twice */
    assert_in_range(sent, CHANGES, 4 * CHANGES);
    world_all_view(&p.w);
    for (unsigned i = 0; i < CHANGES; i++)
        assert_int_equal(world_wait(&p.w, 0, ts[i]), PARAMO_OK);
    assert_int_equal(world_pull(&p.w, 0, DENSE, &key, 1, &val, 1, &ts[0]), PARAMO_OK);
    assert_int_equal(world_wait(&p.w, 0, ts[0]), PARAMO_OK);
    assert_true(val == 1 + CHANGES);
    play_end(&p);
}

struct twice {
    struct shard *shard;
    bool closes;
    size_t entries;
};

static void send_twice(void *arg)
{
    struct twice *twice = arg;
    struct chain *c = twice->shard->chain;
    for (unsigned i = 0; i < 2; i++) {
        twice->entries = 0;
        for (struct chain_stream *st = c->streams; st; st = st->next) {
            st->unsent = st->entries.head;
            twice->entries += st->count;
        }
        chain_send_all(c);
    }
    if (twice->closes)
        chain_streams_close(c);
}

/* All changes are sent again while copies of them still leave. They follow when these have left, and not with the
 * tick. They do not if the streams end first. */
static void test_sent_while_leaving(void **state)
{
    (void)state;
    struct play p;
    unsigned sent = 0;
    uint64_t ts[CHANGES], key = N / 2; /* server 1's */
    float one = 1;
    play_make(&p, 1);
    const struct simvan_watch watch = {.leaves = count_chain, .arrives = ignore, .arg = &sent};
    assert_int_equal(van_sim_watch(p.w.net, &watch), PARAMO_OK);
    world_view(&p.w);
    world_server_view(&p.w, 1); /* server 2 acknowledges nothing */
    for (unsigned i = 0; i < CHANGES; i++)
        assert_int_equal(world_push(&p.w, 0, DENSE, &key, 1, &one, 1, &ts[i]), PARAMO_OK);
    world_pass(&p.w, 250 * ENV_MS);
    struct twice twice = {.shard = p.w.servers[1].shard};
    for (unsigned i = 0; i < 2; i++) {
        sent = 0;
        twice.closes = i;
        world_on_lane(p.w.servers[1].lane, send_twice, &twice);
        world_pass(&p.w, 1);
        assert_true(twice.entries >= CHANGES);
        assert_int_equal(sent, twice.closes ? 0 : 2 * twice.entries);
    }
    play_end(&p);
}

/* The follower has asked for a change again, and got it, too early. It then drops another change, and gets the view: it
 * gets both at once, and not when the owner sends all again by itself. */
static void test_asked_twice(void **state)
{
    (void)state;
    struct play p;
    uint64_t ts[2], key = N / 2; /* server 1's */
    float one = 1;
    play_make(&p, 1);
    world_view(&p.w);
    world_server_view(&p.w, 1);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(world_push(&p.w, 0, DENSE, &key, 1, &one, 1, &ts[i]), PARAMO_OK);
        assert_int_equal(client_wait(p.client, ts[i], i ? 10 : 250), PARAMO_E_TIMEOUT);
    }
    uint64_t began = sim_now(p.w.sim);
    world_all_view(&p.w);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(world_wait(&p.w, 0, ts[i]), PARAMO_OK);
    assert_true(sim_now(p.w.sim) - began < 20 * ENV_MS); /* of this network's time */
    play_end(&p);
}

static void guest_up(void *arg, struct van_conn *conn, const struct welcome *welcome)
{
    (void)welcome;
    *(bool *)arg = true;
    van_close(conn, false); /* as from an owner that meant another process, which had this address */
}

static void guest_failed(void *arg, paramo_err code, const char *text)
{
    (void)arg, (void)code, (void)text;
}

static bool is_set(void *arg)
{
    return *(bool *)arg;
}

struct strange {
    struct play *p;
    struct connector *connector;
    bool up;
};

static void connect_as_owner(void *arg)
{
    struct strange *strange = arg;
    struct world_server *owner = &strange->p->w.servers[1];
    struct connector_config config = {.van = owner->van,
                                      .lane = owner->lane,
                                      .address = acceptor_address(strange->p->w.servers[2].acceptor),
                                      .hello = {.purpose = HELLO_CHAIN,
                                                .node = PARAMO_ID_SERVER(1),
                                                .incarnation = owner->incarnation,
                                                .app = UINT32_MAX, /* a later stream than any */
                                                .token = "secret"},
                                      .frame_bytes = 1 << 16,
                                      .deadline = lane_now(owner->lane) + ENV_SEC,
                                      .up = guest_up,
                                      .failed = guest_failed,
                                      .arg = &strange->up};
    assert_int_equal(connector_start(&config, &strange->connector), PARAMO_OK);
}

/* The owner connects to a member that is dead, though the view does not know it, and another process, which follows
 * the owner, has its address. WELCOME tells the owner; but its HELLO was taken for a later stream of its own,
 * and the one that this process is to have was refused forever: nothing was acknowledged any more. */
static void test_connected_for_another(void **state)
{
    (void)state;
    struct play p;
    uint64_t ts, key = N / 2; /* server 1's */
    float one = 1;
    play_make(&p, 1);
    struct strange strange = {.p = &p};
    world_on_lane(p.w.servers[1].lane, connect_as_owner, &strange);
    assert_true(sim_run(p.w.sim, is_set, &strange.up, sim_now(p.w.sim) + ENV_SEC));
    assert_false(sim_run(p.w.sim, never, NULL, sim_now(p.w.sim) + ENV_SEC));
    van_sim_reset(p.w.servers[1].van, UINT32_MAX); /* the stream is made again */
    assert_int_equal(world_push(&p.w, 0, DENSE, &key, 1, &one, 1, &ts), PARAMO_OK);
    assert_int_equal(client_wait(p.client, ts, 5000), PARAMO_OK);
    play_end(&p);
}

/* A follower that has no view yet when the owner connects is connected again soon: copies are not late by it.
 */
static void test_connected_too_early(void **state)
{
    (void)state;
    struct play p;
    play_make(&p, 1);
    world_server_stop(&p.w, 2);
    world_server_start(&p.w, 2);
    world_view(&p.w);
    world_server_view(&p.w, 1);
    assert_true(held_for_a_view(&p) < 300 * ENV_MS);
    play_end(&p);
}

/* Without copies they end, as all that asks a dead server does. */
/* A server whose first view makes it an owner has followed no owner; its next member has. */
static void test_heir_without_a_view(void **state)
{
    (void)state;
    struct play p;
    uint64_t ts;
    float one = 1;
    play_begin(&p, 2, SERVERS);
    uint64_t key = N / 2; /* server 1's; servers 2 and 0 follow */
    world_server_stop(&p.w, 2);
    world_server_start(&p.w, 2);
    p.w.servers[2].recovered = false; /* there are no rows yet */
    world_server_stop(&p.w, 1);
    world_server_gone(&p.w, 1);
    world_all_view(&p.w);
    assert_int_equal(world_push(&p.w, 0, DENSE, &key, 1, &one, 1, &ts), PARAMO_OK);
    assert_int_equal(client_wait(p.client, ts, 5000), PARAMO_OK);
    play_end(&p);
}

/* The same, of rows without copies: what only the dead server had is lost, and what was this server's from the
 * first view on is not, though its partitions have changed since the table was opened. */
static void test_heir_has_not_lost_its_own(void **state)
{
    (void)state;
    struct play p;
    uint64_t ts;
    float one = 1;
    play_begin(&p, 2, SERVERS);
    world_server_stop(&p.w, 2);
    world_server_start(&p.w, 2);
    p.w.servers[2].recovered = false; /* it has missed the first view */
    world_server_stop(&p.w, 1);
    struct ring before = p.w.ring;
    world_server_gone(&p.w, 1);
    world_all_view(&p.w);
    unsigned of[SERVERS] = {0};
    for (uint64_t key = 0; key < 300; key++) {
        unsigned a = ring_partition(ring_position(&p.w.tables[NONE].placement, key));
        if (p.w.ring.owner[a] != 2)
            continue;
        of[before.owner[a]]++;
        assert_int_equal(world_push(&p.w, 0, NONE, &key, 1, &one, 1, &ts), PARAMO_OK);
        assert_int_equal(world_wait(&p.w, 0, ts), before.owner[a] == 1 ? PARAMO_E_DATA_LOST : PARAMO_OK);
    }
    assert_true(of[1] && of[2]);
    play_end(&p);
}

static void test_without_copies(void **state)
{
    (void)state;
    struct play p;
    struct client_stats stats;
    struct rows rows = {0};
    uint64_t ts;
    play_make(&p, 0);
    world_server_stop(&p.w, 1);
    world_view(&p.w);
    world_all_view(&p.w);
    struct client_call calls[] = {{.kind = REQUEST_STAT, .table = &p.w.tables[DENSE], .stats = &stats},
                                  {.kind = REQUEST_CLEAR, .table = &p.w.tables[DENSE]}};
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(client_issue(p.client, &calls[i], &ts), PARAMO_OK);
        assert_int_equal(world_wait(&p.w, 0, ts), PARAMO_E_NODE_LOST);
    }
    assert_int_equal(scan_run(p.client, &p.w.tables[DENSE], false, 0, take_rows, &rows), PARAMO_E_NODE_LOST);
    play_end(&p);
}

/* What a dead server had of a table without copies is not zeros: requests for it end until it is cleared, all others
 * continue. No other server has had a row of it. */
static void test_table_without_copies(void **state)
{
    (void)state;
    struct play p;
    struct client_stats stats;
    struct rows rows = {0};
    uint64_t ts;
    play_make(&p, 2);
    assert_int_equal(world_push(&p.w, 0, NONE, p.keys, N, p.vals, N, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&p.w, 0, ts), PARAMO_OK);
    size_t held = 0;
    for (unsigned s = 0; s < SERVERS; s++)
        held += table_rows(shard_table_find(p.w.servers[s].shard, NONE + 1)->table);
    assert_int_equal(held, N);
    const struct ring_placement placement = {.kind = PARAMO_PLACE_MIXED};
    uint64_t lost = N, kept = N; /* a key of each */
    for (unsigned i = 0; i < N; i++)
        *(p.w.ring.owner[ring_partition(ring_position(&placement, i))] == 1 ? &lost : &kept) = i;
    world_server_stop(&p.w, 1);
    world_server_gone(&p.w, 1);
    world_all_view(&p.w);
    float val = 0;
    for (unsigned t = SPARSE; t <= NONE; t++)
        for (unsigned i = 0; i < 2; i++) {
            paramo_err err = t == NONE && i ? PARAMO_E_DATA_LOST : PARAMO_OK;
            assert_int_equal(world_pull(&p.w, 0, t, i ? &lost : &kept, 1, &val, 1, &ts), PARAMO_OK);
            assert_int_equal(world_wait(&p.w, 0, ts), err);
            assert_true(err || val == 1);
            assert_int_equal(world_push(&p.w, 0, t, i ? &lost : &kept, 1, &val, 1, &ts), PARAMO_OK);
            assert_int_equal(world_wait(&p.w, 0, ts), err);
        }
    struct client_call stat = {.kind = REQUEST_STAT, .table = &p.w.tables[NONE], .stats = &stats};
    assert_int_equal(client_issue(p.client, &stat, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&p.w, 0, ts), PARAMO_E_DATA_LOST);
    assert_int_equal(scan_run(p.client, &p.w.tables[NONE], false, 0, take_rows, &rows), PARAMO_E_DATA_LOST);
    struct client_call clear = {.kind = REQUEST_CLEAR, .table = &p.w.tables[NONE]};
    assert_int_equal(client_issue(p.client, &clear, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&p.w, 0, ts), PARAMO_OK);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(world_push(&p.w, 0, NONE, i ? &lost : &kept, 1, &val, 1, &ts), PARAMO_OK);
        assert_int_equal(world_wait(&p.w, 0, ts), PARAMO_OK);
    }
    assert_int_equal(client_issue(p.client, &stat, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&p.w, 0, ts), PARAMO_OK);
    assert_int_equal(stats.rows, 2);
    play_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stat),
                                       cmocka_unit_test(test_clear),
                                       cmocka_unit_test(test_clear_is_not_done_early),
                                       cmocka_unit_test(test_scan),
                                       cmocka_unit_test(test_lease),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_asked_often),
                                       cmocka_unit_test(test_asked_twice),
                                       cmocka_unit_test(test_sent_while_leaving),
                                       cmocka_unit_test(test_connected_too_early),
                                       cmocka_unit_test(test_connected_for_another),
                                       cmocka_unit_test(test_heir_has_not_lost_its_own),
                                       cmocka_unit_test(test_heir_without_a_view),
                                       cmocka_unit_test(test_without_copies),
                                       cmocka_unit_test(test_table_without_copies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
