/* One membership of this process: its member, and for a server its acceptor and shards. On the control lane.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/sm.h"
#include "node/api_worker.h"
#include "node/checkpoint.h"
#include "node/member_slot.h"
#include "node/node.h"
#include "node/serve.h"

/* ---- events of the member ----------------------------------------------------------------------------- */

static const struct sm machine = {
    "member_slot",
    {[MEMBER_SLOT_NEW] = {"new", SM_TO(MEMBER_SLOT_JOINING)},
     [MEMBER_SLOT_JOINING] = {"joining", SM_TO(MEMBER_SLOT_JOINED) | SM_TO(MEMBER_SLOT_FAILED)},
     [MEMBER_SLOT_JOINED] = {"joined", SM_TO(MEMBER_SLOT_ENDED)},
     [MEMBER_SLOT_FAILED] = {"failed", 0},
     [MEMBER_SLOT_ENDED] = {"ended", 0}}};

static void move(struct member_slot *member_slot, enum member_slot_state to)
{
    assert(lane_held(member_slot->node->control));
    sm_check(&machine, (unsigned)atomic_load(&member_slot->state), to);
    atomic_store(&member_slot->state, (int)to);
}

static void member_slot_finish(struct member_slot *member_slot, enum member_slot_state state, paramo_err code,
                               const char *text)
{
    assert(lane_held(member_slot->node->control));
    assert(state != MEMBER_SLOT_FAILED || code); /* a failure has a cause */
    member_slot->code = code;
    (void)snprintf(member_slot->text, sizeof member_slot->text, "%s", text ? text : "");
    move(member_slot, state);
    lane_notify(member_slot->node->control);
}

static void member_slot_joined(void *arg, paramo_err status, const char *text)
{
    struct member_slot *member_slot = arg;
    member_slot_finish(member_slot, status ? MEMBER_SLOT_FAILED : MEMBER_SLOT_JOINED, status, text);
}

static void member_slot_ended(void *arg, paramo_err status, const char *text)
{
    struct member_slot *member_slot = arg;
    char label[VIEW_LABEL_MAX];
    assert(!member_slot->member || !member_slot->observer);
    if (status)
        log_info("%s: %s: %s",
                 member_slot->member ? view_id_label(member_id(member_slot->member), label)
                                     : "a node of readers",
                 err_sentence(status), text);
    member_slot_finish(member_slot, MEMBER_SLOT_ENDED, status, text);
    serve_nudge(member_slot->node);
    if (!(member_slot->role & (PARAMO_ROLE_WORKER | PARAMO_ROLE_READER)) || status == PARAMO_OK)
        return;
    /* Also without a scheduler: the servers lose it at the same time and end. */
    for (paramo_worker *w = member_slot->node->workers; w; w = w->next)
        worker_node_ended(w);
}

static void member_slot_view(void *arg, struct view *view)
{
    struct member_slot *member_slot = arg;
    assert(lane_held(member_slot->node->control));
    assert(view->number > 0);
    if (member_slot->acceptor)
        acceptor_set_job(member_slot->acceptor, view->job);
    for (unsigned i = 0; i < member_slot->shards_count; i++)
        view_feed_offer(&member_slot->shards[i].feed, view);
    if (member_slot->app_endpoint.shard)
        view_feed_offer(&member_slot->app_endpoint.feed, view);
    if (member_slot == member_slot->node->own && member_slot->node->scheduler_app_endpoint.shard)
        view_feed_offer(&member_slot->node->scheduler_app_endpoint.feed, view);
    if (member_slot == member_slot->node->own)
        for (paramo_worker *w = member_slot->node->workers; w; w = w->next)
            view_feed_offer(&w->feed, view);
    if (member_slot == member_slot->node->own) {
        atomic_store(&member_slot->node->servers_now, view->num_servers);
        atomic_store(&member_slot->node->workers_now, view->num_workers);
    }
    lane_notify(member_slot->node->control);
}

/* Shards report progress, so that a busy one does not count as dead and a stuck one is noticed. */
static void member_slot_progress(void *arg, struct heartbeat *heartbeat)
{
    const struct member_slot *member_slot = arg;
    assert(lane_held(member_slot->node->control));
    assert(member_slot->member);
    unsigned n =
        member_slot->shards_count < HEARTBEAT_LANES_MAX ? member_slot->shards_count : HEARTBEAT_LANES_MAX;
    heartbeat->lanes = n;
    for (unsigned i = 0; i < n; i++)
        lane_progress(member_slot->shards[i].lane, &heartbeat->lane[i].steps, &heartbeat->lane[i].busy);
}

/* ---- a shard that cannot continue ---- */

static void failure_run(struct lane_task *task)
{
    struct member_slot *member_slot = container_of(task, struct member_slot, failure);
    assert(atomic_load(&member_slot->failing) && member_slot->failure_code);
    assert(lane_held(member_slot->node->control));
    if (!member_slot->member)
        return;                                /* it is closed */
    if (member_slot != member_slot->node->own) /* the application sees that slot's end */
        log_error("server %u ends: %s", member_rank(member_slot->member), member_slot->failure_text);
    member_fail(member_slot->member, err_set(member_slot->failure_code, "%s", member_slot->failure_text));
}

/* On the shard's lane. Its replicas take over when the scheduler misses this node. */
static void shard_failed(void *arg, paramo_err status)
{
    struct member_slot *member_slot = container_of(arg, struct node_shard, dispatch)->member_slot;
    assert(status);
    if (!member_slot || atomic_exchange(&member_slot->failing, true))
        return;
    assert(member_slot->shards_count > 0 && lane_held(((struct dispatch *)arg)->lane));
    member_slot->failure_code = status;
    err_text_copy(member_slot->failure_text);
    member_slot->failure.run = failure_run;
    lane_post(member_slot->node->control, &member_slot->failure);
}

/* ---- a server's acceptor ------------------------------------------------------------------------------ */

struct arrival {
    struct hello hello;
    struct shard *shard;
};

static void conn_arrived(void *arg, struct van_conn *conn)
{
    struct arrival *arrival = arg;
    assert(arrival->shard && arrival->hello.incarnation);
    shard_accept(arrival->shard, conn, &arrival->hello);
    free(arrival);
}

void node_shard_accept(struct node_shard *to, struct van_conn *conn, const struct hello *hello)
{
    if (!to || !to->shard) { /* no shard: the node could not begin */
        acceptor_reject(conn, PARAMO_E_REFUSED, "there is no such shard here");
        return;
    }
    struct arrival *arrival = malloc(sizeof *arrival);
    if (!arrival) {
        acceptor_reject(conn, PARAMO_E_MEMORY, "out of memory");
        return;
    }
    assert(to->lane);
    assert(!to->member_slot || to->member_slot->node == to->dispatch.node);
    *arrival = (struct arrival){.hello = *hello, .shard = to->shard};
    van_move(conn, to->lane, conn_arrived, arrival);
}

static void member_slot_accept(void *arg, struct van_conn *conn, const struct hello *hello)
{
    struct member_slot *member_slot = arg;
    assert(lane_held(member_slot->node->control) && member_slot->acceptor);
    struct node_shard *to = hello->shard == HELLO_APP_ENDPOINT
                                ? (member_slot->app_endpoint.shard ? &member_slot->app_endpoint : NULL)
                            : hello->shard < member_slot->shards_count ? &member_slot->shards[hello->shard]
                                                                       : NULL;
    node_shard_accept(to, conn, hello);
}

static paramo_err member_slot_open_acceptor(struct member_slot *member_slot, const char *listen_address)
{
    paramo_node *node = member_slot->node;
    assert(!member_slot->acceptor && !member_slot->member);
    struct acceptor_config config = {
        .van = node->van,
        .lane = node->control,
        .address = listen_address,
        .token = node->config.token ? node->config.token : "",
        .purposes = ACCEPTOR_PURPOSE_DATA | ACCEPTOR_PURPOSE_CHAIN,
        .frame_bytes = node->config.max_message_bytes,
        .accept = member_slot_accept,
        .arg = member_slot,
    };
    return acceptor_open(&config, &member_slot->acceptor);
}

/* ---- opening and closing ------------------------------------------------------------------------------ */

static void shard_takes_view(void *target, struct view *view)
{
    shard_set_view(target, view);
}

paramo_err node_shard_make(paramo_node *node, struct node_shard *s, struct lane *lane, uint64_t incarnation,
                           unsigned index)
{
    assert(!s->shard);
    assert(incarnation);
    s->lane = lane;
    dispatch_init(&s->dispatch, node, lane);
    struct shard_config config = {
        .lane = lane,
        .node = 0, /* unknown until it has joined; the shard finds itself by incarnation */
        .incarnation = incarnation,
        .index = index,
        .frame_bytes = node->config.max_message_bytes,
        .drop_percent = node->config.drop_percent,
        .scan_keys = node->scan_keys,
        .turn_records = node->turn_records,
        .turn_tables = node->turn_tables,
        .app_endpoint = index == HELLO_APP_ENDPOINT,
        .van = index == HELLO_APP_ENDPOINT ? NULL : node->van,
        .token = node->config.token,
        .handler = dispatch_request,
        .request_room = dispatch_room(),
        .failed = shard_failed,
        .arg = &s->dispatch,
    };
    paramo_err err = shard_create(&config, &s->shard);
    if (!err)
        view_feed_init(&s->feed, lane, shard_takes_view, s->shard);
    return err;
}

/* Other nodes connect to a server's shards, and to the apps of any node. */
static paramo_err member_slot_listen(struct member_slot *member_slot, const char *listen)
{
    paramo_node *node = member_slot->node;
    paramo_err err = PARAMO_OK;
    for (unsigned i = 0; i < member_slot->shards_count && !err; i++) {
        member_slot->shards[i].member_slot = member_slot;
        err = node_shard_make(node, &member_slot->shards[i], member_slot->shards[i].lane,
                              member_slot->incarnation, i);
    }
    assert(!member_slot->acceptor && !member_slot->app_endpoint.shard);
    assert(member_slot->role == PARAMO_ROLE_SERVER || !member_slot->shards_count);
    member_slot->app_endpoint.member_slot = member_slot;
    if (!err && node->apps)
        err = node_shard_make(node, &member_slot->app_endpoint, node->apps, member_slot->incarnation,
                              HELLO_APP_ENDPOINT);
    bool asked =
        member_slot->role == PARAMO_ROLE_SERVER || (member_slot->role == PARAMO_ROLE_WORKER && node->apps);
    if (!err && asked && *listen)
        err = member_slot_open_acceptor(member_slot, listen);
    return err;
}

/* Opens the slot of a node that is not a member. It waits as long as a member for a scheduler that died. */
static paramo_err member_slot_observe(struct member_slot *member_slot, const char *scheduler_address)
{
    paramo_node *node = member_slot->node;
    uint32_t silence = node->config.heartbeat_timeout_ms, wait = node->config.scheduler_wait_ms;
    struct observer_config config = {.van = node->van,
                                     .lane = node->control,
                                     .scheduler = scheduler_address,
                                     .token = node->config.token ? node->config.token : "",
                                     .incarnation = member_slot->incarnation,
                                     .connect_timeout_ms = node->config.connect_timeout_ms,
                                     .patience_ms = silence > wait ? silence : wait,
                                     .arg = member_slot,
                                     .on_joined = member_slot_joined,
                                     .on_view = member_slot_view,
                                     .on_ended = member_slot_ended};
    assert(!member_slot->observer && !member_slot->member && !member_slot->acceptor);
    move(member_slot, MEMBER_SLOT_JOINING);
    return observer_create(&config, &member_slot->observer);
}

paramo_err member_slot_open(struct member_slot *member_slot, const char *scheduler_address,
                            const char *listen_address)
{
    if (member_slot->role == PARAMO_ROLE_READER)
        return member_slot_observe(member_slot, scheduler_address);
    paramo_node *node = member_slot->node;
    char host[VIEW_HOST_MAX];
    uint16_t port = 0;
    assert(!member_slot->member && !member_slot->acceptor);
    (void)snprintf(host, sizeof host, "%s", node->place.advertise);
    paramo_err err = member_slot_listen(member_slot, listen_address ? listen_address : node->place.listen);
    if (err)
        return err;
    if (member_slot->acceptor) {
        char bound[VIEW_HOST_MAX];
        err = address_split(acceptor_address(member_slot->acceptor), bound, sizeof bound, &port);
        if (err)
            return err;
        if (listen_address) /* inproc: the name is the address */
            (void)snprintf(host, sizeof host, "%s", bound);
    }
    struct member_config config = {
        .van = node->van,
        .lane = node->control,
        .scheduler = scheduler_address,
        .token = node->config.token ? node->config.token : "",
        .role = member_slot->role,
        .host = host,
        .port = port,
        .shards = (uint16_t)member_slot->shards_count,
        .name = node->config.name ? node->config.name : "",
        .weight = member_slot->role == PARAMO_ROLE_SERVER ? node->config.weight : 0,
        .domain = member_slot->role == PARAMO_ROLE_SERVER && node->config.domain ? node->config.domain : "",
        .rank = member_slot->rank,
        .incarnation = member_slot->incarnation,
        .connect_timeout_ms = node->config.connect_timeout_ms,
        .heartbeat_ms = node->config.heartbeat_ms,
        .heartbeat_timeout_ms = node->config.heartbeat_timeout_ms,
        .scheduler_wait_ms = node->config.scheduler_wait_ms,
        .frame_bytes = 64 << 20, /* arbitrary: views are smaller */
        .arg = member_slot,
        .on_joined = member_slot_joined,
        .on_view = member_slot_view,
        .on_ended = member_slot_ended,
        .progress = member_slot_progress,
        .on_order = member_slot->shards_count ? member_slot_order : NULL,
    };
    assert(!member_slot->observer && member_slot->role != PARAMO_ROLE_READER);
    move(member_slot, MEMBER_SLOT_JOINING);
    return member_create(&config, &member_slot->member);
}

void member_slot_close_control(struct member_slot *member_slot)
{
    assert(lane_held(member_slot->node->control));
    assert(!member_slot->member || !member_slot->observer);
    acceptor_close(member_slot->acceptor);
    member_slot->acceptor = NULL;
    member_destroy(member_slot->member);
    member_slot->member = NULL;
    observer_destroy(member_slot->observer);
    member_slot->observer = NULL;
}
