#include "cluster/support_simcluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/meta/store_dir.h"

#define SCHEDULER "scheduler:1"

void cluster_init(struct cluster *c, uint64_t seed, uint32_t servers, uint32_t workers)
{
    memset(c, 0, sizeof *c);
    assert_int_equal(sim_create(seed, &c->sim), PARAMO_OK);
    assert_int_equal(simnet_create(c->sim, &c->net), PARAMO_OK);
    assert_int_equal(lane_create(sim_env(c->sim), "scheduler", 0, &c->lane), PARAMO_OK);
    for (size_t i = 0; i < CLUSTER_NODES; i++) {
        c->nodes[i].cluster = c;
        assert_int_equal(lane_create(sim_env(c->sim), "node", 0, &c->nodes[i].lane), PARAMO_OK);
    }
    c->config.num_servers = servers;
    c->config.num_workers = workers;
}

void cluster_fini(struct cluster *c)
{
    for (size_t i = 0; i < CLUSTER_NODES; i++)
        cluster_kill(&c->nodes[i]);
    cluster_kill_scheduler(c);
    cluster_pass(c, 20);
    for (size_t i = 0; i < CLUSTER_NODES; i++)
        lane_destroy(c->nodes[i].lane);
    lane_destroy(c->lane);
    while (c->old_count)
        van_destroy(c->old_vans[--c->old_count]);
    simnet_destroy(c->net);
    sim_destroy(c->sim);
}

static struct van *van_new(struct cluster *c, const char *node)
{
    struct van *van;
    assert_int_equal(van_sim_create(c->net, node, &van), PARAMO_OK);
    van_sim_set_faulty(van, c->faulty);
    return van;
}

static void van_crash(struct cluster *c, struct van *van)
{
    van_sim_crash(van);
    assert_true(c->old_count < CLUSTER_VANS);
    c->old_vans[c->old_count++] = van;
}

static void job_over(void *arg, paramo_err status, const char *text)
{
    struct cluster *c = arg;
    assert_false(c->over);
    c->over = true;
    c->over_status = status;
    snprintf(c->over_text, sizeof c->over_text, "%s", text);
}

static void state_found(void *arg, paramo_err status, const struct store_state *state)
{
    struct cluster *c = arg;
    c->state_told = true;
    c->state_status = status;
    if (status)
        return;
    c->found = *state;
    c->found_records = (struct writer){0};
    sim_hold(c->sim, true);
    write_bytes(&c->found_records, state->records, state->bytes);
    sim_hold(c->sim, false);
    c->found.records = c->found_records.data;
}

static bool state_is_told(void *cluster)
{
    return ((struct cluster *)cluster)->state_told;
}

void cluster_find_state(struct cluster *c, struct simfs *disk, const char *dir,
                        struct blocking_jobs *blocking_jobs)
{
    struct store_dir_config config = {
        .lane = c->lane, .fs = simfs_fs(disk), .dir = dir, .blocking_jobs = blocking_jobs};
    assert_int_equal(store_dir_open(&config, &c->config.store), PARAMO_OK);
    paramo_err err;
    do {
        c->state_told = false;
        assert_true(lane_enter(c->lane));
        err = store_start(c->config.store, state_found, c);
        lane_leave(c->lane);
        if (!err) {
            assert_true(cluster_run(c, state_is_told, c, 5));
            err = c->state_status;
        }
    } while (err == PARAMO_E_MEMORY);
    assert_int_equal(err, PARAMO_OK);
    c->config.found = &c->found;
}

void cluster_start_scheduler(struct cluster *c)
{
    struct scheduler_config config = c->config;
    config.van = c->van = van_new(c, "scheduler");
    config.lane = c->lane;
    config.address = SCHEDULER;
    config.token = "token";
    config.arg = c;
    config.over = job_over;
    c->over = false;
    assert_true(lane_enter(c->lane));
    paramo_err err;
    do
        err = scheduler_create(&config, &c->scheduler);
    while (err == PARAMO_E_MEMORY);
    assert_int_equal(err, PARAMO_OK);
    lane_leave(c->lane);
    writer_fini(&c->found_records);
    c->found_records = (struct writer){0};
}

void cluster_kill_scheduler(struct cluster *c)
{
    if (!c->scheduler)
        return;
    van_crash(c, c->van);
    assert_true(lane_enter(c->lane));
    scheduler_destroy(c->scheduler);
    lane_leave(c->lane);
    c->scheduler = NULL;
}

static void joined(void *arg, paramo_err status, const char *text)
{
    struct tnode *node = arg;
    assert_false(node->joined);
    node->joined = true;
    node->joined_status = status;
    snprintf(node->joined_text, sizeof node->joined_text, "%s", text);
    if (status == PARAMO_OK) {
        struct view *view = member_view(node->member);
        const struct view_node *self = view_node(view, member_id(node->member));
        assert_non_null(self);
        assert_true(self->alive);
        assert_int_equal(self->role, node->role);
        assert_true(view->complete);
    }
    if (node->on_joined)
        node->on_joined(node);
}

static void viewed(void *arg, struct view *view)
{
    struct tnode *node = arg;
    assert_true(view->number > node->view_number);
    node->view_number = view->number;
}

static void ended(void *arg, paramo_err status, const char *text)
{
    struct tnode *node = arg;
    assert_true(node->joined && !node->ended);
    node->ended = true;
    node->ended_status = status;
    snprintf(node->ended_text, sizeof node->ended_text, "%s", text);
    if (node->on_ended)
        node->on_ended(node);
}

struct member_config cluster_member_config(struct cluster *c, struct tnode *node, uint32_t role)
{
    char name[8];
    snprintf(name, sizeof name, "n%d", (int)(node - c->nodes));
    if (!node->van)
        node->van = van_new(c, name);
    return (struct member_config){.van = node->van,
                                  .lane = node->lane,
                                  .scheduler = SCHEDULER,
                                  .token = "token",
                                  .role = role,
                                  .host = "host",
                                  .port = role == PARAMO_ROLE_SERVER ? (uint16_t)(1 + (node - c->nodes)) : 0,
                                  .shards = role == PARAMO_ROLE_SERVER ? 2 : 0,
                                  .name = "",
                                  .weight = role == PARAMO_ROLE_SERVER,
                                  .domain = "",
                                  .rank = -1,
                                  .incarnation = sim_random(c->sim) | 1,
                                  .connect_timeout_ms = 20000,
                                  .heartbeat_ms = 1000,
                                  .heartbeat_timeout_ms = 10000,
                                  .scheduler_wait_ms = 1000,
                                  .frame_bytes = 1 << 24,
                                  .arg = node,
                                  .on_joined = joined,
                                  .on_view = viewed,
                                  .on_ended = ended};
}

void cluster_start_config(struct tnode *node, const struct member_config *config)
{
    assert_null(node->member);
    node->role = config->role;
    node->joined = node->ended = node->left = false;
    node->view_number = 0;
    tnode_enter(node);
    assert_int_equal(member_create(config, &node->member), PARAMO_OK);
    tnode_leave(node);
}

void cluster_start(struct cluster *c, struct tnode *node, uint32_t role)
{
    struct member_config config = cluster_member_config(c, node, role);
    cluster_start_config(node, &config);
}

void cluster_kill(struct tnode *node)
{
    if (!node->member)
        return;
    van_crash(node->cluster, node->van);
    node->van = NULL;
    tnode_enter(node);
    member_destroy(node->member);
    tnode_leave(node);
    node->member = NULL;
}

void cluster_leave(struct tnode *node)
{
    struct tcall leave;
    tcall_init(&leave);
    tnode_enter(node);
    assert_int_equal(member_leave(node->member, &leave.call, in_seconds(node->cluster, 10)), PARAMO_OK);
    tnode_leave(node);
    assert_true(cluster_run(node->cluster, tcall_done, &leave, 20));
    assert_int_equal(leave.status, PARAMO_OK);
    node->left = true;
}

static void nothing(struct sim_event *event)
{
    (void)event;
}

bool cluster_run(struct cluster *c, bool (*done)(void *arg), void *arg, double seconds)
{
    /* A marker, so that the clock comes to this moment though nothing else happens then. */
    struct sim_event marker = {.fire = nothing};
    assert_int_equal(sim_schedule(c->sim, &marker, in_seconds(c, seconds)), PARAMO_OK);
    bool held = sim_run(c->sim, done, arg, marker.at);
    sim_cancel(c->sim, &marker);
    return held;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

void cluster_pass(struct cluster *c, double seconds)
{
    (void)cluster_run(c, never, NULL, seconds);
}

static void tcall_ends(struct member_call *call, paramo_err status)
{
    struct tcall *t = container_of(call, struct tcall, call);
    assert_false(t->done);
    t->done = true;
    t->status = status;
    if (status)
        snprintf(t->text, sizeof t->text, "%s", err_text());
    else if (call->result.value_len && call->result.value_len <= sizeof t->value)
        memcpy(t->value, call->result.value, call->result.value_len);
}

void tcall_init(struct tcall *call)
{
    memset(call, 0, sizeof *call);
    call->call.done = tcall_ends;
}

bool tcall_done(void *call)
{
    return ((struct tcall *)call)->done;
}

bool tnode_joined(void *node)
{
    return ((struct tnode *)node)->joined;
}

bool tnode_ended(void *node)
{
    return ((struct tnode *)node)->ended;
}

bool cluster_over(void *cluster)
{
    return ((struct cluster *)cluster)->over;
}

void tnode_enter(struct tnode *node)
{
    assert_true(lane_enter(node->lane));
}

void tnode_leave(struct tnode *node)
{
    lane_leave(node->lane);
}

uint64_t in_seconds(struct cluster *c, double seconds)
{
    return sim_now(c->sim) + (uint64_t)(seconds * (double)ENV_SEC);
}

void cluster_start_all(struct cluster *c, uint32_t servers, uint32_t workers)
{
    cluster_init(c, 1, servers, workers);
    cluster_start_scheduler(c);
    for (uint32_t i = 0; i < servers + workers; i++) {
        cluster_start(c, &c->nodes[i], i < servers ? PARAMO_ROLE_SERVER : PARAMO_ROLE_WORKER);
        cluster_pass(c, 0.01); /* so that they arrive in this order */
    }
    for (uint32_t i = 0; i < servers + workers; i++) {
        assert_true(cluster_run(c, tnode_joined, &c->nodes[i], 5));
        assert_int_equal(c->nodes[i].joined_status, PARAMO_OK);
    }
}

paramo_err tcall_wait(struct cluster *c, struct tcall *t)
{
    assert_true(cluster_run(c, tcall_done, t, 100));
    return t->status;
}
