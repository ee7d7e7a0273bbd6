/* Checkpoints: manifests, payloads that their checksums would pass, and whole folders: block files whose sums
 * are right though what they say is not, under a manifest that fits or not quite. What a manifest says is
 * encoded to the same bytes again; a table stays sound whatever is put into it; loading ends well or with an
 * error. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cluster/checkpoint/ckpt.h"
#include "cluster/checkpoint/ckpt_format.h"
#include "harness.h"
#include "server/snapshot/ckpt_rows.h"
#include "sim/env/simfs.h"
#include "wire/sender_records.h"

static void manifest(struct source *s)
{
    struct ckpt_manifest m;
    struct writer in = {0}, out = {0};
    size_t len;
    uint8_t *bytes = draw_bytes(s, s->left, &len);
    write_bytes(&in, bytes, len);
    write_u64(&in, hash_bytes(bytes, len)); /* else nothing would get beyond it */
    free(bytes);
    uint8_t *whole = harness_alloc(in.len);
    memcpy(whole, in.data, in.len);
    if (ckpt_manifest_decode(whole, in.len, &m) == PARAMO_OK) {
        ckpt_manifest_encode(&m, &out);
        ckpt_manifest_fini(&m);
        if (whole[8] == 1) { /* what is read of format 1 is written as of the present one */
            writer_fini(&in);
            in = out;
            out = (struct writer){0};
            CHECK(ckpt_manifest_decode(in.data, in.len, &m) == PARAMO_OK);
            ckpt_manifest_encode(&m, &out);
            ckpt_manifest_fini(&m);
        }
        CHECK(out.len == in.len && memcmp(out.data, in.data, in.len) == 0);
    }
    free(whole);
    writer_fini(&in);
    writer_fini(&out);
}

static void records(struct source *s)
{
    struct sender_window *list;
    struct sender_note *notes;
    struct writer out = {0}, out_notes = {0};
    size_t len, n;
    uint8_t *bytes = draw_bytes(s, s->left, &len);
    if (sender_windows_decode(bytes, len, &list, &n) == PARAMO_OK) {
        sender_windows_encode(list, n, &out);
        CHECK(out.len == len && memcmp(out.data, bytes, len) == 0);
        free(list);
    }
    if (sender_notes_decode(bytes, len, &notes, &n) == PARAMO_OK) {
        sender_notes_encode(notes, n, &out_notes);
        CHECK(out_notes.len == len && memcmp(out_notes.data, bytes, len) == 0);
        free(notes);
    }
    free(bytes);
    writer_fini(&out);
    writer_fini(&out_notes);
}

static void rows(struct source *s)
{
    static const paramo_table_kind kinds[] = {PARAMO_TABLE_SPARSE, PARAMO_TABLE_DENSE, PARAMO_TABLE_VAR};
    paramo_table_options o;
    struct table *t;
    bool mine[RING_PARTITIONS];
    table_options_default(&o);
    o.kind = kinds[draw_below(s, 3)];
    o.dim = o.kind == PARAMO_TABLE_VAR ? 1 : 1 + draw_below(s, 2);
    o.rows = o.kind == PARAMO_TABLE_DENSE ? 16 : 0;
    o.optimizer = o.kind == PARAMO_TABLE_VAR ? PARAMO_OPT_ASSIGN : (paramo_optimizer)draw_below(s, 4);
    if (table_create(&o, 5, NULL, &t))
        return;
    if (o.kind == PARAMO_TABLE_DENSE)
        CHECK(table_dense_own(t, 0, o.rows) == PARAMO_OK);
    struct ring_placement placement = {.kind = table_options_placement(&o), .rows = o.rows};
    bool all = draw_below(s, 2);
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        mine[a] = a % 3 != 0;
    while (s->left) {
        struct ckpt_block block = {.kind = 1 + draw_below(s, 4), .table = 1};
        block.partition = draw_below(s, 2) ? draw_below(s, RING_PARTITIONS) : 0;
        block.partitions = block.partition ? 1 : RING_PARTITIONS;
        uint8_t *bytes = draw_bytes(s, draw_u8(s), &block.bytes);
        block.payload = bytes;
        uint64_t before = table_rows(t);
        if (ckpt_rows_apply(t, &placement, all ? NULL : mine, &block) == PARAMO_E_CORRUPT)
            CHECK(table_rows(t) == before);
        free(bytes);
    }
    uint64_t *keys;
    size_t n;
    CHECK(table_sorted_keys(t, &keys, &n) == PARAMO_OK && n == table_rows(t));
    for (size_t i = 0; i < n && o.kind != PARAMO_TABLE_DENSE; i++)
        CHECK(all || mine[ring_partition(ring_position(&placement, keys[i]))]);
    free(keys);
    table_destroy(t);
}

/* ---- a folder ---- */

struct loads {
    struct table *table;
    struct ring_placement placement;
    bool skips;
};

static bool wanted(void *arg, const struct ckpt_block *b)
{
    const struct loads *l = arg;
    CHECK(b->partitions && b->partition < RING_PARTITIONS && b->partitions <= RING_PARTITIONS - b->partition);
    return !l->skips || b->kind == CKPT_ROWS;
}

static paramo_err took(void *arg, const struct ckpt_block *b)
{
    struct loads *l = arg;
    struct sender_window *windows;
    struct sender_note *notes;
    size_t n;
    paramo_err err = PARAMO_OK;
    if (b->kind == CKPT_WINDOWS) {
        err = sender_windows_decode(b->payload, b->bytes, &windows, &n);
        if (!err)
            free(windows);
    } else if (b->kind == CKPT_NOTES) {
        err = sender_notes_decode(b->payload, b->bytes, &notes, &n);
        if (!err)
            free(notes);
    } else {
        err = ckpt_rows_apply(l->table, &l->placement, NULL, b);
    }
    return err;
}

/* One block file; what the manifest would say of it. */
static void file_write(struct source *s, uint64_t id, struct writer *w, struct ckpt_file *file)
{
    uint8_t head[CKPT_FILE_HEAD], bytes[CKPT_BLOCK_HEAD];
    ckpt_file_head_encode(0, id, head);
    write_bytes(w, head, sizeof head);
    *file = (struct ckpt_file){.name = "blocks-0", .sum = id};
    for (bool end = false; !end;) {
        uint8_t how = draw_u8(s), *payload;
        struct ckpt_head h = {.place = w->len};
        end = !s->left || how % 8 == 7;
        h.block = (struct ckpt_block){.kind = end ? (uint32_t)CKPT_END : 1u + how % 5u,
                                      .table = end ? 0 : 1,
                                      .partitions = RING_PARTITIONS};
        if (!end && how & 64)
            h.block.partition = draw_u32(s), h.block.partitions = (uint32_t)draw_number(s),
            h.block.kind = (uint32_t)draw_number(s);
        payload = draw_bytes(s, end ? 0 : draw_u8(s), &h.block.bytes);
        h.payload_sum = hash_bytes(h.block.bytes ? payload : (const void *)"", h.block.bytes);
        if (how & 32)
            h.block.bytes = (size_t)draw_number(s);
        if ((how & 0x90) == 0x90)
            h.place = draw_number(s);
        ckpt_head_encode(&h, bytes);
        write_bytes(w, bytes, sizeof bytes);
        if (h.block.bytes && !(how & 32))
            write_bytes(w, payload, h.block.bytes);
        free(payload);
        file->blocks++;
        file->sum = ckpt_chain(file->sum, h.sum);
    }
    file->bytes = w->len;
    CHECK(!w->failed);
}

static void folder(struct source *s)
{
    enum { ID = 7 };
    struct simfs *disk;
    struct ckpt_file info;
    struct fs_file *file;
    struct writer w = {0};
    struct ckpt *c;
    paramo_table_options o;
    struct loads l = {.skips = draw_below(s, 4) == 3};
    CHECK(simfs_create(1, &disk) == PARAMO_OK && fs_make_dir(simfs_fs(disk), "/d") == PARAMO_OK &&
          fs_make_dir(simfs_fs(disk), "/d/c") == PARAMO_OK &&
          fs_make_dir(simfs_fs(disk), "/d/c/00000001") == PARAMO_OK);
    table_options_default(&o);
    o.kind = draw_below(s, 2) ? PARAMO_TABLE_VAR : PARAMO_TABLE_SPARSE;
    o.dim = 1;
    o.optimizer = o.kind == PARAMO_TABLE_VAR ? PARAMO_OPT_ASSIGN : PARAMO_OPT_ADD;
    CHECK(table_create(&o, 5, NULL, &l.table) == PARAMO_OK);
    l.placement = (struct ring_placement){.kind = table_options_placement(&o)};
    uint8_t wrong = draw_u8(s);
    file_write(s, wrong & 1 ? ID + 1 : ID, &w, &info);
    if (wrong & 2)
        info.blocks++;
    if (wrong & 4)
        info.sum++;
    CHECK(fs_open(simfs_fs(disk), "/d/c/00000001/blocks-0", FS_CREATE, &file) == PARAMO_OK);
    CHECK(fs_write_all(file, w.data, w.len) == PARAMO_OK && fs_sync(file) == PARAMO_OK);
    fs_close(file);
    writer_fini(&w);
    struct ckpt_manifest m = {.number = 1, .id = ID, .files_count = 1, .files = &info};
    CHECK(ckpt_commit(simfs_fs(disk), "/d/c", &m) == PARAMO_OK);
    CHECK(ckpt_open(simfs_fs(disk), "/d/c", 0, &c) == PARAMO_OK);
    paramo_err err = ckpt_visit(c, wanted, took, &l);
    CHECK(err != PARAMO_OK || !(wrong & 7));
    ckpt_close(c);
    table_destroy(l.table);
    simfs_destroy(disk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    harness_quiet();
    if (size && data[0] == 0xff) {
        (void)draw_u8(&s);
        folder(&s);
        return 0;
    }
    switch (draw_below(&s, 3)) {
    case 0:
        manifest(&s);
        break;
    case 1:
        records(&s);
        break;
    default:
        rows(&s);
    }
    return 0;
}
