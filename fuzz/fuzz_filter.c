/* The decoders of filters, over a connection's life: random messages, encoded messages,
 * and encoded messages with some bytes changed. An encoded message must decode to what it was. Any other is accepted,
 * reported as a miss, or refused, within its bounds. Chains as a user writes them are fuzzed as well. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/coding.h"
#include "harness.h"
#include "wire/capability.h"

enum { MESSAGES = 12, KEYS = 300, TABLES = 3, ROW = 2 };

struct ends {
    struct bufpool pool;
    struct keylists sender, receiver;
    struct filter_tools tools;
    struct filter_counts counts;
    uint64_t capabilities;
};

/* ---- chains ---- */

static void chain_text(struct source *s)
{
    char text[80], again[FILTER_CHAIN_TEXT];
    struct filter_chain chain, back;
    enum filter_direction direction = draw_u8(s) % 2 ? FILTER_PULL : FILTER_PUSH;
    draw_text(s, text, sizeof text);
    if (filter_chain_parse(text, direction, &chain))
        return;
    CHECK(chain.count <= FILTER_CHAIN_MAX);
    for (unsigned i = 0; i < chain.count; i++) {
        const struct filter_ops *ops = chain.at[i].ops;
        CHECK(!i || chain.at[i - 1].ops->rank <= ops->rank);
        CHECK(!ops->meta || (chain.at[i].arg >= ops->min && chain.at[i].arg <= ops->max));
    }
    filter_chain_text(&chain, again);
    CHECK(filter_chain_parse(again, direction, &back) == PARAMO_OK && back.count == chain.count);
    for (unsigned i = 0; i < chain.count; i++)
        CHECK(back.at[i].ops == chain.at[i].ops &&
              (!chain.at[i].ops->meta || back.at[i].arg == chain.at[i].arg));
}

/* ---- messages ---- */

static struct filter_chain chain_draw(struct source *s, enum filter_direction direction)
{
    struct filter_chain chain = {0};
    for (unsigned i = 0, n = draw_u8(s) % 4; i < n; i++) {
        char text[FILTER_CHAIN_TEXT + 40];
        const struct filter_ops *ops = filter_at(draw_u8(s) % FILTER_COUNT);
        struct filter_chain longer;
        filter_chain_text(&chain, text);
        size_t len = strlen(text);
        (void)snprintf(text + len, sizeof text - len, "%s%s%s", len ? "," : "", ops->name,
                       ops->meta && isnan(ops->preset) ? ":1" : "");
        if (filter_chain_parse(text, direction, &longer) == PARAMO_OK)
            chain = longer;
    }
    return chain;
}

struct sample {
    uint64_t keys[KEYS];
    float vals[ROW * KEYS];
    uint32_t n, table;
    enum filter_use use;
};

static void sample_draw(struct source *s, struct sample *m)
{
    m->use = (enum filter_use)(1 << draw_u8(s) % 3);
    m->table = draw_u8(s) % TABLES;
    m->n = 1 + draw_u16(s) % KEYS;
    uint64_t key = draw_u8(s) % 4, step = 1 + draw_u8(s) % 3;
    for (uint32_t i = 0; i < m->n; i++) {
        m->keys[i] = key;
        key += step;
    }
    uint32_t bits = draw_u32(s), mask = draw_u32(s);
    for (uint32_t i = 0; i < ROW * m->n; i++) {
        bits = bits * 1664525 + 1013904223;
        uint32_t one = bits & mask;
        memcpy(&m->vals[i], &one, sizeof one);
    }
}

static struct filter_message message(struct ends *e, struct keylists *lists, const struct sample *s)
{
    struct filter_message m = {.use = s->use,
                               .table = s->table,
                               .count = s->n,
                               .keys = s->keys,
                               .dtype = PARAMO_F32,
                               .value_bytes = 4,
                               .row_bytes = 4 * ROW,
                               .lists = lists,
                               .tools = &e->tools,
                               .memory = {.pool = &e->pool}};
    if (s->use != FILTER_OF_ANSWER)
        m.seg[WIRE_SEG_KEYS] = (struct van_seg){.data = (void *)(uintptr_t)s->keys, .len = 8 * s->n};
    if (s->use != FILTER_OF_ASK)
        m.seg[WIRE_SEG_VALS] = (struct van_seg){.data = (void *)(uintptr_t)s->vals, .len = 4 * ROW * s->n};
    return m;
}

static void bounded(const struct ends *e)
{
    CHECK(e->receiver.bytes <= e->receiver.most && e->sender.bytes <= e->sender.most);
    CHECK(e->pool.out <= 16 * FILTER_MESSAGE_MAX);
}

/* The bytes of `seg` in memory of their own, of exactly their size. */
static struct van_seg copied(const struct van_seg *seg)
{
    struct van_seg copy = {.data = harness_alloc(seg->len ? seg->len : 1), .len = seg->len};
    if (seg->len)
        memcpy(copy.data, seg->data, seg->len);
    return copy;
}

static void deliver(struct source *s, struct ends *e, const struct sample *sample,
                    struct filter_message *sent, const struct van_seg *body, bool damaged)
{
    struct filter_message m = message(e, &e->receiver, sample);
    struct filter_coder coder = {.env = env_real(), .capabilities = e->capabilities, .counts = &e->counts};
    struct van_seg seg[VAN_SEGS];
    struct filter_chain wants;
    for (unsigned i = 0; i < FILTER_SEGS; i++)
        m.seg[i] = seg[i] = copied(&sent->seg[i]);
    seg[WIRE_SEG_BODY] = copied(body);
    for (unsigned i = 0, n = damaged ? 1 + draw_u8(s) % 4 : 0; i < n; i++) {
        struct van_seg *at = &seg[draw_u8(s) % VAN_SEGS];
        if (at->len)
            ((uint8_t *)at->data)[draw_u32(s) % at->len] = draw_u8(s);
    }
    if (damaged && draw_u8(s) % 4 == 0)
        m.count = (uint32_t)draw_number(s);
    m.keys = sample->use == FILTER_OF_ANSWER ? sample->keys : NULL;
    if (sample->use == FILTER_OF_ANSWER) {
        m.list = sent->list; /* what the worker knows of its own request */
        m.looked = true;
        m.lists = &e->sender;
    }
    paramo_err err = filter_decode(&coder, &seg[WIRE_SEG_BODY], &m, &wants);
    CHECK(!err || err == PARAMO_E_PROTOCOL || err == PARAMO_E_NOT_FOUND || err == PARAMO_E_MEMORY);
    CHECK(err || filter_message_bytes(&m) <= FILTER_MESSAGE_MAX);
    if (!damaged && !err) {
        struct filter_message plain = message(e, NULL, sample);
        for (unsigned i = 0; i < FILTER_SEGS; i++) {
            CHECK(m.seg[i].len == plain.seg[i].len);
            CHECK(!m.seg[i].len || memcmp(m.seg[i].data, plain.seg[i].data, m.seg[i].len) == 0);
        }
        if (sent->brings)
            sent->list->known = true;
    }
    CHECK(damaged || !err || err == PARAMO_E_NOT_FOUND);
    if (err == PARAMO_E_NOT_FOUND) { /* the filters of the connection begin again */
        keylists_clear(&e->sender);
        keylists_clear(&e->receiver);
    }
    bounded(e);
    filter_memory_give(&m.memory);
    for (unsigned i = 0; i < VAN_SEGS; i++)
        free(seg[i].data);
}

static void encoded(struct source *s, struct ends *e, bool damaged)
{
    struct sample sample;
    struct filter_run run = {0};
    sample_draw(s, &sample);
    run.chain = chain_draw(s, sample.use == FILTER_OF_PUSH ? FILTER_PUSH : FILTER_PULL);
    struct filter_coder coder = {.env = env_real(), .capabilities = e->capabilities, .counts = &e->counts};
    struct filter_message m = message(e, sample.use == FILTER_OF_ANSWER ? &e->receiver : &e->sender, &sample);
    struct van_seg body;
    if (filter_encode(&coder, &run, NULL, &m, &body))
        deliver(s, e, &sample, &m, &body, damaged);
    filter_memory_give(&m.memory);
}

static void raw(struct source *s, struct ends *e)
{
    struct filter_coder coder = {.env = env_real(), .capabilities = e->capabilities, .counts = &e->counts};
    struct filter_message m = {.use = (enum filter_use)(1 << draw_u8(s) % 3),
                               .table = draw_u8(s) % TABLES,
                               .count = (uint32_t)draw_number(s),
                               .lists = &e->receiver,
                               .tools = &e->tools,
                               .memory = {.pool = &e->pool}};
    struct van_seg seg[VAN_SEGS];
    for (unsigned i = 0; i < VAN_SEGS; i++) {
        size_t got;
        seg[i].data = draw_bytes(s, i == WIRE_SEG_BODY ? draw_u8(s) : draw_u16(s) % 1024, &got);
        seg[i].len = got;
    }
    memcpy(m.seg, seg, sizeof m.seg);
    paramo_err err = filter_decode(&coder, &seg[WIRE_SEG_BODY], &m, NULL);
    CHECK(!err || err == PARAMO_E_PROTOCOL || err == PARAMO_E_NOT_FOUND || err == PARAMO_E_MEMORY);
    bounded(e);
    filter_memory_give(&m.memory);
    for (unsigned i = 0; i < VAN_SEGS; i++)
        free(seg[i].data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    struct ends e = {.capabilities = draw_u8(&s) % 4 ? CAPABILITIES : draw_u64(&s)};
    size_t total = 0;
    bufpool_init(&e.pool, 0);
    keylists_init(&e.sender, 1, 20000, NULL, 0);
    keylists_init(&e.receiver, 1, 25000, &total, 30000);
    for (unsigned i = 0; i < MESSAGES && s.left; i++) {
        switch (draw_u8(&s) % 4) {
        case 0:
            chain_text(&s);
            break;
        case 1:
            raw(&s, &e);
            break;
        case 2:
            encoded(&s, &e, false);
            break;
        default:
            encoded(&s, &e, true);
        }
    }
    keylists_clear(&e.sender);
    keylists_clear(&e.receiver);
    CHECK(total == 0 && e.pool.out == 0);
    filter_tools_fini(&e.tools);
    bufpool_fini(&e.pool);
    return 0;
}
