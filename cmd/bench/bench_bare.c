#include "cmd/bench/bench_bare.h"
#include "cmd/bench/bench_raw.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Keys between a prefetch and its use; numbers near it were equally fast on the tested machines. */
#define AHEAD 16

int bare_open(struct bare_table *t, uint64_t keys)
{
    unsigned bits = 4;
    while (((uint64_t)1 << bits) < 2 * keys)
        bits++;
    size_t bytes = sizeof *t->slot << bits;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -1;
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    *t = (struct bare_table){memory, ((uint64_t)1 << bits) - 1, 64 - bits, bytes};
    return 0;
}

void bare_close(struct bare_table *t)
{
    if (t->slot)
        (void)munmap(t->slot, t->bytes);
    t->slot = NULL;
}

static uint64_t home(const struct bare_table *t, uint64_t key)
{
    return key * 0x9E3779B97F4A7C15u >> t->shift; /* Fibonacci hashing (Knuth, TAOCP 3, 6.4) */
}

void bare_add(struct bare_table *t, const uint64_t *keys, const float *vals, size_t n)
{
    for (size_t i = 0; i < n && i < AHEAD; i++)
        __builtin_prefetch(&t->slot[home(t, keys[i])], 1);
    for (size_t i = 0; i < n; i++) {
        if (i + AHEAD < n)
            __builtin_prefetch(&t->slot[home(t, keys[i + AHEAD])], 1);
        uint64_t at = home(t, keys[i]);
        while (t->slot[at].used && t->slot[at].key != keys[i])
            at = (at + 1) & t->mask;
        t->slot[at].key = keys[i];
        t->slot[at].used = 1;
        t->slot[at].value += vals[i];
    }
}

void bare_get(const struct bare_table *t, const uint64_t *keys, float *vals, size_t n)
{
    for (size_t i = 0; i < n && i < AHEAD; i++)
        __builtin_prefetch(&t->slot[home(t, keys[i])]);
    for (size_t i = 0; i < n; i++) {
        if (i + AHEAD < n)
            __builtin_prefetch(&t->slot[home(t, keys[i + AHEAD])]);
        uint64_t at = home(t, keys[i]);
        while (t->slot[at].used && t->slot[at].key != keys[i])
            at = (at + 1) & t->mask;
        vals[i] = t->slot[at].used ? t->slot[at].value : 0;
    }
}

/* ---- behind a socket ---- */

struct bare_head {
    uint64_t op, n;
};

static int serve_one(int fd, const struct bare_head *head, struct bare_table *t, uint64_t *keys, float *vals)
{
    size_t n = (size_t)head->n;
    switch ((enum bare_op)head->op) {
    case BARE_OPEN:
        bare_close(t);
        return bare_open(t, head->n) != 0 ? -1 : raw_send(fd, head, sizeof *head);
    case BARE_ADD:
        if (raw_recv(fd, NULL, keys, n * sizeof *keys) != 0 ||
            raw_recv(fd, NULL, vals, n * sizeof *vals) != 0)
            return -1;
        bare_add(t, keys, vals, n);
        return raw_send(fd, head, sizeof *head);
    case BARE_GET:
        if (raw_recv(fd, NULL, keys, n * sizeof *keys) != 0)
            return -1;
        bare_get(t, keys, vals, n);
        return raw_send_begin(fd, head, sizeof *head) != 0 ? -1 : raw_send(fd, vals, n * sizeof *vals);
    }
    return -1;
}

void bare_serve(int fd)
{
    struct bare_table t = {0};
    struct bare_head head;
    uint64_t *keys = malloc(BARE_BATCH_MAX * sizeof *keys);
    float *vals = malloc(BARE_BATCH_MAX * sizeof *vals);
    while (keys && vals && raw_recv(fd, NULL, &head, sizeof head) == 0 &&
           (head.op == BARE_OPEN || head.n <= BARE_BATCH_MAX) && serve_one(fd, &head, &t, keys, vals) == 0)
        ;
    bare_close(&t);
    free(vals);
    free(keys);
}

int bare_request(int fd, enum bare_op op, const uint64_t *keys, const float *vals, size_t n)
{
    struct bare_head head = {op, n};
    if (op == BARE_OPEN)
        return raw_send(fd, &head, sizeof head);
    if (raw_send_begin(fd, &head, sizeof head) != 0)
        return -1;
    if (op == BARE_GET)
        return raw_send(fd, keys, n * sizeof *keys);
    return raw_send_begin(fd, keys, n * sizeof *keys) != 0 ? -1 : raw_send(fd, vals, n * sizeof *vals);
}

int bare_answer(int fd, enum bare_op op, float *vals, size_t n)
{
    struct bare_head head;
    if (raw_recv(fd, NULL, &head, sizeof head) != 0)
        return -1;
    if (head.op != (uint64_t)op || head.n != n) {
        errno = EPROTO;
        return -1;
    }
    return op == BARE_GET ? raw_recv(fd, NULL, vals, n * sizeof *vals) : 0;
}
