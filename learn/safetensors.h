/*
 * Reading safetensors files: 8 bytes header length (little-endian), a JSON header, then the tensors' bytes.
 *
 * A file is mapped and wholly checked on opening: sizes, types, and that the tensors cover the data without
 * holes or overlap, as the format demands; what is handed out cannot reach outside it. Little-endian machines
 * only. The writer is paramo_table_save. It never knows what the tensors mean. Tests:
 * test/learn/test_safetensors.c.
 */
#ifndef LEARN_SAFETENSORS_H
#define LEARN_SAFETENSORS_H

#include "learn/lerr.h"

#include <stddef.h>
#include <stdint.h>

struct safetensors; /* an open file */

#define SAFETENSORS_MAX_HEADER (100u << 20) /* the reference implementation's limit */
#define SAFETENSORS_MAX_RANK   8

struct safetensor {
    char type[8]; /* "U64", "F32" ... */
    size_t rank;
    uint64_t shape[SAFETENSORS_MAX_RANK];
    const void *data; /* aligned to its element, or the file was refused */
    size_t bytes;
};

/* NOT_FOUND or IO: it cannot be read; CORRUPT: it is not such a file, or damaged. The message names the file.
 */
LEARN_MUST_USE paramo_err safetensors_open(const char *path, struct safetensors **file);
void safetensors_close(struct safetensors *file);
/* CORRUPT if there is no tensor of that name, type and rank. */
LEARN_MUST_USE paramo_err safetensors_get(const struct safetensors *file, const char *name, const char *type,
                                          size_t rank, struct safetensor *tensor);
int safetensors_has(const struct safetensors *file, const char *name);
/* The whole file, for a checksum. */
const void *safetensors_bytes(const struct safetensors *file, size_t *len);

#endif
