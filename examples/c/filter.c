/* A filter of our own: where most gradients are zeros, only the others travel, and one bit for each value. Every
 * process of the job registers it, servers, too. Alone nothing travels, so nothing is filtered; "paramo run -s 1 -w 1
 * -- ./filter" runs it as a job. */
#include <inttypes.h>
#include <paramo/filter.h>
#include <string.h>

#include "example.h"
#include "nonzero.h"

enum { KEYS = 1000, DIM = 8 };

static void work(paramo_node *node, paramo_worker *worker)
{
    static uint64_t keys[KEYS];
    static float vals[KEYS * DIM], pulled[KEYS * DIM];
    paramo_filter_counter counters[4];
    paramo_table *table = adding_table(worker, "rows", PARAMO_F32, DIM, 0);
    (void)node;
    check(paramo_table_filter(table, PARAMO_FILTER_PUSH, "nonzero"));
    for (uint64_t i = 0; i < KEYS; i++)
        keys[i] = i;
    for (size_t i = 0; i < KEYS * DIM; i += 10)
        vals[i] = (float)i;
    push(worker, table, keys, KEYS, vals, KEYS * DIM);
    pull(worker, table, keys, KEYS, pulled, KEYS * DIM);
    printf("the values are %s\n", memcmp(vals, pulled, sizeof vals) ? "others" : "the same");
    size_t n = paramo_filter_counters(worker, counters, 4);
    for (size_t i = 0; i < n && i < 4; i++)
        printf("%s: %" PRIu64 " bytes became %" PRIu64 "\n", counters[i].name, counters[i].bytes_before,
               counters[i].bytes_after);
}

int main(void)
{
    check(paramo_filter_register(&nonzero));
    return run(work);
}
