/*
 * A file of parsed parts: what `--cache DIR` keeps of one source file between runs.
 *
 *     header   512 bytes: magic, version, the source as it was, the settings it was read with, the index's offset
 *     parts    the arrays of a block each (packed.h), in any order
 *     index    a record for each part: its offset, its counts, its checksum
 *
 * All numbers have the byte order of the machine that wrote them; a file with the other order is refused. Header, index
 * and each part have an XXH3 checksum, so a file that was cut off, changed or damaged is never taken for data. A file
 * gets its name by rename, when it is complete. It never knows of readers or of text. Tests:
 * test/learn/test_disk_cache.c.
 */
#ifndef LEARN_DATA_CACHE_FILE_H
#define LEARN_DATA_CACHE_FILE_H

#include "learn/data/packed.h"

#include <limits.h>

#define CACHE_FILE_TEXT 256

/* The file that the parts were parsed from. Equal sources give equal parts. */
struct cache_source {
    uint64_t dev, ino, size, mtime_ns;
    /* XXH3 of the file, or if it is longer than 512 KiB, of 128 pieces of 4 KiB, spread over it */
    uint64_t content;
    uint64_t settings; /* XXH3 of all settings that change the parsed rows */
};

struct cache_record {
    uint64_t index, offset, rows, features;
    uint64_t first_line; /* 0: not known */
    uint64_t bad_lines;  /* that were left out */
    uint64_t sum;
    uint32_t flags, zero;
};

struct cache_file {
    int fd;         /* -1: there is none */
    uint64_t parts; /* of the source; UINT64_MAX: not known yet */
    uint64_t end;   /* of the parts in the file */
    size_t n, cap;
    struct cache_record *record;     /* [n], ascending by index */
    uint64_t bad_part;               /* the part of the bad line in first_bad; UINT64_MAX: none */
    char first_bad[CACHE_FILE_TEXT]; /* ":17: what", without the source's name */
    char temporary
        [PATH_MAX]; /* the name of a file that is being written; "": it has none, or is not written */
};

/* Looks at the file at path as it is now. NOT_FOUND, IO. */
PARAMO_MUST_USE paramo_err cache_source_look(const char *path, uint64_t settings,
                                             struct cache_source *source);
int cache_source_same(const struct cache_source *a, const struct cache_source *b);

/* No file yet. */
void cache_file_init(struct cache_file *file);
/* May be called twice. A file that was written and not committed is gone. */
void cache_file_close(struct cache_file *file);

/* The record of a part; NULL: the file does not have it. */
const struct cache_record *cache_file_find(const struct cache_file *file, uint64_t index);
/* Adds a record at its place. */
PARAMO_MUST_USE paramo_err cache_file_add(struct cache_file *file, const struct cache_record *record);

/* Opens the file at path, if it has parts of `source`. OK with fd -1: there is no file, or it is of another source or
 * version. CORRUPT: it is damaged, or not a cache file; the message says what. */
PARAMO_MUST_USE paramo_err cache_file_open(const char *path, const struct cache_source *source,
                                           struct cache_file *file);
/* Creates a file in dir, without a name if the file system supports that. Creates dir if it is missing. */
PARAMO_MUST_USE paramo_err cache_file_create(const char *dir, struct cache_file *file);
/* Writes index and header, and renames the file to path. */
PARAMO_MUST_USE paramo_err cache_file_commit(struct cache_file *file, const char *path,
                                             const struct cache_source *source);

/* A record for the block, at offset. cache_record_write sets its sum. */
struct cache_record cache_record_of(const struct block *block, uint64_t offset, uint64_t bad_lines);
size_t cache_record_bytes(const struct cache_record *record);
PARAMO_MUST_USE paramo_err cache_record_write(int fd, struct cache_record *record, const struct block *block);
/* Reads the block's arrays, and sets its index and first_line. CORRUPT: the arrays are not those that were written. */
PARAMO_MUST_USE paramo_err cache_record_read(int fd, const struct cache_record *record, struct block *block);
/* Copies the bytes of a part between files, to record->offset. */
PARAMO_MUST_USE paramo_err cache_record_copy(int from, uint64_t offset, int to,
                                             const struct cache_record *record);

#endif
