/*
 * Checkpoints: a table's rows with optimizer state, and the clocks that say which pushes are in them, in
 * files that are never taken for whole unless they are.
 *
 *     dir/00000007/blocks-0, blocks-1, ...   one from each writer: blocks, each with a checksum, then an end
 *     dir/00000007/manifest                  last: which files, their sizes and checksums, the tables
 *
 * A folder without a manifest is an attempt that did not end. A checkpoint is full, or incremental: all that
 * changed since its base, another checkpoint of the same folder; then loading goes through the base's blocks
 * first, and so on back to a full one. A block says which partitions of the ring its rows are from, so it is
 * read by whoever owns them now, on any number of servers (ckpt_rows.h).
 *
 * Everything is synced before the manifest names it, and the manifest before ckpt_commit says OK; a crash at
 * any step leaves the checkpoints that were there. Blocking: in a blocking job (env/blocking job.h), never on
 * a lane. It never knows what a payload means. docs/CHECKPOINTS.md has the bytes. Tests:
 * test/cluster/test_ckpt.c.
 */
#ifndef CLUSTER_CHECKPOINT_CKPT_H
#define CLUSTER_CHECKPOINT_CKPT_H

#include <stdbool.h>

#include "cluster/view/view.h"
#include "env/fs.h"

enum {
    CKPT_NAME_MAX = 32,
    CKPT_FILES_MAX = 65536,
    CKPT_CHAIN_MAX = 1024,     /* checkpoints from a full one to its last delta */
    CKPT_EXTRA_MAX = 64 << 20, /* the scheduler's part of a manifest */
    CKPT_MANIFEST_MAX = CKPT_EXTRA_MAX + (16 << 20)
};

enum ckpt_kind {
    CKPT_ROWS = 1,   /* rows of a table, whole, in place of what there was */
    CKPT_ERASED = 2, /* keys of a table that have no row any more */
    CKPT_CLEARED =
        3, /* nothing of the table that came before is left in these partitions (not in a full checkpoint) */
    CKPT_WINDOWS = 4, /* the senders' records for these partitions, all of them: no table */
    CKPT_NOTES = 5,   /* what is done beside these, by number and partition: no table */
    CKPT_KINDS,
    CKPT_END = 0xff /* of a file; written and checked by this module */
};

#define CKPT_NUMBER_MAX UINT64_C(999999999999999999) /* of a folder's name, as it is read */

struct ckpt_block {
    uint32_t kind;
    uint32_t table; /* 0: of none */
    uint32_t partition, partitions;
    const void *payload;
    size_t bytes;
};

/* A block file as the manifest names it. */
struct ckpt_file {
    char name[CKPT_NAME_MAX];
    uint64_t bytes, blocks;
    uint64_t sum; /* over the heads of all blocks, which hold the payloads' sums */
};

struct ckpt_manifest {
    uint64_t number;    /* of the folder; from 1 */
    uint64_t id;        /* random, in every file of the checkpoint: files of others are not taken */
    uint64_t base;      /* number of the checkpoint that this one adds to; 0: it is full */
    uint64_t base_id;   /* that one's */
    uint64_t job, view; /* what was saved: job, number of its view */
    uint64_t made_at;   /* Unix time, seconds */
    uint32_t tables_count;
    struct view_table *tables; /* ascending id */
    uint32_t files_count;
    struct ckpt_file *files;
    uint8_t *extra; /* what the scheduler adds */
    size_t extra_bytes;
};
/* Frees the three arrays. */
void ckpt_manifest_fini(struct ckpt_manifest *m);
/* For the module's own files and its fuzz target. */
void ckpt_manifest_encode(const struct ckpt_manifest *m, struct writer *w);
MUST_USE paramo_err ckpt_manifest_decode(const void *data, size_t len, struct ckpt_manifest *m);

/* ---- where they may lie ---- */

/* The same folder without "." and ".." and slashes that are too many, as the name says it, whatever links
 * there are. INVALID: not from the root on. TOO_LARGE. */
MUST_USE paramo_err ckpt_dir_normal(const char *dir, char out[FS_PATH_MAX]);
/* Is it root, or below it? Both as ckpt_dir_normal has them; root "": no. */
bool ckpt_dir_under(const char *dir, const char *root);
/* OK: it is not there, or empty, or nothing but checkpoints is in it (hidden files and lost+found aside).
 * REFUSED. */
MUST_USE paramo_err ckpt_dir_plain(struct fs *fs, const char *dir);

/* ---- writing ---- */

struct ckpt_writer;

/* The number after all that are there, finished or not; 1 in an empty folder, or where there is none. */
MUST_USE paramo_err ckpt_next_number(struct fs *fs, const char *dir, uint64_t *number);
/* The same, and its folder is there, durably, before it is used: whoever comes later has a higher one,
 * although nothing is in it yet. So a number is one attempt's only, whichever scheduler or job its files are
 * of. */
MUST_USE paramo_err ckpt_claim(struct fs *fs, const char *dir, uint64_t *number);
/* One file of checkpoint number, by its writer-th writer; makes the folders. */
MUST_USE paramo_err ckpt_begin(struct fs *fs, const char *dir, uint64_t number, uint64_t id, uint32_t writer,
                               struct ckpt_writer **w);
/* In the order in which they will be read. After an error only ckpt_abort is left. */
MUST_USE paramo_err ckpt_put(struct ckpt_writer *w, const struct ckpt_block *block);
/* Ends and syncs the file, says what the manifest needs. Frees w in any case. */
MUST_USE paramo_err ckpt_end(struct ckpt_writer *w, struct ckpt_file *file);
void ckpt_abort(struct ckpt_writer *w); /* NULL is allowed; removes the file if it can */
/* The checkpoint is whole with this, and only if it is OK: after an error either may be. CORRUPT: a file is
 * missing or has another size, and there is no manifest. */
MUST_USE paramo_err ckpt_commit(struct fs *fs, const char *dir, const struct ckpt_manifest *m);

/* Removes whole checkpoints for which mine says true, but not the newest `keep` of these, nor any on which
 * one that stays is based; and what attempts older than the newest whole one have left. One by one, the
 * newest first, its manifest before its files: a crash or an error at any step leaves whole ones and
 * attempts. A damaged one stays. keep > 0. *removed is set in any case. FORMAT: one is of a format that this
 * program does not read, nothing is removed. */
MUST_USE paramo_err ckpt_prune(struct fs *fs, const char *dir, size_t keep,
                               bool (*mine)(void *arg, const struct ckpt_manifest *m), void *arg,
                               size_t *removed);

/* ---- reading ---- */

/* A checkpoint and those it is based on. */
struct ckpt;

/* Ascending numbers. m is NULL where status is not OK: NOT_FOUND an attempt that did not end, else a manifest
 * that is damaged (text says how). NOT_FOUND: no such folder. */
MUST_USE paramo_err ckpt_list(struct fs *fs, const char *dir,
                              void (*each)(void *arg, uint64_t number, paramo_err status, const char *text,
                                           const struct ckpt_manifest *m),
                              void *arg);
/* number 0: the last that has a manifest; if that one is damaged it is an error, not an older one's turn.
 * Checks the manifests and that every file has its size. NOT_FOUND, CORRUPT, FORMAT, IO. */
MUST_USE paramo_err ckpt_open(struct fs *fs, const char *dir, uint64_t number, struct ckpt **ckpt);
void ckpt_close(struct ckpt *ckpt);
/* The newest's; of links 0 (that one) to ckpt_links - 1 (the full one). */
const struct ckpt_manifest *ckpt_manifest(const struct ckpt *ckpt, unsigned link);
unsigned ckpt_links(const struct ckpt *ckpt);
/* Gives out the blocks one by one in the order that counts: a later block wins. Those for which wants says
 * false are skipped unread (NULL: none are). Each is checked before it is given, each file to its end; it is
 * borrowed until the next call. CORRUPT names file and place; after an error only close is left. */
struct ckpt_reader;
MUST_USE paramo_err ckpt_reader_open(const struct ckpt *ckpt, struct ckpt_reader **reader);
MUST_USE paramo_err ckpt_reader_next(struct ckpt_reader *reader,
                                     bool (*wants)(void *arg, const struct ckpt_block *b), void *arg,
                                     struct ckpt_block *block, bool *end);
/* Of which link (ckpt_manifest) the block is that wants is asked about, or that was given last. */
unsigned ckpt_reader_link(const struct ckpt_reader *reader);
void ckpt_reader_close(struct ckpt_reader *reader); /* NULL is allowed */
/* The same with a callback; an error of block ends it. */
MUST_USE paramo_err ckpt_visit(const struct ckpt *ckpt, bool (*wants)(void *arg, const struct ckpt_block *b),
                               paramo_err (*block)(void *arg, const struct ckpt_block *b), void *arg);

#endif
