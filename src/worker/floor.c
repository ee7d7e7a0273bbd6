#include "worker/floor.h"

#include <assert.h>

#include "base/log.h"
#include "cluster/session/control_message.h"
#include "worker/links.h"
#include "worker/numbers.h"

/* Every request carries the floor. Without one, servers would keep a silent customer's last records and
 * handlers' answers. So it is sent FLOOR_MS after the last request, once. */
void floor_rises(struct client *c)
{
    if (c->floor->timer.slot || client_is_down(c))
        return;
    if (lane_timer_arm(c->lane, &c->floor->timer, lane_now(c->lane) + FLOOR_MS * ENV_MS))
        log_debug("customer %u: no memory for a timer: servers hear its floor with its next request",
                  c->config.customer);
}

static void floor_fire(struct lane_timer *timer)
{
    struct client *c = container_of(timer, struct client_floor, timer)->client;
    uint64_t now = lane_now(c->lane);
    struct wire_head head = {.kind = WIRE_FLOOR, .floor = numbers_floor(c)};
    bool again = false;
    assert(!client_is_down(c)); /* floor_close cancels it */
    for (size_t i = 0; i < links_count(c); i++) {
        struct link *l = links_at(c, i);
        assert(l->client == c && l->told <= numbers_floor(c));
        if (l->state != LINK_UP || !l->told || l->told >= numbers_floor(c))
            continue;
        if (now - l->told_at >= FLOOR_MS * ENV_MS && !l->blocked &&
            control_message_send(l->conn, &head, NULL, 0) == PARAMO_OK) {
            l->told = numbers_floor(c);
            l->told_at = now;
        } else {
            again = true;
        }
    }
    if (again)
        floor_rises(c);
}

void floor_init(struct client *c)
{
    *c->floor = (struct client_floor){.client = c, .timer.fire = floor_fire};
}

void floor_close(struct client *c)
{
    assert(client_is_down(c) && !links_count(c));
    lane_timer_cancel(c->lane, &c->floor->timer);
}
