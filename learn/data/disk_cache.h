/*
 * Parsed parts kept on disk for the next runs (`--cache DIR`): a file for each source file and its settings.
 *
 * A file is used while its source has the same device, inode, size, time and content, and is parsed with the same
 * settings (cache_file.h). Otherwise, or if it is damaged, its parts are parsed, and a new file takes its place. A
 * process writes the parts that it parses to a file without a name. When it has all parts of the source, or when it
 * ends, it adds the parts that another process has put into place, and renames the file into place. So processes that
 * read different parts of a source fill one file. The folder is locked during that, if the file system supports locks.
 *
 * An error here never ends a job: a part that cannot be read is parsed, and a part that cannot be written is not kept.
 * disk_cache_note() reports the error. Pipes have no file. It never knows of text. Thread-safe. Tests:
 * test/learn/test_disk_cache.c, test/e2e/cache.sh.
 */
#ifndef LEARN_DATA_DISK_CACHE_H
#define LEARN_DATA_DISK_CACHE_H

#include "learn/data/cache.h"

struct disk_cache;

PARAMO_MUST_USE paramo_err disk_cache_open(const char *dir, uint32_t streams, struct disk_cache **cache);
/* Commits the files that are not in place yet. NULL is allowed. */
void disk_cache_close(struct disk_cache *cache);

/* Stream number `stream` is the file at path, read with settings (bytes that differ whenever the blocks may differ).
 * Called once for each stream, before the functions below. A stream without this call is not cached. */
void disk_cache_source(struct disk_cache *cache, uint32_t stream, const char *path, const void *settings,
                       size_t len);

/* Parts of the stream; UINT64_MAX: not known. */
uint64_t disk_cache_parts(struct disk_cache *cache, uint32_t stream);
/* Gets a part as it was parsed, with all rows. Returns 1, and the caller owns *held; 0: it is not there. *bad: the
 * number of lines that were left out. first_bad: the first of them, as ":17: what", or "". */
int disk_cache_get(struct disk_cache *cache, uint32_t stream, uint64_t index, struct held **held,
                   uint64_t *bad, char first_bad[PARAMO_ERROR_MAX]);
/* Keeps a part that was parsed; first_bad as above. Returns 1 if disk_cache_get has it from now on. */
int disk_cache_put(struct disk_cache *cache, uint32_t stream, const struct block *block, uint64_t bad,
                   const char *first_bad);
/* The stream has `parts` parts. */
void disk_cache_end(struct disk_cache *cache, uint32_t stream, uint64_t parts);

/* The first error, or "", and the bytes in the files. */
void disk_cache_note(struct disk_cache *cache, char *note, size_t cap, uint64_t *bytes);

#endif
