/* Filters of the application: which are taken, how chains name them, and that a wrong one leaves all values as they
 * were. */
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "filter/coding.h"
#include "filter/registry.h"
#include "unit.h"
#include "wire/capability.h"

/* Takes each byte off 255; `user` says what it does wrong. */
enum fault { RIGHT, TOO_LONG, OTHER_BYTES, REFUSES };

static size_t half_encode(void *user, float arg, const paramo_filter_data *data, void *to, size_t room)
{
    const enum fault *fault = user;
    const uint8_t *from = data->from;
    assert_int_equal(data->size, sizeof *data);
    for (size_t i = 0; i < data->bytes / 2 && i < room; i++)
        ((uint8_t *)to)[i] = (uint8_t)(from[2 * i] + (uint8_t)arg);
    return *fault == TOO_LONG ? room + 1 : data->bytes / 2;
}

static int half_decode(void *user, float arg, const void *from, size_t bytes, void *to, size_t want)
{
    const enum fault *fault = user;
    const uint8_t *in = from;
    if (bytes * 2 != want || *fault == REFUSES)
        return -1;
    for (size_t i = 0; i < want; i++)
        ((uint8_t *)to)[i] = (uint8_t)(in[i / 2] - (uint8_t)arg + (*fault == OTHER_BYTES && i == 7));
    return 0;
}

static enum fault fault;

static paramo_filter half(void)
{
    return (paramo_filter){.size = sizeof(paramo_filter),
                           .name = "half",
                           .meta = "ADD",
                           .whole = 1,
                           .min = 0,
                           .max = 9,
                           .preset = 3,
                           .user = &fault,
                           .encode = half_encode,
                           .decode = half_decode};
}

static void refused(paramo_filter f, const char *why)
{
    assert_int_equal(filter_users_register(&f), PARAMO_E_INVALID);
    if (!strstr(err_text(), why))
        fail_msg("'%s' does not say '%s'", err_text(), why);
}

static void definitions_are_checked(void **state)
{
    (void)state;
    paramo_filter f = half();
    static const char *const names[] = {
        "", "Half", "a-b", "none", "a,b", "a:b", "thirty_two_bytes_are_one_too_many"};
    filter_users_forget();
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        f.name = names[i];
        refused(f, "the name of a filter");
    }
    f.name = "lz4";
    refused(f, "\"lz4\" exists already");
    f = half();
    f.decode = NULL;
    refused(f, "needs round, or encode and decode");
    f.encode = NULL;
    refused(f, "needs round, or encode and decode");
    f = half();
    f.preset = 10;
    refused(f, "bounds");
    f.preset = NAN;
    f.min = 10;
    refused(f, "bounds");
    f = half();
    f.size--;
    refused(f, "size");
    f = half();
    assert_int_equal(filter_users_register(&f), PARAMO_OK);
    refused(f, "\"half\" exists already");
    char name[] = "name_0"; /* it is copied */
    f.name = name;
    for (unsigned i = 1; i < FILTER_USERS_MAX; i++, name[5]++)
        assert_int_equal(filter_users_register(&f), PARAMO_OK);
    refused(f, "at most 8");
    assert_int_equal(registry_count(), FILTER_SLOTS);
    for (unsigned i = 0; i < registry_count(); i++) {
        const struct filter_ops *ops = registry_at(i);
        assert_int_equal(registry_index(ops), i);
        assert_ptr_equal(registry_of_wire(ops->id, ops->hash), ops);
        assert_ptr_equal(registry_of_name(ops->name, strlen(ops->name)), ops);
    }
    assert_null(registry_of_wire(FILTER_ID_USER, 1));
    filter_users_forget();
}

static struct filter_chain parsed(const char *text)
{
    struct filter_chain chain;
    if (filter_chain_parse(text, FILTER_PUSH, &chain))
        fail_msg("%s: %s", text, err_text());
    return chain;
}

static void chains_name_them(void **state)
{
    (void)state;
    paramo_filter f = half();
    struct filter_chain chain;
    filter_users_forget();
    assert_int_equal(filter_chain_parse("half", FILTER_PUSH, &chain), PARAMO_E_INVALID);
    assert_int_equal(filter_users_register(&f), PARAMO_OK);
    assert_true(parsed("half").at[0].arg == 3.f);
    assert_true(parsed("fixed:2,keycache,half:5,lz4").at[2].arg == 5.f);
    assert_int_equal(filter_chain_parse("lz4,half", FILTER_PUSH, &chain), PARAMO_E_INVALID);
    assert_non_null(strstr(err_text(), "half must come before lz4"));
    assert_int_equal(filter_chain_parse("half,fixed:2", FILTER_PUSH, &chain), PARAMO_E_INVALID);
    assert_int_equal(filter_chain_parse("half:10", FILTER_PUSH, &chain), PARAMO_E_INVALID);
    filter_users_forget();
}

/* What travels gives the same values back, or the filter is left out. */
static void values_come_back(void **state)
{
    (void)state;
    struct bufpool pool;
    struct filter_tools tools = {0};
    struct filter_counts counts = {0};
    paramo_filter f = half();
    filter_users_forget();
    assert_int_equal(filter_users_register(&f), PARAMO_OK);
    struct filter_coder coder = {
        .env = env_real(), .capabilities = CAPABILITIES | filter_users_capabilities(), .counts = &counts};
    bufpool_init(&pool, 0);
    for (fault = RIGHT; fault <= REFUSES; fault++) {
        struct filter_run run = {.chain = parsed("half:4")};
        uint8_t vals[4000], sent[4000], body_bytes[FILTER_ENVELOPE_MAX];
        for (unsigned i = 0; i < sizeof vals; i++)
            vals[i] = (uint8_t)mix64(i / 2);
        struct filter_message m = {.use = FILTER_OF_PUSH,
                                   .count = 1000,
                                   .dtype = PARAMO_F32,
                                   .value_bytes = 4,
                                   .tools = &tools,
                                   .memory = {.pool = &pool}};
        m.seg[WIRE_SEG_VALS] = (struct van_seg){.data = vals, .len = sizeof vals};
        struct van_seg body;
        assert_int_equal(filter_encode(&coder, &run, NULL, &m, &body), fault == RIGHT);
        if (fault == RIGHT) {
            assert_int_equal(m.seg[WIRE_SEG_VALS].len, sizeof vals / 2);
            memcpy(sent, m.seg[WIRE_SEG_VALS].data, sizeof vals / 2);
            memcpy(body_bytes, body.data, body.len);
            struct filter_message back = m;
            back.memory = (struct filter_memory){.pool = &pool};
            back.seg[WIRE_SEG_VALS].data = sent;
            body.data = body_bytes;
            assert_int_equal(filter_decode(&coder, &body, &back, NULL), PARAMO_OK);
            assert_memory_equal(back.seg[WIRE_SEG_VALS].data, vals, sizeof vals);
            filter_memory_give(&back.memory);
            filter_users_forget(); /* another process does not have it */
            back.seg[WIRE_SEG_VALS] = (struct van_seg){.data = sent, .len = sizeof vals / 2};
            assert_int_equal(filter_decode(&coder, &body, &back, NULL), PARAMO_E_UNSUPPORTED);
            assert_int_equal(filter_users_register(&f), PARAMO_OK);
            coder.capabilities = CAPABILITIES; /* it was not agreed on */
            assert_int_equal(filter_decode(&coder, &body, &back, NULL), PARAMO_E_PROTOCOL);
            coder.capabilities |= filter_users_capabilities();
            body_bytes[body.len - 1] = 0xff; /* bytes that it would make */
            assert_int_equal(filter_decode(&coder, &body, &back, NULL), PARAMO_E_PROTOCOL);
        }
        filter_memory_give(&m.memory);
    }
    assert_int_equal(counts.of[FILTER_COUNT][FILTER_PUSH].messages, 1);
    assert_int_equal(counts.of[FILTER_COUNT][FILTER_PUSH].skipped, 3);
    assert_int_equal(pool.out, 0);
    bufpool_fini(&pool);
    filter_users_forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(definitions_are_checked),
                                       cmocka_unit_test(chains_name_them),
                                       cmocka_unit_test(values_come_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
