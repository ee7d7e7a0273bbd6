#include "server/shard/reducing.h"

#include <assert.h>

#include "server/shard/deferred.h"
#include "server/shard/reducing_steps.h"
#include "server/shard/reply.h"
#include "server/shard/second_table.h"

static void answer(struct peer *peer, const struct wire_head *h, struct reducing *r)
{
    reduced_sort(&r->found);
    struct reply *reply = reply_begin(peer, h, reduced_body_bytes(&r->found));
    if (!reply)
        return;
    reduced_encode(&r->found, reply->buffer);
    reply_seg(reply, WIRE_SEG_BODY, 0, reduced_body_bytes(&r->found));
    reply_send(peer, reply, h, false, 0, false);
}

/* Its result, if it is being handled again. */
static struct reducing *finished(const struct peer *peer, const struct wire_head *h)
{
    const struct deferred *d = deferred_again(peer, h);
    return d && d->reducing && d->reducing->at.done ? d->reducing : NULL;
}

static bool is_short(const struct shard *s, const struct shard_table *t)
{
    return table_rows(t->table) * (t->row_values + (uint64_t)1) <= reducing_step_values(s) / 4 &&
           t->options.kind != PARAMO_TABLE_VAR;
}

paramo_err reducing_slice(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                          const struct van_seg *seg)
{
    struct shard *s = peer->shard;
    struct reduction what;
    struct shard_table *other = NULL;
    struct reducing *r = finished(peer, h);
    assert(!r || (r->at.done && s->reducing_bytes >= reduced_bytes(&r->what)));
    paramo_err err = reduction_decode(seg[WIRE_SEG_BODY].data, (size_t)seg[WIRE_SEG_BODY].len, &what);
    if (err)
        return err;
    if (what.two)
        err = second_table(s, t, h, NULL, what.other, &other);
    if (!err && other)
        err = table_reduce_check(t->table, other->table);
    if (err) {
        reply_status(peer, h, err, err_text());
        return PARAMO_OK;
    }
    if (r) {
        answer(peer, h, r);
        return PARAMO_OK;
    }
    if (s->reducing_bytes && s->reducing_bytes + reduced_bytes(&what) > REDUCING_BYTES) {
        s->counters.dropped++; /* as if it had been lost on the way */
        return PARAMO_OK;
    }
    err = reducing_make(s, seg[WIRE_SEG_BODY].data, (size_t)seg[WIRE_SEG_BODY].len, &r);
    if (!err && is_short(s, t)) {
        while (!r->at.done)
            reducing_step(s, t, r);
        answer(peer, h, r);
        reducing_free(s, r);
    } else if (!err) {
        err = deferred_add_reducing(peer, h, r);
    }
    if (err)
        reply_status(peer, h, err, err_text());
    return PARAMO_OK;
}
