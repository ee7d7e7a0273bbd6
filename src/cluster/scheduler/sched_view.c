#include "cluster/scheduler/sched_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_ckpt.h"
#include "cluster/scheduler/sched_departure.h"
#include "cluster/scheduler/sched_lost.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_orders.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_save.h"
#include "cluster/session/control_message.h"
#include "wire/table_spec.h"

enum { AGAIN_MS = 100 }; /* arbitrary */

/* Merges the slots by id: the scheduler, then server and worker of each rank. */
static uint32_t nodes_fill(const struct scheduler *s, struct view_node *nodes)
{
    const struct slot_list *servers = sched_roster_slots(s, SLOTS_SERVERS),
                           *workers = sched_roster_slots(s, SLOTS_WORKERS);
    uint32_t count = 0;
    nodes[count++] = *sched_roster_scheduler(s);
    for (uint32_t rank = 0; rank < servers->count || rank < workers->count; rank++) {
        if (rank < servers->count)
            nodes[count++] = servers->node[rank]->info;
        if (rank < workers->count)
            nodes[count++] = workers->node[rank]->info;
    }
    return count;
}

static struct control_message_body *view_build(struct scheduler *s)
{
    struct view view = {.job = s->job,
                        .number = s->view->number,
                        .num_servers = sched_roster_slots(s, SLOTS_SERVERS)->count,
                        .num_workers = sched_roster_slots(s, SLOTS_WORKERS)->count,
                        .complete = true,
                        .shards_count = sched_ring_shards_count(s),
                        .shards = (struct view_shard *)sched_ring_shard(s, 0), /* only read */
                        .tables_count = s->view->tables_count,
                        .tables = s->view->tables,
                        .chains = *sched_ring_chains(s),
                        .lost_at = sched_lost_since(s)};
    memcpy(view.owner_gone, sched_ring_owner_gone(s), sizeof view.owner_gone);
    memcpy(view.lost, sched_lost_levels(s), sizeof view.lost);
    size_t bytes = (1 + (size_t)view.num_servers + view.num_workers) * sizeof *view.nodes;
    view.nodes = malloc(bytes);
    if (!view.nodes)
        return NULL;
    view.nodes_count = nodes_fill(s, view.nodes);
    struct writer w = {0};
    view_encode(&view, &w);
    free(view.nodes);
    return control_message_body_new(&w);
}

void sched_view_send(struct sched_node *node)
{
    struct scheduler *s = node->sched;
    if (sched_ckpt_restoring(s) && node->info.role == PARAMO_ROLE_WORKER)
        return; /* before that, the node has nothing to work on */
    if (!node->peer || !s->view->body || s->view->announced < node->since ||
        (s->view->changed && !s->config.store))
        return; /* a change that is not announced yet reaches all nodes at once */
    struct wire_head head = {.plain = {.kind = WIRE_VIEW, .view = s->view->announced}};
    paramo_err err = control_message_send_shared(node->peer->conn, &head, s->view->body);
    node->view_due = err != PARAMO_OK; /* writable() or a heartbeat sends it */
    node->view_sent_at = lane_now(s->config.lane);
}

paramo_err sched_view_admin_query(struct sched_peer *peer, const struct wire_call *head,
                                  const struct reader *body)
{
    struct scheduler *s = peer->sched;
    paramo_err err = call_body_end(body, "ADMIN_VIEW");
    if (err)
        return err;
    struct wire_head answer = {
        .reply = {.kind = WIRE_REPLY, .what = CALL_ADMIN_VIEW, .number = head->number}};
    if (s->view->body) {
        answer.reply.view = s->view->announced;
        err = control_message_send_shared(peer->conn, &answer, s->view->body);
    } else {
        struct writer w = {0};
        answer.reply.status = PARAMO_E_AGAIN;
        call_text_encode("the job is not complete yet: it has no ring", &w);
        err = control_message_send_written(peer->conn, &answer, &w);
    }
    if (err)
        sched_peer_unanswered(peer, CALL_ADMIN_VIEW);
    return PARAMO_OK;
}

/* Without memory the view stays due, and what depends on it waits. */
static void view_out(struct lane_timer *timer)
{
    struct scheduler *s = container_of(timer, struct sched_view, timer)->sched;
    lane_timer_cancel(s->config.lane, timer);
    struct control_message_body *view = s->state == SCHED_OVER ? NULL : view_build(s);
    s->view->changed = s->state != SCHED_OVER && !view;
    if (s->view->changed) {
        log_warn("scheduler: a view waits to be announced: out of memory");
        if (lane_timer_arm(s->config.lane, timer, lane_now(s->config.lane) + AGAIN_MS * ENV_MS))
            return; /* the clock tries again */
    }
    if (!view)
        return;
    sched_ring_told(s, 0, RING_PARTITIONS);
    if (s->config.store)
        sched_save_view(s, view, s->view->number);
    else
        sched_view_announce(s, view, s->view->number);
}

bool sched_view_flush(struct scheduler *s)
{
    if (s->view->changed)
        view_out(&s->view->timer);
    return !s->view->changed;
}

void sched_view_retry(struct scheduler *s)
{
    if (s->view->changed && !s->view->timer.slot)
        view_out(&s->view->timer);
}

void sched_view_announce(struct scheduler *s, struct control_message_body *view, uint64_t number)
{
    control_message_body_unref(s->view->body);
    s->view->body = view;
    s->view->announced = number;
    sched_ckpt_announced(s);
    size_t cursor = 0;
    for (struct sched_node *node; (node = sched_roster_next(s, &cursor));) {
        sched_view_send(node);
        sched_orders_send(node, s->config.heartbeat_ms * ENV_MS);
    }
    sched_migrations_announced(s);
}

void sched_view_change(struct scheduler *s)
{
    if (s->view->changed || s->state != SCHED_RUNNING)
        return;
    s->view->changed = true;
    s->view->number++;
    s->view->timer.fire = view_out;
    if (lane_timer_arm(s->config.lane, &s->view->timer, lane_now(s->config.lane)))
        view_out(&s->view->timer);
}

uint64_t sched_view_next(const struct scheduler *s)
{
    return s->view->number + !s->view->changed;
}

paramo_err sched_view_above(struct scheduler *s, uint64_t number)
{
    uint64_t term = number >> 32;
    if (number <= s->view->number || s->state != SCHED_RUNNING)
        return PARAMO_OK;
    if (!s->config.store || term > (uint64_t)s->term + SCHED_TERMS_AHEAD)
        return err_set(
            PARAMO_E_REFUSED,
            "it claims to have seen view %" PRIu64 ".%" PRIu64 ", and this scheduler, of term %" PRIu32
            ", is at %" PRIu64 ".%" PRIu64 ": that is no view of this job",
            term, number & UINT32_MAX, s->term, s->view->number >> 32, s->view->number & UINT32_MAX);
    log_warn("scheduler: a node has seen view %" PRIx64 ", which is newer than %" PRIx64, number,
             s->view->number);
    bool rises = term > s->view->number >> 32;
    s->view->number = number;
    if (rises)
        sched_orders_cancel(s);
    if (s->view->changed) /* it was counted from the number before */
        s->view->number++;
    else
        sched_view_change(s);
    sched_migrations_restart(s, term);
    return PARAMO_OK;
}

static void *copied(const void *from, size_t bytes)
{
    void *to = malloc(bytes ? bytes : 1);
    if (to && bytes)
        memcpy(to, from, bytes);
    return to;
}

static paramo_err view_adopt(struct scheduler *s, const struct view *view, uint32_t servers_before,
                             uint32_t founders)
{
    const struct slot_list *servers = sched_roster_slots(s, SLOTS_SERVERS),
                           *workers = sched_roster_slots(s, SLOTS_WORKERS);
    if (servers_before != servers->founders || founders != workers->founders || view->num_workers < founders)
        return err_set(PARAMO_E_INVALID,
                       "the stored state is of a job with %" PRIu32 " servers and %" PRIu32
                       " workers, not %" PRIu32 " and %" PRIu32,
                       servers_before, founders, servers->founders, workers->founders);
    if (view->number >> 32 > (uint64_t)s->term + SCHED_TERMS_AHEAD)
        return err_set(PARAMO_E_CORRUPT, "its view %" PRIx64 " does not fit its term %" PRIu32, view->number,
                       s->term);
    s->job = view->job;
    /* see sched_view_above(): servers must see that another scheduler leads */
    if (view->number > s->view->number)
        s->view->number = ((view->number >> 32) + 1) << 32;
    s->view->tables = copied(view->tables, view->tables_count * sizeof *s->view->tables);
    if (!s->view->tables)
        return err_memory(view->tables_count * sizeof *s->view->tables);
    s->view->tables_count = view->tables_count;
    paramo_err err = sched_ring_restore(s, view);
    return err ? err : sched_departure_expect(s, view);
}

paramo_err sched_view_restore(struct scheduler *s, struct reader *record)
{
    struct view *view;
    uint32_t servers = read_u32(record), founders = read_u32(record);
    if (s->view->tables)
        return err_set(PARAMO_E_CORRUPT, "it contains two views");
    paramo_err err = view_decode(record, &view);
    if (err)
        return err;
    err = view_adopt(s, view, servers, founders);
    view_unref(view);
    return err;
}

static const struct view_table *table_find(const struct scheduler *s, const char *name)
{
    for (uint32_t i = 0; i < s->view->tables_count; i++)
        if (strcmp(s->view->tables[i].name, name) == 0)
            return &s->view->tables[i];
    return NULL;
}

/* As in views: a table with as many replicas as the job has follows the job's number. */
static paramo_err options_resolved(const struct scheduler *s, const char *table,
                                   const paramo_table_options *options, paramo_table_options *resolved)
{
    *resolved = table_spec_resolved(options);
    if (resolved->replicas != PARAMO_REPLICAS_OF_JOB && resolved->replicas > s->config.replicas)
        return err_set(PARAMO_E_INVALID,
                       "table %s: replicas is %" PRIu32 ", but the job has %" PRIu32 " (--replicas)", table,
                       resolved->replicas, s->config.replicas);
    if (resolved->replicas == s->config.replicas)
        resolved->replicas = PARAMO_REPLICAS_OF_JOB;
    return PARAMO_OK;
}

static paramo_err table_add(struct scheduler *s, const struct table_open *m, const struct view_table **out)
{
    if (s->view->tables_count == VIEW_TABLES_MAX)
        return err_set(PARAMO_E_FULL, "the limit of %d tables is reached", VIEW_TABLES_MAX);
    paramo_table_options options;
    paramo_err err = options_resolved(s, m->name, &m->options, &options);
    if (err)
        return err;
    struct view_table *tables = realloc(s->view->tables, (s->view->tables_count + 1) * sizeof *tables);
    if (!tables)
        return err_memory((s->view->tables_count + 1) * sizeof *tables);
    s->view->tables = tables;
    struct view_table *table = &tables[s->view->tables_count++];
    *table =
        (struct view_table){.id = s->view->tables_count, .since = sched_view_next(s), .options = options};
    memcpy(table->name, m->name, sizeof m->name);
    *out = table;
    log_info("scheduler: table %s is number %" PRIu32, table->name, table->id);
    sched_migrations_table(s, options.replicas);
    sched_view_change(s);
    return PARAMO_OK;
}

paramo_err sched_view_table_make(struct scheduler *s, const struct view_table *table)
{
    const struct view_table *have = table_find(s, table->name);
    struct table_open m = {.options = table->options};
    if (have) {
        paramo_err err = options_resolved(s, table->name, &table->options, &m.options);
        return err ? err : table_spec_same(table->name, &have->options, &m.options);
    }
    memcpy(m.name, table->name, sizeof m.name);
    return table_add(s, &m, &have);
}

/* a restore may take that long; the caller's deadline ends the wait earlier */
enum { OPEN_WAIT_MS = 3600 * 1000 };

static void table_timed_out(struct sched_call *call)
{
    sched_call_fail(call,
                    err_set(PARAMO_E_TIMEOUT, "table %s: lost rows of other tables are still being restored",
                            call->u.table->name));
}

static void table_withdrawn(struct sched_call *call)
{
    free(call->u.table);
    call->u.table = NULL;
}

static void table_defer(struct sched_call *call, const struct table_open *m)
{
    struct table_open *kept = malloc(sizeof *kept);
    if (!kept) {
        sched_call_fail(call, err_memory(sizeof *kept));
        return;
    }
    *kept = *m;
    call->u.table = kept;
    call->withdrawn = table_withdrawn;
    (void)sched_call_defer(call, &call->node->sched->view->tables_deferred, OPEN_WAIT_MS, table_timed_out);
}

static void table_opens(struct sched_call *call, const struct table_open *m)
{
    struct scheduler *s = call->node->sched;
    paramo_err err = PARAMO_OK;
    const struct view_table *table = table_find(s, m->name);
    if (table && m->create) {
        paramo_table_options want;
        err = options_resolved(s, m->name, &m->options, &want);
        if (!err)
            err = table_spec_same(m->name, &table->options, &want);
    } else if (!table && m->create) {
        if (sched_lost_since(s)) {
            table_defer(call, m);
            return;
        }
        err = table_add(s, m, &table);
    } else if (!table) {
        err = err_set(PARAMO_E_NO_TABLE, "there is no table %s", m->name);
    }
    if (err) {
        sched_call_fail(call, err);
        return;
    }
    struct table_open_result result = {.table = table->id, .view = s->view->number};
    struct writer w = sched_call_result(call);
    table_open_result_encode(&result, &w);
    sched_call_answer(call, &w);
}

void sched_view_table_open(struct sched_call *call, struct reader *body)
{
    struct table_open m;
    paramo_err err = table_open_decode(body, &m);
    if (err)
        sched_call_fail(call, err);
    else
        table_opens(call, &m);
}

void sched_view_tables_resume(struct scheduler *s)
{
    for (struct sched_call *call; !sched_lost_since(s) && (call = s->view->tables_deferred.first);) {
        struct table_open m = *call->u.table;
        table_opens(call, &m);
    }
}

void sched_view_fini(struct scheduler *s)
{
    lane_timer_cancel(s->config.lane, &s->view->timer);
    control_message_body_unref(s->view->body);
    free(s->view->tables);
}

void sched_view_init(struct scheduler *s)
{
    s->view->number = (uint64_t)s->term << 32;
}

uint64_t sched_view_number(const struct scheduler *s)
{
    return s->view->number;
}

uint64_t sched_view_announced(const struct scheduler *s)
{
    return s->view->announced;
}

bool sched_view_is_due(const struct scheduler *s)
{
    return s->view->changed;
}

const struct control_message_body *sched_view_body(const struct scheduler *s)
{
    return s->view->body;
}

const struct view_table *sched_view_table(const struct scheduler *s, uint32_t index)
{
    return &s->view->tables[index];
}

uint32_t sched_view_tables_count(const struct scheduler *s)
{
    return s->view->tables_count;
}
