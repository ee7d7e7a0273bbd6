/* lz4: all bytes of a message, compressed by LZ4 (Collet), each segment by itself. */
#include <lz4.h>

#include "filter/compressing.h"
#include "wire/capability.h"

static size_t bound(size_t bytes)
{
    return (size_t)LZ4_compressBound((int)bytes);
}

static size_t pack(struct filter_tools *tools, int level, const void *from, size_t bytes, void *to,
                   size_t room)
{
    (void)tools;
    (void)level;
    int packed = LZ4_compress_default(from, to, (int)bytes, (int)room);
    return packed > 0 ? (size_t)packed : 0;
}

static bool unpack(struct filter_tools *tools, const void *from, size_t bytes, void *to, size_t want)
{
    (void)tools;
    return LZ4_decompress_safe(from, to, (int)bytes, (int)want) == (int)want;
}

static const struct compressor lz4 = {.bound = bound, .pack = pack, .unpack = unpack};

static bool lz4_encode(const struct filter_setting *setting, struct filter_message *m, struct writer *params)
{
    (void)setting;
    return compressing_encode(&lz4, 0, m, params);
}

static paramo_err lz4_decode(struct reader *params, struct filter_message *m)
{
    return compressing_decode(&lz4, "lz4", params, m);
}

const struct filter_ops filter_lz4 = {
    .name = "lz4",
    .id = 2,
    .rank = FILTER_COMPRESSES,
    .directions = 1 << FILTER_PUSH | 1 << FILTER_PULL,
    .codes = FILTER_OF_PUSH | FILTER_OF_ASK | FILTER_OF_ANSWER,
    .capability = CAPABILITY_LZ4,
    .help = "compresses all bytes, fast",
    .encode = lz4_encode,
    .decode = lz4_decode,
};
