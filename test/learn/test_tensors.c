#include "learn/support_learn.h"
#include "paramo/paramo.h"
#include "paramo/tensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *dir, path[4096];

static int setup(void **state)
{
    (void)state;
    dir = new_dir();
    (void)snprintf(path, sizeof path, "%s/t.safetensors", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_dir(dir);
    return 0;
}

static void test_reads_what_was_written(void **state)
{
    (void)state;
    paramo_tensors *f;
    paramo_tensor keys, values, other;
    write_table(path, 10, 5, 3, 2);
    assert_int_equal(paramo_tensors_open(path, &f), PARAMO_OK);
    assert_int_equal(paramo_tensors_get(f, "keys", "U64", 1, &keys), PARAMO_OK);
    assert_int_equal(paramo_tensors_get(f, "values", "F32", 2, &values), PARAMO_OK);
    assert_int_equal(keys.shape[0], 5);
    assert_int_equal(values.shape[0], 5);
    assert_int_equal(values.shape[1], 3);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(((const uint64_t *)keys.data)[i], 10 + 3 * i);
    uint64_t s = 10;
    for (size_t i = 0; i < 15; i++)
        assert_true(((const float *)values.data)[i] == draw_float(&s));
    assert_true(paramo_tensors_has(f, "state"));
    assert_false(paramo_tensors_has(f, "__metadata__"));
    assert_int_equal(paramo_tensors_get(f, "nothing", "F32", 2, &other), PARAMO_E_CORRUPT);
    assert_int_equal(paramo_tensors_get(f, "values", "F64", 2, &other), PARAMO_E_CORRUPT);
    assert_int_equal(paramo_tensors_get(f, "values", "F32", 1, &other), PARAMO_E_CORRUPT);
    paramo_tensors_close(f);
    write_table(path, 0, 0, 1, 0);
    assert_int_equal(paramo_tensors_open(path, &f), PARAMO_OK);
    paramo_tensors_close(f);
}

/* header text and data length -> the status of opening such a file */
static paramo_err open_made(const char *header, size_t data)
{
    size_t len = strlen(header);
    unsigned char *file = calloc(1, 8 + len + data);
    file[0] = (unsigned char)len;
    file[1] = (unsigned char)(len >> 8);
    memcpy(file + 8, header, len);
    write_file(path, file, 8 + len + data);
    free(file);
    paramo_tensors *f = NULL;
    paramo_err err = paramo_tensors_open(path, &f);
    paramo_tensors_close(f);
    return err;
}

static void test_refuses_bad_headers(void **state)
{
    (void)state;
#define ONE(type, shape, offsets)                                                                            \
    "{\"a\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
    /* padded so that the data is aligned */
    assert_int_equal(open_made(ONE("F32", "[2]", "[0,8]") "      ", 8), PARAMO_OK);
    static const struct {
        const char *header;
        size_t data;
    } bad[] = {
        {"", 0},
        {"{", 0},
        {"{\"a\":1}", 0},
        {ONE("F32", "[2]", "[0,8]") "     ", 8},               /* not aligned */
        {ONE("F33", "[2]", "[0,8]") "      ", 8},              /* type */
        {ONE("F32", "[3]", "[0,8]") "      ", 8},              /* shape against offsets */
        {ONE("F32", "[-2]", "[0,8]") "     ", 8},              /* negative */
        {ONE("F32", "[2]", "[0,8]") "      ", 7},              /* cut */
        {ONE("F32", "[2]", "[0,8]") "      ", 9},              /* a byte more */
        {ONE("F32", "[2]", "[8,0]") "      ", 8},              /* backwards */
        {ONE("F32", "[2]", "[4,12]") "     ", 12},             /* hole */
        {ONE("F32", "[4611686018427387905,4]", "[0,16]"), 16}, /* product overflows to 16 */
        {ONE("F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), 8},       /* rank */
        {ONE("F32", "2", "[0,8]"), 8},
        {ONE("F32", "[2]", "[0,8,9]"), 8},
        {ONE("F32", "[2]", "[0,\"8\"]"), 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}     ",
         8}, /* the same name twice */
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":"
         "[1],\"data_"
         "offsets\":[0,4]}}",
         4}, /* overlap */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (open_made(bad[i].header, bad[i].data) != PARAMO_E_CORRUPT)
            fail_msg("not refused: %s + %zu", bad[i].header, bad[i].data);
}

static void test_other_files_are_not_called_damaged(void **state)
{
    (void)state;
    static const char *const others[] = {"1 3:1 7:0.5\n0 4:1\n", "\177ELF\2\1\1\0\0\0\0\0\0"};
    assert_int_equal(open_made("[]", 0), PARAMO_E_FORMAT);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        paramo_tensors *f;
        write_file(path, others[i], 12);
        assert_int_equal(paramo_tensors_open(path, &f), PARAMO_E_FORMAT);
        assert_non_null(strstr(paramo_last_error(), "not a safetensors file"));
    }
}

static void test_any_cut_and_any_flipped_header_byte_is_safe(void **state)
{
    (void)state;
    size_t len;
    write_table(path, 1, 4, 2, 1);
    char *whole = read_file(path, &len);
    paramo_tensors *f;
    for (size_t cut = 0; cut < len; cut++) {
        write_file(path, whole, cut);
        assert_int_equal(paramo_tensors_open(path, &f), PARAMO_E_CORRUPT);
    }
    for (size_t at = 0; at < len; at++) { /* accepted or refused, but every tensor lies inside the file */
        char keep = whole[at];
        whole[at] = (char)(keep ^ (1 << at % 8));
        write_file(path, whole, len);
        whole[at] = keep;
        if (paramo_tensors_open(path, &f) != PARAMO_OK)
            continue;
        paramo_tensor t;
        size_t total;
        const char *bytes = paramo_tensors_bytes(f, &total);
        if (paramo_tensors_get(f, "values", "F32", 2, &t) == PARAMO_OK)
            assert_true((const char *)t.data >= bytes && (const char *)t.data + t.bytes <= bytes + total);
        paramo_tensors_close(f);
    }
    free(whole);
}

static void test_files_that_cannot_be_read(void **state)
{
    (void)state;
    paramo_tensors *f;
    assert_int_equal(paramo_tensors_open("/nowhere/at/all", &f), PARAMO_E_NOT_FOUND);
    assert_int_equal(paramo_tensors_open(dir, &f), PARAMO_E_IO);
    assert_non_null(strstr(paramo_last_error(), dir));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reads_what_was_written, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refuses_bad_headers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_files_are_not_called_damaged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_any_cut_and_any_flipped_header_byte_is_safe, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files_that_cannot_be_read, setup, teardown),
    };
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
