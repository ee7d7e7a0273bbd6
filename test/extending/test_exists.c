/* EXISTS, at a shard: keys have a row when they were pushed, and a repeat gets the same answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "server/support_fake.h"

static void exists(void **state)
{
    (void)state;
    static const uint64_t keys[2] = {UINT64_C(0xf000000000000007), UINT64_C(0xf000000000000009)};
    static const float one = 1;
    uint32_t found[2];
    struct fake f;
    fake_init(&f, NULL, NULL);
    fake_view(&f);
    struct fake_conn *c = fake_connect(&f, 0);
    struct wire_head push = fake_head(&f, WIRE_PUSH, 1, 1), ask = fake_head(&f, WIRE_EXISTS, 1, 2);
    assert_int_equal(fake_send(c, &push, &keys[1], &one), PARAMO_OK);
    ask.count = 2;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(fake_send(c, &ask, keys, NULL), PARAMO_OK);
        assert_int_equal(fake_last(c)->head.kind, WIRE_ANSWER);
        assert_int_equal(fake_last(c)->head.status, PARAMO_OK);
        assert_int_equal(fake_last(c)->vals_bytes, sizeof found);
        memcpy(found, fake_last(c)->vals, sizeof found);
        assert_true(!found[0] && found[1]);
    }
    fake_disconnect(c);
    fake_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exists)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
