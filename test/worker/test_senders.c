/* What shards keep of their senders: customers that are closed and opened again, workers that fall silent,
 * hosts that vanish. Each as a script: the test is the scheduler. */
#include "server/replication/chain_impl.h"
#include "server/replication/origins.h"
#include "server/shard/handling.h"
#include "server/shard/kept.h"
#include "server/shard/peers.h"
#include "server/shard/senders.h"
#include "server/shard/slice.h"
#include "unit.h"
#include "wire/migration_order.h"

#include <stdio.h>
#include <string.h>

#include "wire/order.h"
#include "worker/scan.h"
#include "worker/support_world.h"

/* Row i lies on partition i. */
enum { ROWS = RING_PARTITIONS, USER = 1 };

static struct world w;
static unsigned given_up;

static void failed(void *arg, paramo_err status)
{
    (void)arg;
    (void)status;
    given_up++;
}

static uint64_t last_handled;

static void handler(void *arg, struct shard_request *request, const struct shard_request_info *info)
{
    (void)arg;
    assert_true(info->ts > last_handled); /* in the order in which they were issued */
    last_handled = info->ts;
    assert_int_equal(shard_answer(request, NULL, 0, NULL), PARAMO_OK);
}

static void begin(unsigned replicas, unsigned servers, unsigned clients)
{
    memset(&w, 0, sizeof w);
    given_up = 0;
    last_handled = 0;
    world_init(&w, true, 5);
    w.replicas = replicas;
    w.migrations = true;
    w.timeout_ms = 60000;
    w.failed = failed;
    w.handler = handler;
    world_table(&w, PARAMO_TABLE_DENSE, 1)->rows = ROWS;
    world_table(&w, PARAMO_TABLE_USER, 1);
    world_start(&w, servers, servers, clients);
    world_pass(&w, ENV_SEC);
}

/* All partitions from `first` on have this chain in the next view. */
static void chain(unsigned first, uint16_t owner, uint16_t next, uint16_t last)
{
    for (unsigned a = first; a < RING_PARTITIONS; a++) {
        w.ring.owner[a] = owner;
        w.follower[1].owner[a] = next;
        w.follower[2].owner[a] = last;
    }
    for (unsigned s = 0; s < w.servers_count; s++)
        w.partitions_changed[s] = w.chain_changed[s] = w.number + 1;
}

static void view(void)
{
    world_view(&w);
    world_all_view(&w);
    world_pass(&w, ENV_SEC);
}

static void push(unsigned client, uint64_t key)
{
    uint64_t ts;
    const float one = 1;
    assert_int_equal(world_push(&w, client, 0, &key, 1, &one, 1, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, client, ts), PARAMO_OK);
}

static float pulled(unsigned client, uint64_t key)
{
    uint64_t ts;
    float val = -1;
    assert_int_equal(world_pull(&w, client, 0, &key, 1, &val, 1, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, client, ts), PARAMO_OK);
    return val;
}

/* The answer is lost with the connection, and the push comes again. */
static void push_twice(unsigned client, uint64_t key)
{
    struct simnet_link *back = world_link(&w, "s0", "w0");
    uint64_t ts;
    const float one = 1;
    back->cut = true;
    assert_int_equal(world_push(&w, client, 0, &key, 1, &one, 1, &ts), PARAMO_OK);
    world_pass(&w, 50 * ENV_MS);
    van_sim_reset(w.clients[client].van, UINT32_MAX);
    back->cut = false;
    assert_int_equal(world_wait(&w, client, ts), PARAMO_OK);
}

static const struct sender *sender_at(unsigned server, unsigned client)
{
    struct sender_id id = {
        .node = PARAMO_ID_WORKER(client), .customer = 3, .incarnation = w.clients[client].incarnation};
    return shard_sender_find(w.servers[server].shard, &id);
}

/* Parts, and bits of records, that this server has of the client, as owner and as follower. */
static size_t kept_at(unsigned server, unsigned client)
{
    const struct shard *s = w.servers[server].shard;
    const struct sender *own = sender_at(server, client);
    size_t n = own && !applied_window_is_empty(&own->applied_window), bytes;
    for (const struct chain_origin *o = s->chain->origins; o; o = o->next)
        for (const struct chain_sender *x = o->senders; x; x = x->next)
            n += x->id.node == PARAMO_ID_WORKER(client) && !applied_window_is_empty(&x->applied_window);
    return own ? n + applied_window_count_notes(&own->applied_window, &bytes) : n;
}

/* ---- a goodbye belongs to a connection ---- */

/* The old connection's goodbye comes after the new one's HELLO; then connections break. */
static void opened_again(void **state)
{
    (void)state;
    for (unsigned replicas = 0; replicas < 3; replicas++)
        for (unsigned late = 0; late < 3; late++) {
            begin(replicas, 3, 2);
            chain(0, 0, replicas ? 1 : RING_NONE, replicas > 1 ? 2 : RING_NONE);
            view();
            float sum = 0;
            for (unsigned times = 0; times < 3; times++) {
                push(0, 7);
                sum++;
                struct simnet_link *link = world_link(&w, "w0", "s0");
                link->late_ppm = late == 1 ? 1000000 : 0;
                link->late_ns = 300 * ENV_MS;
                link->cut = late == 2; /* it never comes */
                world_client_close(&w, 0);
                world_pass(&w, ENV_MS); /* it is on its way */
                link->late_ppm = 0;
                link->cut = false;
                world_client_open(&w, 0);
                push(0, 7);
                sum++;
                world_pass(&w, 400 * ENV_MS);
                assert_true(late != 1 || sender_at(0, 0)->over); /* it has come by now */
                for (unsigned i = 0; i < 2; i++) {
                    push_twice(0, 7);
                    sum++;
                    assert_true(pulled(1, 7) == sum);
                }
            }
            if (replicas) { /* and so has the next of the chain */
                world_server_stop(&w, 0);
                world_server_gone(&w, 0);
                view();
                push(0, 7);
                assert_true(pulled(1, 7) == sum + 1);
            }
            world_fini(&w);
        }
}

/* The owner dies when it has answered, and its answer is lost: the goodbye before it says nothing of this
 * push. */
static void opened_again_and_promoted(void **state)
{
    (void)state;
    for (unsigned late = 0; late < 2; late++) {
        begin(2, 3, 2);
        chain(0, 0, 1, 2);
        view();
        push(0, 7);
        struct simnet_link *link = world_link(&w, "w0", "s0");
        link->late_ppm = late ? 1000000 : 0;
        link->late_ns = 60 * ENV_MS;
        world_client_close(&w, 0);
        world_pass(&w, ENV_MS);
        link->late_ppm = 0;
        world_client_open(&w, 0);
        push(0, 7);
        uint64_t ts, key = 7;
        const float one = 1;
        world_link(&w, "s0", "w0")->cut = true;
        assert_int_equal(world_push(&w, 0, 0, &key, 1, &one, 1, &ts), PARAMO_OK);
        world_pass(&w, 100 * ENV_MS); /* all have it, and the goodbye */
        world_server_stop(&w, 0);
        world_server_gone(&w, 0);
        view();
        assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
        assert_true(pulled(1, 7) == 3);
        world_fini(&w);
    }
}

static int count_rows(void *arg, const struct scan_rows *rows)
{
    *(size_t *)arg += rows->n;
    return 0;
}

static int stop_at_rows(void *arg, const struct scan_rows *rows)
{
    (void)arg;
    return rows->n > 0;
}

/* A scan that was stopped leaves the keys that the server has found. The customer is opened again before its
 * goodbye has come: its first scan is another one, and has the rows that have come since. */
static void opened_again_and_scans(void **state)
{
    enum { N = 512, DIM = 1024 };
    static const float vals[N * DIM];
    static uint64_t keys[N];
    uint64_t ts;
    size_t rows = 0;
    (void)state;
    for (unsigned i = 0; i < N; i++)
        keys[i] = 2 * i;
    memset(&w, 0, sizeof w);
    world_init(&w, true, 5);
    world_table(&w, PARAMO_TABLE_SPARSE, DIM);
    world_start(&w, 1, 1, 1);
    assert_int_equal(world_push(&w, 0, 0, keys, N, vals, N * DIM, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    assert_int_equal(scan_run(w.clients[0].client, &w.tables[0], false, 0, stop_at_rows, NULL),
                     PARAMO_E_INTERRUPTED);
    struct simnet_link *link = world_link(&w, "w0", "s0");
    link->cut = true;
    world_client_close(&w, 0);
    link->cut = false;
    world_client_open(&w, 0);
    keys[0] = 1;
    assert_int_equal(world_push(&w, 0, 0, keys, 1, vals, DIM, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    assert_int_equal(scan_run(w.clients[0].client, &w.tables[0], false, 0, count_rows, &rows), PARAMO_OK);
    assert_int_equal(rows, N + 1);
    world_fini(&w);
}

static void count_hellos(void *arg, uint32_t from, uint32_t to, const uint8_t head[VAN_HEAD])
{
    (void)from;
    (void)to;
    *(unsigned *)arg += head[0] == WIRE_HELLO;
}

/* The client gives up an attempt to connect, and its next attempt arrives before the first. Answers go over the
 * connection that the client uses, at once: no push waits for a probe. */
static void hello_comes_late(void **state)
{
    (void)state;
    begin(1, 2, 1);
    chain(0, 0, 1, RING_NONE);
    view();
    push(0, 7);
    unsigned hellos = 0;
    const struct simvan_watch watch = {.arrives = count_hellos, .arg = &hellos};
    assert_int_equal(van_sim_watch(w.net, &watch), PARAMO_OK);
    struct simnet_link *link = world_link(&w, "w0", "s0");
    link->late_ppm = 1000000;
    link->late_ns = 3 * ENV_SEC; /* later than connect_timeout_ms */
    van_sim_reset(w.clients[0].van, UINT32_MAX);
    uint64_t ts, key = 7;
    const float one = 1;
    assert_int_equal(world_push(&w, 0, 0, &key, 1, &one, 1, &ts), PARAMO_OK);
    world_pass(&w, 100 * ENV_MS);
    link->late_ppm = 0;
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    assert_int_equal(hellos, 1); /* of the second attempt */
    world_pass(&w, 5 * ENV_SEC);
    assert_int_equal(hellos, 2);
    for (unsigned i = 0; i < 10; i++) {
        uint64_t before = sim_now(w.sim);
        push(0, 7);
        assert_in_range(sim_now(w.sim) - before, 1, 5 * ENV_MS);
    }
    assert_true(pulled(0, 7) == 12);
    world_fini(&w);
}

/* A customer that is closed leaves nothing, at no member of a chain; other connections of it may be open. */
static void closed(void **state)
{
    (void)state;
    begin(2, 3, 2);
    chain(0, 0, 1, 2);
    view();
    push(0, 7);
    for (unsigned s = 0; s < 3; s++)
        assert_int_equal(kept_at(s, 0), 1);
    world_client_close(&w, 0);
    world_pass(&w, ENV_SEC);
    for (unsigned s = 0; s < 3; s++)
        assert_int_equal(kept_at(s, 0), 0);
    assert_null(sender_at(0, 0));
    world_fini(&w);
}

/* One that no view has had may be newer than the view, for a while. */
static void unknown_sender(void **state)
{
    (void)state;
    begin(0, 1, 2);
    push(0, 7);
    push(1, 7);
    world_client_close(&w, 1);
    world_pass(&w, ENV_SEC);
    w.clients[1].incarnation++;
    world_client_open(&w, 1);
    uint64_t ts, key = 7;
    const float one = 1;
    assert_int_equal(world_push(&w, 1, 0, &key, 1, &one, 1, &ts), PARAMO_OK);
    world_pass(&w, SHARD_UNKNOWN_SENDER_SECONDS / 2 * ENV_SEC);
    assert_non_null(sender_at(0, 1));
    world_pass(&w, SHARD_UNKNOWN_SENDER_SECONDS * ENV_SEC);
    assert_null(sender_at(0, 1));
    assert_non_null(sender_at(0, 0)); /* silent, and known */
    world_fini(&w);
}

/* ---- many ---- */

static struct sender_id name(uint32_t i)
{
    return (struct sender_id){
        .node = PARAMO_ID_WORKER(i / 8), .app = i % 2, .customer = i % 4, .incarnation = i / 8 + 1};
}

/* Each of many senders has one record, however many there are; those that end are gone, and no others. */
static void many_followed(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    struct chain_origin *o = origin_make((struct chain_name){.node = 8});
    static struct chain_sender *made[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        struct sender_id id = name(i);
        made[i] = origin_sender(o, &id);
        assert_non_null(made[i]);
    }
    assert_int_equal(o->senders_count, MANY / 2); /* of eight, four have the name of another */
    for (uint32_t i = 0; i < MANY; i++) {
        struct sender_id id = name(i);
        assert_ptr_equal(origin_sender(o, &id), made[i]);
        assert_true(sender_id_equal(&made[i]->id, &id));
    }
    for (uint32_t i = 0; i < MANY; i += 16) {
        struct chain_message m = {.what = CHAIN_FORGET, .sender = name(i), .request = {.floor = 1}};
        origin_sender_forget(o, &m);
        origin_sender_forget(o, &m);
    }
    assert_int_equal(o->senders_count, MANY / 2 - (MANY + 15) / 16);
    unsigned left = 0;
    for (const struct chain_sender *x = o->senders; x; x = x->next, left++)
        assert_true(x->id.app || x->id.customer || (x->id.node - PARAMO_ID_WORKER(0)) / 2 % 2);
    assert_int_equal(left, o->senders_count);
    origin_fini(o);
}

/* ---- what is said again ---- */

static void send_floors(void *arg)
{
    struct peer *peer = arg;
    struct wire_head head = {.kind = WIRE_FLOOR, .floor = peer->sender->applied_window.own.floor};
    uint8_t bytes[VAN_HEAD];
    wire_head_encode(&head, bytes);
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(shard_van_user.frame(peer, peer->conn, bytes, NULL, 0), PARAMO_OK);
}

/* A worker says its floor over and over while the follower stands still: what waits for that does not grow.
 */
static void floors_sent_again(void **state)
{
    (void)state;
    begin(1, 2, 2);
    chain(0, 0, 1, RING_NONE);
    view();
    push(0, 7);
    world_link(&w, "s0", "s1")->cut = true;
    const struct sender *sender = sender_at(0, 0);
    assert_false(applied_window_is_empty(&sender->applied_window));
    world_on_lane(w.servers[0].lane, send_floors, sender->peer);
    assert_in_range(w.servers[0].shard->chain->streams->count, 0, 1);
    world_link(&w, "s0", "s1")->cut = false;
    push(0, 7);
    assert_true(pulled(1, 7) == 2);
    world_fini(&w);
}

/* ---- those that say nothing ---- */

struct ordered {
    struct shard *shard;
    uint32_t what;
    struct migration_order fields;
    bool done;
    paramo_err status;
};

static void answered(void *arg, paramo_err status)
{
    struct ordered *o = arg;
    o->done = true;
    o->status = status;
}

static void carry_out(void *arg)
{
    struct ordered *o = arg;
    shard_migration_order(o->shard, o->what, &o->fields, answered, o);
}

static bool order_done(unsigned server, uint32_t what, const struct migration_order *m)
{
    static struct ordered o;
    o = (struct ordered){.shard = w.servers[server].shard, .what = what, .fields = *m};
    world_on_lane(w.servers[server].lane, carry_out, &o);
    for (unsigned i = 0; i < 20 && !o.done; i++)
        world_pass(&w, 10 * ENV_MS);
    return o.done && !o.status;
}

static bool migration(unsigned from, unsigned to, unsigned first, unsigned partitions)
{
    static uint64_t id = UINT64_C(1) << 32;
    struct migration_order f = {.id = ++id,
                                .first = (uint16_t)first,
                                .partitions = (uint16_t)partitions,
                                .from = {.node = PARAMO_ID_SERVER(from)},
                                .to = {.node = PARAMO_ID_SERVER(to)},
                                .had = MIGRATION_NO_LEVEL,
                                .takes_over = true};
    if (!order_done(from, ORDER_MIGRATION_SOURCE, &f) || !order_done(to, ORDER_MIGRATION_TARGET, &f) ||
        !order_done(from, ORDER_MIGRATION_PAUSE, &f))
        return false;
    for (unsigned a = first; a < first + partitions; a++)
        w.ring.owner[a] = (uint16_t)to;
    w.moved[to] = f.id;
    w.partitions_changed[from] = w.partitions_changed[to] = w.number + 1;
    for (unsigned s = 0; s < w.servers_count; s++)
        w.chain_changed[s] = w.number + 1;
    world_view(&w);
    world_all_view(&w);
    f.committed = true;
    return order_done(from, ORDER_MIGRATION_END, &f) && order_done(to, ORDER_MIGRATION_END, &f);
}

/* A worker pushes once and is silent, cut off even: partitions go to and fro as often as they like, and what
 * is kept of it is that one number. */
static void silent(void **state)
{
    (void)state;
    begin(0, 2, 2);
    chain(0, 1, RING_NONE, RING_NONE);
    for (unsigned a = 0; a < 2048; a++)
        w.ring.owner[a] = 0;
    view();
    push(1, 7);
    push(1, 4000);
    for (unsigned s = 0; s < 2; s++) {
        char name[] = {'s', (char)('0' + s), 0};
        world_link(&w, "w1", name)->cut = world_link(&w, name, "w1")->cut = true;
    }
    for (unsigned round = 0; round < 4; round++)
        for (unsigned first = 0; first < 2048; first += 32) {
            push(0, 7);
            push(0, 4000);
            assert_true(migration(round % 2, 1 - round % 2, first, 32));
            assert_true(kept_at(0, 1) <= 3 && kept_at(1, 1) <= 3);
        }
    world_link(&w, "w1", "s0")->cut = world_link(&w, "s0", "w1")->cut = false;
    push(1, 7);
    assert_true(pulled(0, 7) == 4 * 64 + 2);
    world_fini(&w);
}

/* The last copy is promoted, whatever records of senders it has. */
static void silent_and_promoted(void **state)
{
    (void)state;
    begin(1, 3, 2);
    chain(0, 0, 1, RING_NONE);
    for (unsigned a = 3072; a < RING_PARTITIONS; a++)
        w.ring.owner[a] = 2;
    for (unsigned a = 0; a < 2240; a++)
        w.follower[1].owner[a] = 2;
    view();
    push(1, 2400);
    push(1, 4000);
    world_link(&w, "w1", "s0")->cut = world_link(&w, "w1", "s1")->cut = world_link(&w, "w1", "s2")->cut =
        true;
    for (unsigned first = 0; first < 2240; first += 32) {
        push(0, 2400);
        push(0, 4000);
        assert_true(migration(0, 1, first, 32));
    }
    world_server_stop(&w, 0);
    world_server_gone(&w, 0);
    view();
    assert_int_equal(given_up, 0);
    world_server_stop(&w, 2);
    world_server_gone(&w, 2);
    view();
    assert_int_equal(given_up, 0);
    assert_true(pulled(0, 2400) == 71 && pulled(0, 4000) == 71);
    world_fini(&w);
}

static unsigned notes_at(unsigned server, unsigned client)
{
    size_t bytes;
    const struct sender *own = sender_at(server, client);
    return own ? (unsigned)applied_window_count_notes(&own->applied_window, &bytes) : 0;
}

/* Worker 1's way to the server, and back. */
static void cut_off(unsigned server, bool there, bool back)
{
    char name[16];
    (void)snprintf(name, sizeof name, "s%u", server);
    world_link(&w, "w1", name)->cut = there;
    world_link(&w, name, "w1")->cut = back;
}

/* A server joins 64 others, and each gives it partitions with a record of its own: a worker has pushed another number
 * there, says nothing since, and has not heard of its pushes. All of them come. Then it sends its pushes again, and
 * none is applied twice, whether its partition has moved or not. */
static void joined_64_others(void **state)
{
    enum { OTHERS = 64, EACH = RING_PARTITIONS / OTHERS, JOINED = OTHERS };
    static uint64_t key[2 * OTHERS], ts[2 * OTHERS];
    static const float one = 1;
    (void)state;
    begin(0, OTHERS + 1, 2);
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        w.ring.owner[a] = (uint16_t)(a / EACH);
    for (unsigned s = 0; s < w.servers_count; s++)
        w.partitions_changed[s] = w.chain_changed[s] = w.number + 1;
    view();
    for (unsigned s = 0; s < OTHERS; s++) {
        push(1, s * EACH); /* they are connected */
        cut_off(s, false, true);
    }
    for (unsigned i = 0; i < 2 * OTHERS;
         i++) { /* of each server one partition that will move, and one that stays */
        key[i] = i / 2 * EACH + i % 2 * (EACH - 1);
        assert_ok(world_push(&w, 1, 0, &key[i], 1, &one, 1, &ts[i]));
    }
    world_pass(&w, 200 * ENV_MS); /* all are applied, and no answer comes */
    for (unsigned s = 0; s < OTHERS; s++)
        cut_off(s, true, true);
    for (unsigned s = 0; s < OTHERS; s++)
        assert_true(migration(s, JOINED, s * EACH, 1));
    assert_int_equal(notes_at(JOINED, 1), 2 * OTHERS);
    assert_int_equal(given_up, 0);
    for (unsigned s = 0; s < OTHERS; s++)
        cut_off(s, false, false);
    for (unsigned i = 0; i < 2 * OTHERS; i++)
        assert_ok(world_wait(&w, 1, ts[i]));
    for (unsigned i = 0; i < 2 * OTHERS; i++)
        assert_true(pulled(0, key[i]) == (i % 2 ? 1 : 2));
    world_fini(&w);
}

/* Its host has vanished: nothing ends its connections but the view. */
static void vanished(void **state)
{
    (void)state;
    begin(1, 2, 2);
    push(1, 7);
    push(1, 4000);
    for (unsigned s = 0; s < 2; s++) {
        char name[] = {'s', (char)('0' + s), 0};
        world_link(&w, "w1", name)->cut = world_link(&w, name, "w1")->cut = true;
    }
    world_pass(&w, 60 * ENV_SEC);
    for (unsigned s = 0; s < 2; s++)
        assert_int_equal(w.servers[s].shard->senders->count, 1);
    w.clients[1].dead = true;
    view();
    for (unsigned s = 0; s < 2; s++) {
        assert_int_equal(w.servers[s].shard->senders->count, 0);
        assert_null(w.servers[s].shard->peers->first);
        assert_int_equal(kept_at(s, 1), 0);
    }
    push(0, 7);
    assert_true(pulled(0, 7) == 2);
    world_fini(&w);
}

static uint64_t frames_of(unsigned client)
{
    struct client_counters n;
    client_get_counters(w.clients[client].client, &n);
    return n.frames_sent;
}

/* An idle customer says its floor, once: nothing is kept of it, at no member, nor its handlers' answers. */
static void idle(void **state)
{
    (void)state;
    begin(2, 3, 1);
    chain(0, 0, 1, 2);
    view();
    uint64_t ts, key = 7;
    paramo_kv kv = {.size = sizeof kv, .keys = &key, .n = 1};
    struct client_call call = {.kind = REQUEST_PULL, .table = &w.tables[USER], .kv = &kv};
    assert_int_equal(client_issue(w.clients[0].client, &call, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    push(0, 7);
    push(0, 4000);
    uint64_t before = frames_of(0);
    for (unsigned s = 0; s < 3; s++)
        assert_int_equal(kept_at(s, 0) > 0, true);
    world_pass(&w, 3 * ENV_SEC);
    for (unsigned s = 0; s < 3; s++) {
        assert_int_equal(kept_at(s, 0), 0);
        assert_int_equal(w.servers[s].shard->handling->kept_bytes, 0);
    }
    assert_int_equal(frames_of(0), before + 1);
    world_pass(&w, 60 * ENV_SEC);
    assert_int_equal(frames_of(0), before + 1);
    push(0, 7);
    assert_true(pulled(0, 7) == 2);
    world_fini(&w);
}

/* A record that comes with partitions knows of a higher floor: the answers below it are let go. */
static void answers_below_a_floor_that_came(void **state)
{
    (void)state;
    begin(0, 2, 1);
    chain(0, 1, RING_NONE, RING_NONE);
    for (unsigned a = 0; a < 2048; a++)
        w.ring.owner[a] = 0;
    view();
    uint64_t ts, key = UINT64_MAX; /* on the last partition */
    paramo_kv kv = {.size = sizeof kv, .keys = &key, .n = 1};
    struct client_call call = {.kind = REQUEST_PULL, .table = &w.tables[USER], .kv = &kv};
    assert_int_equal(client_issue(w.clients[0].client, &call, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    push(0, 7);
    push(0, 7);
    assert_true(w.servers[1].shard->handling->kept_bytes > 0);
    assert_true(migration(0, 1, 0, 32));
    assert_int_equal(w.servers[1].shard->handling->kept_bytes, 0);
    world_fini(&w);
}

/* What waits for a view comes before what came later, and waits for a follower. */
static void in_order(void **state)
{
    (void)state;
    begin(1, 2, 1);
    chain(0, 0, 1, RING_NONE);
    view();
    uint64_t ts, key = 7;
    paramo_kv kv = {.size = sizeof kv, .keys = &key, .n = 1};
    struct client_call call = {.kind = REQUEST_PULL, .table = &w.tables[USER], .kv = &kv};
    world_link(&w, "s0", "s1")->cut = world_link(&w, "s1", "s0")->cut = true;
    world_view(&w);
    world_client_view(&w, 0);
    for (unsigned i = 0; i < 6; i++) { /* the lease ends after 500 ms */
        assert_int_equal(client_issue(w.clients[0].client, &call, &ts), PARAMO_OK);
        world_pass(&w, 200 * ENV_MS);
    }
    assert_false(queue_empty(&w.servers[0].shard->kept->for_view));
    assert_false(queue_empty(&w.servers[0].shard->peers->first->deferred));
    world_all_view(&w);
    world_link(&w, "s0", "s1")->cut = world_link(&w, "s1", "s0")->cut = false;
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    assert_int_equal(last_handled, ts);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opened_again),
        cmocka_unit_test(opened_again_and_promoted),
        cmocka_unit_test(opened_again_and_scans),
        cmocka_unit_test(hello_comes_late),
        cmocka_unit_test(closed),
        cmocka_unit_test(floors_sent_again),
        cmocka_unit_test(unknown_sender),
        cmocka_unit_test(many_followed),
        cmocka_unit_test(silent),
        cmocka_unit_test(silent_and_promoted),
        cmocka_unit_test(joined_64_others),
        cmocka_unit_test(vanished),
        cmocka_unit_test(idle),
        cmocka_unit_test(answers_below_a_floor_that_came),
        cmocka_unit_test(in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
