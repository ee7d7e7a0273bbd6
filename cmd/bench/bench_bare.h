/*
 * The raw limit of a sparse table: open addressing with linear probing in one array of slots, loops over a
 * batch that prefetch ahead, sized beforehand (it never grows), in huge pages. It knows no rows, no state, no
 * deletion: what a table cannot be faster than. Also behind a bare socket. Tests: test/e2e/bench.sh.
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

/* For at most `keys` keys at a load of at most one half. 0, or -1 without memory. */
int bare_open(struct bare_table *t, uint64_t keys);
void bare_close(struct bare_table *t);
/* value += vals[i], with new keys inserted. */
void bare_add(struct bare_table *t, const uint64_t *keys, const float *vals, size_t n);
/* vals[i] = value, 0 for a key that is not there. */
void bare_get(const struct bare_table *t, const uint64_t *keys, float *vals, size_t n);

/* A bare table at the far end of a socket; batches of at most BARE_BATCH_MAX keys. */
enum { BARE_BATCH_MAX = 1 << 20 };
void bare_serve(int fd);
/* One request; answers come in order, by bare_answer. 0, or -1 with errno. */
enum bare_op { BARE_OPEN, BARE_ADD, BARE_GET };
int bare_request(int fd, enum bare_op op, const uint64_t *keys, const float *vals, size_t n);
int bare_answer(int fd, enum bare_op op, float *vals, size_t n);

#endif
