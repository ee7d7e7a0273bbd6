/* Checkpoints by the public API: of an embedded node, and of nodes of one role each, whichever asks. */
#include "node/checkpoint.h"
#include "unit.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support_cluster.h"

enum { KEYS = 1000 };

static uint64_t keys[KEYS], ts;
static float vals[KEYS];
static char dir[] = "/tmp/paramo-ckpt-XXXXXX";

static void ok(paramo_err err)
{
    if (err)
        (void)fprintf(stderr, "%s: %s\n", paramo_err_name(err), paramo_last_error());
    assert_int_equal(err, PARAMO_OK);
}

static paramo_kv all(void)
{
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = keys;
    kv.vals = vals;
    kv.n = kv.vals_len = KEYS;
    return kv;
}

static void add(paramo_worker *w, paramo_table *t, float what)
{
    paramo_kv kv = all();
    for (unsigned i = 0; i < KEYS; i++)
        vals[i] = what + (float)i;
    ok(paramo_push(w, t, &kv, NULL, &ts));
    ok(paramo_wait(w, ts, 0));
}

/* Of every row: so much, and `times` its number. */
static void check(paramo_worker *w, paramo_table *t, float what, float times)
{
    paramo_kv kv = all();
    ok(paramo_pull(w, t, &kv, NULL, &ts));
    ok(paramo_wait(w, ts, 0));
    for (unsigned i = 0; i < KEYS; i++)
        assert_true(vals[i] == what + times * (float)i);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static int folder_on(void **state)
{
    (void)state;
    memcpy(dir + strlen(dir) - 6, "XXXXXX", 6);
    for (uint64_t i = 0; i < KEYS; i++)
        keys[i] = i * 1000003;
    return mkdtemp(dir) ? 0 : -1;
}

static int folder_off(void **state)
{
    (void)state;
    return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* saver and loader: nodes of whatever role. */
static void saved_and_loaded(paramo_worker *w, paramo_node *saver, paramo_node *loader)
{
    paramo_table_options o;
    paramo_table *t = NULL;
    uint64_t number = 0;
    paramo_table_options_init(&o);
    o.dim = 1;
    ok(paramo_table_open(w, "t", &o, &t));
    add(w, t, 1);
    ok(paramo_checkpoint_save(saver, dir, 0, 0, &number));
    assert_int_equal(number, 1);
    add(w, t, 2);
    ok(paramo_checkpoint_save(saver, dir, PARAMO_CHECKPOINT_INCREMENTAL, 0, NULL));
    add(w, t, 4);
    check(w, t, 7, 3);
    ok(paramo_checkpoint_load(loader, dir, 0, 0)); /* the last */
    check(w, t, 3, 2);
    ok(paramo_checkpoint_load(loader, dir, 1, 0));
    check(w, t, 1, 1);
    add(w, t, 8); /* and it continues from there */
    check(w, t, 9, 2);

    /* What cannot be changes nothing. */
    number = 77;
    assert_int_equal(paramo_checkpoint_load(loader, dir, 9, 0), PARAMO_E_NOT_FOUND);
    assert_int_equal(paramo_checkpoint_load(loader, "", 0, 0), PARAMO_E_INVALID);
    assert_int_equal(paramo_checkpoint_save(saver, dir, 2, 0, &number), PARAMO_E_INVALID);
    assert_int_equal(paramo_checkpoint_save(saver, NULL, 0, 0, &number), PARAMO_E_INVALID);
    assert_int_equal(paramo_checkpoint_save(saver, "/dev/null/x", 0, 0, &number), PARAMO_E_IO);
    assert_non_null(strstr(paramo_last_error(), "/dev/null/x"));
    assert_int_equal(number, 77);
    check(w, t, 9, 2);
    paramo_table_close(t);
}

static void of_an_embedded_node(void **state)
{
    (void)state;
    paramo_node *node = embedded_start(2);
    paramo_worker *w = NULL;
    ok(paramo_worker_open(node, 0, &w));
    saved_and_loaded(w, node, node);
    paramo_worker_close(w);
    ok(paramo_stop(node));
}

/* A folder may be named from where the process stands. */
static void by_any_node(void **state)
{
    (void)state;
    struct cluster c;
    char before[4096];
    paramo_worker *w = NULL;
    uint64_t number;
    cluster_start(&c, 2, 1, NULL);
    ok(paramo_worker_open(c.workers[0].node, 0, &w));
    saved_and_loaded(w, c.servers[1].node, c.scheduler.node);
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir("/tmp"), 0);
    ok(paramo_checkpoint_save(c.workers[0].node, dir + strlen("/tmp/"), 0, 0, &number));
    assert_int_equal(chdir(before), 0);
    assert_int_equal(number, 3);
    paramo_worker_close(w);
    cluster_stop(&c);
}

/* The scheduler's clock is 2 % slow, the server's 2 % fast: the hold lasts longer than the load may take. */
static void a_hold_outlasts_its_load(void **state)
{
    (void)state;
    const uint32_t loads_ms[] = {0, 1, 100, 20000, 24 * 3600 * 1000, UINT32_MAX / 26 * 24};
    for (unsigned i = 0; i < sizeof loads_ms / sizeof *loads_ms; i++)
        assert_true(checkpoint_hold_ms(loads_ms[i]) / 1.02 > loads_ms[i] / 0.98);
    assert_int_equal(checkpoint_hold_ms(UINT32_MAX), UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(of_an_embedded_node, folder_on, folder_off),
        cmocka_unit_test_setup_teardown(by_any_node, folder_on, folder_off),
        cmocka_unit_test(a_hold_outlasts_its_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
