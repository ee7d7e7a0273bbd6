/*
 * What a benchmark run has found: lines of pairs (Paramo's figure, the raw limit's), measured one after the
 * other, of which median and quartiles are shown, as a table or as one JSON document.
 *
 * It knows nothing of how a figure is measured. The ratio is taken pair by pair, so that a machine that is
 * slow for a while is slow for both. Tests: test/e2e/bench.sh.
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
    double load; /* what others ran before we began: the 1-minute load average; -1 unknown */
};

/* Measures what belongs to the machine. */
void report_machine(struct bench_report *r);
/* A new line; settings say everything that is not a default. Lines live as long as the report. */
struct bench_line *report_line(struct bench_report *r, const char *path, const char *unit,
                               enum bench_better better, const char *raw_name, const char *settings,
                               const char *name_format, ...) __attribute__((format(printf, 7, 8)));
void line_pair(struct bench_line *line, double value, double raw);
/* Judges a figure: met if it is at least the limit, or, where lower is better, at most. */
void report_bar(struct bench_report *r, const char *path, const char *name, double value, double limit,
                enum bench_better better);

/* Medians, of Paramo's figure and of its ratio to the raw limit. The line has pairs. */
double line_median(const struct bench_line *line);
double line_ratio(const struct bench_line *line);

/* The processor's name, "unknown" if the system does not say; cores online. */
void report_processor(char *model, size_t cap);
long report_cores(void);

void report_print_machine(const struct bench_report *r);
/* The lines from `from` on, that is, those of one path. */
void report_print(const struct bench_report *r, size_t from);
/* 0, or -1 if it could not be written. `settings` as on the command line: pairs, quick. */
int report_print_json(const struct bench_report *r, size_t pairs, int quick);

/* Sorts x. q in 0..1, between neighbours linearly. n > 0. */
double quantile(double *x, size_t n, double q);

#endif
