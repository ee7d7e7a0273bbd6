/*
 * Names of a checkpoint's files, and the heads of files and blocks, as bytes. It opens no file. Only the
 * files of this folder and fuzz/fuzz_ckpt.c include it. Tests: test/cluster/test_ckpt.c.
 */
#ifndef CLUSTER_CHECKPOINT_CKPT_FORMAT_H
#define CLUSTER_CHECKPOINT_CKPT_FORMAT_H

#include "cluster/checkpoint/ckpt_manifest.h"

#define CKPT_MAGIC "PARAMOCB"
enum {
    CKPT_FORMAT = 1,
    CKPT_FILE_HEAD = 32, /* magic 8, format 4, writer 4, id 8, sum of these 8 */
    /* kind 4, table 4, partition 4, partitions 4, place 8, bytes 8, payload's sum 8, sum of these 8 */
    CKPT_BLOCK_HEAD = 48
};

struct ckpt_head {
    struct ckpt_block block; /* without payload */
    uint64_t place;          /* of the head in its file */
    uint64_t payload_sum;
    uint64_t sum;
};

/* The sum of a file, extended by one more block. */
uint64_t ckpt_chain(uint64_t sum, uint64_t head_sum);
void ckpt_file_head_encode(uint32_t writer, uint64_t id, uint8_t out[CKPT_FILE_HEAD]);
void ckpt_head_encode(struct ckpt_head *head, uint8_t out[CKPT_BLOCK_HEAD]); /* sets sum */
/* dir/00000007 and, unless NULL, dir/00000007/name. */
MUST_USE paramo_err ckpt_paths(const char *dir, uint64_t number, const char *name, char folder[FS_PATH_MAX],
                               char path[FS_PATH_MAX]);

#endif
