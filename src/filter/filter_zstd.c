/* zstd:L: all bytes of a message, compressed by Zstandard (Collet and Kucherawy, RFC 8878) at level L, each
 * segment by itself. Levels above 3 take longer for a chunk of half a MiB than a step of a lane may. */
#include <zstd.h>

#include "filter/compressing.h"
#include "wire/capability.h"

static size_t pack(struct filter_tools *tools, int level, const void *from, size_t bytes, void *to,
                   size_t room)
{
    if (!tools->zstd_out)
        tools->zstd_out = ZSTD_createCCtx();
    if (!tools->zstd_out)
        return 0;
    size_t packed = ZSTD_compressCCtx(tools->zstd_out, to, room, from, bytes, level);
    return ZSTD_isError(packed) ? 0 : packed;
}

static bool unpack(struct filter_tools *tools, const void *from, size_t bytes, void *to, size_t want)
{
    if (!tools->zstd_in)
        tools->zstd_in = ZSTD_createDCtx();
    return tools->zstd_in && ZSTD_decompressDCtx(tools->zstd_in, to, want, from, bytes) == want;
}

static const struct compressor zstd = {.bound = ZSTD_compressBound, .pack = pack, .unpack = unpack};

static bool zstd_encode(const struct filter_setting *setting, struct filter_message *m, struct writer *params)
{
    return compressing_encode(&zstd, (int)setting->arg, m, params);
}

static paramo_err zstd_decode(struct reader *params, struct filter_message *m)
{
    return compressing_decode(&zstd, "zstd", params, m);
}

const struct filter_ops filter_zstd = {
    .name = "zstd",
    .id = 3,
    .rank = FILTER_COMPRESSES,
    .directions = 1 << FILTER_PUSH | 1 << FILTER_PULL,
    .codes = FILTER_OF_PUSH | FILTER_OF_ASK | FILTER_OF_ANSWER,
    .capability = CAPABILITY_ZSTD,
    .whole = true,
    .meta = "LEVEL",
    .min = 1,
    .max = 3,
    .preset = 1,
    .help = "compresses all bytes; a higher level takes longer",
    .encode = zstd_encode,
    .decode = zstd_decode,
};
