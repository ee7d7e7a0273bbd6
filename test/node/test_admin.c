/* paramo/admin.h: calls to a real cluster, snapshots, rings without a cluster, folders of checkpoints. */
#include "unit.h"

#include <ftw.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "paramo/admin.h"
#include "support_cluster.h"

static void ok(paramo_err err)
{
    if (err)
        (void)fprintf(stderr, "%s: %s\n", paramo_err_name(err), paramo_last_error());
    assert_int_equal(err, PARAMO_OK);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static paramo_admin *admin_of(const struct cluster *c, const char *token)
{
    paramo_admin *admin = NULL;
    paramo_admin_options options;
    paramo_admin_options_init(&options);
    options.scheduler = c->address;
    options.token = token;
    ok(paramo_admin_open(&options, &admin));
    return admin;
}

/* ---- a cluster ---- */

static void view_is_read(paramo_admin *admin)
{
    paramo_cluster *cluster = NULL;
    paramo_cluster_info info = {.size = sizeof info};
    paramo_cluster_node node = {.size = sizeof node};
    paramo_cluster_shard shard = {.size = sizeof shard};
    paramo_cluster_table table = {.size = sizeof table};
    paramo_cluster_status status = {.size = sizeof status};
    uint32_t servers = 0, workers = 0, owns = 0;
    ok(paramo_admin_cluster(admin, &cluster));
    ok(paramo_cluster_info_get(cluster, &info));
    assert_int_equal(info.num_servers, 2);
    assert_int_equal(info.num_workers, 1);
    assert_int_equal(info.shards, 2);
    assert_int_equal(info.tables, 1);
    assert_false(info.has_status);
    for (uint32_t i = 0; i < info.nodes; i++) {
        ok(paramo_cluster_node_get(cluster, i, &node));
        assert_int_equal(node.state, PARAMO_NODE_JOINED);
        assert_int_equal(node.heard_ms, PARAMO_NEVER);
        servers += node.role == PARAMO_ROLE_SERVER;
        workers += node.role == PARAMO_ROLE_WORKER;
        owns += node.owns;
    }
    assert_int_equal(servers, 2);
    assert_int_equal(workers, 1);
    assert_int_equal(owns, PARAMO_PARTITIONS);
    ok(paramo_cluster_shard_get(cluster, 1, &shard));
    assert_int_equal(shard.node, PARAMO_ID_SERVER(1));
    ok(paramo_cluster_table_get(cluster, 0, &table));
    assert_string_equal(table.name, "t");
    for (uint32_t a = 0; a < PARAMO_PARTITIONS; a++)
        assert_true(paramo_cluster_holder(cluster, a, 0) < 2);
    assert_int_equal(paramo_cluster_holder(cluster, PARAMO_PARTITIONS, 0), PARAMO_NO_SHARD);
    assert_int_equal(paramo_cluster_holder(cluster, 0, 1), PARAMO_NO_SHARD);

    assert_int_equal(paramo_cluster_node_get(cluster, info.nodes, &node), PARAMO_E_NOT_FOUND);
    assert_int_equal(paramo_cluster_shard_get(cluster, 2, &shard), PARAMO_E_NOT_FOUND);
    assert_int_equal(paramo_cluster_table_get(cluster, 1, &table), PARAMO_E_NOT_FOUND);
    assert_int_equal(paramo_cluster_status_get(cluster, &status), PARAMO_E_NOT_FOUND);
    paramo_cluster_free(cluster);
}

static void status_is_read(paramo_admin *admin, uint64_t rows)
{
    paramo_cluster *cluster = NULL;
    paramo_cluster_info info = {.size = sizeof info};
    paramo_cluster_status status = {.size = sizeof status};
    paramo_cluster_migration migration = {.size = sizeof migration};
    uint64_t found = 0, by_shard = 0;
    ok(paramo_admin_status(admin, &cluster));
    ok(paramo_cluster_info_get(cluster, &info));
    ok(paramo_cluster_status_get(cluster, &status));
    assert_true(info.has_status && status.converged);
    assert_int_equal(status.copies_missing + status.servers_missing + status.migrations, 0);
    assert_int_equal(status.checkpoint, PARAMO_CHECKPOINT_IDLE);
    for (uint32_t i = 0; i < info.nodes; i++) {
        paramo_cluster_node node = {.size = sizeof node};
        paramo_cluster_report report = {.size = sizeof report};
        paramo_cluster_clocks clocks = {.size = sizeof clocks};
        ok(paramo_cluster_node_get(cluster, i, &node));
        assert_int_equal(paramo_cluster_clocks_get(cluster, i, &clocks), PARAMO_E_NOT_FOUND);
        if (node.role != PARAMO_ROLE_SERVER) {
            assert_int_equal(paramo_cluster_report_get(cluster, i, PARAMO_ALL_SHARDS, &report),
                             PARAMO_E_NOT_FOUND);
            continue;
        }
        ok(paramo_cluster_report_get(cluster, i, PARAMO_ALL_SHARDS, &report));
        found += report.rows;
        ok(paramo_cluster_report_get(cluster, i, 0, &report));
        by_shard += report.rows;
        assert_int_equal(paramo_cluster_report_get(cluster, i, 1, &report), PARAMO_E_NOT_FOUND);
    }
    assert_int_equal(found, rows);
    assert_int_equal(by_shard, rows);
    assert_int_equal(paramo_cluster_migration_get(cluster, 0, &migration), PARAMO_E_NOT_FOUND);

    /* The caller's struct is filled as far as it reaches. */
    paramo_cluster_info small = {.size = offsetof(paramo_cluster_info, view), .view = 77};
    ok(paramo_cluster_info_get(cluster, &small));
    assert_true(small.job == info.job && small.view == 77);
    paramo_cluster_free(cluster);
}

static void checkpoints_are_taken(paramo_admin *admin)
{
    char dir[] = "/tmp/paramo-admin-XXXXXX";
    uint64_t number = 0;
    assert_non_null(mkdtemp(dir));
    ok(paramo_admin_checkpoint_save(admin, dir, PARAMO_CHECKPOINT_INCREMENTAL, 0, &number));
    assert_int_equal(number, 1);
    ok(paramo_admin_checkpoint_load(admin, dir, 0, 0, &number));
    assert_int_equal(number, 1);
    assert_int_equal(paramo_admin_checkpoint_load(admin, dir, 9, 0, NULL), PARAMO_E_NOT_FOUND);
    assert_int_equal(paramo_admin_checkpoint_save(admin, dir, 2, 0, NULL), PARAMO_E_INVALID);
    assert_int_equal(paramo_admin_checkpoint_save(admin, "", 0, 0, NULL), PARAMO_E_INVALID);

    paramo_checkpoint *checkpoint = NULL;
    paramo_checkpoint_info info = {.size = sizeof info};
    paramo_checkpoint_contents contents = {.size = sizeof contents};
    ok(paramo_checkpoint_open(dir, 0, &checkpoint));
    ok(paramo_checkpoint_info_get(checkpoint, 0, &info));
    assert_true(info.number == 1 && info.base == 0 && info.tables == 1 && info.files == 2);
    assert_int_equal(paramo_checkpoint_info_get(checkpoint, 1, &info), PARAMO_E_NOT_FOUND);
    ok(paramo_checkpoint_verify(checkpoint, &contents));
    assert_true(contents.rows_blocks > 0 && contents.bytes > 0);
    paramo_checkpoint_close(checkpoint);
    assert_int_equal(paramo_checkpoint_open(dir, 2, &checkpoint), PARAMO_E_NOT_FOUND);
    assert_int_equal(nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static pthread_mutex_t heard_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t heard = PTHREAD_COND_INITIALIZER;
static bool drained; /* under heard_lock */

static void hear(void *arg, int level, const char *line)
{
    (void)arg, (void)level;
    if (!strstr(line, "is drained"))
        return;
    (void)pthread_mutex_lock(&heard_lock);
    drained = true;
    (void)pthread_cond_signal(&heard);
    (void)pthread_mutex_unlock(&heard_lock);
}

static void wait_until_drained(void)
{
    struct timespec deadline;
    (void)clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += 60;
    int failed = 0;
    (void)pthread_mutex_lock(&heard_lock);
    while (!drained && !failed)
        failed = pthread_cond_timedwait(&heard, &heard_lock, &deadline);
    (void)pthread_mutex_unlock(&heard_lock);
    assert_int_equal(failed, 0);
}

static void server_is_drained(paramo_admin *admin)
{
    paramo_cluster *cluster = NULL;
    paramo_cluster_node node = {.size = sizeof node};
    assert_int_equal(paramo_admin_drain(admin, PARAMO_ID_SERVER(7)), PARAMO_E_NOT_FOUND);
    assert_int_equal(paramo_admin_drain(admin, PARAMO_ID_WORKER(0)), PARAMO_E_NOT_FOUND);
    assert_int_equal(paramo_admin_drain(admin, 0), PARAMO_E_INVALID);
    ok(paramo_admin_drain(admin, PARAMO_ID_SERVER(1)));
    assert_int_equal(paramo_admin_drain(admin, PARAMO_ID_SERVER(0)), PARAMO_E_REFUSED);
    wait_until_drained();
    ok(paramo_admin_cluster(admin, &cluster));
    for (uint32_t i = 0; node.id != PARAMO_ID_SERVER(1); i++)
        ok(paramo_cluster_node_get(cluster, i, &node));
    assert_true(node.state == PARAMO_NODE_DRAINING || node.state == PARAMO_NODE_LEFT);
    assert_int_equal(node.owns, 0);
    paramo_cluster_free(cluster);
}

static void fork_is_refused(paramo_admin *admin)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        paramo_cluster *cluster = NULL;
        paramo_err err = paramo_admin_cluster(admin, &cluster);
        paramo_admin_close(admin);
        _exit(err == PARAMO_E_FORKED ? 0 : 1);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
}

static void of_a_running_job(void **state)
{
    enum { KEYS = 100 };
    static struct cluster c;
    static uint64_t keys[KEYS], ts;
    static float vals[KEYS];
    paramo_worker *w = NULL;
    paramo_table *t = NULL;
    paramo_table_options o;
    paramo_kv kv;
    (void)state;
    int level = log_level();
    log_set_level(LOG_INFO);
    log_set_sink(hear, NULL);
    cluster_start(&c, 2, 1, NULL);
    ok(paramo_worker_open(c.workers[0].node, 0, &w));
    paramo_table_options_init(&o);
    o.dim = 1;
    ok(paramo_table_open(w, "t", &o, &t));
    paramo_kv_init(&kv);
    for (uint64_t i = 0; i < KEYS; i++)
        keys[i] = i;
    kv.keys = keys;
    kv.vals = vals;
    kv.n = kv.vals_len = KEYS;
    ok(paramo_push(w, t, &kv, NULL, &ts));
    ok(paramo_wait(w, ts, 0));

    paramo_cluster *cluster = NULL;
    paramo_admin *admin = admin_of(&c, "another");
    assert_int_equal(paramo_admin_cluster(admin, &cluster), PARAMO_E_TOKEN);
    assert_null(cluster);
    paramo_admin_close(admin);
    admin = admin_of(&c, c.scheduler.config.token);
    view_is_read(admin);
    status_is_read(admin, KEYS);
    checkpoints_are_taken(admin);
    fork_is_refused(admin);
    server_is_drained(admin);
    paramo_admin_close(admin);

    paramo_table_close(t);
    paramo_worker_close(w);
    cluster_stop(&c);
    log_set_sink(NULL, NULL);
    log_set_level(level);
}

static void handles_are_checked(void **state)
{
    (void)state;
    paramo_admin *admin = NULL;
    paramo_cluster *cluster = NULL;
    paramo_admin_options options;
    paramo_admin_options_init(&options);
    assert_int_equal(paramo_admin_open(&options, &admin), PARAMO_E_INVALID); /* no scheduler */
    options.scheduler = "127.0.0.1:1";
    options.timeout_ms = 2000;
    ok(paramo_admin_open(&options, &admin));
    assert_int_equal(paramo_admin_cluster(admin, NULL), PARAMO_E_INVALID);
    assert_int_equal(paramo_admin_cluster(NULL, &cluster), PARAMO_E_INVALID);
    paramo_err err = paramo_admin_cluster(admin, &cluster);
    assert_true(err == PARAMO_E_CONNECTION_REFUSED || err == PARAMO_E_CONNECT || err == PARAMO_E_TIMEOUT);
    assert_non_null(strstr(paramo_last_error(), "127.0.0.1:1"));
    paramo_admin_close(admin);
    options.scheduler = "nowhere";
    ok(paramo_admin_open(&options, &admin));
    assert_int_equal(paramo_admin_cluster(admin, &cluster), PARAMO_E_INVALID);
    paramo_admin_close(admin);
    paramo_admin_close(NULL);
    paramo_cluster_free(NULL);
    paramo_ring_free(NULL);
    paramo_checkpoint_close(NULL);
}

/* ---- rings ---- */

static void a_ring_is_planned(void **state)
{
    (void)state;
    paramo_ring_shard shards[] = {{"a", 0, 1}, {"b", 1, 1}, {"b", 2, 2}, {"c", 3, 0}};
    uint32_t owns[4] = {0};
    char text[256] = "";
    paramo_ring *before = NULL, *after = NULL;
    paramo_ring_info info = {.size = sizeof info};
    paramo_ring_transfers transfers = {.size = sizeof transfers};
    ok(paramo_ring_plan(shards, 4, 1, NULL, &before));
    for (uint32_t a = 0; a < PARAMO_PARTITIONS; a++) {
        uint32_t owner = paramo_ring_holder(before, a, 0), copy = paramo_ring_holder(before, a, 1);
        assert_true(owner < 3 && copy < 3 && owner != copy);
        owns[owner]++;
    }
    assert_int_equal(owns[0], PARAMO_PARTITIONS / 4);
    assert_int_equal(owns[2], PARAMO_PARTITIONS / 2);
    ok(paramo_ring_info_get(before, &info));
    assert_int_equal(info.present, 1);
    assert_int_equal(paramo_ring_holder(before, 0, 2), PARAMO_NO_SHARD);

    shards[3].weight = 1;
    ok(paramo_ring_plan(shards, 4, 1, before, &after));
    ok(paramo_ring_compare(before, after, &transfers));
    assert_true(transfers.owners > 0 && transfers.owners >= transfers.owners_least);
    paramo_ring_free(after);
    ok(paramo_ring_plan(shards, 1, 1, NULL, &after)); /* one process: there is no place for a copy */
    assert_true(paramo_ring_warning(after, text, sizeof text) && text[0]);
    paramo_ring_free(after);

    assert_int_equal(paramo_ring_plan(shards, 0, 0, NULL, &after), PARAMO_E_INVALID);
    assert_int_equal(paramo_ring_plan(shards, 4, PARAMO_REPLICAS_MAX + 1, NULL, &after), PARAMO_E_INVALID);
    shards[0].domain = NULL;
    assert_int_equal(paramo_ring_plan(shards, 4, 0, NULL, &after), PARAMO_E_INVALID);
    shards[0] = (paramo_ring_shard){"a", 0, PARAMO_WEIGHT_MAX + 1};
    assert_int_equal(paramo_ring_plan(shards, 4, 0, NULL, &after), PARAMO_E_INVALID);
    paramo_ring_free(before);
}

/* ---- folders ---- */

static void count_one(void *arg, const paramo_checkpoint_info *info)
{
    (void)info;
    ++*(unsigned *)arg;
}

static void folders_are_listed(void **state)
{
    char dir[] = "/tmp/paramo-admin-XXXXXX";
    unsigned count = 0;
    (void)state;
    assert_int_equal(paramo_checkpoint_list("/nonesuch", count_one, &count), PARAMO_E_NOT_FOUND);
    assert_int_equal(paramo_checkpoint_list("", count_one, &count), PARAMO_E_INVALID);
    assert_non_null(mkdtemp(dir));
    ok(paramo_checkpoint_list(dir, count_one, &count));
    assert_int_equal(count, 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_are_checked),
        cmocka_unit_test(a_ring_is_planned),
        cmocka_unit_test(folders_are_listed),
        cmocka_unit_test(of_a_running_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
