#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cluster/checkpoint/ckpt_format.h"
#include "cluster/checkpoint/ckpt_manifest.h"
#include "cluster/checkpoint/ckpt_read.h"

struct ckpt {
    struct fs *fs;
    char *dir;
    unsigned links;
    struct ckpt_manifest link[]; /* the newest first */
};

/* ---- manifests ---------------------------------------------------------------------------------------- */

/* NOT_FOUND: there is no manifest. */
static paramo_err manifest_read(struct fs *fs, const char *dir, uint64_t number, struct ckpt_manifest *m)
{
    char folder[FS_PATH_MAX], path[FS_PATH_MAX];
    struct writer bytes = {0};
    paramo_err err = ckpt_paths(dir, number, "manifest", folder, path);
    if (!err)
        err = fs_load(fs, path, CKPT_MANIFEST_MAX, &bytes);
    if (err)
        return err;
    err = ckpt_manifest_decode(bytes.data, bytes.len, m);
    writer_fini(&bytes);
    if (err)
        return err_prefix(err, "%s", path);
    if (m->number != number) {
        err = err_set(PARAMO_E_CORRUPT, "%s belongs to checkpoint %" PRIu64 ", not to its folder's", path,
                      m->number);
        ckpt_manifest_fini(m);
    }
    return err;
}

struct numbers {
    uint64_t *number;
    size_t count;
    bool failed;
};

static void add_number(void *arg, const char *name)
{
    struct numbers *n = arg;
    uint64_t number = 0;
    size_t digits = strspn(name, "0123456789");
    if (digits < 8 || digits > 19 || name[digits] || n->failed)
        return;
    for (size_t i = 0; i < digits; i++)
        number = 10 * number + (uint64_t)(name[i] - '0');
    uint64_t *list = realloc(n->number, (n->count + 1) * sizeof *list);
    n->failed = !list;
    if (!list)
        return;
    n->number = list;
    if (number)
        list[n->count++] = number;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static paramo_err numbers_find(struct fs *fs, const char *dir, struct numbers *n)
{
    *n = (struct numbers){0};
    paramo_err err = fs_list(fs, dir, add_number, n);
    if (!err && n->failed)
        err = err_memory(n->count * sizeof *n->number);
    if (err)
        free(n->number);
    else if (n->count)
        qsort(n->number, n->count, sizeof *n->number, ascending);
    return err;
}

paramo_err ckpt_list(struct fs *fs, const char *dir,
                     void (*each)(void *arg, uint64_t number, paramo_err status, const char *text,
                                  const struct ckpt_manifest *m),
                     void *arg)
{
    struct numbers n;
    paramo_err err = numbers_find(fs, dir, &n);
    if (err)
        return err;
    for (size_t i = 0; i < n.count; i++) {
        struct ckpt_manifest m = {0};
        char text[ERR_TEXT_MAX] = "";
        paramo_err status = manifest_read(fs, dir, n.number[i], &m);
        if (status)
            err_text_copy(text);
        each(arg, n.number[i], status, text, status ? NULL : &m);
        ckpt_manifest_fini(&m);
    }
    free(n.number);
    return PARAMO_OK;
}

/* ---- opening ------------------------------------------------------------------------------------------ */

/* The last number that has a manifest, valid or not. */
static paramo_err find_last(struct fs *fs, const char *dir, uint64_t *number)
{
    struct numbers n;
    paramo_err err = numbers_find(fs, dir, &n);
    if (err)
        return err;
    *number = 0;
    while (n.count && !*number && !err) {
        struct ckpt_manifest m = {0};
        err = manifest_read(fs, dir, n.number[--n.count], &m);
        if (err == PARAMO_E_NOT_FOUND)
            err = PARAMO_OK;
        else
            *number = n.number[n.count];
        ckpt_manifest_fini(&m);
    }
    free(n.number);
    return !err && !*number ? err_set(PARAMO_E_NOT_FOUND, "%s contains no checkpoint", dir) : err;
}

paramo_err ckpt_check_files(struct fs *fs, const char *dir, const struct ckpt_manifest *m)
{
    char folder[FS_PATH_MAX], path[FS_PATH_MAX];
    for (uint32_t i = 0; i < m->files_count; i++) {
        struct fs_file *file;
        uint64_t size;
        paramo_err err = ckpt_paths(dir, m->number, m->files[i].name, folder, path);
        if (!err)
            err = fs_open(fs, path, FS_READ, &file);
        if (err == PARAMO_E_NOT_FOUND)
            return err_set(PARAMO_E_CORRUPT, "%s is missing", path);
        if (err)
            return err;
        err = fs_size(file, &size);
        fs_close(file);
        if (err)
            return err;
        if (size != m->files[i].bytes)
            return err_set(PARAMO_E_CORRUPT, "%s has %" PRIu64 " bytes; the manifest says %" PRIu64, path,
                           size, m->files[i].bytes);
    }
    return PARAMO_OK;
}

static paramo_err link_read(struct ckpt *c, uint64_t number)
{
    assert(number && c->links < CKPT_CHAIN_MAX);
    struct ckpt_manifest *m = &c->link[c->links];
    const struct ckpt_manifest *above = c->links ? m - 1 : NULL;
    paramo_err err = manifest_read(c->fs, c->dir, number, m);
    if (err == PARAMO_E_NOT_FOUND && above)
        return err_set(PARAMO_E_CORRUPT,
                       "%s: checkpoint %" PRIu64 " is based on %" PRIu64 ", which is missing", c->dir,
                       above->number, number);
    if (err == PARAMO_E_NOT_FOUND)
        return err_set(err, "%s contains no whole checkpoint %" PRIu64, c->dir, number);
    if (err)
        return err;
    c->links++;
    if (above && above->base_id != m->id)
        return err_set(PARAMO_E_CORRUPT,
                       "%s: checkpoint %" PRIu64 " is based on a checkpoint %" PRIu64
                       " that was replaced by another of this number",
                       c->dir, above->number, number);
    return ckpt_check_files(c->fs, c->dir, m);
}

paramo_err ckpt_open(struct fs *fs, const char *dir, uint64_t number, struct ckpt **out)
{
    paramo_err err = number ? PARAMO_OK : find_last(fs, dir, &number);
    if (err)
        return err;
    struct ckpt *c = calloc(1, sizeof *c + CKPT_CHAIN_MAX * sizeof *c->link);
    char *copy = strdup(dir);
    if (!c || !copy) {
        free(c);
        free(copy);
        return err_memory(sizeof *c + CKPT_CHAIN_MAX * sizeof(struct ckpt_manifest));
    }
    c->fs = fs;
    c->dir = copy;
    while (number && !err) {
        if (c->links == CKPT_CHAIN_MAX)
            err = err_set(PARAMO_E_TOO_LARGE, "%s: more than %d checkpoints are based one on another", dir,
                          CKPT_CHAIN_MAX);
        else
            err = link_read(c, number);
        number = err ? 0 : c->link[c->links - 1].base; /* ends: a base has a lower number */
    }
    if (err) {
        ckpt_close(c);
        return err;
    }
    assert(c->links);
    *out = c;
    return PARAMO_OK;
}

void ckpt_close(struct ckpt *c)
{
    if (!c)
        return;
    for (unsigned i = 0; i < c->links; i++)
        ckpt_manifest_fini(&c->link[i]);
    free(c->dir);
    free(c);
}

const struct ckpt_manifest *ckpt_manifest(const struct ckpt *c, unsigned link)
{
    assert(link < c->links);
    return &c->link[link];
}

unsigned ckpt_links(const struct ckpt *c)
{
    return c->links;
}

/* ---- blocks ------------------------------------------------------------------------------------------- */

/* A file that is being read. */
struct reading {
    struct fs_file *file;
    const struct ckpt_file *info;
    char path[FS_PATH_MAX];
    uint64_t at, blocks, sum;
    uint8_t *buffer;
    size_t capacity;
};

static paramo_err broken(const struct reading *r, const char *what)
{
    return err_set(PARAMO_E_CORRUPT, "%s: damaged at byte %" PRIu64 ": %s", r->path, r->at, what);
}

static paramo_err read_payload(struct reading *r, void *to, size_t len)
{
    size_t got;
    paramo_err err = fs_read(r->file, r->at, to, len, &got);
    if (!err && got != len)
        err = broken(r, "it ends too early");
    return err;
}

static paramo_err file_begin(struct reading *r, uint64_t id)
{
    uint8_t head[CKPT_FILE_HEAD], want[CKPT_FILE_HEAD];
    paramo_err err = read_payload(r, head, sizeof head);
    if (err)
        return err;
    struct reader fields = reader_over(head, sizeof head);
    (void)read_span(&fields, 12);
    ckpt_file_head_encode(read_u32(&fields), id, want);
    if (memcmp(head, CKPT_MAGIC, 8) != 0)
        return err_set(PARAMO_E_FORMAT, "%s is not a file of a checkpoint", r->path);
    if (memcmp(head, want, sizeof head) != 0)
        return broken(r, "its head is wrong, or belongs to another checkpoint");
    r->at = sizeof head;
    r->sum = id;
    return PARAMO_OK;
}

static paramo_err head_read(struct reading *r, struct ckpt_head *head)
{
    uint8_t bytes[CKPT_BLOCK_HEAD], want[CKPT_BLOCK_HEAD];
    paramo_err err = read_payload(r, bytes, sizeof bytes);
    if (err)
        return err;
    struct reader fields = reader_over(bytes, sizeof bytes);
    *head = (struct ckpt_head){0};
    head->block.kind = read_u32(&fields);
    head->block.table = read_u32(&fields);
    head->block.partition = read_u32(&fields);
    head->block.partitions = read_u32(&fields);
    head->place = read_u64(&fields);
    uint64_t payload = read_u64(&fields);
    head->block.bytes = (size_t)payload;
    head->payload_sum = read_u64(&fields);
    ckpt_head_encode(head, want);
    if (memcmp(bytes, want, sizeof bytes) != 0 || head->place != r->at)
        return broken(r, "a block's head is wrong");
    if (payload > r->info->bytes - r->at - sizeof bytes)
        return broken(r, "a block is longer than the rest of the file");
    bool end = head->block.kind == CKPT_END;
    if (end ? payload != 0
            : !head->block.kind || head->block.kind >= CKPT_KINDS ||
                  head->block.partition >= RING_PARTITIONS || !head->block.partitions ||
                  head->block.partitions > RING_PARTITIONS - head->block.partition)
        return broken(r, "a block's kind, table or partitions are not valid");
    r->at += sizeof bytes;
    return PARAMO_OK;
}

static paramo_err payload_read(struct reading *r, struct ckpt_head *head)
{
    assert(r->file && !r->buffer == !r->capacity);
    if (head->block.bytes > r->capacity) {
        uint8_t *buffer = realloc(r->buffer, head->block.bytes);
        if (!buffer)
            return err_memory(head->block.bytes);
        r->buffer = buffer;
        r->capacity = head->block.bytes;
    }
    paramo_err err = head->block.bytes ? read_payload(r, r->buffer, head->block.bytes) : PARAMO_OK;
    if (err)
        return err;
    head->block.payload = r->buffer;
    if (hash_bytes(head->block.bytes ? (const void *)r->buffer : "", head->block.bytes) != head->payload_sum)
        return broken(r, "a block's checksum is wrong");
    return PARAMO_OK;
}

struct ckpt_reader {
    const struct ckpt *ckpt;
    struct reading r;
    unsigned link; /* of the file being read, or of the next; counted from the oldest */
    uint32_t next; /* file of that link */
};

static const struct ckpt_manifest *reader_link(const struct ckpt_reader *rd)
{
    assert(rd->link < rd->ckpt->links);
    return &rd->ckpt->link[rd->ckpt->links - 1 - rd->link];
}

/* Opens the next file. r.file stays NULL if there is none. */
static paramo_err reader_open(struct ckpt_reader *rd)
{
    const struct ckpt *c = rd->ckpt;
    struct reading *r = &rd->r;
    char folder[FS_PATH_MAX];
    assert(!r->file && rd->link <= c->links);
    while (rd->link < c->links && rd->next == reader_link(rd)->files_count) {
        rd->link++;
        rd->next = 0;
    }
    if (rd->link == c->links)
        return PARAMO_OK;
    const struct ckpt_manifest *m = reader_link(rd);
    r->info = &m->files[rd->next++];
    r->at = r->blocks = 0;
    paramo_err err = ckpt_paths(c->dir, m->number, r->info->name, folder, r->path);
    if (!err)
        err = fs_open(c->fs, r->path, FS_READ, &r->file);
    return err ? err : file_begin(r, m->id);
}

static paramo_err reader_end_file(struct reading *r)
{
    assert(r->file && r->blocks);
    fs_close(r->file);
    r->file = NULL;
    if (r->at != r->info->bytes || r->blocks != r->info->blocks || r->sum != r->info->sum)
        return broken(r, "its contents differ from the manifest");
    return PARAMO_OK;
}

paramo_err ckpt_reader_open(const struct ckpt *c, struct ckpt_reader **out)
{
    struct ckpt_reader *rd = calloc(1, sizeof *rd);
    if (!rd)
        return err_memory(sizeof *rd);
    rd->ckpt = c;
    assert(c->links);
    *out = rd;
    return PARAMO_OK;
}

paramo_err ckpt_reader_next(struct ckpt_reader *rd, bool (*wants)(void *arg, const struct ckpt_block *b),
                            void *arg, struct ckpt_block *block, bool *end)
{
    struct reading *r = &rd->r;
    struct ckpt_head head;
    *end = false;
    for (;;) {
        paramo_err err = r->file ? PARAMO_OK : reader_open(rd);
        if (!err && !r->file) {
            *end = true;
            return PARAMO_OK;
        }
        if (!err)
            err = head_read(r, &head);
        if (err)
            return err;
        r->blocks++;
        r->sum = ckpt_chain(r->sum, head.sum);
        bool wanted = head.block.kind != CKPT_END && (!wants || wants(arg, &head.block));
        if (wanted)
            err = payload_read(r, &head);
        r->at += head.block.bytes;
        if (!err && head.block.kind == CKPT_END)
            err = reader_end_file(r);
        if (err)
            return err;
        if (wanted) {
            *block = head.block;
            return PARAMO_OK;
        }
    }
}

unsigned ckpt_reader_link(const struct ckpt_reader *rd)
{
    assert(rd->link < rd->ckpt->links);
    return rd->ckpt->links - 1 - rd->link;
}

void ckpt_reader_close(struct ckpt_reader *rd)
{
    if (!rd)
        return;
    fs_close(rd->r.file);
    free(rd->r.buffer);
    free(rd);
}

paramo_err ckpt_visit(const struct ckpt *c, bool (*wants)(void *arg, const struct ckpt_block *b),
                      paramo_err (*block)(void *arg, const struct ckpt_block *b), void *arg)
{
    struct ckpt_reader *rd = NULL;
    struct ckpt_block b;
    bool end = false;
    paramo_err err = ckpt_reader_open(c, &rd);
    if (err)
        return err;
    while (!err && !end) {
        err = ckpt_reader_next(rd, wants, arg, &b, &end);
        if (!err && !end)
            err = block(arg, &b);
    }
    ckpt_reader_close(rd);
    return err;
}
