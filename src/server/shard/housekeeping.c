#include "server/shard/housekeeping.h"

#include "base/log.h"

void housekeeping_schedule(struct shard *s)
{
    char label[VIEW_LABEL_MAX];
    if (s->housekeeping->timer.slot || !s->housekeeping->needed(s))
        return;
    if (lane_timer_arm(s->lane, &s->housekeeping->timer, lane_now(s->lane) + 5 * ENV_SEC))
        log_warn("%s: no memory for a timer: abandoned requests stay until the next request",
                 view_id_label(s->config.node, label));
}

static void housekeeping_fire(struct lane_timer *timer)
{
    struct shard *s = container_of(timer, struct shard_housekeeping, timer)->shard;
    s->housekeeping->keep(s);
    housekeeping_schedule(s);
}

void housekeeping_init(struct shard *s, bool (*needed)(const struct shard *s), void (*keep)(struct shard *s))
{
    *s->housekeeping = (struct shard_housekeeping){
        .shard = s, .needed = needed, .keep = keep, .timer.fire = housekeeping_fire};
}

void housekeeping_close(struct shard *s)
{
    lane_timer_cancel(s->lane, &s->housekeeping->timer);
}
