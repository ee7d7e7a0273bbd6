/*
 * Compares this run with the document of an earlier one (paramo bench --json, bench/history/), for `paramo bench
 * --compare`. Lines are compared if path, settings, name and raw limit are equal. It never knows how a figure is
 * measured. Tests: test/e2e/bench.sh.
 */
#ifndef CMD_BENCH_BENCH_PAST_H
#define CMD_BENCH_BENCH_PAST_H

#include "cmd/bench/bench_report.h"

struct bench_past;

/* Reads the document. Returns 0, or the program's exit code after an error is printed. The caller frees *past. */
int past_read(const char *path, struct bench_past **past);
void past_free(struct bench_past *past);
/* Prints, for each line, the earlier value, this value and their ratio, of Paramo's figure and of its ratio to the raw
 * limit, which can be compared between machines. Then it lists the lines that only one of the runs has. */
void past_print(const struct bench_past *past, const struct bench_report *r);

#endif
