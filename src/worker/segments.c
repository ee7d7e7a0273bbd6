#include "worker/segments.h"

#include <string.h>

#include "worker/reduction_request.h"

static void *unconst(const void *p)
{
    return (void *)(uintptr_t)p;
}

void slice_segments(struct slice *p)
{
    const struct request *r = p->chunk->request;
    const struct span *s = p->span;
    struct van_frame *f = &p->frame;
    if (r->kind == REQUEST_MESSAGE) {
        memcpy(f->seg, p->chunk->message->seg, sizeof f->seg);
        for (f->nseg = VAN_SEGS; f->nseg && !f->seg[f->nseg - 1].len; f->nseg--)
            ;
        return;
    }
    if (r->reduction) {
        memset(f->seg, 0, sizeof f->seg);
        f->seg[WIRE_SEG_BODY] =
            (struct van_seg){.data = r->reduction->body, .len = sizeof r->reduction->body};
        f->nseg = WIRE_SEG_BODY + 1;
        return;
    }
    f->seg[WIRE_SEG_KEYS] = (struct van_seg){.data = unconst(s->keys), .len = 8 * (uint64_t)s->count};
    f->nseg = s->count ? 1 : 0;
    if (r->kind == REQUEST_TRANSFORM) {
        f->seg[WIRE_SEG_LENS] = f->seg[WIRE_SEG_VALS] = (struct van_seg){0};
        f->seg[WIRE_SEG_BODY] = (struct van_seg){.data = unconst(r->transform), .len = sizeof r->transform};
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
