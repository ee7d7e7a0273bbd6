#include "worker/floor.h"

#include "base/log.h"
#include "cluster/session/control_message.h"

/* Every request carries the floor. Without one, servers would keep a silent customer's last records and
 * handlers' answers. So it is sent FLOOR_MS after the last request, once. */
void floor_rises(struct client *c)
{
    if (c->numbers->timer.slot || atomic_load(&c->life->down))
        return;
    if (lane_timer_arm(c->lane, &c->numbers->timer, lane_now(c->lane) + FLOOR_MS * ENV_MS))
        log_debug("customer %u: no memory for a timer: servers hear its floor with its next request",
                  c->config.customer);
}

void floor_fire(struct lane_timer *timer)
{
    struct client *c = container_of(timer, struct client_numbers, timer)->client;
    uint64_t now = lane_now(c->lane);
    struct wire_head head = {.kind = WIRE_FLOOR, .floor = c->numbers->floor};
    bool again = false;
    for (size_t i = 0; i < c->links->count; i++) {
        struct link *l = c->links->all[i];
        if (l->state != LINK_UP || !l->told || l->told >= c->numbers->floor)
            continue;
        if (now - l->told_at >= FLOOR_MS * ENV_MS && !l->blocked &&
            control_message_send(l->conn, &head, NULL, 0) == PARAMO_OK) {
            l->told = c->numbers->floor;
            l->told_at = now;
        } else {
            again = true;
        }
    }
    if (again)
        floor_rises(c);
}
