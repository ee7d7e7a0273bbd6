/*
 * The calls of the system that learn/ needs to read data: files, pipes, globs, the temporary file, memory and CPU
 * counts.
 *
 * An input is one file (plain, gzip or zstd, recognised by its first bytes) or standard input, read as text from the
 * front. A plain regular file can also be read at any offset, by several threads. Regular files are open only while
 * they are read, so that thousands can be named. It never knows of lines, formats or blocks. An input is used by one
 * thread at a time, except input_read_at. Tests: test/learn/test_input.c.
 */
#ifndef LEARN_IO_INPUT_H
#define LEARN_IO_INPUT_H

#include "paramo/paramo.h"

#include <stddef.h>
#include <stdint.h>

struct input;

/* Replaces patterns among paths by the files that match, sorted; a path that exists is taken as it is. The caller frees
 * the list with input_free_names. NOT_FOUND: no file matches a pattern. INVALID: "-" occurs twice, a path is empty, or
 * n is 0. */
PARAMO_MUST_USE paramo_err input_expand(const char *const *paths, size_t n, char ***names, size_t *count);
void input_free_names(char **names, size_t count);

/* INVALID: path, which a program is about to write, is one of the regular files that paths name, perhaps under another
 * name. Paths that name no file are skipped; opening them is an error. */
PARAMO_MUST_USE paramo_err input_refuse_output(const char *const *paths, size_t n, const char *path);

/* Opens path ("-": standard input), or the kept copy of this pipe (kept_pipe.h). A path that is missing, unreadable,
 * empty or a directory is an error that names it. Pipes are not read yet. stop_fd: a descriptor that becomes readable
 * when a wait for a pipe must end (INTERRUPTED); -1: none. */
PARAMO_MUST_USE paramo_err input_open(const char *path, int stop_fd, struct input **input);
void input_close(struct input *input);
const char *input_name(const struct input *input);

/* The first text (up to 64 KiB), which input_read delivers, too; valid until input_rewind. *whole: it is the whole
 * text. FORMAT: there is no text. */
PARAMO_MUST_USE paramo_err input_head(struct input *input, const char **text, size_t *len, int *whole);
/* The next text, at most cap bytes; *got 0: the end. CORRUPT: the compressed data is truncated or damaged. */
PARAMO_MUST_USE paramo_err input_read(struct input *input, char *text, size_t cap, size_t *got);
/* Goes back to the front; the file is closed until the next read. UNSUPPORTED: the input is a pipe. */
PARAMO_MUST_USE paramo_err input_rewind(struct input *input);

/* Is it a pipe that has been read to its end, and is a regular file now? */
int input_is_kept(const struct input *input);
/* Bytes of the file, 0 for pipes; and bytes of the file that input_read has used so far. */
uint64_t input_size(const struct input *input);
uint64_t input_used(const struct input *input);
/* Is it a plain regular file? Known after input_open. */
int input_is_plain(const struct input *input);
/* Exactly len bytes from offset of a plain regular file. Thread-safe. */
PARAMO_MUST_USE paramo_err input_read_at(const struct input *input, uint64_t offset, char *text, size_t len);

/* A file without a name in dir (NULL: $TMPDIR, or /var/tmp without it): it is gone when *fd is closed. */
PARAMO_MUST_USE paramo_err input_temp_open(const char *dir, int *fd);
PARAMO_MUST_USE paramo_err input_temp_write(int fd, uint64_t offset, const void *data, size_t len);
PARAMO_MUST_USE paramo_err input_temp_read(int fd, uint64_t offset, void *data, size_t len);
void input_temp_close(int fd);

/* A descriptor for stop_fd. input_stop_raise makes it readable, and it stays so; async-signal-safe. */
PARAMO_MUST_USE paramo_err input_stop_open(int *fd);
void input_stop_raise(int fd);

/* Memory that this process may still take without swapping: the machine's or, in a container, that of its control group
 * if it is less. */
uint64_t input_available_memory(void);
unsigned input_available_cpus(void);

#endif
