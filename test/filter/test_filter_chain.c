/* Chains as users write them: what is read, what is refused and why, and what fits which table. */
#include <stdio.h>
#include <string.h>

#include "filter/filter_chain.h"
#include "filter/registry.h"
#include "unit.h"

static struct filter_chain parsed(const char *text, enum filter_direction direction)
{
    struct filter_chain chain;
    if (filter_chain_parse(text, direction, &chain))
        fail_msg("%s: %s", text, err_text());
    return chain;
}

static void refused(const char *text, enum filter_direction direction, const char *why)
{
    struct filter_chain chain = {.count = 77};
    assert_int_equal(filter_chain_parse(text, direction, &chain), PARAMO_E_INVALID);
    assert_int_equal(chain.count, 77); /* outputs are set on success only */
    if (!strstr(err_text(), why))
        fail_msg("%s: '%s' does not say '%s'", text, err_text(), why);
}

static void chains_are_read(void **state)
{
    (void)state;
    char text[FILTER_CHAIN_TEXT];
    assert_int_equal(parsed("", FILTER_PUSH).count, 0);
    assert_int_equal(parsed("none", FILTER_PULL).count, 0);
    struct filter_chain chain = parsed("keycache,zstd:3", FILTER_PULL);
    assert_int_equal(chain.count, 2);
    assert_ptr_equal(chain.at[0].ops, &filter_keycache);
    assert_ptr_equal(chain.at[1].ops, &filter_zstd);
    assert_true(chain.at[1].arg == 3.f);
    filter_chain_text(&chain, text);
    assert_string_equal(text, "keycache,zstd:3");
    assert_true(parsed("zstd", FILTER_PUSH).at[0].arg == 1.f); /* its default */
    assert_true(filter_chain_has(&chain, FILTER_COMPRESSES));
    assert_false(filter_chain_has(&chain, FILTER_ROUNDS));
}

static void wrong_chains_are_refused(void **state)
{
    (void)state;
    refused(
        "gzip", FILTER_PUSH,
        "there is no filter \"gzip\"; the filters are topk, threshold, skip, significant, keycache, fixed, "
        "bf16, fp16, lz4");
    refused("lz4,", FILTER_PUSH, "there is no filter \"\"");
    refused("lz4:3", FILTER_PUSH, "takes no argument");
    refused("zstd:", FILTER_PUSH, "a whole number from 1 to 3");
    refused("zstd:4", FILTER_PUSH, "a whole number from 1 to 3");
    refused("zstd:1.5", FILTER_PUSH, "a whole number from 1 to 3");
    refused("zstd: 1", FILTER_PUSH, "a whole number from 1 to 3");
    refused("zstd:nan", FILTER_PUSH, "a whole number from 1 to 3");
    refused("keycache,keycache", FILTER_PUSH, "twice");
    refused("lz4,zstd", FILTER_PUSH, "not both");
    refused("lz4,keycache", FILTER_PUSH, "keycache must come before lz4");
    refused("fixed", FILTER_PUSH, "filter fixed needs an argument: fixed:BYTES");
    refused("fixed:0", FILTER_PULL, "a whole number from 1 to 4");
    refused("fixed:5", FILTER_PUSH, "a whole number from 1 to 4");
    refused("bf16:2", FILTER_PUSH, "takes no argument");
    refused("bf16,fixed:2", FILTER_PUSH, "a chain has bf16 or fixed, not both");
    refused("lz4,fp16", FILTER_PUSH, "fp16 must come before lz4");
}

static void rounding_needs_floats(void **state)
{
    (void)state;
    struct filter_chain chain = parsed("keycache,fixed:2,lz4", FILTER_PUSH);
    char text[FILTER_CHAIN_TEXT];
    filter_chain_text(&chain, text);
    assert_string_equal(text, "fixed:2,keycache,lz4"); /* in the order in which they are applied */
    for (unsigned dtype = PARAMO_F32; dtype <= PARAMO_U8; dtype++) {
        struct filter_table table = {.dtype = (paramo_dtype)dtype};
        bool fits = dtype <= PARAMO_F64;
        assert_int_equal(filter_chain_fits(&chain, &table, FILTER_PUSH),
                         fits ? PARAMO_OK : PARAMO_E_UNSUPPORTED);
        assert_int_equal(filter_chain_fitting(&chain, &table, FILTER_PUSH).count, fits ? 3 : 2);
    }
}

static void both_directions_are_read(void **state)
{
    (void)state;
    struct filter_chain chains[FILTER_DIRECTIONS] = {{0}};
    assert_int_equal(filter_chains_parse("pull=lz4", chains), PARAMO_OK);
    assert_int_equal(chains[FILTER_PUSH].count, 0);
    assert_int_equal(chains[FILTER_PULL].count, 1);
    assert_int_equal(filter_chains_parse("push=keycache,lz4;pull=none", chains), PARAMO_OK);
    assert_int_equal(chains[FILTER_PUSH].count, 2);
    assert_int_equal(chains[FILTER_PULL].count, 0);
    assert_int_equal(filter_chains_parse("push=lz4;push=zstd", chains), PARAMO_E_INVALID);
    assert_non_null(strstr(err_text(), "push= is given twice"));
    assert_int_equal(filter_chains_parse("lz4", chains), PARAMO_E_INVALID);
    assert_int_equal(filter_chains_parse("push=lz4;", chains), PARAMO_E_INVALID);
    assert_int_equal(filter_chains_parse("push=gzip", chains), PARAMO_E_INVALID);
    assert_non_null(strstr(err_text(), "push=gzip: there is no filter"));
    assert_int_equal(chains[FILTER_PUSH].count, 2); /* as before */
}

/* Every filter of the table is whole, and no two have a name, an id or a capability in common. */
static void every_filter_is_whole(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FILTER_COUNT; i++) {
        const struct filter_ops *f = filter_at(i);
        assert_int_equal(registry_index(f), i);
        assert_ptr_equal(registry_of_name(f->name, strlen(f->name)), f);
        assert_ptr_equal(registry_of_wire(f->id, 0), f);
        assert_in_range(f->id, 1, FILTER_ID_MAX);
        assert_true(f->directions && f->directions < 1 << FILTER_DIRECTIONS);
        assert_non_null(f->help);
        assert_true(f->help[0] != 0 && f->help[strlen(f->help) - 1] != '.');
        assert_int_equal(f->codes != 0, f->encode != NULL);
        assert_int_equal(f->codes != 0, f->decode != NULL);
        assert_int_equal(f->codes != 0, f->capability != 0);
        assert_true(f->codes || f->select || f->round);
        assert_true(!f->meta || f->min <= f->max);
        for (unsigned k = 0; k < i; k++)
            assert_false(filter_at(k)->id == f->id || filter_at(k)->capability & f->capability);
    }
    assert_null(registry_of_name("lz", 2));
    assert_null(registry_of_wire(0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_are_read), cmocka_unit_test(wrong_chains_are_refused),
        cmocka_unit_test(rounding_needs_floats), cmocka_unit_test(both_directions_are_read),
        cmocka_unit_test(every_filter_is_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
