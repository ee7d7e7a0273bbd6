/* A filter of our own: where most gradients are zeros, only the others travel, and one bit for each value. Every process
 * of the job registers it, servers, too. Alone nothing travels, so nothing is filtered; "paramo run -s 1 -w 1 -- ./filter"
 * runs it as a job. */
#include <inttypes.h>
#include <paramo/filter.h>
#include <string.h>

#include "example.h"

enum { KEYS = 1000, DIM = 8 };

/* One bit for each value of 4 bytes: is it not zero? Then those that are not. */
static size_t encode(void *user, float arg, const paramo_filter_data *data, void *to, size_t room)
{
    const uint32_t *from = data->from;
    size_t n = data->bytes / 4, at = (n + 7) / 8;
    uint8_t *out = to;
    (void)user;
    (void)arg;
    if (data->dtype != PARAMO_F32 || !data->typed || at > room)
        return 0;
    memset(out, 0, at);
    for (size_t i = 0; i < n; i++) {
        if (!from[i])
            continue;
        if (at + 4 > room)
            return 0; /* it would not pay */
        out[i / 8] |= (uint8_t)(1 << i % 8);
        memcpy(out + at, &from[i], 4);
        at += 4;
    }
    return at;
}

/* `from` may be anything that a peer sends: each length is checked. */
static int decode(void *user, float arg, const void *from, size_t bytes, void *to, size_t want)
{
    const uint8_t *in = from;
    size_t n = want / 4, at = (n + 7) / 8;
    (void)user;
    (void)arg;
    if (want % 4 || at > bytes)
        return -1;
    for (size_t i = 0; i < n; i++) {
        int there = in[i / 8] >> i % 8 & 1;
        if (there && at + 4 > bytes)
            return -1;
        memset((uint8_t *)to + 4 * i, 0, 4);
        if (there)
            memcpy((uint8_t *)to + 4 * i, in + at, 4);
        at += there ? 4 : 0;
    }
    return at == bytes ? 0 : -1;
}

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
    const paramo_filter nonzero = {
        .size = sizeof nonzero, .name = "nonzero", .encode = encode, .decode = decode};
    check(paramo_filter_register(&nonzero));
    return run(work);
}
