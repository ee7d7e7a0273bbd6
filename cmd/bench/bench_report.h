/*
 * The report of a benchmark run: lines of pairs (Paramo's figure and that of the raw limit, measured one after the
 * other), of which median and quartiles are printed, as a table or as a JSON document.
 *
 * The ratio is taken pair by pair, so that a machine that is slow for a while is slow for both. It never knows how a
 * figure is measured. Tests: test/e2e/bench.sh.
 */
#ifndef CMD_BENCH_BENCH_REPORT_H
#define CMD_BENCH_BENCH_REPORT_H

#include <stddef.h>
#include <stdint.h>

enum { BENCH_PAIRS_MAX = 101, BENCH_LINES_MAX = 160, BENCH_BARS_MAX = 16 };

enum bench_better { BENCH_HIGHER, BENCH_LOWER };

struct bench_line {
    const char *path; /* "dense", "latency" ...: constants, as are unit and raw_name */
    char name[72];
    const char *unit;
    const char *raw_name;
    enum bench_better better;
    char settings[160];
    size_t pairs;
    double value[BENCH_PAIRS_MAX], raw[BENCH_PAIRS_MAX];
};

/* A figure that must reach a limit. */
struct bench_bar {
    const char *path, *name; /* constants */
    double value, limit;
    enum bench_better better;
};

struct bench_report {
    struct bench_line line[BENCH_LINES_MAX];
    size_t n;
    struct bench_bar bar[BENCH_BARS_MAX];
    size_t bars;
    double copy_cache, copy_memory; /* memcpy, one core, GB/s: 1 MiB blocks, blocks beyond the caches */
    double load; /* the 1-minute load average before the run, which is that of other processes; -1: unknown */
};

/* Measures the copy rates and the load of the machine. */
void report_machine(struct bench_report *r);
/* Adds a line; settings names everything that is not a default. Lines live as long as the report. */
struct bench_line *report_line(struct bench_report *r, const char *path, const char *unit,
                               enum bench_better better, const char *raw_name, const char *settings,
                               const char *name_format, ...) __attribute__((format(printf, 7, 8)));
/* Adds a pair of figures. */
void line_pair(struct bench_line *line, double value, double raw);
/* Adds a figure that must be at least the limit, or, if lower is better, at most. */
void report_bar(struct bench_report *r, const char *path, const char *name, double value, double limit,
                enum bench_better better);

/* The medians of Paramo's figure and of its ratio to the raw limit. The line must have a pair. */
double line_median(const struct bench_line *line);
double line_ratio(const struct bench_line *line);

/* The name of the processor ("unknown" if the system has none), and the number of cores online. */
void report_processor(char *model, size_t cap);
long report_cores(void);

void report_print_machine(const struct bench_report *r);
/* Prints the lines from index `from` on, which are those of one path. */
void report_print(const struct bench_report *r, size_t from);
/* pairs, quick: the settings of the command line. Returns 0, or -1 if the document cannot be written. */
int report_print_json(const struct bench_report *r, size_t pairs, int quick);

/* The quantile q (0 to 1) of n > 0 numbers, which it sorts; between two numbers it interpolates. */
double quantile(double *x, size_t n, double q);

#endif
