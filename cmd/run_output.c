#include "cmd/run_output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Arbitrary: all nodes notice a death within some milliseconds, and a reader does not notice the delay. */
enum { HOLD_MS = 300 };
enum { NAMES_MAX = 4 }; /* names before one message, the last as "and N more" if there are more; arbitrary */

void run_write(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* no process reads our output any more, but the job continues */
        data += n;
        len -= (size_t)n;
    }
}

/* ---- one line ---- */

static void print(const char *names, const char *text, size_t len)
{
    char out[RUN_LINE_BYTES + 64 * NAMES_MAX];
    int head = snprintf(out, sizeof out, "[%s] ", names);
    memcpy(out + head, text, len);
    size_t total = (size_t)head + len;
    if (len == 0 || text[len - 1] != '\n')
        out[total++] = '\n';
    run_write(STDERR_FILENO, out, total);
}

static void held_print(struct run_held *held)
{
    char names[40 * NAMES_MAX] = "";
    size_t used = 0, shown = held->from_count > NAMES_MAX ? NAMES_MAX - 1 : held->from_count;
    for (size_t i = 0; i < shown; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                                 held->from[i]->name);
    if (shown < held->from_count)
        snprintf(names + used, sizeof names - used, " and %zu more", held->from_count - shown);
    print(names, held->text, strlen(held->text));
    free(held->text);
    free(held->from);
    *held = (struct run_held){0};
}

static int printed_by(const struct run_held *held, const struct run_source *source)
{
    for (size_t i = 0; i < held->from_count; i++) {
        if (held->from[i] == source)
            return 1;
    }
    return 0;
}

/* Holds a line, or adds this node to those that have printed a held line. Returns 0 if the line must be printed now. */
static int hold(struct run_output *o, const struct run_source *s, const char *line, size_t len,
                int64_t now_ms)
{
    struct run_held *place = NULL;
    for (size_t i = 0; i < RUN_HELD_MAX; i++) {
        struct run_held *held = &o->held[i];
        if (!held->text) {
            place = place ? place : held;
        } else if (strlen(held->text) == len && memcmp(held->text, line, len) == 0 && !printed_by(held, s)) {
            held->from[held->from_count++] = s;
            return 1;
        }
    }
    if (!place)
        return 0;
    char *text = strndup(line, len);
    const struct run_source **from = calloc(o->sources, sizeof(struct run_source *));
    if (!text || !from) {
        free(text);
        free(from);
        return 0;
    }
    from[0] = s;
    *place = (struct run_held){.text = text, .due = now_ms + HOLD_MS, .from = from, .from_count = 1};
    return 1;
}

static void pass_on(struct run_output *o, struct run_source *s, size_t len, int whole, int64_t now_ms)
{
    static const char ours[] = "paramo";
    int message = whole && len > sizeof ours && memcmp(s->line, ours, sizeof ours - 1) == 0 &&
                  (s->line[sizeof ours - 1] == ' ' || s->line[sizeof ours - 1] == ':') &&
                  !memchr(s->line, '\0', len);
    if (!message || !hold(o, s, s->line, len, now_ms)) {
        run_output_flush(o, s); /* one node's lines stay in order */
        print(s->name, s->line, len);
    }
    memmove(s->line, s->line + len, s->used - len);
    s->used -= len;
}

/* ---- reading and printing ---- */

void run_output_end(struct run_source *s)
{
    if (s->used > 0)
        print(s->name, s->line, s->used);
    s->used = 0;
}

void run_output_read(struct run_output *o, struct run_source *s, int64_t now_ms)
{
    for (;;) {
        ssize_t n = read(s->fd, s->line + s->used, sizeof s->line - s->used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            if (s->used > 0)
                run_output_flush(o, s);
            run_output_end(s);
            close(s->fd);
            s->fd = -1;
            return;
        }
        s->used += (size_t)n;
        char *end;
        while ((end = memchr(s->line, '\n', s->used)))
            pass_on(o, s, (size_t)(end - s->line) + 1, 1, now_ms);
        if (s->used == sizeof s->line)
            pass_on(o, s, s->used, 0, now_ms);
    }
}

/* The held line of the source (NULL: of any source) that is due first; NULL: there is none. */
static struct run_held *first_held(struct run_output *o, const struct run_source *source)
{
    struct run_held *first = NULL;
    for (size_t i = 0; i < RUN_HELD_MAX; i++) {
        struct run_held *held = &o->held[i];
        if (held->text && (!source || printed_by(held, source)) && (!first || held->due < first->due))
            first = held;
    }
    return first;
}

void run_output_flush(struct run_output *o, const struct run_source *source)
{
    struct run_held *held;
    while ((held = first_held(o, source)))
        held_print(held);
}

int64_t run_output_due(const struct run_output *o)
{
    int64_t due = -1;
    for (size_t i = 0; i < RUN_HELD_MAX; i++) {
        if (o->held[i].text && (due < 0 || o->held[i].due < due))
            due = o->held[i].due;
    }
    return due;
}

void run_output_tick(struct run_output *o, int64_t now_ms)
{
    struct run_held *held;
    while ((held = first_held(o, NULL)) && held->due <= now_ms)
        held_print(held);
}
