/*
 * Reads a click log in parallel, block by block. Training, eval and predict read their data through it.
 *
 * The data is a list of streams (files in the order given), each cut into parts: part k of a stream holds the
 * lines that start in bytes [k * part_bytes, (k + 1) * part_bytes) of its text (decompressed text, if
 * compressed). So (stream, index) names the same rows for every process that reads the same files with the
 * same part_bytes. A part may hold no rows. Two ways to read, not to be mixed within one pass:
 *
 *   in order:  while (reader_next(r, &block) == PARAMO_OK && block) { ...; reader_release(r, block); }
 *              Parse threads work ahead by a bounded number of blocks. reader_rewind() starts the next epoch.
 *   by part:   reader_part(r, stream, index, &block, &ended), from any number of threads, which parse. For
 *              training, where the scheduler assigns the parts.
 *
 * With `cache`, parsed blocks are kept for later epochs: in memory up to cache_bytes, beyond that in an
 * unnamed temporary file. If that file cannot grow (disk full), the other blocks are parsed again in each
 * epoch and reader_stats says why. For an input that cannot be read twice (stdin), reading such a block again
 * is an error.
 *
 * With `disk_cache`, parsed parts are kept for later runs, too. Blocks, bad lines and errors are the same with it and
 * without.
 *
 * Errors name the file and line ("train.txt:17: expected ':' after the index"), and stop the reader: every later call
 * returns the same error. It never knows of models, servers or the scheduler. Tests: test/learn/test_reader.c.
 */
#ifndef LEARN_DATA_READER_H
#define LEARN_DATA_READER_H

#include "learn/data/block.h"
#include "learn/data/interact.h"
#include "learn/data/parse.h"

struct reader; /* opaque; safe to use from many threads except where said */

#define READER_PART_BYTES (1u << 20)  /* arbitrary: a few milliseconds of parsing */
#define READER_MAX_LINE   (16u << 20) /* arbitrary */

enum reader_fields {
    READER_NO_FIELDS, /* blocks have no fields */
    READER_FIELDS,    /* blocks have the field of each feature; files without fields are refused */
    READER_FIELDS_IF_ANY /* blocks of files with fields have them; only for callers that take both kinds of blocks */
};

struct reader_options {
    enum parse_format format; /* PARSE_AUTO: detected from each file's first lines */
    unsigned hash_bits;       /* 0: keys as they are; 1..63 */
    struct label_rule label;  /* zeros: 0 or 1 */
    /* the roles of the columns of tables (columns.h), or NULL; the reader becomes one more owner */
    struct columns *columns;
    struct names *names; /* gets the names of keys (names.h), or NULL; must outlive the reader */
    /* the pairs of fields whose features are added (interact.h), or NULL; copied */
    const struct interactions *interactions;
    enum reader_fields fields;
    uint64_t skip_bad; /* this many bad lines are skipped and counted; one more is an error */
    size_t part_bytes; /* 0: READER_PART_BYTES */
    unsigned hold_out; /* percent of the rows that are held out; reader_part has the others (holdout.h) */
    /* with hold_out: the rows of this fold are held out instead (holdout.h); folds 0: by percent */
    unsigned folds, fold;
    unsigned threads;      /* parse threads of reader_next; 0: one for each available CPU, at most 16 */
    int cache;             /* keep parsed blocks for later epochs */
    uint64_t cache_bytes;  /* of memory; 0: half of the memory that is available at reader_open */
    const char *spill_dir; /* NULL: $TMPDIR, or /var/tmp without it */
    /* a folder for parsed parts of files, used by later readers (disk_cache.h); NULL: none. Not used with names. */
    const char *disk_cache;
};

struct reader_stats {
    uint64_t bad_lines;    /* skipped so far; each counts once, however many epochs there are */
    uint64_t parts_parsed; /* parts that were parsed from text */
    uint64_t parts_cached; /* parts that came from the cache */
    uint64_t parts_kept;   /* parts that came from the folder disk_cache */
    uint64_t rows_parsed;
    int no_pairs;         /* there are interactions, and no parsed row has both fields of one of them */
    uint64_t text_bytes;  /* parsed */
    uint64_t cache_bytes; /* in memory now */
    uint64_t spill_bytes; /* in the temporary file */
    uint64_t disk_cache_bytes;
    char disk_cache_note[PARAMO_ERROR_MAX]; /* the first error with the folder disk_cache, or "" */
    char spill_error[160];                  /* why the temporary file cannot be used, or "" */
    /* the first bad line that was skipped, as "file:line: what", or "" */
    char first_bad[PARAMO_ERROR_MAX];
};

void reader_options_init(struct reader_options *options);

/* paths: files, "-" for standard input (at most once), or glob patterns (sorted; one that matches nothing is an error).
 * The first lines of every regular file are read, so a missing or empty file, a directory, or a file of no known format
 * is an error here. Pipes are checked when they are first read. */
PARAMO_MUST_USE paramo_err reader_open(const struct reader_options *options, const char *const *paths,
                                       size_t n, struct reader **reader);
/* Stops the threads and frees all. No other call may be running, no block may be held. NULL is allowed. */
void reader_close(struct reader *reader);

/* Bytes of all files; 0 if there is a pipe among them. */
uint64_t reader_size(const struct reader *reader);
/* The number of parts of all streams; 0 if that is not known before they are read (pipes, compressed files). The stream
 * and index of part number `part` of them; and the number of a part. */
uint64_t reader_parts(const struct reader *reader);
void reader_place(const struct reader *reader, uint64_t part, uint32_t *stream, uint64_t *index);
uint64_t reader_number(const struct reader *reader, uint32_t stream, uint64_t index);
/* The streams, after globs are expanded: for paramo_pool_open. */
uint32_t reader_streams(const struct reader *reader);
const char *reader_stream_name(const struct reader *reader, uint32_t stream);

/* The next block in order, rows > 0; NULL at the end of the data. One thread at a time. The caller releases
 * it. A pass over data without a single row ends in an error. */
PARAMO_MUST_USE paramo_err reader_next(struct reader *reader, const struct block **block);
/* Goes back to the first block. No reader_next may be running. If an input cannot be read twice and is not cached, the
 * next reader_next returns an error. */
PARAMO_MUST_USE paramo_err reader_rewind(struct reader *reader);

/* Part `index` of `stream`. *ended 1 (and *block NULL): the stream ends before this part, and before every later part.
 * Ask for the parts of compressed streams in about ascending order: going back by more than a few parts, to one that is
 * not cached, reads the file again from its start. The caller releases the block. */
PARAMO_MUST_USE paramo_err reader_part(struct reader *reader, uint32_t stream, uint64_t index,
                                       const struct block **block, int *ended);

/* Like reader_part(), to look at rows before they are learned. A pipe cannot be read again, so its part is kept for the
 * next reader_part; only the last such part is kept. */
PARAMO_MUST_USE paramo_err reader_peek(struct reader *reader, uint32_t stream, uint64_t index,
                                       const struct block **block, int *ended);

/* The held-out rows of a part. They are kept after the part is parsed, in memory or in the temporary file, even without
 * `cache`. */
PARAMO_MUST_USE paramo_err reader_held_out(struct reader *reader, uint32_t stream, uint64_t index,
                                           const struct block **block, int *ended);

/* The distinct keys of a block that is kept in memory, if they are kept with it: cache_keys(). They live as long as the
 * block. */
const struct block_keys *reader_keys(struct reader *reader, const struct block *block, int *wanted);
/* cache_keep_keys(). */
const struct block_keys *reader_keep_keys(struct reader *reader, const struct block *block,
                                          struct block_keys *keys);

/* Gives a block back; from any thread. NULL is allowed. retain: adds an owner, which releases the block, too. */
void reader_release(struct reader *reader, const struct block *block);
void reader_retain(struct reader *reader, const struct block *block);

/* How far through the data the end of a part is, in bytes of the files as they are stored: done of total. Roughly, for
 * a progress bar. total 0: not known (one of them is a pipe). */
void reader_progress(struct reader *reader, uint32_t stream, uint64_t index, uint64_t *done, uint64_t *total);

/* Makes every running and later call return INTERRUPTED soon, even if it waits for a pipe. Async-signal-safe. */
void reader_interrupt(struct reader *reader);

void reader_get_stats(struct reader *reader, struct reader_stats *stats);

#endif
