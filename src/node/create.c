#include "node/create.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "env/process.h"
#include "filter/users.h"
#include "node/config.h"
#include "node/plugins.h"
#include "node/serve.h"
#include "node/tasks.h"
#include "wire/capability.h"

void node_free(paramo_node *node)
{
    tasks_free(node);
    blocking_jobs_destroy(node->blocking_jobs); /* before the lanes to which their ends go */
    for (unsigned i = 0; i < node->member_slots_count; i++) {
        struct member_slot *member_slot = &node->member_slots[i];
        for (unsigned k = 0; k < member_slot->shards_count; k++) {
            node_lane_end(node, member_slot->shards[k].lane);
            view_feed_fini(&member_slot->shards[k].feed);
        }
        free(member_slot->shards);
    }
    node_lane_end(node, node->apps);
    for (unsigned i = 0; i < node->member_slots_count; i++)
        view_feed_fini(&node->member_slots[i].app_endpoint.feed);
    view_feed_fini(&node->scheduler_app_endpoint.feed);
    blocking_jobs_destroy(node->files); /* before the lane to which their ends go */
    node_lane_end(node, node->control);
    if (node->van)
        van_destroy(node->van);
    if (node->interrupt_fd >= 0)
        event_close(node->interrupt_fd);
    free(node->member_slots);
    free(node->ranges);
    config_free(&node->config);
    free(node);
}

static uint64_t random_nonzero(struct env *env)
{
    uint64_t random;
    do {
        random = env_random(env);
    } while (!random);
    return random;
}

static paramo_err member_slot_prepare(paramo_node *node, struct member_slot *member_slot, uint32_t role,
                                      int32_t rank)
{
    *member_slot = (struct member_slot){
        .node = node, .role = role, .rank = rank, .incarnation = random_nonzero(node->env)};
    assert(member_slot->incarnation && !member_slot->member);
    assert(!member_slot->shards_count);
    if (role != PARAMO_ROLE_SERVER)
        return PARAMO_OK;
    unsigned n = node->config.shards;
    member_slot->shards = calloc(n, sizeof *member_slot->shards);
    if (!member_slot->shards)
        return err_memory(n * sizeof *member_slot->shards);
    member_slot->shards_count = n;
    /* The threads that post to embedded shards also run them. Threads of their own would only take processor time. */
    unsigned flags = node->config.roles == PARAMO_ROLE_ALL ? LANE_NO_SPIN : 0;
    for (unsigned i = 0; i < n; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "pm-shard%u", i);
        paramo_err err = lane_create(node->env, name, flags, &member_slot->shards[i].lane);
        if (err)
            return err;
    }
    return PARAMO_OK;
}

/* auto is ucx where its library is installed; the van decides which connections use it. */
static paramo_err node_van(paramo_node *node)
{
    const char *name = node->config.van ? node->config.van : "auto";
    struct van_config config = {.trusted_fabric = node->config.trusted_fabric != 0};
    if (strcmp(name, "auto") != 0) {
        config.required = true;
        return van_create(node->env, name, &config, &node->van);
    }
    paramo_err err = van_ucx_create(node->env, &config, &node->van);
    if (err != PARAMO_E_UNSUPPORTED)
        return err;
    log_info("van: tcp: %s", err_text());
    return van_tcp_create(node->env, &config, &node->van);
}

static paramo_err node_prepare(paramo_node *node)
{
    bool embedded = node->config.roles == PARAMO_ROLE_ALL;
    paramo_err err = event_create(&node->interrupt_fd);
    if (!err)
        err = lane_create(node->env, "pm-control", LANE_NO_BORROW | LANE_NO_SPIN, &node->control);
    if (!err) /* a server's apps are as busy as its tables */
        err = lane_create(node->env, "pm-apps", node->config.roles == PARAMO_ROLE_SERVER ? 0 : LANE_NO_SPIN,
                          &node->apps);
    if (!err && node->config.roles != PARAMO_ROLE_WORKER && node->config.roles != PARAMO_ROLE_READER)
        err = blocking_jobs_create(node->env, "pm-files", &node->blocking_jobs);
    serve_init(node);
    node->fs = fs_real();
    if (!err && node_keeps_state(node))
        err = blocking_jobs_create(node->env, "pm-state", &node->files);
    if (!err)
        err = embedded ? van_inproc_create(node->env, &node->van) : node_van(node);
    if (err)
        return err;
    node->van->capabilities = CAPABILITIES | filter_users_capabilities();
    assert(node->control && node->van);
    assert(!node->member_slots);
    unsigned member_slots = embedded ? node->config.num_servers + 1 : 1;
    node->member_slots = calloc(member_slots, sizeof *node->member_slots);
    if (!node->member_slots)
        return err_memory(member_slots * sizeof *node->member_slots);
    for (unsigned i = 0; i < member_slots && !err; i++) {
        uint32_t role = !embedded              ? node->config.roles
                        : i + 1 < member_slots ? PARAMO_ROLE_SERVER
                                               : PARAMO_ROLE_WORKER;
        int32_t rank = !embedded ? node->config.rank : i + 1 < member_slots ? (int32_t)i : 0;
        node->member_slots_count = i + 1; /* node_free frees what a failed member slot holds */
        err = member_slot_prepare(node, &node->member_slots[i], role, rank);
    }
    if (!err)
        node->own = &node->member_slots[member_slots - 1];
    return err;
}

paramo_err paramo_create(const paramo_config *config, paramo_node **node)
{
    if (!config || !node)
        return err_set(PARAMO_E_INVALID, "config or node is NULL");
    paramo_node *made = calloc(1, sizeof *made);
    if (!made)
        return err_memory(sizeof *made);
    made->generation = process_generation();
    made->env = env_real();
    made->interrupt_fd = -1;
    paramo_err err = config_copy(config, &made->config);
    if (!err)
        err = plugins_load(made->config.plugin); /* before the filters are checked */
    if (!err)
        err = config_check(&made->config);
    if (!err)
        err = node_prepare(made);
    if (!err)
        err = tasks_create(made);
    if (err) {
        node_free(made);
        return err;
    }
    assert(made->own == &made->member_slots[made->member_slots_count - 1]);
    assert(made->tasks);
    *node = made;
    return PARAMO_OK;
}
