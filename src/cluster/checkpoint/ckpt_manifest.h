/*
 * What a checkpoint consists of (blocks, files, tables), and the manifest that names it all, as bytes and
 * back. It opens no file and never knows what a payload means. docs/CHECKPOINTS.md has the bytes. Tests:
 * test/cluster/test_ckpt.c, fuzz/fuzz_ckpt.c.
 */
#ifndef CLUSTER_CHECKPOINT_CKPT_MANIFEST_H
#define CLUSTER_CHECKPOINT_CKPT_MANIFEST_H

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
    CKPT_ROWS = 1,   /* whole rows of a table, in place of older ones */
    CKPT_ERASED = 2, /* keys of a table whose rows were deleted */
    /* older rows of the table in these partitions do not count (not in a full checkpoint) */
    CKPT_CLEARED = 3,
    CKPT_WINDOWS = 4, /* the senders' applied windows for these partitions, all of them; no table */
    CKPT_NOTES = 5,   /* applied notes: what is applied besides, by number and partition; no table */
    CKPT_KINDS,
    CKPT_END = 0xff /* of a file; written and checked by this module */
};

#define CKPT_NUMBER_MAX UINT64_C(999999999999999999) /* the largest number of a folder */

struct ckpt_block {
    uint32_t kind;
    uint32_t table; /* 0: no table */
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
    uint64_t id;        /* random, in every file of the checkpoint: files of other attempts are refused */
    uint64_t base;      /* number of the checkpoint that this one builds on; 0: it is full */
    uint64_t base_id;   /* the base's id */
    uint64_t job, view; /* the job, and the number of its view */
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
void ckpt_manifest_encode(const struct ckpt_manifest *m, struct writer *w);
MUST_USE paramo_err ckpt_manifest_decode(const void *data, size_t len, struct ckpt_manifest *m);

#endif
