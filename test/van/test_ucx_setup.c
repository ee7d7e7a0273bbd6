/* What two ucx vans say to each other: what is encoded is decoded again, and nothing shorter or longer is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "van/ucx/ucx_setup.h"

static const uint8_t address[UCX_ADDRESS_MAX + 1] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

static const struct ucx_setup said[] = {
    {.kind = SETUP_OFFER, .version = SETUP_VERSION, .host = 77, .kinds = 3, .area = {1234, 56}},
    {.kind = SETUP_ACCEPT,
     .way = UCX_FABRIC,
     .area = {9, 8},
     .proof = 7,
     .address = address,
     .address_len = 10},
    {.kind = SETUP_ACCEPT, .address = address, .address_len = UCX_ADDRESS_MAX},
    {.kind = SETUP_DECLINE, .why = "no"},
    {.kind = SETUP_READY, .proof = UINT64_MAX, .address = address, .address_len = UCX_ADDRESS_MIN},
    {.kind = SETUP_RETRACT},
    {.kind = SETUP_LAST},
};

static void encoded_is_decoded(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        uint8_t bytes[SETUP_BYTES_MAX];
        struct ucx_setup got;
        size_t len = ucx_setup_encode(&said[i], bytes);
        assert_true(len > 0);
        assert_int_equal(ucx_setup_decode(bytes, len, &got), PARAMO_OK);
        assert_int_equal(got.kind, said[i].kind);
        assert_int_equal(got.version, said[i].version);
        assert_int_equal(got.host, said[i].host);
        assert_int_equal(got.kinds, said[i].kinds);
        assert_int_equal(got.area.pid, said[i].area.pid);
        assert_int_equal(got.area.fd, said[i].area.fd);
        assert_int_equal(got.way, said[i].way);
        assert_int_equal(got.proof, said[i].proof);
        assert_int_equal(got.address_len, said[i].address_len);
        assert_memory_equal(got.address_len ? got.address : address, address, got.address_len);
        assert_string_equal(got.why, said[i].why);
        for (size_t cut = 0; cut < len; cut++)
            assert_int_equal(ucx_setup_decode(bytes, cut, &got), PARAMO_E_PROTOCOL);
        if (len < SETUP_BYTES_MAX)
            assert_int_equal(ucx_setup_decode(bytes, len + 1, &got), PARAMO_E_PROTOCOL);
    }
}

static void what_is_none_is_refused(void **state)
{
    (void)state;
    struct ucx_setup got, ready = said[4];
    uint8_t bytes[SETUP_BYTES_MAX] = {0};
    assert_int_equal(ucx_setup_decode(bytes, 1, &got), PARAMO_E_PROTOCOL);
    bytes[0] = SETUP_LAST + 1;
    assert_int_equal(ucx_setup_decode(bytes, 1, &got), PARAMO_E_PROTOCOL);
    size_t len = ucx_setup_encode(&said[1], bytes);
    bytes[1] = UCX_KINDS;
    assert_int_equal(ucx_setup_decode(bytes, len, &got), PARAMO_E_PROTOCOL);
    ready.address_len = UCX_ADDRESS_MIN - 1;
    len = ucx_setup_encode(&ready, bytes);
    assert_int_equal(ucx_setup_decode(bytes, len, &got), PARAMO_E_PROTOCOL);
    ready.address_len = UCX_ADDRESS_MAX + 1;
    assert_int_equal(ucx_setup_encode(&ready, bytes), 0);
    /* another version's offer may say what it likes */
    uint8_t other[] = {SETUP_OFFER, SETUP_VERSION + 1, 1, 2, 3};
    assert_int_equal(ucx_setup_decode(other, sizeof other, &got), PARAMO_OK);
    assert_int_equal(got.version, SETUP_VERSION + 1);
}

static void words(void **state)
{
    (void)state;
    static const struct ucx_word good[] = {{.message = MESSAGE_DATA},
                                           {.message = MESSAGE_END},
                                           {.message = MESSAGE_AREA, .len = 5},
                                           {.message = MESSAGE_AREA, .wrap = true, .len = UINT32_MAX},
                                           {.message = MESSAGE_ROOM, .position = UINT64_C(0xffffffffffffff)}};
    struct ucx_word got;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(ucx_word_decode(ucx_word_encode(&good[i]), &got), PARAMO_OK);
        assert_int_equal(got.message, good[i].message);
        assert_int_equal(got.wrap, good[i].wrap);
        assert_int_equal(got.len, good[i].len);
        assert_int_equal(got.position, good[i].position);
    }
    static const uint64_t bad[] = {MESSAGE_KINDS, UINT64_MAX, MESSAGE_DATA | 256,
                                   MESSAGE_AREA | 512 | UINT64_C(1) << 32, MESSAGE_GO | UINT64_C(1) << 32};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(ucx_word_decode(bad[i], &got), PARAMO_E_PROTOCOL);
}

static void steps_stay_in_the_area(void **state)
{
    (void)state;
    uint64_t at = 0;
    size_t offset = 1;
    struct ucx_word w = {.message = MESSAGE_AREA, .len = 100};
    assert_int_equal(ucx_area_step(&w, &at, &offset), PARAMO_OK);
    assert_int_equal(at, 100);
    assert_int_equal(offset, 0);
    w.len = AREA_BYTES - 99;
    assert_int_equal(ucx_area_step(&w, &at, &offset), PARAMO_E_PROTOCOL);
    w.wrap = true;
    assert_int_equal(ucx_area_step(&w, &at, &offset), PARAMO_OK);
    assert_int_equal(at, 2 * AREA_BYTES - 99);
    assert_int_equal(offset, 0);
    w = (struct ucx_word){.message = MESSAGE_AREA, .len = 99};
    assert_int_equal(ucx_area_step(&w, &at, &offset), PARAMO_OK);
    assert_int_equal(at, 2 * AREA_BYTES);
    assert_int_equal(offset, AREA_BYTES - 99);
    w.wrap = true; /* it is at the beginning already */
    assert_int_equal(ucx_area_step(&w, &at, &offset), PARAMO_E_PROTOCOL);
    w = (struct ucx_word){.message = MESSAGE_AREA};
    assert_int_equal(ucx_area_step(&w, &at, &offset), PARAMO_E_PROTOCOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoded_is_decoded),
        cmocka_unit_test(what_is_none_is_refused),
        cmocka_unit_test(words),
        cmocka_unit_test(steps_stay_in_the_area),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
