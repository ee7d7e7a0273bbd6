#include "worker/segments.h"

#include <assert.h>
#include <string.h>

#include "wire/key_range.h"
#include "worker/reduction_request.h"

static void *unconst(const void *p)
{
    return (void *)(uintptr_t)p;
}

/* A range: the bytes of its keys, in the order of little-endian machines, lie where its first key does. Without
 * memory for bits, or when they are not fewer, the keys themselves travel. */
static struct van_seg range_of(struct slice *p)
{
    const struct span *s = p->span;
    struct client *c = p->chunk->request->client;
    assert(p->chunk->request->range && s->count > 0);
    p->range = true;
    bool whole =
        s->keys && s->keys[s->count - 1] - s->keys[0] == s->count - 1 && s->count <= KEY_RANGE_KEYS_MAX;
    if (!s->keys || whole)
        return (struct van_seg){.data = unconst(s->keys ? s->keys : &s->begin), .len = KEY_RANGE_BYTES};
    p->bits_bytes = key_range_bytes(s->keys, s->count);
    if (!p->bits && p->bits_bytes && (p->bits = bufpool_get(&c->pool, p->bits_bytes)) != NULL)
        key_range_encode(s->keys, s->count, p->bits);
    p->range = p->bits != NULL;
    return p->range ? (struct van_seg){.data = p->bits, .len = p->bits_bytes}
                    : (struct van_seg){.data = unconst(s->keys), .len = 8 * (uint64_t)s->count};
}

void slice_segments(struct slice *p)
{
    const struct request *r = p->chunk->request;
    const struct span *s = p->span;
    struct van_frame *f = &p->frame;
    assert(!p->in_van && !p->coding);
    assert(p->state != SLICE_SENT && p->state != SLICE_ANSWERED);
    if (r->kind == REQUEST_MESSAGE) {
        memcpy(f->seg, p->chunk->message->seg, sizeof f->seg);
        for (f->nseg = VAN_SEGS; f->nseg && !f->seg[f->nseg - 1].len; f->nseg--)
            ;
        return;
    }
    if (r->reduction) {
        memset(f->seg, 0, sizeof f->seg);
        f->seg[WIRE_SEG_BODY] = (struct van_seg){.data = r->reduction->body, .len = r->reduction->body_bytes};
        f->nseg = WIRE_SEG_BODY + 1;
        return;
    }
    f->seg[WIRE_SEG_KEYS] = (struct van_seg){.data = unconst(s->keys), .len = 8 * (uint64_t)s->count};
    if (r->range && s->count)
        f->seg[WIRE_SEG_KEYS] = range_of(p);
    f->nseg = s->count ? 1 : 0;
    if (r->kind == REQUEST_TRANSFORM) {
        f->seg[WIRE_SEG_LENS] = f->seg[WIRE_SEG_VALS] = (struct van_seg){0};
        f->seg[WIRE_SEG_BODY] = (struct van_seg){.data = r->transform, .len = r->transform_bytes};
        f->nseg = WIRE_SEG_BODY + 1;
        return;
    }
    if (s->src || r->src) {
        f->seg[WIRE_SEG_LENS] =
            (struct van_seg){.data = unconst(s->lens), .len = s->lens ? 4 * (uint64_t)s->count : 0};
        f->seg[WIRE_SEG_VALS] = (struct van_seg){.data = unconst(s->src), .len = s->src_bytes};
        f->nseg = 3;
    }
}
