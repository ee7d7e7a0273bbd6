/* base/cpu.h: the level that loops are chosen by. */
#include "unit.h"

#include "base/cpu.h"

#include <string.h>

static void a_limit_holds_and_auto_lifts_it(void **state)
{
    (void)state;
    const enum cpu_level here = cpu_level();
    for (enum cpu_level level = CPU_BASE; level < CPU_LEVELS; level++) {
        paramo_err err = cpu_limit(cpu_level_name(level));
        if (level > here) {
            assert_int_equal(err, PARAMO_E_UNSUPPORTED);
            continue;
        }
        assert_int_equal(err, PARAMO_OK);
        assert_int_equal(cpu_level(), level);
    }
    assert_int_equal(cpu_limit("auto"), PARAMO_OK);
    assert_int_equal(cpu_level(), here);
}

static void an_unknown_word_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    assert_int_equal(cpu_limit("base"), PARAMO_OK);
    assert_int_equal(cpu_limit("sse9"), PARAMO_E_INVALID);
    assert_non_null(strstr(err_text(), "sse9"));
    assert_int_equal(cpu_limit(""), PARAMO_E_INVALID);
    assert_int_equal(cpu_level(), CPU_BASE);
    assert_int_equal(cpu_limit("auto"), PARAMO_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_holds_and_auto_lifts_it),
        cmocka_unit_test(an_unknown_word_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
