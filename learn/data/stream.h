/*
 * A stream: one input cut into parts at line boundaries (with stream_set_quoted: at the ends of records, header.h).
 * Part k holds the lines that start in text bytes [k * part_bytes, (k + 1) * part_bytes); it exists if the text is
 * longer than k * part_bytes.
 *
 * Parts of a plain file are read at their offset. Every other input has one decoder, which moves forward and is shared
 * by all threads. Threads ask for parts a little out of order, so skipped parts stay in a ring of recent parts. For a
 * part that is no longer in the ring, the file is read again from its start. It never knows of formats and rows.
 * Thread-safe. Tests: test/learn/test_reader.c.
 */
#ifndef LEARN_DATA_STREAM_H
#define LEARN_DATA_STREAM_H

#include "paramo/paramo.h"

#include <stddef.h>
#include <stdint.h>

/* Parts of all streams in the ring; arbitrary, more than threads that read one stream. */
#define STREAM_RECENT   32
#define STREAM_MAX_LINE (16u << 20)
#define STREAM_PAD      16 /* newlines after the text: parsers read over its end (PARSE_PAD) */

/* A part's text, owned by the caller; zero it before first use, it can be reused. */
struct stream_text {
    char *data;
    size_t len, cap;
    uint64_t first_line; /* from 1; 0 if unknown */
    uint64_t start;      /* of a plain file: its place in the file */
};
void stream_text_free(struct stream_text *text);

struct stream;
struct stream_recent; /* the ring of recent parts, shared by the streams of one reader */

PARAMO_MUST_USE paramo_err stream_recent_open(struct stream_recent **recent);
void stream_recent_close(struct stream_recent *recent);

/* stop_fd as in input_open; *stop non-zero ends long reads with INTERRUPTED. */
PARAMO_MUST_USE paramo_err stream_open(const char *path, size_t part_bytes, struct stream_recent *recent,
                                       int stop_fd, const _Atomic int *stop, struct stream **stream);
void stream_close(struct stream *stream);

/* Reads part `index`; *ended 1: there is no such part. */
PARAMO_MUST_USE paramo_err stream_part(struct stream *stream, uint64_t index, struct stream_text *text,
                                       int *ended);
/* Calls detect with the stream's first text, and returns its error with the stream's name before it. For pipes this
 * waits for data. Several threads may call it, before or after stream_part. */
typedef paramo_err (*stream_detect_fn)(const char *text, size_t len, int whole, void *arg);
PARAMO_MUST_USE paramo_err stream_detect(struct stream *stream, stream_detect_fn detect, void *arg);

/* From now on, newlines within quotes end no line. Called by detect. */
void stream_set_quoted(struct stream *stream);

const char *stream_name(const struct stream *stream);
/* Is it a pipe? Then it has no size and cannot be read twice. */
int stream_is_pipe(const struct stream *stream);
/* Was it a pipe that is kept in memory (kept_pipe.h)? Its name then does not identify its bytes. */
int stream_is_kept(const struct stream *stream);
/* The number of parts in the stream; UINT64_MAX while that is not known. */
uint64_t stream_parts(const struct stream *stream);
/* About how many bytes of the file lie before the end of part `index`; and the bytes of the whole file (0: unknown). */
uint64_t stream_position(const struct stream *stream, uint64_t index);
uint64_t stream_size(const struct stream *stream);
/* The number of a part's first line, for error messages; it counts the lines before it if necessary. 0 if that
 * fails. */
uint64_t stream_first_line(struct stream *stream, const struct stream_text *text);

#endif
