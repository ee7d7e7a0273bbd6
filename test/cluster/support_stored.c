#include "cluster/support_stored.h"

#include <string.h>

struct stored stored;

void stored_scheduler_on(void)
{
    assert_int_equal(blocking_jobs_create(sim_env(stored.c.sim), "files", &stored.blocking_jobs), PARAMO_OK);
    cluster_find_state(&stored.c, stored.disk, "/d/state", stored.blocking_jobs);
    cluster_start_scheduler(&stored.c);
}

/* power: what was not durable is gone, too. */
void stored_scheduler_off(bool power)
{
    if (power)
        simfs_plan(stored.disk, SIMFS_CRASH, simfs_steps(stored.disk));
    cluster_kill_scheduler(&stored.c);
    blocking_jobs_destroy(stored.blocking_jobs);
    cluster_pass(&stored.c, 0.001);
    if (power)
        simfs_restart(stored.disk);
}

void stored_init(uint32_t servers, uint32_t workers)
{
    memset(&stored, 0, sizeof stored);
    cluster_init(&stored.c, 1, servers, workers);
    assert_int_equal(simfs_create(1, &stored.disk), PARAMO_OK);
    assert_int_equal(fs_make_dir(simfs_fs(stored.disk), "/d"), PARAMO_OK);
}

void stored_on_copied(uint32_t servers, uint32_t workers, uint32_t replicas)
{
    stored_init(servers, workers);
    stored.c.config.replicas = replicas;
    stored_scheduler_on();
    for (uint32_t i = 0; i < servers + workers; i++) {
        cluster_start(&stored.c, &stored.c.nodes[i], i < servers ? SERVER : WORKER);
        cluster_pass(&stored.c, 0.01);
    }
    for (uint32_t i = 0; i < servers + workers; i++) {
        assert_true(cluster_run(&stored.c, tnode_joined, &stored.c.nodes[i], 5));
        assert_int_equal(stored.c.nodes[i].joined_status, PARAMO_OK);
    }
}

void stored_on(uint32_t servers, uint32_t workers)
{
    stored_on_copied(servers, workers, 0);
}

void stored_off(void)
{
    for (size_t i = 0; i < CLUSTER_NODES; i++)
        cluster_kill(&stored.c.nodes[i]);
    stored_scheduler_off(false);
    simfs_destroy(stored.disk);
    cluster_fini(&stored.c);
}

void stored_log_nothing(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}
