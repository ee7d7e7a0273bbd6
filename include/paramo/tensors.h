/*
 * Reading safetensors files, the format of Paramo's saved tables: 8 bytes header length (little-endian), a
 * JSON header, then the tensors' bytes. Needs no node.
 *
 * A file is mapped and wholly checked on opening: sizes, types, and that the tensors cover the data without
 * holes or overlap, as the format demands; what is handed out cannot reach outside it. Little-endian machines
 * only. An open file may be read by any number of threads.
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
    const void *data; /* inside the mapping, aligned to its element */
    size_t bytes;
} paramo_tensor;

/* NOT_FOUND or IO: it cannot be read; FORMAT: it is not such a file; CORRUPT: it is damaged. The message
 * names the file. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_tensors_open(const char *path, paramo_tensors **file);
PARAMO_API void paramo_tensors_close(paramo_tensors *file); /* NULL is allowed */
/* CORRUPT if there is no tensor of that name, type and rank. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_tensors_get(const paramo_tensors *file, const char *name,
                                                         const char *type, size_t rank,
                                                         paramo_tensor *tensor);
PARAMO_API int paramo_tensors_has(const paramo_tensors *file, const char *name);
/* The whole file, for a checksum. */
PARAMO_API const void *paramo_tensors_bytes(const paramo_tensors *file, size_t *len);

#ifdef __cplusplus
}
#endif
#endif
