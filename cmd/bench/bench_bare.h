/*
 * The raw limit of a sparse table: open addressing with linear probing in one array of slots in huge pages, whose size
 * is given beforehand (it never grows), and loops over a batch that prefetch ahead. It has no rows, state and deletion,
 * so no table can be much faster. It also serves behind a bare socket. Tests: test/e2e/bench.sh.
 */
#ifndef CMD_BENCH_BENCH_BARE_H
#define CMD_BENCH_BENCH_BARE_H

#include <stddef.h>
#include <stdint.h>

struct bare_slot {
    uint64_t key;
    float value;
    uint32_t used;
};

struct bare_table {
    struct bare_slot *slot;
    uint64_t mask;
    unsigned shift;
    size_t bytes;
};

/* Makes a table for at most `keys` keys, at a load of at most one half. Returns 0, or -1 without memory. */
int bare_open(struct bare_table *t, uint64_t keys);
void bare_close(struct bare_table *t);
/* Adds vals[i] to the value of keys[i], and inserts new keys. */
void bare_add(struct bare_table *t, const uint64_t *keys, const float *vals, size_t n);
/* Copies the values; vals[i] is 0 if the table lacks the key. */
void bare_get(const struct bare_table *t, const uint64_t *keys, float *vals, size_t n);

/* Serves a bare table at the far end of a socket, until the connection ends; batches of at most BARE_BATCH_MAX keys. */
enum { BARE_BATCH_MAX = 1 << 20 };
void bare_serve(int fd);
/* Sends one request; bare_answer receives the answers, in order. Both return 0, or -1 with errno. */
enum bare_op { BARE_OPEN, BARE_ADD, BARE_GET };
int bare_request(int fd, enum bare_op op, const uint64_t *keys, const float *vals, size_t n);
int bare_answer(int fd, enum bare_op op, float *vals, size_t n);

#endif
