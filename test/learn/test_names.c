/* The dictionary of names: gathered, written, read again. */
#include "learn/data/columns.h"
#include "learn/data/keep_names.h"
#include "learn/data/names.h"
#include "learn/support_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void note(struct names *n, uint64_t key, const char *column, const char *value)
{
    names_note(n, key, column, strlen(column), value, value ? strlen(value) : 0);
}

static void written_and_read(void **s)
{
    (void)s;
    struct names *n = NULL;
    assert_int_equal(names_new(&n), PARAMO_OK);
    note(n, UINT64_MAX - 1, "a\tb", "c\\\n\r");
    note(n, 7, "age", NULL);
    note(n, 3, "z", "y");
    note(n, 3, "site", "x"); /* first in the order of bytes: it stays */
    note(n, 3, "site", "xx");
    note(n, 3, "site", "x");
    assert_int_equal(names_count(n), 3);
    assert_int_equal(names_write(n, text_path("names.tsv")), PARAMO_OK);
    names_free(n);
    char text[128] = "";
    FILE *f = fopen(text_path("names.tsv"), "re");
    assert_non_null(f);
    (void)fread(text, 1, sizeof text - 1, f);
    (void)fclose(f);
    assert_string_equal(text, "3\tsite\tx\n7\tage\n18446744073709551614\ta\\tb\tc\\\\\\n\\r\n");
    assert_int_equal(names_load(text_path("names.tsv"), &n), PARAMO_OK);
    assert_string_equal(names_find(n, 3), "site\tx");
    assert_string_equal(names_find(n, 7), "age");
    assert_null(names_find(n, 4));
    names_free(n);
    assert_int_equal(names_load(text_path("none.tsv"), &n), PARAMO_E_NOT_FOUND);
    static const char *const bad[] = {"x\ta\n", "1 a\n", "1\ta\n\n", "-1\ta\n", "99999999999999999999\ta\n",
                                      "1\ta"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        text_write_file(text_path("bad.tsv"), bad[i], strlen(bad[i]));
        assert_int_equal(names_load(text_path("bad.tsv"), &n), PARAMO_E_CORRUPT);
        assert_non_null(strstr(paramo_last_error(), i == 2 ? "bad.tsv:2:" : "bad.tsv:1:"));
    }
}

static void many(void **s)
{
    (void)s;
    struct names *n = NULL;
    char value[16], want[24];
    assert_int_equal(names_new(&n), PARAMO_OK);
    for (uint64_t i = 0; i < 20000; i++) {
        (void)snprintf(value, sizeof value, "v%u", (unsigned)(i % 10000));
        note(n, i % 10000 * 0x9e3779b97f4a7c15u, "c", value);
    }
    assert_int_equal(names_count(n), 10000);
    assert_int_equal(names_write(n, text_path("many.tsv")), PARAMO_OK);
    names_free(n);
    assert_int_equal(names_load(text_path("many.tsv"), &n), PARAMO_OK);
    for (uint64_t i = 0; i < 10000; i++) {
        (void)snprintf(want, sizeof want, "c\tv%u", (unsigned)i);
        assert_string_equal(names_find(n, i * 0x9e3779b97f4a7c15u), want);
    }
    names_free(n);
    names_free(NULL);
}

/* Keys of the names are those of the blocks. */
static void from_files(void **s)
{
    (void)s;
    static const char csv[] = "y,a,n\n1,x,2\n0,z,\n1,x,3\n", vw[] = "1 |s f:2 g\n0 | h\n";
    text_write_file(text_path("n.csv"), csv, sizeof csv - 1);
    text_write_file(text_path("n.vw"), vw, sizeof vw - 1);
    text_write_file(text_path("n.svm"), "1 1:1\n", 6);
    for (int i = 0; i < 3; i++) {
        const char *paths[] = {text_path(i == 0 ? "n.csv" : i == 1 ? "n.vw" : "n.svm")};
        struct reader_options o;
        struct reader *r;
        struct names *names;
        const struct block *b;
        size_t n = 9;
        reader_options_init(&o);
        if (i == 0)
            assert_int_equal(columns_parse("label=y,cat=a,num=n", &o.columns), PARAMO_OK);
        o.hash_bits = i == 0 ? 20 : 0;
        assert_int_equal(keep_names(&o, paths, 1, text_dir(), &n), PARAMO_OK);
        assert_int_equal(n, i < 2 ? 3 : 0);
        assert_int_equal(names_load(text_path(NAMES_FILE), &names), PARAMO_OK);
        assert_int_equal(reader_open(&o, paths, 1, &r), PARAMO_OK);
        assert_int_equal(reader_next(r, &b), PARAMO_OK);
        if (i == 0) {
            assert_string_equal(names_find(names, b->key[0]), "a\tx");
            assert_string_equal(names_find(names, b->key[1]), "n");
            assert_string_equal(names_find(names, b->key[2]), "a\tz");
        } else if (i == 1) {
            assert_string_equal(names_find(names, b->key[1]), "s\tg");
            assert_string_equal(names_find(names, b->key[2]), "\th");
        }
        reader_release(r, b);
        reader_close(r);
        names_free(names);
        columns_release(o.columns);
    }
}

static int close_all(void **s)
{
    (void)s;
    text_cleanup();
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_and_read),
        cmocka_unit_test(many),
        cmocka_unit_test(from_files),
    };
    return cmocka_run_group_tests(tests, NULL, close_all);
}
