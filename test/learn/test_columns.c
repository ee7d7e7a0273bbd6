/* The text of --columns, names, and the star. */
#include "learn/data/columns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct columns *parse(const char *text)
{
    struct columns *c = NULL;
    if (columns_parse(text, &c) != PARAMO_OK)
        fail_msg("%s: %s", text, paramo_last_error());
    return c;
}

static void check(const struct columns *c, size_t i, const char *name, enum column_role role, unsigned field)
{
    assert_string_equal(columns_at(c, i)->name, name);
    assert_int_equal(columns_at(c, i)->role, role);
    assert_int_equal(columns_at(c, i)->field, field);
    assert_ptr_equal(columns_find(c, name, strlen(name)), columns_at(c, i));
}

static void roles_and_fields(void **s)
{
    (void)s;
    struct columns *c = parse("cat=site;app,label=click,num=age,weight=w,ignore=id");
    assert_int_equal(columns_count(c), 6);
    check(c, 0, "site", COLUMN_CATEGORY, 0);
    check(c, 1, "app", COLUMN_CATEGORY, 1);
    check(c, 2, "click", COLUMN_LABEL, 0);
    check(c, 3, "age", COLUMN_NUMBER, 2);
    check(c, 4, "w", COLUMN_WEIGHT, 0);
    check(c, 5, "id", COLUMN_IGNORED, 0);
    assert_null(columns_find(c, "ag", 2));
    assert_ptr_equal(columns_of_role(c, COLUMN_LABEL), columns_at(c, 2));
    assert_true(columns_at(c, 0)->seed != columns_at(c, 1)->seed);
    columns_release(c);
}

static void names_with_signs(void **s)
{
    (void)s;
    struct columns *c = parse("label=a\\,b,cat=c\\;d;e=f;\\\\g;\xc3\xa4 h");
    check(c, 0, "a,b", COLUMN_LABEL, 0);
    check(c, 1, "c;d", COLUMN_CATEGORY, 0);
    check(c, 2, "e=f", COLUMN_CATEGORY, 1);
    check(c, 3, "\\g", COLUMN_CATEGORY, 2);
    check(c, 4, "\xc3\xa4 h", COLUMN_CATEGORY, 3);
    columns_release(c);
}

static void wrong_texts(void **s)
{
    (void)s;
    static const char *const wrong[][2] = {
        {"", "expected label="},
        {"label", "expected label="},
        {"label=a,", "expected label="},
        {"label=a,dog=b", "found 'dog=b'"},
        {"label=a,cat=", "a name is missing after 'cat='"},
        {"label=a,cat=b;", "a name is missing after 'cat='"},
        {"label=a", "no feature"},
        {"label=a,ignore=b", "no feature"},
        {"label=a;b,cat=c", "one label column"},
        {"label=a,cat=b,num=b", "column 'b' is named twice"},
        {"label=*,cat=b", "'*' stands for"},
        {"label=a,cat=*,num=*", "'*' stands for"},
        {"label=a,cat=\xff", "not UTF-8"},
        {"label=a,cat=\xed\xa0\x80", "not UTF-8"},
        {"label=a,cat=\xc0\xaf", "not UTF-8"},
        {"label=a,cat=\xe2\x82", "not UTF-8"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct columns *c = NULL;
        assert_int_equal(columns_parse(wrong[i][0], &c), PARAMO_E_INVALID);
        assert_null(c);
        if (!strstr(paramo_last_error(), wrong[i][1]))
            fail_msg("'%s' gives '%s', not '%s'", wrong[i][0], paramo_last_error(), wrong[i][1]);
    }
    struct columns *unlabelled = parse("cat=a"); /* of rows without labels */
    assert_null(columns_of_role(unlabelled, COLUMN_LABEL));
    columns_release(unlabelled);
}

static void the_star_is_the_rest(void **s)
{
    (void)s;
    struct columns *c = parse("num=age,cat=*,label=y,ignore=id");
    static const char *const file[] = {"id", "x", "y", "age", "z", "x"};
    assert_true(columns_has_rest(c));
    for (size_t i = 0; i < sizeof file / sizeof *file; i++)
        assert_int_equal(columns_take_rest(c, file[i], strlen(file[i])), PARAMO_OK);
    assert_int_equal(columns_end_rest(c), PARAMO_OK);
    assert_false(columns_has_rest(c));
    assert_int_equal(columns_count(c), 5);
    check(c, 0, "age", COLUMN_NUMBER, 0);
    check(c, 3, "x", COLUMN_CATEGORY, 1);
    check(c, 4, "z", COLUMN_CATEGORY, 2);
    columns_release(c);
    c = parse("cat=*,label=y");
    assert_int_equal(columns_end_rest(c), PARAMO_E_INVALID);
    columns_release(c);
}

static void many_are_found(void **s)
{
    (void)s;
    struct columns *c = NULL;
    char name[16];
    assert_int_equal(columns_new(&c), PARAMO_OK);
    assert_null(columns_find(c, "c0", 2));
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "c%d", i);
        assert_int_equal(columns_add(c, COLUMN_NUMBER, name, strlen(name)), PARAMO_OK);
    }
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "c%u", i);
        check(c, i, name, COLUMN_NUMBER, i);
    }
    assert_null(columns_find(c, "c1000", 5));
    assert_true(columns_same(c, c) && columns_same(NULL, NULL) && !columns_same(c, NULL));
    struct columns *other = parse("label=a,cat=b"), *same = parse("label=a,cat=b"),
                   *third = parse("label=a,num=b");
    assert_true(columns_same(other, same) && !columns_same(other, third) && !columns_same(other, c));
    columns_release(other);
    columns_release(same);
    columns_release(third);
    columns_retain(c);
    columns_release(c);
    assert_int_equal(columns_count(c), 1000);
    columns_release(c);
    columns_release(NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles_and_fields), cmocka_unit_test(names_with_signs),
        cmocka_unit_test(wrong_texts),      cmocka_unit_test(the_star_is_the_rest),
        cmocka_unit_test(many_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
