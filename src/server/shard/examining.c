#include "server/shard/examining.h"

#include <assert.h>

#include "base/hash.h"
#include "server/shard/apply_rows.h"
#include "server/shard/shard_tables.h"

static uint32_t portion(const struct shard *s)
{
    return s->config.scan_keys ? (uint32_t)s->config.scan_keys : SCAN_STEP_KEYS;
}

bool examining_long(struct shard *s, const struct wire_head *h)
{
    if (s->config.app_endpoint || h->count <= portion(s) || !s->view || h->view > s->view->number)
        return false;
    const struct shard_table *t = shard_table_find(s, h->table);
    return t && t->options.kind == PARAMO_TABLE_USER;
}

bool examining_done(const struct shard *s, const struct examination *x, const struct wire_head *h)
{
    return x->begun && x->partitions_changed == s->place->partitions_changed && (x->bad || x->at == h->count);
}

/* Of the portion from `at` on: with the key before it, so that the order holds across portions. */
static paramo_err check_portion(const struct shard *s, const struct shard_table *t, const uint64_t *keys,
                                uint32_t at, uint32_t n)
{
    uint32_t before = at > 0;
    return apply_check_keys(s, t, keys + at - before, n + before);
}

static uint32_t portion_at(const struct shard *s, const struct wire_head *h, uint32_t at)
{
    return h->count - at < portion(s) ? h->count - at : portion(s);
}

void examining_step(const struct shard *s, const struct shard_table *t, const struct wire_head *h,
                    const struct van_seg *seg, struct examination *x)
{
    const uint64_t *keys = seg[WIRE_SEG_KEYS].data;
    if (!x->begun || x->partitions_changed != s->place->partitions_changed)
        *x = (struct examination){.begun = true, .partitions_changed = s->place->partitions_changed};
    uint32_t n = portion_at(s, h, x->at);
    assert(n > 0 && !x->bad);
    if (check_portion(s, t, keys, x->at, n)) {
        x->bad = true;
        return;
    }
    x->hash = hash_bytes(keys + x->at, n * sizeof *keys) + mix64(x->hash);
    if (data_has_lens(h)) {
        const uint32_t *lens = seg[WIRE_SEG_LENS].data;
        for (uint32_t i = x->at; i < x->at + n; i++)
            x->sum += lens[i];
    }
    x->at += n;
    assert(x->at <= h->count);
}

paramo_err examining_error(const struct shard *s, const struct shard_table *t, const struct wire_head *h,
                           const struct van_seg *seg, const struct examination *x)
{
    assert(examining_done(s, x, h));
    return x->bad ? check_portion(s, t, seg[WIRE_SEG_KEYS].data, x->at, portion_at(s, h, x->at)) : PARAMO_OK;
}
