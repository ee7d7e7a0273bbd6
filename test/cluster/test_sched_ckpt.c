/* A checkpoint of a whole job: it is there when every server has done its part, and only then. */
#include "cluster/checkpoint/ckpt.h"
#include "cluster/member/member_orders.h"
#include "cluster/support_ckpt_job.h"

#include <stdio.h>
#include <string.h>

#include "cluster/member/admin_query.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_orders.h"
#include "cluster/scheduler/sched_roster.h"
#include "wire/order.h"

static void ask(struct tcall *call, int what, double seconds)
{
    ckpt_ask(call, what, CKPT_DIR, seconds);
}

/* What the servers were told: what it is based on, 0: nothing. */
static uint64_t changes_in(const char *dir)
{
    struct tcall call;
    ckpt_ask(&call, CKPT_ASK_CHANGES, dir, 20);
    assert_int_equal(ckpt_answered(&call), PARAMO_OK);
    assert_int_equal(ckpt_job.order.number, call.call.result.number);
    assert_true(ckpt_job.order.changes);
    assert_int_equal(!ckpt_job.order.base, !ckpt_job.order.base_id);
    return ckpt_job.order.base;
}

static uint64_t changes(void)
{
    return changes_in(CKPT_DIR);
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
    paramo_err err = ckpt_open(simfs_fs(ckpt_job.disk), CKPT_DIR, 0, &ckpt);
    if (err) {
        assert_int_equal(err, PARAMO_E_NOT_FOUND);
        return 0;
    }
    uint64_t number = ckpt_manifest(ckpt, 0)->number;
    unsigned files = ckpt_manifest(ckpt, 0)->files_count;
    assert_int_equal(ckpt_visit(ckpt, NULL, any_block, NULL), PARAMO_OK);
    assert_int_equal(files, CKPT_SERVERS);
    ckpt_close(ckpt);
    return number;
}

static bool both_wait(void *arg)
{
    (void)arg;
    return ckpt_job.held[0] && ckpt_job.held[1];
}

static void answer_held(unsigned i)
{
    uint64_t order = ckpt_job.held[i];
    ckpt_job.held[i] = 0;
    tnode_enter(&ckpt_job.c.nodes[i]);
    ckpt_do_part(&ckpt_job.c.nodes[i], order);
    tnode_leave(&ckpt_job.c.nodes[i]);
}

static void whole_when_all_have_ended(void **state)
{
    (void)state;
    struct tcall call, other;
    ckpt_on_joined();
    ckpt_open_table("t");
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    assert_int_equal(call.call.result.number, 1);
    assert_int_equal(last_whole(), 1);
    ckpt_job.wait = true;
    ask(&call, CKPT_ASK_SAVE, 20);
    assert_true(cluster_run(&ckpt_job.c, both_wait, NULL, 5));
    ask(&other, CKPT_ASK_SAVE, 20);
    assert_int_equal(ckpt_answered(&other), PARAMO_E_AGAIN); /* one at a time */
    answer_held(1);
    cluster_pass(&ckpt_job.c, 2);
    assert_false(call.done);
    assert_int_equal(last_whole(), 1);
    answer_held(0);
    assert_int_equal(ckpt_answered(&call), PARAMO_OK);
    assert_int_equal(last_whole(), 2);
    ckpt_off();
    ckpt_disk_end();
}

static void one_server_cannot(void **state)
{
    (void)state;
    struct tcall call;
    ckpt_on_joined();
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    ckpt_job.fail = true;
    assert_int_equal(ckpt_save(&call), PARAMO_E_IO);
    assert_string_equal(call.text, "server 1 (node 10, host): the disk of server 1 is broken");
    cluster_pass(&ckpt_job.c, 1);
    assert_int_equal(last_whole(), 1);
    ckpt_job.fail = false;
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    assert_int_equal(call.call.result.number, 3);
    ckpt_off();
    ckpt_disk_end();
}

/* A dead server whose rows all have copies elsewhere does not matter; the owners of lost rows do. */
static void one_server_is_gone(void **state)
{
    (void)state;
    struct tcall call;
    for (uint32_t replicas = 0; replicas <= 1; replicas++) {
        ckpt_job.replicas = replicas;
        ckpt_on_joined();
        assert_int_equal(ckpt_save(&call), PARAMO_OK);
        cluster_kill(&ckpt_job.c.nodes[1]);
        assert_true(cluster_run(&ckpt_job.c, ckpt_one_is_dead, NULL, 30));
        assert_int_equal(ckpt_save(&call), replicas ? PARAMO_OK : PARAMO_E_NODE_LOST);
        if (replicas) {
            struct ckpt *ckpt;
            assert_int_equal(ckpt_open(simfs_fs(ckpt_job.disk), CKPT_DIR, 0, &ckpt), PARAMO_OK);
            assert_int_equal(ckpt_manifest(ckpt, 0)->number, 2);
            assert_int_equal(ckpt_manifest(ckpt, 0)->files_count, 1);
            ckpt_close(ckpt);
        }
        ckpt_off();
        ckpt_disk_end();
    }
}

static bool newcomer_waits(void *arg)
{
    (void)arg;
    return both_wait(NULL) && ckpt_job.held[CKPT_SERVERS + 1];
}

/* One that owns nothing, for it has been drained, is told that it may go while others save. */
static void one_server_leaves(void **state)
{
    (void)state;
    struct tcall call;
    ckpt_on_joined();
    ckpt_start_server(CKPT_SERVERS + 1);
    assert_true(cluster_run(&ckpt_job.c, tnode_joined, &ckpt_job.c.nodes[CKPT_SERVERS + 1], 5));
    ckpt_job.wait = true;
    ask(&call, CKPT_ASK_SAVE, 20);
    assert_true(cluster_run(&ckpt_job.c, newcomer_waits, NULL, 5));
    cluster_leave(&ckpt_job.c.nodes[CKPT_SERVERS + 1]);
    cluster_pass(&ckpt_job.c, 1);
    assert_false(call.done);
    for (unsigned i = 0; i < CKPT_SERVERS; i++)
        answer_held(i);
    assert_int_equal(ckpt_answered(&call), PARAMO_OK);
    assert_int_equal(last_whole(), 1);
    ckpt_off();
    ckpt_disk_end();
}

static void too_slow(void **state)
{
    (void)state;
    struct tcall call;
    ckpt_on_joined();
    ckpt_job.wait = true;
    ask(&call, CKPT_ASK_SAVE, 2);
    assert_int_equal(ckpt_answered(&call), PARAMO_E_TIMEOUT);
    cluster_pass(&ckpt_job.c, 1);
    assert_int_equal(ckpt_job.drops, CKPT_SERVERS); /* they need not go on */
    ckpt_job.wait = false;
    assert_int_equal(ckpt_save(&call), PARAMO_E_AGAIN); /* they still have it */
    for (unsigned i = 0; i < CKPT_SERVERS; i++)
        answer_held(i);
    cluster_pass(&ckpt_job.c, 1);
    assert_int_equal(last_whole(), 0);
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    assert_int_equal(last_whole(), 2);
    ckpt_off();
    ckpt_disk_end();
}

static void server_dies(void **state)
{
    (void)state;
    struct tcall call;
    ckpt_on_joined();
    ckpt_job.wait = true;
    ask(&call, CKPT_ASK_SAVE, 50);
    assert_true(cluster_run(&ckpt_job.c, both_wait, NULL, 5));
    answer_held(1);
    cluster_kill(&ckpt_job.c.nodes[0]);
    assert_int_equal(ckpt_answered(&call), PARAMO_E_NODE_LOST);
    assert_non_null(strstr(call.text, "server 0"));
    assert_int_equal(last_whole(), 0);
    ckpt_off();
    ckpt_disk_end();
}

static void seen(void *arg, paramo_err status, struct admin_query_result *result)
{
    (void)arg;
    ckpt_job.looked = true;
    ckpt_job.query_status = status;
    ckpt_job.query_number = result->number;
}

static bool is_seen(void *arg)
{
    (void)arg;
    return ckpt_job.looked;
}

/* A client without a place in the job asks, too. */
static void admin_client(void **state)
{
    (void)state;
    struct admin_query *admin_query;
    struct van *van;
    struct ckpt_order m = {.timeout_ms = 20000, .dir = CKPT_DIR};
    ckpt_on_joined();
    ckpt_open_table("t");
    struct tnode *node = &ckpt_job.c.nodes[9];
    assert_int_equal(van_sim_create(ckpt_job.c.net, "observer", &van), PARAMO_OK);
    for (int load = 0; load < 3; load++) {
        m.changes = load == 2; /* means nothing for a load */
        struct admin_query_config config = {.van = van,
                                            .lane = node->lane,
                                            .scheduler = "scheduler:1",
                                            .token = "token",
                                            .incarnation = 99,
                                            .deadline = in_seconds(&ckpt_job.c, 30),
                                            .ckpt = &m,
                                            .load = load > 0,
                                            .done = seen};
        ckpt_job.looked = false;
        assert_true(lane_enter(node->lane));
        assert_int_equal(admin_query_start(&config, &admin_query), PARAMO_OK);
        lane_leave(node->lane);
        assert_true(cluster_run(&ckpt_job.c, is_seen, NULL, 60));
        assert_int_equal(ckpt_job.query_status, PARAMO_OK);
        assert_int_equal(ckpt_job.query_number, 1);
        assert_false(ckpt_job.order.changes);
    }
    assert_int_equal(ckpt_job.loads, 2 * CKPT_SERVERS);
    ckpt_job.c.old_vans[ckpt_job.c.old_count++] = van;
    ckpt_off();
    ckpt_disk_end();
}

/* The job ends while a checkpoint is taken, in each of its steps: the client hears of one only if it is whole. */
static void the_job_ends_first(void **state)
{
    (void)state;
    bool whole = false;
    for (unsigned steps = 1; !whole; steps++) {
        struct admin_query *admin_query;
        struct van *van;
        struct ckpt_order m = {.timeout_ms = 20000, .dir = CKPT_DIR};
        assert_true(steps < 1000);
        ckpt_on_joined();
        ckpt_open_table("t");
        struct tnode *node = &ckpt_job.c.nodes[9];
        assert_int_equal(van_sim_create(ckpt_job.c.net, "observer", &van), PARAMO_OK);
        struct admin_query_config config = {.van = van,
                                            .lane = node->lane,
                                            .scheduler = "scheduler:1",
                                            .token = "token",
                                            .incarnation = 99,
                                            .deadline = in_seconds(&ckpt_job.c, 30),
                                            .ckpt = &m,
                                            .done = seen};
        assert_true(lane_enter(node->lane));
        assert_int_equal(admin_query_start(&config, &admin_query), PARAMO_OK);
        lane_leave(node->lane);
        for (unsigned i = 0; i < steps; i++)
            assert_true(sim_step(ckpt_job.c.sim));
        whole = ckpt_job.looked;
        assert_true(lane_enter(ckpt_job.c.lane));
        scheduler_end(ckpt_job.c.scheduler, PARAMO_E_DATA_LOST, "all is lost");
        lane_leave(ckpt_job.c.lane);
        assert_true(cluster_run(&ckpt_job.c, is_seen, NULL, 60));
        if (!ckpt_job.query_status)
            assert_int_equal(last_whole(), ckpt_job.query_number);
        ckpt_job.c.old_vans[ckpt_job.c.old_count++] = van;
        ckpt_off();
        ckpt_disk_end();
    }
}

/* The workers of a job that begins with a checkpoint join when it is loaded. */
static void begins_with_one(void **state)
{
    (void)state;
    struct tcall call;
    ckpt_on_joined();
    ckpt_open_table("t");
    ckpt_open_table("u");
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    ckpt_off();
    ckpt_on(CKPT_DIR);
    ckpt_job.wait = true;
    assert_true(cluster_run(&ckpt_job.c, both_wait, NULL, 20));
    cluster_pass(&ckpt_job.c, 3);
    assert_false(ckpt_worker()->joined);
    assert_int_equal(ckpt_job.order.number, 1);
    for (unsigned i = 0; i < CKPT_SERVERS; i++) {
        tnode_enter(&ckpt_job.c.nodes[i]);
        assert_int_equal(member_view(ckpt_job.c.nodes[i].member)->tables_count, 2);
        member_order_done(ckpt_job.c.nodes[i].member, ckpt_job.held[i], PARAMO_OK, NULL);
        tnode_leave(&ckpt_job.c.nodes[i]);
    }
    assert_true(cluster_run(&ckpt_job.c, tnode_joined, ckpt_worker(), 5));
    assert_int_equal(ckpt_worker()->joined_status, PARAMO_OK);
    assert_int_equal(member_view(ckpt_worker()->member)->tables_count, 2);
    ckpt_off();
    /* A damaged one is not begun with. */
    assert_true(simfs_flip(ckpt_job.disk, CKPT_DIR "/00000001/manifest", 30, 1));
    ckpt_on(CKPT_DIR);
    assert_true(cluster_run(&ckpt_job.c, cluster_over, &ckpt_job.c, 60));
    assert_int_equal(ckpt_job.c.over_status, PARAMO_E_CORRUPT);
    ckpt_off();
    ckpt_disk_end();
}

#define CALL(call, ...)                                                                                      \
    do {                                                                                                     \
        tcall_init(call);                                                                                    \
        tnode_enter(ckpt_worker());                                                                          \
        assert_int_equal(__VA_ARGS__, PARAMO_OK);                                                            \
        tnode_leave(ckpt_worker());                                                                          \
        assert_int_equal(ckpt_answered(call), PARAMO_OK);                                                    \
    } while (0)

static struct work_unit next_part(void)
{
    struct tcall call;
    CALL(&call,
         member_pool_next(ckpt_worker()->member, &call.call, "p", 0, 0, 0, in_seconds(&ckpt_job.c, 5)));
    assert_int_equal(call.call.result.state, POOL_GOT);
    return call.call.result.unit;
}

static void part_done(const struct work_unit *unit)
{
    struct tcall call;
    CALL(&call, member_pool_done(ckpt_worker()->member, &call.call, "p", unit, in_seconds(&ckpt_job.c, 5)));
}

static double sum_plus(double more)
{
    struct tcall call;
    double sum;
    CALL(&call,
         member_kv_add(ckpt_worker()->member, &call.call, "sum", &more, 1, in_seconds(&ckpt_job.c, 5)));
    CALL(&call, member_kv_get(ckpt_worker()->member, &call.call, "sum", in_seconds(&ckpt_job.c, 5)));
    memcpy(&sum, call.value, sizeof sum);
    return sum;
}

/* The scheduler's record of the work comes back; the holder of a unit is gone, so the unit is dealt again. */
static void pools_and_values(void **state)
{
    (void)state;
    struct tcall call;
    struct work_unit parts[4];
    ckpt_on_joined();
    CALL(&call, member_pool_open(ckpt_worker()->member, &call.call, "p", 1, 2, in_seconds(&ckpt_job.c, 5)));
    for (unsigned i = 0; i < 4; i++)
        parts[i] = next_part();
    part_done(&parts[0]);
    part_done(&parts[2]);
    assert_true(sum_plus(2) == 2);
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    part_done(&parts[1]); /* later: no part of it */
    assert_true(sum_plus(3) == 5);
    ask(&call, CKPT_ASK_LOAD, 20); /* into the running job: its work is as it is */
    assert_int_equal(ckpt_answered(&call), PARAMO_OK);
    assert_true(sum_plus(0) == 5);
    ckpt_off();
    ckpt_on(CKPT_DIR);
    assert_true(cluster_run(&ckpt_job.c, tnode_joined, ckpt_worker(), 20));
    assert_true(sum_plus(0) == 2);
    static const uint64_t left[] = {1, 3, 4};
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(next_part().index, left[i]);
    ckpt_off();
    ckpt_disk_end();
}

/* The scheduler dies while the job's checkpoint is loaded: the next one loads it again, and once it is loaded no
 * scheduler does. */
static void killed_while_it_begins(void **state)
{
    (void)state;
    struct tcall call;
    ckpt_on_joined();
    assert_true(sum_plus(2) == 2);
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    ckpt_off();
    ckpt_job.keeps = true;
    ckpt_on(CKPT_DIR);
    ckpt_job.wait = true;
    assert_true(cluster_run(&ckpt_job.c, both_wait, NULL, 20));
    for (int again = 0; again < 2; again++) {
        assert_int_equal(ckpt_job.loads, CKPT_SERVERS * (1 + again));
        memset(ckpt_job.held, 0, sizeof ckpt_job.held);
        ckpt_scheduler_off();
        ckpt_job.wait = again == 0;
        ckpt_scheduler_on();
        if (!again)
            assert_true(cluster_run(&ckpt_job.c, both_wait, NULL, 20));
        assert_false(ckpt_worker()->joined);
    }
    assert_true(cluster_run(&ckpt_job.c, tnode_joined, ckpt_worker(), 20));
    assert_int_equal(ckpt_job.loads, CKPT_SERVERS * 3);
    assert_true(sum_plus(3) == 5);
    ckpt_scheduler_off();
    ckpt_scheduler_on();
    assert_true(sum_plus(0) == 5);
    assert_int_equal(ckpt_job.loads, CKPT_SERVERS * 3);
    ckpt_off();
    ckpt_disk_end();
}

/* Of what has changed since the last one, if the shards can know that. */
static void based_on_the_last(void **state)
{
    (void)state;
    struct tcall call;
    ckpt_on_joined();
    ckpt_open_table("t");
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    assert_false(ckpt_job.order.changes); /* no shard records the changes after it */
    assert_int_equal(changes(), 0);
    assert_int_equal(changes(), 2);
    uint64_t id = ckpt_job.order.id;
    assert_int_equal(changes(), 3);
    assert_int_equal(ckpt_job.order.base_id, id);
    assert_int_equal(last_whole(), 4);
    assert_int_equal(changes(), 0); /* three based on each other are enough */
    assert_int_equal(changes(), 5);
    ckpt_job.fail = true;
    ask(&call, CKPT_ASK_CHANGES, 20);
    assert_int_equal(ckpt_answered(&call), PARAMO_E_IO); /* server 0 knows changes since 7 only now */
    ckpt_job.fail = false;
    cluster_pass(&ckpt_job.c, 1);
    assert_int_equal(changes(), 0);
    assert_int_equal(changes_in("/d/elsewhere"), 0);
    assert_int_equal(changes_in("/d/elsewhere"), 1);
    assert_int_equal(changes(), 0);
    ask(&call, CKPT_ASK_LOAD, 20);
    assert_int_equal(ckpt_answered(&call), PARAMO_OK);
    assert_int_equal(changes(), 0);
    assert_int_equal(fs_unlink(simfs_fs(ckpt_job.disk), CKPT_DIR "/00000010/manifest"), PARAMO_OK);
    assert_int_equal(changes(), 0);
    assert_int_equal(changes(), 11);
    ckpt_off();
    ckpt_on(CKPT_DIR); /* another scheduler, which took none of them */
    assert_true(cluster_run(&ckpt_job.c, tnode_joined, ckpt_worker(), 20));
    assert_int_equal(changes(), 0);
    assert_int_equal(changes(), 13);
    ckpt_off();
    ckpt_disk_end();
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
    assert_int_equal(ckpt_list(simfs_fs(ckpt_job.disk), CKPT_DIR, see, &there), PARAMO_OK);
    return there;
}

#define N(number) (UINT64_C(1) << (number))

static void clock_on(const char *restore, uint32_t keep)
{
    ckpt_job.applied_window_retain = keep;
    ckpt_on(restore);
    assert_true(cluster_run(&ckpt_job.c, tnode_joined, ckpt_worker(), 20));
}

/* The clock takes them, each third in full, and removes its own old ones. */
static void every_so_often(void **state)
{
    (void)state;
    struct tcall call;
    ckpt_on_joined();
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    ckpt_off();
    clock_on("", 2); /* another job: 1 is not its own */
    cluster_pass(&ckpt_job.c, 35);
    struct there there = what_is_there();
    assert_int_equal(there.whole, N(1) | N(2) | N(3) | N(4));
    assert_int_equal(there.based, N(3) | N(4));
    assert_int_equal(ckpt_save(&call), PARAMO_OK); /* in full, and it stays */
    cluster_pass(&ckpt_job.c, 10);
    assert_int_equal(ckpt_job.order.base, 5);
    cluster_pass(&ckpt_job.c, 20);
    there = what_is_there(); /* 8 is full, 7 and 6 are based on 5; of 8 and 7 no other is the base */
    assert_int_equal(there.whole, N(1) | N(5) | N(6) | N(7) | N(8));
    assert_int_equal(there.based, N(6) | N(7));
    assert_int_equal(there.other, 0);
    ckpt_off();
    clock_on(CKPT_DIR, 1); /* it goes on with that job, so these are its own */
    cluster_pass(&ckpt_job.c, 11);
    there = what_is_there();
    assert_int_equal(there.whole, N(1) | N(5) | N(9));
    ckpt_off();
    clock_on("", 1);
    cluster_pass(&ckpt_job.c, 11);
    there = what_is_there();
    assert_int_equal(there.whole, N(1) | N(5) | N(9) | N(10));
    assert_int_equal(last_whole(), 10);
    ckpt_off();
    ckpt_job.applied_window_retain = 0;
    ckpt_disk_end();
}

/* Migrations begin towards this server, and do not end. */
static void begin_migrations(void)
{
    ckpt_start_server(CKPT_SERVERS + 1);
    assert_true(cluster_run(&ckpt_job.c, tnode_joined, &ckpt_job.c.nodes[CKPT_SERVERS + 1], 5));
    cluster_pass(&ckpt_job.c, 0.1);
    assert_true(ckpt_job.sources > 0);
}

/* Each checkpoint makes migrations begin again, so the clock's waits for those that have begun; but not forever. */
static void the_clock_waits_for_migrations(void **state)
{
    (void)state;
    clock_on("", 2);
    begin_migrations();
    unsigned sources = ckpt_job.sources;
    cluster_pass(&ckpt_job.c, 35);
    assert_int_equal(ckpt_job.saves, 0);
    assert_int_equal(ckpt_job.sources, sources);
    cluster_pass(&ckpt_job.c, 10);
    assert_int_equal(what_is_there().whole, N(1));
    assert_true(ckpt_job.sources > sources);
    ckpt_off();
    ckpt_job.applied_window_retain = 0;
    ckpt_disk_end();
}

/* It has a part of the save, without a file: it owns nothing yet. */
static void answer_newcomer(void)
{
    static const struct ckpt_written nothing_written;
    struct tnode *node = &ckpt_job.c.nodes[CKPT_SERVERS + 1];
    struct writer result = {0};
    ckpt_written_encode(&nothing_written, &result);
    tnode_enter(node);
    member_order_done(node->member, ckpt_job.held[CKPT_SERVERS + 1], PARAMO_OK, &result);
    tnode_leave(node);
    ckpt_job.held[CKPT_SERVERS + 1] = 0;
}

/* A save ends migrations that have begun. They begin again at its end, however it ends, and not before. */
static void migrations_begin_again_after_a_save(void **state)
{
    (void)state;
    static const paramo_err ends[] = {PARAMO_OK, PARAMO_E_AGAIN, PARAMO_E_IO};
    struct tcall call;
    ckpt_on_joined();
    begin_migrations();
    for (unsigned i = 0; i < 3; i++) {
        unsigned sources = ckpt_job.sources;
        ckpt_job.wait = true;
        ckpt_job.fail = ends[i] != PARAMO_OK;
        ckpt_job.cannot = ends[i];
        ask(&call, CKPT_ASK_SAVE, 20);
        assert_true(cluster_run(&ckpt_job.c, newcomer_waits, NULL, 5));
        cluster_pass(&ckpt_job.c, 10); /* shards wait until they are ready */
        assert_int_equal(ckpt_job.sources, sources);
        for (unsigned n = 0; n < CKPT_SERVERS; n++)
            answer_held(n);
        answer_newcomer();
        ckpt_job.wait = ckpt_job.fail = false;
        ckpt_job.cannot = PARAMO_OK;
        assert_int_equal(ckpt_answered(&call), ends[i]);
        cluster_pass(&ckpt_job.c, 0.1);
        assert_true(ckpt_job.sources > sources);
    }
    ckpt_off();
    ckpt_disk_end();
}

/* A client with the token cannot have foreign files overwritten, or new ones written anywhere. */
static void only_where_it_may(void **state)
{
    (void)state;
    static const struct {
        const char *dir;
        paramo_err named, allowed, any; /* with --checkpoint-dir, with --checkpoint-allow, with neither */
    } asked[] = {
        {CKPT_DIR, PARAMO_OK, PARAMO_E_REFUSED, PARAMO_OK},
        {CKPT_DIR "/deeper", PARAMO_OK, PARAMO_E_REFUSED, PARAMO_OK},
        {CKPT_DIR "//.././ckpt/deeper/.", PARAMO_OK, PARAMO_E_REFUSED, PARAMO_OK},
        {CKPT_DIR "2", PARAMO_E_REFUSED, PARAMO_E_REFUSED, PARAMO_OK},
        {CKPT_DIR "/../other", PARAMO_E_REFUSED, PARAMO_E_REFUSED, PARAMO_OK},
        {"/d", PARAMO_E_REFUSED, PARAMO_E_REFUSED, PARAMO_E_REFUSED}, /* it has other things in it */
        {"/d/one", PARAMO_E_REFUSED, PARAMO_OK, PARAMO_OK},
        {"/d/two/../one", PARAMO_E_REFUSED, PARAMO_OK, PARAMO_OK},
        {"/d/two", PARAMO_E_REFUSED, PARAMO_OK, PARAMO_OK},
        {"/d/twofold", PARAMO_E_REFUSED, PARAMO_E_REFUSED, PARAMO_OK},
    };
    for (int how = 0; how < 3; how++) {
        struct tcall call;
        ckpt_on_joined();
        struct scheduler_config *config = &ckpt_job.c.scheduler->config;
        assert_int_equal(ckpt_save(&call), PARAMO_OK);
        if (how)
            config->checkpoint_dir[0] = '\0';
        if (how == 1)
            (void)snprintf(config->checkpoint_allow, sizeof config->checkpoint_allow, "/d/./one/:/d/two");
        else
            config->checkpoint_allow[0] = '\0';
        for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
            paramo_err want = how == 0 ? asked[i].named : how == 1 ? asked[i].allowed : asked[i].any;
            unsigned saves = ckpt_job.saves, loads = ckpt_job.loads;
            ckpt_ask(&call, CKPT_ASK_SAVE, asked[i].dir, 20);
            assert_int_equal(ckpt_answered(&call), want);
            assert_int_equal(ckpt_job.saves, saves + (want ? 0 : CKPT_SERVERS));
            ckpt_ask(&call, CKPT_ASK_LOAD, asked[i].dir, 20);
            (void)ckpt_answered(&call);
            assert_true(!want || how == 2 ||
                        call.status == PARAMO_E_REFUSED); /* nothing is read there, either */
            assert_int_equal(ckpt_job.loads, loads + (call.status ? 0 : CKPT_SERVERS));
        }
        ckpt_off();
        ckpt_disk_end();
    }
}

/* A server that names a file that cannot be its part is no part of a checkpoint. */
static void files_of_shards_only(void **state)
{
    (void)state;
    static const char *const names[] = {"",          "manifest",    "../00000001/blocks-0",
                                        "blocks-",   "blocks-4096", "blocks-18446744073709551616",
                                        "blocks-01", "blocks-0 ",   "blocks-0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        static struct ckpt_written written;
        struct writer result = {0};
        struct tcall call;
        ckpt_on_joined();
        ckpt_job.wait = true;
        ask(&call, CKPT_ASK_SAVE, 20);
        assert_true(cluster_run(&ckpt_job.c, both_wait, NULL, 5));
        answer_held(0); /* blocks-0, which is no other's then */
        memset(&written, 0, sizeof written);
        written.count = 1;
        (void)snprintf(written.file[0].name, sizeof written.file[0].name, "%s", names[i]);
        ckpt_written_encode(&written, &result);
        struct tnode *node = &ckpt_job.c.nodes[1];
        tnode_enter(node);
        member_order_done(node->member, ckpt_job.held[1], PARAMO_OK, &result);
        tnode_leave(node);
        ckpt_job.held[1] = 0;
        assert_int_equal(ckpt_answered(&call), PARAMO_E_PROTOCOL);
        assert_int_equal(last_whole(), 0);
        ckpt_off();
        ckpt_disk_end();
    }
}

static void nothing(void *arg, struct sched_node *node, paramo_err status, struct reader *result)
{
    (void)arg, (void)node, (void)status, (void)result;
}

/* No other order has room at server 1, until it has answered those that it has. */
static void server_1_is_full(void)
{
    assert_true(lane_enter(ckpt_job.c.lane));
    struct sched_node *node = sched_roster_find(ckpt_job.c.scheduler, member_id(ckpt_job.c.nodes[1].member));
    for (paramo_err err = PARAMO_OK; !err;) {
        struct writer none = {0};
        err = sched_order_issue(node, CKPT_UNKNOWN_ORDER, &none, nothing, NULL);
        assert_true(!err || err == PARAMO_E_FULL);
    }
    lane_leave(ckpt_job.c.lane);
    cluster_pass(&ckpt_job.c, 1);
}

static void server_1_has_room(void)
{
    struct member *member = ckpt_job.c.nodes[1].member;
    tnode_enter(&ckpt_job.c.nodes[1]);
    for (unsigned i = 0; i < ckpt_job.unknown_count; i++)
        member_order_done(member, ckpt_job.unknown[i], PARAMO_OK, NULL);
    tnode_leave(&ckpt_job.c.nodes[1]);
    ckpt_job.unknown_count = 0;
}

/* A server has the limit of unanswered orders, so GO waits: it is sent when there is room. */
static void go_is_given_later(void **state)
{
    struct tcall call;
    (void)state;
    ckpt_job.replicas = 1;
    ckpt_on_joined();
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    ckpt_job.wait = true;
    ask(&call, CKPT_ASK_LOAD, 20);
    assert_true(cluster_run(&ckpt_job.c, both_wait, NULL, 10));
    for (unsigned i = CKPT_SERVERS; i-- > 0;) {
        tnode_enter(&ckpt_job.c.nodes[i]);
        member_order_done(ckpt_job.c.nodes[i].member, ckpt_job.held[i], PARAMO_OK, NULL);
        tnode_leave(&ckpt_job.c.nodes[i]);
        ckpt_job.held[i] = 0;
        cluster_pass(&ckpt_job.c, 1);
        if (i == 1)
            server_1_is_full();
    }
    assert_int_equal(ckpt_job.goes, 1); /* to server 0 */
    server_1_has_room();
    assert_int_equal(ckpt_answered(&call), PARAMO_OK);
    assert_int_equal(ckpt_job.goes, 2);
    ckpt_off();
    ckpt_disk_end();
    ckpt_job.replicas = 0;
}

/* One server has loaded, the other cannot: both are told to drop the load, and none to continue with its rows. */
static void one_server_cannot_load(void **state)
{
    struct tcall call;
    (void)state;
    ckpt_job.replicas = 1;
    ckpt_on_joined();
    assert_int_equal(ckpt_save(&call), PARAMO_OK);
    ckpt_job.wait = true;
    ask(&call, CKPT_ASK_LOAD, 20);
    assert_true(cluster_run(&ckpt_job.c, both_wait, NULL, 10));
    for (unsigned i = 0; i < CKPT_SERVERS; i++) {
        tnode_enter(&ckpt_job.c.nodes[i]);
        member_order_done(ckpt_job.c.nodes[i].member, ckpt_job.held[i],
                          i ? err_set(PARAMO_E_IO, "its disk is broken") : PARAMO_OK, NULL);
        tnode_leave(&ckpt_job.c.nodes[i]);
        ckpt_job.held[i] = 0;
    }
    assert_int_equal(ckpt_answered(&call), PARAMO_E_IO);
    cluster_pass(&ckpt_job.c, 1);
    assert_int_equal(ckpt_job.drops, CKPT_SERVERS);
    assert_int_equal(ckpt_job.goes, 0);
    ckpt_job.wait = false;
    ask(&call, CKPT_ASK_LOAD, 20);
    assert_int_equal(ckpt_answered(&call), PARAMO_OK);
    assert_int_equal(ckpt_job.goes, CKPT_SERVERS);
    ckpt_off();
    ckpt_disk_end();
    ckpt_job.replicas = 0;
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
            ckpt_on_joined();
            assert_int_equal(ckpt_save(&call), PARAMO_OK);
            uint64_t begun = simfs_steps(ckpt_job.disk);
            simfs_plan(ckpt_job.disk, fault, begun + step);
            paramo_err status = ckpt_save(&call);
            came = simfs_steps(ckpt_job.disk) > begun + step;
            bool crashed = simfs_crashed(ckpt_job.disk);
            if (fault == SIMFS_CRASH && came) {
                assert_true(crashed);
                ckpt_off();
                simfs_restart(ckpt_job.disk);
                assert_in_range(last_whole(), status ? 1 : 2, 2);
                ckpt_disk_end();
                continue;
            }
            simfs_plan(ckpt_job.disk, fault, UINT64_MAX);
            if (!status)
                assert_int_equal(last_whole(), 2);
            else /* the folder's last sync may have failed: it is there, and was not reported */
                assert_in_range(last_whole(), 1, 2);
            assert_int_equal(ckpt_save(&call), PARAMO_OK);
            assert_int_equal(last_whole(), call.call.result.number);
            assert_in_range(last_whole(), 2, 3); /* the number of one that failed is not used again */
            ckpt_off();
            ckpt_disk_end();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_when_all_have_ended),
        cmocka_unit_test(one_server_cannot),
        cmocka_unit_test(one_server_is_gone),
        cmocka_unit_test(one_server_leaves),
        cmocka_unit_test(too_slow),
        cmocka_unit_test(server_dies),
        cmocka_unit_test(admin_client),
        cmocka_unit_test(the_job_ends_first),
        cmocka_unit_test(begins_with_one),
        cmocka_unit_test(pools_and_values),
        cmocka_unit_test(killed_while_it_begins),
        cmocka_unit_test(based_on_the_last),
        cmocka_unit_test(every_so_often),
        cmocka_unit_test(the_clock_waits_for_migrations),
        cmocka_unit_test(migrations_begin_again_after_a_save),
        cmocka_unit_test(go_is_given_later),
        cmocka_unit_test(one_server_cannot_load),
        cmocka_unit_test(every_fault),
        cmocka_unit_test(only_where_it_may),
        cmocka_unit_test(files_of_shards_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
