/*
 * Reads safetensors files, the format of Paramo's saved tables: 8 bytes of header length (little-endian), a
 * JSON header, then the bytes of the tensors. Needs no node. Little-endian machines only.
 *
 * Opening a file maps it and checks all of it: sizes, types, and that the tensors cover the data without
 * holes or overlap. No later access reaches outside the mapping. Any number of threads may read an open file.
 * Tests: test/learn/test_tensors.c.
 */
#ifndef PARAMO_TENSORS_H
#define PARAMO_TENSORS_H

#include "paramo.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct paramo_tensors paramo_tensors; /* an open file */

#define PARAMO_TENSORS_HEADER_MAX (100u << 20) /* the format's own limit */
#define PARAMO_TENSOR_RANK_MAX    8

typedef struct paramo_tensor {
    char type[8]; /* "U64", "F32" ... */
    size_t rank;
    uint64_t shape[PARAMO_TENSOR_RANK_MAX];
    const void *data; /* inside the file's memory, aligned to its element */
    size_t bytes;
} paramo_tensor;

/* NOT_FOUND, IO: the file cannot be read. FORMAT: it is no safetensors file. CORRUPT: it is damaged. The
 * message names the file. The caller owns *file (paramo_tensors_close). */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_tensors_open(const char *path, paramo_tensors **file);
/* The same, but the file is read into memory, not mapped. Use it where others may write to the file while it is in use:
 * a mapped file that becomes shorter ends its reader with SIGBUS. MEMORY, too. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_tensors_load(const char *path, paramo_tensors **file);
PARAMO_API void paramo_tensors_close(paramo_tensors *file); /* NULL is allowed */
/* Finds a tensor by name, type and rank. tensor->data is valid until the file is closed. CORRUPT: there is
 * none. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_tensors_get(const paramo_tensors *file, const char *name,
                                                         const char *type, size_t rank,
                                                         paramo_tensor *tensor);
PARAMO_API int paramo_tensors_has(const paramo_tensors *file, const char *name);
/* All bytes of the file, for a checksum. Valid until the file is closed. */
PARAMO_API const void *paramo_tensors_bytes(const paramo_tensors *file, size_t *len);

#ifdef __cplusplus
}
#endif
#endif
