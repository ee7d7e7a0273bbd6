/* CHAIN, CHAIN_ACK: there and back, and what is refused. */
#include "unit.h"

#include <string.h>

#include "wire/chain.h"

struct wired {
    struct wire_head head;
    uint8_t body[CHAIN_BODY_MAX];
    uint64_t keys[2];
    float vals[2];
    struct van_seg seg[VAN_SEGS];
};

static void wire(const struct chain_message *m, struct wired *w)
{
    uint8_t bytes[VAN_HEAD];
    struct wire_head head;
    memset(w, 0, sizeof *w);
    chain_head(m, &head);
    wire_head_encode(&head, bytes);
    assert_int_equal(wire_head_decode(bytes, &w->head), PARAMO_OK);
    w->keys[1] = 1;
    bool vals = m->what == CHAIN_UPDATE && (m->request.kind == WIRE_PUSH || m->request.kind == WIRE_PUT);
    w->seg[WIRE_SEG_KEYS] = (struct van_seg){.data = w->keys, .len = 8 * (uint64_t)w->head.count};
    w->seg[WIRE_SEG_VALS] = (struct van_seg){.data = w->vals, .len = vals ? 4 * (uint64_t)w->head.count : 0};
    w->seg[WIRE_SEG_BODY] = (struct van_seg){.data = w->body, .len = chain_body_encode(m, w->body)};
}

static struct chain_message update(unsigned kind)
{
    struct chain_message m = {
        .seq = 5,
        .view = 77,
        .what = CHAIN_UPDATE,
        .origin = {.node = 8, .shard = 1},
        .order = 1000,
        .sender = {.node = 9, .app = 2, .customer = 3, .incarnation = 12345},
        .request = {.kind = (uint8_t)kind, .table = 4, .number = 30, .floor = 20, .count = 2}};
    if (kind == WIRE_CLEAR) {
        m.request.count = 0;
        m.partitions[63] = UINT64_C(1) << 63;
    }
    return m;
}

/* Field by field: padding may hold anything. */
static void assert_same(const struct chain_message *a, const struct chain_message *b)
{
    assert_true(a->seq == b->seq && a->view == b->view && a->what == b->what && a->order == b->order);
    assert_true(chain_same(a->origin, b->origin) && chain_same(a->from, b->from));
    assert_true(sender_id_equal(&a->sender, &b->sender));
    assert_memory_equal(&a->request, &b->request, sizeof a->request);
    assert_memory_equal(a->partitions, b->partitions, sizeof a->partitions);
}

static void test_there_and_back(void **state)
{
    (void)state;
    static const unsigned kinds[] = {WIRE_PUSH, WIRE_PUT, WIRE_DELETE, WIRE_CLEAR};
    struct wired w;
    struct chain_message got;
    for (unsigned i = 0; i < 4; i++) {
        struct chain_message m = update(kinds[i]);
        wire(&m, &w);
        assert_int_equal(chain_decode(&w.head, w.seg, 4, &got), PARAMO_OK);
        assert_same(&got, &m);
    }
    struct chain_message take = {
        .seq = 1, .view = 2, .what = CHAIN_TAKEOVER, .origin = {10, 0}, .from = {8, 3}, .partitions = {1, 2}};
    wire(&take, &w);
    assert_int_equal(chain_decode(&w.head, w.seg, 4, &got), PARAMO_OK);
    assert_same(&got, &take);
    struct chain_ack ack = {.acked = 3, .received = 4, .view = 9, .clock = 12, .again = true}, back;
    chain_ack_head(&ack, &w.head);
    assert_int_equal(chain_ack_decode(&w.head, NULL, 0, &back), PARAMO_OK);
    assert_true(back.acked == 3 && back.received == 4 && back.view == 9 && back.clock == 12 && back.again);
    ack.received = 13; /* 4 and 12 out of order */
    chain_ack_head(&ack, &w.head);
    uint8_t beyond[2] = {1, 1};
    assert_int_equal(chain_ack_decode(&w.head, &(struct van_seg){.data = beyond, .len = 2}, 1, &back),
                     PARAMO_OK);
    for (uint64_t seq = 1; seq < 16; seq++)
        assert_int_equal(chain_acks(&back, seq), seq < 5 || seq == 12);
}

static void test_beat(void **state)
{
    (void)state;
    struct wire_head head;
    uint64_t clock;
    chain_beat_head(1234, 9, &head);
    assert_true(head.kind == WIRE_CHAIN_BEAT && head.chain_beat.view == 9);
    assert_int_equal(chain_beat_decode(&head, 0, &clock), PARAMO_OK);
    assert_int_equal(clock, 1234);
    assert_int_equal(chain_beat_decode(&head, 1, &clock), PARAMO_E_PROTOCOL);
    head.chain_beat.clock = 0;
    assert_int_equal(chain_beat_decode(&head, 0, &clock), PARAMO_E_PROTOCOL);
}

static void test_refused(void **state)
{
    (void)state;
    struct wired w;
    struct chain_message got, m = update(WIRE_PUSH);
    wire(&m, &w);
    for (uint64_t len = 0; len < CHAIN_BODY_MIN; len++) {
        w.seg[WIRE_SEG_BODY].len = len;
        assert_int_equal(chain_decode(&w.head, w.seg, 4, &got), PARAMO_E_PROTOCOL);
    }
    wire(&m, &w);
    w.seg[WIRE_SEG_BODY].len++;
    assert_int_equal(chain_decode(&w.head, w.seg, 4, &got), PARAMO_E_PROTOCOL);
    wire(&m, &w);
    w.seg[WIRE_SEG_KEYS].len--;
    assert_int_equal(chain_decode(&w.head, w.seg, 4, &got), PARAMO_E_PROTOCOL);
    struct chain_message bad[8];
    for (unsigned i = 0; i < 8; i++)
        bad[i] = m;
    bad[0].seq = 0;
    bad[1].what = 0;
    bad[2].what = 5;
    bad[3].order = 0;
    bad[4].request.kind = WIRE_PULL;
    bad[5].request.number = 20 + DATA_WINDOW;
    bad[6].request.flags = WIRE_CREATE;
    bad[7].order = CHAIN_ORDER_MAX + 1; /* the next owner would begin at 0 some changes later */
    for (unsigned i = 0; i < 8; i++) {
        wire(&bad[i], &w);
        assert_int_equal(chain_decode(&w.head, w.seg, 4, &got), PARAMO_E_PROTOCOL);
    }
    m.what = CHAIN_FORGET;
    wire(&m, &w);
    w.seg[WIRE_SEG_KEYS].len = 8;
    assert_int_equal(chain_decode(&w.head, w.seg, 4, &got), PARAMO_E_PROTOCOL);
    struct chain_ack ack = {.acked = 5, .received = 4}, back;
    chain_ack_head(&ack, &w.head);
    assert_int_equal(chain_ack_decode(&w.head, NULL, 0, &back), PARAMO_E_PROTOCOL);
    ack.received = 5;
    chain_ack_head(&ack, &w.head);
    assert_int_equal(chain_ack_decode(&w.head, &(struct van_seg){.data = "", .len = 1}, 1, &back),
                     PARAMO_E_PROTOCOL);
}

static struct chain_message combined(struct wired *w, uint8_t pushes[2 * CHAIN_PUSH_BYTES])
{
    struct chain_message m = update(WIRE_PUSH);
    struct chain_push push = {.sender = m.sender, .number = 30, .floor = 20};
    m.what = CHAIN_COMBINED;
    m.sender = (struct sender_id){0};
    m.request = (struct wire_head){
        .kind = WIRE_PUSH, .flags = WIRE_CLOCKED, .table = 4, .count = 2, .clock = 9, .workers = 3};
    wire(&m, w);
    chain_push_put(&push, pushes);
    push.number = 20;
    push.sender.node++;
    chain_push_put(&push, pushes + CHAIN_PUSH_BYTES);
    w->seg[WIRE_SEG_LENS] = (struct van_seg){.data = pushes, .len = 2 * CHAIN_PUSH_BYTES};
    w->seg[WIRE_SEG_VALS] = (struct van_seg){.data = w->vals, .len = 5};
    return m;
}

static void test_combined(void **state)
{
    (void)state;
    struct wired w;
    uint8_t pushes[2 * CHAIN_PUSH_BYTES];
    struct chain_message got, m = combined(&w, pushes);
    assert_int_equal(chain_decode(&w.head, w.seg, 4, &got), PARAMO_OK);
    assert_same(&got, &m);
    assert_int_equal(chain_pushes(&got, w.seg), 2);
    struct chain_push one = chain_push_get(&got, w.seg, 1);
    assert_true(one.sender.node == 10 && one.sender.incarnation == 12345 && one.number == 20 &&
                one.floor == 20);
    for (uint64_t len = 0; len < 2 * CHAIN_PUSH_BYTES; len++) {
        w.seg[WIRE_SEG_LENS].len = len;
        assert_int_equal(chain_decode(&w.head, w.seg, 4, &got),
                         len == CHAIN_PUSH_BYTES ? PARAMO_OK : PARAMO_E_PROTOCOL);
    }
    for (unsigned i = 0; i < 8; i++) {
        (void)combined(&w, pushes);
        if (i == 0)
            w.head.chain.workers = 0;
        else if (i == 1)
            w.head.chain.request = WIRE_PUT;
        else if (i == 2)
            w.head.chain.number = 30;
        else if (i == 3)
            w.head.chain.floor = 20;
        else if (i == 4)
            w.seg[WIRE_SEG_KEYS].len = 8;
        else if (i == 5)
            w.head.chain.count = 0;
        else if (i == 6)
            w.head.chain.flags = WIRE_CLOCKED | WIRE_LENS;
        else /* the number of a push is below its floor */
            pushes[20] = 1;
        assert_int_equal(chain_decode(&w.head, w.seg, 4, &got), PARAMO_E_PROTOCOL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_beat),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_combined)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
