#include "learn/tune/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOURNAL_VERSION 1
#define HEAD            "{\"paramo_tune\":" /* what the first line begins with */
#define JOURNAL_MAX     (64 << 20)          /* bytes: a longer file is not a journal */

struct line {
    uint64_t trial, epochs;
    char *settings;
    struct tune_outcome outcome;
};

struct journal {
    char *path;
    int fd;
    struct line *line;
    size_t n, cap;
};

static paramo_err no_memory(void)
{
    return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the trials of a file");
}

static paramo_err failed(const struct journal *j)
{
    return paramo_error_set(PARAMO_E_IO, "%s: %s", j->path, strerror(errno));
}

static paramo_err wrong(const struct journal *j, size_t number, const char *what)
{
    return paramo_error_set(PARAMO_E_FORMAT, "%s:%zu: %s", j->path, number, what);
}

/* Reads a whole number of at least 0. Returns 0 if there is none. */
static int whole(json_t *object, const char *name, uint64_t *out)
{
    json_t *value = json_object_get(object, name);
    *out = json_is_integer(value) ? (uint64_t)json_integer_value(value) : 0;
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static paramo_err take_line(struct journal *j, size_t number, json_t *object)
{
    struct line line = {0};
    json_t *loss = json_object_get(object, "loss"), *seconds = json_object_get(object, "seconds");
    const char *settings = json_string_value(json_object_get(object, "settings"));
    if (!whole(object, "trial", &line.trial) || !whole(object, "epochs", &line.epochs) || line.epochs == 0 ||
        !whole(object, "best_epoch", &line.outcome.epochs) || !settings || !json_is_number(seconds) ||
        (!json_is_number(loss) && !json_is_null(loss)) || !json_is_boolean(json_object_get(object, "ended")))
        return wrong(j, number, "not a trial of 'paramo tune': name a file that it wrote, or a new one");
    line.outcome.loss = json_is_null(loss) ? (double)INFINITY : json_number_value(loss);
    line.outcome.seconds = json_number_value(seconds);
    line.outcome.ended = json_is_true(json_object_get(object, "ended"));
    if (j->n == j->cap) {
        const size_t cap = 2 * j->cap + 16;
        struct line *more = realloc(j->line, cap * sizeof *more);
        if (!more)
            return no_memory();
        j->line = more;
        j->cap = cap;
    }
    line.settings = strdup(settings);
    if (!line.settings)
        return no_memory();
    j->line[j->n++] = line;
    return PARAMO_OK;
}

static paramo_err take_head(const struct journal *j, json_t *object, const char *search)
{
    uint64_t version;
    const char *of = json_string_value(json_object_get(object, "search"));
    if (!whole(object, "paramo_tune", &version) || !of)
        return wrong(j, 1, "not a file that 'paramo tune' wrote: name such a file, or a new one");
    if (version != JOURNAL_VERSION)
        return wrong(j, 1, "another version of 'paramo tune' wrote it: name a new file");
    if (strcmp(of, search) != 0)
        return paramo_error_set(PARAMO_E_INVALID,
                                "%s: is the file of another search:%s; this one is:%s; name another file",
                                j->path, of, search);
    return PARAMO_OK;
}

/* Takes the complete lines of text; *end: the end of the last of them. */
static paramo_err take_text(struct journal *j, char *text, size_t len, const char *search, size_t *end)
{
    paramo_err err = PARAMO_OK;
    *end = 0;
    for (size_t number = 1; err == PARAMO_OK && *end < len; number++) {
        char *newline = memchr(text + *end, '\n', len - *end);
        if (!newline)
            return PARAMO_OK;
        json_t *object =
            json_loadb(text + *end, (size_t)(newline - (text + *end)), JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(object))
            err = wrong(j, number, "not a line of JSON: name a file that 'paramo tune' wrote, or a new one");
        else
            err = number == 1 ? take_head(j, object, search) : take_line(j, number, object);
        json_decref(object);
        *end = (size_t)(newline + 1 - text);
    }
    return err;
}

static paramo_err put_line(struct journal *j, json_t *object)
{
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL, *line = NULL;
    json_decref(object);
    const int len = text ? asprintf(&line, "%s\n", text) : -1;
    free(text);
    if (len < 0)
        return no_memory();
    const ssize_t put = write(j->fd, line, (size_t)len);
    paramo_err err = put == len && fdatasync(j->fd) == 0 ? PARAMO_OK : failed(j);
    free(line);
    return err;
}

static paramo_err read_all(struct journal *j, const char *search)
{
    struct stat st;
    size_t end = 0, len = 0;
    if (fstat(j->fd, &st) != 0)
        return failed(j);
    if (!S_ISREG(st.st_mode))
        return paramo_error_set(PARAMO_E_IO, "%s: is not a regular file", j->path);
    if (st.st_size > JOURNAL_MAX)
        return wrong(j, 1, "too long for a file that 'paramo tune' wrote: name such a file, or a new one");
    char *text = malloc((size_t)st.st_size + 1);
    if (!text)
        return no_memory();
    for (ssize_t n; len < (size_t)st.st_size && (n = read(j->fd, text + len, (size_t)st.st_size - len)) > 0;)
        len += (size_t)n;
    paramo_err err = take_text(j, text, len, search, &end);
    /* can it be a file whose process died while it wrote the first line? */
    const int own = strncmp(text, HEAD, len < sizeof HEAD - 1 ? len : sizeof HEAD - 1) == 0;
    free(text);
    if (err == PARAMO_OK && end < len && end == 0 && !own) /* a foreign file of one line */
        return wrong(j, 1, "not a file that 'paramo tune' wrote: name such a file, or a new one");
    if (err == PARAMO_OK && end < len && ftruncate(j->fd, (off_t)end) != 0)
        err = failed(j);
    if (err == PARAMO_OK && end == 0)
        err = put_line(j, json_pack("{s:i, s:s}", "paramo_tune", JOURNAL_VERSION, "search", search));
    return err;
}

paramo_err journal_open(const char *path, const char *search, struct journal **journal)
{
    struct journal *j = calloc(1, sizeof *j);
    if (!j || !(j->path = strdup(path))) {
        free(j);
        return no_memory();
    }
    j->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    paramo_err err = j->fd < 0 ? failed(j) : PARAMO_OK;
    if (err == PARAMO_OK && flock(j->fd, LOCK_EX | LOCK_NB) != 0)
        err = paramo_error_set(PARAMO_E_IO, "%s: another 'paramo tune' uses it", path);
    if (err == PARAMO_OK)
        err = read_all(j, search);
    if (err == PARAMO_OK)
        *journal = j;
    else
        journal_close(j);
    return err;
}

void journal_close(struct journal *j)
{
    if (!j)
        return;
    for (size_t i = 0; i < j->n; i++)
        free(j->line[i].settings);
    if (j->fd >= 0)
        (void)close(j->fd);
    free(j->line);
    free(j->path);
    free(j);
}

size_t journal_count(const struct journal *j)
{
    return j->n;
}

paramo_err journal_find(const struct journal *j, size_t trial, uint64_t epochs, const char *settings,
                        struct tune_outcome *outcome, int *found)
{
    *found = 0;
    for (size_t i = 0; i < j->n && !*found; i++) {
        const struct line *l = &j->line[i];
        if (l->trial != trial || l->epochs != epochs)
            continue;
        if (strcmp(l->settings, settings) != 0)
            return paramo_error_set(PARAMO_E_INVALID,
                                    "%s: its trial %zu has other settings:%s; name another file", j->path,
                                    trial, l->settings);
        *outcome = l->outcome;
        *found = 1;
    }
    return PARAMO_OK;
}

paramo_err journal_add(struct journal *j, size_t trial, uint64_t epochs, const char *settings,
                       const struct tune_outcome *o)
{
    return put_line(j, json_pack("{s:I, s:I, s:s, s:o, s:I, s:b, s:f}", "trial", (json_int_t)trial, "epochs",
                                 (json_int_t)epochs, "settings", settings, "loss",
                                 isfinite(o->loss) ? json_real(o->loss) : json_null(), "best_epoch",
                                 (json_int_t)o->epochs, "ended", o->ended, "seconds", o->seconds));
}
