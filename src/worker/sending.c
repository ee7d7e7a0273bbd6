#include "worker/sending.h"

#include <assert.h>

#include "worker/chunk.h"
#include "worker/ending.h"
#include "worker/filtering.h"
#include "worker/link.h"
#include "worker/links.h"
#include "worker/segments.h"

static void slice_sent(struct van_frame *frame, paramo_err status)
{
    struct slice *p = container_of(frame, struct slice, frame);
    assert(p->in_van && p->state == SLICE_SENT);
    (void)status;
    filtering_sent(p);
    p->in_van = false; /* what was not sent is sent again when the connection is back */
}

void sending_init(struct slice *p, struct chunk *chunk, struct link *link, const struct span *s)
{
    const struct request *r = chunk->request;
    assert(link && !r->ended);
    assert(link->client == r->client);
    p->chunk = chunk;
    p->link = link;
    p->span = s;
    p->prev = p->next = NULL;
    p->state = SLICE_IDLE; /* begins */
    p->in_van = p->placing = p->resent = false;
    p->overtaken = 0;
    p->lens = NULL;
    p->vals = NULL;
    p->coding = NULL;
    p->has_list = p->brings = p->plain = p->range = false;
    p->bits = NULL;
    struct van_frame *f = &p->frame;
    f->class = VAN_REQUEST;
    f->priority = r->priority;
    f->more = r->more;
    f->done = slice_sent;
    f->note = r->part.set && s->keys == r->keys && s->count == r->n && !s->columns.count ? &r->part : NULL;
    slice_segments(p);
}

bool sending_usable(struct chunk *chunk, const struct link *l)
{
    assert(l->client == chunk->request->client);
    assert(!chunk->request->ended);
    if (!l->dead)
        return true;
    const struct view_node *node = view_node(l->client->view, l->node);
    char name[LINK_NAME_MAX];
    link_name(l, name);
    (void)err_set(PARAMO_E_NODE_LOST, "%s has %s", name, node && node->left ? "left" : "died");
    chunk_failed(chunk, PARAMO_E_NODE_LOST, err_text());
    return false;
}

void slice_chunk_whole(struct client *c, struct chunk *chunk, struct link *l)
{
    if (!sending_usable(chunk, l))
        return;
    assert(!chunk->split && !chunk->need);
    assert(!chunk->count && !chunk->request->ended);
    chunk->view = c->view->number;
    chunk->count = chunk->unanswered = 1;
    sending_init(&chunk->one, chunk, l, &chunk->span);
    link_enqueue(l, &chunk->one);
}

void slice_chunk_start(struct client *c, struct chunk *chunk, int owner)
{
    assert(owner >= 0 && (uint32_t)owner < c->view->shards_count);
    assert(!chunk->message);
    slice_chunk_whole(c, chunk, links_to_shard(c, (size_t)owner));
}

struct chunk *slice_chunk_add(struct client *c, struct request *r, const struct span *s, int target)
{
    struct chunk *chunk = &r->first;
    assert(!r->ended);
    if (r->first_used) {
        chunk = client_chunk_get(c);
        if (!chunk) {
            request_end(r, err_memory(sizeof *chunk), err_text());
            return NULL;
        }
    }
    r->first_used = true;
    assert(r->client == c && chunk != r->chunks);
    chunk->request = r;
    chunk->number = chunk->need = 0;
    chunk->attempt = r->again; /* for observers: not a first transmission */
    chunk->count = chunk->unanswered = 0;
    chunk->target = target;
    chunk->unsliced = chunk->rest = chunk->again = false;
    chunk->message = NULL;
    chunk->split = NULL;
    chunk->everywhere = false;
    chunk->span = *s;
    chunk->next = r->chunks; /* any order does: answers are gathered by place */
    r->chunks = chunk;
    r->unfinished++;
    return chunk;
}
