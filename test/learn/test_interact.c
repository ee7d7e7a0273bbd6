/* Features of pairs of fields, against a slow count of what they are defined as. */
#include "learn/data/interact.h"
#include "learn/support_learn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS   400
#define FIELDS 4

static struct block with_fields(uint64_t seed, int values)
{
    struct block b = random_block(seed, ROWS, 9, 40, 1, values);
    uint64_t state = seed;
    uint16_t *field = calloc(b.features + 1, sizeof *field);
    assert_non_null(field);
    for (size_t i = 0; i < b.features; i++)
        field[i] = (uint16_t)(draw(&state) % FIELDS);
    b.field = field;
    return b;
}

static float value_at(const struct block *b, size_t i)
{
    return b->value ? b->value[i] : 1.0f;
}

static void rows_have_their_pairs(void **s)
{
    (void)s;
    struct interactions in = {0};
    assert_true(interactions_add(&in, 2, 0) && interactions_add(&in, 1, 1) && interactions_add(&in, 3, 2));
    assert_false(interactions_add(&in, 0, 2));
    for (int values = 0; values < 2; values++)
        for (unsigned bits = 0; bits <= 7; bits += 7) {
            struct block from = with_fields(3 + bits, values), to;
            assert_int_equal(interact_block(&in, bits, &from, &to), PARAMO_OK);
            assert_null(to.field);
            assert_memory_equal(to.label, from.label, ROWS * sizeof *to.label);
            for (size_t r = 0; r < ROWS; r++) {
                const size_t first = from.offset[r], n = from.offset[r + 1] - first;
                size_t at = to.offset[r];
                for (size_t i = 0; i < n; i++, at++)
                    assert_true(to.key[at] == from.key[first + i] &&
                                value_at(&to, at) == value_at(&from, first + i));
                for (uint32_t p = 0; p < in.n; p++)
                    for (size_t i = first; i < first + n; i++)
                        for (size_t j = first; j < first + n; j++) {
                            const int same = in.pair[p].a == in.pair[p].b;
                            if (from.field[i] != in.pair[p].a || from.field[j] != in.pair[p].b ||
                                (same && j <= i))
                                continue;
                            assert_true(value_at(&to, at) == value_at(&from, i) * value_at(&from, j));
                            assert_true(bits == 0 || to.key[at] < 128);
                            at++;
                        }
                assert_int_equal(at, to.offset[r + 1]);
            }
            free(from.field);
            block_free(&from);
            block_free(&to);
        }
}

/* The key of a pair depends on both keys and their order, and on nothing else. */
static void keys_tell_pairs_apart(void **s)
{
    (void)s;
    enum { KEYS = 200 };
    struct interactions in = {0};
    struct block from, to;
    const struct block_shape shape = {.rows = KEYS * KEYS, .features = 2 * KEYS * KEYS, .has_field = 1};
    assert_true(interactions_add(&in, 0, 1));
    assert_int_equal(block_alloc(&from, &shape), PARAMO_OK);
    for (uint32_t r = 0; r < KEYS * KEYS; r++) {
        from.label[r] = 0;
        from.offset[r] = 2 * r;
        from.key[2 * r] = r / KEYS;
        from.key[2 * r + 1] = r % KEYS;
        from.field[2 * r] = 0;
        from.field[2 * r + 1] = 1;
    }
    from.offset[KEYS * KEYS] = 2 * KEYS * KEYS;
    assert_int_equal(interact_block(&in, 0, &from, &to), PARAMO_OK);
    assert_int_equal(to.features, 3 * KEYS * KEYS);
    uint64_t *seen = calloc(1 << 20, sizeof *seen);
    assert_non_null(seen);
    for (size_t r = 0; r < KEYS * KEYS; r++) {
        const uint64_t key = to.key[3 * r + 2];
        size_t at = key % (1 << 20);
        for (; seen[at] != 0; at = (at + 1) % (1 << 20))
            assert_true(seen[at] != key);
        seen[at] = key;
    }
    free(seen);
    block_free(&from);
    block_free(&to);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_their_pairs),
        cmocka_unit_test(keys_tell_pairs_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
