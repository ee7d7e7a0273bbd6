/*
 * The load that a benchmark puts on a worker: a window of requests in flight, and batches of random keys. It never
 * knows what is measured. Functions that return int return 0, or the program's exit code after an error is printed.
 * Tests: test/e2e/bench.sh.
 */
#ifndef CMD_BENCH_BENCH_LOAD_H
#define CMD_BENCH_BENCH_LOAD_H

#include "paramo/paramo.h"

#include <stddef.h>
#include <stdint.h>

enum { LOAD_WINDOW_MAX = 64 };
enum load_op { LOAD_PUSH, LOAD_PULL };

/* The unanswered requests, at most `size`, in the order of their issue. */
struct load_window {
    paramo_worker *worker;
    paramo_table *table;
    size_t size, head, n;
    uint64_t ts[LOAD_WINDOW_MAX];
};

/* Waits for the oldest request if the window is full, then issues one. It uses kv's arrays until `size` later requests
 * are issued, or load_drain returns. */
int load_issue(struct load_window *w, enum load_op op, const paramo_kv *kv);
/* Waits for all requests. */
int load_drain(struct load_window *w);

/* The i-th key of every benchmark, by a bijection of 64 bits: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). */
uint64_t load_key(uint64_t i);
/* n different keys drawn from load_key(0 .. keys-1), ascending. n <= keys. */
void load_draw(uint64_t *seed, uint64_t keys, uint64_t *out, size_t n);
/* load_key(from) .. load_key(from + n - 1), ascending. */
void load_range(uint64_t from, uint64_t *out, size_t n);

#endif
