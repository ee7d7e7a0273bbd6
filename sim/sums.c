#include "sim/sums.h"

#include <inttypes.h>

#include "node/clock.h"
#include "server/shard/shard_impl.h"
#include "sim/bounds.h"
#include "sim/clocks.h"
#include "sim/judge.h"
#include "sim/world.h"
#include "wire/head.h"

static bool counts(const struct op *op)
{
    const struct world *w = op->machine->world;
    const struct customer *c = &op->machine->customers[op->customer];
    bool in = c->clock.state == CLOCKS_IN || c->clock.state == CLOCKS_WAITING;
    return w->clocks && !w->calm && in && !clock_check(c->worker);
}

void sums_kind(struct op *op)
{
    if (op->table != SIM_SUMS)
        return;
    if (op->kind == OP_PUSHPULL)
        op->kind = OP_PUSH;
    if (op->kind == OP_PUSH && !counts(op))
        op->table = SIM_SPARSE;
}

void sums_issue(struct op *op, struct client_call *call)
{
    struct world *w = op->machine->world;
    if (op->table != SIM_SUMS)
        return;
    if (counts(op))
        clock_of_call(op->machine->customers[op->customer].worker, call);
    op->clocked = call->clocked;
    op->clock = call->clock;
    op->at_clock = op->clocked && op->clock > op->at_clock ? op->clock : op->at_clock;
    for (unsigned i = 0; i < op->n; i++) {
        if (op->kind == OP_PUSH && op->digit[i])
            w->sums_clock[op->index[i]][(unsigned)__builtin_ctzll(op->digit[i]) / 2] = op->clock + 1;
        if (op->kind == OP_TRANSFORM)
            w->sums_changing[op->index[i]]++;
    }
    w->counts[PLAY_aggregated] += op->kind == OP_PUSH;
}

/* Has its worker counted since the issue? Then no other worker is more than an iteration ahead of it. */
static bool counted(const struct op *op)
{
    const struct customer *c = &op->machine->customers[op->customer];
    return counts(op) && c->clock.left_at < op->from && clocks_lives(op->machine);
}

void sums_seen(const struct op *op, unsigned i, uint64_t *must, uint64_t *early)
{
    const struct world *w = op->machine->world;
    unsigned key = op->index[i];
    uint64_t later = 0;
    *early = 0;
    if (op->table != SIM_SUMS || !op->clocked)
        return;
    for (unsigned d = 0; d < SIM_REAL_DIGITS; d++)
        if (w->sums_clock[key][d] > op->clock)
            later |= UINT64_C(1) << 2 * d;
    *must &= ~later;
    /* What is saved, or changed by a function, has the pushes of the present clock in it, and what returns after a loss
     * is what was saved: all that was sent until then. */
    const struct ledger_key *k = &w->ledger[SIM_SUMS].keys[key];
    uint64_t may = w->sums_seen[key] | bounds_may_load(w, SIM_SUMS, key, op->from);
    if (counted(op) && !w->sums_changing[key] && !k->lost)
        *early = later & ~may;
}

void sums_done(const struct op *op, paramo_err status)
{
    struct world *w = op->machine->world;
    for (unsigned i = 0; op->table == SIM_SUMS && op->kind == OP_TRANSFORM && !status && i < op->n; i++) {
        w->sums_changing[op->index[i]]--; /* after an error it may still be carried out */
        w->sums_seen[op->index[i]] |= w->ledger[SIM_SUMS].keys[op->index[i]].sent;
    }
}

void sums_returned(struct world *w, unsigned key)
{
    w->sums_seen[key] |= w->ledger[SIM_SUMS].keys[key].sent;
}

void sums_leaves(struct op *op, const struct wire_head *h)
{
    const struct world *w = op->machine->world;
    if (op->table != SIM_SUMS || op->kind != OP_PUSH)
        return;
    bool wrong = h->clock != op->clock + 1 || !h->workers || (op->workers && h->workers != op->workers) ||
                 h->workers > 4 * w->schedule->workers * w->schedule->customers;
    if (wrong)
        judge_broken(op->machine->world,
                     "%s: request %" PRIu64 " leaves with clock %" PRIu64 " of %u workers, not %" PRIu64
                     " of %u",
                     op->machine->name, op->ts, h->clock, h->workers, op->clock + 1, op->workers);
    op->workers = h->workers;
}

void sums_combined(struct world *w)
{
    for (uint32_t k = 1; k < w->count; k++) {
        struct machine *m = &w->machines[k];
        if (!m->up || m->role != PARAMO_ROLE_SERVER)
            continue;
        for (unsigned i = 0; i < m->made->own->shards_count; i++) {
            uint64_t combined = m->made->own->shards[i].shard->counters.combined;
            w->counts[PLAY_combined] += (uint32_t)(combined - m->combined_seen[i]);
            m->combined_seen[i] = combined;
        }
    }
}

bool sums_may_be_late(const struct op *op)
{
    return op->table == SIM_SUMS && op->kind == OP_PUSH && !counted(op);
}
