/* The keys of a long request to a handler are examined in turns: what comes in the middle, what is wrong with them, and
 * repeats. */
#include "server/support_fake.h"
#include "unit.h"

#include <string.h>

/* PORTION: keys of a turn, one of which comes each millisecond. */
enum { N = 1000, PORTION = 100, TABLE = 3 };

static struct fake f;
static struct fake_conn *c, *other;
static uint64_t keys[N];
static float vals[N];
static uint32_t lens[N];
static unsigned handed; /* to the handler */
static uint64_t numbers[8];
static struct shard_request *requests[8];

static void handler(void *arg, struct shard_request *q, const struct shard_request_info *info)
{
    (void)arg;
    assert_true(handed < 8);
    requests[handed] = q;
    numbers[handed++] = info->ts;
}

static void on(void)
{
    handed = 0;
    fake_init(&f, handler, NULL);
    f.shard->config.scan_keys = PORTION;
    fake_view(&f);
    c = fake_connect(&f, 0);
    other = fake_connect(&f, 1);
    for (unsigned i = 0; i < N; i++) {
        keys[i] = i * (UINT64_MAX / N);
        vals[i] = (float)i;
        lens[i] = 1;
    }
}

static void off(void)
{
    for (unsigned i = 0; i < handed; i++)
        assert_int_equal(shard_answer_error(requests[i], PARAMO_E_HANDLER, "over"), PARAMO_OK);
    fake_pass(&f, ENV_MS);
    fake_disconnect(c);
    fake_disconnect(other);
    fake_fini(&f);
}

/* PULL and DELETE have no values; DELETE has the flag of lens, but no lens, and what stands there is not the
 * shard's. */
static paramo_err send(struct fake_conn *conn, unsigned kind, uint64_t number, uint32_t n, bool with_lens,
                       uint32_t attempt)
{
    bool has_vals = kind != WIRE_PULL && kind != WIRE_DELETE;
    struct wire_head h = fake_head(&f, kind, TABLE, number);
    uint8_t head[VAN_HEAD];
    h.count = n;
    h.ts = number;
    h.attempt = attempt;
    h.flags = with_lens ? WIRE_LENS : 0;
    const struct van_seg seg[VAN_SEGS] = {
        {.data = keys, .len = n * sizeof *keys},
        {.data = has_vals ? lens : lens + N, .len = with_lens && has_vals ? n * sizeof *lens : 0},
        {.data = vals, .len = has_vals ? n * sizeof *vals : 0}};
    wire_head_encode(&h, head);
    return van_deliver(&conn->conn, head, seg, 3, NULL, 7);
}

/* A long request reaches the handler after several turns, and what its connection sends after it comes after it;
 * others do not wait. */
static void turns_in_order(void **state)
{
    (void)state;
    on();
    assert_int_equal(send(c, WIRE_PUSH, 1, N, true, 0), PARAMO_OK);
    assert_int_equal(send(c, WIRE_PUSH, 2, 3, false, 0), PARAMO_OK);
    assert_int_equal(send(other, WIRE_PUSH, 7, 3, false, 0), PARAMO_OK);
    assert_true(handed == 1 && numbers[0] == 7);
    const struct peer *peer = c->conn.user;
    for (uint32_t at = 0; at < N; at += PORTION) {
        const struct kept *k = container_of(peer->deferred.head, struct kept, node);
        assert_int_equal(k->examined.at, at);
        assert_int_equal(handed, 1);
        fake_pass(&f, ENV_MS);
    }
    assert_true(handed == 3 && numbers[1] == 1 && numbers[2] == 2);
    assert_null(peer->deferred.head);
    /* A repeat has the same keys: the handler has it already. A pull with other keys is handed over again. */
    assert_int_equal(send(c, WIRE_PUSH, 1, N, true, 1), PARAMO_OK);
    assert_int_equal(send(other, WIRE_PULL, 8, N, false, 0), PARAMO_OK);
    fake_pass(&f, 30 * ENV_MS);
    assert_true(handed == 4 && numbers[3] == 8);
    assert_int_equal(send(other, WIRE_PULL, 8, N, false, 1), PARAMO_OK);
    fake_pass(&f, 30 * ENV_MS);
    assert_int_equal(handed, 4);
    assert_int_equal(send(other, WIRE_PULL, 8, N - 1, false, 2), PARAMO_OK);
    fake_pass(&f, 30 * ENV_MS);
    assert_int_equal(handed, 5);
    off();
}

/* What is wrong is found in whichever portion it is, and at their borders. */
static void wrong_keys(void **state)
{
    (void)state;
    static const unsigned at[] = {1, PORTION, N / 2, N - 1};
    on();
    for (unsigned i = 0; i < sizeof at / sizeof *at; i++) {
        uint64_t right = keys[at[i]];
        keys[at[i]] = keys[at[i] - 1];
        assert_int_equal(send(c, WIRE_PUSH, 1 + i, N, false, 0), PARAMO_OK);
        fake_pass(&f, 30 * ENV_MS);
        keys[at[i]] = right;
        assert_int_equal(fake_last(c)->head.number, 1 + i);
        assert_int_equal(fake_last(c)->head.status, PARAMO_E_KEYS_REPEATED);
    }
    lens[N - 1] = 2;
    assert_int_equal(send(c, WIRE_PUSH, 9, N, true, 0), PARAMO_OK);
    fake_pass(&f, 30 * ENV_MS);
    assert_int_equal(fake_last(c)->head.status, PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(handed, 0);
    off();
}

static void deletion_with_lens(void **state)
{
    (void)state;
    on();
    assert_int_equal(send(c, WIRE_DELETE, 1, 3, true, 0), PARAMO_E_PROTOCOL);
    assert_int_equal(send(c, WIRE_DELETE, 2, N, true, 0), PARAMO_OK); /* its turns come later */
    fake_pass(&f, 30 * ENV_MS);
    assert_int_equal(handed, 0);
    off();
}

/* In the middle the connection ends; partitions leave; a probe asks. */
static void in_the_middle(void **state)
{
    (void)state;
    on();
    assert_int_equal(send(other, WIRE_PUSH, 1, N, false, 0), PARAMO_OK);
    assert_int_equal(send(c, WIRE_PUSH, 2, N, false, 0), PARAMO_OK);
    fake_pass(&f, 3 * ENV_MS);
    struct wire_head probe = fake_head(&f, WIRE_PROBE, TABLE, 2);
    probe.count = 0;
    probe.probe.kind = WIRE_PUSH;
    assert_int_equal(fake_send(c, &probe, NULL, NULL), PARAMO_OK);
    assert_int_equal(fake_last(c)->head.probed.found, PROBE_WORKING);
    fake_disconnect(other);
    f.foreign = 10;
    f.partitions_changed = f.number + 1;
    fake_view(&f);
    fake_pass(&f, 50 * ENV_MS);
    assert_int_equal(handed, 0);
    assert_int_equal(fake_last(c)->head.status, PARAMO_E_MOVED);
    other = fake_connect(&f, 1);
    off();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_in_order),
        cmocka_unit_test(wrong_keys),
        cmocka_unit_test(deletion_with_lens),
        cmocka_unit_test(in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
