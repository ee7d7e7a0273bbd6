#include "cmd/bench/bench_report.h"

#include "paramo/paramo.h"

#include <assert.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

struct spread {
    double q1, median, q3;
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double quantile(double *x, size_t n, double q)
{
    qsort(x, n, sizeof *x, compare);
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? x[i] + (at - (double)i) * (x[i + 1] - x[i]) : x[n - 1];
}

static struct spread spread_of(const double *x, size_t n)
{
    double copy[BENCH_PAIRS_MAX];
    memcpy(copy, x, n * sizeof *x);
    double median = quantile(copy, n, 0.5);
    return (struct spread){quantile(copy, n, 0.25), median, quantile(copy, n, 0.75)};
}

static struct spread ratio_of(const struct bench_line *line)
{
    double ratio[BENCH_PAIRS_MAX];
    for (size_t i = 0; i < line->pairs; i++)
        ratio[i] = line->value[i] / line->raw[i];
    return spread_of(ratio, line->pairs);
}

struct bench_line *report_line(struct bench_report *r, const char *path, const char *unit,
                               enum bench_better better, const char *raw_name, const char *settings,
                               const char *name_format, ...)
{
    assert(r->n < BENCH_LINES_MAX);
    struct bench_line *line = &r->line[r->n++];
    line->path = path;
    line->unit = unit;
    line->better = better;
    line->raw_name = raw_name;
    (void)snprintf(line->settings, sizeof line->settings, "%s", settings);
    va_list args;
    va_start(args, name_format);
    (void)vsnprintf(line->name, sizeof line->name, name_format, args);
    va_end(args);
    return line;
}

void line_pair(struct bench_line *line, double value, double raw)
{
    assert(line->pairs < BENCH_PAIRS_MAX);
    line->value[line->pairs] = value;
    line->raw[line->pairs++] = raw;
}

void report_bar(struct bench_report *r, const char *path, const char *name, double value, double limit,
                enum bench_better better)
{
    assert(r->bars < BENCH_BARS_MAX);
    r->bar[r->bars++] =
        (struct bench_bar){.path = path, .name = name, .value = value, .limit = limit, .better = better};
}

static int bar_is_met(const struct bench_bar *bar)
{
    return bar->better == BENCH_HIGHER ? bar->value >= bar->limit : bar->value <= bar->limit;
}

double line_median(const struct bench_line *line)
{
    return spread_of(line->value, line->pairs).median;
}

double line_ratio(const struct bench_line *line)
{
    return ratio_of(line).median;
}

/* ---- the machine ---- */

long report_cores(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN);
}

static double copy_rate(size_t block, size_t total)
{
    char *a = malloc(block), *b = malloc(block);
    double rate = 0;
    if (a && b) {
        memset(a, 1, block);
        memset(b, 2, block);
        for (int round = 0; round < 3; round++) { /* the best counts: other processes disturb the others */
            struct timespec t0, t1;
            clock_gettime(CLOCK_MONOTONIC, &t0);
            for (size_t done = 0; done < total; done += block) {
                memcpy(a, b, block);
                __asm__ volatile("" : : "r"(a), "r"(b) : "memory");
            }
            clock_gettime(CLOCK_MONOTONIC, &t1);
            double s = (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec);
            rate = (double)total / s / 1e9 > rate ? (double)total / s / 1e9 : rate;
        }
    }
    free(a);
    free(b);
    return rate;
}

void report_machine(struct bench_report *r)
{
    if (getloadavg(&r->load, 1) != 1)
        r->load = -1;
    r->copy_cache = copy_rate((size_t)1 << 20, (size_t)1 << 30);
    r->copy_memory = copy_rate((size_t)128 << 20, (size_t)512 << 20);
}

void report_processor(char *model, size_t cap)
{
    (void)snprintf(model, cap, "unknown");
    FILE *f = fopen("/proc/cpuinfo", "re");
    if (!f)
        return;
    char row[256];
    while (fgets(row, sizeof row, f)) {
        char *colon = strchr(row, ':');
        if (strncmp(row, "model name", 10) == 0 && colon) {
            row[strcspn(row, "\n")] = 0;
            (void)snprintf(model, cap, "%s", colon + 2);
            break;
        }
    }
    (void)fclose(f);
}

/* ---- printing ---- */

enum { NUMBER_BYTES = 32 };

static const char *number(double x, char buf[NUMBER_BYTES])
{
    double size = x < 0 ? -x : x;
    int digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
    (void)snprintf(buf, NUMBER_BYTES, "%.*f", digits, x);
    return buf;
}

void report_print_machine(const struct bench_report *r)
{
    struct utsname u;
    char model[128];
    report_processor(model, sizeof model);
    (void)uname(&u);
    (void)printf("%ld cores (%s, %s), %s %s, %.1f GB; memcpy %.1f GB/s (1 MiB), %.1f GB/s (128 MiB)\n",
                 report_cores(), model, paramo_cpu(), u.sysname, u.release,
                 (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 1e9, r->copy_cache,
                 r->copy_memory);
    if (r->load > 0.2 * (double)sysconf(_SC_NPROCESSORS_ONLN)) /* arbitrary: an idle machine has less */
        (void)printf("other programs are running here: the load was %.1f before this run. Its figures are "
                     "not reliable\n",
                     r->load);
    (void)printf("median [quartiles] of pairs: each raw limit is measured in turn with Paramo\n");
}

void report_print(const struct bench_report *r, size_t from)
{
    const char *settings = "";
    for (size_t i = from; i < r->n; i++) {
        const struct bench_line *line = &r->line[i];
        struct spread v = spread_of(line->value, line->pairs), w = spread_of(line->raw, line->pairs),
                      ratio = ratio_of(line);
        char b[6][NUMBER_BYTES], around[2][2 * NUMBER_BYTES + 8];
        if (i == from)
            (void)printf("\n%s\n", line->path);
        if (strcmp(settings, line->settings) != 0) {
            settings = line->settings;
            (void)printf("  %s\n", settings);
            (void)printf("    %-36s %-8s %8s %-18s %8s %-18s %-18s raw limit\n", "", "", "Paramo", "", "raw",
                         "", line->better == BENCH_HIGHER ? "ratio, more=better" : "ratio, less=better");
        }
        (void)snprintf(around[0], sizeof around[0], "[%s %s]", number(v.q1, b[0]), number(v.q3, b[1]));
        (void)snprintf(around[1], sizeof around[1], "[%s %s]", number(w.q1, b[2]), number(w.q3, b[3]));
        (void)printf("    %-36s %-8s %8s %-18s %8s %-18s %.2f [%.2f %.2f]   %s\n", line->name, line->unit,
                     number(v.median, b[4]), around[0], number(w.median, b[5]), around[1], ratio.median,
                     ratio.q1, ratio.q3, line->raw_name);
    }
    for (size_t i = 0; from < r->n && i < r->bars; i++) {
        const struct bench_bar *bar = &r->bar[i];
        if (strcmp(bar->path, r->line[from].path) == 0)
            (void)printf("    %s: %s %.5g, %s %.5g\n", bar_is_met(bar) ? "met   " : "MISSED", bar->name,
                         bar->value, bar->better == BENCH_HIGHER ? "at least" : "at most", bar->limit);
    }
    (void)fflush(stdout);
}

static json_t *bars_json(const struct bench_report *r)
{
    json_t *bars = json_array();
    for (size_t i = 0; i < r->bars; i++) {
        const struct bench_bar *bar = &r->bar[i];
        (void)json_array_append_new(
            bars, json_pack("{s:s, s:s, s:f, s:f, s:s, s:b}", "path", bar->path, "name", bar->name, "value",
                            bar->value, "limit", bar->limit, "better",
                            bar->better == BENCH_HIGHER ? "higher" : "lower", "met", bar_is_met(bar)));
    }
    return bars;
}

static json_t *spread_json(struct spread s)
{
    return json_pack("{s:f, s:f, s:f}", "median", s.median, "q1", s.q1, "q3", s.q3);
}

int report_print_json(const struct bench_report *r, size_t pairs, int quick)
{
    struct utsname u;
    char model[128];
    report_processor(model, sizeof model);
    (void)uname(&u);
    json_t *lines = json_array();
    for (size_t i = 0; i < r->n; i++) {
        const struct bench_line *line = &r->line[i];
        struct spread ratio = ratio_of(line);
        json_t *j = json_pack(
            "{s:s, s:s, s:s, s:s, s:s, s:I, s:o, s:s, s:o, s:o}", "path", line->path, "name", line->name,
            "unit", line->unit, "better", line->better == BENCH_HIGHER ? "higher" : "lower", "settings",
            line->settings, "pairs", (json_int_t)line->pairs, "value",
            spread_json(spread_of(line->value, line->pairs)), "raw_name", line->raw_name, "raw",
            spread_json(spread_of(line->raw, line->pairs)), "ratio", spread_json(ratio));
        (void)json_array_append_new(lines, j);
    }
    json_t *doc = json_pack(
        "{s:s, s:{s:I, s:s, s:s, s:s, s:s, s:I, s:f, s:f, s:f}, s:{s:I, s:b}, s:o, s:o}", "version",
        paramo_version(), "machine", "cores", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "processor", model,
        "vectors", paramo_cpu(), "system", u.sysname, "kernel", u.release, "memory_bytes",
        (json_int_t)sysconf(_SC_PHYS_PAGES) * (json_int_t)sysconf(_SC_PAGESIZE), "memcpy_1MiB_GB_per_s",
        r->copy_cache, "memcpy_128MiB_GB_per_s", r->copy_memory, "load_before", r->load, "settings", "pairs",
        (json_int_t)pairs, "quick", quick, "lines", lines, "bars", bars_json(r));
    int ok = doc && json_array_size(lines) == r->n &&
             json_dumpf(doc, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) == 0 && putchar('\n') != EOF &&
             fflush(stdout) == 0;
    json_decref(doc);
    return ok ? 0 : -1;
}
