/* A snapshot of a job: its view, and what the scheduler and the servers report, added up for each node. */
#include <assert.h>
#include <stdlib.h>

#include "node/admin_impl.h"
#include "node/config.h"

static_assert(PARAMO_PARTITIONS == RING_PARTITIONS && PARAMO_REPLICAS_MAX == RING_REPLICAS_MAX &&
                  PARAMO_WEIGHT_MAX == RING_WEIGHT_MAX && PARAMO_NEVER == STATUS_NEVER,
              "paramo/admin.h has the limits of ring/");
static_assert((int)PARAMO_NODE_JOINED == STATUS_JOINED && (int)PARAMO_NODE_ABSENT == STATUS_ABSENT &&
                  (int)PARAMO_NODE_DEAD == STATUS_DEAD && (int)PARAMO_NODE_LEFT == STATUS_LEFT,
              "paramo_node_state begins as wire/status.h");
static_assert((int)PARAMO_CHECKPOINT_SAVING == STATUS_SAVING &&
                  (int)PARAMO_CHECKPOINT_LOADING == STATUS_LOADING,
              "paramo_checkpoint_activity is wire/status.h's");

/* ---- counting ------------------------------------------------------------------------------------------ */

/* NULL: no server of the view has this shard. */
static struct snapshot_node *holder_node(const paramo_cluster *c, uint16_t shard)
{
    for (uint32_t i = 0; shard < c->view->shards_count && i < c->view->nodes_count; i++)
        if (c->view->nodes[i].id == c->view->shards[shard].node)
            return &c->node[i];
    return NULL;
}

static bool is_in(const struct snapshot_node *node, enum status_state state)
{
    return node && node->status && node->status->state == state;
}

static void count_held(paramo_cluster *c)
{
    const struct ring_chains *chains = &c->view->chains;
    for (uint32_t k = 0; k < c->view->shards_count; k++) {
        struct snapshot_node *node = holder_node(c, (uint16_t)k);
        for (size_t a = 0; node && a < RING_PARTITIONS; a++)
            for (unsigned l = 0; l <= chains->replicas; l++)
                if (chains->level[l].owner[a] == k)
                    *(l ? &node->copies : &node->owns) += 1;
    }
}

static void count_missing(paramo_cluster *c)
{
    const struct ring_chains *chains = &c->view->chains;
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        uint32_t before = c->copies_missing;
        for (unsigned l = 0; l <= chains->replicas; l++) {
            const struct snapshot_node *node = holder_node(c, chains->level[l].owner[a]);
            c->copies_missing += !is_in(node, STATUS_JOINED);
            c->copies_absent += is_in(node, STATUS_ABSENT);
        }
        c->partitions_lacking += c->copies_missing > before;
    }
    uint32_t servers = 0, needed = 1 + c->status->replicas;
    for (uint32_t i = 0; i < c->view->nodes_count; i++)
        servers += c->view->nodes[i].role == PARAMO_ROLE_SERVER && c->view->nodes[i].weight &&
                   (is_in(&c->node[i], STATUS_JOINED) || is_in(&c->node[i], STATUS_ABSENT));
    assert(c->copies_absent <= c->copies_missing);
    assert(c->partitions_lacking <= RING_PARTITIONS);
    c->servers_missing = servers < needed ? needed - servers : 0;
    for (uint32_t i = 0; i < c->status->migrations_count; i++) {
        const struct status_migration *migration = &c->status->migration[i];
        struct snapshot_node *target = holder_node(c, migration->to);
        if (target && !migration->handover)
            target->filling += migration->partitions;
    }
}

paramo_err cluster_create(struct view *view, struct status *status, paramo_cluster **out)
{
    paramo_cluster *c = calloc(1, sizeof *c);
    struct snapshot_node *node = calloc(view->nodes_count + 1u, sizeof *node);
    if (!c || !node) {
        view_unref(view);
        if (status)
            status_fini(status);
        free(status);
        free(c);
        free(node);
        return err_memory(view->nodes_count * sizeof *node);
    }
    *c = (paramo_cluster){.view = view, .status = status, .node = node};
    for (uint32_t i = 0; status && i < view->nodes_count; i++)
        for (uint32_t k = 0; k < status->nodes_count && !node[i].status; k++)
            if (status->nodes[k].id == view->nodes[i].id)
                node[i].status = &status->nodes[k];
    count_held(c);
    if (status)
        count_missing(c);
    *out = c;
    return PARAMO_OK;
}

void paramo_cluster_free(paramo_cluster *c)
{
    if (!c)
        return;
    view_unref(c->view);
    if (c->status)
        status_fini(c->status);
    free(c->status);
    free(c->node);
    free(c);
}

/* ---- getting ------------------------------------------------------------------------------------------- */

static paramo_err beyond(const char *what, uint32_t index, uint32_t count)
{
    return err_set(PARAMO_E_NOT_FOUND, "there is no %s %u: there are %u", what, index, count);
}

static paramo_err check(const paramo_cluster *c, const void *out)
{
    return c && out ? PARAMO_OK : err_set(PARAMO_E_INVALID, "the cluster or the output is NULL");
}

paramo_err paramo_cluster_info_get(const paramo_cluster *c, paramo_cluster_info *info)
{
    paramo_err err = check(c, info);
    if (err)
        return err;
    const struct view *view = c->view;
    paramo_cluster_info whole = {.job = view->job,
                                 .view = view->number,
                                 .num_servers = view->num_servers,
                                 .num_workers = view->num_workers,
                                 .nodes = view->nodes_count,
                                 .shards = view->shards_count,
                                 .tables = view->tables_count,
                                 .replicas = view->chains.replicas,
                                 .has_status = c->status != NULL};
    options_copy_out(info, &whole, sizeof whole);
    return PARAMO_OK;
}

static paramo_node_state state_of(const struct view_node *node, const struct status_node *status)
{
    paramo_node_state state = status        ? (paramo_node_state)status->state
                              : node->alive ? PARAMO_NODE_JOINED
                              : node->left  ? PARAMO_NODE_LEFT
                                            : PARAMO_NODE_DEAD;
    bool here = state == PARAMO_NODE_JOINED || state == PARAMO_NODE_ABSENT;
    return here && node->role == PARAMO_ROLE_SERVER && !node->weight ? PARAMO_NODE_DRAINING : state;
}

paramo_err paramo_cluster_node_get(const paramo_cluster *c, uint32_t index, paramo_cluster_node *out)
{
    paramo_err err = check(c, out);
    if (err)
        return err;
    if (index >= c->view->nodes_count)
        return beyond("node", index, c->view->nodes_count);
    const struct view_node *node = &c->view->nodes[index];
    const struct snapshot_node *more = &c->node[index];
    uint32_t first = node->role == PARAMO_ROLE_WORKER ? PARAMO_ID_WORKER(0) : PARAMO_ID_SERVER(0);
    paramo_cluster_node whole = {.id = node->id,
                                 .rank = node->role == PARAMO_ROLE_SCHEDULER ? 0 : (node->id - first) / 2,
                                 .role = (paramo_role)node->role,
                                 .state = state_of(node, more->status),
                                 .incarnation = node->incarnation,
                                 .name = node->name,
                                 .host = node->host,
                                 .port = node->port,
                                 .shards = node->shards,
                                 .domain = node->domain,
                                 .weight = node->weight,
                                 .alive = node->alive,
                                 .left = node->left,
                                 .recovered = node->recovered,
                                 .heard_ms = more->status ? more->status->heard_ms : PARAMO_NEVER,
                                 .owns = more->owns,
                                 .copies = more->copies,
                                 .filling = more->filling};
    options_copy_out(out, &whole, sizeof whole);
    return PARAMO_OK;
}

paramo_err paramo_cluster_shard_get(const paramo_cluster *c, uint32_t shard, paramo_cluster_shard *out)
{
    paramo_err err = check(c, out);
    if (err)
        return err;
    if (shard >= c->view->shards_count)
        return beyond("shard", shard, c->view->shards_count);
    const struct view_shard *from = &c->view->shards[shard];
    paramo_cluster_shard whole = {.node = from->node,
                                  .index = from->index,
                                  .partitions_changed = from->partitions_changed,
                                  .chain_changed = from->chain_changed};
    options_copy_out(out, &whole, sizeof whole);
    return PARAMO_OK;
}

uint32_t paramo_cluster_holder(const paramo_cluster *c, uint32_t partition, uint32_t level)
{
    if (!c || partition >= RING_PARTITIONS || level > c->view->chains.replicas)
        return PARAMO_NO_SHARD;
    uint16_t shard = c->view->chains.level[level].owner[partition];
    return shard == RING_NONE ? PARAMO_NO_SHARD : shard;
}

paramo_err paramo_cluster_table_get(const paramo_cluster *c, uint32_t index, paramo_cluster_table *out)
{
    paramo_err err = check(c, out);
    if (err)
        return err;
    if (index >= c->view->tables_count)
        return beyond("table", index, c->view->tables_count);
    const struct view_table *table = &c->view->tables[index];
    paramo_cluster_table whole = {.id = table->id,
                                  .name = table->name,
                                  .since = table->since,
                                  .placement = table->options.placement,
                                  .kind = table->options.kind,
                                  .optimizer = table->options.optimizer,
                                  .dim = table->options.dim,
                                  .replicas = table->options.replicas};
    options_copy_out(out, &whole, sizeof whole);
    return PARAMO_OK;
}

/* ---- with status --------------------------------------------------------------------------------------- */

static paramo_err check_status(const paramo_cluster *c, const void *out)
{
    paramo_err err = check(c, out);
    if (!err && !c->status)
        err = err_set(PARAMO_E_NOT_FOUND, "the snapshot has no status: take it with paramo_admin_status");
    return err;
}

static paramo_pauses pauses_of(const struct spread *spread)
{
    return (paramo_pauses){.count = spread->count,
                           .p50_us = spread_quantile(spread, 0.5),
                           .p99_us = spread_quantile(spread, 0.99),
                           .max_us = spread->max};
}

paramo_err paramo_cluster_status_get(const paramo_cluster *c, paramo_cluster_status *out)
{
    paramo_err err = check_status(c, out);
    if (err)
        return err;
    const struct status *status = c->status;
    paramo_cluster_status whole = {.replicas = status->replicas,
                                   .converged = status->converged,
                                   .restoring = c->view->lost_at != 0,
                                   .partitions_lacking = c->partitions_lacking,
                                   .copies_missing = c->copies_missing,
                                   .copies_absent = c->copies_absent,
                                   .servers_missing = c->servers_missing,
                                   .migrations = status->migrations_count,
                                   .pauses = pauses_of(&status->pauses),
                                   .checkpoint = (paramo_checkpoint_activity)status->ckpt.now,
                                   .checkpoint_last = status->ckpt.last,
                                   .checkpoint_at = status->ckpt.at,
                                   .checkpoint_dir = status->ckpt.dir};
    options_copy_out(out, &whole, sizeof whole);
    return PARAMO_OK;
}

static void add_report(struct shard_report *to, const struct shard_report *from)
{
    to->rows += from->rows;
    to->table_bytes += from->table_bytes;
    to->senders += from->senders;
    to->applied_window_notes += from->applied_window_notes;
    to->applied_window_bytes += from->applied_window_bytes;
    to->requests += from->requests;
    to->repeats += from->repeats;
    spread_join(&to->pauses, &from->pauses);
}

paramo_err paramo_cluster_report_get(const paramo_cluster *c, uint32_t index, uint32_t shard,
                                     paramo_cluster_report *out)
{
    struct shard_report sum = {0};
    paramo_err err = check_status(c, out);
    if (err)
        return err;
    const struct status_node *node = index < c->view->nodes_count ? c->node[index].status : NULL;
    if (!node || !node->shards || (shard != PARAMO_ALL_SHARDS && shard >= node->shards))
        return err_set(PARAMO_E_NOT_FOUND, "node number %u has not reported such a shard", index);
    for (uint32_t k = 0; k < node->shards; k++)
        if (shard == PARAMO_ALL_SHARDS || shard == k)
            add_report(&sum, &node->shard[k]);
    paramo_cluster_report whole = {.reported_ms = node->reported_ms,
                                   .rows = sum.rows,
                                   .bytes = sum.table_bytes,
                                   .senders = sum.senders,
                                   .applied_notes = sum.applied_window_notes,
                                   .applied_bytes = sum.applied_window_bytes,
                                   .requests = sum.requests,
                                   .repeats = sum.repeats,
                                   .pauses = pauses_of(&sum.pauses)};
    options_copy_out(out, &whole, sizeof whole);
    return PARAMO_OK;
}

paramo_err paramo_cluster_clocks_get(const paramo_cluster *c, uint32_t index, paramo_cluster_clocks *out)
{
    paramo_err err = check_status(c, out);
    if (err)
        return err;
    const struct status_node *node = index < c->view->nodes_count ? c->node[index].status : NULL;
    if (!node || !node->clocks.workers)
        return err_set(PARAMO_E_NOT_FOUND, "no worker of node number %u has a clock that counts", index);
    paramo_cluster_clocks whole = {.workers = node->clocks.workers,
                                   .lowest = node->clocks.lowest,
                                   .highest = node->clocks.highest,
                                   .waits = node->clocks.waits,
                                   .waited_ms = node->clocks.waited_ms};
    options_copy_out(out, &whole, sizeof whole);
    return PARAMO_OK;
}

static uint32_t server_of(const struct view *view, uint16_t shard)
{
    return shard < view->shards_count ? view->shards[shard].node : 0;
}

paramo_err paramo_cluster_migration_get(const paramo_cluster *c, uint32_t index,
                                        paramo_cluster_migration *out)
{
    paramo_err err = check_status(c, out);
    if (err)
        return err;
    if (index >= c->status->migrations_count)
        return beyond("migration", index, c->status->migrations_count);
    const struct status_migration *migration = &c->status->migration[index];
    paramo_cluster_migration whole = {.state = (paramo_migration_state)migration->state,
                                      .first = migration->first,
                                      .partitions = migration->partitions,
                                      .source = migration->from,
                                      .target = migration->to,
                                      .source_id = server_of(c->view, migration->from),
                                      .target_id = server_of(c->view, migration->to),
                                      .handover = migration->handover};
    options_copy_out(out, &whole, sizeof whole);
    return PARAMO_OK;
}
