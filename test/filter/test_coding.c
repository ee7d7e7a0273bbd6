/* Frames through chains and back: both ends of a connection, all chains, many messages; and hostile bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "filter/coding.h"
#include "filter/envelope.h"
#include "filter/registry.h"
#include "unit.h"
#include "wire/capability.h"

enum { KEYS_MAX = 3000, CASES = 300 };

/* Both ends of one connection. */
struct ends {
    struct bufpool pool;
    struct keylists sender, receiver;
    struct filter_tools tools;
    struct filter_counts sent, taken;
    uint64_t capabilities;
};

static void ends_init(struct ends *e)
{
    *e = (struct ends){.capabilities = CAPABILITIES};
    bufpool_init(&e->pool, 0);
    keylists_init(&e->sender, 0, KEYLISTS_BYTES, NULL, 0);
    keylists_init(&e->receiver, 1, KEYLISTS_KEPT_BYTES, NULL, 0);
}

static void ends_fini(struct ends *e)
{
    keylists_clear(&e->sender);
    keylists_clear(&e->receiver);
    filter_tools_fini(&e->tools);
    assert_int_equal(e->pool.out, 0); /* what messages took has come back */
    bufpool_fini(&e->pool);
}

/* A message that is drawn: keys, and values that compress more or less. */
struct sample {
    uint64_t keys[KEYS_MAX];
    float vals[KEYS_MAX];
    uint32_t n;
    enum filter_use use;
};

static uint64_t dice;

static uint64_t draw(uint64_t below)
{
    return mix64(++dice * UINT64_C(0x9e3779b97f4a7c15)) % below;
}

static void sample_draw(struct sample *s)
{
    s->n = 1 + (uint32_t)draw(draw(2) ? KEYS_MAX : 40);
    s->use = 1 << draw(3);
    uint64_t key = draw(100);
    for (uint32_t i = 0; i < s->n; i++) {
        s->keys[i] = key += 1 + draw(50);
        s->vals[i] = draw(3) ? 0.f : (float)draw(1000) / 7.f - 60.f;
    }
}

static struct filter_message message(struct ends *e, struct keylists *lists, const struct sample *s)
{
    struct filter_message m = {.use = s->use,
                               .table = 5,
                               .count = s->n,
                               .keys = s->keys,
                               .dtype = PARAMO_F32,
                               .value_bytes = 4,
                               .row_bytes = 4,
                               .lists = lists,
                               .tools = &e->tools,
                               .memory = {.pool = &e->pool}};
    if (s->use != FILTER_OF_ANSWER)
        m.seg[WIRE_SEG_KEYS] = (struct van_seg){.data = (void *)(uintptr_t)s->keys, .len = 8 * s->n};
    if (s->use != FILTER_OF_ASK)
        m.seg[WIRE_SEG_VALS] = (struct van_seg){.data = (void *)(uintptr_t)s->vals, .len = 4 * s->n};
    return m;
}

static void same(const struct filter_message *got, const struct sample *s)
{
    uint64_t keys = s->use != FILTER_OF_ANSWER ? 8 * s->n : 0, vals = s->use != FILTER_OF_ASK ? 4 * s->n : 0;
    assert_int_equal(got->seg[WIRE_SEG_KEYS].len, keys);
    assert_int_equal(got->seg[WIRE_SEG_LENS].len, 0);
    assert_int_equal(got->seg[WIRE_SEG_VALS].len, vals);
    if (keys)
        assert_memory_equal(got->seg[WIRE_SEG_KEYS].data, s->keys, keys);
    if (vals)
        assert_memory_equal(got->seg[WIRE_SEG_VALS].data, s->vals, vals);
}

/* The wire: bytes are copied, so that nothing refers to the sender's memory. */
static uint8_t wire[4][2 << 20];

static void travel(struct filter_message *to, const struct filter_message *from, const struct van_seg *body,
                   struct van_seg *body_to)
{
    for (unsigned i = 0; i < FILTER_SEGS; i++) {
        if (from->seg[i].len)
            memcpy(wire[i], from->seg[i].data, from->seg[i].len);
        to->seg[i] = (struct van_seg){.data = from->seg[i].len ? wire[i] : NULL, .len = from->seg[i].len};
    }
    memcpy(wire[3], body->data, body->len);
    *body_to = (struct van_seg){.data = wire[3], .len = body->len};
}

/* Sends s by the chain. Returns the bytes that travelled. */
static uint64_t send(struct ends *e, struct filter_run *run, const struct sample *s)
{
    struct filter_coder out = {.env = env_real(), .capabilities = e->capabilities, .counts = &e->sent};
    struct filter_coder in = {.env = env_real(), .capabilities = e->capabilities, .counts = &e->taken};
    struct filter_message m = message(e, &e->sender, s), back = message(e, &e->receiver, s);
    struct van_seg body, body_in;
    if (!filter_encode(&out, run, NULL, &m, &body)) {
        same(&m, s); /* nothing has changed */
        filter_memory_give(&m.memory);
        return filter_message_bytes(&m);
    }
    uint64_t bytes = filter_message_bytes(&m) + body.len;
    travel(&back, &m, &body, &body_in);
    back.keys = NULL;
    if (m.brings)
        m.list->known = true; /* it was answered */
    if (filter_decode(&in, &body_in, &back, NULL))
        fail_msg("%s", err_text());
    same(&back, s);
    filter_memory_give(&m.memory);
    filter_memory_give(&back.memory);
    return bytes;
}

/* Rounds the values by the chain, as before they are sent. */
static void rounded(struct ends *e, const struct filter_run *run, struct sample *s)
{
    struct filter_coder coder = {.env = env_real(), .capabilities = e->capabilities, .counts = &e->sent};
    struct filter_rows rows = {.dtype = PARAMO_F32,
                               .vals = s->vals,
                               .n = s->n,
                               .whole = s->vals,
                               .whole_n = s->n,
                               .keys = s->keys,
                               .count = s->n,
                               .row_values = 1};
    (void)filter_round(&coder, &run->chain, FILTER_PUSH, true, &rows);
}

static void all_chains_come_back(void **state)
{
    (void)state;
    static const char *const chains[] = {
        "keycache",     "lz4",           "zstd:1",       "zstd:3",
        "keycache,lz4", "keycache,zstd", "fixed:1",      "fixed:2,keycache,lz4",
        "fixed:3,zstd", "bf16,lz4",      "keycache,fp16"};
    for (unsigned i = 0; i < sizeof chains / sizeof *chains; i++) {
        struct ends e;
        struct filter_run run = {0};
        struct sample *s = calloc(1, sizeof *s);
        ends_init(&e);
        assert_int_equal(filter_chain_parse(chains[i], FILTER_PUSH, &run.chain), PARAMO_OK);
        dice = i;
        for (unsigned k = 0; k < CASES; k++) {
            sample_draw(s);
            rounded(&e, &run, s);
            send(&e, &run, s);
            send(&e, &run, s);
        }
        if (run.chain.at[0].ops->lossy) /* none is left as it is: it has been rounded */
            assert_int_equal(e.sent.of[registry_index(run.chain.at[0].ops)][FILTER_PUSH].skipped, 0);
        free(s);
        ends_fini(&e);
    }
}

static void a_list_travels_once(void **state)
{
    (void)state;
    struct ends e;
    struct filter_run run = {0};
    struct sample *s = calloc(1, sizeof *s);
    ends_init(&e);
    assert_int_equal(filter_chain_parse("keycache", FILTER_PUSH, &run.chain), PARAMO_OK);
    for (s->n = 0; s->n < 1000; s->n++)
        s->keys[s->n] = 77 * (uint64_t)s->n;
    s->use = FILTER_OF_ASK;
    assert_true(send(&e, &run, s) >= 8000);
    assert_true(send(&e, &run, s) < 40);
    s->use = FILTER_OF_PUSH;
    assert_true(send(&e, &run, s) < 4040);
    s->n--; /* not the last key: one bit for each of the list */
    assert_true(send(&e, &run, s) < 4000 + 125 + 40);
    s->keys[3]++;
    assert_true(send(&e, &run, s) > 11900); /* another list */
    assert_int_equal(e.sent.of[FILTER_INDEX_keycache][FILTER_PUSH].messages, 3);
    assert_int_equal(e.taken.of[FILTER_INDEX_keycache][FILTER_PULL].received, 2);
    free(s);
    ends_fini(&e);
}

static void what_does_not_pay_is_skipped(void **state)
{
    (void)state;
    struct ends e;
    struct filter_run run = {0};
    struct sample *s = calloc(1, sizeof *s);
    ends_init(&e);
    assert_int_equal(filter_chain_parse("lz4", FILTER_PUSH, &run.chain), PARAMO_OK);
    s->n = 1000;
    s->use = FILTER_OF_PUSH;
    uint64_t key = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        s->keys[i] = key += mix64(i + 1) >> 12;
        uint32_t bits = (uint32_t)mix64(i + 9) & 0x7f7fffff;
        memcpy(&s->vals[i], &bits, 4);
    }
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(send(&e, &run, s), 12000);
    const struct filter_count *count = &e.sent.of[FILTER_INDEX_lz4][FILTER_PUSH];
    assert_int_equal(count->messages, 0);
    assert_int_equal(count->skipped, 100);
    assert_int_equal(count->before, 0);
    memset(s->vals, 0, sizeof s->vals); /* it is tried again after a while */
    for (unsigned i = 0; i < 16; i++)
        send(&e, &run, s);
    assert_true(count->messages > 0);
    assert_true(count->after < count->before);
    free(s);
    ends_fini(&e);
}

/* A peer without the capability gets nothing that it cannot read, and what it wants is not asked for. */
static void capabilities_decide(void **state)
{
    (void)state;
    struct ends e;
    struct filter_run run = {0};
    struct sample *s = calloc(1, sizeof *s);
    ends_init(&e);
    assert_int_equal(filter_chain_parse("keycache,lz4", FILTER_PUSH, &run.chain), PARAMO_OK);
    e.capabilities = CAPABILITY_ZSTD;
    dice = 1;
    sample_draw(s);
    s->n = 2000;
    s->use = FILTER_OF_ASK;
    assert_int_equal(send(&e, &run, s), 16000);
    assert_int_equal(send(&e, &run, s), 16000);
    e.capabilities = CAPABILITY_KEYCACHE;
    send(&e, &run, s);
    assert_true(send(&e, &run, s) < 40);
    /* What the connection cannot do is refused, whatever the envelope says. */
    struct filter_coder out = {.env = env_real(), .capabilities = CAPABILITIES, .counts = &e.sent};
    struct filter_coder in = {.env = env_real(), .capabilities = CAPABILITY_LZ4, .counts = &e.taken};
    struct filter_message m = message(&e, &e.sender, s), back = message(&e, &e.receiver, s);
    struct van_seg body;
    assert_true(filter_encode(&out, &run, &run.chain, &m, &body));
    memcpy(back.seg, m.seg, sizeof m.seg);
    assert_int_equal(filter_decode(&in, &body, &back, NULL), PARAMO_E_PROTOCOL);
    filter_memory_give(&back.memory);
    /* Wanted filters that only one end has are left out. */
    struct filter_chain wants;
    in.capabilities = CAPABILITIES;
    back = message(&e, &e.receiver, s);
    memcpy(back.seg, m.seg, sizeof m.seg);
    assert_int_equal(filter_decode(&in, &body, &back, &wants), PARAMO_OK);
    assert_int_equal(wants.count, 1); /* keycache is not for answers */
    assert_ptr_equal(wants.at[0].ops, &filter_lz4);
    filter_memory_give(&m.memory);
    filter_memory_give(&back.memory);
    free(s);
    ends_fini(&e);
}

/* A peer that wants a filter twice would get an answer that it cannot decode. */
static void a_filter_is_wanted_once(void **state)
{
    (void)state;
    uint8_t bytes[32];
    struct writer w = writer_over(bytes, sizeof bytes);
    struct filter_chain chain;
    struct filter_envelope e;
    assert_int_equal(filter_chain_parse("lz4", FILTER_PULL, &chain), PARAMO_OK);
    filter_envelope_wants(&w, &chain, CAPABILITIES);
    size_t one = w.len;
    write_u8(&w, 0); /* none was used */
    assert_int_equal(filter_envelope_decode(bytes, w.len, CAPABILITIES, FILTER_OF_ASK, &e), PARAMO_OK);
    assert_int_equal(e.wants.count, 1);
    memmove(bytes + one, bytes + 1, one - 1);
    bytes[0] = 2;
    bytes[2 * one - 1] = 0;
    assert_int_equal(filter_envelope_decode(bytes, 2 * one, CAPABILITIES, FILTER_OF_ASK, &e),
                     PARAMO_E_PROTOCOL);
}

/* A list that the receiver does not have is missed, not misread. */
static void a_missing_list_is_missed(void **state)
{
    (void)state;
    struct ends e;
    struct filter_run run = {0};
    struct sample *s = calloc(1, sizeof *s);
    ends_init(&e);
    assert_int_equal(filter_chain_parse("keycache", FILTER_PUSH, &run.chain), PARAMO_OK);
    dice = 1;
    sample_draw(s);
    s->n = 100;
    s->use = FILTER_OF_ASK;
    send(&e, &run, s);
    keylists_clear(&e.receiver);
    struct filter_coder coder = {.env = env_real(), .capabilities = CAPABILITIES, .counts = &e.sent};
    struct filter_message m = message(&e, &e.sender, s), back = message(&e, &e.receiver, s);
    struct van_seg body;
    assert_true(filter_encode(&coder, &run, NULL, &m, &body));
    memcpy(back.seg, m.seg, sizeof m.seg);
    assert_int_equal(filter_decode(&coder, &body, &back, NULL), PARAMO_E_NOT_FOUND);
    filter_memory_give(&m.memory);
    filter_memory_give(&back.memory);
    free(s);
    ends_fini(&e);
}

/* Any bytes are taken, missed or refused; nothing is larger than its bound. */
static void hostile_bytes_are_refused(void **state)
{
    (void)state;
    struct ends e;
    struct filter_run run = {0};
    struct sample *s = calloc(1, sizeof *s);
    unsigned taken = 0, refused = 0;
    ends_init(&e);
    assert_int_equal(filter_chain_parse("keycache,zstd", FILTER_PUSH, &run.chain), PARAMO_OK);
    struct filter_coder coder = {.env = env_real(), .capabilities = CAPABILITIES, .counts = &e.sent};
    dice = 9;
    for (unsigned k = 0; k < 10 * CASES; k++) {
        sample_draw(s);
        send(&e, &run, s);
        struct filter_message m = message(&e, &e.sender, s), back = message(&e, &e.receiver, s);
        struct van_seg body, body_in;
        if (filter_encode(&coder, &run, &run.chain, &m, &body)) {
            travel(&back, &m, &body, &body_in);
            for (uint64_t i = 1 + draw(3); i; i--) { /* some bytes are others */
                unsigned seg = (unsigned)draw(4);
                uint64_t len = seg < 3 ? back.seg[seg].len : body_in.len;
                if (len)
                    wire[seg][draw(len)] = (uint8_t)draw(256);
            }
            if (draw(3) == 0)
                back.count = (uint32_t)draw(draw(2) ? 5 : UINT32_MAX);
            if (draw(4) == 0)
                body_in.len = draw(body_in.len + 1);
            paramo_err err = filter_decode(&coder, &body_in, &back, NULL);
            assert_true(!err || err == PARAMO_E_PROTOCOL || err == PARAMO_E_NOT_FOUND);
            assert_true(e.pool.out < 8 * FILTER_MESSAGE_MAX);
            taken += !err;
            refused += err != PARAMO_OK;
        }
        filter_memory_give(&m.memory);
        filter_memory_give(&back.memory);
    }
    assert_true(taken > CASES && refused > CASES);
    free(s);
    ends_fini(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_chains_come_back),         cmocka_unit_test(a_list_travels_once),
        cmocka_unit_test(what_does_not_pay_is_skipped), cmocka_unit_test(capabilities_decide),
        cmocka_unit_test(a_filter_is_wanted_once),      cmocka_unit_test(a_missing_list_is_missed),
        cmocka_unit_test(hostile_bytes_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
