#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sim/world.h"

#define TWICE UINT64_C(0x2aaaaaaaaaaaaaaa) /* the upper bits of the digits */

static int by_key(const void *a, const void *b)
{
    uint64_t x = ((const struct ledger_key *)a)->key, y = ((const struct ledger_key *)b)->key;
    return (x > y) - (x < y);
}

void ledger_init(struct world *w)
{
    for (unsigned t = 0; t < SIM_TABLES; t++) {
        for (unsigned i = 0; i < SIM_KEYS; i++)
            w->ledger[t].keys[i] = (struct ledger_key){.key = t == SIM_DENSE ? i : mix64(i + 1), .shard = -1};
        qsort(w->ledger[t].keys, SIM_KEYS, sizeof w->ledger[t].keys[0], by_key);
    }
}

void ledger_owners(struct world *w, const struct view *view)
{
    w->ring_shards = view->shards_count;
    for (unsigned t = 0; t < SIM_TABLES; t++) {
        struct ring_placement placement = {.kind = t == SIM_DENSE ? PARAMO_PLACE_DENSE : PARAMO_PLACE_MIXED,
                                           .rows = SIM_KEYS};
        for (unsigned i = 0; i < SIM_KEYS; i++) {
            struct ledger_key *k = &w->ledger[t].keys[i];
            k->shard = view->ring.owner[ring_arc(ring_position(&placement, k->key))];
        }
    }
}

unsigned ledger_index(const struct world *w, uint64_t key)
{
    const struct ledger_key *keys = w->ledger[SIM_USER].keys;
    unsigned low = 0, high = SIM_KEYS;
    while (low + 1 < high) {
        unsigned middle = (low + high) / 2;
        *(keys[middle].key <= key ? &low : &high) = middle;
    }
    return keys[low].key == key ? low : SIM_KEYS;
}

int ledger_owner(const struct world *w, uint64_t key)
{
    unsigned index = ledger_index(w, key);
    return index < SIM_KEYS ? w->ledger[SIM_USER].keys[index].shard : -1;
}

static unsigned server_of(const struct world *w, const struct ledger_key *key)
{
    return (unsigned)key->shard / w->schedule->shards;
}

bool ledger_issue(struct world *w, struct op *op, struct dice *dice)
{
    struct ledger_table *t = &w->ledger[op->table];
    bool pushes = op->kind == OP_PUSH || op->kind == OP_PUSHPULL;
    op->clears = t->clears;
    op->certain = !t->tainted && !t->clears_open;
    memcpy(op->deaths, w->deaths, sizeof op->deaths);
    op->n = 0;
    if (op->kind == OP_CLEAR) {
        t->clears++;
        t->clears_open++;
        for (unsigned i = 0; i < SIM_KEYS; i++)
            t->keys[i].must = 0;
        return true;
    }
    unsigned want = 1 + (unsigned)dice_draw(dice, SIM_OP_KEYS), gap = 2 * SIM_KEYS / want;
    for (unsigned i = (unsigned)dice_draw(dice, gap / 2); i < SIM_KEYS && op->n < want;
         i += 1 + (unsigned)dice_draw(dice, gap)) {
        struct ledger_key *k = &t->keys[i];
        if (pushes && k->used == SIM_DIGITS)
            continue;
        unsigned at = op->n++;
        op->index[at] = (uint16_t)i;
        op->keys[at] = k->key;
        op->lens[at] = 1;
        op->must[at] = k->must;
        op->digit[at] = op->vals[at] = 0;
        if (pushes) {
            op->digit[at] = op->vals[at] = UINT64_C(1) << 2 * k->used++;
            k->sent |= op->digit[at];
        }
    }
    return op->n > 0;
}

void ledger_look(struct world *w, const char *where, enum sim_table table, const struct ledger_key *key,
                 uint64_t value, uint64_t must)
{
    if (value & ~key->sent & ~TWICE)
        judge_broken(w,
                     "%s: table %d key %" PRIu64 " holds %" PRIx64 ", but only %" PRIx64 " was ever pushed",
                     where, (int)table, key->key, value, key->sent);
    else if (value & TWICE)
        judge_broken(w, "%s: table %d key %" PRIu64 " holds %" PRIx64 ": a push was applied twice", where,
                     (int)table, key->key, value);
    else if (must & ~value)
        judge_broken(w, "%s: table %d key %" PRIu64 " holds %" PRIx64 ", but %" PRIx64 " was acknowledged",
                     where, (int)table, key->key, value, must);
}

/* What is acknowledged is applied at that moment, by the process that holds the place since it was issued. */
static void applied(struct world *w, const struct op *op)
{
    for (unsigned i = 0; i < op->n; i++) {
        const struct ledger_key *k = &w->ledger[op->table].keys[op->index[i]];
        uint64_t value;
        if (op->deaths[server_of(w, k)] == w->deaths[server_of(w, k)] && judge_value(w, op->table, k, &value))
            ledger_look(w, "an acknowledged push", op->table, k, value, op->digit[i]);
    }
}

static void acknowledged(struct world *w, const struct op *op)
{
    struct ledger_table *t = &w->ledger[op->table];
    if (!op->certain || t->tainted || t->clears_open || t->clears != op->clears)
        return; /* a clear may have come after it */
    applied(w, op);
    for (unsigned i = 0; i < op->n; i++) {
        struct ledger_key *k = &t->keys[op->index[i]];
        /* A handler's sums die with their process; tables of one that came back say so themselves. */
        if (op->table != SIM_USER || op->deaths[server_of(w, k)] == w->deaths[server_of(w, k)])
            k->must |= op->digit[i];
    }
}

static void pulled(struct world *w, const struct op *op)
{
    struct ledger_table *t = &w->ledger[op->table];
    bool own = op->kind == OP_PUSHPULL && op->certain && !t->tainted && t->clears == op->clears;
    unsigned at = 0;
    for (unsigned i = 0; i < op->n; i++) {
        const struct ledger_key *k = &t->keys[op->index[i]];
        uint64_t value = op->vals[i], must = op->must[i] & k->must;
        if (own && (op->table != SIM_USER || op->deaths[server_of(w, k)] == w->deaths[server_of(w, k)]))
            must |= op->digit[i];
        if (op->table == SIM_VAR) {
            if (op->lens[i] > 1) {
                judge_broken(w, "a row of %u values was pulled, all have one", op->lens[i]);
                return;
            }
            value = op->lens[i] ? op->vals[at++] : 0;
        }
        ledger_look(w, "a pull", op->table, k, value, must);
    }
}

void ledger_done(struct world *w, struct op *op, paramo_err status)
{
    struct ledger_table *t = &w->ledger[op->table];
    if (op->kind == OP_CLEAR) {
        t->clears_open--;
        t->tainted = t->tainted || status != PARAMO_OK;
        return;
    }
    if (status)
        return;
    if (op->kind != OP_PULL)
        acknowledged(w, op);
    if (op->kind != OP_PUSH)
        pulled(w, op);
}

void ledger_server_died(struct world *w, unsigned place)
{
    w->deaths[place]++;
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        struct ledger_key *k = &w->ledger[SIM_USER].keys[i];
        if (k->shard >= 0 && server_of(w, k) == place)
            k->must = 0;
    }
}

/* ---- whose arrays they are ---- */

#define POISON UINT64_C(0x5050505050505050)

void ledger_poison(struct op *op)
{
    for (unsigned i = 0; i < SIM_OP_KEYS; i++) {
        op->keys[i] = op->vals[i] =
            POISON + i; /* ascending, so that a key that is read late is a wrong one */
        op->lens[i] = 1;
    }
}

void ledger_poisoned(struct world *w, const struct op *op)
{
    for (unsigned i = 0; i < SIM_OP_KEYS; i++) {
        if (op->keys[i] != POISON + i || op->vals[i] != POISON + i || op->lens[i] != 1)
            judge_broken(w, "the arrays of request %" PRIu64 " were written to after its end", op->ts);
    }
}
