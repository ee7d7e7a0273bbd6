#include "learn/data/names.h"
#include "learn/io/output.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    uint64_t key;
    char *text; /* NULL: an empty slot */
};

struct names {
    pthread_mutex_t lock;
    struct entry *entry; /* [cap] a hash table by key; sorted, once names_find may be called: [n] */
    size_t n, cap;
    int sorted, failed;
};

static paramo_err no_memory(void)
{
    return paramo_error_set(PARAMO_E_MEMORY, "out of memory for names");
}

paramo_err names_new(struct names **names)
{
    struct names *n = calloc(1, sizeof *n);
    if (!n)
        return no_memory();
    n->cap = 1024;
    n->entry = calloc(n->cap, sizeof *n->entry);
    if (!n->entry) {
        free(n);
        return no_memory();
    }
    (void)pthread_mutex_init(&n->lock, NULL);
    *names = n;
    return PARAMO_OK;
}

void names_free(struct names *n)
{
    if (!n)
        return;
    for (size_t i = 0; i < n->cap; i++)
        free(n->entry[i].text);
    free(n->entry);
    (void)pthread_mutex_destroy(&n->lock);
    free(n);
}

size_t names_count(const struct names *n)
{
    return n->n;
}

static struct entry *slot_of(struct entry *entry, size_t cap, uint64_t key)
{
    size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (cap - 1);
    while (entry[at].text && entry[at].key != key)
        at = (at + 1) & (cap - 1);
    return &entry[at];
}

static int grow(struct names *n)
{
    if (2 * n->n < n->cap)
        return 1;
    struct entry *more = calloc(2 * n->cap, sizeof *more);
    if (!more)
        return 0;
    for (size_t i = 0; i < n->cap; i++)
        if (n->entry[i].text)
            *slot_of(more, 2 * n->cap, n->entry[i].key) = n->entry[i];
    free(n->entry);
    n->entry = more;
    n->cap *= 2;
    return 1;
}

/* Writes text to out, escaped (NULL: writes nothing). Returns its length. */
static size_t put_escaped(char *out, const char *text, size_t len)
{
    static const char from[] = "\t\n\r\\", to[] = "tnr\\";
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        const char *found = text[i] == '\0' ? NULL : strchr(from, text[i]);
        if (out && found) {
            out[n] = '\\';
            out[n + 1] = to[found - from];
        } else if (out) {
            out[n] = text[i] == '\0' ? '?' : text[i];
        }
        n += found ? 2 : 1;
    }
    return n;
}

static char *text_of(const char *column, size_t column_len, const char *value, size_t value_len)
{
    const size_t head = put_escaped(NULL, column, column_len);
    const size_t tail = value ? put_escaped(NULL, value, value_len) + 1 : 0;
    char *text = malloc(head + tail + 1);
    if (!text)
        return NULL;
    (void)put_escaped(text, column, column_len);
    if (value) {
        text[head] = '\t';
        (void)put_escaped(text + head + 1, value, value_len);
    }
    text[head + tail] = '\0';
    return text;
}

/* Takes over text, which is not NULL. The lock is held, or no other thread has n. */
static void put(struct names *n, uint64_t key, char *text)
{
    struct entry *e = grow(n) ? slot_of(n->entry, n->cap, key) : NULL;
    if (!e) {
        n->failed = 1;
        free(text);
    } else if (!e->text) {
        *e = (struct entry){key, text};
        n->n++;
    } else if (strcmp(text, e->text) < 0) {
        free(e->text);
        e->text = text;
    } else {
        free(text);
    }
}

/* Is it this name, without escapes? Most names are seen many times, so this saves an allocation. */
static int is_known(const struct entry *e, const char *column, size_t column_len, const char *value,
                    size_t value_len)
{
    const char *t = e->text;
    if (!t || strncmp(t, column, column_len) != 0)
        return 0;
    t += column_len;
    return value ? *t == '\t' && strncmp(t + 1, value, value_len) == 0 && t[1 + value_len] == '\0'
                 : *t == '\0';
}

void names_note(struct names *n, uint64_t key, const char *column, size_t column_len, const char *value,
                size_t value_len)
{
    (void)pthread_mutex_lock(&n->lock);
    if (!is_known(slot_of(n->entry, n->cap, key), column, column_len, value, value_len)) {
        char *text = text_of(column, column_len, value, value_len);
        if (text)
            put(n, key, text);
        else
            n->failed = 1;
    }
    (void)pthread_mutex_unlock(&n->lock);
}

static int by_key(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static void sort(struct names *n)
{
    size_t at = 0;
    for (size_t i = 0; i < n->cap; i++)
        if (n->entry[i].text) {
            const struct entry e = n->entry[i];
            n->entry[i].text = NULL;
            n->entry[at++] = e;
        }
    qsort(n->entry, n->n, sizeof *n->entry, by_key);
    n->sorted = 1;
}

paramo_err names_write(struct names *n, const char *path)
{
    struct output *out = NULL;
    if (n->failed)
        return no_memory();
    sort(n);
    paramo_err err = output_open(path, &out);
    for (size_t i = 0; err == PARAMO_OK && i < n->n; i++) {
        char key[24];
        const int len = snprintf(key, sizeof key, "%" PRIu64 "\t", n->entry[i].key);
        err = output_write(out, key, (size_t)len);
        if (err == PARAMO_OK)
            err = output_write(out, n->entry[i].text, strlen(n->entry[i].text));
        if (err == PARAMO_OK)
            err = output_write(out, "\n", 1);
    }
    if (err == PARAMO_OK)
        return output_commit(out);
    output_abort(out);
    return err;
}

const char *names_find(const struct names *n, uint64_t key)
{
    const struct entry want = {.key = key};
    const struct entry *e = n->n > 0 ? bsearch(&want, n->entry, n->n, sizeof want, by_key) : NULL;
    return e ? e->text : NULL;
}

paramo_err names_load(const char *path, struct names **names)
{
    FILE *f = fopen(path, "re");
    struct names *n = NULL;
    char *line = NULL, *end;
    size_t cap = 0;
    ssize_t len;
    if (!f)
        return paramo_error_set(errno == ENOENT ? PARAMO_E_NOT_FOUND : PARAMO_E_IO, "%s: %s", path,
                                strerror(errno));
    paramo_err err = names_new(&n);
    for (uint64_t number = 1; err == PARAMO_OK && (len = getline(&line, &cap, f)) > 0; number++) {
        errno = 0;
        const uint64_t key = strtoull(line, &end, 10);
        if (end == line || *line == '-' || *end != '\t' || errno != 0 || line[len - 1] != '\n') {
            err = paramo_error_set(PARAMO_E_CORRUPT, "%s:%" PRIu64 ": expected a key, a tab and a name", path,
                                   number);
            break;
        }
        line[len - 1] = '\0';
        char *text = strdup(end + 1);
        if (text)
            put(n, key, text);
        if (!text || n->failed)
            err = no_memory();
    }
    if (err == PARAMO_OK && ferror(f))
        err = paramo_error_set(PARAMO_E_IO, "%s: %s", path, strerror(errno));
    free(line);
    (void)fclose(f);
    if (err != PARAMO_OK) {
        names_free(n);
        return err;
    }
    sort(n);
    *names = n;
    return PARAMO_OK;
}
