#include "cluster/support_ckpt_job.h"
#include "cluster/checkpoint/ckpt.h"
#include "cluster/member/member_orders.h"
#include "cluster/scheduler/sched_roster.h"

#include <stdio.h>
#include <string.h>

#include "cluster/scheduler/sched.h"
#include "wire/order.h"

struct ckpt_job ckpt_job;

struct tnode *ckpt_worker(void)
{
    return &ckpt_job.c.nodes[CKPT_SERVERS];
}

/* A file with one block of bytes. */
static paramo_err write_part(const struct ckpt_order *m, uint32_t writer, struct ckpt_written *out)
{
    struct ckpt_writer *w;
    struct ckpt_file file;
    struct ckpt_block block = {
        .kind = CKPT_ROWS, .table = 1, .partition = writer, .partitions = 1, .payload = "rows", .bytes = 4};
    paramo_err err = ckpt_begin(simfs_fs(ckpt_job.disk), m->dir, m->number, m->id, writer, &w);
    if (err)
        return err;
    err = ckpt_put(w, &block);
    if (err) {
        ckpt_abort(w);
        return err;
    }
    err = ckpt_end(w, &file);
    out->count = 1;
    out->file[0] = (struct ckpt_written_file){.bytes = file.bytes, .blocks = file.blocks, .sum = file.sum};
    memcpy(out->file[0].name, file.name, sizeof file.name);
    return err;
}

void ckpt_do_part(struct tnode *node, uint64_t order)
{
    static struct ckpt_written written;
    struct writer result = {0};
    written.count = 0;
    paramo_err err =
        ckpt_job.fail && node == &ckpt_job.c.nodes[1]
            ? err_set(ckpt_job.cannot ? ckpt_job.cannot : PARAMO_E_IO, "the disk of server 1 is broken")
            : write_part(&ckpt_job.order, (uint32_t)(node - ckpt_job.c.nodes), &written);
    if (!err)
        ckpt_written_encode(&written, &result);
    member_order_done(node->member, order, err, &result);
}

static void got_order(void *arg, uint64_t order, uint32_t what, struct reader *fields)
{
    struct tnode *node = arg;
    if (what == CKPT_UNKNOWN_ORDER) {
        assert_true(ckpt_job.unknown_count < sizeof ckpt_job.unknown / sizeof *ckpt_job.unknown);
        ckpt_job.unknown[ckpt_job.unknown_count++] = order;
        return;
    }
    if (what >= ORDER_MIGRATION_SOURCE) {
        ckpt_job.sources += what == ORDER_MIGRATION_SOURCE;
        if (ckpt_job.migrates)
            member_order_done(node->member, order, PARAMO_OK, NULL);
        return; /* for the one that has come: nothing moves before its test ends */
    }
    assert_int_equal(ckpt_order_decode(fields, &ckpt_job.order), PARAMO_OK);
    assert_true(ckpt_job.order.number && ckpt_job.order.id);
    if (what == ORDER_CKPT_SAVE && ckpt_job.wait) {
        ckpt_job.held[node - ckpt_job.c.nodes] = order;
    } else if (what == ORDER_CKPT_SAVE) {
        ckpt_do_part(node, order);
    } else {
        bool loads = what == ORDER_CKPT_LOAD || what == ORDER_CKPT_RESTORE;
        assert_true(what == ORDER_CKPT_DROP || what == ORDER_CKPT_HOLD || what == ORDER_CKPT_GO || loads);
        if (loads && ckpt_job.wait)
            ckpt_job.held[node - ckpt_job.c.nodes] = order;
        else
            member_order_done(node->member, order,
                              ckpt_job.cannot ? err_set(ckpt_job.cannot, "so it is") : PARAMO_OK, NULL);
    }
    ckpt_job.restores += what == ORDER_CKPT_RESTORE;
    ckpt_job.saves += what == ORDER_CKPT_SAVE;
    ckpt_job.drops += what == ORDER_CKPT_DROP;
    ckpt_job.loads += what == ORDER_CKPT_LOAD;
    ckpt_job.goes += what == ORDER_CKPT_GO;
}

void ckpt_start_server(unsigned i)
{
    struct member_config config =
        cluster_member_config(&ckpt_job.c, &ckpt_job.c.nodes[i], PARAMO_ROLE_SERVER);
    config.on_order = got_order;
    cluster_start_config(&ckpt_job.c.nodes[i], &config);
}

void ckpt_scheduler_on(void)
{
    assert_int_equal(blocking_jobs_create(sim_env(ckpt_job.c.sim), "files", &ckpt_job.blocking_jobs),
                     PARAMO_OK);
    if (ckpt_job.keeps)
        cluster_find_state(&ckpt_job.c, ckpt_job.disk, "/d/state", ckpt_job.blocking_jobs);
    ckpt_job.c.config.fs = simfs_fs(ckpt_job.disk);
    ckpt_job.c.config.blocking_jobs = ckpt_job.blocking_jobs;
    ckpt_job.c.config.replicas = ckpt_job.replicas;
    ckpt_job.c.config.checkpoint_full_every = 3;
    ckpt_job.c.config.checkpoint_every_ms = ckpt_job.applied_window_retain ? 10000 : 0;
    ckpt_job.c.config.checkpoint_keep = ckpt_job.applied_window_retain;
    ckpt_job.c.config.on_loss_restore = ckpt_job.on_loss;
    snprintf(ckpt_job.c.config.checkpoint_dir, sizeof ckpt_job.c.config.checkpoint_dir, CKPT_DIR);
    snprintf(ckpt_job.c.config.checkpoint_allow, sizeof ckpt_job.c.config.checkpoint_allow, "/d/elsewhere");
    cluster_start_scheduler(&ckpt_job.c);
}

void ckpt_scheduler_off(void)
{
    cluster_kill_scheduler(&ckpt_job.c);
    blocking_jobs_destroy(ckpt_job.blocking_jobs);
    cluster_pass(&ckpt_job.c, 0.001);
}

/* A job, on a disk that stays if there is one. */
void ckpt_on(const char *restore)
{
    struct simfs *disk = ckpt_job.disk;
    bool keeps = ckpt_job.keeps, on_loss = ckpt_job.on_loss, migrates = ckpt_job.migrates;
    uint32_t replicas = ckpt_job.replicas;
    uint32_t applied_window_retain = ckpt_job.applied_window_retain;
    uint64_t jobs = disk ? ckpt_job.jobs + 1 : 1;
    memset(&ckpt_job, 0, sizeof ckpt_job);
    ckpt_job.keeps = keeps;
    ckpt_job.migrates = migrates;
    ckpt_job.on_loss = on_loss;
    ckpt_job.replicas = replicas;
    ckpt_job.applied_window_retain = applied_window_retain;
    ckpt_job.jobs = jobs;
    cluster_init(&ckpt_job.c, jobs, CKPT_SERVERS, 1);
    ckpt_job.disk = disk;
    if (!disk) {
        assert_int_equal(simfs_create(1, &ckpt_job.disk), PARAMO_OK);
        assert_int_equal(fs_make_dir(simfs_fs(ckpt_job.disk), "/d"), PARAMO_OK);
    }
    simfs_set_sim(ckpt_job.disk, ckpt_job.c.sim);
    snprintf(ckpt_job.c.config.restore_dir, sizeof ckpt_job.c.config.restore_dir, "%s", restore);
    ckpt_scheduler_on();
    for (unsigned i = 0; i < CKPT_SERVERS; i++)
        ckpt_start_server(i);
    struct member_config worker = cluster_member_config(&ckpt_job.c, ckpt_worker(), PARAMO_ROLE_WORKER);
    worker.connect_timeout_ms = 60000; /* it outlives all tries of the load that the job begins with */
    cluster_start_config(ckpt_worker(), &worker);
}

void ckpt_on_joined(void)
{
    ckpt_on("");
    for (unsigned i = 0; i <= CKPT_SERVERS; i++)
        assert_true(cluster_run(&ckpt_job.c, tnode_joined, &ckpt_job.c.nodes[i], 5));
}

/* The disk stays. */
void ckpt_off(void)
{
    for (size_t i = 0; i < CLUSTER_NODES; i++)
        cluster_kill(&ckpt_job.c.nodes[i]);
    ckpt_scheduler_off();
    cluster_fini(&ckpt_job.c);
}

void ckpt_disk_end(void)
{
    ckpt_job.keeps = ckpt_job.on_loss = ckpt_job.migrates = false;
    ckpt_job.replicas = 0;
    simfs_destroy(ckpt_job.disk);
    ckpt_job.disk = NULL;
}

void ckpt_ask(struct tcall *call, int what, const char *dir, double seconds)
{
    uint64_t deadline = in_seconds(&ckpt_job.c, seconds);
    tcall_init(call);
    tnode_enter(ckpt_worker());
    assert_int_equal(
        what == CKPT_ASK_LOAD
            ? member_ckpt_load(ckpt_worker()->member, &call->call, dir, 0, deadline)
            : member_ckpt_save(ckpt_worker()->member, &call->call, dir, what == CKPT_ASK_CHANGES, deadline),
        PARAMO_OK);
    tnode_leave(ckpt_worker());
}

paramo_err ckpt_answered(struct tcall *call)
{
    assert_true(cluster_run(&ckpt_job.c, tcall_done, call, 100));
    return call->status;
}

paramo_err ckpt_save(struct tcall *call)
{
    ckpt_ask(call, CKPT_ASK_SAVE, CKPT_DIR, 20);
    return ckpt_answered(call);
}

void ckpt_open_table_of(const char *name, uint32_t replicas)
{
    struct tcall call;
    paramo_table_options options = {.size = sizeof options, .dim = 1, .replicas = replicas};
    tcall_init(&call);
    tnode_enter(ckpt_worker());
    assert_int_equal(
        member_table_open(ckpt_worker()->member, &call.call, name, &options, in_seconds(&ckpt_job.c, 5)),
        PARAMO_OK);
    tnode_leave(ckpt_worker());
    assert_int_equal(ckpt_answered(&call), PARAMO_OK);
}

void ckpt_open_table(const char *name)
{
    ckpt_open_table_of(name, PARAMO_REPLICAS_OF_JOB);
}

bool ckpt_one_is_dead(void *arg)
{
    (void)arg;
    return ckpt_job.c.scheduler->roster->slots[SLOTS_SERVERS].node[1]->state == SNODE_DEAD;
}
