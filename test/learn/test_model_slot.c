/* The served model and its replacement. */
#include "learn/serve/model_slot.h"
#include "learn/support_learn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char *dir;

static int setup(void **state)
{
    (void)state;
    dir = new_dir();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_dir(dir);
    return 0;
}

static paramo_err write_one(void *arg, size_t table, const char *path)
{
    (void)table;
    write_table(path, *(uint64_t *)arg, 7, 1, 2);
    return PARAMO_OK;
}

static void save(uint64_t seed)
{
    struct model_info info;
    model_info_init(&info, model_find("lr"));
    info.optimizer[0].beta = 1;
    info.optimizer[0].l2 = 0;
    (void)snprintf(info.data_format, sizeof info.data_format, "libsvm");
    assert_int_equal(modelio_save(dir, &info, &(struct modelio_writer){.table = write_one, .arg = &seed}),
                     PARAMO_OK);
}

static uint64_t seed_of(const struct slot_model *m)
{
    return m->model.table[0].keys[0];
}

static void a_taken_model_outlives_its_replacement(void **state)
{
    (void)state;
    struct model_slot *slot;
    save(5);
    assert_int_equal(model_slot_open(dir, &slot), PARAMO_OK);
    assert_int_equal(model_slot_refresh(slot, 0), SLOT_UNCHANGED);
    struct slot_model *old = model_slot_take(slot), *again = model_slot_take(slot);
    assert_ptr_equal(old, again);
    model_slot_give(slot, again);
    save(6); /* removes the files of the model before */
    assert_int_equal(model_slot_refresh(slot, 0), SLOT_LOADED);
    struct slot_model *new = model_slot_take(slot);
    assert_int_equal(seed_of(old), 5);
    assert_int_equal(seed_of(new), 6);
    assert_true(new->version > old->version && old->saved_s > 0);
    model_slot_give(slot, old);
    model_slot_give(slot, new);
    assert_int_equal(model_slot_refresh(slot, 1), SLOT_LOADED); /* forced: the same one again */
    model_slot_close(slot);
}

/* As `cp` of another model's file over it does. */
static void its_files_may_be_cut(void **state)
{
    (void)state;
    struct model_slot *slot;
    save(5);
    assert_int_equal(model_slot_open(dir, &slot), PARAMO_OK);
    struct slot_model *m = model_slot_take(slot);
    assert_int_equal(truncate(m->model.table[0].path, 0), 0);
    assert_int_equal(seed_of(m), 5);
    model_slot_give(slot, m);
    model_slot_close(slot);
}

static void a_model_that_cannot_be_opened_is_tried_again(void **state)
{
    (void)state;
    struct model_slot *slot = NULL;
    assert_int_equal(model_slot_open(dir, &slot), PARAMO_E_NOT_FOUND);
    assert_null(slot);
    save(5);
    assert_int_equal(model_slot_open(dir, &slot), PARAMO_OK);
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/manifest.json", dir);
    write_file(path, "{", 1);
    assert_int_equal(model_slot_refresh(slot, 0), SLOT_FAILED);
    assert_int_equal(model_slot_refresh(slot, 0), SLOT_UNCHANGED); /* the same manifest */
    assert_int_equal(model_slot_refresh(slot, 1), SLOT_FAILED);
    unsigned looks = 0;
    enum slot_refresh again;
    while ((again = model_slot_refresh(slot, 0)) == SLOT_UNCHANGED)
        assert_true(looks++ < 100);
    assert_int_equal(again, SLOT_FAILED_AGAIN);
    assert_true(looks > 1);
    struct slot_model *m = model_slot_take(slot);
    assert_int_equal(seed_of(m), 5);
    model_slot_give(slot, m);
    save(7);
    assert_int_equal(model_slot_refresh(slot, 0), SLOT_LOADED);
    model_slot_close(slot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_taken_model_outlives_its_replacement, setup, teardown),
        cmocka_unit_test_setup_teardown(its_files_may_be_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(a_model_that_cannot_be_opened_is_tried_again, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
