#include "learn/support_learn.h"
#include "learn/data/holdout.h"
#include "learn/eval/score.h"

#include "paramo/paramo.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

float draw_float(uint64_t *state)
{
    return (float)((double)(draw(state) >> 11) / 4503599627370496.0 - 1.0);
}

struct block random_block(uint64_t seed, size_t rows, size_t most, uint64_t keys, uint64_t stride, int values)
{
    uint64_t s = seed;
    struct block b = {0};
    /* drawn last, so that the rest does not depend on it */
    const int weights = (int)(holdout_mix(seed) & 1);
    const struct block_shape shape = {
        .rows = rows, .features = rows * most, .has_value = values, .has_weight = weights};
    if (block_alloc(&b, &shape) != PARAMO_OK)
        abort();
    size_t at = 0;
    for (size_t r = 0; r < rows; r++) {
        b.label[r] = (float)(draw(&s) & 1);
        b.offset[r] = (uint32_t)at;
        for (size_t i = draw(&s) % (most + 1); i > 0; i--) {
            b.key[at] = draw(&s) % keys * stride;
            if (values)
                b.value[at] = draw_float(&s);
            at++;
        }
    }
    b.offset[rows] = (uint32_t)at;
    b.features = at;
    for (size_t r = 0; weights && r < rows; r++)
        b.weight[r] = (float)(draw(&s) % 5);
    return b;
}

char *new_dir(void)
{
    const char *base = getenv("TMPDIR");
    char *dir = NULL;
    if (asprintf(&dir, "%s/paramo-test-XXXXXX", base != NULL ? base : "/tmp") < 0 || mkdtemp(dir) == NULL)
        abort();
    return dir;
}

void remove_dir(char *dir)
{
    DIR *d = opendir(dir);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        (void)unlinkat(dirfd(d), e->d_name, 0);
    if (d != NULL)
        (void)closedir(d);
    (void)rmdir(dir);
    free(dir);
}

void write_file(const char *path, const void *bytes, size_t len)
{
    FILE *f = fopen(path, "w");
    if (f == NULL || fwrite(bytes, 1, len, f) != len || fclose(f) != 0)
        abort();
}

char *read_file(const char *path, size_t *len)
{
    FILE *f = fopen(path, "r");
    char *text = malloc(1 << 20);
    if (f == NULL || text == NULL)
        abort();
    *len = fread(text, 1, (1 << 20) - 1, f);
    text[*len] = 0;
    (void)fclose(f);
    return text;
}

void write_table(const char *path, uint64_t seed, size_t n, size_t dim, size_t state)
{
    char header[1024], tensor[256] = "";
    size_t keys = 8 * n, values = 4 * n * dim, states = 4 * n * state;
    if (state > 0)
        (void)snprintf(tensor, sizeof tensor,
                       ",\"state\":{\"dtype\":\"F32\",\"shape\":[%zu,%zu],\"data_offsets\":[%zu,%zu]}", n,
                       state, keys + values, keys + values + states);
    int used = snprintf(header, sizeof header - 8,
                        "{\"__metadata__\":{\"table\":\"t\"},\"keys\":{\"dtype\":\"U64\",\"shape\":[%zu],"
                        "\"data_offsets\":[0,%zu]},"
                        "\"values\":{\"dtype\":\"F32\",\"shape\":[%zu,%zu],\"data_offsets\":[%zu,%zu]}%s}",
                        n, keys, n, dim, keys, keys + values, tensor);
    while (used % 8 != 0)
        header[used++] = ' ';
    size_t len = 8 + (size_t)used + keys + values + states;
    unsigned char *file = calloc(1, len);
    if (file == NULL)
        abort();
    file[0] = (unsigned char)used;
    file[1] = (unsigned char)(used >> 8);
    memcpy(file + 8, header, (size_t)used);
    unsigned char *at = file + 8 + used;
    for (size_t i = 0; i < n; i++, at += 8)
        memcpy(at, &(uint64_t){seed + 3 * i}, 8);
    uint64_t s = seed;
    for (size_t i = 0; i < n * (dim + state); i++, at += 4)
        memcpy(at, &(float){draw_float(&s)}, 4);
    write_file(path, file, len);
    free(file);
}

const char *const vector_names[3] = {"base", "avx2", "avx512"};

size_t vector_count(void)
{
    size_t n = 1;
    while (n < 3 && paramo_cpu_limit(vector_names[n]) == PARAMO_OK)
        n++;
    vector_limit(NULL);
    return n;
}

void vector_limit(const char *name)
{
    if (paramo_cpu_limit(name == NULL ? "auto" : name) != PARAMO_OK)
        abort();
}

static void must(paramo_err err)
{
    if (err == PARAMO_OK)
        return;
    (void)fprintf(stderr, "%s\n", paramo_last_error());
    abort();
}

struct metrics_result learn_measure(const char *model, const char *const *file)
{
    struct model m;
    struct reader *reader;
    struct reader_options o;
    struct metrics *metrics;
    struct metrics_result result;
    reader_options_init(&o);
    must(modelio_open(model, &m));
    o.fields = m.info.ops->fields != MODEL_NO_FIELDS;
    must(reader_open(&o, file, 1, &reader));
    must(metrics_new(&m.info.objective, &metrics));
    struct score_lookup lookup = {.model = &m};
    struct score_source source = score_model(&lookup);
    must(score_reader(&source, reader, score_metrics, metrics));
    must(metrics_finish(metrics, &result));
    metrics_free(metrics);
    reader_close(reader);
    modelio_close(&m);
    return result;
}
