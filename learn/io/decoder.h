/*
 * Compressed bytes to text, as a stream: gzip (any number of members) and zstd (any number of frames,
 * skippable ones too). It never knows of files: bytes are handed in as they come. Not thread-safe. Tests:
 * test/learn/test_input.c.
 */
#ifndef LEARN_IO_DECODER_H
#define LEARN_IO_DECODER_H

#include "paramo/paramo.h"

#include <stddef.h>

enum decoder_kind { DECODER_NONE, DECODER_GZIP, DECODER_ZSTD };

/* Detects the kind from the first bytes. FORMAT: another known compression (xz, bzip2, lz4, zip), which the message
 * names. */
PARAMO_MUST_USE paramo_err decoder_detect(const unsigned char *head, size_t len, enum decoder_kind *kind);

struct decoder;
PARAMO_MUST_USE paramo_err decoder_open(enum decoder_kind kind, struct decoder **decoder);
void decoder_close(struct decoder *decoder);
/* Takes bytes from in[*pos..len), and writes *got bytes, at most cap. While there is input, at least one of *pos and
 * *got advances. CORRUPT: the bytes are not such a stream (message without a file name). */
PARAMO_MUST_USE paramo_err decoder_run(struct decoder *decoder, const char *in, size_t len, size_t *pos,
                                       char *out, size_t cap, size_t *got);
/* May the input end here? If not, an input that ends is truncated. */
int decoder_complete(const struct decoder *decoder);

#endif
