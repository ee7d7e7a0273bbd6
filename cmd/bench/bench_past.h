/*
 * An earlier run's document (paramo bench --json), and how this run's figures stand to it: `paramo bench
 * --compare`, bench/history/. Lines belong together by path, settings, name and raw limit. It knows nothing
 * of how a figure is measured. Tests: test/e2e/bench.sh.
 */
#ifndef CMD_BENCH_BENCH_PAST_H
#define CMD_BENCH_BENCH_PAST_H

#include "cmd/bench/bench_report.h"

struct bench_past;

/* 0, or the program's exit code after one line on standard error. The caller frees *past. */
int past_read(const char *path, struct bench_past **past);
void past_free(struct bench_past *past);
/* For each line: then, now, and now / then, of Paramo's figure and of its ratio to the raw limit, which is
 * what stays comparable from machine to machine; then what is only in one of the runs. */
void past_print(const struct bench_past *past, const struct bench_report *r);

#endif
