#include "sim/functions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/exactsum.h"
#include "base/hash.h"
#include "sim/capabilities.h"
#include "sim/judge.h"
#include "sim/ledger.h"
#include "sim/losses.h"
#include "sim/overdue.h"
#include "sim/world.h"
#include "wire/capability.h"

/* Sums of digits are exact doubles below this. */
#define EXACT (UINT64_C(1) << 53)

/* ---- functions of the application ---------------------------------------------------------------------- */

/* A sum of values as doubles, which are whole numbers. */
struct sum {
    uint64_t rows, low, high;
};

static void sum_add(struct sum *sum, unsigned __int128 more)
{
    unsigned __int128 all = ((unsigned __int128)sum->high << 64 | sum->low) + more;
    sum->low = (uint64_t)all;
    sum->high = (uint64_t)(all >> 64);
}

static void add(void *user, const paramo_function_rows *rows, void *state)
{
    struct sum *sum = state;
    const uint64_t *vals = rows->vals;
    (void)user;
    sum->rows += rows->column ? 0 : rows->n;
    for (size_t i = 0; i < rows->n * rows->columns; i++)
        sum_add(sum, (unsigned __int128)(double)vals[i]);
}

static int merge(void *user, const void *params, size_t params_bytes, void *state, const void *from)
{
    struct sum *sum = state, more;
    (void)user;
    (void)params;
    (void)params_bytes;
    memcpy(&more, from, sizeof more);
    sum->rows += more.rows;
    sum_add(sum, (unsigned __int128)more.high << 64 | more.low);
    return 0;
}

/* Adds the digit that it is given; with a second table it makes the rows those of that table. */
static int change(void *user, paramo_function_rows *rows)
{
    uint64_t digit = 0, *vals = rows->vals;
    size_t n = rows->n * rows->columns;
    (void)user;
    if (rows->params_bytes)
        memcpy(&digit, rows->params, sizeof digit);
    if (rows->other)
        memcpy(vals, rows->other, n * sizeof *vals);
    for (size_t i = 0; i < n; i++)
        vals[i] += digit;
    return 0;
}

#define FUNCTION "sim.function"

static void function_register(void)
{
    const paramo_function function = {.size = sizeof function,
                                      .name = FUNCTION,
                                      .change = change,
                                      .state_bytes = sizeof(struct sum),
                                      .add = add,
                                      .merge = merge};
    if (!user_function_find(FUNCTION))
        sim_must(user_function_register(&function));
}

/* Half of the requests that could be of one are. It draws no dice, so all other draws stay the same. */
static bool by_application(const struct op *op)
{
    function_register();
    return mix64(op->serial ^ op->machine->world->schedule->seed) & 1;
}

/* ---- reductions ---------------------------------------------------------------------------------------- */

void reduction_draw(struct op *op, struct dice *dice)
{
    static const paramo_reduce_function functions[] = {
        PARAMO_REDUCE_COUNT, PARAMO_REDUCE_SUM, PARAMO_REDUCE_DOT, PARAMO_REDUCE_TOP, PARAMO_REDUCE_TOP};
    struct world *w = op->machine->world;
    const struct ledger_key *keys = w->ledger[op->table].keys;
    paramo_reduction *r = &op->reduction;
    paramo_reduction_init(r, functions[dice_draw(dice, sizeof functions / sizeof *functions)]);
    /* Cells and reals are no digits, and two rows of any length do not go together. */
    if (op->table == SIM_CELLS || reals_has(op->table) ||
        (op->table == SIM_VAR && r->function == PARAMO_REDUCE_DOT))
        r->function = PARAMO_REDUCE_COUNT;
    unsigned from = (unsigned)dice_draw(dice, 2 * SIM_KEYS), to = (unsigned)dice_draw(dice, 2 * SIM_KEYS);
    r->begin = from < SIM_KEYS ? keys[from].key : 0;
    r->end = to < SIM_KEYS && keys[to].key > r->begin ? keys[to].key : 0;
    op->other = r->function == PARAMO_REDUCE_DOT ? &op->machine->tables[op->table] : NULL;
    if (r->function == PARAMO_REDUCE_SUM && by_application(op)) {
        r->function = PARAMO_REDUCE_USER;
        r->name = FUNCTION;
        r->state = op->state;
        r->state_bytes = sizeof op->state;
    }
    if (r->function == PARAMO_REDUCE_TOP) {
        r->most = SIM_ENTRIES;
        r->entries = malloc(SIM_ENTRIES * sizeof *r->entries);
        if (!r->entries)
            abort();
    }
}

static bool in_range(const paramo_reduction *r, uint64_t key)
{
    return key >= r->begin && (!r->end || key < r->end);
}

/* What the row must hold, and the moment when the read counts as begun. */
static uint64_t must_of(const struct world *w, const struct op *op, unsigned i, uint64_t *from)
{
    uint64_t must = op->all_must[i];
    *from = op->from;
    overdue_read(&w->ledger[op->table].keys[i], from, &must);
    return ledger_least(w, op->table, i, must, *from);
}

/* Each value as it was found: those of a row, as in a pull. */
static void judge_entries(struct world *w, const struct op *op)
{
    const paramo_reduction *r = &op->reduction;
    uint64_t vals[SIM_KEYS][SIM_WIDE], from;
    unsigned n[SIM_KEYS] = {0}, rows = 0;
    for (size_t e = 0; e < r->n; e++) {
        unsigned i = ledger_index(w, op->table, r->entries[e].key);
        if (i == SIM_KEYS || !in_range(r, r->entries[e].key) || r->entries[e].column >= SIM_WIDE) {
            judge_broken(w, "a reduction finds key %" PRIu64 ", which is not asked for", r->entries[e].key);
            return;
        }
        rows += n[i] == 0;
        if (++n[i] > sim_row_values(op->table, i)) {
            judge_broken(w, "a reduction takes key %" PRIu64 " twice", r->entries[e].key);
            return;
        }
        vals[i][r->entries[e].column] = (uint64_t)r->entries[e].value;
    }
    if (rows != r->rows)
        judge_broken(w, "a reduction of %" PRIu64 " rows has values of %u", r->rows, rows);
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        const struct ledger_key *k = &w->ledger[op->table].keys[i];
        uint64_t must = op->all_must[i];
        from = op->from;
        overdue_read(k, &from, &must);
        if (in_range(r, k->key) && k->sent < EXACT)
            ledger_row_check(w, "a reduction", op->table, i, vals[i], n[i], must, from);
    }
}

static double power(const paramo_reduction *r, uint64_t value)
{
    return r->function == PARAMO_REDUCE_DOT ? (double)value * (double)value : (double)value;
}

/* Between the sum of what must be there and that of all that was sent: the values are not negative, and rounding keeps
 * the order. */
static void judge_sum(struct world *w, const struct op *op)
{
    const paramo_reduction *r = &op->reduction;
    struct exactsum least = {0}, most = {0};
    uint64_t from;
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        const struct ledger_key *k = &w->ledger[op->table].keys[i];
        for (unsigned c = 0; in_range(r, k->key) && c < sim_row_values(op->table, i); c++) {
            uint64_t outside = w->ledger[op->table].outside[i][c];
            exactsum_add(&least, power(r, must_of(w, op, i, &from) & ~outside));
            exactsum_add(&most, power(r, k->sent));
        }
    }
    double value = r->value;
    if (r->function == PARAMO_REDUCE_USER) {
        struct sum sum;
        memcpy(&sum, r->state, sizeof sum);
        value = (double)((unsigned __int128)sum.high << 64 | sum.low);
        if (sum.rows != r->rows)
            judge_broken(w, "a reduction of %" PRIu64 " rows has values of %" PRIu64, r->rows, sum.rows);
    }
    if (value < exactsum_value(&least) || value > exactsum_value(&most))
        judge_broken(w, "a reduction of table %d is %g, not %g to %g", (int)op->table, value,
                     exactsum_value(&least), exactsum_value(&most));
}

void reduction_judge(struct world *w, const struct op *op)
{
    const paramo_reduction *r = &op->reduction;
    uint64_t least = 0, most = 0, from;
    bool dense = op->table == SIM_DENSE || op->table == SIM_ROWS;
    if (w->restoring)
        return;
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        bool in = in_range(r, w->ledger[op->table].keys[i].key);
        most += in;
        least += in && (dense || (op->table != SIM_CELLS && must_of(w, op, i, &from)));
    }
    if (r->rows < least || r->rows > most)
        judge_broken(w,
                     "a reduction of table %d counts %" PRIu64 " rows, between %" PRIu64 " and %" PRIu64
                     " are there",
                     (int)op->table, r->rows, least, most);
    if (r->function == PARAMO_REDUCE_TOP)
        judge_entries(w, op);
    else if (r->function != PARAMO_REDUCE_COUNT)
        judge_sum(w, op);
}

bool function_may_be_refused(const struct op *op, uint32_t servers)
{
    uint64_t bit = op->kind == OP_REDUCE              ? CAPABILITY_REDUCE
                   : op->kind == OP_TRANSFORM         ? CAPABILITY_TRANSFORM
                   : op->range || op->kind == OP_PAGE ? CAPABILITY_RANGE
                                                      : 0;
    bit |= op->columns ? CAPABILITY_COLUMNS : 0;
    bit |= op->machine->customers[op->customer].reads ? CAPABILITY_READERS : 0;
    if (op->kind == OP_REDUCE && op->reduction.function == PARAMO_REDUCE_USER)
        bit |= CAPABILITY_FUNCTIONS;
    if (op->kind == OP_TRANSFORM && op->transform.function == PARAMO_TRANSFORM_USER)
        bit |= CAPABILITY_FUNCTIONS;
    return (capabilities_lacked(op->machine, servers) & bit) != 0;
}

/* ---- changes ------------------------------------------------------------------------------------------- */

static void user_transform(struct op *op, size_t params_bytes)
{
    op->transform.function = PARAMO_TRANSFORM_USER;
    op->transform.a = 0;
    sim_must(user_call_make(&op->transform.user, FUNCTION, op->state, params_bytes));
}

void transform_draw(struct op *op, struct dice *dice)
{
    struct world *w = op->machine->world;
    struct ledger_key *keys = w->ledger[op->table].keys;
    unsigned used = 0;
    for (unsigned i = 0; i < op->n; i++)
        used = keys[op->index[i]].used > used ? keys[op->index[i]].used : used;
    bool dense = op->table == SIM_DENSE || op->table == SIM_ROWS; /* each key has a row */
    if (dense && used < SIM_DIGITS && dice_draw(dice, 4)) {
        uint64_t digit = UINT64_C(1) << 2 * used;
        op->transform = (struct transform){.function = PARAMO_TRANSFORM_ADD, .a = (double)digit};
        op->state[0] = digit;
        if (by_application(op))
            user_transform(op, sizeof digit);
        for (unsigned i = 0; i < op->n; i++) {
            keys[op->index[i]].used = used + 1;
            keys[op->index[i]].sent |= digit;
            op->digit[i] = digit;
        }
        return;
    }
    static const uint8_t same[] = {PARAMO_TRANSFORM_SCALE, PARAMO_TRANSFORM_AXPY, PARAMO_TRANSFORM_COPY};
    op->transform.function = same[dice_draw(dice, sizeof same)];
    op->transform.a = op->transform.function == PARAMO_TRANSFORM_SCALE;
    op->transform.two = transform_takes_two(op->transform.function);
    op->other = op->transform.two ? &op->machine->tables[op->table] : NULL;
    op->transform.other = op->transform.two ? op->other->id : 0;
    if (op->transform.function != PARAMO_TRANSFORM_AXPY && by_application(op))
        user_transform(op, 0);
}
