#include "worker/filtering.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "wire/capability.h"
#include "worker/segments.h"

/* What a link may filter in one step: two chunks for a compressor (a chunk takes about 2 ms), or eight times as
 * much for others. */
enum { STEP_BYTES = 512 << 10, CHUNK_COMPRESSED = 256 << 10, CHEAP = 8 };

/* The chains of one table. */
struct table_filters {
    struct filter_table table;
    struct filter_run run[FILTER_DIRECTIONS];
};

struct filtering {
    struct map tables; /* of struct table_filters, by id */
    struct filter_counts counts;
    struct filter_tools tools;
};

/* Memory of a frame that is filtered, until the van lets go of it. */
struct slice_coding {
    struct filter_memory memory;
};

/* ---- chains ---- */

struct filter_table filtering_table(const struct client_table *t)
{
    return (struct filter_table){.id = t->id,
                                 .kind = t->options.kind,
                                 .dtype = t->options.dtype,
                                 .optimizer = t->options.optimizer,
                                 .value_bytes = t->value_bytes,
                                 .row_values = t->row_values,
                                 .seed = t->options.seed};
}

static paramo_err filtering_make(struct client *c)
{
    if (c->filtering)
        return PARAMO_OK;
    c->filtering = calloc(1, sizeof *c->filtering);
    return c->filtering ? PARAMO_OK : err_memory(sizeof *c->filtering);
}

static paramo_err table_make(struct client *c, const struct client_table *t, struct table_filters **out)
{
    paramo_err err = filtering_make(c);
    if (err)
        return err;
    struct table_filters *f = calloc(1, sizeof *f);
    if (!f)
        return err_memory(sizeof *f);
    f->table = filtering_table(t);
    for (unsigned d = 0; d < FILTER_DIRECTIONS; d++)
        f->run[d].chain = filter_chain_fitting(&c->config.filters[d], &f->table, (enum filter_direction)d);
    err = map_put(&c->filtering->tables, t->id, f);
    if (err) {
        free(f);
        return err;
    }
    *out = f;
    return PARAMO_OK;
}

/* NULL: the table has no filters. */
static struct table_filters *filters_of(struct client *c, const struct client_table *t)
{
    bool preset = c->config.filters[FILTER_PUSH].count || c->config.filters[FILTER_PULL].count;
    struct table_filters *f = c->filtering ? map_get(&c->filtering->tables, t->id) : NULL;
    if (!f && preset && t->id && table_make(c, t, &f))
        return NULL; /* without memory the requests travel as they are */
    return f;
}

paramo_err filtering_set(struct client *c, const struct client_table *t, enum filter_direction direction,
                         const struct filter_chain *chain)
{
    struct filter_table table = filtering_table(t);
    paramo_err err = filter_chain_fits(chain, &table, direction);
    struct table_filters *f = c->filtering ? map_get(&c->filtering->tables, t->id) : NULL;
    if (err)
        return err_prefix(err, "table %s", t->name);
    if (!f)
        err = table_make(c, t, &f);
    if (err)
        return err;
    f->run[direction] = (struct filter_run){.chain = *chain};
    return PARAMO_OK;
}

void filtering_fini(struct client *c)
{
    size_t at = 0;
    uint64_t id;
    void *f;
    if (!c->filtering)
        return;
    while (map_next(&c->filtering->tables, &at, &id, &f))
        free(f);
    map_fini(&c->filtering->tables);
    filter_tools_fini(&c->filtering->tools);
    free(c->filtering);
    c->filtering = NULL;
}

void filtering_counts(const struct client *c, struct filter_counts *sum)
{
    if (c->filtering)
        filter_counts_add(sum, &c->filtering->counts);
}

/* ---- frames that leave ---- */

static bool is_filtered(const struct request *r)
{
    return r->kind == REQUEST_PUSH || r->kind == REQUEST_PULL || r->kind == REQUEST_PUSHPULL;
}

static bool compresses(const struct table_filters *f, enum filter_direction direction)
{
    return filter_chain_has(&f->run[direction].chain, FILTER_COMPRESSES);
}

uint32_t filtering_chunk_bytes(struct client *c, const struct request *r)
{
    const struct table_filters *f = is_filtered(r) ? filters_of(c, r->table) : NULL;
    bool small = f && c->config.chunk_bytes > CHUNK_COMPRESSED &&
                 (compresses(f, FILTER_PUSH) || compresses(f, FILTER_PULL));
    return small ? CHUNK_COMPRESSED : c->config.chunk_bytes;
}

static struct filter_coder coder_of(const struct link *l)
{
    struct client *c = l->client;
    return (struct filter_coder){
        .env = lane_env(c->lane), .capabilities = l->conn->capabilities, .counts = &c->filtering->counts};
}

static struct filter_message message_of(struct link *l, const struct slice *p, enum filter_use use)
{
    struct client *c = l->client;
    const struct client_table *t = p->chunk->request->table;
    struct filter_message m = {.use = use,
                               .table = t->id,
                               .count = p->span->count,
                               .dtype = t->options.dtype,
                               .value_bytes = t->value_bytes,
                               .row_bytes = t->row_values * t->value_bytes,
                               .lists = &l->lists,
                               .tools = &c->filtering->tools,
                               .memory = {.pool = &c->pool}};
    m.keys = p->span->columns.count ? NULL : p->span->keys;
    return m;
}

static struct keylist *list_of(const struct slice *p)
{
    return p->has_list && p->list_generation == p->link->lists.generation ? &p->link->lists.slots[p->list]
                                                                          : NULL;
}

void filtering_forget(struct slice *p)
{
    struct keylist *list = list_of(p);
    if (list) {
        assert(list->refs > 0);
        list->refs--;
    }
    p->has_list = p->brings = false;
}

static void note_list(struct slice *p, const struct filter_message *m)
{
    if (!m->list)
        return;
    p->has_list = true;
    p->list = (uint16_t)keylists_slot(m->lists, m->list);
    p->list_generation = m->lists->generation;
    p->brings = m->brings;
    m->list->refs++;
}

/* Counts what is filtered in this step of the lane. */
static bool step_has_room(struct link *l, uint64_t bytes, bool compressed)
{
    struct client *c = l->client;
    if (l->filtered_bytes >= STEP_BYTES)
        return false;
    if (!l->more.slot) {
        if (lane_timer_arm(c->lane, &l->more, lane_now(c->lane)))
            return true; /* no memory: then this step takes as long as it takes */
        l->filtered_bytes = 0;
    }
    l->filtered_bytes += compressed ? bytes : bytes / CHEAP;
    return true;
}

static void frame_filter(struct link *l, struct slice *p, struct table_filters *f, struct filter_message *m)
{
    struct client *c = l->client;
    struct filter_coder coder = coder_of(l);
    bool push = m->use == FILTER_OF_PUSH, reads = p->chunk->request->kind != REQUEST_PUSH;
    static const struct filter_chain none;
    const struct filter_chain *wants =
        reads && f->run[FILTER_PULL].chain.count ? &f->run[FILTER_PULL].chain : NULL;
    wants = wants && p->plain ? &none : wants;
    struct slice_coding *coding = bufpool_get(&c->pool, sizeof *coding);
    struct van_seg body;
    if (!coding)
        return;
    for (unsigned i = 0; i < FILTER_SEGS; i++)
        m->seg[i] = i < p->frame.nseg ? p->frame.seg[i] : (struct van_seg){0};
    if (!filter_encode(&coder, &f->run[push ? FILTER_PUSH : FILTER_PULL], wants, m, &body)) {
        filter_memory_give(&m->memory);
        bufpool_put(&c->pool, coding, sizeof *coding);
        return;
    }
    memcpy(p->frame.seg, m->seg, sizeof m->seg);
    p->frame.seg[WIRE_SEG_BODY] = body;
    p->frame.nseg = WIRE_SEG_BODY + 1;
    coding->memory = m->memory;
    p->coding = coding;
    note_list(p, m);
}

bool filtering_out(struct link *l, struct slice *p)
{
    const struct request *r = p->chunk->request;
    struct table_filters *f = is_filtered(r) ? filters_of(l->client, r->table) : NULL;
    assert(!p->coding);
    filtering_forget(p);
    if (p->frame.nseg == WIRE_SEG_BODY + 1 && r->kind != REQUEST_MESSAGE)
        slice_segments(p); /* as it was before the filters of an earlier transmission */
    if (!f || !(l->conn->capabilities & CAPABILITY_FILTERS) || l->conn->van->ops->in_process)
        return true;
    enum filter_use use = r->kind == REQUEST_PULL ? FILTER_OF_ASK : FILTER_OF_PUSH;
    uint64_t bytes = p->span->src_bytes + 8 * (uint64_t)p->span->count;
    if (!step_has_room(l, bytes, compresses(f, use == FILTER_OF_PUSH ? FILTER_PUSH : FILTER_PULL)))
        return false;
    struct filter_message m = message_of(l, p, use);
    frame_filter(l, p, f, &m);
    return true;
}

void filtering_sent(struct slice *p)
{
    struct slice_coding *coding = p->coding;
    if (!coding)
        return;
    p->coding = NULL;
    filter_memory_give(&coding->memory);
    bufpool_put(&p->link->client->pool, coding, sizeof *coding);
}

void filtering_reset(struct link *l)
{
    keylists_clear(&l->lists);
    l->lists.off = false;
    l->filter_epoch = 0;
    l->filtered_bytes = 0;
    if (l->more.slot)
        lane_timer_cancel(l->client->lane, &l->more);
}

/* ---- answers ---- */

paramo_err filtering_in(struct link *l, struct slice *p, const struct wire_head *h, const struct van_seg *seg,
                        unsigned nseg, struct filtered_answer *out)
{
    const struct request *r = p->chunk->request;
    bool reads = r->kind == REQUEST_PULL || r->kind == REQUEST_PUSHPULL;
    struct filter_message m;
    if (!l->client->filtering || !reads || h->count != p->span->count || nseg <= WIRE_SEG_BODY)
        return err_set(PARAMO_E_PROTOCOL, "an answer to %s of %u keys is filtered, which was not asked for",
                       wire_kind_name(r->wire_kind), p->span->count);
    struct filter_coder coder = coder_of(l);
    m = message_of(l, p, FILTER_OF_ANSWER);
    m.list = list_of(p);
    m.looked = true;
    memcpy(m.seg, seg, sizeof m.seg);
    paramo_err err = filter_decode(&coder, &seg[WIRE_SEG_BODY], &m, NULL);
    if (err) {
        filter_memory_give(&m.memory);
        p->plain = true;
        return err;
    }
    memcpy(out->seg, m.seg, sizeof m.seg);
    out->seg[WIRE_SEG_BODY] = (struct van_seg){0};
    out->nseg = WIRE_SEG_BODY;
    out->memory = m.memory;
    return PARAMO_OK;
}

void filtering_done(struct filtered_answer *answer)
{
    filter_memory_give(&answer->memory);
}

void filtering_answered(struct slice *p)
{
    struct keylist *list = list_of(p);
    if (list && p->brings)
        list->known = true;
}

bool filtering_lacks(struct link *l, const struct wire_head *h)
{
    if ((int16_t)(uint16_t)(h->filter_epoch - l->filter_epoch) <= 0)
        return false; /* an answer to a request of an earlier epoch */
    log_debug("server %u (%s): the filters of the connection begin again", l->node, l->address);
    l->client->counts->filters_again++;
    filtering_reset(l);
    l->filter_epoch = h->filter_epoch;
    l->lists.off = h->probed.full;
    return true;
}
