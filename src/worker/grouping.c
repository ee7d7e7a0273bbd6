#include "worker/grouping.h"

#include <assert.h>
#include <string.h>

/* Where the sections of a gathered buffer begin, after `head` bytes. */
struct layout {
    size_t keys, index, lens, vals, total;
};

unsigned owner_of(const struct view *view, const struct request *r, uint64_t key)
{
    return view_ring(view)->owner[ring_partition(ring_position(&r->table->placement, key))];
}

static struct layout layout_of(size_t head, size_t n, bool lens, uint64_t vals_bytes)
{
    struct layout l = {.keys = (head + 63) & ~(size_t)63};
    l.index = l.keys + 8 * n;
    l.lens = l.index + 4 * n;
    l.vals = (l.lens + (lens ? 4 * n : 0) + 63) & ~(size_t)63;
    l.total = l.vals + vals_bytes;
    return l;
}

/* The bytes of key i's values in a slice with lens. */
static uint64_t src_row(const struct span *s, size_t i, uint32_t value_bytes)
{
    return s->lens ? (uint64_t)s->lens[i] * value_bytes : s->src_bytes / s->count;
}

static void copy_row(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
    if (bytes == 4)
        memcpy(to, from, 4);
    else
        memcpy(to, from, bytes);
}

/* Fills the groups' slices with their keys' part of s. cursor[owner]: the group of each owner. Values that
 * are sent and values that come back share their room: an answer comes after its values were applied. */
static void gather_groups(const struct span *s, size_t from, const uint16_t *owner, struct group *groups,
                          const uint16_t *group_of, uint8_t *base, const struct layout *l, size_t ngroups,
                          uint32_t value_bytes)
{
    size_t at = 0;
    uint64_t vals_at = 0;
    for (size_t g = 0; g < ngroups; g++) {
        struct span *to = &groups[g].span;
        uint64_t dst_row = s->dst ? s->dst_bytes / s->count : 0;
        memset(to, 0, sizeof *to);
        to->keys = (uint64_t *)(void *)(base + l->keys) + at;
        to->index = (uint32_t *)(void *)(base + l->index) + at;
        to->lens = s->lens ? (uint32_t *)(void *)(base + l->lens) + at : NULL;
        to->columns = s->columns;
        to->src_bytes = groups[g].src_bytes;
        to->dst_bytes = dst_row * groups[g].count;
        to->src = s->src ? base + l->vals + vals_at : NULL;
        to->dst = s->dst ? base + l->vals + vals_at : NULL;
        at += groups[g].count;
        vals_at += to->src_bytes > to->dst_bytes ? to->src_bytes : to->dst_bytes;
        groups[g].src_bytes = 0; /* now: filled so far */
    }
    assert(at == s->count); /* each key has one group */
    const uint8_t *src = s->src;
    uint64_t fixed = s->count ? s->src_bytes / s->count : 0;
    for (size_t i = 0; i < s->count; i++) {
        struct group *g = &groups[group_of[owner[i]]];
        struct span *to = &g->span;
        uint32_t k = to->count++;
        ((uint64_t *)(uintptr_t)to->keys)[k] = span_key(s, i);
        ((uint32_t *)(uintptr_t)to->index)[k] = (uint32_t)(from + i);
        if (src) {
            uint64_t bytes = s->lens ? (uint64_t)s->lens[i] * value_bytes : fixed;
            if (s->lens)
                ((uint32_t *)(uintptr_t)to->lens)[k] = s->lens[i];
            copy_row((uint8_t *)(uintptr_t)to->src + g->src_bytes, src, bytes);
            g->src_bytes += bytes;
            src += bytes;
        }
    }
    for (size_t g = 0; g < ngroups; g++)
        assert(groups[g].span.count == groups[g].count);
}

paramo_err grouping_gather(struct client *c, const struct request *r, const struct span *s, size_t from,
                           size_t head_each, struct gathered *out)
{
    assert(s->count > 0 && r->client == c);
    uint32_t nshards = c->view->shards_count;
    /* scratch: groups, count of each shard, group of each shard, owner of each key */
    size_t groups_bytes = nshards * sizeof(struct group);
    size_t bytes = groups_bytes + nshards * sizeof(size_t) + 2 * (size_t)nshards + 2 * (size_t)s->count;
    uint8_t *scratch = bufpool_get(&c->pool, bytes);
    if (!scratch)
        return err_memory(bytes);
    struct group *groups = (struct group *)(void *)scratch;
    size_t *counts = (size_t *)(void *)(scratch + groups_bytes);
    uint16_t *group_of = (uint16_t *)(void *)(counts + nshards);
    uint16_t *owner = group_of + nshards;
    memset(groups, 0, groups_bytes);
    memset(counts, 0, nshards * sizeof(size_t));
    for (size_t i = 0; i < s->count; i++) {
        unsigned o = owner_of(c->view, r, span_key(s, i));
        if (o >= nshards) {
            bufpool_put(&c->pool, scratch, bytes);
            return PARAMO_E_AGAIN;
        }
        owner[i] = (uint16_t)o;
        counts[o]++;
    }
    size_t n = 0;
    uint64_t vals = 0, dst_row = s->dst && s->count ? s->dst_bytes / s->count : 0;
    for (uint32_t o = 0; o < nshards; o++) {
        if (counts[o]) {
            group_of[o] = (uint16_t)n;
            groups[n].owner = o;
            groups[n++].count = (uint32_t)counts[o];
        }
    }
    assert(n > 0 && n <= nshards);
    if (s->src) {
        for (size_t i = 0; s->lens && i < s->count; i++)
            groups[group_of[owner[i]]].src_bytes += src_row(s, i, r->table->value_bytes);
        for (size_t g = 0; !s->lens && g < n; g++)
            groups[g].src_bytes = s->src_bytes / s->count * groups[g].count;
    }
    for (size_t g = 0; g < n; g++)
        vals +=
            groups[g].src_bytes > dst_row * groups[g].count ? groups[g].src_bytes : dst_row * groups[g].count;
    struct layout l = layout_of(head_each * n, s->count, s->lens != NULL, vals);
    uint8_t *base = bufpool_get(&c->pool, l.total);
    if (!base) {
        bufpool_put(&c->pool, scratch, bytes);
        return err_memory(l.total);
    }
    gather_groups(s, from, owner, groups, group_of, base, &l, n, r->table->value_bytes);
    *out = (struct gathered){.groups = groups,
                             .count = n,
                             .base = base,
                             .bytes = l.total,
                             .scratch = scratch,
                             .scratch_bytes = bytes};
    return PARAMO_OK;
}

void grouping_done(struct client *c, const struct gathered *g)
{
    assert(g->count > 0 && g->groups == g->scratch);
    bufpool_put(&c->pool, g->scratch, g->scratch_bytes);
}
