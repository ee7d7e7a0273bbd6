#include "sim/invariants.h"
#include "sim/held.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cluster/scheduler/sched.h"
#include "ring/chains.h"
#include "server/migration/target.h"
#include "server/replication/chain_impl.h"
#include "sim/ckpts_state.h"
#include "sim/clocks.h"
#include "sim/functions.h"
#include "sim/judge.h"
#include "sim/ledger.h"
#include "sim/losses.h"
#include "sim/memory.h"
#include "sim/observing.h"
#include "sim/overdue.h"
#include "sim/sums.h"
#include "sim/task_judge.h"
#include "sim/world.h"
#include "wire/head.h"
#include "worker/chunk.h"
#include "worker/client_impl.h"
#include "worker/numbers.h"
#include "worker/requests.h"
#include "worker/views.h"

/* In the calm period: until a death is known. A restarted scheduler waits for all nodes again. */
#define PATIENCE(w) (((w)->schedule->durable ? 30 : 10) * ENV_SEC)

/* ---- order --------------------------------------------------------------------------------------------- */

/* Does the request wait for the one with this timestamp? 0: a carrier. */
static bool names(const struct op *op, uint64_t ts)
{
    return ts && (ts <= op->after_all || ts == op->after[0] || ts == op->after[1]);
}

/* No slice of a request leaves before the requests that it comes after have ended. */
static void held_check(struct world *w, const struct op *op, const struct client *client)
{
    for (const struct request *r = op->after_n ? requests_first(client) : NULL; r; r = r->next) {
        if (names(op, r->ts) && !r->ended)
            judge_broken(w,
                         "%s: request %" PRIu64 " leaves before request %" PRIu64
                         ", which it comes after, has ended",
                         op->machine->name, op->ts, r->ts);
    }
}

void invariants_after(const struct op *op)
{
    if (op->first)
        judge_broken(op->machine->world,
                     "%s: request %" PRIu64 " was executed although request %" PRIu64
                     ", which it comes after, failed",
                     op->machine->name, op->ts, op->first);
}

void invariants_failed(const struct op *op, uint64_t ts)
{
    struct world *w = op->machine->world;
    const struct customer *c = &op->machine->customers[op->customer];
    for (unsigned i = 0, left = c->afters; i < SIM_SERIALS && left; i++) {
        struct op *next = w->by_serial[i];
        if (!next || !next->open || !next->after_n || next->machine != op->machine ||
            next->customer != op->customer)
            continue;
        left--;
        if (!names(next, ts))
            continue;
        next->first_failed = true;
        /* Its client may have ended that one in the same step before: then it does not wait for it, unless it names
         * it. */
        if (next->issued || ts > next->after_all)
            next->first = ts;
    }
}

void invariants_after_issue(struct op *op)
{
    const struct machine *m = op->machine;
    const struct customer *c = &m->customers[op->customer];
    for (unsigned i = 0; i < 2; i++) {
        uint64_t ts = op->after[i];
        if (ts && c->failed[ts % SIM_RECENT] == ts)
            op->first = ts;
        /* a client task's, or a call of a task, whose ends this judge does not see */
        op->first_failed = op->first_failed || op->first || (ts && c->issued[ts % SIM_RECENT] != ts);
    }
    bool task = m->client_task && m->client_task_customer == op->customer;
    if (op->after_all && (task || c->calls))
        op->first_failed = true;
}

/* A first transmission may not overtake an earlier request of the same customer, shard and priority. */
void invariants_watch_leaves(void *arg, uint32_t from, uint32_t to, const struct van_frame *frame)
{
    struct world *w = arg;
    struct wire_head h;
    if (wire_head_decode(frame->head, &h)) {
        judge_broken(w, "node %u sends a message whose head cannot be decoded", from);
        return;
    }
    sim_note(w->sim, (uint64_t)from << 56 ^ (uint64_t)to << 48 ^ (uint64_t)h.kind << 40 ^ h.number);
    if (h.kind < WIRE_PUSH || (h.kind > WIRE_STAT && h.kind != WIRE_REDUCE && h.kind != WIRE_TRANSFORM) ||
        h.kind == WIRE_PROBE)
        return;
    const struct slice *p = container_of(frame, const struct slice, frame);
    struct op *op = p->chunk->request->callback_arg;
    if (!op || p->link->client->config.app == PARAMO_TASKS_APP)
        return; /* of a client task, or a subtask */
    held_check(w, op, p->link->client);
    if (!p->resent && !h.attempt)
        op->left_at = lane_now(p->link->client->lane);
    clocks_request(op, "leaves");
    sums_leaves(op, &h);
    if (p->resent || h.attempt || op->after_n ||
        op->at_clock) { /* a request that was held back leaves when it may */
        op->again = true;
        return;
    }
    unsigned shard = (p->link->node - PARAMO_ID_SERVER(0)) / 2 * w->schedule->shards + p->link->index;
    uint64_t *last = &op->machine->customers[op->customer].first_ts[shard][op->priority];
    if (h.ts < *last)
        judge_broken(w,
                     "%s: request %" PRIu64 " of customer %u leaves for shard %u after request %" PRIu64
                     " of the same priority",
                     op->machine->name, h.ts, op->customer, shard, *last);
    *last = h.ts;
}

void invariants_watch_arrives(void *arg, uint32_t from, uint32_t to, const uint8_t head[VAN_HEAD])
{
    struct world *w = arg;
    uint64_t number;
    memcpy(&number, head + 8, sizeof number);
    sim_note(w->sim, (uint64_t)from << 56 ^ (uint64_t)to << 48 ^ (uint64_t)head[0] << 40 ^ number);
    bool of_task = head[0] == WIRE_ANSWER && w->tasks && w->tasks->answers;
    if (of_task)
        w->tasks->answers--;
    w->answers += head[0] == WIRE_ANSWER && !of_task;
    w->stirred = w->stirred || head[0] == WIRE_VIEW || head[0] == WIRE_ORDER || head[0] == WIRE_CHAIN ||
                 head[0] == WIRE_MIGRATION || (head[0] >= WIRE_PUSH && head[0] < WIRE_ANSWER);
}

void invariants_handled(struct world *w, struct machine *server, unsigned index,
                        const paramo_request_info *info)
{
    struct op *op = w->by_serial[(uint32_t)info->cmd % SIM_SERIALS];
    if (op && op->serial == (uint32_t)info->cmd && op->refused)
        judge_broken(w, "%s: a handler is given a reader's request %" PRIu64, server->name, op->ts);
    if (!op || op->serial != (uint32_t)info->cmd || op->again || w->schedule->datagrams & 1u << VAN_REQUEST)
        return;
    unsigned shard = (unsigned)server->place * w->schedule->shards + index;
    uint64_t *last = &op->machine->customers[op->customer].handled_ts[shard][op->priority];
    if (op->ts < *last)
        judge_broken(w, "%s: a handler is given request %" PRIu64 " after %" PRIu64 " of the same customer",
                     server->name, op->ts, *last);
    *last = op->ts;
}

/* ---- how requests may end ------------------------------------------------------------------------------ */

/* The places of the servers that the request was sent to, or may have been, one bit each: all that have owned one of
 * its keys since its issue, as its client or the newest view has it. A scan asks one shard, others without keys all
 * servers. */
static uint32_t asked_servers(const struct op *op)
{
    const struct world *w = op->machine->world;
    uint32_t asked = 0;
    if (op->kind == OP_SCAN)
        return UINT32_C(1) << op->shard / w->schedule->shards;
    if (!op->n)
        return UINT32_MAX;
    for (unsigned i = 0; i < op->n; i++) {
        const struct ledger_key *k = &w->ledger[op->table].keys[op->index[i]];
        for (unsigned s = 0; s < w->ring_shards; s++)
            if (k->shard == (int)s || k->past->left[s] > op->issued_view)
                asked |= UINT32_C(1) << s / w->schedule->shards;
    }
    return asked;
}

/* The places of asked_servers(), and of all servers that its changes may be passed on to: members of chains and
 * targets of migrations. These must know what the request asks for, too. */
static uint32_t changed_servers(const struct op *op)
{
    bool reads = op->kind == OP_PULL || (op->kind >= OP_STAT && op->kind != OP_TRANSFORM);
    return reads ? asked_servers(op) : UINT32_MAX;
}

/* Has a server that it asks died since its issue? */
static bool asked_dead(const struct op *op, const struct view *view)
{
    const struct world *w = op->machine->world;
    uint32_t dead = judge_sees_dead(view) | op->saw_dead;
    /* A dead server had the keys: a newer view with its successor may have come before this report. */
    for (unsigned p = 0; p < SIM_SERVERS; p++)
        dead |= (uint32_t)(w->death_view[p] > op->issued_view) << p;
    return dead && asked_servers(op) & dead;
}

/* Has the owner of one of its keys died, without a later successful clear that replaces the lost rows? */
static bool asked_lost(const struct op *op)
{
    const struct world *w = op->machine->world;
    const struct ledger_table *t = &w->ledger[op->table];
    bool asked = !op->n || w->schedule->restores; /* given up: the clear is of the whole table */
    for (unsigned i = 0; i < op->n && !asked; i++) {
        uint64_t died_at = t->keys[op->index[i]].died_at;
        asked = died_at && (t->mended_from < died_at || op->from < t->mended_at);
    }
    return asked;
}

/* Has one of its keys got another owner since its issue? */
static bool keys_moved(const struct op *op)
{
    const struct world *w = op->machine->world;
    bool moved = false;
    for (unsigned i = 0; i < op->n && !moved; i++) {
        const struct ledger_key *k = &w->ledger[op->table].keys[op->index[i]];
        moved = k->came > op->issued_view;
        for (unsigned s = 0; s < w->ring_shards; s++)
            moved = moved || k->past->left[s] > op->issued_view;
    }
    return moved;
}

/* A request that it comes after, and that has ended, but whose callback has not come yet. It must have failed. */
static struct op *ended_untold(const struct op *op)
{
    const struct world *w = op->machine->world;
    struct op *untold = NULL;
    for (unsigned i = 0; i < SIM_SERIALS && !untold; i++) {
        struct op *first = w->by_serial[i];
        bool named = first && first != op && first->open && first->machine == op->machine &&
                     first->customer == op->customer && names(op, first->ts);
        const struct client *client = op->machine->customers[op->customer].worker->client;
        for (const struct request *r = named ? requests_first(client) : NULL; r && named; r = r->next)
            named = r->ts != first->ts || r->ended;
        untold = named ? first : NULL;
    }
    return untold;
}

/* Has a request that it comes after failed? One that it names may have failed before; of a request that comes after all
 * before it, only those count that were in flight at its issue. */
static bool after_failed(const struct op *op)
{
    struct op *untold = op->after_n && !op->first_failed ? ended_untold(op) : NULL;
    if (untold)
        untold->has_failed = true;
    return op->first_failed || untold;
}

/* Its node has learned that the job is over, and so its clock has ended with that. The job's end is judged by itself,
 * perhaps later: its scheduler tells the nodes before it has emptied its store. */
static bool clock_ended_with_job(const struct op *op, paramo_err status)
{
    const struct member_slot *own = op->machine->made->own;
    return op->at_clock && clocks_lost(op, status) && atomic_load(&own->state) == MEMBER_SLOT_ENDED &&
           own->code == status;
}

void invariants_status(struct op *op, paramo_err status)
{
    struct machine *m = op->machine;
    struct world *w = m->world;
    const struct client *client = m->customers[op->customer].worker->client;
    bool ok = false;
    switch (status) {
    case PARAMO_OK:
        ok = !op->has_failed;
        break;
    case PARAMO_E_TIMEOUT:
        /* In the calm period there is time enough, unless no node is left that reports the server's death. */
        /* The views of a reader whose observer has ended are old until the application has closed it, which may be
         * busy: there its requests end with the observer. */
        ok = lane_now(client->lane) >= op->deadline &&
             !(w->calm && !(m->customers[op->customer].reads && m->observing.state == OBSERVING_ENDED) &&
               op->patient && !w->scheduler_lost && sim_now(w->sim) > w->calm_since + PATIENCE(w) &&
               !clocks_hold(op));
        break;
    case PARAMO_E_CANCELLED:
        ok = op->cancelled || after_failed(op);
        break;
    case PARAMO_E_NODE_LOST:
        ok = asked_dead(op, client->view) && judge_may_refuse(w);
        break;
    case PARAMO_E_DATA_LOST:
        ok = judge_data_lost(w) || (judge_may_be_lost(w, op->table, held_since(op)) && asked_lost(op)) ||
             ckpts_may_have_lost(w, op->table, held_since(op)) || clock_ended_with_job(op, status);
        break;
    /* it was sliced by another view, or names a shard that its client does not know yet */
    case PARAMO_E_MOVED:
        ok = op->kind == OP_SCAN && (views_partitions_changed(client) > op->issued_partitions ||
                                     op->shard >= client->view->shards_count);
        break;
    case PARAMO_E_REFUSED:
        ok = op->refused;
        break;
    case PARAMO_E_UNSUPPORTED:
        ok = function_may_be_refused(op, changed_servers(op));
        break;
    case PARAMO_E_HANDLER: /* handled for some keys, and sliced again for others */
        ok = op->table == SIM_USER && op->kind == OP_PUSHPULL && keys_moved(op);
        break;
    case PARAMO_E_FENCED:
        ok = m->declared_dead;
        break;
    case PARAMO_E_INVALID:
        ok = clocks_lost(op, status) || sums_may_be_late(op);
        break;
    case PARAMO_E_MEMORY:
        ok = memory_failed(m, asked_servers(op), held_since(op)) || clocks_lost(op, status);
        break;
    case PARAMO_E_CLOSED:
        ok = m->customers[op->customer].closing || clocks_lost(op, status);
        break;
    default:
        ok = clocks_lost(op, status);
        break;
    }
    if (!ok)
        judge_broken(w, "%s: request %" PRIu64 " (kind %d, table %d) ended with %s, without a cause: %s",
                     m->name, op->ts, (int)op->kind, (int)op->table, err_name(status),
                     status ? err_text() : "");
}

/* ---- two schedulers that both lead --------------------------------------------------------------------- */
/* A state without records says that the job is over, and standby schedulers end. */
static void emptied_check(struct world *w, uint64_t term)
{
    for (uint32_t k = 0; k < w->count; k++) {
        const struct machine *m = &w->machines[k];
        const struct scheduler *s = m->role == PARAMO_ROLE_SCHEDULER && m->made ? m->made->scheduler : NULL;
        if (s && m->term == term && s->state != SCHED_OVER)
            judge_broken(w, "a scheduler has saved that its job is over, and the job goes on");
    }
}

/* A save of a former leader is not only late: it removes what the next leader has announced. */
void invariants_etcd(void *arg, const char *key, const char *value)
{
    struct world *w = arg;
    uint64_t first, last, pieces, bytes;
    if (strcmp(key, "paramo/job/term") == 0) {
        uint32_t term = (uint32_t)strtoul(value, NULL, 10);
        if (term <= w->etcd_term)
            judge_broken(w, "a scheduler of term %" PRIu32 " has begun to lead after term %" PRIu32, term,
                         w->etcd_term);
        w->etcd_term = term;
    }
    if (strcmp(key, "paramo/job/head") == 0 && sscanf(value, "1 %" SCNx64 " %" SCNx64 " %" SCNu64 " %" SCNu64,
                                                      &first, &last, &pieces, &bytes) == 4) {
        if (last >> 32 != w->etcd_term)
            judge_broken(w, "a scheduler of term %" PRIu64 " has saved after term %" PRIu32 " had begun",
                         last >> 32, w->etcd_term);
        if (!bytes)
            emptied_check(w, last >> 32);
    }
}

/* ---- barriers: all or none, once ----------------------------------------------------------------------- */

void invariants_barrier(struct machine *m, uint64_t number)
{
    struct world *w = m->world;
    struct at_barrier *own = &w->barrier[m->place];
    if (m->declared_dead)
        return; /* an answer from before that: another process has its place */
    for (uint32_t i = 0; i < w->schedule->workers - w->schedule->extra; i++) { /* no caller waits for more */
        const struct at_barrier *other = &w->barrier[i];
        if (!other->inside && other->released < number && !other->ghost)
            judge_broken(w, "%s: barrier %" PRIu64 " was released while worker %u was not in it", m->name,
                         number, i);
    }
    if (number <= own->released)
        judge_broken(w, "%s: barrier %" PRIu64 " was released after %" PRIu64, m->name, number,
                     own->released);
    w->counts[PLAY_barriers]++;
    own->released = number;
    own->inside = own->ghost = false;
}

/* ---- views --------------------------------------------------------------------------------------------- */

static uint64_t members_hash(const struct view *view)
{
    uint64_t hash = view->number;
    for (uint32_t i = 0; i < view->nodes_count; i++)
        hash = mix64(hash ^ view->nodes[i].incarnation) + view->nodes[i].id + view->nodes[i].alive;
    return hash;
}

/* The rows of the server in this place are lost, except their copies. In a view that no node has seen, the
 * server may have owned others: then any rows may be lost. So it is where one view has a new owner and its death. */
static void keys_died(struct world *w, const struct view *view, unsigned place, bool follows)
{
    w->lost_at = ++w->moment;
    for (unsigned t = 0; t < SIM_TABLES; t++)
        for (unsigned i = 0; i < SIM_KEYS; i++) {
            struct ledger_key *k = &w->ledger[t].keys[i];
            if (!follows || k->shard < 0 || (unsigned)k->shard / w->schedule->shards == place ||
                view->owner_gone[k->partition] == view->number)
                k->died_at = w->lost_at;
        }
}

/* Is the chain on as many living servers as it should be? Two shards of one server may be in the chain while one of
 * them takes the other's place. */
static bool has_all_copies(const struct world *w, const struct view *view, unsigned partition)
{
    uint64_t nodes = 0;
    for (unsigned level = 0; level <= w->schedule->replicas; level++) {
        unsigned shard = view->chains.level[level].owner[partition];
        if (shard >= view->shards_count || !view_node(view, view->shards[shard].node)->alive)
            return false;
        nodes |= UINT64_C(1) << view->shards[shard].node;
    }
    return (unsigned)__builtin_popcountll(nodes) > w->schedule->replicas;
}

/* Counts the servers that have died since the view before; the count restarts when each partition has all its
 * copies. A place counts once in a view: a server that came in a dead one's place and died was in no chain,
 * because a member of a chain sees the view that has it there, and then the judge has seen it, too. Before the first
 * view that a node has seen there may have been others in which servers died: they are dead in the first
 * view, or another server is in their place. */
static void copies_count(struct world *w, const struct view *view, bool follows)
{
    bool full = true;
    for (uint32_t i = 0; i < view->nodes_count; i++) {
        const struct view_node *node = &view->nodes[i];
        unsigned place = (node->id - PARAMO_ID_SERVER(0)) / 2;
        if (node->role != PARAMO_ROLE_SERVER)
            continue;
        uint64_t before = w->copies_at[place];
        if (node->left || w->left[place]) { /* all its rows had moved to other servers */
            w->gone += !node->alive && !node->left;
            w->copies_at[place] = node->alive ? node->incarnation : 0;
            continue;
        }
        if (node->alive ? w->holder[place] && w->holder[place] != node->incarnation
                        : before || w->holder[place] != node->incarnation)
            keys_died(w, view, place, follows);
        if (!w->holder[place])
            w->gone += !node->alive || node->recovered;
        else
            w->gone += before && (before != node->incarnation || !node->alive);
        w->copies_at[place] = node->alive ? node->incarnation : 0;
    }
    uint64_t begins[PARTITION_WORDS] = {0};
    ring_begins(&view->chains, begins);
    for (partition_set_runs(a, end, begins))
        full = full && has_all_copies(w, view, a);
    w->gone = full ? 0 : w->gone;
}

/* Has a server of the view before died or left, or one that came since? */
static bool any_gone(const struct world *w, const struct view *view)
{
    for (uint32_t i = 0; i < view->nodes_count; i++) {
        const struct view_node *node = &view->nodes[i];
        unsigned place = (node->id - PARAMO_ID_SERVER(0)) / 2;
        if (node->role != PARAMO_ROLE_SERVER)
            continue;
        bool other = w->holder[place] != node->incarnation;
        if (node->alive ? w->holder[place] && other : w->copies_at[place] || other)
            return true;
    }
    return false;
}

/* When owners were gone, as views have it. No scheduler forgets it, and no migration changes it. before: the
 * newest view that was seen before; 0: none. */
static void owners_gone_came(struct world *w, const struct view *view, uint64_t before)
{
    bool gone = any_gone(w, view);
    for (unsigned a = 0; a < RING_PARTITIONS && before; a++) {
        uint64_t was = w->owner_gone[a], is = view->owner_gone[a];
        if (is < was || (is > was && (is <= before || !gone))) {
            judge_broken(w,
                         "view %" PRIx64 " after %" PRIx64 " says that the owner of partition %u was gone "
                         "in view %" PRIx64 ", and that before said %" PRIx64,
                         view->number, before, a, is, was);
            break;
        }
    }
    memcpy(w->owner_gone, view->owner_gone, sizeof w->owner_gone);
}

/* Do partitions with rows get another owner? */
static bool rows_pass(const struct world *w, const struct ring *from, const struct ring *to)
{
    for (unsigned t = 0; t < SIM_TABLES; t++)
        for (unsigned i = 0; i < SIM_KEYS && t != SIM_USER; i++) {
            const struct ledger_key *k = &w->ledger[t].keys[i];
            if (k->acked && from->owner[k->partition] != to->owner[k->partition])
                return true;
        }
    return false;
}

/* Each partition has one owner in each epoch, which is alive as long as replicas are left. before: the newest
 * view that was seen before; 0: none. */
static void chains_came(struct world *w, const struct view *view, uint64_t before)
{
    bool first = true;
    for (uint32_t i = 0; i < SIM_SERVERS; i++)
        first = first && !w->holder[i];
    losses_came(w, view, before);
    owners_gone_came(w, view, before);
    copies_count(w, view, view->number == before + 1);
    bool moved = !first && memcmp(view_ring(view), &w->chains.level[0], sizeof w->chains.level[0]) != 0;
    uint64_t begins[PARTITION_WORDS] = {0};
    ring_begins(&view->chains, begins);
    for (partition_set_runs(a, end, begins)) {
        unsigned owner = view_ring(view)->owner[a];
        if (w->schedule->replicas && !judge_data_lost(w) && !view_node(view, view->shards[owner].node)->alive)
            judge_broken(w, "view %" PRIx64 " has partition %u with a dead server", view->number, a);
    }
    w->counts[PLAY_ownership] += moved && rows_pass(w, &w->chains.level[0], view_ring(view));
    w->chains = view->chains;
    if (!moved)
        return;
    w->successions++;
    w->counts[PLAY_promotions]++;
    ledger_owners(w, view);
}

static void view_came(struct world *w, const struct view *view)
{
    uint64_t hash = members_hash(view);
    if (view->number == w->newest_view &&
        (hash != w->view_hash || memcmp(view->chains.level, w->chains.level, sizeof w->chains.level) != 0))
        judge_broken(w, "there are two views of number %" PRIx64, view->number);
    if (view->number <= w->newest_view)
        return;
    uint64_t before = w->newest_view;
    w->newest_view = view->number;
    w->newest_view_at = w->moment; /* before all that it changes in the model */
    w->term_view[view->number >> 32 < SIM_TERMS ? view->number >> 32 : 0] = view->number;
    w->view_hash = hash;
    if (view->shards_count > SIM_SHARDS) {
        judge_broken(w, "view %" PRIx64 " has %" PRIu32 " shards", view->number, view->shards_count);
        return;
    }
    chains_came(w, view, before);
    if (view->tables_count < w->newest_tables)
        judge_broken(w, "view %" PRIx64 " has lost a table", view->number);
    w->newest_tables = view->tables_count;
    for (uint32_t i = 0; i < view->nodes_count; i++) {
        const struct view_node *node = &view->nodes[i];
        if (node->role == PARAMO_ROLE_SERVER) {
            unsigned place = (node->id - PARAMO_ID_SERVER(0)) / 2;
            bool successor = w->holder[place] && w->holder[place] != node->incarnation && !w->left[place];
            bool died = !node->alive && !node->left;
            w->deaths_seen = w->deaths_seen || died || successor;
            if (died || successor) /* both may have happened in one view */
                w->death_view[place] = view->number;
            if (successor)
                ledger_server_died(w, place);
            w->recovered = w->recovered || (node->recovered && judge_may_refuse(w) && !w->left[place]);
            w->holder[place] = node->incarnation;
            w->left[place] = node->left;
        }
        for (uint32_t k = 0; k < i; k++)
            if (view->nodes[k].id == node->id || view->nodes[k].incarnation == node->incarnation)
                judge_broken(w, "view %" PRIx64 " has node %u twice", view->number, node->id);
        for (uint32_t k = 0; k < w->count; k++) {
            struct machine *m = &w->machines[k];
            if (!m->up || !m->made->own || m->made->own->incarnation != node->incarnation)
                continue;
            m->place = (int)(node->id - PARAMO_ID_SERVER(0)) / 2;
            if (m->declared_dead && !m->view_seen)
                judge_dead(m, false); /* it had a place in another view, which it never served by */
            if (m->declared_dead && node->alive)
                judge_broken(w, "%s was dead, and view %" PRIx64 " has it alive again", m->name,
                             view->number);
            if (m->place >= SIM_PLACES)
                judge_broken(w, "%s has place %d", m->name, m->place);
            m->place %= SIM_PLACES;
            if (m->role == PARAMO_ROLE_SERVER)
                w->lacked[m->place] |= ~m->van->capabilities;
            if (!node->alive)
                judge_dead(m, true);
        }
    }
    /* A node that is no longer in the view has lost its place. A server serves by the first view that has it,
     * although it may not have joined yet. */
    for (uint32_t k = 0; k < w->count; k++) {
        struct machine *m = &w->machines[k];
        bool serves =
            m->up && m->role == PARAMO_ROLE_SERVER && m->seen == MEMBER_SLOT_JOINING && m->place >= 0;
        if ((!machine_joined(m) && !serves) || m->role == PARAMO_ROLE_SCHEDULER)
            continue;
        const struct view_node *node =
            view_node(view, serves ? PARAMO_ID_SERVER((uint32_t)m->place) : member_id(m->made->own->member));
        if (!node || node->incarnation != m->made->own->incarnation)
            judge_dead(m, true);
    }
}

/* A node learns of its own death before it sees a view without itself. */
static void sees_itself(struct world *w, const struct machine *m, const struct view *view)
{
    const struct view_node *self = view_node(view, member_id(m->made->own->member));
    if (m->seen != MEMBER_SLOT_JOINED ||
        (self && self->incarnation == m->made->own->incarnation && (self->alive || self->left)))
        return;
    judge_broken(w, "%s is joined and its own view %" PRIx64 " says it is dead", m->name, view->number);
}

static void member_views(struct world *w, struct machine *m)
{
    struct member *member = m->made->own->member;
    const struct view *view = member_view(member);
    if (view && view->number != m->view_seen) {
        if (view->number < m->view_seen)
            judge_broken(w, "%s went back from view %" PRIx64 " to %" PRIx64, m->name, m->view_seen,
                         view->number);
        view_came(w, view);
        m->view_seen = view->number;
        sees_itself(w, m, view);
    }
    for (unsigned i = 0; i < m->made->own->shards_count; i++) {
        const struct shard *shard = m->made->own->shards[i].shard;
        uint64_t number = shard->view ? shard->view->number : 0;
        if (number < m->shard_view_seen[i])
            judge_broken(w, "a shard of %s went back to view %" PRIx64, m->name, number);
        m->shard_view_seen[i] = number;
    }
}

/* ---- after each event ---------------------------------------------------------------------------------- */

static void customers_check(struct world *w, struct machine *m)
{
    for (unsigned i = 0; i < w->schedule->customers; i++) {
        struct customer *c = &m->customers[i];
        if (!c->worker)
            continue;
        struct client *client = c->worker->client;
        if (client->view->number < c->view_seen)
            judge_broken(w, "customer %u of %s went back to view %" PRIx64, i, m->name, client->view->number);
        c->view_seen = client->view->number;
        if (m->client_task && m->client_task_customer == i)
            continue;
        if (atomic_load(&client->tracker.in_flight) != c->open + c->calls)
            judge_broken(w, "customer %u of %s: %u requests are tracked, %u are in flight", i, m->name,
                         atomic_load(&client->tracker.in_flight), c->open + c->calls);
        if (!c->open && !c->calls && !requests_first(client) && /* carriers continue */
            (client->pool.out || numbers_floor(client) != numbers_next(client) || chunk_first_waiter(client)))
            judge_broken(w, "customer %u of %s keeps something although nothing is in flight", i, m->name);
    }
}

static void observer_views(struct world *w, struct machine *m)
{
    const struct view *view = observing_view(m);
    if (view && view->number != m->observing.told)
        view_came(w, view);
    m->observing.told = view ? view->number : 0;
    observing_check(m);
}

/* Cheap checks: views only move forward, and what each node keeps is bounded by what is in flight. */
void invariants_step(struct world *w, uint32_t first, uint32_t end)
{
    uint32_t look_at = ((UINT32_C(1) << end) - 1) & ~((UINT32_C(1) << first) - 1), done = 1;
    for (uint32_t left; (left = (look_at | w->dead) & ~done);) { /* a view seen here may have one more dead */
        uint32_t k = (uint32_t)__builtin_ctz(left);
        struct machine *m = &w->machines[k];
        bool look = look_at >> k & 1;
        done |= (UINT32_C(2) << k) - 1;
        if (!m->up || !m->made->own)
            continue;
        if (look && m->made->own->member)
            member_views(w, m);
        if (m->declared_dead && m->role == PARAMO_ROLE_SERVER) {
            w->ghost_at = w->moment;
            ledger_ghost(m);
            overdue_watch(m);
        }
        if (look && w->tasks)
            task_judge_check(m);
        if (look && m->role == PARAMO_ROLE_WORKER)
            customers_check(w, m);
        if (look && m->role == PARAMO_ROLE_WORKER)
            observer_views(w, m);
    }
}
