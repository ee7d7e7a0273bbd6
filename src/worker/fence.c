#include "worker/fence.h"

#include <assert.h>

#include "worker/client_impl.h"
#include "worker/requests.h"

static void begin(struct client *c, struct client_fence *fence)
{
    assert(fence->client == c && lane_held(c->lane));
    fence->upto = requests_total(c);
    fence->left = 0;
    for (const struct request *r = requests_first(c); r; r = r->next)
        fence->left += !r->carry.own; /* the request that it carries counts, or has ended */
    if (!fence->left) {
        fence->passed(fence);
        return;
    }
    fence->next = c->fences;
    c->fences = fence;
}

static void begin_task(struct lane_task *task)
{
    struct client_fence *fence = container_of(task, struct client_fence, task);
    begin(fence->client, fence);
}

void client_fence(struct client *c, struct client_fence *fence)
{
    fence->client = c;
    fence->task.run = begin_task;
    if (lane_held(c->lane)) {
        begin(c, fence);
    } else if (lane_enter(c->lane)) { /* what was posted before has run now */
        begin(c, fence);
        lane_leave(c->lane);
    } else {
        lane_post(c->lane, &fence->task);
    }
}

void fence_request_over(struct client *c, uint64_t number)
{
    assert(lane_held(c->lane));
    for (struct client_fence **at = &c->fences, *fence; (fence = *at);) {
        if (number > fence->upto) {
            at = &fence->next;
            continue;
        }
        assert(fence->left > 0 && fence->upto <= requests_total(c));
        if (--fence->left > 0) {
            at = &fence->next;
            continue;
        }
        *at = fence->next;
        fence->passed(fence);
    }
}
