#include "unit.h"

#include <string.h>

#include "base/base64.h"

static void as_the_rfc_has_it(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct writer w = {0}, back = {0};
        base64_write(&w, pairs[i][0], strlen(pairs[i][0]));
        assert_int_equal(w.len, strlen(pairs[i][1]));
        assert_memory_equal(w.len ? (const char *)w.data : "", pairs[i][1], w.len);
        assert_true(base64_read(pairs[i][1], strlen(pairs[i][1]), &back));
        assert_int_equal(back.len, strlen(pairs[i][0]));
        assert_memory_equal(back.len ? (const char *)back.data : "", pairs[i][0], back.len);
        writer_fini(&w);
        writer_fini(&back);
    }
}

static void every_byte_in_every_place(void **state)
{
    (void)state;
    for (unsigned len = 1; len < 7; len++)
        for (unsigned byte = 0; byte < 256; byte++) {
            uint8_t bytes[7];
            struct writer w = {0}, back = {0};
            memset(bytes, (int)byte, sizeof bytes);
            bytes[len / 2] = (uint8_t)~byte;
            base64_write(&w, bytes, len);
            assert_true(base64_read((const char *)w.data, w.len, &back));
            assert_int_equal(back.len, len);
            assert_memory_equal(back.data, bytes, len);
            writer_fini(&w);
            writer_fini(&back);
        }
}

static void refuses_the_rest(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "Z",    "Zg",       "Zg=",       "====", "Z===", "Zh==",
        "Zm9=", "Zg==Zg==", "Zm\n9v   ", "Zm9-", "Zg=g", "Zm9v\xff\xff\xff\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct writer w = {0};
        assert_false(base64_read(bad[i], strlen(bad[i]), &w));
        writer_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_rfc_has_it),
        cmocka_unit_test(every_byte_in_every_place),
        cmocka_unit_test(refuses_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
