/* Memory, or room, fails where a chain cannot do without it: the shard says so, once, and serves no more.
 * Where it can, it does. */
#include "env/lane_impl.h"
#include "server/replication/chain_impl.h"
#include "server/shard/clearing.h"
#include "server/shard/reply.h"
#include "server/shard/senders.h"
#include "server/shard/shard_tables.h"
#include "server/snapshot/loading.h"
#include "server/snapshot/saving.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "table/table.h"
#include "table/table_page.h"
#include "wire/migration_order.h"
#include "wire/order.h"
#include "worker/client_impl.h"
#include "worker/scan.h"
#include "worker/support_world.h"

/* The linker gives us what this program asks for memory (CMakeLists.txt). */
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

/* On the one thread of a simulation: */
static size_t lacking; /* allocations of this size fail (of a calloc: of each, or of all) */
static size_t most;    /* longer blocks of malloc fail; 0: no limit */
static bool nothing;   /* is to be had */
static bool no_rows;   /* nothing of what tables are made of */

void *__wrap_calloc(size_t count, size_t size)
{
    return nothing || (lacking && (size == lacking || count * size == lacking)) ? NULL
                                                                                : __real_calloc(count, size);
}

void *__wrap_malloc(size_t size)
{
    return nothing || (lacking && size == lacking) || (most && size > most) ? NULL : __real_malloc(size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return nothing ? NULL : __real_realloc(p, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return nothing || no_rows ? NULL : __real_aligned_alloc(alignment, size);
}

struct told {
    unsigned times;
    paramo_err status;
    char text[512];
};

static void told(void *arg, paramo_err status)
{
    struct told *t = arg;
    t->times++;
    t->status = status;
    (void)strncpy(t->text, err_text(), sizeof t->text - 1);
}

static void follower_is(struct world *w, unsigned follower)
{
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        if (w->ring.owner[a] == 0)
            w->follower[1].owner[a] = (uint16_t)follower;
    for (unsigned i = 0; i < 4; i++)
        w->chain_changed[i] = w->number + 1;
    world_view(w);
}

/* Server 0 has no memory for the connection to its new follower. */
static void no_memory_for_a_stream(void **state)
{
    (void)state;
    struct world w;
    struct told t = {0};
    const uint64_t keys[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    enum { N = sizeof keys / sizeof *keys };
    const float vals[N] = {0};
    uint64_t ts;
    world_init(&w, true, 1);
    w.replicas = 1;
    w.failed = told;
    w.handler_arg = &t;
    w.timeout_ms = 2000;
    world_table(&w, PARAMO_TABLE_SPARSE, 1);
    world_start(&w, 4, 3, 1);
    assert_int_equal(world_push(&w, 0, 0, keys, N, vals, N, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    assert_int_equal(t.times, 0);

    follower_is(&w, 3);
    lacking = sizeof(struct chain_stream);
    world_server_view(&w, 0);
    lacking = 0;
    assert_int_equal(t.times, 1);
    assert_int_equal(t.status, PARAMO_E_MEMORY);
    assert_non_null(strstr(t.text, "cannot continue its chains: out of memory"));
    world_all_view(&w);

    /* Not answered, whatever the next view says: others may not have it. */
    assert_int_equal(world_push(&w, 0, 0, keys, N, vals, N, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_TIMEOUT);
    follower_is(&w, 1);
    world_all_view(&w);
    assert_int_equal(t.times, 1);
    world_fini(&w);
}

/* Memory fails while server 0 routes, in turns, what its dead follower had not acknowledged: what has no way is never
 * answered, and the shard says so once. */
static void no_memory_to_route(void **state)
{
    (void)state;
    struct world w;
    struct told t = {0};
    enum { PUSHES = 60 };
    const uint64_t keys[] = {0, RING_PARTITIONS - 1};
    const float vals[] = {1, 1};
    uint64_t ts[PUSHES];
    world_init(&w, true, 1);
    w.replicas = 2;
    w.failed = told;
    w.handler_arg = &t;
    w.timeout_ms = 5000;
    w.turn_records = 1;
    world_table(&w, PARAMO_TABLE_DENSE, 1)->rows = RING_PARTITIONS;
    world_start(&w, 4, 4, 1);
    for (unsigned a = 0; a < RING_PARTITIONS; a++) {
        w.ring.owner[a] = 0;
        w.follower[1].owner[a] = 1;
        w.follower[2].owner[a] = a < RING_PARTITIONS / 2 ? 2 : 3;
    }
    for (unsigned i = 0; i < 4; i++)
        w.partitions_changed[i] = w.chain_changed[i] = w.number + 1;
    world_view(&w);
    world_all_view(&w);
    world_pass(&w, ENV_SEC);
    world_link(&w, "s0", "s1")->cut = true;
    for (unsigned i = 0; i < PUSHES; i++)
        assert_int_equal(world_push(&w, 0, 0, keys, 2, vals, 2, &ts[i]), PARAMO_OK);
    world_pass(&w, 100 * ENV_MS);
    const struct chain *c = w.servers[0].shard->chain;
    const struct chain_stream *st = c->streams;
    while (st->to.node != PARAMO_ID_SERVER(1))
        st = st->next;
    assert_int_equal(st->count, PUSHES);
    size_t bytes = container_of(st->entries.head, struct chain_entry, node)->bytes;
    world_server_stop(&w, 1);
    world_server_gone(&w, 1);
    world_all_view(&w);
    world_pass(&w, 20 * ENV_MS);
    assert_true(chain_routes(c));
    assert_int_equal(t.times, 0);
    lacking = bytes;
    world_pass(&w, 100 * ENV_MS);
    lacking = 0;
    assert_false(chain_routes(c));
    assert_int_equal(t.times, 1);
    assert_int_equal(t.status, PARAMO_E_MEMORY);
    assert_int_equal(world_wait(&w, 0, ts[PUSHES - 1]), PARAMO_E_TIMEOUT);
    world_fini(&w);
}

static struct shard_table *table_of(struct world *w, unsigned server, unsigned table)
{
    return shard_table_find(w->servers[server].shard, table + 1);
}

static bool pushed(void *table)
{
    return ((const struct shard_table *)table)->pushes > 0;
}

/* A pushpull is applied and goes along the chain, and there is no memory for its answer at that moment. When the
 * chain has acknowledged, the client must not get OK without values: it asks again, and they are read. */
static void no_memory_for_the_values_of_a_pushpull(void **state)
{
    (void)state;
    struct world w;
    uint64_t key = 1, ts;
    float one = 1;
    paramo_kv kv = {.size = sizeof kv, .keys = &key, .n = 1, .vals = &one, .vals_len = 1};
    world_init(&w, true, 1);
    w.replicas = 1;
    w.timeout_ms = 20000;
    world_table(&w, PARAMO_TABLE_SPARSE, 1);
    world_start(&w, 2, 2, 1);
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        w.ring.owner[a] = 0;
    for (unsigned i = 0; i < 2; i++)
        w.partitions_changed[i] = w.number + 1;
    follower_is(&w, 1);
    world_all_view(&w);
    struct client_call call = {.kind = REQUEST_PUSHPULL, .table = &w.tables[0], .kv = &kv};
    struct shard_table *t = table_of(&w, 0, 0);
    assert_false(pushed(t));
    assert_int_equal(client_issue(w.clients[0].client, &call, &ts), PARAMO_OK);
    lacking = sizeof(struct reply);
    assert_true(sim_run(w.sim, pushed, t, sim_now(w.sim) + ENV_SEC));
    lacking = 0;
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    assert_true(one == 1);
    assert_int_equal(t->pushes, 1);
    world_fini(&w);
}

static bool cleared(void *shard)
{
    return !((const struct shard *)shard)->clearing->tables;
}

/* Every second partition of server 0 goes to server 1, and there is no memory at all as server 0 hears of it.
 */
static void partitions_go_without_memory(void **state)
{
    (void)state;
    enum { SPARSE, SMALL, VAR, DENSE, TABLES, N = 60000 };
    static uint64_t keys[N];
    static float vals[8 * N];
    static uint32_t lens[N];
    struct world w;
    struct told t = {0};
    uint64_t ts;
    for (unsigned i = 0; i < N; i++) {
        keys[i] = i;
        lens[i] = 1;
    }
    for (unsigned i = 0; i < 8 * N; i++)
        vals[i] = 1;
    world_init(&w, true, 1);
    w.migrations = true;
    w.failed = told;
    w.handler_arg = &t;
    world_table(&w, PARAMO_TABLE_SPARSE, 8);
    world_table(&w, PARAMO_TABLE_SPARSE, 1);
    world_table(&w, PARAMO_TABLE_VAR, 1);
    world_table(&w, PARAMO_TABLE_DENSE, 8)->rows = N;
    world_start(&w, 2, 1, 1);
    for (unsigned i = 0; i < TABLES; i++) {
        paramo_kv kv = {.size = sizeof kv,
                        .keys = keys,
                        .n = N,
                        .vals = vals,
                        .vals_len = i == SPARSE || i == DENSE ? 8 * N : N,
                        .lens = i == VAR ? lens : NULL};
        struct client_call push = {.kind = REQUEST_PUSH, .table = &w.tables[i], .kv = &kv};
        assert_int_equal(client_issue(w.clients[0].client, &push, &ts), PARAMO_OK);
        assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    }

    for (unsigned a = 0; a < RING_PARTITIONS; a += 2)
        w.ring.owner[a] = 1;
    for (unsigned i = 0; i < 2; i++)
        w.partitions_changed[i] = w.chain_changed[i] = w.number + 1;
    world_view(&w);
    nothing = true;
    world_server_view(&w, 0);
    (void)sim_run(w.sim, cleared, w.servers[0].shard, sim_now(w.sim) + ENV_SEC);
    nothing = false;
    assert_true(cleared(w.servers[0].shard));
    assert_int_equal(t.times, 0);
    for (unsigned i = 0; i < TABLES; i++) {
        const struct shard_table *its = table_of(&w, 0, i);
        size_t left = 0;
        for (unsigned k = 0; k < N; k++)
            left += ring_partition(ring_position(&its->placement, keys[k])) % 2;
        assert_in_range(left, N / 3, N - N / 3);
        assert_int_equal(table_rows(its->table), i == DENSE ? N : left);
        struct table_count count = {0};
        while (!count.done)
            table_count_step(its->table, &count, SIZE_MAX / 2, NULL, NULL);
        assert_int_equal(count.nonzero, (i == SPARSE || i == DENSE ? 8 : 1) * left);
    }
    world_fini(&w);
}

static paramo_err stat_of(struct world *w, struct client_stats *stats)
{
    uint64_t ts;
    struct client_call call = {.kind = REQUEST_STAT, .table = &w->tables[0], .stats = stats};
    assert_int_equal(client_issue(w->clients[0].client, &call, &ts), PARAMO_OK);
    return world_wait(w, 0, ts);
}

static int stop_at_rows(void *arg, const struct scan_rows *rows)
{
    (void)arg;
    return rows->n > 0;
}

/* A scan of servers that have copies of others' rows, too, without memory for a page of keys: an error, and
 * no harm. A count needs none. */
static void no_memory_for_a_scan(void **state)
{
    (void)state;
    enum { N = 1237 };
    static uint64_t keys[N];
    static const float vals[8 * N];
    struct world w;
    struct client_stats stats;
    uint64_t ts;
    for (unsigned i = 0; i < N; i++)
        keys[i] = i;
    world_init(&w, true, 1);
    w.replicas = 1;
    world_table(&w, PARAMO_TABLE_SPARSE, 8);
    world_start(&w, 2, 2, 1);
    assert_int_equal(world_push(&w, 0, 0, keys, N, vals, 8 * N, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    lacking = 8 * (N + N / 8 + 64); /* each of the two has all rows */
    assert_int_equal(stat_of(&w, &stats), PARAMO_OK);
    assert_int_equal(stats.rows, N);
    assert_int_equal(scan_run(w.clients[0].client, &w.tables[0], false, 0, stop_at_rows, NULL),
                     PARAMO_E_MEMORY);
    lacking = 0;
    assert_int_equal(scan_run(w.clients[0].client, &w.tables[0], false, 0, stop_at_rows, NULL),
                     PARAMO_E_INTERRUPTED);
    assert_int_equal(stat_of(&w, &stats), PARAMO_OK);
    assert_int_equal(stats.rows, N);
    world_fini(&w);
}

/* Both servers know that server 1 has all partitions now; the client does not. */
static void view_missed(struct world *w, uint32_t timeout_ms)
{
    world_init(w, true, 1);
    w->timeout_ms = timeout_ms;
    world_table(w, PARAMO_TABLE_SPARSE, 1);
    world_start(w, 2, 1, 1);
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        w->ring.owner[a] = 1;
    for (unsigned i = 0; i < 2; i++)
        w->partitions_changed[i] = w->number + 1;
    world_view(w);
    world_server_view(w, 0);
    world_server_view(w, 1);
}

/* The client has no memory as it hears of a view that a request waits for: the request is still done.
 */
static void no_memory_for_a_view(void **state)
{
    (void)state;
    const uint64_t keys[] = {1, 2, 3, 4, 5, 6, 7, 8};
    enum { N = sizeof keys / sizeof *keys };
    const float vals[N] = {0};
    struct world w;
    uint64_t ts;
    view_missed(&w, 2000);
    assert_int_equal(world_push(&w, 0, 0, keys, N, vals, N, &ts), PARAMO_OK);
    nothing = true;
    world_client_view(&w, 0); /* it is not sent again */
    nothing = false;
    assert_int_equal(w.clients[0].client->view->number, w.number - 1);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    assert_int_equal(w.clients[0].client->view->number, w.number);
    world_fini(&w);
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static bool is_asked(void *arg)
{
    return ((const struct world_client *)arg)->wanted_view != 0;
}

static void nothing_fires(struct lane_timer *timer)
{
    (void)timer;
}

static void timers_fill(void *arg)
{
    struct world_client *c = arg;
    static struct lane_timer more[64];
    for (unsigned i = 0; c->lane->timers_count + 1 < c->lane->timers_capacity; i++) {
        assert_true(i < sizeof more / sizeof *more);
        more[i] = (struct lane_timer){.fire = nothing_fires};
        assert_int_equal(lane_timer_arm(c->lane, &more[i], UINT64_MAX), PARAMO_OK);
    }
}

/* The same, and there is no memory for the timer of another try either: the next request that needs the view asks for
 * it again. */
static void no_memory_for_a_view_or_a_timer(void **state)
{
    (void)state;
    const uint64_t keys[] = {1, 2, 3, 4, 5, 6, 7, 8};
    enum { N = sizeof keys / sizeof *keys };
    const float vals[N] = {0};
    struct world w;
    uint64_t ts[2];
    view_missed(&w, 20000);
    struct world_client *c = &w.clients[0];
    for (unsigned i = 0; i < 2; i++) {
        c->wanted_view = 0;
        assert_int_equal(world_push(&w, 0, 0, keys, N, vals, N, &ts[i]), PARAMO_OK);
        assert_true(sim_run(w.sim, is_asked, c, sim_now(w.sim) + ENV_SEC));
        assert_int_equal(c->wanted_view, w.number);
        if (i)
            break;
        world_on_lane(c->lane, timers_fill, c);
        nothing = true;
        world_client_view(&w, 0);
        nothing = false;
        assert_int_equal(c->client->view->number, w.number - 1);
    }
    world_client_view(&w, 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(world_wait(&w, 0, ts[i]), PARAMO_OK);
    world_fini(&w);
}

/* The same, and all that requests need is in the place of a server that has died: nothing that it answers says so. */
static void no_memory_for_the_view_of_a_death(void **state)
{
    (void)state;
    const uint64_t keys[] = {1, 2, 3, 4, 5, 6, 7, 8};
    enum { N = sizeof keys / sizeof *keys };
    const float vals[N] = {0};
    struct world w;
    uint64_t ts;
    world_init(&w, true, 1);
    w.timeout_ms = 20000;
    world_table(&w, PARAMO_TABLE_SPARSE, 1);
    world_start(&w, 1, 1, 1);
    struct world_client *c = &w.clients[0];
    assert_int_equal(world_push(&w, 0, 0, keys, N, vals, N, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
    world_server_stop(&w, 0);
    world_server_start(&w, 0);
    world_view(&w);
    world_server_view(&w, 0);
    world_on_lane(c->lane, timers_fill, c);
    nothing = true;
    world_client_view(&w, 0);
    nothing = false;
    c->wanted_view = 0;
    assert_int_equal(c->client->view->number, w.number - 1);
    assert_int_equal(world_push(&w, 0, 0, keys, N, vals, N, &ts), PARAMO_OK);
    assert_true(sim_run(w.sim, is_asked, c, sim_now(w.sim) + 5 * ENV_SEC));
    assert_int_equal(c->wanted_view, w.number);
    world_client_view(&w, 0);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_DATA_LOST); /* so the new server says */
    world_fini(&w);
}

/* A server has no memory for a table as it first hears of it: requests are told so until it has. In a dead
 * server's place the rows are lost then, and not zeros. */
static void no_memory_for_a_table(void **state)
{
    (void)state;
    static const paramo_table_kind kinds[] = {PARAMO_TABLE_SPARSE, PARAMO_TABLE_DENSE, PARAMO_TABLE_VAR};
    const uint64_t keys[] = {1, 2, 3, 4, 5, 6, 7, 8};
    enum { N = sizeof keys / sizeof *keys };
    float vals[N] = {0};
    uint32_t lens[N] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (unsigned i = 0; i < 6; i++) {
        bool recovered = i % 2;
        struct world w;
        uint64_t ts;
        world_init(&w, true, 1);
        w.timeout_ms = 2000;
        world_table(&w, kinds[i / 2], 1)->rows = kinds[i / 2] == PARAMO_TABLE_DENSE ? 4096 : 0;
        world_start(&w, 1, 1, 1);
        paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = N, .vals = vals, .vals_len = N};
        kv.lens = kinds[i / 2] == PARAMO_TABLE_VAR ? lens : NULL;
        struct client_call push = {.kind = REQUEST_PUSH, .table = &w.tables[0], .kv = &kv};
        world_server_stop(&w, 0);
        world_server_start(&w, 0);
        if (!recovered)
            memset(w.owner_gone, 0, sizeof w.owner_gone);
        world_view(&w);
        no_rows = true;
        world_all_view(&w);
        no_rows = false; /* it is tried again 100 ms later; on the way is less */
        assert_int_equal(client_issue(w.clients[0].client, &push, &ts), PARAMO_OK);
        assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_MEMORY);
        (void)sim_run(w.sim, never, NULL, sim_now(w.sim) + 200 * ENV_MS);
        assert_int_equal(client_issue(w.clients[0].client, &push, &ts), PARAMO_OK);
        assert_int_equal(world_wait(&w, 0, ts), recovered ? PARAMO_E_DATA_LOST : PARAMO_OK);
        world_fini(&w);
    }
}

/* Without memory even for the table's record the shard ends. A request that it handles before its end hears of
 * the memory: the view names the table. */
static void no_memory_for_a_record_of_a_table(void **state)
{
    (void)state;
    struct world w;
    struct told t = {0};
    uint64_t key = 1, ts;
    float one = 1;
    paramo_kv kv = {.size = sizeof kv, .keys = &key, .n = 1, .vals = &one, .vals_len = 1};
    world_init(&w, true, 1);
    w.timeout_ms = 2000;
    w.failed = told;
    w.handler_arg = &t;
    world_table(&w, PARAMO_TABLE_SPARSE, 1);
    world_start(&w, 1, 1, 1);
    struct client_call push = {.kind = REQUEST_PUSH, .table = &w.tables[0], .kv = &kv};
    world_server_stop(&w, 0);
    world_server_start(&w, 0);
    world_view(&w);
    lacking = sizeof(struct shard_table);
    world_all_view(&w);
    lacking = 0;
    assert_int_equal(t.times, 1);
    assert_int_equal(t.status, PARAMO_E_MEMORY);
    assert_int_equal(client_issue(w.clients[0].client, &push, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_MEMORY);
    world_fini(&w);
}

static void restored(void *arg, paramo_err status, const struct ckpt_file *file)
{
    (void)file;
    *(paramo_err *)arg = status;
}

static void restore(void *arg)
{
    struct shard *s = arg;
    paramo_err status = PARAMO_OK;
    struct shard_save_config config = {.number = 1, .id = 1, .arg = &status, .done = restored};
    assert_int_equal(shard_restore(s, &config), PARAMO_E_MEMORY);
    assert_non_null(strstr(err_text(), "out of memory for table"));
}

/* The rows of a table are lost and come back, but there is no memory for the table: nothing is restored, and
 * it is not said to be. */
static void no_memory_for_a_table_to_restore(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, true, 1);
    world_table(&w, PARAMO_TABLE_SPARSE, 1);
    world_start(&w, 1, 1, 1);
    world_server_stop(&w, 0);
    world_server_start(&w, 0);
    w.servers[0].recovered = true;
    w.lost_at = w.number + 1;
    memset(w.lost, RING_LEVELS, sizeof w.lost);
    world_view(&w);
    no_rows = true;
    world_all_view(&w);
    world_on_lane(w.servers[0].lane, restore, w.servers[0].shard);
    no_rows = false;
    world_fini(&w);
}

/* The shard becomes the owner of partitions that it followed, or that have no member left, and there are more senders
 * than may connect: their records are still kept. A copy does not end because of a sender. */
static void too_many_senders(void **state)
{
    for (unsigned replicas = 0; replicas < 2; replicas++) {
        struct world w;
        struct told t = {0};
        uint64_t key = 1, ts;
        float one = 1;
        paramo_kv kv = {.size = sizeof kv, .keys = &key, .n = 1, .vals = &one, .vals_len = 1};
        (void)state;
        world_init(&w, true, 1);
        w.replicas = replicas;
        w.migrations = true;
        w.failed = told;
        w.handler_arg = &t;
        world_table(&w, PARAMO_TABLE_SPARSE, 1);
        world_start(&w, 2, 2, 1);
        for (unsigned a = 0; a < RING_PARTITIONS; a++) {
            w.ring.owner[a] = 0;
            w.follower[1].owner[a] = 1;
        }
        w.partitions_changed[0] = w.partitions_changed[1] = w.chain_changed[0] = w.chain_changed[1] =
            w.number + 1;
        world_view(&w);
        world_all_view(&w);
        struct client_call push = {.kind = REQUEST_PUSH, .table = &w.tables[0], .kv = &kv};
        assert_int_equal(client_issue(w.clients[0].client, &push, &ts), PARAMO_OK);
        assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);
        struct shard *s = w.servers[1].shard;
        size_t before = s->senders->count;
        s->senders->most = 0;
        if (replicas) {
            world_server_gone(&w, 0); /* 1 has followed it */
        } else {                      /* the last copies are lost */
            w.servers[0].alive = false;
            w.lost_at = w.number + 1;
            for (unsigned a = 0; a < RING_PARTITIONS; a++) {
                w.lost[a] = RING_LEVELS;
                w.owner_gone[a] = w.number + 1;
                w.ring.owner[a] = 1;
            }
            w.partitions_changed[0] = w.partitions_changed[1] = w.number + 1;
            world_view(&w);
        }
        world_server_view(&w, 1);
        assert_int_equal(t.times, 0);
        assert_int_equal(s->senders->count, before + replicas);
        world_fini(&w);
    }
}

/* ---- migrations ---- */

struct ordered {
    struct shard *shard;
    uint32_t what;
    struct migration_order fields;
    bool done;
    paramo_err status;
};

static void order_done(void *arg, paramo_err status)
{
    struct ordered *o = arg;
    o->done = true;
    o->status = status;
}

static void carry_out(void *arg)
{
    struct ordered *o = arg;
    shard_migration_order(o->shard, o->what, &o->fields, order_done, o);
}

static bool is_done(void *arg)
{
    const struct ordered *o = arg;
    return o->done;
}

/* For a while the source has no memory for a block of rows: it sends these rows later. */
static void no_memory_for_the_rows_of_a_migration(void **state)
{
    (void)state;
    enum { N = 60000, MIGRATE = RING_PARTITIONS / 2 }; /* more than one turn collects */
    static uint64_t keys[N];
    static float vals[N];
    struct world w;
    uint64_t ts;
    size_t there = 0;
    world_init(&w, true, 1);
    w.replicas = 1;
    w.migrations = true;
    world_table(&w, PARAMO_TABLE_SPARSE, 1);
    world_start(&w, 2, 2, 1);
    for (unsigned a = 0; a < RING_PARTITIONS; a++) {
        w.ring.owner[a] = 0;
        w.follower[1].owner[a] = RING_NONE;
    }
    for (unsigned i = 0; i < 2; i++)
        w.partitions_changed[i] = w.chain_changed[i] = w.number + 1;
    world_view(&w);
    world_all_view(&w);
    for (unsigned i = 0; i < N; i++) {
        keys[i] = i;
        there += ring_partition(ring_position(&table_of(&w, 0, 0)->placement, i)) < MIGRATE;
    }
    assert_int_equal(world_push(&w, 0, 0, keys, N, vals, N, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_OK);

    struct migration_order m = {.id = (UINT64_C(1) << 32) + 1,
                                .partitions = MIGRATE,
                                .from = {.node = PARAMO_ID_SERVER(0)},
                                .to = {.node = PARAMO_ID_SERVER(1)},
                                .level = 1,
                                .had = MIGRATION_NO_LEVEL};
    struct ordered source = {.shard = w.servers[0].shard, .what = ORDER_MIGRATION_SOURCE, .fields = m};
    struct ordered target = {.shard = w.servers[1].shard, .what = ORDER_MIGRATION_TARGET, .fields = m};
    most = 4096;
    world_on_lane(w.servers[0].lane, carry_out, &source);
    world_on_lane(w.servers[1].lane, carry_out, &target);
    (void)sim_run(w.sim, is_done, &target, sim_now(w.sim) + 500 * ENV_MS);
    most = 0;
    assert_true(source.done && !source.status && !target.done);
    assert_int_equal(table_rows(table_of(&w, 1, 0)->table), 0);
    (void)sim_run(w.sim, is_done, &target, sim_now(w.sim) + ENV_SEC);
    assert_true(target.done && !target.status);
    assert_int_equal(table_rows(table_of(&w, 1, 0)->table), there);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_memory_for_a_stream),
                                       cmocka_unit_test(no_memory_to_route),
                                       cmocka_unit_test(partitions_go_without_memory),
                                       cmocka_unit_test(no_memory_for_a_scan),
                                       cmocka_unit_test(no_memory_for_a_view),
                                       cmocka_unit_test(no_memory_for_a_view_or_a_timer),
                                       cmocka_unit_test(no_memory_for_the_view_of_a_death),
                                       cmocka_unit_test(no_memory_for_a_table),
                                       cmocka_unit_test(no_memory_for_the_values_of_a_pushpull),
                                       cmocka_unit_test(no_memory_for_a_record_of_a_table),
                                       cmocka_unit_test(too_many_senders),
                                       cmocka_unit_test(no_memory_for_a_table_to_restore),
                                       cmocka_unit_test(no_memory_for_the_rows_of_a_migration)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
