#include "server/shard/dedup.h"

#include <assert.h>
#include <string.h>

static uint64_t bit_of(uint64_t number)
{
    return UINT64_C(1) << (number % 64);
}

static unsigned word_of(uint64_t number)
{
    return (unsigned)(number % DATA_WINDOW / 64);
}

void dedup_init(struct dedup *d)
{
    memset(d, 0, sizeof *d);
    d->floor = 1;
}

void dedup_raise(struct dedup *d, uint64_t floor)
{
    assert(d->floor > 0);
    if (floor <= d->floor)
        return;
    if (floor - d->floor >= DATA_WINDOW) {
        memset(d->bits, 0, sizeof d->bits);
    } else {
        uint64_t n = d->floor;
        for (; n < floor && n % 64; n++)
            d->bits[word_of(n)] &= ~bit_of(n);
        for (; floor - n >= 64; n += 64)
            d->bits[word_of(n)] = 0;
        for (; n < floor; n++)
            d->bits[word_of(n)] &= ~bit_of(n);
    }
    d->floor = floor;
    assert(!(d->bits[word_of(floor - 1)] & bit_of(floor - 1))); /* of the window's last number */
}

enum dedup_state dedup_check(const struct dedup *d, uint64_t number)
{
    if (number < d->floor)
        return DEDUP_OLD;
    if (number - d->floor >= DATA_WINDOW)
        return DEDUP_BEYOND;
    return d->bits[word_of(number)] & bit_of(number) ? DEDUP_DONE : DEDUP_NEW;
}

void dedup_record(struct dedup *d, uint64_t number)
{
    assert(dedup_check(d, number) == DEDUP_NEW);
    d->bits[word_of(number)] |= bit_of(number);
}

void dedup_drop(struct dedup *d, uint64_t number)
{
    assert(dedup_check(d, number) == DEDUP_DONE);
    d->bits[word_of(number)] &= ~bit_of(number);
}
