#include "learn/store/modelio.h"
#include "learn/data/names.h"
#include "learn/store/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define MANIFEST     "manifest.json"
#define SUFFIX       ".safetensors"
#define TEMPORARY    ".paramo-tmp-"
#define CHECKSUM_LEN 32

static paramo_err no_memory(void)
{
    return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the files of a model");
}

static void checksum(const void *bytes, size_t len, char out[CHECKSUM_LEN + 1])
{
    XXH128_hash_t h = XXH3_128bits(bytes, len);
    (void)snprintf(out, CHECKSUM_LEN + 1, "%016llx%016llx", (unsigned long long)h.high64,
                   (unsigned long long)h.low64);
}

/* ---- opening ---- */

static int plain_name(const char *name)
{
    return name && name[0] != 0 && name[0] != '.' && strchr(name, '/') == NULL && strlen(name) < NAME_MAX;
}

static paramo_err check_rows(const struct model_table *t)
{
    for (uint64_t i = 1; i < t->n; i++)
        if (t->keys[i - 1] >= t->keys[i])
            return paramo_error_set(
                PARAMO_E_CORRUPT,
                "%s: damaged: the keys are not in ascending order; copy or save the model again", t->path);
    for (uint64_t i = 0; i < t->n * t->dim; i++)
        if (!isfinite(t->values[i]))
            return paramo_error_set(
                PARAMO_E_CORRUPT, "%s: damaged: a value is not a finite number; copy or save the model again",
                t->path);
    return PARAMO_OK;
}

typedef paramo_err tensors_opener(const char *path, paramo_tensors **file);

/* An error keeps the text that the library gave it. */
static paramo_err tensors_open(const char *path, tensors_opener *opener, paramo_tensors **file)
{
    paramo_err err = opener(path, file);
    return err == PARAMO_OK ? err : paramo_error_set(err, "%s", paramo_last_error());
}

static paramo_err tensors_get(const paramo_tensors *file, const char *name, const char *type, size_t rank,
                              paramo_tensor *tensor)
{
    paramo_err err = paramo_tensors_get(file, name, type, rank, tensor);
    return err == PARAMO_OK ? err : paramo_error_set(err, "%s", paramo_last_error());
}

/* Checks a file against the size and checksum in the manifest. */
static paramo_err check_bytes(const char *path, const void *whole, size_t len, uint64_t bytes,
                              const char *sum)
{
    char actual[CHECKSUM_LEN + 1];
    if (len != bytes)
        return paramo_error_set(PARAMO_E_CORRUPT,
                                "%s: damaged: %zu bytes instead of %llu; copy or save the model again", path,
                                len, (unsigned long long)bytes);
    checksum(whole, len, actual);
    if (strcmp(actual, sum) != 0)
        return paramo_error_set(
            PARAMO_E_CORRUPT,
            "%s: damaged: its checksum is %s, the manifest says %s; copy or save the model again", path,
            actual, sum);
    return PARAMO_OK;
}

/* The header of a file cannot be read, and `why` is the last error. If the file is not the one that was saved,
 * the error says that instead. */
static paramo_err explain(const char *path, uint64_t bytes, const char *sum, paramo_err why)
{
    struct stat st;
    char text[PARAMO_ERROR_MAX];
    (void)snprintf(text, sizeof text, "%s", paramo_last_error());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *whole = MAP_FAILED;
    paramo_err err = PARAMO_OK;
    if (fd >= 0 && fstat(fd, &st) == 0) {
        size_t len = (size_t)st.st_size;
        if (len > 0 && len == bytes)
            whole = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
        if (len != bytes || whole != MAP_FAILED)
            err = check_bytes(path, whole, len, bytes, sum);
        if (whole != MAP_FAILED)
            (void)munmap(whole, len);
    }
    if (fd >= 0)
        (void)close(fd);
    return err != PARAMO_OK ? err : paramo_error_set(why, "%s", text);
}

static paramo_err open_table(const char *dir, tensors_opener *opener, json_t *object, const char *name,
                             uint32_t dim, struct model_table *t)
{
    const char *listed = json_string_value(json_object_get(object, "name"));
    const char *file = json_string_value(json_object_get(object, "file"));
    const char *sum = json_string_value(json_object_get(object, "xxh3_128"));
    uint64_t rows, listed_dim, state, bytes;
    if (!listed || strcmp(listed, name) != 0 || !plain_name(file) || !sum ||
        !manifest_uint(object, "rows", INT64_MAX, &rows) ||
        !manifest_uint(object, "dim", UINT32_MAX, &listed_dim) ||
        !manifest_uint(object, "state", UINT32_MAX, &state) ||
        !manifest_uint(object, "bytes", INT64_MAX, &bytes) || listed_dim != dim)
        return paramo_error_set(PARAMO_E_CORRUPT,
                                "%s/" MANIFEST ": damaged: the entry of table '%s' is not valid", dir, name);
    memcpy(t->name, name, strlen(name) + 1); /* it fits: it is a name of model_ops, or SCALE_TABLE */
    t->path = manifest_path(dir, file);
    if (!t->path)
        return no_memory();
    paramo_err err = tensors_open(t->path, opener, &t->file);
    if (err == PARAMO_E_NOT_FOUND)
        return paramo_error_set(PARAMO_E_CORRUPT,
                                "%s: a file of the model is missing; copy or save the model again", t->path);
    if (err == PARAMO_E_CORRUPT || err == PARAMO_E_FORMAT)
        return explain(t->path, bytes, sum, err);
    if (err != PARAMO_OK)
        return err;
    size_t len;
    const void *whole = paramo_tensors_bytes(t->file, &len);
    err = check_bytes(t->path, whole, len, bytes, sum);
    if (err != PARAMO_OK)
        return err;
    paramo_tensor keys, values, states = {0};
    if ((err = tensors_get(t->file, "keys", "U64", 1, &keys)) != PARAMO_OK ||
        (err = tensors_get(t->file, "values", "F32", 2, &values)) != PARAMO_OK ||
        (state > 0 && (err = tensors_get(t->file, "state", "F32", 2, &states)) != PARAMO_OK))
        return err;
    if (keys.shape[0] != rows || values.shape[0] != rows || values.shape[1] != dim ||
        (state > 0 && (states.shape[0] != rows || states.shape[1] != state)))
        return paramo_error_set(
            PARAMO_E_CORRUPT, "%s: damaged: its sizes differ from the manifest; copy or save the model again",
            t->path);
    t->n = rows;
    t->dim = dim;
    t->state = (uint32_t)state;
    t->keys = keys.data;
    t->values = values.data;
    t->states = states.data;
    return check_rows(t);
}

static paramo_err model_open(const char *dir, tensors_opener *opener, struct model *model)
{
    json_t *m;
    *model = (struct model){0};
    paramo_err err = manifest_load(dir, &m);
    if (err == PARAMO_E_NOT_FOUND)
        return paramo_error_set(err, "%s: no model there (it has no " MANIFEST ")", dir);
    if (err != PARAMO_OK)
        return err;
    json_t *tables = json_object_get(m, "tables");
    const struct model_info *info = &model->info;
    char entry[MANIFEST_ENTRY_MAX];
    const char *wrong = manifest_info(m, &model->info, entry);
    const size_t n = json_array_size(tables);
    if (!wrong && n != info->ops->tables && (info->scale == SCALE_NONE || n != info->ops->tables + 1))
        wrong = "tables";
    if (wrong)
        err = paramo_error_set(PARAMO_E_CORRUPT, "%s/" MANIFEST ": damaged: '%s' is missing or not valid",
                               dir, wrong);
    for (size_t i = 0; err == PARAMO_OK && i < info->ops->tables; i++) {
        model->n++;
        err = open_table(dir, opener, json_array_get(tables, i), info->ops->table[i].name,
                         model_row_values(info, i), &model->table[i]);
    }
    if (err == PARAMO_OK && n > info->ops->tables)
        err = open_table(dir, opener, json_array_get(tables, info->ops->tables), SCALE_TABLE,
                         scale_dim(info->scale), &model->scale);
    json_decref(m);
    if (err != PARAMO_OK)
        modelio_close(model);
    return err;
}

paramo_err modelio_open(const char *dir, struct model *model)
{
    return model_open(dir, paramo_tensors_open, model);
}

paramo_err modelio_load(const char *dir, struct model *model)
{
    return model_open(dir, paramo_tensors_load, model);
}

void modelio_close(struct model *model)
{
    for (size_t i = 0; i < model->n; i++) {
        paramo_tensors_close(model->table[i].file);
        free(model->table[i].path);
    }
    paramo_tensors_close(model->scale.file);
    free(model->scale.path);
    columns_release(model->info.columns);
    *model = (struct model){0};
}

static int by_key(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

const float *modelio_row(const struct model_table *t, uint64_t key)
{
    const uint64_t *found = t->n > 0 ? bsearch(&key, t->keys, (size_t)t->n, sizeof key, by_key) : NULL;
    return found ? t->values + (size_t)(found - t->keys) * t->dim : NULL;
}

/* ---- saving ---- */

static paramo_err make_directory(const char *dir, int *made)
{
    struct stat st;
    *made = mkdir(dir, 0777) == 0;
    if (!*made && errno != EEXIST)
        return paramo_error_set(PARAMO_E_IO, "%s: cannot be created: %s", dir, strerror(errno));
    if (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode))
        return paramo_error_set(PARAMO_E_IO, "%s: not a directory", dir);
    if (access(dir, W_OK | X_OK) != 0)
        return paramo_error_set(PARAMO_E_IO, "%s: %s", dir, strerror(errno));
    return PARAMO_OK;
}

/* Can dir be created? Tries an unnamed file in the folder above it, which leaves nothing behind when the process is
 * killed. On a file system without such files it checks the permissions only. */
static paramo_err could_make(const char *dir)
{
    size_t len = strlen(dir);
    while (len > 1 && dir[len - 1] == '/')
        len--;
    while (len > 0 && dir[len - 1] != '/')
        len--;
    char *above = len > 0 ? strndup(dir, len) : strdup(".");
    if (!above)
        return no_memory();
    int fd = open(above, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    int possible = fd >= 0;
    if (!possible && (errno == EOPNOTSUPP || errno == EISDIR))
        possible = access(above, W_OK | X_OK) == 0;
    paramo_err err = possible
                         ? PARAMO_OK
                         : paramo_error_set(PARAMO_E_IO, "%s: cannot be created: %s", dir, strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    free(above);
    return err;
}

paramo_err modelio_prepare(const char *dir)
{
    json_t *m = NULL;
    int made;
    struct stat st;
    if (lstat(dir, &st) != 0 && errno == ENOENT)
        return could_make(dir);
    paramo_err err = make_directory(dir, &made);
    if (err != PARAMO_OK)
        return err;
    err = manifest_load(dir, &m);
    json_decref(m);
    if (err == PARAMO_E_FORMAT) {
        char why[PARAMO_ERROR_MAX];
        (void)snprintf(why, sizeof why, "%s", paramo_last_error());
        return paramo_error_set(err, "%s; the model is not saved over it", why);
    }
    /* a damaged model may be replaced */
    return err == PARAMO_E_NOT_FOUND || err == PARAMO_E_CORRUPT ? PARAMO_OK : err;
}

static paramo_err sync_directory(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int bad = fd < 0 || fsync(fd) != 0;
    paramo_err err = bad ? paramo_error_set(PARAMO_E_IO, "%s: %s", dir, strerror(errno)) : PARAMO_OK;
    if (fd >= 0)
        (void)close(fd);
    return err;
}

static paramo_err write_synced(const char *path, const char *text, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return paramo_error_set(PARAMO_E_IO, "%s: %s", path, strerror(errno));
    while (len > 0) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        text += n;
        len -= (size_t)n;
    }
    int bad = len > 0 || fsync(fd) != 0;
    paramo_err err = bad ? paramo_error_set(PARAMO_E_IO, "%s: %s", path, strerror(errno)) : PARAMO_OK;
    if (close(fd) != 0 && err == PARAMO_OK)
        err = paramo_error_set(PARAMO_E_IO, "%s: %s", path, strerror(errno));
    return err;
}

/* A name that no other process uses. Its number is random, because two hosts may save into one folder with the same
 * process id. */
static char *temporary_path(const char *dir, const char *name)
{
    char temporary[sizeof TEMPORARY + 32 + MODEL_NAME_MAX];
    uint64_t drawn = (uint64_t)getpid(); /* used only if the system has no random bytes yet */
    if (getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != (ssize_t)sizeof drawn)
        drawn ^= (uint64_t)(uintptr_t)&drawn << 20;
    (void)snprintf(temporary, sizeof temporary, TEMPORARY "%016llx-%s", (unsigned long long)drawn, name);
    return manifest_path(dir, temporary);
}

/* Lets the writer save one table under a temporary name, renames it, and adds it to the tables of the manifest. */
static paramo_err save_table(const char *dir, const char *name, uint32_t dim, size_t number,
                             const struct modelio_writer *writer, json_t *tables)
{
    char final[MODEL_NAME_MAX + 64], sum[CHECKSUM_LEN + 1];
    char *from = temporary_path(dir, name), *to = NULL;
    paramo_tensors *file = NULL;
    paramo_err err = !from ? no_memory() : writer->table(writer->arg, number, from);
    if (err == PARAMO_OK)
        err = tensors_open(from, paramo_tensors_open, &file);
    paramo_tensor keys, state = {0};
    if (err == PARAMO_OK)
        err = tensors_get(file, "keys", "U64", 1, &keys);
    if (err == PARAMO_OK && paramo_tensors_has(file, "state"))
        err = tensors_get(file, "state", "F32", 2, &state);
    if (err == PARAMO_OK) {
        size_t len;
        const void *whole = paramo_tensors_bytes(file, &len);
        checksum(whole, len, sum);
        (void)snprintf(final, sizeof final, "%s-%.16s" SUFFIX, name, sum);
        json_t *entry = json_pack("{s:s, s:s, s:I, s:i, s:I, s:I, s:s}", "name", name, "file", final, "rows",
                                  (json_int_t)keys.shape[0], "dim", (int)dim, "state",
                                  (json_int_t)state.shape[1], "bytes", (json_int_t)len, "xxh3_128", sum);
        to = manifest_path(dir, final);
        if (!to || json_array_append_new(tables, entry) != 0)
            err = no_memory();
        else if (rename(from, to) != 0)
            err = paramo_error_set(PARAMO_E_IO, "%s: %s", to, strerror(errno));
    }
    if (err != PARAMO_OK && from)
        (void)unlink(from);
    paramo_tensors_close(file);
    free(from);
    free(to);
    return err;
}

static int named_in(json_t *tables, const char *file)
{
    for (size_t i = 0; i < json_array_size(tables); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(tables, i), "file")), file) == 0)
            return 1;
    return 0;
}

static int is_temporary(const char *file)
{
    return strncmp(file, TEMPORARY, sizeof TEMPORARY - 1) == 0;
}

/* Is it "<table>-<16 hex>.safetensors"? */
static int of_table(const char *file, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(file, name, length) == 0 && file[length] == '-' &&
           strspn(file + length + 1, "0123456789abcdef") == 16 && strcmp(file + length + 17, SUFFIX) == 0;
}

/* Is it a table of a model, its file of names (which is written after the model), or a temporary file? A save removes
 * no other files. */
static int ours(const char *file)
{
    if (is_temporary(file) || of_table(file, SCALE_TABLE) || strcmp(file, NAMES_FILE) == 0)
        return 1;
    for (size_t i = 0; model_at(i) != NULL; i++)
        for (size_t t = 0; t < model_at(i)->tables; t++)
            if (of_table(file, model_at(i)->table[t].name))
                return 1;
    return 0;
}

paramo_err modelio_refuse_output(const char *dir, const char *path)
{
    struct stat out, file;
    DIR *d = stat(path, &out) == 0 ? opendir(dir) : NULL;
    if (!d)
        return PARAMO_OK;
    paramo_err err = PARAMO_OK;
    for (struct dirent *e; (e = readdir(d)) && err == PARAMO_OK;)
        if ((strcmp(e->d_name, MANIFEST) == 0 || ours(e->d_name)) &&
            fstatat(dirfd(d), e->d_name, &file, 0) == 0 && file.st_dev == out.st_dev &&
            file.st_ino == out.st_ino)
            err = paramo_error_set(PARAMO_E_INVALID, "%s is a file of the model %s: give another name", path,
                                   dir);
    (void)closedir(d);
    return err;
}

/* Removes the temporary files of an earlier writer that has not finished, which then can no longer finish. */
static paramo_err remove_temporaries(const char *dir)
{
    DIR *d = opendir(dir);
    if (!d)
        return paramo_error_set(PARAMO_E_IO, "%s: %s", dir, strerror(errno));
    paramo_err err = PARAMO_OK;
    for (struct dirent *e; (e = readdir(d)) && err == PARAMO_OK;)
        if (is_temporary(e->d_name) && unlinkat(dirfd(d), e->d_name, 0) != 0 && errno != ENOENT)
            err = paramo_error_set(PARAMO_E_IO, "%s/%s: cannot be removed: %s", dir, e->d_name,
                                   strerror(errno));
    (void)closedir(d);
    return err;
}

/* Removes the files that the new manifest does not name. The model is saved, so one that cannot be removed only takes
 * space. */
static void remove_stale(const char *dir, json_t *tables)
{
    DIR *d = opendir(dir);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));)
        if (ours(e->d_name) && !named_in(tables, e->d_name))
            (void)unlinkat(dirfd(d), e->d_name, 0);
    (void)closedir(d);
}

paramo_err modelio_save(const char *dir, const struct model_info *info, const struct modelio_writer *writer)
{
    int made;
    paramo_err err = make_directory(dir, &made);
    if (err == PARAMO_OK)
        err = remove_temporaries(dir);
    if (err != PARAMO_OK)
        return err;
    json_t *manifest = manifest_of(info, writer->scaled), *tables = json_object_get(manifest, "tables");
    char *from = temporary_path(dir, "manifest"), *to = manifest_path(dir, MANIFEST), *text = NULL;
    if (!manifest || !from || !to)
        err = no_memory();
    for (size_t i = 0; err == PARAMO_OK && i < info->ops->tables; i++)
        err = save_table(dir, info->ops->table[i].name, model_row_values(info, i), i, writer, tables);
    if (err == PARAMO_OK && writer->scaled)
        err = save_table(dir, SCALE_TABLE, scale_dim(info->scale), info->ops->tables, writer, tables);
    if (err == PARAMO_OK && !(text = json_dumps(manifest, JSON_INDENT(2) | JSON_REAL_PRECISION(15))))
        err = no_memory();
    if (err == PARAMO_OK) {
        size_t len = strlen(text);
        text[len] = '\n'; /* in place of its NUL */
        err = write_synced(from, text, len + 1);
    }
    if (err == PARAMO_OK)
        err = sync_directory(dir); /* so that the tables have their names before the manifest has */
    if (err == PARAMO_OK && writer->may_commit)
        err = writer->may_commit(writer->arg); /* OK: no other writer has begun (modelio.h) */
    if (err == PARAMO_OK && rename(from, to) != 0)
        err = paramo_error_set(PARAMO_E_IO, "%s: %s", to, strerror(errno));
    if (err == PARAMO_OK)
        err = sync_directory(dir);
    if (err == PARAMO_OK)
        remove_stale(dir, tables);
    else if (from)
        (void)unlink(from);
    /* Removes the directory if it is empty, unless another process may save into it, as the next leader does. */
    if (err != PARAMO_OK && made && !writer->may_commit)
        (void)rmdir(dir);
    free(text);
    free(from);
    free(to);
    json_decref(manifest);
    return err;
}
