#include "learn/io/decoder.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

struct decoder {
    enum decoder_kind kind;
    z_stream gz;
    ZSTD_DStream *zstd;
    int complete;    /* the position is between members or frames */
    int seen_member; /* gzip: at least one member has ended */
    int padding;     /* gzip: in the zeros after the last member, which tape drives add */
};

paramo_err decoder_detect(const unsigned char *head, size_t len, enum decoder_kind *kind)
{
    static const struct {
        unsigned char bytes[6];
        unsigned char len;
        const char *name;
    } others[] = {{{0xfd, '7', 'z', 'X', 'Z', 0}, 6, "xz"},
                  {{'B', 'Z', 'h'}, 3, "bzip2"},
                  {{0x04, 0x22, 0x4d, 0x18}, 4, "lz4"},
                  {{'P', 'K', 3, 4}, 4, "zip"}};
    *kind = DECODER_NONE;
    if (len >= 2 && head[0] == 0x1f && head[1] == 0x8b)
        *kind = DECODER_GZIP;
    else if (len >= 4 && head[0] == 0x28 && head[1] == 0xb5 && head[2] == 0x2f && head[3] == 0xfd)
        *kind = DECODER_ZSTD;
    else if (len >= 4 && (head[0] & 0xf0) == 0x50 && head[1] == 0x2a && head[2] == 0x4d && head[3] == 0x18)
        *kind = DECODER_ZSTD; /* starts with a skippable frame */
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (len >= others[i].len && memcmp(head, others[i].bytes, others[i].len) == 0) {
            return paramo_error_set(PARAMO_E_FORMAT,
                                    "%s data, which is not supported (gzip, zstd and plain text are)",
                                    others[i].name);
        }
    }
    return PARAMO_OK;
}

paramo_err decoder_open(enum decoder_kind kind, struct decoder **decoder)
{
    struct decoder *d = calloc(1, sizeof *d);
    if (!d)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a decoder");
    d->kind = kind;
    int ok;
    if (kind == DECODER_GZIP) {
        ok = inflateInit2(&d->gz, 15 + 16) == Z_OK;
    } else {
        d->zstd = ZSTD_createDStream();
        ok = d->zstd != NULL;
    }
    if (!ok) {
        free(d);
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a decoder");
    }
    *decoder = d;
    return PARAMO_OK;
}

void decoder_close(struct decoder *d)
{
    if (!d)
        return;
    if (d->kind == DECODER_GZIP)
        (void)inflateEnd(&d->gz);
    else
        (void)ZSTD_freeDStream(d->zstd);
    free(d);
}

int decoder_complete(const struct decoder *d)
{
    return d->complete;
}

static paramo_err run_gzip(struct decoder *d, const char *in, size_t len, size_t *pos, char *out, size_t cap,
                           size_t *got)
{
    *got = 0;
    if (d->complete && d->seen_member && (d->padding || in[*pos] != '\x1f')) { /* no further member */
        d->padding = 1;
        for (; *pos < len; ++*pos) {
            if (in[*pos] != 0) {
                return paramo_error_set(PARAMO_E_CORRUPT, "damaged gzip data: other bytes follow its end");
            }
        }
        return PARAMO_OK;
    }
    size_t n = len - *pos < INT_MAX ? len - *pos : INT_MAX;
    size_t m = cap < INT_MAX ? cap : INT_MAX;
    d->gz.next_in = (z_const Bytef *)(const void *)(in + *pos);
    d->gz.avail_in = (uInt)n;
    d->gz.next_out = (Bytef *)(void *)out;
    d->gz.avail_out = (uInt)m;
    d->complete = 0;
    int rc = inflate(&d->gz, Z_NO_FLUSH);
    *pos += n - d->gz.avail_in;
    *got = m - d->gz.avail_out;
    if (rc == Z_STREAM_END) {
        d->complete = 1;
        d->seen_member = 1;
        return inflateReset(&d->gz) == Z_OK
                   ? PARAMO_OK
                   : paramo_error_set(PARAMO_E_INTERNAL, "the gzip decoder cannot be reset");
    }
    if (rc == Z_MEM_ERROR)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a decoder");
    if (rc != Z_OK && rc != Z_BUF_ERROR) {
        return paramo_error_set(PARAMO_E_CORRUPT, "damaged gzip data: %s",
                                d->gz.msg ? d->gz.msg : "not a gzip stream");
    }
    return PARAMO_OK;
}

static paramo_err run_zstd(struct decoder *d, const char *in, size_t len, size_t *pos, char *out, size_t cap,
                           size_t *got)
{
    ZSTD_inBuffer from = {in, len, *pos};
    ZSTD_outBuffer to = {out, cap, 0};
    size_t rc = ZSTD_decompressStream(d->zstd, &to, &from);
    *pos = from.pos;
    *got = to.pos;
    if (ZSTD_isError(rc))
        return paramo_error_set(PARAMO_E_CORRUPT, "damaged zstd data: %s", ZSTD_getErrorName(rc));
    d->complete = rc == 0;
    return PARAMO_OK;
}

paramo_err decoder_run(struct decoder *d, const char *in, size_t len, size_t *pos, char *out, size_t cap,
                       size_t *got)
{
    return d->kind == DECODER_GZIP ? run_gzip(d, in, len, pos, out, cap, got)
                                   : run_zstd(d, in, len, pos, out, cap, got);
}
