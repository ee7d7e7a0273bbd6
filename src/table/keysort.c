#include "table/keysort.h"

#include <assert.h>
#include <string.h>

/* Radix sort from the lowest byte. Bytes that are equal in all keys (small ids have several) cost nothing. */
void keysort_start(struct keysort *sort, uint64_t *keys, uint64_t *scratch, size_t n)
{
    sort->from = keys;
    sort->to = scratch;
    sort->n = n;
    sort->at = 0;
    sort->pass = n < 2 ? KEYSORT_DIGITS + 1 : 0;
    memset(sort->counts, 0, sizeof sort->counts);
}

/* Computes where the keys of each byte value begin. False: all have the same value. */
static bool pass_begin(struct keysort *sort)
{
    unsigned digit = sort->pass - 1;
    size_t *count = sort->counts[digit], start = 0;
    if (count[sort->from[0] >> (8 * digit) & 0xff] == sort->n)
        return false;
    for (unsigned v = 0; v < KEYSORT_VALUES; v++) {
        size_t here = count[v];
        count[v] = start;
        start += here;
    }
    return true;
}

static void count_keys(struct keysort *sort, size_t end)
{
    for (size_t i = sort->at; i < end; i++)
        for (unsigned d = 0; d < KEYSORT_DIGITS; d++)
            sort->counts[d][sort->from[i] >> (8 * d) & 0xff]++;
}

static void move_keys(struct keysort *sort, size_t end)
{
    unsigned shift = 8 * (sort->pass - 1);
    size_t *count = sort->counts[sort->pass - 1];
    const uint64_t *from = sort->from;
    uint64_t *to = sort->to;
    for (size_t i = sort->at; i < end; i++)
        to[count[from[i] >> shift & 0xff]++] = from[i];
}

static void pass_end(struct keysort *sort)
{
    assert(sort->at == sort->n);
    assert(sort->pass <= KEYSORT_DIGITS);
    if (sort->pass > 0) {
        uint64_t *swap = sort->from;
        sort->from = sort->to;
        sort->to = swap;
    }
    sort->at = 0;
    do {
        sort->pass++;
    } while (sort->pass <= KEYSORT_DIGITS && !pass_begin(sort));
}

bool keysort_step(struct keysort *sort, size_t keys)
{
    if (sort->pass > KEYSORT_DIGITS)
        return true;
    assert(sort->at < sort->n);
    assert(sort->from != sort->to);
    size_t end = sort->n - sort->at < keys ? sort->n : sort->at + keys;
    if (sort->pass == 0)
        count_keys(sort, end);
    else
        move_keys(sort, end);
    sort->at = end;
    if (end == sort->n)
        pass_end(sort);
    return sort->pass > KEYSORT_DIGITS;
}

/* Fewer keys than this are sorted by insertion, which is less work than the counts. Arbitrary. */
enum { FEW = 64 };

static void sort_few(uint64_t *keys, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint64_t key = keys[i];
        size_t at = i;
        for (; at > 0 && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

void keysort(uint64_t *keys, uint64_t *scratch, size_t n)
{
    struct keysort sort;
    if (n < FEW) {
        sort_few(keys, n);
        return;
    }
    keysort_start(&sort, keys, scratch, n);
    while (!keysort_step(&sort, n)) {
    }
    if (sort.from != keys)
        memcpy(keys, sort.from, n * sizeof *keys);
}
