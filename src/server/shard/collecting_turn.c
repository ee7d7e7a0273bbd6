#include "server/shard/collecting_turn.h"

#include <assert.h>

#include "server/shard/slice.h"
#include "server/shard/table_map.h"

/* n pushes that are new and may be handled now, each by itself if not together. */
static void apply(struct shard *s, struct shard_table *t, struct kept *const *whole, size_t n)
{
    assert(n <= COMBINED_PUSHES_MAX);
    assert(s->collecting->closing);
    bool combined = n > 1 && t && combining_possible(s, t) && combining_push(s, t, whole, n);
    s->counters.combined += combined;
    for (size_t i = 0; i < n; i++) {
        if (combined)
            kept_free(whole[i]);
        else
            slice_handle_kept(whole[i]);
    }
}

/* They wait in front of what their connections defer. */
static void give_back(struct shard *s, struct queue *waiting)
{
    assert(s->collecting->closing);
    struct qnode *last_first = NULL;
    for (struct qnode *node; (node = queue_pop(waiting));) {
        if (slice_waits_for_view(s)) {
            kept_wait_for_view(container_of(node, struct kept, node));
        } else {
            node->next = last_first;
            last_first = node;
        }
    }
    for (struct qnode *node; (node = last_first);) {
        last_first = node->next;
        kept_push_first(container_of(node, struct kept, node));
    }
}

void collecting_turn(struct shard *s, struct collection *x)
{
    struct kept *whole[COMBINED_PUSHES_MAX];
    struct shard_table *t = shard_table_find(s, x->table);
    struct queue others = {0}, waiting = {0};
    size_t n = 0;
    assert(x->count <= COMBINED_PUSHES_MAX);
    assert(s->collecting->closing && s->collecting->shard == s);
    for (struct qnode *node; (node = queue_pop(&x->pushes));) {
        struct kept *k = container_of(node, struct kept, node);
        if (!slice_may_change(k->peer, &k->head, k->seg))
            queue_push(&waiting, node);
        else if (slice_is_whole(k->peer, &k->head))
            whole[n++] = k;
        else
            queue_push(&others, node);
    }
    assert(n <= x->count); /* the collection counts its pushes */
    apply(s, t, whole, n);
    for (struct qnode *node; (node = queue_pop(&others));)
        slice_handle_kept(container_of(node, struct kept, node));
    give_back(s, &waiting);
}
