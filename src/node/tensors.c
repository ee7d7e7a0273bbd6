#include "paramo/tensors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "env/file.h"

struct entry {
    const char *name; /* of the header's */
    paramo_tensor tensor;
    uint64_t begin, end;
};

struct paramo_tensors {
    char *path;
    const unsigned char *map;
    size_t len;
    json_t *header;
    size_t n;
    struct entry *entry;
};

static size_t element_bytes(const char *type)
{
    static const struct {
        const char *name;
        size_t bytes;
    } types[] = {{"U64", 8}, {"I64", 8}, {"F64", 8}, {"U32", 4},  {"I32", 4}, {"F32", 4},
                 {"U16", 2}, {"I16", 2}, {"F16", 2}, {"BF16", 2}, {"U8", 1},  {"I8", 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i].name) == 0)
            return types[i].bytes;
    return 0;
}

static int size_of(json_t *value, uint64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return 0;
    *out = (uint64_t)json_integer_value(value);
    return 1;
}

/* One entry of the header; data is the tensors' area. Returns what is wrong, or NULL. */
static const char *read_entry(json_t *object, const unsigned char *data, size_t data_len, struct entry *e)
{
    const char *type = json_string_value(json_object_get(object, "dtype"));
    json_t *shape = json_object_get(object, "shape"), *offsets = json_object_get(object, "data_offsets");
    size_t element = !type ? 0 : element_bytes(type);
    if (element == 0)
        return "an unknown dtype";
    if (!json_is_array(shape) || json_array_size(shape) > PARAMO_TENSOR_RANK_MAX)
        return "a bad shape";
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
        !size_of(json_array_get(offsets, 0), &e->begin) || !size_of(json_array_get(offsets, 1), &e->end) ||
        e->begin > e->end || e->end > data_len)
        return "bad data_offsets";
    memcpy(e->tensor.type, type, strlen(type) + 1); /* a known name: short */
    e->tensor.rank = json_array_size(shape);
    uint64_t bytes = element;
    for (size_t i = 0; i < e->tensor.rank; i++) {
        if (!size_of(json_array_get(shape, i), &e->tensor.shape[i]) ||
            __builtin_mul_overflow(bytes, e->tensor.shape[i], &bytes))
            return "a bad shape";
    }
    if (bytes != e->end - e->begin)
        return "a shape and data_offsets that do not agree";
    e->tensor.data = data + e->begin;
    e->tensor.bytes = (size_t)bytes;
    if ((uintptr_t)e->tensor.data % element != 0)
        return "a tensor that is not aligned";
    return NULL;
}

static int by_begin(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static paramo_err damaged(const paramo_tensors *f, const char *what)
{
    return err_set(PARAMO_E_CORRUPT, "%s: damaged: %s", f->path, what);
}

static paramo_err read_header(paramo_tensors *f)
{
    uint64_t len = 0;
    if (f->len > 8 && f->map[8] != '{')
        return err_set(PARAMO_E_FORMAT, "%s: not a safetensors file (no header at its start)", f->path);
    if (f->len < 10)
        return damaged(f, "too short");
    for (int i = 7; i >= 0; i--)
        len = len << 8 | f->map[i];
    if (len > PARAMO_TENSORS_HEADER_MAX || len > f->len - 8)
        return damaged(f, "the header is longer than the file");
    f->header = json_loadb((const char *)f->map + 8, (size_t)len, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(f->header))
        return damaged(f, "the header is not a JSON object");
    size_t data_len = f->len - 8 - (size_t)len;
    f->entry = calloc(json_object_size(f->header) + 1, sizeof *f->entry);
    if (!f->entry)
        return err_memory(f->len);
    const char *name;
    json_t *value;
    json_object_foreach(f->header, name, value)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        struct entry *e = &f->entry[f->n];
        e->name = name;
        const char *wrong = read_entry(value, f->map + 8 + len, data_len, e);
        if (wrong)
            return damaged(f, wrong);
        f->n++;
    }
    qsort(f->entry, f->n, sizeof *f->entry, by_begin);
    uint64_t at = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (f->entry[i].begin != at)
            return damaged(f, "tensors overlap or leave holes");
        at = f->entry[i].end;
    }
    if (at != data_len)
        return damaged(f, "its length does not match its tensors");
    return PARAMO_OK;
}

static paramo_err tensors_open(const char *path,
                               paramo_err (*get)(const char *path, const void **data, size_t *len),
                               paramo_tensors **file)
{
    paramo_tensors *f = calloc(1, sizeof *f);
    if (!f || !(f->path = strdup(path))) {
        free(f);
        return err_memory(sizeof *f);
    }
    const void *map;
    paramo_err err = get(path, &map, &f->len);
    if (err == PARAMO_OK) {
        f->map = map;
        err = read_header(f);
    }
    if (err != PARAMO_OK) {
        paramo_tensors_close(f);
        return err;
    }
    *file = f;
    return PARAMO_OK;
}

paramo_err paramo_tensors_open(const char *path, paramo_tensors **file)
{
    return tensors_open(path, file_map, file);
}

paramo_err paramo_tensors_load(const char *path, paramo_tensors **file)
{
    return tensors_open(path, file_load, file);
}

void paramo_tensors_close(paramo_tensors *f)
{
    if (!f)
        return;
    file_unmap(f->map, f->len);
    json_decref(f->header);
    free(f->entry);
    free(f->path);
    free(f);
}

static const struct entry *find(const paramo_tensors *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->entry[i].name, name) == 0)
            return &f->entry[i];
    return NULL;
}

int paramo_tensors_has(const paramo_tensors *f, const char *name)
{
    return find(f, name) != NULL;
}

paramo_err paramo_tensors_get(const paramo_tensors *f, const char *name, const char *type, size_t rank,
                              paramo_tensor *tensor)
{
    const struct entry *e = find(f, name);
    if (!e)
        return err_set(PARAMO_E_CORRUPT, "%s: has no tensor '%s'", f->path, name);
    if (strcmp(e->tensor.type, type) != 0 || e->tensor.rank != rank)
        return err_set(PARAMO_E_CORRUPT, "%s: tensor '%s' is %s of rank %zu, not %s of rank %zu", f->path,
                       name, e->tensor.type, e->tensor.rank, type, rank);
    *tensor = e->tensor;
    return PARAMO_OK;
}

const void *paramo_tensors_bytes(const paramo_tensors *f, size_t *len)
{
    *len = f->len;
    return f->map;
}
