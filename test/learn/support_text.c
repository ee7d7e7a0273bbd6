#include "learn/support_text.h"
#include "learn/data/parse.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

static char dir[64];

const char *text_dir(void)
{
    if (dir[0] == '\0') {
        strcpy(dir, "/tmp/paramo-test-XXXXXX");
        assert_non_null(mkdtemp(dir));
    }
    return dir;
}

const char *text_path(const char *name)
{
    static char path[8][512];
    static unsigned next;
    char *p = path[next++ % 8];
    (void)snprintf(p, sizeof path[0], "%s/%s", text_dir(), name);
    return p;
}

void text_cleanup(void)
{
    DIR *d = dir[0] != '\0' ? opendir(dir) : NULL;
    if (d == NULL) {
        return;
    }
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (unlink(text_path(e->d_name)) != 0) {
            (void)rmdir(text_path(e->d_name));
        }
    }
    (void)closedir(d);
    (void)rmdir(dir);
    dir[0] = '\0';
}

void text_write_file(const char *path, const void *data, size_t len)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static size_t gzip_member(const void *data, size_t len, void *out, size_t cap)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (z_const Bytef *)data;
    z.avail_in = (uInt)len;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t n = cap - z.avail_out;
    assert_int_equal(deflateEnd(&z), Z_OK);
    return n;
}

static size_t zstd_frame(const void *data, size_t len, void *out, size_t cap)
{
    ZSTD_CCtx *c = ZSTD_createCCtx();
    assert_non_null(c);
    (void)ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1); /* as the zstd program does */
    size_t n = ZSTD_compress2(c, out, cap, data, len);
    assert_false(ZSTD_isError(n));
    (void)ZSTD_freeCCtx(c);
    return n;
}

static void write_frames(const char *path, const void *data, size_t len, int frames,
                         size_t (*pack)(const void *, size_t, void *, size_t))
{
    size_t cap = len + len / 100 + 1000, part = len / (size_t)frames;
    char *out = malloc(cap);
    FILE *f = fopen(path, "wb");
    assert_non_null(out);
    assert_non_null(f);
    for (int i = 0; i < frames; i++) {
        size_t from = part * (size_t)i, n = i == frames - 1 ? len - from : part;
        size_t packed = pack((const char *)data + from, n, out, cap);
        assert_int_equal(fwrite(out, 1, packed, f), packed);
    }
    assert_int_equal(fclose(f), 0);
    free(out);
}

void text_write_gzip(const char *path, const void *data, size_t len, int frames)
{
    write_frames(path, data, len, frames, gzip_member);
}

void text_write_zstd(const char *path, const void *data, size_t len, int frames)
{
    write_frames(path, data, len, frames, zstd_frame);
}

char *text_padded(const char *text, size_t len)
{
    char *copy = malloc(len + PARSE_PAD);
    assert_non_null(copy);
    memcpy(copy, text, len);
    memset(copy + len, '\n', PARSE_PAD);
    return copy;
}
