#include "sim/reals.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/judge.h"
#include "sim/world.h"

/* Of sums of doubles, and of what a bound itself is rounded by. */
static const double slack = 1.0 / 64, more = 1 + 1.0 / 1024;

static double amount(unsigned digit)
{
    return 4.0 / 3 * (double)(UINT64_C(1) << 2 * digit);
}

uint64_t reals_value(uint64_t digit, unsigned column)
{
    double value = digit ? amount((unsigned)__builtin_ctzll(digit) / 2) : 0;
    uint64_t bits;
    value = column ? -value : value;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double real(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static struct reals_error error_of(const struct filter_chain *chain)
{
    struct reals_error e = {0};
    for (unsigned i = 0; i < chain->count; i++) {
        const struct filter_ops *ops = chain->at[i].ops;
        if (ops->rank ==
            FILTER_SELECTS) { /* rows are held back, and may leave by another chain of the table */
            e.own = fmax(e.own, 0x1p-8);
            e.least = fmax(e.least, 0x1p-25);
        } else if (ops == &filter_fixed)
            e.share = 2 / (ldexp(1, 8 * (int)chain->at[i].arg - 1) -
                           1); /* a power of two is at most twice as large */
        else if (ops == &filter_bf16)
            e.own = 0x1p-8;
        else if (ops == &filter_fp16) {
            e.own = fmax(e.own, 0x1p-11);
            e.least = 0x1p-25;
        }
    }
    return e;
}

void reals_open(struct customer *c, const struct filter_chain chains[FILTER_DIRECTIONS])
{
    for (unsigned i = 0; i < SIM_REAL_TABLES; i++) {
        c->pushed_error[i] = error_of(&chains[FILTER_PUSH]);
        c->pulled_error[i] = error_of(&chains[FILTER_PULL]);
    }
}

/* A pull that waits at a shard is answered with the filters of a later one: the bound is the worst of all. */
void reals_chain(struct customer *c, enum sim_table table, enum filter_direction direction,
                 const struct filter_chain *chain)
{
    struct reals_error e = error_of(chain), *worst = &c->pulled_error[table - SIM_REALS];
    if (direction == FILTER_PUSH) {
        c->pushed_error[table - SIM_REALS] = e;
        return;
    }
    worst->share = fmax(worst->share, e.share);
    worst->own = fmax(worst->own, e.own);
    worst->least = fmax(worst->least, e.least);
}

static double greatest(const struct op *op)
{
    double most = 0;
    for (unsigned i = 0; i < op->vals_n; i++)
        most = fmax(most, fabs(real(op->vals[i])));
    return most;
}

void reals_issued(struct world *w, const struct op *op)
{
    const struct reals_error *e = &op->machine->customers[op->customer].pushed_error[op->table - SIM_REALS];
    double most = op->n ? greatest(op) : 0;
    for (unsigned i = 0; i < op->n; i++) {
        unsigned digit = op->digit[i] ? (unsigned)__builtin_ctzll(op->digit[i]) / 2 : 0;
        if (op->digit[i])
            w->reals_error[op->table - SIM_REALS][op->index[i]][digit] =
                more * (e->share * most + fmax(e->own * amount(digit), e->least));
    }
}

double reals_pulled(const struct op *op)
{
    const struct reals_error *e = &op->machine->customers[op->customer].pulled_error[op->table - SIM_REALS];
    double most = greatest(op);
    /* before it was rounded, the greatest value may have been greater by its error */
    return more * (1 + 2 * e->share + 2 * e->own) * (e->share * most + e->own * most + e->least);
}

/* Digits that may be in a sum or not, and of each the sum of the amounts below it. */
struct open_digits {
    uint64_t set;
    double below[SIM_DIGITS];
};

static unsigned lowest_digit(uint64_t digits)
{
    return (unsigned)__builtin_ctzll(digits) / 2;
}

static void open_digits_init(struct open_digits *o, uint64_t set)
{
    o->set = set;
    double sum = 0;
    for (uint64_t left = set; left; left &= left - 1) {
        o->below[lowest_digit(left)] = sum;
        sum += amount(lowest_digit(left));
    }
}

/* Finds digits whose amounts sum up to x, as far as error allows. An amount is more than twice the sum of all below it.
 * If a digit may be in as well as out, then error is so large that the lower ones can make up for it. */
static bool sum_find(double x, double error, const struct open_digits *o, uint64_t *digits)
{
    *digits = 0;
    for (uint64_t left = o->set; left;) {
        unsigned d = (63 - (unsigned)__builtin_clzll(left)) / 2;
        left ^= UINT64_C(1) << 2 * d;
        if (fabs(x - o->below[d] / 2) <= o->below[d] / 2 + error)
            continue;
        x -= amount(d);
        *digits |= UINT64_C(1) << 2 * d;
    }
    return fabs(x) <= error;
}

bool reals_exact(uint64_t bits, uint64_t sent, uint64_t *digits)
{
    struct open_digits open;
    open_digits_init(&open, sent);
    return sum_find(real(bits), slack, &open, digits);
}

bool reals_digits(struct world *w, const char *where, const struct ledger_key *key, const uint64_t *vals,
                  unsigned n, uint64_t must, uint64_t gone, double error, uint64_t *digits)
{
    enum sim_table table =
        key >= w->ledger[SIM_SUMS].keys ? SIM_SUMS : SIM_REALS; /* the ledger has them in order */
    size_t index = (size_t)(key - w->ledger[table].keys);
    const double *errors = w->reals_error[table - SIM_REALS][index];
    struct open_digits open;
    double sum = 0;
    for (uint64_t left = key->sent; left; left &= left - 1)
        error += errors[lowest_digit(left)];
    for (uint64_t left = must; left; left &= left - 1)
        sum += amount(lowest_digit(left));
    open_digits_init(&open, key->sent & ~must & ~gone);
    for (unsigned i = 0; i < n; i++) {
        double x = i ? -real(vals[i]) : real(vals[i]);
        if (sum_find(x - sum, error + slack, &open, &digits[i])) {
            digits[i] |= must;
            continue;
        }
        if (!where)
            return false;
        judge_broken(
            w,
            "%s: table %d key %" PRIu64 " holds %.17g, which is no sum of what was pushed: %" PRIx64
            " was, %" PRIx64 " was acknowledged, %" PRIx64
            " is not in the checkpoint that was loaded, or of a later clock, roundings move it by at most %g",
            where, (int)table, key->key, x, key->sent, must, gone, error);
        return false;
    }
    return true;
}
