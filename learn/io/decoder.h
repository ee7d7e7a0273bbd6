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

/* Told by the first bytes. Other compressions that are recognised (xz, bzip2, lz4, zip): FORMAT error naming
 * them. */
PARAMO_MUST_USE paramo_err decoder_detect(const unsigned char *head, size_t len, enum decoder_kind *kind);

struct decoder;
PARAMO_MUST_USE paramo_err decoder_open(enum decoder_kind kind, struct decoder **decoder);
void decoder_close(struct decoder *decoder);
/* Takes from in[*pos..len) and writes at most cap bytes: *got. Moves on at least one of the two while there
 * is input. CORRUPT: the bytes are no such stream (message without a file name). */
PARAMO_MUST_USE paramo_err decoder_run(struct decoder *decoder, const char *in, size_t len, size_t *pos,
                                       char *out, size_t cap, size_t *got);
/* May the input end here? Else it is truncated. */
int decoder_complete(const struct decoder *decoder);

#endif
