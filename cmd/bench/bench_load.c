#include "cmd/bench/bench_load.h"
#include "cmd/bench/bench_job.h"

#include <stdlib.h>

static int wait_oldest(struct load_window *w)
{
    paramo_err err = paramo_wait(w->worker, w->ts[w->head], 0);
    w->head = (w->head + 1) % w->size;
    w->n--;
    return err == PARAMO_OK ? 0 : bench_failed(err, "a request of the measurement failed");
}

int load_issue(struct load_window *w, enum load_op op, const paramo_kv *kv)
{
    int code = w->n == w->size ? wait_oldest(w) : 0;
    if (code != 0)
        return code;
    uint64_t *ts = &w->ts[(w->head + w->n) % w->size];
    paramo_err err = op == LOAD_PUSH ? paramo_push(w->worker, w->table, kv, NULL, ts)
                                     : paramo_pull(w->worker, w->table, kv, NULL, ts);
    if (err != PARAMO_OK)
        return bench_failed(err, op == LOAD_PUSH ? "push" : "pull");
    w->n++;
    return 0;
}

int load_drain(struct load_window *w)
{
    int code = 0;
    while (w->n > 0) {
        int one = wait_oldest(w);
        code = code != 0 ? code : one;
    }
    return code;
}

uint64_t load_key(uint64_t i)
{
    uint64_t z = i + 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void load_range(uint64_t from, uint64_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = load_key(from + i);
    qsort(out, n, sizeof *out, compare);
}

void load_draw(uint64_t *seed, uint64_t keys, uint64_t *out, size_t n)
{
    uint64_t stride = keys / n; /* one key of each stride, so that all differ */
    for (size_t i = 0; i < n; i++)
        out[i] = load_key(i * stride + load_key((*seed)++) % stride);
    qsort(out, n, sizeof *out, compare);
}
