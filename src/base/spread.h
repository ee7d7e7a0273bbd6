/*
 * The distribution of numbers, such as durations: a count per size class, with eight classes per doubling. A
 * quantile is at most an eighth too high, however many numbers there are. Classes are exact below 8. The last
 * one has no upper end: it counts all numbers from 15 * 2^30 on. Pure; one owner. Tests: test/base/test_spread.c.
 */
#ifndef BASE_SPREAD_H
#define BASE_SPREAD_H

#include <stdint.h>

enum { SPREAD_CLASSES = 256 };

/* Zeroed: no numbers. */
struct spread {
    uint64_t count, max;
    uint64_t in[SPREAD_CLASSES];
};

unsigned spread_class(uint64_t value);
void spread_add(struct spread *s, uint64_t value);
void spread_join(struct spread *to, const struct spread *from);
/* The quantile of a share (0 to 1): the upper end of its class, but at most the greatest number. 0 without
 * numbers. */
uint64_t spread_quantile(const struct spread *s, double share);

#endif
