/* Pulls by places in a keyset give what pulls by keys give, embedded and over TCP, while rows come, go and move. */
#include <stdio.h>
#include <string.h>

#include "support_cluster.h"
#include "table/keyset.h"
#include "unit.h"

enum { KEYS = 3000, STEPS = 20 };

static uint64_t keys[KEYS];

static void ok(paramo_err err)
{
    if (err)
        (void)fprintf(stderr, "%s: %s\n", paramo_err_name(err), paramo_last_error());
    assert_int_equal(err, PARAMO_OK);
}

static uint64_t draw(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return *s >> 33;
}

static paramo_table *open_table(paramo_worker *w, const char *name, uint32_t dim)
{
    paramo_table_options o;
    paramo_table *t = NULL;
    paramo_table_options_init(&o);
    o.kind = PARAMO_TABLE_SPARSE;
    o.optimizer = PARAMO_OPT_ADD;
    o.dim = dim;
    ok(paramo_table_open(w, name, &o, &t));
    return t;
}

/* Some of the keys, by their places. */
static size_t draw_places(uint64_t *s, uint32_t *places, uint64_t *some)
{
    const uint64_t step = 1 + draw(s) % 40;
    size_t n = 0;
    for (uint64_t i = draw(s) % step; i < KEYS; i += 1 + draw(s) % step) {
        places[n] = (uint32_t)i;
        some[n++] = keys[i];
    }
    return n;
}

static void request(paramo_err (*fn)(paramo_worker *, paramo_table *, const paramo_kv *,
                                     const paramo_request_options *, uint64_t *),
                    paramo_worker *w, paramo_table *t, const paramo_kv *kv)
{
    uint64_t ts;
    ok(fn(w, t, kv, NULL, &ts));
    ok(paramo_wait(w, ts, 0));
}

static void compare(paramo_worker *w, paramo_table *t, paramo_keyset *set, uint32_t dim, const uint64_t *some,
                    const uint32_t *places, size_t n)
{
    static float by_keys[4 * KEYS], by_places[4 * KEYS];
    paramo_kv kv = {.size = sizeof kv, .keys = some, .n = n, .vals = by_places, .vals_len = n * dim};
    kv.keyset = set;
    kv.places = places;
    memset(by_places, 0xff, sizeof by_places);
    request(paramo_pull, w, t, &kv);
    kv.keyset = NULL;
    kv.vals = by_keys;
    request(paramo_pull, w, t, &kv);
    assert_memory_equal(by_places, by_keys, n * dim * sizeof(float));
}

static void push(paramo_worker *w, paramo_table *t, uint32_t dim, const uint64_t *some, size_t n, uint64_t *s)
{
    static float values[4 * KEYS];
    paramo_kv kv = {.size = sizeof kv, .keys = some, .n = n, .vals = values, .vals_len = n * dim};
    for (size_t i = 0; i < n * dim; i++)
        values[i] = (float)(draw(s) % 1000);
    request(paramo_push, w, t, &kv);
}

/* All rows are noted, then some change, go, and come again in other places. */
static void step(paramo_worker *w, paramo_table *t, paramo_keyset *set, uint32_t dim, uint64_t *s)
{
    static uint32_t all[KEYS], places[KEYS];
    static uint64_t some[KEYS];
    for (uint32_t i = 0; i < KEYS; i++)
        all[i] = i;
    push(w, t, dim, keys, KEYS, s);
    compare(w, t, set, dim, keys, all,
            KEYS / 2); /* the shard remembers the list of the push, but not these */
    compare(w, t, set, dim, keys + KEYS / 2, all + KEYS / 2, KEYS / 2);
    for (int i = 0; i < 4; i++) {
        const size_t n = draw_places(s, places, some);
        compare(w, t, set, dim, some, places, n);
        if (i == 0)
            push(w, t, dim, some, n, s);
        if (i == 1)
            ok(paramo_table_delete(w, t, some, n / 2));
        if (i == 2)
            push(w, t, dim, some, n, s);
    }
}

/* noted: the servers are in this process, and have noted rows. */
static void play(paramo_node *node, int noted)
{
    paramo_worker *w;
    paramo_keyset *set;
    uint64_t s = 1;
    for (uint64_t i = 0; i < KEYS; i++)
        keys[i] = i * i;
    ok(paramo_worker_open(node, 1, &w));
    ok(paramo_keyset_new(keys, KEYS, &set));
    paramo_table *small = open_table(w, "small", 1), *large = open_table(w, "large", 4);
    for (unsigned i = 0; i < STEPS; i++) {
        step(w, small, set, 1, &s);
        step(w, large, set, 4, &s);
    }
    assert_int_equal(atomic_load(&set->count), noted ? 2 : 0);
    paramo_worker_close(w);
    paramo_keyset_free(set);
    paramo_keyset_free(NULL);
}

static void embedded(void **state)
{
    (void)state;
    paramo_node *node = embedded_start(1);
    play(node, 1);
    ok(paramo_stop(node));
}

/* Each server has some of the keys of a request. */
static void embedded_servers(void **state)
{
    (void)state;
    paramo_node *node = embedded_start(2);
    play(node, 0);
    ok(paramo_stop(node));
}

static void over_tcp(void **state)
{
    struct cluster c = {0};
    (void)state;
    cluster_start(&c, 1, 1, NULL);
    play(c.workers[0].node, 0);
    cluster_stop(&c);
}

static void wrong_places(void **state)
{
    (void)state;
    paramo_node *node = embedded_start(1);
    paramo_worker *w;
    paramo_keyset *set;
    uint64_t of[] = {5, 9}, other = 6, ts;
    const uint32_t place = 0, beyond = 2;
    float value;
    paramo_kv kv = {.size = sizeof kv, .keys = &other, .n = 1, .vals = &value, .vals_len = 1};
    ok(paramo_worker_open(node, 1, &w));
    ok(paramo_keyset_new(of, 2, &set));
    paramo_table *t = open_table(w, "rows", 1);
    kv.keyset = set;
    assert_int_equal(paramo_pull(w, t, &kv, NULL, &ts), PARAMO_E_INVALID); /* no places */
    kv.places = &place;
    assert_int_equal(paramo_pull(w, t, &kv, NULL, &ts), PARAMO_E_INVALID); /* the key is another */
    kv.places = &beyond;
    assert_int_equal(paramo_pull(w, t, &kv, NULL, &ts), PARAMO_E_INVALID);
    kv.keys = of;
    kv.places = &place;
    request(paramo_pull, w, t, &kv);
    paramo_worker_close(w);
    paramo_keyset_free(set);
    ok(paramo_stop(node));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(embedded), cmocka_unit_test(embedded_servers),
                                       cmocka_unit_test(over_tcp), cmocka_unit_test(wrong_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
