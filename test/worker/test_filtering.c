/* Requests through filters: the same results as without, fewer bytes, and nothing misread when what the ends of a
 * connection know has gone. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "filter/coding.h"
#include "filter/users.h"
#include "server/shard/peers.h"
#include "server/shard/shard_impl.h"
#include "wire/capability.h"
#include "worker/client_impl.h"
#include "worker/links.h"
#include "worker/support_world.h"

enum { SPARSE, VAR, USER, WIDE, TABLES };
enum { N = 4000, SEEN_MAX = 256 };

struct seen {
    uint64_t ts[SEEN_MAX];
    unsigned count;
};

/* Answers a pull with the keys, and notes the order of requests. */
static void note(void *arg, struct shard_request *q, const struct shard_request_info *info)
{
    struct seen *seen = arg;
    float *vals = malloc((info->n + 1) * sizeof *vals);
    if (seen && seen->count < SEEN_MAX)
        seen->ts[seen->count++] = info->ts;
    for (size_t i = 0; i < info->n; i++)
        vals[i] = (float)info->keys[i];
    assert_ok(shard_answer(q, info->pull ? vals : NULL, info->pull ? info->n : 0, NULL));
    free(vals);
}

static void world_make(struct world *w, unsigned servers, const char *filters, uint64_t capabilities,
                       struct seen *seen)
{
    world_init(w, true, 11);
    world_table(w, PARAMO_TABLE_SPARSE, 2);
    world_table(w, PARAMO_TABLE_VAR, 1);
    world_table(w, PARAMO_TABLE_USER, 1);
    world_table(w, PARAMO_TABLE_DENSE, 300000)->rows = 4; /* rows that are cut inside */
    w->handler = note;
    w->handler_arg = seen;
    w->capabilities = capabilities;
    assert_ok(filter_chains_parse(filters, w->filters));
    world_start(w, servers, servers, 1);
}

static struct client *client(struct world *w)
{
    return w->clients[0].client;
}

static void keys_fill(uint64_t *keys, unsigned from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        keys[i] = from + 3 * i;
}

/* One push and pull of n keys of a fixed table, and the hash of what was pulled. */
static uint64_t push_pull(struct world *w, unsigned table, unsigned from, size_t n, size_t row)
{
    uint64_t *keys = malloc(n * sizeof *keys), ts;
    float *vals = malloc(n * row * sizeof *vals), *out = calloc(n * row, sizeof *out);
    keys_fill(keys, from, n);
    for (size_t i = 0; i < n * row; i++)
        vals[i] = (float)(mix64(i + from) % 100) / 8;
    assert_ok(world_push(w, 0, table, keys, n, vals, n * row, &ts));
    assert_ok(world_wait(w, 0, ts));
    assert_ok(world_pull(w, 0, table, keys, n, out, n * row, &ts));
    assert_ok(world_wait(w, 0, ts));
    uint64_t hash = hash_bytes(out, n * row * sizeof *out);
    paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = n, .vals = vals, .vals_len = n * row};
    struct client_call call = {.kind = REQUEST_PUSHPULL, .table = &w->tables[table], .kv = &kv};
    assert_ok(client_issue(client(w), &call, &ts));
    assert_ok(world_wait(w, 0, ts));
    hash ^= mix64(hash_bytes(vals, n * row * sizeof *vals));
    free(keys);
    free(vals);
    free(out);
    return hash;
}

static uint64_t var_rows(struct world *w, unsigned from)
{
    uint64_t keys[100], ts;
    uint32_t lens[100];
    float vals[1000], out[1000];
    size_t total = 0;
    keys_fill(keys, from, 100);
    for (unsigned i = 0; i < 100; i++) {
        lens[i] = i % 7;
        for (unsigned k = 0; k < lens[i]; k++)
            vals[total++] = (float)(i * k);
    }
    paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = 100, .vals = vals, .vals_len = total, .lens = lens};
    struct client_call call = {.kind = REQUEST_PUSH, .table = &w->tables[VAR], .kv = &kv};
    assert_ok(client_issue(client(w), &call, &ts));
    assert_ok(world_wait(w, 0, ts));
    memset(lens, 0, sizeof lens);
    kv.vals = out;
    kv.vals_len = 1000;
    call.kind = REQUEST_PULL;
    assert_ok(client_issue(client(w), &call, &ts));
    assert_ok(world_wait(w, 0, ts));
    return hash_bytes(lens, sizeof lens) ^ mix64(hash_bytes(out, total * sizeof *out));
}

/* Everything with these filters: the hash of all results, and the bytes that the client sent and received. */
static uint64_t all(unsigned servers, const char *filters, uint64_t capabilities, uint64_t *bytes)
{
    struct world w;
    world_make(&w, servers, filters, capabilities, NULL);
    uint64_t hash = 0;
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned list = 0; list < 3; list++)
            hash = mix64(hash ^ push_pull(&w, SPARSE, 1000 * list, N, 2));
        hash = mix64(hash ^ push_pull(&w, USER, 5, 500, 1));
        hash = mix64(hash ^ push_pull(&w, WIDE, 0, 1, 300000));
        hash = mix64(hash ^ var_rows(&w, 17));
    }
    hash = mix64(hash ^ push_pull(&w, SPARSE, 9, 1, 2));
    hash = mix64(hash ^ push_pull(&w, SPARSE, 7, 150000, 2)); /* several chunks */
    struct client_counters c;
    client_get_counters(client(&w), &c);
    *bytes = c.bytes_sent + c.bytes_received;
    assert_int_equal(client(&w)->pool.out, 0);
    world_fini(&w);
    return hash;
}

static void results_are_the_same(void **state)
{
    static const char *const filters[] = {"push=keycache;pull=keycache", "push=lz4;pull=lz4",
                                          "push=keycache,zstd:1;pull=keycache,zstd:3", "pull=keycache,lz4",
                                          "push=keycache,lz4"};
    (void)state;
    for (unsigned servers = 1; servers <= 3; servers += 2) {
        uint64_t plain, bytes, want = all(servers, "push=none", 0, &plain);
        for (unsigned i = 0; i < sizeof filters / sizeof *filters; i++) {
            assert_int_equal(all(servers, filters[i], CAPABILITIES, &bytes), want);
            if (bytes > plain / 10 * 9)
                fail_msg("%s: %llu of %llu bytes", filters[i], (unsigned long long)bytes,
                         (unsigned long long)plain);
            /* A server that cannot do it gets plain frames (smaller ones, if a filter compresses). */
            assert_int_equal(all(servers, filters[i], 0, &bytes), want);
            assert_in_range(bytes, plain, plain + plain / 50);
        }
    }
}

static struct link *link_of(struct world *w)
{
    return client(w)->links->by_shard[0];
}

/* The client's list is forgotten here, and was never heard of there. */
static void forget_at_server(struct world *w)
{
    for (struct peer *p = w->servers[0].shard->peers->first; p; p = p->next)
        keylists_clear(&p->lists);
}

static void a_miss_begins_the_filters_again(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 1, "push=keycache;pull=keycache", CAPABILITIES, NULL);
    uint64_t want = push_pull(&w, USER, 0, 500, 1);
    assert_int_equal(push_pull(&w, USER, 0, 500, 1), want);
    assert_int_equal(client(&w)->counts->filters_again, 0);
    forget_at_server(&w);
    assert_int_equal(push_pull(&w, USER, 0, 500, 1), want);
    assert_int_equal(client(&w)->counts->filters_again, 1);
    assert_int_equal(link_of(&w)->filter_epoch, 1);
    assert_int_equal(push_pull(&w, USER, 0, 500, 1), want); /* it is remembered again */
    assert_int_equal(client(&w)->counts->filters_again, 1);
    struct filter_counts counts = {0};
    client_filter_counts(client(&w), &counts);
    assert_true(counts.of[FILTER_INDEX_keycache][FILTER_PUSH].messages >= 6);
    world_fini(&w);
}

/* Requests that follow one whose list is missed are handled after it. */
static void nothing_overtakes_a_miss(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    struct world w;
    static struct seen seen;
    seen.count = 0;
    world_make(&w, 1, "push=keycache;pull=keycache", CAPABILITIES, &seen);
    uint64_t keys[2][100], ts[COUNT], last;
    float vals[COUNT][100] = {{0}};
    keys_fill(keys[0], 0, 100);
    keys_fill(keys[1], 5, 100);
    for (unsigned i = 0; i < 2; i++) {
        assert_ok(world_push(&w, 0, USER, keys[i], 100, vals[0], 100, &last));
        assert_ok(world_wait(&w, 0, last));
    }
    for (unsigned miss = 0; miss < 3; miss++) {
        seen.count = 0;
        forget_at_server(&w);
        for (unsigned i = 0; i < COUNT; i++) /* lists that are named, plain requests, and again */
            assert_ok(world_push(&w, 0, USER, keys[i % 2], i % 3 == 2 ? 5 : 100, vals[i],
                                 i % 3 == 2 ? 5 : 100, &ts[i]));
        for (unsigned i = 0; i < COUNT; i++)
            assert_ok(world_wait(&w, 0, ts[i]));
        assert_int_equal(seen.count, COUNT); /* each once */
        for (unsigned i = 0; i < COUNT; i++)
            assert_int_equal(seen.ts[i], ts[i]);
    }
    assert_int_equal(client(&w)->counts->filters_again, 3);
    world_fini(&w);
}

/* The request whose list is missed is cancelled before that is known. */
static void a_cancelled_miss_holds_nothing_up(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 1, "push=keycache;pull=keycache", CAPABILITIES, NULL);
    uint64_t want = push_pull(&w, USER, 0, 500, 1), keys[500], first, second;
    float vals[2][500] = {{0}};
    keys_fill(keys, 0, 500);
    forget_at_server(&w);
    assert_ok(world_pull(&w, 0, USER, keys, 500, vals[0], 500, &first));
    assert_ok(world_pull(&w, 0, USER, keys, 5, vals[1], 5, &second));
    assert_ok(client_cancel(client(&w), first));
    assert_ok(world_wait(&w, 0, second));
    assert_int_equal(push_pull(&w, USER, 0, 500, 1), want);
    assert_int_equal(client(&w)->counts->filters_again, 1);
    assert_int_equal(client(&w)->counts->retries, 1); /* the second one */
    world_fini(&w);
}

/* What the ends know goes with the connection. */
static void a_new_connection_knows_nothing(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 1, "push=keycache;pull=keycache", CAPABILITIES, NULL);
    uint64_t want = push_pull(&w, USER, 0, 500, 1);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(link_of(&w)->lists.held > 0);
        van_sim_reset(w.clients[0].van, UINT32_MAX);
        assert_int_equal(push_pull(&w, USER, 0, 500, 1), want);
    }
    assert_int_equal(client(&w)->counts->filters_again, 0);
    world_fini(&w);
}

/* A server without room says so, and is sent no lists any more. */
static void a_full_server_is_sent_no_lists(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 1, "push=keycache;pull=keycache", CAPABILITIES, NULL);
    uint64_t want = push_pull(&w, USER, 0, 500, 1);
    forget_at_server(&w);
    w.servers[0].shard->peers->first->lists.most = 100;
    uint64_t keys[500], ts;
    float vals[500] = {0};
    keys_fill(keys, 0, 500);
    assert_ok(world_push(&w, 0, USER, keys, 500, vals, 500, &ts));
    assert_ok(world_wait(&w, 0, ts));
    assert_int_equal(client(&w)->counts->filters_again, 1);
    assert_false(link_of(&w)->lists.off); /* this miss was not for lack of room, but its list was not kept */
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(push_pull(&w, USER, 0, 500, 1), want);
    assert_int_equal(client(&w)->counts->filters_again, 2);
    assert_true(link_of(&w)->lists.off);
    world_fini(&w);
}

static void a_chain_may_change(void **state)
{
    (void)state;
    struct world w;
    static const char *const chains[] = {"keycache", "none", "zstd:2", "keycache,lz4"};
    world_make(&w, 2, "push=none", CAPABILITIES, NULL);
    uint64_t want = push_pull(&w, USER, 0, 500, 1);
    for (unsigned i = 0; i < 4; i++)
        for (unsigned d = 0; d < FILTER_DIRECTIONS; d++) {
            struct filter_chain chain;
            assert_ok(filter_chain_parse(chains[(i + d) % 4], (enum filter_direction)d, &chain));
            assert_true(lane_enter(w.clients[0].lane));
            assert_ok(client_filter(client(&w), &w.tables[USER], (enum filter_direction)d, &chain));
            lane_leave(w.clients[0].lane);
            assert_int_equal(push_pull(&w, USER, 0, 500, 1), want);
        }
    world_fini(&w);
}

/* Pushes three times and pulls without the filters of pulls: the hash of what the tables hold. changes: the chain
 * becomes another while a push is in flight; resets: the connections end while it is. */
static uint64_t pushed(const char *filters, uint64_t capabilities, bool resets, bool changes,
                       uint64_t *retries)
{
    struct world w;
    enum { MANY = 30000 };
    struct filter_chain none = {0};
    world_make(&w, 2, filters, capabilities, NULL);
    uint64_t *keys = malloc(MANY * sizeof *keys), ts;
    float *vals = malloc(2 * MANY * sizeof *vals);
    keys_fill(keys, 3, MANY);
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = 0; i < 2 * (size_t)MANY; i++)
            vals[i] = (float)(mix64(i + round) % 10007) / 7919.f - 0.5f;
        assert_ok(world_push(&w, 0, SPARSE, keys, MANY, vals, 2 * (size_t)MANY, &ts));
        if (changes) {
            assert_true(lane_enter(w.clients[0].lane));
            assert_ok(client_filter(client(&w), &w.tables[SPARSE], FILTER_PUSH, &none));
            lane_leave(w.clients[0].lane);
        }
        if (resets)
            van_sim_reset(w.clients[0].van, UINT32_MAX);
        assert_ok(world_wait(&w, 0, ts));
        if (changes) {
            struct filter_chain again;
            assert_ok(filter_chain_parse(strchr(filters, '=') + 1, FILTER_PUSH, &again));
            assert_true(lane_enter(w.clients[0].lane));
            assert_ok(client_filter(client(&w), &w.tables[SPARSE], FILTER_PUSH, &again));
            lane_leave(w.clients[0].lane);
        }
    }
    assert_ok(world_pull(&w, 0, SPARSE, keys, MANY, vals, 2 * (size_t)MANY, &ts));
    assert_ok(world_wait(&w, 0, ts));
    uint64_t hash = hash_bytes(vals, 2 * (size_t)MANY * sizeof *vals);
    *retries = client(&w)->counts->retries;
    assert_int_equal(client(&w)->pool.out, 0);
    world_fini(&w);
    free(keys);
    free(vals);
    return hash;
}

/* A push is rounded alike in each transmission, over each connection, and when its chain has changed since it began. */
static void a_push_is_rounded_once(void **state)
{
    static const char *const filters[] = {"push=fixed:1", "push=fixed:2", "push=fixed:3,keycache",
                                          "push=bf16", "push=fp16"};
    (void)state;
    uint64_t retries, plain = pushed("push=none", CAPABILITIES, false, false, &retries);
    for (unsigned i = 0; i < sizeof filters / sizeof *filters; i++) {
        uint64_t want = pushed(filters[i], CAPABILITIES, false, false, &retries);
        assert_int_not_equal(want, plain);
        assert_int_equal(pushed(filters[i], 0, false, false, &retries),
                         want); /* no server can take it back */
        assert_int_equal(pushed(filters[i], CAPABILITIES, true, false, &retries), want);
        assert_true(retries > 0);
        assert_int_equal(pushed(filters[i], CAPABILITIES, true, true, &retries), want);
    }
}

/* What is pulled is near what is there, and takes fewer bytes. */
static void a_pull_is_rounded(void **state)
{
    static const struct {
        const char *filters;
        double share; /* of the greatest value */
        unsigned bytes;
    } cases[] = {{"pull=fixed:1", 2 / 127., 1},
                 {"pull=fixed:2", 2 / 32767., 2},
                 {"pull=bf16", 1 / 256., 2},
                 {"pull=fp16", 1 / 2048., 2}};
    (void)state;
    for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct world w;
        world_make(&w, 1, cases[k].filters, CAPABILITIES, NULL);
        static uint64_t keys[N];
        static float vals[2 * N], out[2 * N];
        uint64_t ts, before;
        struct client_counters c;
        keys_fill(keys, 3, N);
        for (size_t i = 0; i < 2 * N; i++)
            vals[i] = (float)(mix64(i) % 10007) / 10007.f;
        assert_ok(world_push(&w, 0, SPARSE, keys, N, vals, 2 * N, &ts));
        assert_ok(world_wait(&w, 0, ts));
        client_get_counters(client(&w), &c);
        before = c.bytes_received;
        assert_ok(world_pull(&w, 0, SPARSE, keys, N, out, 2 * N, &ts));
        assert_ok(world_wait(&w, 0, ts));
        client_get_counters(client(&w), &c);
        assert_in_range(c.bytes_received - before, 2 * N * cases[k].bytes, 2 * N * cases[k].bytes + 300);
        for (size_t i = 0; i < 2 * N; i++)
            if (fabsf(out[i] - vals[i]) > (float)cases[k].share)
                fail_msg("%s: %g came as %g", cases[k].filters, (double)vals[i], (double)out[i]);
        assert_memory_not_equal(out, vals, sizeof out);
        world_fini(&w);
    }
}

/* Filters of the application: whole values without their zeros, one bit for each; and values cut to whole parts of
 * 1. */
static size_t nonzero_encode(void *user, float arg, const paramo_filter_data *data, void *to, size_t room)
{
    const uint32_t *from = data->from;
    size_t n = data->bytes / 4, at = (n + 7) / 8;
    uint8_t *out = to;
    unsigned *calls = user;
    (void)arg;
    ++*calls;
    if (!data->typed || data->bytes % 4 || at > room)
        return 0;
    memset(out, 0, at);
    for (size_t i = 0; i < n; i++) {
        if (!from[i])
            continue;
        if (at + 4 > room)
            return 0;
        out[i / 8] |= (uint8_t)(1 << i % 8);
        memcpy(out + at, &from[i], 4);
        at += 4;
    }
    return at;
}

static int nonzero_decode(void *user, float arg, const void *from, size_t bytes, void *to, size_t want)
{
    const uint8_t *in = from;
    size_t n = want / 4, at = (n + 7) / 8;
    (void)user;
    (void)arg;
    if (want % 4 || at > bytes)
        return -1;
    for (size_t i = 0; i < n; i++) {
        bool there = in[i / 8] >> i % 8 & 1;
        if (there && at + 4 > bytes)
            return -1;
        memset((uint8_t *)to + 4 * i, 0, 4);
        if (there)
            memcpy((uint8_t *)to + 4 * i, in + at, 4);
        at += there ? 4 : 0;
    }
    return at == bytes ? 0 : -1;
}

static int parts_round(void *user, float arg, paramo_filter_rows *rows)
{
    float *vals = rows->vals;
    (void)user;
    for (size_t i = 0; i < rows->n; i++)
        vals[i] = (float)(int)(vals[i] * arg) / arg;
    return 1;
}

static unsigned encoded;

static void users_register(void)
{
    filter_users_forget();
    paramo_filter nonzero = {.size = sizeof nonzero,
                             .name = "nonzero",
                             .user = &encoded,
                             .encode = nonzero_encode,
                             .decode = nonzero_decode};
    paramo_filter parts = {.size = sizeof parts,
                           .name = "parts",
                           .meta = "PARTS",
                           .min = 1,
                           .max = 64,
                           .preset = NAN,
                           .round = parts_round};
    assert_ok(filter_users_register(&nonzero));
    assert_ok(filter_users_register(&parts));
}

/* Pushes 2,000 values, most of them 0, and pulls them. Returns the hash of what came; *bytes: sent and received. */
static uint64_t sparse_values(struct world *w, uint64_t *bytes)
{
    uint64_t keys[1000], ts;
    float vals[2000] = {0}, out[2000];
    struct client_counters c;
    keys_fill(keys, 0, 1000);
    for (unsigned i = 0; i < 2000; i += 50)
        vals[i] = (float)i / 16;
    client_get_counters(client(w), &c);
    *bytes = c.bytes_sent + c.bytes_received;
    assert_ok(world_push(w, 0, SPARSE, keys, 1000, vals, 2000, &ts));
    assert_ok(world_wait(w, 0, ts));
    assert_ok(world_pull(w, 0, SPARSE, keys, 1000, out, 2000, &ts));
    assert_ok(world_wait(w, 0, ts));
    client_get_counters(client(w), &c);
    *bytes = c.bytes_sent + c.bytes_received - *bytes;
    return hash_bytes(out, sizeof out);
}

static void filters_of_the_application(void **state)
{
    (void)state;
    struct world w;
    uint64_t plain, bytes;
    users_register();
    uint64_t all_of_them = CAPABILITIES | filter_users_capabilities();
    world_make(&w, 1, "push=none", all_of_them, NULL);
    uint64_t want = sparse_values(&w, &plain);
    world_fini(&w);
    world_make(&w, 1, "push=nonzero;pull=nonzero", all_of_them, NULL);
    assert_int_equal(sparse_values(&w, &bytes), want);
    assert_true(plain > 32000 && bytes < plain - 14000);
    struct filter_counts counts = {0};
    client_filter_counts(client(&w), &counts);
    assert_int_equal(counts.of[FILTER_COUNT][FILTER_PUSH].messages, 1);
    assert_int_equal(counts.of[FILTER_COUNT][FILTER_PULL].received, 1);
    world_fini(&w);
    /* a server without them gets the values as they are */
    world_make(&w, 1, "push=nonzero;pull=nonzero", CAPABILITIES, NULL);
    assert_int_equal(sparse_values(&w, &bytes), want);
    assert_in_range(bytes, plain, plain + 100);
    world_fini(&w);
    /* after one that rounds, and before a compressor */
    world_make(&w, 1, "push=parts:2,keycache,nonzero,lz4", all_of_them, NULL);
    uint64_t rounded = sparse_values(&w, &bytes);
    assert_int_not_equal(rounded, want);
    world_fini(&w);
    world_make(&w, 1, "push=parts:2", 0, NULL);
    assert_int_equal(sparse_values(&w, &bytes), rounded);
    world_fini(&w);
    filter_users_forget();
}

/* The shard's end has the capability, but not the filter, as when two names share a bit: it says so, and gets the
 * values without it. */
static void an_unknown_filter_is_not_sent_again(void **state)
{
    (void)state;
    struct world w;
    uint64_t bytes;
    users_register();
    world_make(&w, 1, "push=nonzero", CAPABILITIES | filter_users_capabilities(), NULL);
    uint64_t keys[500], ts;
    float vals[500] = {1}, out[500];
    keys_fill(keys, 0, 500);
    paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = 500, .vals = vals, .vals_len = 500};
    struct client_call call = {.kind = REQUEST_PUSH, .table = &w.tables[USER], .kv = &kv};
    (void)sparse_values(&w, &bytes);
    unsigned before = encoded;
    assert_ok(client_issue(client(&w), &call, &ts));
    assert_int_equal(encoded, before + 1); /* it has left */
    filter_users_forget();
    assert_ok(world_wait(&w, 0, ts));
    assert_int_equal(client(&w)->counts->filters_again, 1);
    assert_true(link_of(&w)->user_filters_off);
    users_register(); /* although it is there again, this connection does without */
    assert_ok(client_issue(client(&w), &call, &ts));
    assert_ok(world_wait(&w, 0, ts));
    assert_int_equal(encoded, before + 1);
    van_sim_reset(w.clients[0].van, UINT32_MAX); /* another connection tries */
    assert_ok(client_issue(client(&w), &call, &ts));
    assert_ok(world_wait(&w, 0, ts));
    assert_int_equal(encoded, before + 2);
    (void)out;
    world_fini(&w);
    filter_users_forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(results_are_the_same),
                                       cmocka_unit_test(a_miss_begins_the_filters_again),
                                       cmocka_unit_test(nothing_overtakes_a_miss),
                                       cmocka_unit_test(a_cancelled_miss_holds_nothing_up),
                                       cmocka_unit_test(a_new_connection_knows_nothing),
                                       cmocka_unit_test(a_full_server_is_sent_no_lists),
                                       cmocka_unit_test(a_chain_may_change),
                                       cmocka_unit_test(a_push_is_rounded_once),
                                       cmocka_unit_test(a_pull_is_rounded),
                                       cmocka_unit_test(filters_of_the_application),
                                       cmocka_unit_test(an_unknown_filter_is_not_sent_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
