/* Functions of the application: what is registered, what is refused, and what calls of them get. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/reduction.h"
#include "base/transform.h"
#include "unit.h"

static int doubles(void *user, paramo_function_rows *rows)
{
    float *w = rows->vals;
    const float *x = rows->other;
    int fails = 0;
    if (rows->params_bytes == sizeof fails)
        memcpy(&fails, rows->params, sizeof fails);
    ++*(int *)user;
    for (size_t i = 0; i < rows->n * rows->columns; i++)
        w[i] = 2 * w[i] + (x ? x[i] : 0);
    return fails;
}

static void count_add(void *user, const paramo_function_rows *rows, void *state)
{
    (void)user;
    assert_int_equal(rows->params_bytes, 3);
    assert_memory_equal(rows->params, "abc", 3);
    ((uint64_t *)state)[0] += rows->n;
    ((uint64_t *)state)[1] += rows->keys[0] * rows->n + rows->columns;
}

static int count_merge(void *user, const void *params, size_t bytes, void *state, const void *from)
{
    (void)user;
    assert_int_equal(bytes, 3);
    assert_memory_equal(params, "abc", 3);
    for (int i = 0; i < 2; i++)
        ((uint64_t *)state)[i] += ((const uint64_t *)from)[i];
    return ((const uint64_t *)from)[0] == 99;
}

static int calls;

static void some_register(void)
{
    const paramo_function change = {
        .size = sizeof change, .name = "double", .user = &calls, .change = doubles};
    const paramo_function count = {
        .size = sizeof count, .name = "count.1-x", .state_bytes = 16, .add = count_add, .merge = count_merge};
    user_functions_forget();
    assert_int_equal(user_function_register(&change), PARAMO_OK);
    assert_int_equal(user_function_register(&count), PARAMO_OK);
}

static void what_is_refused(void **state)
{
    (void)state;
    const paramo_function good = {.size = sizeof good,
                                  .name = "good",
                                  .change = doubles,
                                  .state_bytes = 8,
                                  .add = count_add,
                                  .merge = count_merge};
    paramo_function bad[10];
    for (size_t i = 0; i < 10; i++)
        bad[i] = good;
    bad[0].size--;
    bad[1].name = NULL;
    bad[2].name = "";
    bad[3].name = "Capital";
    bad[4].name = "a_name_of_thirty_two_characters_";
    bad[5].name = "double"; /* taken */
    bad[6].merge = NULL;
    bad[7].state_bytes = 0;
    bad[8].state_bytes = PARAMO_FUNCTION_STATE_MAX + 1;
    bad[9].change = NULL, bad[9].add = NULL, bad[9].merge = NULL;
    some_register();
    assert_int_equal(user_function_register(NULL), PARAMO_E_INVALID);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(user_function_register(&bad[i]), PARAMO_E_INVALID);
    assert_null(user_function_find("good"));
    assert_int_equal(user_function_register(&good), PARAMO_OK);
    for (unsigned i = 3; i < USER_FUNCTIONS_MAX; i++) {
        char name[16];
        paramo_function more = good;
        (void)snprintf(name, sizeof name, "f%u", i);
        more.name = name;
        assert_int_equal(user_function_register(&more), PARAMO_OK);
    }
    bad[0] = good;
    bad[0].name = "too.many";
    assert_int_equal(user_function_register(&bad[0]), PARAMO_E_INVALID);
    assert_string_equal(user_function_find("f40")->name, "f40"); /* the name was copied */
}

static void calls_are_made(void **state)
{
    (void)state;
    struct user_call call;
    const paramo_function *f;
    some_register();
    assert_int_equal(user_call_make(&call, NULL, NULL, 0), PARAMO_E_INVALID);
    assert_int_equal(user_call_make(&call, "double", NULL, 1), PARAMO_E_INVALID);
    assert_int_equal(user_call_make(&call, "double", "", PARAMO_FUNCTION_PARAMS_MAX + 1), PARAMO_E_INVALID);
    assert_int_equal(user_call_make(&call, "double", NULL, 0), PARAMO_OK);
    assert_int_equal(user_call_find(&call, true, &f), PARAMO_E_UNSUPPORTED); /* it reduces nothing */
    assert_int_equal(user_call_find(&call, false, &f), PARAMO_OK);
    assert_int_equal(user_call_make(&call, "none", NULL, 0), PARAMO_OK); /* a server may have it */
    assert_int_equal(user_call_find(&call, false, &f), PARAMO_E_UNSUPPORTED);
}

static void rows_are_changed(void **state)
{
    (void)state;
    const uint64_t keys[] = {3, 9};
    float w[] = {1, 2, 3, 4}, x[] = {10, 20, 30, 40};
    int fails = 7;
    struct transform what = {.function = PARAMO_TRANSFORM_USER};
    some_register();
    calls = 0;
    assert_int_equal(transform_check(&what, PARAMO_F32), PARAMO_E_INVALID); /* no name */
    assert_int_equal(user_call_make(&what.user, "double", NULL, 0), PARAMO_OK);
    assert_int_equal(transform_check(&what, PARAMO_F32), PARAMO_OK);
    assert_int_equal(transform_rows_user(&what, PARAMO_F32, keys, 2, 2, w, NULL), PARAMO_OK);
    assert_true(w[0] == 2 && w[3] == 8);
    assert_int_equal(transform_rows_user(&what, PARAMO_F32, keys, 2, 2, w, x), PARAMO_OK);
    assert_true(w[0] == 14 && w[3] == 56);
    assert_int_equal(transform_rows_user(&what, PARAMO_F32, keys, 0, 2, w, x), PARAMO_OK);
    assert_int_equal(calls, 2); /* of no rows it is not called */
    assert_int_equal(user_call_make(&what.user, "double", &fails, sizeof fails), PARAMO_OK);
    assert_int_equal(transform_rows_user(&what, PARAMO_F32, keys, 2, 2, w, NULL), PARAMO_E_HANDLER);
    assert_non_null(strstr(err_text(), "\"double\" returned 7"));
    w[1] = 3e38f;
    assert_int_equal(user_call_make(&what.user, "double", NULL, 0), PARAMO_OK);
    assert_int_equal(transform_rows_user(&what, PARAMO_F32, keys, 2, 2, w, NULL), PARAMO_E_NUMERIC);
}

static void rows_are_reduced(void **state)
{
    (void)state;
    const float w[] = {1, 2, 3};
    struct reduction what = {.function = PARAMO_REDUCE_USER, .last = UINT64_MAX};
    struct reduced a, b;
    some_register();
    assert_int_equal(reduction_check(&what), PARAMO_E_INVALID);
    assert_int_equal(user_call_make(&what.user, "double", "abc", 3), PARAMO_OK);
    assert_int_equal(reduced_init(&a, &what), PARAMO_E_UNSUPPORTED);
    assert_int_equal(user_call_make(&what.user, "count.1-x", "abc", 3), PARAMO_OK);
    assert_int_equal(reduction_check(&what), PARAMO_OK);
    assert_int_equal(reduced_init(&a, &what), PARAMO_OK);
    assert_int_equal(reduced_init(&b, &what), PARAMO_OK);
    assert_int_equal(reduced_state_bytes(&a), 16);
    reduced_add(&a, 5, 0, PARAMO_F32, w, PARAMO_F32, NULL, 3);
    reduced_reset(&a);
    reduced_add(&a, 7, 0, PARAMO_F32, w, PARAMO_F32, NULL, 3);
    reduced_add(&b, 100, 0, PARAMO_F32, w, PARAMO_F32, NULL, 2);
    assert_int_equal(reduced_merge(&a, &b), PARAMO_OK);
    const uint64_t *found = a.own;
    assert_int_equal(found[0], 2);
    assert_int_equal(found[1], 7 + 3 + 100 + 2);
    ((uint64_t *)b.own)[0] = 99;
    assert_int_equal(reduced_merge(&a, &b), PARAMO_E_PROTOCOL);
    reduced_fini(&a);
    reduced_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(calls_are_made),
        cmocka_unit_test(rows_are_changed),
        cmocka_unit_test(rows_are_reduced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
