/* Records of senders come back as they were written, their bytes never change, and no other bytes are taken
 * for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "wire/sender_records.h"

#define GOLDEN_WINDOWS UINT64_C(0x306316919492e054)
#define GOLDEN_NOTES   UINT64_C(0x24e3955cf2775c15)

static struct sender_id name(uint32_t i)
{
    return (struct sender_id){.node = 9 + 2 * i, .app = 3 * i, .customer = i, .incarnation = mix64(i)};
}

static void windows(void **state)
{
    (void)state;
    struct sender_window list[3] = {0}, *got;
    struct writer w = {0};
    size_t n;
    for (uint32_t i = 0; i < 3; i++) {
        list[i].sender = name(i);
        list[i].dedup.floor = 1000 * i + 5;
        for (unsigned k = 0; k < DATA_WINDOW / 64; k++)
            list[i].dedup.bits[k] = mix64(100 * i + k);
    }
    sender_windows_encode(list, 3, &w);
    assert_false(w.failed);
    assert_int_equal(w.len, 8 + 3 * (32 + DATA_WINDOW / 8));
    assert_int_equal(hash_bytes(w.data, w.len), GOLDEN_WINDOWS);
    assert_int_equal(sender_windows_decode(w.data, w.len, &got, &n), PARAMO_OK);
    assert_int_equal(n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(sender_id_equal(&got[i].sender, &list[i].sender));
        assert_memory_equal(&got[i].dedup, &list[i].dedup, sizeof list[i].dedup);
    }
    free(got);
    for (size_t len = w.len; len-- > 0;)
        assert_int_equal(sender_windows_decode(w.data, len, &got, &n), PARAMO_E_CORRUPT);
    w.data[8 + 12] = 1; /* the zero word of the first */
    assert_int_equal(sender_windows_decode(w.data, w.len, &got, &n), PARAMO_E_CORRUPT);
    writer_fini(&w);
    list[1].dedup.floor = 0; /* no number is below the first */
    sender_windows_encode(list, 3, &w);
    assert_int_equal(sender_windows_decode(w.data, w.len, &got, &n), PARAMO_E_CORRUPT);
    writer_fini(&w);
}

static void notes(void **state)
{
    (void)state;
    struct sender_note list[3] = {0}, *got;
    struct writer w = {0}, one = {0};
    size_t n;
    for (uint32_t i = 0; i < 3; i++) {
        list[i].sender = name(i);
        list[i].number = 1000 * i;
        for (unsigned k = 0; k < PARTITION_BITS_WORDS; k++)
            list[i].partitions[k] = mix64(100 * i + k);
    }
    sender_notes_encode(list, 3, &w);
    assert_false(w.failed);
    assert_int_equal(w.len, 8 + 3 * (32 + PARTITION_BITS_BYTES));
    assert_int_equal(hash_bytes(w.data, w.len), GOLDEN_NOTES);
    assert_int_equal(sender_notes_decode(w.data, w.len, &got, &n), PARAMO_OK);
    assert_int_equal(n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(sender_id_equal(&got[i].sender, &list[i].sender));
        assert_int_equal(got[i].number, list[i].number);
        assert_memory_equal(got[i].partitions, list[i].partitions, sizeof list[i].partitions);
        /* A migration has the same without the zero word. */
        const uint8_t *entry = w.data + 8 + i * (32 + PARTITION_BITS_BYTES);
        one.len = 0;
        sender_note_encode(&list[i], &one);
        assert_int_equal(one.len, 28 + PARTITION_BITS_BYTES);
        assert_memory_equal(one.data, entry, 12);
        assert_memory_equal(one.data + 12, entry + 16, one.len - 12);
        struct reader r = reader_over(one.data, one.len);
        struct sender_note back = sender_note_decode(&r);
        assert_true(reader_done(&r));
        assert_true(sender_id_equal(&back.sender, &list[i].sender));
        assert_int_equal(back.number, list[i].number);
        assert_memory_equal(back.partitions, list[i].partitions, sizeof list[i].partitions);
        r = reader_over(one.data, one.len - 1);
        (void)sender_note_decode(&r);
        assert_true(r.failed);
    }
    free(got);
    for (size_t len = w.len; len-- > 0;)
        assert_int_equal(sender_notes_decode(w.data, len, &got, &n), PARAMO_E_CORRUPT);
    w.data[8 + 12] = 1;
    assert_int_equal(sender_notes_decode(w.data, w.len, &got, &n), PARAMO_E_CORRUPT);
    writer_fini(&w);
    writer_fini(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows),
        cmocka_unit_test(notes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
