/*
 * How numbers are spread (how long things took): a count of each size class, eight classes to a doubling, so
 * that a quantile is at most an eighth too high, whatever the number of them. Classes are exact below 8, and
 * what is beyond 2^34 is in the last. Pure; one owner. Tests: test/base/test_spread.c.
 */
#ifndef BASE_SPREAD_H
#define BASE_SPREAD_H

#include <stdint.h>

enum { SPREAD_CLASSES = 256 };

/* Zeroed: none. */
struct spread {
    uint64_t count, max;
    uint64_t in[SPREAD_CLASSES];
};

unsigned spread_class(uint64_t value);
void spread_add(struct spread *s, uint64_t value);
void spread_join(struct spread *to, const struct spread *from);
/* The greatest value that a share (0 to 1) of them may have had: the upper end of its class, but no more than
 * the greatest that there was. 0: there are none. */
uint64_t spread_quantile(const struct spread *s, double share);

#endif
