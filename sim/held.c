#include "sim/held.h"

#include <inttypes.h>
#include <string.h>

#include "sim/judge.h"
#include "sim/ledger.h"
#include "sim/losses.h"
#include "sim/reals.h"
#include "sim/world.h"
#include "worker/carrying.h"
#include "worker/client_impl.h"
#include "worker/requests.h"

struct look {
    struct world *w;
    const struct ledger_key *key;
    uint64_t digits;
};

static void look_at(void *arg, const void *row)
{
    struct look *look = arg;
    uint64_t vals[2], digits;
    memcpy(vals, row, sizeof vals);
    if ((vals[0] ^ vals[1]) != UINT64_C(1) << 63 && (vals[0] | vals[1]) << 1)
        judge_broken(look->w, "a torn row of key %" PRIu64 " is held back", look->key->key);
    else if (!reals_exact(vals[0], look->key->sent, &digits))
        judge_broken(look->w, "what is held back of key %" PRIu64 " is no sum of what was pushed",
                     look->key->key);
    else if (look->digits & digits)
        judge_broken(look->w, "%" PRIx64 " of key %" PRIu64 " is held back twice", look->digits & digits,
                     look->key->key);
    else
        look->digits |= digits;
}

/* What the customer has of the key now. */
static uint64_t has(struct world *w, const struct customer *c, unsigned index)
{
    struct look look = {.w = w, .key = &w->ledger[SIM_REALS].keys[index]};
    carrying_each(c->worker->client, c->machine->tables[SIM_REALS].id, look.key->key, look_at, &look);
    return look.digits;
}

/* Rows of this push that are on their way are not held back: if it succeeds, they are in the table. */
static void not_held(struct customer *c, const struct request *carrier)
{
    const struct request *parent = carrier->carry.parent;
    const struct op *op = parent && !parent->ended ? parent->callback_arg : NULL;
    for (unsigned i = 0; op && i < op->n; i++)
        for (size_t at = 0; at < carrier->n; at++)
            if (carrier->keys[at] == op->keys[i])
                c->held_at_end[op->index[i]] &= ~op->digit[i];
}

/* One turn of the lane takes the last answers, ends all that is on its way, carriers too, and then completes the
 * requests. So a push whose last answer came in that turn is acknowledged when the carriers are gone. If a filter had
 * held back a row of it, and the carrier of a later push had that row, the row is not in the table: a client loses
 * what it holds back when it ends (carrying.h). Only what it had before that turn counts, so a row that was never
 * held back must be in the table. (Rows that are selected in that turn are in the client's memory until it is freed,
 * where has() finds them.) */
void held_ends(struct world *w, struct customer *c)
{
    const struct client *client = c->worker->client;
    if (!carrying_any(client))
        return;
    for (unsigned i = 0; i < SIM_KEYS; i++)
        c->held_at_end[i] = has(w, c, i);
    for (const struct request *r = requests_first(client); r; r = r->next)
        if (request_is_carrier(r) && r->table->id == c->machine->tables[SIM_REALS].id)
            not_held(c, r);
}

void held_acknowledged(struct world *w, struct op *op)
{
    struct customer *c = &op->machine->customers[op->customer];
    for (unsigned i = 0; i < op->n; i++) {
        unsigned k = op->index[i];
        uint64_t digit = op->digit[i] & (op->digit[i] ? has(w, c, k) | c->held_at_end[k] : 0);
        if (!digit)
            continue;
        op->digit[i] = 0;
        if (!c->held.digits[k]) {
            c->held.from[k] = op->certain ? op->from : 0;
            c->held.clears[k] = op->clears;
            memcpy(c->held.deaths[k], op->deaths, sizeof op->deaths);
        } else if (!op->certain || c->held.clears[k] != op->clears) {
            c->held.from[k] = 0;
        }
        c->held.digits[k] |= digit;
    }
}

/* Is a push of that time in the table when the customer no longer has it? */
static bool stays(struct world *w, const struct customer *c, unsigned index)
{
    const struct ledger_table *t = &w->ledger[SIM_REALS];
    /* A carrier that no server took for long was given up: which rows it had is not known here. */
    return !carrying_given_up(c->worker->client) && c->held.from[index] && !t->tainted && !t->clears_open &&
           t->clears == c->held.clears[index] &&
           ledger_stays(w, SIM_REALS, index, c->held.from[index], c->held.deaths[index]) &&
           !losses_between(&t->keys[index], c->held.from[index]);
}

void held_update(struct world *w, struct customer *c)
{
    if (!c->worker || c->closing || c->machine->dying || c->worker->client->life->failure) {
        c->held = (struct held){0}; /* it is lost with its worker */
        return;
    }
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        struct ledger_key *k = &w->ledger[SIM_REALS].keys[i];
        uint64_t done = c->held.digits[i] ? c->held.digits[i] & ~has(w, c, i) : 0;
        if (!done)
            continue;
        c->held.digits[i] &= ~done;
        k->acked |= done;
        w->counts[PLAY_held_sent]++;
        if (stays(w, c, i))
            k->must |= done;
    }
}

void held_update_all(struct world *w)
{
    for (uint32_t m = 0; m < w->schedule->workers; m++)
        for (unsigned i = 0; i < w->schedule->customers; i++)
            held_update(w, &w->workers[m].customers[i]);
}

void held_carriers(const struct world *w, struct customer *c)
{
    struct carriers *carriers = &c->held.carriers;
    unsigned over = 0;
    uint64_t newest, oldest;
    if (!c->worker)
        return;
    oldest = carrying_oldest(c->worker->client, c->machine->tables[SIM_REALS].id, &newest);
    while (over < carriers->count && (!oldest || carriers->made[over].number < oldest))
        over++;
    carriers->count -= over;
    memmove(carriers->made, carriers->made + over, carriers->count * sizeof *carriers->made);
    if (!oldest || (carriers->count && carriers->made[carriers->count - 1].number == newest))
        return;
    if (carriers->count == SIM_RECENT) { /* these are said to be as old as the ones before */
        carriers->made[carriers->count - 1].number = newest;
        return;
    }
    carriers->made[carriers->count].number = newest;
    carriers->made[carriers->count++].moment = w->moment;
}

void held_flush_begins(const struct world *w, struct customer *c, struct op *op)
{
    memcpy(op->all_must, c->held.digits, sizeof op->all_must);
    held_carriers(w, c);
    op->began = c->held.carriers.count ? c->held.carriers.made[0].moment : op->from;
    if (op->began > op->from)
        op->began = op->from;
}

uint64_t held_since(const struct op *op)
{
    return op->kind == OP_FLUSH ? op->began : op->from;
}

void held_flushed(struct world *w, const struct op *op, paramo_err status)
{
    struct customer *c = &op->machine->customers[op->customer];
    /* without a scheduler the rows of a dead server have no other owner */
    c->held.gave_up = w->calm && status &&
                      (status == PARAMO_E_DATA_LOST || status == PARAMO_E_NODE_LOST || w->scheduler_lost);
    for (unsigned i = 0; i < SIM_KEYS && !status; i++)
        if (c->held.digits[i] & op->all_must[i])
            judge_broken(w, "%s: a flush has ended, but %" PRIx64 " of key %" PRIu64 " is held back",
                         op->machine->name, c->held.digits[i] & op->all_must[i],
                         w->ledger[SIM_REALS].keys[i].key);
}
