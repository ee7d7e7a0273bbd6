/* The filter of filter.c and plugin.c. */
#include "nonzero.h"

#include <inttypes.h>
#include <string.h>

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

const paramo_filter nonzero = {.size = sizeof nonzero, .name = "nonzero", .encode = encode, .decode = decode};
