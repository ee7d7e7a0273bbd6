#include "server/replication/chain_wait.h"

#include <assert.h>
#include <stdlib.h>

#include "server/replication/acks.h"
#include "server/replication/entry.h"
#include "server/shard/reply.h"

static void wait_unlink(struct chain_wait *w)
{
    if (!w->sender)
        return;
    assert(w->prev ? w->prev->next == w : w->sender->pending == w);
    assert(!w->next || w->next->prev == w);
    if (w->prev)
        w->prev->next = w->next;
    else
        w->sender->pending = w->next;
    if (w->next)
        w->next->prev = w->prev;
    w->sender = NULL;
}

void chain_wait_done(struct chain_wait *w)
{
    if (!w)
        return;
    assert(w->entries > 0 && queue_empty(&w->made));
    assert(!w->source || !w->sender); /* it is an answer, or a place in a source */
    if (--w->entries)
        return;
    if (w->source) {
        acks_advance(w->source);
        return;
    }
    for (struct chain_wait *part = w->parts, *next; part; part = next) {
        next = part->next_part;
        chain_wait_done(part);
    }
    struct peer *peer = w->sender ? w->sender->peer : NULL;
    wait_unlink(w);
    if (peer && w->reply)
        reply_late(peer, w->reply, &w->head);
    else if (peer && w->head.kind != WIRE_PUSHPULL)
        reply_status(peer, &w->head, PARAMO_OK, NULL);
    /* A pushpull without an answer had no memory for its values. The client sends it again, and it is read. */
    else if (w->reply)
        reply_free(w->reply);
    free(w);
}

struct chain_wait *chain_wait_find(const struct sender *sender, uint64_t number)
{
    struct chain_wait *w = sender->pending;
    while (w && w->head.number != number)
        w = w->next;
    assert(!w || w->sender == sender);
    return w;
}

bool chain_pending(struct sender *sender, const struct wire_head *h)
{
    struct chain_wait *w = chain_wait_find(sender, h->number);
    /* A slice of a newer view asks for other values than those that wait here. The client sends it again
     * later. */
    if (w && h->kind != WIRE_PROBE && (!w->reply || w->head.attempt == h->attempt))
        w->head = *h;
    assert(!w || (w->sender == sender && w->head.number == h->number && !w->source));
    return w;
}

void chain_sender_gone(struct sender *sender)
{
    while (sender->pending) {
        struct chain_wait *w = sender->pending;
        assert(w->sender == sender && !w->prev && !w->source);
        wait_unlink(w);
        assert(sender->pending != w);
        if (w->reply)
            reply_free(w->reply);
        w->reply = NULL;
    }
}

void chain_wait_link(struct chain_wait *w, struct sender *sender)
{
    assert(!w->sender && !w->prev && !w->source);
    w->sender = sender;
    w->next = sender->pending;
    assert(!w->next || (!w->next->prev && w->next->sender == sender));
    if (w->next)
        w->next->prev = w;
    sender->pending = w;
}

void chain_abandon(struct chain_wait *w)
{
    if (!w)
        return;
    for (struct qnode *node; (node = queue_pop(&w->made));)
        chain_entry_free(container_of(node, struct chain_entry, node));
    for (struct chain_wait *part = w->parts, *next; part; part = next) {
        next = part->next_part;
        chain_abandon(part);
    }
    free(w);
}

void chain_cancel(struct queue *entries)
{
    for (struct qnode *node; (node = queue_pop(entries));) {
        struct chain_entry *e = container_of(node, struct chain_entry, node);
        struct chain_wait *w = e->wait;
        chain_entry_free(e);
        assert(!w || w->entries > 0);
        if (!w || --w->entries)
            continue;
        for (struct chain_wait *part = w->parts; part; part = part->next_part)
            wait_unlink(part);
        wait_unlink(w);
        if (w->reply)
            reply_free(w->reply);
        chain_abandon(w);
    }
}
