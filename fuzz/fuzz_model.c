/* A model's folder: a manifest and the files of its tables, which are damaged or not. What opens keeps what
 * modelio.h promises: ascending keys, finite values, sizes as named. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "harness.h"
#include "learn/store/modelio.h"

static char folder[64];

static void at_exit(void)
{
    char path[96];
    static const char *const names[] = {"manifest.json", "w.safetensors", "v.safetensors"};
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

static void write_file(const char *name, const void *bytes, size_t len)
{
    char path[96];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wbe");
    CHECK(file && fwrite(bytes, 1, len, file) == len && fclose(file) == 0);
}

/* A table's file: its header is text of the input or ours, its data is the input's. */
static size_t make_table(struct source *s, const char *name, unsigned n, unsigned dim, char sum[33])
{
    uint8_t bytes[4096] = {0};
    size_t data_len = (size_t)n * (8 + 4 * dim);
    int header = snprintf((char *)bytes + 8, 512,
                          "{\"keys\":{\"dtype\":\"U64\",\"shape\":[%u],\"data_offsets\":[0,%u]},"
                          "\"values\":{\"dtype\":\"F32\",\"shape\":[%u,%u],\"data_offsets\":[%u,%zu]}}",
                          n, 8 * n, n, dim, 8 * n, data_len);
    size_t len = 8 + (size_t)header;
    bytes[0] = (uint8_t)header;
    bytes[1] = (uint8_t)(header >> 8);
    for (unsigned i = 0; i < n; i++)
        bytes[len + 8 * i] = (uint8_t)(i + 1);
    size_t take = s->left < data_len ? s->left : data_len;
    for (size_t i = 0; i < take; i++)
        bytes[len + i] ^= draw_u8(s);
    len += data_len;
    XXH128_hash_t h = XXH3_128bits(bytes, len);
    (void)snprintf(sum, 33, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
    write_file(name, bytes, len);
    return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    harness_quiet();
    if (!folder[0]) {
        const char *tmp = getenv("TMPDIR");
        (void)snprintf(folder, sizeof folder, "%.40s/paramo-fuzz-XXXXXX",
                       access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                       : tmp                         ? tmp
                                                     : "/tmp");
        CHECK(mkdtemp(folder));
        (void)atexit(at_exit);
    }
    struct source s = {data, size};
    struct model model;
    uint8_t how = draw_u8(&s);
    if (how & 1) { /* the input is the manifest; its tables are small ones of ours */
        char sum[33];
        struct source none = {NULL, 0};
        (void)make_table(&none, "w.safetensors", 2, 1, sum);
        (void)make_table(&none, "v.safetensors", 2, 2, sum);
        write_file("manifest.json", s.at, s.left);
    } else { /* the input is a manifest's numbers and the tables' bytes */
        char text[2048], w[33], v[33];
        unsigned n = draw_below(&s, 8), dim = draw_below(&s, 4);
        int fm = dim > 0;
        size_t w_len = make_table(&s, "w.safetensors", n, 1, w);
        size_t v_len = make_table(&s, "v.safetensors", n, dim ? dim : 1, v);
        int len = snprintf(
            text, sizeof text,
            "{\"format\":\"paramo-model\",\"version\":1,\"model\":\"%s\",\"dim\":%u,\"hash_bits\":0,"
            "\"data_format\":\"libsvm\",\"batch\":1,\"epochs\":1,\"rows\":1,\"seed\":\"1\",\"factor_init\":0."
            "1,"
            "\"optimizers\":{\"w\":{\"name\":\"ftrl\",\"alpha\":0.1,\"beta\":1,\"l1\":0,\"l2\":0},"
            "\"v\":{\"name\":\"ftrl\",\"alpha\":0.1,\"beta\":1,\"l1\":0,\"l2\":0}},"
            "\"tables\":[{\"name\":\"w\",\"file\":\"w.safetensors\",\"rows\":%u,\"dim\":1,\"state\":0,"
            "\"bytes\":%zu,\"xxh3_128\":\"%s\"}%s",
            fm ? "fm" : "lr", dim, n, w_len, w, fm ? "," : "]}");
        if (fm)
            len += snprintf(text + len, sizeof text - (size_t)len,
                            "{\"name\":\"v\",\"file\":\"v.safetensors\",\"rows\":%u,\"dim\":%u,\"state\":0,"
                            "\"bytes\":%zu,\"xxh3_128\":\"%s\"}]}",
                            n, dim, v_len, v);
        write_file("manifest.json", text, (size_t)len);
    }
    paramo_err err = modelio_open(folder, &model);
    CHECK(err == PARAMO_OK || paramo_last_error()[0]);
    if (err == PARAMO_OK) {
        for (size_t i = 0; i < model.n; i++) {
            const struct model_table *t = &model.table[i];
            for (uint64_t k = 1; k < t->n; k++)
                CHECK(t->keys[k - 1] < t->keys[k]);
            for (uint64_t k = 0; k < t->n * t->dim; k++)
                CHECK(isfinite(t->values[k]));
        }
        modelio_close(&model);
    }
    return 0;
}
