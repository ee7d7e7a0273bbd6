/*
 * bench parse: parsing of libsvm and libffm on one core, in processor time, beside a search for the line ends of the
 * same bytes. Rows are drawn, with one shape for each line of the report. The text is as long as a part of a file, and
 * is parsed many times, so it is in the cache, as it is after a read. Tests: test/e2e/bench.sh.
 */
#include "cmd/bench/bench_paths.h"
#include "cmd/exitcode.h"
#include "learn/data/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TEXT = 1 << 20, ROW = 4096, FEATURES = 39, IDS = 1000000 };

static const struct shape {
    const char *name;
    enum parse_format format;
    int numbers; /* values have six digits; otherwise all are 1 */
} shapes[] = {
    {"libsvm, values 1", PARSE_LIBSVM, 0},
    {"libffm, values 1", PARSE_LIBFFM, 0},
    {"libsvm, values of 6 digits", PARSE_LIBSVM, 1},
    {"libffm, values of 6 digits", PARSE_LIBFFM, 1},
};

static double cpu_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Draws rows of a shape, up to TEXT bytes, and the padding that a parser may read. Returns the length of the rows. */
static size_t draw(const struct shape *shape, char text[TEXT + PARSE_PAD])
{
    uint64_t random = 1;
    size_t len = 0;
    while (len + ROW < TEXT) {
        len += (size_t)snprintf(text + len, TEXT - len, "%d", (int)(random >> 40 & 1));
        for (unsigned f = 0; f < FEATURES; f++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            const unsigned id = (unsigned)(random >> 33) % IDS, value = (unsigned)(random >> 20) % 1000000;
            if (shape->format == PARSE_LIBFFM)
                len += (size_t)snprintf(text + len, TEXT - len, " %u:%u", f, id);
            else
                len += (size_t)snprintf(text + len, TEXT - len, " %u", id);
            len += (size_t)(shape->numbers ? snprintf(text + len, TEXT - len, ":%u.%06u", value % 7, value)
                                           : snprintf(text + len, TEXT - len, ":1"));
        }
        text[len++] = '\n';
    }
    memset(text + len, '\n', PARSE_PAD);
    return len;
}

static paramo_err bad_line(void *arg, uint64_t line, const char *what)
{
    (void)arg;
    return paramo_error_set(PARAMO_E_FORMAT, "line %llu: %s", (unsigned long long)line, what);
}

/* Sets *parsed and *searched to the GB a second of the parser and of the search. */
static paramo_err pair(const struct shape *shape, const char *text, size_t len, unsigned times,
                       struct parse_buffer *rows, double *parsed, double *searched)
{
    const struct parse_settings settings = {.format = shape->format};
    paramo_err err = PARAMO_OK;
    size_t lines = 0;
    double start = cpu_seconds();
    for (unsigned i = 0; err == PARAMO_OK && i < times; i++)
        err = parse_text(&settings, text, len, rows, bad_line, NULL);
    const double middle = cpu_seconds();
    for (unsigned i = 0; i < times; i++)
        for (const char *p = text; (p = memchr(p, '\n', (size_t)(text + len - p))); p++)
            lines++;
    const double bytes = 1e-9 * (double)times * (double)len, end = cpu_seconds();
    if (err == PARAMO_OK && lines != times * rows->rows)
        err = paramo_error_set(PARAMO_E_FORMAT, "%zu lines are not %u times %zu rows", lines, times,
                               rows->rows);
    *parsed = bytes / (middle - start);
    *searched = bytes / (end - middle);
    return err;
}

int bench_parse(const struct bench_settings *s, struct bench_report *r)
{
    struct parse_buffer rows = {0};
    paramo_err err = PARAMO_OK;
    char *text = malloc(TEXT + PARSE_PAD);
    if (!text)
        err = paramo_error_set(PARAMO_E_MEMORY, "out of memory for the text");
    for (size_t i = 0; err == PARAMO_OK && i < sizeof shapes / sizeof *shapes; i++) {
        struct bench_line *line =
            report_line(r, "parse", "GB/s", BENCH_HIGHER, "memchr for the line ends",
                        "one core, processor time, 1 MiB in the cache", "%s", shapes[i].name);
        const size_t len = draw(&shapes[i], text);
        double parsed, searched;
        for (uint64_t k = 0; err == PARAMO_OK && k <= s->pairs; k++) {
            err = pair(&shapes[i], text, len, s->quick ? 4 : 64, &rows, &parsed, &searched);
            if (k > 0) /* the first one warms up */
                line_pair(line, parsed, searched);
        }
    }
    parse_buffer_free(&rows);
    free(text);
    return err == PARAMO_OK ? 0 : code_fail("bench", err, paramo_last_error());
}
