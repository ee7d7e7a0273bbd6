/* One membership of this process: its member, and for a server its door and shards. On the control lane. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "node/node.h"

/* ---- views to other lanes
 * ---------------------------------------------------------------------------------------- */

static void feed_run(struct lane_task *task)
{
    struct view_feed *feed = container_of(task, struct view_feed, task);
    atomic_store(&feed->posted, false);
    struct view *view = atomic_exchange(&feed->pending, NULL);
    if (view) {
        feed->take(feed->target, view);
        view_unref(view);
    }
}

void view_feed_init(struct view_feed *feed, struct lane *lane, void (*take)(void *, struct view *),
                    void *target)
{
    *feed = (struct view_feed){.task.run = feed_run, .lane = lane, .take = take, .target = target};
}

void view_feed_offer(struct view_feed *feed, struct view *view)
{
    view_unref(atomic_exchange(&feed->pending, view_ref(view)));
    if (!atomic_exchange(&feed->posted, true))
        lane_post(feed->lane, &feed->task);
}

void view_feed_fini(struct view_feed *feed)
{
    view_unref(atomic_exchange(&feed->pending, NULL));
}

static void shard_takes_view(void *target, struct view *view)
{
    shard_set_view(target, view);
}

/* ---- what the member says
 * ---------------------------------------------------------------------------------------------- */

static void seat_settle(struct seat *seat, enum seat_state state, paramo_err code, const char *text)
{
    seat->code = code;
    (void)snprintf(seat->text, sizeof seat->text, "%s", text ? text : "");
    atomic_store(&seat->state, (int)state);
    lane_notify(seat->node->control);
}

static void seat_joined(void *arg, paramo_err status, const char *text)
{
    struct seat *seat = arg;
    seat_settle(seat, status ? SEAT_FAILED : SEAT_JOINED, status, text);
}

static void seat_ended(void *arg, paramo_err status, const char *text)
{
    struct seat *seat = arg;
    char label[VIEW_LABEL_MAX];
    if (status)
        log_info("%s: %s: %s", view_id_label(member_id(seat->member), label), err_sentence(status), text);
    seat_settle(seat, SEAT_ENDED, status, text);
    serve_nudge(seat->node);
    if (seat->role != PARAMO_ROLE_WORKER || status == PARAMO_OK)
        return;
    /* Without a scheduler, too: the servers give it up at the same time and end. */
    for (paramo_worker *w = seat->node->workers; w; w = w->next) {
        client_interrupt(w->client);
        if (!atomic_exchange(&w->nudge_posted, true))
            lane_post(w->lane, &w->nudge);
    }
}

static void seat_view(void *arg, struct view *view)
{
    struct seat *seat = arg;
    if (seat->door)
        door_set_job(seat->door, view->job);
    for (unsigned i = 0; i < seat->shards_count; i++)
        view_feed_offer(&seat->shards[i].feed, view);
    if (seat->host.shard)
        view_feed_offer(&seat->host.feed, view);
    if (seat == seat->node->own && seat->node->scheduler_host.shard)
        view_feed_offer(&seat->node->scheduler_host.feed, view);
    if (seat == seat->node->own)
        for (paramo_worker *w = seat->node->workers; w; w = w->next)
            view_feed_offer(&w->feed, view);
    if (seat == seat->node->own) {
        atomic_store(&seat->node->servers_now, view->num_servers);
        atomic_store(&seat->node->workers_now, view->num_workers);
    }
    lane_notify(seat->node->control);
}

/* Shards tell how far they are, so that busy is not taken for dead, and wedged is seen. */
static void seat_progress(void *arg, struct heartbeat *heartbeat)
{
    const struct seat *seat = arg;
    unsigned n = seat->shards_count < HEARTBEAT_LANES_MAX ? seat->shards_count : HEARTBEAT_LANES_MAX;
    heartbeat->lanes = n;
    for (unsigned i = 0; i < n; i++)
        lane_progress(seat->shards[i].lane, &heartbeat->lane[i].steps, &heartbeat->lane[i].busy);
}

/* ---- a shard that cannot go on ---- */

static void failure_run(struct lane_task *task)
{
    struct seat *seat = container_of(task, struct seat, failure);
    if (!seat->member)
        return;                  /* it is closed */
    if (seat != seat->node->own) /* whose end the application sees */
        log_error("server %u ends: %s", member_rank(seat->member), seat->failure_text);
    member_fail(seat->member, err_set(seat->failure_code, "%s", seat->failure_text));
}

/* On the shard's lane. Its replicas take over when the scheduler misses this node. */
static void shard_failed(void *arg, paramo_err status)
{
    struct seat *seat = container_of(arg, struct seat_shard, desk)->seat;
    if (!seat || atomic_exchange(&seat->failing, true))
        return;
    seat->failure_code = status;
    err_text_copy(seat->failure_text);
    seat->failure.run = failure_run;
    lane_post(seat->node->control, &seat->failure);
}

/* ---- a server's door
 * ---------------------------------------------------------------------------------------------------- */

struct arrival {
    struct hello hello;
    struct shard *shard;
};

static void conn_arrived(void *arg, struct van_conn *conn)
{
    struct arrival *arrival = arg;
    shard_accept(arrival->shard, conn, &arrival->hello);
    free(arrival);
}

void seat_take(struct seat_shard *to, struct van_conn *conn, const struct hello *hello)
{
    if (!to) {
        door_reject(conn, PARAMO_E_REFUSED, "there is no such shard here");
        return;
    }
    struct arrival *arrival = malloc(sizeof *arrival);
    if (!arrival) {
        door_reject(conn, PARAMO_E_MEMORY, "out of memory");
        return;
    }
    *arrival = (struct arrival){.hello = *hello, .shard = to->shard};
    van_move(conn, to->lane, conn_arrived, arrival);
}

static void seat_accept(void *arg, struct van_conn *conn, const struct hello *hello)
{
    struct seat *seat = arg;
    struct seat_shard *to = hello->shard == HELLO_HOST          ? (seat->host.shard ? &seat->host : NULL)
                            : hello->shard < seat->shards_count ? &seat->shards[hello->shard]
                                                                : NULL;
    seat_take(to, conn, hello);
}

static paramo_err seat_open_door(struct seat *seat, const char *listen_address)
{
    paramo_node *node = seat->node;
    struct door_config config = {
        .van = node->van,
        .lane = node->control,
        .address = listen_address,
        .token = node->config.token ? node->config.token : "",
        .purposes = DOOR_PURPOSE_DATA | DOOR_PURPOSE_CHAIN,
        .frame_bytes = node->config.max_message_bytes,
        .accept = seat_accept,
        .arg = seat,
    };
    return door_open(&config, &seat->door);
}

/* ---- opening and closing
 * ------------------------------------------------------------------------------------------------- */

paramo_err seat_make_shard(paramo_node *node, struct seat_shard *s, struct lane *lane, uint64_t incarnation,
                           unsigned index)
{
    s->lane = lane;
    desk_init(&s->desk, node, lane);
    struct shard_config config = {
        .lane = lane,
        .node = 0, /* not known before it has joined; the shard finds itself by incarnation */
        .incarnation = incarnation,
        .index = index,
        .frame_bytes = node->config.max_message_bytes,
        .drop_percent = node->config.drop_percent,
        .scan_keys = node->scan_keys,
        .host = index == HELLO_HOST,
        .van = index == HELLO_HOST ? NULL : node->van,
        .token = node->config.token,
        .handler = desk_request,
        .failed = shard_failed,
        .arg = &s->desk,
    };
    paramo_err err = shard_create(&config, &s->shard);
    if (!err)
        view_feed_init(&s->feed, lane, shard_takes_view, s->shard);
    return err;
}

/* What others connect to: a server's shards, and the apps of any node. */
static paramo_err seat_listen(struct seat *seat, const char *listen)
{
    paramo_node *node = seat->node;
    paramo_err err = PARAMO_OK;
    for (unsigned i = 0; i < seat->shards_count && !err; i++) {
        seat->shards[i].seat = seat;
        err = seat_make_shard(node, &seat->shards[i], seat->shards[i].lane, seat->incarnation, i);
    }
    seat->host.seat = seat;
    if (!err && node->apps)
        err = seat_make_shard(node, &seat->host, node->apps, seat->incarnation, HELLO_HOST);
    bool asked = seat->role == PARAMO_ROLE_SERVER || (seat->role == PARAMO_ROLE_WORKER && node->apps);
    if (!err && asked && *listen)
        err = seat_open_door(seat, listen);
    return err;
}

paramo_err seat_open(struct seat *seat, const char *scheduler_address, const char *listen_address)
{
    paramo_node *node = seat->node;
    char host[VIEW_HOST_MAX];
    uint16_t port = 0;
    (void)snprintf(host, sizeof host, "%s", node->place.advertise);
    paramo_err err = seat_listen(seat, listen_address ? listen_address : node->place.listen);
    if (err)
        return err;
    if (seat->door) {
        char bound[VIEW_HOST_MAX];
        err = address_split(door_address(seat->door), bound, sizeof bound, &port);
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
        .role = seat->role,
        .host = host,
        .port = port,
        .shards = (uint16_t)seat->shards_count,
        .name = node->config.name ? node->config.name : "",
        .weight = seat->role == PARAMO_ROLE_SERVER ? node->config.weight : 0,
        .domain = seat->role == PARAMO_ROLE_SERVER && node->config.domain ? node->config.domain : "",
        .rank = seat->rank,
        .incarnation = seat->incarnation,
        .connect_timeout_ms = node->config.connect_timeout_ms,
        .heartbeat_ms = node->config.heartbeat_ms,
        .heartbeat_timeout_ms = node->config.heartbeat_timeout_ms,
        .scheduler_wait_ms = node->config.scheduler_wait_ms,
        .frame_bytes = 64 << 20,
        .arg = seat,
        .on_joined = seat_joined,
        .on_view = seat_view,
        .on_ended = seat_ended,
        .progress = seat_progress,
        .on_order = seat->shards_count ? seat_order : NULL,
    };
    atomic_store(&seat->state, SEAT_JOINING);
    return member_create(&config, &seat->member);
}

void seat_close_control(struct seat *seat)
{
    door_close(seat->door);
    seat->door = NULL;
    member_destroy(seat->member);
    seat->member = NULL;
}
