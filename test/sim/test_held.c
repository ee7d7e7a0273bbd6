/* What a customer held back when it ended is lost with it, and nothing else is. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "sim/held.h"
#include "sim/ledger.h"
#include "sim/reals.h"
#include "sim/world.h"
#include "worker/carrying.h"
#include "worker/client_impl.h"
#include "worker/requests.h"

enum { KEY = 9 };

/* What the client has of KEY: the sum of two pushes, in the carrier of a third one. */
static uint64_t row[2], row_key;
static bool has_row;

bool __wrap_carrying_any(const struct client *c);
bool __wrap_carrying_any(const struct client *c)
{
    (void)c;
    return has_row;
}

void __wrap_carrying_each(const struct client *c, uint32_t table, uint64_t key,
                          void (*fn)(void *arg, const void *row), void *arg);
void __wrap_carrying_each(const struct client *c, uint32_t table, uint64_t key,
                          void (*fn)(void *arg, const void *row), void *arg)
{
    (void)c, (void)table;
    if (has_row && key == row_key)
        fn(arg, row);
}

/* The numbers of the carriers in flight; 0: there is none. */
static uint64_t carrier_oldest, carrier_newest;

uint64_t __wrap_carrying_oldest(const struct client *c, uint32_t table, uint64_t *newest);
uint64_t __wrap_carrying_oldest(const struct client *c, uint32_t table, uint64_t *newest)
{
    assert_non_null(c);
    assert_int_equal(table, 7);
    *newest = carrier_newest;
    return carrier_oldest;
}

struct job {
    struct world *w;
    struct machine *m;
    struct customer *c;
    struct client client;
    struct client_life life;
    struct client_requests requests;
    struct client_table table;
    paramo_worker worker;
};

static struct job *job_make(void)
{
    struct job *j = calloc(1, sizeof *j);
    assert_non_null(j);
    j->w = calloc(1, sizeof *j->w);
    j->m = calloc(1, sizeof *j->m);
    assert_true(j->w && j->m);
    ledger_init(j->w);
    row_key = j->w->ledger[SIM_REALS].keys[KEY].key;
    j->m->world = j->w;
    j->m->tables[SIM_REALS].id = j->table.id = 7;
    j->client.life = &j->life;
    j->client.requests = &j->requests;
    j->worker.client = &j->client;
    j->c = &j->m->customers[0];
    j->c->worker = &j->worker;
    j->c->machine = j->m;
    return j;
}

static void job_free(struct job *j)
{
    free(j->m);
    free(j->w);
    free(j);
}

/* A push of both keys, with this digit. */
static struct op *op_make(struct job *j, uint64_t digit)
{
    struct op *op = calloc(1, sizeof *op);
    assert_non_null(op);
    op->machine = j->m;
    op->table = SIM_REALS;
    op->kind = OP_PUSH;
    op->n = 2;
    for (unsigned i = 0; i < 2; i++) {
        struct ledger_key *k = &j->w->ledger[SIM_REALS].keys[KEY + i];
        op->index[i] = (uint16_t)(KEY + i);
        op->keys[i] = k->key;
        op->digit[i] = digit;
        k->sent |= digit;
    }
    return op;
}

/* The last answers and the customer's end come in one turn: the push of digit 1 succeeds, and its row of KEY was held
 * back and is with the carrier of digit 4, which ends with the customer. */
static void what_was_held_at_the_end_is_lost(void **state)
{
    (void)state;
    struct job *j = job_make();
    struct op *first = op_make(j, 1), *later = op_make(j, 4);
    struct request parent = {.callback_arg = later, .n = 2};
    struct request carrier = {.kind = REQUEST_PUSH,
                              .table = &j->table,
                              .keys = &first->keys[0],
                              .n = 1,
                              .carry = {.own = true, .parent = &parent}};
    double sum = 4 / 3. + 16 / 3., opposite = -sum;
    memcpy(&row[0], &sum, sizeof sum);
    memcpy(&row[1], &opposite, sizeof opposite);
    parent.next = &carrier;
    j->requests.first = &parent;
    has_row = true;
    held_ends(j->w, j->c);
    has_row = false; /* the carrier is gone */
    j->c->closing = true;

    held_acknowledged(j->w, first);
    assert_int_equal(first->digit[0], 0); /* nothing is demanded of it */
    assert_int_equal(first->digit[1], 1); /* that row was never held back: it is in the table */
    held_update(j->w, j->c);
    held_acknowledged(j->w, later); /* its own row was on its way, and has arrived */
    assert_int_equal(later->digit[0], 4);
    assert_int_equal(later->digit[1], 4);
    assert_false(j->w->broken[0]);
    free(first);
    free(later);
    job_free(j);
}

/* A customer that continues: only what it has now is held back. */
static void what_is_held_no_more_has_arrived(void **state)
{
    (void)state;
    struct job *j = job_make();
    struct op *op = op_make(j, 1);
    double value = 4 / 3., opposite = -value;
    memcpy(&row[0], &value, sizeof value);
    memcpy(&row[1], &opposite, sizeof opposite);
    has_row = true;
    held_acknowledged(j->w, op);
    assert_int_equal(op->digit[0], 0);
    assert_int_equal(j->c->held.digits[KEY], 1);
    has_row = false;
    held_update(j->w, j->c);
    assert_int_equal(j->c->held.digits[KEY], 0);
    assert_true(j->w->ledger[SIM_REALS].keys[KEY].acked & 1);
    free(op);
    job_free(j);
}

/* The process has taken a step at that moment, and has these carriers in flight since. */
static void carriers_are(struct job *j, uint64_t moment, uint64_t oldest, uint64_t newest)
{
    j->w->moment = moment;
    carrier_oldest = oldest;
    carrier_newest = newest;
    held_carriers(j->w, j->c);
}

/* Since when may that have happened of which a flush has the error that is issued now? */
static uint64_t flush_since(struct job *j)
{
    struct op op = {.machine = j->m, .kind = OP_FLUSH, .table = SIM_REALS, .from = ++j->w->moment};
    held_flush_begins(j->w, j->c, &op);
    return held_since(&op);
}

/* A carrier was refused, and then a clear was over; the flush that is issued after it learns of the refusal. What was
 * over before the oldest carrier in flight was made is no cause. */
static void a_flush_fails_since_its_oldest_carrier(void **state)
{
    (void)state;
    struct job *j = job_make();
    carriers_are(j, 10, 0, 0);
    assert_int_equal(flush_since(j), 11); /* none: since its own issue */
    carriers_are(j, 20, 5, 5);
    carriers_are(j, 30, 5, 8);
    carriers_are(j, 40, 5, 8);
    assert_int_equal(flush_since(j), 20);
    carriers_are(j, 50, 6, 8); /* the first has ended, and 6 was made by moment 30 */
    assert_int_equal(flush_since(j), 30);
    carriers_are(j, 60, 9, 9);
    assert_int_equal(flush_since(j), 60);
    struct op pull = {.machine = j->m, .kind = OP_PULL, .table = SIM_REALS, .from = 62};
    assert_int_equal(held_since(&pull), 62);
    carriers_are(j, 70, 0, 0);
    assert_int_equal(flush_since(j), 71);
    job_free(j);
}

/* More steps have made carriers than are kept: the moment may only be too early. */
static void the_moment_of_carriers_is_at_most_too_early(void **state)
{
    (void)state;
    struct job *j = job_make();
    for (uint64_t i = 1; i <= SIM_RECENT + 10; i++)
        carriers_are(j, 100 + i, 1, i);
    assert_int_equal(flush_since(j), 101);
    carriers_are(j, 300, SIM_RECENT + 5, SIM_RECENT + 10);
    assert_int_equal(flush_since(j), 100 + SIM_RECENT);
    carriers_are(j, 400, SIM_RECENT + 11, SIM_RECENT + 11);
    assert_int_equal(flush_since(j), 400);
    job_free(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_held_at_the_end_is_lost),
                                       cmocka_unit_test(what_is_held_no_more_has_arrived),
                                       cmocka_unit_test(a_flush_fails_since_its_oldest_carrier),
                                       cmocka_unit_test(the_moment_of_carriers_is_at_most_too_early)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
