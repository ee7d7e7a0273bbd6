/*
 * The paths that 'paramo bench' measures. A function starts the processes that it needs, measures pair by pair, adds
 * its lines to the report, and leaves no process behind. It returns 0, or the program's exit code after an error is
 * printed. Tests: test/e2e/bench.sh.
 */
#ifndef CMD_BENCH_BENCH_PATHS_H
#define CMD_BENCH_BENCH_PATHS_H

#include "cmd/bench/bench_report.h"

#include <stdint.h>

struct bench_settings {
    uint64_t pairs;          /* pairs per line */
    uint64_t keys;           /* table, sparse, memory, migrate, checkpoint: keys known */
    int big;                 /* table: 100 M keys as well */
    uint64_t count;          /* memory: small pushes */
    uint64_t connections;    /* memory: workers opened and closed */
    uint64_t busy;           /* latency: processes that keep the cores busy */
    int json;                /* only the document of the report is printed */
    int quick;               /* small samples: figures are rough */
    const char *plot;        /* straggler: the path of an SVG; NULL: none */
    const char *van;         /* between processes: "tcp" or "ucx" */
    const char *const *data; /* filters: files of rows; none: rows are drawn */
    size_t data_count;
};

int bench_dense(const struct bench_settings *s, struct bench_report *r);
int bench_latency(const struct bench_settings *s, struct bench_report *r);
int bench_rate(const struct bench_settings *s, struct bench_report *r);
int bench_table(const struct bench_settings *s, struct bench_report *r);
int bench_sparse(const struct bench_settings *s, struct bench_report *r);
int bench_ranges(const struct bench_settings *s, struct bench_report *r);
int bench_parse(const struct bench_settings *s, struct bench_report *r);
int bench_embedded(const struct bench_settings *s, struct bench_report *r);
int bench_memory(const struct bench_settings *s, struct bench_report *r);
int bench_replicate(const struct bench_settings *s, struct bench_report *r);
int bench_failover(const struct bench_settings *s, struct bench_report *r);
int bench_migrate(const struct bench_settings *s, struct bench_report *r);
int bench_checkpoint(const struct bench_settings *s, struct bench_report *r);
int bench_straggler(const struct bench_settings *s, struct bench_report *r);
int bench_filters(const struct bench_settings *s, struct bench_report *r);
int bench_darlin(const struct bench_settings *s, struct bench_report *r);
/* Removes a folder and its contents; errors are ignored. */
void bench_remove_folder(const char *dir);
/* A part of bench_replicate: the record of applied pushes, without a server. */
void bench_applied_window(const struct bench_settings *s, struct bench_report *r);

#endif
