/*
 * A shard: one thread's share of the key space, a state machine on its lane. It owns the partitions that the
 * view gives it, the rows of tables on them, and one record per sender of the numbered chunks that it has
 * applied (applied_window.h).
 *
 *     conn --> peer --> view (MOVED, defer) --> fence --> dedup --> table or handler --> answer --> conn
 *
 * An app endpoint is a shard without tables: it takes messages to the apps of its node, and is otherwise the
 * same.
 *
 * Everything that a peer sends is checked here. A request that is well-formed but wrong gets an error as its
 * answer. A breach of the protocol closes the connection with a reason. It must never know where views come
 * from, or what a value means. Tests: test/server/, test/worker/test_exactly_once_sim.c.
 */
#ifndef SERVER_SHARD_SHARD_H
#define SERVER_SHARD_SHARD_H

#include "cluster/view/view.h"
#include "server/shard/shard_config.h"
#include "wire/hello.h"

MUST_USE paramo_err shard_create(const struct shard_config *config, struct shard **shard);
/* On the lane. An authenticated data connection that names this shard: takes it over, sets its user and frame
 * limit and sends WELCOME (or rejects it). */
void shard_accept(struct shard *shard, struct van_conn *conn, const struct hello *hello);
/* On the lane. Takes its own reference; a view that is not newer is ignored. If it names many new tables, they are made
 * in turns of the lane first; until then the shard has the view before. Without memory for a new table, requests to it
 * answer MEMORY until there is some. */
void shard_set_view(struct shard *shard, struct view *view);
/* On the lane. True: the shard has been given a view that it has not adopted yet, and posts the task again when it
 * has, or is closed. The scheduler's orders presume the views that it has sent before. */
MUST_USE bool shard_defers(struct shard *shard, struct lane_task *task);
/* Any thread: answers that have not left yet. */
size_t shard_unsent(const struct shard *shard);
/* On the lane: closes connections and frees the shard. Handlers may still answer requests that they hold;
 * that has no effect. */
void shard_close(struct shard *shard);

struct migration_order;
/* On the lane. Carries out the scheduler's order (ORDER_MIGRATION_..., wire/migration_order.h), as far as it
 * concerns this shard. done is called once: from here, from a later round, or from shard_close. */
void shard_migration_order(struct shard *shard, uint32_t what, const struct migration_order *m,
                           shard_migration_done done, void *arg);

/* On the lane. */
void shard_get_counters(const struct shard *shard, struct shard_counters *counters);
struct shard_report;
/* On the lane: the report that the scheduler asks for (wire/report.h). Takes time proportional to the
 * senders. */
void shard_get_report(const struct shard *shard, struct shard_report *report);

#endif
