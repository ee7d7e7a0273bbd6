#include "server/shard/exists.h"

#include "server/shard/reply.h"

void exists_slice(struct peer *peer, struct shard_table *t, const struct wire_head *h, const uint64_t *keys)
{
    struct reply *r = reply_begin(peer, h, 4 * (size_t)h->count);
    if (!r)
        return; /* the error was answered */
    uint32_t *rows = r->buffer;
    paramo_err err = table_resolve(t->table, keys, h->count, rows, false);
    if (err) {
        reply_free(r);
        reply_status(peer, h, err, err_text());
        return;
    }
    for (uint32_t i = 0; i < h->count; i++)
        rows[i] = rows[i] != TABLE_NO_ROW;
    reply_seg(r, WIRE_SEG_VALS, 0, 4 * (size_t)h->count);
    reply_send(peer, r, h, false, h->count, false);
}
