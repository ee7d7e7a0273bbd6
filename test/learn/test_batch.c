#include "learn/data/batch.h"
#include "learn/support_learn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* Every property that batch.h states, checked directly. */
static void check(const struct block *b, size_t batch_rows, const struct batch_list *list)
{
    assert_int_equal(list->n, (b->rows + batch_rows - 1) / batch_rows);
    size_t row = 0, least = SIZE_MAX, most = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct batch *t = &list->batch[i];
        least = t->rows < least ? t->rows : least;
        most = t->rows > most ? t->rows : most;
        assert_true(t->rows >= 1 && t->rows <= batch_rows);
        assert_true(t->unique <= list->most_unique && t->rows <= list->most_rows);
        assert_ptr_equal(t->label, b->label + row);
        assert_ptr_equal(t->weight, b->weight != NULL ? b->weight + row : NULL);
        char *used = calloc(t->unique, 1);
        for (size_t k = 1; k < t->unique; k++)
            assert_true(t->key[k - 1] < t->key[k]);
        assert_true(t->key[t->unique - 1] == BATCH_BIAS_KEY);
        used[t->unique - 1] = 1;
        for (size_t r = 0; r < t->rows; r++, row++) {
            assert_int_equal(t->start[r], b->offset[row]);
            for (uint32_t f = b->offset[row]; f < b->offset[row + 1]; f++) {
                uint32_t place = t->index[f - t->start[0]];
                assert_true(place < t->unique);
                assert_true(t->key[place] == b->key[f]);
                used[place] = 1;
                if (b->value != NULL)
                    assert_true(t->value[f - t->start[0]] == b->value[f]);
            }
        }
        for (size_t k = 0; k < t->unique; k++)
            assert_true(used[k]); /* no key that no row has */
        free(used);
    }
    assert_int_equal(row, b->rows);
    if (list->n > 0)
        assert_true(most - least <= 1);
}

static void test_random_blocks(void **state)
{
    (void)state;
    struct batcher *batcher;
    struct batch_list list = {0};
    assert_int_equal(batcher_new(&batcher), PARAMO_OK);
    uint64_t s = 3;
    for (int i = 0; i < 300; i++) {
        size_t rows = 1 + draw(&s) % 200;
        uint64_t keys = 1 + draw(&s) % 500, stride = i % 3 == 0 ? 1 : i % 3 == 1 ? 257 : draw(&s);
        struct block b = random_block(draw(&s), rows, draw(&s) % 20, keys, stride, i % 2);
        size_t batch_rows = 1 + draw(&s) % 64;
        assert_int_equal(batcher_cut(batcher, &b, batch_rows, &list), PARAMO_OK);
        check(&b, batch_rows, &list);
        block_free(&b);
    }
    batch_list_free(&list);
    batcher_free(batcher);
}

/* The same batches from a block with places: with its keys, where small batches are hashed, and without. */
static void test_places_instead_of_keys(void **state)
{
    (void)state;
    struct batcher *batcher;
    struct batch_list list = {0};
    assert_int_equal(batcher_new(&batcher), PARAMO_OK);
    uint64_t s = 4;
    for (int i = 0; i < 200; i++) {
        struct block b = random_block(draw(&s), draw(&s) % 400, draw(&s) % 20, 1 + draw(&s) % 3000,
                                      i % 3 == 0 ? 1 : draw(&s), i % 2);
        struct block_keys *keys;
        if (i % 5 == 0 && b.features > 0)
            b.key[0] = BATCH_BIAS_KEY;
        assert_int_equal(batcher_keys(batcher, &b, &keys), PARAMO_OK);
        for (size_t k = 1; k < keys->n; k++)
            assert_true(keys->key[k - 1] < keys->key[k]);
        for (int without = 0; without < 2; without++) {
            struct block with = block_with_keys(&b, keys);
            const size_t batch_rows = 1 + draw(&s) % 64;
            if (without)
                with.key = NULL;
            assert_int_equal(batcher_cut(batcher, &with, batch_rows, &list), PARAMO_OK);
            check(&b, batch_rows, &list);
            for (size_t k = 0; k < list.n; k++) {
                const struct batch *t = &list.batch[k];
                assert_true(t->keyset == (t->places ? keys->keyset : NULL) && (t->places || !without));
                for (size_t u = 0; t->places && u < t->unique; u++)
                    assert_true(keys->key[t->places[u]] == t->key[u]);
            }
        }
        block_keys_free(keys);
        block_free(&b);
    }
    batch_list_free(&list);
    batcher_free(batcher);
}

/* A shuffled block with keys and places gives the batches of one with keys alone. */
static void test_shuffled_places(void **state)
{
    (void)state;
    struct batcher *batcher;
    struct batch_list by_keys = {0}, by_places = {0};
    assert_int_equal(batcher_new(&batcher), PARAMO_OK);
    uint64_t s = 6;
    for (int i = 0; i < 50; i++) {
        struct block b = random_block(draw(&s), draw(&s) % 400, draw(&s) % 20, 1 + draw(&s) % 3000, 1, i % 2),
                     plain, placed;
        struct block_keys *keys;
        const uint64_t seed = draw(&s);
        const size_t batch_rows = 1 + draw(&s) % 64;
        assert_int_equal(batcher_keys(batcher, &b, &keys), PARAMO_OK);
        const struct block with = block_with_keys(&b, keys);
        assert_int_equal(block_shuffle(&b, 100, seed, &plain), PARAMO_OK);
        assert_int_equal(block_shuffle(&with, 100, seed, &placed), PARAMO_OK);
        assert_int_equal(batcher_cut(batcher, &plain, batch_rows, &by_keys), PARAMO_OK);
        assert_int_equal(batcher_cut(batcher, &placed, batch_rows, &by_places), PARAMO_OK);
        assert_int_equal(by_keys.n, by_places.n);
        for (size_t k = 0; k < by_keys.n; k++) {
            const struct batch *x = &by_keys.batch[k], *y = &by_places.batch[k];
            assert_true(x->rows == y->rows && x->unique == y->unique && !x->places && y->places);
            assert_memory_equal(x->key, y->key, x->unique * sizeof *x->key);
            assert_memory_equal(x->start, y->start, (x->rows + 1) * sizeof *x->start);
            for (size_t f = 0; f < x->start[x->rows] - x->start[0]; f++)
                assert_int_equal(x->index[f], y->index[f]);
        }
        block_free(&plain);
        block_free(&placed);
        block_keys_free(keys);
        block_free(&b);
    }
    batch_list_free(&by_keys);
    batch_list_free(&by_places);
    batcher_free(batcher);
}

/* The shares of all workers are the whole batches, row for row. */
static void test_shares(void **state)
{
    (void)state;
    struct batcher *batcher;
    struct batch_list whole = {0}, part = {0};
    assert_int_equal(batcher_new(&batcher), PARAMO_OK);
    uint64_t s = 5;
    for (int i = 0; i < 100; i++) {
        struct block b =
            random_block(draw(&s), draw(&s) % 300, draw(&s) % 20, 1 + draw(&s) % 500, 257, i % 2);
        const size_t batch_rows = 1 + draw(&s) % 20;
        const uint32_t shares = 1 + (uint32_t)(draw(&s) % 5);
        size_t rows[300] = {0};
        assert_int_equal(batcher_cut(batcher, &b, shares * batch_rows, &whole), PARAMO_OK);
        for (uint32_t share = 0; share < shares; share++) {
            assert_int_equal(batcher_cut_share(batcher, &b, batch_rows, share, shares, &part), PARAMO_OK);
            assert_int_equal(part.n, whole.n);
            for (size_t k = 0; k < part.n; k++) {
                const struct batch *t = &part.batch[k], *w = &whole.batch[k];
                assert_true(t->rows <= batch_rows);
                assert_ptr_equal(t->label, w->label + rows[k]); /* after the share before it */
                assert_ptr_equal(t->start, w->start + rows[k]);
                rows[k] += t->rows;
                assert_true(t->key[t->unique - 1] == BATCH_BIAS_KEY && (t->rows || t->unique == 1));
                for (size_t f = 0; f < t->start[t->rows] - t->start[0]; f++)
                    assert_true(t->key[t->index[f]] == b.key[t->start[0] + f]);
            }
        }
        for (size_t k = 0; k < whole.n; k++)
            assert_int_equal(rows[k], whole.batch[k].rows);
        block_free(&b);
    }
    batch_list_free(&whole);
    batch_list_free(&part);
    batcher_free(batcher);
}

static void test_edge_keys(void **state)
{
    (void)state;
    struct batcher *batcher;
    struct batch_list list = {0};
    assert_int_equal(batcher_new(&batcher), PARAMO_OK);
    struct block b;
    const struct block_shape shape = {.rows = 3, .features = 4};
    assert_int_equal(block_alloc(&b, &shape), PARAMO_OK);
    uint32_t offset[] = {0, 2, 2, 4};
    uint64_t key[] = {0, UINT64_MAX, UINT64_MAX, UINT64_MAX - 1};
    for (int i = 0; i < 4; i++) {
        b.offset[i] = offset[i];
        b.key[i] = key[i];
    }
    for (int i = 0; i < 3; i++)
        b.label[i] = 0;
    for (size_t batch_rows = 1; batch_rows < 5; batch_rows++) {
        assert_int_equal(batcher_cut(batcher, &b, batch_rows, &list), PARAMO_OK);
        check(&b, batch_rows, &list);
    }
    assert_int_equal(list.n, 1);
    assert_int_equal(list.batch[0].unique, 3); /* the feature of the bias's id and the bias are one key */
    b.rows = 0;
    assert_int_equal(batcher_cut(batcher, &b, 7, &list), PARAMO_OK);
    assert_int_equal(list.n, 0);
    block_free(&b);
    batch_list_free(&list);
    batcher_free(batcher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_blocks), cmocka_unit_test(test_shuffled_places),
        cmocka_unit_test(test_shares),        cmocka_unit_test(test_places_instead_of_keys),
        cmocka_unit_test(test_edge_keys),
    };
    return cmocka_run_group_tests_name("batch", tests, NULL, NULL);
}
