#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cluster/checkpoint/ckpt_format.h"
#include "cluster/checkpoint/ckpt_manifest.h"
#include "cluster/checkpoint/ckpt_read.h"
#include "cluster/checkpoint/ckpt_write.h"

enum { CLAIM_TRIES = 64 /* more than schedulers that claim at once */ };

struct ckpt_writer {
    struct fs *fs;
    struct fs_file *file;
    struct ckpt_file info;
    char path[FS_PATH_MAX];
};

/* A file has its head, and the heads of its blocks. */
static void writer_check(const struct ckpt_writer *w)
{
    assert(w->file && w->info.name[0]);
    assert(w->info.bytes >= CKPT_FILE_HEAD + w->info.blocks * CKPT_BLOCK_HEAD);
}

static void see_number(void *arg, const char *name)
{
    uint64_t *highest = arg, number = 0;
    size_t digits = strspn(name, "0123456789");
    if (digits < 8 || digits > 19 || name[digits])
        return;
    for (size_t i = 0; i < digits; i++)
        number = 10 * number + (uint64_t)(name[i] - '0');
    *highest = number > *highest ? number : *highest;
}

paramo_err ckpt_next_number(struct fs *fs, const char *dir, uint64_t *number)
{
    uint64_t highest = 0;
    paramo_err err = fs_list(fs, dir, see_number, &highest);
    if (err && err != PARAMO_E_NOT_FOUND)
        return err;
    *number = highest + 1;
    return PARAMO_OK;
}

paramo_err ckpt_claim(struct fs *fs, const char *dir, uint64_t *number)
{
    char folder[FS_PATH_MAX];
    paramo_err err = fs_keep_dir(fs, dir);
    if (!err)
        err = ckpt_next_number(fs, dir, number);
    for (unsigned tries = 0; !err; tries++, ++*number) {
        if (*number > CKPT_NUMBER_MAX)
            return err_set(PARAMO_E_FULL,
                           "%s has no free checkpoint number after %" PRIu64 "; use another folder", dir,
                           *number - 1);
        err = ckpt_paths(dir, *number, NULL, folder, NULL);
        if (!err)
            err = fs_new_dir(fs, folder);
        if (err != PARAMO_E_REFUSED || tries == CLAIM_TRIES)
            break;
        err = PARAMO_OK; /* another scheduler was faster */
    }
    return err ? err : fs_sync_dir(fs, dir);
}

paramo_err ckpt_begin(struct fs *fs, const char *dir, uint64_t number, uint64_t id, uint32_t writer,
                      struct ckpt_writer **out)
{
    char folder[FS_PATH_MAX];
    uint8_t head[CKPT_FILE_HEAD];
    struct ckpt_writer *w = calloc(1, sizeof *w);
    if (!w)
        return err_memory(sizeof *w);
    w->fs = fs;
    (void)snprintf(w->info.name, sizeof w->info.name, "blocks-%" PRIu32, writer);
    paramo_err err = ckpt_paths(dir, number, w->info.name, folder, w->path);
    if (!err)
        err = fs_keep_dir(fs, dir);
    if (!err)
        err = fs_keep_dir(fs, folder);
    if (!err)
        err = fs_open(fs, w->path, FS_CREATE, &w->file);
    if (err) {
        free(w);
        return err;
    }
    ckpt_file_head_encode(writer, id, head);
    w->info.bytes = sizeof head;
    w->info.sum = id;
    err = fs_write_all(w->file, head, sizeof head);
    if (err) {
        ckpt_abort(w);
        return err;
    }
    writer_check(w);
    *out = w;
    return PARAMO_OK;
}

static paramo_err put(struct ckpt_writer *w, const struct ckpt_block *block)
{
    uint8_t bytes[CKPT_BLOCK_HEAD];
    writer_check(w);
    assert(block->payload || !block->bytes);
    struct ckpt_head head = {.block = *block,
                             .place = w->info.bytes,
                             .payload_sum = hash_bytes(block->bytes ? block->payload : "", block->bytes)};
    ckpt_head_encode(&head, bytes);
    paramo_err err = fs_write_all(w->file, bytes, sizeof bytes);
    if (!err && block->bytes)
        err = fs_write_all(w->file, block->payload, block->bytes);
    if (err)
        return err;
    w->info.bytes += sizeof bytes + block->bytes;
    w->info.blocks++;
    w->info.sum = ckpt_chain(w->info.sum, head.sum);
    return PARAMO_OK;
}

paramo_err ckpt_put(struct ckpt_writer *w, const struct ckpt_block *block)
{
    assert(block->kind > 0 && block->kind < CKPT_KINDS);
    assert(block->partitions > 0 && block->partition < RING_PARTITIONS &&
           block->partitions <= RING_PARTITIONS - block->partition);
    return put(w, block);
}

paramo_err ckpt_end(struct ckpt_writer *w, struct ckpt_file *file)
{
    struct ckpt_block end = {.kind = CKPT_END};
    paramo_err err = put(w, &end);
    if (!err)
        err = fs_sync(w->file);
    if (err) {
        ckpt_abort(w);
        return err;
    }
    *file = w->info;
    fs_close(w->file);
    free(w);
    return PARAMO_OK;
}

void ckpt_abort(struct ckpt_writer *w)
{
    if (!w)
        return;
    writer_check(w);
    char text[ERR_TEXT_MAX];
    err_text_copy(text); /* keeps the message of the first error */
    fs_close(w->file);
    if (fs_unlink(w->fs, w->path))
        (void)err_set(PARAMO_E_IO, "%s", text);
    free(w);
}

/* This process may have been stopped after the first check, and another job may have removed the attempt's
 * files as abandoned (ckpt_prune). */
static paramo_err check_again(struct fs *fs, const char *dir, const char *folder,
                              const struct ckpt_manifest *m)
{
    char path[FS_PATH_MAX], text[ERR_TEXT_MAX];
    paramo_err err = ckpt_check_files(fs, dir, m);
    if (err != PARAMO_E_CORRUPT)
        return err;
    err_text_copy(text);
    err = fs_join(folder, "manifest", path);
    if (!err)
        err = fs_unlink(fs, path);
    if (err && err != PARAMO_E_NOT_FOUND)
        return err;
    return err_set(PARAMO_E_CORRUPT, "%s", text);
}

paramo_err ckpt_commit(struct fs *fs, const char *dir, const struct ckpt_manifest *m)
{
    char folder[FS_PATH_MAX];
    struct writer w = {0};
    assert(m->number && m->id && m->base < m->number);
    if (m->extra_bytes > CKPT_EXTRA_MAX || m->files_count > CKPT_FILES_MAX)
        return err_set(PARAMO_E_TOO_LARGE, "the manifest is too large: %" PRIu32 " files and %zu more bytes",
                       m->files_count, m->extra_bytes);
    paramo_err err = ckpt_paths(dir, m->number, NULL, folder, NULL);
    if (err)
        return err;
    ckpt_manifest_encode(m, &w);
    if (w.failed)
        err = err_memory(w.len);
    if (!err)
        err = fs_keep_dir(fs, dir);
    if (!err) /* a checkpoint without rows has no folder yet */
        err = fs_keep_dir(fs, folder);
    if (!err) /* makes the files' names durable before the manifest names them */
        err = fs_sync_dir(fs, folder);
    if (!err)
        err = ckpt_check_files(fs, dir, m);
    if (!err)
        err = fs_replace(fs, folder, "manifest", w.data, w.len);
    writer_fini(&w);
    return err ? err : check_again(fs, dir, folder, m);
}
