/* Checkpoints: manifests, and payloads that their checksums would pass. What a manifest says is encoded to
 * the same bytes again; a table stays sound whatever is put into it. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "harness.h"
#include "server/ckpt_rows.h"

static void manifest(struct source *s)
{
    struct ckpt_manifest m;
    struct writer in = {0}, out = {0};
    size_t len;
    uint8_t *bytes = take_bytes(s, s->left, &len);
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
    struct ckpt_clock *list;
    struct ckpt_note *notes;
    struct writer out = {0}, out_notes = {0};
    size_t len, n;
    uint8_t *bytes = take_bytes(s, s->left, &len);
    struct ckpt_block block = {.kind = CKPT_CLOCKS, .arcs = 1, .payload = bytes, .bytes = len};
    if (ckpt_clocks_decode(&block, &list, &n) == PARAMO_OK) {
        ckpt_clocks_encode(list, n, &out);
        CHECK(out.len == len && memcmp(out.data, bytes, len) == 0);
        free(list);
    }
    block.kind = CKPT_NOTES;
    if (ckpt_notes_decode(&block, &notes, &n) == PARAMO_OK) {
        ckpt_notes_encode(notes, n, &out_notes);
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
    bool mine[RING_ARCS];
    table_options_default(&o);
    o.kind = kinds[take_below(s, 3)];
    o.dim = o.kind == PARAMO_TABLE_VAR ? 1 : 1 + take_below(s, 2);
    o.rows = o.kind == PARAMO_TABLE_DENSE ? 16 : 0;
    o.optimizer = o.kind == PARAMO_TABLE_VAR ? PARAMO_OPT_ASSIGN : (paramo_optimizer)take_below(s, 4);
    if (table_create(&o, 5, NULL, &t))
        return;
    if (o.kind == PARAMO_TABLE_DENSE)
        CHECK(table_dense_own(t, 0, o.rows) == PARAMO_OK);
    struct ring_placement placement = {.kind = table_options_placement(&o), .rows = o.rows};
    bool all = take_below(s, 2);
    for (size_t a = 0; a < RING_ARCS; a++)
        mine[a] = a % 3 != 0;
    while (s->left) {
        struct ckpt_block block = {.kind = 1 + take_below(s, 4), .table = 1};
        block.arc = take_below(s, 2) ? take_below(s, RING_ARCS) : 0;
        block.arcs = block.arc ? 1 : RING_ARCS;
        uint8_t *bytes = take_bytes(s, take_u8(s), &block.bytes);
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
        CHECK(all || mine[ring_arc(ring_position(&placement, keys[i]))]);
    free(keys);
    table_destroy(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    harness_quiet();
    switch (take_below(&s, 3)) {
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
