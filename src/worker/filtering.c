#include "worker/filtering.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "wire/capability.h"
#include "worker/segments.h"

/* What a link may filter in one step: two chunks for a compressor (a chunk takes about 2 ms), as much for filters that
 * round, or eight times as much for others. */
enum { STEP_BYTES = 512 << 10, CHUNK_COMPRESSED = 256 << 10, CHEAP = 8 };

/* The chains of one table. A request keeps those with which it began: each of its transmissions rounds alike. */
struct table_filters {
    unsigned refs; /* requests in flight, and 1 while they are the table's present ones */
    struct filter_table table;
    struct filter_run run[FILTER_DIRECTIONS];
};

struct filtering {
    struct map tables; /* of struct table_filters, by id */
    struct filter_counts counts;
    struct filter_tools tools;
};

/* Memory of a frame that is filtered, until the van releases it. */
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
                                 .aggregates = t->options.aggregate != PARAMO_AGGREGATE_NONE,
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
    f->refs = 1;
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
    assert(f->refs > 0 && f->table.id == t->id);
    if (f->refs > 1) {
        struct table_filters *old = f;
        err = table_make(c, t, &f);
        if (err)
            return err;
        memcpy(f->run, old->run, sizeof f->run);
        old->refs--;
    }
    assert(f->refs == 1); /* no request has these */
    f->run[direction] = (struct filter_run){.chain = *chain};
    return PARAMO_OK;
}

void filtering_begin(struct request *r)
{
    struct client *c = r->client;
    bool reads = r->kind == REQUEST_PULL || r->kind == REQUEST_PUSHPULL;
    if (!reads && r->kind != REQUEST_PUSH)
        return;
    assert(!r->filters && !r->ended);
    r->filters = filtering_ref(filters_of(c, r->table));
}

struct table_filters *filtering_ref(struct table_filters *f)
{
    assert(!f || f->refs > 0); /* the table's, or another request's */
    if (f)
        f->refs++;
    return f;
}

void filtering_unref(struct table_filters *f)
{
    assert(!f || f->refs > 0);
    if (f && --f->refs == 0)
        free(f);
}

bool filtering_selects(const struct request *r)
{
    return r->kind == REQUEST_PUSH && r->filters && !r->columns.count && r->client->config.node &&
           filter_chain_has(&r->filters->run[FILTER_PUSH].chain, FILTER_SELECTS);
}

/* The seed of the request: each transmission draws the same. */
static uint64_t seed_of(const struct request *r)
{
    const struct client_config *config = &r->client->config;
    uint64_t sender = (uint64_t)config->node << 32 | config->customer;
    return mix64(r->filters->table.seed ^ mix64(r->draws_as ^ mix64(sender)));
}

void filtering_select(const struct request *r, struct filter_rows *rows, uint8_t *waits)
{
    struct client *c = r->client;
    assert(filtering_selects(r));
    struct filter_coder coder = {.env = lane_env(c->lane), .counts = &c->filtering->counts};
    rows->dtype = r->filters->table.dtype;
    rows->seed = seed_of(r);
    filter_select(&coder, &r->filters->run[FILTER_PUSH].chain, rows, waits);
}

void filtering_end(struct request *r)
{
    assert(r->ended && !r->chunks); /* no slice of it is left */
    filtering_unref(r->filters);
    r->filters = NULL;
}

void filtering_fini(struct client *c)
{
    size_t at = 0;
    uint64_t id;
    void *f;
    if (!c->filtering)
        return;
    while (map_next(&c->filtering->tables, &at, &id, &f)) {
        assert(((struct table_filters *)f)->refs == 1); /* all requests are over */
        free(f);
    }
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

static bool compresses(const struct table_filters *f, enum filter_direction direction)
{
    return filter_chain_has(&f->run[direction].chain, FILTER_COMPRESSES) ||
           filter_chain_has(&f->run[direction].chain, FILTER_BYTES);
}

uint32_t filtering_chunk_bytes(struct client *c, const struct request *r)
{
    const struct table_filters *f = r->filters;
    bool small = f && c->config.chunk_bytes > CHUNK_COMPRESSED &&
                 (compresses(f, FILTER_PUSH) || compresses(f, FILTER_PULL));
    return small ? CHUNK_COMPRESSED : c->config.chunk_bytes;
}

static struct filter_coder coder_of(const struct link *l)
{
    struct client *c = l->client;
    assert(l->conn && c->filtering);
    return (struct filter_coder){.env = lane_env(c->lane),
                                 .capabilities = l->conn->capabilities &
                                                 ~(l->user_filters_off ? CAPABILITY_USER_FILTERS : 0),
                                 .counts = &c->filtering->counts};
}

static struct filter_message message_of(struct link *l, const struct slice *p, enum filter_use use)
{
    struct client *c = l->client;
    const struct client_table *t = p->chunk->request->table;
    assert(p->link == l && t->id);
    struct filter_message m = {.use = use,
                               .table = t->id,
                               .count = p->span->count,
                               .dtype = t->options.dtype,
                               .value_bytes = t->value_bytes,
                               .row_bytes = t->row_values * t->value_bytes,
                               .lists = &l->lists,
                               .tools = &c->filtering->tools,
                               .memory = {.pool = &c->pool}};
    m.keys = p->span->columns.count || p->range ? NULL : p->span->keys;
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
    assert(!p->brings || p->has_list);
    if (list) {
        assert(list->refs > 0);
        list->refs--;
    }
    p->has_list = p->brings = false;
}

static void note_list(struct slice *p, const struct filter_message *m)
{
    if (!m->refers) /* m->list may be one that another message brings */
        return;
    assert(m->list && !p->has_list && m->lists == &p->link->lists);
    p->has_list = true;
    p->list = (uint16_t)keylists_slot(m->lists, m->list);
    p->list_generation = m->lists->generation;
    p->brings = m->brings;
    m->list->refs++;
}

static bool is_slow(const struct table_filters *f, enum filter_direction direction)
{
    return compresses(f, direction) || filter_chain_has(&f->run[direction].chain, FILTER_ROUNDS);
}

/* Counts what is filtered in this step of the lane. */
static bool step_has_room(struct link *l, uint64_t bytes, bool slow)
{
    assert(l->state == LINK_UP); /* filtering_reset ends the step */
    struct client *c = l->client;
    if (l->filtered_bytes >= STEP_BYTES)
        return false;
    if (!l->more.slot) {
        if (lane_timer_arm(c->lane, &l->more, lane_now(c->lane)))
            return true; /* no memory: this step has no limit */
        l->filtered_bytes = 0;
    }
    l->filtered_bytes += slow ? bytes : bytes / CHEAP;
    return true;
}

static bool wire_filters(const struct link *l)
{
    return l->conn->capabilities & CAPABILITY_FILTERS && !l->conn->van->ops->in_process;
}

/* The chain for the answer; NULL: the message does not name one. Without a wire only rounding counts. */
static const struct filter_chain *wanted(const struct link *l, const struct slice *p, struct table_filters *f,
                                         struct filter_chain *lossy)
{
    static const struct filter_chain none;
    const struct filter_chain *chain = &f->run[FILTER_PULL].chain;
    if (p->chunk->request->kind == REQUEST_PUSH || !chain->count)
        return NULL;
    if (wire_filters(l))
        return p->plain ? &none : chain;
    lossy->count = 0;
    for (unsigned i = 0; i < chain->count; i++)
        if (chain->at[i].ops->lossy)
            lossy->at[lossy->count++] = chain->at[i];
    return lossy->count && l->conn->van->ops->in_process ? lossy : NULL;
}

/* Rounding depends on the keys. NULL: no memory. */
static const uint64_t *range_keys(struct filter_memory *memory, const struct span *s)
{
    assert(!s->keys && s->count);
    uint64_t *keys = filter_memory_take(memory, 8 * (size_t)s->count);
    for (uint32_t i = 0; keys && i < s->count; i++)
        keys[i] = s->begin + i;
    return keys;
}

/* Replaces the values by rounded ones. MEMORY: the frame must not leave as it is. */
static paramo_err frame_round(struct filter_coder *coder, const struct link *l, const struct slice *p,
                              const struct table_filters *f, struct filter_message *m, bool *rounded)
{
    const struct request *r = p->chunk->request;
    const struct span *s = p->span, *whole = &p->chunk->span;
    struct van_seg *vals = &m->seg[WIRE_SEG_VALS];
    if (m->use != FILTER_OF_PUSH || !vals->len || whole->src_bytes > FILTER_MESSAGE_MAX ||
        !filter_chain_has(&f->run[FILTER_PUSH].chain, FILTER_ROUNDS))
        return PARAMO_OK;
    uint8_t *copy = filter_memory_take(&m->memory, (size_t)vals->len);
    if (!copy)
        return err_memory((size_t)vals->len);
    memcpy(copy, vals->data, (size_t)vals->len);
    const uint64_t *keys = s->keys ? s->keys : range_keys(&m->memory, s);
    if (!keys)
        return err_memory(8 * (size_t)s->count);
    struct filter_rows rows = {.dtype = m->dtype,
                               .vals = copy,
                               .n = (size_t)vals->len / m->value_bytes,
                               .whole = whole->src,
                               .whole_n = (size_t)whole->src_bytes / m->value_bytes,
                               .keys = keys,
                               .count = s->count,
                               .lens = s->lens,
                               .row_values = (uint32_t)(vals->len / m->value_bytes / s->count),
                               .column = s->columns.count ? s->columns.first : 0,
                               .seed = seed_of(r)};
    *rounded = filter_round(coder, &f->run[FILTER_PUSH].chain, FILTER_PUSH, wire_filters(l), &rows);
    if (*rounded)
        vals->data = copy;
    return PARAMO_OK;
}

static paramo_err frame_filter(struct link *l, struct slice *p, struct table_filters *f,
                               struct filter_message *m)
{
    struct client *c = l->client;
    struct filter_coder coder = coder_of(l);
    struct filter_chain lossy;
    bool push = m->use == FILTER_OF_PUSH, wire = wire_filters(l), rounded = false, coded = false;
    struct filter_run *run = &f->run[push ? FILTER_PUSH : FILTER_PULL];
    static struct filter_run nothing;
    const struct filter_chain *wants = wanted(l, p, f, &lossy);
    struct slice_coding *coding = bufpool_get(&c->pool, sizeof *coding);
    struct van_seg body;
    for (unsigned i = 0; i < FILTER_SEGS; i++)
        m->seg[i] = i < p->frame.nseg ? p->frame.seg[i] : (struct van_seg){0};
    paramo_err err = coding ? frame_round(&coder, l, p, f, m, &rounded) : err_memory(sizeof *coding);
    if (!err && (wire || wants))
        coded = filter_encode(&coder, wire ? run : &nothing, wants, m, &body);
    if (err || (!coded && !rounded)) {
        filter_memory_give(&m->memory);
        bufpool_put(&c->pool, coding, sizeof *coding);
        return err;
    }
    assert(f->refs > 0);
    assert(!p->in_van && !p->coding);
    memcpy(p->frame.seg, m->seg, sizeof m->seg);
    if (coded) {
        p->frame.seg[WIRE_SEG_BODY] = body;
        p->frame.nseg = WIRE_SEG_BODY + 1;
    }
    coding->memory = m->memory;
    p->coding = coding;
    note_list(p, m);
    return PARAMO_OK;
}

/* Do filters change frames of this request over this link? */
static bool link_filters(const struct link *l, const struct request *r, const struct table_filters *f)
{
    bool pushes = r->kind != REQUEST_PULL, reads = r->kind != REQUEST_PUSH;
    if (wire_filters(l) || (pushes && filter_chain_has(&f->run[FILTER_PUSH].chain, FILTER_ROUNDS)))
        return true;
    return reads && l->conn->van->ops->in_process &&
           filter_chain_has(&f->run[FILTER_PULL].chain, FILTER_ROUNDS);
}

paramo_err filtering_out(struct link *l, struct slice *p)
{
    assert(p->link == l && l->state == LINK_UP);
    const struct request *r = p->chunk->request;
    struct table_filters *f = r->filters;
    assert(!p->coding);
    filtering_forget(p);
    if (f)
        slice_segments(p); /* as it was before the filters of an earlier transmission */
    if (!f || !link_filters(l, r, f))
        return PARAMO_OK;
    enum filter_use use = r->kind == REQUEST_PULL ? FILTER_OF_ASK : FILTER_OF_PUSH;
    uint64_t bytes = p->span->src_bytes + 8 * (uint64_t)p->span->count;
    if (!step_has_room(l, bytes, is_slow(f, use == FILTER_OF_PUSH ? FILTER_PUSH : FILTER_PULL)))
        return PARAMO_E_AGAIN;
    struct filter_message m = message_of(l, p, use);
    return frame_filter(l, p, f, &m);
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
    l->user_filters_off = false;
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
    assert(p->link == l && l->state == LINK_UP);
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
        return err == PARAMO_E_UNSUPPORTED ? err_prefix(PARAMO_E_PROTOCOL, "it was not asked for") : err;
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
    bool off = l->user_filters_off;
    filtering_reset(l);
    l->filter_epoch = h->filter_epoch;
    l->lists.off = h->probed.full & LACKS_ROOM;
    l->user_filters_off = off || h->probed.full & LACKS_USER_FILTER;
    return true;
}
