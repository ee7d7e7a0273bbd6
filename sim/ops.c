/* The application's requests, and the servers' handler, which adds, and answers now or later. */
#include "sim/ops.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "node/api_table.h"
#include "sim/clocks.h"
#include "sim/copies.h"
#include "sim/filters.h"
#include "sim/functions.h"
#include "sim/held.h"
#include "sim/invariants.h"
#include "sim/island.h"
#include "sim/judge.h"
#include "sim/ledger.h"
#include "sim/losses.h"
#include "sim/memory.h"
#include "sim/overdue.h"
#include "sim/pages.h"
#include "sim/reals.h"
#include "sim/sums.h"
#include "sim/task_calls.h"
#include "sim/world.h"
#include "worker/client_impl.h"
#include "worker/scan.h"
#include "worker/views.h"

static struct op *op_get(struct world *w)
{
    struct op *op = w->free_ops;
    if (op)
        w->free_ops = op->next;
    else if (!(op = malloc(sizeof *op)))
        abort();
    memset(op, 0, offsetof(struct op, keys));
    return op;
}

static void batch_free(struct op *op)
{
    if (!op->batch)
        return;
    free(op->batch->keys);
    free(op->batch->lens);
    free(op->batch->vals);
    free(op->batch);
    op->batch = NULL;
}

static void op_retire(struct world *w, struct op *op)
{
    struct op **place = &w->quarantine[w->quarantine_at++ % SIM_QUARANTINE];
    if (*place) {
        ledger_poisoned(w, *place);
        (*place)->next = w->free_ops;
        w->free_ops = *place;
    }
    batch_free(op);
    free(op->reduction.entries);
    op->reduction.entries = NULL;
    free(op->page);
    op->page = NULL;
    ledger_poison(op);
    *place = op;
    if (w->by_serial[op->serial % SIM_SERIALS] == op) {
        w->by_serial[op->serial % SIM_SERIALS] = NULL;
        w->by_serial_count--;
    }
}

/* A batch of a scan: rows in order, all of this shard, and none missing that was acknowledged when the scan
 * began. The observer does not know by which view the shard answered. So all rows of keys must be there that
 * the shard owned, by its own view, when the scan began, and still owns. Rows of keys that came or left since
 * then may be missing. But no row may be of a key that had left the shard when the batch was asked for, or
 * that the shard never owned. The customer's view may be older than the shard's process: then the process
 * before it was asked, which did not know yet that the key had left, or that it is dead. So both rules count
 * only as far as that view has them, too. */
static void scanned(struct world *w, const struct op *op)
{
    const struct scan_batch *b = op->batch;
    const struct ledger_table *t = &w->ledger[op->table];
    size_t at = 0, row = 0;
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        const struct ledger_key *k = &t->keys[i];
        if (k->key < b->cursor || (b->more && k->key > b->keys[b->n - 1]))
            continue;
        bool there = row < b->n && b->keys[row] == k->key;
        unsigned n = !there                            ? 0
                     : b->lens && op->table == SIM_VAR ? b->lens[row]
                                                       : sim_row_values(op->table, i);
        uint64_t must = there ? op->all_must[i] : op->began_must[i];
        bool own = k->shard == (int)op->shard;
        uint64_t from = there ? op->from : op->began;
        overdue_read(k, &from, &must);
        if (there || (own && op->began_view >= k->came && ledger_owned(k, op->shard, b->partitions_view)))
            ledger_row_check(w, "a scan", op->table, i, (const uint64_t *)(const void *)b->vals + at, n, must,
                             from);
        if (there && !own && op->shard_view >= k->past->left[op->shard] &&
            b->partitions_view >= k->past->left[op->shard])
            judge_broken(w, "a scan of shard %u gives key %" PRIu64 ", which is another's", op->shard,
                         k->key);
        row += there;
        at += n;
    }
    if (row != b->n)
        judge_broken(w, "a scan gives key %" PRIu64 ", which no push has used, or out of order",
                     b->keys[row]);
}

/* The customer's next batch continues where this one ended. */
static void scan_continues(const struct op *op)
{
    struct customer *c = &op->machine->customers[op->customer];
    const struct scan_batch *b = op->batch;
    c->scan.more = b->more && b->keys[b->n - 1] < UINT64_MAX;
    if (!c->scan.more)
        return;
    c->scan.table = op->table;
    c->scan.shard = op->shard;
    c->scan.id = b->id;
    c->scan.view = op->began_view;
    c->scan.cursor = b->keys[b->n - 1] + 1;
    c->scan.from = op->began;
    memcpy(c->scan.must, op->began_must, sizeof c->scan.must);
}

static void op_ended(struct op *op, uint64_t ts, paramo_err status)
{
    struct machine *m = op->machine;
    struct world *w = m->world;
    if (!op->open) {
        judge_broken(w, "%s: request %" PRIu64 " completed twice", m->name, ts);
        return;
    }
    op->open = false;
    m->customers[op->customer].open--;
    sim_note(w->sim, ts << 8 ^ (uint64_t)status);
    if (!m->dying)
        invariants_status(op, status);
    if (!status && op->refused)
        judge_broken(w, "%s: a reader's request %" PRIu64 " was not refused", m->name, ts);
    w->counts[PLAY_refused] += status == PARAMO_E_REFUSED;
    if (!status && !m->dying)
        clocks_request(op, "was executed");
    uint64_t *failed = &m->customers[op->customer].failed[ts % SIM_RECENT];
    m->customers[op->customer].afters -= op->after_n != 0;
    if (status && ts) {
        *failed = ts > *failed ? ts : *failed; /* one of long ago may end late */
        invariants_failed(op, ts);
    } else if (!status) {
        invariants_after(op);
    }
    if (!op->run)
        m->script.lost = status == PARAMO_E_NODE_LOST;
    if (op->run)
        w->tasks->answers++;
    w->counts[op->run ? PLAY_subtasks : (enum play_count)op->kind] += !status;
    w->counts[PLAY_ranges] += !status && op->range;
    w->counts[PLAY_columns] += !status && op->columns;
    if (!status && op->table == SIM_REALS)
        held_acknowledged(w, op);
    sums_done(op, status);
    ledger_done(w, op, status);
    held_update(w, &m->customers[op->customer]);
    if (op->kind == OP_FLUSH)
        held_flushed(w, op, status);
    if (!status && op->kind == OP_REDUCE)
        reduction_judge(w, op);
    if (!status && op->kind == OP_PAGE)
        page_judge(w, op);
    if (!status && op->kind == OP_SCAN) {
        scanned(w, op);
        scan_continues(op);
    }
    op_retire(w, op);
    if (!m->dying)
        m->world->app->wake(m);
}

void op_done(void *arg, uint64_t ts, paramo_err status)
{
    memory_hold();
    op_ended(arg, ts, status);
    memory_resume();
}

static enum op_kind kind_draw(struct world *w, enum sim_table table)
{
    uint64_t n = dice_draw(&w->dice, 100);
    if (table != SIM_USER && (n == 0 || ((w->recovered || judge_rows_lost(w, table)) && n < 12)))
        return OP_CLEAR;
    if (table != SIM_USER && n >= 94)
        return n < 96 ? OP_STAT : n < 98 ? OP_SCAN : OP_PAGE;
    if (table != SIM_USER && n >= 91)
        return OP_REDUCE;
    if (table == SIM_REALS && n == 90)
        return OP_FLUSH;
    if (table != SIM_USER && table != SIM_VAR && n >= 87)
        return OP_TRANSFORM;
    if (table == SIM_CELLS && n < 38)
        return n < 28 ? OP_PUT : OP_DELETE;
    if (n < 66)
        return OP_PUSH;
    return n < 81 && table != SIM_VAR ? OP_PUSHPULL : OP_PULL;
}

/* Some requests have the keys of the one before to that table, as a push has those of its pull, or all of them
 * but one. */
static void keys_again(struct world *w, struct op *op, const struct customer *c)
{
    uint64_t n = dice_draw(&w->dice, 4), keys = c->last_keys[op->table];
    if (n > 1 || op->only)
        return;
    op->same = n && (keys & (keys - 1)) ? keys & (keys - 1) : keys;
}

/* Only dense tables of the simulator have keys that follow each other. */
static void range_draw(struct world *w, struct op *op)
{
    bool rows = op->table == SIM_DENSE || op->table == SIM_ROWS;
    if (rows && op->kind <= OP_PUSHPULL && !op->only)
        op->range = dice_draw(&w->dice, 3) == 0;
}

/* What a reader may not do: pushes, and all that handlers take. Its other changes are pulls. */
static void reader_draw(struct op *op)
{
    bool reals_or_cells = reals_has(op->table) || op->table == SIM_CELLS;
    if (!op->machine->customers[op->customer].reads)
        return;
    bool changes = op->kind <= OP_CLEAR || op->kind == OP_TRANSFORM;
    bool push = op->kind == OP_PUSH || op->kind == OP_PUSHPULL;
    if (changes && (!push || reals_or_cells))
        op->kind = OP_PULL;
    op->refused = op->table == SIM_USER || op->kind == OP_PUSH || op->kind == OP_PUSHPULL;
}

static void columns_draw(struct world *w, struct op *op)
{
    unsigned width = sim_row_values(op->table, 0);
    if ((op->table != SIM_ROWS && op->table != SIM_SPARSE) ||
        (op->kind > OP_PUSHPULL && op->kind != OP_PAGE) || dice_draw(&w->dice, 3))
        return;
    op->column = (unsigned)dice_draw(&w->dice, width);
    op->columns = 1 + (unsigned)dice_draw(&w->dice, width - op->column);
}

static void op_fill(struct machine *m, struct op *op, bool flush)
{
    struct world *w = m->world;
    if (flush) {
        op->table = SIM_REALS;
        op->kind = OP_FLUSH;
    } else if (!island_needs(w) || !island_draw(m, op)) {
        op->table = (enum sim_table)dice_draw(&w->dice, SIM_TABLES);
        op->kind = kind_draw(w, op->table);
    }
    sums_kind(op);
    reader_draw(op);
    op->priority = (int32_t)dice_draw(&w->dice, SIM_PRIORITIES);
    struct customer *c = &m->customers[op->customer];
    bool continues = op->kind == OP_SCAN && c->scan.more;
    if (continues)
        op->table = c->scan.table;
    range_draw(w, op);
    columns_draw(w, op);
    if (!op->range)
        keys_again(w, op, c);
    if (!ledger_issue(w, op, &w->dice)) {
        op->kind = OP_PULL;
        op->same = 0;
        op->refused = op->refused && op->table == SIM_USER;
        (void)ledger_issue(w, op, &w->dice);
    }
    for (unsigned i = 0; i < op->n; i++)
        c->last_keys[op->table] = (i ? c->last_keys[op->table] : 0) | UINT64_C(1) << op->index[i];
    if (op->kind == OP_REDUCE)
        reduction_draw(op, &w->dice);
    if (op->kind == OP_TRANSFORM)
        transform_draw(op, &w->dice);
    if (op->kind == OP_FLUSH)
        held_flush_begins(w, c, op);
    if (op->kind == OP_PAGE)
        page_draw(op, &w->dice);
    if (op->kind == OP_SCAN) {
        op->batch = calloc(1, sizeof *op->batch);
        if (!op->batch)
            abort();
        op->shard = (unsigned)dice_draw(&w->dice, w->ring_shards);
        op->shard_view = copies_shard_view(w, op->shard);
        op->batch->shard = op->shard;
        op->batch->id = op->serial;
        op->batch->cursor =
            dice_draw(&w->dice, 2) ? w->ledger[op->table].keys[dice_draw(&w->dice, SIM_KEYS)].key : 0;
        op->began = op->from;
        op->began_view = op->shard_view;
        memcpy(op->began_must, op->all_must, sizeof op->began_must);
    }
    if (continues && !w->loading && c->scan.from > w->loaded_at) {
        op->shard = op->batch->shard = c->scan.shard;
        op->batch->id = c->scan.id;
        op->batch->cursor = c->scan.cursor;
        op->began = c->scan.from;
        op->began_view = c->scan.view;
        op->shard_view = copies_shard_view(w, op->shard);
        memcpy(op->began_must, c->scan.must, sizeof op->began_must);
    }
    c->scan.more = c->scan.more && !continues;
}

static uint32_t flags_draw(struct world *w, const struct op *op)
{
    uint64_t n = dice_draw(&w->dice, 4);
    if (n == 0)
        return PARAMO_COPY;
    return n == 1 && op->kind == OP_PULL ? PARAMO_CREATE : 0;
}

/* Some requests come after the one before them, after the fourth before them, or after all. */
static void after_draw(struct machine *m, struct op *op, paramo_request_options *o)
{
    uint64_t last = m->customers[op->customer].last_ts, n = dice_draw(&m->world->dice, 24);
    if (n > 2 || last < 4)
        return;
    op->after_n = n < 2 ? 1 + (unsigned)n : 1;
    op->after[0] = n < 2 ? last : 0;
    op->after[1] = n == 1 ? last - 3 : 0;
    op->after_all = n == 2 ? last : 0;
    o->after = op->after;
    o->after_count = n < 2 ? op->after_n : 0;
    o->after_all = op->after_all;
}

static struct op *op_new(struct machine *m, unsigned customer)
{
    struct world *w = m->world;
    struct op *op = op_get(w);
    op->machine = m;
    op->customer = customer;
    do
        op->serial = ++w->serial;
    while (w->by_serial[op->serial % SIM_SERIALS]); /* a request that is open for long keeps its place */
    return op;
}

/* It is about to be issued. */
static void op_opens(struct op *op)
{
    struct machine *m = op->machine;
    struct world *w = m->world;
    struct customer *c = &m->customers[op->customer];
    if (op->after_n)
        invariants_after_issue(op);
    op->open = true;
    c->open++;
    c->afters += op->after_n != 0;
    w->by_serial[op->serial % SIM_SERIALS] = op;
    w->by_serial_count++;
    op->saw_dead = judge_sees_dead(c->worker->client->view);
    op->issued_view = c->worker->client->view->number;
    op->issued_partitions = views_partitions_changed(c->worker->client);
}

static void issue(struct machine *m, unsigned customer, bool flush)
{
    static const enum request_kind kinds[] = {
        REQUEST_PUSH, REQUEST_PULL, REQUEST_PUSHPULL, REQUEST_PUT,       REQUEST_DELETE, REQUEST_CLEAR,
        REQUEST_STAT, REQUEST_SCAN, REQUEST_REDUCE,   REQUEST_TRANSFORM, REQUEST_FLUSH,  REQUEST_PAGE};
    struct world *w = m->world;
    struct customer *c = &m->customers[customer];
    struct op *op = op_new(m, customer);
    op_fill(m, op, flush);
    filters_change(m, customer, op->table);
    if (reals_has(op->table))
        reals_issued(w, op);
    uint32_t flags = flags_draw(w, op);
    op->refused = op->refused || (c->reads && flags & PARAMO_CREATE);
    paramo_request_options o = {.size = sizeof o,
                                .flags = flags,
                                .priority = op->priority,
                                .cmd = (int32_t)op->serial,
                                .column = op->column,
                                .columns = op->columns,
                                .callback = op_done,
                                .callback_arg = op};
    if (dice_draw(&w->dice, 12) == 0)
        o.timeout_ms = (uint32_t)dice_scale(&w->dice, 1, 1000);
    if (!op->only)
        after_draw(m, op, &o);
    if (!op->only)
        clocks_draw(m, op, &o);
    op->patient = !o.timeout_ms;
    op->deadline = lane_now(c->worker->lane) +
                   (o.timeout_ms ? o.timeout_ms : m->made->config.request_timeout_ms) * ENV_MS;
    paramo_kv kv = {.size = sizeof kv, .keys = op->range ? NULL : op->keys, .n = op->n};
    if (op->kind != OP_DELETE && op->kind != OP_TRANSFORM) {
        kv.vals = op->vals;
        kv.vals_len = op->vals_n;
        kv.lens = op->table == SIM_VAR ? op->lens : NULL;
    }
    struct client_call call = {.kind = kinds[op->kind],
                               .table = &m->tables[op->table],
                               .kv = op->kind >= OP_CLEAR && op->kind != OP_TRANSFORM ? NULL : &kv,
                               .options = &o,
                               .range = op->range,
                               .begin = op->range ? op->keys[0] : 0,
                               .stats = op->kind == OP_STAT ? &op->stats : NULL,
                               .batch = op->batch,
                               .page = op->kind == OP_PAGE ? &op->page->page : NULL,
                               .reduction = op->kind == OP_REDUCE ? &op->reduction : NULL,
                               .other = op->other,
                               .transform = &op->transform};
    sums_issue(op, &call);
    op_opens(op);
    m->script.ops++;
    memory_of(m);
    paramo_err err = client_issue(c->worker->client, &call, &op->ts);
    memory_of(NULL);
    op->issued = true;
    c->last_ts = err ? c->last_ts : op->ts;
    if (!err)
        c->issued[op->ts % SIM_RECENT] = op->ts;
    if (err == PARAMO_E_MEMORY && op->open && memory_failed(m, 0, op->from)) {
        op_ended(op, 0, err);
    } else if (err) {
        judge_broken(w, "%s: a request was refused: %s: %s", m->name, err_name(err), err_text());
        op->open = false;
        c->open--;
    } else if (op->open && (o.flags & PARAMO_COPY) && op->kind <= OP_DELETE && op->kind != OP_PULL &&
               op->kind != OP_PUSHPULL) {
        ledger_poison(op); /* the arrays are the caller's again */
    }
}

static void subtask_draw(struct op *op, struct dice *dice)
{
    op->only = UINT64_C(1) << dice_draw(dice, SIM_KEYS) | UINT64_C(1) << dice_draw(dice, SIM_KEYS);
    if (ledger_issue(op->machine->world, op, dice))
        return;
    op->kind = OP_PULL; /* no digit is left */
    (void)ledger_issue(op->machine->world, op, dice);
}

paramo_err op_subtask(struct task_run *run, struct machine *m, paramo_task *task, bool push,
                      struct dice *dice, paramo_callback done)
{
    static const enum sim_table tables[] = {SIM_DENSE, SIM_SPARSE, SIM_VAR, SIM_ROWS};
    paramo_worker *worker = m->customers[SIM_TASKS_CUSTOMER].worker;
    const struct client *client = worker->client;
    paramo_table *table = NULL;
    enum sim_table which = tables[dice_draw(dice, sizeof tables / sizeof *tables)];
    const struct view_table *found = view_table_named(client->view, sim_table_names[which]);
    if (!found) /* the product would ask the scheduler and wait */
        return err_set(PARAMO_E_NO_TABLE, "the view has no table %s", sim_table_names[which]);
    if (!table_by_name(worker, found->name))
        sim_must(table_take(worker, found, &table));
    struct op *op = op_new(m, SIM_TASKS_CUSTOMER);
    op->table = which;
    op->run = run;
    op->task = task;
    op->kind = push ? OP_PUSH : OP_PULL;
    subtask_draw(op, dice);
    bool copy = dice_draw(dice, 2);
    paramo_request_options o = {.size = sizeof o,
                                .flags = copy ? PARAMO_COPY : 0,
                                .priority = (int32_t)dice_draw(dice, SIM_PRIORITIES),
                                .cmd = (int32_t)op->serial,
                                .task = task,
                                .callback = done,
                                .callback_arg = op};
    paramo_kv kv = {.size = sizeof kv,
                    .keys = op->keys,
                    .n = op->n,
                    .vals = op->vals,
                    .vals_len = op->vals_n,
                    .lens = op->table == SIM_VAR ? op->lens : NULL};
    op->priority = o.priority;
    op->patient = true;
    op->deadline = lane_now(client->lane) + m->made->config.request_timeout_ms * ENV_MS;
    op_opens(op);
    memory_resume();
    paramo_err err = paramo_task_table(task, sim_table_names[op->table], NULL, &table);
    if (!err)
        err = (op->kind == OP_PUSH ? paramo_push : paramo_pull)(worker, table, &kv, &o, &op->ts);
    memory_hold();
    if (err)
        op_ended(op, 0, err);
    else if (op->open && copy && op->kind == OP_PUSH)
        ledger_poison(op);
    return err;
}

void op_issue(struct machine *m, unsigned customer)
{
    issue(m, customer, false);
}

void op_flush(struct machine *m, unsigned customer)
{
    issue(m, customer, true);
}

void op_cancel(struct machine *m)
{
    struct world *w = m->world;
    struct op *op = w->by_serial[w->serial % SIM_SERIALS];
    if (!op || op->machine != m || !op->open)
        return;
    op->cancelled = true;
    paramo_err err = client_cancel(m->customers[op->customer].worker->client, op->ts);
    if ((err && err != PARAMO_E_NOT_FOUND) || op->open)
        judge_broken(w, "%s: request %" PRIu64 " was cancelled: %s", m->name, op->ts,
                     err ? err_text() : "it lives on");
}

/* ---- the handler --------------------------------------------------------------------------------------- */

/* Each key has one value; some requests say so by lens. */
static void answer(struct machine *m, paramo_request *request, const paramo_request_info *info,
                   const uint64_t *sums)
{
    uint64_t vals[SIM_OP_KEYS];
    uint32_t lens[SIM_OP_KEYS];
    for (size_t i = 0; i < info->n && i < SIM_OP_KEYS; i++) {
        vals[i] = sums[ledger_index(m->world, SIM_USER, info->keys[i])];
        lens[i] = 1;
    }
    sim_must(
        paramo_answer(request, vals, info->pull ? info->n : 0, info->pull && info->cmd % 3 ? lens : NULL));
}

static void answer_late(struct sim_event *event)
{
    struct late_answer *late = container_of(event, struct late_answer, event);
    struct machine *m = late->machine;
    for (struct late_answer **at = &m->late; *at; at = &(*at)->next) {
        if (*at == late) {
            *at = late->next;
            break;
        }
    }
    answer(m, late->request, late->info, late->sums);
    free(late);
}

/* The shard of the machine that calls. */
static unsigned shard_of(const struct machine *m)
{
    const struct member_slot *member_slot = m->made->own;
    for (unsigned i = 0; i < member_slot->shards_count; i++)
        if (lane_held(member_slot->shards[i].lane))
            return i;
    abort(); /* handlers are called on the shard's lane */
}

static void handle(struct machine *m, paramo_request *request, const paramo_request_info *info)
{
    unsigned shard = shard_of(m);
    uint64_t *sums = m->sums[shard];
    struct world *w = m->world;
    const uint64_t *vals = info->vals;
    for (size_t i = 0; i < info->n; i++) {
        unsigned at = ledger_index(w, SIM_USER, info->keys[i]);
        if (at == SIM_KEYS || info->n > SIM_OP_KEYS) {
            judge_broken(w, "%s: a handler was given key %" PRIu64 ", which no client sent", m->name,
                         info->keys[i]);
            sim_must(paramo_answer_error(request, PARAMO_E_HANDLER, "no such key"));
            return;
        }
        if (info->push)
            sums[at] += vals[i];
    }
    invariants_handled(w, m, shard, info);
    if (dice_draw(&w->dice, 3)) {
        answer(m, request, info, sums);
        return;
    }
    struct late_answer *late = malloc(sizeof *late);
    if (!late)
        abort();
    *late = (struct late_answer){.next = m->late,
                                 .event.fire = answer_late,
                                 .machine = m,
                                 .request = request,
                                 .info = info,
                                 .sums = sums};
    m->late = late;
    sim_must(
        sim_schedule(w->sim, &late->event, sim_now(w->sim) + dice_scale(&w->dice, ENV_US, 400 * ENV_MS)));
}

void op_handler(void *arg, paramo_request *request, const paramo_request_info *info)
{
    memory_hold();
    handle(arg, request, info);
    memory_resume();
}
