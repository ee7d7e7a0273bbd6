#include "table/keysort.h"

#include <string.h>

enum { DIGITS = 8, VALUES = 256 };

/* Radix sort from the lowest byte; bytes that are the same in all keys (small ids have several) cost nothing.
 */
void keysort(uint64_t *keys, uint64_t *scratch, size_t n)
{
    if (n < 2) {
        return;
    }
    size_t counts[DIGITS][VALUES];
    memset(counts, 0, sizeof counts);
    for (size_t i = 0; i < n; i++) {
        for (unsigned d = 0; d < DIGITS; d++) {
            counts[d][keys[i] >> (8 * d) & 0xff]++;
        }
    }
    uint64_t *from = keys;
    uint64_t *to = scratch;
    for (unsigned d = 0; d < DIGITS; d++) {
        size_t *count = counts[d];
        if (count[from[0] >> (8 * d) & 0xff] == n) {
            continue;
        }
        size_t start = 0;
        for (unsigned v = 0; v < VALUES; v++) {
            size_t here = count[v];
            count[v] = start;
            start += here;
        }
        for (size_t i = 0; i < n; i++) {
            to[count[from[i] >> (8 * d) & 0xff]++] = from[i];
        }
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys) {
        memcpy(keys, from, n * sizeof *keys);
    }
}
