#include "server/shard/filtered.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "server/shard/kept.h"
#include "server/shard/reply.h"
#include "wire/capability.h"

/* Bounds; arbitrary. */
enum { SHARD_LISTS_BYTES = 256 << 20, PEER_TABLES_MAX = 64 };

/* How a sender wants the answers of a table. */
struct peer_wants {
    uint32_t table;
    struct filter_run run;
};

void filtered_peer_init(struct peer *peer)
{
    keylists_init(&peer->lists, 1, KEYLISTS_KEPT_BYTES, &peer->shard->filters->lists_bytes,
                  SHARD_LISTS_BYTES);
}

void filtered_peer_fini(struct peer *peer)
{
    assert(!peer->wants == !peer->wants_count);
    keylists_clear(&peer->lists);
    free(peer->wants);
    peer->wants = NULL;
    peer->wants_count = 0;
}

void filtered_fini(struct shard *s)
{
    assert(!s->filters->lists_bytes);
    filter_tools_fini(&s->filters->tools);
}

static struct filter_coder coder_of(const struct peer *peer)
{
    struct shard *s = peer->shard;
    return (struct filter_coder){
        .env = lane_env(s->lane), .capabilities = peer->conn->capabilities, .counts = &s->filters->counts};
}

/* ---- what a sender wants ---- */

static struct peer_wants *wants_of(const struct peer *peer, uint32_t table)
{
    for (unsigned i = 0; i < peer->wants_count; i++)
        if (peer->wants[i].table == table)
            return &peer->wants[i];
    return NULL;
}

static bool same_chain(const struct filter_chain *a, const struct filter_chain *b)
{
    bool same = a->count == b->count;
    for (unsigned i = 0; i < a->count && same; i++)
        same = a->at[i].ops == b->at[i].ops && memcmp(&a->at[i].arg, &b->at[i].arg, sizeof a->at[i].arg) == 0;
    return same;
}

static bool reads(const struct wire_head *h)
{
    return h->kind == WIRE_PULL || h->kind == WIRE_PUSHPULL;
}

/* Without room for it, the answers are not filtered. */
static void wants_note(struct peer *peer, uint32_t table, const struct filter_chain *chain)
{
    assert(!peer->wants == !peer->wants_count && peer->wants_count <= PEER_TABLES_MAX);
    struct peer_wants *w = wants_of(peer, table);
    if (!w && chain->count && peer->wants_count < PEER_TABLES_MAX) {
        struct peer_wants *more = realloc(peer->wants, (peer->wants_count + 1) * sizeof *more);
        if (!more)
            return;
        peer->wants = more;
        w = &more[peer->wants_count++];
        assert(peer->wants_count <= PEER_TABLES_MAX);
        *w = (struct peer_wants){.table = table};
    }
    if (w && !same_chain(&w->run.chain, chain))
        w->run = (struct filter_run){.chain = *chain};
}

/* ---- requests ---- */

static void answer_lacks(struct peer *peer, const struct wire_head *h, unsigned why)
{
    reply_lacks(peer, h, peer->filter_epoch, why);
}

/* The request cannot be decoded: the connection's filters begin again. */
static void begin_again(struct peer *peer, const struct wire_head *h, unsigned why)
{
    why |= peer->lists.refused ? LACKS_ROOM : 0;
    char self[VIEW_LABEL_MAX], sender[VIEW_LABEL_MAX];
    log_debug("%s: the filters of %s begin again: %s", view_id_label(peer->shard->config.node, self),
              view_id_label(peer->sender->id.node, sender), err_text());
    keylists_clear(&peer->lists);
    peer->filter_epoch++;
    answer_lacks(peer, h, why);
}

static bool same_segments(const struct filter_message *m, const struct van_seg *seg)
{
    bool same = true;
    for (unsigned i = 0; i < FILTER_SEGS; i++)
        same = same && m->seg[i].data == seg[i].data && m->seg[i].len == seg[i].len;
    return same;
}

static paramo_err take_back(struct peer *peer, struct wire_head *h, struct van_seg seg[VAN_SEGS],
                            unsigned *nseg, struct van_hold **hold)
{
    struct filter_coder coder = coder_of(peer);
    struct filter_message m = {.use = h->kind == WIRE_PULL ? FILTER_OF_ASK : FILTER_OF_PUSH,
                               .table = h->table,
                               .count = h->count,
                               .lists = &peer->lists,
                               .tools = &peer->shard->filters->tools,
                               .memory = {.pool = &peer->shard->pool}};
    struct filter_chain wants;
    memcpy(m.seg, seg, sizeof m.seg);
    paramo_err err = filter_decode(&coder, &seg[WIRE_SEG_BODY], &m, &wants);
    if (!err && !same_segments(&m, seg))
        err = kept_segments(peer, m.seg, FILTER_SEGS, seg, hold); /* they outlive the frame and the lists */
    filter_memory_give(&m.memory);
    if (err)
        return err;
    if (reads(h))
        wants_note(peer, h->table, &wants);
    h->flags &= (uint8_t)~WIRE_FILTERED;
    for (*nseg = FILTER_SEGS; *nseg && !seg[*nseg - 1].len; (*nseg)--)
        ;
    return PARAMO_OK;
}

paramo_err filtered_in(struct peer *peer, struct wire_head *h, struct van_seg seg[VAN_SEGS], unsigned *nseg,
                       struct van_hold **hold)
{
    if (h->filter_epoch != peer->filter_epoch) {
        answer_lacks(peer, h, 0);
        return PARAMO_E_AGAIN;
    }
    if (!(h->flags & WIRE_FILTERED)) {
        static const struct filter_chain none;
        if (reads(h))
            wants_note(peer, h->table, &none);
        return PARAMO_OK;
    }
    if (*nseg <= WIRE_SEG_BODY)
        return err_set(PARAMO_E_PROTOCOL, "%s is filtered, but has no envelope", wire_kind_name(h->kind));
    paramo_err err = take_back(peer, h, seg, nseg, hold);
    if (err == PARAMO_E_NOT_FOUND || err == PARAMO_E_UNSUPPORTED)
        begin_again(peer, h, err == PARAMO_E_UNSUPPORTED ? LACKS_USER_FILTER : 0);
    else if (err == PARAMO_E_MEMORY)
        peer->shard->counters.dropped++; /* as if it was lost on the way */
    return err && err != PARAMO_E_PROTOCOL ? PARAMO_E_AGAIN : err;
}

/* ---- answers ---- */

/* Flag FILTERED of a header that is encoded. */
static void flag_head(struct reply *r)
{
    struct wire_head head;
    if (wire_head_decode(r->frame.head, &head))
        return; /* it was encoded here */
    head.flags |= WIRE_FILTERED;
    wire_head_encode(&head, r->frame.head);
}

/* Rounds the values of an answer in its own memory. */
static void answer_round(struct peer *peer, const struct shard_table *t, const struct wire_head *h,
                         const uint64_t *keys, const struct filter_chain *chain, struct reply *r)
{
    struct filter_coder coder = coder_of(peer);
    if (r->frame.nseg <= WIRE_SEG_VALS || !r->frame.seg[WIRE_SEG_VALS].len || !h->count ||
        r->frame.seg[WIRE_SEG_VALS].len > FILTER_MESSAGE_MAX)
        return;
    reply_own(r);
    struct van_seg *vals = &r->frame.seg[WIRE_SEG_VALS];
    size_t n = (size_t)vals->len / t->value_bytes;
    struct filter_rows rows = {.dtype = t->options.dtype,
                               .vals = vals->data,
                               .n = n,
                               .whole = vals->data,
                               .whole_n = n,
                               .keys = keys,
                               .count = h->count,
                               .lens = r->frame.seg[WIRE_SEG_LENS].data,
                               .row_values = (uint32_t)(n / h->count),
                               .column = h->flags & WIRE_COLUMNS ? h->columns.first : 0,
                               .seed = mix64(t->options.seed ^ mix64(~h->ts))};
    (void)filter_round(&coder, chain, FILTER_PULL, !peer->conn->van->ops->in_process, &rows);
}

void filtered_answer(struct peer *peer, const struct shard_table *t, const struct wire_head *h,
                     const uint64_t *keys, struct reply *r)
{
    struct shard *s = peer->shard;
    struct peer_wants *wants = peer->wants_count ? wants_of(peer, t->id) : NULL;
    assert(!r->coding && r->shard == s);
    assert(t->table && r->frame.nseg <= VAN_SEGS);
    if (!wants || !wants->run.chain.count || r->frame.nseg > WIRE_SEG_BODY)
        return;
    if (filter_chain_has(&wants->run.chain, FILTER_ROUNDS))
        answer_round(peer, t, h, keys, &wants->run.chain, r);
    if (peer->conn->van->ops->in_process)
        return;
    struct filter_coder coder = coder_of(peer);
    struct filter_memory *coding = bufpool_get(&s->pool, sizeof *coding);
    struct van_seg body;
    struct filter_message m = {.use = FILTER_OF_ANSWER,
                               .table = t->id,
                               .count = h->count,
                               .keys = h->flags & (WIRE_COLUMNS | WIRE_RANGE) ? NULL : keys,
                               .dtype = t->options.dtype,
                               .value_bytes = t->value_bytes,
                               .row_bytes = t->row_values * t->value_bytes,
                               .lists = &peer->lists,
                               .tools = &s->filters->tools,
                               .memory = {.pool = &s->pool}};
    for (unsigned i = 0; i < r->frame.nseg; i++)
        m.seg[i] = r->frame.seg[i];
    if (!coding || !filter_encode(&coder, &wants->run, NULL, &m, &body)) {
        filter_memory_give(&m.memory);
        bufpool_put(&s->pool, coding, sizeof *coding);
        return;
    }
    reply_own(r); /* the values that it lends are not its last segment any more */
    for (unsigned i = 0; i < FILTER_SEGS; i++)
        if (!(i < r->frame.nseg && m.seg[i].data == r->frame.seg[i].data))
            r->frame.seg[i] = m.seg[i];
    r->frame.seg[WIRE_SEG_BODY] = body;
    r->frame.nseg = WIRE_SEG_BODY + 1;
    *coding = m.memory;
    r->coding = coding;
    flag_head(r);
}
