#include "ring/runs.h"

#include <string.h>

/* Notes the partitions of a word whose shard is not that of the partition before. */
static void changes_note(const uint16_t owner[RING_PARTITIONS], unsigned word, uint8_t changes[64])
{
    const uint16_t *here = owner + 64 * (size_t)word, *before = word ? here - 1 : NULL;
    uint16_t first[64];
    if (word == 0) { /* partition 0 has none before it */
        first[0] = owner[0];
        memcpy(first + 1, owner, sizeof first - sizeof *first);
        before = first;
    }
    for (unsigned i = 0; i < 64; i++) /* without a branch, so that it becomes vector code */
        changes[i] |= here[i] != before[i];
}

/* Does the shard change at any partition of the word? In most words it does not. */
static bool changes_in(const uint16_t owner[RING_PARTITIONS], unsigned word)
{
    const uint16_t *here = owner + 64 * (size_t)word;
    return word ? memcmp(here, here - 1, 64 * sizeof *here) != 0
                : memcmp(here + 1, here, 63 * sizeof *here) != 0;
}

void ring_runs_add(const uint16_t *const owners[], unsigned count, uint64_t begins[PARTITION_WORDS])
{
    partition_set_add(begins, 0);
    for (unsigned word = 0; count && word < PARTITION_WORDS; word++) {
        uint8_t changes[64] = {0};
        bool any = false;
        for (unsigned k = 0; k < count; k++) {
            if (!changes_in(owners[k], word))
                continue;
            changes_note(owners[k], word, changes);
            any = true;
        }
        for (unsigned i = 0; any && i < 64; i += 8) {
            uint64_t eight;
            memcpy(&eight, changes + i, sizeof eight);
            /* gathers the lowest bit of each byte, that of the first byte lowest (little-endian) */
            begins[word] |= (eight * UINT64_C(0x0102040810204080) >> 56) << i;
        }
    }
}
