/* Counted arrays. */
#include <string.h>

#include "base/array.h"
#include "unit.h"

static unsigned released;

static void count_release(void *arg, void *data)
{
    assert_ptr_equal(arg, data);
    released++;
}

static void the_last_reference_releases(void **state)
{
    (void)state;
    int memory[4] = {1, 2, 3, 4};
    struct paramo_array *a, *b, *c;
    released = 0;
    assert_int_equal(array_wrap(memory, sizeof memory, count_release, memory, &a), PARAMO_OK);
    assert_ptr_equal(array_ref(a), a);
    array_unref(a);
    assert_int_equal(array_slice(a, 4, 8, &b), PARAMO_OK);
    assert_int_equal(array_slice(b, 4, 4, &c), PARAMO_OK);
    array_unref(a);
    array_unref(b);
    assert_int_equal(released, 0);
    assert_int_equal(*(int *)c->data, 3);
    array_unref(c);
    assert_int_equal(released, 1);
    assert_null(array_ref(NULL));
    array_unref(NULL);
}

static void slices_stay_inside(void **state)
{
    (void)state;
    struct paramo_array *a, *b;
    assert_int_equal(array_new(100, &a), PARAMO_OK);
    assert_int_equal((uintptr_t)a->data % 64, 0);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(((uint8_t *)a->data)[i], 0);
    assert_int_equal(array_slice(a, 101, 0, &b), PARAMO_E_INVALID);
    assert_int_equal(array_slice(a, 1, 100, &b), PARAMO_E_INVALID);
    assert_int_equal(array_slice(a, SIZE_MAX, 2, &b), PARAMO_E_INVALID);
    assert_int_equal(array_slice(a, 100, 0, &b), PARAMO_OK);
    assert_null(b->data);
    array_unref(b);
    array_unref(a);
    assert_int_equal(array_new(0, &a), PARAMO_OK);
    assert_null(a->data);
    array_unref(a);
    assert_int_equal(array_new(SIZE_MAX, &a), PARAMO_E_MEMORY);
    assert_int_equal(array_wrap(NULL, 1, NULL, NULL, &a), PARAMO_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_reference_releases),
        cmocka_unit_test(slices_stay_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
