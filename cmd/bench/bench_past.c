#include "cmd/bench/bench_past.h"
#include "cmd/exitcode.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_past {
    json_t *doc;
    const char *path;
};

static int refuse(const char *path, paramo_err err, const char *what)
{
    char message[512];
    (void)snprintf(message, sizeof message, "%s: %s", path, what);
    return code_fail("bench", err, message);
}

static double median_of(const json_t *line, const char *what)
{
    return json_number_value(json_object_get(json_object_get(line, what), "median"));
}

static int sound_line(const json_t *line)
{
    static const char *const words[] = {"path", "name", "unit", "settings", "raw_name"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!json_is_string(json_object_get(line, words[i])))
            return 0;
    double value = median_of(line, "value"), ratio = median_of(line, "ratio");
    return value > 0 && ratio > 0 && isfinite(value) && isfinite(ratio);
}

int past_read(const char *path, struct bench_past **past)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return refuse(path, PARAMO_E_IO, strerror(errno));
    json_error_t where;
    json_t *doc = json_loadf(f, JSON_REJECT_DUPLICATES, &where);
    (void)fclose(f);
    char message[JSON_ERROR_TEXT_LENGTH + 64];
    if (!doc) {
        (void)snprintf(message, sizeof message, "line %d: %s", where.line, where.text);
        return refuse(path, PARAMO_E_FORMAT, message);
    }
    const json_t *lines = json_object_get(doc, "lines");
    size_t n = json_array_size(lines), bad = 0;
    while (bad < n && sound_line(json_array_get(lines, bad)))
        bad++;
    if (n == 0 || bad < n || !json_is_string(json_object_get(doc, "version")) ||
        !json_is_object(json_object_get(doc, "machine"))) {
        (void)snprintf(message, sizeof message, "no document of 'paramo bench --json'%s",
                       n > 0 && bad < n ? ": a line lacks a name or a figure" : "");
        json_decref(doc);
        return refuse(path, PARAMO_E_FORMAT, message);
    }
    *past = malloc(sizeof **past);
    if (!*past) {
        json_decref(doc);
        return refuse(path, PARAMO_E_MEMORY, "out of memory for the lines of that report");
    }
    **past = (struct bench_past){doc, path};
    return 0;
}

void past_free(struct bench_past *past)
{
    if (past)
        json_decref(past->doc);
    free(past);
}

static int is(const json_t *line, const char *word, const char *value)
{
    return strcmp(json_string_value(json_object_get(line, word)), value) == 0;
}

static int same_line(const json_t *then, const struct bench_line *now)
{
    return is(then, "path", now->path) && is(then, "settings", now->settings) &&
           is(then, "name", now->name) && is(then, "raw_name", now->raw_name) && is(then, "unit", now->unit);
}

static void print_pair(const char *what, double then, double now)
{
    (void)printf("  %s %10.4g %10.4g %6.2f", what, then, now, now / then);
}

static void print_machine(const struct bench_past *past)
{
    char model[128];
    report_processor(model, sizeof model);
    const json_t *machine = json_object_get(past->doc, "machine");
    const char *processor = json_string_value(json_object_get(machine, "processor"));
    json_int_t cores = json_integer_value(json_object_get(machine, "cores"));
    (void)printf("\nagainst %s: version %s, %lld cores (%s)\n", past->path,
                 json_string_value(json_object_get(past->doc, "version")), (long long)cores,
                 processor ? processor : "unknown");
    if (!processor || strcmp(processor, model) != 0 || cores != report_cores())
        (void)printf("that was another machine: compare only the ratios to the raw limit\n");
}

void past_print(const struct bench_past *past, const struct bench_report *r)
{
    const json_t *lines = json_object_get(past->doc, "lines");
    size_t only_now = 0, found = 0;
    const char *path = "";
    print_machine(past);
    (void)printf("%-42s  %-5s %10s %10s %6s  %-5s %10s %10s %6s\n", "", "value", "then", "now", "x", "ratio",
                 "then", "now", "x");
    for (size_t i = 0; i < r->n; i++) {
        const struct bench_line *now = &r->line[i];
        const json_t *then = NULL;
        for (size_t k = 0; k < json_array_size(lines) && !then; k++)
            then = same_line(json_array_get(lines, k), now) ? json_array_get(lines, k) : NULL;
        if (!then) {
            only_now++;
            continue;
        }
        if (strcmp(path, now->path) != 0)
            (void)printf("%s\n", path = now->path);
        found++;
        (void)printf("  %-40s", now->name);
        print_pair("     ", median_of(then, "value"), line_median(now));
        print_pair("     ", median_of(then, "ratio"), line_ratio(now));
        (void)printf("  %s\n", now->unit);
    }
    for (size_t i = 0; i < r->n && only_now > 0; i++) {
        const struct bench_line *now = &r->line[i];
        size_t k = 0;
        while (k < json_array_size(lines) && !same_line(json_array_get(lines, k), now))
            k++;
        if (k == json_array_size(lines))
            (void)printf("only now:  %s, %s (%s)\n", now->path, now->name, now->settings);
    }
    if (json_array_size(lines) > found)
        (void)printf("not in this run: %zu of its %zu lines\n", json_array_size(lines) - found,
                     json_array_size(lines));
    (void)fflush(stdout);
}
