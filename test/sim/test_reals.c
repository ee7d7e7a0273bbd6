/* The model of a table that filters round: which values may be read. */
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/ledger.h"
#include "sim/reals.h"
#include "sim/world.h"

static struct world *world_make(void)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    ledger_init(w);
    return w;
}

/* Is a row with these two values possible? */
static bool possible(struct world *w, double first, double second, uint64_t must, uint64_t gone, double error,
                     uint64_t digits[2])
{
    uint64_t vals[2];
    memcpy(&vals[0], &first, sizeof first);
    memcpy(&vals[1], &second, sizeof second);
    w->broken[0] = '\0';
    bool found = reals_digits(w, "a test", &w->ledger[SIM_REALS].keys[9], vals, 2, must, gone, error, digits);
    assert_int_equal(found, !w->broken[0]);
    return found;
}

static void sums_are_found(void **state)
{
    (void)state;
    struct world *w = world_make();
    uint64_t digits[2];
    w->ledger[SIM_REALS].keys[9].sent = 0x155; /* five pushes: 4/3 of 1, 4, 16, 64, 256 */
    assert_true(possible(w, 0, 0, 0, 0, 0, digits) && !digits[0] && !digits[1]);
    assert_true(possible(w, 17 * 4 / 3., -17 * 4 / 3., 0, 0, 0, digits) && digits[0] == 0x11 &&
                digits[1] == 0x11);
    assert_true(possible(w, 341 * 4 / 3., -4 / 3., 1, 0, 0, digits) && digits[0] == 0x155 && digits[1] == 1);
    assert_false(possible(w, 17 * 4 / 3., 17 * 4 / 3., 0, 0, 0, digits)); /* the second has the other sign */
    assert_false(possible(w, 8 / 3., 0, 0, 0, 0, digits));                /* a push twice */
    assert_false(possible(w, 512 * 4 / 3., 0, 0, 0, 0, digits));
    assert_false(possible(w, 16 * 4 / 3., 0, 1, 0, 0, digits)); /* an acknowledged push is missing */
    assert_false(possible(w, 4 / 3., 0, 0, 1, 0, digits));      /* what a checkpoint does not have is there */
    assert_false(possible(w, NAN, 0, 0, 0, 0, digits));
    free(w);
}

/* Any subset of the pushes, off by less than the pushes' own bounds and that of the read, is possible; what is
 * further off than that is not, unless another subset is near. */
static void errors_count(void **state)
{
    (void)state;
    struct world *w = world_make();
    struct ledger_key *key = &w->ledger[SIM_REALS].keys[9];
    uint64_t digits[2], dice = 1;
    for (unsigned k = 0; k < 20000; k++) {
        uint64_t must = 0, drawn = mix64(++dice);
        double sum = 0, error = (double)(drawn % 1000) / (double)(1 + (drawn >> 32) % 1000), all = error;
        key->sent = 0;
        for (unsigned d = 0; d < SIM_REAL_DIGITS; d++) {
            uint64_t r = mix64(++dice), digit = UINT64_C(1) << 2 * d;
            double amount = ldexp(4. / 3, 2 * (int)d);
            w->reals_error[0][9][d] = amount * (double)(r >> 8 & 3) / 16 + (double)(r >> 10 & 255);
            if (r & 1)
                continue;
            key->sent |= digit;
            all += w->reals_error[0][9][d];
            if (r & 2)
                sum += amount;
            if (r & 2 && r & 4)
                must |= digit;
        }
        double off = all * ((double)(mix64(++dice) % 2001) - 1000) / 1000;
        assert_true(possible(w, sum + off, -sum + off, must, 0, error, digits));
        assert_int_equal(must & ~digits[0], 0);
        assert_int_equal(digits[0] & ~key->sent, 0);
        double least = 0;
        for (unsigned d = 0; d < SIM_REAL_DIGITS; d++)
            least += must >> 2 * d & 1 ? ldexp(4. / 3, 2 * (int)d) : 0;
        assert_false(possible(w, least - all - 1, 0, must, 0, error, digits));
    }
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_found), cmocka_unit_test(errors_count)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
