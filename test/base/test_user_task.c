/* Functions that tasks can name: what is registered, and what is refused. */
#include <stdio.h>
#include <string.h>

#include "base/user_task.h"
#include "unit.h"

static paramo_err nothing(void *user, paramo_task *task, const paramo_task_info *info)
{
    (void)user, (void)task, (void)info;
    return PARAMO_OK;
}

static void what_is_refused(void **state)
{
    (void)state;
    const paramo_task_function good = {.size = sizeof good, .name = "good", .run = nothing};
    paramo_task_function f = good;
    user_tasks_forget();
    assert_false(user_tasks_any());
    assert_int_equal(user_task_register(NULL), PARAMO_E_INVALID);
    f.size--;
    assert_int_equal(user_task_register(&f), PARAMO_E_INVALID);
    f = good;
    f.run = NULL;
    assert_int_equal(user_task_register(&f), PARAMO_E_INVALID);
    const char *const bad[] = {NULL, "", "Upper", "a b", "a-name-that-is-longer-than-31-byte"};
    for (unsigned i = 0; i < 5; i++) {
        f = good;
        f.name = bad[i];
        assert_int_equal(user_task_register(&f), PARAMO_E_INVALID);
    }
    assert_false(user_tasks_any());
    assert_int_equal(user_task_register(&good), PARAMO_OK);
    assert_int_equal(user_task_register(&good), PARAMO_E_INVALID); /* the name is taken */
    assert_non_null(strstr(err_text(), "\"good\" exists already"));
}

static void they_are_found_by_name(void **state)
{
    (void)state;
    char name[16];
    user_tasks_forget();
    for (int i = 0; i < USER_TASKS_MAX; i++) {
        (void)snprintf(name, sizeof name, "task%d", i);
        const paramo_task_function f = {
            .size = sizeof f, .name = name, .user = &name[i % 16], .run = nothing};
        assert_int_equal(user_task_register(&f), PARAMO_OK);
    }
    const paramo_task_function more = {.size = sizeof more, .name = "more", .run = nothing};
    assert_int_equal(user_task_register(&more), PARAMO_E_INVALID);
    assert_ptr_equal(user_task_find("task17", 6)->user, &name[1]);
    assert_string_equal(user_task_find("task17", 6)->name, "task17");
    assert_string_equal(user_task_find("task17", 5)->name, "task1");
    assert_null(user_task_find("task64", 6));
    assert_null(user_task_find("task1\0", 6));
    assert_null(user_task_find("", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_refused),
                                       cmocka_unit_test(they_are_found_by_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
