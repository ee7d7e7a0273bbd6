/* A checkpoint of a whole job: it is there when every server has done its part, and only then. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/mutant.h"
#include "env/simfs.h"
#include "post/look.h"
#include "post/sched.h"
#include "post/support_simcluster.h"
#include "wire/ckpt_order.h"
#include "wire/order.h"

#define SERVER PARAMO_ROLE_SERVER
#define WORKER PARAMO_ROLE_WORKER
#define DIR    "/d/ckpt"

enum { SERVERS = 2 };

static struct {
    struct cluster c;
    struct simfs *disk;
    struct chores *chores;
    /* What the servers do: their part at once, or nothing before they are told. */
    bool wait, fail;
    unsigned saves, drops, loads;
    uint64_t held[SERVERS]; /* orders that wait */
    struct ckpt_order order;
    uint64_t jobs;     /* so far, on this disk */
    bool keeps;        /* the scheduler keeps its state */
    bool on_loss;      /* what is lost is restored; ... */
    paramo_err cannot; /* ... or that is why the servers cannot */
    unsigned restores;
    uint32_t replicas;
    uint32_t clock_keep; /* it takes some every ten seconds, and so many stay; 0: it does not */
    bool looked;
    paramo_err look_status;
    uint64_t look_number;
} t;

static struct tnode *worker(void)
{
    return &t.c.nodes[SERVERS];
}

/* A file with one block of bytes. */
static paramo_err write_part(const struct ckpt_order *m, uint32_t writer, struct ckpt_written *out)
{
    struct ckpt_writer *w;
    struct ckpt_file file;
    struct ckpt_block block = {
        .kind = CKPT_ROWS, .table = 1, .arc = writer, .arcs = 1, .payload = "rows", .bytes = 4};
    paramo_err err = ckpt_begin(simfs_fs(t.disk), m->dir, m->number, m->id, writer, &w);
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

static void do_part(struct tnode *node, uint64_t order)
{
    static struct ckpt_written written;
    struct writer result = {0};
    written.count = 0;
    paramo_err err = t.fail && node == &t.c.nodes[1]
                         ? err_set(PARAMO_E_IO, "the disk of server 1 is broken")
                         : write_part(&t.order, (uint32_t)(node - t.c.nodes), &written);
    if (!err)
        ckpt_written_encode(&written, &result);
    member_order_done(node->member, order, err, &result);
}

static void got_order(void *arg, uint64_t order, uint32_t what, struct reader *fields)
{
    struct tnode *node = arg;
    if (what >= ORDER_MOVE_GIVE)
        return; /* for the one that has come: nothing moves before its test ends */
    assert_int_equal(ckpt_order_decode(fields, &t.order), PARAMO_OK);
    assert_true(t.order.number && t.order.id);
    if (what == ORDER_CKPT_SAVE && t.wait) {
        t.held[node - t.c.nodes] = order;
    } else if (what == ORDER_CKPT_SAVE) {
        do_part(node, order);
    } else {
        bool loads = what == ORDER_CKPT_LOAD || what == ORDER_CKPT_RESTORE;
        assert_true(what == ORDER_CKPT_DROP || loads);
        if (loads && t.wait)
            t.held[node - t.c.nodes] = order;
        else
            member_order_done(node->member, order, t.cannot ? err_set(t.cannot, "so it is") : PARAMO_OK,
                              NULL);
    }
    t.restores += what == ORDER_CKPT_RESTORE;
    t.saves += what == ORDER_CKPT_SAVE;
    t.drops += what == ORDER_CKPT_DROP;
    t.loads += what == ORDER_CKPT_LOAD;
}

static void start_server(unsigned i)
{
    struct member_config config = cluster_member_config(&t.c, &t.c.nodes[i], SERVER);
    config.on_order = got_order;
    cluster_start_config(&t.c.nodes[i], &config);
}

static void scheduler_on(void)
{
    assert_int_equal(chores_create(sim_env(t.c.sim), "files", &t.chores), PARAMO_OK);
    if (t.keeps)
        cluster_find_state(&t.c, t.disk, "/d/state", t.chores);
    t.c.config.fs = simfs_fs(t.disk);
    t.c.config.chores = t.chores;
    t.c.config.replicas = t.replicas;
    t.c.config.checkpoint_full_every = 3;
    t.c.config.checkpoint_every_ms = t.clock_keep ? 10000 : 0;
    t.c.config.checkpoint_keep = t.clock_keep;
    t.c.config.on_loss_restore = t.on_loss;
    snprintf(t.c.config.checkpoint_dir, sizeof t.c.config.checkpoint_dir, DIR);
    cluster_start_scheduler(&t.c);
}

static void scheduler_off(void)
{
    cluster_kill_scheduler(&t.c);
    chores_destroy(t.chores);
    cluster_pass(&t.c, 0.001);
}

/* A job, on a disk that stays if there is one. */
static void on(const char *restore)
{
    struct simfs *disk = t.disk;
    bool keeps = t.keeps, on_loss = t.on_loss;
    uint32_t replicas = t.replicas;
    uint32_t clock_keep = t.clock_keep;
    uint64_t jobs = disk ? t.jobs + 1 : 1;
    memset(&t, 0, sizeof t);
    t.keeps = keeps;
    t.on_loss = on_loss;
    t.replicas = replicas;
    t.clock_keep = clock_keep;
    t.jobs = jobs;
    cluster_init(&t.c, jobs, SERVERS, 1);
    t.disk = disk;
    if (!disk) {
        assert_int_equal(simfs_create(1, &t.disk), PARAMO_OK);
        assert_int_equal(fs_make_dir(simfs_fs(t.disk), "/d"), PARAMO_OK);
    }
    snprintf(t.c.config.restore_dir, sizeof t.c.config.restore_dir, "%s", restore);
    scheduler_on();
    for (unsigned i = 0; i < SERVERS; i++)
        start_server(i);
    cluster_start(&t.c, worker(), WORKER);
}

static void on_joined(void)
{
    on("");
    for (unsigned i = 0; i <= SERVERS; i++)
        assert_true(cluster_run(&t.c, tnode_joined, &t.c.nodes[i], 5));
}

/* The disk stays. */
static void off(void)
{
    for (size_t i = 0; i < CLUSTER_NODES; i++)
        cluster_kill(&t.c.nodes[i]);
    scheduler_off();
    cluster_fini(&t.c);
}

static void disk_end(void)
{
    t.keeps = t.on_loss = false;
    t.replicas = 0;
    simfs_destroy(t.disk);
    t.disk = NULL;
}

enum { SAVE, CHANGES, LOAD };

static void ask_in(struct tcall *call, int what, const char *dir, double seconds)
{
    uint64_t deadline = in_seconds(&t.c, seconds);
    tcall_init(call);
    tnode_enter(worker());
    assert_int_equal(what == LOAD
                         ? member_ckpt_load(worker()->member, &call->call, dir, 0, deadline)
                         : member_ckpt_save(worker()->member, &call->call, dir, what == CHANGES, deadline),
                     PARAMO_OK);
    tnode_leave(worker());
}

static void ask(struct tcall *call, int what, double seconds)
{
    ask_in(call, what, DIR, seconds);
}

static paramo_err answered(struct tcall *call)
{
    assert_true(cluster_run(&t.c, tcall_done, call, 100));
    return call->status;
}

static paramo_err save(struct tcall *call)
{
    ask(call, SAVE, 20);
    return answered(call);
}

/* What the servers were told: what it is based on, 0: nothing. */
static uint64_t changes_in(const char *dir)
{
    struct tcall call;
    ask_in(&call, CHANGES, dir, 20);
    assert_int_equal(answered(&call), PARAMO_OK);
    assert_int_equal(t.order.number, call.call.result.number);
    assert_true(t.order.changes);
    assert_int_equal(!t.order.base, !t.order.base_id);
    return t.order.base;
}

static uint64_t changes(void)
{
    return changes_in(DIR);
}

static void open_table_of(const char *name, uint32_t replicas)
{
    struct tcall call;
    paramo_table_options options = {.size = sizeof options, .dim = 1, .replicas = replicas};
    tcall_init(&call);
    tnode_enter(worker());
    assert_int_equal(member_table_open(worker()->member, &call.call, name, &options, in_seconds(&t.c, 5)),
                     PARAMO_OK);
    tnode_leave(worker());
    assert_int_equal(answered(&call), PARAMO_OK);
}

static void open_table(const char *name)
{
    open_table_of(name, PARAMO_REPLICAS_OF_JOB);
}

static paramo_err any_block(void *arg, const struct ckpt_block *b)
{
    (void)arg, (void)b;
    return PARAMO_OK;
}

/* The last whole one's number; 0: there is none. */
static uint64_t last_whole(void)
{
    struct ckpt *ckpt;
    paramo_err err = ckpt_open(simfs_fs(t.disk), DIR, 0, &ckpt);
    if (err) {
        assert_int_equal(err, PARAMO_E_NOT_FOUND);
        return 0;
    }
    uint64_t number = ckpt_manifest(ckpt, 0)->number;
    unsigned files = ckpt_manifest(ckpt, 0)->files_count;
    assert_int_equal(ckpt_visit(ckpt, NULL, any_block, NULL), PARAMO_OK);
    assert_int_equal(files, SERVERS);
    ckpt_close(ckpt);
    return number;
}

static bool both_wait(void *arg)
{
    (void)arg;
    return t.held[0] && t.held[1];
}

static void answer_held(unsigned i)
{
    uint64_t order = t.held[i];
    t.held[i] = 0;
    tnode_enter(&t.c.nodes[i]);
    do_part(&t.c.nodes[i], order);
    tnode_leave(&t.c.nodes[i]);
}

static void whole_when_all_have_ended(void **state)
{
    (void)state;
    struct tcall call, other;
    on_joined();
    open_table("t");
    assert_int_equal(save(&call), PARAMO_OK);
    assert_int_equal(call.call.result.number, 1);
    assert_int_equal(last_whole(), 1);
    t.wait = true;
    ask(&call, SAVE, 20);
    assert_true(cluster_run(&t.c, both_wait, NULL, 5));
    ask(&other, SAVE, 20);
    assert_int_equal(answered(&other), PARAMO_E_AGAIN); /* one at a time */
    answer_held(1);
    cluster_pass(&t.c, 2);
    assert_false(call.done);
    assert_int_equal(last_whole(), 1);
    answer_held(0);
    assert_int_equal(answered(&call), PARAMO_OK);
    assert_int_equal(last_whole(), 2);
    off();
    disk_end();
}

static void one_server_cannot(void **state)
{
    (void)state;
    struct tcall call;
    on_joined();
    assert_int_equal(save(&call), PARAMO_OK);
    t.fail = true;
    assert_int_equal(save(&call), PARAMO_E_IO);
    assert_string_equal(call.text, "server 1 (node 10, host): the disk of server 1 is broken");
    cluster_pass(&t.c, 1);
    assert_int_equal(last_whole(), 1);
    t.fail = false;
    assert_int_equal(save(&call), PARAMO_OK);
    assert_int_equal(call.call.result.number, 3);
    off();
    disk_end();
}

static bool one_is_dead(void *arg)
{
    (void)arg;
    return t.c.scheduler->slots[SLOTS_SERVERS].node[1]->state == SNODE_DEAD;
}

/* Who died and had a copy of everything elsewhere has no part in it; who owns what is lost has. */
static void one_server_is_gone(void **state)
{
    (void)state;
    struct tcall call;
    for (uint32_t replicas = 0; replicas <= 1; replicas++) {
        t.replicas = replicas;
        on_joined();
        assert_int_equal(save(&call), PARAMO_OK);
        cluster_kill(&t.c.nodes[1]);
        assert_true(cluster_run(&t.c, one_is_dead, NULL, 30));
        assert_int_equal(save(&call), replicas ? PARAMO_OK : PARAMO_E_NODE_LOST);
        if (replicas) {
            struct ckpt *ckpt;
            assert_int_equal(ckpt_open(simfs_fs(t.disk), DIR, 0, &ckpt), PARAMO_OK);
            assert_int_equal(ckpt_manifest(ckpt, 0)->number, 2);
            assert_int_equal(ckpt_manifest(ckpt, 0)->files_count, 1);
            ckpt_close(ckpt);
        }
        off();
        disk_end();
    }
}

static void too_slow(void **state)
{
    (void)state;
    struct tcall call;
    on_joined();
    t.wait = true;
    ask(&call, SAVE, 2);
    assert_int_equal(answered(&call), PARAMO_E_TIMEOUT);
    cluster_pass(&t.c, 1);
    assert_int_equal(t.drops, SERVERS); /* they need not go on */
    t.wait = false;
    assert_int_equal(save(&call), PARAMO_E_AGAIN); /* they still have it */
    for (unsigned i = 0; i < SERVERS; i++)
        answer_held(i);
    cluster_pass(&t.c, 1);
    assert_int_equal(last_whole(), 0);
    assert_int_equal(save(&call), PARAMO_OK);
    assert_int_equal(last_whole(), 2);
    off();
    disk_end();
}

static void server_dies(void **state)
{
    (void)state;
    struct tcall call;
    on_joined();
    t.wait = true;
    ask(&call, SAVE, 50);
    assert_true(cluster_run(&t.c, both_wait, NULL, 5));
    answer_held(1);
    cluster_kill(&t.c.nodes[0]);
    assert_int_equal(answered(&call), PARAMO_E_NODE_LOST);
    assert_non_null(strstr(call.text, "server 0"));
    assert_int_equal(last_whole(), 0);
    off();
    disk_end();
}

static void seen(void *arg, paramo_err status, struct look_result *result)
{
    (void)arg;
    t.looked = true;
    t.look_status = status;
    t.look_number = result->number;
}

static bool is_seen(void *arg)
{
    (void)arg;
    return t.looked;
}

/* Who has no place in the job asks, too. */
static void observer(void **state)
{
    (void)state;
    struct look *look;
    struct van *van;
    struct ckpt_order m = {.timeout_ms = 20000, .dir = DIR};
    on_joined();
    open_table("t");
    struct tnode *node = &t.c.nodes[9];
    assert_int_equal(van_sim_create(t.c.net, "observer", &van), PARAMO_OK);
    for (int load = 0; load < 2; load++) {
        struct look_config config = {.van = van,
                                     .lane = node->lane,
                                     .scheduler = "scheduler:1",
                                     .token = "token",
                                     .incarnation = 99,
                                     .deadline = in_seconds(&t.c, 30),
                                     .ckpt = &m,
                                     .load = load,
                                     .done = seen};
        t.looked = false;
        assert_true(lane_enter(node->lane));
        assert_int_equal(look_start(&config, &look), PARAMO_OK);
        lane_leave(node->lane);
        assert_true(cluster_run(&t.c, is_seen, NULL, 60));
        assert_int_equal(t.look_status, PARAMO_OK);
        assert_int_equal(t.look_number, 1);
    }
    assert_int_equal(t.loads, SERVERS);
    t.c.old_vans[t.c.old_count++] = van;
    off();
    disk_end();
}

/* The workers of a job that begins with a checkpoint join when it is loaded. */
static void begins_with_one(void **state)
{
    (void)state;
    struct tcall call;
    on_joined();
    open_table("t");
    open_table("u");
    assert_int_equal(save(&call), PARAMO_OK);
    off();
    on(DIR);
    t.wait = true;
    assert_true(cluster_run(&t.c, both_wait, NULL, 20));
    cluster_pass(&t.c, 3);
    assert_false(worker()->joined);
    assert_int_equal(t.order.number, 1);
    for (unsigned i = 0; i < SERVERS; i++) {
        tnode_enter(&t.c.nodes[i]);
        assert_int_equal(member_view(t.c.nodes[i].member)->tables_count, 2);
        member_order_done(t.c.nodes[i].member, t.held[i], PARAMO_OK, NULL);
        tnode_leave(&t.c.nodes[i]);
    }
    assert_true(cluster_run(&t.c, tnode_joined, worker(), 5));
    assert_int_equal(worker()->joined_status, PARAMO_OK);
    assert_int_equal(member_view(worker()->member)->tables_count, 2);
    off();
    /* A damaged one is not begun with. */
    assert_true(simfs_flip(t.disk, DIR "/00000001/manifest", 30, 1));
    on(DIR);
    assert_true(cluster_run(&t.c, cluster_over, &t.c, 60));
    assert_int_equal(t.c.over_status, PARAMO_E_CORRUPT);
    off();
    disk_end();
}

#define CALL(call, ...)                                                                                      \
    do {                                                                                                     \
        tcall_init(call);                                                                                    \
        tnode_enter(worker());                                                                               \
        assert_int_equal(__VA_ARGS__, PARAMO_OK);                                                            \
        tnode_leave(worker());                                                                               \
        assert_int_equal(answered(call), PARAMO_OK);                                                         \
    } while (0)

static struct pool_part next_part(void)
{
    struct tcall call;
    CALL(&call, member_pool_next(worker()->member, &call.call, "p", 0, 0, 0, in_seconds(&t.c, 5)));
    assert_int_equal(call.call.result.state, POOL_GOT);
    return call.call.result.part;
}

static void part_done(const struct pool_part *part)
{
    struct tcall call;
    CALL(&call, member_pool_done(worker()->member, &call.call, "p", part, in_seconds(&t.c, 5)));
}

static double sum_plus(double more)
{
    struct tcall call;
    double sum;
    CALL(&call, member_kv_add(worker()->member, &call.call, "sum", &more, 1, in_seconds(&t.c, 5)));
    CALL(&call, member_kv_get(worker()->member, &call.call, "sum", in_seconds(&t.c, 5)));
    memcpy(&sum, call.value, sizeof sum);
    return sum;
}

/* What the scheduler knows of the work comes back; who held a part is gone, so it is dealt again. */
static void pools_and_values(void **state)
{
    (void)state;
    struct tcall call;
    struct pool_part parts[4];
    on_joined();
    CALL(&call, member_pool_open(worker()->member, &call.call, "p", 1, 2, in_seconds(&t.c, 5)));
    for (unsigned i = 0; i < 4; i++)
        parts[i] = next_part();
    part_done(&parts[0]);
    part_done(&parts[2]);
    assert_true(sum_plus(2) == 2);
    assert_int_equal(save(&call), PARAMO_OK);
    part_done(&parts[1]); /* later: no part of it */
    assert_true(sum_plus(3) == 5);
    ask(&call, LOAD, 20); /* into the running job: its work is as it is */
    assert_int_equal(answered(&call), PARAMO_OK);
    assert_true(sum_plus(0) == 5);
    off();
    on(DIR);
    assert_true(cluster_run(&t.c, tnode_joined, worker(), 20));
    assert_true(sum_plus(0) == 2);
    static const uint64_t left[] = {1, 3, 4};
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(next_part().index, left[i]);
    off();
    disk_end();
}

/* The scheduler dies while the job's checkpoint is loaded: the next one loads it again, and once it is loaded
 * nobody does. */
static void killed_while_it_begins(void **state)
{
    (void)state;
    struct tcall call;
    on_joined();
    assert_true(sum_plus(2) == 2);
    assert_int_equal(save(&call), PARAMO_OK);
    off();
    t.keeps = true;
    on(DIR);
    t.wait = true;
    assert_true(cluster_run(&t.c, both_wait, NULL, 20));
    for (int again = 0; again < 2; again++) {
        assert_int_equal(t.loads, SERVERS * (1 + again));
        memset(t.held, 0, sizeof t.held);
        scheduler_off();
        t.wait = again == 0;
        scheduler_on();
        if (!again)
            assert_true(cluster_run(&t.c, both_wait, NULL, 20));
        assert_false(worker()->joined);
    }
    assert_true(cluster_run(&t.c, tnode_joined, worker(), 20));
    assert_int_equal(t.loads, SERVERS * 3);
    assert_true(sum_plus(3) == 5);
    scheduler_off();
    scheduler_on();
    assert_true(sum_plus(0) == 5);
    assert_int_equal(t.loads, SERVERS * 3);
    off();
    disk_end();
}

/* Of what has changed since the last one, if the shards can know that. */
static void based_on_the_last(void **state)
{
    (void)state;
    struct tcall call;
    on_joined();
    open_table("t");
    assert_int_equal(save(&call), PARAMO_OK);
    assert_false(t.order.changes); /* nobody needs to know what changes after it */
    assert_int_equal(changes(), 0);
    assert_int_equal(changes(), 2);
    uint64_t id = t.order.id;
    assert_int_equal(changes(), 3);
    assert_int_equal(t.order.base_id, id);
    assert_int_equal(last_whole(), 4);
    assert_int_equal(changes(), 0); /* three based on each other are enough */
    assert_int_equal(changes(), 5);
    t.fail = true;
    ask(&call, CHANGES, 20);
    assert_int_equal(answered(&call), PARAMO_E_IO); /* server 0 knows changes since 7 only now */
    t.fail = false;
    cluster_pass(&t.c, 1);
    assert_int_equal(changes(), 0);
    assert_int_equal(changes_in("/d/elsewhere"), 0);
    assert_int_equal(changes_in("/d/elsewhere"), 1);
    assert_int_equal(changes(), 0);
    ask(&call, LOAD, 20);
    assert_int_equal(answered(&call), PARAMO_OK);
    assert_int_equal(changes(), 0);
    assert_int_equal(fs_unlink(simfs_fs(t.disk), DIR "/00000010/manifest"), PARAMO_OK);
    assert_int_equal(changes(), 0);
    assert_int_equal(changes(), 11);
    off();
    on(DIR); /* another scheduler, which took none of them */
    assert_true(cluster_run(&t.c, tnode_joined, worker(), 20));
    assert_int_equal(changes(), 0);
    assert_int_equal(changes(), 13);
    off();
    disk_end();
}

struct there {
    uint64_t whole, based, other; /* a bit for each number */
};

static void see(void *arg, uint64_t number, paramo_err status, const char *text,
                const struct ckpt_manifest *m)
{
    struct there *there = arg;
    (void)status, (void)text;
    *(m ? &there->whole : &there->other) |= UINT64_C(1) << number;
    there->based |= (uint64_t)(m && m->base) << number;
}

static struct there what_is_there(void)
{
    struct there there = {0};
    assert_int_equal(ckpt_list(simfs_fs(t.disk), DIR, see, &there), PARAMO_OK);
    return there;
}

#define N(number) (UINT64_C(1) << (number))

static void clock_on(const char *restore, uint32_t keep)
{
    t.clock_keep = keep;
    on(restore);
    assert_true(cluster_run(&t.c, tnode_joined, worker(), 20));
}

/* The clock takes them, each third in full, and removes its own old ones. */
static void every_so_often(void **state)
{
    (void)state;
    struct tcall call;
    on_joined();
    assert_int_equal(save(&call), PARAMO_OK);
    off();
    clock_on("", 2); /* another job: 1 is not its own */
    cluster_pass(&t.c, 35);
    struct there there = what_is_there();
    assert_int_equal(there.whole, N(1) | N(2) | N(3) | N(4));
    assert_int_equal(there.based, N(3) | N(4));
    assert_int_equal(save(&call), PARAMO_OK); /* in full, and it stays */
    cluster_pass(&t.c, 10);
    assert_int_equal(t.order.base, 5);
    cluster_pass(&t.c, 20);
    there = what_is_there(); /* 8 is full, 7 and 6 are based on 5; of 8 and 7 no other is the base */
    assert_int_equal(there.whole, N(1) | N(5) | N(6) | N(7) | N(8));
    assert_int_equal(there.based, N(6) | N(7));
    assert_int_equal(there.other, 0);
    off();
    clock_on(DIR, 1); /* it goes on with that job, so these are its own */
    cluster_pass(&t.c, 11);
    there = what_is_there();
    assert_int_equal(there.whole, N(1) | N(5) | N(9));
    off();
    clock_on("", 1);
    cluster_pass(&t.c, 11);
    there = what_is_there();
    assert_int_equal(there.whole, N(1) | N(5) | N(9) | N(10));
    assert_int_equal(last_whole(), 10);
    off();
    t.clock_keep = 0;
    disk_end();
}

/* A disk that fails, or the power, at any step: what was reported stays, and nothing that is not whole is
 * taken for it. */
static void every_fault(void **state)
{
    (void)state;
    for (enum simfs_fault fault = SIMFS_FAIL; fault < SIMFS_FAULTS; fault++) {
        uint64_t came = 1;
        for (uint64_t step = 0; came; step++) {
            struct tcall call;
            on_joined();
            assert_int_equal(save(&call), PARAMO_OK);
            uint64_t begun = simfs_steps(t.disk);
            simfs_plan(t.disk, fault, begun + step);
            paramo_err status = save(&call);
            came = simfs_steps(t.disk) > begun + step;
            bool crashed = simfs_crashed(t.disk);
            if (fault == SIMFS_CRASH && came) {
                assert_true(crashed);
                off();
                simfs_restart(t.disk);
                assert_in_range(last_whole(), status ? 1 : 2, 2);
                disk_end();
                continue;
            }
            simfs_plan(t.disk, fault, UINT64_MAX);
            if (!status)
                assert_int_equal(last_whole(), 2);
            else /* the folder's last sync may have failed: it is there, and was not reported */
                assert_in_range(last_whole(), 1, 2);
            assert_int_equal(save(&call), PARAMO_OK);
            assert_int_equal(last_whole(), 3);
            off();
            disk_end();
        }
    }
}

static bool held_by_0(void *arg)
{
    (void)arg;
    return t.held[0] != 0;
}

static const struct view *workers_view(void)
{
    return member_view(worker()->member);
}

static bool lost_is_seen(void *arg)
{
    return (workers_view()->lost_at != 0) == *(bool *)arg;
}

/* Server 1 dies, and server 0 is told to restore what it had. */
static void server_1_dies(void)
{
    bool lost = true;
    t.wait = true;
    cluster_kill(&t.c.nodes[1]);
    assert_true(cluster_run(&t.c, held_by_0, NULL, 60));
    assert_true(cluster_run(&t.c, lost_is_seen, &lost, 5));
    assert_int_equal(t.order.number, 1);
}

static void restored(void)
{
    bool lost = false;
    tnode_enter(&t.c.nodes[0]);
    member_order_done(t.c.nodes[0].member, t.held[0], PARAMO_OK, NULL);
    tnode_leave(&t.c.nodes[0]);
    t.held[0] = 0;
    t.wait = false;
    assert_true(cluster_run(&t.c, lost_is_seen, &lost, 5));
}

static void on_lossy(void)
{
    struct tcall call;
    t.on_loss = true;
    on_joined();
    open_table("t");
    assert_int_equal(save(&call), PARAMO_OK);
}

static void over_with(const char *text)
{
    assert_true(cluster_run(&t.c, cluster_over, &t.c, 200));
    assert_int_equal(t.c.over_status, PARAMO_E_DATA_LOST);
    assert_non_null(strstr(t.c.over_text, "the last copy is lost (server "));
    assert_non_null(strstr(t.c.over_text, text));
    off();
    disk_end();
}

static bool guest_is_dead(void *arg)
{
    (void)arg;
    return view_node(workers_view(), 11) && !view_node(workers_view(), 11)->alive;
}

/* Whoever is left owns what the dead one had, and is told to restore it; views say so until he has. */
static void what_is_lost_is_restored(void **state)
{
    (void)state;
    struct tcall call;
    on_lossy();
    cluster_start(&t.c, &t.c.nodes[3], WORKER);
    assert_true(cluster_run(&t.c, tnode_joined, &t.c.nodes[3], 5));
    uint64_t was[2] = {0}, lost = 0;
    const struct view *view = workers_view();
    for (size_t a = 0; a < RING_ARCS; a++)
        was[view->shards[view_ring(view)->owner[a]].node == 10]++;
    server_1_dies();
    view = workers_view();
    assert_false(view_node(view, 10)->alive);
    for (size_t a = 0; a < RING_ARCS; a++) {
        assert_int_equal(view->shards[view_ring(view)->owner[a]].node, 8);
        lost += view->lost[a] == RING_LEVELS;
    }
    assert_int_equal(lost, was[1]);
    assert_int_equal(save(&call), PARAMO_E_AGAIN); /* there is nothing whole to be saved */
    paramo_table_options options = {.size = sizeof options, .dim = 1, .replicas = PARAMO_REPLICAS_OF_JOB};
    struct tcall opens; /* another loss now must not be its */
    tcall_init(&opens);
    tnode_enter(worker());
    assert_int_equal(
        member_table_open(worker()->member, &opens.call, "later", &options, in_seconds(&t.c, 60)), PARAMO_OK);
    tnode_leave(worker());
    open_table("t"); /* that is there */
    cluster_kill(&t.c.nodes[3]);
    assert_true(cluster_run(&t.c, guest_is_dead, NULL, 60));
    assert_false(opens.done);
    restored();
    assert_int_equal(t.restores, 1); /* nobody has begun again because a worker has gone */
    assert_int_equal(answered(&opens), PARAMO_OK);
    assert_int_equal(save(&call), PARAMO_OK);
    start_server(4); /* another comes: it has its share, which is nobody's loss */
    assert_true(cluster_run(&t.c, tnode_joined, &t.c.nodes[4], 20));
    off();
    disk_end();
}

static void nothing_to_restore_from(void **state)
{
    (void)state;
    t.on_loss = true;
    on_joined();
    open_table("t");
    cluster_kill(&t.c.nodes[1]);
    over_with("they cannot be restored: ");
    on_lossy();
    open_table("since");
    cluster_kill(&t.c.nodes[1]);
    over_with("has no table since");
    on_lossy(); /* damaged: no older one is taken instead */
    assert_true(simfs_flip(t.disk, DIR "/00000001/manifest", 30, 1));
    cluster_kill(&t.c.nodes[1]);
    over_with("they cannot be restored: ");
    on_lossy();
    t.on_loss = true;
    off();
    on_joined(); /* another job, of which there is none */
    open_table("t");
    cluster_kill(&t.c.nodes[1]);
    over_with("of another job");
}

/* One that dies in the middle; one that never can. */
static void restoring_fails(void **state)
{
    (void)state;
    on_lossy();
    server_1_dies();
    cluster_kill(&t.c.nodes[0]);
    over_with("no server is left");
    on_lossy();
    t.cannot = PARAMO_E_IO;
    cluster_kill(&t.c.nodes[1]);
    over_with("so it is");
    on_lossy();
    t.cannot = PARAMO_E_AGAIN;
    cluster_kill(&t.c.nodes[1]);
    over_with("so it is");
    on_lossy();
    t.cannot = PARAMO_E_AGAIN;
    cluster_kill(&t.c.nodes[1]);
    assert_true(cluster_run(&t.c, one_is_dead, NULL, 60));
    cluster_pass(&t.c, 2);
    t.cannot = PARAMO_OK; /* now it can */
    bool lost = false;
    assert_true(cluster_run(&t.c, lost_is_seen, &lost, 20));
    assert_true(t.restores > 1);
    off();
    disk_end();
}

/* A table without copies, in a job that has some: it is restored, or the job goes on without it. */
static void of_a_table_without_copies(void **state)
{
    (void)state;
    for (int saved = 0; saved < 2; saved++) {
        struct tcall call;
        bool lost = false;
        t.on_loss = true;
        t.replicas = 1;
        on_joined();
        open_table("t");
        open_table_of("none", 0);
        if (saved) {
            assert_int_equal(save(&call), PARAMO_OK);
            server_1_dies();
            for (size_t a = 0; a < RING_ARCS; a++)
                assert_true(workers_view()->lost[a] <= 1);
            restored();
        } else {
            cluster_kill(&t.c.nodes[1]);
            assert_true(cluster_run(&t.c, one_is_dead, NULL, 60));
            cluster_pass(&t.c, 1);
            assert_true(cluster_run(&t.c, lost_is_seen, &lost, 5));
        }
        assert_int_equal(t.restores, saved);
        assert_int_equal(save(&call), PARAMO_OK);
        assert_false(t.c.over);
        off();
        disk_end();
    }
}

/* What views say of it is durable: the next scheduler goes on with it, or without the option ends the job. */
static void killed_while_it_restores(void **state)
{
    (void)state;
    for (int without = 0; without < 2; without++) {
        t.keeps = true;
        on_lossy();
        server_1_dies();
        t.held[0] = 0;
        scheduler_off();
        t.on_loss = !without;
        scheduler_on();
        if (without) {
            over_with("table t");
            continue;
        }
        assert_true(cluster_run(&t.c, held_by_0, NULL, 60));
        restored();
        assert_int_equal(t.restores, 2);
        off();
        disk_end();
    }
}

/* A server's keys were to wait until it comes back; the next scheduler is told to restore them. */
static void told_later(void **state)
{
    (void)state;
    struct tcall call;
    t.keeps = true;
    t.on_loss = false;
    on_joined();
    open_table("t");
    assert_int_equal(save(&call), PARAMO_OK);
    cluster_kill(&t.c.nodes[1]);
    assert_true(cluster_run(&t.c, one_is_dead, NULL, 60));
    cluster_pass(&t.c, 1);
    assert_int_equal(t.restores, 0);
    assert_false(t.c.over);
    scheduler_off();
    t.on_loss = t.wait = true;
    scheduler_on();
    assert_true(cluster_run(&t.c, held_by_0, NULL, 60));
    restored();
    assert_int_equal(t.restores, 1);
    off();
    disk_end();
    t.keeps = false;
}

/* With an argument: that bug is planted (scripts/mutants). */
int main(int argc, char **argv)
{
    if (argc > 1 && !mutant_choose(argv[1]))
        return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_when_all_have_ended),
        cmocka_unit_test(one_server_cannot),
        cmocka_unit_test(one_server_is_gone),
        cmocka_unit_test(one_server_is_gone),
        cmocka_unit_test(too_slow),
        cmocka_unit_test(server_dies),
        cmocka_unit_test(observer),
        cmocka_unit_test(begins_with_one),
        cmocka_unit_test(pools_and_values),
        cmocka_unit_test(killed_while_it_begins),
        cmocka_unit_test(based_on_the_last),
        cmocka_unit_test(every_so_often),
        cmocka_unit_test(what_is_lost_is_restored),
        cmocka_unit_test(nothing_to_restore_from),
        cmocka_unit_test(restoring_fails),
        cmocka_unit_test(of_a_table_without_copies),
        cmocka_unit_test(killed_while_it_restores),
        cmocka_unit_test(told_later),
        cmocka_unit_test(every_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
