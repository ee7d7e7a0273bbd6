#include "server/shard/housekeeping.h"

#include "base/log.h"

void shard_keep_house(struct shard *s)
{
    char label[VIEW_LABEL_MAX];
    if (s->housekeeping.slot ||
        (!s->kept->count && !s->scans->sessions && !s->deferred->count && !s->peers->unknown))
        return;
    if (lane_timer_arm(s->lane, &s->housekeeping, lane_now(s->lane) + 5 * ENV_SEC))
        log_warn("%s: no memory for a timer: abandoned requests stay until the next request",
                 view_id_label(s->config.node, label));
}
