#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "cluster/session/address.h"
#include "cluster/view/view.h"

static struct view_node nodes[] = {
    {.id = 1, .role = PARAMO_ROLE_SCHEDULER, .incarnation = 1, .alive = true, .host = "a"},
    {.id = 8,
     .role = PARAMO_ROLE_SERVER,
     .incarnation = 2,
     .alive = true,
     .port = 5,
     .shards = 2,
     .weight = 3,
     .host = "::1",
     .domain = "rack-a"},
    {.id = 9, .role = PARAMO_ROLE_WORKER, .incarnation = 3, .left = true, .host = "b", .name = "w0"},
    {.id = 10,
     .role = PARAMO_ROLE_SERVER,
     .incarnation = 4,
     .recovered = true,
     .port = 6,
     .shards = 1,
     .weight = 1000000,
     .host = "c",
     .domain = "c"},
};
static struct view_shard shards[] = {{8, 0, 3, 3, 0}, {8, 1, 3, 5, 9}, {10, 0, 4, 4, 1}};
static struct view_table tables[] = {
    {.id = 1, .name = "w", .options = {.dim = 1, .placement = PARAMO_PLACE_MIXED}},
    {.id = 3, .name = "v", .since = 5, .options = {.dim = 8, .placement = PARAMO_PLACE_UNIFORM}},
};

static struct view *example(void)
{
    static struct view view;
    view = (struct view){.job = 7,
                         .number = (UINT64_C(1) << 32) + 9,
                         .num_servers = 2,
                         .num_workers = 1,
                         .complete = true,
                         .nodes_count = 4,
                         .shards_count = 3,
                         .tables_count = 2,
                         .nodes = nodes,
                         .shards = shards,
                         .tables = tables};
    struct ring_chains *c = &view.chains;
    memset(c->level, 0xff, sizeof c->level);
    c->replicas = 2;
    for (unsigned a = 0; a < RING_PARTITIONS - 1;
         a++) { /* the last partition has no owner; chains of one, two and three, and some with a hole */
        c->level[0].owner[a] = (uint16_t)(a / 1500);
        if (a > 100 && a < 3900)
            c->level[1].owner[a] = (uint16_t)((a / 1500 + 1) % 3);
        if (a > 3000)
            c->level[2].owner[a] = (uint16_t)((a / 1500 + 2) % 3);
        view.owner_gone[a] = a < 1000 ? 0 : a < 1001 ? 8 : view.number;
    }
    return &view;
}

static void check_lost(void)
{
    struct view *lossy = example(), *view;
    size_t whole = 0;
    lossy->lost_at = lossy->number;
    for (unsigned a = 20; a < 3000; a++)
        lossy->lost[a] = a < 1000 ? RING_LEVELS : a % 2;
    for (int which = 0; which < 5; which++) {
        struct writer w = {0};
        if (which == 1)
            lossy->lost[77] = RING_LEVELS + 1;
        if (which == 2)
            lossy->lost[77] = 0, lossy->lost_at = lossy->number + 1;
        if (which == 3)
            lossy->lost_at = 1, lossy->lost[RING_PARTITIONS - 1] = 1; /* no shard's */
        if (which == 4)
            memset(lossy->lost, 0, sizeof lossy->lost);
        view_encode(lossy, &w);
        for (size_t cut = 0; cut < (which ? 1 : w.len - whole); cut += 7) {
            struct reader r = reader_over(w.data, w.len - cut);
            assert_int_equal(view_decode(&r, &view), which || cut ? PARAMO_E_PROTOCOL : PARAMO_OK);
            if (which || cut)
                continue;
            assert_int_equal(view->lost_at, lossy->lost_at);
            assert_memory_equal(view->lost, lossy->lost, sizeof view->lost);
            view_unref(view);
            whole = w.len - 2 * 3000; /* the cuts that leave a part of what is lost */
        }
        writer_fini(&w);
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    check_lost();
    struct writer w = {0}, again = {0};
    view_encode(example(), &w);
    struct reader r = reader_over(w.data, w.len);
    struct view *view;
    assert_int_equal(view_decode(&r, &view), PARAMO_OK);
    view_encode(view, &again);
    assert_int_equal(again.len, w.len);
    assert_memory_equal(again.data, w.data, w.len);
    assert_memory_equal(&view->chains, &example()->chains, sizeof view->chains);
    assert_memory_equal(view->owner_gone, example()->owner_gone, sizeof view->owner_gone);
    assert_int_equal(view->shards[1].last_migration, 9);
    assert_int_equal(view->tables[1].since, 5);
    assert_ptr_equal(view_ring(view), &view->chains.level[0]);
    assert_int_equal(view_node(view, 8)->weight, 3);
    assert_string_equal(view_node(view, 8)->domain, "rack-a");
    assert_int_equal(view->shards[1].chain_changed, 5);

    assert_string_equal(view_node(view, 9)->name, "w0");
    assert_null(view_node(view, 11));
    assert_null(view_node(view, 0));
    assert_int_equal(view_table(view, 3)->options.dim, 8);
    assert_null(view_table(view, 2));
    assert_int_equal(view_table_named(view, "v")->id, 3);
    assert_null(view_table_named(view, "x"));
    assert_int_equal(view_shard_index(view, 10, 0), 2);
    assert_int_equal(view_shard_index(view, 8, 1), 1);
    assert_int_equal(view_shard_index(view, 10, 1), -1);
    view_unref(view_ref(view));
    view_unref(view);
    view_unref(NULL);
    writer_fini(&w);
    writer_fini(&again);
}

/* The bytes of a small view: two shards share the ring, which was made by view 3; the server died in view 6. */
static const uint8_t head_bytes[] = {7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
static const uint8_t node_bytes[] = {1, 0, 0, 0, 8, 0, 0, 0,   2, 1, 2, 0, 0, 0, 0, 0, 0,
                                     0, 5, 0, 2, 0, 1, 0, 'a', 0, 0, 3, 0, 0, 0, 1, 0, 'r'};
static const uint8_t
    shard_bytes[] = {2, 0, 0, 0, /* node, index, numbers: partitions, chains, migration */
                     8, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0,
                     0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0,
                     6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}; /* no table */
static const uint8_t ring_bytes[][13] = {{0, 0, 0, 0, 8, 1, 0, 0, 8},
                                         {1, 0, 0, 1, 0, 0, 8, 1, 0, 0, 0, 0, 8}};
static const uint8_t gone_bytes[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 6, 0, 0, 0, 0, 0, 0, 0, 0, 4};
static const uint8_t lost_bytes[] = {6, 0, 0, 0, 0, 0, 0, 0, 4, 0, 16};

static size_t put(uint8_t *to, const void *bytes, size_t len)
{
    memcpy(to, bytes, len);
    return len;
}

/* gone: with the views in which owners were gone. Without, it is as an earlier version has kept it. */
static size_t golden(uint8_t *to, unsigned replicas, bool gone, bool lost)
{
    size_t len = put(to, head_bytes, sizeof head_bytes);
    to[len++] = gone ? 3 : 1;
    len += put(to + len, node_bytes, sizeof node_bytes);
    len += put(to + len, shard_bytes, sizeof shard_bytes);
    len += put(to + len, ring_bytes[replicas], replicas ? 13 : 9);
    len += gone ? put(to + len, gone_bytes, sizeof gone_bytes) : 0;
    return len + (lost ? put(to + len, lost_bytes, sizeof lost_bytes) : 0);
}

static void test_bytes(void **state)
{
    (void)state;
    uint8_t bytes[256];
    for (unsigned which = 0; which < 8; which++) {
        unsigned replicas = which & 1;
        bool gone = which & 2, lost = which & 4;
        struct writer w = {0};
        struct view *view;
        size_t len = golden(bytes, replicas, gone, lost);
        struct reader r = reader_over(bytes, len);
        assert_int_equal(view_decode(&r, &view), PARAMO_OK);
        assert_true(view->complete);
        assert_int_equal(view->chains.replicas, replicas);
        assert_int_equal(view->lost_at, lost ? 6 : 0);
        for (unsigned a = 0; a < RING_PARTITIONS; a++) /* not lower than it was */
            assert_int_equal(view->owner_gone[a], gone ? (a < 3072 ? 0 : 6) : replicas ? 3 : 6);
        view_encode(view, &w);
        if (gone)
            assert_int_equal(w.len, len);
        if (gone)
            assert_memory_equal(w.data, bytes, len);
        view_unref(view);
        writer_fini(&w);
        for (size_t cut = 1; cut < len - 100; cut++) {
            r = reader_over(bytes, len - cut);
            bool whole = lost && cut == sizeof lost_bytes;
            assert_int_equal(view_decode(&r, &view), whole ? PARAMO_OK : PARAMO_E_PROTOCOL);
            if (whole)
                view_unref(view);
        }
    }
}

static void test_damage(void **state)
{
    (void)state;
    struct writer w = {0};
    view_encode(example(), &w);
    struct view *view;
    for (size_t len = 0; len < w.len; len++) {
        uint8_t *cut = malloc(len ? len : 1);
        memcpy(cut, w.data, len);
        struct reader r = reader_over(cut, len);
        assert_int_equal(view_decode(&r, &view), PARAMO_E_PROTOCOL);
        free(cut);
    }
    for (uint64_t seed = 0; seed < 20000; seed++) {
        uint8_t *damaged = malloc(w.len);
        memcpy(damaged, w.data, w.len);
        for (unsigned hits = 0; hits < 1 + seed % 3; hits++)
            damaged[mix64(seed * 3 + hits) % w.len] = (uint8_t)(mix64(~(seed * 3 + hits)) >> 8);
        struct reader r = reader_over(damaged, w.len);
        if (view_decode(&r, &view) == PARAMO_OK)
            view_unref(view);
        free(damaged);
    }
    writer_fini(&w);
}

/* Views that hang together as bytes and not as a cluster. */
static void test_refuses(void **state)
{
    (void)state;
    for (int which = 0; which < 19; which++) {
        struct view *bad = example();
        struct view_node n[4];
        struct view_shard s[3];
        struct view_table t[2];
        memcpy(n, nodes, sizeof n);
        memcpy(s, shards, sizeof s);
        memcpy(t, tables, sizeof t);
        bad->nodes = n;
        bad->shards = s;
        bad->tables = t;
        switch (which) {
        case 0: /* two nodes of one id */
            n[3].id = 8;
            break;
        case 1: /* a server with a worker's id */
            n[3].id = 11;
            break;
        case 2: /* gone and alive */
            n[2].alive = true;
            break;
        case 3: /* a shard without a node */
            s[2].node = 12;
            break;
        case 4: /* one shard twice */
            s[1].index = 0;
            break;
        case 5: /* an owner that is not there */
            bad->chains.level[0].owner[7] = 3;
            break;
        case 8: /* a replica that is not there */
            bad->chains.level[2].owner[4000] = 3;
            break;
        case 9: /* one shard twice in a chain */
            bad->chains.level[2].owner[4000] = bad->chains.level[0].owner[4000];
            break;
        case 10: /* the owner its own replica */
            bad->chains.level[1].owner[200] = bad->chains.level[0].owner[200];
            break;
        case 11: /* a table of a view to come */
            t[0].since = bad->number + 1;
            break;
        case 12: /* replicas without a shard */
            bad->chains.level[0].owner[200] = RING_NONE;
            break;
        case 13: /* a server that fails together with nothing */
            n[1].domain[0] = '\0';
            break;
        case 14: /* a weight beyond all */
            n[1].weight = RING_WEIGHT_MAX + 1;
            break;
        case 15: /* partitions changed, and chains not */
            s[1].chain_changed = s[1].partitions_changed - 1;
            break;
        case 16: /* an owner that will be gone */
            bad->owner_gone[200] = bad->number + 1;
            break;
        case 18: /* a migration of a scheduler to come: the next one has a lower number */
            s[0].last_migration = ((bad->number >> 32) + 1) << 32;
            break;
        case 17: /* before the first; of an empty cluster, which nothing else is wrong with */
            bad->number = 0;
            bad->shards_count = bad->tables_count = 0;
            for (unsigned l = 0; l < RING_LEVELS; l++)
                memset(&bad->chains.level[l], 0xff, sizeof bad->chains.level[l]);
            memset(bad->owner_gone, 0, sizeof bad->owner_gone);
            bad->lost_at = 0;
            break;
        case 6: /* a placement that was not resolved */
            t[0].options.placement = PARAMO_PLACE_AUTO;
            break;
        default: /* changed by a view to come */
            s[0].partitions_changed = bad->number + 1;
        }
        struct writer w = {0};
        view_encode(bad, &w);
        struct reader r = reader_over(w.data, w.len);
        struct view *view;
        assert_int_equal(view_decode(&r, &view), PARAMO_E_PROTOCOL);
        writer_fini(&w);
    }
}

static void test_address(void **state)
{
    (void)state;
    static const struct {
        const char *address, *host;
        uint16_t port;
    } good[] = {{"10.0.0.1:80", "10.0.0.1", 80}, {"[::1]:65535", "::1", 65535}, {"name-x:0", "name-x", 0}};
    static const char *const bad[] = {"",      "host", "host:", ":80",  "host:65536",     "host:x",
                                      "::1:5", "[::1", "[]:5",  "[::1", "host:123456789", "]:5"};
    char host[256], address[ADDRESS_MAX];
    uint16_t port;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(address_split(good[i].address, host, sizeof host, &port), PARAMO_OK);
        assert_string_equal(host, good[i].host);
        assert_int_equal(port, good[i].port);
        address_join(host, port, address);
        assert_string_equal(address, good[i].address);
    }
    for (size_t i = 0; i + 1 < sizeof bad / sizeof *bad; i++)
        assert_int_equal(address_split(bad[i], host, sizeof host, &port), PARAMO_E_ADDRESS);
    assert_int_equal(address_split("abcdef:5", host, 6, &port), PARAMO_E_ADDRESS);
}

static void test_labels(void **state)
{
    (void)state;
    char label[VIEW_LABEL_MAX];
    struct view_node node = {.id = 13, .role = PARAMO_ROLE_WORKER, .host = "127.0.0.1"};
    assert_string_equal(view_node_label(&node, label), "worker 2 (node 13)");
    strcpy(node.host, "host-3");
    assert_string_equal(view_node_label(&node, label), "worker 2 (node 13, host-3)");
    strcpy(node.name, "alpha");
    assert_string_equal(view_node_label(&node, label), "worker 2 (node 13, alpha)");
    strcpy(node.host, "::1");
    assert_string_equal(view_node_label(&node, label), "worker 2 (node 13, alpha)");
    memset(node.host, 'h', sizeof node.host - 1);
    node.name[0] = '\0';
    assert_int_equal(strlen(view_node_label(&node, label)),
                     strlen("worker 2 (node 13, )") + VIEW_HOST_MAX - 1);
    assert_string_equal(view_id_label(PARAMO_ID_SERVER(0), label), "server 0 (node 8)");
    assert_string_equal(view_id_label(PARAMO_ID_SCHEDULER, label), "the scheduler (node 1)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_damage), cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_address),    cmocka_unit_test(test_labels), cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
