/* Each rule that options must keep, each field that makes tables differ, and the sizes that follow. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "table/table_options.h"

#define REFUSED(code, word, ...)                                                                             \
    do {                                                                                                     \
        paramo_table_options o;                                                                              \
        table_options_default(&o);                                                                           \
        __VA_ARGS__;                                                                                         \
        assert_int_equal(table_options_check(&o), code);                                                     \
        assert_non_null(strstr(err_text(), word));                                                           \
    } while (0)
#define TAKEN(...)                                                                                           \
    do {                                                                                                     \
        paramo_table_options o;                                                                              \
        table_options_default(&o);                                                                           \
        __VA_ARGS__;                                                                                         \
        assert_int_equal(table_options_check(&o), PARAMO_OK);                                                \
    } while (0)

static void bad_options_are_named(void **state)
{
    (void)state;
    REFUSED(PARAMO_E_INVALID, "kind", o.kind = (paramo_table_kind)9);
    REFUSED(PARAMO_E_INVALID, "dtype", o.dtype = (paramo_dtype)5);
    REFUSED(PARAMO_E_INVALID, "dim", o.dim = 0);
    REFUSED(PARAMO_E_TOO_LARGE, "dim", o.dim = TABLE_DIM_MAX + 1);
    REFUSED(PARAMO_E_INVALID, "rows", o.kind = PARAMO_TABLE_DENSE);
    REFUSED(PARAMO_E_TOO_LARGE, "rows", o.kind = PARAMO_TABLE_DENSE; o.rows = TABLE_DENSE_ROWS_MAX + 1);
    REFUSED(PARAMO_E_INVALID, "placement", o.placement = (paramo_placement)7);
    REFUSED(PARAMO_E_INVALID, "placement", o.placement = PARAMO_PLACE_DENSE);
    REFUSED(PARAMO_E_INVALID, "placement", o.kind = PARAMO_TABLE_DENSE; o.rows = 1;
            o.placement = PARAMO_PLACE_MIXED);
    REFUSED(PARAMO_E_INVALID, "optimizer", o.optimizer = (paramo_optimizer)PARAMO_OPTIMIZER_COUNT);
    REFUSED(PARAMO_E_INVALID, "F32", o.optimizer = PARAMO_OPT_SGD; o.dtype = PARAMO_F64);
    REFUSED(PARAMO_E_INVALID, "optimizer", o.optimizer = PARAMO_OPT_FTRL; o.kind = PARAMO_TABLE_VAR);
    REFUSED(PARAMO_E_INVALID, "alpha", o.optimizer = PARAMO_OPT_SGD; o.alpha = NAN);
    REFUSED(PARAMO_E_INVALID, "alpha", o.optimizer = PARAMO_OPT_SGD; o.alpha = 0);
    REFUSED(PARAMO_E_INVALID, "alpha", o.optimizer = PARAMO_OPT_SGD; o.alpha = INFINITY);
    REFUSED(PARAMO_E_INVALID, "beta", o.optimizer = PARAMO_OPT_FTRL; o.beta = 0);
    REFUSED(PARAMO_E_INVALID, "l1", o.optimizer = PARAMO_OPT_FTRL; o.l1 = -1);
    REFUSED(PARAMO_E_INVALID, "l2", o.optimizer = PARAMO_OPT_ADAM; o.l2 = NAN);
    REFUSED(PARAMO_E_INVALID, "momentum", o.optimizer = PARAMO_OPT_MOMENTUM; o.momentum = 1);
    REFUSED(PARAMO_E_INVALID, "beta1", o.optimizer = PARAMO_OPT_ADAM; o.beta1 = 1);
    REFUSED(PARAMO_E_INVALID, "beta2", o.optimizer = PARAMO_OPT_ADAM; o.beta2 = -0.1F);
    REFUSED(PARAMO_E_INVALID, "epsilon", o.optimizer = PARAMO_OPT_ADAM; o.epsilon = 0);
    REFUSED(PARAMO_E_INVALID, "init", o.init = (paramo_init_kind)4);
    REFUSED(PARAMO_E_INVALID, "replicas", o.replicas = 4);
    REFUSED(PARAMO_E_INVALID, "handler", o.kind = PARAMO_TABLE_USER; o.replicas = 0);
    TAKEN(o.replicas = 3);
    TAKEN(o.kind = PARAMO_TABLE_USER);
    REFUSED(PARAMO_E_INVALID, "init_a", o.init = PARAMO_INIT_CONSTANT; o.init_a = INFINITY);
    REFUSED(PARAMO_E_INVALID, "init_a", o.init = PARAMO_INIT_CONSTANT; o.dtype = PARAMO_U8; o.init_a = 256);
    REFUSED(PARAMO_E_INVALID, "init_a", o.init = PARAMO_INIT_CONSTANT; o.dtype = PARAMO_I32; o.init_a = 3e9F);
    REFUSED(PARAMO_E_INVALID, "init_b", o.init = PARAMO_INIT_UNIFORM);
    REFUSED(PARAMO_E_INVALID, "init_b", o.init = PARAMO_INIT_UNIFORM; o.init_b = NAN);
    REFUSED(PARAMO_E_INVALID, "init_b", o.init = PARAMO_INIT_NORMAL; o.init_b = -1);
    REFUSED(PARAMO_E_INVALID, "init", o.init = PARAMO_INIT_NORMAL; o.dtype = PARAMO_I32);
    REFUSED(PARAMO_E_INVALID, "init", o.init = PARAMO_INIT_CONSTANT; o.kind = PARAMO_TABLE_VAR);
}

static void good_options_are_taken(void **state)
{
    (void)state;
    TAKEN((void)0);
    TAKEN(o.dim = TABLE_DIM_MAX);
    TAKEN(o.kind = PARAMO_TABLE_DENSE; o.rows = TABLE_DENSE_ROWS_MAX; o.placement = PARAMO_PLACE_DENSE);
    TAKEN(o.kind = PARAMO_TABLE_VAR; o.dtype = PARAMO_U8; o.dim = 0);
    TAKEN(o.kind = PARAMO_TABLE_USER; o.dim = 0);
    TAKEN(o.alpha = NAN); /* add does not use it */
    TAKEN(o.optimizer = PARAMO_OPT_ADAM; o.init = PARAMO_INIT_NORMAL; o.init_b = 0.01F);
    TAKEN(o.init = PARAMO_INIT_UNIFORM; o.init_a = -1; o.init_b = 1);
}

static void sizes_follow(void **state)
{
    (void)state;
    static const size_t state_values[] = {0, 0, 0, 5, 5, 10, 11};
    for (unsigned i = 0; i < sizeof state_values / sizeof *state_values; i++) {
        paramo_table_options o;
        table_options_default(&o);
        o.optimizer = (paramo_optimizer)i;
        o.dim = 5;
        assert_int_equal(table_state_values(&o), state_values[i]);
        assert_int_equal(table_row_values(&o, false), 5);
        assert_int_equal(table_row_values(&o, true), 5 + state_values[i]);
        assert_int_equal(table_options_splittable(&o), i != PARAMO_OPT_ADAM);
        o.kind = PARAMO_TABLE_VAR;
        assert_false(table_options_splittable(&o));
    }
    static const size_t bytes[] = {4, 8, 4, 8, 1, 0};
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(table_dtype_size((paramo_dtype)i), bytes[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_options_are_named),
        cmocka_unit_test(good_options_are_taken),
        cmocka_unit_test(sizes_follow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
