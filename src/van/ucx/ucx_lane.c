#ifdef PARAMO_HAVE_UCX
#include "van/ucx/ucx_lane.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"

enum { PROGRESS_MAX = 4, BUSY_MAX = 16 };
#define NUDGE_MIN_NS (50 * ENV_US)
#define NUDGE_MAX_NS (1 * ENV_MS)

/* The workers of one lane; lives from the first worker to the last. */
struct ucx_lane {
    struct lane_hook hook;
    struct lane *lane;
    struct ucx_way *ways;
    struct lane_timer nudge; /* polls for events for which UCX does not wake the lane */
    uint64_t nudge_ns;
};

static void nudge_fire(struct lane_timer *timer)
{
    (void)timer; /* the round polls */
}

static void nudge(struct ucx_lane *l)
{
    if (l->nudge.slot)
        return;
    l->nudge_ns = l->nudge_ns ? 2 * l->nudge_ns : NUDGE_MIN_NS;
    if (l->nudge_ns > NUDGE_MAX_NS)
        l->nudge_ns = NUDGE_MAX_NS;
    if (lane_timer_arm(l->lane, &l->nudge, lane_now(l->lane) + l->nudge_ns))
        log_error("%s: %s", lane_name(l->lane), err_text());
}

static bool hook_progress(struct lane_hook *hook)
{
    struct ucx_lane *l = container_of(hook, struct ucx_lane, hook);
    bool any = false;
    for (struct ucx_way *way = l->ways; way; way = way->next) {
        unsigned handled = 0;
        way->moved = false;
        for (unsigned i = 0, n = 1; i < PROGRESS_MAX && n && way->conn; i++)
            handled += n = way->context->api->worker_progress(way->worker);
        if (handled || way->moved) {
            way->armed = false;
            way->busy = 0;
            any = true;
        }
    }
    if (any)
        l->nudge_ns = 0;
    return any;
}

/* UCX refuses to arm if a signal has come since the last poll, as after each wake-up. Usually the messages that it
 * announced have been taken already, so one more poll here saves a round. */
static ucs_status_t arm(struct ucx_way *way)
{
    const struct ucx_api *api = way->context->api;
    ucs_status_t status = api->worker_arm(way->worker);
    if (status != UCS_ERR_BUSY)
        return status;
    way->moved = false;
    if (api->worker_progress(way->worker) || way->moved || !way->conn)
        return status;
    return api->worker_arm(way->worker);
}

static bool hook_arm(struct lane_hook *hook)
{
    struct ucx_lane *l = container_of(hook, struct ucx_lane, hook);
    bool all = true;
    for (struct ucx_way *way = l->ways; way; way = way->next) {
        if (!way->conn)
            continue;
        if (way->pending) {
            nudge(l); /* UCX does not signal that a full queue has room again */
            continue;
        }
        if (way->armed)
            continue;
        ucs_status_t status = arm(way);
        way->armed = status == UCS_OK;
        if (status == UCS_ERR_BUSY && ++way->busy < BUSY_MAX)
            all = false;
        else if (status)
            nudge(l);
    }
    return all;
}

paramo_err ucx_lane_join(struct ucx_way *way, struct lane *lane)
{
    struct lane_hook *hook = lane_hook(lane);
    assert(!way->lane);
    assert(way->home == lane);
    struct ucx_lane *l = hook ? container_of(hook, struct ucx_lane, hook) : NULL;
    if (!l) {
        l = calloc(1, sizeof *l);
        if (!l)
            return err_memory(sizeof *l);
        l->lane = lane;
        l->hook = (struct lane_hook){.progress = hook_progress, .arm = hook_arm};
        l->nudge.fire = nudge_fire;
        lane_hook_set(lane, &l->hook);
    }
    way->lane = l;
    way->next = l->ways;
    l->ways = way;
    nudge(l); /* wakes a driver that went to sleep without this worker */
    return PARAMO_OK;
}

void ucx_lane_part(struct ucx_way *way)
{
    struct ucx_lane *l = way->lane;
    struct ucx_way **at = &l->ways;
    while (*at != way)
        at = &(*at)->next;
    *at = way->next;
    if (l->ways)
        return;
    lane_timer_cancel(l->lane, &l->nudge);
    lane_hook_set(l->lane, NULL);
    free(l);
}
#else
typedef int ucx_lane_is_left_out; /* a translation unit may not be empty */
#endif
