#include "cluster/checkpoint/ckpt_format.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"

uint64_t ckpt_chain(uint64_t sum, uint64_t head_sum)
{
    return mix64(sum ^ head_sum) + head_sum;
}

void ckpt_file_head_encode(uint32_t writer, uint64_t id, uint8_t out[CKPT_FILE_HEAD])
{
    struct writer w = writer_over(out, CKPT_FILE_HEAD);
    write_bytes(&w, CKPT_MAGIC, 8);
    write_u32(&w, CKPT_FORMAT);
    write_u32(&w, writer);
    write_u64(&w, id);
    write_u64(&w, hash_bytes(out, w.len));
    assert(!w.failed && w.len == CKPT_FILE_HEAD);
}

void ckpt_head_encode(struct ckpt_head *head, uint8_t out[CKPT_BLOCK_HEAD])
{
    struct writer w = writer_over(out, CKPT_BLOCK_HEAD);
    write_u32(&w, head->block.kind);
    write_u32(&w, head->block.table);
    write_u32(&w, head->block.partition);
    write_u32(&w, head->block.partitions);
    write_u64(&w, head->place);
    write_u64(&w, head->block.bytes);
    write_u64(&w, head->payload_sum);
    head->sum = hash_bytes(out, w.len);
    write_u64(&w, head->sum);
    assert(!w.failed && w.len == CKPT_BLOCK_HEAD);
}

paramo_err ckpt_paths(const char *dir, uint64_t number, const char *name, char folder[FS_PATH_MAX],
                      char path[FS_PATH_MAX])
{
    char last[24];
    (void)snprintf(last, sizeof last, "%08" PRIu64, number);
    paramo_err err = fs_join(dir, last, folder);
    return err || !name ? err : fs_join(folder, name, path);
}
