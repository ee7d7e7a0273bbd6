#include "learn/data/packed.h"
#include "learn/io/input.h"

#include <string.h>
#include <xxhash.h>

#define CHUNK 4096

static size_t key_bytes(const struct packed *p)
{
    return p->shape.features * (p->narrow ? sizeof(uint32_t) : sizeof(uint64_t));
}

static size_t rest_bytes(const struct packed *p)
{
    return block_bytes(&p->shape) - p->shape.features * sizeof(uint64_t);
}

size_t packed_bytes(const struct packed *p)
{
    return key_bytes(p) + rest_bytes(p);
}

struct packed packed_of(const struct block *block)
{
    uint64_t all = 0;
    for (size_t i = 0; i < block->features; i++)
        all |= block->key[i];
    return (struct packed){.shape = block_shape(block), .narrow = all <= UINT32_MAX};
}

/* Writes at *offset, and moves *offset behind the bytes. */
static paramo_err put(int fd, uint64_t *offset, const void *bytes, size_t len, XXH3_state_t *state)
{
    if (state)
        (void)XXH3_64bits_update(state, bytes, len);
    paramo_err err = input_temp_write(fd, *offset, bytes, len);
    *offset += len;
    return err;
}

paramo_err packed_write(int fd, uint64_t offset, const struct packed *p, const struct block *b, uint64_t *sum)
{
    XXH3_state_t *state = sum ? XXH3_createState() : NULL;
    uint32_t key[CHUNK];
    paramo_err err = PARAMO_OK;
    if (sum && !state)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a checksum");
    if (state)
        (void)XXH3_64bits_reset(state);
    for (size_t i = 0, n; p->narrow && err == PARAMO_OK && i < p->shape.features; i += n) {
        n = p->shape.features - i < CHUNK ? p->shape.features - i : CHUNK;
        for (size_t k = 0; k < n; k++)
            key[k] = (uint32_t)b->key[i + k];
        err = put(fd, &offset, key, n * sizeof *key, state);
    }
    if (err == PARAMO_OK)
        err = p->narrow ? put(fd, &offset, b->key + p->shape.features, rest_bytes(p), state)
                        : put(fd, &offset, b->key, packed_bytes(p), state);
    if (state) {
        *sum = XXH3_64bits_digest(state);
        (void)XXH3_freeState(state);
    }
    return err;
}

paramo_err packed_read(int fd, uint64_t offset, const struct packed *p, struct block *b, uint64_t *sum)
{
    paramo_err err = block_alloc(b, &p->shape);
    if (err != PARAMO_OK)
        return err;
    /* narrow keys go to the upper half of their array and are widened from the front, so that a wide key never
     * overwrites a narrow one that has not been read */
    char *narrow = (char *)b->key + p->shape.features * (sizeof(uint64_t) - sizeof(uint32_t));
    char *from = p->narrow ? narrow : (char *)b->key;
    err = input_temp_read(fd, offset, from, packed_bytes(p));
    if (err != PARAMO_OK) {
        block_free(b);
        return err;
    }
    if (sum)
        *sum = XXH3_64bits(from, packed_bytes(p));
    for (size_t i = 0; p->narrow && i < p->shape.features; i++) {
        uint32_t key;
        memcpy(&key, narrow + i * sizeof key, sizeof key);
        b->key[i] = key;
    }
    return PARAMO_OK;
}
