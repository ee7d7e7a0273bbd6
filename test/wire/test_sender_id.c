/* Names of senders: two that differ in one field are two senders, and a name comes back as it was written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/sender_id.h"

static const struct sender_id example = {.node = 9, .app = 2, .customer = 3, .incarnation = 12345};

static void each_field_counts(void **state)
{
    (void)state;
    struct sender_id other[] = {example, example, example, example};
    other[0].node++;
    other[1].app++;
    other[2].customer++;
    other[3].incarnation++;
    assert_true(sender_id_equal(&example, &example));
    for (unsigned i = 0; i < 4; i++) {
        assert_false(sender_id_equal(&example, &other[i]));
        assert_false(sender_id_equal(&other[i], &example));
        assert_int_not_equal(sender_id_hash(&example), sender_id_hash(&other[i]));
    }
}

static void there_and_back(void **state)
{
    (void)state;
    static const uint8_t golden[] = {9, 0, 0, 0, 2,  0,  0, 0, 3, 0, 0, 0,
                                     0, 0, 0, 0, 57, 48, 0, 0, 0, 0, 0, 0};
    uint8_t bytes[24];
    struct writer w = writer_over(bytes, sizeof bytes);
    sender_id_encode_aligned(&example, &w);
    assert_int_equal(w.len, 24);
    assert_memory_equal(bytes, golden, 24);
    struct reader r = reader_over(bytes, sizeof bytes);
    struct sender_id got = sender_id_decode_aligned(&r);
    assert_true(reader_done(&r) && sender_id_equal(&got, &example));
    bytes[12] = 1;
    r = reader_over(bytes, sizeof bytes);
    (void)sender_id_decode_aligned(&r);
    assert_true(r.failed);

    w = writer_over(bytes, sizeof bytes);
    sender_id_encode(&example, &w);
    assert_int_equal(w.len, 20);
    assert_memory_equal(bytes, golden, 12);
    assert_memory_equal(bytes + 12, golden + 16, 8);
    r = reader_over(bytes, 20);
    got = sender_id_decode(&r);
    assert_true(reader_done(&r) && sender_id_equal(&got, &example));
    r = reader_over(bytes, 19);
    (void)sender_id_decode(&r);
    assert_true(r.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_field_counts),
        cmocka_unit_test(there_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
