#include "server/shard/housekeeping.h"

#include "base/log.h"

void shard_keep_house(struct shard *s)
{
    char label[VIEW_LABEL_MAX];
    if (s->house->timer.slot || !s->house->needed(s))
        return;
    if (lane_timer_arm(s->lane, &s->house->timer, lane_now(s->lane) + 5 * ENV_SEC))
        log_warn("%s: no memory for a timer: abandoned requests stay until the next request",
                 view_id_label(s->config.node, label));
}

static void house_fire(struct lane_timer *timer)
{
    struct shard *s = container_of(timer, struct shard_house, timer)->shard;
    s->house->keep(s);
    shard_keep_house(s);
}

void shard_house_init(struct shard *s, bool (*needed)(const struct shard *s), void (*keep)(struct shard *s))
{
    *s->house = (struct shard_house){.shard = s, .needed = needed, .keep = keep, .timer.fire = house_fire};
}

void shard_house_close(struct shard *s)
{
    lane_timer_cancel(s->lane, &s->house->timer);
}
