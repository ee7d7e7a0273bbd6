/* How a node joins: the scheduler starts with what its store holds, each member slot registers, and every
 * node learns the first complete view. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/meta/store_dir.h"
#include "cluster/meta/store_etcd.h"
#include "env/process.h"
#include "node/config.h"
#include "node/interrupt.h"
#include "node/member_slot.h"
#include "node/node.h"
#include "node/tasks.h"

struct joining {
    paramo_node *node;
    paramo_err err;
    char text[ERR_TEXT_MAX];
    atomic_bool begun; /* member slots are connecting, or err says why not */
};

static void scheduler_over(void *arg, paramo_err status, const char *text)
{
    paramo_node *node = arg;
    assert(lane_held(node->control));
    assert(!atomic_load(&node->over)); /* said once */
    node->over_code = status;
    (void)snprintf(node->over_text, sizeof node->over_text, "%s", text ? text : "");
    atomic_store(&node->over, true);
    lane_notify(node->control);
}

/* A connection to the scheduler's apps. */
static void scheduler_accept(void *arg, struct van_conn *conn, const struct hello *hello)
{
    paramo_node *node = arg;
    assert(lane_held(node->control));
    struct node_shard *endpoint =
        node->scheduler_app_endpoint.shard ? &node->scheduler_app_endpoint : &node->own->app_endpoint;
    node_shard_accept(hello->shard == HELLO_APP_ENDPOINT ? endpoint : NULL, conn, hello);
}

/* Notes the address by which this process reaches the scheduler: loopback if the scheduler listens on all. */
static void scheduler_address_note(paramo_node *node, const char *address)
{
    char host[VIEW_HOST_MAX];
    uint16_t port;
    (void)snprintf(node->scheduler_address_used, sizeof node->scheduler_address_used, "%s", address);
    if (address_split(address, host, sizeof host, &port) == PARAMO_OK && config_host_is_any(host))
        address_join(strcmp(host, "::") == 0 ? "::1" : "127.0.0.1", port, node->scheduler_address_used);
}

static paramo_err place_of_files(const char *dir, char path[FS_PATH_MAX])
{
    return dir && *dir ? process_path(dir, path, FS_PATH_MAX) : PARAMO_OK;
}

/* Makes each path of a list with colons absolute. */
static paramo_err places_of_files(const char *list, char paths[SCHEDULER_ALLOW_MAX])
{
    size_t used = 0;
    paths[0] = '\0';
    while (list && *list) {
        char dir[FS_PATH_MAX], path[FS_PATH_MAX];
        size_t len = strcspn(list, ":");
        if (len >= sizeof dir)
            return err_set(PARAMO_E_TOO_LARGE, "checkpoint_allow: a folder's name is longer than %zu bytes",
                           sizeof dir - 1);
        memcpy(dir, list, len);
        dir[len] = '\0';
        list += len + (list[len] == ':');
        paramo_err err = len ? process_path(dir, path, sizeof path) : PARAMO_OK;
        if (err)
            return err;
        if (!len)
            continue;
        if (used + strlen(path) + 2 > SCHEDULER_ALLOW_MAX)
            return err_set(PARAMO_E_TOO_LARGE, "checkpoint_allow: the paths have more than %d bytes in all",
                           SCHEDULER_ALLOW_MAX);
        used += (size_t)snprintf(paths + used, SCHEDULER_ALLOW_MAX - used, "%s%s", used ? ":" : "", path);
    }
    return PARAMO_OK;
}

static paramo_err join_scheduler(paramo_node *node, const struct store_state *found)
{
    bool embedded = node->config.roles == PARAMO_ROLE_ALL;
    assert(lane_held(node->control));
    assert(!node->scheduler && (!found || node->store));
    const char *address = embedded ? "scheduler:1" : node->place.listen;
    struct scheduler_config config = {
        .van = node->van,
        .lane = node->control,
        .address = address,
        .token = node->config.token ? node->config.token : "",
        .num_servers = node->config.num_servers,
        .num_workers = embedded ? 1 : node->config.num_workers,
        .replicas = node->config.replicas,
        .own_member = !embedded,
        .embedded = embedded,
        .heartbeat_ms = node->config.heartbeat_ms,
        .heartbeat_timeout_ms = node->config.heartbeat_timeout_ms,
        .recovery_ms = node->config.recovery_ms,
        .store = node->store,
        .found = found,
        .fs = node->fs,
        .blocking_jobs = node->blocking_jobs,
        .unix_time = process_unix_time,
        .checkpoint_every_ms = node->config.checkpoint_every_s * 1000,
        .checkpoint_full_every = node->config.checkpoint_full_every,
        .checkpoint_keep = node->config.checkpoint_keep,
        .on_loss_restore = node->config.on_loss == PARAMO_ON_LOSS_RESTORE,
        .arg = node,
        .accept_data = scheduler_accept,
        .over = scheduler_over,
    };
    paramo_err err = place_of_files(node->config.checkpoint_dir, config.checkpoint_dir);
    if (!err)
        err = place_of_files(node->config.restore_dir, config.restore_dir);
    if (!err)
        err = places_of_files(node->config.checkpoint_allow, config.checkpoint_allow);
    if (!err)
        err = scheduler_create(&config, &node->scheduler);
    assert(err || node->scheduler);
    if (!err)
        node->store = NULL; /* the scheduler owns it now */
    if (!err && embedded)
        err = node_shard_make(node, &node->scheduler_app_endpoint, node->apps,
                              scheduler_incarnation(node->scheduler), HELLO_APP_ENDPOINT);
    return err;
}

/* found: the store's records; NULL without a store. */
static void join_with(struct joining *j, const struct store_state *found)
{
    paramo_node *node = j->node;
    bool embedded = node->config.roles == PARAMO_ROLE_ALL;
    assert(!atomic_load(&j->begun)); /* once: the waiter's stack goes after it */
    assert(lane_held(node->control) && !node->joined);
    if (!j->err && (node->config.roles & PARAMO_ROLE_SCHEDULER)) {
        j->err = join_scheduler(node, found);
        if (!j->err)
            process_notify(node->config.notify_fd, "listening\n");
    }
    const char *scheduler = node->scheduler ? scheduler_address(node->scheduler) : node->config.scheduler;
    for (unsigned i = 0; i < node->member_slots_count && !j->err; i++) {
        char listen[ADDRESS_MAX];
        (void)snprintf(listen, sizeof listen, "node:%u", i + 1);
        j->err = member_slot_open(&node->member_slots[i], scheduler, embedded ? listen : NULL);
    }
    if (j->err)
        err_text_copy(j->text);
    lane_notify(node->control);
    atomic_store(&j->begun, true); /* last: the waiter's stack may go */
}

static void store_started(void *arg, paramo_err status, const struct store_state *state)
{
    struct joining *j = arg;
    assert(lane_held(j->node->control) && j->node->store);
    assert(!atomic_load(&j->begun) && !j->node->scheduler);
    j->err = status;
    join_with(j, state);
}

static paramo_err store_open_etcd(paramo_node *node)
{
    assert(node->files && !node->store);
    struct store_etcd_config config = {.lane = node->control,
                                       .blocking_jobs = node->files,
                                       .meta = node->config.meta,
                                       .name = node->place.listen,
                                       .patience_ms = node->config.connect_timeout_ms};
    paramo_err err = http_create(&config.http);
    if (!err)
        err = store_etcd_open(&config, &node->store);
    if (err)
        http_destroy(config.http);
    return err;
}

static paramo_err store_open(struct joining *j)
{
    paramo_node *node = j->node;
    assert(lane_held(node->control) && !node->store && !node->scheduler);
    struct store_dir_config config = {
        .lane = node->control, .blocking_jobs = node->files, .fs = fs_real(), .dir = node->config.state};
    paramo_err err = node->config.meta ? store_open_etcd(node) : store_dir_open(&config, &node->store);
    return err ? err : store_start(node->store, store_started, j);
}

static void join_on_control(void *arg)
{
    struct joining *j = arg;
    paramo_node *node = j->node;
    j->err = node_watch_interrupts(node);
    if (!j->err && node_keeps_state(node)) {
        j->err = store_open(j);
        if (!j->err)
            return;
    }
    join_with(j, NULL);
}

static bool join_begun(void *arg)
{
    const struct joining *j = arg;
    return atomic_load(&j->begun) || atomic_load(&j->node->interrupted);
}

/* A standby scheduler may wait for long: paramo_interrupt ends the wait. */
static void join_give_up(void *arg)
{
    struct joining *j = arg;
    if (atomic_load(&j->begun))
        return;
    assert(lane_held(j->node->control));
    assert(!j->node->scheduler);
    store_close(j->node->store);
    j->node->store = NULL;
    j->err =
        err_set(PARAMO_E_CLOSED, "interrupted before the node had joined the cluster (paramo_interrupt)");
    err_text_copy(j->text);
}

/* All member slots have joined, or one has failed. */
static bool joined_or_failed(void *arg)
{
    paramo_node *node = arg;
    if (atomic_load(&node->interrupted))
        return true;
    unsigned joined = 0;
    for (unsigned i = 0; i < node->member_slots_count; i++) {
        int state = atomic_load(&node->member_slots[i].state);
        if (state == MEMBER_SLOT_FAILED || state == MEMBER_SLOT_ENDED)
            return true;
        joined += state == MEMBER_SLOT_JOINED;
    }
    return joined == node->member_slots_count;
}

/* The job's first ring; tables placed by range always use it. */
static paramo_err learn_ranges(paramo_node *node, const struct view *view)
{
    assert(lane_held(node->control) && !node->ranges);
    struct ring *ring = malloc(sizeof *ring);
    uint32_t *weights = malloc((view->shards_count + 1) * sizeof *weights);
    node->ranges = calloc(view->num_servers + 1, sizeof *node->ranges);
    paramo_err err = ring && weights && node->ranges ? PARAMO_OK : err_memory(sizeof *ring);
    for (uint32_t i = 0; !err && i < view->shards_count; i++)
        weights[i] = view_node(view, view->shards[i].node)->weight;
    if (!err && view->shards_count)
        err = ring_assign(weights, view->shards_count, NULL, ring);
    for (unsigned a = 0; !err && view->shards_count && a < RING_PARTITIONS; a++) {
        assert(ring->owner[a] < view->shards_count);
        uint32_t rank = (view->shards[ring->owner[a]].node - PARAMO_ID_SERVER(0)) / 2;
        if (rank >= view->num_servers)
            continue;
        if (!node->ranges[rank].partitions++)
            node->ranges[rank].first_partition = a;
    }
    free(weights);
    free(ring);
    return err;
}

static void learn_self(void *arg)
{
    struct joining *j = arg;
    paramo_node *node = j->node;
    struct member *member = node->own->member;
    const struct view *view = node_view(node);
    assert(view && !node->ranges); /* a node that has joined has a view */
    assert(lane_held(node->control) && !node->joined);
    scheduler_address_note(node, member ? member_scheduler(member) : node->config.scheduler);
    if (member) {
        node->id = member_id(member);
        node->rank = member_rank(member);
        node->recovered = member_recovered(member);
    }
    node->num_servers = view->num_servers;
    node->num_workers = view->num_workers;
    j->err = learn_ranges(node, view);
    if (j->err)
        err_text_copy(j->text);
}

paramo_err paramo_join(paramo_node *node)
{
    paramo_err err = node_check(node);
    if (err)
        return err;
    if (node->join_begun)
        return err_set(PARAMO_E_INVALID, "the node has joined already");
    node->join_begun = true;
    assert(!node->joined && !node->scheduler);
    assert(!node->store);
    struct joining j = {.node = node};
    err = config_place(&node->config, &node->place);
    if (err)
        return err;
    err = node_run_on(node->control, join_on_control, &j);
    if (!err) /* no deadline: only the disk, or a standby scheduler's wait, takes long */
        err = lane_wait(node->control, join_begun, &j, UINT64_MAX);
    if (!err)
        err = node_run_on(node->control, join_give_up, &j);
    if (err)
        return err;
    if (j.err)
        return err_set(j.err, "%s", j.text);
    /* The members keep the deadline and know which nodes are missing; this one is a safety net. */
    uint64_t deadline = env_now(node->env) + (node->config.connect_timeout_ms + 10000) * ENV_MS;
    err = lane_wait(node->control, joined_or_failed, node, deadline);
    if (err)
        return err;
    for (unsigned i = 0; i < node->member_slots_count; i++) {
        struct member_slot *member_slot = &node->member_slots[i];
        int state = atomic_load(&member_slot->state);
        if (state == MEMBER_SLOT_FAILED || (state == MEMBER_SLOT_ENDED && member_slot->code))
            return err_set(member_slot->code, "%s", member_slot->text);
    }
    if (atomic_load(&node->interrupted))
        return err_set(PARAMO_E_CLOSED,
                       "interrupted before the node had joined the cluster (paramo_interrupt)");
    err = node_run_on(node->control, learn_self, &j);
    if (!err && j.err)
        err = err_set(j.err, "%s", j.text);
    if (!err) {
        node->joined = true;
        err = node->own->observer ? PARAMO_OK : tasks_begin(node);
    }
    if (node->scheduler && node->joined)
        process_notify(node->config.notify_fd, "complete\n");
    return err;
}

paramo_err paramo_start(const paramo_config *config, paramo_node **node)
{
    paramo_node *made;
    paramo_err err = paramo_create(config, &made);
    if (err)
        return err;
    err = paramo_join(made);
    if (err) {
        char text[ERR_TEXT_MAX];
        err_text_copy(text);
        (void)paramo_stop(made);
        return err_set(err, "%s", text);
    }
    *node = made;
    return PARAMO_OK;
}
